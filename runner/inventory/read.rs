//! Reads inventory sources: files, folders, scripts, lists of hosts; then `group_vars/` and `host_vars/`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use super::{Inventory, ini, yaml};
use crate::source::{Diagnostic, FileId, Place};
use crate::value::{Map, Value};
use crate::vault::Vault;

/// Names that are no inventory when a folder is read. Source: `INVENTORY_IGNORE_EXTS` and its kin of ansible-core.
const IGNORED_ENDINGS: &[&str] =
    &[".pyc", ".pyo", ".swp", ".bak", "~", ".rpm", ".md", ".txt", ".rst", ".orig", ".cfg", ".retry", ".ini.bak"];
const VARS_ENDINGS: &[&str] = &["", ".yml", ".yaml", ".json"];

/// How inventories are read: what the configuration says about it.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Whether mappings of one name are put together: `hash_behaviour = merge`.
    pub merge: bool,
    /// Endings of files in a folder that are no inventory; the usual ones when absent.
    pub ignored_endings: Option<Vec<String>>,
    /// Names of files in a folder that are none either.
    pub ignored_names: Vec<Arc<fancy_regex::Regex>>,
}

/// What reading needs and gathers.
pub struct Reader<'a> {
    pub vault: &'a Vault,
    reading: &'a Reading,
    pub problems: Vec<Diagnostic>,
}

/// Reads sources in their order; later ones win. Where there are none, the machine itself is the only host, over a
/// local connection. `playbooks` are the folders whose `group_vars/` and `host_vars/`
/// count too.
pub fn read(
    sources: &[String],
    playbooks: &[PathBuf],
    reading: &Reading,
    vault: &Vault,
) -> (Inventory, Vec<Diagnostic>) {
    let mut inventory = Inventory { merge: reading.merge, ..Inventory::new() };
    let mut reader = Reader { vault, reading, problems: Vec::new() };
    let mut folders: Vec<PathBuf> = Vec::new();
    for source in sources {
        let path = Path::new(source);
        if source.contains(',') && !path.exists() {
            for name in source.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                reader.listed(&mut inventory, name);
            }
        } else if path.is_dir() {
            folders.push(path.to_owned());
            reader.folder(&mut inventory, path);
        } else if path.exists() {
            folders.push(path.parent().map_or_else(|| PathBuf::from("."), Path::to_owned));
            reader.file(&mut inventory, path);
        } else {
            let message = format!("no inventory `{source}`");
            let help = "a list of hosts needs a comma, as in `-i host,`";
            reader.problems.push(Diagnostic::error(Place::default(), message).help(help));
        }
    }
    folders.dedup();
    for folder in &folders {
        reader.vars_folders(&mut inventory, folder, 0);
    }
    for folder in playbooks {
        reader.vars_folders(&mut inventory, folder, 1);
    }
    if sources.is_empty() {
        let vars = Map::from_iter([("ansible_connection".into(), "local".into())]);
        inventory.add_host("localhost", &[super::UNGROUPED.to_owned()], vars);
    }
    for name in ["localhost", "127.0.0.1", "::1"] {
        inventory.ensure_implicit(name);
    }
    (inventory, reader.problems)
}

impl Reader<'_> {
    fn listed(&mut self, inventory: &mut Inventory, name: &str) {
        match super::range::expand(name) {
            Ok(names) => names.iter().for_each(|name| {
                inventory.put(name, super::UNGROUPED, Place::default());
            }),
            Err(message) => self.problems.push(Diagnostic::error(Place::default(), message)),
        }
    }

    fn folder(&mut self, inventory: &mut Inventory, folder: &Path) {
        for path in self.sorted(folder) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let ignored = name.starts_with('.')
                || matches!(name.as_str(), "group_vars" | "host_vars")
                || match &self.reading.ignored_endings {
                    Some(endings) => endings.iter().any(|ending| name.ends_with(ending.as_str())),
                    None => IGNORED_ENDINGS.iter().any(|ending| name.ends_with(ending)),
                }
                || self.reading.ignored_names.iter().any(|pattern| pattern.is_match(&name).unwrap_or(false));
            if ignored {
                continue;
            }
            if path.is_dir() { self.folder(inventory, &path) } else { self.file(inventory, &path) }
        }
    }

    fn sorted(&mut self, folder: &Path) -> Vec<PathBuf> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                let message = format!("read `{}`: {error}", folder.display());
                self.problems.push(Diagnostic::error(Place::default(), message));
                return Vec::new();
            }
        };
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        paths.sort();
        paths
    }

    fn file(&mut self, inventory: &mut Inventory, path: &Path) {
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        let is_yaml = matches!(extension.as_str(), "yml" | "yaml" | "json");
        if !is_yaml && fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0) {
            return self.script(inventory, path);
        }
        let read = fs::read(path).map_err(|error| format!("read `{}`: {error}", path.display()));
        let read = read.and_then(|bytes| {
            let vaulted = crate::vault::is_vaulted(&bytes);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if !vaulted {
                return Ok((text, false));
            }
            let plain = self.vault.decrypt(&text);
            let plain = plain.map_err(|message| format!("decrypt `{}`: {message}", path.display()))?;
            Ok((String::from_utf8_lossy(&plain).into_owned(), true))
        });
        let (text, is_vaulted) = match read {
            Ok(read) => read,
            Err(message) => return self.problems.push(Diagnostic::error(Place::default(), message)),
        };
        let starts_as_yaml = text
            .lines()
            .find(|line| !line.trim().is_empty() && !line.starts_with('#'))
            .is_some_and(|line| line.trim_end() == "---" || line.trim_end().ends_with(':') || line.starts_with('{'));
        if is_yaml || starts_as_yaml {
            match self.vault.read_yaml(path) {
                Ok(parsed) => {
                    self.problems.extend(parsed.warnings);
                    match parsed.documents.first() {
                        Some(node) if node.get("plugin").is_some() => self.plugin(node),
                        Some(node) => yaml::read(inventory, node, self.vault, &mut self.problems),
                        None => {}
                    }
                }
                Err(problem) => self.problems.push(problem),
            }
        } else {
            if is_vaulted {
                let values = text.split_whitespace().filter_map(|word| word.split_once('='));
                values.for_each(|(_, value)| crate::report::secrets::register(value.trim_matches(['"', '\''])));
            }
            // Places in a vaulted file show no line of it.
            let blank: String = text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
            let file = FileId::register(path, if is_vaulted { &blank } else { &*text });
            ini::read(inventory, file, &text, &mut self.problems);
        }
    }

    fn plugin(&mut self, node: &crate::yaml::Node) {
        let place = node.get("plugin").map_or(node.place, |plugin| plugin.place);
        let name = node.get("plugin").map(crate::yaml::Node::text).unwrap_or_default();
        let message = format!("inventory plugin `{name}` is not supported");
        let help = "use a static file, or a script that answers `--list`";
        self.problems.push(Diagnostic::error(place, message).help(help));
    }

    /// An executable inventory answers `--list` with JSON, and `--host NAME` unless it gave `_meta`.
    fn script(&mut self, inventory: &mut Inventory, path: &Path) {
        let listed = match run(path, &["--list"]) {
            Ok(listed) => listed,
            Err(message) => return self.problems.push(Diagnostic::error(Place::default(), message)),
        };
        let file = FileId::register(path, "");
        let place = file.at(1, 1);
        let serde_json::Value::Object(groups) = listed else {
            let message = format!("`{} --list` answered no JSON object", path.display());
            return self.problems.push(Diagnostic::error(Place::default(), message));
        };
        let mut named: Vec<String> = Vec::new();
        let mut hosts_vars = groups.get("_meta").and_then(|meta| meta.get("hostvars")).cloned();
        for (name, group) in groups.iter().filter(|(name, _)| *name != "_meta") {
            inventory.group(name);
            let texts = |value: Option<&serde_json::Value>| -> Vec<String> {
                let items = value.and_then(|value| value.as_array()).cloned().unwrap_or_default();
                items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
            };
            let hosts = if group.is_array() { texts(Some(group)) } else { texts(group.get("hosts")) };
            for host in hosts {
                inventory.put(&host, name, place);
                if !named.contains(&host) {
                    named.push(host);
                }
            }
            for child in texts(group.get("children")) {
                if let (false, Err(message)) = (name == super::ALL, inventory.nest(name, &child)) {
                    self.problems.push(Diagnostic::error(place, message));
                } else {
                    inventory.group(&child);
                }
            }
            if let Some(serde_json::Value::Object(vars)) = group.get("vars") {
                for (key, value) in vars {
                    inventory.set_group_var(name, key.as_str().into(), templates(value.clone()));
                }
            }
        }
        if hosts_vars.is_none() {
            let mut asked = serde_json::Map::new();
            for host in named {
                match run(path, &["--host", &host]) {
                    Ok(vars) => {
                        asked.insert(host, vars);
                    }
                    Err(message) => self.problems.push(Diagnostic::error(Place::default(), message)),
                }
            }
            hosts_vars = Some(serde_json::Value::Object(asked));
        }
        for (host, vars) in hosts_vars.as_ref().and_then(|vars| vars.as_object()).into_iter().flatten() {
            inventory.host(host, place);
            for (key, value) in vars.as_object().into_iter().flatten() {
                inventory.set_host_var(host, key.as_str().into(), templates(value.clone()), place);
            }
        }
    }

    /// Reads `group_vars/` and `host_vars/` of a folder; `which` is 0 beside the inventory, 1 beside the playbook.
    fn vars_folders(&mut self, inventory: &mut Inventory, folder: &Path, which: usize) {
        let merge = self.reading.merge;
        let groups = folder.join("group_vars");
        if groups.is_dir() {
            for name in inventory.group_list() {
                let vars = self.vars_of(&groups, &name);
                if !vars.is_empty() {
                    let group = inventory.group(&name);
                    if let Some(priority) = vars.get("ansible_group_priority") {
                        group.priority = priority.to_string().parse().unwrap_or(1);
                    }
                    add(&mut group.files[which], vars, merge);
                }
            }
        }
        for name in self.others_in(&groups, |name| inventory.groups.contains_key(name)) {
            let vars = self.vars_without_problems(&groups, &name);
            add(&mut inventory.waiting_groups.entry(name.into()).or_default()[which], vars, merge);
        }
        let hosts = folder.join("host_vars");
        for name in self.others_in(&hosts, |name| inventory.hosts.contains_key(name)) {
            let vars = self.vars_without_problems(&hosts, &name);
            add(&mut inventory.waiting_hosts.entry(name.into()).or_default()[which], vars, merge);
        }
        if hosts.is_dir() {
            for name in inventory.host_list() {
                let vars = self.vars_of(&hosts, &name);
                if !vars.is_empty()
                    && let Some(host) = inventory.hosts.get_mut(&*name)
                {
                    add(&mut host.files[which], vars, merge);
                }
            }
        }
    }

    /// Returns the names in a folder of variables that nobody has yet: they may come during the run.
    fn others_in(&mut self, folder: &Path, known: impl Fn(&str) -> bool) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .map(|entries| {
                entries
                    .filter_map(Result::ok)
                    .map(|entry| entry.file_name().to_string_lossy().into_owned())
                    .map(|name| {
                        let short = [".yml", ".yaml", ".json"].iter().find_map(|ending| name.strip_suffix(ending));
                        short.unwrap_or(&name).to_owned()
                    })
                    .filter(|name| !name.starts_with('.') && !known(name))
                    .collect()
            })
            .unwrap_or_default();
        names.sort();
        names.dedup();
        names
    }

    /// Reads variables of a name that nobody has yet: a mistake in them is nobody's yet either.
    fn vars_without_problems(&mut self, folder: &Path, name: &str) -> Map {
        let before = self.problems.len();
        let vars = self.vars_of(folder, name);
        self.problems.truncate(before);
        vars
    }

    fn vars_of(&mut self, folder: &Path, name: &str) -> Map {
        let mut vars = Map::new();
        for ending in VARS_ENDINGS {
            let path = folder.join(format!("{name}{ending}"));
            if path.is_dir() {
                self.vars_in(&path, &mut vars);
            } else if path.is_file() {
                self.vars_file(&path, &mut vars);
            }
        }
        vars
    }

    fn vars_in(&mut self, folder: &Path, vars: &mut Map) {
        for path in self.sorted(folder) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') || name.ends_with('~') {
                continue;
            }
            if path.is_dir() {
                self.vars_in(&path, vars);
            } else if matches!(extension.as_str(), "" | "yml" | "yaml" | "json") {
                self.vars_file(&path, vars);
            }
        }
    }

    fn vars_file(&mut self, path: &Path, vars: &mut Map) {
        let parsed = match self.vault.read_yaml(path) {
            Ok(parsed) => parsed,
            Err(problem) => return self.problems.push(problem),
        };
        self.problems.extend(parsed.warnings);
        let Some(node) = parsed.documents.first().filter(|node| !node.is_null()) else { return };
        match self.vault.value(node) {
            Ok(Value::Map(map)) => crate::vars::put_over(vars, &map, self.reading.merge),
            Ok(_) => self
                .problems
                .push(Diagnostic::error(node.place, format!("variables must be a mapping, found {}", node.what()))),
            Err(problem) => self.problems.push(problem),
        }
    }
}

fn add(layer: &mut Arc<Map>, vars: Map, merge: bool) {
    crate::vars::put_over(Arc::make_mut(layer), &vars, merge);
}

/// Texts of an inventory script may be templates, as Ansible has it.
fn templates(json: serde_json::Value) -> Value {
    use crate::value::Str;
    match json {
        serde_json::Value::String(text) => Value::Str(Str::template(text, Place::default())),
        serde_json::Value::Array(items) => Value::list(items.into_iter().map(templates).collect()),
        serde_json::Value::Object(entries) => {
            Value::map(entries.into_iter().map(|(key, value)| (Value::str(key), templates(value))).collect())
        }
        other => Value::from_json(other),
    }
}

fn run(path: &Path, arguments: &[&str]) -> Result<serde_json::Value, String> {
    let shown = format!("{} {}", path.display(), arguments.join(" "));
    let absolute = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let output = Command::new(absolute).args(arguments).output().map_err(|error| format!("run `{shown}`: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = if said.trim().is_empty() { "it said nothing" } else { said.trim() };
        return Err(format!("`{shown}` ended with {}: {said}", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("`{shown}` answered no JSON: {error}"))
}
