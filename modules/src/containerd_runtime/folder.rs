//! The folders that are made for a file of this module, noted in that file, so that they go when it goes.

use crate::apply::Expect;
use crate::{Change, Error, Exec, Host};

const MADE: &str = "# Folders that were made for it, and go with it once they are empty: ";

fn parents(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rsplit_once('/').map(|(folder, _)| folder))
        .skip(1)
        .filter(|folder| !folder.is_empty())
}

/// Returns how many folders above a file this module made, or would make now: those that a file that is there names count.
pub(super) fn made(host: &dyn Host, path: &str) -> Result<usize, Error> {
    let noted = host.read(path)?.map_or(0, |bytes| noted(&bytes));
    let mut missing = 0;
    for folder in parents(path) {
        if host.stat(folder)?.is_some() {
            break;
        }
        missing += 1;
    }
    Ok(noted.max(missing))
}

/// Returns the line that notes them.
pub(super) fn note(made: usize) -> String {
    if made == 0 { String::new() } else { format!("{MADE}{made}\n") }
}

/// Reads the line that [`note`] wrote.
fn noted(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    text.lines().find_map(|line| line.strip_prefix(MADE)?.trim().parse().ok()).unwrap_or_default()
}

/// Returns the changes that make the folders of a file that are not there.
pub(super) fn make(host: &dyn Host, path: &str) -> Result<Vec<Change>, Error> {
    let mut changes = Vec::new();
    for folder in parents(path) {
        if host.stat(folder)?.is_some() {
            break;
        }
        changes.insert(0, Change::Mkdir { path: folder.to_owned(), mode: None });
    }
    Ok(changes)
}

/// Returns the changes that remove the folders that were made for a file, once that is gone: the last of a plan, since what
/// is put back needs them. A folder in which something else is stays.
pub(super) fn remove(host: &dyn Host, path: &str) -> Result<Vec<Change>, Error> {
    let made = host.read(path)?.map_or(0, |bytes| noted(&bytes));
    let mut changes = Vec::new();
    let mut last = path;
    for folder in parents(path).take(made) {
        let name = last.rsplit('/').next().unwrap_or_default();
        if host.list(folder)?.is_none_or(|names| names != [name]) {
            break;
        }
        // Whatever was put there since makes it fail, and stays.
        changes.push(Change::Exec(Exec { expect: Expect::Any, ..Exec::of(&["rmdir", "--", folder]) }));
        last = folder;
    }
    Ok(changes)
}
