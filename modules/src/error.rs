//! The one error of this crate: a kind for the program, a text for people, facts for the task's result.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::host::Map;

/// What went wrong, as far as the runner acts on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The arguments contradict each other or make no sense on any host.
    Arguments,
    /// The host is not as the module needs it; nothing was changed.
    Host,
    /// The module can't do this safely and touched nothing; the text says why and what to do.
    Refused,
    /// A change was tried and failed.
    Failed,
}

/// What is told of it is kept apart, so that whatever returns one stays small.
#[derive(Debug, Clone)]
pub struct Error(Box<Told>);

#[derive(Debug, Clone)]
pub struct Told {
    pub kind: ErrorKind,
    /// A lowercase fragment without a final period, names in backticks.
    pub message: String,
    /// Further keys of the task's result, such as `rc` and `stderr`.
    pub result: Map,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::told(kind, message.into())
    }

    /// Is no part of [`Error::new`], which is written out for every type of message.
    #[inline(never)]
    fn told(kind: ErrorKind, message: String) -> Error {
        Error(Box::new(Told { kind, message, result: Map::new() }))
    }

    /// Puts what was attempted before the message: `` read `/etc/fstab`: … ``.
    #[must_use]
    pub fn context(mut self, attempted: impl fmt::Display) -> Error {
        self.message = format!("{attempted}: {}", self.message);
        self
    }

    /// Adds a key to the task's result.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<serde_json::Value>) -> Error {
        self.result.insert(key.to_owned(), value.into());
        self
    }
}

impl Deref for Error {
    type Target = Told;
    fn deref(&self) -> &Told {
        &self.0
    }
}

impl DerefMut for Error {
    fn deref_mut(&mut self) -> &mut Told {
        &mut self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
