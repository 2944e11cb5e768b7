use schemars::JsonSchema;
use serde::Deserialize;

use crate::attributes::describe;
use crate::decode::Arguments;
use crate::{Algorithm, Change, Error, ErrorKind, FileKind, Host, Module, Plan, Write, paths};

/// How many characters of a name are drawn.
const DRAWN: usize = 8;

/// Make a temporary file or directory that only its owner can use.
///
/// ```yaml
/// - tempfile:
///     state: directory
///     suffix: build
///   register: scratch
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// What to make.
    #[serde(default)]
    state: State,
    /// Where; the host's folder for temporary files when absent.
    path: Option<String>,
    /// How its name begins.
    #[serde(default = "prefix")]
    prefix: String,
    /// How its name ends.
    #[serde(default)]
    suffix: String,
}

#[derive(Debug, Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum State {
    Directory,
    #[default]
    File,
}

fn prefix() -> String {
    "ansible.".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let made = host.applied().iter().find_map(|done| match &done.change {
            Change::Write(write) => Some(write.path.clone()),
            Change::Mkdir { path, .. } => Some(path.clone()),
            Change::Chmod { .. }
            | Change::Chown { .. }
            | Change::Symlink { .. }
            | Change::Hardlink { .. }
            | Change::Remove { .. }
            | Change::Rename { .. }
            | Change::Touch { .. }
            | Change::Exec(_)
            | Change::Kubernetes(_) => None,
        });
        let mut changes = Vec::new();
        let path = match made {
            Some(path) => path,
            None => {
                let path = self.new_path(host)?;
                changes.push(match self.state {
                    State::Directory => Change::Mkdir { path: path.clone(), mode: Some(0o700) },
                    State::File => Change::Write(Write { mode: Some(0o600), ..Write::new(&path, "") }),
                });
                path
            }
        };
        let mut plan = Plan::from(changes).with("path", path.as_str());
        describe(host, &path, &mut plan.result)?;
        Ok(plan)
    }
}

impl Args {
    /// Returns a path where nothing is.
    fn new_path(&self, host: &dyn Host) -> Result<String, Error> {
        let folder = match &self.path {
            Some(path) => paths::expand(host, path)?,
            None => host.env("TMPDIR").filter(|folder| !folder.is_empty()).unwrap_or_else(|| "/tmp".to_owned()),
        };
        if host.stat(&folder)?.is_none_or(|stat| stat.kind != FileKind::Directory) {
            return Err(Error::new(ErrorKind::Host, format!("`{folder}` is not a directory")));
        }
        if self.prefix.contains('/') || self.suffix.contains('/') {
            return Err(Error::new(
                ErrorKind::Arguments,
                "`prefix` and `suffix` are parts of a name: they hold no `/`",
            ));
        }
        let mut drawn = host.read("/proc/sys/kernel/random/uuid")?.unwrap_or_default();
        drawn.extend(host.started_s().to_bits().to_be_bytes());
        loop {
            let text = Algorithm::Sha256.of(&drawn);
            let path = paths::join(&folder, &format!("{}{}{}", self.prefix, &text[..DRAWN], self.suffix));
            if host.lstat(&path)?.is_none() {
                return Ok(path);
            }
            drawn = text.into_bytes();
        }
    }
}
