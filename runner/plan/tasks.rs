//! Each task by itself: its module's arguments, its templates, the files that it names.

use std::collections::HashSet;
use std::sync::Arc;

use kubeon_modules::{DecodeError, Step};

use super::visit;
use crate::action;
use crate::playbook::{Item, Keyword, LoopControl, LoopKind, Parent, ParentKind, Play, Shape, Task, Where};
use crate::source::{Diagnostic, Place, Severity, nearest};
use crate::template;
use crate::value::{Map, Value};
use crate::yaml::Node;

/// `seen` holds what enclosed the tasks that were checked before: its keywords are checked once.
pub(super) fn check(items: &[Item], seen: &mut HashSet<*const Parent>, problems: &mut Vec<Diagnostic>) {
    visit(items, &mut |task| {
        call(task, problems);
        let mut found = Vec::new();
        if arguments(task, &mut found) {
            combination(task, &mut found);
        }
        templates(task, &mut found);
        background(task, &mut found);
        facts(task, &mut found);
        problems.extend(found.into_iter().map(|problem| if may_fail(task) { awaited(problem) } else { problem }));
        applied(task, problems);
        register(task, problems);
        loop_of(task, problems);
        for parent in task.parents().filter(|parent| seen.insert(Arc::as_ptr(parent))) {
            enclosing(parent, problems);
        }
    });
}

/// Keywords and variables of a play, a block, a role or an import. A role's own variables may never be used.
fn enclosing(parent: &Parent, problems: &mut Vec<Diagnostic>) {
    for (keyword, setting) in parent.keywords.iter() {
        keyword_value(*keyword, &setting.value, problems);
    }
    if parent.kind != ParentKind::Role {
        value(&Value::Map(parent.vars.clone()), problems);
    }
}

/// Whether somebody looks at the result of a task that fails, as tests of a module do: then it is theirs to fail.
fn may_fail(task: &Task) -> bool {
    let has = |keyword| task.keywords.get(keyword).is_some();
    has(Keyword::Register) && (has(Keyword::IgnoreErrors) || has(Keyword::FailedWhen))
}

fn awaited(mut problem: Diagnostic) -> Diagnostic {
    problem.severity = Severity::Warning;
    let meant = problem.help.take().map_or_else(String::new, |help| format!("{help} As it is, "));
    problem.help(format!("{meant}the task will fail, which `ignore_errors` or `failed_when` may let pass"))
}

/// Checks the play's own templates.
pub(super) fn check_values(play: &Play, problems: &mut Vec<Diagnostic>) {
    enclosing(&play.parent, problems);
    value(&play.hosts.value, problems);
    play.vars_files.iter().for_each(|file| value(file, problems));
    for prompt in &play.vars_prompt {
        value(&prompt.prompt, problems);
        prompt.default.iter().for_each(|default| value(default, problems));
    }
    for role in &play.roles {
        for vars in [&role.defaults, &role.vars, &role.params] {
            value(&Value::Map(vars.clone()), problems);
        }
    }
}

fn keyword_value(keyword: Keyword, written: &Value, problems: &mut Vec<Diagnostic>) {
    if keyword == Keyword::ModuleDefaults {
        module_defaults(written, problems);
    }
    if keyword.shape() == Shape::Condition {
        condition(written, problems);
    } else {
        value(written, problems);
    }
}

/// Names of modules that there are not mean nothing, as in Ansible; groups of them would mean something, and do not.
fn module_defaults(written: &Value, problems: &mut Vec<Diagnostic>) {
    let maps = match written {
        Value::List(items) => items.to_vec(),
        one => vec![one.clone()],
    };
    for key in maps.iter().filter_map(Value::as_map).flat_map(|map| map.keys()) {
        let Value::Str(text) = key else { continue };
        let name = text.as_str();
        if name.starts_with("group/") {
            let message = format!("groups of modules, such as `{name}`, have no defaults here");
            problems.push(Diagnostic::error(text.place, message).help("name the modules"));
        } else if action::canonical(name).is_none()
            && let Some(meant) = nearest(name, action::names())
        {
            let problem = Diagnostic::warning(text.place, format!("no module `{name}`: its defaults mean nothing"));
            problems.push(problem.help(format!("did you mean `{meant}`?")));
        }
    }
}

fn condition(written: &Value, problems: &mut Vec<Diagnostic>) {
    match written {
        Value::List(items) => items.iter().for_each(|item| condition(item, problems)),
        Value::Str(text) => {
            let Err(error) = template::syntax_of_condition(text) else { return };
            // A condition with templates in it is no expression and fails its task, which may be what is wanted there.
            let is_template = text.is_template() && template::syntax(text).is_ok();
            let problem = error.diagnostic();
            problems.push(if is_template { problem.as_warning() } else { problem });
        }
        _ => {}
    }
}

/// Checks the syntax of every template in a value.
fn value(written: &Value, problems: &mut Vec<Diagnostic>) {
    match written {
        Value::Str(text) if text.is_template() => {
            if let Err(error) = template::syntax(text) {
                problems.push(error.diagnostic());
            }
        }
        Value::List(items) => items.iter().for_each(|item| value(item, problems)),
        Value::Map(map) => map.iter().for_each(|(key, entry)| {
            value(key, problems);
            value(entry, problems);
        }),
        _ => {}
    }
}

fn templates(task: &Task, problems: &mut Vec<Diagnostic>) {
    for (keyword, setting) in task.keywords.iter() {
        keyword_value(*keyword, &setting.value, problems);
    }
    value(&Value::Map(task.vars.clone()), problems);
    let args = &task.action.args;
    for (key, entry) in &**args {
        value(key, problems);
        match (&*task.action.name, key.as_str()) {
            ("assert", Some("that")) => condition(entry, problems),
            // Its value is an expression, or a template that gives one.
            ("debug", Some("var")) if !entry.holds_template() => condition(entry, problems),
            _ => value(entry, problems),
        }
    }
    task.notify.iter().for_each(|name| value(name, problems));
}

fn register(task: &Task, problems: &mut Vec<Diagnostic>) {
    let Some(setting) = task.keywords.get(Keyword::Register) else { return };
    let name = setting.value.to_string();
    // A list or a mapping has been told of as it was read.
    let is_name = matches!(setting.value, Value::List(_) | Value::Map(_)) || crate::vars::is_name(&name);
    if !is_name && !crate::value::may_be_template(&name) {
        let message = format!("Invalid variable name '{name}'");
        problems.push(Diagnostic::error(setting.place, message).help(NAMES));
    }
}

fn loop_of(task: &Task, problems: &mut Vec<Diagnostic>) {
    let Some(loop_) = &task.loop_ else { return };
    value(&loop_.items, problems);
    let LoopControl { loop_var, index_var, label, pause, extended, extended_allitems, break_when } = &loop_.control;
    for written in [loop_var, index_var, label, pause, extended, extended_allitems].into_iter().flatten() {
        value(written, problems);
    }
    break_when.iter().for_each(|written| condition(written, problems));
    match &loop_.kind {
        LoopKind::List => {
            if !matches!(loop_.items, Value::List(_)) && !loop_.items.holds_template() {
                let message = format!("`loop` must be a list, found {}", loop_.items.kind());
                problems.push(Diagnostic::error(loop_.place, message));
            }
        }
        LoopKind::With(name) => {
            let known = template::lookup_names();
            let short = name.rsplit('.').next().unwrap_or(name);
            if !known.contains(&short) {
                let mut problem = Diagnostic::error(loop_.place, format!("no lookup `{name}` for `with_{name}`"));
                if let Some(meant) = nearest(short, known.iter().copied()) {
                    problem = problem.help(format!("did you mean `with_{meant}`?"));
                }
                problems.push(problem);
            }
        }
    }
}

/// What no module takes, and modules that can't be sent.
fn call(task: &Task, problems: &mut Vec<Diagnostic>) {
    let call = &task.action;
    for name in call.args.keys().filter_map(Value::as_str).filter(|name| name.starts_with("_ansible_")) {
        let message = format!(
            "Invalid parameter specified beginning with keyword '_ansible_' for action '{}': '{name}'. The prefix \
             '_ansible_' is reserved for internal use only.",
            call.written
        );
        problems.push(Diagnostic::error(call.place_of(name).0, message));
    }
    if let Some(Err(message)) = call.foreign.as_ref().map(|foreign| foreign.ready()) {
        problems.push(Diagnostic::error(call.place, message).width(call.written.chars().count()));
    }
}

/// Decodes the arguments that hold no template into the module's type. Returns whether all of them are its own.
fn arguments(task: &Task, problems: &mut Vec<Diagnostic>) -> bool {
    let call = &task.action;
    if call.foreign.is_some() {
        // What it takes only itself knows.
        return true;
    }
    let mut plain = Map::new();
    let mut open: Vec<String> = Vec::new();
    for (key, entry) in &*call.args {
        let name = key.to_string();
        if name == "_variable_params" {
            // What it brings is known only when it is rendered.
            open.push("*".to_owned());
        } else if entry.holds_template() && !action::takes_raw(&call.name) {
            open.push(name);
        } else {
            plain.insert(key.clone(), entry.clone());
        }
    }
    let defaults = task.inherited(Keyword::ModuleDefaults).is_some();
    let mut wrong = false;
    let mut known = true;
    loop {
        let Err(error) = action::check(&call.name, &plain.to_json()) else { break };
        if let Some(missing) = &error.missing {
            // It may be an argument whose value is a template, or a default, under this or another name.
            // One that was wrong has been told of, and is not missing.
            if open.is_empty() && !defaults && !wrong {
                problems.push(missing_argument(task, missing));
            }
            break;
        }
        problems.push(wrong_argument(task, &error));
        wrong |= !error.at_key;
        known &= !error.at_key;
        let Some(Step::Key(key)) = error.path.first() else { break };
        plain.remove(key);
    }
    for name in open.iter().filter(|name| *name != "*") {
        unknown_name(task, name, problems);
    }
    known
}

/// Actions that have no background: what they do, the runner does.
const NO_ASYNC: &[&str] = &[
    "add_host",
    "assemble",
    "assert",
    "async_status",
    "copy",
    "debug",
    "fail",
    "fetch",
    "gather_facts",
    "group_by",
    "include_role",
    "include_tasks",
    "include_vars",
    "meta",
    "pause",
    "raw",
    "reboot",
    "script",
    "set_fact",
    "set_stats",
    "template",
    "unarchive",
    "wait_for_connection",
];

fn background(task: &Task, problems: &mut Vec<Diagnostic>) {
    let Some(setting) = task.keywords.get(Keyword::Async) else { return };
    let seconds = match &setting.value {
        Value::Int(seconds) => *seconds,
        other => other.as_str().and_then(|text| text.trim().parse().ok()).unwrap_or(0),
    };
    if seconds > 0 && NO_ASYNC.contains(&&*task.action.name) {
        let message = format!("This action ({}) does not support async.", task.action.written);
        problems.push(Diagnostic::error(setting.place, message).help("take `async` out"));
    }
}

/// Names of variables that a task sets.
fn facts(task: &Task, problems: &mut Vec<Diagnostic>) {
    if &*task.action.name != "set_fact" || task.action.foreign.is_some() {
        return;
    }
    for key in task.action.args.keys().filter(|key| !key.holds_template()) {
        let name = key.to_string();
        if !crate::vars::is_name(&name) {
            let problem = Diagnostic::error(task.action.place_of(&name).0, format!("Invalid variable name '{name}'"));
            problems.push(problem.width(name.chars().count()).help(NAMES));
        }
    }
}

/// What a variable may be called.
const NAMES: &str = "letters, digits and `_`, not starting with a digit";

/// Arguments that need one another, or can't stand together.
fn combination(task: &Task, problems: &mut Vec<Diagnostic>) {
    let args = &task.action.args;
    if args.contains_key("_variable_params") || task.inherited(Keyword::ModuleDefaults).is_some() {
        return;
    }
    let has = |keys: &[&str]| keys.iter().any(|key| args.contains_key(key));
    let name = &*task.action.name;
    let message = match name {
        "command" | "shell" | "raw" | "script" if !has(&["_raw_params", "cmd", "argv"]) => {
            format!("`{}` needs a command", task.action.written)
        }
        "command" if has(&["_raw_params", "cmd"]) && has(&["argv"]) => {
            "give a command line or `argv`, not both".to_owned()
        }
        "debug" if has(&["msg"]) && has(&["var"]) => "give `msg` or `var`, not both".to_owned(),
        "copy" if has(&["src"]) && has(&["content"]) => "give `src` or `content`, not both".to_owned(),
        "add_host" if !has(&["name", "hostname", "host", "_raw_params"]) => {
            "`add_host` needs the argument `name`".to_owned()
        }
        _ => return,
    };
    let problem = Diagnostic::error(task.action.place, message);
    problems.push(problem.help(format!("`kubeon-run doc {name}` shows its arguments")));
}

/// What an include applies to its tasks: keywords of a block.
fn applied(task: &Task, problems: &mut Vec<Diagnostic>) {
    let Some(Value::Map(apply)) = task.action.args.get("apply") else { return };
    for key in apply.keys() {
        let name = key.to_string();
        let known = || {
            Keyword::ALL.iter().filter(|keyword| keyword.places().includes(Where::BLOCK)).map(|keyword| keyword.name())
        };
        if known().chain(["vars", "notify"]).any(|known| known == name) {
            continue;
        }
        let place = place_of(task, &[Step::Key("apply".to_owned()), Step::Key(name.clone())], true);
        let problem = Diagnostic::error(place, format!("'{name}' is not a valid attribute for a Block"));
        problems.push(match nearest(&name, known()) {
            Some(meant) => problem.help(format!("did you mean `{meant}`?")),
            None => problem,
        });
    }
}

/// The name of an argument whose value is a template is checked too.
fn unknown_name(task: &Task, name: &str, problems: &mut Vec<Diagnostic>) {
    let probe = Map::from_iter([(Value::from(name), Value::from(""))]);
    if let Err(error) = action::check(&task.action.name, &probe.to_json())
        && error.at_key
    {
        problems.push(wrong_argument(task, &error));
    }
}

fn missing_argument(task: &Task, missing: &str) -> Diagnostic {
    let shown = if missing == "_raw_params" { "a command".to_owned() } else { format!("the argument `{missing}`") };
    let message = format!("`{}` needs {shown}", task.action.written);
    Diagnostic::error(task.action.place, message)
        .help(format!("`kubeon-run doc {}` shows its arguments", task.action.name))
}

fn wrong_argument(task: &Task, error: &DecodeError) -> Diagnostic {
    let place = place_of(task, &error.path, error.at_key);
    let mut message = error.message.clone();
    if let ("include_role" | "import_role", [Step::Key(key)]) = (&*task.action.name, &*error.path)
        && let (true, Some(value)) = (key.ends_with("_from") && !error.at_key, task.action.args.get(key))
    {
        message = format!("Expected a string for {key} but got {} instead", value.kind());
    }
    // An internal name means nothing to a user.
    if message.contains("`_raw_params`") {
        message = message.replace("`_raw_params`, ", "").replace("`_raw_params`", "a command");
    }
    let mut problem = Diagnostic::error(place, message);
    let mut quoted = error.message.split('`').skip(1).step_by(2);
    let written = match error.path.last() {
        Some(Step::Key(key)) if error.at_key => quoted.next().map(|_| key.as_str()),
        _ if error.message.starts_with("unknown value `") => quoted.next(),
        _ => None,
    };
    if let Some(written) = written {
        problem = problem.width(written.chars().count());
        if let Some(meant) = nearest(written, quoted) {
            problem = problem.help(format!("did you mean `{meant}`?"));
        }
    }
    problem
}

/// Returns where the faulty key or value was written.
fn place_of(task: &Task, path: &[Step], at_key: bool) -> Place {
    let call = &task.action;
    let Some(Step::Key(first)) = path.first() else { return call.place };
    let (key, value) = call.place_of(first);
    if path.len() == 1 {
        return if at_key { key } else { within_text(task, first).unwrap_or(value) };
    }
    let start = call.node.get(first).or_else(|| call.more.as_ref().and_then(|more| more.get(first)));
    let Some(mut node) = start else { return value };
    for (nth, step) in path.iter().enumerate().skip(1) {
        let next: Option<&Node> = match step {
            Step::Key(name) => {
                if at_key && nth + 1 == path.len() {
                    let found = node.entries().iter().find(|(key, _)| key.as_str() == Some(name));
                    return found.map_or(node.place, |(key, _)| key.place);
                }
                node.get(name)
            }
            Step::Index(index) => node.items().and_then(|items| items.get(*index)),
        };
        match next {
            Some(next) => node = next,
            None => break,
        }
    }
    node.place
}

/// Returns where an argument's value was written.
pub(super) fn value_place(task: &Task, key: &str) -> Place {
    within_text(task, key).map_or_else(|| task.action.place_of(key).1, |place| place.right(key.chars().count() + 1))
}

/// An argument of a `key=value` line stands within that line.
fn within_text(task: &Task, key: &str) -> Option<Place> {
    let text = task.action.node.as_str()?;
    let at = text.find(&format!("{key}="))?;
    Some(task.action.node.place.right(text[..at].chars().count()))
}
