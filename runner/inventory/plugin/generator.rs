//! The plugin `generator`: a host for each combination of the values of some layers.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Options, Plugin};
use crate::inventory::{Inventory, Reader};
use crate::source::Diagnostic;
use crate::template::{Folders, Templar, TemplateError};
use crate::value::{Map, Value};
use crate::yaml::{Kind, Node};

/// How many hosts one file may stand for.
const LIMIT: usize = 1_000_000;

/// A host, or a group above it.
struct Element {
    name: Value,
    vars: Vec<(Value, Value)>,
    parents: Vec<(Element, crate::source::Place)>,
}

/// A group as the layers give it.
struct Above {
    name: String,
    vars: Vec<(Value, Value)>,
    parents: Vec<Above>,
    place: crate::source::Place,
}

/// Reads a file of `generator`.
pub(in crate::inventory) fn read(reader: &mut Reader, inventory: &mut Inventory, node: &Node) {
    let mut options = Options::new(Plugin::Generator, node, &["hosts", "layers"]);
    let element = host_of(&mut options, node);
    let layers = layers_of(&mut options, node);
    if reader.mistaken(options.problems) {
        return;
    }
    let Some(element) = element else { return };
    let combinations = layers.iter().fold(1_usize, |count, (_, values)| count.saturating_mul(values.len()));
    if combinations > LIMIT {
        let place = node.get("layers").map_or(node.place, |layers| layers.place);
        let message = format!("the layers give {combinations} hosts, and at most {LIMIT} are taken");
        return reader.problems.push(Diagnostic::error(place, message));
    }
    let mut told = HashSet::new();
    for nth in 0..combinations {
        // The last layer changes fastest.
        let mut rest = nth;
        let mut vars = Map::new();
        for (name, values) in layers.iter().rev() {
            vars.insert(name.as_str(), values[rest % values.len()].clone());
            rest /= values.len();
        }
        let templar = Templar::new(Arc::new(vars), Arc::new(Folders::default()));
        match generated(&templar, &element) {
            Ok((host, parents)) => {
                let nameless = parents.iter().find_map(Above::nameless);
                match nameless {
                    Some((child, place)) => {
                        let child = child.unwrap_or(&host);
                        let message = format!("Element {child} has a parent with no name.");
                        if told.insert(place) {
                            let help = format!("give it a `name` that is never empty; host `{host}` is left out");
                            reader.problems.push(Diagnostic::warning(place, message).help(help));
                        }
                    }
                    None => {
                        let place = node.get("hosts").map_or(node.place, |hosts| hosts.place);
                        inventory.host(&host, place);
                        for parent in &parents {
                            if let Err(message) = add(inventory, &host, parent, true) {
                                return reader.problems.push(Diagnostic::error(parent.place, message));
                            }
                        }
                        if parents.is_empty() {
                            inventory.put(&host, crate::inventory::UNGROUPED, place);
                        }
                    }
                }
            }
            Err(error) => return reader.problems.push(error.diagnostic()),
        }
    }
}

impl Above {
    /// Returns the child, `None` for the host itself, and the place of a group that has no name.
    fn nameless(&self) -> Option<(Option<&str>, crate::source::Place)> {
        if self.name.is_empty() {
            return Some((None, self.place));
        }
        let found = self.parents.iter().find_map(Above::nameless);
        found.map(|(child, place)| (child.or(Some(self.name.as_str())), place))
    }
}

fn host_of(options: &mut Options, node: &Node) -> Option<Element> {
    match options.get("hosts") {
        None => {
            let message = "the inventory plugin `generator` needs `hosts`: the `name` of a host, and its `parents`";
            options.problems.push(Diagnostic::error(node.place, message));
            None
        }
        Some(hosts) => element_of(options, hosts, &["name", "parents"], "a key of `hosts`").or_else(|| {
            options.wrong(hosts, "hosts", "a mapping");
            None
        }),
    }
}

fn element_of(options: &mut Options, node: &Node, known: &[&str], what: &str) -> Option<Element> {
    if !matches!(node.kind, Kind::Map(_)) {
        return None;
    }
    options.known(node, known, what);
    let name = node.get("name").map(Node::value).unwrap_or_default();
    if let Value::Str(text) = &name
        && let Err(error) = crate::template::syntax(text)
    {
        options.problems.push(error.diagnostic());
    }
    let mut parents = Vec::new();
    if let Some(list) = node.get("parents").filter(|parents| !parents.is_null()) {
        for parent in list.items().unwrap_or(std::slice::from_ref(list)) {
            match element_of(options, parent, &["name", "vars", "parents"], "a key of a parent") {
                Some(element) => parents.push((element, parent.place)),
                None => options.wrong(parent, "parents", "a list of mappings"),
            }
        }
    }
    let vars = node.get("vars").map(Node::entries).unwrap_or_default();
    let vars = vars.iter().map(|(key, value)| (Value::str(key.text()), value.value())).collect();
    Some(Element { name, vars, parents })
}

fn layers_of(options: &mut Options, node: &Node) -> Vec<(String, Vec<Value>)> {
    if options.get("layers").is_none() {
        let message = "the inventory plugin `generator` needs `layers`: names, and the values that each of them takes";
        options.problems.push(Diagnostic::error(node.place, message));
    }
    let mut layers = Vec::new();
    for (name, values) in options.entries("layers") {
        match values.items() {
            Some(items) => layers.push((name.text(), items.iter().map(Node::value).collect())),
            None => options.wrong(values, "layers", "a mapping of lists"),
        }
    }
    layers
}

/// Returns the name of the host and the groups above it for one combination.
fn generated(templar: &Templar, element: &Element) -> Result<(String, Vec<Above>), TemplateError> {
    let name = templar.text(&element.name)?;
    let above = |(parent, place): &(Element, crate::source::Place)| -> Result<Above, TemplateError> {
        let (name, parents) = generated(templar, parent)?;
        // What a list or a mapping holds is rendered where the variable is used, by who uses it.
        let rendered = |value: &Value| match value {
            Value::Str(_) => templar.value(value),
            other => Ok(other.clone()),
        };
        let vars = parent.vars.iter().map(|(key, value)| Ok((key.clone(), rendered(value)?)));
        Ok(Above { name, vars: vars.collect::<Result<_, TemplateError>>()?, parents, place: *place })
    };
    Ok((name, element.parents.iter().map(above).collect::<Result<_, _>>()?))
}

/// Puts a host or a group below a group, and that below its own parents.
fn add(inventory: &mut Inventory, child: &str, above: &Above, is_host: bool) -> Result<(), String> {
    let name = inventory.safe(&above.name);
    inventory.group(&name);
    for (key, value) in &above.vars {
        inventory.set_group_var(&name, key.clone(), value.clone());
    }
    if is_host {
        inventory.put(child, &name, above.place);
    } else if name != crate::inventory::ALL {
        inventory.nest(&name, child)?;
    }
    above.parents.iter().try_for_each(|parent| add(inventory, &name, parent, false))
}
