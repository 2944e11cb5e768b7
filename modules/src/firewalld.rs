use schemars::JsonSchema;
use serde::Deserialize;

use crate::ask::{ask, bad, run};
use crate::decode::Arguments;
use crate::passed::table;
use crate::{Change, Error, ErrorKind, Exec, Host, Module, Plan};

/// Keep what a zone of firewalld lets through.
///
/// ```yaml
/// - firewalld:
///     port: 6443/tcp
///     state: enabled
///     permanent: true
///     immediate: true
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Whether it is there; `present` and `absent` are for zones and their targets.
    state: State,
    /// The zone; the default one when absent.
    zone: Option<String>,
    /// Change what the next start or reload reads; what it is when absent and `immediate` is false.
    permanent: Option<bool>,
    /// Change what is in force now; so when neither this nor `permanent` is given.
    #[serde(default)]
    immediate: bool,
    /// Change files although the daemon does not run.
    #[serde(default)]
    offline: bool,
    /// Seconds after which what is in force now ends.
    #[serde(default)]
    timeout: u64,
    /// A port of this host that leads elsewhere.
    #[serde(default)]
    port_forward: Vec<Forward>,
    /// Translate addresses of what leaves.
    masquerade: Option<bool>,
    /// Pass on between interfaces of the zone.
    forward: Option<bool>,
    /// Block kinds of ICMP that are not listed in place of those that are.
    icmp_block_inversion: Option<bool>,
    #[serde(rename = "+options")]
    #[schemars(flatten)]
    options: Options,
}

table! {
    pub(super) struct Options {
        /// A service, as `firewall-cmd --get-services` lists it.
        service: Text,
        /// A port or range with its protocol: `6443/tcp`, `30000-32767/tcp`.
        port: Text,
        /// A protocol.
        protocol: Text,
        /// A rule in the rich language.
        rich_rule: Text,
        /// A network whose packets belong to the zone.
        source: Text,
        /// An interface that belongs to the zone.
        interface: Text,
        /// A kind of ICMP that is blocked.
        icmp_block: Text,
        /// What happens to what the zone does not settle: `default`, `ACCEPT`, `DROP`, `%%REJECT%%`.
        target: Text,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    Enabled,
    Disabled,
    Present,
    Absent,
}

/// Where a port leads.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Forward {
    /// The port.
    port: String,
    /// Its protocol.
    proto: String,
    /// The port it leads to.
    toport: String,
    /// The address it leads to; this host when absent.
    toaddr: Option<String>,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let on = matches!(self.state, State::Enabled | State::Present);
        let running = run(host, &["firewall-cmd", "--state"])?.success();
        if !running && !self.offline {
            let message = "firewalld does not run on this host: start it with `service`, or give `offline: true`";
            return Err(Error::new(ErrorKind::Host, message));
        }
        let permanent = self.permanent.unwrap_or(false) || !running;
        let immediate = running && (self.immediate || !self.permanent.unwrap_or(false));
        let mut changes = Vec::new();
        for (lasting, asked) in [(true, permanent), (false, immediate)] {
            if asked {
                changes.extend(self.side(host, lasting, running, on)?);
            }
        }
        let mut told = Vec::new();
        if permanent {
            told.push("Permanent");
        }
        if immediate {
            told.push("Non-Permanent");
        }
        Ok(Plan::from(changes).with("msg", format!("{} operation", told.join(" and "))))
    }
}

impl Args {
    /// Returns what is asked for, as the program names it: the kind, and its value.
    fn items(&self) -> Result<Vec<(&'static str, String)>, Error> {
        let mut items = Vec::new();
        for (name, word) in [
            ("service", "service"),
            ("port", "port"),
            ("protocol", "protocol"),
            ("rich_rule", "rich-rule"),
            ("source", "source"),
            ("interface", "interface"),
            ("icmp_block", "icmp-block"),
        ] {
            items.extend(self.options.text(name).map(|value| (word, value.to_owned())));
        }
        for forward in &self.port_forward {
            let Forward { port, proto, toport, toaddr } = forward;
            let to = toaddr.as_ref().map_or(String::new(), |address| format!(":toaddr={address}"));
            items.push(("forward-port", format!("port={port}:proto={proto}:toport={toport}{to}")));
        }
        for (word, asked) in [
            ("masquerade", self.masquerade),
            ("forward", self.forward),
            ("icmp-block-inversion", self.icmp_block_inversion),
        ] {
            items.extend(asked.map(|asked| (word, if asked { String::new() } else { "off".to_owned() })));
        }
        let whole_zone = items.is_empty() && (self.options.text("target").is_some() || self.zone.is_some());
        let zone_state = matches!(self.state, State::Present | State::Absent);
        match (items.len(), whole_zone, zone_state) {
            (0, false, _) => Err(bad("what is it about? give `service`, `port`, `source` or another")),
            (0, true, false) => Err(bad("a zone and its target are `present` or `absent`")),
            (1, _, false) | (0, true, true) => Ok(items),
            (_, _, true) => Err(bad("`present` and `absent` are for zones: here it is `enabled` or `disabled`")),
            (_, _, false) => Err(bad("several things at once: make each a task of its own")),
        }
    }

    fn side(&self, host: &dyn Host, lasting: bool, running: bool, on: bool) -> Result<Vec<Change>, Error> {
        let program = if running { "firewall-cmd" } else { "firewall-offline-cmd" };
        let zone = self.zone.as_ref().map(|zone| format!("--zone={zone}"));
        let mut head = vec![program];
        if lasting && running {
            head.push("--permanent");
        }
        let items = self.items()?;
        if items.is_empty() {
            return if lasting { self.zone(host, &head, on) } else { Ok(Vec::new()) };
        }
        head.extend(zone.as_deref());
        let mut changes = Vec::new();
        for (word, value) in items {
            let (value, on) = if value == "off" { (String::new(), !on) } else { (value, on) };
            let tail = if value.is_empty() { String::new() } else { format!("={value}") };
            let query = format!("--query-{word}{tail}");
            let argv = [head.as_slice(), &[&query]].concat();
            let output = run(host, &argv)?;
            // Source: `firewall-cmd(1)`: 0 for yes, 1 for no, more for what it can't tell.
            if output.rc > 1 {
                return Err(crate::ask::failed(&argv, &output));
            }
            if output.success() == on {
                continue;
            }
            let verb = if on { "add" } else { "remove" };
            let verb = format!("--{verb}-{word}{tail}");
            let limit = format!("--timeout={}", self.timeout);
            let mut words = [head.as_slice(), &[&verb]].concat();
            if on && !lasting && self.timeout > 0 {
                words.push(&limit);
            }
            changes.push(Change::Exec(Exec::of(&words)));
        }
        Ok(changes)
    }

    /// Sees to a zone itself, or its target: that can only be done for the next start.
    fn zone(&self, host: &dyn Host, head: &[&str], on: bool) -> Result<Vec<Change>, Error> {
        let zone = self.zone.as_deref().ok_or_else(|| bad("`zone` is missing"))?;
        let there = ask(host, &[head, &["--get-zones"]].concat())?.split_whitespace().any(|other| other == zone);
        let exec = |word: &str| vec![Change::Exec(Exec::of(&[head, &[word]].concat()))];
        match (self.options.text("target"), on, there) {
            (Some(_), _, false) => Err(Error::new(ErrorKind::Host, format!("this host has no zone `{zone}`"))),
            (Some(target), on, true) => {
                let wanted = if on { target } else { "default" };
                let name = format!("--zone={zone}");
                let now = ask(host, &[head, &[&name, "--get-target"]].concat())?;
                let set = format!("--set-target={wanted}");
                let argv = [head, &[&name, &set]].concat();
                Ok(if now.trim() == wanted { Vec::new() } else { vec![Change::Exec(Exec::of(&argv))] })
            }
            (None, true, false) => Ok(exec(&format!("--new-zone={zone}"))),
            (None, false, true) => Ok(exec(&format!("--delete-zone={zone}"))),
            (None, true, true) | (None, false, false) => Ok(Vec::new()),
        }
    }
}
