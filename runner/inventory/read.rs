//! Reads inventory sources: files, folders, scripts, lists of hosts; then `group_vars/` and `host_vars/`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::plugin::{ENABLE, Enabled, Plugin};
use super::{GroupNames, Inventory, UNGROUPED, ini, range, toml, yaml};
use crate::source::{Diagnostic, FileId, Place, Severity};
use crate::value::{Map, Value};
use crate::vars::FactCache;
use crate::vault::Vault;

/// Names that are no inventory when a folder is read. Source: `INVENTORY_IGNORE_EXTS` and its kin of ansible-core.
const IGNORED_ENDINGS: &[&str] =
    &[".pyc", ".pyo", ".swp", ".bak", "~", ".rpm", ".md", ".txt", ".rst", ".orig", ".cfg", ".retry", ".ini.bak"];

/// How inventories are read: what the configuration says about it.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Whether mappings of one name are put together: `hash_behaviour = merge`.
    pub merge: bool,
    /// Endings of files in a folder that are no inventory; the usual ones when absent.
    pub ignored_endings: Option<Vec<String>>,
    /// Names of files in a folder that are none either.
    pub ignored_names: Vec<Arc<fancy_regex::Regex>>,
    /// The plugins that may read sources.
    pub enabled: Enabled,
    /// What becomes of the names of groups that are no names of variables.
    pub group_names: GroupNames,
    /// Whether what scripts write to their standard error is kept from the user.
    pub silent_scripts: bool,
    /// The variables of the command line, for plugins that are told to use them.
    pub extra_vars: Arc<Map>,
    /// Facts of earlier runs, which the expressions of plugins see.
    pub fact_cache: Option<FactCache>,
    /// What is wrong with the settings themselves.
    pub warnings: Vec<Diagnostic>,
}

/// What reading needs and gathers.
pub struct Reader<'a> {
    pub vault: &'a Vault,
    pub(super) reading: &'a Reading,
    pub problems: Vec<Diagnostic>,
    /// The folders of the files that have been read.
    folders: Vec<PathBuf>,
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
    let mut inventory = Inventory { merge: reading.merge, names: reading.group_names, ..Inventory::new() };
    let mut reader = Reader { vault, reading, problems: reading.warnings.clone(), folders: Vec::new() };
    let mut folders: Vec<PathBuf> = Vec::new();
    for source in sources {
        let path = Path::new(source);
        if source.contains(',') && !path.exists() {
            reader.listed(&mut inventory, source);
        } else if path.is_dir() {
            folders.push(path.to_owned());
            reader.folder(&mut inventory, path);
        } else if path.exists() {
            folders.push(folder_of(path));
            reader.file(&mut inventory, path);
        } else {
            let message = format!("no inventory `{source}`");
            let help = "No inventory was parsed: a list of hosts needs a comma, as in `-i host,`";
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
    reader.problems.extend(inventory.about_names());
    (inventory, reader.problems)
}

fn folder_of(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

impl Reader<'_> {
    /// Takes in problems; returns whether there is a mistake among them.
    pub(super) fn mistaken(&mut self, problems: Vec<Diagnostic>) -> bool {
        let wrong = problems.iter().any(|problem| problem.severity == Severity::Error);
        self.problems.extend(problems);
        wrong
    }

    /// Returns the inventory with the variables that lie beside what has been read up to now.
    pub(super) fn with_vars_files(&mut self, inventory: &Inventory) -> Inventory {
        let before = self.problems.len();
        let mut all = inventory.clone();
        for folder in self.folders.clone() {
            self.vars_folders(&mut all, &folder, 0);
        }
        // They are read again in the end, and what is wrong with them is told then.
        self.problems.truncate(before);
        all
    }

    /// Reads a list of hosts: `-i one,two`.
    fn listed(&mut self, inventory: &mut Inventory, source: &str) {
        let Some(plugin) = self.reading.enabled.first_of(&[Plugin::HostList, Plugin::AdvancedHostList]) else {
            return self.not_enabled(source, Plugin::HostList);
        };
        for word in source.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, port) = ini::host_and_port(word);
            let names = if range::is_open(name) {
                if plugin == Plugin::AdvancedHostList {
                    let message = "Unable to parse address from hostname, leaving unchanged";
                    let message = format!("{message}: `{name}`: host range must specify end value");
                    self.problems.push(Diagnostic::warning(Place::default(), message));
                }
                vec![name.to_owned()]
            } else {
                match range::expand(name) {
                    Ok(names) => names,
                    Err(message) => {
                        let message = match plugin {
                            Plugin::AdvancedHostList => {
                                format!("Failed to parse inventory with 'advanced_host_list': {message}")
                            }
                            _ => message,
                        };
                        self.problems.push(Diagnostic::error(Place::default(), message));
                        continue;
                    }
                }
            };
            for name in names {
                inventory.put(&name, UNGROUPED, Place::default());
                if let Some(port) = port {
                    inventory.set_host_var(&name, "ansible_port".into(), Value::Int(port), Place::default());
                }
            }
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

    pub(super) fn sorted(&mut self, folder: &Path) -> Vec<PathBuf> {
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
        self.file_of_kind(inventory, path);
        let folder = folder_of(path);
        if !self.folders.contains(&folder) {
            self.folders.push(folder);
        }
    }

    /// Says that nothing may read a source.
    fn not_enabled(&mut self, source: &str, plugin: Plugin) {
        let message = format!("`{source}` is read by the inventory plugin `{}`, which is not enabled", plugin.name());
        self.problems.push(Diagnostic::error(Place::default(), message).help(ENABLE));
    }

    fn file_of_kind(&mut self, inventory: &mut Inventory, path: &Path) {
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        let is_yaml = matches!(extension.as_str(), "yml" | "yaml" | "json");
        let enabled = &self.reading.enabled;
        if !is_yaml
            && enabled.has(Plugin::Script)
            && fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
        {
            return self.script(inventory, path);
        }
        let (text, is_vaulted) = match self.text_of(path) {
            Ok(read) => read,
            Err(message) => return self.problems.push(Diagnostic::error(Place::default(), message)),
        };
        // Places in a vaulted file show no line of it.
        let blank = || -> String { text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect() };
        if extension == "toml" && enabled.has(Plugin::Toml) {
            let shown = if is_vaulted { blank() } else { text.clone() };
            match toml::parse(path, &text, &shown) {
                Ok(node) => yaml::read(inventory, &node, self.vault, &mut self.problems),
                Err(problem) => self.problems.push(problem),
            }
        } else if is_yaml || starts_as_yaml(&text) {
            self.yaml_file(inventory, path);
        } else if !enabled.has(Plugin::Ini) {
            self.not_enabled(&path.display().to_string(), if extension == "toml" { Plugin::Toml } else { Plugin::Ini });
        } else {
            if is_vaulted {
                let values = text.split_whitespace().filter_map(|word| word.split_once('='));
                values.for_each(|(_, value)| crate::report::secrets::register(value.trim_matches(['"', '\''])));
            }
            let file = FileId::register(path, if is_vaulted { blank() } else { text.clone() });
            ini::read(inventory, file, &text, &mut self.problems);
        }
    }

    /// Returns a file's text, and whether it was vaulted.
    fn text_of(&self, path: &Path) -> Result<(String, bool), String> {
        let bytes = fs::read(path).map_err(|error| format!("read `{}`: {error}", path.display()))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if !crate::vault::is_vaulted(&bytes) {
            return Ok((text, false));
        }
        let plain = self.vault.decrypt(&text);
        let plain = plain.map_err(|message| format!("decrypt `{}`: {message}", path.display()))?;
        Ok((String::from_utf8_lossy(&plain).into_owned(), true))
    }

    fn yaml_file(&mut self, inventory: &mut Inventory, path: &Path) {
        let parsed = match self.vault.read_yaml(path) {
            Ok(parsed) => parsed,
            Err(problem) => return self.problems.push(problem),
        };
        self.problems.extend(parsed.warnings);
        let root = parsed.documents.first();
        match root.and_then(|node| node.get("plugin").map(|named| (node, named))) {
            Some((node, named)) => self.plugin(inventory, node, named),
            None if !self.reading.enabled.has(Plugin::Yaml) => {
                self.not_enabled(&path.display().to_string(), Plugin::Yaml);
            }
            None => {
                root.into_iter().for_each(|node| yaml::read(inventory, node, self.vault, &mut self.problems));
            }
        }
    }
}

/// Returns whether a text that no name's ending speaks for is YAML, rather than INI.
fn starts_as_yaml(text: &str) -> bool {
    text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).is_some_and(|line| {
        let trimmed = line.trim_end();
        trimmed == "---" || trimmed.ends_with(':') || line.starts_with('{') || line.starts_with("plugin: ")
    })
}
