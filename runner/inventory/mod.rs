//! Hosts, groups and their variables, from files, folders, scripts and the command line.

mod beside;
mod ini;
mod ladder;
mod names;
mod pattern;
mod plugin;
mod range;
mod read;
mod script;
mod show;
mod toml;
mod yaml;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use indexmap::{IndexMap, IndexSet};

pub use names::{GroupNames, group_name};
pub use pattern::{Glob, joined};
pub use plugin::{Enabled, Plugin, plugin_names};
pub use read::{Reader, Reading, read};
pub use show::Show;

use ladder::Ladder;

use crate::source::Place;
use crate::value::{Map, Value};

type Name = Arc<str>;

/// The groups that always exist.
const ALL: &str = "all";
const UNGROUPED: &str = "ungrouped";

#[derive(Debug, Clone, Default)]
pub struct Inventory {
    hosts: IndexMap<Name, Host>,
    groups: IndexMap<Name, Group>,
    /// Files of `group_vars/` and `host_vars/` whose groups and hosts may come during the run.
    waiting_groups: IndexMap<Name, [Arc<Map>; 2]>,
    waiting_hosts: IndexMap<Name, [Arc<Map>; 2]>,
    /// Whether mappings of one name are put together: `hash_behaviour = merge`.
    merge: bool,
    /// What becomes of the names of groups that are no names of variables, and whether any was changed.
    names: GroupNames,
    renamed: bool,
    /// Made when it is first asked for, and anew when groups have changed.
    ladder: OnceLock<Arc<Ladder>>,
}

#[derive(Debug, Clone, Default)]
struct Host {
    /// From the inventory file itself.
    vars: Arc<Map>,
    /// From `host_vars/` beside the inventory, then beside the playbook.
    files: [Arc<Map>; 2],
    /// Groups that name the host themselves, in the order in which they do.
    groups: Vec<Name>,
    place: Place,
    /// Whether it is there only because a play names `localhost`.
    implicit: bool,
}

#[derive(Debug, Clone, Default)]
struct Group {
    vars: Arc<Map>,
    /// From `group_vars/` beside the inventory, then beside the playbook.
    files: [Arc<Map>; 2],
    children: IndexSet<Name>,
    hosts: IndexSet<Name>,
    /// `ansible_group_priority`: of groups of the same depth the higher one wins.
    priority: i64,
}

impl Host {
    /// Returns the variables that are set for the host itself.
    fn all_vars(&self) -> Map {
        over(&[&self.vars, &self.files[0], &self.files[1]])
    }
}

impl Group {
    /// Returns the variables that are set for the group itself.
    fn all_vars(&self) -> Map {
        over(&[&self.vars, &self.files[0], &self.files[1]])
    }
}

/// Puts variables over one another, the strongest last.
fn over(layers: &[&Map]) -> Map {
    layers.iter().flat_map(|layer| layer.iter().map(|(key, value)| (key.clone(), value.clone()))).collect()
}

impl Inventory {
    pub fn new() -> Inventory {
        let mut inventory = Inventory::default();
        inventory.group(ALL);
        inventory.group(UNGROUPED);
        inventory
    }

    fn group(&mut self, name: &str) -> &mut Group {
        if !self.groups.contains_key(name) {
            let files = self.waiting_groups.shift_remove(name).unwrap_or_default();
            self.groups.insert(name.into(), Group { files, ..Group::default() });
            self.ladder = OnceLock::new();
        }
        self.groups.entry(name.into()).or_default()
    }

    fn host(&mut self, name: &str, place: Place) -> &mut Host {
        if !self.hosts.contains_key(name) {
            let files = self.waiting_hosts.shift_remove(name).unwrap_or_default();
            self.hosts.insert(name.into(), Host { files, ..Host::default() });
        }
        let host = self.hosts.entry(name.into()).or_default();
        if std::mem::take(&mut host.implicit) {
            host.vars = Arc::default();
        }
        if host.place.is_nowhere() {
            host.place = place;
        }
        host
    }

    /// Puts a host into a group; both come to be where they were not.
    fn put(&mut self, host: &str, group: &str, place: Place) -> bool {
        self.host(host, place);
        self.group(group);
        let (Some(host), Some(group)) = (self.host_name(host), self.groups.get_key_value(group)) else { return false };
        let group = group.0.clone();
        if let Some(known) = self.hosts.get_mut(&host).map(|host| &mut host.groups)
            && !known.contains(&group)
        {
            known.push(group.clone());
        }
        self.groups.get_mut(&group).is_some_and(|group| group.hosts.insert(host))
    }

    /// Makes one group a child of another.
    ///
    /// # Errors
    /// When the child already holds the parent: a circle.
    fn nest(&mut self, parent: &str, child: &str) -> Result<(), String> {
        if parent == child || self.below(child).contains(parent) {
            return Err(format!("group `{child}` can't be a child of `{parent}`: it already holds it"));
        }
        self.group(child);
        if self.group(parent).children.insert(child.into()) {
            self.ladder = OnceLock::new();
        }
        Ok(())
    }

    /// Returns a group with all below it, itself first.
    fn below(&self, group: &str) -> IndexSet<Name> {
        let mut found: IndexSet<Name> = IndexSet::new();
        let mut waiting: Vec<Name> = vec![group.into()];
        while let Some(name) = waiting.pop() {
            if let Some(group) = self.groups.get(&name).filter(|_| !found.contains(&name)) {
                waiting.extend(group.children.iter().rev().cloned());
            }
            found.insert(name);
        }
        found
    }

    /// Returns whether a host was named by the inventory or added to it.
    pub fn contains(&self, host: &str) -> bool {
        self.hosts.get(host).is_some_and(|host| !host.implicit)
    }

    /// Returns a host's shared name.
    pub fn host_name(&self, host: &str) -> Option<Name> {
        self.hosts.get_key_value(host).map(|(name, _)| name.clone())
    }

    /// Returns every host that the inventory names, in its order.
    pub fn host_list(&self) -> Vec<Name> {
        self.hosts.iter().filter(|(_, host)| !host.implicit).map(|(name, _)| name.clone()).collect()
    }

    pub fn group_list(&self) -> Vec<Name> {
        self.groups.keys().cloned().collect()
    }

    /// Returns a group's hosts, those of its children too, in the inventory's order of groups.
    pub fn hosts_of(&self, group: &str) -> Vec<Name> {
        if group == ALL {
            return self.host_list();
        }
        if group == UNGROUPED {
            let lonely =
                |host: &&Name| self.hosts[*host].groups.iter().all(|group| matches!(&**group, ALL | UNGROUPED));
            return self.host_list().iter().filter(lonely).cloned().collect();
        }
        let mut hosts: IndexSet<Name> = IndexSet::new();
        for group in self.below(group) {
            hosts.extend(self.groups.get(&group).into_iter().flat_map(|group| group.hosts.iter().cloned()));
        }
        hosts.into_iter().collect()
    }

    /// Returns the groups that a host is in, by itself or through a child, sorted, without `all`.
    pub fn group_names(&self, host: &str) -> Vec<Name> {
        let mut names: Vec<Name> =
            self.ancestors(host).into_iter().map(|(_, name)| name).filter(|name| &**name != ALL).collect();
        if names.is_empty() && self.hosts.contains_key(host) {
            names.push(UNGROUPED.into());
        }
        names.sort();
        names
    }

    /// Returns a host's groups with their depths below `all`, unordered, `all` included.
    fn ancestors(&self, host: &str) -> Vec<(usize, Name)> {
        let Some(own) = self.hosts.get(host) else { return Vec::new() };
        let ladder = self.ladder.get_or_init(|| Arc::new(Ladder::of(&self.groups)));
        let mut names = ladder.with_parents(&own.groups);
        names.insert(ALL.into());
        names.into_iter().map(|name| (ladder.depth(&name), name)).collect()
    }

    /// Returns a host's variables from strongest to weakest: its own files (levels 10 and 9), its own entry (8), the
    /// groups' files (7, 6, then 5 and 4 for `all`), the groups' entries (3).
    pub fn layers(&self, host: &str) -> Vec<Arc<Map>> {
        let Some(own) = self.hosts.get(host) else { return Vec::new() };
        let mut layers = vec![own.files[1].clone(), own.files[0].clone(), own.vars.clone()];
        let mut groups = self.ancestors(host);
        let priority = |name: &Name| self.groups.get(name).map_or(1, |group| group.priority);
        groups.sort_by(|(a_depth, a), (b_depth, b)| (b_depth, priority(b), b).cmp(&(a_depth, priority(a), a)));
        let groups: Vec<(&Name, &Group)> =
            groups.iter().filter_map(|(_, name)| self.groups.get_key_value(name)).collect();
        let (all, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(name, _)| &***name == ALL);
        layers.extend(others.iter().map(|(_, group)| group.files[1].clone()));
        layers.extend(others.iter().map(|(_, group)| group.files[0].clone()));
        layers.extend(all.iter().map(|(_, group)| group.files[1].clone()));
        layers.extend(all.iter().map(|(_, group)| group.files[0].clone()));
        layers.extend(others.iter().chain(&all).map(|(_, group)| group.vars.clone()));
        layers.retain(|layer| !layer.is_empty());
        layers
    }

    /// Returns a host's variables put together, unrendered.
    pub fn vars_of(&self, host: &str) -> Map {
        let mut vars = Map::new();
        self.layers(host).iter().rev().for_each(|layer| crate::vars::put_over(&mut vars, layer, self.merge));
        vars
    }

    /// Returns the file that names a host first.
    pub fn file_of(&self, host: &str) -> Option<PathBuf> {
        let path = self.hosts.get(host)?.place.path()?;
        Some(std::fs::canonicalize(&path).unwrap_or(path))
    }

    /// Returns the folder of that file.
    pub fn folder_of(&self, host: &str) -> Option<PathBuf> {
        self.file_of(host)?.parent().map(std::path::Path::to_owned)
    }

    /// Adds a host during a run: `add_host`. Returns whether that changed anything.
    pub fn add_host(&mut self, name: &str, groups: &[String], vars: Map) -> bool {
        let mut changed = !self.contains(name);
        let host = self.host(name, Place::default());
        let old = Arc::make_mut(&mut host.vars);
        for (key, value) in vars {
            changed |= old.get_key(&key) != Some(&value);
            old.insert(key, value);
        }
        for group in groups {
            let group = self.safe(group);
            changed |= self.put(name, &group, Place::default());
        }
        changed
    }

    /// Puts a host into a group during a run: `group_by`. Returns whether that changed anything.
    pub fn add_to_group(&mut self, host: &str, group: &str, parents: &[String]) -> bool {
        let group = self.safe(group);
        let mut changed = self.put(host, &group, Place::default());
        for parent in parents.iter().filter(|parent| *parent != ALL) {
            let parent = self.safe(parent);
            let known = self.groups.get(parent.as_str()).is_some_and(|known| known.children.contains(&*group));
            changed |= !known && self.nest(&parent, &group).is_ok();
        }
        changed
    }

    /// Makes sure that `localhost` can be named where the inventory has none.
    fn ensure_implicit(&mut self, name: &str) {
        if !self.hosts.contains_key(name) {
            let files = self.waiting_hosts.get(name).cloned().unwrap_or_default();
            let vars = Arc::new(Map::from_iter([("ansible_connection".into(), "local".into())]));
            self.hosts.insert(name.into(), Host { implicit: true, vars, files, ..Host::default() });
        }
    }

    fn set_group_var(&mut self, name: &str, key: Value, value: Value) {
        let group = self.group(name);
        if key.as_str() == Some("ansible_group_priority")
            && let Ok(priority) = value.to_string().parse()
        {
            group.priority = priority;
        }
        let merge = self.merge;
        set(&mut self.group(name).vars, key, value, merge);
    }

    fn set_host_var(&mut self, host: &str, key: Value, value: Value, place: Place) {
        let merge = self.merge;
        set(&mut self.host(host, place).vars, key, value, merge);
    }
}

fn set(vars: &mut Arc<Map>, key: Value, value: Value, merge: bool) {
    crate::vars::put_over(Arc::make_mut(vars), &Map::from_iter([(key, value)]), merge);
}
