//! What a part of a spread run tells whoever holds the parts together: numbered lines of JSON, few of them. What failed is
//! told in full and at once, the rest in counts, once a second at most, and each host's counts at the end.

use std::collections::HashSet;
use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::Reporter;
use super::event::{Counts, Event, HostName, Outcome, Recap, Status};
use super::{json, secrets};

/// How often counts are told while they change.
const PACE: Duration = Duration::from_secs(1);
/// How often a sign of life is given.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How many hosts one line of the recap holds.
const CHUNK: usize = 500;

pub struct PartLines<W: Write> {
    out: W,
    verbosity: u8,
    /// Of the next line.
    number: u64,
    task: String,
    results: u64,
    changed: u64,
    failed: HashSet<HostName>,
    unreachable: HashSet<HostName>,
    told: Instant,
    /// Whether there are counts that nobody was told of.
    news: bool,
}

impl<W: Write> PartLines<W> {
    pub fn new(out: W, verbosity: u8) -> PartLines<W> {
        PartLines {
            out,
            verbosity,
            number: 1,
            task: String::new(),
            results: 0,
            changed: 0,
            failed: HashSet::new(),
            unreachable: HashSet::new(),
            told: Instant::now(),
            news: true,
        }
    }

    fn line(&mut self, value: Json) {
        let (mut value, _) = secrets::hidden(value);
        value["n"] = self.number.into();
        self.number += 1;
        // A reader that is gone can't be told.
        writeln!(self.out, "{value}").and_then(|()| self.out.flush()).ok();
    }

    fn event(&mut self, event: &Event) {
        self.line(json::of(event));
    }

    fn result(&mut self, event: &Event, outcome: &Outcome) {
        self.results += 1;
        self.news = true;
        let lost = match outcome.status {
            Status::Failed => Some(&mut self.failed),
            Status::Unreachable => Some(&mut self.unreachable),
            Status::Changed => {
                self.changed += 1;
                None
            }
            Status::Ok | Status::Skipped => None,
        };
        let is_lost = lost.is_some();
        if let (Some(lost), false) = (lost, outcome.ignored) {
            lost.insert(outcome.host.clone());
        }
        if is_lost || outcome.verbose_always || self.verbosity > 0 || outcome.result.contains_key("diff") {
            self.event(event);
        }
    }

    fn progress(&mut self) {
        self.told = Instant::now();
        self.news = false;
        self.line(json!({
            "event": "part_progress", "task": self.task, "results": self.results, "changed": self.changed,
            "failed": self.failed.len(), "unreachable": self.unreachable.len(),
        }));
    }

    fn recap(&mut self, recap: &Recap) {
        self.progress();
        for hosts in recap.hosts.chunks(CHUNK) {
            let hosts: Vec<Json> = hosts.iter().map(|(host, counts)| json!([&**host, row(counts)])).collect();
            self.line(json!({"event": "part_hosts", "hosts": hosts}));
        }
        self.line(json!({
            "event": "part_recap", "hosts": recap.hosts.len(), "custom": recap.custom.to_json(),
            "duration_s": recap.duration_s, "exit_code": recap.code,
        }));
    }
}

/// Returns counts in the order of the recap's line.
fn row(counts: &Counts) -> [u64; 7] {
    let Counts { ok, changed, unreachable, failed, skipped, rescued, ignored } = *counts;
    [ok, changed, unreachable, failed, skipped, rescued, ignored]
}

/// Reads what [`row`] gives.
pub(crate) fn counts_of(row: &Json) -> Option<Counts> {
    let number = |at: usize| row.get(at)?.as_u64();
    Some(Counts {
        ok: number(0)?,
        changed: number(1)?,
        unreachable: number(2)?,
        failed: number(3)?,
        skipped: number(4)?,
        rescued: number(5)?,
        ignored: number(6)?,
    })
}

impl<W: Write + Send> Reporter for PartLines<W> {
    fn take(&mut self, event: &Event) {
        match event {
            Event::PlayStart { name, hosts, ordinal, .. } => {
                self.line(json!({"event": "play_start", "play": name, "number": ordinal, "hosts": hosts.len()}));
            }
            Event::TaskStart(task) => {
                self.task.clone_from(&task.name);
                self.news = true;
            }
            Event::Result(outcome) => self.result(event, outcome),
            Event::Item(_) | Event::Included { .. } | Event::Notified { .. } | Event::Retry { .. }
                if self.verbosity > 0 =>
            {
                self.event(event);
            }
            Event::Note(_) if self.verbosity > 1 => self.event(event),
            Event::Warning(_) | Event::Deprecated(_) | Event::Error(_) | Event::Part(_) => self.event(event),
            Event::Recap(recap) => self.recap(recap),
            Event::NoHosts
            | Event::NoHostsLeft
            | Event::HostStart { .. }
            | Event::Alive { .. }
            | Event::Item(_)
            | Event::Replayed(_)
            | Event::Retry { .. }
            | Event::Included { .. }
            | Event::Notified { .. }
            | Event::Note(_)
            | Event::Asking(_) => {}
        }
        if self.news && self.told.elapsed() >= PACE {
            self.progress();
        }
    }

    fn tick(&mut self) {
        let since = self.told.elapsed();
        if since >= HEARTBEAT || self.news && since >= PACE {
            self.progress();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(verbosity: u8, events: &[Event]) -> Vec<Json> {
        let mut lines = PartLines::new(Vec::new(), verbosity);
        events.iter().for_each(|event| lines.take(event));
        let text = String::from_utf8(lines.out).expect("JSON is UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    #[test]
    fn every_host_is_in_the_recap_and_the_end_says_how_many() {
        let hosts: Vec<(HostName, Counts)> = (0..1201)
            .map(|number| (HostName::from(format!("h{number}")), Counts { ok: number, failed: 1, ..Counts::default() }))
            .collect();
        let lines = told(0, &[Event::Recap(Recap { hosts: hosts.clone(), code: 2, ..Recap::default() })]);
        let parts: Vec<&Json> = lines.iter().filter(|line| line["event"] == "part_hosts").collect();
        assert_eq!(parts.len(), 3);
        let all: Vec<(HostName, Counts)> = parts
            .iter()
            .flat_map(|part| part["hosts"].as_array().expect("a list"))
            .map(|host| (host[0].as_str().expect("a name").into(), counts_of(&host[1]).expect("counts")))
            .collect();
        assert_eq!(all, hosts);
        let last = lines.last().expect("a line");
        assert_eq!(
            (&last["event"], &last["hosts"], &last["exit_code"]),
            (&"part_recap".into(), &1201.into(), &2.into())
        );
        let numbers: Vec<u64> = lines.iter().filter_map(|line| line["n"].as_u64()).collect();
        assert_eq!(numbers, (1..=lines.len() as u64).collect::<Vec<_>>());
    }

    #[test]
    fn the_names_of_a_plays_hosts_are_not_repeated() {
        let hosts = vec![HostName::from("h1"), HostName::from("h2")];
        let play =
            Event::PlayStart { name: "p".into(), hosts, place: crate::source::Place::default(), ordinal: 0, tasks: 1 };
        assert_eq!(told(0, &[play])[0]["hosts"], 2);
    }
}
