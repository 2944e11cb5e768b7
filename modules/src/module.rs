//! What a module is: its arguments, and a plan made from them and a host.

use serde::{Deserialize, Serialize};

use crate::decode::Arguments;
use crate::{Change, Done, Error, Host, host::Map};

/// A module **is** its arguments. `plan` reads and returns; it never writes. That is why no module knows of check
/// mode, why `changed` is `!changes.is_empty()` and why planning again after applying proves the task.
pub trait Module: Arguments {
    /// Whether a second plan must want nothing once the first one's changes are applied. `false` for what runs a
    /// user's command: that runs once, and not at all in check mode.
    const CONVERGENT: bool = true;

    /// What must change on `host`, and what the task returns.
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error>;

    /// Adds to the result what only the applied changes can tell, such as a command's output. Not called in check
    /// mode. Setting `failed` to true fails the task, `changed` overrides what the changes say.
    fn report(&self, _host: &dyn Host, _done: &[Done], _result: &mut Map) -> Result<(), Error> {
        Ok(())
    }
}

/// What a module wants of a host.
#[derive(Debug, Default)]
pub struct Plan {
    /// In the order in which they must happen.
    pub changes: Vec<Change>,
    /// What the task returns beside `changed`, `diff` and `warnings`.
    pub result: Map,
    /// Shown to the user under the task.
    pub warnings: Vec<String>,
    /// Shown above the file diffs: a change in words, such as that of an effective configuration.
    pub diff: Vec<Diff>,
    /// Whether a failure puts back, byte for byte, the files that this task wrote before it.
    pub transaction: bool,
    /// Of what runs a user's command: whether it is known to be needed, so that check mode says "changed" and not
    /// "skipped".
    pub needed: bool,
    /// What to run after files were put back, such as a service's restart.
    pub after_undo: Vec<Change>,
}

impl From<Vec<Change>> for Plan {
    fn from(changes: Vec<Change>) -> Plan {
        Plan { changes, ..Plan::default() }
    }
}

impl Plan {
    /// Adds a key to the task's result.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<serde_json::Value>) -> Plan {
        self.set(key, value.into());
        self
    }

    /// Adds a list to the task's result that a plan tells only before what it names is changed: what a later plan finds
    /// counts where it finds any.
    #[must_use]
    pub(crate) fn first(self, key: &str, list: Vec<String>, host: &dyn Host) -> Plan {
        if list.is_empty() && !host.applied().is_empty() { self } else { self.with(key, list) }
    }

    /// Is no part of [`Plan::with`], which is written out for every type of value.
    #[inline(never)]
    fn set(&mut self, key: &str, value: serde_json::Value) {
        self.result.insert(key.to_owned(), value);
    }
}

/// A difference as Ansible's callbacks show it: two texts with headers, or a text prepared by the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_header: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_header: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepared: Option<String>,
}
