//! Dynamic includes: `include_tasks` and `include_role` read their files when a host comes to them.

use std::path::Path;
use std::sync::Arc;

use super::item::ItemRun;
use super::{PlayRun, World};
use crate::playbook::{Block, Item, Keyword, Keywords, NO_FILE, Parent, ParentKind, Setting, Task, role, task_file};
use crate::source::{Diagnostic, Place, Severity};
use crate::value::{Map, Value};

/// How deep tasks may include one another: roles that try something again include themselves, but not for ever.
const DEPTH_LIMIT: usize = 500;

/// What a host asked to include: hosts that ask for the same share it and go on in step.
#[derive(Debug, Clone, PartialEq)]
pub struct Inclusion {
    /// The rendered arguments.
    pub args: Map,
    /// The loop's item and the like: variables of every included task.
    pub vars: Map,
    /// The item's label, for the report.
    pub label: Option<String>,
}

impl Inclusion {
    pub(super) fn new(run: &ItemRun<'_>, result: &Map, item: Option<Value>) -> Inclusion {
        let args = result.get("include_args").and_then(Value::as_map).map(|args| (**args).clone()).unwrap_or_default();
        let mut vars = Map::new();
        let mut label = None;
        if let (Some(item), Some(loop_)) = (item, &run.task.loop_) {
            let name = |value: &Option<Value>, usual: Option<&str>| {
                value.as_ref().and_then(|value| run.templar.text(value).ok()).or(usual.map(str::to_owned))
            };
            let of_loop = [name(&loop_.control.loop_var, Some("item")), name(&loop_.control.index_var, None)];
            let usual = ["ansible_loop_var", "ansible_index_var", "ansible_loop"].map(str::to_owned);
            for name in of_loop.into_iter().flatten().chain(usual) {
                if let Some(value) = run.templar.variable(&name) {
                    vars.insert(name, value);
                }
            }
            label = Some(match &loop_.control.label {
                Some(label) => run.templar.text(label).unwrap_or_else(|error| error.message),
                None => item.to_string(),
            });
        }
        Inclusion { args, vars, label }
    }
}

/// Why something can't be included.
pub struct Refused {
    /// For a person.
    pub message: String,
    /// Whether what is included is there but wrong: a mistake that no rescue takes up, as in what is read before.
    pub broken: bool,
}

impl From<String> for Refused {
    fn from(message: String) -> Refused {
        Refused { message, broken: false }
    }
}

/// What was read for an inclusion.
pub struct Included {
    pub block: Arc<Block>,
    /// As it is told.
    pub file: String,
    pub handlers: Vec<Item>,
    pub roles: Vec<Arc<crate::playbook::Role>>,
}

/// Reads what a task includes.
///
/// # Errors
/// A sentence for a person, with the place of the mistake where there is one.
pub fn load(world: &World, play: &PlayRun, task: &Arc<Task>, inclusion: &Inclusion) -> Result<Included, Refused> {
    if task.parents().filter(|parent| matches!(parent.kind, ParentKind::Include)).count() >= DEPTH_LIMIT {
        return Err(Refused::from(format!(
            "includes are more than {DEPTH_LIMIT} deep: one of these files includes itself, without a `when` that ends it"
        )));
    }
    let parent = parent_of_included(task, inclusion);
    let mut loader = world.loader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (tasks, file, handlers, roles) = if &*task.action.name == "include_role" {
        let used = role_use(&inclusion.args, task.action.place)?;
        let line = role::line_of(task.role());
        let loaded = loader.role(&used, &parent, &play.play.folder, &line);
        (loaded.items, used.name, loaded.handlers, loaded.roles)
    } else {
        let name = inclusion.args.get("file").or_else(|| inclusion.args.get("_raw_params"));
        let Some(name) = name.map(Value::to_string) else {
            return Err(Refused::from(format!("No file specified for {}", task.action.written)));
        };
        let role = task.role().map(|role| role.path.clone());
        let path = task_file(&name, &task.file, role.as_deref(), &play.play.folder, task.is_handler)
            .ok_or_else(|| format!("{NO_FILE} '{name}' (looked beside `{}`)", task.file.display()))?;
        let items = loader.tasks(&path, &parent, task.is_handler);
        (items, shown(&path), Vec::new(), Vec::new())
    };
    let brought = loader.take_brought();
    let handlers = handlers.into_iter().chain(brought.handlers).collect();
    let roles = roles.into_iter().chain(brought.roles).collect();
    let problems: Vec<Diagnostic> =
        loader.take_problems().into_iter().filter(|problem| problem.severity == Severity::Error).collect();
    if let Some(first) = problems.first() {
        // What is named and is not there fails the host; a mistake in what was found ends the run.
        let missing = first.message.starts_with(NO_FILE);
        let broken = first.place != task.action.place && !missing;
        if missing {
            world.tell(crate::report::Event::Error(first.render(false)));
        }
        let message = if missing { first.message.clone() } else { first.render(false) };
        let shown = crate::report::with_origin(&first.message, first.place);
        return Err(Refused { message: if broken { shown } else { message }, broken });
    }
    Ok(Included { block: Arc::new(included_block(task, parent, tasks)), file, handlers, roles })
}

/// Returns what a task would include that names its file plainly, read before its turn; `None` where that can't be told.
pub fn peek(world: &World, play: &PlayRun, task: &Arc<Task>) -> Option<Arc<Block>> {
    let args = Value::Map(task.action.args.clone());
    if task.loop_.is_some() || args.holds_template() {
        return None;
    }
    let inclusion = Inclusion { args: (*task.action.args).clone(), vars: Map::new(), label: None };
    let name = inclusion.args.get("file").or_else(|| inclusion.args.get("_raw_params"))?.to_string();
    let role = task.role().map(|role| role.path.clone());
    let path = task_file(&name, &task.file, role.as_deref(), &play.play.folder, task.is_handler)?;
    let parent = parent_of_included(task, &inclusion);
    let mut loader = world.loader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let tasks = loader.tasks(&path, &parent, task.is_handler);
    // All of that comes again when it is included.
    loader.take_brought();
    let is_well = loader.take_problems().iter().all(|problem| problem.severity != Severity::Error);
    is_well.then(|| Arc::new(included_block(task, parent, tasks)))
}

fn parent_of_included(task: &Arc<Task>, inclusion: &Inclusion) -> Arc<Parent> {
    Arc::new(Parent {
        kind: ParentKind::Include,
        keywords: applied(&inclusion.args),
        vars: Arc::new(include_vars(task, inclusion)),
        notify: applied_notify(&inclusion.args),
        role: None,
        parent: Some(Arc::new(parent_of_include(task))),
    })
}

fn included_block(task: &Task, parent: Arc<Parent>, tasks: Vec<Item>) -> Block {
    Block { place: task.place, parent, tasks, rescue: Vec::new(), always: Vec::new(), role_entry: None }
}

fn shown(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// An include's own `when`, tags, loop and the like are its own: what it encloses takes on only what stands above it.
fn parent_of_include(task: &Task) -> Parent {
    Parent {
        kind: ParentKind::Block,
        keywords: Keywords::default(),
        vars: Arc::default(),
        notify: Vec::new(),
        role: None,
        parent: Some(task.parent.clone()),
    }
}

/// `apply:` gives keywords to every included task.
fn applied(args: &Map) -> Keywords {
    let mut keywords = Keywords::default();
    if let Some(Value::Map(apply)) = args.get("apply") {
        for (name, value) in &**apply {
            if let Some(keyword) = Keyword::ALL.iter().find(|keyword| keyword.name() == name.to_string()) {
                keywords.set(*keyword, Setting { value: value.clone(), place: Place::default() });
            }
        }
    }
    keywords
}

fn applied_notify(args: &Map) -> Vec<Value> {
    match args.get("apply").and_then(|apply| apply.get("notify")) {
        Some(Value::List(names)) => names.to_vec(),
        Some(name) => vec![name.clone()],
        None => Vec::new(),
    }
}

fn include_vars(task: &Task, inclusion: &Inclusion) -> Map {
    let mut vars = inclusion.vars.clone();
    if let Some(Value::Map(applied)) = inclusion.args.get("apply").and_then(|apply| apply.get("vars")) {
        vars.extend((**applied).clone());
    }
    vars.extend((*task.vars).clone());
    if &*task.action.name == "include_tasks" {
        let own = |key: &Value| !matches!(key.as_str(), Some("file" | "_raw_params" | "apply"));
        vars.extend(inclusion.args.iter().filter(|(key, _)| own(key)).map(|(key, value)| (key.clone(), value.clone())));
    }
    vars
}

/// Reads the arguments of `include_role`.
///
/// # Errors
/// When they name no role.
pub fn role_use(args: &Map, place: Place) -> Result<role::RoleUse, String> {
    let text = |key: &str| args.get(key).map(Value::to_string);
    let name = text("name").or_else(|| text("role")).ok_or("`include_role` must have a `name`")?;
    Ok(role::RoleUse {
        name,
        place,
        tasks_from: text("tasks_from"),
        vars_from: text("vars_from"),
        defaults_from: text("defaults_from"),
        handlers_from: text("handlers_from"),
        skip_validation: args.get("rolespec_validate").is_some_and(|value| !crate::execute::truth(value)),
        allow_duplicates: Some(args.get("allow_duplicates").is_none_or(Value::truthy)),
        ..role::RoleUse::default()
    })
}
