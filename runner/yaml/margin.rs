//! Lets what stands in brackets begin anywhere on its line, as JSON within YAML does and Ansible's reader allows.

use std::borrow::Cow;
use std::collections::BTreeSet;

use saphyr_parser::Marker;

use crate::source::{FileId, Place};

/// What the parser says of a line within brackets that begins left of the block around them.
pub(super) const OUTDENTED: &[&str] = &["invalid indentation", "invalid indentation in flow construct"];

/// What the parser says of a line within a quoted text that begins with a tab left of the block around it. PyYAML, and
/// so Ansible, takes no notice of where such lines begin.
pub(super) const TAB: &str = "tab cannot be used as indentation";

/// What it says at the start of a quoted text of which a line begins left of the block around it.
pub(super) const QUOTED: &str = "invalid indentation in quoted scalar";

/// The lines that are read as if they began further right.
#[derive(Debug, Default)]
pub(super) struct Margin {
    /// Counted from 1.
    lines: BTreeSet<usize>,
    blanks: usize,
}

impl Margin {
    /// Returns the text with blanks in front of those lines.
    pub fn shifted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.lines.is_empty() {
            return text.into();
        }
        let blanks = " ".repeat(self.blanks);
        let lines = text.split_inclusive('\n').enumerate();
        lines
            .fold(String::with_capacity(text.len()), |whole, (nth, line)| {
                let shift = if self.lines.contains(&(nth + 1)) { blanks.as_str() } else { "" };
                whole + shift + line
            })
            .into()
    }

    /// Returns where in the unshifted text the parser is.
    pub fn place(&self, file: FileId, marker: Marker) -> Place {
        let line = marker.line().max(1);
        let shift = if self.lines.contains(&line) { self.blanks } else { 0 };
        file.at(line, marker.col().saturating_sub(shift) + 1)
    }

    fn measure(&mut self, text: &str) {
        if self.blanks == 0 {
            self.blanks =
                text.lines().map(|line| line.len() - line.trim_start_matches(' ').len()).max().unwrap_or(0) + 1;
        }
    }

    /// Takes in a line of a quoted text.
    pub fn widen_line(&mut self, text: &str, line: usize) -> bool {
        self.measure(text);
        self.lines.insert(line)
    }

    /// Takes in the lines of a quoted text behind its first one.
    pub fn widen_quoted(&mut self, text: &str, marker: Marker) -> bool {
        self.measure(text);
        let first = marker.line();
        let shift = if self.lines.contains(&first) { self.blanks } else { 0 };
        let mut lines = text.lines().enumerate().skip(first.saturating_sub(1));
        let Some((_, start)) = lines.next() else { return false };
        let mut rest = start.chars().skip(marker.col().saturating_sub(shift));
        let Some(quote) = rest.next() else { return false };
        let before = self.lines.len();
        if !ends(rest, quote) {
            for (nth, line) in lines {
                self.lines.insert(nth + 1);
                if ends(line.chars(), quote) {
                    break;
                }
            }
        }
        self.lines.len() > before
    }

    /// Takes in a line within brackets, and those after it up to where one of the brackets around it closes. Returns
    /// whether there was anything to take in.
    pub fn widen(&mut self, text: &str, line: usize) -> bool {
        self.measure(text);
        let before = self.lines.len();
        let (mut depth, mut quote) = (0, None);
        for (nth, text) in text.lines().enumerate().skip(line.saturating_sub(1)) {
            // A quoted text may have lines of its own, which mean nothing by where they begin.
            self.lines.insert(nth + 1);
            let mut last = ' ';
            for c in text.chars() {
                match (quote, c) {
                    (None, '#') if last.is_whitespace() => break,
                    (None, '[' | '{') => depth += 1,
                    (None, ']' | '}') => depth -= 1,
                    // Within a word an apostrophe is one.
                    (None, '"' | '\'') if last.is_whitespace() || ",[{:".contains(last) => quote = Some(c),
                    (Some('"'), '"') if last != '\\' => quote = None,
                    (Some('\''), '\'') => quote = None,
                    _ => {}
                }
                last = if last == '\\' && c == '\\' { ' ' } else { c };
            }
            if depth < 0 {
                break;
            }
        }
        self.lines.len() > before
    }
}

/// Returns whether a quoted text ends in these characters of a line.
fn ends(mut chars: impl Iterator<Item = char>, quote: char) -> bool {
    let mut escaped = false;
    chars.any(|c| {
        let is_end = c == quote && !escaped;
        escaped = quote == '"' && c == '\\' && !escaped;
        is_end
    })
}
