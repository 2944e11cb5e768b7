//! What tasks include takes their place.

use std::sync::Arc;

use super::PlayRun;
use super::include;
use super::reach::truth;
use super::strategy::Batch;
use super::task::TaskEnd;
use crate::playbook::{Block, Item, Task};
use crate::report::{Event, HostName, Status, TaskInfo};
use crate::value::Map;

impl Batch<'_> {
    /// Passes the task; included blocks come in its place.
    pub(super) fn go_on(&mut self, host: &HostName, blocks: &[usize]) {
        if blocks.is_empty() {
            self.cursor(host).advance();
        } else {
            let block = self.included_block(blocks);
            self.cursor(host).enter(block);
        }
    }

    /// Returns what was included as one block.
    pub(super) fn included_block(&self, blocks: &[usize]) -> Arc<Block> {
        match blocks {
            [one] => self.included[*one].2.block.clone(),
            several => {
                let blocks = several.iter().map(|at| Item::Block(self.included[*at].2.block.clone()));
                together(self.play, blocks.collect())
            }
        }
    }

    /// Reads what a host includes, or finds it read; returns indices into `included`.
    pub(super) fn include(&mut self, task: &Arc<Task>, end: &TaskEnd) -> Result<Vec<usize>, String> {
        let mut found = Vec::new();
        for inclusion in &end.includes {
            let known =
                self.included.iter().position(|(other, asked, _)| Arc::ptr_eq(other, task) && asked == inclusion);
            let at = match known {
                Some(at) => at,
                None => {
                    let mut read = match include::load(self.world, self.play, task, inclusion) {
                        Ok(read) => read,
                        Err(refused) => {
                            if refused.broken {
                                self.world.tell(Event::Error(refused.message.clone()));
                                self.world.note_mistake();
                                self.stop = true;
                            }
                            return Err(refused.message);
                        }
                    };
                    let public = match inclusion.args.get("public") {
                        Some(public) => truth(public),
                        None => self.world.options.includes_publish,
                    };
                    self.play.add_role(std::mem::take(&mut read.roles), &read.handlers, public);
                    self.included.push((task.clone(), inclusion.clone(), read));
                    self.included.len() - 1
                }
            };
            found.push(at);
        }
        Ok(found)
    }

    /// An include that can't be read fails its host; the task itself had gone well.
    pub(super) fn fail_include(&mut self, info: &Arc<TaskInfo>, end: &mut TaskEnd, message: &str) {
        let mut result = Map::new();
        result.insert("msg", message);
        result.insert("failed", true);
        end.status = Status::Failed;
        end.result = result.clone();
        self.world.count(&end.host, Status::Failed, false, false);
        if self.stop {
            // The mistake has been told, and is nobody's in particular.
            return;
        }
        self.world.tell(Event::Result(crate::report::Outcome {
            host: end.host.clone(),
            delegated: None,
            task: info.clone(),
            status: Status::Failed,
            ignored: false,
            is_loop: false,
            item: None,
            result,
            no_log: false,
            duration_s: 0.0,
            verbose_always: false,
        }));
    }
}

/// Returns what one task included several times over as one block.
fn together(play: &PlayRun, tasks: Vec<Item>) -> Arc<Block> {
    Arc::new(Block {
        place: play.play.place,
        parent: play.play.parent.clone(),
        tasks,
        rescue: Vec::new(),
        always: Vec::new(),
        role_entry: None,
    })
}
