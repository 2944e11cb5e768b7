//! The one value of variables, arguments and results: shared when cloned, and aware, for a string, of whether it may
//! be a template and of where it was written.

mod json;
mod print;

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use indexmap::{Equivalent, IndexMap};

use crate::source::Place;

#[derive(Clone, Default)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Str),
    List(Arc<Vec<Value>>),
    Map(Arc<Map>),
    /// What `omit` is: an argument with this value is left out.
    Omit,
    /// A mapping whose entries are made when asked for, such as `hostvars`.
    Lazy(Arc<dyn Lazy>),
}

/// A mapping whose entries are made when asked for. They come rendered: in the context they belong to, not the asker's.
pub trait Lazy: Send + Sync {
    /// Returns an entry; `None` when there is no such key.
    ///
    /// # Errors
    /// A sentence for a person when the entry's own template fails.
    fn get(&self, key: &str) -> Result<Option<Value>, String>;
    fn keys(&self) -> Vec<Arc<str>>;
}

/// A string, whether it may be a template, and where it was written.
#[derive(Clone)]
pub struct Str {
    text: Arc<str>,
    pub place: Place,
    pub trust: Trust,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// From a playbook, an inventory or a variable file: `{{ … }}` in it is rendered.
    Template,
    /// From a host, a fact, a lookup, `!unsafe` or a template's result: never rendered.
    Data,
}

impl Str {
    /// A text that is never rendered.
    pub fn data(text: impl Into<Arc<str>>) -> Str {
        Str { text: text.into(), place: Place::default(), trust: Trust::Data }
    }

    /// A text that a user wrote at `place`.
    pub fn template(text: impl Into<Arc<str>>, place: Place) -> Str {
        Str { text: text.into(), place, trust: Trust::Template }
    }

    /// Says where it was written.
    #[must_use]
    pub fn at(self, place: Place) -> Str {
        Str { place, ..self }
    }

    /// Says whether it may be a template.
    #[must_use]
    pub fn trusted(self, trust: Trust) -> Str {
        Str { trust, ..self }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn shared(&self) -> &Arc<str> {
        &self.text
    }

    /// Returns whether rendering could change it.
    pub fn is_template(&self) -> bool {
        self.trust == Trust::Template && may_be_template(&self.text)
    }
}

/// Returns whether a text holds a template's marks.
pub fn may_be_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%") || text.contains("{#")
}

impl Value {
    /// A string that is never rendered.
    pub fn str(text: impl Into<Arc<str>>) -> Value {
        Value::Str(Str::data(text))
    }

    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Arc::new(items))
    }

    pub fn map(map: Map) -> Value {
        Value::Map(Arc::new(map))
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text.as_str()),
            _ => None,
        }
    }

    pub fn as_map(&self) -> Option<&Arc<Map>> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&Arc<Vec<Value>>> {
        match self {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the entry of a map.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map().and_then(|map| map.get(key))
    }

    /// Returns whether it counts as true in a condition, as in Python.
    pub fn truthy(&self) -> bool {
        match self {
            Value::Null | Value::Omit => false,
            Value::Bool(value) => *value,
            Value::Int(value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Str(text) => !text.as_str().is_empty(),
            Value::List(items) => !items.is_empty(),
            Value::Map(map) => !map.is_empty(),
            Value::Lazy(lazy) => !lazy.keys().is_empty(),
        }
    }

    /// Returns a type's name as messages say it.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a number",
            Value::Str(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) | Value::Lazy(_) => "a mapping",
            Value::Omit => "`omit`",
        }
    }

    /// Returns whether it, or anything in it, is a string that rendering could change.
    pub fn holds_template(&self) -> bool {
        match self {
            Value::Str(text) => text.is_template(),
            Value::List(items) => items.iter().any(Value::holds_template),
            Value::Map(map) => map.iter().any(|(key, value)| key.holds_template() || value.holds_template()),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Omit | Value::Lazy(_) => false,
        }
    }
}

/// Returns all entries of a lazy mapping; one whose template fails is left out.
pub fn realized(lazy: &dyn Lazy) -> Map {
    let entry = |key: Arc<str>| match lazy.get(&key) {
        Ok(Some(value)) => Some((Value::str(key), value)),
        Ok(None) | Err(_) => None,
    };
    lazy.keys().into_iter().filter_map(entry).collect()
}

impl PartialEq for Str {
    fn eq(&self, other: &Str) -> bool {
        self.text == other.text
    }
}

/// Equal as Python has it, but that a boolean is not a number.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) | (Value::Omit, Value::Omit) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b || a.to_bits() == b.to_bits(),
            (Value::Int(a), Value::Float(b)) | (Value::Float(b), Value::Int(a)) => *a as f64 == *b,
            (Value::Str(a), Value::Str(b)) => a == b,
            (Value::List(a), Value::List(b)) => a == b,
            (Value::Map(a), Value::Map(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Value::Null => 0_u8.hash(state),
            Value::Omit => 1_u8.hash(state),
            Value::Bool(value) => (2_u8, value).hash(state),
            Value::Int(value) => (3_u8, (*value as f64).to_bits()).hash(state),
            Value::Float(value) => (3_u8, value.to_bits()).hash(state),
            Value::Str(text) => hash_text(text.as_str(), state),
            Value::List(items) => items.len().hash(state),
            Value::Map(map) => map.len().hash(state),
            Value::Lazy(lazy) => lazy.keys().len().hash(state),
        }
    }
}

fn hash_text<H: Hasher>(text: &str, state: &mut H) {
    (4_u8, text).hash(state);
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::str(text)
    }
}
impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::str(text)
    }
}
impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}
impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(value)
    }
}
impl From<Map> for Value {
    fn from(map: Map) -> Value {
        Value::map(map)
    }
}
impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Value {
        Value::list(items)
    }
}

/// A mapping in the order in which it was written.
#[derive(Clone, Default, PartialEq)]
pub struct Map(IndexMap<Value, Value>);

/// Looks a text up among keys without making a value of it.
#[derive(PartialEq, Eq)]
struct Text<'a>(&'a str);

impl Hash for Text<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_text(self.0, state);
    }
}

impl Equivalent<Value> for Text<'_> {
    fn equivalent(&self, key: &Value) -> bool {
        key.as_str() == Some(self.0)
    }
}

impl Map {
    pub fn new() -> Map {
        Map::default()
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(&Text(key))
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.0.get_mut(&Text(key))
    }

    pub fn get_key(&self, key: &Value) -> Option<&Value> {
        self.0.get(key)
    }

    pub fn contains_key(&self, key: &str) -> bool {
        self.0.contains_key(&Text(key))
    }

    /// Sets a value; a key that was there keeps its place in the order.
    pub fn insert(&mut self, key: impl Into<Value>, value: impl Into<Value>) -> Option<Value> {
        self.0.insert(key.into(), value.into())
    }

    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.0.shift_remove(&Text(key))
    }

    pub fn remove_key(&mut self, key: &Value) -> Option<Value> {
        self.0.shift_remove(key)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> indexmap::map::Iter<'_, Value, Value> {
        self.0.iter()
    }

    pub fn keys(&self) -> indexmap::map::Keys<'_, Value, Value> {
        self.0.keys()
    }

    pub fn values(&self) -> indexmap::map::Values<'_, Value, Value> {
        self.0.values()
    }
}

impl FromIterator<(Value, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Value, Value)>>(entries: I) -> Map {
        Map(entries.into_iter().collect())
    }
}

impl Extend<(Value, Value)> for Map {
    fn extend<I: IntoIterator<Item = (Value, Value)>>(&mut self, entries: I) {
        self.0.extend(entries);
    }
}

impl IntoIterator for Map {
    type Item = (Value, Value);
    type IntoIter = indexmap::map::IntoIter<Value, Value>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a Value, &'a Value);
    type IntoIter = indexmap::map::Iter<'a, Value, Value>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl Borrow<str> for Str {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_python_does() {
        let mut map = Map::new();
        map.insert("a", Value::list(vec![Value::Int(1), "it's".into(), Value::Null, Value::Float(2.0)]));
        map.insert(Value::Int(5), true);
        assert_eq!(Value::map(map).to_string(), r#"{'a': [1, "it's", None, 2.0], 5: True}"#);
    }

    #[test]
    fn finds_keys_by_text() {
        let mut map = Map::new();
        map.insert("key", Value::Int(1));
        assert_eq!(map.get("key"), Some(&Value::Int(1)));
        assert_eq!(map.get("other"), None);
    }

    #[test]
    fn a_value_stays_small() {
        assert!(size_of::<Value>() <= 40, "{}", size_of::<Value>());
    }
}
