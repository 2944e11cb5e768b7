//! What Ansible tells of a file's inode: the keys that `stat` and `find` share.

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::{Value, json};

use crate::host::Map;
use crate::owners::{group_name, user_name};
use crate::{Error, FileKind, Host, Stat};

/// The names of users and groups, each looked up once.
#[derive(Default)]
pub(crate) struct Names {
    users: RefCell<HashMap<u32, String>>,
    groups: RefCell<HashMap<u32, String>>,
}

impl Names {
    fn user(&self, host: &dyn Host, uid: u32) -> Result<String, Error> {
        if let Some(name) = self.users.borrow().get(&uid) {
            return Ok(name.clone());
        }
        let name = user_name(host, uid)?;
        self.users.borrow_mut().insert(uid, name.clone());
        Ok(name)
    }

    fn group(&self, host: &dyn Host, gid: u32) -> Result<String, Error> {
        if let Some(name) = self.groups.borrow().get(&gid) {
            return Ok(name.clone());
        }
        let name = group_name(host, gid)?;
        self.groups.borrow_mut().insert(gid, name.clone());
        Ok(name)
    }
}

/// Returns kind, owner, times and permissions under Ansible's keys. Times are whole seconds as floats.
///
/// # Errors
/// Whatever looking up the owner's name reports.
pub(crate) fn describe(host: &dyn Host, names: &Names, stat: &Stat) -> Result<Map, Error> {
    let kind = |kind| Value::from(stat.kind == kind);
    let bit = |bit: u32| Value::from(stat.mode & bit != 0);
    let mode = if stat.kind == FileKind::Link { 0o777 } else { stat.mode };
    let pairs = [
        ("mode", Value::from(format!("{mode:04o}"))),
        ("isdir", kind(FileKind::Directory)),
        ("ischr", kind(FileKind::CharacterDevice)),
        ("isblk", kind(FileKind::BlockDevice)),
        ("isreg", kind(FileKind::File)),
        ("isfifo", kind(FileKind::Fifo)),
        ("islnk", kind(FileKind::Link)),
        ("issock", kind(FileKind::Socket)),
        ("uid", stat.uid.into()),
        ("gid", stat.gid.into()),
        ("size", stat.size_bytes.into()),
        ("inode", stat.inode.into()),
        ("dev", stat.device.into()),
        ("nlink", stat.links.into()),
        ("atime", json!(stat.accessed_s as f64)),
        ("mtime", json!(stat.modified_s as f64)),
        ("ctime", json!(stat.changed_s as f64)),
        ("wusr", bit(0o200)),
        ("rusr", bit(0o400)),
        ("xusr", bit(0o100)),
        ("wgrp", bit(0o020)),
        ("rgrp", bit(0o040)),
        ("xgrp", bit(0o010)),
        ("woth", bit(0o002)),
        ("roth", bit(0o004)),
        ("xoth", bit(0o001)),
        ("isuid", bit(0o4000)),
        ("isgid", bit(0o2000)),
        ("pw_name", names.user(host, stat.uid)?.into()),
        ("gr_name", names.group(host, stat.gid)?.into()),
    ];
    Ok(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}
