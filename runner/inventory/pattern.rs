//! Patterns that choose hosts: `a:b`, `a,b`, `:&`, `:!`, `~regex`, globs, `g[0]`, `g[1:3]`, `@file`.

use std::collections::HashSet;
use std::sync::Arc;

use super::Inventory;
use crate::source::nearest;
use crate::value::Value;

/// A shell's pattern over names: `*`, `?`, `[…]`.
pub struct Glob(Option<fancy_regex::Regex>, String);

impl Glob {
    pub fn new(pattern: &str) -> Glob {
        let mut regex = String::from("(?s)^");
        let mut chars = pattern.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '*' => regex.push_str(".*"),
                '?' => regex.push('.'),
                '[' if chars.clone().any(|c| c == ']') => {
                    regex.push('[');
                    if chars.peek() == Some(&'!') {
                        chars.next();
                        regex.push('^');
                    }
                    for c in chars.by_ref() {
                        regex.push(c);
                        if c == ']' {
                            break;
                        }
                    }
                }
                c => regex.push_str(&fancy_regex::escape(&c.to_string())),
            }
        }
        regex.push('$');
        Glob(fancy_regex::Regex::new(&regex).ok(), pattern.to_owned())
    }

    pub fn matches(&self, name: &str) -> bool {
        match &self.0 {
            Some(regex) => regex.is_match(name).unwrap_or(false),
            None => self.1 == name,
        }
    }
}

/// How hosts are ordered once chosen is the inventory's order, as in Ansible.
impl Inventory {
    /// Returns the hosts that a pattern chooses, those only that the limit chooses too.
    ///
    /// # Errors
    /// A sentence for a person when the pattern is malformed, or its limit names no host that exists.
    pub fn select(&self, pattern: &str, limit: Option<&str>) -> Result<Vec<Arc<str>>, String> {
        let chosen = self.chosen(pattern)?;
        let Some(limit) = limit else { return Ok(chosen) };
        let allowed = self.chosen(limit)?;
        Ok(chosen.into_iter().filter(|host| allowed.contains(host)).collect())
    }

    /// Returns the names in a pattern that no host and no group has, with the nearest that there is.
    pub fn strangers(&self, pattern: &str) -> Vec<(String, Option<String>)> {
        let Ok(parts) = split(pattern) else { return Vec::new() };
        let plain = |part: &str| {
            let name = part.trim_start_matches(['!', '&']);
            (!name.contains(['*', '?', '[', '~', '@', '{'])).then(|| name.to_owned())
        };
        let known = |name: &str| {
            self.hosts.contains_key(name) || self.groups.contains_key(name) || crate::execute::is_this_machine(name)
        };
        let all = || self.hosts.keys().chain(self.groups.keys()).map(|name| &**name);
        parts
            .iter()
            .filter_map(|part| plain(part))
            .filter(|name| !known(name))
            .map(|name| {
                let meant = nearest(&name, all()).map(str::to_owned);
                (name, meant)
            })
            .collect()
    }

    fn chosen(&self, pattern: &str) -> Result<Vec<Arc<str>>, String> {
        let parts = split(pattern)?;
        let mut chosen: indexmap::IndexSet<Arc<str>> = indexmap::IndexSet::new();
        let plain = |part: &&String| !part.starts_with(['!', '&']);
        if parts.iter().filter(plain).count() == 0 && !parts.is_empty() {
            chosen.extend(self.host_list());
        }
        for part in parts.iter().filter(plain) {
            chosen.extend(self.named(part)?);
        }
        for part in parts.iter().filter_map(|part| part.strip_prefix('&')) {
            let both: HashSet<Arc<str>> = self.named(part)?.into_iter().collect();
            chosen.retain(|host| both.contains(host));
        }
        for part in parts.iter().filter_map(|part| part.strip_prefix('!')) {
            let without: HashSet<Arc<str>> = self.named(part)?.into_iter().collect();
            chosen.retain(|host| !without.contains(host));
        }
        Ok(chosen.into_iter().collect())
    }

    /// Returns the hosts of one part of a pattern.
    fn named(&self, part: &str) -> Result<Vec<Arc<str>>, String> {
        if let Some(expression) = part.strip_prefix('~') {
            let regex = fancy_regex::Regex::new(&format!("^(?:{expression})"))
                .map_err(|error| format!("pattern `{part}`: {error}"))?;
            return Ok(self.matching(&|name| regex.is_match(name).unwrap_or(false)));
        }
        let (name, subscript) = subscript_of(part);
        let mut hosts = if name == "all" || name == "*" {
            self.host_list()
        } else if name.contains(['*', '?', '[']) {
            let glob = Glob::new(name);
            self.matching(&|name| glob.matches(name))
        } else if self.groups.contains_key(name) {
            self.hosts_of(name)
        } else {
            match self.hosts.get_key_value(name) {
                Some((name, _)) => vec![name.clone()],
                None if crate::execute::is_this_machine(name) => vec![name.into()],
                None => Vec::new(),
            }
        };
        if let Some((first, last)) = subscript {
            hosts = cut(&hosts, first, last);
        }
        Ok(hosts)
    }

    fn matching(&self, matches: &dyn Fn(&str) -> bool) -> Vec<Arc<str>> {
        let mut found: indexmap::IndexSet<Arc<str>> = indexmap::IndexSet::new();
        for group in self.groups.keys().filter(|name| matches(name)) {
            found.extend(self.hosts_of(group));
        }
        found.extend(self.host_list().into_iter().filter(|name| matches(name)));
        found.into_iter().collect()
    }
}

/// Returns `hosts` of a play as one pattern: each item of a list is a pattern of its own, on a line of its own.
pub fn joined(hosts: &Value) -> String {
    match hosts {
        Value::List(items) => items.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"),
        one => one.to_string(),
    }
}

/// Splits a pattern, line by line, at commas, or at colons that stand neither in brackets nor in an IPv6 address; reads `@file`.
fn split(pattern: &str) -> Result<Vec<String>, String> {
    if pattern.contains('\n') {
        return pattern.lines().map(split).collect::<Result<Vec<_>, _>>().map(|parts| parts.concat());
    }
    let mut parts: Vec<String> = Vec::new();
    let pieces: Vec<&str> = if pattern.contains(',') {
        pattern.split(',').collect()
    } else if pattern.parse::<std::net::Ipv6Addr>().is_ok() {
        vec![pattern]
    } else {
        let mut depth = 0;
        let outside = move |c: char| {
            match c {
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => {}
            }
            c == ':' && depth <= 0
        };
        pattern.split(outside).collect()
    };
    for piece in pieces.into_iter().map(str::trim).filter(|piece| !piece.is_empty()) {
        match piece.strip_prefix('@') {
            Some(file) => {
                let text = std::fs::read_to_string(file)
                    .map_err(|error| format!("cannot read `{file}`, which is to name hosts: {error}"))?;
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
                parts.extend(lines.map(str::to_owned));
            }
            None => parts.push(piece.to_owned()),
        }
    }
    Ok(parts)
}

/// Splits `g[0]`, `g[-1]`, `g[1:3]`; anything else in brackets belongs to a glob.
fn subscript_of(part: &str) -> (&str, Option<(i64, Option<i64>)>) {
    let Some((name, inner)) = part.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) else {
        return (part, None);
    };
    if let Ok(index) = inner.parse::<i64>() {
        return (name, Some((index, Some(index))));
    }
    let ends = inner.split_once(':').or_else(|| inner.split_once('-').filter(|(first, _)| !first.is_empty()));
    match ends {
        Some((first, last)) => {
            let number = |text: &str| text.parse::<i64>();
            match (if first.is_empty() { Ok(0) } else { number(first) }, last.is_empty(), number(last)) {
                (Ok(first), true, _) => (name, Some((first, None))),
                (Ok(first), false, Ok(last)) => (name, Some((first, Some(last)))),
                (_, _, _) => (part, None),
            }
        }
        None => (part, None),
    }
}

fn cut(hosts: &[Arc<str>], first: i64, last: Option<i64>) -> Vec<Arc<str>> {
    let count = hosts.len() as i64;
    let at = |index: i64| if index < 0 { count + index } else { index };
    let (first, last) = (at(first), last.map_or(count - 1, at));
    hosts
        .iter()
        .enumerate()
        .filter(|(index, _)| (first..=last).contains(&(*index as i64)))
        .map(|(_, host)| host.clone())
        .collect()
}
