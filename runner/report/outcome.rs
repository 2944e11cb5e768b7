//! What of an outcome may be shown, and how a failure explains itself; the same for every reporter.

use serde_json::{Map as JsonMap, Value as Json};

use super::event::{Outcome, Status, TaskInfo};
use crate::source::Place;
use crate::value::Map;

/// What stands for a result that `no_log` hides, word for word as in Ansible.
const CENSORED: &str = "the output has been hidden due to the fact that 'no_log: true' was specified for this result";
/// What stands for an item that `no_log` hides.
pub const CENSORED_ITEM: &str = "(censored due to no_log)";
/// How many lines before a task show where it stands.
const LINES_BEFORE: u32 = 2;

/// Returns a result without what is for the program alone.
pub fn visible(result: &Map) -> JsonMap<String, Json> {
    let mut shown = result.to_json();
    shown.retain(|key, _| !key.starts_with("_ansible_") && key != "_diagnostic" && key != "_task_name");
    shown
}

/// Returns what is shown of a result that `no_log` hides.
pub fn censored(outcome: &Outcome) -> JsonMap<String, Json> {
    let changed = outcome.result.get("changed").is_some_and(crate::value::Value::truthy);
    [("censored".to_owned(), CENSORED.into()), ("changed".to_owned(), changed.into())].into_iter().collect()
}

/// Returns whether a task brings other tasks: its success shows in them.
pub fn includes(task: &TaskInfo) -> bool {
    matches!(task.action.rsplit('.').next(), Some("include_tasks" | "include_role"))
}

/// Returns whether a task is a `meta`.
pub fn is_meta(task: &TaskInfo) -> bool {
    task.action.rsplit('.').next() == Some("meta")
}

/// Returns the message of a failure.
pub fn reason(outcome: &Outcome) -> String {
    if outcome.no_log {
        return "the reason is hidden by `no_log`".to_owned();
    }
    let message = outcome.result.get("msg").map(ToString::to_string).unwrap_or_default();
    match (message.trim(), outcome.status) {
        ("", Status::Unreachable) => "the host could not be reached".to_owned(),
        ("", _) => "no message".to_owned(),
        (message, _) => message.to_owned(),
    }
}

/// Returns why a task failed, and the place in the user's text: that of the mistake where it is known, else the task's.
pub fn explanation(outcome: &Outcome) -> String {
    let title = format!("[ERROR]: Task failed: {}", reason(outcome));
    match outcome.result.get("_diagnostic") {
        Some(shown) if !outcome.no_log => {
            // Its first line repeats the message.
            let shown = shown.to_string();
            let rest: Vec<&str> = shown.lines().skip_while(|line| !line.trim_start().starts_with("-->")).collect();
            format!("{title}\n{}", rest.join("\n"))
        }
        Some(_) | None => match origin(outcome.task.place) {
            Some(origin) => format!("{title}\n{origin}"),
            None => title,
        },
    }
}

/// Returns a message with where it comes from, as ansible-core shows it.
pub fn with_origin(message: &str, place: Place) -> String {
    match origin(place) {
        Some(origin) => format!("{message}\n{origin}\n"),
        None => message.to_owned(),
    }
}

/// Returns a place as ansible-core shows where something comes from: the lines before it, its own, a caret.
pub fn origin(place: Place) -> Option<String> {
    let source = place.file()?.source();
    let first = place.line.saturating_sub(LINES_BEFORE).max(1);
    let digits = place.line.to_string().len();
    let mut shown = format!("Origin: {}\n\n", position(place));
    let lines = source.text.lines().enumerate().skip(first as usize - 1).take((place.line - first) as usize + 1);
    for (index, line) in lines {
        shown.push_str(&format!("{:>digits$} {line}", index + 1).trim_end().replace('\t', " "));
        shown.push('\n');
    }
    let caret = " ".repeat(digits + place.column as usize);
    shown.push_str(&format!("{caret}^ column {}", place.column));
    Some(shown)
}

/// Returns `file:line:column`, the file's path absolute.
pub fn position(place: Place) -> String {
    format!("{}:{}:{}", path_of(place), place.line, place.column)
}

/// Returns the absolute path of a place's file; empty for nowhere.
pub fn path_of(place: Place) -> String {
    let path = place.path().unwrap_or_default();
    std::path::absolute(&path).unwrap_or(path).display().to_string()
}
