//! How hosts go through a play's tasks: in step (`linear`) or each as fast as it can (`free`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::cursor::{AfterFailure, Cursor};
use super::handlers::Notified;
use super::include::{self, Inclusion};
use super::play::Casualties;
use super::reach::truth;
use super::task::{HostTask, TaskEnd};
use super::{ItemRun, PlayRun, World, tags};
use crate::action;
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

/// Some hosts of a play on their way through its tasks.
pub struct Batch<'a> {
    world: &'a Arc<World>,
    play: &'a Arc<PlayRun>,
    hosts: Vec<HostName>,
    cursors: HashMap<HostName, Cursor>,
    notified: Notified,
    casualties: Casualties,
    /// What was included, so that hosts that ask for the same go on in step.
    included: Vec<(Arc<Task>, Inclusion, Arc<Block>)>,
    pool: rayon::ThreadPool,
    stop: bool,
}

impl<'a> Batch<'a> {
    pub fn new(world: &'a Arc<World>, play: &'a Arc<PlayRun>, hosts: Vec<HostName>) -> Batch<'a> {
        let threads = world.options.forks.clamp(1, hosts.len().max(1));
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("host-{number}"))
            .build()
            .expect("the system gives as many threads as there are forks");
        let cursors = hosts.iter().map(|host| (host.clone(), Cursor::default())).collect();
        Batch {
            world,
            play,
            hosts,
            cursors,
            notified: Notified::default(),
            casualties: Casualties::default(),
            included: Vec::new(),
            pool,
            stop: false,
        }
    }

    /// Returns the hosts that failed or could not be reached.
    pub fn casualties(self) -> Casualties {
        self.casualties
    }

    /// Runs a section of the play, and the handlers that it notified.
    pub fn section(&mut self, tasks: Arc<Block>) -> Stop {
        let hosts = self.play.batch_left();
        for host in &hosts {
            self.cursor(host).begin(tasks.clone());
        }
        let strategy = self.play.play.setting(Keyword::Strategy).map(|setting| setting.value.to_string());
        let strategy = strategy.unwrap_or_else(|| self.world.options.default_strategy.clone());
        match strategy.rsplit('.').next().unwrap_or("linear") {
            "free" | "host_pinned" => self.free(&hosts),
            _ => self.linear(&hosts),
        }
        let force = self.world.options.force_handlers || self.play.flag(Keyword::ForceHandlers, false);
        let hosts = if force {
            self.hosts.iter().filter(|host| !self.casualties.unreachable.contains(*host)).cloned().collect()
        } else {
            self.play.batch_left()
        };
        self.flush(&hosts);
        if self.stop { Stop::Run } else { Stop::No }
    }

    fn cursor(&mut self, host: &HostName) -> &mut Cursor {
        self.cursors.entry(host.clone()).or_default()
    }

    /// Returns the hosts that stand first, at the same task.
    fn first(&mut self, hosts: &[HostName]) -> Option<(Arc<Task>, Vec<HostName>)> {
        let options = &self.world.options;
        let selected = |task: &Task| {
            (task.is_handler || tags::selected(task, &options.tags, &options.skip_tags)) && self.world.has_started(task)
        };
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
        while !self.world.is_interrupted() && !self.stop {
            // A host that failed may have an `always` left to run.
            let active: Vec<HostName> =
                hosts.iter().filter(|host| !self.casualties.unreachable.contains(*host)).cloned().collect();
            let Some((task, group)) = self.first(&active) else { break };
            self.step(&task, &group);
        }
        for host in hosts {
            self.settle(host);
        }
    }

    /// Each host goes on by itself; the pool runs as many at a time as there are forks.
    fn free(&mut self, hosts: &[HostName]) {
        let infos: Mutex<HashMap<usize, Arc<TaskInfo>>> = Mutex::default();
        let shared = Mutex::new(std::mem::take(&mut self.notified));
        let cursors = std::mem::take(&mut self.cursors);
        let (world, play) = (self.world, self.play);
        let ended: Vec<(HostName, Cursor, Casualties)> = self.pool.install(|| {
            use rayon::prelude::*;
            cursors
                .into_par_iter()
                .map(|(host, cursor)| {
                    let mut alone = Alone {
                        world,
                        play,
                        host: host.clone(),
                        cursor,
                        casualties: Casualties::default(),
                        notified: &shared,
                        infos: &infos,
                    };
                    if hosts.contains(&host) {
                        alone.run();
                    }
                    (host, alone.cursor, alone.casualties)
                })
                .collect()
        });
        self.notified = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (host, cursor, lost) in ended {
            self.cursors.insert(host, cursor);
            self.casualties.failed.extend(lost.failed);
            self.casualties.unreachable.extend(lost.unreachable);
        }
        for host in hosts {
            self.settle(host);
        }
    }

    /// Runs one task on the hosts that stand at it.
    fn step(&mut self, task: &Arc<Task>, group: &[HostName]) {
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
        let info = announce(self.world, self.play, task, &group[0]);
        let once = is_run_once(self.world, self.play, task, &group[0]);
        let runners = if once { &group[..1] } else { group };
        let ends = self.run_on(task, &info, runners);
        self.take(task, group, once, ends);
    }

    /// Runs a task on hosts in parallel, at most `throttle` at a time.
    fn run_on(&self, task: &Arc<Task>, info: &Arc<TaskInfo>, hosts: &[HostName]) -> Vec<TaskEnd> {
        use rayon::prelude::*;
        let run = |host: &HostName| HostTask { world: self.world, play: self.play, host, task, info }.run();
        let throttle = task
            .inherited(Keyword::Throttle)
            .and_then(|setting| setting.value.to_string().parse::<usize>().ok())
            .filter(|throttle| *throttle > 0)
            .unwrap_or(usize::MAX);
        let waves = hosts.chunks(throttle.min(hosts.len().max(1)));
        waves
            .flat_map(|wave| self.pool.install(|| wave.par_iter().with_max_len(1).map(run).collect::<Vec<_>>()))
            .collect()
    }

    /// Moves each host on as its end says.
    fn take(&mut self, task: &Arc<Task>, group: &[HostName], once: bool, mut ends: Vec<TaskEnd>) {
        let mut included: Vec<(usize, Vec<HostName>)> = Vec::new();
        let fatal = |batch: &Self| {
            once || batch.world.options.any_errors_fatal
                || task.inherited(Keyword::AnyErrorsFatal).is_some_and(|setting| truth(&setting.value))
        };
        for end in &mut ends {
            let blocks = if end.includes.is_empty() { Ok(Vec::new()) } else { self.include(task, end) };
            match blocks {
                Ok(blocks) => {
                    for at in &blocks {
                        match included.iter_mut().find(|(other, _)| other == at) {
                            Some((_, hosts)) => hosts.push(end.host.clone()),
                            None => included.push((*at, vec![end.host.clone()])),
                        }
                    }
                    let hosts = if once { group } else { std::slice::from_ref(&end.host) };
                    for host in hosts.to_vec() {
                        self.go_on(&host, &blocks);
                    }
                }
                Err(message) => self.fail_include(task, end, &message),
            }
        }
        for (at, hosts) in included {
            let (_, inclusion, _) = &self.included[at];
            let file = self.file_of(at);
            self.world.tell(Event::Included { file, hosts, item: inclusion.label.clone() });
        }
        let mut failed_any = false;
        for end in &ends {
            failed_any |= self.judge(end);
        }
        if failed_any && fatal(self) {
            let others: Vec<HostName> = self.play.batch_left();
            for host in others.iter().filter(|host| ends.iter().all(|end| end.host != **host)) {
                self.fail_host(host, false);
            }
            for end in ends.iter().filter(|end| !matches!(end.status, Status::Failed | Status::Unreachable)) {
                self.fail_host(&end.host, false);
            }
            self.stop |= self.play.batch_left().is_empty() && !self.any_pending();
        }
        if failed_any && self.too_many_failed() {
            self.stop = true;
            for host in self.hosts.clone() {
                self.cursor(&host).end();
            }
        }
    }

    fn any_pending(&mut self) -> bool {
        let hosts = self.hosts.clone();
        self.first(&hosts).is_some()
    }

    /// Passes the task; included blocks come in its place.
    fn go_on(&mut self, host: &HostName, blocks: &[usize]) {
        let blocks: Vec<Arc<Block>> = blocks.iter().map(|at| self.included[*at].2.clone()).collect();
        let play = self.play.clone();
        let cursor = self.cursor(host);
        match blocks.len() {
            0 => cursor.advance(),
            1 => cursor.enter(blocks[0].clone()),
            _ => cursor.enter(together(&play, blocks.into_iter().map(Item::Block).collect())),
        }
    }

    /// Reads what a host includes, or finds it read; returns indices into `included`.
    fn include(&mut self, task: &Arc<Task>, end: &TaskEnd) -> Result<Vec<usize>, String> {
        let mut found = Vec::new();
        for inclusion in &end.includes {
            let known =
                self.included.iter().position(|(other, asked, _)| Arc::ptr_eq(other, task) && asked == inclusion);
            let at = match known {
                Some(at) => at,
                None => {
                    let read = include::load(self.world, self.play, task, inclusion)?;
                    let public = inclusion.args.get("public").is_some_and(truth);
                    self.play.add_role(read.roles, &read.handlers, public);
                    self.included.push((task.clone(), inclusion.clone(), read.block));
                    self.included.len() - 1
                }
            };
            found.push(at);
        }
        Ok(found)
    }

    fn file_of(&self, at: usize) -> String {
        let (task, inclusion, block) = &self.included[at];
        if &*task.action.name == "include_role" {
            let name = inclusion.args.get("name").or_else(|| inclusion.args.get("role"));
            return name.map(Value::to_string).unwrap_or_default();
        }
        let first = block.tasks.iter().map(|item| match item {
            Item::Task(task) => task.place,
            Item::Block(block) => block.place,
        });
        let path = first.filter_map(crate::source::Place::path).next();
        let named = inclusion.args.get("file").or_else(|| inclusion.args.get("_raw_params")).map(Value::to_string);
        match path {
            Some(path) => std::path::absolute(&path).unwrap_or(path).display().to_string(),
            None => named.unwrap_or_default(),
        }
    }

    /// An include that can't be read fails its host; the task itself had gone well.
    fn fail_include(&mut self, task: &Arc<Task>, end: &mut TaskEnd, message: &str) {
        let info = announce_quietly(self.world, self.play, task, &end.host);
        let mut result = Map::new();
        result.insert("msg", message);
        result.insert("failed", true);
        end.status = Status::Failed;
        end.result = result.clone();
        self.world.count(&end.host, Status::Failed, false, false);
        self.world.tell(Event::Result(crate::report::Outcome {
            host: end.host.clone(),
            delegated: None,
            task: info,
            status: Status::Failed,
            ignored: false,
            is_loop: false,
            item: None,
            result,
            no_log: false,
            duration_s: 0.0,
            verbose_always: false,
        }));
        self.cursor(&end.host.clone()).advance();
    }

    /// Notes notifications and failures; returns whether the host failed.
    fn judge(&mut self, end: &TaskEnd) -> bool {
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
        keep_failure(self.world, self.play, end);
    }

    fn fail_host(&mut self, host: &HostName, counted: bool) {
        let after = self.cursor(host).fail();
        match after {
            AfterFailure::Rescued if counted => self.world.count_rescued(host),
            AfterFailure::Rescued => {}
            AfterFailure::Pending | AfterFailure::Out => {
                self.casualties.failed.insert(host.clone());
                self.play.leave(host);
            }
        }
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
        let Some(setting) = self.play.play.setting(Keyword::MaxFailPercentage) else { return false };
        let Ok(most) = setting.value.to_string().trim_end_matches('%').parse::<f64>() else { return false };
        let lost = self.casualties.failed.len() + self.casualties.unreachable.len();
        lost as f64 / self.hosts.len().max(1) as f64 * 100.0 > most
    }

    /// Runs the handlers that wait for these hosts, those too that they notify themselves.
    fn flush(&mut self, hosts: &[HostName]) {
        while !self.world.is_interrupted() {
            let hosts: Vec<HostName> =
                hosts.iter().filter(|host| !self.casualties.unreachable.contains(*host)).cloned().collect();
            let Some((handler, notified)) = self.notified.next(self.play, &hosts) else { return };
            let info = announce(self.world, self.play, &handler, &notified[0]);
            let once = is_run_once(self.world, self.play, &handler, &notified[0]);
            let runners = if once { &notified[..1] } else { &notified[..] };
            let ends = self.run_on(&handler, &info, runners);
            for end in ends {
                if !end.includes.is_empty() {
                    self.run_included_handlers(&handler, &end);
                }
                for name in &end.notified {
                    if let Err(message) = self.notified.add(self.world, self.play, &end.host, name) {
                        self.world.tell(Event::Error(message));
                    }
                }
                if matches!(end.status, Status::Failed) && !end.ignored {
                    self.keep_failure(&end);
                    self.fail_host(&end.host, true);
                    self.notified.forget(&end.host);
                } else if end.status == Status::Unreachable && !end.ignored {
                    self.casualties.unreachable.insert(end.host.clone());
                    self.play.leave(&end.host);
                }
            }
        }
    }

    /// A handler that includes tasks runs them at once on its host.
    fn run_included_handlers(&mut self, handler: &Arc<Task>, end: &TaskEnd) {
        let blocks = match self.include(handler, end) {
            Ok(blocks) => blocks,
            Err(message) => {
                self.world.tell(Event::Error(message));
                self.fail_host(&end.host, true);
                return;
            }
        };
        let before = self.cursor(&end.host).clone();
        for at in blocks {
            let block = self.included[at].2.clone();
            self.cursor(&end.host).begin(block);
            self.linear(std::slice::from_ref(&end.host));
        }
        if !self.cursor(&end.host).is_failing() {
            self.cursors.insert(end.host.clone(), before);
        }
    }

    fn meta(&mut self, task: &Arc<Task>, group: &[HostName]) {
        let word = task.action.args.get("_raw_params").map(Value::to_string).unwrap_or_default();
        let mut meant = Vec::new();
        for host in group {
            match holds(self.world, self.play, task, host) {
                Ok(true) => meant.push(host.clone()),
                Ok(false) => {}
                Err(message) => {
                    self.world.tell(Event::Error(message));
                    self.cursor(host).advance();
                    self.fail_host(host, false);
                    continue;
                }
            }
            self.cursor(host).advance();
        }
        if meant.is_empty() {
            return;
        }
        match word.trim() {
            "flush_handlers" => self.flush(&meant),
            "end_play" => self.hosts.clone().iter().for_each(|host| self.cursor(host).end()),
            "end_batch" => self.hosts.clone().iter().for_each(|host| self.cursor(host).end()),
            "end_host" => {
                for host in &meant {
                    self.cursor(host).end();
                    self.play.leave(host);
                }
            }
            "end_role" => meant.iter().for_each(|host| self.cursor(host).end_role()),
            "clear_host_errors" => {
                for host in self.hosts.clone() {
                    self.cursor(&host).clear_failure();
                    self.casualties.failed.remove(&host);
                    self.casualties.unreachable.remove(&host);
                    self.play.come_back(&host);
                }
            }
            "clear_facts" => {
                for host in &meant {
                    self.world.change_state(host, |state| {
                        state.facts = Arc::default();
                        state.injected = Arc::default();
                    });
                }
            }
            "reset_connection" => {
                for host in &meant {
                    let templar = crate::vars::templar(self.world, Some(self.play), host, Some(task));
                    if let Ok(reach) = super::reach::of(self.world, Some(self.play), Some(task), host, host, &templar) {
                        self.world.connections.close(&reach.target);
                    }
                }
            }
            // Checked when the playbook was read: what is left needs nothing done.
            _ => {}
        }
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

/// One host that goes on by itself.
struct Alone<'a> {
    world: &'a Arc<World>,
    play: &'a Arc<PlayRun>,
    host: HostName,
    cursor: Cursor,
    casualties: Casualties,
    notified: &'a Mutex<Notified>,
    /// Announcements by their task's address, since each host comes by itself.
    infos: &'a Mutex<HashMap<usize, Arc<TaskInfo>>>,
}

impl Alone<'_> {
    fn run(&mut self) {
        let options = &self.world.options;
        while !self.world.is_interrupted() {
            let selected =
                |task: &Task| tags::selected(task, &options.tags, &options.skip_tags) && self.world.has_started(task);
            let Some((task, _)) = self.cursor.peek(&selected) else { return };
            if &*task.action.name == "meta" {
                self.cursor.advance();
                continue;
            }
            let info = self.info(&task);
            self.world.tell(Event::TaskStart(info.clone()));
            let end = HostTask { world: self.world, play: self.play, host: &self.host, task: &task, info: &info }.run();
            let mut notified = self.notified.lock().unwrap_or_else(PoisonError::into_inner);
            for name in &end.notified {
                if let Err(message) = notified.add(self.world, self.play, &self.host, name) {
                    self.world.tell(Event::Error(message));
                }
            }
            drop(notified);
            match end.status {
                Status::Unreachable if !end.ignored => {
                    self.casualties.unreachable.insert(self.host.clone());
                    self.play.leave(&self.host);
                    self.cursor.end();
                    return;
                }
                Status::Failed if !end.ignored => {
                    keep_failure(self.world, self.play, &end);
                    self.cursor.advance();
                    if self.cursor.fail() == AfterFailure::Rescued {
                        self.world.count_rescued(&self.host);
                    }
                }
                Status::Ok | Status::Changed | Status::Skipped | Status::Failed | Status::Unreachable => {
                    self.include(&task, &end);
                }
            }
        }
    }

    /// Passes the task; what it included comes in its place.
    fn include(&mut self, task: &Arc<Task>, end: &TaskEnd) {
        let mut tasks = Vec::new();
        for inclusion in &end.includes {
            match include::load(self.world, self.play, task, inclusion) {
                Ok(read) => {
                    let public = inclusion.args.get("public").is_some_and(truth);
                    self.play.add_role(read.roles, &read.handlers, public);
                    tasks.push(Item::Block(read.block));
                }
                Err(message) => {
                    self.world.tell(Event::Error(message));
                    self.cursor.advance();
                    self.cursor.fail();
                    return;
                }
            }
        }
        if tasks.is_empty() { self.cursor.advance() } else { self.cursor.enter(together(self.play, tasks)) }
    }

    fn info(&self, task: &Arc<Task>) -> Arc<TaskInfo> {
        let mut infos = self.infos.lock().unwrap_or_else(PoisonError::into_inner);
        infos
            .entry(Arc::as_ptr(task) as usize)
            .or_insert_with(|| announce_quietly(self.world, self.play, task, &self.host))
            .clone()
    }
}

/// Keeps what a `rescue` asks for: the task that failed, and its result.
fn keep_failure(world: &Arc<World>, play: &Arc<PlayRun>, end: &TaskEnd) {
    let mut failed_task = Map::new();
    failed_task.insert("name", own_name(world, play, &end.task, &end.host));
    failed_task.insert("action", end.task.action.written.as_str());
    let result = Value::map(end.result.clone());
    world.change_state(&end.host, |state| {
        state.set("ansible_failed_task", Value::map(failed_task));
        state.set("ansible_failed_result", result);
    });
}

fn is_run_once(world: &Arc<World>, play: &Arc<PlayRun>, task: &Task, host: &HostName) -> bool {
    let Some(setting) = task.inherited(Keyword::RunOnce) else { return false };
    crate::vars::templar(world, Some(play), host, Some(task)).value(&setting.value).is_ok_and(|value| truth(&value))
}

/// Returns whether a task's conditions hold for a host.
fn holds(world: &Arc<World>, play: &Arc<PlayRun>, task: &Arc<Task>, host: &HostName) -> Result<bool, String> {
    let templar = crate::vars::templar(world, Some(play), host, Some(task));
    for condition in task.conditions() {
        if !templar.condition(condition).map_err(|error| error.diagnostic().render(false))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Tells that a task begins.
fn announce(world: &Arc<World>, play: &Arc<PlayRun>, task: &Arc<Task>, host: &HostName) -> Arc<TaskInfo> {
    let info = announce_quietly(world, play, task, host);
    world.tell(Event::TaskStart(info.clone()));
    info
}

fn announce_quietly(world: &Arc<World>, play: &Arc<PlayRun>, task: &Arc<Task>, host: &HostName) -> Arc<TaskInfo> {
    let check = task.inherited(Keyword::CheckMode).map_or(world.options.check, |setting| truth(&setting.value));
    Arc::new(TaskInfo {
        id: world.next_id(),
        name: announced_name(world, play, task, host),
        action: task.action.written.clone(),
        place: task.place,
        kind: if task.is_handler { TaskKind::Handler } else { TaskKind::Task },
        check,
    })
}

/// Returns a task's name as a host sees it; what it calls, when it has none.
fn own_name(world: &Arc<World>, play: &Arc<PlayRun>, task: &Task, host: &HostName) -> String {
    match task.name() {
        Some(setting) if setting.value.truthy() => {
            let templar = crate::vars::templar(world, Some(play), host, Some(task));
            templar.text(&setting.value).unwrap_or_else(|_| setting.value.to_string())
        }
        Some(_) | None => action::shown_name(&task.action),
    }
}

/// Returns a task's name as it is shown: its role's before it, templates rendered where they can be.
pub(super) fn announced_name(world: &Arc<World>, play: &Arc<PlayRun>, task: &Task, host: &HostName) -> String {
    let own = own_name(world, play, task, host);
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
