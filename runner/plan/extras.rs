//! Variables of the command line that nothing reads, and that are nearly the name of one that is read.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::visit;
use crate::playbook::{Play, Role};
use crate::source::{self, Diagnostic, Place, nearest};
use crate::value::{Map, Value};

/// The largest file of a role that is searched for a name.
const MOST_BYTES: u64 = 1 << 20;

/// Adds a warning for each variable of `-e` that occurs nowhere in what was read, where a role or a play has a variable
/// that is spelt almost the same: what was meant by it would be passed over without a word.
pub(super) fn check(plays: &[Play], extra_vars: &Map, problems: &mut Vec<Diagnostic>) {
    let unread: Vec<&str> =
        extra_vars.keys().filter_map(Value::as_str).filter(|name| !source::any_holds(name)).collect();
    if unread.is_empty() {
        return;
    }
    let mut roles: BTreeMap<&Path, &Arc<Role>> = BTreeMap::new();
    for play in plays {
        for items in [&play.pre_tasks, &play.tasks, &play.post_tasks, &play.handlers] {
            visit(items, &mut |task| {
                roles.extend(task.role().map(|role| (role.path.as_path(), role)));
            });
        }
    }
    let of_roles = roles.values().flat_map(|role| role.defaults.keys().chain(role.vars.keys()));
    let known: Vec<&str> =
        plays.iter().flat_map(|play| play.parent.vars.keys()).chain(of_roles).filter_map(Value::as_str).collect();
    for name in unread {
        let Some(meant) = nearest(name, known.iter().copied()) else { continue };
        if roles.keys().any(|path| occurs_below(path, name)) {
            continue;
        }
        let message = format!("`-e {name}`: nothing that was read uses a variable of this name");
        problems.push(Diagnostic::warning(Place::default(), message).help(format!("did you mean `{meant}`?")));
    }
}

/// Returns whether a file in a folder, such as a template that only a run reads, holds the name.
fn occurs_below(folder: &Path, name: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| match entry.metadata() {
        Ok(about) if about.is_dir() => occurs_below(&entry.path(), name),
        Ok(about) if about.is_file() && about.len() <= MOST_BYTES => {
            std::fs::read(entry.path()).is_ok_and(|bytes| source::holds(&String::from_utf8_lossy(&bytes), name))
        }
        Ok(_) | Err(_) => false,
    })
}
