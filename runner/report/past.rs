//! Records of earlier runs, read for `--retry` and `--resume`.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::record::{EVENTS, SUMMARY, runs};
use crate::execute::{Done, Replay};
use crate::report::{HostName, Status};
use crate::value::{Map, Value};

/// The last run of some playbooks.
#[derive(Debug)]
pub struct Past {
    /// When it began.
    pub started: String,
    pub check: bool,
    /// Whether it was stopped, or broke off, before its end.
    pub interrupted: bool,
    /// Hosts that failed or could not be reached.
    pub lost: Vec<String>,
    /// What was done, for [`Replay`].
    done: HashMap<(usize, HostName), VecDeque<Done>>,
}

/// Finds the last run of exactly these playbooks, given by absolute paths.
///
/// # Errors
/// A sentence for a person when there is none, or when it can't be read, or still goes on.
pub fn last(folder: &Path, playbooks: &[PathBuf]) -> Result<Past, String> {
    for run in runs(folder).iter().rev() {
        let Ok(text) = fs::read_to_string(run.join(EVENTS)) else { continue };
        // What a crash cut off is no line of JSON.
        let mut events = text.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok());
        let Some(start) = events.next() else { continue };
        let paths: Vec<PathBuf> = texts(&start["playbooks"]).into_iter().map(PathBuf::from).collect();
        if paths != playbooks {
            continue;
        }
        let summary = fs::read_to_string(run.join(SUMMARY)).ok().and_then(|text| serde_json::from_str(&text).ok());
        if summary.is_none()
            && let Some(pid) = still_running(run)
        {
            return Err(format!("the last run of these playbooks still goes on, as process {pid}"));
        }
        return Ok(read(&start, events, summary.as_ref()));
    }
    let names: Vec<String> = playbooks.iter().map(|path| format!("`{}`", path.display())).collect();
    Err(format!("no earlier run of {} is recorded in `{}`", names.join(", "), folder.display()))
}

/// Returns the process of a run that has not ended.
fn still_running(run: &Path) -> Option<u32> {
    let name = run.file_name()?.to_str()?;
    let pid: u32 = name.split_once('-')?.1.parse().ok()?;
    let said = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    (said.trim_end() == "kubeon-run" && pid != std::process::id()).then_some(pid)
}

fn read(start: &Json, events: impl Iterator<Item = Json>, summary: Option<&Json>) -> Past {
    let mut past = Past {
        started: start["time"].as_str().unwrap_or_default().to_owned(),
        check: start["check"] == true,
        interrupted: summary.is_none_or(|summary| summary["interrupted"] == true),
        lost: Vec::new(),
        done: HashMap::new(),
    };
    let mut ordinal = 0;
    // Hosts whose record is not followed any further: they failed.
    let mut closed: HashSet<HostName> = HashSet::new();
    for event in events {
        match event["event"].as_str() {
            Some("play_start") => ordinal = event["number"].as_u64().unwrap_or(0) as usize,
            Some("result" | "replayed") => {
                let Some((host, done)) = done(&event) else { continue };
                let failed = matches!(done.status, Status::Failed | Status::Unreachable) && !done.ignored;
                if failed && closed.insert(host.clone()) {
                    past.lost.push(host.to_string());
                }
                if !closed.contains(&host) {
                    past.done.entry((ordinal, host)).or_default().push_back(done);
                }
            }
            Some(_) | None => {}
        }
    }
    if let Some(hosts) = summary.and_then(|summary| summary["hosts"].as_object()) {
        let lost = |counts: &Json| counts["failed"].as_u64() > Some(0) || counts["unreachable"].as_u64() > Some(0);
        past.lost = hosts.iter().filter(|(_, counts)| lost(counts)).map(|(host, _)| host.clone()).collect();
    }
    past.lost.sort();
    forget_what_was_hidden(&mut past.done);
    past
}

/// Later tasks may use what a hidden result held, and that can't be had from the record: from that task on, every host
/// runs again.
fn forget_what_was_hidden(done: &mut HashMap<(usize, HostName), VecDeque<Done>>) {
    let lost = |done: &Done| done.hidden && done.keeps;
    let first = done.iter().filter(|(_, tasks)| tasks.iter().any(lost)).map(|((ordinal, _), _)| *ordinal).min();
    let Some(first) = first else { return };
    done.retain(|(ordinal, _), _| *ordinal <= first);
    let in_play = |(ordinal, _): &(usize, HostName)| *ordinal == first;
    let places: HashSet<String> = done
        .iter()
        .filter(|(key, _)| in_play(key))
        .flat_map(|(_, tasks)| tasks.iter().filter(|done| lost(done)).map(|done| done.place.clone()))
        .collect();
    for tasks in done.iter_mut().filter(|(key, _)| in_play(key)).map(|(_, tasks)| tasks) {
        if let Some(at) = tasks.iter().position(|done| places.contains(&done.place)) {
            tasks.truncate(at);
        }
    }
}

fn done(event: &Json) -> Option<(HostName, Done)> {
    let status = match event["status"].as_str()? {
        "ok" => Status::Ok,
        "changed" => Status::Changed,
        "skipped" => Status::Skipped,
        "failed" => Status::Failed,
        "unreachable" => Status::Unreachable,
        _ => return None,
    };
    let mut result = Map::from_json(event["result"].as_object()?.clone());
    if event["cacheable"] == true {
        result.insert("_ansible_facts_cacheable", Value::Bool(true));
    }
    let done = Done {
        place: event["task"]["place"].as_str()?.to_owned(),
        source: event["source"].as_str().unwrap_or_default().to_owned(),
        status,
        ignored: event["ignored"] == true,
        delegated: event["delegated_to"].as_str().map(HostName::from),
        hidden: event["hidden"] == true,
        keeps: event["keeps"] == true,
        result,
    };
    Some((HostName::from(event["host"].as_str()?), done))
}

impl Past {
    /// Returns how many tasks of how many hosts need not run again.
    pub fn count(&self) -> (usize, usize) {
        let hosts: HashSet<&HostName> = self.done.keys().map(|(_, host)| host).collect();
        (self.done.values().map(VecDeque::len).sum(), hosts.len())
    }

    /// Returns what was done, to be passed over.
    pub fn replay(self) -> Replay {
        Replay::new(self.done)
    }
}

fn texts(list: &Json) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}
