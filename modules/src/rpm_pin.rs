mod hold;
mod versionlock;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value;

use crate::ask::{bad, run, slow};
use crate::decode::Arguments;
use crate::dnf::SLOW_S;
use crate::host::{Map, Put as _};
use crate::rpm::moves::{self, Move, Way};
use crate::rpm::{Manager, explain, version, wait};
use crate::rpm_pin::hold::Holds;
use crate::rpm_repo::offer;
use crate::shared::{State, two_minutes};
use crate::{Change, Done, Error, ErrorKind, Exec, Host, Module, Plan};

/// Keep packages of dnf or zypper together at one version, and hold them there.
///
/// ```yaml
/// - rpm_pin:
///     name: [nvidia-container-toolkit, nvidia-container-toolkit-base, libnvidia-container-tools, libnvidia-container1]
///     version: 1.19.1-1
///     repository: nvidia-container-toolkit
///     hold: true
/// ```
///
/// All of them move in one transaction, up or down. It is tried first: where it would upgrade, downgrade or remove any
/// other package, or take one of these from another repository, the task fails and nothing is changed. What they need and is
/// not there comes along.
///
/// What is held is moved by nothing but this module: with dnf it is in `excludepkgs` of `/etc/dnf/dnf.conf`, with zypper in
/// `/etc/zypp/locks`. A lock of dnf's plugin versionlock is somebody else's, and refused.
///
/// The result holds `manager`, `installed` (the version of each that is there) and `held`.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The packages; `NAME=VERSION` for one whose version is not that of the others.
    name: Vec<String>,
    /// The version of all of them, with or without its release.
    version: Option<String>,
    /// The repository that they must come from.
    repository: Option<String>,
    /// Whether they are held; left as it is when absent.
    hold: Option<bool>,
    /// Whether they shall be there: `present` where a version is given, and the newest where none is; `absent` lets go of
    /// them, too. Without either they are left as they are: only what holds them changes, and the result tells of them.
    state: Option<State>,
    /// Seconds to wait while another package manager is at work.
    #[serde(default = "two_minutes")]
    lock_timeout: u64,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let wanted = self.wanted()?;
        let manager = Manager::of(host)?;
        let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
        let installed = installed(host, &names)?;
        let holds = Holds::read(host, manager)?;
        let mut plan = Plan { transaction: true, ..Plan::default() };
        let site = Site { args: self, host, manager, installed: &installed, holds: &holds };
        let versions = wanted.iter().any(|(_, version)| version.is_some());
        match self.state.or(versions.then_some(State::Present)) {
            Some(State::Present) => site.present(&wanted, &mut plan)?,
            Some(State::Absent) => site.absent(&names, &mut plan)?,
            None => plan.changes.extend(self.hold.and_then(|hold| holds.with(&names, hold))),
        }
        let mut versions = Map::new();
        for (name, version) in &installed {
            versions.put(name, version.as_str());
        }
        let held: Vec<Value> = names.iter().filter(|name| holds.has(name)).map(|name| Value::from(*name)).collect();
        Ok(plan.with("manager", manager.name()).with("installed", versions).with("held", held))
    }
}

impl Args {
    /// Returns each package with the version that is asked for.
    fn wanted(&self) -> Result<Vec<(&str, Option<&str>)>, Error> {
        if self.name.is_empty() {
            return Err(bad("`name` names no package"));
        }
        let plain = |text: &str| {
            !text.is_empty()
                && !text.starts_with('-')
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+~^:".contains(&byte))
        };
        let mut wanted = Vec::new();
        for text in &self.name {
            let (name, version) = match text.split_once('=') {
                Some((name, version)) => (name, Some(version)),
                None => (text.as_str(), self.version.as_deref()),
            };
            if !plain(name) || version.is_some_and(|version| !plain(version)) {
                return Err(bad(format!("`{text}` is no package: expected `NAME` or `NAME=VERSION`")));
            }
            wanted.push((name, version));
        }
        Ok(wanted)
    }
}

/// Returns the versions of those that are there.
fn installed(host: &dyn Host, names: &[&str]) -> Result<BTreeMap<String, String>, Error> {
    let format = "%{NAME} %|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\\n";
    let words = [&["rpm", "-q", "--qf", format, "--"], names].concat();
    let output = run(host, &words)?;
    let mut found = BTreeMap::new();
    // Of one that is not there it says so, in words.
    for line in output.stdout.lines() {
        if let [name, version] = line.split(' ').collect::<Vec<_>>()[..]
            && names.contains(&name)
        {
            found.insert(name.to_owned(), version.to_owned());
        }
    }
    Ok(found)
}

struct Site<'a> {
    args: &'a Args,
    host: &'a dyn Host,
    manager: Manager,
    installed: &'a BTreeMap<String, String>,
    holds: &'a Holds,
}

impl Site<'_> {
    fn present(&self, wanted: &[(&str, Option<&str>)], plan: &mut Plan) -> Result<(), Error> {
        let is_so = |(name, asked): &(&str, Option<&str>)| {
            self.installed.get(*name).is_some_and(|there| asked.is_none_or(|asked| version::is(there, asked)))
        };
        let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
        if !wanted.iter().all(is_so) {
            self.judge("install", &names)?;
            versionlock::refuse(self.host, self.manager, &names)?;
            self.install(wanted, plan)?;
        } else if let Some(hold) = self.args.hold {
            plan.changes.extend(self.holds.with(&names, hold));
        }
        Ok(())
    }

    fn install(&self, wanted: &[(&str, Option<&str>)], plan: &mut Plan) -> Result<(), Error> {
        let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
        let sign = match self.manager {
            Manager::Dnf(_) => '-',
            Manager::Zypper => '=',
        };
        let spec = |(name, version): &(&str, Option<&str>)| match version {
            Some(version) => format!("{name}{sign}{version}"),
            None => (*name).to_owned(),
        };
        let specs: Vec<String> = wanted.iter().map(spec).collect();
        let mut words: Vec<&str> = match self.manager {
            Manager::Dnf(_) => vec!["install", "--setopt=install_weak_deps=False"],
            Manager::Zypper => vec!["install", "--no-recommends", "--oldpackage", "--auto-agree-with-licenses"],
        };
        let from = self.args.repository.as_ref().map(|name| format!("--from={name}"));
        if let (Manager::Zypper, Some(from), Some(repository)) = (self.manager, &from, &self.args.repository) {
            // Which is preferred, and no more than that.
            words.push(from);
            self.judge_offers(repository, wanted)?;
        }
        words.extend(specs.iter().map(String::as_str));
        self.run(&format!("install {}", specs.join(", ")), &words, &names, plan)
    }

    /// Fails where the repository has not what is asked for. zypper's trial does not tell where a package comes from.
    fn judge_offers(&self, repository: &str, wanted: &[(&str, Option<&str>)]) -> Result<(), Error> {
        let words =
            ["zypper", "--non-interactive", "--xmlout", "search", "--details", "--match-exact", "--type", "package"];
        let names = wanted.iter().map(|(name, _)| *name);
        let argv: Vec<&str> = words.into_iter().chain(["--repo", repository]).chain(names).collect();
        let output = slow(self.host, &argv, SLOW_S)?;
        // 104: there is none of them.
        if !matches!(output.rc, 0 | 104) {
            return Err(explain::failure(&format!("ask for the packages of `{repository}`"), &output));
        }
        let offers = offer::of_xml(&output.stdout);
        for (name, asked) in wanted {
            let of_name = || offers.iter().filter(|offer| offer.name == *name).map(|offer| offer.version.as_str());
            if !of_name().any(|there| asked.is_none_or(|asked| version::is(there, asked))) {
                let all: Vec<&str> = of_name().collect();
                let what = asked.map_or_else(|| (*name).to_owned(), |asked| format!("{name} {asked}"));
                let has = if all.is_empty() { "no version".to_owned() } else { all.join(", ") };
                let message = format!("`{repository}` has {has} and not `{what}`: name a version that it has");
                return Err(Error::new(ErrorKind::Failed, message));
            }
        }
        Ok(())
    }

    /// Tries a command, and adds it where it does no more than it should.
    fn run(&self, attempted: &str, words: &[&str], names: &[&str], plan: &mut Plan) -> Result<(), Error> {
        wait(self.host, self.args.lock_timeout)?;
        let exec = hold::in_spite(
            self.host,
            self.manager,
            self.manager.exec(self.manager.line(words), self.args.lock_timeout),
        )?;
        let moves = moves::of(self.host, self.manager, attempted, &exec)?;
        self.judge_moves(&moves, names)?;
        plan.diff.push(moves::diff(&moves));
        plan.changes.push(Change::Exec(exec));
        Ok(())
    }

    /// Fails where a trial does more than it should.
    fn judge_moves(&self, moves: &[Move], names: &[&str]) -> Result<(), Error> {
        let refused = |message: String| Err(Error::new(ErrorKind::Refused, message));
        let mut others = Vec::new();
        for one in moves {
            let ours = names.contains(&one.name.as_str());
            match one.way {
                Way::Install if !ours => {}
                Way::Install | Way::Upgrade | Way::Downgrade if ours => {
                    if let Some(repository) = self
                        .args
                        .repository
                        .as_ref()
                        .filter(|name| !one.repository.is_empty() && **name != one.repository)
                    {
                        return refused(format!(
                            "`{}` {} would come from `{}`, not from `{repository}`: see which versions that one has",
                            one.name, one.version, one.repository
                        ));
                    }
                }
                Way::Install | Way::Upgrade => others.push(format!("upgrade `{}`", one.name)),
                Way::Downgrade => others.push(format!("downgrade `{}`", one.name)),
                Way::Remove if ours && self.args.state == Some(State::Absent) => {}
                Way::Remove => others.push(format!("remove `{}`", one.name)),
            }
        }
        if others.is_empty() {
            return Ok(());
        }
        refused(format!(
            "with these packages it would {}, which is to stay as it is: move that first",
            others.join(", ")
        ))
    }

    fn absent(&self, names: &[&str], plan: &mut Plan) -> Result<(), Error> {
        let there: Vec<&str> = names.iter().copied().filter(|name| self.installed.contains_key(*name)).collect();
        plan.changes.extend(self.holds.with(names, false));
        if there.is_empty() {
            return Ok(());
        }
        self.judge("remove", &there)?;
        let mut words: Vec<&str> = match self.manager {
            // Else what nothing else needs goes along.
            Manager::Dnf(_) => vec!["remove", "--setopt=clean_requirements_on_remove=False"],
            Manager::Zypper => vec!["remove", "--no-clean-deps"],
        };
        words.extend(&there);
        self.run(&format!("remove {}", there.join(", ")), &words, &there, plan)
    }

    /// Fails when the command ran and the packages are still not so.
    fn judge(&self, verb: &str, names: &[&str]) -> Result<(), Error> {
        let is_ours = |exec: &Exec| exec.argv.iter().any(|word| word == verb);
        let ran = |done: &&Done| matches!(&done.change, Change::Exec(exec) if is_ours(exec));
        match self.host.applied().iter().rev().find(ran).and_then(|done| done.output.as_ref()) {
            Some(output) => Err(explain::failure(&format!("{verb} {}", names.join(", ")), output)),
            None => Ok(()),
        }
    }
}
