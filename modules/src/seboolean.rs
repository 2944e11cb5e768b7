use schemars::JsonSchema;

use crate::ask::{bad, run};
use crate::decode::Arguments;
use crate::{Change, Error, ErrorKind, Exec, Host, Module, Plan};

/// Switch a part of SELinux' policy on or off.
///
/// ```yaml
/// - seboolean:
///     name: container_use_devices
///     state: true
///     persistent: true
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The switch.
    name: String,
    /// What it is to be.
    state: bool,
    /// Keep it so over the next start.
    #[serde(default)]
    persistent: bool,
    /// Set it for the next start even where SELinux is off.
    #[serde(default)]
    ignore_selinux_state: bool,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        if self.name.is_empty() || self.name.contains(['/', ' ', '=']) || self.name.starts_with('-') {
            return Err(bad(format!("`{}` is no boolean's name", self.name)));
        }
        let word = if self.state { "on" } else { "off" };
        let told = |changes: Vec<Change>| {
            let plan = Plan::from(changes).with("name", self.name.as_str()).with("state", self.state);
            Ok(plan.with("persistent", self.persistent))
        };
        let live = host.stat("/sys/fs/selinux/enforce")?.is_some();
        if !live && !self.ignore_selinux_state {
            return Err(Error::new(ErrorKind::Host, "SELinux is disabled on this host."));
        }
        // "1 1": what it is, and what it will be once changes are committed.
        let now = host.read(&format!("/sys/fs/selinux/booleans/{}", self.name))?;
        if live && now.is_none() {
            return Err(Error::new(ErrorKind::Host, format!("SELinux boolean {} does not exist.", self.name)));
        }
        let mut right = !live || now.is_some_and(|bytes| bytes.starts_with(if self.state { b"1" } else { b"0" }));
        if self.persistent || !live {
            let listed = run(host, &["semanage", "boolean", "--list", "--noheading"])?;
            right &= kept(&listed.stdout, &self.name) == Some(word);
        }
        if right {
            return told(Vec::new());
        }
        let exec = match (live, self.persistent) {
            (true, true) => Exec::of(&["setsebool", "-P", &self.name, word]),
            (true, false) => Exec::of(&["setsebool", &self.name, word]),
            (false, _) => Exec::of(&["semanage", "boolean", "-N", "--modify", &format!("--{word}"), &self.name]),
        };
        told(vec![Change::Exec(exec)])
    }
}

/// Returns what a switch is after the next start: `name  (on   ,   on)  What it is for`.
fn kept<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    let line = list.lines().find(|line| line.split_whitespace().next() == Some(name))?;
    let (_, rest) = line.split_once(',')?;
    rest.split_once(')').map(|(word, _)| word.trim())
}
