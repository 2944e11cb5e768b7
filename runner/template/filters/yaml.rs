//! Writes YAML with the layout that Python's PyYAML gives it, which `to_yaml` and `to_nice_yaml` are known by.

mod analysis;
mod scalars;

use crate::template::{operators, sorting};
use crate::value::{Map, Value};

/// How YAML is laid out.
pub(super) struct Style {
    pub indent: usize,
    /// Where lines are folded.
    pub width: usize,
    pub sort: bool,
    /// Collections in brackets: all, none, or those that hold scalars only.
    pub flow: Option<bool>,
    /// How scalars are written; the plainest way that each allows when absent.
    pub scalars: Option<Scalars>,
    /// Whether everything is in brackets and quotes, one a line, with its tag.
    pub canonical: bool,
    /// Whether `---` comes first.
    pub start: bool,
    /// Whether `...` comes last.
    pub end: bool,
}

/// A way to write scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalars {
    Literal,
    Folded,
    SingleQuoted,
    DoubleQuoted,
}

impl Scalars {
    /// Returns the way that a mark stands for.
    pub fn named(mark: &str) -> Option<Scalars> {
        Some(match mark {
            "|" => Scalars::Literal,
            ">" => Scalars::Folded,
            "'" => Scalars::SingleQuoted,
            "\"" => Scalars::DoubleQuoted,
            _ => return None,
        })
    }
}

/// Returns a value as a YAML document.
pub(super) fn written(value: &Value, style: &Style) -> String {
    let mut writer = Writer {
        out: String::new(),
        column: 0,
        whitespace: true,
        indention: true,
        open_ended: false,
        style,
        flow_level: 0,
    };
    if style.start {
        writer.indicator("---", true);
        if style.canonical || !is_scalar(value) && !writer.is_flow(value) {
            writer.line_break();
        }
    }
    writer.node(value, None, Within::Root);
    writer.indent(0);
    if style.end || writer.open_ended {
        writer.out.push_str("...\n");
    }
    writer.out
}

/// What a node stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Root,
    List,
    Map,
    Key,
}

struct Writer<'a> {
    out: String,
    column: usize,
    /// Whether what was written last is white space.
    whitespace: bool,
    /// Whether only indentation was written on this line, dashes counted as such.
    indention: bool,
    /// Whether the last newlines written belong to a text that ends in several.
    open_ended: bool,
    style: &'a Style,
    flow_level: usize,
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::List(_) | Value::Map(_))
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

impl Writer<'_> {
    fn put(&mut self, text: &str) {
        self.open_ended = false;
        self.column += text.chars().count();
        self.out.push_str(text);
    }

    fn indicator(&mut self, text: &str, needs_blank: bool) {
        if needs_blank && !self.whitespace {
            self.put(" ");
        }
        self.put(text);
        self.whitespace = false;
        self.indention = false;
    }

    fn line_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
        self.whitespace = true;
        self.indention = true;
    }

    fn indent(&mut self, indent: usize) {
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.line_break();
        }
        if self.column < indent {
            self.whitespace = true;
            self.put(&" ".repeat(indent - self.column));
        }
    }

    fn is_flow(&self, value: &Value) -> bool {
        if self.flow_level > 0 || self.style.canonical {
            return true;
        }
        let scalars_only = match value {
            Value::List(items) => items.iter().all(is_scalar),
            Value::Map(map) => map.iter().all(|(key, value)| is_scalar(key) && is_scalar(value)),
            _ => true,
        };
        let is_empty = match value {
            Value::List(items) => items.is_empty(),
            Value::Map(map) => map.is_empty(),
            _ => false,
        };
        is_empty || self.style.flow.unwrap_or(scalars_only)
    }

    /// Writes a node; `indent` is that of the collection around it.
    fn node(&mut self, value: &Value, indent: Option<usize>, within: Within) {
        let inner = indent.map_or(self.style.indent, |indent| indent + self.style.indent);
        match value {
            Value::List(items) if self.is_flow(value) => self.flow_list(items, inner),
            Value::Map(map) if self.is_flow(value) => self.flow_map(map, inner),
            Value::List(items) => {
                // A list under a key is not indented any further.
                let is_indentless = within == Within::Map && !self.indention;
                let own = match indent {
                    None => 0,
                    Some(indent) if is_indentless => indent,
                    Some(_) => inner,
                };
                for item in items.iter() {
                    self.indent(own);
                    self.indicator("-", true);
                    self.indention = true;
                    self.node(item, Some(own), Within::List);
                }
            }
            Value::Map(map) => {
                let own = indent.map_or(0, |_| inner);
                for (key, value) in self.sorted(map) {
                    self.indent(own);
                    if is_simple_key(key) {
                        self.node(key, Some(own), Within::Key);
                        self.indicator(":", false);
                    } else {
                        self.indicator("?", true);
                        self.indention = true;
                        self.node(key, Some(own), Within::List);
                        self.indent(own);
                        self.indicator(":", true);
                        self.indention = true;
                    }
                    self.node(value, Some(own), Within::Map);
                }
            }
            scalar => self.scalar(scalar, inner, within == Within::Key),
        }
    }

    fn sorted<'m>(&self, map: &'m Map) -> Vec<(&'m Value, &'m Value)> {
        let entries: Vec<(&Value, &Value)> = map.iter().collect();
        if !self.style.sort {
            return entries;
        }
        sorting::sorted(entries.clone(), |a, b| operators::less(a.0, b.0)).unwrap_or(entries)
    }

    fn flow_list(&mut self, items: &[Value], indent: usize) {
        self.tag("!!seq");
        self.indicator("[", true);
        self.whitespace = true;
        self.flow_level += 1;
        for (nth, item) in items.iter().enumerate() {
            self.flow_separator(nth, indent);
            self.node(item, Some(indent), Within::List);
        }
        self.flow_level -= 1;
        self.flow_end(items.is_empty(), indent);
        self.indicator("]", false);
    }

    fn flow_map(&mut self, map: &Map, indent: usize) {
        self.tag("!!map");
        self.indicator("{", true);
        self.whitespace = true;
        self.flow_level += 1;
        for (nth, (key, value)) in self.sorted(map).into_iter().enumerate() {
            self.flow_separator(nth, indent);
            if is_simple_key(key) && !self.style.canonical {
                self.node(key, Some(indent), Within::Key);
                self.indicator(":", false);
            } else {
                self.indicator("?", true);
                self.node(key, Some(indent), Within::List);
                if self.style.canonical {
                    self.indent(indent);
                }
                self.indicator(":", true);
            }
            self.node(value, Some(indent), Within::Map);
        }
        self.flow_level -= 1;
        self.flow_end(map.is_empty(), indent);
        self.indicator("}", false);
    }

    fn flow_separator(&mut self, nth: usize, indent: usize) {
        if nth > 0 {
            self.indicator(",", false);
        }
        if self.style.canonical || self.column > self.style.width {
            self.indent(indent);
        }
    }

    fn flow_end(&mut self, is_empty: bool, indent: usize) {
        if self.style.canonical && !is_empty {
            self.indicator(",", false);
            self.indent(indent.saturating_sub(self.style.indent));
        }
    }

    /// Writes a tag where everything has one.
    fn tag(&mut self, tag: &str) {
        if self.style.canonical {
            self.indicator(tag, true);
        }
    }
}

fn is_simple_key(key: &Value) -> bool {
    match key {
        Value::Str(text) => text.as_str().chars().count() < 128 && !text.as_str().contains(is_break),
        Value::List(items) => items.is_empty(),
        Value::Map(map) => map.is_empty(),
        _ => true,
    }
}
