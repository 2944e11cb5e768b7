//! Waiting for whoever else manages packages.

use std::time::Duration;

use crate::apt::lock::{held, process, until_free};
use crate::ask::text;
use crate::{Error, Host};

/// Files that are locked while packages are installed.
const LOCKS: [&str; 3] = ["/var/lib/rpm/.rpm.lock", "/usr/lib/sysimage/rpm/.rpm.lock", "/run/dnf/rpmtransaction.lock"];
/// Files with the number of the process that is at work, which stay when it is killed.
const PIDS: [&str; 4] = [
    "/var/cache/dnf/metadata_lock.pid",
    "/var/cache/dnf/download_lock.pid",
    "/var/lib/dnf/rpmdb_lock.pid",
    "/run/zypp.pid",
];

/// Returns once no lock of rpm, dnf or zypper is held, and whether one was.
///
/// # Errors
/// [`crate::ErrorKind::Host`] when one still is after so many seconds, with the process that holds it.
pub(crate) fn wait(host: &dyn Host, limit_s: u64) -> Result<bool, Error> {
    until_free(Duration::from_secs(limit_s), &|| match held(host, &LOCKS)? {
        Some(lock) => Ok(Some(lock)),
        None => at_work(host),
    })
}

fn at_work(host: &dyn Host) -> Result<Option<(String, String)>, Error> {
    for path in PIDS {
        let pid = text(host, path)?.trim().to_owned();
        let is_number = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && host.stat(&format!("/proc/{pid}"))?.is_some() {
            return Ok(Some((path.to_owned(), process(host, &pid))));
        }
    }
    Ok(None)
}
