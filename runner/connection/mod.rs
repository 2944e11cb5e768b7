//! The only place that opens a connection: a byte pipe to an agent on a host, over SSH or a local program, and the
//! requests and answers that travel through it.

mod agent;
mod contents;
mod escalate;
#[cfg(feature = "simulate")]
mod fleet;
mod link;
mod openssh;
mod packing;
mod passphrase;
mod pattern;
mod pipe;
mod process;
mod route;
mod session;
mod ssh;
mod ssh_config;
mod supply;
mod talk;
mod transport;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use agent::agents;
pub use contents::Contents;
pub use escalate::{Become, BecomeMethod};
#[cfg(feature = "simulate")]
pub use fleet::{Fleet, use_fleet};
pub use link::{Answered, Plans};
pub use openssh::{answer_ssh, shell_to};
pub use passphrase::ask_with;
pub use session::{Ahead, Connection, Statistics};
use transport::Transport;
pub use transport::use_program;

/// Where a host is and how to reach it.
#[derive(Clone)]
pub struct Target {
    /// Its name in the inventory.
    pub host: String,
    /// A name or an IP address.
    pub address: String,
    pub port: Option<u16>,
    pub user: Option<String>,
    pub via: Via,
    /// For the login, and for a private key that is encrypted.
    pub password: Option<String>,
    pub private_key_file: Option<PathBuf>,
    /// Arguments written for the system's `ssh`, already split.
    pub ssh_args: Vec<String>,
    /// Refuse a host whose key is not known.
    pub host_key_checking: bool,
    /// How long connecting, greeting and logging in may take.
    pub connect_timeout: Duration,
    /// How often whoever opens a connection tries again when that fails.
    pub retries: u32,
    /// How long a host that runs a task may give no sign of life. Agents give one every three seconds.
    pub silence_timeout: Duration,
    /// Files of known host keys; the user's and the system's where it is empty.
    pub known_hosts: Vec<PathBuf>,
}

impl Target {
    /// Returns what tells connections apart.
    pub fn key(&self) -> String {
        let Target { via, address, port, user, private_key_file, ssh_args, password, .. } = self;
        format!("{via:?} {address} {port:?} {user:?} {private_key_file:?} {ssh_args:?} {password:?}")
    }

    /// Returns whether a connection to `other` will do.
    pub fn leads_to(&self, other: &Target) -> bool {
        self.via == other.via
            && self.address == other.address
            && self.port == other.port
            && self.user == other.user
            && self.private_key_file == other.private_key_file
            && self.ssh_args == other.ssh_args
            && self.password == other.password
            && self.silence_timeout == other.silence_timeout
    }
}

/// Without the password.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target { host, address, port, user, via, ssh_args, .. } = self;
        f.debug_struct("Target")
            .field("host", host)
            .field("address", address)
            .field("port", port)
            .field("user", user)
            .field("via", via)
            .field("ssh_args", ssh_args)
            .finish_non_exhaustive()
    }
}

/// What carries the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Via {
    /// SSH in this process, or the system's `ssh` where only that can do what is asked for.
    Ssh,
    /// The system's `ssh`.
    OpenSsh,
    /// This machine.
    Local,
    /// A program that takes a command as its last arguments and passes standard streams on: `docker exec -i NAME`.
    Command(Vec<String>),
}

/// Why a host can't be worked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreachable {
    pub kind: UnreachableKind,
    /// A lowercase fragment without a final period, names in backticks.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreachableKind {
    /// Its name has no address.
    Resolve,
    Connect,
    /// Its key is unknown, has changed or was revoked.
    HostKey,
    Authentication,
    /// No agent can run there.
    Agent,
    /// The other user can't be become.
    Become,
    /// The connection or the agent ended while it was needed.
    Lost,
    /// It gives no sign of life.
    Silent,
    /// What was asked for can't be done.
    Configuration,
}

impl Unreachable {
    fn new(kind: UnreachableKind, message: impl Into<String>) -> Unreachable {
        Unreachable { kind, message: message.into() }
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Unreachable {}
