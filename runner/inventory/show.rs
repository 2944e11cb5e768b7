//! The inventory as `ansible-inventory` shows it: `--list`, `--host`, `--graph`.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{ALL, Inventory, UNGROUPED};

/// What is shown, and how.
pub struct Show<'a> {
    inventory: &'a Inventory,
    /// The hosts that a limit leaves.
    hosts: HashSet<Arc<str>>,
    /// Whether variables stand where they are set, rather than with each host that has them.
    export: bool,
    /// What every host has from the command line.
    extra: &'a crate::value::Map,
}

impl<'a> Show<'a> {
    /// # Errors
    /// When the limit is malformed.
    pub fn new(
        inventory: &'a Inventory,
        limit: Option<&str>,
        export: bool,
        extra: &'a crate::value::Map,
    ) -> Result<Show<'a>, String> {
        let hosts = inventory.select(ALL, limit)?.into_iter().collect();
        Ok(Show { inventory, hosts, export, extra })
    }

    /// Returns `--list`: groups, and every host's variables under `_meta`.
    pub fn list(&self) -> Value {
        let mut hostvars = Map::new();
        for host in self.inventory.host_list().iter().filter(|host| self.hosts.contains(*host)) {
            let vars = self.host_vars(host, true);
            if !vars.is_empty() {
                hostvars.insert(host.to_string(), Value::Object(vars));
            }
        }
        let mut all = Map::new();
        all.insert("_meta".into(), json!({ "hostvars": hostvars, "profile": "inventory_legacy" }));
        for name in self.inventory.groups.keys() {
            let mut entry = Map::new();
            let hosts = self.hosts_of(name);
            if !hosts.is_empty() {
                entry.insert("hosts".into(), json!(hosts.iter().map(|host| &**host).collect::<Vec<_>>()));
            }
            let children = self.children_of(name);
            if !children.is_empty() {
                entry.insert("children".into(), json!(children));
            }
            let vars = self.group_vars(name, true);
            if self.export && !vars.is_empty() {
                entry.insert("vars".into(), Value::Object(vars));
            }
            if !entry.is_empty() {
                all.insert(name.to_string(), Value::Object(entry));
            }
        }
        Value::Object(all)
    }

    /// Returns `--list --yaml`: an inventory file, every host's variables where the host is named first.
    pub fn nested(&self) -> Value {
        let mut seen = HashSet::new();
        let all = self.nested_group(ALL, &mut seen);
        json!({ ALL: all })
    }

    fn nested_group(&self, name: &str, seen: &mut HashSet<Arc<str>>) -> Value {
        let mut entry = Map::new();
        let mut children = Map::new();
        let mut names = self.children_of(name);
        if name != ALL {
            names.sort();
        }
        for child in names {
            let group = self.nested_group(&child, seen);
            if group.as_object().is_some_and(|group| !group.is_empty()) {
                children.insert(child, group);
            }
        }
        if !children.is_empty() {
            entry.insert("children".into(), Value::Object(children));
        }
        let mut hosts = Map::new();
        for host in self.hosts_of(name) {
            let vars = if seen.insert(host.clone()) { self.host_vars(&host, false) } else { Map::new() };
            hosts.insert(host.to_string(), Value::Object(vars));
        }
        if !hosts.is_empty() {
            entry.insert("hosts".into(), Value::Object(hosts));
        }
        let vars = self.group_vars(name, false);
        if self.export && !vars.is_empty() {
            entry.insert("vars".into(), Value::Object(vars));
        }
        Value::Object(entry)
    }

    /// Returns `--host`: one host's variables; `None` when there is no such host.
    pub fn host(&self, host: &str) -> Option<Value> {
        self.inventory.hosts.contains_key(host).then(|| Value::Object(self.host_vars(host, false)))
    }

    /// Returns `--graph`: a tree of groups and hosts below a group; `None` when there is no such group.
    pub fn graph(&self, group: &str, with_vars: bool) -> Option<String> {
        self.inventory.groups.contains_key(group).then(|| {
            let mut text = format!("@{group}:\n");
            self.below(group, 1, with_vars, &mut text);
            text
        })
    }

    fn below(&self, group: &str, level: usize, with_vars: bool, text: &mut String) {
        let indent = "  |".repeat(level);
        let vars_of = |indent: &str, vars: crate::value::Map, text: &mut String| {
            let mut lines: Vec<String> =
                vars.iter().map(|(key, value)| format!("{indent}--{{{key} = {value}}}\n")).collect();
            lines.sort();
            text.push_str(&lines.concat());
        };
        for child in self.children_of(group) {
            text.push_str(&format!("{indent}--@{child}:\n"));
            self.below(&child, level + 1, with_vars, text);
        }
        for host in self.hosts_of(group) {
            text.push_str(&format!("{indent}--{host}\n"));
            if with_vars {
                vars_of(&format!("{indent}  |"), self.all_vars(&host), text);
            }
        }
        if with_vars && let Some(found) = self.inventory.groups.get(group) {
            vars_of(&indent, found.all_vars(), text);
        }
    }

    /// Returns a host's variables; `marked` says of texts that they are no templates, as inventory scripts do.
    fn host_vars(&self, name: &str, marked: bool) -> Map<String, Value> {
        match self.inventory.hosts.get(name) {
            Some(host) if self.export => shut(&host.all_vars(), marked),
            Some(_) => shut(&self.all_vars(name), marked),
            None => Map::new(),
        }
    }

    fn all_vars(&self, host: &str) -> crate::value::Map {
        let mut vars = self.inventory.vars_of(host);
        crate::vars::put_over(&mut vars, self.extra, self.inventory.merge);
        vars
    }

    fn group_vars(&self, name: &str, marked: bool) -> Map<String, Value> {
        self.inventory.groups.get(name).map(|group| shut(&group.all_vars(), marked)).unwrap_or_default()
    }

    /// Returns the hosts that a group names itself.
    fn hosts_of(&self, group: &str) -> Vec<Arc<str>> {
        let hosts = match group {
            ALL => Vec::new(),
            UNGROUPED => self.inventory.hosts_of(UNGROUPED),
            _ => {
                self.inventory.groups.get(group).map(|group| group.hosts.iter().cloned().collect()).unwrap_or_default()
            }
        };
        hosts.into_iter().filter(|host| self.hosts.contains(host)).collect()
    }

    /// Returns a group's children. Those of `all` are the groups that are put below it, then all that are below none.
    fn children_of(&self, group: &str) -> Vec<String> {
        let groups = &self.inventory.groups;
        let own = groups.get(group).into_iter().flat_map(|group| group.children.iter().map(ToString::to_string));
        if group != ALL {
            return own.collect();
        }
        let mut names: Vec<String> = vec![UNGROUPED.to_owned()];
        names.extend(own.filter(|name| name != UNGROUPED));
        let others = groups.iter().filter(|(parent, _)| &***parent != ALL);
        let mut told: HashSet<&str> =
            others.flat_map(|(_, group)| group.children.iter().map(|child| &**child)).collect();
        told.extend(groups.get(group).into_iter().flat_map(|group| group.children.iter().map(|child| &**child)));
        let alone = groups.keys().filter(|name| !matches!(&***name, ALL | UNGROUPED) && !told.contains(&***name));
        names.extend(alone.map(ToString::to_string));
        names
    }
}

/// Shows what no password opens as ansible-inventory does: `{"__ansible_vault": "$ANSIBLE_VAULT;…"}`; and, where it is
/// to be marked, what is no template: `{"__ansible_unsafe": "…"}`.
fn shut(vars: &crate::value::Map, marked: bool) -> Map<String, Value> {
    use crate::value::{Trust, Value as Own};
    fn one(value: &Own, marked: bool) -> Value {
        match value {
            Own::Str(text) => match crate::vault::late_text(text.as_str()) {
                Some(vaulted) => json!({"__ansible_vault": vaulted}),
                None if marked && text.trust == Trust::Data => json!({"__ansible_unsafe": text.as_str()}),
                None => Value::String(text.as_str().to_owned()),
            },
            Own::List(items) => items.iter().map(|item| one(item, marked)).collect(),
            Own::Map(entries) => Value::Object(shut(entries, marked)),
            Own::Null | Own::Bool(_) | Own::Int(_) | Own::Float(_) | Own::Omit | Own::Lazy(_) => value.to_json(),
        }
    }
    vars.iter().map(|(name, value)| (name.to_string(), one(value, marked))).collect()
}
