//! The lines of Ansible's default callback: what scripts and people read where no progress is drawn.

use std::collections::HashSet;
use std::io::Write;

use serde_json::Value as Json;

use super::outcome::{CENSORED_ITEM, censored, explanation, includes, is_meta, path_of, visible};

use super::Reporter;
use super::diff;
use super::event::{Event, Outcome, Recap, Status, TaskInfo, TaskKind};
use super::recap;
use super::secrets;
use super::style::{Color, Style};

/// How wide banners are where no terminal says otherwise. Source: `Display.columns` of ansible-core.
const COLUMNS: usize = 79;

/// What a person asked to see.
#[derive(Debug, Clone, Copy)]
pub struct LineOptions {
    pub verbosity: u8,
    /// Whether notes are shown without `-vv`: `ANSIBLE_DEBUG`.
    pub debug: bool,
    pub color: bool,
    pub columns: usize,
    pub show_skipped: bool,
    pub show_ok: bool,
    /// `result_format = yaml`.
    pub yaml: bool,
    /// Whether the values of `set_stats` are shown at the end.
    pub show_custom_stats: bool,
    /// Whether the recap of many hosts lists only those with news.
    pub condense_recap: bool,
}

impl Default for LineOptions {
    fn default() -> LineOptions {
        LineOptions {
            verbosity: 0,
            color: false,
            columns: COLUMNS,
            show_skipped: true,
            show_ok: true,
            yaml: false,
            show_custom_stats: false,
            debug: false,
            condense_recap: false,
        }
    }
}

pub struct Lines<W: Write, E: Write> {
    out: W,
    errors: E,
    options: LineOptions,
    style: Style,
    /// The announcement under which lines stand now.
    banner: Option<u64>,
    /// Explanations that were given: hosts that fail alike do not repeat them.
    explained: HashSet<String>,
}

impl<W: Write, E: Write> Lines<W, E> {
    pub fn new(out: W, errors: E, options: LineOptions) -> Lines<W, E> {
        Lines { out, errors, options, style: Style { on: options.color }, banner: None, explained: HashSet::new() }
    }

    /// Shows an event.
    pub(super) fn show(&mut self, event: &Event) {
        match event {
            Event::PlayStart { name, .. } => {
                self.banner = None;
                self.head(&format!("PLAY [{name}]"));
            }
            Event::NoHosts => self.line("skipping: no hosts matched", Color::Skip),
            Event::NoHostsLeft => self.head("NO MORE HOSTS LEFT"),
            // No result of it follows.
            Event::TaskStart(task) if is_meta(task) => self.task(task),
            // Tasks that an earlier run did for every host do not show.
            Event::TaskStart(_) | Event::Alive { .. } | Event::Asking(_) | Event::Replayed(_) | Event::Part(_) => {}
            Event::HostStart { task, .. } => self.task(task),
            Event::Item(outcome) => self.item(outcome),
            Event::Result(outcome) => self.result(outcome),
            Event::Retry { host, task, left, result } => {
                let mut line = format!("FAILED - RETRYING: [{host}]: {} ({left} retries left).", task.name);
                if self.options.verbosity > 1 {
                    line.push_str(&format!("Result was: {}", self.written(Json::Object(visible(result)), false)));
                }
                self.line(&line, Color::Debug);
            }
            Event::Included { file, hosts, item } => {
                let hosts: Vec<&str> = hosts.iter().map(|host| &**host).collect();
                let item = item.as_ref().map(|item| format!(" => (item={item})")).unwrap_or_default();
                self.line(&format!("included: {file} for {}{item}", hosts.join(", ")), Color::Skip);
            }
            Event::Notified { handler, .. } => {
                if self.options.verbosity > 1 {
                    self.line(&format!("Notification for handler {handler} has been saved."), Color::Debug);
                }
            }
            Event::Note(text) => {
                if self.options.verbosity > 1 || self.options.debug {
                    self.line(text, Color::Debug);
                }
            }
            Event::Warning(text) => self.error_line(&format!("[WARNING]: {text}"), Color::Warn),
            Event::Deprecated(text) => self.error_line(&format!("[DEPRECATION WARNING]: {text}"), Color::Deprecate),
            Event::Error(text) => {
                let text = if text.starts_with("error") { text.clone() } else { format!("[ERROR]: {text}") };
                self.error_line(&text, Color::Error);
            }
            Event::Recap(recap) => self.recap(recap),
        }
        self.out.flush().ok();
    }

    fn line(&mut self, text: &str, color: Color) {
        let text = self.style.paint(&secrets::hide(text), color);
        // A terminal that is gone can't be told.
        writeln!(self.out, "{text}").ok();
    }

    fn error_line(&mut self, text: &str, color: Color) {
        let text = self.style.paint(&secrets::hide(text), color);
        writeln!(self.errors, "{text}").ok();
    }

    fn head(&mut self, text: &str) {
        let text = secrets::hide(text).into_owned();
        let stars = self.options.columns.saturating_sub(text.chars().count()).max(3);
        writeln!(self.out, "\n{text} {}", "*".repeat(stars)).ok();
    }

    fn task(&mut self, task: &TaskInfo) {
        if self.banner == Some(task.id) {
            return;
        }
        self.banner = Some(task.id);
        let kind = match task.kind {
            TaskKind::Task => "TASK",
            TaskKind::Handler => "RUNNING HANDLER",
        };
        self.head(&format!("{kind} [{}]", task.name));
        if self.options.verbosity > 1 {
            self.line(&format!("task path: {}:{}", path_of(task.place), task.place.line), Color::Debug);
        }
    }

    fn item(&mut self, outcome: &Outcome) {
        if includes(&outcome.task) && matches!(outcome.status, Status::Ok | Status::Changed) {
            return;
        }
        self.task(&outcome.task);
        self.warnings(outcome);
        self.diffs(outcome);
        let label = outcome.item.as_deref().unwrap_or_default();
        let label = if outcome.no_log { CENSORED_ITEM } else { label };
        let host = host_label(outcome);
        let verbose = self.verbose_part(outcome);
        match outcome.status {
            Status::Ok => self.line(&format!("ok: [{host}] => (item={label}){verbose}"), Color::Ok),
            Status::Changed => self.line(&format!("changed: [{host}] => (item={label}){verbose}"), Color::Changed),
            Status::Skipped if !self.options.show_skipped => {}
            Status::Skipped => self.line(&format!("skipping: [{host}] => (item={label}) {verbose}"), Color::Skip),
            Status::Failed => {
                self.explain(outcome);
                let result = self.shown(outcome);
                self.line(&format!("failed: [{host}] (item={label}) => {result}"), Color::Error);
            }
            Status::Unreachable => {
                self.explain(outcome);
                let result = self.shown(outcome);
                self.line(&format!("fatal: [{host}]: UNREACHABLE! => {result}"), Color::Unreachable);
            }
        }
    }

    fn result(&mut self, outcome: &Outcome) {
        let failed = matches!(outcome.status, Status::Failed | Status::Unreachable);
        if includes(&outcome.task) && !failed && outcome.status != Status::Skipped {
            return;
        }
        self.task(&outcome.task);
        if !outcome.is_loop {
            self.warnings(outcome);
            self.diffs(outcome);
        }
        let host = host_label(outcome);
        match outcome.status {
            Status::Ok | Status::Changed if outcome.is_loop => {}
            Status::Ok if !self.options.show_ok => {}
            Status::Ok => {
                let verbose = self.verbose_part(outcome);
                self.line(&format!("ok: [{host}]{verbose}"), Color::Ok);
            }
            Status::Changed => {
                let verbose = self.verbose_part(outcome);
                self.line(&format!("changed: [{host}]{verbose}"), Color::Changed);
            }
            Status::Skipped if !self.options.show_skipped => {}
            Status::Skipped => {
                let verbose = self.verbose_part(outcome);
                self.line(&format!("skipping: [{host}]{verbose}"), Color::Skip);
            }
            // The rounds told it.
            Status::Failed if outcome.is_loop => {}
            Status::Failed => {
                self.explain(outcome);
                let result = self.shown(outcome);
                self.line(&format!("fatal: [{host}]: FAILED! => {result}"), Color::Error);
            }
            Status::Unreachable if outcome.is_loop => {}
            Status::Unreachable => {
                self.explain(outcome);
                let result = self.shown(outcome);
                self.line(&format!("fatal: [{host}]: UNREACHABLE! => {result}"), Color::Unreachable);
            }
        }
        if failed && outcome.ignored {
            self.line("...ignoring", Color::Skip);
        }
    }

    fn warnings(&mut self, outcome: &Outcome) {
        if outcome.no_log {
            return;
        }
        let warnings = outcome.result.get("warnings").and_then(|list| list.as_list()).cloned();
        for warning in warnings.iter().flat_map(|list| list.iter()) {
            self.error_line(&format!("[WARNING]: {warning}"), Color::Warn);
        }
    }

    fn diffs(&mut self, outcome: &Outcome) {
        if outcome.no_log {
            return;
        }
        if let Some(found) = outcome.result.get("diff") {
            let text = diff::render(&found.to_json(), self.style);
            if !text.is_empty() {
                write!(self.out, "{}", secrets::hide(&text)).ok();
            }
        }
    }

    /// Says why a task failed and where it was written; hosts that fail alike share it.
    fn explain(&mut self, outcome: &Outcome) {
        let text = explanation(outcome);
        if self.explained.insert(text.clone()) {
            self.line(&format!("{text}\n"), Color::Error);
        }
    }

    fn verbose_part(&self, outcome: &Outcome) -> String {
        if self.options.verbosity > 0 || outcome.verbose_always {
            format!(" => {}", self.shown(outcome))
        } else {
            String::new()
        }
    }

    fn shown(&self, outcome: &Outcome) -> String {
        if outcome.no_log {
            return self.written(Json::Object(censored(outcome)), false);
        }
        self.json(outcome)
    }

    fn json(&self, outcome: &Outcome) -> String {
        let mut shown = visible(&outcome.result);
        for key in ["diff", "warnings", "deprecations", "exception", "refused", "failed", "skipped"] {
            shown.remove(key);
        }
        if self.options.verbosity < 3 {
            shown.remove("invocation");
        }
        if outcome.task.action.rsplit('.').next() == Some("debug") && outcome.status == Status::Ok {
            let item = outcome.result.get("ansible_loop_var").map(ToString::to_string);
            // A message stands for itself; beside a variable, Ansible tells the item whose it is.
            let item = item.as_deref().filter(|_| shown.contains_key("msg"));
            for key in ["changed", "ansible_loop_var", "ansible_index_var"].into_iter().chain(item) {
                shown.remove(key);
            }
        }
        self.written(Json::Object(shown), outcome.verbose_always)
    }

    fn written(&self, result: Json, always: bool) -> String {
        let sorted = sorted(result);
        if self.options.yaml {
            let text = serde_yaml::to_string(&sorted).unwrap_or_default();
            return text.trim_end().lines().map(|line| format!("\n    {line}")).collect();
        }
        if always || self.options.verbosity > 2 { indented(&sorted) } else { one_line(&sorted) }
    }

    fn recap(&mut self, recap: &Recap) {
        self.head("PLAY RECAP");
        let condense = self.options.condense_recap;
        for line in if condense { recap::condensed(recap, self.style) } else { recap::lines(recap, self.style) } {
            writeln!(self.out, "{}", secrets::hide(&line)).ok();
        }
        writeln!(self.out).ok();
        if self.options.show_custom_stats && !recap.custom.is_empty() {
            self.head("CUSTOM STATS: ");
            let custom = one_line(&sorted(Json::Object(recap.custom.to_json())));
            writeln!(self.out, "\tRUN: {}", secrets::hide(&custom)).ok();
        }
    }
}

impl<W: Write + Send, E: Write + Send> Reporter for Lines<W, E> {
    fn take(&mut self, event: &Event) {
        self.show(event);
    }
}

pub(super) fn host_label(outcome: &Outcome) -> String {
    match &outcome.delegated {
        Some(delegate) => format!("{} -> {delegate}", outcome.host),
        None => outcome.host.to_string(),
    }
}

pub(super) fn sorted(value: Json) -> Json {
    match value {
        Json::Object(entries) => {
            let mut entries: Vec<(String, Json)> = entries.into_iter().collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Json::Object(entries.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        Json::Array(items) => Json::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// Writes JSON as Python's `json.dumps` does: a blank after `:` and `,`.
pub(super) fn one_line(value: &Json) -> String {
    struct Spaced;
    impl serde_json::ser::Formatter for Spaced {
        fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
            writer.write_all(if first { b"" } else { b", " })
        }
        fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
            writer.write_all(if first { b"" } else { b", " })
        }
        fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
            writer.write_all(b": ")
        }
    }
    written(value, Spaced)
}

pub(super) fn indented(value: &Json) -> String {
    written(value, serde_json::ser::PrettyFormatter::with_indent(b"    "))
}

fn written(value: &Json, formatter: impl serde_json::ser::Formatter) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    serde::Serialize::serialize(value, &mut serializer).expect("JSON is written to memory");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_spaced_as_python_does() {
        assert_eq!(one_line(&serde_json::json!({"a": [1, 2], "b": {}})), r#"{"a": [1, 2], "b": {}}"#);
    }
}
