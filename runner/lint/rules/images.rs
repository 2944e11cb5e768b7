//! Versions that move by themselves.

use crate::lint::{Check, Found, Rule, Scalar, Task, Weight};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "package-latest",
        also: &[],
        weight: Weight::Warning,
        what: "`state: latest` of a package",
        why: "two hosts of one run, or one host tomorrow, get other versions, and a driver or a kernel changes when nobody meant it",
        fix: "`state: present`, with the version in the name where it matters; upgrades in a playbook of their own",
        mends: false,
        check: Check::Task(package),
    },
    Rule {
        id: "image-latest",
        also: &[],
        weight: Weight::Warning,
        what: "an image by `latest`, or by no tag at all",
        why: "nodes run what they happened to pull; what runs can't be told, and can't be put back",
        fix: "name the version's tag, or better its digest",
        mends: false,
        check: Check::Scalar(image),
    },
];

const MODULES: &[&str] =
    &["apt", "yum", "dnf", "dnf5", "package", "pip", "zypper", "apk", "pacman", "homebrew", "npm", "gem", "snap"];

fn package(task: &Task<'_>, found: &mut Found) {
    let Some(call) = task.calls(MODULES) else { return };
    if let Some((_, place)) = call.text("state").filter(|(state, _)| state == "latest") {
        found.tell(place, 0, "whatever is newest is installed");
    }
}

fn image(scalar: &Scalar<'_>, found: &mut Found) {
    let Some(text) = scalar.node.as_str().filter(|_| scalar.key == Some("image")) else { return };
    // A word alone may be anything that is called an image: a path has a registry or a repository.
    if crate::value::may_be_template(text) || text.contains('@') || !text.contains('/') && !text.contains(':') {
        return;
    }
    let last = text.rsplit('/').next().unwrap_or(text);
    let file = [".img", ".iso", ".qcow2", ".raw", ".png", ".jpg", ".svg"].iter().any(|ending| last.ends_with(ending));
    let message = match last.split_once(':') {
        Some((_, "latest")) => format!("`{text}` is whatever is newest"),
        None if !file && !text.starts_with(['/', '.', '~']) => format!("`{text}` names no version"),
        Some(_) | None => return,
    };
    found.tell(scalar.node.place, text.chars().count(), message);
}
