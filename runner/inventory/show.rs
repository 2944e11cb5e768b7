//! The inventory as `ansible-inventory` shows it: `--list`, `--host`, `--graph`.

use serde_json::{Map, Value, json};

use super::{ALL, Inventory, UNGROUPED};

/// Returns `--list`: groups, and every host's variables under `_meta`.
pub fn list_json(inventory: &Inventory) -> Value {
    let mut hostvars = Map::new();
    for host in inventory.host_list() {
        let vars = inventory.vars_of(&host).to_json();
        if !vars.is_empty() {
            hostvars.insert(host.to_string(), Value::Object(vars));
        }
    }
    let mut all = Map::new();
    all.insert("_meta".into(), json!({ "hostvars": hostvars, "profile": "inventory_legacy" }));
    let top = children_of_all(inventory);
    all.insert(ALL.into(), json!({ "children": top }));
    for (name, group) in &inventory.groups {
        if &**name == ALL {
            continue;
        }
        let mut entry = Map::new();
        let hosts = if &**name == UNGROUPED { inventory.hosts_of(UNGROUPED) } else { group.hosts.clone() };
        if !hosts.is_empty() {
            entry.insert("hosts".into(), json!(hosts.iter().map(|host| &**host).collect::<Vec<_>>()));
        }
        if !group.children.is_empty() {
            entry.insert("children".into(), json!(group.children.iter().map(|child| &**child).collect::<Vec<_>>()));
        }
        if !entry.is_empty() {
            all.insert(name.to_string(), Value::Object(entry));
        }
    }
    Value::Object(all)
}

/// Returns `--host`: one host's variables; `None` when there is no such host.
pub fn host_json(inventory: &Inventory, host: &str) -> Option<Value> {
    inventory.hosts.contains_key(host).then(|| Value::Object(inventory.vars_of(host).to_json()))
}

/// Returns `--graph`: a tree of groups and hosts below a group.
pub fn graph(inventory: &Inventory, group: &str, with_vars: bool) -> String {
    let mut text = format!("@{group}:\n");
    below(inventory, group, 1, with_vars, &mut text);
    text
}

fn children_of_all(inventory: &Inventory) -> Vec<String> {
    let nested =
        |name: &str| inventory.groups.values().any(|group| group.children.iter().any(|child| &**child == name));
    let mut names: Vec<String> = vec![UNGROUPED.to_owned()];
    let others = inventory.groups.keys().filter(|name| !matches!(&***name, ALL | UNGROUPED) && !nested(name));
    names.extend(others.map(|name| name.to_string()));
    names
}

fn below(inventory: &Inventory, group: &str, level: usize, with_vars: bool, text: &mut String) {
    let indent = "  |".repeat(level);
    let children = if group == ALL {
        children_of_all(inventory)
    } else {
        inventory
            .groups
            .get(group)
            .map(|group| group.children.iter().map(|child| child.to_string()).collect())
            .unwrap_or_default()
    };
    for child in children {
        text.push_str(&format!("{indent}--@{child}:\n"));
        below(inventory, &child, level + 1, with_vars, text);
    }
    let hosts = match group {
        ALL => Vec::new(),
        UNGROUPED => inventory.hosts_of(UNGROUPED),
        _ => inventory.groups.get(group).map(|group| group.hosts.clone()).unwrap_or_default(),
    };
    for host in hosts {
        text.push_str(&format!("{indent}--{host}\n"));
        if with_vars {
            for (key, value) in &inventory.vars_of(&host) {
                text.push_str(&format!("{indent}  |--{{{key} = {value}}}\n"));
            }
        }
    }
    if with_vars && let Some(found) = inventory.groups.get(group) {
        for (key, value) in &*found.vars {
            text.push_str(&format!("{indent}--{{{key} = {value}}}\n"));
        }
    }
}
