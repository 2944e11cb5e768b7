//! Inventory scripts: programs that answer `--list`, and `--host NAME` where they gave no `_meta`.

use std::path::Path;
use std::process::Command;

use serde_json::{Map as Object, Value as Json};

use super::{ALL, Inventory, Reader};
use crate::source::{Diagnostic, FileId, Place};
use crate::value::{Map, Str, Value};
use crate::vault::Vault;
use crate::yaml::{Kind, Node};

/// How the answer of a script may be written.
const PROFILE: &str = "inventory_legacy";

impl Reader<'_> {
    /// Reads what a script answers.
    pub(super) fn script(&mut self, inventory: &mut Inventory, path: &Path) {
        let file = FileId::register(path, "");
        let mut script =
            Script { path, place: file.at(1, 1), vault: self.vault, said: Vec::new(), warnings: Vec::new() };
        if let Err(message) = script.read(inventory) {
            self.problems.push(Diagnostic::error(Place::default(), message));
        }
        let warned = if self.reading.silent_scripts { Vec::new() } else { script.said };
        let all = script.warnings.into_iter().chain(warned);
        self.problems.extend(all.map(|message| Diagnostic::warning(Place::default(), message)));
    }
}

struct Script<'a> {
    path: &'a Path,
    place: Place,
    vault: &'a Vault,
    /// What it wrote to its standard error.
    said: Vec<String>,
    warnings: Vec<String>,
}

impl Script<'_> {
    fn read(&mut self, inventory: &mut Inventory) -> Result<(), String> {
        let shown = self.path.display().to_string();
        let answer = self.run(&["--list"])?;
        let decoder =
            |what: String| format!("Unable to get JSON decoder for inventory script result. {what}: `{shown}`");
        let listed: Json = serde_json::from_str(&answer)
            .map_err(|error| decoder(format!("Value could not be parsed as JSON ({error})")))?;
        let Json::Object(groups) = listed else {
            return Err(decoder(format!("Value is '{}' instead of 'dict'", what(&listed))));
        };
        let meta = groups.get("_meta");
        if let Some(other) = meta.filter(|meta| !meta.is_object()) {
            return Err(decoder(format!("Value contains '_meta' which is '{}' instead of 'dict'", what(other))));
        }
        match meta.and_then(|meta| meta.get("profile")) {
            None => {}
            Some(Json::String(name)) if name == PROFILE => {}
            Some(Json::String(name)) if name.starts_with("inventory_") => {
                return Err(decoder(format!("Unknown profile name '{name}'")));
            }
            Some(Json::String(name)) => {
                return Err(decoder(format!("Non-inventory profile '{name}' is not allowed.")));
            }
            Some(other) => {
                let found = what(other);
                return Err(decoder(format!("Value contains '_meta.profile' which is '{found}' instead of 'str'")));
            }
        }
        self.checked(&Json::Object(groups.clone()))
            .map_err(|message| format!("Inventory script result could not be parsed as JSON: `{shown}`: {message}"))?;
        let hostvars = match meta.and_then(|meta| meta.get("hostvars")) {
            Some(Json::Object(vars)) => Some(vars.clone()),
            None => None,
            Some(other) => {
                let found = what(other);
                return Err(format!("`{shown}`: Value contains '_meta.hostvars' which is '{found}' instead of 'dict'"));
            }
        };
        let mut named: Vec<String> = Vec::new();
        for (name, group) in groups.iter().filter(|(name, _)| *name != "_meta") {
            self.group(inventory, name, group, &mut named).map_err(|message| format!("`{shown}`: {message}"))?;
        }
        let hostvars = match hostvars {
            Some(vars) => vars,
            None => self.asked_one_by_one(&named)?,
        };
        for (host, vars) in &hostvars {
            let Json::Object(vars) = vars else {
                let found = what(vars);
                return Err(format!(
                    "`{shown}`: Invalid data from file, expected dictionary and got '{found}' for host `{host}`"
                ));
            };
            inventory.host(host, self.place);
            for (key, value) in vars {
                let value = self.value(value)?;
                inventory.set_host_var(host, key.as_str().into(), value, self.place);
            }
        }
        Ok(())
    }

    fn group(
        &mut self,
        inventory: &mut Inventory,
        name: &str,
        group: &Json,
        named: &mut Vec<String>,
    ) -> Result<(), String> {
        let known = ["hosts", "children", "vars"];
        let group: Object<String, Json> = match group {
            Json::Object(entries) if known.iter().any(|key| entries.contains_key(*key)) || entries.is_empty() => {
                entries.clone()
            }
            Json::Object(entries) => {
                self.warnings.push(format!(
                    "Treating malformed group '{name}' as the sole host of that group. Variables provided in this manner \
                     are never templates."
                ));
                // The group is a host of the same name, and these are its variables: of data, not templates.
                let name = inventory.safe(name);
                inventory.put(&name, &name, self.place);
                for (key, value) in entries {
                    inventory.set_group_var(&name, key.as_str().into(), Value::from_json(bare(value)));
                }
                named.push(name);
                return Ok(());
            }
            Json::Array(_) => Object::from_iter([("hosts".to_owned(), group.clone())]),
            other => {
                self.warnings.push(format!("Group '{name}' was converted to 'dict' from '{}'", what(other)));
                Object::from_iter([("hosts".to_owned(), group.clone())])
            }
        };
        let own = inventory.safe(name);
        inventory.group(&own);
        let of_list = |key: &str| match group.get(key) {
            None => Ok(Vec::new()),
            Some(Json::Array(items)) => Ok(items.iter().filter_map(Json::as_str).map(str::to_owned).collect()),
            Some(other) => Err(format!("Value contains '{name}.{key}' which is '{}' instead of 'list'", what(other))),
        };
        for host in of_list("hosts")? {
            inventory.put(&host, &own, self.place);
            named.push(host);
        }
        for child in of_list("children")? {
            let child = inventory.safe(&child);
            if own == ALL {
                inventory.group(&child);
            } else {
                inventory.nest(&own, &child)?;
            }
        }
        match group.get("vars") {
            None => {}
            Some(Json::Object(vars)) => {
                for (key, value) in vars {
                    let value = self.value(value)?;
                    inventory.set_group_var(&own, key.as_str().into(), value);
                }
            }
            Some(other) => {
                return Err(format!("Value contains '{name}.vars' which is '{}' instead of 'dict'", what(other)));
            }
        }
        Ok(())
    }

    /// Asks for the variables of each host, which a script that gives no `_meta` wants.
    fn asked_one_by_one(&mut self, named: &[String]) -> Result<Object<String, Json>, String> {
        let mut asked = Object::new();
        for host in named {
            if asked.contains_key(host) {
                continue;
            }
            let answer = self.run(&["--host", host])?;
            // One who has nothing to say of a host may say nothing.
            let vars = match answer.trim() {
                "" => Json::Object(Object::new()),
                text => serde_json::from_str(text).map_err(|error| {
                    let shown = self.path.display();
                    format!("Inventory script result for host '{host}' could not be parsed as JSON: `{shown}`: {error}")
                })?,
            };
            asked.insert(host.clone(), vars);
        }
        Ok(asked)
    }

    fn run(&mut self, arguments: &[&str]) -> Result<String, String> {
        let shown = format!("{} {}", self.path.display(), arguments.join(" "));
        let absolute = std::fs::canonicalize(self.path).unwrap_or_else(|_| self.path.to_owned());
        let output = Command::new(absolute).args(arguments).output();
        let output =
            output.map_err(|error| format!("Failed to execute inventory script command `{shown}`: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if !output.status.success() {
            let said = if said.is_empty() { "it said nothing" } else { &said };
            return Err(match output.status.code() {
                Some(code) => format!("Inventory script returned non-zero exit code {code}: `{shown}`: {said}"),
                None => format!("`{shown}` ended with {}: {said}", output.status),
            });
        }
        if !said.is_empty() {
            self.said.push(format!("`{shown}` says: {said}"));
        }
        String::from_utf8(output.stdout).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            self.warnings.append(&mut self.said);
            format!(
                "Inventory script result contained characters that cannot be interpreted as UTF-8: byte {at} of what \
                 `{shown}` wrote"
            )
        })
    }

    /// Tells a marked value that is none.
    fn checked(&self, json: &Json) -> Result<(), String> {
        match json {
            Json::Array(items) => items.iter().try_for_each(|item| self.checked(item)),
            Json::Object(entries) => match entries.get("__ansible_vault") {
                Some(Json::String(_)) => Ok(()),
                Some(other) => Err(format!("`__ansible_vault` holds a vaulted text, and is '{}'", what(other))),
                None => entries.values().try_for_each(|value| self.checked(value)),
            },
            _ => Ok(()),
        }
    }

    /// Texts of an inventory script may be templates, as Ansible has it, but those that are marked.
    fn value(&self, json: &Json) -> Result<Value, String> {
        Ok(match json {
            Json::String(text) => Value::Str(Str::template(text.as_str(), Place::default())),
            Json::Array(items) => Value::list(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?),
            Json::Object(entries) => {
                if let Some(Json::String(text)) = entries.get("__ansible_unsafe") {
                    return Ok(Value::str(text.as_str()));
                }
                if let Some(Json::String(text)) = entries.get("__ansible_vault") {
                    let node = Node { place: Place::default(), kind: Kind::Vault(text.as_str().into()) };
                    return self.vault.value(&node).map_err(|problem| problem.message);
                }
                let entry = |(key, value): (&String, &Json)| Ok((Value::str(key.as_str()), self.value(value)?));
                Value::map(entries.iter().map(entry).collect::<Result<Map, String>>()?)
            }
            other => Value::from_json(other.clone()),
        })
    }
}

/// Returns a value without the marks of what is no template.
fn bare(json: &Json) -> Json {
    match json {
        Json::Object(entries) => match entries.get("__ansible_unsafe") {
            Some(text) => text.clone(),
            None => entries.iter().map(|(key, value)| (key.clone(), bare(value))).collect::<Object<_, _>>().into(),
        },
        Json::Array(items) => items.iter().map(bare).collect(),
        other => other.clone(),
    }
}

/// Returns a type's name as those know it who write inventory scripts.
fn what(json: &Json) -> &'static str {
    match json {
        Json::Null => "NoneType",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_f64() => "float",
        Json::Number(_) => "int",
        Json::String(_) => "str",
        Json::Array(_) => "list",
        Json::Object(_) => "dict",
    }
}
