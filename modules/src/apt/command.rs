//! The command lines of apt, and what a dry run of one says.

use super::Args;
use crate::host::Output;
use crate::{Again, Change, Error, Exec, Expect, Host, Plan, Write};

const POLICY: &str = "/usr/sbin/policy-rc.d";
const POLICY_KEPT: &str = "/usr/sbin/policy-rc.d.kubeon-run";
/// The line that tells ours from the host's own.
const POLICY_MARK: &str = "# Written by kubeon-run while apt runs.";

/// Returns a command of apt or dpkg that the module judges itself. apt waits for dpkg's lock, but not for those of its
/// lists and downloads, and dpkg waits for none: where another takes one of them meanwhile, it is run again.
pub(crate) fn exec(argv: Vec<String>, lock_timeout_s: u64) -> Exec {
    let said = if argv[0] == "dpkg" { "locked by another process" } else { "Could not get lock" };
    Exec {
        argv,
        env: vec![("LC_ALL".to_owned(), "C".to_owned())],
        chdir: Some("/".to_owned()),
        expect: Expect::Any,
        again: Some(Again { said: said.to_owned(), for_s: lock_timeout_s }),
        ..Exec::default()
    }
}

impl Args {
    /// Returns a command line of `apt-get` with what the arguments ask of all of them.
    pub(super) fn apt_get(&self, words: &[&str]) -> Vec<String> {
        let mut argv: Vec<String> = vec!["apt-get".into(), "-y".into()];
        let mut option = |text: String| argv.extend(["-o".to_owned(), text]);
        option(format!("DPkg::Lock::Timeout={}", self.lock_timeout));
        for name in self.dpkg_options.iter().filter(|name| !name.is_empty()) {
            option(format!("Dpkg::Options::=--{name}"));
        }
        if let Some(release) = &self.default_release {
            option(format!("APT::Default-Release={release}"));
        }
        if let Some(wanted) = self.install_recommends {
            option(format!("APT::Install-Recommends={wanted}"));
        }
        let mut flag = |wanted: bool, flag: &str| {
            if wanted {
                argv.push(flag.to_owned());
            }
        };
        flag(self.allow_unauthenticated || self.force, "--allow-unauthenticated");
        flag(self.allow_downgrade || self.force, "--allow-downgrades");
        flag(self.allow_change_held_packages || self.force, "--allow-change-held-packages");
        flag(self.force, "--allow-remove-essential");
        let may_remove = !matches!(words.first(), Some(&"install" | &"upgrade" | &"dist-upgrade"));
        flag(self.fail_on_autoremove && !may_remove, "--no-remove");
        argv.extend(words.iter().map(|&word| word.to_owned()));
        argv
    }

    /// Returns the changes that run an apt command. How it ended is judged when the task is planned again.
    pub(super) fn run(&self, host: &dyn Host, argv: Vec<String>) -> Result<Vec<Change>, Error> {
        let mut exec = exec(argv, self.lock_timeout);
        let quiet = [("DEBIAN_FRONTEND", "noninteractive"), ("DEBIAN_PRIORITY", "critical")];
        exec.env.splice(0..0, quiet.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let exec = Change::Exec(exec);
        let Some(code) = self.policy_rc_d else { return Ok(vec![exec]) };
        // invoke-rc.d asks this program whether a service may start.
        let script = format!("#!/bin/sh\n{POLICY_MARK}\nexit {code}\n");
        let policy = Change::Write(Write { mode: Some(0o755), ..Write::new(POLICY, script) });
        let put_back = Change::Rename { path: POLICY_KEPT.into(), to: POLICY.into() };
        let left = self.left_policy(host)?;
        if let Some(undo) = left.into_iter().next() {
            // The host's own, if there is one, is kept already.
            return Ok(vec![policy, exec, undo]);
        }
        Ok(if host.lstat(POLICY)?.is_some() {
            vec![Change::Rename { path: POLICY.into(), to: POLICY_KEPT.into() }, policy, exec, put_back]
        } else {
            vec![policy, exec, Change::Remove { path: POLICY.into() }]
        })
    }

    /// Returns what takes away the policy of a run before this one that was cut short while apt ran.
    pub(super) fn left_policy(&self, host: &dyn Host) -> Result<Vec<Change>, Error> {
        let ours = || {
            host.read(POLICY).map(|text| text.is_some_and(|text| String::from_utf8_lossy(&text).contains(POLICY_MARK)))
        };
        if self.policy_rc_d.is_none() || !ours()? {
            return Ok(Vec::new());
        }
        Ok(vec![match host.lstat(POLICY_KEPT)? {
            Some(_) => Change::Rename { path: POLICY_KEPT.into(), to: POLICY.into() },
            None => Change::Remove { path: POLICY.into() },
        }])
    }

    /// Tries a command line without doing it; `None` when it would do nothing.
    ///
    /// # Errors
    /// What apt says against it, explained.
    pub(super) fn simulate(
        &self,
        host: &dyn Host,
        attempted: &str,
        argv: &[String],
    ) -> Result<Option<Simulation>, Error> {
        let mut argv = argv.to_vec();
        argv.insert(1, "-s".to_owned());
        let mut probe = super::candidates::english(argv);
        probe.timeout_s = Some(300);
        probe.env.push(("DEBIAN_FRONTEND".into(), "noninteractive".into()));
        let output = host.probe(&probe)?;
        if !output.success() {
            return Err(super::explain::failure(attempted, &output));
        }
        let simulation = Simulation::of(&output);
        Ok((!simulation.lines.is_empty()).then_some(simulation))
    }
}

/// What a dry run of apt would do.
pub(super) struct Simulation {
    /// `Inst nginx (1.22.1-9 …)`, `Remv …`, `Conf …`, `Del …`.
    lines: Vec<String>,
}

impl Simulation {
    fn of(output: &Output) -> Simulation {
        let does =
            |line: &&str| ["Inst ", "Remv ", "Purg ", "Conf ", "Del "].iter().any(|start| line.starts_with(start));
        Simulation { lines: output.stdout.lines().filter(does).map(str::to_owned).collect() }
    }

    /// Returns the difference for people: what is installed, at which version, and what goes.
    pub(super) fn diff(&self) -> crate::Diff {
        let mut text = String::new();
        for line in &self.lines {
            let mut words = line.split_whitespace();
            let (verb, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let rest: Vec<&str> = words.collect();
            let old = rest.first().and_then(|word| word.strip_prefix('[')?.strip_suffix(']'));
            let new = rest.iter().find_map(|word| word.strip_prefix('('));
            let told = match (verb, old, new) {
                ("Inst", Some(old), Some(new)) => format!("upgrade {name} {old} -> {new}"),
                ("Inst", None, Some(new)) => format!("install {name} {new}"),
                ("Remv", old, _) => format!("remove {name} {}", old.unwrap_or_default()),
                ("Purg", old, _) => format!("purge {name} {}", old.unwrap_or_default()),
                ("Del", _, _) => format!("delete the download of {name}"),
                _ => continue,
            };
            text.push_str(told.trim_end());
            text.push('\n');
        }
        crate::Diff { prepared: Some(text), ..crate::Diff::default() }
    }
}

/// Adds a command's changes and difference to a plan.
pub(super) fn add(plan: &mut Plan, changes: Vec<Change>, simulation: Option<&Simulation>) {
    plan.changes.extend(changes);
    plan.diff.extend(simulation.map(Simulation::diff));
}
