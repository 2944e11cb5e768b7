//! Variables during one task on one host: layers from strongest to weakest, looked up when asked for.

pub mod alike;
mod cache;
mod magic;

use std::sync::Arc;

pub use cache::FactCache;
pub use magic::language_version;

use crate::execute::{PlayRun, World};
use crate::playbook::{Keyword, ParentKind, Role, Task};
use crate::template::{Folders, Templar, Variables};
use crate::value::{Map, Value};

/// One map of variables, such as the command line's alone.
pub struct Fixed(pub Arc<Map>);

impl Variables for Fixed {
    fn get(&self, name: &str) -> Option<Value> {
        self.0.get(name).cloned()
    }
    fn names(&self) -> Vec<Arc<str>> {
        names_of(&self.0).collect()
    }
}

fn names_of(map: &Map) -> impl Iterator<Item = Arc<str>> + '_ {
    map.keys().map(|key| Arc::from(key.to_string()))
}

/// Variables that say how a host is reached.
const REACHES: &[&str] = &[
    "ansible_connection",
    "ansible_delegated_vars",
    "ansible_host",
    "ansible_host_key_checking",
    "ansible_password",
    "ansible_port",
    "ansible_private_key_file",
    "ansible_user",
];
/// How further ones begin, and facts that begin so and are none.
const REACH_PREFIXES: &[&str] = &["ansible_become", "ansible_kubectl_", "ansible_ssh_", "ansible_sudo_"];
const HOST_KEY_FACTS: &str = "ansible_ssh_host_key_";

/// Returns whether a variable says how a host is reached.
fn says_reach(name: &str) -> bool {
    REACHES.contains(&name)
        || REACH_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) && !name.starts_with(HOST_KEY_FACTS)
}

/// What a host has come to know during the run.
#[derive(Debug, Default, Clone)]
pub struct HostState {
    /// Facts under their names without `ansible_`, as `ansible_facts` has them.
    pub facts: Arc<Map>,
    /// The same under `ansible_NAME`, as variables of their own.
    pub injected: Arc<Map>,
    /// What `set_fact` set and tasks registered, the latest last.
    pub set: Arc<Map>,
    /// What `include_vars` read.
    pub included: Arc<Map>,
}

impl HostState {
    /// Takes in facts as a module returns them, with or without `ansible_` before their names.
    pub fn add_facts(&mut self, facts: &Map) {
        let own = Arc::make_mut(&mut self.facts);
        let injected = Arc::make_mut(&mut self.injected);
        for (key, value) in facts {
            let name = key.to_string();
            let short = name.strip_prefix("ansible_").unwrap_or(&name);
            own.insert(short, value.clone());
            // As variables they keep the name that the module gave them.
            injected.insert(name.as_str(), value.clone());
        }
    }

    /// As [`HostState::add_facts`] for what a host told: it must not say how it, or anybody, is reached.
    pub fn add_told_facts(&mut self, facts: &Map) {
        let kept = facts.iter().filter(|(key, _)| key.as_str().is_some_and(|name| !says_reach(name)));
        self.add_facts(&kept.map(|(key, value)| (key.clone(), value.clone())).collect());
    }

    pub fn set(&mut self, name: &str, value: Value) {
        Arc::make_mut(&mut self.set).insert(name, value);
    }
}

/// Everything that a task on a host sees.
pub struct HostVariables {
    pub(super) world: Arc<World>,
    pub(super) play: Option<Arc<PlayRun>>,
    pub(super) host: Arc<str>,
    pub(super) role: Option<Arc<Role>>,
    pub(super) task_file: Option<std::path::PathBuf>,
    /// From strongest to weakest.
    layers: Vec<Arc<Map>>,
    /// How the task reaches its host, beneath all variables.
    login: Option<Login>,
}

/// What a task's keywords and the command line say about its connection: variables where nothing else sets them.
#[derive(Debug, Clone)]
struct Login {
    user: Option<Value>,
    connection: Option<Value>,
}

impl Login {
    fn of(world: &World, task: &Task, host: &str) -> Login {
        let options = &world.options.connect;
        // What must be rendered is known only to who renders it.
        let written = |keyword: Keyword| {
            let value = task.inherited(keyword).map(|setting| &setting.value);
            value.filter(|value| !matches!(value, Value::Null) && !value.holds_template()).cloned()
        };
        let usual = |host: &str| match crate::execute::is_this_machine(host) && !world.inventory().contains(host) {
            true => "local".to_owned(),
            false => options.connection.clone(),
        };
        let user = written(Keyword::RemoteUser).or_else(|| options.remote_user.as_deref().map(Value::from));
        let connection = match task.inherited(Keyword::Connection) {
            Some(_) => written(Keyword::Connection),
            None => Some(usual(host).into()),
        };
        Login { user, connection }
    }

    fn get(&self, world: &World, host: &Arc<str>, name: &str) -> Option<Value> {
        match name {
            "ansible_host" => Some(Value::str(host.clone())),
            "ansible_user" => self.user.clone(),
            "ansible_connection" => self.connection.clone(),
            "ansible_private_key_file" | "ansible_ssh_private_key_file" => {
                let path = world.options.connect.private_key_file.as_ref()?;
                Some(path.to_string_lossy().into_owned().into())
            }
            _ => None,
        }
    }
}

impl Variables for HostVariables {
    fn get(&self, name: &str) -> Option<Value> {
        if let Some(value) = self.magic(name) {
            return Some(value);
        }
        let mut layers = self.layers.iter().filter_map(|layer| layer.get(name));
        let Some(strongest) = layers.next().cloned() else {
            return self.login.as_ref()?.get(&self.world, &self.host, name);
        };
        if !self.world.options.inventory_reading.merge {
            return Some(strongest);
        }
        Some(layers.try_fold(strongest, |high, low| merged(low, &high).ok_or(high)).unwrap_or_else(|ended| ended))
    }

    fn names(&self) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = self.layers.iter().flat_map(|layer| names_of(layer)).collect();
        names.extend(magic::NAMES.iter().map(|name| Arc::from(*name)));
        names.sort();
        names.dedup();
        names
    }
}

/// Returns two mappings as one, the second one's entries over the first one's, mappings within them likewise:
/// `hash_behaviour = merge`. `None` where one of them is no mapping.
fn merged(low: &Value, high: &Value) -> Option<Value> {
    let (Value::Map(low), Value::Map(high)) = (low, high) else { return None };
    let mut both = (**low).clone();
    merge(&mut both, high);
    Some(Value::map(both))
}

/// Puts variables over others as `hash_behaviour = merge` does.
pub fn merge(low: &mut Map, high: &Map) {
    for (key, value) in high {
        let both = low.get_key(key).and_then(|old| merged(old, value));
        low.insert(key.clone(), both.unwrap_or_else(|| value.clone()));
    }
}

/// Puts variables over others, mappings as the configuration says.
pub fn put_over(low: &mut Map, high: &Map, merging: bool) {
    if merging { merge(low, high) } else { low.extend(high.iter().map(|(key, value)| (key.clone(), value.clone()))) }
}

/// Returns what a task sees on a host; without a task, what the play itself sees there; without a play, what
/// `hostvars` shows of the host.
///
/// The order is that of Ansible's documentation, `22` being the strongest; inventory's own levels `3` to `10` are
/// kept in order by [`crate::inventory::Inventory::layers`].
pub fn of(world: &Arc<World>, play: Option<&Arc<PlayRun>>, host: &Arc<str>, task: Option<&Task>) -> HostVariables {
    variables(world, play, host, task, true)
}

fn variables(
    world: &Arc<World>,
    play: Option<&Arc<PlayRun>>,
    host: &Arc<str>,
    task: Option<&Task>,
    with_files: bool,
) -> HostVariables {
    let mut layers = vec![world.options.extra_vars.clone()]; // 22
    let parents = || task.into_iter().flat_map(Task::parents);
    layers.extend(parents().filter(|parent| parent.kind == ParentKind::Include).map(|parent| parent.vars.clone())); // 21
    let role = task.and_then(Task::role).cloned();
    let line = || role.iter().flat_map(|role| std::iter::once(role).chain(&role.chain));
    layers.extend(line().map(|role| role.params.clone())); // 20
    let state = world.state(host);
    let state = state.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    layers.push(state.set); // 19
    layers.push(state.included); // 18
    if let Some(task) = task {
        let enclosing = |kind| matches!(kind, ParentKind::Block | ParentKind::Import | ParentKind::Role);
        let mut own = vec![task.vars.clone()]; // 17
        own.extend(parents().filter(|parent| enclosing(parent.kind)).map(|parent| parent.vars.clone())); // 16
        if world.options.inventory_reading.merge {
            // A task's mapping replaces its block's even where others are put together.
            let mut replaced = Map::new();
            own.iter().rev().for_each(|vars| put_over(&mut replaced, vars, false));
            own = vec![Arc::new(replaced)];
        }
        layers.extend(own);
    }
    if let Some(role) = &role {
        // `vars` of the role's entry are for its own tasks alone, and stronger there than its files.
        layers.extend([role.entry_vars.clone(), role.vars.clone()]); // 15
        layers.extend(role.chain.iter().flat_map(|role| [role.entry_vars.clone(), role.vars.clone()]));
    }
    let shared = || play.iter().flat_map(|play| play.public_roles());
    layers.extend(shared().rev().map(|role| role.vars.clone()));
    if let Some(play) = play {
        if with_files {
            layers.extend(play.files.of(world, play, host, &state.injected)); // 14
        }
        layers.push(play.prompted.clone()); // 13
        layers.push(play.play.parent.vars.clone()); // 12
        let imports = std::iter::successors(play.play.parent.parent.as_ref(), |parent| parent.parent.as_ref());
        layers.extend(imports.map(|parent| parent.vars.clone()));
    }
    layers.push(if world.options.inject_facts { state.injected } else { promoted(&state.injected) }); // 11
    layers.extend(world.inventory().layers(host)); // 10 to 3
    layers.extend(line().map(|role| role.defaults.clone())); // 2
    layers.extend(shared().rev().map(|role| role.defaults.clone()));
    layers.retain(|layer| !layer.is_empty());
    HostVariables {
        world: world.clone(),
        play: play.cloned(),
        host: host.clone(),
        role,
        task_file: task.map(|task| task.file.clone()),
        layers,
        login: task.map(|task| Login::of(world, task, host)),
    }
}

/// Local facts are a variable of their own even where facts are not.
fn promoted(injected: &Map) -> Arc<Map> {
    const NAME: &str = "ansible_local";
    Arc::new(injected.get(NAME).map(|local| (Value::from(NAME), local.clone())).into_iter().collect())
}

/// Words that no variable can have for a name: templates read them as values.
const CONSTANTS: &[&str] = &["true", "True", "false", "False", "none", "None"];

/// Returns whether a text can name a variable.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !CONSTANTS.contains(&text)
}

/// Returns the variables that are known before any host is: those of what encloses a place, its roles' and the command
/// line's.
pub fn static_map(parent: &Arc<crate::playbook::Parent>, extra_vars: &Map) -> Map {
    let parents: Vec<_> = std::iter::successors(Some(parent), |parent| parent.parent.as_ref()).collect();
    let mut known = Map::new();
    let mut add = |map: &Map| known.extend(map.iter().map(|(key, value)| (key.clone(), value.clone())));
    let roles = || parents.iter().rev().filter_map(|parent| parent.role.as_ref());
    roles().for_each(|role| add(&role.defaults));
    parents.iter().rev().filter(|parent| parent.kind == ParentKind::Play).for_each(|parent| add(&parent.vars));
    roles().for_each(|role| {
        add(&role.vars);
        add(&role.entry_vars);
    });
    parents.iter().rev().filter(|parent| parent.kind != ParentKind::Play).for_each(|parent| add(&parent.vars));
    roles().for_each(|role| add(&role.params));
    add(extra_vars);
    known
}

/// Returns what renders a task's templates on a host.
pub fn templar(world: &Arc<World>, play: Option<&Arc<PlayRun>>, host: &Arc<str>, task: Option<&Task>) -> Templar {
    Templar::new(Arc::new(of(world, play, host, task)), Arc::new(folders(world, play, task)))
}

/// Returns where a task looks for files.
pub fn folders(world: &World, play: Option<&Arc<PlayRun>>, task: Option<&Task>) -> Folders {
    Folders {
        playbook: play.map_or_else(|| world.options.folder.clone(), |play| play.play.folder.clone()),
        role: task.and_then(Task::role).map(|role| role.path.clone()),
        task_file: task.map(|task| task.file.clone()),
    }
}

/// Returns what renders the names of a play's `vars_files`: all but those files is known.
pub fn templar_without_files(world: &Arc<World>, play: &Arc<PlayRun>, host: &Arc<str>) -> Templar {
    let folders = Folders { playbook: play.play.folder.clone(), ..Folders::default() };
    Templar::new(Arc::new(variables(world, Some(play), host, None, false)), Arc::new(folders))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_can_not_tell_how_it_is_reached() {
        let told =
            ["ansible_connection", "ansible_become_user", "ansible_ssh_host_key_rsa_public", "ansible_os_family"];
        let mut state = HostState::default();
        state.add_told_facts(&told.iter().map(|name| (Value::from(*name), Value::from("x"))).collect());
        assert_eq!(names_of(&state.injected).map(|name| name.to_string()).collect::<Vec<_>>(), told[2..]);
        assert!(state.facts.get("connection").is_none());
    }

    #[test]
    fn mappings_are_merged_to_their_depths_and_nothing_else_is() {
        let map = |json: serde_json::Value| Value::from_json(json).as_map().map(|map| (**map).clone()).expect("a map");
        let mut low = map(serde_json::json!({"a": {"x": 1, "l": [1], "m": {"p": 1}}, "b": 1, "c": {"y": 1}}));
        merge(&mut low, &map(serde_json::json!({"a": {"y": 2, "l": [2], "m": {"q": 2}}, "b": {"z": 1}, "c": 2})));
        let merged = serde_json::Value::Object(low.to_json());
        let expected = serde_json::json!({
            "a": {"x": 1, "l": [2], "m": {"p": 1, "q": 2}, "y": 2}, "b": {"z": 1}, "c": 2
        });
        assert_eq!(merged, expected);
    }
}
