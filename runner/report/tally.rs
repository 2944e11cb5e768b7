//! How a task went on all its hosts, condensed: counts, who changed, what was said, differences.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indexmap::IndexMap;

use super::diff;
use super::event::{HostName, Outcome, Status, TaskInfo};
use super::outcome::{explanation, includes, reason, visible};
use super::style::{Color, Style};

/// Each host of a play and its number in the play's order, by which hosts are listed whoever came first.
pub type Order = Arc<HashMap<HostName, usize>>;

/// A task while hosts come to its end.
pub struct Tally {
    pub task: Arc<TaskInfo>,
    order: Order,
    pub started: Instant,
    /// Ok, changed, skipped, failed, unreachable, ignored.
    ok: usize,
    skipped: usize,
    ignored: usize,
    changed: Vec<HostName>,
    lost: Vec<HostName>,
    /// What hosts said, each text once.
    said: IndexMap<String, HashSet<HostName>>,
    diffs: IndexMap<String, HashSet<HostName>>,
}

impl Tally {
    pub fn new(task: Arc<TaskInfo>, order: Order) -> Tally {
        Tally {
            task,
            order,
            started: Instant::now(),
            ok: 0,
            skipped: 0,
            ignored: 0,
            changed: Vec::new(),
            lost: Vec::new(),
            said: IndexMap::new(),
            diffs: IndexMap::new(),
        }
    }

    /// Returns how many hosts have come to its end.
    pub fn done(&self) -> usize {
        self.ok + self.skipped + self.ignored + self.changed.len() + self.lost.len()
    }

    /// Counts a host's result.
    pub fn add(&mut self, outcome: &Outcome, style: Style) {
        match outcome.status {
            Status::Failed | Status::Unreachable if outcome.ignored => self.ignored += 1,
            Status::Ok => self.ok += 1,
            Status::Changed => self.changed.push(outcome.host.clone()),
            Status::Skipped => self.skipped += 1,
            Status::Failed | Status::Unreachable => self.lost.push(outcome.host.clone()),
        }
        if !outcome.is_loop {
            self.add_item(outcome, style);
        }
    }

    /// Keeps what a result, or one round of a loop, has to show.
    pub fn add_item(&mut self, outcome: &Outcome, style: Style) {
        if outcome.no_log {
            return;
        }
        if let Some(found) = outcome.result.get("diff") {
            keep(&mut self.diffs, diff::render(&found.to_json(), style), &outcome.host);
        }
        for warning in outcome.result.get("warnings").and_then(|list| list.as_list()).into_iter().flat_map(|l| l.iter())
        {
            keep(&mut self.said, style.paint(&format!("[WARNING]: {warning}"), Color::Warn), &outcome.host);
        }
        if outcome.verbose_always && matches!(outcome.status, Status::Ok | Status::Changed) {
            keep(&mut self.said, said(outcome), &outcome.host);
        }
    }

    /// Returns the line that tells of a failure at once.
    pub fn failure(outcome: &Outcome) -> String {
        let word = if outcome.status == Status::Unreachable { "unreachable" } else { "failed" };
        let item = match &outcome.item {
            Some(item) if !outcome.no_log => format!(" (item={item})"),
            Some(_) | None => String::new(),
        };
        let reason = reason(outcome);
        format!(
            "  {word}: [{}]{item} {}: {}",
            outcome.host,
            outcome.task.name,
            reason.lines().next().unwrap_or_default()
        )
    }

    /// Returns the lines that tell how it went.
    pub fn lines(&self, style: Style, columns: usize) -> Vec<String> {
        let counts = [
            (self.ok, "ok", Color::Ok),
            (self.changed.len(), "changed", Color::Changed),
            (self.skipped, "skipped", Color::Skip),
            (self.ignored, "failed but ignored", Color::Warn),
            (self.lost.len(), "failed", Color::Error),
        ];
        let told: Vec<String> = counts
            .iter()
            .filter(|(count, _, _)| *count > 0)
            .map(|(count, word, color)| style.paint(&format!("{count} {word}"), *color))
            .collect();
        // What includes bring shows by itself; a task that nobody came to has nothing to tell.
        if told.is_empty() || (includes(&self.task) && self.lost.is_empty()) {
            return Vec::new();
        }
        let took = clock(self.started.elapsed());
        let mut lines = vec![format!("TASK [{}] {} · {took}", self.task.name, told.join(", "))];
        if !self.changed.is_empty() {
            let list = listed(&self.names(&self.changed), columns.saturating_sub(12));
            lines.push(style.paint(&format!("  changed: {list}"), Color::Changed));
        }
        for (text, hosts) in &self.diffs {
            lines.push(format!("  {}:", listed(&self.names(hosts), columns.saturating_sub(4))));
            lines.push(text.trim_end_matches('\n').to_owned());
        }
        for (text, hosts) in &self.said {
            let list = listed(&self.names(hosts), columns.saturating_sub(4));
            if text.contains('\n') {
                lines.push(format!("  {list}:\n{text}"));
            } else {
                lines.push(format!("  {list}: {text}"));
            }
        }
        lines
    }

    fn names<'a>(&self, hosts: impl IntoIterator<Item = &'a HostName>) -> Vec<&'a str> {
        let mut names: Vec<&str> = hosts.into_iter().map(|host| &**host).collect();
        names.sort_by_key(|name| (self.order.get(*name).copied().unwrap_or(usize::MAX), *name));
        names
    }
}

fn keep(kept: &mut IndexMap<String, HashSet<HostName>>, text: String, host: &HostName) {
    if !text.is_empty() {
        kept.entry(text).or_default().insert(host.clone());
    }
}

/// Returns what `debug` and its like say, lines as lines.
fn said(outcome: &Outcome) -> String {
    use crate::value::Value;
    let text = match outcome.result.get("msg") {
        Some(Value::List(lines)) if lines.iter().all(|line| line.as_str().is_some()) => {
            lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        }
        Some(Value::Str(text)) => text.as_str().to_owned(),
        Some(_) | None => {
            let mut shown = visible(&outcome.result);
            for key in ["changed", "failed", "skipped", "invocation"] {
                shown.remove(key);
            }
            serde_json::to_string_pretty(&shown).unwrap_or_default()
        }
    };
    text.trim_end_matches('\n').to_owned()
}

/// Returns a failure with everything that helps to understand it.
pub fn in_full(outcome: &Outcome) -> String {
    let mut text = format!("{}\n{}", Tally::failure(outcome).trim_start(), explanation(outcome));
    if outcome.no_log {
        return text;
    }
    for key in ["cmd", "rc", "stdout", "stderr", "module_stdout", "module_stderr", "exception"] {
        let Some(value) = outcome.result.get(key) else { continue };
        let value = match value.as_list() {
            Some(words) => words.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            None => value.to_string(),
        };
        let value = value.trim_end();
        if value.contains('\n') {
            let lines: String = value.lines().map(|line| format!("\n    {line}")).collect();
            text.push_str(&format!("\n{key}:{lines}"));
        } else if !value.is_empty() {
            text.push_str(&format!("\n{key}: {value}"));
        }
    }
    text
}

/// Returns names with commas, as many as fit, and how many there are beyond them.
pub fn listed(names: &[&str], columns: usize) -> String {
    let mut text = String::new();
    for (index, name) in names.iter().enumerate() {
        let rest = format!(" and {} more", names.len() - index);
        if index > 0 && text.chars().count() + name.chars().count() + rest.len() + 2 > columns {
            return text + &rest;
        }
        if index > 0 {
            text.push_str(", ");
        }
        text.push_str(name);
    }
    text
}

/// Returns a time as people read it: `0.4 s`, `12 s`, `3:07`, `1:02:03`.
pub fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0..10) => format!("{:.1} s", duration.as_secs_f64()),
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_fit_are_counted() {
        let hosts: Vec<String> = (0..200).map(|number| format!("n{number}")).collect();
        let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
        assert_eq!(listed(&names, 30), "n0, n1, n2, n3 and 196 more");
        assert_eq!(listed(&names[..2], 30), "n0, n1");
    }

    #[test]
    fn times_are_short() {
        let shown: Vec<String> =
            [0.44, 12.0, 187.0, 3723.0].map(Duration::from_secs_f64).into_iter().map(clock).collect();
        assert_eq!(shown, ["0.4 s", "12 s", "3:07", "1:02:03"]);
    }
}
