//! A part of a fleet: the hosts of one pod of a spread run, which goes from batch to batch in step with the other parts.
//!
//! Every part reads the whole inventory, and so knows the same groups, the same variables and the same batches; it works on
//! its own hosts alone. Before a batch it waits until whoever holds the parts together lets it in, which is read from a
//! file: a number of a play and of a batch, `2.0`, up to which all may go, or the word `stop`.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::World;
use super::pool::sleep_unless;
use super::strategy::Batch;
use crate::inventory::Inventory;
use crate::playbook::Task;
use crate::report::{Event, HostName, Part, Status};

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How long the other parts are waited for.
pub const WAIT_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// What the file holds when no further batch is to begin.
pub const STOP: &str = "stop";

/// A batch of a play: plays are counted from 0, and batches within a play.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    pub play: usize,
    pub batch: usize,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.play, self.batch)
    }
}

impl Step {
    /// Reads what [`Step`] writes.
    pub fn parse(text: &str) -> Option<Step> {
        let (play, batch) = text.trim().split_once('.')?;
        Some(Step { play: play.parse().ok()?, batch: batch.parse().ok()? })
    }
}

/// Whether a part may begin a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    Open,
    /// No further batch is to begin.
    Stop,
    /// The user wants to stop.
    Interrupted,
    /// Nobody has let the part in, for too long.
    GivenUp,
}

/// One of the parts into which a run's hosts are cut.
#[derive(Debug, Clone)]
pub struct Shard {
    pub index: usize,
    pub count: usize,
    /// The file that says how far all parts may go; without one, nothing is waited for.
    pub gate: Option<PathBuf>,
}

impl Shard {
    /// Reads `INDEX/COUNT`.
    ///
    /// # Errors
    /// A sentence for a person.
    pub fn parse(text: &str, gate: Option<PathBuf>) -> Result<Shard, String> {
        let numbers = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match numbers {
            Some((index, count)) if index < count => Ok(Shard { index, count, gate }),
            Some(_) | None => Err(format!("`{text}` is no part of a whole: expected `INDEX/COUNT`, counted from 0")),
        }
    }

    /// Returns the hosts of this part. They are dealt out one by one, so that each batch of a play has hosts in every part.
    pub fn hosts(&self, whole: &[HostName]) -> Vec<HostName> {
        whole.iter().skip(self.index).step_by(self.count.max(1)).cloned().collect()
    }

    /// Returns the hosts of this part of a run over an inventory.
    ///
    /// # Errors
    /// When the limit names what is not there.
    pub fn of(&self, inventory: &Inventory, limit: Option<&str>) -> Result<HashSet<HostName>, String> {
        Ok(self.hosts(&inventory.select("all", limit)?).into_iter().collect())
    }

    /// Returns whether a step has to be waited for.
    pub fn is_gated(&self) -> bool {
        self.gate.is_some()
    }

    /// Waits until a step may begin.
    pub fn enter(&self, step: Step, interrupted: &AtomicBool) -> Entry {
        let Some(gate) = &self.gate else { return Entry::Open };
        let end = Instant::now() + WAIT_LIMIT;
        loop {
            if interrupted.load(Ordering::Relaxed) {
                return Entry::Interrupted;
            }
            let said = std::fs::read_to_string(gate).unwrap_or_default();
            if said.trim() == STOP {
                return Entry::Stop;
            }
            if Step::parse(&said).is_some_and(|open| step <= open) {
                return Entry::Open;
            }
            if Instant::now() >= end {
                return Entry::GivenUp;
            }
            sleep_unless(interrupted, LOOK);
        }
    }
}

/// Waits until all parts of a spread run have come to a step; returns whether it is to begin.
pub(super) fn may_begin(world: &World, step: Step) -> Result<bool, String> {
    let Some(shard) = world.options.shard.as_ref().filter(|shard| shard.is_gated()) else { return Ok(true) };
    world.tell(Event::Part(Part::Waits { play: step.play, batch: step.batch }));
    match shard.enter(step, world.interruption()) {
        Entry::Open => Ok(true),
        Entry::Stop | Entry::Interrupted => Ok(false),
        Entry::GivenUp => {
            let hours = WAIT_LIMIT.as_secs() / 3600;
            Err(format!("the other shards did not come to this play within {hours} hours"))
        }
    }
}

/// Tells whoever holds the parts of a spread run together how a batch ended in this one.
pub(super) fn tell_end(world: &World, step: Step, hosts: usize, lost: usize) {
    if world.options.shard.is_some() {
        world.tell(Event::Part(Part::Ends { play: step.play, batch: step.batch, hosts, lost }));
    }
}

impl Batch<'_> {
    /// Fails hosts at a task that an include has brought, and that a part of a spread run can't do as the whole would.
    pub(super) fn refuses(&mut self, task: &Arc<Task>, group: &[HostName]) -> bool {
        if self.world.options.shard.is_none() {
            return false;
        }
        let alone = self.play.all_hosts.len() <= 1;
        let Some(problem) = crate::plan::whole::of_task(task, alone) else { return false };
        self.world.tell(Event::Error(problem.render(false)));
        for host in group {
            self.world.count(host, Status::Failed, false, false);
            self.fail_host(host, true);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<HostName> {
        (0..count).map(|number| HostName::from(format!("h{number}"))).collect()
    }

    #[test]
    fn every_host_is_in_one_part_and_parts_are_of_a_size() {
        let whole = names(23);
        let mut seen: Vec<HostName> = Vec::new();
        for index in 0..5 {
            let part = Shard { index, count: 5, gate: None }.hosts(&whole);
            assert!((4..=5).contains(&part.len()), "{part:?}");
            seen.extend(part);
        }
        seen.sort();
        let mut all = whole;
        all.sort();
        assert_eq!(seen, all);
    }

    #[test]
    fn more_parts_than_hosts_leave_some_empty() {
        assert_eq!(Shard { index: 3, count: 4, gate: None }.hosts(&names(2)), Vec::<HostName>::new());
    }

    #[test]
    fn a_step_begins_once_the_file_lets_it_in() {
        let gate = std::env::temp_dir().join(format!("kubeon-gate-{}", std::process::id()));
        let shard = Shard { index: 0, count: 2, gate: Some(gate.clone()) };
        let (never, asked) = (AtomicBool::new(false), AtomicBool::new(true));
        std::fs::write(&gate, "1.0\n").expect("write");
        assert_eq!(shard.enter(Step { play: 0, batch: 7 }, &never), Entry::Open);
        assert_eq!(shard.enter(Step { play: 1, batch: 0 }, &never), Entry::Open);
        assert_eq!(shard.enter(Step { play: 1, batch: 1 }, &asked), Entry::Interrupted);
        let later = gate.clone();
        let opener = std::thread::spawn(move || std::fs::write(later, "1.1").expect("write"));
        assert_eq!(shard.enter(Step { play: 1, batch: 1 }, &never), Entry::Open);
        opener.join().expect("it writes");
        std::fs::write(&gate, STOP).expect("write");
        assert_eq!(shard.enter(Step { play: 0, batch: 0 }, &never), Entry::Stop);
        std::fs::remove_file(&gate).expect("remove");
    }

    #[test]
    fn only_a_part_of_a_whole_is_one() {
        assert!(Shard::parse("3/4", None).is_ok());
        for text in ["4/4", "1", "a/b", ""] {
            assert!(Shard::parse(text, None).is_err(), "{text}");
        }
    }
}
