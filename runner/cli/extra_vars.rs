//! `-e`: `key=value` words, YAML or JSON, or `@FILE`.

use std::path::Path;

use crate::playbook::parse_key_values;
use crate::source::{FileId, Place};
use crate::value::{Map, Str, Value};
use crate::vault::Vault;

/// Reads every `-e` in turn; later ones win.
///
/// # Errors
/// A sentence for a person, with the place where there is one.
pub fn read(given: &[String], vault: &Vault) -> Result<Map, String> {
    let mut vars = Map::new();
    for text in given {
        if let Some(file) = text.strip_prefix('@') {
            let parsed = vault.read_yaml(Path::new(file)).map_err(|problem| problem.render(false))?;
            let Some(node) = parsed.documents.first().filter(|node| !node.is_null()) else { continue };
            vars.extend(mapping(vault.value(node).map_err(|problem| problem.render(false))?, file)?);
        } else if text.trim_start().starts_with(['{', '[']) {
            let parsed = crate::yaml::parse(FileId::register(Path::new("--extra-vars"), text.as_str()))
                .map_err(|problem| problem.render(false))?;
            for node in parsed.documents {
                vars.extend(mapping(node.value(), "--extra-vars")?);
            }
        } else {
            let (pairs, rest) = parse_key_values(text)?;
            if !rest.is_empty() {
                return Err(format!("--extra-vars: `{rest}` is not of the form `key=value`"));
            }
            for (key, value) in pairs {
                vars.insert(key, Value::Str(Str::template(value, Place::default())));
            }
        }
    }
    Ok(vars)
}

fn mapping(value: Value, what: &str) -> Result<Map, String> {
    match value {
        Value::Map(map) => Ok((*map).clone()),
        other => Err(format!("{what}: variables must be a mapping, found {}", other.kind())),
    }
}
