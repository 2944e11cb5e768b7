//! Events as JSON, one to a line: `--output json`, and what the run's record holds. Described in `docs/output.md`.

use std::io::Write;

use serde_json::{Map as JsonMap, Value as Json, json};

use super::Reporter;
use super::event::{Counts, Event, Outcome, Part, Recap, Status, TaskInfo, TaskKind};
use super::outcome::{CENSORED_ITEM, censored, position, reason, visible};
use super::secrets;

/// Writes each event as a line of JSON.
pub struct JsonLines<W: Write> {
    out: W,
}

impl<W: Write> JsonLines<W> {
    pub fn new(out: W) -> JsonLines<W> {
        JsonLines { out }
    }
}

impl<W: Write + Send> Reporter for JsonLines<W> {
    fn take(&mut self, event: &Event) {
        // A reader that is gone can't be told.
        writeln!(self.out, "{}", secrets::hidden(of(event)).0).ok();
        self.out.flush().ok();
    }
}

/// Returns an event as JSON.
pub fn of(event: &Event) -> Json {
    let mut value = match event {
        Event::PlayStart { name, hosts, place, ordinal, tasks } => json!({
            "event": "play_start", "play": name, "number": ordinal, "hosts": names(hosts), "tasks": tasks,
            "place": position(*place),
        }),
        Event::NoHosts => json!({"event": "no_hosts"}),
        Event::NoHostsLeft => json!({"event": "no_hosts_left"}),
        Event::TaskStart(task) => json!({"event": "task_start", "task": task_json(task)}),
        Event::HostStart { host, task } => json!({"event": "host_start", "host": &**host, "task_id": task.id}),
        Event::Alive { host, line } => json!({"event": "alive", "host": &**host, "line": line}),
        Event::Item(outcome) => outcome_json("item", outcome),
        Event::Result(outcome) => outcome_json("result", outcome),
        Event::Replayed(outcome) => outcome_json("replayed", outcome),
        Event::Retry { host, task, left, .. } => {
            json!({"event": "retry", "host": &**host, "task_id": task.id, "task": task.name, "left": left})
        }
        Event::Included { file, hosts, item } => {
            json!({"event": "included", "file": file, "hosts": names(hosts), "item": item})
        }
        Event::Notified { host, handler } => json!({"event": "notified", "host": &**host, "handler": handler}),
        Event::Note(text) => json!({"event": "note", "message": text}),
        Event::Warning(text) => json!({"event": "warning", "message": text}),
        Event::Deprecated(text) => json!({"event": "deprecated", "message": text}),
        Event::Error(text) => json!({"event": "error", "message": text}),
        Event::Asking(_) => json!({"event": "asking"}),
        Event::Part(part) => part_json(part),
        Event::Recap(recap) => recap_json(recap),
    };
    if let Json::Object(entries) = &mut value {
        entries.insert("time".to_owned(), now().into());
    }
    value
}

fn part_json(part: &Part) -> Json {
    match part {
        Part::Begins { index, count, hosts, digest, project } => json!({
            "event": "part_begins", "index": index, "count": count, "hosts": hosts, "digest": digest,
            "project": project,
        }),
        Part::Waits { play, batch } => json!({"event": "part_waits", "play": play, "batch": batch}),
        Part::Ends { play, batch, hosts, lost } => {
            json!({"event": "part_ends", "play": play, "batch": batch, "hosts": hosts, "lost": lost})
        }
    }
}

/// Returns the time as RFC 3339 has it, in UTC with milliseconds.
pub fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

fn names(hosts: &[super::HostName]) -> Vec<&str> {
    hosts.iter().map(|host| &**host).collect()
}

fn task_json(task: &TaskInfo) -> Json {
    json!({
        "id": task.id,
        "name": task.name,
        "action": task.action,
        "place": position(task.place),
        "handler": task.kind == TaskKind::Handler,
        "check": task.check,
    })
}

/// Returns a status as a word.
pub fn word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Changed => "changed",
        Status::Skipped => "skipped",
        Status::Failed => "failed",
        Status::Unreachable => "unreachable",
    }
}

fn outcome_json(event: &str, outcome: &Outcome) -> Json {
    let mut entries = JsonMap::new();
    let mut put = |key: &str, value: Json| entries.insert(key.to_owned(), value);
    put("event", event.into());
    put("host", (*outcome.host).into());
    if let Some(delegate) = &outcome.delegated {
        put("delegated_to", (**delegate).into());
    }
    put("task", task_json(&outcome.task));
    put("status", word(outcome.status).into());
    put("ignored", outcome.ignored.into());
    if let Some(item) = &outcome.item {
        put("item", if outcome.no_log { CENSORED_ITEM.into() } else { item.as_str().into() });
    }
    if matches!(outcome.status, Status::Failed | Status::Unreachable) {
        put("reason", reason(outcome).into());
    }
    put("duration_s", ((outcome.duration_s * 1000.0).round() / 1000.0).into());
    let result = if outcome.no_log { censored(outcome) } else { visible(&outcome.result) };
    put("result", Json::Object(result));
    Json::Object(entries)
}

/// Returns a host's counts under the recap's names.
pub fn counts_json(counts: &Counts) -> Json {
    json!({
        "ok": counts.ok, "changed": counts.changed, "unreachable": counts.unreachable, "failed": counts.failed,
        "skipped": counts.skipped, "rescued": counts.rescued, "ignored": counts.ignored,
    })
}

fn recap_json(recap: &Recap) -> Json {
    let hosts: JsonMap<String, Json> =
        recap.hosts.iter().map(|(host, counts)| (host.to_string(), counts_json(counts))).collect();
    json!({
        "event": "recap", "hosts": hosts, "duration_s": recap.duration_s, "custom": recap.custom.to_json(),
        "exit_code": recap.code,
        "round_trips": recap.round_trips.iter().map(|(host, trips)| (host.to_string(), (*trips).into())).collect::<JsonMap<_, Json>>(),
    })
}
