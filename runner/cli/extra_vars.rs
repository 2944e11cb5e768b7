//! `-e`: `key=value` words, YAML or JSON, or `@FILE`.

use std::path::Path;

use super::Problem;
use crate::playbook::parse_key_values;
use crate::source::{Diagnostic, FileId, Place};
use crate::value::{Map, Str, Value};
use crate::vault::Vault;

/// The exit status of what can't be parsed, as ansible-playbook's.
const EXIT_UNPARSED: u8 = 4;
/// The exit status of what is no mapping, as ansible-playbook's.
const EXIT_NO_MAPPING: u8 = 5;

/// Reads every `-e` in turn; later ones win.
///
/// # Errors
/// A sentence for a person, with the place where there is one, and the exit status that it has in Ansible.
pub fn read(given: &[String], vault: &Vault) -> Result<Map, Problem> {
    let unparsed = |problem: Diagnostic| Problem { message: problem.render(false), code: EXIT_UNPARSED };
    let mut vars = Map::new();
    for text in given {
        if let Some(file) = text.strip_prefix('@') {
            // A pipe serves, too: `-e @<(sops -d secrets.yml)`.
            if !Path::new(file).exists() || Path::new(file).is_dir() {
                let what = if Path::new(file).is_dir() { "is a folder" } else { "is not there" };
                return Err(Problem::new(format!("--extra-vars: the file `{file}` {what}")));
            }
            let parsed = vault.read_yaml(Path::new(file)).map_err(unparsed)?;
            let Some(node) = parsed.documents.first().filter(|node| !node.is_null()) else { continue };
            vars.extend(mapping(vault.value(node).map_err(unparsed)?, file)?);
        } else if text.trim_start().starts_with(['{', '[']) {
            let parsed =
                crate::yaml::parse(FileId::register(Path::new("--extra-vars"), text.as_str())).map_err(unparsed)?;
            for node in parsed.documents {
                vars.extend(mapping(node.value(), "--extra-vars")?);
            }
        } else {
            let (pairs, rest) =
                parse_key_values(text).map_err(|message| Problem::usage(format!("--extra-vars: {message}")))?;
            if !rest.is_empty() {
                return Err(Problem::usage(format!("--extra-vars: `{rest}` is not of the form `key=value`")));
            }
            for (key, value) in pairs {
                vars.insert(key, Value::Str(Str::template(value, Place::default())));
            }
        }
    }
    Ok(vars)
}

fn mapping(value: Value, what: &str) -> Result<Map, Problem> {
    match value {
        Value::Map(map) => Ok((*map).clone()),
        other => {
            let message = format!("{what}: variables must be a mapping, found {}", other.kind());
            Err(Problem { message, code: EXIT_NO_MAPPING })
        }
    }
}
