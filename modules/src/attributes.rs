//! Who owns a file and what its mode is, and the changes that make it so.

use serde_json::{Value, json};

use crate::host::Map;
use crate::host::Put as _;
use crate::owners::{gid_of, group_name, uid_of, user_name};
use crate::{Change, Error, ErrorKind, FileKind, Host, Mode, Stat, Write};

/// The owner, group and mode that a task wants; `None` leaves one as it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub mode: Option<Mode>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
}

impl Wanted {
    /// # Errors
    /// [`ErrorKind::Host`] naming a user or group that the host does not know.
    pub fn new(
        host: &dyn Host,
        mode: Option<&Mode>,
        owner: Option<&str>,
        group: Option<&str>,
    ) -> Result<Wanted, Error> {
        let uid = owner.map(|owner| uid_of(host, owner)).transpose()?;
        let gid = group.map(|group| gid_of(host, group)).transpose()?;
        Ok(Wanted { mode: mode.cloned(), uid, gid })
    }

    /// Adds what must change of what is at `path`. `path` is no link, or a link whose own owner is meant.
    pub fn changes(&self, host: &dyn Host, path: &str, found: &Stat, changes: &mut Vec<Change>) {
        let uid = self.uid.filter(|&uid| uid != found.uid);
        let gid = self.gid.filter(|&gid| gid != found.gid);
        if uid.is_some() || gid.is_some() {
            changes.push(Change::Chown { path: path.to_owned(), uid, gid });
        }
        if found.kind == FileKind::Link {
            return;
        }
        let Some(mode) = &self.mode else { return };
        let bits = mode.bits(Some(found), found.kind, found.mode);
        // Clauses such as `g=u,u=` give something else each time: they are applied once.
        let again =
            matches!(mode, Mode::Symbolic(_)) && host.applied().iter().any(|done| sets_mode(&done.change, path));
        if bits != found.mode && !again {
            changes.push(Change::Chmod { path: path.to_owned(), mode: bits });
        }
    }

    /// Adds a directory that is to be made, with its owner.
    pub fn make_directory(&self, host: &dyn Host, path: &str, changes: &mut Vec<Change>) {
        let mode = self.mode.as_ref().map(|mode| mode.bits(None, FileKind::Directory, 0o755));
        changes.push(Change::Mkdir { path: path.to_owned(), mode });
        self.own_new(host, path, changes);
    }

    /// Adds the owner of something that this task has just made.
    pub fn own_new(&self, host: &dyn Host, path: &str, changes: &mut Vec<Change>) {
        let uid = self.uid.filter(|&uid| uid != host.uid());
        if uid.is_some() || self.gid.is_some() {
            changes.push(Change::Chown { path: path.to_owned(), uid, gid: self.gid });
        }
    }

    /// Gives a write its owner and mode; `found` is what it replaces.
    pub fn apply_to(&self, write: &mut Write, found: Option<&Stat>) {
        write.mode = self.mode.as_ref().map(|mode| mode.bits(found, FileKind::File, 0o644));
        write.uid = self.uid.filter(|&uid| found.is_none_or(|found| found.uid != uid));
        write.gid = self.gid.filter(|&gid| found.is_none_or(|found| found.gid != gid));
    }
}

fn sets_mode(change: &Change, at: &str) -> bool {
    match change {
        Change::Chmod { path, .. } => path == at,
        Change::Write(write) => write.path == at && write.mode.is_some(),
        Change::Mkdir { path, mode } => path == at && mode.is_some(),
        Change::Chown { .. }
        | Change::Symlink { .. }
        | Change::Hardlink { .. }
        | Change::Remove { .. }
        | Change::Rename { .. }
        | Change::Touch { .. }
        | Change::Exec(_)
        | Change::Kubernetes(_) => false,
    }
}

/// Adds to a result what Ansible tells of a path: owner, group, mode, size and `state`.
///
/// # Errors
/// Whatever looking at the path reports.
pub(crate) fn describe(host: &dyn Host, path: &str, result: &mut Map) -> Result<(), Error> {
    let Some(stat) = host.lstat(path)? else {
        result.put("state", "absent");
        return Ok(());
    };
    let state = match stat.kind {
        FileKind::Directory => "directory",
        FileKind::Link => "link",
        FileKind::File if stat.links > 1 => "hard",
        FileKind::File | FileKind::CharacterDevice | FileKind::BlockDevice | FileKind::Fifo | FileKind::Socket => {
            "file"
        }
    };
    let mode = if stat.kind == FileKind::Link { 0o777 } else { stat.mode };
    for (key, value) in [
        ("uid", json!(stat.uid)),
        ("gid", json!(stat.gid)),
        ("owner", Value::from(user_name(host, stat.uid)?)),
        ("group", Value::from(group_name(host, stat.gid)?)),
        ("mode", Value::from(format!("{mode:04o}"))),
        ("state", Value::from(state)),
        ("size", json!(stat.size_bytes)),
    ] {
        result.insert(key.into(), value);
    }
    Ok(())
}

/// Returns the directories above `path` that are still to be made, outermost first.
///
/// # Errors
/// [`ErrorKind::Host`] when something on the way is no directory.
pub(crate) fn missing_parents(host: &dyn Host, path: &str) -> Result<Vec<String>, Error> {
    let mut missing = Vec::new();
    let mut at = crate::paths::parent(path);
    while !matches!(at, "/" | "." | "" | "..") {
        match host.stat(at)? {
            Some(stat) if stat.kind == FileKind::Directory => break,
            Some(_) => return Err(Error::new(ErrorKind::Host, format!("`{at}` is not a directory"))),
            None => missing.push(at.to_owned()),
        }
        at = crate::paths::parent(at);
    }
    missing.reverse();
    Ok(missing)
}
