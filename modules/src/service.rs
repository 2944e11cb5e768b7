use schemars::JsonSchema;
use serde::Deserialize;

use crate::decode::Arguments;
use crate::facts::{Files, service_manager};
use crate::host::Put as _;
use crate::systemd_service::{Args as Systemd, Special, State};
use crate::{Change, Error, ErrorKind, Exec, Host, Module, Plan, Probe};

/// Start, stop and enable services, whatever manages them: systemd, OpenRC or init scripts.
///
/// ```yaml
/// - service:
///     name: kubelet
///     state: started
///     enabled: true
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The service; only systemd can do without, to read its units anew.
    name: Option<String>,
    /// What the service is to do. `restarted` and `reloaded` act each time, and start one that does not run.
    state: Option<State>,
    /// Whether the service starts with the host.
    enabled: Option<bool>,
    /// What manages services; found out when `auto`.
    #[serde(default, rename = "use")]
    manager: Manager,
    /// Further arguments of an init script; systemd takes none.
    #[serde(alias = "args")]
    arguments: Option<String>,
    /// The runlevel of OpenRC in which the service starts.
    #[serde(default = "default_runlevel")]
    runlevel: String,
    /// Seconds between stopping and starting an init script's service again.
    sleep: Option<u64>,
    /// Part of the command line by which to find the process of an init script that knows no `status`.
    pattern: Option<String>,
    #[serde(rename = "+systemd")]
    #[schemars(flatten)]
    systemd: Special,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Manager {
    #[default]
    Auto,
    Systemd,
    Openrc,
    #[serde(alias = "service")]
    Sysvinit,
}

fn default_runlevel() -> String {
    "default".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let special = self.systemd != Special::default();
        if self.state.is_none() && self.enabled.is_none() && !special {
            return Err(Error::new(ErrorKind::Arguments, "nothing to do: give `state` or `enabled`"));
        }
        let manager = match self.manager {
            Manager::Auto => match service_manager(Files(host)).as_str() {
                "systemd" => Manager::Systemd,
                "openrc" => Manager::Openrc,
                _ => Manager::Sysvinit,
            },
            named => named,
        };
        let scripts = match manager {
            Manager::Systemd | Manager::Auto => {
                return Systemd::of(self.name.as_deref(), self.state, self.enabled, &self.systemd).plan(host);
            }
            Manager::Openrc => "rc-service",
            Manager::Sysvinit => "service",
        };
        if special {
            let message = "`daemon_reload`, `masked` and their like are for systemd, which does not run this host";
            return Err(Error::new(ErrorKind::Host, message));
        }
        let Some(name) = self.name.as_deref() else {
            return Err(Error::new(ErrorKind::Arguments, "`service` needs the argument `name`"));
        };
        let script = format!("/etc/init.d/{name}");
        if host.stat(&script)?.is_none() {
            return Err(Error::new(
                ErrorKind::Host,
                format!("Could not find the requested service {name}: host has no `{script}`"),
            ));
        }
        let mut plan = Plan::default().with("name", name);
        if let Some(enabled) = self.enabled {
            plan.changes.extend(self.enabling(host, manager, name, enabled)?);
            plan.result.put("enabled", enabled);
        }
        if let Some(state) = self.state {
            plan.changes.extend(self.acting(host, scripts, name, state)?);
            plan.result.put("state", if state == State::Stopped { "stopped" } else { "started" });
        }
        Ok(plan)
    }
}

impl Args {
    fn acting(&self, host: &dyn Host, scripts: &str, name: &str, state: State) -> Result<Vec<Change>, Error> {
        let words = |word: &str| -> Vec<String> {
            let arguments = self.arguments.iter().flat_map(|text| text.split_whitespace());
            [scripts, name, word].into_iter().chain(arguments).map(str::to_owned).collect()
        };
        let act = |word: &str| Change::Exec(Exec::new(words(word)));
        let acted = host.applied().iter().any(
            |done| matches!(&done.change, Change::Exec(exec) if exec.argv.first().is_some_and(|word| word == scripts)),
        );
        let running = self.running(host, scripts, name)?;
        Ok(match (state, running) {
            (State::Started, true) | (State::Stopped, false) => vec![],
            (State::Started, false) => vec![act("start")],
            (State::Stopped, true) => vec![act("stop")],
            (State::Restarted | State::Reloaded, true) if acted => vec![],
            (State::Restarted | State::Reloaded, false) if acted => {
                return Err(Error::new(
                    ErrorKind::Failed,
                    format!("`{name}` does not run although it was {}", state.name()),
                ));
            }
            (State::Restarted | State::Reloaded, false) => vec![act("start")],
            (State::Reloaded, true) => vec![act("reload")],
            (State::Restarted, true) => match self.sleep {
                Some(seconds) => {
                    vec![act("stop"), Change::Exec(Exec::of(&["sleep", &seconds.to_string()])), act("start")]
                }
                None => vec![act("restart")],
            },
        })
    }

    /// Source: the exit status of `status` in the Linux Standard Base: 0 running, 1 to 3 not, else unknown.
    fn running(&self, host: &dyn Host, scripts: &str, name: &str) -> Result<bool, Error> {
        if let Some(pattern) = &self.pattern {
            let output = host.probe(&Probe::of(&["pgrep", "-f", "--", pattern]))?;
            return Ok(output.success());
        }
        let output = host.probe(&Probe::new([scripts, name, "status"]))?;
        match output.rc {
            0 => Ok(!output.stdout.contains("not running") && !output.stdout.contains("is stopped")),
            1..=3 => Ok(false),
            // OpenRC: stopped without having been started, or crashed.
            16 | 32 => Ok(false),
            _ => Err(Error::new(
                ErrorKind::Host,
                format!("`{scripts} {name} status` exited {}: give `pattern` to find its process by", output.rc),
            )),
        }
    }

    fn enabling(&self, host: &dyn Host, manager: Manager, name: &str, enabled: bool) -> Result<Option<Change>, Error> {
        if manager == Manager::Openrc {
            let level = self.runlevel.as_str();
            let is = host.lstat(&format!("/etc/runlevels/{level}/{name}"))?.is_some();
            let word = if enabled { "add" } else { "del" };
            return Ok((is != enabled).then(|| Change::Exec(Exec::of(&["rc-update", word, name, level]))));
        }
        let mut linked = (false, false);
        for level in 2..=5 {
            for entry in host.list(&format!("/etc/rc{level}.d"))?.unwrap_or_default() {
                let (kind, rest) = entry.split_at(entry.len().min(1));
                if rest.trim_start_matches(|digit: char| digit.is_ascii_digit()) == name {
                    linked.0 |= kind == "S";
                    linked.1 = true;
                }
            }
        }
        let (starts, known) = linked;
        if starts == enabled {
            return Ok(None);
        }
        let argv: &[&str] = if host.stat("/usr/sbin/update-rc.d")?.is_some() {
            match (enabled, known) {
                (true, true) => &["update-rc.d", name, "enable"],
                (true, false) => &["update-rc.d", name, "defaults"],
                (false, _) => &["update-rc.d", name, "disable"],
            }
        } else {
            &["chkconfig", name, if enabled { "on" } else { "off" }]
        };
        Ok(Some(Change::Exec(Exec::new(argv.iter().copied()))))
    }
}
