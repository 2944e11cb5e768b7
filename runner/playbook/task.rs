//! Reads tasks, blocks, handlers and static imports.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::{self, ActionCall};
use super::keyword::{Keyword, Keywords, Setting, Where};
use super::read::{IMPORT_DEPTH_LIMIT, Loader};
use super::{Block, Item, Loop, LoopControl, LoopKind, Parent, ParentKind, Task};
use crate::action;
use crate::foreign::{self, Foreign};
use crate::source::{Diagnostic, nearest};
use crate::value::{Map, Value};
use crate::yaml::{Kind, Node};

/// How the message begins that a file of tasks is not there.
pub const NO_FILE: &str = "Could not find or access";

const TASK_KEYS: &[&str] = &["vars", "loop", "loop_control", "notify", "listen", "args", "action", "local_action"];
const BLOCK_KEYS: &[&str] = &["block", "rescue", "always", "vars", "notify"];

impl Loader {
    /// Reads a list of tasks and blocks.
    pub(super) fn items(&mut self, node: &Node, parent: &Arc<Parent>, file: &Path, is_handler: bool) -> Vec<Item> {
        let Kind::List(nodes) = &node.kind else {
            self.problem(Diagnostic::error(node.place, format!("expected a list of tasks, found {}", node.what())));
            return Vec::new();
        };
        let mut items = Vec::new();
        for node in nodes {
            if node.is_null() {
                continue;
            }
            if !matches!(node.kind, Kind::Map(_)) {
                self.problem(Diagnostic::error(node.place, format!("a task is a mapping, found {}", node.what())));
            } else if BLOCK_KEYS[..3].iter().any(|key| node.get(key).is_some()) {
                items.extend(self.block(node, parent, file, is_handler));
            } else {
                items.extend(self.task(node, parent, file, is_handler));
            }
        }
        items
    }

    fn block(&mut self, node: &Node, outer: &Arc<Parent>, file: &Path, is_handler: bool) -> Option<Item> {
        let (keywords, unknown) = self.keywords(node, Where::BLOCK, BLOCK_KEYS);
        for key in unknown {
            self.unknown_key(key, "a Block", Where::BLOCK, BLOCK_KEYS);
        }
        if is_handler && !matches!(outer.kind, ParentKind::Play | ParentKind::Role) {
            self.problem(Diagnostic::error(node.place, "Using a block as a handler is not supported."));
            return None;
        }
        if node.get("block").is_none() {
            self.problem(Diagnostic::error(node.place, "`rescue` and `always` need a `block`"));
            return None;
        }
        let vars = node.get("vars").map(|vars| self.mapping(vars, "`vars`")).unwrap_or_default();
        let parent = Arc::new(Parent {
            kind: ParentKind::Block,
            keywords,
            vars: Arc::new(vars),
            notify: self.names(node, "notify"),
            role: None,
            parent: Some(outer.clone()),
        });
        let mut section = |name: &str| match node.get(name) {
            Some(list) if !list.is_null() => self.items(list, &parent, file, is_handler),
            Some(_) | None => Vec::new(),
        };
        let (tasks, rescue, always) = (section("block"), section("rescue"), section("always"));
        let block = Block { place: node.place, parent: parent.clone(), tasks, rescue, always, role_entry: None };
        Some(Item::Block(Arc::new(block)))
    }

    /// Reads a task; a static import becomes what it imports.
    fn task(&mut self, node: &Node, parent: &Arc<Parent>, file: &Path, is_handler: bool) -> Vec<Item> {
        let place = if is_handler { Where::HANDLER } else { Where::TASK };
        let (mut keywords, unknown) = self.keywords(node, place, TASK_KEYS);
        if let Some(call) = node.get("local_action") {
            keywords.set(Keyword::DelegateTo, Setting { value: "localhost".into(), place: call.place });
        }
        let (loops, unknown): (Vec<&Node>, Vec<&Node>) =
            unknown.into_iter().partition(|key| key.as_str().is_some_and(|name| name.starts_with("with_")));
        let Some(action) = self.action(node, unknown, place, parent) else { return Vec::new() };
        let vars = node.get("vars").map(|vars| self.mapping(vars, "`vars`")).unwrap_or_default();
        let task = Task {
            place: node.place,
            parent: parent.clone(),
            keywords,
            vars: Arc::new(vars),
            loop_: self.loop_of(node, &loops),
            notify: self.names(node, "notify"),
            listen: self.names(node, "listen"),
            file: file.to_owned(),
            is_handler,
            action,
        };
        if is_handler {
            let name = &*task.action.name;
            if matches!(name, "include_role" | "import_role") {
                let message = format!("Using '{name}' as a handler is not supported.");
                self.problem(Diagnostic::error(task.action.place, message));
                return Vec::new();
            }
            if name == "meta" && task.action.args.get("_raw_params").and_then(Value::as_str) == Some("flush_handlers") {
                let message = "flush_handlers cannot be used as a handler";
                self.problem(Diagnostic::error(task.action.place, message));
                return Vec::new();
            }
        }
        if matches!(&*task.action.name, "include_tasks" | "import_tasks")
            && ["file", "_raw_params", "_variable_params"].iter().all(|key| task.action.args.get(key).is_none())
        {
            self.problem(Diagnostic::error(task.place, format!("No file specified for {}", task.action.written)));
            return Vec::new();
        }
        if !is_handler && let Some((key, _)) = node.entries().iter().find(|(key, _)| key.as_str() == Some("listen")) {
            let problem = Diagnostic::error(key.place, "'listen' is not a valid attribute for a Task");
            self.problem(problem.help("only handlers listen"));
        }
        match &*task.action.name {
            "import_tasks" => self.import_tasks(task),
            "import_role" => self.import_role(&task),
            _ => vec![Item::Task(Arc::new(task))],
        }
    }

    /// Finds the one key that names the task's action.
    fn action(&mut self, node: &Node, unknown: Vec<&Node>, place: Where, parent: &Arc<Parent>) -> Option<ActionCall> {
        let more = node.get("args").cloned();
        if let Some(args) = more.as_ref().filter(|args| !args.is_null() && !matches!(args.kind, Kind::Map(_)))
            && !args.as_str().is_some_and(crate::value::may_be_template)
        {
            self.problem(Diagnostic::error(args.place, format!("`args` must be a mapping, found {}", args.what())));
        }
        if let Some((key, value)) =
            node.entries().iter().find(|(key, _)| matches!(key.as_str(), Some("action" | "local_action")))
        {
            for key in unknown {
                self.unknown_key(key, "a Task", place, TASK_KEYS);
            }
            return self.action_in_value(key, value, more, parent);
        }
        let known = |key: &&Node| {
            let name = key.text();
            action::canonical(&name).is_some() || self.foreign(&name, parent).is_ok_and(|foreign| foreign.is_some())
        };
        let chosen = unknown.iter().copied().find(known).or_else(|| {
            // A lone unknown key, or the one that is farthest from any keyword, is a misspelt action.
            let keyword_like =
                |key: &&Node| nearest(&key.text(), Keyword::ALL.iter().map(|keyword| keyword.name())).is_some();
            unknown.iter().copied().find(|key| !keyword_like(key)).or_else(|| unknown.first().copied())
        });
        let Some(chosen) = chosen else {
            self.problem(
                Diagnostic::error(node.place, "a task must name a module or an action")
                    .help("for example `command: uptime`"),
            );
            return None;
        };
        for key in unknown.iter().filter(|key| !std::ptr::eq(**key, chosen)) {
            if action::canonical(&key.text()).is_some() {
                let message = format!("a task calls one action: `{}` and `{}` are two", chosen.text(), key.text());
                self.problem(Diagnostic::error(key.place, message));
            } else {
                self.unknown_key(key, "a Task", place, TASK_KEYS);
            }
        }
        let value = node.get(&chosen.text()).cloned().unwrap_or(Node { place: chosen.place, kind: Kind::Null });
        self.action_call(&chosen.text(), chosen, value, more, parent)
    }

    /// `action: copy src=a dest=b`, `action: {module: copy, …}`, and `local_action` likewise.
    fn action_in_value(
        &mut self,
        key: &Node,
        value: &Node,
        more: Option<Node>,
        parent: &Arc<Parent>,
    ) -> Option<ActionCall> {
        let (name, rest) = match &value.kind {
            Kind::Map(entries) => {
                let Some(name) = value.get("module").map(Node::text) else {
                    self.problem(Diagnostic::error(value.place, format!("`{}` must have a `module`", key.text())));
                    return None;
                };
                let own = |key: &Node| !matches!(key.as_str(), Some("module" | "args"));
                let mut rest: Vec<(Node, Node)> = entries.iter().filter(|(key, _)| own(key)).cloned().collect();
                rest.extend(value.get("args").into_iter().flat_map(|args| args.entries().iter().cloned()));
                (name, Node { place: value.place, kind: Kind::Map(rest) })
            }
            Kind::Str { text, trust } => {
                let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
                let rest = Kind::Str { text: rest.trim().into(), trust: *trust };
                (name.to_owned(), Node { place: value.place.right(name.chars().count() + 1), kind: rest })
            }
            _ => {
                let message = format!("`{}` must name a module, found {}", key.text(), value.what());
                self.problem(Diagnostic::error(value.place, message));
                return None;
            }
        };
        let key = Node {
            place: value.place,
            kind: Kind::Str { text: name.as_str().into(), trust: crate::value::Trust::Data },
        };
        self.action_call(&name, &key, rest, more, parent)
    }

    fn action_call(
        &mut self,
        written: &str,
        key: &Node,
        node: Node,
        more: Option<Node>,
        parent: &Arc<Parent>,
    ) -> Option<ActionCall> {
        let foreign = match self.foreign(written, parent) {
            Ok(foreign) => foreign,
            Err(message) => {
                self.problem(Diagnostic::error(key.place, message).width(written.chars().count()));
                return None;
            }
        };
        let own_name = foreign.as_ref().map(|_| format!("library/{written}"));
        let name = match own_name.as_deref().or_else(|| action::canonical(written)) {
            Some(name) => name,
            None if crate::value::may_be_template(written) => {
                let message =
                    format!("the action's name `{written}` is a template: only names as written are supported");
                let args = Map::from_iter([("msg".into(), message.into())]);
                return Some(ActionCall {
                    name: "fail".into(),
                    written: written.to_owned(),
                    place: key.place,
                    args: Arc::new(args),
                    node: Node { place: key.place, kind: Kind::Null },
                    more: None,
                    foreign: None,
                });
            }
            None => {
                let mut problem = Diagnostic::error(key.place, action::unknown(written));
                if matches!(written, "include" | "ansible.builtin.include") {
                    problem =
                        problem.help("`include_tasks` reads a file when it comes to it, `import_tasks` before the run");
                } else if let Some(meant) = nearest(written, action::names()) {
                    problem = problem.help(format!("did you mean `{meant}`?"));
                }
                self.problem(problem);
                return None;
            }
        };
        let mut args = match args::read(name, &node) {
            Ok(args) => args,
            Err(problem) => {
                self.problem(problem);
                return None;
            }
        };
        if matches!(node.kind, Kind::Map(_)) && holds_vault(&node) {
            args = self.value(&node).as_map().map(|map| (**map).clone()).unwrap_or_default();
        }
        if let Some(more) = &more {
            match self.value(more) {
                Value::Map(map) => {
                    for (key, value) in &*map {
                        if args.get_key(key).is_none() {
                            args.insert(key.clone(), value.clone());
                        }
                    }
                }
                Value::Null => {}
                value @ Value::Str(_) => {
                    args.insert("_variable_params", value);
                }
                _ => self
                    .problem(Diagnostic::error(more.place, format!("`args` must be a mapping, found {}", more.what()))),
            }
        }
        Some(ActionCall {
            name: name.into(),
            written: written.to_owned(),
            place: key.place,
            args: Arc::new(args),
            node,
            more,
            foreign,
        })
    }

    /// Finds a module that is not built in, or is hidden by one of a folder.
    fn foreign(&self, written: &str, parent: &Arc<Parent>) -> Result<Option<Arc<Foreign>>, String> {
        if crate::value::may_be_template(written) || written.starts_with("ansible.builtin.") {
            return Ok(None);
        }
        if action::canonical(written).is_some_and(|name| !action::gives_way(name) || written.contains('.')) {
            return Ok(None);
        }
        let roles = std::iter::successors(Some(parent), |parent| parent.parent.as_ref());
        let roles = roles.filter_map(|parent| parent.role.as_ref());
        let mut homes: Vec<PathBuf> =
            roles.flat_map(|role| std::iter::once(role).chain(&role.chain)).map(|role| role.path.clone()).collect();
        homes.push(self.playbook.clone());
        homes.extend(self.roles_read.iter().cloned());
        let mut collections = vec![self.playbook.join("collections")];
        collections.extend(self.options.collections_path.iter().cloned());
        let search = foreign::Search { homes, libraries: self.options.library.clone(), collections };
        Ok(foreign::find(written, &search)?.map(Arc::new))
    }

    fn loop_of(&mut self, node: &Node, with: &[&Node]) -> Option<Loop> {
        let control = node.get("loop_control").map(|control| self.loop_control(control)).unwrap_or_default();
        let plain = node.entries().iter().find(|(key, _)| key.as_str() == Some("loop"));
        if let (Some((key, _)), Some(other)) = (plain, with.first()) {
            let message = format!("a task has one loop: `{}` and `{}` are two", key.text(), other.text());
            self.problem(Diagnostic::error(other.place, message));
        }
        if let Some((_, items)) = plain {
            let value = self.value(items);
            return Some(Loop { place: items.place, kind: LoopKind::List, items: value, control });
        }
        let key = with.first()?;
        let name = key.text().trim_start_matches("with_").to_owned();
        let items = node.get(&key.text())?;
        let value = self.value(items);
        Some(Loop { place: items.place, kind: LoopKind::With(name), items: value, control })
    }

    fn loop_control(&mut self, node: &Node) -> LoopControl {
        const KEYS: &[&str] =
            &["loop_var", "index_var", "label", "pause", "extended", "extended_allitems", "break_when"];
        for (key, _) in node.entries() {
            if !KEYS.contains(&key.text().as_str()) {
                let mut problem =
                    Diagnostic::error(key.place, format!("`{}` is not a keyword of `loop_control`", key.text()));
                if let Some(meant) = nearest(&key.text(), KEYS.iter().copied()) {
                    problem = problem.help(format!("did you mean `{meant}`?"));
                }
                self.problem(problem);
            }
        }
        let get = |key: &str| node.get(key).map(Node::value);
        LoopControl {
            loop_var: get("loop_var"),
            index_var: get("index_var"),
            label: get("label"),
            pause: get("pause"),
            extended: get("extended"),
            extended_allitems: get("extended_allitems"),
            break_when: get("break_when"),
        }
    }

    /// Tells of arguments that an import does not take.
    pub(super) fn check_options(&mut self, task: &Task, known: &[&str]) {
        let call = &task.action;
        for key in call.args.keys().map(ToString::to_string).filter(|key| !known.contains(&key.as_str())) {
            let message = format!("Invalid options for {}: {key}", call.written);
            let problem = Diagnostic::error(call.place_of(&key).0, message);
            self.problem(match nearest(&key, known.iter().copied().filter(|known| *known != "_raw_params")) {
                Some(meant) => problem.help(format!("did you mean `{meant}`?")),
                None => problem.help("variables go below `vars:` of the task"),
            });
        }
    }

    fn names(&mut self, node: &Node, key: &str) -> Vec<Value> {
        match node.get(key) {
            None => Vec::new(),
            Some(node) if matches!(node.kind, Kind::Map(_)) => {
                let message = format!("`{key}` must be a name or a list of names, found {}", node.what());
                self.problem(Diagnostic::error(node.place, message));
                Vec::new()
            }
            Some(node) => match self.value(node) {
                Value::List(items) => items.to_vec(),
                Value::Null => Vec::new(),
                one => vec![one],
            },
        }
    }

    fn import_tasks(&mut self, task: Task) -> Vec<Item> {
        if let Some(loop_) = &task.loop_ {
            let problem = Diagnostic::error(loop_.place, "an import is read once, before the run: it can't loop");
            self.problem(problem.help("use `include_tasks`"));
            return Vec::new();
        }
        self.check_options(&task, &["file", "_raw_params", "apply"]);
        let args = &task.action.args;
        if args.get("apply").is_some() {
            let place = task.action.place_of("apply").0;
            let problem = Diagnostic::error(place, "Invalid options for import_tasks: apply");
            self.problem(problem.help("what an import stands under applies to its tasks; `apply` is for includes"));
            return Vec::new();
        }
        let Some(written) = args.get("file").or_else(|| args.get("_raw_params")).cloned() else {
            self.problem(Diagnostic::error(task.action.place, "`import_tasks` must name a file"));
            return Vec::new();
        };
        let place = task.action.node.place;
        let Some(name) = self.static_text(&written, place, &static_parent(&task)) else { return Vec::new() };
        let role = task.role().cloned();
        let role_path = role.as_ref().map(|role| role.path.as_path());
        let playbook = self.playbook.clone();
        let Some(path) = task_file(&name, &task.file, role_path, &playbook, task.is_handler) else {
            let message = format!("{NO_FILE} '{name}'");
            let problem = Diagnostic::error(place, message).width(name.chars().count());
            self.problem(problem.help(format!(
                "looked beside `{}`{}",
                task.file.display(),
                if role.is_some() { " and in the role's `tasks`" } else { "" }
            )));
            return Vec::new();
        };
        if self.depth == IMPORT_DEPTH_LIMIT {
            self.problem(Diagnostic::error(place, "files of tasks import one another in a circle"));
            return Vec::new();
        }
        let parent = import_parent(&task);
        self.depth += 1;
        let items = self.tasks(&path, &parent, task.is_handler);
        self.depth -= 1;
        items
    }
}

/// Returns a parent whose variables a static import's name may use: the task's own above those around it.
pub(super) fn static_parent(task: &Task) -> Arc<Parent> {
    Arc::new(Parent { vars: task.vars.clone(), parent: Some(task.parent.clone()), ..Parent::default() })
}

/// Makes a static import's keywords and variables those of a parent.
pub(super) fn import_parent(task: &Task) -> Arc<Parent> {
    let mut keywords = Keywords::default();
    for (keyword, setting) in task.keywords.iter() {
        if *keyword != Keyword::Name {
            keywords.set(*keyword, setting.clone());
        }
    }
    let words: Map = task
        .action
        .args
        .iter()
        .filter(|(key, _)| !matches!(key.as_str(), Some("file" | "_raw_params" | "name" | "apply")))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let mut vars = if &*task.action.name == "import_tasks" { words } else { Map::new() };
    vars.extend((*task.vars).clone());
    Arc::new(Parent {
        kind: ParentKind::Import,
        keywords,
        vars: Arc::new(vars),
        notify: task.notify.clone(),
        role: None,
        parent: Some(task.parent.clone()),
    })
}

/// Finds a file of tasks as Ansible looks for it: beside the file that names it, then in the role's `tasks`
/// (`handlers` for handlers), then below the role, last beside the playbook.
pub fn task_file(name: &str, from: &Path, role: Option<&Path>, playbook: &Path, is_handler: bool) -> Option<PathBuf> {
    let folder = from.parent().unwrap_or(Path::new(""));
    let mut candidates = vec![folder.join(name)];
    if let Some(role) = role {
        let own = if is_handler { "handlers" } else { "tasks" };
        candidates.insert(0, role.join(own).join(name));
        candidates.push(role.join("tasks").join(name));
        candidates.push(role.join(name));
    }
    candidates.push(playbook.join(name));
    candidates.into_iter().find(|path| path.is_file())
}

fn holds_vault(node: &Node) -> bool {
    match &node.kind {
        Kind::Vault(_) => true,
        Kind::List(items) => items.iter().any(holds_vault),
        Kind::Map(entries) => entries.iter().any(|(_, value)| holds_vault(value)),
        Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Str { .. } => false,
    }
}
