//! Decides about tasks before their turn: which are skipped, and what the others ask of their host.

use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::item::{ItemRun, Sending};
use super::eligible::{ends, is_sendable};
use super::foresee::unannounced;
use super::watch::{Unsettled, Watch};
use super::{Asked, MOST_BYTES, Planned};
use crate::connection::Ahead;
use crate::playbook::{Keyword, Task};
use crate::template::Templar;

/// Plans the tasks that come after the one that is about to be sent, up to the first that may depend on one before it.
pub(in crate::execute) fn plan(head: &ItemRun<'_>, next: &[Arc<Task>]) -> VecDeque<(Arc<Task>, Planned)> {
    let mut tasks = VecDeque::new();
    let mut unsettled = HashSet::new();
    let mut size_bytes = 0;
    let registers = |task: &Task| task.keywords.get(Keyword::Register).map(|setting| setting.value.to_string());
    unsettled.extend(registers(head.task));
    let mut shared = Arc::new(unsettled.clone());
    for task in next {
        let Some(planned) = one(head, task, &shared) else { break };
        if let Planned::Asked(asked) = &planned {
            size_bytes += asked.ahead.size_bytes();
        }
        if size_bytes > MOST_BYTES {
            break;
        }
        let is_asked = matches!(planned, Planned::Asked(_));
        tasks.push_back((task.clone(), planned));
        if is_asked && ends(head.world, head.play, head.host, task) {
            break;
        }
        if let Some(name) = registers(task) {
            unsettled.insert(name);
            shared = Arc::new(unsettled.clone());
        }
    }
    // What is skipped at the end can as well be told at its turn.
    while matches!(tasks.back(), Some((_, Planned::Skipped(_)))) {
        tasks.pop_back();
    }
    tasks
}

/// Plans one task; `None` when something about it may depend on what is under way, or can't be told.
fn one(head: &ItemRun<'_>, task: &Arc<Task>, unsettled: &Arc<HashSet<String>>) -> Option<Planned> {
    let (world, play, host) = (head.world, head.play, head.host);
    let touched = Arc::new(AtomicBool::new(false));
    let under = Box::new(crate::vars::of(world, Some(play), host, Some(task)));
    let watch = Watch { under, unsettled: unsettled.clone(), manner: Unsettled::Waits, touched: touched.clone() };
    let slot = RefCell::new(None);
    let info = unannounced(task);
    let mut run = ItemRun {
        world,
        play,
        host,
        task,
        info: &info,
        templar: Templar::new(Arc::new(watch), Arc::new(crate::vars::folders(world, Some(play), Some(task)))),
        reach: None,
        check: world.options.check,
        diff: world.options.diff,
        no_log: true,
        round: 0,
        sending: Sending::Planning(&slot),
    };
    let skipped = run.skipped();
    if touched.load(Ordering::Relaxed) {
        return None;
    }
    if let Some(end) = skipped.ok()? {
        return Some(Planned::Skipped(Box::new(end)));
    }
    if !is_sendable(task) {
        return None;
    }
    run.prepare().ok()?;
    let (acted, given) = run.act();
    let request = slot.take().filter(|_| acted.is_err() && !touched.load(Ordering::Relaxed))?;
    let ahead = Ahead::new(&request).ok()?;
    let (check, diff) = (run.check, run.diff);
    let reach = run.reach.take()?;
    let own = head.reach();
    let is_same_way = reach.become_ == own.become_ && reach.target.leads_to(&own.target);
    is_same_way.then(|| Planned::Asked(Box::new(Asked { ahead, reach, check, diff, given, answer: None })))
}
