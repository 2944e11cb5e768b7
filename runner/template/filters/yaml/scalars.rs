//! How a scalar is written: plain, in quotes, or as a block of lines.

use std::sync::LazyLock;

use fancy_regex::Regex;

use super::analysis::Analysis;
use super::{Scalars, Writer, is_break};
use crate::value::Value;

impl Writer<'_> {
    /// Writes a scalar in the plainest way that it allows, or in the one that is wanted.
    pub(super) fn scalar(&mut self, value: &Value, indent: usize, is_key: bool) {
        let Value::Str(text) = value else {
            let plain = plain_scalar(value);
            let Some(scalars) = self.style.scalars else { return self.plain(&plain, indent, !is_key) };
            // As libyaml has it: `!` says that it is not read as what it looks like.
            self.indicator(if self.style.canonical { tag_of(value) } else { "!" }, true);
            return self.styled(scalars, &plain, indent, is_key);
        };
        let text = text.as_str();
        if let Some(scalars) = self.style.scalars {
            self.tag("!!str");
            return self.styled(scalars, text, indent, is_key);
        }
        let found = Analysis::of(text);
        let is_plain = if self.flow_level > 0 { found.flow_plain } else { found.block_plain };
        let multiline_key = is_key && found.multiline;
        if is_plain && !multiline_key && !means_something_else(text) {
            self.plain(text, indent, !is_key);
        } else if found.single_quoted && !multiline_key {
            self.single_quoted(text, indent, !is_key);
        } else {
            self.double_quoted(text, indent, !is_key);
        }
    }

    /// Writes a text in the way that is wanted, in double quotes where that one can't hold it.
    fn styled(&mut self, scalars: Scalars, text: &str, indent: usize, is_key: bool) {
        let found = Analysis::of(text);
        let in_block = found.block && self.flow_level == 0 && !is_key;
        match scalars {
            Scalars::Literal if in_block => self.literal(text, indent),
            Scalars::Folded if in_block => self.in_folds(text, indent),
            Scalars::SingleQuoted if found.single_quoted && !(is_key && found.multiline) => {
                self.single_quoted(text, indent, !is_key);
            }
            Scalars::Literal | Scalars::Folded | Scalars::SingleQuoted | Scalars::DoubleQuoted => {
                self.double_quoted(text, indent, !is_key);
            }
        }
    }

    /// Writes the mark of a block, with what becomes of the newlines at its end.
    fn block_mark(&mut self, mark: &str, text: &str) {
        let lead =
            if text.starts_with(|c| c == ' ' || is_break(c)) { self.style.indent.to_string() } else { String::new() };
        let end = if !text.ends_with(is_break) {
            "-"
        } else if is_kept(text) {
            "+"
        } else {
            ""
        };
        self.indicator(&format!("{mark}{lead}{end}"), true);
        self.line_break();
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.block_mark("|", text);
        for line in text.split_inclusive(is_break) {
            let bare = line.trim_end_matches(is_break);
            if !bare.is_empty() {
                self.indent(indent);
                self.put(bare);
                self.whitespace = false;
                self.indention = false;
            }
            self.line_break();
        }
        self.open_ended = is_kept(text);
    }

    /// Writes a text whose long lines are folded: a newline in it is an empty line, but beside one that begins with a blank.
    fn in_folds(&mut self, text: &str, indent: usize) {
        self.block_mark(">", text);
        let mut was_indented = true;
        let lines: Vec<&str> = text.split(is_break).collect();
        for (nth, line) in lines.iter().enumerate() {
            let is_indented = line.starts_with(' ');
            if line.is_empty() {
                // The last newline ends the last line.
                if nth + 1 < lines.len() {
                    self.line_break();
                }
                continue;
            }
            let follows_text = nth > 0 && !lines[nth - 1].is_empty() || nth > 1;
            if follows_text && !was_indented && !is_indented {
                self.line_break();
            }
            was_indented = is_indented;
            self.indent(indent);
            self.folded(line, indent, true, false);
            self.line_break();
        }
        self.open_ended = is_kept(text);
    }

    fn plain(&mut self, text: &str, indent: usize, split: bool) {
        if text.is_empty() {
            return;
        }
        if !self.whitespace {
            self.put(" ");
        }
        self.whitespace = false;
        self.indention = false;
        self.folded(text, indent, split, false);
    }

    fn single_quoted(&mut self, text: &str, indent: usize, split: bool) {
        self.indicator("'", true);
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(is_break).unwrap_or(rest.len());
            let at_start = rest.len() == text.len();
            let (line, after) = rest.split_at(end);
            let is_last = after.is_empty();
            self.folded_line(line, indent, split, at_start, is_last);
            let breaks: usize = after.chars().take_while(|c| is_break(*c)).map(char::len_utf8).sum();
            let (breaks, after) = after.split_at(breaks);
            if !breaks.is_empty() {
                if breaks.starts_with('\n') {
                    self.line_break();
                }
                breaks.chars().for_each(|_| self.line_break());
                self.indent(indent);
            }
            rest = after;
        }
        self.indicator("'", false);
    }

    /// Writes a line in single quotes, broken at single blanks where it is long.
    fn folded_line(&mut self, line: &str, indent: usize, split: bool, at_start: bool, is_last: bool) {
        let lead = line.len() - line.trim_start_matches(' ').len();
        let trail = line.trim_end_matches(' ').len();
        let edge_start = at_start && lead > 0;
        let edge_end = is_last && trail < line.len();
        let inner = if edge_start { &line[lead..] } else { line };
        let inner = if edge_end { inner.trim_end_matches(' ') } else { inner };
        if edge_start {
            self.put(&line[..lead]);
        }
        self.folded(&inner.replace('\'', "''"), indent, split, true);
        if edge_end && trail >= lead {
            self.put(&line[trail..]);
        }
    }

    /// Writes words, breaking the line at a single blank once it is wider than wanted.
    fn folded(&mut self, text: &str, indent: usize, split: bool, quoted: bool) {
        let mut rest = text;
        loop {
            let end = rest.find(' ').unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            if !word.is_empty() {
                self.put(word);
                self.whitespace = false;
                self.indention = false;
            }
            if after.is_empty() {
                return;
            }
            let blanks = after.len() - after.trim_start_matches(' ').len();
            if blanks == 1 && self.column > self.style.width && split {
                self.indent(indent);
                if !quoted {
                    self.whitespace = false;
                    self.indention = false;
                }
            } else {
                self.put(&after[..blanks]);
            }
            rest = &after[blanks..];
        }
    }

    fn double_quoted(&mut self, text: &str, indent: usize, split: bool) {
        self.indicator("\"", true);
        let chars: Vec<char> = text.chars().collect();
        let mut after_blank = false;
        for (nth, &c) in chars.iter().enumerate() {
            let is_inner = nth > 0 && nth + 1 < chars.len();
            if c == ' ' && split && is_inner && !after_blank && self.column > self.style.width {
                self.indent(indent);
                // Blanks at the start of a line count only behind a backslash.
                if chars.get(nth + 1) == Some(&' ') {
                    self.put("\\");
                }
                after_blank = true;
                continue;
            }
            after_blank = c == ' ';
            match escaped(c) {
                Some(escaped) => self.put(&escaped),
                None => self.put(c.encode_utf8(&mut [0; 4])),
            }
            self.whitespace = false;
            self.indention = false;
        }
        self.indicator("\"", false);
    }
}

/// Returns what stands for a letter between double quotes, where it does not stand for itself.
pub(super) fn escaped(c: char) -> Option<String> {
    Some(match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\0' => "\\0".to_owned(),
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\r' => "\\r".to_owned(),
        '\u{1b}' => "\\e".to_owned(),
        '\u{85}' => "\\N".to_owned(),
        '\u{2028}' => "\\L".to_owned(),
        '\u{2029}' => "\\P".to_owned(),
        ' '..='~' => return None,
        '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' if c != '\u{feff}' => return None,
        c if (c as u32) <= 0xff => format!("\\x{:02X}", c as u32),
        c if (c as u32) <= 0xffff => format!("\\u{:04X}", c as u32),
        c => format!("\\U{:08X}", c as u32),
    })
}

/// Returns whether more than one newline stands at a text's end, or nothing but one.
fn is_kept(text: &str) -> bool {
    text.strip_suffix(is_break).is_some_and(|before| before.is_empty() || before.ends_with(is_break))
}

/// Returns the tag of a scalar that is no text.
fn tag_of(value: &Value) -> &'static str {
    match value {
        Value::Null | Value::Omit => "!!null",
        Value::Bool(_) => "!!bool",
        Value::Int(_) => "!!int",
        Value::Float(_) => "!!float",
        Value::Str(_) | Value::List(_) | Value::Map(_) | Value::Lazy(_) => "!!str",
    }
}

fn plain_scalar(value: &Value) -> String {
    match value {
        Value::Null | Value::Omit => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Float(number) if number.is_nan() => ".nan".to_owned(),
        Value::Float(number) if number.is_infinite() => if *number > 0.0 { ".inf" } else { "-.inf" }.to_owned(),
        Value::Float(_) => {
            let text = value.to_string();
            match text.split_once('e') {
                Some((digits, power)) if !digits.contains('.') => format!("{digits}.0e{power}"),
                _ => text,
            }
        }
        other => other.to_string(),
    }
}

/// Returns whether a plain text would be read as something else than a text, under YAML 1.1.
fn means_something_else(text: &str) -> bool {
    static OTHER: LazyLock<Regex> = LazyLock::new(|| {
        let words = "yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF|~|null|Null|NULL||<<|=";
        let whole = r"[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+";
        let sixty = r"[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*";
        let float = r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?";
        let special = r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|[0-9]{4}-[0-9]{2}-[0-9]{2}";
        let moment = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?";
        Regex::new(&format!("\\A(?:{words}|{whole}|{sixty}|{float}|{special}|{moment})\\z"))
            .expect("the pattern is well formed")
    });
    OTHER.is_match(text).unwrap_or(true)
}
