//! The variables that the program itself sets: who the host is, which hosts play with it, what was asked for.

use std::path::Path;
use std::sync::Arc;

use super::HostVariables;
use crate::execute::World;
use crate::value::{Lazy, Map, Value};

/// The version of ansible-core whose language this is, as `ansible_version` tells it.
const LANGUAGE: (i64, i64, i64) = (2, 19, 0);

/// Returns that version as text.
pub fn language_version() -> String {
    let (major, minor, revision) = LANGUAGE;
    format!("{major}.{minor}.{revision}")
}

pub(super) const NAMES: &[&str] = &[
    "ansible_check_mode",
    "ansible_config_file",
    "ansible_dependent_role_names",
    "ansible_diff_mode",
    "ansible_facts",
    "ansible_forks",
    "ansible_inventory_sources",
    "ansible_limit",
    "ansible_parent_role_names",
    "ansible_parent_role_paths",
    "ansible_play_batch",
    "ansible_play_hosts",
    "ansible_play_hosts_all",
    "ansible_play_name",
    "ansible_play_role_names",
    "ansible_role_name",
    "ansible_role_names",
    "ansible_run_tags",
    "ansible_search_path",
    "ansible_skip_tags",
    "ansible_verbosity",
    "ansible_version",
    "group_names",
    "groups",
    "hostvars",
    "inventory_dir",
    "inventory_file",
    "inventory_hostname",
    "inventory_hostname_short",
    "omit",
    "play_hosts",
    "playbook_dir",
    "role_name",
    "role_names",
    "role_path",
];

impl HostVariables {
    /// Returns a variable that the program sets; it can't be overridden.
    pub(super) fn magic(&self, name: &str) -> Option<Value> {
        // Asked for every name: the list is sorted, and most names are none of it.
        NAMES.binary_search(&name).ok()?;
        let options = &self.world.options;
        let texts = |texts: &[String]| Some(list(texts.iter().map(String::as_str)));
        match name {
            "omit" => Some(Value::Omit),
            "inventory_hostname" => Some(Value::str(self.host.clone())),
            "inventory_hostname_short" => Some(self.host.split('.').next().unwrap_or(&self.host).into()),
            "group_names" => Some(list(self.world.inventory().group_names(&self.host).iter().map(|name| &**name))),
            "groups" => Some(groups(&self.world)),
            "hostvars" => Some(Value::Lazy(Arc::new(HostVars { world: self.world.clone() }))),
            "inventory_dir" => self.world.inventory().folder_of(&self.host).map(|folder| path(&folder)),
            "inventory_file" => self.world.inventory().file_of(&self.host).map(|file| path(&file)),
            "ansible_facts" => {
                let state = self.world.state(&self.host);
                let facts = state.read().unwrap_or_else(std::sync::PoisonError::into_inner).facts.clone();
                Some(Value::Map(facts))
            }
            "ansible_check_mode" => Some(options.check.into()),
            "ansible_diff_mode" => Some(options.diff.into()),
            "ansible_verbosity" => Some(Value::Int(i64::from(options.verbosity))),
            "ansible_forks" => Some(Value::Int(options.forks as i64)),
            "ansible_limit" => options.limit.as_deref().map(Value::from),
            "ansible_run_tags" if options.tags.is_empty() => Some(list(["all"])),
            "ansible_run_tags" => texts(&options.tags),
            "ansible_skip_tags" => texts(&options.skip_tags),
            "ansible_inventory_sources" => texts(&options.inventory_sources),
            "ansible_config_file" => options.config_file.as_deref().map(path),
            "ansible_version" => Some(version()),
            "ansible_search_path" => Some(self.search_path()),
            "playbook_dir" => Some(match &self.play {
                Some(play) => path(&absolute(&play.play.folder)),
                None => path(&absolute(&options.folder)),
            }),
            _ => self.of_role(name).or_else(|| self.of_play(name)),
        }
    }

    fn of_role(&self, name: &str) -> Option<Value> {
        let role = self.role.as_ref();
        match name {
            "role_name" | "ansible_role_name" => role.map(|role| role.name.as_str().into()),
            "role_path" => role.map(|role| path(&absolute(&role.path))),
            "ansible_parent_role_names" => role
                .filter(|role| !role.chain.is_empty())
                .map(|role| list(role.chain.iter().map(|role| role.name.as_str()))),
            "ansible_parent_role_paths" => role
                .filter(|role| !role.chain.is_empty())
                .map(|role| Value::list(role.chain.iter().map(|role| path(&absolute(&role.path))).collect())),
            _ => None,
        }
    }

    fn of_play(&self, name: &str) -> Option<Value> {
        let play = self.play.as_ref()?;
        let hosts = |hosts: Vec<Arc<str>>| Some(list(hosts.iter().map(|host| &**host)));
        match name {
            "ansible_play_name" => Some(play.name.as_str().into()),
            "ansible_play_hosts_all" => hosts(play.all_hosts.clone()),
            "ansible_play_hosts" => hosts(play.hosts_left()),
            "ansible_play_batch" | "play_hosts" => hosts(play.batch_left()),
            "role_names" | "ansible_role_names" | "ansible_play_role_names" => {
                let mut names: Vec<&str> = Vec::new();
                for role in &play.play.roles {
                    if !names.contains(&role.name.as_str()) {
                        names.push(&role.name);
                    }
                }
                Some(list(names))
            }
            "ansible_dependent_role_names" => {
                let dependent = play.play.roles.iter().filter(|role| !role.chain.is_empty());
                Some(list(dependent.map(|role| role.name.as_str())))
            }
            _ => None,
        }
    }

    fn search_path(&self) -> Value {
        let mut paths = Vec::new();
        if let Some(role) = &self.role {
            paths.extend(std::iter::once(role).chain(&role.chain).map(|role| path(&absolute(&role.path))));
        }
        if let Some(file) = &self.task_file
            && let Some(folder) = file.parent()
        {
            paths.push(path(&absolute(folder)));
        }
        if let Some(play) = &self.play {
            paths.push(path(&absolute(&play.play.folder)));
        }
        Value::list(paths)
    }
}

fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> Value {
    Value::list(texts.into_iter().map(Value::from).collect())
}

fn path(path: &Path) -> Value {
    path.to_string_lossy().into_owned().into()
}

fn absolute(path: &Path) -> std::path::PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn groups(world: &World) -> Value {
    let inventory = world.inventory();
    let entry =
        |group: &Arc<str>| (Value::str(group.clone()), list(inventory.hosts_of(group).iter().map(|host| &**host)));
    Value::map(inventory.group_list().iter().map(entry).collect())
}

fn version() -> Value {
    let (major, minor, revision) = LANGUAGE;
    let full = format!("{major}.{minor}.{revision}");
    let mut map = Map::new();
    map.insert("string", full.as_str());
    map.insert("full", full.as_str());
    map.insert("major", Value::Int(major));
    map.insert("minor", Value::Int(minor));
    map.insert("revision", Value::Int(revision));
    Value::map(map)
}

/// `hostvars`: each host's variables, rendered in that host's own context.
struct HostVars {
    world: Arc<World>,
}

impl Lazy for HostVars {
    fn get(&self, host: &str) -> Result<Option<Value>, String> {
        let Some(host) = self.world.inventory().host_name(host) else { return Ok(None) };
        Ok(Some(Value::Lazy(Arc::new(OneHost { world: self.world.clone(), host }))))
    }
    fn keys(&self) -> Vec<Arc<str>> {
        self.world.inventory().host_list()
    }
}

struct OneHost {
    world: Arc<World>,
    host: Arc<str>,
}

impl Lazy for OneHost {
    fn get(&self, name: &str) -> Result<Option<Value>, String> {
        use crate::template::Variables;
        if name == "hostvars" {
            return Ok(None);
        }
        let variables = super::of(&self.world, None, &self.host, None);
        let Some(value) = variables.get(name) else { return Ok(None) };
        let templar = super::templar(&self.world, None, &self.host, None);
        templar.value(&value).map(Some).map_err(|error| error.message)
    }
    fn keys(&self) -> Vec<Arc<str>> {
        use crate::template::Variables;
        let mut names = super::of(&self.world, None, &self.host, None).names();
        names.retain(|name| &**name != "hostvars" && &**name != "omit");
        names
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_sorted_for_the_search() {
        assert!(super::NAMES.is_sorted());
    }
}
