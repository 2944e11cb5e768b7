use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::decode::Arguments;
use crate::dpkg::Database;
use crate::host::Map;
use crate::host::Put as _;
use crate::{Change, Done, Error, ErrorKind, Exec, Expect, Host, Module, Plan};

mod candidates;
pub(crate) mod command;
mod deb;
pub(crate) mod explain;
pub(crate) mod lock;
mod packages;

const LISTS: &str = "/var/lib/apt/lists";
/// Touched after each good update on hosts with `update-notifier-common`.
const STAMP: &str = "/var/lib/apt/periodic/update-success-stamp";
/// dpkg's journal: what is in it while no dpkg runs was left by one that was interrupted.
const JOURNAL: &str = "/var/lib/dpkg/updates";

/// Install, upgrade and remove packages on Debian, Ubuntu and their kin.
///
/// ```yaml
/// - apt:
///     name: [nvidia-driver-570-server, "nvidia-container-toolkit=1.17.*"]
///     update_cache: true
///     cache_valid_time: 3600
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Packages: names, `name=version` and `name>=version` where the version may hold `*`, and patterns of names.
    #[serde(alias = "package", alias = "pkg")]
    name: Option<Vec<String>>,
    /// What the packages are to be.
    #[serde(default)]
    state: State,
    /// A package file on the host, or its URL, to install.
    deb: Option<String>,
    /// Upgrade all packages: `safe` (or `yes`) removes none, `full` and `dist` may.
    #[serde(default)]
    upgrade: Upgrade,
    /// Refresh the package lists first; they are refreshed too when only `cache_valid_time` is given.
    #[serde(alias = "update-cache")]
    update_cache: Option<bool>,
    /// Seconds for which lists that were refreshed stay good.
    #[serde(default)]
    cache_valid_time: u64,
    /// How often a download of the lists is tried again.
    #[serde(default = "five")]
    update_cache_retries: u32,
    /// Accepted for Ansible's sake: apt itself spaces its tries.
    #[serde(default, rename = "update_cache_retry_max_delay")]
    _update_cache_retry_max_delay: Option<u32>,
    /// The release to prefer, such as `bookworm-backports`.
    #[serde(alias = "default-release")]
    default_release: Option<String>,
    /// Whether recommended packages come along; as the host is set up when absent.
    #[serde(alias = "install-recommends")]
    install_recommends: Option<bool>,
    /// Upgrade what is installed, and install nothing new.
    #[serde(default)]
    only_upgrade: bool,
    /// Remove a package's configuration too.
    #[serde(default)]
    purge: bool,
    /// Remove what was installed only for packages that are gone.
    #[serde(default)]
    autoremove: bool,
    /// Delete downloads that can't be downloaded any more.
    #[serde(default)]
    autoclean: bool,
    /// Delete all downloads.
    #[serde(default)]
    clean: bool,
    /// Allow downgrades, changes of held and removal of essential packages, and unauthenticated ones.
    #[serde(default)]
    force: bool,
    /// Allow to go back to an older version.
    #[serde(default, alias = "allow-downgrade", alias = "allow_downgrades", alias = "allow-downgrades")]
    allow_downgrade: bool,
    /// Allow to change packages that are on hold.
    #[serde(default)]
    allow_change_held_packages: bool,
    /// Allow packages whose signature can't be checked.
    #[serde(default, alias = "allow-unauthenticated")]
    allow_unauthenticated: bool,
    /// Fail instead of removing a package while installing or upgrading.
    #[serde(default)]
    fail_on_autoremove: bool,
    /// Options of dpkg without their dashes.
    #[serde(default = "keep_configuration")]
    dpkg_options: Vec<String>,
    /// Seconds to wait while another package manager is at work.
    #[serde(default = "sixty")]
    lock_timeout: u64,
    /// What services that a package brings are told when they want to start: `101` forbids it.
    policy_rc_d: Option<i32>,
    /// Accepted for Ansible's sake: apt-get is what is used anyway.
    #[serde(default, rename = "force_apt_get")]
    _force_apt_get: Option<bool>,
    /// Accepted for Ansible's sake: nothing needs to be installed for this module.
    #[serde(default, rename = "auto_install_module_deps")]
    _auto_install_module_deps: Option<bool>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// Installed, at any version unless one is named.
    #[default]
    #[serde(alias = "installed")]
    Present,
    /// Installed at the newest version on offer.
    Latest,
    /// Not installed.
    #[serde(alias = "removed")]
    Absent,
    /// What is needed to build the packages from source is installed.
    BuildDep,
    /// Broken dependencies are repaired.
    Fixed,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Upgrade {
    #[default]
    #[serde(alias = "false")]
    No,
    #[serde(alias = "true", alias = "safe")]
    Yes,
    #[serde(alias = "dist")]
    Full,
}

fn five() -> u32 {
    5
}

fn sixty() -> u64 {
    60
}

fn keep_configuration() -> Vec<String> {
    vec!["force-confdef".to_owned(), "force-confold".to_owned()]
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        self.check()?;
        judge(host.applied())?;
        let mut plan = self.wanted(host)?;
        if !plan.changes.is_empty() && lock::wait(host, Duration::from_secs(self.lock_timeout))? {
            // Whoever held the lock may have done part of it, or more.
            plan = self.wanted(host)?;
        }
        let all = || host.applied().iter().map(|done| &done.change).chain(&plan.changes);
        let nothing_new = all().any(is_touch);
        // As in Ansible: fresh lists alone are no change of a task about packages, and lists as they were are none at all.
        let quiet = |change: &Change| match verb(change) {
            Some("update") => nothing_new || self.works_on_packages(),
            Some("manual") => self.works_on_packages(),
            _ => is_touch(change),
        };
        if all().next().is_some() && all().all(quiet) {
            plan.result.put("changed", false);
        }
        plan.result.put("cache_updated", is_updated(host) && !nothing_new);
        plan.result.put("cache_update_time", refreshed_s(host)?);
        Ok(plan)
    }

    fn report(&self, _host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        report(done, result);
        Ok(())
    }
}

/// Returns the command that refreshes the lists and fails where one can't be had, for the modules of repositories. Nobody
/// else is refreshing them when this returns.
///
/// # Errors
/// [`ErrorKind::Host`] when somebody else is still at it after a minute.
pub(super) fn update(host: &dyn Host, retries: u32) -> Result<Change, Error> {
    lock::wait(host, Duration::from_secs(60))?;
    let retries = format!("Acquire::Retries={retries}");
    let argv =
        ["apt-get", "-o", &retries, "-o", "APT::Update::Error-Mode=any", "-o", "DPkg::Lock::Timeout=60", "update"];
    Ok(Change::Exec(Exec { expect: Expect::Success, ..command::exec(argv.map(str::to_owned).to_vec(), 60) }))
}

/// Adds what the last command that changed packages printed.
pub(super) fn report(done: &[Done], result: &mut Map) {
    let worked = |done: &&Done| !matches!(verb(&done.change), None | Some("update" | "manual"));
    if let Some(output) = done.iter().rev().find(worked).and_then(|done| done.output.as_ref()) {
        result.put("stdout", output.stdout.as_str());
        result.put("stderr", output.stderr.as_str());
    }
}

impl Args {
    fn names(&self) -> &[String] {
        self.name.as_deref().unwrap_or_default()
    }

    fn check(&self) -> Result<(), Error> {
        let bad = |message: &str| Err(Error::new(ErrorKind::Arguments, message));
        let tasks = [!self.names().is_empty(), self.deb.is_some(), self.upgrade != Upgrade::No];
        if tasks.iter().filter(|&&asked| asked).count() > 1 {
            return bad("`name`, `deb` and `upgrade` exclude each other: make them tasks of their own");
        }
        if self.state == State::BuildDep && self.names().is_empty() {
            return bad("`state: build-dep` needs `name`");
        }
        // A list that turned out empty asks for nothing, and gets it.
        let other = self.name.is_some()
            || self.update_cache.is_some()
            || self.cache_valid_time > 0
            || self.state == State::Fixed;
        if !tasks.contains(&true) && !other && !self.autoremove && !self.autoclean && !self.clean {
            return bad(
                "nothing to do: give `name`, `deb`, `upgrade`, `update_cache`, `autoremove`, `autoclean` or `clean`",
            );
        }
        if self.names().iter().any(|name| name.trim().is_empty()) {
            return bad("a package's name in `name` is empty");
        }
        Ok(())
    }

    fn works_on_packages(&self) -> bool {
        !self.names().is_empty() || self.deb.is_some() || self.upgrade != Upgrade::No || self.state == State::Fixed
    }

    /// Returns what is to be done now; the rest follows when this is planned again.
    fn wanted(&self, host: &dyn Host) -> Result<Plan, Error> {
        let database = Database::read(host)?;
        let mut plan = Plan::default();
        if interrupted(host)? {
            let mut argv = vec!["dpkg".to_owned()];
            argv.extend(self.dpkg_options.iter().map(|name| format!("--{name}")));
            argv.extend(["--configure".to_owned(), "-a".to_owned()]);
            plan.changes = self.run(host, argv)?;
            plan.warnings
                .push("dpkg had been interrupted on this host: `dpkg --configure -a` repairs that first".into());
            return Ok(plan);
        }
        let due = self.update_due(host)?;
        if due {
            plan.changes = self.update();
        } else if is_updated(host) && refreshed_s(host)? < host.started_s() as i64 {
            // Nothing was new, and apt left the folder's time as it was; `cache_valid_time` counts from now on.
            let now = host.started_s();
            plan.changes = vec![Change::Touch { path: LISTS.into(), accessed_s: None, modified_s: Some(now) }];
        }
        match self.packages(host, &database, due) {
            Ok(more) => {
                plan.changes.extend(more.changes);
                plan.diff.extend(more.diff);
                plan.warnings.extend(more.warnings);
                if plan.changes.is_empty() {
                    plan.changes = self.left_policy(host)?;
                }
                Ok(plan)
            }
            // The lists are about to be refreshed: what they lack now they may have then.
            Err(_) if due => Ok(plan),
            Err(error) => Err(error),
        }
    }

    fn update_due(&self, host: &dyn Host) -> Result<bool, Error> {
        let asked = self.update_cache.unwrap_or(self.cache_valid_time > 0);
        // Where no time is given, what lists there are is never enough: an update that was cut off leaves a folder as new.
        let is_old = || -> Result<bool, Error> {
            let good_until_s = refreshed_s(host)? + self.cache_valid_time as i64;
            Ok(self.cache_valid_time == 0 || good_until_s < host.started_s() as i64)
        };
        Ok(asked && !is_updated(host) && is_old()?)
    }

    fn update(&self) -> Vec<Change> {
        let options = [
            format!("Acquire::Retries={}", self.update_cache_retries),
            // What can't be fetched is an error and no warning; older versions don't know of it.
            "APT::Update::Error-Mode=any".to_owned(),
            format!("DPkg::Lock::Timeout={}", self.lock_timeout),
        ];
        let mut argv = vec!["apt-get".to_owned()];
        argv.extend(options.into_iter().flat_map(|option| ["-o".to_owned(), option]));
        argv.push("update".to_owned());
        if self.allow_unauthenticated {
            argv.push("--allow-insecure-repositories".to_owned());
        }
        let exec = Change::Exec(command::exec(argv, self.lock_timeout));
        vec![exec]
    }

    fn packages(&self, host: &dyn Host, database: &Database, due: bool) -> Result<Plan, Error> {
        let mut plan = Plan::default();
        if self.upgrade != Upgrade::No || self.names() == ["*"] && self.state == State::Latest {
            let words: &[&str] = match self.upgrade {
                Upgrade::No | Upgrade::Yes => &["upgrade", "--with-new-pkgs"],
                Upgrade::Full => &["dist-upgrade"],
            };
            let mut words = words.to_vec();
            if self.autoremove {
                words.push("--auto-remove");
            }
            self.if_it_does_something(host, "upgrade all packages", &words, due, &mut plan)?;
        } else if let Some(deb) = &self.deb {
            self.install_file(host, database, deb, &mut plan)?;
        } else if self.state == State::Fixed {
            self.if_it_does_something(host, "repair dependencies", &["install", "--fix-broken"], due, &mut plan)?;
        } else if self.state == State::BuildDep {
            let names: Vec<&str> = self.names().iter().map(String::as_str).collect();
            let attempted = format!("install what builds `{}`", names.join("`, `"));
            self.if_it_does_something(host, &attempted, &[&["build-dep"], names.as_slice()].concat(), due, &mut plan)?;
        } else if !self.names().is_empty() {
            self.named(host, database, due, &mut plan)?;
        } else if self.autoremove {
            let words: &[&str] = if self.purge { &["autoremove", "--purge"] } else { &["autoremove"] };
            self.if_it_does_something(host, "remove what nothing needs", words, due, &mut plan)?;
        }
        if self.autoclean {
            self.if_it_does_something(host, "delete old downloads", &["autoclean"], due, &mut plan)?;
        }
        if self.clean {
            let folder = host.list("/var/cache/apt/archives")?.unwrap_or_default();
            if folder.iter().any(|name| name.ends_with(".deb")) {
                plan.changes.extend(self.run(host, self.apt_get(&["clean"]))?);
            }
        }
        Ok(plan)
    }

    /// Adds a command to the plan unless trying it shows that it would do nothing.
    fn if_it_does_something(
        &self,
        host: &dyn Host,
        attempted: &str,
        words: &[&str],
        due: bool,
        plan: &mut Plan,
    ) -> Result<(), Error> {
        let argv = self.apt_get(words);
        // What old lists say is not worth a failure: it is tried again with new ones.
        let simulation = match self.simulate(host, attempted, &argv) {
            Err(_) if due => None,
            other => other?,
        };
        if let Some(simulation) = simulation {
            command::add(plan, self.run(host, argv)?, Some(&simulation));
        }
        Ok(())
    }
}

/// Returns what an apt command is about: `update`, `install`, `configure`…; `None` for another change.
fn verb(change: &Change) -> Option<&str> {
    const VERBS: [&str; 10] = [
        "update",
        "install",
        "remove",
        "upgrade",
        "dist-upgrade",
        "build-dep",
        "autoremove",
        "autoclean",
        "clean",
        "manual",
    ];
    let Change::Exec(exec) = change else { return None };
    match exec.argv.first().map(String::as_str) {
        Some("dpkg") => Some("configure"),
        Some("apt-get" | "apt-mark") => exec.argv.iter().map(String::as_str).find(|word| VERBS.contains(word)),
        Some(_) | None => None,
    }
}

/// Whether this task has refreshed the lists.
fn is_updated(host: &dyn Host) -> bool {
    host.applied().iter().any(|done| verb(&done.change) == Some("update"))
}

fn is_touch(change: &Change) -> bool {
    matches!(change, Change::Touch { .. })
}

/// Fails when a command of this task did, with what it said.
fn judge(applied: &[Done]) -> Result<(), Error> {
    for done in applied {
        let (Some(verb), Some(output), Change::Exec(exec)) = (verb(&done.change), &done.output, &done.change) else {
            continue;
        };
        let attempted = match verb {
            // Ansible's words, which playbooks look for.
            "update" => "Failed to update apt cache".to_owned(),
            "configure" => "repair an interrupted dpkg".to_owned(),
            _ => {
                let words = exec.argv.iter().skip_while(|word| *word != verb);
                let words: Vec<&str> = words.map(String::as_str).collect();
                format!("`apt-get {}`", words.join(" "))
            }
        };
        if !output.success() || verb == "update" && explain::incomplete(output) {
            return Err(explain::failure(&attempted, output));
        }
    }
    Ok(())
}

/// Whether an earlier dpkg was cut short. Its journal's files are named with digits.
fn interrupted(host: &dyn Host) -> Result<bool, Error> {
    let names = host.list(JOURNAL)?.unwrap_or_default();
    Ok(names.iter().any(|name| name.bytes().all(|byte| byte.is_ascii_digit())))
}

/// Returns when the lists were refreshed, in seconds since 1970; 0 when never.
fn refreshed_s(host: &dyn Host) -> Result<i64, Error> {
    let stamp = host.stat(STAMP)?;
    let lists = host.stat(LISTS)?;
    Ok(stamp.into_iter().chain(lists).map(|stat| stat.modified_s).max().unwrap_or(0))
}
