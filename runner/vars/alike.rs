//! One copy of what hosts have in common: the facts of a fleet are mostly the same texts, lists and mappings.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map as JsonMap, Value as Json};

use crate::value::{Map, Str, Value};

/// How many texts, lists and mappings are remembered. Beyond that, all are forgotten: what comes later shares anew.
const LIMIT: usize = 1 << 20;

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

#[derive(Default)]
struct Known {
    texts: HashSet<Arc<str>>,
    /// Lists and mappings by a hash of their entries, which are known themselves.
    nodes: HashMap<u64, Vec<Value>>,
    kept: usize,
}

/// As [`Map::from_json`]; what is the same as something that came before is that.
pub fn map(entries: JsonMap<String, Json>) -> Map {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if known.kept > LIMIT {
        *known = Known::default();
    }
    known.entries(entries)
}

impl Known {
    fn entries(&mut self, entries: JsonMap<String, Json>) -> Map {
        entries.into_iter().map(|(key, value)| (self.text(key), self.value(value))).collect()
    }

    fn value(&mut self, json: Json) -> Value {
        match json {
            Json::String(text) => self.text(text),
            Json::Array(items) => {
                let items = items.into_iter().map(|item| self.value(item)).collect();
                self.node(Value::list(items))
            }
            Json::Object(entries) => {
                let map = self.entries(entries);
                self.node(Value::map(map))
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => Value::from_json(json),
        }
    }

    fn text(&mut self, text: String) -> Value {
        if let Some(known) = self.texts.get(text.as_str()) {
            return Value::Str(Str::data(known.clone()));
        }
        let text: Arc<str> = text.into();
        self.texts.insert(text.clone());
        self.kept += 1;
        Value::Str(Str::data(text))
    }

    fn node(&mut self, node: Value) -> Value {
        let mut hasher = DefaultHasher::new();
        parts(&node).for_each(|part| mark(part, &mut hasher));
        let alike = self.nodes.entry(hasher.finish()).or_default();
        let same = |other: &&Value| {
            discriminant(*other) == discriminant(&node)
                && parts(other).count() == parts(&node).count()
                && parts(other).zip(parts(&node)).all(|(one, two)| is_one(one, two))
        };
        if let Some(known) = alike.iter().find(same) {
            return known.clone();
        }
        alike.push(node.clone());
        self.kept += 1;
        node
    }
}

/// Returns a list's items, or a mapping's keys and values in turn.
fn parts(node: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match node {
        Value::List(items) => Box::new(items.iter()),
        Value::Map(map) => Box::new(map.iter().flat_map(|(key, value)| [key, value])),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Str(_)
        | Value::Omit
        | Value::Lazy(_) => Box::new(std::iter::empty()),
    }
}

/// Tells a part from others: what is shared by its address.
fn mark(part: &Value, hasher: &mut DefaultHasher) {
    discriminant(part).hash(hasher);
    match part {
        Value::Bool(value) => value.hash(hasher),
        Value::Int(value) => value.hash(hasher),
        Value::Float(value) => value.to_bits().hash(hasher),
        Value::Str(text) => text.shared().as_ptr().hash(hasher),
        Value::List(items) => Arc::as_ptr(items).hash(hasher),
        Value::Map(map) => Arc::as_ptr(map).hash(hasher),
        Value::Null | Value::Omit | Value::Lazy(_) => {}
    }
}

/// Returns whether two parts are one and the same.
fn is_one(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Str(one), Value::Str(two)) => Arc::ptr_eq(one.shared(), two.shared()),
        (Value::List(one), Value::List(two)) => Arc::ptr_eq(one, two),
        (Value::Map(one), Value::Map(two)) => Arc::ptr_eq(one, two),
        (Value::Float(one), Value::Float(two)) => one.to_bits() == two.to_bits(),
        (one, two) => discriminant(one) == discriminant(two) && one == two,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(host: &str) -> JsonMap<String, Json> {
        let json = serde_json::json!({
            "host": host,
            "packages": {"bash": [{"name": "bash", "size": 1}], "zsh": [{"name": "zsh", "size": 1.5}]},
            "flags": [true, null, "x"],
        });
        json.as_object().expect("an object").clone()
    }

    #[test]
    fn what_two_hosts_have_in_common_is_there_once() {
        let (one, two) = (map(facts("a")), map(facts("b")));
        assert_eq!((&one, &two), (&Map::from_json(facts("a")), &Map::from_json(facts("b"))));
        for key in ["packages", "flags"] {
            assert!(is_one(one.get(key).expect(key), two.get(key).expect(key)), "{key}");
        }
        assert!(!is_one(one.get("host").expect("a host"), two.get("host").expect("a host")));
    }

    #[test]
    fn what_differs_stays_apart() {
        let of = |json: Json| map(json.as_object().expect("an object").clone());
        let pairs = [
            (serde_json::json!({"k": [1]}), serde_json::json!({"k": [1.0]})),
            (serde_json::json!({"k": ["a", "b"]}), serde_json::json!({"k": {"a": "b"}})),
            (serde_json::json!({"k": {"a": 1, "b": 2}}), serde_json::json!({"k": {"b": 2, "a": 1}})),
        ];
        for (one, two) in pairs {
            let (shown, other) = (of(one.clone()), of(two.clone()));
            assert_eq!((Json::Object(shown.to_json()), Json::Object(other.to_json())), (one, two));
        }
    }
}
