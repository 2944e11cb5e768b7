//! Names that one part of a play uses for another: handlers.

use super::visit;
use crate::playbook::{Item, Play};
use crate::source::{Diagnostic, nearest};
use crate::value::{Value, may_be_template};

/// Adds a problem for every `notify` that no handler answers to. Handlers of roles that are included during the run
/// are not known yet, so that a play with such includes is not judged. Unless `strict`, it is a warning, since a task that
/// never changes anything never notifies anybody: what is notified and not there fails its host.
pub(super) fn check(play: &Play, strict: bool, problems: &mut Vec<Diagnostic>) {
    let mut known: Vec<String> = Vec::new();
    let mut open = false;
    visit(&play.handlers, &mut |handler| {
        if let Some(name) = handler.name() {
            let name = name.value.to_string();
            open |= may_be_template(&name);
            known.extend(handler.role().into_iter().flat_map(|role| role.qualified(&name)));
            known.push(name);
        }
        for topic in handler.listen.iter().flat_map(items) {
            let topic = topic.to_string();
            known.extend(handler.role().into_iter().flat_map(|role| role.qualified(&topic)));
            known.push(topic);
        }
        open |= crate::action::includes(&handler.action.name);
    });
    let sections: [&[Item]; 4] = [&play.pre_tasks, &play.tasks, &play.post_tasks, &play.handlers];
    for section in sections {
        visit(section, &mut |task| open |= &*task.action.name == "include_role");
    }
    if open {
        return;
    }
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

fn items(value: &Value) -> Vec<Value> {
    match value {
        Value::List(items) => items.to_vec(),
        one => vec![one.clone()],
    }
}
