//! What the shards have told, put together: pure, so that it can be tested without a cluster.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value as Json;

use crate::execute::{EXIT_ERROR, EXIT_INTERRUPTED, EXIT_UNREACHABLE, Shard, Step};
use crate::report::{Counts, HostName, Recap, counts_of};
use crate::value::Map;

/// The pod that works on a shard now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pod {
    pub name: String,
    pub uid: String,
    /// Whether it has a log.
    pub has_run: bool,
    pub succeeded: bool,
    pub ended: bool,
    /// How far it is told that it may go.
    pub gate: Option<String>,
    /// Why it does not run, or has failed.
    pub reason: String,
}

/// A shard's end.
#[derive(Debug, Clone)]
pub struct Done {
    pub hosts: Vec<(HostName, Counts)>,
    pub custom: Map,
    pub code: u8,
}

/// What is known of a shard.
#[derive(Debug, Default)]
pub struct ShardState {
    pub pod: Option<Pod>,
    /// The number of the last line that was taken of this pod.
    pub number: u64,
    /// The lines of the recap so far.
    hosts: Vec<(HostName, Counts)>,
    /// The step that it waits for.
    pub waits: Option<Step>,
    pub task: String,
    pub changed: u64,
    pub failed: u64,
    pub unreachable: u64,
    pub done: Option<Done>,
    /// Why it never will be done.
    pub lost: Option<String>,
}

/// What a line means to whoever follows the run.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// It has been told before, or is for nobody to see.
    Nothing,
    /// Something to show and to keep.
    Shown(Json),
    /// The counts have changed.
    Progress,
    /// The shard is done.
    Done,
    /// The run can't go on.
    Wrong(String),
}

impl ShardState {
    pub fn is_settled(&self) -> bool {
        self.done.is_some() || self.lost.is_some()
    }

    /// Another pod works on the shard from now on: what the one before told is void.
    pub fn begin(&mut self, pod: Pod) {
        *self = ShardState { pod: Some(pod), ..ShardState::default() };
    }
}

/// All shards, and how far they may go together.
#[derive(Debug)]
pub struct State {
    pub shards: Vec<ShardState>,
    pub hosts: Vec<HostName>,
    gated: bool,
    /// The last step that all may begin.
    open: Step,
    /// Whether nothing further is to begin.
    stop: bool,
    /// By step and shard: how many hosts it had, and how many it lost.
    ends: HashMap<(Step, usize), (usize, usize)>,
}

impl State {
    pub fn new(shards: usize, hosts: Vec<HostName>, gated: bool) -> State {
        State {
            shards: (0..shards).map(|_| ShardState::default()).collect(),
            hosts,
            gated,
            open: Step { play: 0, batch: 0 },
            stop: false,
            ends: HashMap::new(),
        }
    }

    /// Returns a shard's hosts.
    pub fn hosts_of(&self, index: usize) -> Vec<HostName> {
        Shard { index, count: self.shards.len(), gate: None }.hosts(&self.hosts)
    }

    /// Returns how many hosts a shard has.
    pub fn size_of(&self, index: usize) -> usize {
        self.hosts.len().saturating_sub(index).div_ceil(self.shards.len().max(1))
    }

    /// Takes a line that a shard's pod has told.
    pub fn take(&mut self, index: usize, line: Json) -> Taken {
        // A fleet's names are gone through once a pod, and not for each line.
        let expected = if line["event"] == "part_begins" { self.hosts_of(index) } else { Vec::new() };
        let shard = &mut self.shards[index];
        let Some(number) = line["n"].as_u64() else { return Taken::Nothing };
        if number <= shard.number || shard.is_settled() {
            return Taken::Nothing;
        }
        shard.number = number;
        let count = |key: &str| line[key].as_u64().unwrap_or(0);
        let step = || Step { play: count("play") as usize, batch: count("batch") as usize };
        match line["event"].as_str().unwrap_or_default() {
            "part_begins" if line["digest"] != super::digest(&expected).as_str() => Taken::Wrong(format!(
                "shard {index} has {} hosts, and from here it has {}: its pod reads another inventory",
                count("hosts"),
                expected.len()
            )),
            "part_begins" => Taken::Nothing,
            "part_waits" => {
                shard.waits = Some(step());
                Taken::Progress
            }
            "part_ends" => {
                self.ends.insert((step(), index), (count("hosts") as usize, count("lost") as usize));
                Taken::Nothing
            }
            "part_progress" => {
                shard.task = line["task"].as_str().unwrap_or_default().to_owned();
                (shard.changed, shard.failed) = (count("changed"), count("failed"));
                shard.unreachable = count("unreachable");
                Taken::Progress
            }
            "part_hosts" => {
                let pairs = line["hosts"].as_array().into_iter().flatten();
                let read = |pair: &Json| Some((HostName::from(pair.get(0)?.as_str()?), counts_of(pair.get(1)?)?));
                shard.hosts.extend(pairs.filter_map(read));
                Taken::Nothing
            }
            "part_recap" => Self::end(shard, index, &line),
            _ => Taken::Shown(line),
        }
    }

    fn end(shard: &mut ShardState, index: usize, line: &Json) -> Taken {
        let hosts = std::mem::take(&mut shard.hosts);
        if line["hosts"].as_u64() != Some(hosts.len() as u64) {
            return Taken::Wrong(format!("shard {index} told of {} hosts, and then that it had others", hosts.len()));
        }
        let code = line["exit_code"].as_u64().and_then(|code| u8::try_from(code).ok()).unwrap_or(EXIT_ERROR);
        let custom = line["custom"].as_object().cloned().map(Map::from_json).unwrap_or_default();
        shard.done = Some(Done { hosts, custom, code });
        Taken::Done
    }

    /// Returns whether nothing is left to wait for.
    pub fn is_settled(&self) -> bool {
        self.shards.iter().all(ShardState::is_settled)
    }

    /// Returns what pods are to be told of how far they may go, once all that are at work wait for it; `None` where nobody
    /// waits for anybody.
    pub fn gate(&mut self) -> Option<String> {
        if !self.gated {
            return None;
        }
        let waiting: Option<Vec<Step>> =
            self.shards.iter().filter(|shard| !shard.is_settled()).map(|shard| shard.waits).collect();
        if let Some(next) = waiting.and_then(|steps| steps.into_iter().min()).filter(|next| *next > self.open) {
            self.stop |= self.all_lost(next);
            self.open = next;
        }
        for shard in &mut self.shards {
            shard.waits = shard.waits.filter(|step| *step > self.open);
        }
        Some(if self.stop { "stop".to_owned() } else { self.open.to_string() })
    }

    /// Returns whether the last step before this one has lost every host that it had.
    fn all_lost(&self, next: Step) -> bool {
        let steps: BTreeMap<Step, (usize, usize)> = self.ends.iter().filter(|((step, _), _)| *step < next).fold(
            BTreeMap::new(),
            |mut sums, ((step, _), end)| {
                let sum: &mut (usize, usize) = sums.entry(*step).or_default();
                *sum = (sum.0 + end.0, sum.1 + end.1);
                sums
            },
        );
        steps.values().rfind(|(hosts, _)| *hosts > 0).is_some_and(|(hosts, lost)| lost >= hosts)
    }

    /// Returns the recap of the whole run. Hosts of a shard that was lost could not be reached, as far as anybody knows.
    pub fn recap(&self, duration_s: f64, interrupted: bool) -> Recap {
        let mut hosts: Vec<(HostName, Counts)> = Vec::new();
        let mut custom = Map::new();
        let mut codes: Vec<u8> = Vec::new();
        for (index, shard) in self.shards.iter().enumerate() {
            match &shard.done {
                Some(done) => {
                    hosts.extend(done.hosts.iter().cloned());
                    custom.extend(done.custom.clone());
                    codes.push(done.code);
                }
                None if interrupted && shard.lost.is_none() => codes.push(EXIT_INTERRUPTED),
                None => {
                    let lost = self.hosts_of(index);
                    let code = if lost.is_empty() { 0 } else { EXIT_UNREACHABLE };
                    hosts.extend(lost.into_iter().map(|host| (host, Counts { unreachable: 1, ..Counts::default() })));
                    codes.push(code);
                }
            }
        }
        hosts.sort_by(|a, b| a.0.cmp(&b.0));
        Recap { hosts, duration_s, custom, code: together(&codes, interrupted), ..Recap::default() }
    }
}

/// Returns the exit status of a run whose parts ended with these.
fn together(codes: &[u8], interrupted: bool) -> u8 {
    if interrupted || codes.contains(&EXIT_INTERRUPTED) {
        return EXIT_INTERRUPTED;
    }
    let outcomes = |code: &u8| matches!(code, 0 | 2 | 4 | 6);
    codes.iter().find(|code| !outcomes(code)).copied().unwrap_or_else(|| codes.iter().fold(0, |all, code| all | code))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hosts(count: usize) -> Vec<HostName> {
        (0..count).map(|number| HostName::from(format!("h{number}"))).collect()
    }

    fn tell(state: &mut State, index: usize, n: u64, line: Json) -> Taken {
        let mut line = line;
        line["n"] = n.into();
        state.take(index, line)
    }

    fn waits(state: &mut State, index: usize, n: u64, play: usize, batch: usize) {
        tell(state, index, n, json!({"event": "part_waits", "play": play, "batch": batch}));
    }

    fn ends(state: &mut State, index: usize, n: u64, lost: usize) {
        tell(state, index, n, json!({"event": "part_ends", "play": 0, "batch": 0, "hosts": 2, "lost": lost}));
    }

    #[test]
    fn a_step_opens_when_the_last_shard_waits_for_it() {
        let mut state = State::new(2, hosts(4), true);
        assert_eq!(state.gate().as_deref(), Some("0.0"));
        ends(&mut state, 0, 1, 0);
        waits(&mut state, 0, 2, 1, 0);
        assert_eq!(state.gate().as_deref(), Some("0.0"), "the other one is still at it");
        ends(&mut state, 1, 1, 1);
        waits(&mut state, 1, 2, 2, 0);
        assert_eq!(state.gate().as_deref(), Some("1.0"), "one of them has none of the second play's hosts");
        waits(&mut state, 0, 3, 2, 0);
        assert_eq!(state.gate().as_deref(), Some("2.0"));
    }

    #[test]
    fn a_shard_that_begins_anew_is_waited_for() {
        let mut state = State::new(2, hosts(4), true);
        waits(&mut state, 0, 1, 1, 0);
        waits(&mut state, 1, 1, 1, 0);
        assert_eq!(state.gate().as_deref(), Some("1.0"));
        state.shards[1].begin(Pod::default());
        waits(&mut state, 0, 2, 2, 0);
        assert_eq!(state.gate().as_deref(), Some("1.0"));
        state.shards[1].lost = Some("gone".into());
        assert_eq!(state.gate().as_deref(), Some("2.0"), "one that is lost for good is not");
    }

    #[test]
    fn a_batch_that_is_lost_as_a_whole_ends_the_run() {
        for (lost, gate) in [(1, "1.0"), (2, "stop")] {
            let mut state = State::new(2, hosts(4), true);
            for index in 0..2 {
                ends(&mut state, index, 1, if index == 0 { 2 } else { lost });
                waits(&mut state, index, 2, 1, 0);
            }
            assert_eq!(state.gate().as_deref(), Some(gate));
        }
    }

    #[test]
    fn a_shard_is_as_large_as_its_list_of_hosts() {
        for count in 0..9 {
            let state = State::new(4, hosts(count), false);
            (0..4)
                .for_each(|index| assert_eq!(state.size_of(index), state.hosts_of(index).len(), "{index} of {count}"));
        }
    }

    #[test]
    fn a_line_counts_once() {
        let mut state = State::new(1, hosts(1), false);
        let line = json!({"event": "result", "host": "h0"});
        assert!(matches!(tell(&mut state, 0, 1, line.clone()), Taken::Shown(_)));
        assert_eq!(tell(&mut state, 0, 1, line), Taken::Nothing);
    }

    #[test]
    fn a_pod_that_reads_another_inventory_is_told() {
        let mut state = State::new(1, hosts(2), false);
        let right = json!({"event": "part_begins", "hosts": 2, "digest": super::super::digest(&hosts(2))});
        assert_eq!(tell(&mut state, 0, 1, right), Taken::Nothing);
        let wrong = json!({"event": "part_begins", "hosts": 3, "digest": super::super::digest(&hosts(3))});
        assert!(matches!(tell(&mut state, 0, 2, wrong), Taken::Wrong(_)));
    }

    #[test]
    fn recaps_become_one_and_hosts_of_lost_shards_are_in_it() {
        let mut state = State::new(2, hosts(3), false);
        let row = json!([["h2", [3, 1, 0, 1, 0, 0, 0]], ["h0", [2, 0, 0, 0, 0, 0, 0]]]);
        tell(&mut state, 0, 1, json!({"event": "part_hosts", "hosts": row}));
        let end = json!({"event": "part_recap", "hosts": 2, "custom": {}, "exit_code": 2});
        assert_eq!(tell(&mut state, 0, 2, end), Taken::Done);
        assert!(!state.is_settled());
        state.shards[1].lost = Some("its node is gone".into());
        assert!(state.is_settled());
        let recap = state.recap(1.0, false);
        let names: Vec<&str> = recap.hosts.iter().map(|(host, _)| &**host).collect();
        assert_eq!((names, recap.code), (vec!["h0", "h1", "h2"], 6));
        assert_eq!(recap.hosts[1].1.unreachable, 1);
    }

    #[test]
    fn a_recap_that_lacks_hosts_is_none() {
        let mut state = State::new(1, hosts(1), false);
        let end = json!({"event": "part_recap", "hosts": 1, "custom": {}, "exit_code": 0});
        assert!(matches!(tell(&mut state, 0, 1, end), Taken::Wrong(_)));
    }

    #[test]
    fn statuses_come_together_as_those_of_one_process() {
        assert_eq!(together(&[0, 2, 4], false), 6);
        assert_eq!(together(&[0, 1, 2], false), 1);
        assert_eq!(together(&[0, 99], false), 99);
        assert_eq!(together(&[0, 0], false), 0);
    }
}
