//! Sending ahead: tasks travel together, and each answer is taken when its task's turn has come. What is told, and in
//! which order, is what it is without.
//!
//! Most are only planned ahead (`foresee`): nothing on a host is changed before the turn of the task that changes it. On
//! request those are executed ahead whose requests can't depend on one another's results (`eligible`, `plan`).

mod coming;
mod eligible;
mod foresee;
mod plan;
mod watch;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use coming::Coming;
pub(super) use eligible::{acts_elsewhere, is_harmless, is_plannable_module, may_plan, next_of};
pub(super) use foresee::foresee;
pub(super) use plan::plan;

use super::World;
use super::item::ItemEnd;
use super::reach::Reach;
use crate::connection::{Ahead, Answered, Connection, Unreachable};
use crate::playbook::Task;
use crate::report::HostName;
use crate::value::{Map, Value};
use crate::vars::alike::Told;

/// Which tasks are sent before the ones in front of them are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendAhead {
    /// None: each task is sent when its turn has come, and waited for.
    Off,
    /// All are executed at their turn. What a host has probably nothing to do for is planned ahead, which only reads.
    Plan,
    /// Those of which no other host of the play can notice that they ran before it was done with the task in front.
    Safe,
    /// Hosts in step, too, run commands without waiting for one another.
    All,
}

/// The most tasks that are under way on a host at a time, besides the one whose turn it is.
const MOST_TASKS: usize = 32;
/// The most that travels ahead at a time.
const MOST_BYTES: usize = 256 << 10;

/// What is decided about a task before its turn.
pub(super) enum Planned {
    /// Its conditions do not hold.
    Skipped(Box<ItemEnd>),
    Asked(Box<Asked>),
}

/// A request that is on its way, and what its task's turn needs to go on from there.
pub(super) struct Asked {
    pub ahead: Ahead,
    pub reach: Reach,
    pub check: bool,
    pub diff: bool,
    /// The arguments, where somebody is told of them.
    pub given: Option<Map>,
    /// The answer, where it was taken in before the turn.
    answer: Option<Map>,
}

/// What one host has been sent ahead.
pub(super) struct Pending {
    /// `None` once all that will be answered is.
    connection: Option<Connection>,
    tasks: VecDeque<(Arc<Task>, Planned)>,
}

/// What hosts have been sent ahead.
#[derive(Default)]
pub struct Sent {
    hosts: Mutex<HashMap<HostName, Pending>>,
}

impl Sent {
    fn lock(&self) -> MutexGuard<'_, HashMap<HostName, Pending>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a host has been sent anything whose turn is still to come.
    pub(super) fn holds(&self, host: &str) -> bool {
        self.lock().contains_key(host)
    }

    /// Returns whether what a host did at its next task, which nobody was told of yet, is known.
    pub(super) fn has_answer(&self, host: &str) -> bool {
        self.lock().get(host).is_some_and(|pending| pending.connection.is_none())
    }

    /// Keeps what was sent over a connection until the turns come.
    pub(super) fn keep(&self, host: &HostName, connection: Connection, tasks: VecDeque<(Arc<Task>, Planned)>) {
        self.lock().insert(host.clone(), Pending { connection: Some(connection), tasks });
    }

    /// Takes out what was decided about a task, and what comes after it, when the task's turn has come.
    pub(super) fn turn(&self, host: &str, task: &Arc<Task>) -> Option<(Planned, Pending)> {
        let mut pending = self.lock().remove(host)?;
        match pending.tasks.pop_front() {
            Some((next, planned)) if Arc::ptr_eq(&next, task) => Some((planned, pending)),
            Some(_) | None => {
                pending.stop();
                None
            }
        }
    }

    /// Calls off what has not begun on hosts that nobody waits for at the moment.
    pub(super) fn stop_all(&self) {
        self.lock().values_mut().for_each(Pending::stop);
    }

    /// Calls off what a host was sent and forgets it: its turn will not come.
    pub(super) fn forget(&self, host: &str) {
        if let Some(mut pending) = self.lock().remove(host) {
            pending.stop();
        }
    }

    /// Once the user has asked to stop: calls off what has not begun, takes in the answers of what has, and returns the
    /// hosts that have done something which nobody was told of yet.
    pub(super) fn settled(&self, hosts: &[HostName], world: &World) -> Vec<HostName> {
        let mut done = Vec::new();
        for host in hosts {
            let Some(mut pending) = self.lock().remove(host) else { continue };
            pending.stop();
            pending.settle(world);
            if !pending.tasks.is_empty() {
                done.push(host.clone());
                self.lock().insert(host.clone(), pending);
            }
        }
        done
    }
}

impl Pending {
    fn next_reach(&self) -> Option<&Reach> {
        self.tasks.iter().find_map(|(_, planned)| match planned {
            Planned::Asked(asked) => Some(&asked.reach),
            Planned::Skipped(_) => None,
        })
    }

    fn stop(&mut self) {
        let become_ = self.next_reach().and_then(|reach| reach.become_.clone());
        if let Some(connection) = &mut self.connection {
            connection.stop_ahead(become_.as_ref());
        }
    }

    /// Takes in all answers that are still to come, and drops what was not executed.
    fn settle(&mut self, world: &World) {
        let Some(mut connection) = self.connection.take() else { return };
        let mut done = 0;
        let mut is_lost = false;
        for (at, (_, planned)) in self.tasks.iter_mut().enumerate() {
            let Planned::Asked(asked) = planned else { continue };
            match connection.answer::<Told>(asked.reach.become_.as_ref(), &asked.ahead, &|_| {}) {
                Ok(Some(Answered { result: Told(result), .. })) => asked.answer = Some(result),
                Ok(None) => break,
                Err(_) => {
                    is_lost = true;
                    break;
                }
            }
            done = at + 1;
        }
        let reach = self.next_reach().cloned();
        self.tasks.truncate(done);
        if let (false, Some(reach)) = (is_lost, reach) {
            world.connections.give_back(&reach.target, connection);
        }
    }

    /// Waits for the answer of a task whose turn has come; `None` when it was not executed. What comes after it is kept
    /// for its own turn where the host goes on with it.
    pub(super) fn answer(
        mut self,
        world: &World,
        host: &HostName,
        asked: &mut Asked,
        alive: &dyn Fn(&str),
    ) -> Result<Option<Map>, Unreachable> {
        let answer = match (asked.answer.take(), &mut self.connection) {
            (Some(result), _) => Some(result),
            (None, Some(connection)) => {
                let told = connection.answer::<Told>(asked.reach.become_.as_ref(), &asked.ahead, alive)?;
                if told.as_ref().is_some_and(|told| !is_harmless(&asked.ahead.module, told.looked)) {
                    world.note_change();
                }
                told.map(|Answered { result: Told(result), .. }| result)
            }
            (None, None) => None,
        };
        self.go_on(world, host, Some(&asked.reach), answer.as_ref().is_some_and(went_well));
        Ok(answer)
    }

    /// Keeps what is still to come, or gives the connection back.
    pub(super) fn go_on(self, world: &World, host: &HostName, reach: Option<&Reach>, went_well: bool) {
        if went_well && !self.tasks.is_empty() {
            world.sent.lock().insert(host.clone(), self);
        } else if let (Some(connection), Some(reach)) = (self.connection, reach) {
            world.connections.give_back(&reach.target, connection);
        }
    }
}

/// Returns whether a host goes on with what was sent ahead after this result: by the same rule as the agent.
pub(super) fn went_well(result: &Map) -> bool {
    let is = |name: &str| matches!(result.get(name), Some(Value::Bool(true)));
    !is("failed") && !is("unreachable")
}
