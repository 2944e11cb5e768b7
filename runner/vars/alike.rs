//! One copy of what hosts have in common: the facts of a fleet are mostly the same texts, lists and mappings.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

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

/// A task's result as its host tells it: none of its strings is ever rendered. Of facts, what is the same as something
/// that came before is that.
pub struct Told(pub Map);

impl<'de> Deserialize<'de> for Told {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Told, D::Error> {
        deserializer.deserialize_map(Whole)
    }
}

struct Whole;

impl<'de> Visitor<'de> for Whole {
    type Value = Told;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a result")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Told, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = if key == "ansible_facts" {
                // Held while they are read: what is alike is found in one place, and one host's facts are in the making.
                let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
                let known = known.get_or_insert_default();
                if known.kept > LIMIT {
                    *known = Known::default();
                }
                entries.next_value_seed(Making(known))?
            } else {
                entries.next_value_seed(Making(&mut Anew))?
            };
            map.insert(key, value);
        }
        Ok(Told(map))
    }
}

/// Makes values of what is read.
trait Maker {
    fn text(&mut self, text: &str) -> Value;
    fn node(&mut self, node: Value) -> Value;
}

/// Makes each value anew.
struct Anew;

impl Maker for Anew {
    fn text(&mut self, text: &str) -> Value {
        Value::str(text)
    }
    fn node(&mut self, node: Value) -> Value {
        node
    }
}

struct Making<'a, M>(&'a mut M);

impl<'de, M: Maker> DeserializeSeed<'de> for Making<'_, M> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, M: Maker> Visitor<'de> for Making<'_, M> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Float(value as f64), Value::Int))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }
    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(self.0.text(text))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Making(&mut *self.0))? {
            list.push(item);
        }
        list.shrink_to_fit();
        Ok(self.0.node(Value::list(list)))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key_seed(Making(&mut *self.0))? {
            map.insert(key, entries.next_value_seed(Making(&mut *self.0))?);
        }
        Ok(self.0.node(Value::map(map)))
    }
}

impl Maker for Known {
    fn text(&mut self, text: &str) -> Value {
        if let Some(known) = self.texts.get(text) {
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
    use serde_json::{Value as Json, json};

    use super::*;

    /// Returns a result with these facts, as it is read.
    fn told(facts: &Json) -> Map {
        let text = json!({"changed": false, "ansible_facts": facts}).to_string();
        serde_json::from_str::<Told>(&text).expect("a result").0
    }

    fn facts(host: &str) -> Json {
        json!({
            "host": host, "big": u64::MAX, "small": -1,
            "packages": {"bash": [{"name": "bash", "size": 1}], "zsh": [{"name": "zsh", "size": 1.5}]},
            "flags": [true, null, "x"],
        })
    }

    #[test]
    fn what_two_hosts_have_in_common_is_there_once() {
        let (one, two) = (told(&facts("a")), told(&facts("b")));
        for (map, host) in [(&one, "a"), (&two, "b")] {
            let plain = json!({"changed": false, "ansible_facts": facts(host)});
            assert_eq!(*map, Map::from_json(plain.as_object().expect("an object").clone()));
        }
        let fact = |map: &Map, key: &str| map.get("ansible_facts").and_then(|facts| facts.get(key)).cloned();
        for key in ["packages", "flags"] {
            assert!(is_one(&fact(&one, key).expect(key), &fact(&two, key).expect(key)), "{key}");
        }
        assert!(!is_one(&fact(&one, "host").expect("a host"), &fact(&two, "host").expect("a host")));
    }

    #[test]
    fn what_differs_stays_apart() {
        let pairs = [
            (json!({"k": [1]}), json!({"k": [1.0]})),
            (json!({"k": ["a", "b"]}), json!({"k": {"a": "b"}})),
            (json!({"k": {"a": 1, "b": 2}}), json!({"k": {"b": 2, "a": 1}})),
        ];
        for (one, two) in pairs {
            let (shown, other) = (told(&one), told(&two));
            let facts = |map: &Map| map.get("ansible_facts").map(|facts| facts.to_json().to_string());
            assert_eq!((facts(&shown), facts(&other)), (Some(one.to_string()), Some(two.to_string())));
        }
    }
}
