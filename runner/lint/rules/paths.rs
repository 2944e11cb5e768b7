//! Paths that lead elsewhere than they seem to.

use std::path::Path;

use crate::lint::{Check, Edit, Found, Rule, Task, Weight, text};
use crate::source::Place;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "no-relative-paths",
        also: &[],
        weight: Weight::Warning,
        what: "`src` that names `files/` or `templates/`, or climbs with `../`",
        why: "`copy` looks into `files/` and `template` into `templates/` by themselves; what climbs depends on which file includes which",
        fix: "name the file alone; `{{ role_path }}` or `{{ playbook_dir }}` before what lies elsewhere",
        mends: true,
        check: Check::Task(source),
    },
    Rule {
        id: "relative-dest",
        also: &[],
        weight: Weight::Warning,
        what: "a relative path on a host",
        why: "it lies wherever the login lands: another folder for another user, and for `become`",
        fix: "an absolute path, or one from `~`",
        mends: false,
        check: Check::Task(target),
    },
];

/// Modules, and the folder that each looks into.
const SOURCES: &[(&str, &str)] = &[
    ("copy", "files/"),
    ("template", "templates/"),
    ("script", "files/"),
    ("unarchive", "files/"),
    ("assemble", "files/"),
];

fn is_on_host(task: &Task<'_>) -> bool {
    let remote = task.call.as_ref().and_then(|call| call.text("remote_src"));
    remote.is_some_and(|(text, _)| !matches!(&*text.to_ascii_lowercase(), "no" | "false"))
}

fn source(task: &Task<'_>, found: &mut Found) {
    let Some(call) = task.call.as_ref().filter(|_| !is_on_host(task)) else { return };
    let Some((_, folder)) = SOURCES.iter().find(|(name, _)| *name == call.name) else { return };
    let Some(node) = call.arg("src") else { return };
    let Some(written) = node.as_str() else { return };
    if written.starts_with("../") {
        found.tell(node.place, written.chars().count(), "`src` climbs out of its folder");
        return;
    }
    let Some(rest) = written.strip_prefix(folder) else { return };
    let message = format!("`{}` looks into `{folder}` by itself", call.name);
    let edits = match lies_beside(node.place, folder, rest) {
        true => {
            let quote = usize::from(text::is_quoted(node));
            vec![Edit::new(node.place.right(quote), *folder, "")]
        }
        false => Vec::new(),
    };
    found.mend(node.place, written.chars().count(), message, edits);
}

/// Returns whether the file is where it will be looked for: in the folder beside the playbook, or in the role's.
fn lies_beside(place: Place, folder: &str, name: &str) -> bool {
    let Some(file) = place.path() else { return false };
    let own = file.parent().unwrap_or(Path::new(""));
    let role = own.parent().filter(|_| own.ends_with("tasks") || own.ends_with("handlers"));
    // One of this name right there would be found first.
    let base = role.unwrap_or(own);
    base.join(folder).join(name).exists() && !base.join(name).exists() && !own.join(name).exists()
}

fn target(task: &Task<'_>, found: &mut Found) {
    let Some(call) = task.calls(&["copy", "template", "file", "get_url", "lineinfile", "blockinfile", "unarchive"])
    else {
        return;
    };
    let here = task.inherits("delegate_to") || task.inherits("connection");
    for name in ["dest", "path"] {
        let Some(node) = call.arg(name).filter(|_| !here) else { continue };
        let Some(text) = node.as_str() else { continue };
        if !text.is_empty() && !text.starts_with(['/', '~', '{', '$']) {
            found.tell(node.place, text.chars().count(), format!("`{text}` on a host is relative"));
        }
    }
}
