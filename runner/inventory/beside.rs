//! Variables in files beside an inventory or a playbook: `group_vars/` and `host_vars/`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::{Inventory, Reader};
use crate::source::Diagnostic;
use crate::value::{Map, Value};

/// Endings of files of variables.
const VARS_ENDINGS: &[&str] = &["", ".yml", ".yaml", ".json"];

impl Reader<'_> {
    /// Reads `group_vars/` and `host_vars/` of a folder; `which` is 0 beside the inventory, 1 beside the playbook.
    pub(super) fn vars_folders(&mut self, inventory: &mut Inventory, folder: &Path, which: usize) {
        let merge = self.reading.merge;
        let groups = folder.join("group_vars");
        if groups.is_dir() {
            for name in inventory.group_list() {
                let vars = self.vars_of(&groups, &name);
                if !vars.is_empty() {
                    let group = inventory.group(&name);
                    if let Some(priority) = vars.get("ansible_group_priority") {
                        group.priority = priority.to_string().parse().unwrap_or(1);
                    }
                    add(&mut group.files[which], vars, merge);
                }
            }
        }
        for name in self.others_in(&groups, |name| inventory.groups.contains_key(name)) {
            let vars = self.vars_without_problems(&groups, &name);
            add(&mut inventory.waiting_groups.entry(name.into()).or_default()[which], vars, merge);
        }
        let hosts = folder.join("host_vars");
        for name in self.others_in(&hosts, |name| inventory.hosts.contains_key(name)) {
            let vars = self.vars_without_problems(&hosts, &name);
            add(&mut inventory.waiting_hosts.entry(name.into()).or_default()[which], vars, merge);
        }
        if hosts.is_dir() {
            for name in inventory.host_list() {
                let vars = self.vars_of(&hosts, &name);
                if !vars.is_empty()
                    && let Some(host) = inventory.hosts.get_mut(&*name)
                {
                    add(&mut host.files[which], vars, merge);
                }
            }
        }
    }

    /// Returns the names in a folder of variables that nobody has yet: they may come during the run.
    fn others_in(&mut self, folder: &Path, known: impl Fn(&str) -> bool) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .map(|entries| {
                entries
                    .filter_map(Result::ok)
                    .map(|entry| entry.file_name().to_string_lossy().into_owned())
                    .map(|name| {
                        let short = [".yml", ".yaml", ".json"].iter().find_map(|ending| name.strip_suffix(ending));
                        short.unwrap_or(&name).to_owned()
                    })
                    .filter(|name| !name.starts_with('.') && !known(name))
                    .collect()
            })
            .unwrap_or_default();
        names.sort();
        names.dedup();
        names
    }

    /// Reads variables of a name that nobody has yet: a mistake in them is nobody's yet either.
    fn vars_without_problems(&mut self, folder: &Path, name: &str) -> Map {
        let before = self.problems.len();
        let vars = self.vars_of(folder, name);
        self.problems.truncate(before);
        vars
    }

    fn vars_of(&mut self, folder: &Path, name: &str) -> Map {
        let mut vars = Map::new();
        for ending in VARS_ENDINGS {
            let path = folder.join(format!("{name}{ending}"));
            if path.is_dir() {
                self.vars_in(&path, &mut vars);
            } else if path.is_file() {
                self.vars_file(&path, &mut vars);
            }
        }
        vars
    }

    fn vars_in(&mut self, folder: &Path, vars: &mut Map) {
        for path in self.sorted(folder) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') || name.ends_with('~') {
                continue;
            }
            if path.is_dir() {
                self.vars_in(&path, vars);
            } else if matches!(extension.as_str(), "" | "yml" | "yaml" | "json") {
                self.vars_file(&path, vars);
            }
        }
    }

    fn vars_file(&mut self, path: &Path, vars: &mut Map) {
        let parsed = match self.vault.read_yaml(path) {
            Ok(parsed) => parsed,
            Err(problem) => return self.problems.push(problem),
        };
        self.problems.extend(parsed.warnings);
        let Some(node) = parsed.documents.first().filter(|node| !node.is_null()) else { return };
        match self.vault.value(node) {
            Ok(Value::Map(map)) => crate::vars::put_over(vars, &map, self.reading.merge),
            Ok(_) => self
                .problems
                .push(Diagnostic::error(node.place, format!("variables must be a mapping, found {}", node.what()))),
            Err(problem) => self.problems.push(problem),
        }
    }
}

fn add(layer: &mut Arc<Map>, vars: Map, merge: bool) {
    crate::vars::put_over(Arc::make_mut(layer), &vars, merge);
}
