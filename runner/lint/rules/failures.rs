//! Failures that nobody hears of, rights that are not what they seem.

use crate::lint::{Check, Found, Rule, Scalar, Task, Weight};
use crate::yaml::{Kind, Node};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "ignore-errors",
        also: &[],
        weight: Weight::Warning,
        what: "`ignore_errors: true`",
        why: "every failure is passed over, also those that nobody thought of, and the run ends well",
        fix: "`failed_when` with what is a failure, or `block` with `rescue`",
        mends: false,
        check: Check::Task(ignored),
    },
    Rule {
        id: "partial-become",
        also: &[],
        weight: Weight::Warning,
        what: "`become_user` without `become`",
        why: "nobody is become: the task runs as the login user",
        fix: "give `become: true` beside it",
        mends: false,
        check: Check::Task(become_user),
    },
    Rule {
        id: "partial-become-play",
        also: &["partial-become"],
        weight: Weight::Warning,
        what: "`become_user` of a play without `become`",
        why: "nobody is become, unless a task says so",
        fix: "give `become: true` beside it",
        mends: false,
        check: Check::Play(become_user_of_play),
    },
    Rule {
        id: "no-verify",
        also: &[],
        weight: Weight::Warning,
        what: "certificates or signatures that are not checked",
        why: "whoever is in between can give anything: what is downloaded runs as root soon after",
        fix: "install the authority's certificate or the repository's key, and leave the argument out",
        mends: false,
        check: Check::Task(unverified),
    },
    Rule {
        id: "no-host-key-check",
        also: &[],
        weight: Weight::Warning,
        what: "`StrictHostKeyChecking=no`",
        why: "whoever answers is taken for the host, and is given passwords and secrets",
        fix: "`ssh-keyscan` into a known_hosts file that is looked at once, or `accept-new`",
        mends: false,
        check: Check::Scalar(host_key),
    },
];

fn ignored(task: &Task<'_>, found: &mut Found) {
    if let Some((key, value)) = task.entry("ignore_errors")
        && value.kind == Kind::Bool(true)
    {
        found.tell(key.place, 0, "every failure of this task is passed over");
    }
}

fn become_user(task: &Task<'_>, found: &mut Found) {
    let Some((key, _)) = task.entry("become_user") else { return };
    if task.inherits("become") {
        return;
    }
    let message = match task.in_play() {
        true => "`become_user` without `become`: nobody is become",
        false => "`become_user` without `become`: it depends on who includes this file",
    };
    found.tell(key.place, 0, message);
}

fn become_user_of_play(play: &Node, found: &mut Found) {
    let user = play.entries().iter().find(|(key, _)| key.as_str() == Some("become_user"));
    if let Some((key, _)) = user.filter(|_| play.get("become").is_none()) {
        found.tell(key.place, 0, "`become_user` without `become`");
    }
}

fn unverified(task: &Task<'_>, found: &mut Found) {
    let Some(call) = &task.call else { return };
    let off = |node: &Node, off: bool| node.kind == Kind::Bool(!off);
    let arguments = [
        ("validate_certs", true),
        ("sslverify", true),
        ("disable_gpg_check", false),
        ("allow_unauthenticated", false),
        ("gpgcheck", true),
        ("force_apt_get_unauthenticated", false),
    ];
    for (name, good) in arguments {
        if let Some(node) = call.arg(name).filter(|node| off(node, good)) {
            found.tell(node.place, 0, format!("`{name}` turns a check off"));
        }
    }
}

fn host_key(scalar: &Scalar<'_>, found: &mut Found) {
    let asks = |text: &str| {
        let text = text.to_ascii_lowercase().replace(' ', "=");
        text.contains("stricthostkeychecking=no") || text.contains("stricthostkeychecking=off")
    };
    if scalar.key.is_some_and(|key| key.contains("ssh")) && scalar.node.as_str().is_some_and(asks) {
        found.tell(scalar.node.place, 0, "keys of hosts are not checked");
    }
}
