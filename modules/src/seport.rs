use schemars::JsonSchema;
use serde::Deserialize;

use crate::ask::{ask, bad};
use crate::decode::Arguments;
use crate::shared::State;
use crate::{Change, Error, Exec, Host, Module, Plan};

/// Keep the SELinux type of network ports.
///
/// ```yaml
/// - seport:
///     ports: [10250, 30000-32767]
///     proto: tcp
///     setype: http_port_t
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Ports and ranges such as `30000-32767`.
    ports: Vec<String>,
    /// The protocol.
    proto: Proto,
    /// The type.
    setype: String,
    #[serde(default)]
    state: State,
    /// Tell the running kernel too.
    #[serde(default = "crate::shared::yes")]
    reload: bool,
    /// Accepted: with `absent` it is always a change of this host that is taken back.
    #[serde(default)]
    #[expect(dead_code, reason = "what the policy itself says can't be removed")]
    local: bool,
    /// Accepted: the rule is kept whether SELinux is on or off.
    #[serde(default)]
    #[expect(dead_code, reason = "semanage does not need a kernel that has it on")]
    ignore_selinux_state: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Proto {
    Tcp,
    Udp,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let right = |port: &String| port.split('-').all(|part| part.trim().parse::<u16>().is_ok());
        if self.ports.is_empty() || !self.ports.iter().all(right) || self.setype.starts_with('-') {
            return Err(bad("`ports` is a list of ports such as `8080` and `30000-32767`"));
        }
        let proto = if self.proto == Proto::Tcp { "tcp" } else { "udp" };
        let all = ask(host, &["semanage", "port", "--list", "--noheading"])?;
        let own = ask(host, &["semanage", "port", "--list", "--noheading", "-C"])?;
        let mut changes = Vec::new();
        for port in &self.ports {
            let port = port.replace(' ', "");
            let now = type_of(&all, proto, &port);
            let is_own = type_of(&own, proto, &port).is_some();
            let verb = match (self.state, now) {
                (State::Present, Some(now)) if now == self.setype => continue,
                (State::Present, Some(_)) => "--modify",
                (State::Present, None) => "--add",
                (State::Absent, Some(now)) if now == self.setype && is_own => "--delete",
                (State::Absent, _) => continue,
            };
            let mut argv = vec!["semanage", "port"];
            if !self.reload {
                argv.push("-N");
            }
            argv.extend([verb, "--type", &self.setype, "--proto", proto, &port]);
            changes.push(Change::Exec(Exec::of(&argv)));
        }
        let plan = Plan::from(changes).with("ports", self.ports.clone()).with("proto", proto);
        Ok(plan.with("setype", self.setype.as_str()))
    }
}

/// Returns the type of a port by lines such as `http_port_t  tcp  80, 81, 8000-8010`.
fn type_of<'a>(list: &'a str, proto: &str, port: &str) -> Option<&'a str> {
    list.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (kind, its_proto) = (words.next()?, words.next()?);
        let found = words.any(|word| word.trim_end_matches(',') == port);
        (its_proto == proto && found).then_some(kind)
    })
}
