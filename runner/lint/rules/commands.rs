//! Commands that say nothing of what they changed, or do by hand what a module does.

use crate::action;
use crate::lint::{Check, Found, Rule, Task, Weight};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "no-changed-when",
        also: &[],
        weight: Weight::Warning,
        what: "a command that does not say when it changed something",
        why: "it is `changed` in every run, notifies handlers every time, and a second run proves nothing",
        fix: "give `changed_when`, `creates` or `removes`; `changed_when: false` for one that only looks",
        mends: false,
        check: Check::Task(no_changed_when),
    },
    Rule {
        id: "command-instead-of-module",
        also: &[],
        weight: Weight::Warning,
        what: "a command for what a module does",
        why: "the module looks first, changes only what differs, and can say in check mode what it would do",
        fix: "use the module that the message names",
        mends: false,
        check: Check::Task(instead_of_module),
    },
];

const COMMANDS: &[&str] = &["command", "shell", "raw", "script"];

fn no_changed_when(task: &Task<'_>, found: &mut Found) {
    let Some(call) = task.calls(COMMANDS).filter(|_| !task.is_handler) else { return };
    // What runs in the background is asked for by another task.
    let says =
        task.inherits("changed_when") || ["creates", "removes"].iter().any(|argument| call.text(argument).is_some());
    if !says {
        found.tell(call.key.place, 0, format!("`{}` without `changed_when`", call.written()));
    }
}

/// Programs, the first of whose words that follow (any, where none is named) is what the module does.
const PROGRAMS: &[(&str, &[&str], &str)] = &[
    ("apt-get", &["install", "remove", "purge", "update", "upgrade"], "apt"),
    ("apt", &["install", "remove", "purge", "update", "upgrade"], "apt"),
    ("apt-key", &["add"], "get_url"),
    ("apt-mark", &["hold", "unhold"], "dpkg_selections"),
    ("yum", &["install", "remove", "update"], "dnf"),
    ("dnf", &["install", "remove", "update"], "dnf"),
    ("rpm", &["-i", "-e", "-U", "--import"], "dnf"),
    ("pip", &["install", "uninstall"], "pip"),
    ("pip3", &["install", "uninstall"], "pip"),
    (
        "systemctl",
        &["start", "stop", "restart", "reload", "enable", "disable", "mask", "unmask", "daemon-reload"],
        "systemd",
    ),
    ("service", &[], "service"),
    ("git", &["clone", "pull", "checkout"], "git"),
    ("mkdir", &[], "file"),
    ("rm", &[], "file"),
    ("rmdir", &[], "file"),
    ("chmod", &[], "file"),
    ("chown", &[], "file"),
    ("chgrp", &[], "file"),
    ("ln", &[], "file"),
    ("touch", &[], "file"),
    ("useradd", &[], "user"),
    ("usermod", &[], "user"),
    ("userdel", &[], "user"),
    ("groupadd", &[], "group"),
    ("groupdel", &[], "group"),
    ("modprobe", &[], "modprobe"),
    ("mount", &[], "mount"),
    ("umount", &[], "mount"),
    ("sysctl", &["-w"], "sysctl"),
    ("hostnamectl", &["set-hostname"], "hostname"),
    ("timedatectl", &["set-timezone"], "timezone"),
    ("sed", &["-i"], "lineinfile"),
    ("unzip", &[], "unarchive"),
    ("ufw", &["allow", "deny", "enable", "disable"], "ufw"),
    ("iptables", &["-A", "-I", "-D"], "iptables"),
    ("kubectl", &["apply", "create", "delete"], "k8s"),
    ("kubectl", &["label"], "k8s_label"),
    ("kubectl", &["drain", "cordon"], "k8s_drain"),
    ("helm", &["install", "upgrade", "uninstall"], "helm"),
    ("helm", &["repo"], "helm_repository"),
    ("update-alternatives", &["--set", "--install"], "alternatives"),
];

fn instead_of_module(task: &Task<'_>, found: &mut Found) {
    let Some((line, node)) = task.calls(&["command", "shell"]).and_then(|call| call.line()) else { return };
    // A program of a longer script is part of something that no module does.
    let script = line.trim().contains('\n') || line.contains("&&") || line.contains('|') || line.contains(';');
    let mut words = line.split_whitespace().peekable();
    let Some(first) = words.next().filter(|_| !script) else { return };
    let program = first.rsplit('/').next().unwrap_or(first);
    let rest: Vec<&str> = words.collect();
    let does = |verbs: &[&str]| verbs.is_empty() || rest.iter().any(|word| verbs.contains(word));
    let module = PROGRAMS.iter().find(|(name, verbs, _)| *name == program && does(verbs)).map(|(_, _, module)| *module);
    if let Some(module) = module.filter(|module| action::canonical(module).is_some()) {
        found.tell(node.place, 0, format!("`{program}` does what the module `{module}` does"));
    }
}
