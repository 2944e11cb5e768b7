//! Locks of dnf's versionlock, which are somebody else's.

use crate::ask::text;
use crate::rpm::Manager;
use crate::{Error, ErrorKind, Host};

/// Where dnf 4 and dnf 5 keep them.
const FILES: [&str; 2] = ["/etc/dnf/plugins/versionlock.list", "/etc/dnf/versionlock.toml"];

/// Refuses to move a package that is locked: dnf would say only that it found none.
pub(super) fn refuse(host: &dyn Host, manager: Manager, names: &[&str]) -> Result<(), Error> {
    match manager {
        Manager::Dnf(_) => {}
        Manager::Zypper => return Ok(()),
    }
    for path in FILES {
        for line in text(host, path)?.lines().map(str::trim).filter(|line| !line.starts_with(['#', '!'])) {
            if let Some(name) = names.iter().find(|name| is_of(line, name)) {
                return Err(Error::new(
                    ErrorKind::Refused,
                    format!(
                        "`{path}` locks `{name}`: let go of it with `dnf versionlock delete {name}`, since `hold` does the same"
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// Whether a line names a package: `name = "NAME"`, or `NAME-EPOCH:VERSION-RELEASE.*`.
fn is_of(line: &str, name: &str) -> bool {
    if let Some(value) = line.strip_prefix("name").and_then(|rest| rest.trim_start().strip_prefix('=')) {
        return value.trim().trim_matches(['"', '\'']) == name;
    }
    line.strip_prefix(name)
        .and_then(|rest| rest.strip_prefix('-'))
        .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit() || letter == '*'))
}
