//! One task on one host for one item: conditions, arguments, the action, and what the result means.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kubeon_modules::wire;

use super::ahead::{self, Coming, Planned};
use super::reach::{self, Reach, truth};
use super::{PlayRun, World};
use crate::action::{self, Failure};
use crate::connection::{Answered, Contents, Plans};
use crate::playbook::{Keyword, Task};
use crate::report::{Event, Status, TaskInfo};
use crate::template::{Templar, TemplateError};
use crate::value::{Map, Value};
use crate::vars::alike::Told;

/// A task's own tries when it has `until` and does not say how many.
const DEFAULT_RETRIES: u64 = 3;
const DEFAULT_DELAY_S: f64 = 5.0;

/// What one task on one host knows.
pub struct ItemRun<'a> {
    pub world: &'a Arc<World>,
    pub play: &'a Arc<PlayRun>,
    /// The host whose turn it is.
    pub host: &'a Arc<str>,
    pub task: &'a Arc<Task>,
    pub info: &'a Arc<TaskInfo>,
    pub templar: Templar,
    /// Where it runs: set once the conditions hold.
    pub reach: Option<Reach>,
    pub check: bool,
    pub diff: bool,
    pub no_log: bool,
    pub sending: Sending<'a>,
}

/// What happens to a task's request.
#[derive(Clone, Copy)]
pub enum Sending<'a> {
    /// It is sent, and some of these tasks that come after it along with it.
    Now(&'a Coming<'a>),
    /// It is kept here: the task's turn has not come.
    Planning(&'a RefCell<Option<wire::Task>>),
}

/// How an item ended.
#[derive(Debug, Clone)]
pub struct ItemEnd {
    pub status: Status,
    pub result: Map,
    pub delegated: Option<Arc<str>>,
}

impl ItemEnd {
    fn new(status: Status, result: Map) -> ItemEnd {
        ItemEnd { status, result, delegated: None }
    }

    pub fn failed(message: impl Into<String>) -> ItemEnd {
        let mut result = Map::new();
        result.insert("failed", true);
        result.insert("changed", false);
        result.insert("msg", message.into());
        ItemEnd::new(Status::Failed, result)
    }

    pub(super) fn from_template(error: &TemplateError) -> ItemEnd {
        let mut end = ItemEnd::failed(error.message.clone());
        if !error.place.is_nowhere() {
            end.result.insert("_diagnostic", error.diagnostic().render(false));
        }
        end
    }

    fn unreachable(message: String) -> ItemEnd {
        let mut result = Map::new();
        result.insert("changed", false);
        result.insert("msg", message);
        result.insert("unreachable", true);
        ItemEnd::new(Status::Unreachable, result)
    }
}

impl ItemRun<'_> {
    /// Runs the item to its end.
    pub fn run(&mut self) -> ItemEnd {
        if let Some(end) = self.sent_before() {
            return end;
        }
        match self.skipped() {
            Ok(None) => {}
            Ok(Some(end)) => return end,
            Err(error) => return self.spoiled("when", &error),
        }
        match self.prepare() {
            Ok(()) => {}
            Err(end) => return *end,
        }
        let mut end = self.attempts();
        if let Some(reach) = &self.reach
            && reach.host != *self.host
        {
            end.delegated = Some(reach.host.clone());
        }
        end
    }

    /// Returns the end of a task about which was decided before its turn.
    fn sent_before(&mut self) -> Option<ItemEnd> {
        let (planned, pending) = self.world.sent.turn(self.host, self.task)?;
        let mut asked = match planned {
            Planned::Skipped(end) => {
                pending.go_on(self.world, self.host, None, true);
                return Some(*end);
            }
            Planned::Asked(asked) => asked,
        };
        let answer = pending.answer(self.world, self.host, &mut asked, &|line| self.alive(line));
        let acted = match answer {
            Ok(Some(result)) => Ok(result),
            // It was not executed: it is done now, as any other.
            Ok(None) => return None,
            Err(error) => Err(Failure::Unreachable(error.message)),
        };
        (self.check, self.diff, self.reach) = (asked.check, asked.diff, Some(asked.reach));
        Some(self.ended(acted, asked.given))
    }

    fn spoiled(&self, keyword: &str, error: &TemplateError) -> ItemEnd {
        let mut end = ItemEnd::from_template(error);
        end.result.insert("msg", format!("the condition of `{keyword}` can't be told: {}", error.message));
        end
    }

    /// Returns the end of a task whose conditions do not hold.
    pub(super) fn skipped(&self) -> Result<Option<ItemEnd>, TemplateError> {
        for condition in self.task.conditions() {
            let parts: Vec<Value> = match condition {
                Value::List(items) => items.to_vec(),
                one => vec![one.clone()],
            };
            for part in parts {
                if !self.templar.condition(&part)? {
                    let mut result = Map::new();
                    result.insert("changed", false);
                    result.insert("false_condition", part);
                    result.insert("skip_reason", "Conditional result was False");
                    result.insert("skipped", true);
                    return Ok(Some(ItemEnd::new(Status::Skipped, result)));
                }
            }
        }
        Ok(None)
    }

    pub(super) fn prepare(&mut self) -> Result<(), Box<ItemEnd>> {
        let failed = |message: String| Box::new(ItemEnd::failed(message));
        let host = match self.keyword(Keyword::DelegateTo).map_err(|error| Box::new(ItemEnd::from_template(&error)))? {
            Some(value) if value.truthy() => Arc::from(value.to_string()),
            Some(_) | None => self.host.clone(),
        };
        self.check = self.flag(Keyword::CheckMode, self.world.options.check).map_err(failed)?;
        self.diff = self.flag(Keyword::Diff, self.world.options.diff).map_err(failed)?;
        let reach = reach::of(self.world, Some(self.play), Some(self.task), &host, self.host, &self.templar);
        self.reach = Some(reach.map_err(failed)?);
        if host != *self.host
            && let Some(Value::Lazy(hosts)) = self.templar.variable("hostvars")
            && let Ok(Some(vars)) = hosts.get(&host)
        {
            let delegated = Map::from_iter([(Value::str(host), vars)]);
            self.templar = self.templar.with([("ansible_delegated_vars".to_owned(), Value::map(delegated))]);
        }
        Ok(())
    }

    /// Returns a keyword's rendered value; `None` when it is absent or `omit`.
    pub fn keyword(&self, keyword: Keyword) -> Result<Option<Value>, TemplateError> {
        let Some(setting) = self.task.inherited(keyword) else { return Ok(None) };
        let value = self.templar.value(&setting.value)?;
        Ok((!matches!(value, Value::Null | Value::Omit)).then_some(value))
    }

    pub fn flag(&self, keyword: Keyword, usual: bool) -> Result<bool, String> {
        match self.keyword(keyword) {
            Ok(value) => Ok(value.map_or(usual, |value| truth(&value))),
            Err(error) => Err(format!("`{keyword}`: {}", error.message)),
        }
    }

    fn number(&self, keyword: Keyword, usual: f64) -> Result<f64, String> {
        match self.keyword(keyword) {
            Ok(None) => Ok(usual),
            Ok(Some(value)) => {
                value.to_string().trim().parse().map_err(|_| format!("`{keyword}` is `{value}`, not a number"))
            }
            Err(error) => Err(format!("`{keyword}`: {}", error.message)),
        }
    }

    /// Returns how the host itself is reached, wherever the task is delegated to.
    ///
    /// # Errors
    /// A sentence for a person.
    pub fn own_reach(&self) -> Result<Reach, String> {
        reach::of(self.world, Some(self.play), Some(self.task), self.host, self.host, &self.templar)
    }

    /// Returns where the task runs.
    pub fn reach(&self) -> &Reach {
        self.reach.as_ref().expect("a task is prepared before its action runs")
    }

    fn attempts(&self) -> ItemEnd {
        let until = self.task.keywords.get(Keyword::Until);
        let retries = self.task.keywords.get(Keyword::Retries);
        let tries = match (until.is_some() || retries.is_some(), self.number(Keyword::Retries, DEFAULT_RETRIES as f64))
        {
            (false, _) => 1,
            (true, Ok(retries)) => (retries.max(0.0) as u64) + 1,
            (true, Err(message)) => return ItemEnd::failed(message),
        };
        let delay = match self.number(Keyword::Delay, DEFAULT_DELAY_S) {
            Ok(seconds) => Duration::from_secs_f64(seconds.max(0.0)),
            Err(message) => return ItemEnd::failed(message),
        };
        let mut attempt = 1;
        loop {
            let mut end = self.attempt();
            if tries > 1 {
                end.result.insert("attempts", Value::Int(attempt as i64));
            }
            if end.status == Status::Unreachable {
                return end;
            }
            let met = match until {
                None => end.status != Status::Failed,
                Some(setting) => match self.with_result(&end.result).condition(&setting.value) {
                    Ok(met) => met,
                    Err(error) => return self.spoiled("until", &error),
                },
            };
            if met || attempt == tries || self.world.is_interrupted() {
                if !met && tries > 1 {
                    // As Ansible counts them when they were in vain: the retries.
                    end.result.insert("attempts", Value::Int(tries as i64 - 1));
                }
                if !met && tries > 1 && end.status != Status::Failed {
                    end.status = Status::Failed;
                    end.result.insert("failed", true);
                    if !end.result.contains_key("msg") {
                        end.result.insert("msg", "`until` was never so");
                    }
                }
                return end;
            }
            self.world.tell(Event::Retry {
                host: self.host.clone(),
                task: self.info.clone(),
                left: tries - attempt,
                result: end.result,
            });
            self.world.sleep(delay);
            attempt += 1;
        }
    }

    /// Runs the action once and decides how it ended.
    fn attempt(&self) -> ItemEnd {
        let (acted, given) = self.act();
        if ahead::acts_elsewhere(self.task) {
            self.world.note_change();
        }
        self.ended(acted, given)
    }

    /// Runs the action once; returns what it was given, too, where somebody is told of that.
    pub(super) fn act(&self) -> (Result<Map, Failure>, Option<Map>) {
        let mut given = None;
        let acted = self.arguments().and_then(|args| {
            // Whoever asks later is told what the module was given.
            let is_asked = self.info.registers || self.world.options.verbosity > 2;
            let call = &self.task.action;
            let is_module = call.foreign.is_some() || action::is_module(&call.name);
            given = (is_asked && is_module).then(|| args.clone());
            action::run(self, args)
        });
        (acted, given)
    }

    fn ended(&self, acted: Result<Map, Failure>, given: Option<Map>) -> ItemEnd {
        let mut result = match acted {
            Ok(result) => result,
            Err(Failure::Unreachable(message)) => return ItemEnd::unreachable(message),
            Err(Failure::Failed(result)) => *result,
            Err(Failure::Template(error)) => return ItemEnd::from_template(&error),
        };
        if let (Some(given), false) = (given, result.contains_key("invocation")) {
            let invocation = Map::from_iter([(Value::from("module_args"), Value::map(without_secrets(given)))]);
            result.insert("invocation", Value::map(invocation));
        }
        for name in ["stdout", "stderr"] {
            let lines = format!("{name}_lines");
            if let Some(Value::Str(text)) = result.get(name)
                && !result.contains_key(&lines)
            {
                let split = text.as_str().lines().map(Value::from).collect();
                result.insert(lines, Value::list(split));
            }
        }
        if let Value::Bool(true) = result.get("unreachable").unwrap_or(&Value::Null) {
            return ItemEnd::new(Status::Unreachable, result);
        }
        self.judge(result)
    }

    /// Applies `changed_when` and `failed_when`.
    fn judge(&self, mut result: Map) -> ItemEnd {
        let is = |result: &Map, key: &str| result.get(key).is_some_and(truth);
        if is(&result, "skipped") && !is(&result, "failed") {
            return ItemEnd::new(Status::Skipped, result);
        }
        if !result.contains_key("changed") {
            result.insert("changed", false);
        }
        for (keyword, key) in [(Keyword::ChangedWhen, "changed"), (Keyword::FailedWhen, "failed")] {
            let Some(setting) = self.task.keywords.get(keyword) else { continue };
            match self.with_result(&result).condition(&setting.value) {
                Ok(so) => {
                    if keyword == Keyword::FailedWhen {
                        result.insert("failed_when_result", so);
                    }
                    result.insert(key, so);
                }
                Err(error) => {
                    // What was done is told beside what can't be said of it.
                    let end = self.spoiled(keyword.name(), &error);
                    result.extend(end.result);
                    return ItemEnd::new(Status::Failed, result);
                }
            }
        }
        if is(&result, "failed") {
            return ItemEnd::new(Status::Failed, result);
        }
        if !result.contains_key("failed") {
            result.insert("failed", false);
        }
        let status = if is(&result, "changed") { Status::Changed } else { Status::Ok };
        ItemEnd::new(status, result)
    }

    /// Returns a templar that sees the result under the name it will be registered as.
    fn with_result(&self, result: &Map) -> Templar {
        let name = self.task.keywords.get(Keyword::Register).map(|setting| setting.value.to_string());
        match name {
            Some(name) => self.templar.with([(name, Value::map(result.clone()))]),
            None => self.templar.clone(),
        }
    }

    /// Renders the action's arguments over the defaults that `module_defaults` gives.
    fn arguments(&self) -> Result<Map, Failure> {
        let call = &self.task.action;
        if action::takes_raw(&call.name) {
            return self.with_variable_params((*call.args).clone());
        }
        let mut args = self.module_defaults(&call.name)?;
        let own = match self.templar.value(&Value::Map(call.args.clone()))? {
            Value::Map(map) => Arc::unwrap_or_clone(map),
            _ => Map::new(),
        };
        args.extend(self.with_variable_params(own)?);
        Ok(without_omitted(args))
    }

    /// Puts arguments that come whole from a template, as in `debug: "{{ arguments }}"`, beneath those given by name.
    fn with_variable_params(&self, mut own: Map) -> Result<Map, Failure> {
        let Some(more) = own.remove("_variable_params") else { return Ok(own) };
        match self.templar.value(&more)? {
            Value::Map(map) => {
                for (key, value) in &*map {
                    if own.get_key(key).is_none() {
                        own.insert(key.clone(), value.clone());
                    }
                }
                Ok(own)
            }
            Value::Omit | Value::Null => Ok(own),
            other => Err(Failure::message(format!("arguments must be a mapping, and `{other}` is {}", other.kind()))),
        }
    }

    fn module_defaults(&self, name: &str) -> Result<Map, Failure> {
        let mut defaults = Map::new();
        let parents: Vec<_> = self.task.parents().collect();
        let settings = parents.iter().rev().filter_map(|parent| parent.keywords.get(Keyword::ModuleDefaults));
        for setting in settings.chain(self.task.keywords.get(Keyword::ModuleDefaults)) {
            let lists = match &setting.value {
                Value::List(items) => items.to_vec(),
                one => vec![one.clone()],
            };
            for list in lists {
                for (key, value) in list.as_map().map(|map| (**map).clone()).unwrap_or_default() {
                    let key = key.to_string();
                    let is_meant = match &self.task.action.foreign {
                        Some(_) => key == self.task.action.written,
                        None => action::canonical(&key) == Some(name),
                    };
                    if is_meant && let Value::Map(map) = self.templar.value(&value)? {
                        defaults.extend((*map).clone());
                    }
                }
            }
        }
        Ok(defaults)
    }

    /// Returns the task's environment, outermost first.
    fn environment(&self) -> Result<BTreeMap<String, String>, Failure> {
        let gathers = matches!(&*self.task.action.name, "gather_facts" | "setup");
        let mut environment = BTreeMap::new();
        let parents: Vec<_> = self.task.parents().collect();
        let settings = parents.iter().rev().filter_map(|parent| parent.keywords.get(Keyword::Environment));
        for setting in settings.chain(self.task.keywords.get(Keyword::Environment)) {
            let lists = match &setting.value {
                Value::Str(_) => match self.templar.value(&setting.value)? {
                    Value::List(items) => items.to_vec(),
                    one => vec![one],
                },
                Value::List(items) => items.to_vec(),
                one => vec![one.clone()],
            };
            for list in lists {
                let list = if list.as_map().is_some() { list } else { self.templar.value(&list)? };
                for (key, value) in list.as_map().map(|map| (**map).clone()).unwrap_or_default() {
                    match self.templar.value(&value) {
                        Ok(Value::Omit) => {}
                        Ok(value) => {
                            environment.insert(self.templar.text(&key)?, value.to_string());
                        }
                        // Facts about the environment can't be there before they are gathered.
                        Err(error) if gathers && error.undefined.is_some() && error.message.contains("env") => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        Ok(environment)
    }

    /// Tells that the task lives.
    pub fn alive(&self, line: &str) {
        if !line.is_empty() {
            let line = if self.no_log { String::new() } else { line.to_owned() };
            self.world.tell(Event::Alive { host: self.host.clone(), line });
        }
        if self.world.is_interrupted() {
            self.world.sent.stop_all();
        }
    }

    /// Runs a module over the task's connection, apart from it where the task has `async`.
    fn module(&self, name: &str, args: &Map, contents: &Contents) -> Result<Map, Failure> {
        let limit = match self.keyword(Keyword::Timeout)? {
            Some(_) => Some(self.number(Keyword::Timeout, 0.0).map_err(Failure::message)?).filter(|limit| *limit > 0.0),
            None => self.world.options.connect.task_timeout.map(|limit| limit.as_secs_f64()),
        };
        let mut request = wire::Task {
            id: self.world.next_id(),
            module: name.to_owned(),
            args: args.to_json(),
            check: self.check,
            diff: self.diff,
            environment: self.environment()?,
            timeout_s: limit,
            job: None,
        };
        let seconds = self.number(Keyword::Async, 0.0).map_err(Failure::message)?;
        if seconds > 0.0 && !self.check {
            let job = format!("j{}.{}", request.id, std::process::id());
            request.job = Some(job.clone());
            request.timeout_s = Some(seconds);
            let started = self.send(&request, contents)?;
            let poll = self.number(Keyword::Poll, self.world.options.poll_s).map_err(Failure::message)?;
            return if poll > 0.0 { self.follow_job(&job, seconds, poll) } else { Ok(started) };
        }
        self.send(&request, contents)
    }

    fn send(&self, request: &wire::Task, contents: &Contents) -> Result<Map, Failure> {
        let next = match self.sending {
            Sending::Now(next) => next,
            Sending::Planning(slot) => {
                if contents.is_empty() && request.job.is_none() {
                    slot.replace(Some(request.clone()));
                }
                return Err(Failure::message("its turn has not come"));
            }
        };
        let (world, reach) = (self.world, self.reach());
        let become_ = reach.become_.as_ref();
        let mut tasks = if next.then.is_empty() { VecDeque::new() } else { ahead::plan(self, &next.then) };
        let mut behind = Vec::new();
        for (_, planned) in &mut tasks {
            if let Planned::Asked(asked) = planned {
                behind.extend(asked.ahead.take_frame());
            }
        }
        let count = tasks.iter().filter(|(_, planned)| matches!(planned, Planned::Asked(_))).count();
        let may_plan = ahead::may_plan(world) && contents.is_empty() && request.job.is_none();
        // What others change at the same time would make plans behind it worthless.
        let leads = count == 0 && (next.alone || ahead::is_plannable_module(&request.module));
        let answer = world.connections.borrowed(&reach.target, |connection| {
            let alive = |line: &str| self.alive(line);
            let changes = world.changes();
            if may_plan && let Some(foreseen) = connection.foreseen(become_, request, changes, &alive)? {
                return Ok((foreseen, false));
            }
            let most = if leads { connection.most_plans() } else { 0 };
            let plans = Plans { tasks: ahead::foresee(self, request, next, most), changes };
            let answered = connection.run_as::<Told>(become_, request, (count, &behind), plans, contents, &alive)?;
            if ahead::is_plannable_module(&request.module) {
                connection.note_plan(answered.looked);
            }
            if !ahead::is_harmless(&request.module, answered.looked) {
                connection.keep_planned(become_, world.note_change());
            }
            Ok((answered, true))
        });
        let ((Answered { result: Told(result), .. }, is_sent), connection) =
            answer.map_err(|error| Failure::Unreachable(error.message))?;
        if is_sent && count > 0 && ahead::went_well(&result) {
            world.sent.keep(self.host, connection, tasks);
        } else {
            world.connections.give_back(&reach.target, connection);
        }
        Ok(result)
    }

    /// Asks for a job's end until it has come or its time is up.
    fn follow_job(&self, job: &str, seconds: f64, poll: f64) -> Result<Map, Failure> {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        loop {
            self.world.sleep(Duration::from_secs_f64(poll));
            let result = self.ask_job(job, "status")?;
            if result.get("finished").is_some_and(|finished| truth(finished) && *finished != Value::Int(0)) {
                // Nobody asks for it again, and what it returned may be secret.
                self.ask_job(job, "cleanup").ok();
                return Ok(result);
            }
            if Instant::now() > end || self.world.is_interrupted() {
                return Err(Failure::message(format!("the task was not done within its {seconds} s")));
            }
        }
    }

    fn ask_job(&self, job: &str, mode: &str) -> Result<Map, Failure> {
        let request = wire::Task {
            id: self.world.next_id(),
            module: "async_status".to_owned(),
            args: [("jid".to_owned(), job.into()), ("mode".to_owned(), mode.into())].into_iter().collect(),
            ..wire::Task::default()
        };
        self.send(&request, &Contents::default())
    }
}

/// Runs a module where the task runs.
///
/// # Errors
/// When the host can't be reached. A module's failure is its result.
pub fn module(run: &ItemRun<'_>, name: &str, args: &Map, contents: &Contents) -> Result<Map, Failure> {
    run.module(name, args, contents)
}

/// Hides what arguments of such names hold, as Ansible does with those that its modules declare secret.
fn without_secrets(args: Map) -> Map {
    const SECRET: &[&str] = &["pass", "secret", "token", "private_key", "api_key"];
    const HIDDEN: &str = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER";
    // An answer to debconf says by its type what it is.
    let answers_password = args.get("vtype").is_some_and(|kind| kind.to_string() == "password");
    let is_secret = |key: &Value| {
        let key = key.to_string().to_ascii_lowercase();
        SECRET.iter().any(|part| key.contains(part)) || answers_password && matches!(&*key, "value" | "answer")
    };
    let shown = |(key, value): (Value, Value)| {
        let hide = is_secret(&key) && matches!(value, Value::Str(_));
        (key, if hide { Value::from(HIDDEN) } else { value })
    };
    args.into_iter().map(shown).collect()
}

/// Leaves out what `omit` stands for.
fn without_omitted(map: Map) -> Map {
    map.into_iter().filter(|(_, value)| !matches!(value, Value::Omit)).collect()
}
