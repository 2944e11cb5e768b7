//! What an interrupted run had done already: `--resume` passes over it, and hosts know what they knew.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::report::{HostName, Status, TaskInfo, fingerprint, position};
use crate::value::Map;

/// A task that has ended on a host.
#[derive(Debug, Clone)]
pub struct Done {
    /// `file:line:column`.
    pub place: String,
    /// Tells whether that file has changed since.
    pub source: String,
    pub status: Status,
    pub ignored: bool,
    pub delegated: Option<HostName>,
    /// Whether the record holds the result with secrets hidden.
    pub hidden: bool,
    /// Whether later tasks may use the result.
    pub keeps: bool,
    pub result: Map,
}

/// What is passed over, by play and host, in the order in which the host did it.
#[derive(Debug, Default)]
pub struct Replay {
    done: Mutex<HashMap<(usize, HostName), VecDeque<Done>>>,
}

impl Replay {
    pub fn new(done: HashMap<(usize, HostName), VecDeque<Done>>) -> Replay {
        Replay { done: Mutex::new(done) }
    }

    /// Returns whether nothing is passed over any more.
    pub fn is_empty(&self) -> bool {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns how a task had ended on a host. A host that comes to another task than the recorded one, or to one whose
    /// file was changed, has left the recorded way and runs everything from there on.
    pub fn next(&self, play: usize, host: &HostName, task: &TaskInfo) -> Option<Done> {
        let mut all = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            return None;
        }
        let queue = all.get_mut(&(play, host.clone()));
        match queue.and_then(VecDeque::pop_front) {
            Some(done) if done.place == position(task.place) && done.source == fingerprint(task.place) => {
                (!runs_again(&task.action)).then_some(done)
            }
            Some(_) | None => {
                all.retain(|(_, other), _| other != host);
                None
            }
        }
    }
}

/// Returns whether a task runs here and brings what no result holds: tasks, hosts, groups, figures.
fn runs_again(action: &str) -> bool {
    let name = action.rsplit('.').next().unwrap_or(action);
    matches!(name, "include_tasks" | "include_role" | "include_vars" | "add_host" | "group_by" | "set_stats")
}
