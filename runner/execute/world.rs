//! What the whole run shares: options, inventory, what hosts have come to know, connections, counts.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use super::ahead::{SendAhead, Sent};
use super::play::Casualties;
use super::pool::{Pool, sleep_unless};
use super::replay::Replay;
use super::shard::Shard;
use crate::inventory::{Inventory, Reading};
use crate::playbook::{Loader, Task};
use crate::report::{Counts, Event, HostName, Recap, Status};
use crate::value::{Map, Value};
use crate::vars::{FactCache, HostState};

/// What the command line, the environment and the configuration file say about a run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    pub check: bool,
    pub diff: bool,
    pub forks: usize,
    pub verbosity: u8,
    pub tags: Vec<String>,
    pub skip_tags: Vec<String>,
    pub limit: Option<String>,
    pub extra_vars: Arc<Map>,
    pub inventory_sources: Vec<String>,
    pub inventory_reading: Reading,
    pub config_file: Option<PathBuf>,
    /// The first playbook's folder.
    pub folder: PathBuf,
    pub start_at_task: Option<String>,
    pub step: bool,
    pub force_handlers: bool,
    /// Whether to notify a handler that there is not fails the host; else it is only warned of.
    pub error_on_missing_handler: bool,
    pub any_errors_fatal: bool,
    pub gathering: Gathering,
    /// Whether facts are variables of their own, as `ansible_NAME`.
    pub inject_facts: bool,
    /// Whether roles that are included, too, show their variables to the play unless they are told otherwise.
    pub includes_publish: bool,
    /// Whether tasks that do not say so are kept out of every log.
    pub no_log: bool,
    /// How often an `async` task is asked after, unless it says so.
    pub poll_s: f64,
    /// What a play does about a pattern that names nobody.
    pub strangers: Strangers,
    pub default_strategy: String,
    pub send_ahead: SendAhead,
    /// Where facts are kept from run to run.
    pub fact_cache: Option<FactCache>,
    pub connect: ConnectOptions,
    /// The part of the hosts that this process works on; all of them when absent.
    pub shard: Option<Shard>,
}

/// When plays gather facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gathering {
    /// Unless they say no.
    Implicit,
    /// Only where they say so.
    Explicit,
    /// As implicit, but of a host whose facts are known already.
    Smart,
}

/// What is done about a pattern that names nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strangers {
    Warn,
    Refuse,
    Ignore,
}

/// How hosts are reached where no variable and no keyword says otherwise.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    pub connection: String,
    pub remote_user: Option<String>,
    pub port: Option<u16>,
    pub private_key_file: Option<PathBuf>,
    pub password: Option<String>,
    pub ssh_args: Option<String>,
    pub ssh_common_args: Option<String>,
    pub ssh_extra_args: Option<String>,
    pub host_key_checking: bool,
    pub connect_timeout: Duration,
    /// How often a host that can't be connected to is tried again.
    pub retries: u32,
    /// After how long without a sign of life a host counts as unreachable.
    pub silence_timeout: Duration,
    pub become_: bool,
    pub become_method: String,
    pub become_user: String,
    pub become_password: Option<String>,
    pub become_exe: Option<String>,
    pub become_flags: Option<String>,
    /// The shell that runs raw commands; the login user's when absent.
    pub shell: Option<String>,
    /// How long a task may take, unless it says so itself.
    pub task_timeout: Option<Duration>,
}

type InventoryChange = Box<dyn Fn(&mut Inventory) -> bool + Send + Sync>;

pub struct World {
    pub options: RunOptions,
    inventory: RwLock<Arc<Inventory>>,
    inventory_changes: Mutex<Vec<InventoryChange>>,
    /// The hosts that the run has lost so far.
    pub(super) casualties: Mutex<Casualties>,
    states: RwLock<HashMap<HostName, Arc<RwLock<HostState>>>>,
    pub connections: Pool,
    /// What hosts were sent before its turn.
    pub sent: Sent,
    /// What an interrupted run had done already.
    pub replay: Replay,
    pub loader: Mutex<Loader>,
    events: Sender<Event>,
    stats: Mutex<Stats>,
    interrupted: Arc<AtomicBool>,
    next_id: AtomicU64,
    /// How many tasks so far may have changed something on some host.
    changes: AtomicU64,
    /// Whether the task of `--start-at-task` has been reached.
    started: AtomicBool,
    /// Whether something included was written wrong.
    mistaken: AtomicBool,
}

#[derive(Default)]
struct Stats {
    order: Vec<HostName>,
    counts: HashMap<HostName, Counts>,
    custom: Map,
}

impl World {
    pub fn new(
        options: RunOptions,
        inventory: Inventory,
        loader: Loader,
        events: Sender<Event>,
        interrupted: Arc<AtomicBool>,
        replay: Replay,
    ) -> Arc<World> {
        let started = AtomicBool::new(options.start_at_task.is_none());
        Arc::new(World {
            started,
            mistaken: AtomicBool::new(false),
            options,
            inventory: RwLock::new(Arc::new(inventory)),
            inventory_changes: Mutex::default(),
            casualties: Mutex::default(),
            states: RwLock::default(),
            connections: Pool::new(interrupted.clone()),
            sent: Sent::default(),
            replay,
            loader: Mutex::new(loader),
            events,
            stats: Mutex::default(),
            interrupted,
            next_id: AtomicU64::new(1),
            changes: AtomicU64::new(0),
        })
    }

    /// Returns the inventory as it is now.
    pub fn inventory(&self) -> Arc<Inventory> {
        self.inventory.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the inventory: `add_host` and `group_by`. The change is made again when the inventory is read anew.
    pub fn change_inventory(&self, change: impl Fn(&mut Inventory) -> bool + Send + Sync + 'static) -> bool {
        let mut inventory = self.inventory.write().unwrap_or_else(PoisonError::into_inner);
        let changed = change(Arc::make_mut(&mut inventory));
        if changed {
            self.inventory_changes.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(change));
        }
        changed
    }

    /// Takes an inventory that was read anew, with the changes that the run has made so far.
    pub fn replace_inventory(&self, mut fresh: Inventory) {
        for change in self.inventory_changes.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            change(&mut fresh);
        }
        *self.inventory.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
    }

    /// Forgives the hosts that earlier plays lost: `meta: clear_host_errors`.
    pub fn clear_casualties(&self) {
        *self.casualties.lock().unwrap_or_else(PoisonError::into_inner) = Casualties::default();
    }

    /// Returns what a host has come to know.
    pub fn state(&self, host: &HostName) -> Arc<RwLock<HostState>> {
        let states: RwLockReadGuard<'_, _> = self.states.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = states.get(host) {
            return state.clone();
        }
        drop(states);
        let mut states = self.states.write().unwrap_or_else(PoisonError::into_inner);
        states
            .entry(host.clone())
            .or_insert_with(|| {
                let mut state = HostState::default();
                if let Some(facts) = self.options.fact_cache.as_ref().and_then(|cache| cache.read(host)) {
                    state.add_told_facts(&facts);
                }
                Arc::new(RwLock::new(state))
            })
            .clone()
    }

    /// Changes what a host knows.
    pub fn change_state(&self, host: &HostName, change: impl FnOnce(&mut HostState)) {
        let state = self.state(host);
        let mut state = state.write().unwrap_or_else(PoisonError::into_inner);
        let before = state.injected.clone();
        change(&mut state);
        if let Some(cache) = &self.options.fact_cache
            && !Arc::ptr_eq(&before, &state.injected)
            && let Err(message) = cache.write(host, &state.injected)
        {
            self.tell(Event::Warning(message));
        }
    }

    pub fn tell(&self, event: Event) {
        // A reporter that is gone can't be told, and must not stop the run.
        self.events.send(event).ok();
    }

    /// Returns a number that no other announcement has.
    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns how many tasks so far may have changed something on some host.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Notes that something may have changed on some host; returns how often that had been so before.
    pub(super) fn note_change(&self) -> u64 {
        self.changes.fetch_add(1, Ordering::AcqRel)
    }

    /// Returns whether the run has come to where `--start-at-task` lets it begin. Facts are gathered before it, too.
    pub fn has_started(&self, task: &Task) -> bool {
        if self.started.load(Ordering::Relaxed) || &*task.action.name == "gather_facts" {
            return true;
        }
        let Some(wanted) = &self.options.start_at_task else { return true };
        let here = task.is_called(wanted);
        if here {
            self.started.store(true, Ordering::Relaxed);
        }
        here
    }

    /// Returns whether the run has begun or begins within these tasks: before that, plays gather no facts either.
    pub fn begins_in(&self, play: &crate::playbook::Play) -> bool {
        let Some(wanted) = &self.options.start_at_task else { return true };
        self.started.load(Ordering::Relaxed)
            || [&play.pre_tasks, &play.tasks, &play.post_tasks]
                .iter()
                .any(|items| crate::plan::any_task(items, &mut |task| task.is_called(wanted)))
    }

    /// Notes that something included during the run is written wrong.
    pub fn note_mistake(&self) {
        self.mistaken.store(true, Ordering::Relaxed);
    }

    pub fn is_mistaken(&self) -> bool {
        self.mistaken.load(Ordering::Relaxed)
    }

    /// Returns whether the user asked to stop.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Returns what says whether the user asked to stop.
    pub(super) fn interruption(&self) -> &AtomicBool {
        &self.interrupted
    }

    /// Sleeps, but not on when the user asks to stop. Whoever waits expects that something has changed meanwhile.
    pub fn sleep(&self, duration: Duration) {
        self.note_change();
        sleep_unless(&self.interrupted, duration);
    }

    fn count_on(&self, host: &HostName, change: impl FnOnce(&mut Counts)) {
        let mut stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        if !stats.counts.contains_key(host) {
            stats.order.push(host.clone());
        }
        change(stats.counts.entry(host.clone()).or_default());
    }

    /// Counts how a task ended, as Ansible's recap does.
    pub fn count(&self, host: &HostName, status: Status, changed: bool, ignored: bool) {
        self.count_on(host, |counts| each_count(counts, status, changed, ignored, |count| *count += 1));
    }

    /// Takes back what [`World::count`] counted, for a task that is done again.
    pub fn uncount(&self, host: &HostName, status: Status, changed: bool, ignored: bool) {
        let less = |count: &mut u64| *count = count.saturating_sub(1);
        self.count_on(host, |counts| each_count(counts, status, changed, ignored, less));
    }

    /// Stops the run as Ctrl-C does.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    /// Returns once everything that was told so far is shown.
    pub fn settle(&self) {
        let (shown, wait) = std::sync::mpsc::sync_channel(1);
        self.tell(Event::Asking(shown));
        // A reporter that is gone shows nothing more.
        wait.recv().ok();
    }

    /// Counts a failure that a rescue took up.
    pub fn count_rescued(&self, host: &HostName) {
        self.count_on(host, |counts| {
            counts.failed = counts.failed.saturating_sub(1);
            counts.rescued += 1;
        });
    }

    /// Keeps a value of `set_stats`.
    pub fn set_custom_stat(&self, name: &str, value: Value, aggregate: bool) {
        let mut stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        let value = match (aggregate, stats.custom.get(name), &value) {
            (true, Some(Value::Int(old)), Value::Int(new)) => Value::Int(old + new),
            (true, Some(Value::Map(old)), Value::Map(new)) => {
                Value::map(old.iter().chain(new.iter()).map(|(key, value)| (key.clone(), value.clone())).collect())
            }
            (true, Some(Value::List(old)), Value::List(new)) => {
                Value::list(old.iter().chain(new.iter()).cloned().collect())
            }
            _ => value,
        };
        stats.custom.insert(name, value);
    }

    pub fn recap(&self, duration_s: f64, code: u8) -> Recap {
        let stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hosts: Vec<(HostName, Counts)> =
            stats.order.iter().map(|host| (host.clone(), stats.counts[host])).collect();
        hosts.sort_by(|a, b| a.0.cmp(&b.0));
        let round_trips = self.connections.round_trips();
        Recap { hosts, duration_s, custom: stats.custom.clone(), code, round_trips }
    }
}

/// Calls for each count that an end of a task goes into.
fn each_count(counts: &mut Counts, status: Status, changed: bool, ignored: bool, count: impl Fn(&mut u64)) {
    match status {
        Status::Ok => count(&mut counts.ok),
        Status::Changed => {
            count(&mut counts.ok);
            count(&mut counts.changed);
        }
        Status::Failed if ignored => {
            count(&mut counts.ok);
            count(&mut counts.ignored);
            if changed {
                count(&mut counts.changed);
            }
        }
        Status::Failed => count(&mut counts.failed),
        Status::Skipped | Status::Unreachable if ignored => {
            count(&mut counts.skipped);
            count(&mut counts.ignored);
        }
        Status::Skipped => count(&mut counts.skipped),
        Status::Unreachable => count(&mut counts.unreachable),
    }
}
