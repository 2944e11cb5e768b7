//! How hosts go through a play's tasks: in step (`linear`) or each as fast as it can (`free`).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::ahead::{self, Coming};
use super::cursor::{AfterFailure, Cursor};
use super::debugger::Debugger;
use super::handlers::Notified;
use super::include::{Included, Inclusion};
use super::play::Casualties;
use super::reach::truth;
use super::task::{HostTask, TaskEnd};
use super::{Gathering, ItemRun, PlayRun, World, tags};
use crate::action;
use crate::config;
use crate::playbook::{Block, Item, Keyword, Task};
use crate::report::{Event, HostName, Status, TaskInfo, TaskKind};
use crate::value::{Map, Value};

/// Whether the run goes on after a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    No,
    /// No further play runs.
    Run,
}

/// Announcements by their task's address, where hosts come to a task each by itself.
pub type Announced = Mutex<HashMap<usize, Arc<TaskInfo>>>;

/// What tasks would include, by their address; the task is kept, so that its address stays its own.
type Peeked = HashMap<usize, (Arc<Task>, Option<Arc<Block>>)>;

/// Some hosts of a play on their way through its tasks.
pub struct Batch<'a> {
    pub(super) world: &'a Arc<World>,
    pub(super) play: &'a Arc<PlayRun>,
    pub(super) hosts: Vec<HostName>,
    pub(super) cursors: HashMap<HostName, Cursor>,
    pub(super) notified: Notified,
    pub(super) casualties: Casualties,
    /// Hosts that left by themselves: `meta: end_host` and its like.
    pub(super) ended: HashSet<HostName>,
    /// What was included, so that hosts that ask for the same go on in step.
    pub(super) included: Vec<(Arc<Task>, Inclusion, Included)>,
    /// What hosts are worked on in parallel with; a host alone needs none.
    pool: Option<rayon::ThreadPool>,
    /// Shared with other batches under the strategy `free`.
    pub(super) announced: Option<&'a Announced>,
    /// What was read before its turn.
    pub(super) peeked: Mutex<Peeked>,
    pub(super) stop: bool,
}

impl<'a> Batch<'a> {
    pub fn new(world: &'a Arc<World>, play: &'a Arc<PlayRun>, hosts: Vec<HostName>) -> Batch<'a> {
        let threads = world.options.forks.min(hosts.len());
        let pool = (threads > 1).then(|| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .thread_name(|number| format!("host-{number}"))
                .build()
                .expect("the system gives as many threads as there are forks")
        });
        let cursors = hosts.iter().map(|host| (host.clone(), Cursor::default())).collect();
        Batch {
            world,
            play,
            hosts,
            cursors,
            notified: Notified::default(),
            casualties: Casualties::default(),
            ended: HashSet::new(),
            included: Vec::new(),
            pool,
            announced: None,
            peeked: Mutex::default(),
            stop: false,
        }
    }

    /// A batch of one host, which goes on by itself.
    pub fn alone(world: &'a Arc<World>, play: &'a Arc<PlayRun>, host: HostName, announced: &'a Announced) -> Batch<'a> {
        Batch { announced: Some(announced), ..Batch::new(world, play, vec![host]) }
    }

    /// Returns the hosts that failed or could not be reached.
    pub fn casualties(self) -> Casualties {
        self.casualties
    }

    /// Runs a section of the play, then, if `flush` says so, the handlers that it notified.
    pub fn section(&mut self, tasks: Arc<Block>, flush: bool) -> Stop {
        let mut hosts = self.hosts_left();
        if self.world.options.gathering == Gathering::Smart && gathers_only(&tasks) {
            let knows = |host: &HostName| {
                let state = self.world.state(host);
                !state.read().unwrap_or_else(PoisonError::into_inner).facts.is_empty()
            };
            hosts.retain(|host| !knows(host));
        }
        for host in &hosts {
            self.cursor(host).begin(tasks.clone());
        }
        self.linear(&hosts);
        if flush {
            let force = self.play.flag(Keyword::ForceHandlers, self.world.options.force_handlers);
            let gone = |host: &HostName| self.casualties.unreachable.contains(host) || self.ended.contains(host);
            let hosts =
                if force { hosts.iter().filter(|host| !gone(host)).cloned().collect() } else { self.hosts_left() };
            if config::is_set("DEFAULT_DEBUG") {
                for host in hosts.iter().filter(|host| self.notified.is_waited_for(host)) {
                    self.world.tell(Event::Note(format!("META: triggered running handlers for {host}")));
                }
            }
            self.flush(&hosts);
        }
        if self.stop { Stop::Run } else { Stop::No }
    }

    /// Returns the hosts that are still in the play.
    pub(super) fn hosts_left(&self) -> Vec<HostName> {
        self.play.left_of(&self.hosts)
    }

    pub(super) fn cursor(&mut self, host: &HostName) -> &mut Cursor {
        self.cursors.entry(host.clone()).or_default()
    }

    /// Returns the hosts that stand first, at the same task.
    fn first(&mut self, hosts: &[HostName]) -> Option<(Arc<Task>, Vec<HostName>)> {
        let options = &self.world.options;
        let selected = |task: &Task| (task.is_handler || tags::selected(task, options)) && self.world.has_started(task);
        let mut first: Option<(Arc<Task>, super::cursor::Position, Vec<HostName>)> = None;
        for host in hosts {
            let Some(cursor) = self.cursors.get_mut(host) else { continue };
            let Some((task, position)) = cursor.peek(&selected) else { continue };
            match &mut first {
                Some((known, at, together)) if *at == position && Arc::ptr_eq(known, &task) => {
                    together.push(host.clone());
                }
                Some((_, at, _)) if *at <= position => {}
                Some(_) | None => first = Some((task, position, vec![host.clone()])),
            }
        }
        first.map(|(task, _, hosts)| (task, hosts))
    }

    fn linear(&mut self, hosts: &[HostName]) {
        self.drive(hosts);
        for host in hosts {
            self.settle(host);
        }
    }

    /// Runs what stands before hosts until nothing does.
    pub(super) fn drive(&mut self, hosts: &[HostName]) {
        while !self.stop && !self.play.is_ended() {
            // A host that failed may have an `always` left to run.
            let gone = |host: &HostName| self.casualties.unreachable.contains(host) || self.ended.contains(host);
            let mut active: Vec<HostName> = hosts.iter().filter(|host| !gone(host)).cloned().collect();
            if self.world.is_interrupted() {
                // What hosts did that nobody was told of yet is told; nothing else begins.
                active = self.world.sent.settled(&active, self.world);
            }
            let Some((task, group)) = self.first(&active) else { break };
            self.step(&task, &group, group.len() == active.len());
        }
        for host in hosts {
            self.world.sent.forget(host);
        }
    }

    /// Runs one task on the hosts that stand at it; `together` says that no others are left at work.
    fn step(&mut self, task: &Arc<Task>, group: &[HostName], together: bool) {
        if self.refuses(task, group) {
            return;
        }
        if &*task.action.name == "meta" {
            self.meta(task, group);
            return;
        }
        if self.world.options.step && !crate::cli::prompt::step(&announced_name(self.world, self.play, task, &group[0]))
        {
            for host in group {
                self.cursor(host).advance();
            }
            return;
        }
        let info = self.announce(task, &group[0]);
        let once = is_run_once(self.world, self.play, task, &group[0]);
        let runners = if once { &group[..1] } else { group };
        let then = ahead::next_of(self, task, group, together);
        let ends = self.run_on(task, &info, runners, &Coming::new(self, group, together, then));
        self.take(task, &info, group, once, ends);
    }

    /// Tells that a task begins.
    pub(super) fn announce(&self, task: &Arc<Task>, host: &HostName) -> Arc<TaskInfo> {
        let info = match self.announced {
            None => announce_quietly(self.world, self.play, task, host),
            Some(known) => known
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry(Arc::as_ptr(task) as usize)
                .or_insert_with(|| announce_quietly(self.world, self.play, task, host))
                .clone(),
        };
        self.world.tell(Event::TaskStart(info.clone()));
        info
    }

    /// Runs a task on hosts in parallel, at most `throttle` at a time. What comes `next` may be sent along.
    pub(super) fn run_on(
        &self,
        task: &Arc<Task>,
        info: &Arc<TaskInfo>,
        hosts: &[HostName],
        next: &Coming<'_>,
    ) -> Vec<TaskEnd> {
        use rayon::prelude::*;
        // Whoever has not begun when the user asks to stop does not begin.
        let run = |host: &HostName| {
            let task = HostTask { world: self.world, play: self.play, host, task, info, over: &[], next };
            (!self.world.is_interrupted() || self.world.sent.has_answer(host)).then(|| task.run())
        };
        // A host alone needs no other thread.
        let ends: Vec<TaskEnd> = match self.pool.as_ref().filter(|_| hosts.len() > 1) {
            None => hosts.iter().filter_map(run).collect(),
            Some(pool) => {
                let throttle = hosts.first().and_then(|host| self.throttle(task, host)).unwrap_or(usize::MAX);
                let waves = hosts.chunks(throttle.min(hosts.len()));
                let wave_of = |wave: &[HostName]| {
                    pool.install(|| wave.par_iter().with_max_len(1).filter_map(run).collect::<Vec<_>>())
                };
                waves.flat_map(wave_of).collect()
            }
        };
        let debugger = Debugger::new(self.world, self.play, task, info);
        ends.into_iter().map(|end| debugger.after(end)).collect()
    }

    /// Returns how many hosts may be at a task at a time.
    fn throttle(&self, task: &Task, host: &HostName) -> Option<usize> {
        let setting = task.inherited(Keyword::Throttle)?;
        let templar = crate::vars::templar(self.world, Some(self.play), host, Some(task));
        let value = templar.value(&setting.value).unwrap_or_else(|_| setting.value.clone());
        value.to_string().trim().parse().ok().filter(|throttle| *throttle > 0)
    }

    /// Moves each host on as its end says.
    fn take(&mut self, task: &Arc<Task>, info: &Arc<TaskInfo>, group: &[HostName], once: bool, mut ends: Vec<TaskEnd>) {
        let mut included: Vec<(usize, Vec<HostName>)> = Vec::new();
        for end in &mut ends {
            let ran = match end.status {
                Status::Ok | Status::Changed | Status::Failed => true,
                Status::Unreachable | Status::Skipped => false,
            };
            if ran {
                self.cursor(&end.host).mark_ran();
            }
            let blocks = if end.includes.is_empty() { Ok(Vec::new()) } else { self.include(task, end) };
            let hosts = if once { group.to_vec() } else { vec![end.host.clone()] };
            match blocks {
                Ok(blocks) => {
                    for at in &blocks {
                        match included.iter_mut().find(|(other, _)| other == at) {
                            Some((_, hosts)) => hosts.push(end.host.clone()),
                            None => included.push((*at, vec![end.host.clone()])),
                        }
                    }
                    // An include that runs once brings its tasks to the host that it ran for.
                    for host in &hosts {
                        self.go_on(host, if *host == end.host { &blocks } else { &[] });
                    }
                }
                Err(message) => {
                    hosts.iter().for_each(|host| self.go_on(host, &[]));
                    self.fail_include(info, end, &message);
                }
            }
        }
        for (at, hosts) in included {
            let (_, inclusion, read) = &self.included[at];
            let (file, item) = (read.file.clone(), inclusion.label.clone());
            self.world.tell(Event::Included { file, hosts, item });
        }
        self.judge_all(task, once, &ends);
    }

    /// Notes what failed, and what that means for the other hosts.
    pub(super) fn judge_all(&mut self, task: &Arc<Task>, once: bool, ends: &[TaskEnd]) {
        let mut failed_any = false;
        for end in ends {
            failed_any |= self.judge(end);
        }
        let wanted = |setting: &crate::playbook::Setting| {
            let host = &self.hosts[0];
            crate::vars::templar(self.world, Some(self.play), host, Some(task))
                .value(&setting.value)
                .is_ok_and(|value| truth(&value))
        };
        let fatal = once
            || match task.inherited(Keyword::AnyErrorsFatal) {
                Some(setting) => wanted(setting),
                None => self.world.options.any_errors_fatal,
            };
        if failed_any && fatal {
            for host in self.hosts_left() {
                if ends.iter().all(|end| end.host != host || !matches!(end.status, Status::Failed)) {
                    self.fail_host(&host, false);
                }
            }
        }
        if failed_any && self.too_many_failed() {
            for host in self.hosts_left() {
                self.cursor(&host).end();
                self.casualties.failed.insert(host.clone());
                self.play.leave(&host);
            }
            self.world.tell(Event::NoHostsLeft);
            self.stop = true;
        }
    }

    /// Notes notifications and failures; returns whether the host failed.
    pub(super) fn judge(&mut self, end: &TaskEnd) -> bool {
        for name in &end.notified {
            if let Err(message) = self.notified.add(self.world, self.play, &end.host, name) {
                self.world.tell(Event::Error(message));
                self.fail_host(&end.host, true);
                return true;
            }
        }
        match end.status {
            Status::Failed if !end.ignored => {
                self.keep_failure(end);
                self.fail_host(&end.host, true);
                true
            }
            Status::Unreachable if !end.ignored => {
                self.casualties.unreachable.insert(end.host.clone());
                self.play.leave(&end.host);
                self.cursor(&end.host).end();
                true
            }
            Status::Ok | Status::Changed | Status::Skipped | Status::Failed | Status::Unreachable => false,
        }
    }

    /// A rescue sees what failed.
    fn keep_failure(&self, end: &TaskEnd) {
        let task = failed_task(self.world, self.play, end);
        let mut result = end.result.clone();
        result.remove("_diagnostic");
        let result = Value::map(result);
        self.world.change_state(&end.host, |state| {
            state.set("ansible_failed_task", task);
            state.set("ansible_failed_result", result);
        });
    }

    pub(super) fn fail_host(&mut self, host: &HostName, counted: bool) -> AfterFailure {
        let after = self.cursor(host).fail();
        match after {
            AfterFailure::Rescued if counted => self.world.count_rescued(host),
            AfterFailure::Rescued => {}
            AfterFailure::Pending | AfterFailure::Out => {
                self.casualties.failed.insert(host.clone());
                self.play.leave(host);
            }
        }
        after
    }

    /// At a section's end, a host is gone or it goes on.
    fn settle(&mut self, host: &HostName) {
        if self.cursors.get(host).is_some_and(Cursor::is_failing) {
            self.casualties.failed.insert(host.clone());
            self.play.leave(host);
        } else if self.casualties.failed.remove(host) {
            // An outer rescue took the failure up.
            self.play.come_back(host);
            self.world.count_rescued(host);
        }
    }

    fn too_many_failed(&self) -> bool {
        let Some(value) = self.play.value(Keyword::MaxFailPercentage) else { return false };
        let Ok(most) = value.to_string().trim_end_matches('%').parse::<f64>() else { return false };
        let lost = self.casualties.failed.len();
        lost as f64 / self.hosts.len().max(1) as f64 * 100.0 > most
    }
}

/// Returns whether a section is the one that gathers facts before a play's own tasks.
fn gathers_only(section: &Block) -> bool {
    matches!(&section.tasks[..], [Item::Task(task)] if &*task.action.name == "gather_facts" && task.place == section.place)
}

/// Returns a task as `ansible_failed_task` shows it: its keywords, its action and arguments.
pub(super) fn failed_task(world: &Arc<World>, play: &Arc<PlayRun>, end: &TaskEnd) -> Value {
    let task = &end.task;
    let templar = crate::vars::templar(world, Some(play), &end.host, Some(task));
    let shown = |value: &Value| templar.value(value).unwrap_or_else(|_| value.clone());
    let mut map = Map::new();
    for (keyword, setting) in task.keywords.iter() {
        map.insert(keyword.name(), shown(&setting.value));
    }
    let name = task.name().map(|name| shown(&name.value)).unwrap_or_else(|| action::shown_name(&task.action).into());
    map.insert("name", name);
    map.insert("action", task.action.written.as_str());
    map.insert("args", shown(&Value::Map(task.action.args.clone())));
    map.insert("vars", Value::Map(task.vars.clone()));
    Value::map(map)
}

pub(super) fn is_run_once(world: &Arc<World>, play: &Arc<PlayRun>, task: &Task, host: &HostName) -> bool {
    let Some(setting) = task.inherited(Keyword::RunOnce) else { return false };
    crate::vars::templar(world, Some(play), host, Some(task)).value(&setting.value).is_ok_and(|value| truth(&value))
}

/// Returns whether a task's conditions hold for a host.
pub(super) fn holds(
    world: &Arc<World>,
    play: &Arc<PlayRun>,
    task: &Arc<Task>,
    host: &HostName,
) -> Result<bool, String> {
    let templar = crate::vars::templar(world, Some(play), host, Some(task));
    for condition in task.conditions() {
        if !templar.condition(condition).map_err(|error| error.diagnostic().render(false))? {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn announce_quietly(
    world: &Arc<World>,
    play: &Arc<PlayRun>,
    task: &Arc<Task>,
    host: &HostName,
) -> Arc<TaskInfo> {
    let check = task.inherited(Keyword::CheckMode).map_or(world.options.check, |setting| truth(&setting.value));
    Arc::new(TaskInfo {
        id: world.next_id(),
        name: announced_name(world, play, task, host),
        action: task.action.written.clone(),
        place: task.place,
        kind: if task.is_handler { TaskKind::Handler } else { TaskKind::Task },
        check,
        registers: task.keywords.get(Keyword::Register).is_some(),
    })
}

/// Returns a task's name as it is shown: its role's before it, templates rendered where they can be.
pub(super) fn announced_name(world: &Arc<World>, play: &Arc<PlayRun>, task: &Task, host: &HostName) -> String {
    let own = match task.name() {
        Some(setting) if setting.value.truthy() => {
            let templar = crate::vars::templar(world, Some(play), host, Some(task));
            templar.text(&setting.value).unwrap_or_else(|_| setting.value.to_string())
        }
        Some(_) | None => action::shown_name(&task.action),
    };
    match task.role() {
        Some(role) => format!("{} : {own}", role.name),
        None => own,
    }
}

impl ItemRun<'_> {
    /// Returns the task's name as it is shown.
    pub fn name(&self) -> &str {
        &self.info.name
    }
}
