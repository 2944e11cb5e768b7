//! What the package manager keeps of this repository.

use crate::rpm::Manager;
use crate::rpm_repo::Site;
use crate::{Change, Error, Plan};

impl Site<'_> {
    /// Has the index forgotten, with the keys that dnf has accepted for it.
    pub(super) fn forget(&self, plan: &mut Plan) -> Result<(), Error> {
        let name = &self.args.name;
        match self.manager {
            Manager::Dnf(_) => {
                for folder in ["/var/cache/dnf", "/var/cache/libdnf5"] {
                    for entry in self.host.list(folder)?.unwrap_or_default() {
                        // `NAME-` and 16 digits of a checksum, alone or before a name such as `.solv`.
                        let digest = entry.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('-'));
                        let is_digest = |rest: &str| {
                            rest.len() >= 16
                                && rest.bytes().take(16).all(|byte| byte.is_ascii_hexdigit())
                                && rest[16..].bytes().next().is_none_or(|byte| byte == b'-' || byte == b'.')
                        };
                        if digest.is_some_and(is_digest) {
                            plan.changes.push(Change::Remove { path: format!("{folder}/{entry}") });
                        }
                    }
                    let solv = format!("{folder}/{name}.solv");
                    for path in [solv, format!("{folder}/{name}-filenames.solvx")] {
                        if self.host.stat(&path)?.is_some() {
                            plan.changes.push(Change::Remove { path });
                        }
                    }
                }
            }
            Manager::Zypper => {
                for folder in ["raw", "solv", "packages", "pubkeys"] {
                    let path = format!("/var/cache/zypp/{folder}/{name}");
                    if self.host.stat(&path)?.is_some() {
                        plan.changes.push(Change::Remove { path });
                    }
                }
            }
        }
        Ok(())
    }
}
