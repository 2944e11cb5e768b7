//! Users and groups as a module that manages them needs them: every field, and whether `/etc` itself has it.

use crate::{Error, ErrorKind, FileKind, Host, Probe};

/// A line of `/etc/passwd`. Source: `passwd(5)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    pub comment: String,
    pub home: String,
    pub shell: String,
}

impl User {
    fn of(line: &str) -> Option<User> {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, comment, home, shell] = fields.as_slice() else { return None };
        Some(User {
            name: (*name).to_owned(),
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
            comment: (*comment).to_owned(),
            home: (*home).to_owned(),
            shell: (*shell).to_owned(),
        })
    }
}

/// A line of `/etc/group`. Source: `group(5)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub name: String,
    pub gid: u32,
    pub members: Vec<String>,
}

impl Group {
    fn of(line: &str) -> Option<Group> {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, gid, members] = fields.as_slice() else { return None };
        let members = members.split(',').filter(|member| !member.is_empty()).map(str::to_owned).collect();
        Some(Group { name: (*name).to_owned(), gid: gid.parse().ok()?, members })
    }
}

/// Refuses a path in an account's home that leads, by a link which the account could make, to what is not its own: whoever
/// writes there with more rights would alter a file of somebody else, and might give it away.
pub(crate) fn stays_own(host: &dyn Host, uid: u32, home: &str, path: &str) -> Result<(), Error> {
    let Some(rest) = path.strip_prefix(home.trim_end_matches('/')).filter(|rest| rest.starts_with('/')) else {
        return Ok(());
    };
    let mut reached = home.trim_end_matches('/').to_owned();
    for name in rest.split('/').filter(|name| !name.is_empty()) {
        reached.push('/');
        reached.push_str(name);
        let Some(found) = host.lstat(&reached)? else { return Ok(()) };
        let its_own = found.uid == uid && uid != 0;
        if found.kind == FileKind::Link && its_own && host.stat(&reached)?.is_none_or(|target| target.uid != uid) {
            let target = host.read_link(&reached)?.unwrap_or_default();
            return Err(Error::new(
                ErrorKind::Host,
                format!(
                    "`{reached}` is a link of the user's own to `{target}`, which is not the user's: remove it first"
                ),
            ));
        }
    }
    Ok(())
}

/// The lines of a database in `/etc`.
pub(crate) fn lines(host: &dyn Host, path: &str) -> Result<Vec<String>, Error> {
    let bytes = host.read(path)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}

/// Returns a user by name; unless `local`, a directory service is asked too.
pub(crate) fn user(host: &dyn Host, name: &str, local: bool) -> Result<Option<User>, Error> {
    let all = lines(host, "/etc/passwd")?;
    let found = all.iter().filter_map(|line| User::of(line)).find(|user| user.name == name);
    if found.is_some() || local {
        return Ok(found);
    }
    Ok(asked(host, "passwd", name)?.and_then(|line| User::of(&line)))
}

pub(crate) fn groups(host: &dyn Host) -> Result<Vec<Group>, Error> {
    Ok(lines(host, "/etc/group")?.iter().filter_map(|line| Group::of(line)).collect())
}

/// Returns a group by name or number; unless `local`, a directory service is asked too.
pub(crate) fn group(host: &dyn Host, key: &str, local: bool) -> Result<Option<Group>, Error> {
    let all = groups(host)?;
    let number = key.parse::<u32>().ok();
    let found =
        all.iter().find(|group| group.name == key).or_else(|| all.iter().find(|group| Some(group.gid) == number));
    if found.is_some() || local {
        return Ok(found.cloned());
    }
    Ok(asked(host, "group", key)?.and_then(|line| Group::of(&line)))
}

fn asked(host: &dyn Host, database: &str, key: &str) -> Result<Option<String>, Error> {
    let output = host.probe(&Probe::of(&["getent", database, key]))?;
    Ok(output.stdout.lines().next().filter(|_| output.success()).map(str::to_owned))
}
