//! YAML inventories: groups with `hosts`, `children` and `vars`.

use super::{Inventory, range};
use crate::source::{Diagnostic, nearest};
use crate::vault::Vault;
use crate::yaml::{Kind, Node};

const KEYS: &[&str] = &["hosts", "children", "vars"];

/// Reads a YAML inventory into `inventory`; mistakes are added to `problems`.
pub(super) fn read(inventory: &mut Inventory, node: &Node, vault: &Vault, problems: &mut Vec<Diagnostic>) {
    let mut reader = Reader { inventory, vault, problems };
    match &node.kind {
        Kind::Map(groups) => groups.iter().for_each(|(name, group)| reader.group(name, group, None)),
        Kind::Null => {}
        _ => reader.wrong(node, "an inventory", "a mapping of groups"),
    }
}

struct Reader<'a> {
    inventory: &'a mut Inventory,
    vault: &'a Vault,
    problems: &'a mut Vec<Diagnostic>,
}

impl Reader<'_> {
    fn wrong(&mut self, node: &Node, what: &str, expected: &str) {
        self.problems.push(Diagnostic::error(node.place, format!("{what} must be {expected}, found {}", node.what())));
    }

    fn group(&mut self, key: &Node, node: &Node, parent: Option<&str>) {
        let name = self.inventory.safe(&key.text());
        self.inventory.group(&name);
        if let Some(parent) = parent
            && let Err(message) = self.inventory.nest(parent, &name)
        {
            self.problems.push(Diagnostic::error(key.place, message));
        }
        let entries = match &node.kind {
            Kind::Map(entries) => entries,
            Kind::Null => return,
            _ => return self.wrong(node, &format!("group `{name}`"), "a mapping"),
        };
        for (key, value) in entries {
            match key.text().as_str() {
                "hosts" => self.hosts(&name, value),
                "vars" => self.vars(value, |reader, key, value| reader.inventory.set_group_var(&name, key, value)),
                "children" => match &value.kind {
                    Kind::Map(children) => {
                        children.iter().for_each(|(child, node)| self.group(child, node, Some(&name)));
                    }
                    // TOML names them in a list.
                    Kind::List(children) if is_toml(value.place) => {
                        children.iter().for_each(|child| {
                            self.group(child, &Node { place: child.place, kind: Kind::Null }, Some(&name))
                        });
                    }
                    Kind::Null => {}
                    _ => self.wrong(value, "`children`", "a mapping of groups"),
                },
                other => {
                    let message = format!("`{other}` is not a key of a group");
                    let mut problem = Diagnostic::warning(key.place, message);
                    if let Some(meant) = nearest(other, KEYS.iter().copied()) {
                        problem = problem.help(format!("did you mean `{meant}`?"));
                    }
                    self.problems.push(problem);
                }
            }
        }
    }

    fn vars(&mut self, node: &Node, mut set: impl FnMut(&mut Self, crate::value::Value, crate::value::Value)) {
        match &node.kind {
            Kind::Map(entries) => {
                for (key, value) in entries {
                    match self.vault.value(value) {
                        Ok(value) => set(self, crate::value::Value::str(key.text()), value),
                        Err(problem) => self.problems.push(problem),
                    }
                }
            }
            Kind::Null => {}
            _ => self.wrong(node, "variables", "a mapping"),
        }
    }

    fn hosts(&mut self, group: &str, node: &Node) {
        let entries = match &node.kind {
            Kind::Map(entries) => entries.clone(),
            Kind::Null => return,
            Kind::Str { .. } => vec![(node.clone(), Node { place: node.place, kind: Kind::Null })],
            _ => return self.wrong(node, "`hosts`", "a mapping of hosts"),
        };
        for (key, vars) in &entries {
            if matches!(key.kind, Kind::Int(_) | Kind::Float(_)) {
                let message = format!("Host pattern {} must be a string", key.text());
                let help = "enclose integers and floats in quotation marks; the host is left out";
                self.problems.push(Diagnostic::warning(key.place, message).help(help));
                continue;
            }
            let names = match range::expand(&key.text()) {
                Ok(names) => names,
                Err(message) => {
                    self.problems.push(Diagnostic::error(key.place, message));
                    continue;
                }
            };
            for name in names {
                self.inventory.put(&name, group, key.place);
                let place = key.place;
                self.vars(vars, |reader, key, value| reader.inventory.set_host_var(&name, key, value, place));
            }
        }
    }
}

fn is_toml(place: crate::source::Place) -> bool {
    place.path().is_some_and(|path| path.extension().is_some_and(|extension| extension == "toml"))
}
