//! Reads roles: where they are, their files, their dependencies.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::keyword::{Keywords, Where};
use super::play::folder_of;
use super::read::{IMPORT_DEPTH_LIMIT, Loader};
use super::task::import_parent;
use super::{Block, Item, Parent, ParentKind, Role, Task};
use crate::source::{Diagnostic, Place, nearest};
use crate::value::{Map, Value};
use crate::yaml::{Kind, Node};

const ROLE_KEYS: &[&str] = &["role", "name", "vars", "src", "version", "scm", "delegate_to", "tasks_from"];
/// What `import_role` takes.
const IMPORT_ROLE_KEYS: &[&str] = &[
    "name",
    "role",
    "tasks_from",
    "vars_from",
    "defaults_from",
    "handlers_from",
    "allow_duplicates",
    "public",
    "rolespec_validate",
    "_raw_params",
];
/// Endings of a role's files, in the order in which they are looked for.
const ENDINGS: &[&str] = &["yml", "yaml", "json", ""];

/// One use of a role, as a play, a dependency, an import or an include names it.
#[derive(Debug, Default, Clone)]
pub struct RoleUse {
    pub name: String,
    pub place: Place,
    pub keywords: Keywords,
    /// Its parameters: any key of the entry that is no keyword.
    pub params: Map,
    pub vars: Map,
    pub tasks_from: Option<String>,
    pub vars_from: Option<String>,
    pub defaults_from: Option<String>,
    pub handlers_from: Option<String>,
    pub allow_duplicates: Option<bool>,
    /// Whether the rest of the play sees its variables; as the configuration says when absent.
    pub public: Option<bool>,
    /// Whether its arguments are not held against its specification.
    pub skip_validation: bool,
}

/// A role that was read, ready to run.
#[derive(Debug, Default)]
pub struct LoadedRole {
    /// The role itself last, after all it depends on.
    pub roles: Vec<Arc<Role>>,
    pub items: Vec<Item>,
    pub handlers: Vec<Item>,
}

impl Loader {
    /// Reads a play's `roles`.
    pub(super) fn play_roles(
        &mut self,
        node: &Node,
        parent: &Arc<Parent>,
        path: &Path,
        roles: &mut Vec<Arc<Role>>,
    ) -> (Vec<Item>, Vec<Item>) {
        let (mut items, mut handlers) = (Vec::new(), Vec::new());
        let Some(nodes) = node.items() else {
            if !node.is_null() {
                self.problem(Diagnostic::error(node.place, format!("`roles` is a list, found {}", node.what())));
            }
            return (items, handlers);
        };
        for node in nodes {
            let Some(role_use) = self.role_use(node, parent) else { continue };
            let loaded = self.role(&role_use, parent, &folder_of(path), &[]);
            items.extend(loaded.items);
            handlers.extend(loaded.handlers);
            roles.extend(loaded.roles);
        }
        (items, handlers)
    }

    /// Reads an entry of `roles` or `dependencies`.
    fn role_use(&mut self, node: &Node, parent: &Arc<Parent>) -> Option<RoleUse> {
        if let Kind::Str { .. } = &node.kind {
            let value = self.value(node);
            let name = self.static_text(&value, node.place, parent)?;
            return Some(RoleUse { name, place: node.place, ..RoleUse::default() });
        }
        let Some(written) = node.get("role").or_else(|| node.get("name")).or_else(|| node.get("src")) else {
            self.problem(Diagnostic::error(node.place, "an entry of `roles` must name a `role`"));
            return None;
        };
        let value = self.value(written);
        let name = self.static_text(&value, written.place, parent)?;
        let (keywords, unknown) = self.keywords(node, Where::ROLE, ROLE_KEYS);
        let mut params = Map::new();
        for key in unknown {
            if let Some(value) = node.get(&key.text()).cloned() {
                let value = self.value(&value);
                params.insert(key.text(), value);
            }
        }
        let vars = node.get("vars").map(|vars| self.mapping(vars, "`vars`")).unwrap_or_default();
        let tasks_from = node.get("tasks_from").map(Node::text);
        Some(RoleUse { name, place: written.place, keywords, params, vars, tasks_from, ..RoleUse::default() })
    }

    /// Reads a role and what it depends on. `folder` is the playbook's, `parents` the roles that led here.
    pub fn role(&mut self, used: &RoleUse, outer: &Arc<Parent>, folder: &Path, parents: &[Arc<Role>]) -> LoadedRole {
        let mut loaded = LoadedRole::default();
        let Some(path) = self.find_role(&used.name, used.place, folder, parents) else { return loaded };
        if parents.len() >= IMPORT_DEPTH_LIMIT || parents.iter().filter(|parent| parent.path == path).count() > 1 {
            let message = format!("role `{}` depends on itself", used.name);
            self.problem(Diagnostic::error(used.place, message));
            return loaded;
        }
        if !self.roles_read.contains(&path) {
            self.roles_read.push(path.clone());
        }
        let meta = self.role_node(&path, "meta", None, used.place);
        let allow_duplicates = used.allow_duplicates.unwrap_or_else(|| {
            meta.as_ref().and_then(|meta| meta.get("allow_duplicates")).is_some_and(|node| node.value().truthy())
        });
        let role = Arc::new(Role {
            name: used.name.clone(),
            defaults: Arc::new(self.role_variables(&path, "defaults", used.defaults_from.as_deref(), used.place)),
            vars: Arc::new(self.role_variables(&path, "vars", used.vars_from.as_deref(), used.place)),
            params: Arc::new(used.params.clone()),
            entry_vars: Arc::new(used.vars.clone()),
            allow_duplicates,
            is_public: used.public.unwrap_or(!self.options.private_role_vars),
            identity: format!(
                "{}|{:?}|{:?}|{:?}|{:?}|{:?}",
                path.display(),
                used.params,
                used.vars,
                used.tasks_from,
                used.keywords.get(super::Keyword::When).map(|setting| &setting.value),
                used.keywords.get(super::Keyword::Tags).map(|setting| &setting.value),
            ),
            argument_specs: self.argument_specs(&path, meta.as_ref()),
            chain: parents.iter().rev().cloned().collect(),
            path: path.clone(),
        });
        let parent = Arc::new(Parent {
            kind: ParentKind::Role,
            keywords: used.keywords.clone(),
            vars: Arc::default(),
            notify: Vec::new(),
            role: Some(role.clone()),
            parent: Some(outer.clone()),
        });
        let mut line = parents.to_vec();
        line.push(role.clone());
        for node in meta.as_ref().and_then(|meta| meta.get("dependencies")).and_then(Node::items).unwrap_or(&[]) {
            let Some(dependency) = self.role_use(node, &parent) else { continue };
            let before = self.role(&dependency, &parent_without_role(&parent, outer), folder, &line);
            loaded.items.extend(before.items);
            loaded.handlers.extend(before.handlers);
            loaded.roles.extend(before.roles);
        }
        let mut tasks = self.role_tasks(&path, used, &parent);
        if let Some(task) = validation(&role, used, &parent) {
            tasks.insert(0, Item::Task(Arc::new(task)));
        }
        loaded.items.push(Item::Block(Arc::new(Block {
            place: used.place,
            parent: parent.clone(),
            tasks,
            rescue: Vec::new(),
            always: Vec::new(),
            role_entry: Some(role.clone()),
        })));
        loaded.handlers.extend(self.role_items(&path, "handlers", used.handlers_from.as_deref(), &parent));
        loaded.roles.push(role);
        loaded
    }

    fn role_tasks(&mut self, path: &Path, used: &RoleUse, parent: &Arc<Parent>) -> Vec<Item> {
        if let Some(from) = &used.tasks_from
            && role_file(path, "tasks", from).is_some_and(|file| is_outside(&file, path))
        {
            let message = format!(
                "Failed to find '{from}' of role `{}` as it is not inside the expected role path: '{}'",
                used.name,
                path.join("tasks").display()
            );
            self.problem(Diagnostic::error(used.place, message));
            return Vec::new();
        }
        if let Some(from) = &used.tasks_from
            && role_file(path, "tasks", from).is_none()
        {
            let message = format!("role `{}` has no `tasks/{from}`", used.name);
            self.problem(Diagnostic::error(used.place, message));
        }
        self.role_items(path, "tasks", used.tasks_from.as_deref(), parent)
    }

    fn role_items(&mut self, role: &Path, kind: &str, from: Option<&str>, parent: &Arc<Parent>) -> Vec<Item> {
        match role_file(role, kind, from.unwrap_or("main")) {
            Some(file) => self.tasks(&file, parent, kind == "handlers"),
            None => Vec::new(),
        }
    }

    fn role_node(&mut self, role: &Path, kind: &str, from: Option<&str>, place: Place) -> Option<Node> {
        let file = role_file(role, kind, from.unwrap_or("main"))?;
        self.file(&file, place)?.first().filter(|node| !node.is_null()).cloned()
    }

    /// Reads `defaults` or `vars`: one file, or every file of a folder `main/`.
    fn role_variables(&mut self, role: &Path, kind: &str, from: Option<&str>, place: Place) -> Map {
        let name = from.unwrap_or("main");
        let folder = role.join(kind).join(name);
        if folder.is_dir() {
            let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
                .map(|entries| entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect())
                .unwrap_or_default();
            files.sort();
            return files.iter().filter(|file| file.is_file()).flat_map(|file| self.variables(file, place)).collect();
        }
        match role_file(role, kind, name) {
            Some(file) => self.variables(&file, place),
            None => {
                if from.is_some() {
                    let message = format!("the role has no `{kind}/{name}`");
                    self.problem(Diagnostic::error(place, message));
                }
                Map::new()
            }
        }
    }

    fn argument_specs(&mut self, role: &Path, meta: Option<&Node>) -> Option<Value> {
        let own = role_file(role, "meta", "argument_specs")
            .and_then(|file| self.file(&file, Place::default()))
            .and_then(|documents| documents.first().and_then(|node| node.get("argument_specs").cloned()));
        own.or_else(|| meta.and_then(|meta| meta.get("argument_specs").cloned())).map(|node| self.value(&node))
    }

    fn find_role(&mut self, name: &str, place: Place, folder: &Path, parents: &[Arc<Role>]) -> Option<PathBuf> {
        let mut folders = vec![folder.join("roles")];
        folders.extend(self.options.roles_path.iter().cloned());
        folders.extend(parents.iter().rev().filter_map(|role| role.path.parent().map(Path::to_owned)));
        folders.push(folder.to_owned());
        let mut candidates: Vec<PathBuf> = folders.iter().map(|folder| folder.join(name)).collect();
        if let [namespace, collection, role] = name.split('.').collect::<Vec<_>>()[..] {
            let mut roots = vec![folder.join("collections")];
            roots.extend(self.options.collections_path.iter().cloned());
            candidates.extend(roots.iter().map(|root| {
                root.join("ansible_collections").join(namespace).join(collection).join("roles").join(role)
            }));
        }
        if let Some(found) = candidates.iter().find(|path| path.is_dir()) {
            return Some(found.clone());
        }
        let known: Vec<String> = folders[..folders.len() - 1]
            .iter()
            .filter_map(|folder| std::fs::read_dir(folder).ok())
            .flatten()
            .filter_map(|entry| entry.ok().map(|entry| entry.file_name().to_string_lossy().into_owned()))
            .collect();
        let looked: Vec<String> = folders.iter().map(|folder| format!("`{}`", folder.display())).collect();
        let mut problem = Diagnostic::error(place, format!("no role `{name}`"));
        problem = match nearest(name, known.iter().map(String::as_str)) {
            Some(meant) => problem.help(format!("did you mean `{meant}`?")),
            None => problem.help(format!("looked in {}", looked.join(", "))),
        };
        self.problem(problem);
        None
    }

    /// Turns `import_role` into the role's tasks.
    pub(super) fn import_role(&mut self, task: &Task) -> Vec<Item> {
        self.check_options(task, IMPORT_ROLE_KEYS);
        let Some(used) = self.role_use_of(task) else { return Vec::new() };
        let parent = import_parent(task);
        let folder = folder_of(&task.file);
        let playbook = task.role().map_or(folder, |role| role.path.parent().map(folder_of_roles).unwrap_or_default());
        let line = line_of(task.role());
        if self.depth == IMPORT_DEPTH_LIMIT {
            self.problem(Diagnostic::error(task.place, "roles import one another in a circle"));
            return Vec::new();
        }
        self.depth += 1;
        let loaded = self.role(&used, &parent, &playbook, &line);
        self.depth -= 1;
        self.brought.roles.extend(loaded.roles);
        self.brought.handlers.extend(loaded.handlers);
        loaded.items
    }

    fn role_use_of(&mut self, task: &Task) -> Option<RoleUse> {
        let args = &task.action.args;
        let place = task.action.place_of("name").1;
        let Some(written) = args.get("name").or_else(|| args.get("role")) else {
            self.problem(Diagnostic::error(task.action.place, format!("`{}` must have a `name`", task.action.written)));
            return None;
        };
        let around = super::task::static_parent(task);
        let name = self.static_text(written, place, &around)?;
        for key in ["tasks_from", "vars_from", "defaults_from", "handlers_from"] {
            if let Some(value) = args.get(key).filter(|value| !matches!(value, Value::Str(_))) {
                let message = format!("Expected a string for {key} but got {} instead", value.kind());
                self.problem(Diagnostic::error(task.action.place_of(key).1, message));
                return None;
            }
        }
        let mut flag = |key: &str| match args.get(key) {
            Some(value) => {
                let text = self.static_text(value, call_place(task, key), &around)?;
                Some(crate::execute::truth(&text.into()))
            }
            None => None,
        };
        let (allow_duplicates, validate, public) =
            (flag("allow_duplicates"), flag("rolespec_validate"), flag("public"));
        let mut from = |key: &str| args.get(key).and_then(|value| self.static_text(value, place, &around));
        Some(RoleUse {
            tasks_from: from("tasks_from"),
            vars_from: from("vars_from"),
            defaults_from: from("defaults_from"),
            handlers_from: from("handlers_from"),
            allow_duplicates: Some(allow_duplicates.unwrap_or(true)),
            skip_validation: validate == Some(false),
            public,
            name,
            place,
            ..RoleUse::default()
        })
    }
}

fn call_place(task: &Task, key: &str) -> Place {
    task.action.place_of(key).1
}

/// Returns the task that holds a role's arguments against what its `meta/argument_specs.yml` says of the entry point.
fn validation(role: &Arc<Role>, used: &RoleUse, parent: &Arc<Parent>) -> Option<Task> {
    let entry = used.tasks_from.as_deref().unwrap_or("main");
    let entry = entry.strip_suffix(".yml").or_else(|| entry.strip_suffix(".yaml")).unwrap_or(entry);
    let spec = role.argument_specs.as_ref()?.get(entry).filter(|_| !used.skip_validation)?;
    let mut name = format!("Validating arguments against arg spec '{entry}'");
    if let Some(short) = spec.get("short_description") {
        name.push_str(&format!(" - {short}"));
    }
    let path = std::fs::canonicalize(&role.path).unwrap_or_else(|_| role.path.clone());
    let mut context = Map::new();
    context.insert("type", "role");
    context.insert("name", role.short_name());
    context.insert("argument_spec_name", entry);
    context.insert("path", path.to_string_lossy().into_owned());
    let mut args = Map::new();
    args.insert("argument_spec", spec.get("options").cloned().unwrap_or_else(|| Value::map(Map::new())));
    args.insert("provided_arguments", Value::Map(role.params.clone()));
    args.insert("validate_args_context", Value::map(context));
    let mut keywords = Keywords::default();
    let setting = |value: &str| super::Setting { value: value.into(), place: used.place };
    keywords.set(super::Keyword::Name, setting(&name));
    keywords.set(super::Keyword::Tags, setting("always"));
    Some(Task {
        place: used.place,
        parent: parent.clone(),
        keywords,
        vars: Arc::default(),
        action: super::ActionCall {
            name: "validate_argument_spec".into(),
            written: "ansible.builtin.validate_argument_spec".to_owned(),
            place: used.place,
            args: Arc::new(args),
            node: Node { place: used.place, kind: Kind::Null },
            more: None,
            foreign: None,
        },
        loop_: None,
        notify: Vec::new(),
        listen: Vec::new(),
        file: role.path.join("meta/argument_specs.yml"),
        is_handler: false,
    })
}

/// A dependency stands under what the role stands under, with the role's own keywords but not its role.
fn parent_without_role(parent: &Arc<Parent>, outer: &Arc<Parent>) -> Arc<Parent> {
    Arc::new(Parent {
        kind: ParentKind::Import,
        keywords: parent.keywords.clone(),
        vars: Arc::default(),
        notify: Vec::new(),
        role: None,
        parent: Some(outer.clone()),
    })
}

/// Returns the line of roles that led to a task, outermost first.
pub fn line_of(role: Option<&Arc<Role>>) -> Vec<Arc<Role>> {
    role.map(|role| role.chain.iter().rev().chain([role]).cloned().collect()).unwrap_or_default()
}

/// Returns the folder above a folder `roles`.
fn folder_of_roles(roles: &Path) -> PathBuf {
    folder_of(roles)
}

/// Returns whether a file that a role names lies outside it.
fn is_outside(file: &Path, role: &Path) -> bool {
    match (std::fs::canonicalize(file), std::fs::canonicalize(role)) {
        (Ok(file), Ok(role)) => !file.starts_with(role),
        (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
    }
}

/// Finds `KIND/NAME.yml` of a role, or `KIND/NAME/main.yml`.
fn role_file(role: &Path, kind: &str, name: &str) -> Option<PathBuf> {
    let base = role.join(kind);
    let named = |ending: &&str| if ending.is_empty() { name.to_owned() } else { format!("{name}.{ending}") };
    ENDINGS.iter().map(|ending| base.join(named(ending))).find(|path| path.is_file())
}
