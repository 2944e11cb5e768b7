//! The report of a spread run: what its shards tell becomes the lines, the JSON and the record of one run.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value as Json, json};

use super::event::{Event, HostName, Recap};
use super::lines::Lines;
use super::record::{Record, runs_folder};
use super::style::{Color, Style, terminal_size};
use super::{About, Format, Reporter, Reporting, json as as_json, secrets, tally};

/// How often each shard's state is told where no terminal shows it.
const PACE: Duration = Duration::from_secs(30);
/// Rows of a terminal that are left to what is told.
const SPARE_ROWS: usize = 6;

/// How a shard is, for those who watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub shard: usize,
    pub hosts: usize,
    /// The task that it is at, or what it waits for.
    pub state: String,
    pub is_settled: bool,
    pub changed: u64,
    /// Hosts that failed or could not be reached.
    pub failed: u64,
}

pub struct Merged {
    reporting: Reporting,
    style: Style,
    bar: Option<ProgressBar>,
    record: Option<Record>,
    /// Where the project lies for each shard, and where it lies here.
    projects: HashMap<usize, (String, String)>,
    shown: Vec<Row>,
    told: Instant,
    started: Instant,
}

impl Merged {
    /// Begins the report, and the record that `--retry` reads.
    pub fn begin(mut reporting: Reporting, about: About) -> Merged {
        reporting.lines.color = super::colors();
        let style = Style { on: reporting.lines.color };
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let watched = reporting.format == Format::Auto && std::io::stdout().is_terminal() && !dumb;
        if watched {
            reporting.lines.columns = terminal_size().1.saturating_sub(1);
        }
        let bar = watched.then(|| {
            let bar = ProgressBar::new_spinner();
            bar.set_style(ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar
        });
        let record = runs_folder().and_then(|folder| match Record::begin(&folder, about) {
            Ok(record) => Some(record),
            Err(error) => {
                super::warn(&format!("no record of this run is kept: make `{}`: {error}", folder.display()));
                None
            }
        });
        Merged {
            reporting,
            style,
            bar,
            record,
            projects: HashMap::new(),
            shown: Vec::new(),
            told: Instant::now(),
            started: Instant::now(),
        }
    }

    fn is_json(&self) -> bool {
        self.reporting.format == Format::Json
    }

    /// Shows a line above the progress.
    fn line(&self, text: &str, color: Option<Color>, errors: bool) {
        let text = secrets::hide(text);
        let text = color.map_or_else(|| text.clone().into_owned(), |color| self.style.paint(&text, color));
        // A terminal that is gone can't be told.
        match &self.bar {
            Some(bar) => bar.println(text),
            None if errors => {
                writeln!(std::io::stderr(), "{text}").ok();
            }
            None => {
                writeln!(std::io::stdout(), "{text}").and_then(|()| std::io::stdout().flush()).ok();
            }
        }
    }

    /// Tells something of a shard or of its pod.
    pub fn note(&mut self, text: &str) {
        if self.is_json() {
            let event = json!({"event": "note", "message": text, "time": as_json::now()});
            self.line(&secrets::hidden(event).0.to_string(), None, false);
        } else {
            self.line(text, Some(Color::Debug), false);
        }
    }

    pub fn warning(&mut self, text: &str) {
        self.line(&format!("[WARNING]: {text}"), Some(Color::Warn), true);
    }

    /// Shows what a pod has said that is none of our lines: it can't start, or has come to harm.
    pub fn said(&mut self, shard: usize, text: &str) {
        self.line(&format!("shard {shard}: {}", self.here(shard, text)), None, true);
    }

    /// Notes where the project lies for a shard, so that places are shown as they are here.
    pub fn project(&mut self, shard: usize, there: &str, here: &Path) {
        if !there.is_empty() {
            self.projects.insert(shard, (there.to_owned(), here.display().to_string()));
        }
    }

    fn here(&self, shard: usize, text: &str) -> String {
        match self.projects.get(&shard) {
            Some((there, here)) => text.replace(there.as_str(), here),
            None => text.to_owned(),
        }
    }

    fn all_here(&self, shard: usize, value: Json) -> Json {
        match value {
            Json::String(text) => Json::String(self.here(shard, &text)),
            Json::Array(items) => items.into_iter().map(|item| self.all_here(shard, item)).collect(),
            Json::Object(entries) => {
                Json::Object(entries.into_iter().map(|(key, value)| (key, self.all_here(shard, value))).collect())
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => value,
        }
    }

    /// Shows and keeps what a shard has told.
    pub fn event(&mut self, shard: usize, event: Json) {
        let mut event = self.all_here(shard, event);
        if let Some(entries) = event.as_object_mut() {
            entries.remove("n");
            entries.insert("shard".to_owned(), shard.into());
        }
        let (event, _) = secrets::hidden(event);
        if let Some(record) = &mut self.record {
            record.keep(&event);
        }
        if self.is_json() {
            return self.line(&event.to_string(), None, false);
        }
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        match event["event"].as_str().unwrap_or_default() {
            "result" | "item" | "replayed" => self.result(shard, &event),
            "warning" => self.warning(&text(&event["message"])),
            "deprecated" => {
                self.line(&format!("[DEPRECATION WARNING]: {}", text(&event["message"])), Some(Color::Deprecate), true);
            }
            "error" => self.line(&format!("[ERROR]: {}", text(&event["message"])), Some(Color::Error), true),
            "note" => self.line(&text(&event["message"]), Some(Color::Debug), false),
            _ => {}
        }
    }

    /// Shows a result as Ansible's default callback does, with its task before it.
    fn result(&self, shard: usize, event: &Json) {
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let (host, task) = (text(&event["host"]), text(&event["task"]["name"]));
        let ignored = event["ignored"] == true;
        let (word, color) = match event["status"].as_str().unwrap_or_default() {
            "failed" => ("fatal", Color::Error),
            "unreachable" => ("fatal", Color::Unreachable),
            "changed" => ("changed", Color::Changed),
            "skipped" => ("skipping", Color::Skip),
            _ => ("ok", Color::Ok),
        };
        if word == "fatal" && !ignored {
            let place = text(&event["task"]["place"]);
            self.line(&format!("[ERROR]: Task failed: {}\nOrigin: {place}", text(&event["reason"])), Some(color), true);
        }
        let how = match (word, event["status"].as_str()) {
            ("fatal", Some("unreachable")) => ": UNREACHABLE!",
            ("fatal", _) => ": FAILED!",
            (_, _) => "",
        };
        let item = event["item"].as_str().map(|item| format!(" (item={item})")).unwrap_or_default();
        let ignoring = if ignored { "\n...ignoring" } else { "" };
        let line = format!("{word}: [{host}]{how}{item} => {}{ignoring}", event["result"]);
        self.line(&format!("\nTASK [{task}] (shard {shard})"), None, false);
        self.line(&line, Some(color), false);
        if let Some(diff) = event["result"].get("diff") {
            self.line(&super::diff::render(diff, self.style), None, false);
        }
    }

    /// Tells that a shard is done.
    pub fn done(&mut self, shard: usize) {
        self.note(&format!("shard {shard}: done"));
    }

    /// Tells that a shard is lost for good, and keeps that for its hosts.
    pub fn lost(&mut self, shard: usize, why: &str, hosts: &[HostName]) {
        self.line(&format!("[ERROR]: shard {shard} is lost: {why}"), Some(Color::Error), true);
        for host in hosts {
            let message = format!("its shard was lost: {why}");
            let event = json!({
                "event": "result", "host": &**host, "shard": shard, "status": "unreachable", "ignored": false,
                "reason": message, "result": {"msg": message, "unreachable": true}, "duration_s": 0,
                "task": {"id": 0, "name": "", "action": "", "place": "", "handler": false, "check": false},
                "time": as_json::now(),
            });
            self.event(shard, event);
        }
    }

    /// Shows how the shards are.
    pub fn progress(&mut self, rows: &[Row]) {
        if let Some(bar) = &self.bar {
            bar.set_message(self.drawn(rows).join("\n"));
            bar.tick();
            return;
        }
        if self.is_json() || self.told.elapsed() < PACE || self.shown == rows {
            return;
        }
        self.told = Instant::now();
        for row in rows.iter().filter(|row| !row.is_settled && !self.shown.contains(row)) {
            self.line(&row_line(row), Some(Color::Debug), false);
        }
        self.shown = rows.to_vec();
    }

    fn drawn(&self, rows: &[Row]) -> Vec<String> {
        let (lines, columns) = terminal_size();
        let settled = rows.iter().filter(|row| row.is_settled).count();
        let sum = |count: fn(&Row) -> u64| rows.iter().map(count).sum::<u64>();
        let hosts: usize = rows.iter().map(|row| row.hosts).sum();
        let head = format!(
            "{settled} of {} shards done · {hosts} hosts · {} changed · {} failed · {}",
            rows.len(),
            sum(|row| row.changed),
            sum(|row| row.failed),
            tally::clock(self.started.elapsed()),
        );
        let mut drawn = vec![head];
        let at_work: Vec<&Row> = rows.iter().filter(|row| !row.is_settled).collect();
        let most = lines.saturating_sub(SPARE_ROWS).max(1);
        let cut = |text: String| text.chars().take(columns.saturating_sub(1)).collect::<String>();
        drawn.extend(at_work.iter().take(most).map(|row| cut(row_line(row))));
        if at_work.len() > most {
            drawn.push(format!("and {} more shards", at_work.len() - most));
        }
        drawn
    }

    /// Shows the recap of all shards, and ends the record.
    pub fn recap(mut self, whole: &Recap) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if let Some(record) = &mut self.record {
            record.close(whole);
        }
        let event = Event::Recap(whole.clone());
        if self.is_json() {
            return self.line(&secrets::hidden(as_json::of(&event)).0.to_string(), None, false);
        }
        let mut options = self.reporting.lines;
        options.condense_recap = self.bar.is_some() && options.verbosity == 0;
        Lines::new(std::io::stdout(), std::io::stderr(), options).take(&event);
    }

    /// Ends the report without a recap: the record stays that of a run that broke off.
    pub fn leave(self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn row_line(row: &Row) -> String {
    let Row { shard, hosts, state, changed, failed, .. } = row;
    format!("shard {shard}: {hosts} hosts, {changed} changed, {failed} failed: {state}")
}
