//! TOML inventories: read into the nodes that a YAML inventory is read from.

use std::path::Path;

use toml_edit::{Array, Document, InlineTable, Item, Key, Table, Value};

use crate::source::{Diagnostic, FileId, Place};
use crate::value::Trust;
use crate::yaml::{Kind, Node};

/// Reads the text of a TOML file, which `shown` is in messages.
///
/// # Errors
/// When it is no TOML.
pub(super) fn parse(path: &Path, text: &str, shown: &str) -> Result<Node, Diagnostic> {
    let file = FileId::register(path, shown);
    let lines = Lines { file, starts: starts_of(text), text };
    let document: Document<&str> = Document::parse(text).map_err(|error| {
        let place = error.span().map_or(file.at(1, 1), |span| lines.place(span.start));
        Diagnostic::error(place, format!("not TOML: {}", error.message().trim()))
    })?;
    Ok(lines.table(document.as_table(), file.at(1, 1)))
}

fn starts_of(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// Where in the file a byte is.
struct Lines<'a> {
    file: FileId,
    starts: Vec<usize>,
    text: &'a str,
}

impl Lines<'_> {
    fn place(&self, byte: usize) -> Place {
        let line = self.starts.partition_point(|start| *start <= byte).max(1);
        let start = self.starts[line - 1];
        let before = self.text.get(start..byte).unwrap_or_default();
        self.file.at(line, before.chars().count() + 1)
    }

    fn at(&self, span: Option<std::ops::Range<usize>>, usual: Place) -> Place {
        span.map_or(usual, |span| self.place(span.start))
    }

    fn text(&self, text: &str, place: Place) -> Node {
        Node { place, kind: Kind::Str { text: text.into(), trust: Trust::Template } }
    }

    fn key(&self, key: &Key, usual: Place) -> Node {
        self.text(key.get(), self.at(key.span(), usual))
    }

    fn table(&self, table: &Table, usual: Place) -> Node {
        let place = self.at(table.span(), usual);
        let mut entries = Vec::new();
        for (name, item) in table.iter() {
            let key = table.key(name).map_or_else(|| self.text(name, place), |key| self.key(key, place));
            let value = self.item(item, key.place);
            entries.push((key, value));
        }
        Node { place, kind: Kind::Map(entries) }
    }

    fn item(&self, item: &Item, usual: Place) -> Node {
        match item {
            Item::None => Node { place: usual, kind: Kind::Null },
            Item::Value(value) => self.value(value, usual),
            Item::Table(table) => self.table(table, usual),
            Item::ArrayOfTables(tables) => {
                let items = tables.iter().map(|table| self.table(table, usual)).collect();
                Node { place: self.at(tables.span(), usual), kind: Kind::List(items) }
            }
        }
    }

    fn value(&self, value: &Value, usual: Place) -> Node {
        let place = self.at(value.span(), usual);
        let kind = match value {
            Value::String(text) => return self.text(text.value(), place),
            Value::Integer(number) => Kind::Int(*number.value()),
            Value::Float(number) => Kind::Float(*number.value()),
            Value::Boolean(value) => Kind::Bool(*value.value()),
            // A date is the text that it is written as, here as in YAML.
            Value::Datetime(time) => return self.text(&time.value().to_string(), place),
            Value::Array(array) => self.array(array, place),
            Value::InlineTable(table) => self.inline(table, place),
        };
        Node { place, kind }
    }

    fn array(&self, array: &Array, place: Place) -> Kind {
        Kind::List(array.iter().map(|value| self.value(value, place)).collect())
    }

    fn inline(&self, table: &InlineTable, place: Place) -> Kind {
        let mut entries = Vec::new();
        for (name, value) in table.iter() {
            let key = table.key(name).map_or_else(|| self.text(name, place), |key| self.key(key, place));
            let value = self.value(value, key.place);
            entries.push((key, value));
        }
        Kind::Map(entries)
    }
}
