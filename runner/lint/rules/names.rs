//! Names, by which people find their way in the output of a run.

use crate::lint::{Check, Found, Rule, Task, Weight};
use crate::yaml::Node;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "name",
        also: &[],
        weight: Weight::Note,
        what: "a task without a name",
        why: "the output, `--start-at-task` and `notify` know it by its module alone",
        fix: "give `name` with what it is for",
        mends: false,
        check: Check::Task(task),
    },
    Rule {
        id: "name-play",
        also: &["name"],
        weight: Weight::Note,
        what: "a play without a name",
        why: "the output knows it by the pattern of its hosts alone",
        fix: "give `name` with what it is for",
        mends: false,
        check: Check::Play(play),
    },
];

fn is_missing(node: &Node) -> bool {
    node.get("name").is_none_or(|name| name.is_null() || name.as_str().is_some_and(|name| name.trim().is_empty()))
}

fn task(task: &Task<'_>, found: &mut Found) {
    // What these do stands in their output.
    let speaks = ["meta", "include_tasks", "import_tasks", "include_role", "import_role", "include_vars"];
    let Some(call) = task.call.as_ref().filter(|call| !speaks.contains(&call.name.as_str())) else { return };
    if is_missing(task.node) {
        found.tell(task.node.place, 0, format!("a task without a name calls `{}`", call.written()));
    }
}

fn play(play: &Node, found: &mut Found) {
    if is_missing(play) && play.get("hosts").is_some() {
        found.tell(play.place, 0, "a play without a name");
    }
}
