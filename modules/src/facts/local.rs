//! The host's own facts: `*.fact` files with JSON or INI in them, or programs that print either.

use std::time::Duration;

use serde_json::Value;

use super::{Files, map};
use crate::host::{Host, Map, Probe};

pub(super) fn facts(host: &dyn Host, folder: &str, timeout: Duration, warnings: &mut Vec<String>) -> Map {
    let files = Files(host);
    let mut local = Map::new();
    for file in files.names(folder) {
        let Some(name) = file.strip_suffix(".fact") else { continue };
        let path = format!("{folder}/{file}");
        let value = match text_of(host, &path, timeout) {
            Ok(text) => parsed(&text).ok_or_else(|| format!("`{path}` holds neither JSON nor INI")),
            Err(why) => Err(why),
        };
        let value = value.unwrap_or_else(|why| {
            warnings.push(why.clone());
            why.into()
        });
        local.insert(name.to_owned(), value);
    }
    map([("local", local.into())])
}

/// Returns what a fact file holds, or prints when its owner may execute it.
fn text_of(host: &dyn Host, path: &str, timeout: Duration) -> Result<String, String> {
    let stat = host.stat(path).map_err(|error| error.to_string())?;
    let stat = stat.ok_or_else(|| format!("`{path}` leads nowhere"))?;
    if stat.mode & 0o100 == 0 {
        let bytes = host.read(path).map_err(|error| error.to_string())?.unwrap_or_default();
        return String::from_utf8(bytes).map_err(|_| format!("`{path}` is not UTF-8"));
    }
    let probe = Probe { timeout_s: Some(timeout.as_secs().max(1)), ..Probe::new([path]) };
    let output = host.probe(&probe).map_err(|error| format!("run `{path}`: {}", error.message))?;
    if !output.success() {
        return Err(format!("`{path}` exited {}: {}", output.rc, output.stderr.trim()));
    }
    Ok(output.stdout)
}

fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| ini(text).map(Value::from))
}

/// Reads INI as Python's `configparser` does: names in lower case, a deeper line goes on the one before it, `#` and
/// `;` begin comments, and what `DEFAULT` holds is in every section.
fn ini(text: &str) -> Option<Map> {
    let mut sections: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        let entries = sections.last_mut().map(|(_, entries)| entries);
        if line.starts_with([' ', '\t'])
            && let Some((_, value)) = entries.and_then(|entries| entries.last_mut())
        {
            value.push('\n');
            value.push_str(trimmed);
        } else if let Some(name) = trimmed.strip_prefix('[') {
            sections.push((name.split(']').next()?.to_owned(), Vec::new()));
        } else {
            let at = trimmed.find(['=', ':'])?;
            let (name, value) = (trimmed[..at].trim().to_lowercase(), trimmed[at + 1..].trim().to_owned());
            sections.last_mut()?.1.push((name, value));
        }
    }
    let defaults: Vec<(String, String)> =
        sections.iter().filter(|(name, _)| name == "DEFAULT").flat_map(|(_, entries)| entries.clone()).collect();
    let mut facts = Map::new();
    for (name, entries) in sections.into_iter().filter(|(name, _)| name != "DEFAULT") {
        let all = defaults.iter().cloned().chain(entries);
        facts.insert(name, all.map(|(name, value)| (name, Value::from(value))).collect::<Map>().into());
    }
    Some(facts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_and_ini_become_mappings() {
        assert_eq!(parsed("{\"a\": [1]}"), Some(json!({"a": [1]})));
        let text = "[DEFAULT]\nregion = eu\n[GPU]\n# how many\nCount: 8\nnote = two\n  lines\n";
        assert_eq!(parsed(text), Some(json!({"GPU": {"region": "eu", "count": "8", "note": "two\nlines"}})));
        assert_eq!(parsed("no section = 1"), None);
    }
}
