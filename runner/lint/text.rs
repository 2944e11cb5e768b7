//! A node as it stands in its file: quotes, digits, the very letters.

use crate::source::{Place, Source};
use crate::template::place_within;
use crate::value::Value;
use crate::yaml::{Kind, Node};

/// Returns what stands at a place, to the end of its line.
pub(super) fn at(place: Place) -> Option<String> {
    let source = place.file()?.source();
    let offset = offset(&source, place)?;
    Some(source.text[offset..].lines().next().unwrap_or("").to_owned())
}

/// Returns how many bytes stand before a place.
pub(super) fn offset(source: &Source, place: Place) -> Option<usize> {
    let line = place.line.checked_sub(1)? as usize;
    let start: usize = source.text.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = source.text.get(start..)?;
    let rest = rest.split('\n').next().unwrap_or("");
    let skip = place.column.checked_sub(1)? as usize;
    // A byte order mark counts for no column.
    let skip = skip + usize::from(line == 0 && rest.starts_with('\u{feff}'));
    let within = rest.char_indices().map(|(at, _)| at).chain([rest.len()]).nth(skip)?;
    Some(start + within)
}

/// Returns a plain word, a number or a boolean as it is written; `None` where it is quoted, tagged or an alias.
pub(super) fn plain_word(node: &Node) -> Option<String> {
    if !matches!(node.kind, Kind::Bool(_) | Kind::Int(_) | Kind::Float(_)) {
        return None;
    }
    let line = at(node.place)?;
    let end = line.find(|c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}')).unwrap_or(line.len());
    let word = &line[..end];
    let begins = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    word.starts_with(begins).then(|| word.to_owned())
}

/// Returns where a byte of a text stands; the text's own place where that can't be told.
pub(super) fn within(node: &Node, offset: usize) -> Place {
    match node.value() {
        Value::Str(text) => place_within(&text, offset),
        _ => node.place,
    }
}

/// Returns whether a text stands in quotes.
pub(super) fn is_quoted(node: &Node) -> bool {
    at(node.place).is_some_and(|line| line.starts_with(['"', '\'']))
}

/// Returns a text without what templates are in it, each replaced by a mark that no shell knows, so that lengths stay.
pub(super) fn without_templates(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(open) = ["{{", "{%", "{#"].iter().filter_map(|mark| rest.find(mark)).min() {
        let close = match &rest[open..open + 2] {
            "{{" => "}}",
            "{%" => "%}",
            _ => "#}",
        };
        let end = rest[open..].find(close).map_or(rest.len(), |at| open + at + 2);
        plain.push_str(&rest[..open]);
        plain.extend(std::iter::repeat_n('\u{1}', rest[open..end].len()));
        rest = &rest[end..];
    }
    plain.push_str(rest);
    plain
}
