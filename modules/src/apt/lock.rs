//! Waiting for whoever else manages packages: a lock is seen in `/proc/locks`, so that nothing need be tried.

use std::thread;
use std::time::{Duration, Instant};

use crate::{Error, ErrorKind, Host};

const LOCKS: [&str; 4] =
    ["/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/lib/apt/lists/lock", "/var/cache/apt/archives/lock"];
const EVERY: Duration = Duration::from_millis(500);

/// Returns once no lock of apt or dpkg is held, and whether one was.
///
/// # Errors
/// [`ErrorKind::Host`] when one still is after `limit`, with the process that holds it.
pub(crate) fn wait(host: &dyn Host, limit: Duration) -> Result<bool, Error> {
    until_free(limit, &|| held(host, &LOCKS))
}

/// Returns once nothing is held, and whether something was: a file, and who holds it.
///
/// # Errors
/// [`ErrorKind::Host`] when something still is after `limit`.
pub(crate) fn until_free(
    limit: Duration,
    held: &dyn Fn() -> Result<Option<(String, String)>, Error>,
) -> Result<bool, Error> {
    let mut waited = false;
    let end = Instant::now() + limit;
    loop {
        let Some((path, holder)) = held()? else { return Ok(waited) };
        waited = true;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::new(
                ErrorKind::Host,
                format!(
                    "{holder} holds `{path}` for longer than {} s: wait for it, or raise `lock_timeout`",
                    limit.as_secs()
                ),
            ));
        }
        thread::sleep(EVERY.min(left));
    }
}

/// Returns which of these files is locked, and by which process.
pub(crate) fn held(host: &dyn Host, paths: &[&str]) -> Result<Option<(String, String)>, Error> {
    let Some(bytes) = host.read("/proc/locks").ok().flatten() else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes);
    for path in paths {
        let Some(stat) = host.stat(path)? else { continue };
        for line in text.lines() {
            // `1: POSIX  ADVISORY  WRITE 812 08:01:131077 0 EOF`. Source: `proc_locks(5)`.
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, "POSIX" | "FLOCK", _, "WRITE", pid, place, ..] = fields.as_slice() else { continue };
            if place.rsplit(':').next() == Some(&stat.inode.to_string()) {
                return Ok(Some(((*path).to_owned(), process(host, pid))));
            }
        }
    }
    Ok(None)
}

/// Returns what a process is called in messages.
pub(crate) fn process(host: &dyn Host, pid: &str) -> String {
    let name = host.read(&format!("/proc/{pid}/comm")).ok().flatten().unwrap_or_default();
    let name = String::from_utf8_lossy(&name).trim().to_owned();
    if name.is_empty() { format!("process {pid}") } else { format!("`{name}` (process {pid})") }
}
