//! Who this host and this user are: names, the account, the host's SSH keys.

use serde_json::Value;

use super::uname::uname;
use super::{Files, map};
use crate::host::Put as _;
use crate::host::{Host, Map, Probe};

/// The host's own names.
pub(super) struct Names {
    /// What the kernel calls this host, with a domain where an administrator set one.
    pub node: String,
}

pub(super) fn names(files: Files<'_>) -> Names {
    let node = files.text("/proc/sys/kernel/hostname").unwrap_or_else(|| uname(|name| &name.nodename));
    Names { node }
}

/// Returns the account that runs the tasks: under `become` the one become.
pub(super) fn user(host: &dyn Host) -> Map {
    let uid = host.uid();
    // SAFETY: getuid(2) and getgid(2) take nothing and can't fail.
    let (real_uid, gid) = unsafe { (libc::getuid(), libc::getgid()) };
    let mut facts = map([
        ("real_user_id", real_uid.into()),
        ("effective_user_id", uid.into()),
        ("real_group_id", gid.into()),
        ("effective_group_id", gid.into()),
    ]);
    let Some(line) = account(host, uid) else {
        facts.put("user_id", uid.to_string());
        facts.put("user_uid", uid);
        facts.put("user_gid", gid);
        return facts;
    };
    let fields: Vec<&str> = line.split(':').collect();
    let field = |nth: usize| fields.get(nth).copied().unwrap_or_default();
    let number = |nth: usize| field(nth).parse::<u32>().map_or(Value::Null, Value::from);
    facts.extend(map([
        ("user_id", field(0).into()),
        ("user_uid", number(2)),
        ("user_gid", number(3)),
        ("user_gecos", field(4).into()),
        ("user_dir", field(5).into()),
        ("user_shell", field(6).into()),
    ]));
    facts
}

/// Returns the account's line; accounts of a directory service are asked of `getent`.
fn account(host: &dyn Host, uid: u32) -> Option<String> {
    let number = uid.to_string();
    let text = Files(host).text("/etc/passwd").unwrap_or_default();
    let local = text.lines().find(|line| line.split(':').nth(2) == Some(&number)).map(str::to_owned);
    local.or_else(|| {
        let output = host.probe(&Probe::of(&["getent", "passwd", &number])).ok()?;
        output.stdout.lines().next().filter(|line| line.split(':').count() == 7).map(str::to_owned)
    })
}

/// Returns the host's public SSH keys, of the first folder that holds any.
pub(super) fn ssh_keys(files: Files<'_>) -> Map {
    for folder in ["/etc/ssh", "/etc/openssh", "/etc"] {
        let mut facts = Map::new();
        for kind in ["dsa", "rsa", "ecdsa", "ed25519"] {
            let Some(text) = files.text(&format!("{folder}/ssh_host_{kind}_key.pub")) else { continue };
            let mut words = text.split_whitespace();
            if let (Some(word), Some(key)) = (words.next(), words.next()) {
                facts.insert(format!("ssh_host_key_{kind}_public"), key.into());
                facts.insert(format!("ssh_host_key_{kind}_public_keytype"), word.into());
            }
        }
        if !facts.is_empty() {
            return facts;
        }
    }
    Map::new()
}
