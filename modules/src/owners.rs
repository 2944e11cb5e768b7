//! Who owns files: names of users and groups to numbers and back.

use crate::{Error, ErrorKind, Host, Probe};

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
