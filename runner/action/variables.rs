//! Actions that change what is known: set_fact, include_vars, add_host, group_by, and the arguments of includes.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Failure, text};
use crate::execute::ItemRun;
use crate::playbook::Task;
use crate::source::Severity;
use crate::value::{Map, Value};

/// Set variables of a host, for the rest of the run.
///
/// Every argument but `cacheable` is a variable.
///
/// ```yaml
/// - set_fact:
///     gpus: "{{ detected.gpus | length }}"
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SetFactArgs {
    /// Whether they are facts too, below `ansible_facts`.
    #[serde(rename = "cacheable")]
    _cacheable: Option<serde_json::Value>,
}

pub(super) fn set_fact(run: &ItemRun<'_>, _: SetFactArgs, args: &Map) -> Result<Map, Failure> {
    let mut facts = Map::new();
    for (key, value) in args {
        let name = if key.holds_template() { run.templar.value(key)? } else { key.clone() };
        let kind = match &name {
            Value::Str(_) | Value::Null | Value::Omit => None,
            Value::Bool(_) => Some("bool"),
            Value::Int(_) => Some("int"),
            Value::Float(_) => Some("float"),
            Value::List(_) => Some("list"),
            Value::Map(_) | Value::Lazy(_) => Some("dict"),
        };
        if let Some(kind) = kind {
            return Err(Failure::message(format!(
                "Invalid variable name '{name}' of type '{kind}': a name is a string"
            )));
        }
        if name.to_string().starts_with("_ansible_") {
            return Err(Failure::message(format!(
                "`set_fact` can't set '{name}': the prefix '_ansible_' is reserved for internal use only."
            )));
        }
        facts.insert(name, value.clone());
    }
    let cacheable = facts.remove("cacheable").is_some_and(|value| crate::execute::truth(&value));
    if facts.is_empty() {
        return Err(Failure::message("`set_fact` must be given a variable to set"));
    }
    for key in facts.keys() {
        let name = key.to_string();
        if !crate::vars::is_name(&name) {
            return Err(Failure::message(format!(
                "Invalid variable name '{name}': variables start with a letter or `_` and hold only letters, digits and `_`"
            )));
        }
    }
    let mut result = Map::new();
    result.insert("changed", false);
    result.insert("ansible_facts", Value::map(facts));
    if cacheable {
        result.insert("_ansible_facts_cacheable", true);
    }
    Ok(result)
}

/// Read variables from a file or a folder of this machine.
///
/// ```yaml
/// - include_vars: "{{ ansible_facts.distribution | lower }}.yml"
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct IncludeVarsArgs {
    /// The file, looked for in `vars/` of the role and beside the playbook. Also as free text.
    #[serde(alias = "_raw_params")]
    file: Option<String>,
    /// A folder, whose files are read in the order of their names.
    dir: Option<String>,
    /// The variable that holds them all; each is a variable of its own when absent.
    name: Option<String>,
    /// How deep to look into `dir`; 0 is without end.
    #[serde(default)]
    depth: usize,
    /// A regular expression that names of files in `dir` must match.
    files_matching: Option<String>,
    /// Regular expressions of names that are left out.
    #[serde(default)]
    ignore_files: Vec<String>,
    /// Which files of `dir` are read; `yaml`, `yml` and `json` when absent.
    extensions: Option<Vec<String>>,
    /// Whether a file of another extension is left out rather than an error.
    #[serde(default)]
    ignore_unknown_extensions: bool,
    /// `merge` puts mappings over those that variables hold already; `replace`, which is meant when absent, in their place.
    hash_behaviour: Option<String>,
}

pub(super) fn include_vars(run: &ItemRun<'_>, args: IncludeVarsArgs, _: &Map) -> Result<Map, Failure> {
    read_variables(run, args).map_err(|failure| match failure {
        Failure::Failed(mut result) => {
            // Under this key, too, Ansible tells why.
            let message = result.get("msg").cloned().unwrap_or_default();
            result.insert("message", message);
            Failure::Failed(result)
        }
        other @ (Failure::Unreachable(_) | Failure::Template(_)) => other,
    })
}

fn read_variables(run: &ItemRun<'_>, args: IncludeVarsArgs) -> Result<Map, Failure> {
    let merges = match args.hash_behaviour.as_deref() {
        None | Some("replace") => false,
        Some("merge") => true,
        Some(other) => {
            return Err(Failure::message(format!("`hash_behaviour` is `replace` or `merge`, not `{other}`")));
        }
    };
    let files = match (&args.file, &args.dir) {
        (Some(file), None) => vec![find(run, file, "vars")?],
        (None, Some(dir)) => files_of(run, dir, &args)?,
        (None, None) => return Err(Failure::message("Could not find file: give `file` or `dir`")),
        (Some(_), Some(_)) => return Err(Failure::message("give `file` or `dir`, not both")),
    };
    let mut read = Map::new();
    let mut loader = run.world.loader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for file in &files {
        read.extend(loader.variables(file, run.task.place));
    }
    let problems = loader.take_problems();
    drop(loader);
    if let Some(error) = problems.iter().find(|problem| problem.severity == Severity::Error) {
        return Err(Failure::message(error.render(false)));
    }
    let mut result = Map::new();
    let facts = match args.name {
        Some(name) => Map::from_iter([(Value::from(name), Value::map(read))]),
        None => read,
    };
    let facts: Map = match merges {
        false => facts,
        true => {
            let onto = |(key, value): (Value, Value)| match run.templar.variable(&key.to_string()) {
                Some(known) => (key, combined(&known, &value)),
                None => (key, value),
            };
            facts.into_iter().map(onto).collect()
        }
    };
    result.insert("changed", false);
    result.insert("ansible_facts", Value::map(facts));
    let names = files.iter().map(|file| file.display().to_string().into()).collect();
    result.insert("ansible_included_var_files", Value::list(names));
    Ok(result)
}

/// Returns a mapping put over another one, and so the mappings in them; anything else takes the other's place.
fn combined(under: &Value, over: &Value) -> Value {
    let (Value::Map(under), Value::Map(over)) = (under, over) else { return over.clone() };
    let mut whole = (**under).clone();
    for (key, value) in &**over {
        let value = whole.get_key(key).map_or_else(|| value.clone(), |known| combined(known, value));
        whole.insert(key.clone(), value);
    }
    Value::map(whole)
}

fn files_of(run: &ItemRun<'_>, dir: &str, args: &IncludeVarsArgs) -> Result<Vec<PathBuf>, Failure> {
    let root = find(run, dir, "vars")?;
    let pattern = args
        .files_matching
        .as_deref()
        .map(fancy_regex::Regex::new)
        .transpose()
        .map_err(|error| Failure::message(format!("`files_matching`: {error}")))?;
    let usual = ["yaml", "yml", "json"].map(str::to_owned).to_vec();
    let extensions = args.extensions.clone().unwrap_or(usual);
    let mut files = Vec::new();
    walk(&root, 1, args.depth, &mut files)
        .map_err(|error| Failure::message(format!("read `{}`: {error}", root.display())))?;
    let mut kept = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let matches = pattern.as_ref().is_none_or(|pattern| pattern.is_match(&name).unwrap_or(false));
        if !matches || args.ignore_files.contains(&name) {
            continue;
        }
        let extension = file.extension().unwrap_or_default().to_string_lossy().into_owned();
        if extensions.contains(&extension) {
            kept.push(file);
        } else if !args.ignore_unknown_extensions {
            return Err(Failure::message(format!(
                "`{}` does not have a valid extension: {}",
                file.display(),
                extensions.join(", ")
            )));
        }
    }
    Ok(kept)
}

fn walk(folder: &Path, level: usize, depth: usize, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            if depth == 0 || level < depth {
                walk(&path, level + 1, depth, files)?;
            }
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Finds a file as Ansible does: in the role's folder of that kind, beside the task's file, at the playbook.
pub(super) fn find(run: &ItemRun<'_>, name: &str, kind: &str) -> Result<PathBuf, Failure> {
    let candidates = candidates(run.task, &run.play.play.folder, name, kind);
    match candidates.iter().find(|path| path.exists()) {
        Some(path) => Ok(path.clone()),
        None => {
            let looked: Vec<String> = candidates.iter().map(|path| path.display().to_string()).collect();
            Err(Failure::message(format!("no file `{name}`: looked for {}", looked.join(", "))))
        }
    }
}

/// Returns where a file that a task names may be, the first place first; `kind` is the folder for such files.
pub fn candidates(task: &Task, playbook: &Path, name: &str, kind: &str) -> Vec<PathBuf> {
    let given = crate::execute::home_expanded(PathBuf::from(name));
    if given.is_absolute() {
        return vec![given];
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut add = |folder: &Path| {
        let folder = folder.strip_prefix(".").unwrap_or(folder);
        for path in [folder.join(kind).join(&given), folder.join(&given)] {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    };
    for role in task.parents().filter_map(|parent| parent.role.as_ref()) {
        add(&role.path);
        add(&role.path.join("tasks"));
    }
    if let Some(folder) = task.file.parent() {
        add(folder);
    }
    add(playbook);
    paths
}

/// Add a host to the inventory, for the rest of the run.
///
/// Arguments of other names are variables of the host.
///
/// ```yaml
/// - add_host:
///     name: "{{ new_node }}"
///     groups: gpu_nodes
///     ansible_user: admin
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct AddHostArgs {
    /// The host. Also as `hostname` and `host`.
    #[serde(rename = "name", alias = "hostname", alias = "host")]
    _name: Option<serde_json::Value>,
    /// Groups that it joins: a list, or names with commas. Also as `group` and `groupname`.
    #[serde(rename = "groups", alias = "group", alias = "groupname")]
    _groups: Option<serde_json::Value>,
}

pub(super) fn add_host(run: &ItemRun<'_>, _: AddHostArgs, args: &Map) -> Result<Map, Failure> {
    let name = text(args, "name").or_else(|| text(args, "hostname")).or_else(|| text(args, "host"));
    let Some(name) = name.or_else(|| text(args, "_raw_params")) else {
        return Err(Failure::message("`add_host` must have a `name`"));
    };
    let groups = match args.get("groups").or_else(|| args.get("group")).or_else(|| args.get("groupname")) {
        Some(Value::List(items)) => items.iter().map(Value::to_string).collect(),
        Some(one) => one.to_string().split(',').map(|group| group.trim().to_owned()).collect::<Vec<_>>(),
        None => Vec::new(),
    };
    let own = ["name", "hostname", "host", "groups", "group", "groupname", "_raw_params"];
    let vars: Map = args
        .iter()
        .filter(|(key, _)| !own.contains(&key.to_string().as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let (added_name, added_groups, added_vars) = (name.clone(), groups.clone(), vars.clone());
    let add = move |inventory: &mut crate::inventory::Inventory| {
        inventory.add_host(&added_name, &added_groups, added_vars.clone())
    };
    let changed = run.world.change_inventory(add);
    let mut added = Map::new();
    added.insert("host_name", name.as_str());
    added.insert("groups", Value::list(groups.into_iter().map(Value::from).collect()));
    added.insert("host_vars", Value::map(vars));
    let mut result = Map::new();
    result.insert("changed", changed);
    result.insert("add_host", Value::map(added));
    Ok(result)
}

/// Make groups of hosts from their variables.
///
/// ```yaml
/// - group_by:
///     key: "os_{{ ansible_facts.distribution }}"
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupByArgs {
    /// The group that the host joins; spaces become `-`.
    #[serde(alias = "_raw_params")]
    key: String,
    /// Groups that this one belongs to.
    #[serde(default)]
    parents: Vec<String>,
}

pub(super) fn group_by(run: &ItemRun<'_>, args: GroupByArgs, _: &Map) -> Result<Map, Failure> {
    let group = args.key.replace(' ', "-");
    let parents: Vec<String> = args.parents.iter().map(|parent| parent.replace(' ', "-")).collect();
    let (host, to, below) = (run.host.clone(), group.clone(), parents.clone());
    let changed = run.world.change_inventory(move |inventory| {
        // One that a new inventory no longer names is in no group either.
        inventory.host_name(&host).is_some() && inventory.add_to_group(&host, &to, &below)
    });
    let mut result = Map::new();
    result.insert("changed", changed);
    result.insert("add_group", group);
    result.insert("parent_groups", Value::list(parents.into_iter().map(Value::from).collect()));
    Ok(result)
}

/// Run a role as a task.
///
/// `include_role` reads it when a host comes to it, and may be looped; `import_role` reads it before the run begins.
///
/// ```yaml
/// - include_role:
///     name: gpu_node
///     tasks_from: check
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct IncludeRoleArgs {
    /// The role. Also as `role`.
    #[serde(rename = "name", alias = "role")]
    _name: String,
    /// Which file of its `tasks/`; `main` when absent.
    #[serde(rename = "tasks_from")]
    _tasks_from: Option<String>,
    /// Which file of its `vars/`; `main` when absent.
    #[serde(rename = "vars_from")]
    _vars_from: Option<String>,
    /// Which file of its `defaults/`; `main` when absent.
    #[serde(rename = "defaults_from")]
    _defaults_from: Option<String>,
    /// Which file of its `handlers/`; `main` when absent.
    #[serde(rename = "handlers_from")]
    _handlers_from: Option<String>,
    /// Whether it runs again when it has run already; it does when absent.
    #[serde(rename = "allow_duplicates")]
    _allow_duplicates: Option<bool>,
    /// Whether later tasks see its variables.
    #[serde(rename = "public")]
    _public: Option<bool>,
    /// Keywords that every task of it is given.
    #[serde(rename = "apply")]
    _apply: Option<serde_json::Value>,
    /// Whether the role's `meta/argument_specs.yml` is checked; it is when absent.
    #[serde(rename = "rolespec_validate")]
    _rolespec_validate: Option<bool>,
}

/// Run the tasks of a file.
///
/// `include_tasks` reads it when a host comes to it, so that its name may hold variables and it may be looped;
/// `import_tasks` reads it before the run begins.
///
/// ```yaml
/// - include_tasks: "{{ ansible_facts.os_family }}.yml"
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct IncludeTasksArgs {
    /// The file, looked for beside the file that names it. Also as free text.
    #[serde(rename = "file", alias = "_raw_params")]
    _file: Option<String>,
    /// Keywords that every task of it is given; `include_tasks` only.
    #[serde(rename = "apply")]
    _apply: Option<serde_json::Value>,
}

/// Run the plays of another playbook.
///
/// It stands among the plays, and takes `vars`, `when` and `tags` beside it.
///
/// ```yaml
/// - import_playbook: gpu.yml
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ImportPlaybookArgs {
    /// The file, looked for beside the playbook that names it.
    #[serde(rename = "_raw_params", alias = "file")]
    _file: Option<String>,
}

/// The strategy reads what is included; here its arguments are rendered.
pub(super) fn include<A>(_: &ItemRun<'_>, _: A, args: &Map) -> Result<Map, Failure> {
    let mut result = Map::new();
    result.insert("changed", false);
    result.insert("include_args", Value::map(args.clone()));
    Ok(result)
}
