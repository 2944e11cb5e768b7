//! Plays, one after another, each in batches of hosts.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use super::reach::truth;
use super::shard::{Step, may_begin, tell_end};
use super::strategy::{Announced, Batch, Stop};
use super::vars_files::VarsFiles;
use super::{Gathering, Strangers, World};
use crate::playbook::{ActionCall, Block, Item, Keyword, Keywords, Play, Role, Setting, Task, words};
use crate::report::{Event, HostName};
use crate::source::Place;
use crate::template::{Folders, Templar};
use crate::value::{Map, Value};
use crate::yaml::{Kind, Node};

/// Exit statuses of ansible-playbook.
pub const EXIT_OK: u8 = 0;
pub const EXIT_ERROR: u8 = 1;
pub const EXIT_FAILED: u8 = 2;
pub const EXIT_UNREACHABLE: u8 = 4;
/// What was read is written wrong: the status of ansible-playbook's parser.
pub const EXIT_MISTAKE: u8 = 4;
pub const EXIT_INTERRUPTED: u8 = 99;

/// A play while it runs.
pub struct PlayRun {
    pub play: Arc<Play>,
    pub name: String,
    /// Counts the plays of the run from 0.
    pub ordinal: usize,
    pub all_hosts: Vec<HostName>,
    /// What the user was asked for.
    pub prompted: Arc<Map>,
    /// `vars_files` as each host has them.
    pub files: VarsFiles,
    batch: RwLock<Vec<HostName>>,
    /// Hosts that failed, could not be reached, or left by themselves.
    gone: RwLock<HashSet<HostName>>,
    /// Handlers, those of included roles too.
    pub handlers: RwLock<Vec<Arc<Task>>>,
    /// Roles that includes brought.
    included_roles: RwLock<Vec<Arc<Role>>>,
    /// Whether `meta: end_play` has ended it for all.
    ended: AtomicBool,
    /// What was told that is told once.
    told: Mutex<HashSet<String>>,
    /// Renders the play's own keywords: no host is known to them.
    templar: Templar,
}

impl PlayRun {
    pub fn public_roles(&self) -> Vec<Arc<Role>> {
        let included = self.included_roles.read().unwrap_or_else(PoisonError::into_inner);
        self.play.roles.iter().filter(|role| role.is_public).chain(included.iter()).cloned().collect()
    }

    /// Adds what an included role brings for the rest of the play.
    pub fn add_role(&self, roles: Vec<Arc<Role>>, handlers: &[Item], public: bool) {
        if public {
            self.included_roles.write().unwrap_or_else(PoisonError::into_inner).extend(roles);
        }
        let mut known = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        for handler in flattened(handlers) {
            if known.iter().all(|other| other.place != handler.place) {
                known.push(handler);
            }
        }
    }

    /// Returns the play's hosts that have not failed.
    pub fn hosts_left(&self) -> Vec<HostName> {
        self.left_of(&self.all_hosts)
    }

    /// Returns the batch's hosts that have not failed.
    pub fn batch_left(&self) -> Vec<HostName> {
        self.left_of(&self.batch.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns those of some hosts of the play that have not failed.
    pub fn left_of(&self, hosts: &[HostName]) -> Vec<HostName> {
        let gone = self.gone.read().unwrap_or_else(PoisonError::into_inner);
        hosts.iter().filter(|host| !gone.contains(*host)).cloned().collect()
    }

    pub fn leave(&self, host: &HostName) {
        self.gone.write().unwrap_or_else(PoisonError::into_inner).insert(host.clone());
    }

    pub fn come_back(&self, host: &str) {
        self.gone.write().unwrap_or_else(PoisonError::into_inner).remove(host);
    }

    /// Ends the play for every host: `meta: end_play`.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Returns whether this is told for the first time.
    pub fn first_told(&self, what: &str) -> bool {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(what.to_owned())
    }

    /// Returns a keyword of the play, rendered; as written when its template fails.
    pub fn value(&self, keyword: Keyword) -> Option<Value> {
        let setting = self.play.setting(keyword)?;
        let value = self.templar.value(&setting.value).unwrap_or_else(|_| setting.value.clone());
        (!matches!(value, Value::Null | Value::Omit)).then_some(value)
    }

    /// Returns a keyword of the play as a switch.
    pub fn flag(&self, keyword: Keyword, usual: bool) -> bool {
        self.value(keyword).map_or(usual, |value| truth(&value))
    }
}

/// Returns the tasks of handlers, those within blocks too.
fn flattened(items: &[Item]) -> Vec<Arc<Task>> {
    items
        .iter()
        .flat_map(|item| match item {
            Item::Task(task) => vec![task.clone()],
            Item::Block(block) => flattened(&block.tasks),
        })
        .collect()
}

/// What failed in the run so far.
#[derive(Debug, Default)]
pub struct Casualties {
    pub failed: HashSet<HostName>,
    pub unreachable: HashSet<HostName>,
}

/// Runs plays to their end and returns the exit status.
pub fn run(world: &Arc<World>, plays: Vec<Play>) -> u8 {
    let started = Instant::now();
    let mut stopped = false;
    let mut errors = false;
    for (ordinal, play) in plays.into_iter().enumerate() {
        if world.is_interrupted() || stopped {
            break;
        }
        match run_play(world, play, ordinal) {
            Ok(Stop::No) => {}
            Ok(Stop::Run) => stopped = true,
            Err(message) => {
                world.tell(Event::Error(message));
                errors = true;
                stopped = true;
            }
        }
    }
    let code = if world.is_interrupted() {
        EXIT_INTERRUPTED
    } else if world.is_mistaken() {
        EXIT_MISTAKE
    } else if errors {
        EXIT_ERROR
    } else {
        let casualties = world.casualties.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = if casualties.failed.is_empty() { EXIT_OK } else { EXIT_FAILED };
        let unreachable = if casualties.unreachable.is_empty() { EXIT_OK } else { EXIT_UNREACHABLE };
        failed | unreachable
    };
    world.tell(Event::Recap(world.recap(started.elapsed().as_secs_f64(), code)));
    code
}

fn run_play(world: &Arc<World>, play: Play, ordinal: usize) -> Result<Stop, String> {
    let play = Arc::new(play);
    let prompted = Arc::new(crate::cli::prompt::ask(&play.vars_prompt, &world.options.extra_vars)?);
    let mut known = crate::vars::static_map(&play.parent, &Map::new());
    known.extend((*prompted).clone());
    known.extend((*world.options.extra_vars).clone());
    let folders = Folders { playbook: play.folder.clone(), ..Folders::default() };
    let fixed = Templar::new(Arc::new(crate::vars::Fixed(Arc::new(known))), Arc::new(folders));
    let text = |value: &Value| fixed.value(value).map_err(|error| error.diagnostic().render(false));
    let patterns = crate::inventory::joined(&text(&play.hosts.value)?);
    let name = match play.setting(Keyword::Name) {
        Some(setting) if setting.value.truthy() => {
            text(&setting.value).map_or_else(|_| setting.value.to_string(), |name| name.to_string())
        }
        Some(_) | None => patterns.replace('\n', ","),
    };
    let inventory = world.inventory();
    let mut hosts = inventory.select(&patterns, world.options.limit.as_deref())?;
    for (stranger, _) in inventory.strangers(&patterns) {
        match world.options.strangers {
            Strangers::Warn => {
                world.tell(Event::Warning(format!("Could not match supplied host pattern, ignoring: {stranger}")));
            }
            Strangers::Refuse => return Err(format!("Could not match supplied host pattern: {stranger}")),
            Strangers::Ignore => {}
        }
    }
    if let Some(order) = play.setting(Keyword::Order) {
        order_hosts(&mut hosts, &text(&order.value)?.to_string())?;
    }
    let all_hosts = hosts.clone();
    let mine = world.options.shard.as_ref().map(|shard| shard.of(&inventory, world.options.limit.as_deref()));
    let mine = mine.transpose()?;
    // Every part of a spread run cuts the same hosts into the same batches, whoever failed in one of them.
    if mine.is_none() {
        let lost = world.casualties.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.retain(|host| !lost.failed.contains(host) && !lost.unreachable.contains(host));
    }
    let begins = |hosts: &[HostName]| Event::PlayStart {
        name: name.clone(),
        hosts: hosts.to_vec(),
        place: play.place,
        ordinal,
        tasks: crate::plan::count_tasks(&play),
    };
    if hosts.is_empty() {
        world.tell(begins(&hosts));
        world.tell(Event::NoHosts);
        return Ok(Stop::No);
    }
    if !world.begins_in(&play) {
        world.tell(begins(&hosts));
        return Ok(Stop::No);
    }
    let run = Arc::new(PlayRun {
        name: name.clone(),
        ordinal,
        prompted,
        files: VarsFiles::default(),
        batch: RwLock::default(),
        gone: RwLock::default(),
        handlers: RwLock::new(flattened(&play.handlers)),
        included_roles: RwLock::default(),
        ended: AtomicBool::new(false),
        told: Mutex::default(),
        templar: fixed,
        all_hosts,
        play: play.clone(),
    });
    if let Some(message) = words::misnamed(Keyword::Strategy, &strategy(world, &run)) {
        return Err(message);
    }
    let is_mine = |host: &&HostName| mine.as_ref().is_none_or(|mine| mine.contains(*host));
    for host in hosts.iter().filter(|_| !play.vars_files.is_empty()).filter(is_mine) {
        let facts = world.state(host).read().unwrap_or_else(PoisonError::into_inner).injected.clone();
        run.files.read(world, &run, host, &facts)?;
    }
    for (number, mut batch) in batches(world, &run, hosts)?.into_iter().enumerate() {
        let step = Step { play: ordinal, batch: number };
        if !may_begin(world, step)? {
            return Ok(Stop::Run);
        }
        *run.batch.write().unwrap_or_else(PoisonError::into_inner) = batch.clone();
        if let Some(mine) = &mine {
            let lost = world.casualties.lock().unwrap_or_else(PoisonError::into_inner);
            batch.retain(|host| mine.contains(host) && !lost.failed.contains(host) && !lost.unreachable.contains(host));
            drop(lost);
            if batch.is_empty() {
                tell_end(world, step, 0, 0);
                continue;
            }
        }
        world.tell(begins(&batch));
        let size = batch.len();
        let (lost, stop) = run_batch(world, &run, batch);
        let losses = lost.failed.union(&lost.unreachable).count();
        tell_end(world, step, size, losses);
        // A batch that is lost as a whole ends the run: the plays to come would do half of what was meant. Of a spread
        // run, no part knows that by itself.
        let all_lost = losses >= size && mine.is_none();
        let mut casualties = world.casualties.lock().unwrap_or_else(PoisonError::into_inner);
        casualties.failed.extend(lost.failed);
        casualties.unreachable.extend(lost.unreachable);
        if stop == Stop::Run || all_lost {
            return Ok(Stop::Run);
        }
        if run.is_ended() || world.is_interrupted() {
            return Ok(Stop::No);
        }
    }
    Ok(Stop::No)
}

/// Returns the name of the play's strategy.
pub(super) fn strategy(world: &World, run: &PlayRun) -> String {
    let own = run.value(Keyword::Strategy).map(|value| value.to_string());
    own.unwrap_or_else(|| world.options.default_strategy.clone())
}

fn run_batch(world: &Arc<World>, run: &Arc<PlayRun>, hosts: Vec<HostName>) -> (Casualties, Stop) {
    let sections = sections(world, run);
    if matches!(strategy(world, run).rsplit('.').next(), Some("free" | "host_pinned")) {
        return run_free(world, run, hosts, &sections);
    }
    let mut batch = Batch::new(world, run, hosts);
    let stop = run_sections(run, &mut batch, &sections);
    (batch.casualties(), stop)
}

fn run_sections(run: &PlayRun, batch: &mut Batch<'_>, sections: &[(Arc<Block>, bool)]) -> Stop {
    for (tasks, flush) in sections {
        if run.is_ended() {
            break;
        }
        if batch.section(tasks.clone(), *flush) == Stop::Run {
            return Stop::Run;
        }
    }
    Stop::No
}

/// Each host goes through the whole play by itself; the pool runs as many at a time as there are forks.
fn run_free(
    world: &Arc<World>,
    run: &Arc<PlayRun>,
    hosts: Vec<HostName>,
    sections: &[(Arc<Block>, bool)],
) -> (Casualties, Stop) {
    use rayon::prelude::*;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(world.options.forks.clamp(1, hosts.len().max(1)))
        .thread_name(|number| format!("host-{number}"))
        .build()
        .expect("the system gives as many threads as there are forks");
    let announced = Announced::default();
    let ended: Vec<(Casualties, Stop)> = pool.install(|| {
        hosts
            .into_par_iter()
            .with_max_len(1)
            .map(|host| {
                let mut alone = Batch::alone(world, run, host, &announced);
                let stop = run_sections(run, &mut alone, sections);
                (alone.casualties(), stop)
            })
            .collect()
    });
    let mut all = Casualties::default();
    let mut stop = Stop::No;
    for (lost, its) in ended {
        all.failed.extend(lost.failed);
        all.unreachable.extend(lost.unreachable);
        stop = if its == Stop::Run { Stop::Run } else { stop };
    }
    (all, stop)
}

/// Returns the play's sections, each with whether handlers are flushed after it.
fn sections(world: &World, run: &PlayRun) -> Vec<(Arc<Block>, bool)> {
    let play = &run.play;
    let block = |tasks: Vec<Item>| {
        Arc::new(Block {
            place: play.place,
            parent: play.parent.clone(),
            tasks,
            rescue: Vec::new(),
            always: Vec::new(),
            role_entry: None,
        })
    };
    let mut sections = Vec::new();
    if let Some(task) = facts_task(world, run) {
        sections.push((block(vec![Item::Task(Arc::new(task))]), false));
    }
    sections.extend([&play.pre_tasks, &play.tasks, &play.post_tasks].map(|tasks| (block(tasks.clone()), true)));
    sections
}

/// Returns the task that gathers facts, where the play wants one.
fn facts_task(world: &World, run: &PlayRun) -> Option<Task> {
    if !run.flag(Keyword::GatherFacts, world.options.gathering != Gathering::Explicit) {
        return None;
    }
    let mut args = Map::new();
    for keyword in [Keyword::GatherSubset, Keyword::GatherTimeout, Keyword::FactPath] {
        if let Some(setting) = run.play.setting(keyword) {
            args.insert(keyword.name(), setting.value.clone());
        }
    }
    let mut keywords = Keywords::default();
    let setting = |value: &str| Setting { value: value.into(), place: Place::default() };
    keywords.set(Keyword::Name, setting("Gathering Facts"));
    keywords.set(Keyword::Tags, setting("always"));
    Some(Task {
        place: run.play.place,
        parent: run.play.parent.clone(),
        keywords,
        vars: Arc::default(),
        action: ActionCall {
            name: "gather_facts".into(),
            written: "gather_facts".to_owned(),
            place: run.play.place,
            args: Arc::new(args),
            node: Node { place: run.play.place, kind: Kind::Null },
            more: None,
            foreign: None,
        },
        loop_: None,
        notify: Vec::new(),
        listen: Vec::new(),
        file: run.play.place.path().unwrap_or_default(),
        is_handler: false,
    })
}

fn order_hosts(hosts: &mut [HostName], order: &str) -> Result<(), String> {
    match order {
        "inventory" | "" => {}
        "reverse_inventory" => hosts.reverse(),
        "sorted" => hosts.sort(),
        "reverse_sorted" => {
            hosts.sort();
            hosts.reverse();
        }
        "shuffle" => {
            use std::hash::{BuildHasher, RandomState};
            let random = RandomState::new();
            hosts.sort_by_cached_key(|host| random.hash_one(host));
        }
        other => {
            return Err(words::misnamed(Keyword::Order, other).unwrap_or_else(|| format!("unknown order `{other}`")));
        }
    }
    Ok(())
}

/// Cuts the hosts into batches as `serial` says: a number, a percentage, or a list of both whose last one repeats.
/// A template in it knows what the first host knows, defaults of the play's roles among it.
fn batches(world: &Arc<World>, run: &Arc<PlayRun>, hosts: Vec<HostName>) -> Result<Vec<Vec<HostName>>, String> {
    let Some(setting) = run.play.setting(Keyword::Serial) else { return Ok(vec![hosts]) };
    let Some(first) = hosts.first() else { return Ok(Vec::new()) };
    let templar = crate::vars::templar(world, Some(run), first, None);
    let value = templar.value(&setting.value).map_err(|error| error.diagnostic().render(false))?;
    let sizes = match value {
        Value::Omit | Value::Null => return Ok(vec![hosts]),
        Value::List(items) => items.to_vec(),
        one => vec![one],
    };
    let total = hosts.len();
    let size_of = |value: &Value| -> Result<usize, String> {
        let text = value.to_string();
        let number = |text: &str| text.trim().parse::<f64>().map_err(|_| format!("`serial` is `{text}`, not a number"));
        let size = match text.strip_suffix('%') {
            Some(percent) => ((number(percent)? / 100.0 * total as f64) as usize).max(1),
            None => number(&text)?.max(0.0) as usize,
        };
        Ok(if size == 0 { total } else { size })
    };
    let sizes = sizes.iter().map(size_of).collect::<Result<Vec<_>, _>>()?;
    let mut rest = hosts.as_slice();
    let mut batches = Vec::new();
    while !rest.is_empty() {
        let size = sizes.get(batches.len()).or(sizes.last()).copied().unwrap_or(total).min(rest.len());
        let (batch, after) = rest.split_at(size);
        batches.push(batch.to_vec());
        rest = after;
    }
    Ok(batches)
}
