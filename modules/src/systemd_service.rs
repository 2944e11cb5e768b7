use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::decode::Arguments;
use crate::host::Map;
use crate::host::Put as _;
use crate::{Change, Done, Error, ErrorKind, Exec, Expect, Host, Module, Output, Plan, Probe};

/// Start, stop, enable and mask units of systemd.
///
/// ```yaml
/// - systemd_service:
///     name: containerd
///     state: restarted
///     enabled: true
///     daemon_reload: true
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// A unit; `.service` is added to a name without a kind.
    #[serde(alias = "service", alias = "unit")]
    name: Option<String>,
    /// What the unit is to do. `restarted` and `reloaded` act each time, and start a unit that does not run.
    state: Option<State>,
    /// Whether the unit starts with the host.
    enabled: Option<bool>,
    #[serde(rename = "+systemd")]
    #[schemars(flatten)]
    systemd: Special,
}

/// What only systemd knows of, and `service` hands on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Special {
    /// Whether the unit is kept from being started by anything.
    masked: Option<bool>,
    /// Let systemd read its units anew first.
    #[serde(default, alias = "daemon-reload")]
    daemon_reload: bool,
    /// Let systemd start itself anew first.
    #[serde(default, alias = "daemon-reexec")]
    daemon_reexec: bool,
    /// Replace links that are in the way when enabling.
    #[serde(default)]
    force: bool,
    /// Whose systemd: the host's, the user's own, or that of all users.
    #[serde(default)]
    scope: Scope,
    /// Do not wait for the unit to finish what it is told.
    #[serde(default)]
    no_block: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    #[serde(alias = "running")]
    Started,
    Stopped,
    Restarted,
    Reloaded,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            State::Started => "started",
            State::Stopped => "stopped",
            State::Restarted => "restarted",
            State::Reloaded => "reloaded",
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Scope {
    #[default]
    System,
    User,
    Global,
}

/// What systemd says of a unit: the properties of `systemctl show`.
struct Unit(Map);

impl Unit {
    fn of(output: &Output) -> Unit {
        let properties = output.stdout.lines().filter_map(|line| line.split_once('='));
        Unit(properties.map(|(name, value)| (name.to_owned(), Value::from(value))).collect())
    }

    fn property(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn active(&self) -> bool {
        matches!(self.property("ActiveState"), "active" | "activating" | "reloading" | "refreshing")
    }

    fn stopped(&self) -> bool {
        matches!(self.property("ActiveState"), "inactive" | "failed" | "")
    }

    fn found(&self) -> bool {
        !matches!(self.property("LoadState"), "not-found" | "")
    }
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let name = self.check()?;
        for done in host.applied() {
            self.judge(host, done)?;
        }
        let mut plan = Plan::default();
        for (asked, word) in
            [(self.systemd.daemon_reexec, "daemon-reexec"), (self.systemd.daemon_reload, "daemon-reload")]
        {
            if asked && !self.did(host, word) {
                plan.changes.push(self.systemctl(host, &[word]));
            }
        }
        let Some(name) = name else {
            return Ok(quiet(plan, host));
        };
        let pending = !plan.changes.is_empty();
        match self.unit_changes(host, &name, &mut plan) {
            // The unit may be there once systemd has read its files.
            Err(_) if pending => {}
            other => other?,
        }
        plan.result.put("name", name);
        if let Some(state) = self.state {
            let running = if state == State::Stopped { "stopped" } else { "started" };
            plan.result.put("state", running);
        }
        if let Some(enabled) = self.enabled {
            plan.result.put("enabled", enabled);
        }
        Ok(quiet(plan, host))
    }
}

/// As in Ansible, reading unit files anew is no change by itself.
fn quiet(mut plan: Plan, host: &dyn Host) -> Plan {
    let reload = |change: &Change| matches!(change, Change::Exec(exec) if exec.argv.iter().any(|word| word == "daemon-reload" || word == "daemon-reexec"));
    let mut all = host.applied().iter().map(|done| &done.change).chain(&plan.changes).peekable();
    if all.peek().is_some() && all.all(reload) {
        plan.result.put("changed", false);
    }
    plan
}

impl Args {
    /// Returns arguments as another module has them.
    pub(super) fn of(name: Option<&str>, state: Option<State>, enabled: Option<bool>, systemd: &Special) -> Args {
        Args { name: name.map(str::to_owned), state, enabled, systemd: systemd.clone() }
    }

    fn check(&self) -> Result<Option<String>, Error> {
        let bad = |message: String| Err(Error::new(ErrorKind::Arguments, message));
        let Some(name) = &self.name else {
            if self.state.is_some() || self.enabled.is_some() || self.systemd.masked.is_some() {
                return bad("`state`, `enabled` and `masked` need `name`".into());
            }
            if !self.systemd.daemon_reload && !self.systemd.daemon_reexec {
                return bad("nothing to do: give `name`, `daemon_reload` or `daemon_reexec`".into());
            }
            return Ok(None);
        };
        if name.is_empty() || name.contains(['*', '?', '[']) || name.starts_with('-') {
            return bad(format!("`{name}` is no unit's name: patterns are not supported, give units one by one"));
        }
        if self.state.is_some() && self.systemd.scope == Scope::Global {
            return bad(
                "`scope: global` can enable and mask, not start or stop: there is a systemd for each user".into()
            );
        }
        if self.state.is_none()
            && self.enabled.is_none()
            && self.systemd.masked.is_none()
            && !self.systemd.daemon_reload
        {
            return bad(format!("nothing to do for `{name}`: give `state`, `enabled` or `masked`"));
        }
        Ok(Some(name.clone()))
    }

    fn unit_changes(&self, host: &dyn Host, name: &str, plan: &mut Plan) -> Result<(), Error> {
        let unit = self.show(host, name)?;
        let file_state = self.file_state(host, name, &unit)?;
        let masked = file_state.starts_with("masked") || unit.property("LoadState") == "masked";
        if let Some(wanted) = self.systemd.masked
            && wanted != masked
        {
            plan.changes.push(self.systemctl(host, &[if wanted { "mask" } else { "unmask" }, name]));
        }
        let there = unit.found() || !matches!(file_state.as_str(), "" | "not-found");
        if !there && (self.enabled.is_some() || self.state.is_some()) {
            return Err(Error::new(
                ErrorKind::Host,
                format!("Could not find the requested service {name}: host has no unit of that name"),
            ));
        }
        if let Some(wanted) = self.enabled
            && needs_enabling(wanted, &file_state)
        {
            let mut words = vec![if wanted { "enable" } else { "disable" }];
            if self.systemd.force {
                words.push("--force");
            }
            words.push(name);
            plan.changes.push(self.systemctl(host, &words));
        }
        if let Some(state) = self.state {
            if matches!(unit.property("LoadState"), "error" | "bad-setting") && state != State::Stopped {
                return Err(Error::new(
                    ErrorKind::Host,
                    format!("`{name}` can't be loaded: {}", unit.property("LoadError").trim()),
                ));
            }
            if let Some(word) = self.action(host, state, name, &unit)? {
                if unit.property("NeedDaemonReload") == "yes" && !self.systemd.daemon_reload {
                    plan.warnings.push(format!(
                        "the files of `{name}` have changed since systemd read them: add `daemon_reload: true`"
                    ));
                }
                let words: &[&str] = if self.systemd.no_block { &[word, "--no-block", name] } else { &[word, name] };
                plan.changes.push(self.systemctl(host, words));
            }
        }
        plan.result.put("status", unit.0);
        Ok(())
    }

    /// Returns the word that brings the unit into the state; `None` when it is.
    fn action(&self, host: &dyn Host, state: State, name: &str, unit: &Unit) -> Result<Option<&'static str>, Error> {
        let done = ["start", "stop", "restart", "reload"].iter().any(|word| self.did(host, word));
        if done && (self.systemd.no_block || state != State::Stopped) {
            if !self.systemd.no_block {
                self.prove(host, name, unit)?;
            }
            return Ok(None);
        }
        Ok(match state {
            State::Stopped => (!unit.stopped()).then_some("stop"),
            State::Started => (!unit.active()).then_some("start"),
            State::Restarted if unit.active() => Some("restart"),
            State::Reloaded if unit.active() => Some("reload"),
            State::Restarted | State::Reloaded => Some("start"),
        })
    }

    /// Fails when a unit that was just started has come down. One that did its work and ended well has not.
    fn prove(&self, host: &dyn Host, name: &str, unit: &Unit) -> Result<(), Error> {
        let (active, sub) = (unit.property("ActiveState"), unit.property("SubState"));
        if active != "failed" && sub != "auto-restart" {
            return Ok(());
        }
        let (result, status) = (unit.property("Result"), unit.property("ExecMainStatus"));
        let what = if active == "failed" { "failed right after its start" } else { "ends again and again" };
        let message = format!("`{name}` {what}: {result}, exit status {status}{}", self.journal(host, name));
        Err(Error::new(ErrorKind::Failed, message).with("status", unit.0.clone()))
    }

    fn show(&self, host: &dyn Host, name: &str) -> Result<Unit, Error> {
        if self.systemd.scope == Scope::Global || is_template(name) {
            return Ok(Unit(Map::new()));
        }
        let output = host.probe(&Probe { env: self.env(host), ..Probe::new(self.argv(&["show", name])) })?;
        if output.success() {
            return Ok(Unit::of(&output));
        }
        if output.rc == 127 {
            return Err(Error::new(ErrorKind::Host, "this host has no `systemctl`: it is not run by systemd"));
        }
        let offline =
            output.stderr.contains("not been booted with systemd") || output.stderr.contains("connect to bus");
        if offline && self.state.is_none() {
            // Files can be linked while nothing runs, as in an image that is being made.
            return Ok(Unit(Map::new()));
        }
        Err(Error::new(ErrorKind::Host, format!("ask systemd about `{name}`: {}", output.stderr.trim())))
    }

    /// Returns `enabled`, `disabled`, `static`, `masked`…; empty when there is no such unit.
    fn file_state(&self, host: &dyn Host, name: &str, unit: &Unit) -> Result<String, Error> {
        let told = unit.property("UnitFileState");
        if unit.found() && !told.is_empty() && told != "generated" && told != "bad" {
            return Ok(told.to_owned());
        }
        let output = host.probe(&Probe { env: self.env(host), ..Probe::new(self.argv(&["is-enabled", name])) })?;
        // For an init script its own tool answers last, after a line about that.
        Ok(output.stdout.lines().last().unwrap_or_default().trim().to_owned())
    }

    fn argv(&self, words: &[&str]) -> Vec<String> {
        let scope = match self.systemd.scope {
            Scope::System => None,
            Scope::User => Some("--user"),
            Scope::Global => Some("--global"),
        };
        ["systemctl"].into_iter().chain(scope).chain(words.iter().copied()).map(str::to_owned).collect()
    }

    /// A user's systemd is found through this folder, which a login through SSH may not name.
    fn env(&self, host: &dyn Host) -> Vec<(String, String)> {
        if self.systemd.scope == Scope::User && host.env("XDG_RUNTIME_DIR").is_none() {
            return vec![("XDG_RUNTIME_DIR".into(), format!("/run/user/{}", host.uid()))];
        }
        Vec::new()
    }

    fn systemctl(&self, host: &dyn Host, words: &[&str]) -> Change {
        let exec = Exec::new(self.argv(words));
        Change::Exec(Exec { env: self.env(host), expect: Expect::Any, ..exec })
    }

    /// Whether this task has run `systemctl` with this word.
    fn did(&self, host: &dyn Host, word: &str) -> bool {
        let is_it =
            |change: &Change| matches!(change, Change::Exec(exec) if exec.argv.iter().any(|other| other == word));
        host.applied().iter().any(|done| is_it(&done.change))
    }

    /// Fails when a command did, with what the unit wrote about it.
    fn judge(&self, host: &dyn Host, done: &Done) -> Result<(), Error> {
        let (Change::Exec(exec), Some(output)) = (&done.change, &done.output) else { return Ok(()) };
        if output.success() {
            return Ok(());
        }
        let starts = exec.argv.iter().any(|word| ["start", "restart", "reload", "stop"].contains(&word.as_str()));
        let journal = match (&self.name, starts) {
            (Some(name), true) => self.journal(host, name),
            (Some(_) | None, _) => String::new(),
        };
        let said = output.stderr.trim();
        Err(Error::new(ErrorKind::Failed, format!("`{}`: {said}{journal}", exec.argv.join(" ")))
            .with("rc", output.rc)
            .with("stdout", output.stdout.as_str())
            .with("stderr", output.stderr.as_str()))
    }

    /// Returns the unit's last words, each on a line of its own.
    fn journal(&self, host: &dyn Host, name: &str) -> String {
        let user: &[&str] = if self.systemd.scope == Scope::User { &["--user"] } else { &[] };
        let argv = [&["journalctl", "-q", "--no-pager", "-n", "6", "-o", "cat"], user, &["-u", name]].concat();
        let output = host.probe(&Probe { env: self.env(host), ..Probe::new(argv) }).unwrap_or_default();
        if !output.success() {
            return String::new();
        }
        output.stdout.lines().map(|line| format!("\n  {line}")).collect()
    }
}

fn is_template(name: &str) -> bool {
    name.ends_with('@') || name.contains("@.")
}

/// Whether `enable` or `disable` would change anything. What is static, indirect or made by a generator has no links
/// of its own to make.
fn needs_enabling(wanted: bool, file_state: &str) -> bool {
    match file_state {
        "enabled" | "alias" => !wanted,
        "static" | "indirect" | "generated" | "transient" => false,
        _ => wanted || matches!(file_state, "enabled-runtime" | "linked"),
    }
}
