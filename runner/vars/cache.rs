//! Facts kept from run to run: one JSON file a host, as Ansible's `jsonfile` cache has them.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::value::Map;

#[derive(Debug, Clone)]
pub struct FactCache {
    pub folder: PathBuf,
    /// Stands before a host's name in its file's.
    pub prefix: String,
    /// After how long facts are of no use any more; never when absent.
    pub lifetime: Option<Duration>,
}

impl FactCache {
    fn path(&self, host: &str) -> PathBuf {
        self.folder.join(format!("{}{}", self.prefix, host.replace('/', "_")))
    }

    /// Returns a host's facts; `None` where there are none that can be read and are young enough.
    pub fn read(&self, host: &str) -> Option<Map> {
        let path = self.path(host);
        let written = std::fs::metadata(&path).and_then(|metadata| metadata.modified()).ok()?;
        let age = SystemTime::now().duration_since(written).unwrap_or_default();
        if self.lifetime.is_some_and(|lifetime| age > lifetime) {
            return None;
        }
        match serde_json::from_slice(&std::fs::read(path).ok()?).ok()? {
            serde_json::Value::Object(facts) => Some(Map::from_json(facts)),
            _ => None,
        }
    }

    /// Keeps a host's facts, for its owner's eyes alone.
    ///
    /// # Errors
    /// A sentence for a person when the file can't be written.
    pub fn write(&self, host: &str, facts: &Map) -> Result<(), String> {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;
        let path = self.path(host);
        let failed = |error: std::io::Error| format!("keep facts in `{}`: {error}", path.display());
        std::fs::create_dir_all(&self.folder).map_err(failed)?;
        let temporary = path.with_extension(format!("new-{}", std::process::id()));
        let text = serde_json::Value::Object(facts.to_json()).to_string();
        std::fs::OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| std::fs::rename(&temporary, &path))
            .map_err(failed)
    }

    /// Forgets the facts of hosts: `--flush-cache`.
    pub fn flush(&self, hosts: &[std::sync::Arc<str>]) {
        for host in hosts {
            // One that has no file has nothing to forget.
            std::fs::remove_file(self.path(host)).ok();
        }
    }
}
