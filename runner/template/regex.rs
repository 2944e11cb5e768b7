//! Python's regular expressions, through `fancy-regex`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock};

use fancy_regex::Regex;

use super::call::Call;
use super::live::Result;

/// How many compiled patterns are kept.
const KEPT: usize = 1000;

static KNOWN: LazyLock<RwLock<HashMap<String, Arc<Regex>>>> = LazyLock::new(RwLock::default);

/// Compiles a pattern as Python's `re` reads it.
pub(super) fn compiled(call: &Call<'_>, pattern: &str, ignore_case: bool, multiline: bool) -> Result<Arc<Regex>> {
    let mut flags = String::new();
    flags.push_str(if ignore_case { "i" } else { "" });
    flags.push_str(if multiline { "m" } else { "" });
    let translated = translated(pattern, multiline || pattern.contains("(?m"));
    let whole = if flags.is_empty() { translated } else { format!("(?{flags}){translated}") };
    if let Some(known) = KNOWN.read().unwrap_or_else(std::sync::PoisonError::into_inner).get(&whole) {
        return Ok(known.clone());
    }
    let regex = Regex::new(&whole).map_err(|error| call.fault(format!("pattern `{pattern}`: {error}")))?;
    let regex = Arc::new(regex);
    let mut known = KNOWN.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    if known.len() >= KEPT {
        known.clear();
    }
    known.insert(whole, regex.clone());
    Ok(regex)
}

/// Rewrites what Python writes in another way: `\Z` is the very end, `$` also stands before a last newline, `[` in a
/// class and `&&` are literal.
fn translated(pattern: &str, multiline: bool) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    let mut class_start = false;
    while let Some(c) = chars.next() {
        let at_start = std::mem::take(&mut class_start);
        match c {
            '\\' => match chars.next() {
                Some('Z') if !in_class => out.push_str("\\z"),
                Some(escaped @ ('"' | '\'' | '/' | '=' | ':' | ',' | '@' | '!' | '%' | ';' | '`' | '<' | '>')) => {
                    if in_class && matches!(escaped, '-') {
                        out.push('\\');
                    }
                    out.push(escaped);
                }
                Some('_') => out.push('_'),
                Some(' ') => out.push_str("\\x20"),
                Some(escaped) => {
                    out.push('\\');
                    out.push(escaped);
                }
                None => out.push('\\'),
            },
            '[' if in_class => out.push_str("\\["),
            '[' => {
                in_class = true;
                class_start = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            ']' if in_class && at_start => out.push_str("\\]"),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            '$' if !in_class && !multiline => out.push_str("(?=\\n?\\z)"),
            c => out.push(c),
        }
    }
    out
}

/// `is match`, `is search` and `is regex`.
pub(super) fn test(call: &Call<'_>, how: &str) -> Result<bool> {
    let text = call.text()?;
    let pattern = call.required(0)?.text()?;
    let regex = compiled(call, &pattern, call.bool_or(1, false)?, call.bool_or(2, false)?)?;
    let found = regex.find(&text).map_err(|error| call.fault(format!("pattern `{pattern}`: {error}")))?;
    Ok(match how {
        "search" => found.is_some(),
        // The leftmost match is the one at the start when there is one, as alternatives go in order at each place.
        "match" => found.is_some_and(|found| found.start() == 0),
        "fullmatch" => {
            let whole = compiled(call, &format!("(?:{pattern})\\Z"), call.bool_or(1, false)?, call.bool_or(2, false)?)?;
            let found = whole.find(&text).map_err(|error| call.fault(format!("pattern `{pattern}`: {error}")))?;
            found.is_some_and(|found| found.start() == 0)
        }
        other => return Err(call.fault(format!("`match_type` is search, match or fullmatch, not `{other}`"))),
    })
}
/// Turns a replacement of Python's into one that `Regex::replace` takes: `\1`, `\g<1>`, `\g<name>`.
pub(super) fn expanded(
    replacement: &str,
    captures: &fancy_regex::Captures<'_, str>,
) -> std::result::Result<String, String> {
    let mut out = String::new();
    let mut chars = replacement.chars().peekable();
    let group = |nth: usize| captures.get(nth).map_or("", |found| found.as_str());
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('g') if chars.peek() == Some(&'<') => {
                chars.next();
                let name: String = chars.by_ref().take_while(|c| *c != '>').collect();
                match name.parse::<usize>() {
                    Ok(nth) if nth < captures.len() => out.push_str(group(nth)),
                    Ok(nth) => return Err(format!("invalid group reference {nth}")),
                    Err(_) => out.push_str(captures.name(&name).map_or("", |found| found.as_str())),
                }
            }
            Some(digit) if digit.is_ascii_digit() && digit != '0' => {
                let mut nth = digit.to_digit(10).unwrap_or(0) as usize;
                if let Some(next) = chars.peek().and_then(|c| c.to_digit(10)) {
                    chars.next();
                    nth = nth * 10 + next as usize;
                }
                if nth >= captures.len() {
                    return Err(format!("invalid group reference {nth}"));
                }
                out.push_str(group(nth));
            }
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('0') => out.push('\0'),
            Some('\\') => out.push('\\'),
            Some(letter) if letter.is_ascii_alphabetic() => return Err(format!("bad escape \\{letter}")),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
            None => out.push('\\'),
        }
    }
    Ok(out)
}
