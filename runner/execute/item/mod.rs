//! One task on one host for one item: conditions, arguments, the action, and what the result means.

mod arguments;
mod request;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use kubeon_modules::wire;

use super::ahead::{self, Coming, Planned};
use super::reach::{self, Reach, truth};
use super::{PlayRun, World};
use crate::action::{self, Failure};
use crate::connection::Contents;
use crate::playbook::{Keyword, Task};
use crate::report::{Event, Status, TaskInfo};
use crate::template::{Templar, TemplateError};
use crate::value::{Map, Value};

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
    /// Which round of its loop it is.
    pub round: usize,
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
            Err(error) => Err(error.into()),
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
