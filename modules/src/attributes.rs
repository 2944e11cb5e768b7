//! Who owns a file and what its mode is: names to numbers and back, and the changes that make it so.

use serde_json::{Value, json};

use crate::host::Map;
use crate::host::Put as _;
use crate::{Change, Error, ErrorKind, FileKind, Host, Mode, Probe, Stat, Write};

/// A user as `/etc/passwd` has it.
pub(crate) struct Account {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    pub home: String,
}

/// Returns the account of this name or number; `None` when there is none.
///
/// # Errors
/// Whatever reading `/etc/passwd` reports.
pub(crate) fn account_of(host: &dyn Host, user: &str) -> Result<Option<Account>, Error> {
    Ok(line_of(host, "passwd", user)?.and_then(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, _, home, ..] = fields[..] else { return None };
        Some(Account { name: name.into(), uid: uid.parse().ok()?, gid: gid.parse().ok()?, home: home.into() })
    }))
}

/// Returns a group's name and number by either.
fn group_of(host: &dyn Host, group: &str) -> Result<Option<(String, u32)>, Error> {
    Ok(line_of(host, "group", group)?.and_then(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, gid, ..] = fields[..] else { return None };
        Some((name.to_owned(), gid.parse().ok()?))
    }))
}

/// Returns the line of an account database whose name, or else whose number, is `key`: from the file, or from
/// whatever else the host's `getent` knows (LDAP, SSSD).
fn line_of(host: &dyn Host, database: &str, key: &str) -> Result<Option<String>, Error> {
    if key.is_empty() || key.contains([':', '\n']) {
        return Ok(None);
    }
    let bytes = host.read(&format!("/etc/{database}"))?.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let field = |line: &str, nth| line.split(':').nth(nth).map(str::to_owned);
    let found = [0, 2].into_iter().find_map(|nth| text.lines().find(|line| field(line, nth).as_deref() == Some(key)));
    if let Some(line) = found {
        return Ok(Some(line.to_owned()));
    }
    let output = host.probe(&Probe::of(&["getent", database, key]))?;
    Ok(output.stdout.lines().next().filter(|_| output.success()).map(str::to_owned))
}

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

/// Returns the number of a user given by name or number.
///
/// # Errors
/// [`ErrorKind::Host`] when the host knows no such user.
pub(crate) fn uid_of(host: &dyn Host, owner: &str) -> Result<u32, Error> {
    if let Ok(uid) = owner.parse() {
        return Ok(uid);
    }
    match account_of(host, owner)? {
        Some(account) => Ok(account.uid),
        None => Err(Error::new(
            ErrorKind::Host,
            format!("no user `{owner}` on this host; make it with `user` first, or give a number"),
        )),
    }
}

/// Returns the number of a group given by name or number.
///
/// # Errors
/// [`ErrorKind::Host`] when the host knows no such group.
pub(crate) fn gid_of(host: &dyn Host, group: &str) -> Result<u32, Error> {
    if let Ok(gid) = group.parse() {
        return Ok(gid);
    }
    match group_of(host, group)? {
        Some((_, gid)) => Ok(gid),
        None => Err(Error::new(
            ErrorKind::Host,
            format!("no group `{group}` on this host; make it with `group` first, or give a number"),
        )),
    }
}

/// Returns a user's name, its number as text when it has none.
pub(crate) fn user_name(host: &dyn Host, uid: u32) -> Result<String, Error> {
    Ok(account_of(host, &uid.to_string())?.map_or_else(|| uid.to_string(), |account| account.name))
}

/// Returns a group's name, its number as text when it has none.
pub(crate) fn group_name(host: &dyn Host, gid: u32) -> Result<String, Error> {
    Ok(group_of(host, &gid.to_string())?.map_or_else(|| gid.to_string(), |(name, _)| name))
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
