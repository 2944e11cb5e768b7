//! Forms that are gone, or going.

use crate::lint::{Check, Edit, Found, Rule, Scalar, Task, Weight};
use crate::yaml::Node;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "deprecated-include",
        also: &[],
        weight: Weight::Error,
        what: "`include`",
        why: "it was taken away in ansible-core 2.16: the play does not begin",
        fix: "`include_tasks`, or `import_tasks` where tags and conditions are to reach each task",
        mends: true,
        check: Check::Task(include),
    },
    Rule {
        id: "deprecated-keyword",
        also: &["deprecated-sudo", "deprecated-always-run"],
        weight: Weight::Error,
        what: "a keyword that is gone: `sudo`, `su`, `always_run`, `static`",
        why: "the play does not begin",
        fix: "`become` and `become_user`, `check_mode: false`, `import_tasks`",
        mends: true,
        check: Check::Task(keyword),
    },
    Rule {
        id: "deprecated-play-keyword",
        also: &[],
        weight: Weight::Error,
        what: "a play's keyword that is gone: `sudo`, `su`, `accelerate`",
        why: "the play does not begin",
        fix: "`become` and `become_user`",
        mends: true,
        check: Check::Play(play_keyword),
    },
    Rule {
        id: "deprecated-warn",
        also: &["deprecated-command-syntax"],
        weight: Weight::Error,
        what: "`warn` of `command` and `shell`",
        why: "the argument was taken away in ansible-core 2.14: the task fails",
        fix: "leave it out",
        mends: false,
        check: Check::Task(warn),
    },
    Rule {
        id: "deprecated-local-action",
        also: &[],
        weight: Weight::Note,
        what: "`local_action`, or `action` with the module's name in its text",
        why: "editors and checks do not see which module is called with what",
        fix: "the module's own name as the key, with `delegate_to: localhost` where it is to run here",
        mends: false,
        check: Check::Task(local_action),
    },
    Rule {
        id: "deprecated-connection-variable",
        also: &[],
        weight: Weight::Note,
        what: "a variable of the connection by its name of 1.x: `ansible_ssh_user`, `ansible_sudo_pass`",
        why: "the newer name wins where both are set, whichever is nearer to the host",
        fix: "`ansible_user`, `ansible_host`, `ansible_port`, `ansible_become_password` and their like",
        mends: false,
        check: Check::Scalar(variable),
    },
];

fn include(task: &Task<'_>, found: &mut Found) {
    let Some(call) = &task.call else { return };
    let written = call.written();
    if matches!(&*written, "include" | "ansible.builtin.include") {
        let edit = Edit::new(call.key.place, &*written, format!("{written}_tasks"));
        found.mend(call.key.place, 0, format!("`{written}` is gone"), vec![edit]);
    }
}

/// What keywords are called now, where that is all that changed.
const RENAMED: &[(&str, Option<&str>)] = &[
    ("sudo", Some("become")),
    ("sudo_user", Some("become_user")),
    ("su", None),
    ("su_user", None),
    ("always_run", None),
    ("static", None),
    ("accelerate", None),
];

fn renamed(node: &Node, found: &mut Found) {
    for (old, new) in RENAMED {
        let Some((key, _)) = node.entries().iter().find(|(key, _)| key.as_str() == Some(old)) else { continue };
        let edits = new.map(|new| Edit::new(key.place, *old, new)).into_iter().collect();
        found.mend(key.place, old.len(), format!("`{old}` is gone"), edits);
    }
}

fn keyword(task: &Task<'_>, found: &mut Found) {
    renamed(task.node, found);
}

fn play_keyword(play: &Node, found: &mut Found) {
    renamed(play, found);
}

fn warn(task: &Task<'_>, found: &mut Found) {
    let Some(call) = task.calls(&["command", "shell"]) else { return };
    if let Some((_, place)) = call.text("warn") {
        found.tell(place, 0, "`warn` is gone");
    }
}

fn local_action(task: &Task<'_>, found: &mut Found) {
    let Some(call) = &task.call else { return };
    let written = call.written();
    if matches!(&*written, "local_action" | "action") {
        found.tell(call.key.place, 0, format!("`{written}` instead of the module's own name"));
    }
}

const VARIABLES: &[(&str, &str)] = &[
    ("ansible_ssh_user", "ansible_user"),
    ("ansible_ssh_host", "ansible_host"),
    ("ansible_ssh_port", "ansible_port"),
    ("ansible_ssh_pass", "ansible_password"),
    ("ansible_sudo", "ansible_become"),
    ("ansible_sudo_user", "ansible_become_user"),
    ("ansible_sudo_pass", "ansible_become_password"),
    ("ansible_su_user", "ansible_become_user"),
    ("ansible_su_pass", "ansible_become_password"),
];

fn variable(scalar: &Scalar<'_>, found: &mut Found) {
    let Some((old, new)) = scalar.key.and_then(|key| VARIABLES.iter().find(|(old, _)| *old == key)) else { return };
    found.tell(scalar.node.place, 0, format!("`{old}` is called `{new}` since 2.0"));
}
