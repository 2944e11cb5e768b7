//! Guesses what a host will be asked next, for its agent to plan ahead. A plan only reads, and its result is taken only
//! when the very same is asked for at the task's turn, wants nothing, and nothing was changed since: so a wrong guess costs
//! time, and nothing else.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kubeon_modules::wire;

use super::super::item::{ItemRun, Sending};
use super::super::task::HostTask;
use super::MOST_BYTES;
use super::coming::{Coming, Upcoming};
use super::eligible::{is_apart, is_plannable};
use super::watch::{Unsettled, Watch};
use crate::playbook::{Keyword, Task};
use crate::report::{TaskInfo, TaskKind, secrets};
use crate::source::Place;
use crate::template::Templar;

/// What is done here alone, and leaves hosts as they are.
const HERE: &[&str] = &["assert", "debug", "set_fact", "validate_argument_spec"];

/// Returns up to `most` tasks that this host is likely to be asked for after its current one.
pub(in crate::execute) fn foresee(head: &ItemRun<'_>, coming: &Coming<'_>, most: usize) -> Vec<wire::Task> {
    if most == 0 {
        return Vec::new();
    }
    let mut walk = Walk { head, most, tasks: Vec::new(), size_bytes: 0, unsettled: Arc::default(), guarded: false };
    if head.task.loop_.is_some() && !is_apart(head.task) {
        walk.plan(head.task, head.round + 1);
    }
    walk.note_registered(head.task);
    walk.through(coming.upcoming());
    walk.tasks
}

/// Whether what comes later can still be told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sight {
    Clear,
    Blocked,
}

/// Whether a task will run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Likely {
    Runs,
    Skipped,
    /// A guess says that it is skipped, but does not know much.
    Unlikely,
    Unknown,
}

struct Walk<'a> {
    head: &'a ItemRun<'a>,
    most: usize,
    tasks: Vec<wire::Task>,
    size_bytes: usize,
    /// What tasks under way will set.
    unsettled: Arc<HashSet<String>>,
    /// Whether an include brings it of which nobody knows yet whether it will be passed over.
    guarded: bool,
}

impl Walk<'_> {
    fn through(&mut self, coming: &[Upcoming]) -> Sight {
        for next in coming {
            if self.pass(next) == Sight::Blocked || self.tasks.len() >= self.most {
                return Sight::Blocked;
            }
        }
        Sight::Clear
    }

    fn pass(&mut self, next: &Upcoming) -> Sight {
        let task = &next.task;
        if &*task.action.name == "meta" {
            return Sight::Blocked;
        }
        let (likely, is_guess) = self.likely(task);
        if likely == Likely::Skipped {
            self.note_registered(task);
            return Sight::Clear;
        }
        if !next.brings.is_empty() {
            let before = self.tasks.len();
            let guarded = self.guarded;
            self.guarded |= is_guess;
            let inside = self.through(&next.brings);
            self.guarded = guarded;
            // One that begins with what can't be planned, and may be skipped, is.
            let is_passed_over = likely != Likely::Runs && self.tasks.len() == before;
            return if is_passed_over { Sight::Clear } else { inside };
        }
        if HERE.contains(&&*task.action.name) && task.action.foreign.is_none() {
            self.note_registered(task);
            return Sight::Clear;
        }
        if is_apart(task) || !is_plannable(task, self.head.world.options.check) {
            self.note_registered(task);
            return if likely == Likely::Unlikely { Sight::Clear } else { Sight::Blocked };
        }
        self.plan(task, 0);
        self.note_registered(task);
        Sight::Clear
    }

    fn note_registered(&mut self, task: &Task) {
        let unsettled = Arc::make_mut(&mut self.unsettled);
        unsettled.extend(task.keywords.get(Keyword::Register).map(|setting| setting.value.to_string()));
        if &*task.action.name == "set_fact" {
            unsettled.extend(task.action.args.keys().map(ToString::to_string));
        }
    }

    fn templar(&self, task: &Arc<Task>, changed: bool) -> (Templar, Arc<AtomicBool>) {
        let (world, play, host) = (self.head.world, self.head.play, self.head.host);
        let touched = Arc::new(AtomicBool::new(false));
        let watch = Watch {
            under: Box::new(crate::vars::of(world, Some(play), host, Some(task))),
            unsettled: self.unsettled.clone(),
            manner: Unsettled::Guessed { changed },
            touched: touched.clone(),
        };
        (Templar::new(Arc::new(watch), Arc::new(crate::vars::folders(world, Some(play), Some(task)))), touched)
    }

    /// Returns whether a task will run, and whether that hangs on what is under way.
    fn likely(&self, task: &Arc<Task>) -> (Likely, bool) {
        if task.conditions().is_empty() {
            return (Likely::Runs, false);
        }
        match self.likely_after(task, false) {
            // What is for a change will be skipped where there is none. What asks for something else may as well run.
            (Likely::Skipped, true) if self.likely_after(task, true).0 == Likely::Skipped => (Likely::Unlikely, true),
            known => known,
        }
    }

    /// As [`Walk::likely`], if what is under way changes something or not.
    fn likely_after(&self, task: &Arc<Task>, changed: bool) -> (Likely, bool) {
        let (templar, touched) = self.templar(task, changed);
        let likely = self.with(task, templar, &RefCell::default(), |run| match run.skipped() {
            Ok(Some(_)) => Likely::Skipped,
            Ok(None) => Likely::Runs,
            Err(_) => Likely::Unknown,
        });
        (likely, touched.load(Ordering::Relaxed))
    }

    /// Adds what a task will ask for, once a round from the one of that number on.
    fn plan(&mut self, task: &Arc<Task>, first: usize) {
        let (templar, touched) = self.templar(task, false);
        let rounds = match &task.loop_ {
            None => vec![templar],
            Some(loop_) => {
                let (world, play, host) = (self.head.world, self.head.play, self.head.host);
                let next = Coming::default();
                let its = HostTask { world, play, host, task, info: &unannounced(task), over: &[], next: &next };
                let rounds = first..first + self.most - self.tasks.len();
                its.rounds_ahead(loop_, &templar, rounds).unwrap_or_default()
            }
        };
        if touched.load(Ordering::Relaxed) {
            return;
        }
        for templar in rounds {
            if self.tasks.len() >= self.most {
                return;
            }
            let Some(asked) = self.request(task, templar, &touched).filter(|_| !touched.load(Ordering::Relaxed)) else {
                continue;
            };
            // Its number is part of what travels, and how long that is matters little.
            self.size_bytes += serde_json::to_vec(&asked.args).map_or(MOST_BYTES, |bytes| bytes.len());
            if self.size_bytes > MOST_BYTES {
                return;
            }
            self.tasks.push(asked);
        }
    }

    fn request(&self, task: &Arc<Task>, templar: Templar, touched: &AtomicBool) -> Option<wire::Task> {
        let slot = RefCell::new(None);
        self.with(task, templar, &slot, |run| {
            // Whether it runs may hang on what is under way. What it asks for must not.
            let is_skipped = matches!(run.skipped(), Ok(Some(_)));
            let may_be_skipped = touched.swap(false, Ordering::Relaxed);
            if is_skipped && !may_be_skipped {
                return None;
            }
            run.prepare().ok()?;
            let own = self.head.reach();
            let is_same_way = run.reach().become_ == own.become_ && run.reach().target.leads_to(&own.target);
            if is_same_way {
                // What it asks for lies in the slot; it has no result.
                drop(run.act());
            }
            Some(may_be_skipped)
        })
        .and_then(|may_be_skipped| {
            // A host that the task is not for in the end must not have been told a secret.
            slot.take().filter(|asked| !(self.guarded || may_be_skipped) || !holds_secret(task, asked))
        })
    }

    fn with<T>(
        &self,
        task: &Arc<Task>,
        templar: Templar,
        slot: &RefCell<Option<wire::Task>>,
        work: impl FnOnce(&mut ItemRun<'_>) -> T,
    ) -> T {
        let ItemRun { world, play, host, .. } = *self.head;
        let (check, diff) = (world.options.check, world.options.diff);
        let info = unannounced(task);
        let sending = Sending::Planning(slot);
        work(&mut ItemRun {
            world,
            play,
            host,
            task,
            info: &info,
            templar,
            reach: None,
            check,
            diff,
            no_log: true,
            round: 0,
            sending,
        })
    }
}

fn holds_secret(task: &Task, asked: &wire::Task) -> bool {
    let (args, environment) = (serde_json::Value::from(asked.args.clone()), serde_json::json!(asked.environment));
    task.inherited(Keyword::NoLog).is_some() || secrets::hidden(args).1 || secrets::hidden(environment).1
}

/// Returns a task's description that nobody is told.
pub(super) fn unannounced(task: &Task) -> Arc<TaskInfo> {
    Arc::new(TaskInfo {
        id: 0,
        name: String::new(),
        action: String::new(),
        place: Place::default(),
        kind: TaskKind::Task,
        check: false,
        registers: task.keywords.get(Keyword::Register).is_some(),
    })
}
