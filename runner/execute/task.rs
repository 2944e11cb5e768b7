//! One task on one host: its loop, its result, what it registers and notifies.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::ahead::Coming;
use super::include::Inclusion;
use super::item::{ItemEnd, ItemRun, Sending};
use super::reach::truth;
use super::replay::Done;
use super::{PlayRun, World};
use crate::action;
use crate::playbook::{Keyword, Loop, LoopKind, Task};
use crate::report::{Event, Outcome, Status, TaskInfo};
use crate::template::{Templar, TemplateError};
use crate::value::{Map, Value};

/// How a task ended on a host, and what it asks of the play.
#[derive(Debug)]
pub struct TaskEnd {
    pub host: Arc<str>,
    pub task: Arc<Task>,
    pub status: Status,
    /// Whether `ignore_errors` or `ignore_unreachable` lets the failure pass.
    pub ignored: bool,
    pub result: Map,
    pub includes: Vec<Inclusion>,
    /// Handlers' names and topics, in the order in which they were notified.
    pub notified: Vec<String>,
}

/// What runs one task on one host.
pub struct HostTask<'a> {
    pub world: &'a Arc<World>,
    pub play: &'a Arc<PlayRun>,
    pub host: &'a Arc<str>,
    pub task: &'a Arc<Task>,
    pub info: &'a Arc<TaskInfo>,
    /// Variables over all others: what somebody set in the debugger.
    pub over: &'a [(String, Value)],
    /// What comes after it and may be sent along.
    pub next: &'a Coming<'a>,
}

/// A loop's items with the names under which a round sees them.
struct Rounds {
    items: Vec<Value>,
    loop_var: String,
    index_var: Option<String>,
    extended: bool,
    /// Whether `ansible_loop` holds all items.
    all_items: bool,
    pause_s: f64,
}

impl HostTask<'_> {
    /// Runs the task, tells its result, and stores what it registers.
    pub fn run(&self) -> TaskEnd {
        if let Some(done) = self.world.replay.next(self.play.ordinal, self.host, self.info) {
            return self.replay(done);
        }
        self.world.tell(Event::HostStart { host: self.host.clone(), task: self.info.clone() });
        let started = Instant::now();
        let templar = self.templar();
        let no_log = self.flag(&templar, Keyword::NoLog);
        let mut includes = Vec::new();
        let end = match &self.task.loop_ {
            None => self.one(templar.clone(), no_log, None, &mut includes),
            Some(loop_) => self.rounds(loop_, &templar, no_log, &mut includes),
        };
        // A loop whose items can't be told has had no rounds that told of it.
        let is_loop = self.task.loop_.is_some() && had_rounds(&end);
        self.finish(end, is_loop, &templar, no_log, includes, Some(started.elapsed().as_secs_f64()))
    }

    /// Passes over what an earlier run did: variables, facts and notifications come from its record.
    fn replay(&self, done: Done) -> TaskEnd {
        let templar = self.templar();
        let no_log = self.flag(&templar, Keyword::NoLog);
        let end = ItemEnd { status: done.status, result: done.result, delegated: done.delegated };
        let run = self.item(templar.clone(), no_log, 0);
        let rounds = self.task.loop_.as_ref().and_then(|_| end.result.get("results")?.as_list());
        for round in rounds.into_iter().flat_map(|rounds| rounds.iter()) {
            if let Some(result) = round.as_map() {
                self.keep(&run, &ItemEnd { result: (**result).clone(), ..end.clone() });
            }
        }
        self.keep(&run, &end);
        let is_loop = self.task.loop_.is_some() && had_rounds(&end);
        self.finish(end, is_loop, &templar, no_log, Vec::new(), None)
    }

    fn templar(&self) -> Templar {
        let templar = crate::vars::templar(self.world, Some(self.play), self.host, Some(self.task));
        if self.over.is_empty() { templar } else { templar.with(self.over.iter().cloned()) }
    }

    fn item(&self, templar: Templar, no_log: bool, round: usize) -> ItemRun<'_> {
        ItemRun {
            world: self.world,
            play: self.play,
            host: self.host,
            task: self.task,
            info: self.info,
            templar,
            reach: None,
            check: self.world.options.check,
            diff: self.world.options.diff,
            no_log,
            round,
            sending: Sending::Now(self.next),
        }
    }

    fn flag(&self, templar: &Templar, keyword: Keyword) -> bool {
        let Some(setting) = self.task.inherited(keyword) else {
            return keyword == Keyword::NoLog && self.world.options.no_log;
        };
        // One whose template fails fails the task where it matters; a log that can't be told from a secret stays shut.
        templar.value(&setting.value).map_or(keyword == Keyword::NoLog, |value| truth(&value))
    }

    /// Does a round of a loop, by its place and item, or what has no loop.
    fn one(
        &self,
        templar: Templar,
        no_log: bool,
        round: Option<(usize, &Value)>,
        includes: &mut Vec<Inclusion>,
    ) -> ItemEnd {
        let mut run = self.item(templar, no_log, round.map_or(0, |(index, _)| index));
        let end = run.run();
        if matches!(end.status, Status::Ok | Status::Changed) && action::includes(&self.task.action.name) {
            includes.push(Inclusion::new(&run, &end.result, round.map(|(_, item)| item.clone())));
        }
        self.keep(&run, &end);
        end
    }

    /// Stores what an item's result means for later tasks: facts, variables.
    fn keep(&self, run: &ItemRun<'_>, end: &ItemEnd) {
        if !matches!(end.status, Status::Ok | Status::Changed) {
            return;
        }
        let facts_host = match (&end.delegated, run.flag(Keyword::DelegateFacts, false)) {
            (Some(delegate), Ok(true)) => delegate.clone(),
            (Some(_) | None, _) => self.host.clone(),
        };
        let Some(facts) = end.result.get("ansible_facts").and_then(Value::as_map) else { return };
        let hosts = if self.is_run_once(&run.templar) { self.play.batch_left() } else { vec![facts_host] };
        for host in hosts {
            self.world.change_state(&host, |state| match &*self.task.action.name {
                "set_fact" => {
                    for (key, value) in &**facts {
                        state.set(&key.to_string(), value.clone());
                    }
                    if end.result.get("_ansible_facts_cacheable").is_some_and(truth) {
                        state.add_facts(facts);
                    }
                }
                "include_vars" => {
                    let included = Arc::make_mut(&mut state.included);
                    crate::vars::put_over(included, facts, self.world.options.inventory_reading.merge);
                }
                _ => state.add_told_facts(facts),
            });
        }
    }

    pub(super) fn is_run_once(&self, templar: &Templar) -> bool {
        self.flag(templar, Keyword::RunOnce)
    }

    fn rounds(&self, loop_: &Loop, templar: &Templar, no_log: bool, includes: &mut Vec<Inclusion>) -> ItemEnd {
        let rounds = match self.rounds_of(loop_, templar) {
            Ok(rounds) => rounds,
            Err(error) => return self.without_items(&error, templar),
        };
        let count = rounds.items.len();
        let mut results = Vec::new();
        let mut ends: Vec<ItemEnd> = Vec::new();
        let mut templar = templar.clone();
        for (index, item) in rounds.items.iter().enumerate() {
            if index > 0 && rounds.pause_s > 0.0 {
                self.world.sleep(std::time::Duration::from_secs_f64(rounds.pause_s));
            }
            let names = names_of(&rounds, index, item);
            let inner = templar.with(names.iter().map(|(name, value)| (name.clone(), value.clone())));
            let started = Instant::now();
            let mut end = self.one(inner.clone(), no_log, Some((index, item)), includes);
            end.result.insert(rounds.loop_var.as_str(), item.clone());
            end.result.insert("ansible_loop_var", rounds.loop_var.as_str());
            if let Some(name) = &rounds.index_var {
                end.result.insert(name.as_str(), Value::Int(index as i64));
                end.result.insert("ansible_index_var", name.as_str());
            }
            let label = match &loop_.control.label {
                Some(label) => self.with_registered(&inner, &end.result).value(label).unwrap_or_else(|error| {
                    // A label is for people, but one that can't be told is a mistake in the playbook.
                    end.status = Status::Failed;
                    end.result.insert("failed", true);
                    let message = format!("Failed to template loop_control.label: {}", error.message);
                    end.result.insert("msg", message.as_str());
                    item.clone()
                }),
                None => item.clone(),
            }
            .to_string();
            end.result.insert("_ansible_item_label", label.as_str());
            let broken = loop_.control.break_when.as_ref().is_some_and(|condition| {
                self.with_registered(&inner, &end.result).condition(condition).unwrap_or_else(|error| {
                    end.status = Status::Failed;
                    end.result.insert("failed", true);
                    let message = format!("the condition of `break_when` can't be told: {}", error.message);
                    end.result.insert("msg", message.as_str());
                    true
                })
            });
            self.world.tell(Event::Item(Outcome {
                item: Some(label),
                ..self.outcome(&end, no_log, started.elapsed().as_secs_f64(), false)
            }));
            results.push(Value::map(end.result.clone()));
            // What a round sets, the next one sees.
            let registers = self.task.keywords.get(Keyword::Register).is_some();
            if registers || end.result.contains_key("ansible_facts") {
                let now = self.templar();
                templar = self.with_registered(&now, &end.result);
            }
            let stop = end.status == Status::Unreachable || self.world.is_interrupted();
            ends.push(end);
            if stop || broken {
                break;
            }
        }
        if self.world.is_interrupted() && ends.len() < count && ends.iter().all(|end| end.status != Status::Unreachable)
        {
            let message = format!("stopped by the user after {} of {count} items", ends.len());
            let mut end = ItemEnd::failed(message);
            end.result.insert("results", Value::list(results));
            return end;
        }
        whole(ends, results, count)
    }

    fn with_registered(&self, templar: &Templar, result: &Map) -> Templar {
        match self.task.keywords.get(Keyword::Register) {
            Some(setting) => templar.with([(setting.value.to_string(), Value::map(result.clone()))]),
            None => templar.clone(),
        }
    }

    /// A loop that can't be told fails the task, unless its conditions say that it is skipped anyway.
    fn without_items(&self, error: &TemplateError, templar: &Templar) -> ItemEnd {
        let holds = |condition: &&Value| templar.condition(condition).unwrap_or(true);
        match self.task.conditions().iter().find(|condition| !holds(condition)) {
            Some(condition) => {
                let mut result = Map::new();
                result.insert("changed", false);
                result.insert("skipped", true);
                result.insert("skip_reason", "Conditional result was False");
                result.insert("false_condition", (*condition).clone());
                ItemEnd { status: Status::Skipped, result, delegated: None }
            }
            None => ItemEnd::from_template(error),
        }
    }

    fn rounds_of(&self, loop_: &Loop, templar: &Templar) -> Result<Rounds, TemplateError> {
        let control = &loop_.control;
        let text = |value: &Option<Value>| value.as_ref().map(|value| templar.text(value)).transpose();
        let flag = |value: &Option<Value>| {
            value.as_ref().map(|value| templar.value(value)).transpose().map(|value| value.as_ref().is_some_and(truth))
        };
        let items = match &loop_.kind {
            LoopKind::List => match templar.value(&loop_.items)? {
                Value::List(items) => items.to_vec(),
                other => {
                    let hint = if matches!(other, Value::Map(_)) { "; use the filter `dict2items`" } else { "" };
                    let message = format!("`loop` must be a list, and this is {}{hint}", other.kind());
                    let error = TemplateError::new(loop_.place, message);
                    let parts = matches!(&other, Value::Str(text) if text.as_str().contains(','));
                    return Err(if parts {
                        error.help("`split` makes a list of a text: `x | split(',')`")
                    } else {
                        error
                    });
                }
            },
            LoopKind::With(name) => templar.loop_items(name, &loop_.items)?,
        };
        let pause_s = text(&control.pause)?.and_then(|text| text.parse().ok()).unwrap_or(0.0);
        Ok(Rounds {
            items,
            loop_var: text(&control.loop_var)?.unwrap_or_else(|| "item".to_owned()),
            index_var: text(&control.index_var)?,
            extended: flag(&control.extended)?,
            all_items: control.extended_allitems.is_none() || flag(&control.extended_allitems)?,
            pause_s,
        })
    }

    /// Returns what some rounds of a loop see, where that can be told by now.
    pub(super) fn rounds_ahead(&self, loop_: &Loop, templar: &Templar, which: Range<usize>) -> Option<Vec<Templar>> {
        let rounds = self.rounds_of(loop_, templar).ok()?;
        let items = rounds.items.iter().enumerate().skip(which.start).take(which.len());
        Some(items.map(|(index, item)| templar.with(names_of(&rounds, index, item))).collect())
    }

    fn outcome(&self, end: &ItemEnd, no_log: bool, duration_s: f64, ignored: bool) -> Outcome {
        Outcome {
            host: self.host.clone(),
            delegated: end.delegated.clone(),
            task: self.info.clone(),
            status: end.status,
            ignored,
            is_loop: false,
            item: None,
            result: self.told(end),
            no_log,
            duration_s,
            verbose_always: end.status != Status::Skipped && action::shows_result(&self.task.action.name),
        }
    }

    /// Returns what of a result is told: what the module was given only to whoever asked for that.
    fn told(&self, end: &ItemEnd) -> Map {
        let mut result = end.result.clone();
        if self.world.options.verbosity < 3 {
            result.remove("invocation");
            if let Some(Value::List(rounds)) = result.get("results").filter(|rounds| holds_invocation(rounds)) {
                let rounds = rounds.iter().map(|round| match round {
                    Value::Map(round) => {
                        let mut round = (**round).clone();
                        round.remove("invocation");
                        Value::map(round)
                    }
                    other => other.clone(),
                });
                let rounds = Value::list(rounds.collect());
                result.insert("results", rounds);
            }
        }
        result
    }

    fn finish(
        &self,
        mut end: ItemEnd,
        is_loop: bool,
        templar: &Templar,
        no_log: bool,
        includes: Vec<Inclusion>,
        // Absent when the task did not run, since an earlier run did it.
        took_s: Option<f64>,
    ) -> TaskEnd {
        let ignored = match end.status {
            Status::Failed => self.flag(templar, Keyword::IgnoreErrors),
            Status::Unreachable => self.flag(templar, Keyword::IgnoreUnreachable),
            Status::Ok | Status::Changed | Status::Skipped => false,
        };
        if ignored && end.status == Status::Unreachable {
            end.result.insert("skip_reason", "Host unreachable, and that is ignored");
        }
        let changed = end.result.get("changed").is_some_and(truth);
        let mut notified = Vec::new();
        if end.status == Status::Changed || (changed && ignored) {
            for name in self.task.notifies() {
                match templar.value(name) {
                    Ok(Value::List(items)) => notified.extend(items.iter().map(Value::to_string)),
                    Ok(Value::Null | Value::Omit) => {}
                    Ok(name) => notified.push(name.to_string()),
                    Err(error) => end = ItemEnd::from_template(&error),
                }
            }
        }
        self.register(&end, templar);
        let outcome = Outcome { is_loop, ..self.outcome(&end, no_log, took_s.unwrap_or(0.0), ignored) };
        if took_s.is_some() {
            // Each round that includes counts, as it does in Ansible.
            for _ in 0..includes.len().max(1) {
                self.world.count(self.host, end.status, changed, ignored);
            }
            self.world.tell(Event::Result(outcome));
        } else {
            self.world.tell(Event::Replayed(outcome));
        }
        TaskEnd {
            host: self.host.clone(),
            task: self.task.clone(),
            status: end.status,
            ignored,
            result: end.result,
            includes,
            notified,
        }
    }

    fn register(&self, end: &ItemEnd, templar: &Templar) {
        let Some(setting) = self.task.keywords.get(Keyword::Register) else { return };
        let name = setting.value.to_string();
        let mut result = end.result.clone();
        for key in ["_ansible_item_label", "_ansible_facts_cacheable", "_diagnostic"] {
            result.remove(key);
        }
        let value = Value::map(result);
        let hosts = if self.is_run_once(templar) { self.play.batch_left() } else { vec![self.host.clone()] };
        for host in hosts {
            self.world.change_state(&host, |state| state.set(&name, value.clone()));
        }
    }
}

/// Returns the variables that one round of a loop sees.
fn names_of(rounds: &Rounds, index: usize, item: &Value) -> Vec<(String, Value)> {
    let mut names =
        vec![(rounds.loop_var.clone(), item.clone()), ("ansible_loop_var".to_owned(), rounds.loop_var.as_str().into())];
    if let Some(name) = &rounds.index_var {
        names.push((name.clone(), Value::Int(index as i64)));
        names.push(("ansible_index_var".to_owned(), name.as_str().into()));
    }
    if rounds.extended {
        let count = rounds.items.len();
        let number = |number: usize| Value::Int(number as i64);
        let mut loop_ = Map::new();
        if rounds.all_items {
            loop_.insert("allitems", Value::list(rounds.items.clone()));
        }
        loop_.insert("index", number(index + 1));
        loop_.insert("index0", number(index));
        loop_.insert("first", index == 0);
        loop_.insert("last", index + 1 == count);
        loop_.insert("length", number(count));
        loop_.insert("revindex", number(count - index));
        loop_.insert("revindex0", number(count - index - 1));
        if let Some(next) = rounds.items.get(index + 1) {
            loop_.insert("nextitem", next.clone());
        }
        if let Some(previous) = index.checked_sub(1).and_then(|index| rounds.items.get(index)) {
            loop_.insert("previtem", previous.clone());
        }
        names.push(("ansible_loop".to_owned(), Value::map(loop_)));
    }
    names
}

fn holds_invocation(results: &Value) -> bool {
    results.as_list().is_some_and(|rounds| rounds.iter().any(|round| round.get("invocation").is_some()))
}

fn had_rounds(end: &ItemEnd) -> bool {
    end.result.get("results").and_then(Value::as_list).is_some_and(|rounds| !rounds.is_empty())
}

/// Puts the rounds' ends together.
fn whole(ends: Vec<ItemEnd>, results: Vec<Value>, count: usize) -> ItemEnd {
    let any = |status: Status| ends.iter().any(|end| end.status == status);
    let changed = ends.iter().any(|end| end.result.get("changed").is_some_and(truth));
    let skipped = count == 0 || ends.iter().all(|end| end.status == Status::Skipped);
    let mut result = Map::new();
    result.insert("results", Value::list(results));
    result.insert("changed", changed);
    let status = if any(Status::Unreachable) {
        result.insert("unreachable", true);
        result.insert("msg", "one item or more could not be reached");
        Status::Unreachable
    } else if any(Status::Failed) {
        result.insert("failed", true);
        result.insert("msg", "One or more items failed");
        Status::Failed
    } else if skipped {
        result.insert("skipped", true);
        let reason = if count == 0 { "No items in the list" } else { "All items skipped" };
        result.insert(if count == 0 { "skipped_reason" } else { "msg" }, reason);
        Status::Skipped
    } else {
        result.insert("msg", "All items completed");
        if changed { Status::Changed } else { Status::Ok }
    };
    result.insert("skipped", skipped);
    if status != Status::Failed {
        result.insert("failed", false);
    }
    let delegated = ends.iter().find_map(|end| end.delegated.clone());
    ItemEnd { status, result, delegated }
}
