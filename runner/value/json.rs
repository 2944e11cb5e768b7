//! A value from JSON and as JSON: what hosts and tools return, and what they are sent.

use super::{Map, Value, realized};

impl Value {
    /// Returns the value as JSON; keys become strings, `omit` and not-a-number become null.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Null | Value::Omit => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::Str(text) => text.as_str().into(),
            Value::List(items) => items.iter().map(Value::to_json).collect(),
            Value::Map(map) => serde_json::Value::Object(map.to_json()),
            Value::Lazy(lazy) => serde_json::Value::Object(realized(&**lazy).to_json()),
        }
    }

    /// Takes a value that a host or a tool returned: none of its strings is ever rendered.
    pub fn from_json(json: serde_json::Value) -> Value {
        match json {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(value),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(value) => Value::Int(value),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            serde_json::Value::String(text) => Value::str(text),
            serde_json::Value::Array(items) => Value::list(items.into_iter().map(Value::from_json).collect()),
            serde_json::Value::Object(entries) => Value::map(Map::from_json(entries)),
        }
    }
}

impl Map {
    /// Returns the map as a JSON object; keys become strings.
    pub fn to_json(&self) -> serde_json::Map<String, serde_json::Value> {
        self.iter().map(|(key, value)| (key.to_string(), value.to_json())).collect()
    }

    /// Takes an object that a host or a tool returned: none of its strings is ever rendered.
    pub fn from_json(entries: serde_json::Map<String, serde_json::Value>) -> Map {
        entries.into_iter().map(|(key, value)| (Value::str(key), Value::from_json(value))).collect()
    }
}
