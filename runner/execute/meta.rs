//! `meta` tasks: they change how the play goes on.

use std::sync::{Arc, PoisonError};

use super::strategy::{Batch, holds};
use crate::playbook::{Keyword, Task};
use crate::report::{Event, HostName, Outcome, Status, TaskInfo};
use crate::value::Map;

/// What of a play ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    Batch,
    Play,
}

impl Batch<'_> {
    pub(super) fn meta(&mut self, task: &Arc<Task>, group: &[HostName]) {
        let word = task.action.args.get("_raw_params").map(ToString::to_string).unwrap_or_default();
        let word = word.trim().to_owned();
        if matches!(word.as_str(), "noop" | "refresh_inventory" | "reset_connection")
            && task.keywords.get(Keyword::When).is_some()
        {
            self.world.tell(Event::Warning(format!("{word} task does not support when conditional")));
        }
        // These mean all hosts at once: the first whose conditions hold decides.
        let for_all = matches!(
            word.as_str(),
            "end_play" | "end_batch" | "clear_host_errors" | "refresh_inventory" | "clear_facts"
        );
        let mut meant = Vec::new();
        let mut told = None;
        for (nth, host) in group.iter().enumerate() {
            // Where each host goes its own way, only what comes of a task is told.
            if (nth == 0 || !(for_all || task.is_handler)) && (self.announced.is_none() || task.is_handler) {
                told = Some(self.announce(task, host));
            }
            match holds(self.world, self.play, task, host) {
                Ok(true) if !for_all || meant.is_empty() => meant.push(host.clone()),
                Ok(true) => {}
                Ok(false) => self.skipped(task, &word, host, told.as_ref()),
                Err(message) => {
                    self.world.tell(Event::Error(message));
                    self.cursor(host).advance();
                    self.fail_host(host, false);
                    continue;
                }
            }
            self.cursor(host).advance();
        }
        if !meant.is_empty() {
            self.carry_out(task, &word, &meant);
        }
    }

    fn skipped(&mut self, task: &Arc<Task>, word: &str, host: &HostName, told: Option<&Arc<TaskInfo>>) {
        let what = match word {
            "flush_handlers" => format!(", not running handlers for {host}"),
            "clear_facts" => format!(", not clearing facts and fact cache for {host}"),
            "clear_host_errors" => format!(", not clearing host error state for {host}"),
            "end_batch" => ", continuing current batch".to_owned(),
            "end_play" => ", continuing play".to_owned(),
            "end_host" => format!(", continuing execution for {host}"),
            "end_role" => {
                format!("continuing role {} for {host}", task.role().map(|role| role.name.as_str()).unwrap_or_default())
            }
            _ => return,
        };
        let reason = format!("{word} conditional evaluated to False{what}");
        self.note(&reason);
        let mut result = Map::new();
        let message = match word {
            "end_host" => format!("end_host conditional evaluated to false, continuing execution for {host}"),
            other => other.to_owned(),
        };
        result.insert("msg", message);
        result.insert("skipped", true);
        result.insert("skip_reason", reason);
        let info =
            told.map_or_else(|| super::strategy::announce_quietly(self.world, self.play, task, host), Arc::clone);
        self.world.tell(Event::Result(Outcome {
            host: host.clone(),
            delegated: None,
            task: info,
            status: Status::Skipped,
            ignored: false,
            is_loop: false,
            item: None,
            result,
            no_log: false,
            duration_s: 0.0,
            verbose_always: false,
        }));
    }

    fn note(&self, text: &str) {
        self.world.tell(Event::Note(format!("META: {text}")));
    }

    fn carry_out(&mut self, task: &Arc<Task>, word: &str, meant: &[HostName]) {
        match word {
            "flush_handlers" => {
                meant.iter().for_each(|host| self.note(&format!("triggered running handlers for {host}")));
                self.flush(meant);
            }
            "end_play" => self.end_hosts(Ends::Play),
            "end_batch" => self.end_hosts(Ends::Batch),
            "end_host" => {
                for host in meant {
                    self.note(&format!("ending play for {host}"));
                    self.end_host(host);
                }
            }
            "end_role" if task.is_handler || task.role().is_none() => {
                let from = if task.is_handler { "from a handler" } else { "from outside of a role" };
                let message = format!("Cannot execute 'end_role' {from}");
                self.world.tell(Event::Error(crate::report::with_origin(&message, task.place)));
                self.world.note_mistake();
                self.stop = true;
            }
            "end_role" => {
                for host in meant {
                    let role = task.role().map(|role| role.name.clone()).unwrap_or_default();
                    self.note(&format!("ending role {role} for {host}"));
                    self.cursor(host).end_role();
                }
            }
            "clear_host_errors" => {
                for host in self.hosts.clone() {
                    self.cursor(&host).clear_failure();
                    self.casualties.failed.remove(&host);
                    self.casualties.unreachable.remove(&host);
                    self.play.come_back(&host);
                }
                self.world.clear_casualties();
                self.note("cleared host errors");
            }
            "clear_facts" => {
                for host in self.hosts_left() {
                    self.world.change_state(&host, |state| {
                        state.facts = Arc::default();
                        state.injected = Arc::default();
                    });
                }
                self.note("facts cleared");
            }
            "reset_connection" => {
                for host in meant {
                    let templar = crate::vars::templar(self.world, Some(self.play), host, Some(task));
                    if let Ok(reach) = super::reach::of(self.world, Some(self.play), Some(task), host, host, &templar) {
                        self.world.connections.close(&reach.target);
                    }
                    self.note("reset connection");
                }
            }
            "refresh_inventory" => match self.refresh_inventory() {
                Ok(()) => self.note("inventory successfully refreshed"),
                Err(message) => {
                    self.world.tell(Event::Error(message));
                    meant.iter().for_each(|host| {
                        self.fail_host(host, false);
                    });
                }
            },
            other => self.note(other),
        }
    }

    fn end_host(&mut self, host: &HostName) {
        self.cursor(host).end();
        self.ended.insert(host.clone());
        self.play.leave(host);
    }

    fn end_hosts(&mut self, ends: Ends) {
        for host in self.hosts.clone() {
            if !self.casualties.unreachable.contains(&host) {
                self.end_host(&host);
            }
        }
        if ends == Ends::Play {
            self.play.end();
        }
        self.note(if ends == Ends::Play { "ending play" } else { "ending batch" });
    }

    /// Reads the inventory anew; what `add_host` and `group_by` added stays.
    fn refresh_inventory(&mut self) -> Result<(), String> {
        let options = &self.world.options;
        let loader = self.world.loader.lock().unwrap_or_else(PoisonError::into_inner);
        let folders = std::slice::from_ref(&options.folder);
        let (fresh, problems) =
            crate::inventory::read(&options.inventory_sources, folders, &options.inventory_reading, loader.vault());
        drop(loader);
        let is_error = |problem: &&crate::source::Diagnostic| problem.severity == crate::source::Severity::Error;
        if let Some(problem) = problems.iter().find(is_error) {
            return Err(problem.render(false));
        }
        self.world.replace_inventory(fresh);
        Ok(())
    }
}
