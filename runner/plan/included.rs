//! What includes name, as far as it can be told before a host comes to them.

use std::path::PathBuf;
use std::sync::Arc;

use crate::execute::role_use;
use crate::playbook::role::RoleUse;
use crate::playbook::{Parent, ParentKind, Play, Task, task_file};
use crate::source::Place;

/// How deep includes are followed: what is deeper is read when a host comes to it.
pub(super) const DEPTH_LIMIT: usize = 10;

/// What one include names.
pub(super) enum Included {
    Role(Box<RoleUse>),
    /// A file of tasks that is there.
    Tasks(PathBuf),
    /// A file of tasks that is not there, by the name that was given, and where it was.
    Absent(String, Place),
    /// Nothing, which is told elsewhere.
    Nothing,
    /// What a template says during the run.
    Unknown,
}

impl Included {
    pub fn of(task: &Task, play: &Play) -> Included {
        let args = &task.action.args;
        if args.iter().any(|(_, value)| value.holds_template()) {
            return Included::Unknown;
        }
        if &*task.action.name == "include_role" {
            let used = role_use(args, task.action.place_of("name").1);
            return used.map_or(Included::Nothing, |used| Included::Role(Box::new(used)));
        }
        let given = ["file", "_raw_params"].iter().find_map(|key| Some((key, args.get(key)?.to_string())));
        let Some((key, name)) = given else { return Included::Nothing };
        let role = task.role().map(|role| role.path.clone());
        match task_file(&name, &task.file, role.as_deref(), &play.folder, task.is_handler) {
            Some(path) => Included::Tasks(path),
            None => Included::Absent(name, task.action.place_of(key).1),
        }
    }
}

/// Returns what the tasks inherit from that an include brings.
pub(super) fn parent_of_included(task: &Task) -> Arc<Parent> {
    Arc::new(Parent {
        kind: ParentKind::Include,
        vars: task.vars.clone(),
        parent: Some(task.parent.clone()),
        ..Parent::default()
    })
}
