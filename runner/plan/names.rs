//! Names that one part of a play uses for another: handlers.

use std::collections::HashSet;
use std::sync::Arc;

use super::included::{DEPTH_LIMIT, Included, parent_of_included};
use super::visit;
use crate::action::includes;
use crate::playbook::{Item, Loader, Play, Task, role};
use crate::source::{Diagnostic, nearest};
use crate::value::{Value, may_be_template};

/// Adds a problem for every `notify` that no handler answers to, those of roles that are included during the run among
/// them; a play with includes that can't be followed yet is not judged. Unless `strict`, it is a warning, since a task that
/// never changes anything never notifies anybody: what is notified and not there fails its host.
pub(super) fn check(play: &Play, loader: &Loader, strict: bool, problems: &mut Vec<Diagnostic>) {
    let sections: [&[Item]; 4] = [&play.pre_tasks, &play.tasks, &play.post_tasks, &play.handlers];
    let mut notifies = false;
    sections.iter().for_each(|section| visit(section, &mut |task| notifies |= !task.notifies().is_empty()));
    if !notifies {
        return;
    }
    let mut handlers =
        Handlers { play, loader: None, fresh: loader, seen: HashSet::new(), known: Vec::new(), open: false };
    handlers.add(&play.handlers);
    sections.iter().for_each(|section| handlers.bring(section, 0));
    if handlers.open {
        return;
    }
    let known = handlers.known;
    for section in sections {
        visit(section, &mut |task| {
            for name in task.notifies().iter().flat_map(items) {
                let Value::Str(text) = &name else { continue };
                if name.holds_template() || known.iter().any(|known| known == text.as_str()) {
                    continue;
                }
                let place = if text.place.is_nowhere() { task.place } else { text.place };
                let message = format!("no handler is named `{0}`, and none listens to `{0}`", text.as_str());
                let mut problem = Diagnostic::warning(place, message).width(text.as_str().chars().count());
                if let Some(meant) = nearest(text.as_str(), known.iter().map(String::as_str)) {
                    problem = problem.help(format!("did you mean `{meant}`?"));
                }
                if strict {
                    problem.severity = crate::source::Severity::Error;
                }
                problems.push(problem);
            }
        });
    }
}

/// The handlers that a play has, or comes to have.
struct Handlers<'a> {
    play: &'a Play,
    fresh: &'a Loader,
    /// Made when something has to be read.
    loader: Option<Loader>,
    seen: HashSet<String>,
    /// Names and topics.
    known: Vec<String>,
    /// Whether there may be others.
    open: bool,
}

impl Handlers<'_> {
    fn add(&mut self, handlers: &[Item]) {
        visit(handlers, &mut |handler| {
            if let Some(name) = handler.name() {
                let name = name.value.to_string();
                self.open |= may_be_template(&name);
                self.known.extend(handler.role().into_iter().flat_map(|role| role.qualified(&name)));
                self.known.push(name);
            }
            for topic in handler.listen.iter().flat_map(items) {
                let topic = topic.to_string();
                self.known.extend(handler.role().into_iter().flat_map(|role| role.qualified(&topic)));
                self.known.push(topic);
            }
            self.open |= includes(&handler.action.name);
        });
    }

    /// Follows the includes among tasks.
    fn bring(&mut self, tasks: &[Item], depth: usize) {
        let mut found: Vec<Arc<Task>> = Vec::new();
        visit(tasks, &mut |task| found.extend(includes(&task.action.name).then(|| task.clone())));
        for task in found {
            if self.open {
                return;
            }
            self.include(&task, depth);
        }
    }

    fn include(&mut self, task: &Task, depth: usize) {
        let included = if depth < DEPTH_LIMIT { Included::of(task, self.play) } else { Included::Unknown };
        let parent = parent_of_included(task);
        let loader = self.loader.get_or_insert_with(|| self.fresh.fresh());
        let mut handlers = Vec::new();
        let brought = match included {
            // What is not there may be, by the time a host comes to it.
            Included::Unknown | Included::Absent(..) => {
                self.open = true;
                return;
            }
            Included::Nothing => return,
            Included::Tasks(path) => {
                if !self.seen.insert(path.display().to_string()) {
                    return;
                }
                loader.tasks(&path, &parent, task.is_handler)
            }
            Included::Role(used) => {
                if !self.seen.insert(format!("{} {:?} {:?}", used.name, used.tasks_from, used.handlers_from)) {
                    return;
                }
                let loaded = loader.role(&used, &parent, &self.play.folder, &role::line_of(task.role()));
                self.open |= loaded.roles.is_empty();
                handlers = loaded.handlers;
                loaded.items
            }
        };
        // Static imports of roles within it.
        handlers.extend(loader.take_brought().handlers);
        self.add(&handlers);
        self.bring(&brought, depth + 1);
    }
}

fn items(value: &Value) -> Vec<Value> {
    match value {
        Value::List(items) => items.to_vec(),
        one => vec![one.clone()],
    }
}
