//! What this module did to a file, kept beside it, so that `state: absent` can undo exactly that.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::algorithm::hexadecimal;
use crate::{Change, Error, ErrorKind, Host, Write};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    about: String,
    /// The file before; absent when there was none.
    pub original: Option<String>,
    /// The SHA-256 of what was written in its place.
    written_sha256: String,
    /// The name of the runtime that was added.
    pub runtime: String,
    /// The runtime whose options it inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherits: Option<String>,
    /// Written, and containerd not yet seen to work with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
}

/// Returns where the record of a configuration file is. No import pattern takes it for a configuration.
pub(super) fn path_of(config: &str) -> String {
    format!("{config}.kubeon-run.json")
}

impl Record {
    pub(super) fn new(original: Option<&str>, written: &str, runtime: &str) -> Record {
        Record {
            about: "written by kubeon-run: `state: absent` of containerd_runtime puts `original` back".to_owned(),
            original: original.map(str::to_owned),
            written_sha256: hexadecimal(&Sha256::digest(written.as_bytes())),
            runtime: runtime.to_owned(),
            inherits: None,
            pending: true,
        }
    }

    pub(super) fn read(host: &dyn Host, config: &str) -> Result<Option<Record>, Error> {
        let path = path_of(config);
        let Some(bytes) = host.read(&path)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            let advice = "look at it, and remove it when it is of no use";
            Error::new(ErrorKind::Refused, format!("`{path}` is no record of this module: {error}: {advice}"))
        })
    }

    /// Whether nobody edited the file since.
    pub(super) fn is_of(&self, text: &str) -> bool {
        self.written_sha256 == hexadecimal(&Sha256::digest(text.as_bytes()))
    }

    /// Returns the change that keeps it: for root alone, since a configuration may hold passwords.
    pub(super) fn write(&self, config: &str) -> Change {
        let text = serde_json::to_string_pretty(self).expect("a record is plain data");
        Change::Write(Write { mode: Some(0o600), hidden: true, ..Write::new(path_of(config), format!("{text}\n")) })
    }

    pub(super) fn settled(&self) -> Record {
        Record { pending: false, ..self.clone() }
    }
}
