//! A flush of handlers: each notified handler runs once, in the order of their definition.

use std::sync::Arc;

use super::ahead::Coming;
use super::cursor::{AfterFailure, Cursor};
use super::strategy::{Batch, is_run_once};
use super::task::TaskEnd;
use crate::playbook::Task;
use crate::report::{Event, HostName, Status};

impl Batch<'_> {
    /// Runs the handlers that wait for these hosts, once each. What a handler notifies runs in the same pass when it
    /// stands further down, and at the next flush otherwise.
    pub(super) fn flush(&mut self, hosts: &[HostName]) {
        let mut at = 0;
        while !self.world.is_interrupted() && !self.play.is_ended() {
            let gone = |host: &HostName| self.casualties.unreachable.contains(host) || self.ended.contains(host);
            let hosts: Vec<HostName> = hosts.iter().filter(|host| !gone(host)).cloned().collect();
            self.notified.resolve(self.world, self.play, &hosts);
            let Some((handler, notified, next)) = self.notified.next(self.play, &hosts, at) else { return };
            at = next;
            if &*handler.action.name == "meta" {
                self.meta_handler(&handler, &notified);
            } else {
                self.handler(&handler, &notified);
            }
        }
    }

    fn meta_handler(&mut self, handler: &Arc<Task>, hosts: &[HostName]) {
        let before: Vec<Cursor> = hosts.iter().map(|host| self.cursor(host).clone()).collect();
        self.meta(handler, hosts);
        for (host, cursor) in hosts.iter().zip(before) {
            if !self.ended.contains(host) {
                self.cursors.insert(host.clone(), cursor);
            }
        }
    }

    fn handler(&mut self, handler: &Arc<Task>, notified: &[HostName]) {
        let info = self.announce(handler, &notified[0]);
        let once = is_run_once(self.world, self.play, handler, &notified[0]);
        let runners = if once { &notified[..1] } else { notified };
        let ends = self.run_on(handler, &info, runners, &Coming::default());
        self.run_included(handler, &ends);
        self.judge_all(handler, once, &ends);
        for end in ends.iter().filter(|end| end.status == Status::Failed && !end.ignored) {
            self.notified.forget(&end.host);
        }
    }

    /// Runs what a handler included at once, on its hosts in step; each goes on where it was afterwards.
    fn run_included(&mut self, handler: &Arc<Task>, ends: &[TaskEnd]) {
        let mut running: Vec<(HostName, Cursor)> = Vec::new();
        for end in ends.iter().filter(|end| !end.includes.is_empty()) {
            match self.include(handler, end) {
                Ok(blocks) => {
                    for at in &blocks {
                        let (_, inclusion, read) = &self.included[*at];
                        let (file, item) = (read.file.clone(), inclusion.label.clone());
                        self.world.tell(Event::Included { file, hosts: vec![end.host.clone()], item });
                    }
                    let before = self.cursor(&end.host).clone();
                    let mut inner = Cursor::default();
                    inner.begin(self.included_block(&blocks));
                    self.cursors.insert(end.host.clone(), inner);
                    running.push((end.host.clone(), before));
                }
                Err(message) => {
                    self.world.tell(Event::Error(message));
                    self.fail_host(&end.host, true);
                }
            }
        }
        let hosts: Vec<HostName> = running.iter().map(|(host, _)| host.clone()).collect();
        self.drive(&hosts);
        for (host, before) in running {
            let failed = self.cursor(&host).is_failing();
            self.cursors.insert(host.clone(), before);
            if failed {
                self.casualties.failed.remove(&host);
                self.play.come_back(&host);
                if self.fail_host(&host, true) != AfterFailure::Rescued {
                    self.notified.forget(&host);
                }
            }
        }
    }
}
