//! The record that each run leaves under the user's state folder, written as things happen. Described in
//! `docs/output.md`; what `--retry` and `--resume` read.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::Reporter;
use super::event::{Event, Outcome, Recap};
use super::{json, secrets};
use crate::source::Place;

/// How many runs are kept.
const KEPT: usize = 50;
pub(super) const EVENTS: &str = "events.jsonl";
pub(super) const SUMMARY: &str = "summary.json";
/// How much of a source's SHA-256 tells whether it has changed, in hexadecimal digits.
const FINGERPRINT: usize = 16;

/// What a record says of its run beside the events.
#[derive(Debug, Clone)]
pub struct About {
    /// Absolute.
    pub playbooks: Vec<PathBuf>,
    pub check: bool,
}

impl About {
    fn json(&self) -> Json {
        let playbooks: Vec<String> = self.playbooks.iter().map(|path| path.display().to_string()).collect();
        json!({"playbooks": playbooks, "check": self.check})
    }
}

/// Writes a run's record.
pub struct Record {
    folder: PathBuf,
    events: File,
    about: About,
    started: String,
    /// Fingerprints of the files that tasks stand in.
    sources: HashMap<PathBuf, String>,
    /// Whether a write failed: that is said once, and the run goes on.
    broken: bool,
}

/// Returns the folder that holds the records; `None` where the user has neither `XDG_STATE_HOME` nor `HOME`.
pub fn runs_folder() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| home().map(|home| home.join(".local/state")))?;
    Some(state.join("kubeon-run/runs"))
}

impl Record {
    /// Begins a record, and drops those of the oldest runs.
    ///
    /// # Errors
    /// When the folder or the file can't be made.
    pub fn begin(runs: &Path, about: About) -> io::Result<Record> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(runs)?;
        prune(runs);
        let name = format!("{}-{}", jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ"), std::process::id());
        let folder = runs.join(name);
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let events = private(&folder.join(EVENTS))?;
        let started = json::now();
        let mut record = Record { folder, events, about, started, sources: HashMap::new(), broken: false };
        let mut line = record.about.json();
        line["event"] = "run_start".into();
        line["version"] = env!("CARGO_PKG_VERSION").into();
        line["time"] = record.started.as_str().into();
        record.line(&line)?;
        Ok(record)
    }

    fn line(&mut self, value: &Json) -> io::Result<()> {
        self.events.write_all(format!("{value}\n").as_bytes())
    }

    fn write(&mut self, event: &Event) -> io::Result<()> {
        let (mut value, was_hidden) = secrets::hidden(json::of(event));
        if let Event::Result(outcome) | Event::Replayed(outcome) = event {
            value["hidden"] = (was_hidden || outcome.no_log).into();
            value["keeps"] = keeps(outcome).into();
            value["cacheable"] = outcome.result.contains_key("_ansible_facts_cacheable").into();
            value["source"] = self.source(outcome.task.place).into();
        }
        self.line(&value)?;
        if let Event::Recap(recap) = event {
            self.summary(recap)?;
        }
        Ok(())
    }

    /// Keeps an event that another process has told.
    pub(super) fn keep(&mut self, event: &Json) {
        let kept = self.line(event);
        self.note(kept);
    }

    /// Keeps the end of a run whose events other processes have told.
    pub(super) fn close(&mut self, recap: &Recap) {
        let kept = self.write(&Event::Recap(recap.clone()));
        self.note(kept);
    }

    /// Says once that a write has failed.
    fn note(&mut self, kept: io::Result<()>) {
        if let (Err(error), false) = (kept, self.broken) {
            self.broken = true;
            super::warn(&format!("write the run's record in `{}`: {error}", self.folder.display()));
        }
    }

    fn source(&mut self, place: Place) -> String {
        let path = place.path().unwrap_or_default();
        self.sources.entry(path).or_insert_with(|| fingerprint(place)).clone()
    }

    fn summary(&self, recap: &Recap) -> io::Result<()> {
        let mut summary = self.about.json();
        summary["started"] = self.started.as_str().into();
        summary["ended"] = json::now().into();
        summary["duration_s"] = recap.duration_s.into();
        summary["exit_code"] = recap.code.into();
        summary["interrupted"] = (recap.code == crate::execute::EXIT_INTERRUPTED).into();
        summary["hosts"] =
            recap.hosts.iter().map(|(host, counts)| (host.to_string(), json::counts_json(counts))).collect();
        let mut file = private(&self.folder.join(SUMMARY))?;
        let text = serde_json::to_string_pretty(&secrets::hidden(summary).0)?;
        file.write_all(format!("{text}\n").as_bytes())
    }
}

impl Reporter for Record {
    fn take(&mut self, event: &Event) {
        if self.broken || matches!(event, Event::Alive { .. }) {
            return;
        }
        let kept = self.write(event);
        self.note(kept);
    }
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Returns whether later tasks may use what this one returned.
fn keeps(outcome: &Outcome) -> bool {
    let facts = |result: &crate::value::Map| result.contains_key("ansible_facts");
    let rounds = outcome.result.get("results").and_then(|rounds| rounds.as_list());
    outcome.task.registers
        || facts(&outcome.result)
        || rounds.is_some_and(|rounds| rounds.iter().any(|round| round.as_map().is_some_and(|map| facts(map))))
}

/// Returns what tells whether the file that a task stands in has changed since.
pub fn fingerprint(place: Place) -> String {
    let Some(file) = place.file() else { return String::new() };
    let digest = Sha256::digest(file.source().text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()[..FINGERPRINT].to_owned()
}

/// Returns the folders of runs, oldest first: `20261231T235959Z-1234`.
pub(super) fn runs(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_run))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

fn is_run(name: &str) -> bool {
    let Some((time, pid)) = name.split_once('-') else { return false };
    time.len() == 16
        && time.ends_with('Z')
        && time.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'T' | b'Z'))
        && !pid.is_empty()
        && pid.bytes().all(|byte| byte.is_ascii_digit())
}

/// Leaves room for one more run.
fn prune(folder: &Path) {
    let found = runs(folder);
    for old in found.iter().take((found.len() + 1).saturating_sub(KEPT)) {
        // One that can't be removed now goes the next time.
        fs::remove_dir_all(old).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_runs_are_taken_for_such() {
        assert!(is_run("20261231T235959Z-1"));
        assert!(!is_run("20261231T235959Z-"));
        assert!(!is_run("notes-1"));
    }

    #[test]
    fn keeps_the_last_runs() {
        let folder = std::env::temp_dir().join(format!("kubeon-record-{}", std::process::id()));
        for number in 0..60 {
            fs::create_dir_all(folder.join(format!("20260101T0000{number:02}Z-7"))).expect("a folder");
        }
        fs::create_dir_all(folder.join("mine")).expect("a folder");
        Record::begin(&folder, About { playbooks: Vec::new(), check: false }).expect("a record");
        assert_eq!(runs(&folder).len(), KEPT);
        assert!(folder.join("mine").is_dir());
        fs::remove_dir_all(&folder).expect("the folder is ours");
    }
}
