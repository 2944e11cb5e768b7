//! What hosts whose packages are rpm's have in common: which program manages them, and how it is called.

pub(crate) mod explain;
pub(crate) mod files;
mod lock;
pub(crate) mod moves;
pub(crate) mod version;

pub(crate) use lock::wait;

use crate::ask::text;
use crate::{Again, Error, ErrorKind, Exec, Expect, Host};

/// The program that manages a host's packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manager {
    /// `dnf`, of version 4 or 5, or `dnf5`.
    Dnf(&'static str),
    Zypper,
}

impl Manager {
    /// Finds it out. Fedora has zypper among its packages and openSUSE has dnf, so the distribution decides.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] where there is none that can be used.
    pub(crate) fn of(host: &dyn Host) -> Result<Manager, Error> {
        let refused = |message: &str| Err(Error::new(ErrorKind::Refused, message));
        if host.stat("/run/ostree-booted")?.is_some() {
            return refused(
                "this host is an image of rpm-ostree: layer packages with `rpm-ostree install`, and reboot it",
            );
        }
        let there = |program: &str| host.stat(&format!("/usr/bin/{program}")).map(|stat| stat.is_some());
        let release = text(host, "/etc/os-release")?;
        let is_suse = |line: &str| (line.starts_with("ID=") || line.starts_with("ID_LIKE=")) && line.contains("suse");
        let zypper = there("zypper")?;
        if zypper && release.lines().any(is_suse) {
            let mounts = text(host, "/proc/mounts")?;
            let read_only = |line: &str| {
                let fields: Vec<&str> = line.split_whitespace().collect();
                fields.get(1) == Some(&"/")
                    && fields.get(3).is_some_and(|options| options.split(',').any(|one| one == "ro"))
            };
            if mounts.lines().any(read_only) {
                return refused(
                    "this host's `/` is read-only: install with `transactional-update pkg install`, and reboot it",
                );
            }
            return Ok(Manager::Zypper);
        }
        for program in ["dnf", "dnf5"] {
            if there(program)? {
                return Ok(Manager::Dnf(program));
            }
        }
        if zypper {
            return Ok(Manager::Zypper);
        }
        refused(
            "this host has neither dnf nor zypper: hosts with yum alone are too old, and those with apt take `apt_repo`",
        )
    }

    /// What the result calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Manager::Dnf(_) => "dnf",
            Manager::Zypper => "zypper",
        }
    }

    /// Returns a command that alters the host. How it ended is judged when the task is planned again; a lock that
    /// somebody took in the meantime is waited for.
    pub(crate) fn exec(self, argv: Vec<String>, lock_timeout_s: u64) -> Exec {
        let said = match self {
            // `exit_on_lock` has it say so in place of waiting without a limit.
            Manager::Dnf(_) => "already locked by",
            Manager::Zypper => "System management is locked",
        };
        Exec {
            argv,
            env: vec![("LC_ALL".to_owned(), "C".to_owned())],
            chdir: Some("/".to_owned()),
            expect: Expect::Any,
            again: Some(Again { said: said.to_owned(), for_s: lock_timeout_s }),
            ..Exec::default()
        }
    }

    /// Returns a command line with what all of them take.
    pub(crate) fn line(self, words: &[&str]) -> Vec<String> {
        let head: &[&str] = match &self {
            Manager::Dnf(program) => &[program, "-y", "--setopt=exit_on_lock=True"],
            Manager::Zypper => &["zypper", "--non-interactive"],
        };
        head.iter().chain(words).map(|word| (*word).to_owned()).collect()
    }
}
