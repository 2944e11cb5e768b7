//! Many small runs in bad weather: what the controller tells is compared with what the far ends did.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::runs::{self, Fleet, Outcome, Run};
use crate::weather::{Random, Weather};

const TASKS: u64 = 6;
/// A run of milliseconds that takes so long hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs `count` seeds from `first`; returns how many runs told something untrue.
pub fn run(folder: &Path, first: u64, count: u64, hosts: usize) -> Outcome<usize> {
    let mut wrong = 0;
    let (mut lost, mut executed) = (0, 0);
    for seed in first..first + count {
        match one(&folder.join(seed.to_string()), seed, hosts) {
            Ok((its_lost, its_executed)) => {
                lost += its_lost;
                executed += its_executed;
                fs::remove_dir_all(folder.join(seed.to_string()))?;
            }
            Err(error) => {
                wrong += 1;
                crate::say(&format!("seed {seed}: {error}"));
            }
        }
    }
    crate::say(&format!(
        "{count} seeds: {executed} tasks executed, {lost} connections lost, {wrong} runs that told something untrue"
    ));
    Ok(wrong)
}

fn one(folder: &Path, seed: u64, hosts: usize) -> Outcome<(usize, usize)> {
    let mut random = Random(seed);
    let strategy = if random.below(2) == 0 { "linear" } else { "free" };
    let forks = 1 + usize::try_from(random.below(8))?;
    let weather =
        Weather { seed, delay_us: 2000, slow_percent: 10, slow_ms: 10, lost_percent: random.below(80), tasks: TASKS };
    runs::write(folder, hosts, TASKS, strategy, true)?;
    let fleet = Fleet::start(folder, 1, &weather)?;
    let run = Run { folder, workers: 1, forks, retry: false, limit: LIMIT };
    let (used, ..) = run.go()?;
    let (notes, _) = fleet.end()?;
    let events = runs::events(folder)?;
    let failed = compare(&notes, &events, hosts)?;
    if (used.code == 0) != failed.is_empty() {
        return Err(format!("the exit status is {}, and {failed:?} were lost", used.code).into());
    }
    let lost = notes.iter().filter(|note| note[0] == "lost").count();
    let executed = notes.iter().filter(|note| note[0] == "executed").count();

    let calm = Weather { lost_percent: 0, ..weather };
    let fleet = Fleet::start(folder, 1, &calm)?;
    Run { retry: true, ..run }.go()?;
    let (notes, _) = fleet.end()?;
    let again: BTreeSet<String> = notes.iter().map(|note| note[1].clone()).collect();
    if again != failed {
        return Err(format!("`--retry` took {again:?}, and {failed:?} were lost").into());
    }
    if !failed.is_empty() {
        let lost = compare(&notes, &runs::events(folder)?, failed.len())?;
        if !lost.is_empty() {
            return Err(format!("in calm weather {lost:?} were lost").into());
        }
    }
    Ok((lost, executed))
}

/// Compares a run's record with the notes of the far ends; returns the hosts that the run lost for good.
///
/// # Errors
/// The first thing that does not fit.
pub fn compare(notes: &[Vec<String>], events: &[Value], hosts: usize) -> Outcome<BTreeSet<String>> {
    let executed = runs::counted(notes, "executed");
    let broken: BTreeSet<&str> = notes.iter().filter(|note| note[0] == "lost").map(|note| note[1].as_str()).collect();
    let mut told: BTreeMap<String, &str> = BTreeMap::new();
    let mut failed = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for event in events.iter().filter(|event| event["event"] == "result") {
        let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
        let (host, task) = (text(&event["host"]), text(&event["task"]["name"]));
        let key = format!("{host} {task}");
        let status = event["status"].as_str().unwrap_or_default();
        seen.insert(host.clone());
        if failed.contains(&host) {
            return Err(format!("`{key}` was told of after its host was lost").into());
        }
        let did = executed.get(key.as_str()).copied().unwrap_or(0);
        match status {
            "ok" if did == 1 && event["result"]["ping"] == key.as_str() => {}
            "unreachable" if did <= 1 && broken.contains(host.as_str()) => {
                if event["ignored"] != true {
                    failed.insert(host);
                }
            }
            _ => return Err(format!("`{key}` was executed {did} times, and told as {event}").into()),
        }
        if told.insert(key.clone(), status).is_some() {
            return Err(format!("`{key}` was told of twice").into());
        }
    }
    if let Some((key, times)) = executed.iter().find(|(key, times)| **times != 1 || !told.contains_key(**key)) {
        return Err(format!("`{key}` was executed {times} times, and the run tells {:?}", told.get(*key)).into());
    }
    // Each break is met by exactly one task.
    let breaks = notes.iter().filter(|note| note[0] == "lost").count();
    let unreachable = told.values().filter(|status| **status == "unreachable").count();
    if breaks < unreachable {
        return Err(
            format!("{breaks} connections were lost, and {unreachable} tasks are told to be unreachable").into()
        );
    }
    if seen.len() != hosts {
        return Err(format!("{} of {hosts} hosts are told of", seen.len()).into());
    }
    if let Some(note) = notes.iter().find(|note| note[0] == "broken") {
        return Err(format!("the simulation itself failed: {}", note.join(" ")).into());
    }
    Ok(failed)
}
