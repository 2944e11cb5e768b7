//! What a module may ask of a machine. All of it reads: whatever alters a host is a [`crate::Change`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Algorithm, Content, Done, Error};

/// A task's result, an object of its arguments, a JSON document of the API: keys in insertion order.
pub type Map = serde_json::Map<String, serde_json::Value>;

/// Puts a value under a key: code that is there once, and not at each of hundreds of places.
pub(crate) trait Put {
    fn put(&mut self, key: &str, value: impl Into<serde_json::Value>);
}

impl Put for Map {
    fn put(&mut self, key: &str, value: impl Into<serde_json::Value>) {
        put(self, key, value.into());
    }
}

#[inline(never)]
fn put(map: &mut Map, key: &str, value: serde_json::Value) {
    map.insert(key.to_owned(), value);
}

pub trait Host {
    /// Returns what is at `path` without following a link there; `None` when nothing is.
    fn lstat(&self, path: &str) -> Result<Option<Stat>, Error>;

    /// Returns what `path` leads to, links followed; `None` when nothing is there or a link dangles.
    fn stat(&self, path: &str) -> Result<Option<Stat>, Error>;

    /// Returns a file's bytes; `None` when there is no such file.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, Error>;

    /// Returns a symbolic link's target as written; `None` when `path` is no link.
    fn read_link(&self, path: &str) -> Result<Option<String>, Error>;

    /// Returns a directory's names, sorted; `None` when there is no such directory.
    fn list(&self, path: &str) -> Result<Option<Vec<String>>, Error>;

    /// Returns the lowercase hexadecimal SHA-256 of a file, read in pieces; `None` when there is no such file.
    fn sha256(&self, path: &str) -> Result<Option<String>, Error>;

    /// Returns the lowercase hexadecimal checksum of a file, read in pieces; `None` when there is no such file.
    fn checksum(&self, path: &str, algorithm: Algorithm) -> Result<Option<String>, Error>;

    /// Runs a command that changes nothing and returns how it ended. A program that does not exist is `rc` 127.
    fn probe(&self, probe: &Probe) -> Result<Output, Error>;

    /// Returns the bytes of content that came with the task, fetched from the runner when they stayed there.
    fn content(&self, content: &Content) -> Result<Vec<u8>, Error>;

    /// Seconds since 1970 at which this task started on this host.
    fn started_s(&self) -> f64;

    /// The changes that this task has applied so far, oldest first: empty when it is planned for the first time.
    fn applied(&self) -> &[Done];

    /// Returns a variable of the task's environment.
    fn env(&self, name: &str) -> Option<String>;

    /// Returns all variables of the task's environment.
    fn environment(&self) -> BTreeMap<String, String>;

    /// Returns the effective user's id: 0 under `become`.
    fn uid(&self) -> u32;

    /// Asks the Kubernetes API without changing it: `GET`, or any method with `dryRun=All`.
    fn kubernetes(&self, request: &KubeRequest) -> Result<KubeAnswer, Error>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    File,
    Directory,
    Link,
    CharacterDevice,
    BlockDevice,
    Fifo,
    Socket,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    pub kind: FileKind,
    /// Permission bits with set-uid, set-gid and sticky: `0o7777` at most.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub size_bytes: u64,
    /// Seconds since 1970, rounded down.
    pub modified_s: i64,
    pub accessed_s: i64,
    pub changed_s: i64,
    pub inode: u64,
    pub links: u64,
    pub device: u64,
    /// `(major, minor)` of a device node, else zeros.
    pub rdev: (u32, u32),
    /// How many blocks of 512 bytes it takes on the disk.
    pub blocks: u64,
    /// The size in which to read and write it.
    pub block_size_bytes: u64,
}

/// A command that changes nothing on the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Probe {
    pub argv: Vec<String>,
    pub stdin: Option<Vec<u8>>,
    /// Set in addition to the task's environment.
    pub env: Vec<(String, String)>,
    /// Files written to a private folder before the command and removed with it afterwards; `{scratch}` in
    /// `argv` and in the files' text stands for that folder.
    pub files: Vec<(String, Vec<u8>)>,
    /// How long the command may run; `None` stands for [`Probe::DEFAULT_TIMEOUT_S`].
    pub timeout_s: Option<u64>,
}

impl Probe {
    pub const DEFAULT_TIMEOUT_S: u64 = 60;

    /// Like [`Probe::new`], without being written out at each call.
    #[inline(never)]
    pub fn of(argv: &[&str]) -> Probe {
        Probe::new(argv.iter().copied())
    }

    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Probe {
        Probe { argv: argv.into_iter().map(Into::into).collect(), ..Probe::default() }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// The exit status; minus the signal's number when a signal ended it; 127 when the program does not exist.
    pub rc: i32,
    /// Bytes that are not UTF-8 are replaced.
    #[serde(default)]
    pub stdout: String,
    #[serde(default)]
    pub stderr: String,
    /// When it started and ended, in seconds since 1970.
    #[serde(default)]
    pub started_s: f64,
    #[serde(default)]
    pub ended_s: f64,
}

impl Output {
    pub fn success(&self) -> bool {
        self.rc == 0
    }
}

/// One request to a Kubernetes API server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KubeRequest {
    /// A file; `None` stands for `$KUBECONFIG`, `~/.kube/config`, then the pod's own service account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<String>,
    /// A context of that file; `None` stands for its current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    pub method: String,
    /// The path with its query: `/api/v1/nodes?limit=500`.
    pub path: String,
    /// The body's media type, such as `application/apply-patch+yaml`; `None` without a body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<serde_json::Value>,
    /// How long the answer may take, retries included; `None` stands for [`KubeRequest::DEFAULT_TIMEOUT_S`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u64>,
}

impl KubeRequest {
    /// As long as an API server itself gives a request (`--request-timeout`), which is also longer than it takes to
    /// restart.
    pub const DEFAULT_TIMEOUT_S: u64 = 60;
}

/// What the API server answered, whatever its status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubeAnswer {
    pub status: u16,
    pub body: serde_json::Value,
}
