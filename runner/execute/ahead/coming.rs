//! What comes after a task when nothing fails, with what includes may bring.

use std::sync::{Arc, OnceLock};

use super::super::cursor::Cursor;
use super::super::strategy::Batch;
use super::super::{include, tags};
use crate::playbook::Task;
use crate::report::HostName;

/// How many tasks after the current one are looked at.
const MOST_COMING: usize = 64;
/// How deep includes in includes are.
const MOST_DEEP: usize = 3;

/// A task that comes later.
pub(in crate::execute) struct Upcoming {
    pub task: Arc<Task>,
    /// What an include would bring, where that is known by now.
    pub brings: Vec<Upcoming>,
}

/// What comes after a task that hosts are at.
#[derive(Default)]
pub struct Coming<'a> {
    /// What may be sent along, to be executed.
    pub(in crate::execute) then: Vec<Arc<Task>>,
    /// Where else to look for what may be planned ahead.
    batch: Option<(&'a Batch<'a>, HostName)>,
    /// Whether nobody but this host is at work.
    pub(in crate::execute) alone: bool,
    upcoming: OnceLock<Vec<Upcoming>>,
}

impl<'a> Coming<'a> {
    pub(in crate::execute) fn new(
        batch: &'a Batch<'a>,
        group: &[HostName],
        together: bool,
        then: Vec<Arc<Task>>,
    ) -> Coming<'a> {
        let alone = group.len() == 1 && together;
        let batch = super::may_plan(batch.world).then(|| (batch, group[0].clone()));
        Coming { then, batch, alone, upcoming: OnceLock::new() }
    }

    /// Returns what may be planned ahead; found out once for all hosts that are at the task.
    pub(super) fn upcoming(&self) -> &[Upcoming] {
        let Some((batch, host)) = &self.batch else { return &[] };
        self.upcoming.get_or_init(|| {
            let selected = |task: &Task| task.is_handler || tags::selected(task, &batch.world.options);
            let Some(cursor) = batch.cursors.get(host) else { return Vec::new() };
            let coming = cursor.ahead(MOST_COMING, &selected);
            coming.into_iter().map(|task| batch.seen_from_afar(task, &selected, MOST_DEEP)).collect()
        })
    }
}

impl Batch<'_> {
    fn seen_from_afar(&self, task: Arc<Task>, selected: &dyn Fn(&Task) -> bool, depth: usize) -> Upcoming {
        let mut brings = Vec::new();
        // A host that goes on by itself would read all files for itself alone.
        if depth > 0
            && self.announced.is_none()
            && let Some(block) = self.peek(&task)
        {
            let mut cursor = Cursor::default();
            cursor.begin(block);
            let coming = cursor.whole(MOST_COMING, selected);
            brings = coming.into_iter().map(|task| self.seen_from_afar(task, selected, depth - 1)).collect();
        }
        Upcoming { task, brings }
    }

    /// Returns what a task will include, read once for the batch.
    fn peek(&self, task: &Arc<Task>) -> Option<Arc<crate::playbook::Block>> {
        if &*task.action.name != "include_tasks" {
            return None;
        }
        let mut peeked = self.peeked.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let read = |_| (task.clone(), include::peek(self.world, self.play, task));
        let key = Arc::as_ptr(task) as usize;
        peeked.entry(key).or_insert_with(|| read(key)).1.clone()
    }
}
