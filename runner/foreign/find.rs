//! Looks for modules that are not built in.

use std::path::{Path, PathBuf};

use super::{Foreign, ForeignKind};

/// Endings of files beside modules that are none.
const NOT_MODULES: &[&str] =
    &["pyc", "pyo", "md", "rst", "txt", "yml", "yaml", "json", "ini", "swp", "bak", "orig", "rej"];

/// Where to look.
#[derive(Debug, Default)]
pub struct Search {
    /// Roles that may bring modules, and the playbook's folder: each may have a `library/`.
    pub homes: Vec<PathBuf>,
    /// Further folders of modules.
    pub libraries: Vec<PathBuf>,
    /// Folders that hold `ansible_collections/`.
    pub collections: Vec<PathBuf>,
}

/// Finds the module that a task names; `None` where there is none.
///
/// # Errors
/// A sentence for a person when there is something of that name which can't be run, and what to do.
pub fn find(name: &str, search: &Search) -> Result<Option<Foreign>, String> {
    let short = name.strip_prefix("ansible.legacy.").unwrap_or(name);
    let module_utils: Vec<PathBuf> =
        search.homes.iter().map(|home| home.join("module_utils")).filter(|folder| folder.is_dir()).collect();
    match short.split('.').collect::<Vec<_>>()[..] {
        [_] => {
            let plugins = search.homes.iter().map(|home| home.join("action_plugins"));
            refuse_plugin(short, plugins)?;
            let own = search.homes.iter().map(|home| home.join("library"));
            for folder in own.chain(search.libraries.iter().cloned()) {
                if let Some(path) = program(&folder, short)? {
                    return made(path, format!("ansible.modules.{short}"), search, module_utils).map(Some);
                }
            }
            Ok(None)
        }
        [namespace, collection, .., module] => {
            let plugins =
                |root: &PathBuf| root.join("ansible_collections").join(namespace).join(collection).join("plugins");
            refuse_plugin(module, search.collections.iter().map(|root| plugins(root).join("action")))?;
            let below: PathBuf = short.split('.').skip(2).collect();
            for root in &search.collections {
                let folder = plugins(root).join("modules").join(below.parent().unwrap_or(Path::new("")));
                if let Some(path) = program(&folder, module)? {
                    let below = below.to_string_lossy().replace('/', ".");
                    let name = format!("ansible_collections.{namespace}.{collection}.plugins.modules.{below}");
                    return made(path, name, search, module_utils).map(Some);
                }
            }
            Ok(None)
        }
        _ => Ok(None),
    }
}

fn made(path: PathBuf, import_name: String, search: &Search, module_utils: Vec<PathBuf>) -> Result<Foreign, String> {
    let program = std::fs::read(&path).map_err(|error| format!("read `{}`: {error}", path.display()))?;
    let kind = ForeignKind::of(&path, &program);
    Ok(Foreign { path, import_name, kind, module_utils, collections: search.collections.clone() })
}

/// An action plugin runs in Ansible's own process, which is not here.
fn refuse_plugin(name: &str, folders: impl Iterator<Item = PathBuf>) -> Result<(), String> {
    let path = folders.map(|folder| folder.join(format!("{name}.py"))).find(|path| path.is_file());
    path.map_or(Ok(()), |path| {
        Err(format!(
            "`{name}` is the action plugin `{}`, which only Ansible itself can run: write its steps as tasks, or make it \
             a module in `library/`",
            path.display()
        ))
    })
}

/// Returns the file of a module in a folder.
fn program(folder: &Path, name: &str) -> Result<Option<PathBuf>, String> {
    let usual = [folder.join(format!("{name}.py")), folder.join(name)];
    if let Some(path) = usual.into_iter().find(|path| path.is_file()) {
        return Ok(Some(path));
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(None) };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.file_stem().is_some_and(|stem| stem == name) && path.is_file())
        .filter(|path| !path.extension().is_some_and(|ending| NOT_MODULES.iter().any(|other| ending == *other)))
        .collect();
    found.sort();
    match found.into_iter().next() {
        Some(path) if path.extension().is_some_and(|ending| ending == "ps1") => {
            Err(format!("`{name}` is `{}`, a module for Windows", path.display()))
        }
        found => Ok(found),
    }
}
