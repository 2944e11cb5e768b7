//! A node of a YAML file: what was written, and where.

use std::sync::Arc;

use crate::source::Place;
use crate::value::{Map, Str, Trust, Value};

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub place: Place,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str {
        text: Arc<str>,
        trust: Trust,
    },
    /// A text encrypted with a vault, as it stands under `!vault`.
    Vault(Arc<str>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl Node {
    /// Returns the entry of a mapping.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|(name, _)| name.as_str() == Some(key)).map(|(_, value)| value)
    }

    /// Returns a mapping's entries; none for anything else.
    pub fn entries(&self) -> &[(Node, Node)] {
        match &self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Returns a list's items; `None` for anything else.
    pub fn items(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::Str { text, .. } => Some(text),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        self.kind == Kind::Null
    }

    /// Returns a scalar as text, as a key or a name is meant; a list or a mapping in Python's writing.
    pub fn text(&self) -> String {
        match &self.kind {
            Kind::Str { text, .. } => text.to_string(),
            _ => self.value().to_string(),
        }
    }

    /// Returns the value, its strings with their places. A vaulted text stays encrypted here; see `vault`.
    pub fn value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Int(value) => Value::Int(*value),
            Kind::Float(value) => Value::Float(*value),
            Kind::Str { text, trust: Trust::Template } => Value::Str(Str::template(text.clone(), self.place)),
            Kind::Str { text, trust: Trust::Data } => Value::Str(Str::data(text.clone()).at(self.place)),
            Kind::Vault(text) => Value::Str(Str::data(text.clone()).at(self.place)),
            Kind::List(items) => Value::list(items.iter().map(Node::value).collect()),
            Kind::Map(entries) => {
                Value::map(entries.iter().map(|(key, value)| (key.value(), value.value())).collect::<Map>())
            }
        }
    }

    /// Returns a type's name as messages say it.
    pub fn what(&self) -> &'static str {
        match &self.kind {
            Kind::Vault(_) => "a vaulted string",
            _ => self.value_kind(),
        }
    }

    fn value_kind(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "a boolean",
            Kind::Int(_) => "an integer",
            Kind::Float(_) => "a number",
            Kind::Str { .. } | Kind::Vault(_) => "a string",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }

    /// Returns how many nodes it is made of.
    pub(super) fn count(&self) -> usize {
        1 + match &self.kind {
            Kind::List(items) => items.iter().map(Node::count).sum(),
            Kind::Map(entries) => entries.iter().map(|(key, value)| key.count() + value.count()).sum(),
            _ => 0,
        }
    }

    pub(super) fn is_merge(&self) -> bool {
        self.as_str() == Some("<<")
    }

    pub(super) fn same_key(&self, other: &Node) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Str { text: a, .. }, Kind::Str { text: b, .. }) => a == b,
            (a, b) => a == b,
        }
    }

    /// Marks every string in it as never to be rendered.
    pub(super) fn make_unsafe(&mut self) {
        match &mut self.kind {
            Kind::Str { trust, .. } => *trust = Trust::Data,
            Kind::List(items) => items.iter_mut().for_each(Node::make_unsafe),
            Kind::Map(entries) => entries.iter_mut().for_each(|(_, value)| value.make_unsafe()),
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Vault(_) => {}
        }
    }
}
