//! The only place that alters a host: [`Change`] is data, [`apply`] makes it true.

mod content;
mod exec;
mod file;
mod follow;
mod leftovers;

use serde::{Deserialize, Serialize};

use crate::{Error, Machine, Output, host::KubeRequest};

pub(crate) use exec::{Command, now_s, run_command};
pub(crate) use file::{Saved, Scratch};

/// One alteration of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Write(Write),
    /// Makes one directory, 0755 less the umask unless `mode` says otherwise; its parent must exist.
    Mkdir {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    Chmod {
        path: String,
        mode: u32,
    },
    /// Sets owner or group or both, of a link itself where `path` is one.
    Chown {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uid: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gid: Option<u32>,
    },
    /// Puts a symbolic link in place of what is at `path`, which must not be a directory that holds anything.
    Symlink {
        path: String,
        target: String,
    },
    Hardlink {
        path: String,
        target: String,
    },
    /// Removes a file, a link or a whole tree; mounts below it are left and fail the change.
    Remove {
        path: String,
    },
    Rename {
        path: String,
        to: String,
    },
    /// Sets times in seconds since 1970; makes an empty file where there is none.
    Touch {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        accessed_s: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        modified_s: Option<f64>,
    },
    Exec(Exec),
    Kubernetes(KubeRequest),
}

/// A file's new content: written to a temporary name beside it, fsynced and renamed over it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Write {
    pub path: String,
    pub content: Content,
    /// Permission bits; absent keeps the old file's, or 0644 less the umask for a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// Keep the old content beside it under Ansible's name, `PATH.PID.DATE@TIME~`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backup: bool,
    /// A link at `path` is replaced by the file, not followed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace_link: bool,
    /// Where the file can't be replaced (it is mounted there by itself), write into it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_place: bool,
    /// No diff of it is made: it holds secrets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

impl Write {
    pub fn new(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Write {
        Write {
            path: path.into(),
            content: Content::Inline(content.into()),
            mode: None,
            uid: None,
            gid: None,
            backup: false,
            replace_link: false,
            in_place: false,
            hidden: false,
        }
    }
}

/// Bytes that travel with a task, or wait at the runner until the host's own checksum turns out to differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Inline(Vec<u8>),
    /// Fetched over the wire by its lowercase hexadecimal SHA-256 when needed.
    Sent {
        sha256: String,
        size_bytes: u64,
    },
    /// What a file of the host holds.
    File {
        path: String,
    },
}

/// A command that alters the host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Exec {
    pub argv: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Set in addition to the task's environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, String)>,
    /// The working folder; absent stands for the user's home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chdir: Option<String>,
    /// Files written to a private folder before the command and removed with it afterwards; `{scratch}` in `argv`
    /// stands for that folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<(String, Content)>,
    #[serde(default, skip_serializing_if = "Expect::is_success")]
    pub expect: Expect,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// How long it may run; absent stands for the task's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u64>,
    /// When to run it again; absent stands for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Again>,
}

/// A command that fails with these words is run again, for somebody else holds what it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    /// A part of what it prints on its standard error.
    pub said: String,
    /// For how many seconds after its first start it may be started again.
    pub for_s: u64,
}

impl Exec {
    /// Like [`Exec::new`], without being written out at each call.
    #[inline(never)]
    pub fn of(argv: &[&str]) -> Exec {
        Exec::new(argv.iter().copied())
    }

    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Exec {
        Exec { argv: argv.into_iter().map(Into::into).collect(), ..Exec::default() }
    }
}

/// Which exit statuses are right.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    #[default]
    Success,
    /// Any: the module judges it in `report`.
    Any,
    OneOf(Vec<i32>),
}

impl Expect {
    fn is_success(&self) -> bool {
        *self == Expect::Success
    }
}

/// A change that was applied, and what it printed where it was a command.
#[derive(Debug, Clone)]
pub struct Done {
    pub change: Change,
    pub output: Option<Output>,
    /// Where a write's backup went.
    pub backup: Option<String>,
    /// What the API server answered to a [`Change::Kubernetes`].
    pub answer: Option<serde_json::Value>,
}

/// Makes `change` true on the machine.
pub(crate) fn apply(machine: &Machine, change: &Change) -> Result<Done, Error> {
    let mut done = Done { change: change.clone(), output: None, backup: None, answer: None };
    match change {
        Change::Write(write) => done.backup = file::write(machine, write)?,
        Change::Mkdir { path, mode } => file::mkdir(path, *mode)?,
        Change::Chmod { path, mode } => file::chmod(path, *mode)?,
        Change::Chown { path, uid, gid } => file::chown(path, *uid, *gid)?,
        Change::Symlink { path, target } => file::symlink(path, target)?,
        Change::Hardlink { path, target } => file::hardlink(path, target)?,
        Change::Remove { path } => file::remove(path)?,
        Change::Rename { path, to } => file::rename(path, to)?,
        Change::Touch { path, accessed_s, modified_s } => file::touch(path, *accessed_s, *modified_s)?,
        Change::Exec(exec) => done.output = Some(exec::exec(machine, exec)?),
        Change::Kubernetes(request) => done.answer = Some(machine.change_kubernetes(request)?),
    }
    Ok(done)
}
