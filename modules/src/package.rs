use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::host::Put as _;
use crate::host::Map;
use crate::dnf::patient;
use crate::{Change, Done, Error, ErrorKind, Exec, Host, Module, Plan, Probe, decode};

/// Install or remove packages with whatever the host has: apt, dnf, yum, zypper or apk.
///
/// ```yaml
/// - package:
///     name: [curl, jq]
///     state: present
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The packages.
    #[serde(alias = "pkg")]
    name: Vec<String>,
    #[serde(default)]
    state: State,
    /// The package manager; found out when `auto`.
    #[serde(default, rename = "use")]
    manager: Manager,
    /// Refresh the lists of packages first; with apt and dnf.
    update_cache: Option<bool>,
    /// Allow to go back to an older version; with apt and dnf.
    allow_downgrade: Option<bool>,
    /// Seconds for which lists that were refreshed stay good; with apt.
    cache_valid_time: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    #[serde(alias = "installed")]
    Present,
    #[serde(alias = "removed")]
    Absent,
    Latest,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Manager {
    #[default]
    Auto,
    Apt,
    #[serde(alias = "dnf4", alias = "dnf5")]
    Dnf,
    Yum,
    Zypper,
    Apk,
}

/// Where each manager's program is, in the order in which they are looked for.
const PROGRAMS: [(Manager, &str); 5] = [
    (Manager::Apt, "/usr/bin/apt-get"),
    (Manager::Dnf, "/usr/bin/dnf"),
    (Manager::Yum, "/usr/bin/yum"),
    (Manager::Zypper, "/usr/bin/zypper"),
    (Manager::Apk, "/sbin/apk"),
];

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        if self.name.iter().any(|name| name.is_empty() || name.starts_with('-')) || self.name.is_empty() {
            return Err(Error::new(ErrorKind::Arguments, "`name` is a list of packages"));
        }
        match self.manager_of(host)? {
            Manager::Apt | Manager::Auto => self.manager::<crate::apt::Args>(host, true),
            Manager::Dnf | Manager::Yum => self.manager::<crate::dnf::Args>(host, false),
            Manager::Zypper => self.zypper(host),
            Manager::Apk => self.apk(host),
        }
    }

    fn report(&self, _host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        crate::apt::report(done, result);
        crate::dnf::report(done, result);
        Ok(())
    }
}

impl Args {
    fn manager_of(&self, host: &dyn Host) -> Result<Manager, Error> {
        if self.manager != Manager::Auto {
            return Ok(self.manager);
        }
        // A Debian may have dnf too, and a Fedora apt: whose database it is decides.
        let debian = host.stat("/var/lib/dpkg/status")?.is_some();
        for (manager, path) in PROGRAMS {
            if host.stat(path)?.is_some() && (manager != Manager::Apt || debian) {
                return Ok(manager);
            }
        }
        Err(Error::new(
            ErrorKind::Refused,
            "this host has none of apt, dnf, yum, zypper and apk: install its packages with `command`",
        ))
    }

    /// Plans as the module of apt or dnf does; only apt's knows how old its lists may be.
    fn manager<T: Module>(&self, host: &dyn Host, knows_age: bool) -> Result<Plan, Error> {
        let state = match self.state {
            State::Present => "present",
            State::Absent => "absent",
            State::Latest => "latest",
        };
        let mut args = Map::new();
        args.put("name", self.name.iter().map(|name| Value::from(name.as_str())).collect::<Value>());
        args.put("state", state);
        if let Some(update) = self.update_cache {
            args.put("update_cache", update);
        }
        if let (Some(seconds), true) = (self.cache_valid_time, knows_age) {
            args.put("cache_valid_time", seconds);
        }
        if let Some(allow) = self.allow_downgrade {
            args.put("allow_downgrade", allow);
        }
        let module: T = decode(&args).map_err(|error| Error::new(ErrorKind::Arguments, error.to_string()))?;
        module.plan(host)
    }

    fn zypper(&self, host: &dyn Host) -> Result<Plan, Error> {
        let mut wanted = Vec::new();
        for name in &self.name {
            let output = host.probe(&Probe::of(&["rpm", "-q", "--whatprovides", "--", name]))?;
            if output.rc == 127 {
                return Err(Error::new(ErrorKind::Host, "this host has no `rpm`"));
            }
            let installed = output.success();
            let asked = match self.state {
                State::Present => !installed,
                State::Absent => installed,
                State::Latest => !installed || outdated(host, name)?,
            };
            if asked {
                wanted.push(name.as_str());
            }
        }
        if wanted.is_empty() {
            return Ok(Plan::default());
        }
        let line: &[&str] = match self.state {
            State::Absent => &["zypper", "--non-interactive", "remove"],
            State::Present | State::Latest => {
                &["zypper", "--non-interactive", "install", "--auto-agree-with-licenses"]
            }
        };
        Ok(vec![Change::Exec(Exec::new([line, wanted.as_slice()].concat()))].into())
    }

    fn apk(&self, host: &dyn Host) -> Result<Plan, Error> {
        let mut wanted = Vec::new();
        for name in &self.name {
            let installed = host.probe(&Probe::of(&["apk", "info", "-e", name]))?.success();
            let asked = match self.state {
                State::Present => !installed,
                State::Absent => installed,
                State::Latest => {
                    let newer = host.probe(&Probe::of(&["apk", "version", "-q", "-l", "<", name]))?;
                    !installed || newer.stdout.lines().any(|line| line.starts_with(name.as_str()))
                }
            };
            if asked {
                wanted.push(name.as_str());
            }
        }
        if wanted.is_empty() {
            return Ok(Plan::default());
        }
        let line: &[&str] = match self.state {
            State::Present => &["apk", "add"],
            State::Latest => &["apk", "add", "--upgrade"],
            State::Absent => &["apk", "del"],
        };
        Ok(vec![Change::Exec(Exec::new([line, wanted.as_slice()].concat()))].into())
    }
}

/// Whether zypper has a newer version.
fn outdated(host: &dyn Host, name: &str) -> Result<bool, Error> {
    let output = host.probe(&patient(["zypper", "--non-interactive", "--quiet", "list-updates", "--all"]))?;
    Ok(output.stdout.lines().any(|line| line.split('|').nth(2).is_some_and(|word| word.trim() == name)))
}
