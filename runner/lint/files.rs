//! Which files there are to look at, and what each of them is.

use std::path::{Path, PathBuf};

use crate::yaml::{Kind as NodeKind, Node};

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Plays.
    Playbook,
    /// Tasks or handlers of a role, or of an include.
    Tasks { handlers: bool },
    /// Variables by their names.
    Variables,
    /// Kubernetes objects.
    Manifest,
    /// Something else: only what holds for every file is looked at.
    Other,
}

/// Folders that hold what is no YAML yet, or is somebody else's.
const PASSED_OVER: &[&str] = &["node_modules", "target", "templates", "vendor"];

/// Returns every YAML file at or below these paths, in order. A file that is named is taken whatever it is called.
///
/// # Errors
/// When a path is not there.
pub fn discover(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in paths {
        match std::fs::metadata(path) {
            Ok(there) if there.is_dir() => below(path, &mut found),
            Ok(_) => found.push(path.clone()),
            Err(error) => return Err(format!("read `{}`: {error}", path.display())),
        }
    }
    found.dedup();
    Ok(found)
}

fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let path = if folder == Path::new(".") { PathBuf::from(&*name) } else { entry.path() };
        match entry.file_type() {
            // Links may lead round in a circle; what is hidden is some tool's.
            Ok(kind) if kind.is_dir() => {
                if !name.starts_with('.') && !PASSED_OVER.contains(&&*name) {
                    below(&path, found);
                }
            }
            Ok(kind) if kind.is_file() && (name.ends_with(".yml") || name.ends_with(".yaml")) => found.push(path),
            Ok(_) | Err(_) => {}
        }
    }
}

/// Returns what a file holds, by what stands in it and by its folder.
pub(super) fn kind(path: &Path, documents: &[Node]) -> FileKind {
    let Some(first) = documents.iter().find(|document| !document.is_null()) else { return FileKind::Other };
    let folders: Vec<&str> = path.parent().into_iter().flat_map(Path::iter).filter_map(|part| part.to_str()).collect();
    let within = |names: &[&str]| folders.iter().any(|folder| names.contains(folder));
    match &first.kind {
        NodeKind::List(items) => {
            let is_play = |item: &Node| {
                let has = |name: &str| item.get(name).is_some();
                has("hosts") || item.entries().iter().any(|(key, _)| key.text().ends_with("import_playbook"))
            };
            if items.iter().any(is_play) {
                FileKind::Playbook
            } else if items.iter().any(super::task::looks_like_one) {
                FileKind::Tasks { handlers: within(&["handlers"]) }
            } else {
                FileKind::Other
            }
        }
        NodeKind::Map(_) if first.get("apiVersion").is_some() && first.get("kind").is_some() => FileKind::Manifest,
        NodeKind::Map(_) if within(&["vars", "defaults", "group_vars", "host_vars"]) => FileKind::Variables,
        _ => FileKind::Other,
    }
}
