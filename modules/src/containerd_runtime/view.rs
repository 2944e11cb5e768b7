//! What the daemon itself makes of a configuration: its own `config dump`, and what differs between two of them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::host::Map;
use crate::order::sort;

/// One `containerd config dump`.
#[derive(Debug, Clone)]
pub(super) struct View {
    all: Value,
    /// The dump itself.
    pub text: String,
    /// The configuration version that this daemon speaks.
    pub version: i64,
    pub disabled: Vec<String>,
    /// `None` when the daemon has no CRI plugin at all.
    pub cri: Option<Cri>,
    /// Where the daemon answers.
    pub address: String,
    /// Where it keeps its data.
    pub root: String,
    /// The files that it read: 1.x lists the main one too, 2.x repeats the patterns.
    pub imports: Vec<String>,
}

/// The part that decides how pods run.
#[derive(Debug, Clone)]
pub(super) struct Cri {
    pub default: String,
    pub runtimes: Map,
}

/// Where the runtimes are, by the name of the plugin that holds them; 2.x has the first.
const PLUGINS: [&str; 2] = ["io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"];

const SNAPSHOTTERS: [&str; 7] = ["aufs", "blockfile", "btrfs", "devmapper", "native", "overlayfs", "zfs"];

impl View {
    /// Reads a dump.
    ///
    /// # Errors
    /// A sentence for a person when it is not what a daemon prints.
    pub(super) fn parse(dump: &str) -> Result<View, String> {
        let document: toml_edit::DocumentMut =
            dump.parse().map_err(|error| format!("its `config dump` can't be read: {error}"))?;
        let mut all = value_of(document.as_item());
        name_in_full(&mut all);
        let text = |keys: &[&str]| {
            let found = keys.iter().try_fold(&all, |value, key| value.get(key));
            found.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let list = |key: &str| {
            let items = all.get(key).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(|item| item.as_str().map(str::to_owned)).collect::<Vec<_>>()
        };
        let cri = PLUGINS.iter().find_map(|name| {
            let containerd = all.get("plugins")?.get(name)?.get("containerd")?;
            let default = containerd.get("default_runtime_name").and_then(Value::as_str).unwrap_or("").to_owned();
            let runtimes = containerd.get("runtimes").and_then(Value::as_object).cloned().unwrap_or_default();
            Some(Cri { default, runtimes })
        });
        let address = text(&["plugins", "io.containerd.server.v1.grpc", "address"])
            .or_else(|| text(&["grpc", "address"]))
            .unwrap_or_else(|| "/run/containerd/containerd.sock".to_owned());
        Ok(View {
            version: all.get("version").and_then(Value::as_i64).ok_or("its `config dump` names no version")?,
            disabled: list("disabled_plugins"),
            imports: list("imports"),
            root: text(&["root"]).unwrap_or_else(|| "/var/lib/containerd".to_owned()),
            address,
            cri,
            text: dump.to_owned(),
            all,
        })
    }

    /// Returns the CRI plugin's part; `None` when the plugin is disabled or not there.
    pub(super) fn enabled_cri(&self) -> Option<&Cri> {
        if self.disabled.iter().any(|name| name.contains("cri")) { None } else { self.cri.as_ref() }
    }

    /// Returns what follows one of the CRI plugin's settings outside of its `runtimes`, such as
    /// `["containerd", "default_runtime", "runtime_type"]`.
    pub(super) fn cri_text(&self, keys: &[&str]) -> Option<&str> {
        PLUGINS.iter().find_map(|name| {
            let plugin = self.all.get("plugins")?.get(name)?;
            let found = keys.iter().try_fold(plugin, |value, key| value.get(key))?;
            found.as_str().filter(|text| !text.is_empty())
        })
    }

    /// Whether one of the CRI plugin's own settings is true.
    pub(super) fn cri_flag(&self, key: &str) -> bool {
        let flag = |name: &&str| self.all.get("plugins")?.get(name)?.get(key)?.as_bool();
        PLUGINS.iter().filter_map(flag).any(|set| set)
    }

    /// Returns every setting by its dotted path.
    fn settings(&self) -> BTreeMap<String, &Value> {
        let mut settings = BTreeMap::new();
        flatten(&self.all, "", &mut settings);
        settings
    }
}

/// Turns names of version 1 in `disabled_plugins`, which 1.x repeats as they were, into those of the plugins that they
/// stand for.
fn name_in_full(all: &mut Value) {
    let plugins = all.get("plugins").and_then(Value::as_object).into_iter().flat_map(|plugins| plugins.keys());
    let plugins: Vec<String> = plugins.cloned().collect();
    for name in all.get_mut("disabled_plugins").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(short) = name.as_str().filter(|name| !name.contains('.')).map(str::to_owned) else { continue };
        let listed = plugins.iter().find(|plugin| plugin.rsplit_once('.').is_some_and(|(_, last)| last == short));
        // A plugin without settings is in no dump.
        let snapshotter =
            SNAPSHOTTERS.contains(&short.as_str()).then(|| format!("io.containerd.snapshotter.v1.{short}"));
        if let Some(full) = listed.cloned().or(snapshotter) {
            *name = Value::from(full);
        }
    }
}

/// One setting that two views have differently.
#[derive(Debug, PartialEq)]
pub(super) struct Difference {
    pub path: String,
    pub before: Value,
    pub after: Value,
}

/// Returns every effective difference but those in which files are read and in which version.
pub(super) fn differences(before: &View, after: &View) -> Vec<Difference> {
    let (old, new) = (before.settings(), after.settings());
    let mut paths: Vec<&String> = old.keys().chain(new.keys()).collect();
    sort(&mut paths);
    paths.dedup();
    let mut differences = Vec::new();
    for path in paths {
        let (a, b) = (old.get(path).copied().unwrap_or(&Value::Null), new.get(path).copied().unwrap_or(&Value::Null));
        let uninteresting = path == "version" || path == "imports";
        if !uninteresting && a != b && !(is_empty(a) && is_empty(b)) {
            differences.push(Difference { path: path.clone(), before: a.clone(), after: b.clone() });
        }
    }
    differences
}

/// Whether a difference is about one runtime's table or the name of the default one, and nothing else.
pub(super) fn is_about(difference: &Difference, runtime: &str) -> bool {
    let Some((_, rest)) = difference.path.split_once("].containerd.") else { return false };
    rest == "default_runtime_name"
        || rest
            .strip_prefix("runtimes.[")
            .and_then(|rest| rest.split_once(']'))
            .is_some_and(|(name, _)| name == runtime)
}

/// Whether the daemon would take a value and none for the same: the zero of its type.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
    }
}

/// Paths look like `plugins.[io.containerd.cri.v1.runtime].containerd.runtimes.[runc].runtime_type`: names that users
/// choose are in brackets, since they may hold dots.
fn flatten<'a>(value: &'a Value, path: &str, into: &mut BTreeMap<String, &'a Value>) {
    let Value::Object(entries) = value else {
        into.insert(path.to_owned(), value);
        return;
    };
    let chosen = path == "plugins" || path.ends_with(".runtimes");
    for (key, value) in entries {
        let step = if chosen { format!("[{key}]") } else { key.clone() };
        flatten(value, &if path.is_empty() { step } else { format!("{path}.{step}") }, into);
    }
}

/// Turns TOML into the values that the rest of the program knows.
pub(super) fn value_of(item: &toml_edit::Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return Value::Object(table.iter().map(|(key, item)| (key.to_owned(), value_of(item))).collect());
    }
    if let Some(tables) = item.as_array_of_tables() {
        let table = |table: &toml_edit::Table| value_of(&toml_edit::Item::Table(table.clone()));
        return Value::Array(tables.iter().map(table).collect());
    }
    match item.as_value() {
        Some(toml_edit::Value::String(text)) => Value::from(text.value().as_str()),
        Some(toml_edit::Value::Integer(number)) => Value::from(*number.value()),
        Some(toml_edit::Value::Float(number)) => Value::from(*number.value()),
        Some(toml_edit::Value::Boolean(value)) => Value::from(*value.value()),
        Some(toml_edit::Value::Datetime(time)) => Value::from(time.value().to_string()),
        Some(toml_edit::Value::Array(items)) => {
            Value::Array(items.iter().map(|item| value_of(&toml_edit::Item::Value(item.clone()))).collect())
        }
        Some(toml_edit::Value::InlineTable(_)) | None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "version = 2\nroot = '/r'\n[plugins.'io.containerd.grpc.v1.cri'.containerd]\n\
        default_runtime_name = 'runc'\n[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]\n\
        runtime_type = 'io.containerd.runc.v2'\nruntime_root = ''\n";

    #[test]
    fn tells_what_differs_by_path() {
        let old = View::parse(OLD).expect("a dump");
        let new =
            format!("{OLD}base_runtime_spec = '/s.json'\n[plugins.'io.containerd.grpc.v1.cri'.registry]\nx = 1\n");
        let found = differences(&old, &View::parse(&new).expect("a dump"));
        let paths: Vec<&str> = found.iter().map(|difference| difference.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "plugins.[io.containerd.grpc.v1.cri].containerd.runtimes.[runc].base_runtime_spec",
                "plugins.[io.containerd.grpc.v1.cri].registry.x",
            ]
        );
        assert!(is_about(&found[0], "runc") && !is_about(&found[0], "nvidia") && !is_about(&found[1], "runc"));
    }

    #[test]
    fn sees_a_disabled_plugin() {
        let view = View::parse("version = 3\ndisabled_plugins = ['io.containerd.grpc.v1.cri']\n").expect("a dump");
        assert!(view.enabled_cri().is_none() && view.address == "/run/containerd/containerd.sock");
    }
}
