use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::decode::{Arguments, arguments};
use crate::dnf::patient;
use crate::host::Map;
use crate::host::Put as _;
use crate::passed::table;
use crate::{Change, Done, Error, ErrorKind, Exec, Host, Module, Plan, Probe};

/// Install or remove packages with whatever the host has: apt, dnf, yum, zypper or apk.
///
/// ```yaml
/// - package:
///     name: [curl, jq]
///     state: present
/// ```
#[derive(Debug, Arguments, JsonSchema)]
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
    #[serde(rename = "+passed")]
    #[schemars(flatten)]
    passed: Passed,
}

table! {
    struct Passed {
        /// Refresh the lists of packages first; with apt, dnf, zypper and apk.
        update_cache: Flag,
        /// Allow to go back to an older version; with apt and dnf.
        allow_downgrade: Flag,
        /// Remove what was installed only for packages that are gone; with apt and dnf.
        autoremove: Flag,
        /// Seconds to wait while another package manager is at work; with apt and dnf.
        lock_timeout: Number,
        /// Take packages whose signature can't be checked; with dnf and zypper.
        disable_gpg_check: Flag,
        /// Seconds for which lists that were refreshed stay good; with apt.
        cache_valid_time: Number,
        /// How often a download of the lists is tried again; with apt.
        update_cache_retries: Number,
        /// The release to prefer; with apt.
        default_release: Text,
        /// Whether recommended packages come along; with apt.
        install_recommends: Flag,
        /// Upgrade what is installed, and install nothing new; with apt.
        only_upgrade: Flag,
        /// Remove a package's configuration too; with apt.
        purge: Flag,
        /// Delete downloads that can't be downloaded any more; with apt.
        autoclean: Flag,
        /// Delete all downloads; with apt.
        clean: Flag,
        /// Allow downgrades, changes of held and removal of essential packages, and unauthenticated ones; with apt.
        force: Flag,
        /// Allow to change packages that are on hold; with apt.
        allow_change_held_packages: Flag,
        /// Allow packages whose signature can't be checked; with apt.
        allow_unauthenticated: Flag,
        /// Fail instead of removing a package while installing or upgrading; with apt.
        fail_on_autoremove: Flag,
        /// Options of dpkg without their dashes; with apt.
        dpkg_options: List,
        /// What services that a package brings are told when they want to start; with apt.
        policy_rc_d: Number,
        /// Accepted with apt: apt-get is what is used anyway.
        force_apt_get: Flag,
        /// Repositories to use although they are disabled; with dnf.
        enablerepo: List,
        /// Repositories not to use; with dnf.
        disablerepo: List,
        /// Packages to leave alone; with dnf.
        exclude: List,
        /// Take packages that are excluded by the configuration: `all`, `main` or a repository; with dnf.
        disable_excludes: Text,
        /// The program's configuration file; with dnf.
        conf_file: Text,
        /// The folder that is taken for the root of the system; with dnf.
        installroot: Text,
        /// The release whose packages are taken; with dnf.
        releasever: Text,
        /// Leave out packages whose dependencies can't be met; with dnf.
        skip_broken: Flag,
        /// Plugins to use; with dnf.
        enable_plugin: List,
        /// Plugins not to use; with dnf.
        disable_plugin: List,
        /// Whether servers must prove who they are; with dnf.
        validate_certs: Flag,
        /// Whether servers of repositories must prove who they are; with dnf.
        sslverify: Flag,
        /// Whether weak dependencies come along; with dnf.
        install_weak_deps: Flag,
        /// Remove installed packages that are in the way; with dnf.
        allowerasing: Flag,
        /// Take an older version where the newest can't be installed; with dnf.
        nobest: Flag,
        /// Fail where the newest version can't be installed; with dnf.
        best: Flag,
        /// Use nothing but what was downloaded before; with dnf.
        cacheonly: Flag,
        /// Upgrade what is installed, and install nothing new; with dnf and `latest`.
        update_only: Flag,
        /// Only upgrades that mend a security problem; with dnf and `latest`.
        security: Flag,
        /// Only upgrades that mend a mistake; with dnf and `latest`.
        bugfix: Flag,
        /// Download the packages and install none; with dnf.
        download_only: Flag,
        /// The folder for `download_only`; with dnf.
        download_dir: Text,
    }
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
        // A list that turned out empty asks for nothing, and gets it.
        if self.name.is_empty() {
            return Ok(Plan::default());
        }
        if self.name.iter().any(|name| name.is_empty() || name.starts_with('-')) {
            return Err(Error::new(ErrorKind::Arguments, "`name` is a list of packages"));
        }
        match self.manager_of(host)? {
            Manager::Apt | Manager::Auto => self.manager::<crate::apt::Args>(host, "apt"),
            Manager::Dnf | Manager::Yum => self.manager::<crate::dnf::Args>(host, "dnf"),
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

    /// Plans as the module of apt or dnf does, which is handed all that it was given.
    fn manager<T: Module>(&self, host: &dyn Host, manager: &str) -> Result<Plan, Error> {
        let state = match self.state {
            State::Present => "present",
            State::Absent => "absent",
            State::Latest => "latest",
        };
        let mut args = Map::new();
        args.put("name", self.name.iter().map(|name| Value::from(name.as_str())).collect::<Value>());
        args.put("state", state);
        args.extend(self.passed.iter().map(|(name, value)| (name.to_owned(), value.clone())));
        let module: T = arguments(&args).map_err(|error| {
            let message = format!("{error}: packages of this host are managed with {manager}");
            Error::new(ErrorKind::Arguments, message)
        })?;
        module.plan(host)
    }

    /// Refuses what a manager is given that it does not know.
    fn only(&self, manager: &str, known: &[&str]) -> Result<(), Error> {
        match self.passed.iter().find(|(name, _)| !known.contains(name)) {
            Some((name, _)) => Err(Error::new(
                ErrorKind::Arguments,
                format!("`{name}` means nothing to {manager}, with which packages of this host are managed"),
            )),
            None => Ok(()),
        }
    }

    fn zypper(&self, host: &dyn Host) -> Result<Plan, Error> {
        self.only("zypper", &["update_cache", "disable_gpg_check"])?;
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
        let mut changes = Vec::new();
        if self.passed.is("update_cache") {
            changes.push(Change::Exec(Exec::of(&["zypper", "--non-interactive", "refresh"])));
        }
        let unchecked: &[&str] = if self.passed.is("disable_gpg_check") { &["--no-gpg-checks"] } else { &[] };
        let line: &[&str] = match self.state {
            State::Absent => &["remove"],
            State::Present | State::Latest => &["install", "--auto-agree-with-licenses"],
        };
        let words = [&["zypper", "--non-interactive"], unchecked, line, wanted.as_slice()].concat();
        changes.push(Change::Exec(Exec::new(words)));
        Ok(changes.into())
    }

    fn apk(&self, host: &dyn Host) -> Result<Plan, Error> {
        self.only("apk", &["update_cache"])?;
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
        let line: &[&str] = match (self.state, self.passed.is("update_cache")) {
            (State::Present, false) => &["apk", "add"],
            (State::Present, true) => &["apk", "add", "--update-cache"],
            (State::Latest, false) => &["apk", "add", "--upgrade"],
            (State::Latest, true) => &["apk", "add", "--upgrade", "--update-cache"],
            (State::Absent, _) => &["apk", "del"],
        };
        Ok(vec![Change::Exec(Exec::new([line, wanted.as_slice()].concat()))].into())
    }
}

/// Whether zypper has a newer version.
fn outdated(host: &dyn Host, name: &str) -> Result<bool, Error> {
    let output = host.probe(&patient(["zypper", "--non-interactive", "--quiet", "list-updates", "--all"]))?;
    Ok(output.stdout.lines().any(|line| line.split('|').nth(2).is_some_and(|word| word.trim() == name)))
}
