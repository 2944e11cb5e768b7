//! The plugin `constructed`: variables and groups that follow from the variables that hosts have already.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Options, Plugin, flag};
use crate::inventory::{ALL, Inventory, Reader, group_name};
use crate::source::{Diagnostic, Place};
use crate::template::{Folders, Templar, TemplateError};
use crate::value::{Map, Str, Value, realized};
use crate::yaml::{Kind, Node};

/// The options that say how hosts are grouped.
pub(super) const RULES: &[&str] =
    &["strict", "compose", "groups", "keyed_groups", "use_extra_vars", "leading_separator"];
const KEYED: &[&str] = &["key", "prefix", "separator", "parent_group", "default_value", "trailing_separator"];

/// What is made of the variables of a host.
pub(super) struct Rules {
    strict: bool,
    leading_separator: bool,
    use_extra_vars: bool,
    compose: Vec<(String, Str)>,
    groups: Vec<(String, Value, Place)>,
    keyed: Vec<Keyed>,
}

/// Groups named by the value of an expression.
struct Keyed {
    key: Str,
    prefix: String,
    separator: String,
    parent: Option<Value>,
    default: Option<String>,
    trailing_separator: bool,
}

/// Reads a file of `constructed`: over the hosts of all sources before it.
pub(in crate::inventory) fn read(reader: &mut Reader, inventory: &mut Inventory, node: &Node) {
    let known: Vec<&str> = RULES.iter().copied().chain(["use_vars_plugins"]).collect();
    let mut options = Options::new(Plugin::Constructed, node, &known);
    let rules = Rules::of(&mut options);
    let with_files = options.flag("use_vars_plugins", false);
    if reader.mistaken(options.problems) {
        return;
    }
    let beside = with_files.then(|| reader.with_vars_files(inventory));
    for host in inventory.host_list() {
        let vars = beside.as_ref().unwrap_or(inventory).vars_of(&host);
        if let Err(problem) = rules.apply(reader, inventory, &host, vars) {
            return reader.problems.push(problem);
        }
    }
}

impl Rules {
    /// Takes the rules out of a file's options.
    pub fn of(options: &mut Options) -> Rules {
        let mut compose = Vec::new();
        for (name, value) in options.entries("compose") {
            compose.extend(expression(options, value, "compose").map(|text| (name.text(), text)));
        }
        let mut groups = Vec::new();
        for (name, value) in options.entries("groups") {
            let condition = match &value.kind {
                Kind::Bool(holds) => Some(Value::Bool(*holds)),
                _ => expression(options, value, "groups").map(Value::Str),
            };
            groups.extend(condition.map(|condition| (name.text(), condition, value.place)));
        }
        let keyed = options.items("keyed_groups").iter().filter_map(|entry| Keyed::of(options, entry)).collect();
        Rules {
            strict: options.flag("strict", false),
            leading_separator: options.flag("leading_separator", true),
            use_extra_vars: options.flag("use_extra_vars", false),
            compose,
            groups,
            keyed,
        }
    }

    /// Does for one host what the rules say, `vars` being what it has.
    ///
    /// # Errors
    /// An expression that fails, under `strict`; a value that names no groups.
    pub fn apply(&self, reader: &Reader, inventory: &mut Inventory, host: &str, vars: Map) -> Result<(), Diagnostic> {
        let mut vars = vars;
        if let Some(facts) = reader.reading.fact_cache.as_ref().and_then(|cache| cache.read(host)) {
            vars.extend(facts.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        own_names(inventory, host, &mut vars);
        let templar = self.templar(reader, &vars, host, inventory);
        let mut composed = Map::new();
        for (name, text) in &self.compose {
            match templar.expression(text) {
                Ok(value) => {
                    composed.insert(name.as_str(), value);
                }
                Err(error) => self.failed(&error, || format!("set `{name}` for host `{host}`"))?,
            }
        }
        let place = inventory.hosts.get(host).map(|host| host.place).unwrap_or_default();
        for (name, value) in &composed {
            inventory.set_host_var(host, name.clone(), value.clone(), place);
        }
        let merge = inventory.merge;
        crate::vars::put_over(&mut vars, &composed, merge);
        let templar = self.templar(reader, &vars, host, inventory);
        for (name, condition, place) in &self.groups {
            let name = group_name(name);
            match templar.condition(condition) {
                Ok(true) => join(inventory, host, &name, *place),
                Ok(false) => {}
                Err(error) => self.failed(&error, || format!("add host `{host}` to group `{name}`"))?,
            }
        }
        self.keyed.iter().try_for_each(|keyed| self.apply_keyed(keyed, &templar, inventory, host))
    }

    fn templar(&self, reader: &Reader, vars: &Map, host: &str, inventory: &Inventory) -> Templar {
        let mut vars = vars.clone();
        if self.use_extra_vars {
            crate::vars::put_over(&mut vars, &reader.reading.extra_vars, inventory.merge);
        }
        let playbook = inventory.folder_of(host).unwrap_or_else(|| PathBuf::from("."));
        Templar::new(Arc::new(vars), Arc::new(Folders { playbook, ..Folders::default() }))
    }

    /// Passes over what fails, but under `strict`.
    fn failed(&self, error: &TemplateError, what: impl Fn() -> String) -> Result<(), Diagnostic> {
        if !self.strict {
            return Ok(());
        }
        let mut problem = error.diagnostic();
        problem.message = format!("could not {}: {}", what(), problem.message);
        Err(problem)
    }

    fn apply_keyed(
        &self,
        keyed: &Keyed,
        templar: &Templar,
        inventory: &mut Inventory,
        host: &str,
    ) -> Result<(), Diagnostic> {
        let place = keyed.key.place;
        let what = || format!("make groups of `{}` for host `{host}`", keyed.key.as_str());
        let value = match templar.expression(&keyed.key) {
            Ok(Value::Lazy(lazy)) => Value::map(realized(&*lazy)),
            Ok(value) => value,
            Err(error) => return self.failed(&error, what),
        };
        let blank = matches!(&value, Value::Null) || value.as_str() == Some("");
        if !(value.truthy() || blank && keyed.default.is_some()) {
            return match value {
                Value::List(_) | Value::Map(_) => Ok(()),
                _ if !self.strict => Ok(()),
                _ => Err(Diagnostic::error(place, format!("could not {}: it gives {}", what(), shown(&value)))),
            };
        }
        let parent = match keyed.parent.as_ref().map(|parent| templar.text(parent)) {
            None => None,
            Some(Ok(parent)) => Some(group_name(&parent)).filter(|parent| !parent.is_empty()),
            Some(Err(error)) => return self.failed(&error, what),
        };
        let Some(names) = keyed.names(&value) else {
            let message =
                format!("could not {}: groups are named by a text, a list or a mapping, not {}", what(), value.kind());
            let help = "write `| string` behind it";
            return Err(Diagnostic::error(place, message).help(help).width(keyed.key.as_str().chars().count()));
        };
        let bare = keyed.prefix.is_empty() && !self.leading_separator;
        for name in names {
            let separator = if bare { "" } else { keyed.separator.as_str() };
            let name = group_name(&format!("{}{separator}{name}", keyed.prefix));
            join(inventory, host, &name, place);
            if let Some(parent) = &parent {
                inventory.nest(parent, &name).map_err(|message| Diagnostic::error(place, message))?;
            }
        }
        Ok(())
    }
}

impl Keyed {
    fn of(options: &mut Options, entry: &Node) -> Option<Keyed> {
        if !matches!(entry.kind, Kind::Map(_)) {
            options.wrong(entry, "keyed_groups", "a list of mappings");
            return None;
        }
        options.known(entry, KEYED, "a key of an entry of `keyed_groups`");
        let Some(key) = entry.get("key") else {
            let message = "an entry of `keyed_groups` needs a `key`: the expression that names the groups";
            options.problems.push(Diagnostic::error(entry.place, message));
            return None;
        };
        let text = |key: &str| entry.get(key).filter(|node| !node.is_null());
        let trailing = match text("trailing_separator") {
            None => None,
            Some(node) => flag(node).or_else(|| {
                options.wrong(node, "trailing_separator", "a boolean");
                None
            }),
        };
        if let (Some(node), Some(_)) = (text("default_value"), trailing) {
            let message = "`default_value` and `trailing_separator` exclude one another";
            options.problems.push(Diagnostic::error(node.place, message));
        }
        Some(Keyed {
            key: expression(options, key, "key")?,
            prefix: text("prefix").map(Node::text).unwrap_or_default(),
            separator: entry.get("separator").map_or_else(|| "_".to_owned(), Node::text),
            parent: text("parent_group").map(Node::value),
            default: text("default_value").map(Node::text),
            trailing_separator: trailing.unwrap_or(true),
        })
    }

    /// Returns what stands behind the prefix; `None` for a value that names no groups.
    fn names(&self, value: &Value) -> Option<Vec<String>> {
        let blank = |value: &Value| matches!(value, Value::Null) || value.as_str() == Some("");
        let or_default = |value: &Value| match &self.default {
            Some(default) if blank(value) => default.clone(),
            _ => value.to_string(),
        };
        match value {
            Value::Str(_) | Value::Null => Some(vec![or_default(value)]),
            Value::List(items) => Some(items.iter().map(or_default).collect()),
            Value::Map(entries) => {
                let named = |(key, value): (&Value, &Value)| match &self.default {
                    None if blank(value) && !self.trailing_separator => key.to_string(),
                    _ => format!("{key}{}{}", self.separator, or_default(value)),
                };
                Some(entries.iter().map(named).collect())
            }
            Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Omit | Value::Lazy(_) => None,
        }
    }
}

fn shown(value: &Value) -> String {
    match value.to_string() {
        text if text.is_empty() => "an empty text".to_owned(),
        text => format!("`{text}`"),
    }
}

/// Puts a host into a group that may be new.
pub(super) fn join(inventory: &mut Inventory, host: &str, group: &str, place: Place) {
    if !group.is_empty() {
        inventory.put(host, group, place);
    }
}

/// Reads an expression and checks what can be seen of it.
fn expression(options: &mut Options, node: &Node, key: &str) -> Option<Str> {
    let Value::Str(text) = node.value() else {
        options.wrong(node, key, "an expression, as text in quotes");
        return None;
    };
    if let Err(error) = crate::template::syntax_of_condition(&text) {
        options.problems.push(error.diagnostic());
        return None;
    }
    Some(text)
}

/// Adds what every host knows of itself.
fn own_names(inventory: &Inventory, host: &str, vars: &mut Map) {
    vars.insert("inventory_hostname", host);
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    vars.insert("inventory_hostname_short", if is_address { host } else { host.split('.').next().unwrap_or(host) });
    // Those that something has named up to now: who is in none yet may still come into one.
    let mut groups: Vec<_> = inventory.ancestors(host).into_iter().map(|(_, name)| name).collect();
    groups.retain(|name| &**name != ALL);
    groups.sort();
    vars.insert("group_names", Value::list(groups.into_iter().map(Value::str).collect()));
    let path = |path: Option<PathBuf>| path.map_or(Value::Null, |path| path.to_string_lossy().into_owned().into());
    vars.insert("inventory_file", path(inventory.file_of(host)));
    vars.insert("inventory_dir", path(inventory.folder_of(host)));
}
