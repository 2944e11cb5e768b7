//! Paths as users write them: `~`, `$HOME`, `*`, links.

use crate::fnmatch::{fnmatch, is_pattern};
use crate::owners::account_of;
use crate::{Error, FileKind, Host};

/// How many links a path may lead through. Source: Linux' own limit (`path_resolution(7)`).
const MOST_LINKS: usize = 40;

/// Returns `text` with a leading `~` or `~USER` and each `$NAME` or `${NAME}` replaced; an unknown one stays as it is.
///
/// # Errors
/// Whatever reading the host's accounts reports.
pub(crate) fn expand(host: &dyn Host, text: &str) -> Result<String, Error> {
    let text = expand_variables(host, text);
    let Some(rest) = text.strip_prefix('~') else { return Ok(text) };
    let (user, tail) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let home = match user {
        "" => match host.env("HOME") {
            Some(home) => Some(home),
            None => account_of(host, &host.uid().to_string())?.map(|account| account.home),
        },
        user => account_of(host, user)?.map(|account| account.home),
    };
    Ok(match home {
        Some(home) => format!("{}{tail}", home.trim_end_matches('/')),
        None => text,
    })
}

fn expand_variables(host: &dyn Host, text: &str) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        expanded.push_str(before);
        let (name, whole) = match after[1..].strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((name, _)) => (name, name.len() + 3),
            None => {
                let word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
                let size = after[1..].find(|letter| !word(letter)).unwrap_or(after.len() - 1);
                (&after[1..=size], size + 1)
            }
        };
        match host.env(name).filter(|_| !name.is_empty()) {
            Some(value) => expanded.push_str(&value),
            None => expanded.push_str(&after[..whole]),
        }
        rest = &after[whole..];
    }
    expanded.push_str(rest);
    expanded
}

/// Returns where a path leads once the links at its end are followed; the last target that is written down where the
/// links dangle.
pub(crate) fn follow(host: &dyn Host, path: &str) -> Result<String, Error> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match host.read_link(&path)? {
            Some(target) => path = beside(&path, &target),
            None => return Ok(path),
        }
    }
    Ok(path)
}

/// Returns an absolute path with each link on the way followed and without `.` and `..`, as `realpath(3)` does; what
/// does not exist stays as written.
pub(crate) fn real(host: &dyn Host, path: &str) -> Result<String, Error> {
    let mut rest: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    let mut real = String::new();
    let mut links = 0;
    while let Some(part) = rest.pop() {
        match part.as_str() {
            "" | "." => {}
            ".." => real.truncate(real.rfind('/').unwrap_or(0)),
            part => {
                let next = format!("{real}/{part}");
                match host.read_link(&next)? {
                    Some(target) if links < MOST_LINKS => {
                        links += 1;
                        if target.starts_with('/') {
                            real.clear();
                        }
                        rest.extend(target.split('/').rev().map(str::to_owned));
                    }
                    Some(_) | None => real = next,
                }
            }
        }
    }
    Ok(if real.is_empty() { "/".to_owned() } else { real })
}

/// Returns a link's target as seen from the link's folder.
pub(crate) fn beside(link: &str, target: &str) -> String {
    if target.starts_with('/') { target.to_owned() } else { join(parent(link), target) }
}

/// Returns the folder of a path: `.` for a lone name.
pub(crate) fn parent(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) => "/",
        Some((parent, _)) => parent,
        None => ".",
    }
}

/// Returns the last name of a path.
pub(crate) fn name(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

pub(crate) fn join(folder: &str, name: &str) -> String {
    match folder {
        "." => name.to_owned(),
        folder => format!("{}/{name}", folder.trim_end_matches('/')),
    }
}

/// Returns what is at the paths that a shell's pattern names, sorted; a dangling link counts.
pub(crate) fn glob(host: &dyn Host, pattern: &str) -> Result<Vec<String>, Error> {
    let mut found = vec![if pattern.starts_with('/') { "/".to_owned() } else { ".".to_owned() }];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        for folder in &found {
            if is_pattern(part) {
                let names = match host.stat(folder)? {
                    Some(stat) if stat.kind == FileKind::Directory => host.list(folder)?.unwrap_or_default(),
                    Some(_) | None => Vec::new(),
                };
                let shown = names.iter().filter(|name| !name.starts_with('.') || part.starts_with('.'));
                next.extend(shown.filter(|name| fnmatch(part, name)).map(|name| join(folder, name)));
            } else if host.lstat(&join(folder, part))?.is_some() {
                next.push(join(folder, part));
            }
        }
        found = next;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_path() {
        assert_eq!((parent("/a/b"), parent("/a"), parent("a"), name("/a/b/")), ("/a", "/", ".", "b"));
        assert_eq!(beside("/a/b", "../c"), "/a/../c");
    }
}
