//! The debugger: after a task has ended as `debugger` says, somebody looks at it, changes it, and has it done again.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use super::ahead::Coming;
use super::reach::truth;
use super::strategy::failed_task;
use super::task::{HostTask, TaskEnd};
use super::{PlayRun, RunOptions, World};
use crate::cli::prompt;
use crate::config;
use crate::playbook::{ActionCall, Item, Keyword, Play, Task};
use crate::report::{self, Event, Status, TaskInfo};
use crate::template::Templar;
use crate::value::{Map, Str, Value};

const HELP: &str = "\
p EXPRESSION, or the expression alone   show what it is: result, task.args, task_vars['name'], host
task.args['name'] = EXPRESSION          change an argument of the task; del task.args['name'] takes it away
task_vars['name'] = EXPRESSION          change a variable for this task
update_task, u                          take the arguments as they are written, with the variables as they are now
redo, r                                 run the task again
continue, c                             go on
quit, q                                 end the run";

/// One line is read at a time, whichever hosts are at it.
static TERMINAL: Mutex<()> = Mutex::new(());

/// What may open after a task on a host.
pub(super) struct Debugger<'a> {
    world: &'a Arc<World>,
    play: &'a Arc<PlayRun>,
    task: &'a Arc<Task>,
    info: &'a Arc<TaskInfo>,
}

/// What somebody has changed so far.
struct Session {
    args: Map,
    vars: Vec<(String, Value)>,
}

/// How a session ends.
enum Next {
    Redo,
    Continue,
    Quit,
}

/// Returns whether a debugger may open in these plays, as far as can be told before they run.
pub fn may_ask(plays: &[Play], options: &RunOptions) -> bool {
    fn asks(items: &[Item]) -> bool {
        items.iter().any(|item| match item {
            Item::Task(task) => {
                task.inherited(Keyword::Debugger).is_some_and(|setting| setting.value.as_str() != Some("never"))
            }
            Item::Block(block) => asks(&block.tasks) || asks(&block.rescue) || asks(&block.always),
        })
    }
    let is_debug = |name: &str| name.rsplit('.').next() == Some("debug");
    config::is_set("ENABLE_TASK_DEBUGGER")
        || is_debug(&options.default_strategy)
        || plays.iter().any(|play| {
            let strategy =
                play.setting(Keyword::Strategy).and_then(|setting| setting.value.as_str().map(str::to_owned));
            strategy.is_some_and(|name| is_debug(&name))
                || [&play.pre_tasks, &play.tasks, &play.post_tasks, &play.handlers].into_iter().any(|items| asks(items))
        })
}

impl<'a> Debugger<'a> {
    pub fn new(
        world: &'a Arc<World>,
        play: &'a Arc<PlayRun>,
        task: &'a Arc<Task>,
        info: &'a Arc<TaskInfo>,
    ) -> Debugger<'a> {
        Debugger { world, play, task, info }
    }

    /// Opens after an end that asks for it, as often as it does; returns the end that counts.
    pub fn after(&self, mut end: TaskEnd) -> TaskEnd {
        if self.world.is_interrupted() || !self.is_wanted(&end) {
            return end;
        }
        let _one_at_a_time = TERMINAL.lock().unwrap_or_else(PoisonError::into_inner);
        let mut session = Session { args: (*self.task.action.args).clone(), vars: Vec::new() };
        while !self.world.is_interrupted() && self.is_wanted(&end) {
            self.world.settle();
            match self.talk(&mut session, &end) {
                Next::Continue => break,
                Next::Quit => {
                    self.world.interrupt();
                    break;
                }
                Next::Redo => end = self.redo(&session, &end),
            }
        }
        end
    }

    fn templar(&self, host: &Arc<str>, session: &Session) -> Templar {
        let templar = crate::vars::templar(self.world, Some(self.play), host, Some(self.task));
        templar.with(session.vars.iter().cloned())
    }

    fn is_wanted(&self, end: &TaskEnd) -> bool {
        let failed = end.status == Status::Failed && !(end.ignored && config::is_set("TASK_DEBUGGER_IGNORE_ERRORS"));
        let unreachable = end.status == Status::Unreachable;
        let word = self.task.inherited(Keyword::Debugger).map(|setting| {
            let templar = crate::vars::templar(self.world, Some(self.play), &end.host, Some(self.task));
            templar.text(&setting.value).unwrap_or_else(|_| setting.value.to_string())
        });
        match word.as_deref() {
            Some("always") => true,
            Some("never") => false,
            Some("on_skipped") if end.status == Status::Skipped => true,
            Some("on_failed") if failed => true,
            Some("on_unreachable") if unreachable => true,
            Some(_) | None => {
                let strategy = super::play::strategy(self.world, self.play);
                let enabled = strategy.rsplit('.').next() == Some("debug") || config::is_set("ENABLE_TASK_DEBUGGER");
                enabled && (failed || unreachable)
            }
        }
    }

    /// Runs the task again, with what was changed; the first end counts no more.
    fn redo(&self, session: &Session, end: &TaskEnd) -> TaskEnd {
        let changed = end.result.get("changed").is_some_and(truth);
        self.world.uncount(&end.host, end.status, changed, end.ignored);
        let Task { place, parent, keywords, vars, action, loop_, notify, listen, file, is_handler } = &**self.task;
        let ActionCall { name, written, place: action_place, node, more, foreign, .. } = action;
        let task = Arc::new(Task {
            place: *place,
            parent: parent.clone(),
            keywords: keywords.clone(),
            vars: vars.clone(),
            action: ActionCall {
                name: name.clone(),
                written: written.clone(),
                place: *action_place,
                args: Arc::new(session.args.clone()),
                node: node.clone(),
                more: more.clone(),
                foreign: foreign.clone(),
            },
            loop_: loop_.clone(),
            notify: notify.clone(),
            listen: listen.clone(),
            file: file.clone(),
            is_handler: *is_handler,
        });
        let (world, play, info) = (self.world, self.play, self.info);
        let next = Coming::default();
        let again = HostTask { world, play, host: &end.host, task: &task, info, over: &session.vars, next: &next };
        // Whatever looks at the end looks for the task that it knows.
        TaskEnd { task: self.task.clone(), ..again.run() }
    }

    /// Does what somebody types until the task is to go on in some way.
    fn talk(&self, session: &mut Session, end: &TaskEnd) -> Next {
        let question = format!("[{}] TASK: {} (debug)> ", end.host, self.info.name);
        loop {
            let Some(line) = prompt::command(&question) else {
                let place = self.task.place;
                self.world.tell(Event::Error(format!(
                    "the debugger of the task at {place} has nobody to ask: standard input is no terminal, or it has ended"
                )));
                return Next::Quit;
            };
            let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
            match (word, rest.trim()) {
                _ if self.world.is_interrupted() => return Next::Quit,
                ("", _) => {}
                ("c" | "continue", "") => return Next::Continue,
                ("r" | "redo", "") => return Next::Redo,
                ("q" | "quit" | "EOF", "") => {
                    report::say("User interrupted execution");
                    return Next::Quit;
                }
                ("u" | "update_task", "") => {
                    session.args = (*self.task.action.args).clone();
                }
                ("h" | "help" | "?", _) => report::say(HELP),
                ("p" | "pprint", expression) if !expression.is_empty() && !expression.starts_with('=') => {
                    self.show(session, end, expression);
                }
                _ => {
                    let done = self.change(session, end, &line);
                    match done {
                        Ok(true) => {}
                        Ok(false) => self.show(session, end, &line),
                        Err(message) => report::say(&format!("***{message}")),
                    }
                }
            }
        }
    }

    /// Returns what expressions see: `task`, `task_vars`, `result`, `host`, and all variables.
    fn scope(&self, session: &Session, end: &TaskEnd) -> Templar {
        let templar = self.templar(&end.host, session);
        let as_written = Value::Map(Arc::new(session.args.clone()));
        // What can't be told is what somebody is looking for.
        let args = templar.value(&as_written).unwrap_or_else(|_| data(&as_written));
        let mut task = failed_task(self.world, self.play, end).as_map().map(|map| (**map).clone()).unwrap_or_default();
        task.insert("args", args);
        let mut result = end.result.clone();
        result.remove("_diagnostic");
        if self
            .task
            .inherited(Keyword::NoLog)
            .is_some_and(|setting| templar.value(&setting.value).is_ok_and(|value| truth(&value)))
        {
            result = Map::new();
            result.insert("censored", "the result is hidden, since `no_log` is on for this task");
        }
        let inner = Value::map(result.clone());
        result.insert("_result", inner);
        let vars: Map =
            templar.names().iter().filter_map(|name| Some((Value::from(&**name), templar.variable(name)?))).collect();
        templar.with([
            ("task".to_owned(), Value::map(task)),
            ("task_vars".to_owned(), Value::map(vars)),
            ("result".to_owned(), Value::map(result)),
            ("host".to_owned(), Value::from(&*end.host)),
        ])
    }

    fn evaluate(&self, session: &Session, end: &TaskEnd, expression: &str) -> Result<Value, String> {
        let text = Str::template(expression, Default::default());
        self.scope(session, end).expression(&text).map_err(|error| error.message)
    }

    fn show(&self, session: &Session, end: &TaskEnd, expression: &str) {
        report::say(&match self.evaluate(session, end, expression) {
            Ok(value) => printed(&value),
            Err(message) => format!("***{message}"),
        });
    }

    /// Does an assignment or `del`; `false` where the line is neither.
    fn change(&self, session: &mut Session, end: &TaskEnd, line: &str) -> Result<bool, String> {
        let (target, expression) = match (line.strip_prefix("del "), assignment(line)) {
            (Some(target), _) => (target.trim(), None),
            (None, Some((target, expression))) => (target, Some(expression)),
            (None, None) => return Ok(false),
        };
        let value = expression.map(|expression| self.evaluate(session, end, expression)).transpose()?;
        let help = || format!("`{target}` can't be changed: `task.args['name']` and `task_vars['name']` can");
        let (place, keys) = if let Some(rest) = target.strip_prefix("task.args") {
            (true, rest)
        } else if let Some(rest) = target.strip_prefix("task_vars") {
            (false, rest)
        } else {
            return Err(help());
        };
        let keys = self.keys(session, end, keys).ok_or_else(help)?;
        match (place, &keys[..], value) {
            (true, [], Some(Value::Map(map))) => session.args = (*map).clone(),
            (_, [], _) => return Err(help()),
            (true, keys, value) => put(&mut session.args, keys, value)?,
            (false, [name], Some(value)) => set(&mut session.vars, name.to_string(), value),
            (false, [name, within @ ..], value) => {
                let known = self.templar(&end.host, session).variable(&name.to_string()).unwrap_or(Value::Null);
                let mut map = known.as_map().map(|map| (**map).clone()).unwrap_or_default();
                if within.is_empty() {
                    return Err("a variable can't be taken away, only changed".to_owned());
                }
                put(&mut map, within, value)?;
                set(&mut session.vars, name.to_string(), Value::map(map));
            }
        }
        Ok(true)
    }

    /// Reads `['a'][0]`; `None` where it is something else.
    fn keys(&self, session: &Session, end: &TaskEnd, text: &str) -> Option<Vec<Value>> {
        let mut keys = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let inner = rest.strip_prefix('[')?;
            let close = inner.find(']')?;
            keys.push(self.evaluate(session, end, &inner[..close]).ok()?);
            rest = inner[close + 1..].trim();
        }
        Some(keys)
    }
}

fn set(vars: &mut Vec<(String, Value)>, name: String, value: Value) {
    vars.retain(|(known, _)| *known != name);
    vars.push((name, value));
}

/// Sets what stands under keys, or takes it away.
fn put(map: &mut Map, keys: &[Value], value: Option<Value>) -> Result<(), String> {
    let (key, within) = keys.split_first().expect("there is a key");
    if let [_, ..] = within {
        let inner = map.get_key(key).and_then(Value::as_map).map(|inner| (**inner).clone());
        let mut inner = inner.ok_or_else(|| format!("KeyError: `{key}` is no mapping"))?;
        put(&mut inner, within, value)?;
        map.insert(key.clone(), Value::map(inner));
        return Ok(());
    }
    match value {
        Some(value) => {
            map.insert(key.clone(), value);
        }
        None => {
            map.remove_key(key).ok_or_else(|| format!("KeyError: `{key}`"))?;
        }
    }
    Ok(())
}

/// Parts an assignment at its `=`; `None` where there is none outside of quotes and brackets.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    let mut depth = 0_u32;
    let bytes = line.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match (quote, byte) {
            (Some(open), byte) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'[' | b'(' | b'{') => depth += 1,
            (None, b']' | b')' | b'}') => depth = depth.saturating_sub(1),
            (None, b'=') if depth == 0 => {
                let beside =
                    |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(|byte| b"=!<>".contains(byte));
                let alone = !beside(at.checked_sub(1)) && bytes.get(at + 1) != Some(&b'=');
                return alone.then(|| (line[..at].trim(), line[at + 1..].trim()));
            }
            (None, _) => {}
        }
    }
    None
}

/// Returns a value with its templates as they are written.
fn data(value: &Value) -> Value {
    match value {
        Value::Str(text) => Value::Str(Str::data(text.as_str())),
        Value::List(items) => Value::list(items.iter().map(data).collect()),
        Value::Map(map) => Value::map(map.iter().map(|(key, value)| (data(key), data(value))).collect()),
        other => other.clone(),
    }
}

/// How wide a value may be on one line.
const WIDTH: usize = 79;

/// Returns a value as Python's pprint shows it: on one line where it fits, else an entry a line.
fn printed(value: &Value) -> String {
    fn write(out: &mut String, value: &Value, indent: usize) {
        let short = repr(value);
        let wide = indent + short.chars().count() > WIDTH;
        match value {
            Value::Map(map) if wide && !map.is_empty() => {
                for (nth, (key, value)) in map.iter().enumerate() {
                    let key = repr(key);
                    let blanks = if nth == 0 { 0 } else { indent + 1 };
                    write!(out, "{:blanks$}{}{key}: ", "", if nth == 0 { "{" } else { "" }).ok();
                    write(out, value, indent + key.chars().count() + 3);
                    out.push_str(if nth + 1 == map.len() { "}" } else { ",\n" });
                }
            }
            Value::List(items) if wide && !items.is_empty() => {
                for (nth, item) in items.iter().enumerate() {
                    let blanks = if nth == 0 { 0 } else { indent + 1 };
                    write!(out, "{:blanks$}{}", "", if nth == 0 { "[" } else { "" }).ok();
                    write(out, item, indent + 1);
                    out.push_str(if nth + 1 == items.len() { "]" } else { ",\n" });
                }
            }
            _ => out.push_str(&short),
        }
    }
    let mut out = String::new();
    write(&mut out, value, 0);
    out
}

/// Returns a value as it stands in a list: texts quoted.
fn repr(value: &Value) -> String {
    let listed = Value::list(vec![value.clone()]).to_string();
    listed[1..listed.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_is_told_from_a_comparison() {
        assert_eq!(assignment("task.args['a=b'] = 'x == y'"), Some(("task.args['a=b']", "'x == y'")));
        assert_eq!(assignment("a == b"), None);
        assert_eq!(assignment("f(x=1)"), None);
        assert_eq!(assignment("a <= b"), None);
    }

    #[test]
    fn long_values_are_shown_an_entry_a_line() {
        let long = "x".repeat(50);
        let map: Map = [("a", long.as_str()), ("b", long.as_str())]
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        assert_eq!(printed(&Value::map(map)), format!("{{'a': '{long}',\n 'b': '{long}'}}"));
        assert_eq!(printed(&"it's".into()), "\"it's\"");
    }
}
