//! Filters of paths and addresses.

use std::path::{Component, Path, PathBuf};

use crate::template::call::{Call, Filter, callable};
use crate::template::live::{Live, Result};
use crate::template::lookups::expanded_home;
use crate::value::{Map, Value};

pub(super) const FILTERS: &[Filter] = &[
    callable("basename", &[], |call| {
        let path = call.text()?;
        Ok(path.rsplit('/').next().unwrap_or("").into())
    }),
    callable("dirname", &[], |call| Ok(dirname(&call.text()?).into())),
    callable("splitext", &[], |call| {
        let path = call.text()?;
        let (stem, extension) = extension(&path, &['/']);
        Ok(texts([stem, extension]))
    }),
    callable("expanduser", &[], |call| Ok(expanded_home(&call.text()?).into())),
    callable("expandvars", &[], |call| Ok(expanded_variables(&call.text()?).into())),
    callable("realpath", &[], |call| Ok(real_path(&call.text()?).into())),
    callable("relpath", &["start"], |call| {
        let path = absolute(&call.text()?);
        Ok(relative(&path, &absolute(&call.text_or(0, ".")?)).into())
    }),
    callable("normpath", &[], |call| Ok(normal(&call.text()?).into())),
    callable("commonpath", &[], commonpath),
    callable("path_join", &[], |call| {
        let parts = match &call.input {
            input if input.is_list() => call.items()?.iter().map(Live::text).collect::<Result<Vec<_>>>()?,
            input if input.is_text() => vec![call.text()?],
            other => {
                let message = format!("|path_join expects string or sequence, got {} instead.", other.type_name());
                return Err(call.fault(message));
            }
        };
        Ok(joined(&parts).into())
    }),
    callable("fileglob", &[], |call| {
        Ok(Live::Done(Value::list(globbed(&call.text()?).into_iter().map(Value::from).collect())))
    }),
    callable("win_basename", &[], |call| {
        let path = call.text()?;
        Ok(path.rsplit(['\\', '/']).next().unwrap_or("").into())
    }),
    callable("win_dirname", &[], |call| {
        let path = call.text()?;
        let (drive, rest) = drive(&path);
        let head = rest.rfind(['\\', '/']).map_or("", |at| &rest[..=at]);
        let trimmed = head.trim_end_matches(['\\', '/']);
        Ok(format!("{drive}{}", if trimmed.is_empty() { head } else { trimmed }).into())
    }),
    callable("win_splitdrive", &[], |call| {
        let path = call.text()?;
        let (drive, rest) = drive(&path);
        Ok(texts([drive, rest]))
    }),
    callable("urlsplit", &["query"], urlsplit),
];

fn texts(pieces: [&str; 2]) -> Live {
    Live::tuple(pieces.map(Live::from))
}

fn dirname(path: &str) -> &str {
    let Some(at) = path.rfind('/') else { return "" };
    let head = &path[..=at];
    let trimmed = head.trim_end_matches('/');
    if trimmed.is_empty() { head } else { trimmed }
}

/// Splits off the extension; a name that only starts with dots has none.
fn extension<'a>(path: &'a str, separators: &[char]) -> (&'a str, &'a str) {
    let name_at = path.rfind(separators).map_or(0, |at| at + 1);
    let name = &path[name_at..];
    match name.rfind('.') {
        Some(dot) if name[..dot].chars().any(|c| c != '.') => path.split_at(name_at + dot),
        _ => (path, ""),
    }
}

fn expanded_variables(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, used) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((name, _)) => (name, name.len() + 2),
            None => {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                (&after[..end], end)
            }
        };
        match std::env::var(name) {
            Ok(value) if !name.is_empty() => out.push_str(&value),
            _ => out.push_str(&rest[at..at + 1 + used]),
        }
        rest = &after[used..];
    }
    out + rest
}

fn absolute(path: &str) -> PathBuf {
    let path = Path::new(path);
    let whole = match path.is_absolute() {
        true => path.to_owned(),
        false => std::env::current_dir().unwrap_or_default().join(path),
    };
    PathBuf::from(normal(&whole.to_string_lossy()))
}

/// Takes out `.`, `..` and double slashes, as Python's `normpath`.
pub(in crate::template) fn normal(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if is_absolute => {}
            part => parts.push(part),
        }
    }
    let whole = parts.join("/");
    match (is_absolute, whole.is_empty()) {
        (true, _) => format!("/{whole}"),
        (false, true) => ".".to_owned(),
        (false, false) => whole,
    }
}

/// Follows links as far as there is something, as Python's `realpath`.
fn real_path(path: &str) -> String {
    let whole = absolute(path);
    let mut known = whole.clone();
    let mut missing: Vec<std::ffi::OsString> = Vec::new();
    loop {
        if let Ok(found) = known.canonicalize() {
            return missing.iter().rev().fold(found, |path, part| path.join(part)).to_string_lossy().into_owned();
        }
        match (known.file_name().map(ToOwned::to_owned), known.parent().map(Path::to_owned)) {
            (Some(name), Some(parent)) => {
                missing.push(name);
                known = parent;
            }
            _ => return whole.to_string_lossy().into_owned(),
        }
    }
}

fn relative(path: &Path, start: &Path) -> String {
    let (path, start): (Vec<Component<'_>>, Vec<Component<'_>>) =
        (path.components().collect(), start.components().collect());
    let common = path.iter().zip(&start).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), start.len() - common);
    let down = path[common..].iter().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let parts: Vec<String> = up.chain(down).collect();
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

fn commonpath(call: &mut Call<'_>) -> Result<Live> {
    if call.input.is_text() {
        return Err(call.fault("|commonpath expects a list of paths, not a text"));
    }
    let paths = call.items()?.iter().map(Live::text).collect::<Result<Vec<_>>>()?;
    let is_absolute = paths.first().is_some_and(|path| path.starts_with('/'));
    if paths.is_empty() || paths.iter().any(|path| path.starts_with('/') != is_absolute) {
        return Err(call.fault("takes paths that are all absolute or all relative"));
    }
    let split: Vec<Vec<&str>> =
        paths.iter().map(|path| path.split('/').filter(|part| !part.is_empty() && *part != ".").collect()).collect();
    let mut common = split[0].clone();
    for parts in &split {
        let same = common.iter().zip(parts).take_while(|(a, b)| a == b).count();
        common.truncate(same);
    }
    Ok(format!("{}{}", if is_absolute { "/" } else { "" }, common.join("/")).into())
}

/// Joins as Python's `os.path.join`: an absolute part starts over.
fn joined(parts: &[String]) -> String {
    let mut whole = String::new();
    for part in parts {
        if part.starts_with('/') {
            whole = part.clone();
        } else {
            if !whole.is_empty() && !whole.ends_with('/') {
                whole.push('/');
            }
            whole.push_str(part);
        }
    }
    whole
}

/// Returns the files that a shell's pattern matches, in their order.
pub(in crate::template) fn globbed(pattern: &str) -> Vec<String> {
    let pattern = expanded_home(pattern);
    let mut found: Vec<PathBuf> = vec![PathBuf::from(if pattern.starts_with('/') { "/" } else { "" })];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        found = match part.contains(['*', '?', '[']) {
            false => found.into_iter().map(|path| path.join(part)).filter(|path| path.exists()).collect(),
            true => found.iter().flat_map(|folder| matching(folder, part)).collect(),
        };
    }
    let files = found.into_iter().filter(|path| path.is_file());
    files.map(|path| path.to_string_lossy().into_owned()).collect()
}

fn matching(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let read = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(entries) = std::fs::read_dir(read) else { return Vec::new() };
    let pattern: Vec<char> = pattern.chars().collect();
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names
        .filter(|name| (pattern.first() == Some(&'.') || !name.starts_with('.')) && matches(&pattern, name))
        .collect();
    names.sort();
    names.into_iter().map(|name| folder.join(name)).collect()
}

/// Returns whether a name is what a shell's pattern of one path part means.
pub(in crate::template) fn matches(pattern: &[char], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    fn at(pattern: &[char], name: &[char]) -> bool {
        match (pattern.first(), name.first()) {
            (None, None) => true,
            (Some('*'), _) => at(&pattern[1..], name) || (!name.is_empty() && at(pattern, &name[1..])),
            (Some('?'), Some(_)) => at(&pattern[1..], &name[1..]),
            (Some('['), Some(c)) => match pattern.iter().skip(2).position(|c| *c == ']') {
                None => *c == '[' && at(&pattern[1..], &name[1..]),
                Some(end) => {
                    let set = &pattern[1..end + 2];
                    let (negated, set) =
                        if matches!(set.first(), Some('!' | '^')) { (true, &set[1..]) } else { (false, set) };
                    let mut is_in = false;
                    let mut nth = 0;
                    while nth < set.len() {
                        if set.get(nth + 1) == Some(&'-') && nth + 2 < set.len() {
                            is_in |= (set[nth]..=set[nth + 2]).contains(c);
                            nth += 3;
                        } else {
                            is_in |= set[nth] == *c;
                            nth += 1;
                        }
                    }
                    is_in != negated && at(&pattern[end + 3..], &name[1..])
                }
            },
            (Some(a), Some(b)) => a == b && at(&pattern[1..], &name[1..]),
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
    at(pattern, &name)
}

fn drive(path: &str) -> (&str, &str) {
    let mut chars = path.chars();
    match (chars.next(), chars.next()) {
        (Some(letter), Some(':')) if letter.is_ascii() => path.split_at(2),
        _ => ("", path),
    }
}

fn urlsplit(call: &mut Call<'_>) -> Result<Live> {
    let url = call.text()?;
    let (rest, fragment) = url.split_once('#').unwrap_or((&url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    let (scheme, rest) = rest.split_once(':').filter(|(scheme, _)| is_scheme(scheme)).unwrap_or(("", rest));
    let (netloc, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    let (login, host) = netloc.rsplit_once('@').map_or((None, netloc), |(login, host)| (Some(login), host));
    let (username, password) =
        match login.map(|login| login.split_once(':').map_or((login, None), |(u, p)| (u, Some(p)))) {
            Some((username, password)) => (Value::from(username), password.map_or(Value::Null, Value::from)),
            None => (Value::Null, Value::Null),
        };
    let (hostname, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((address, after)) => (address, after.strip_prefix(':')),
        None => host.rsplit_once(':').map_or((host, None), |(host, port)| (host, Some(port))),
    };
    let port = match port.filter(|port| !port.is_empty()) {
        Some(port) => Value::Int(port.parse::<u16>().map_err(|_| call.fault(format!("`{port}` is no port")))?.into()),
        None => Value::Null,
    };
    let hostname = if hostname.is_empty() { Value::Null } else { hostname.to_lowercase().into() };
    let mut parts = Map::new();
    parts.insert("fragment", fragment);
    parts.insert("hostname", hostname);
    parts.insert("netloc", netloc);
    parts.insert("password", password);
    parts.insert("path", path);
    parts.insert("port", port);
    parts.insert("query", query);
    parts.insert("scheme", scheme.to_lowercase());
    parts.insert("username", username);
    match call.text_at(0)? {
        None => Ok(Live::Done(Value::map(parts))),
        Some(part) if part.is_empty() => Ok(Live::Done(Value::map(parts))),
        Some(part) => parts.get(&part).cloned().map(Live::Done).ok_or_else(|| {
            call.fault(format!("no part `{part}`"))
                .help("one of fragment, hostname, netloc, password, path, port, query, scheme, username")
        }),
    }
}
