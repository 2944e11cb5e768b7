//! Decodes a module's arguments as leniently as users of Ansible expect (`"yes"` is a boolean, `5` a string, `a,b` a
//! list), and says *which* argument is wrong, so that the runner can point at where it was written.
//!
//! A module's type derives [`Arguments`]; what lies within an argument derives serde's `Deserialize`. A field whose name
//! begins with `+` is a block of arguments that several modules share: see `shared.rs`.

mod arguments;

use std::fmt;

pub use kubeon_derive::Arguments;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};
use serde_json::Value;

use crate::host::Map;

pub use arguments::{Argument, Arguments, Given, Row, arguments};

/// Where in the arguments something is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// From the outermost key inwards; empty for the arguments as a whole.
    pub path: Vec<Step>,
    /// Whether the last key itself is wrong (unknown, given twice) and not its value.
    pub at_key: bool,
    /// The key that is missing, where that is the fault.
    pub missing: Option<String>,
    pub message: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, step) in self.path.iter().enumerate() {
            match step {
                Step::Key(key) if nth == 0 => write!(f, "`{key}")?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        let separator = if self.path.is_empty() { "" } else { "`: " };
        write!(f, "{separator}{}", self.message)
    }
}

impl std::error::Error for DecodeError {}

/// A [`DecodeError`] kept apart, so that what is written out for each type of arguments moves a pointer only.
#[derive(Debug)]
struct Fault(Box<DecodeError>);

impl Fault {
    #[inline(never)]
    fn new(message: String, missing: Option<String>) -> Fault {
        Fault(Box::new(DecodeError { path: Vec::new(), at_key: false, missing, message }))
    }

    #[inline(never)]
    fn within(mut self, step: Step) -> Fault {
        self.0.path.insert(0, step);
        self
    }

    #[inline(never)]
    fn at_key(mut self, key: &str) -> Fault {
        self.0.at_key = true;
        self.within(Step::Key(key.to_owned()))
    }

    #[inline(never)]
    fn below(self, key: &str) -> Fault {
        self.within(Step::Key(key.to_owned()))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Fault {
        Fault::new(message.to_string(), None)
    }
    #[inline(never)]
    fn unknown_variant(found: &str, known: &'static [&'static str]) -> Fault {
        let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        Fault::new(format!("unknown value `{found}`, {}", arguments::expected(&known)), None)
    }
    #[inline(never)]
    fn invalid_type(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Fault {
        let found = match found {
            de::Unexpected::Seq => "a list".to_owned(),
            de::Unexpected::Map => "a mapping".to_owned(),
            de::Unexpected::Unit | de::Unexpected::Option => "nothing".to_owned(),
            de::Unexpected::Unsigned(number) => format!("the number {number}"),
            de::Unexpected::Signed(number) => format!("the number {number}"),
            other => other.to_string(),
        };
        let expected = match expected.to_string().as_str() {
            "u8" => "a whole number from 0 to 255".to_owned(),
            "u16" => "a whole number from 0 to 65535".to_owned(),
            "u32" => "a whole number from 0 to 4294967295".to_owned(),
            "u64" | "usize" => "a whole number that is not negative".to_owned(),
            other => other.to_owned(),
        };
        Fault::new(format!("expected {expected}, found {found}"), None)
    }
    fn invalid_value(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Fault {
        Fault::invalid_type(found, expected)
    }
    #[inline(never)]
    fn missing_field(field: &'static str) -> Fault {
        Fault::new(format!("missing `{field}`"), Some(field.to_owned()))
    }
    #[inline(never)]
    fn duplicate_field(field: &'static str) -> Fault {
        Fault::new(format!("duplicate field `{field}`"), None)
    }
}

/// Decodes arguments of an action of the runner, which are no module's.
///
/// # Errors
/// The first fault, with the path to it. A missing key is reported only when nothing else is wrong.
pub fn decode<T: DeserializeOwned>(args: &Map) -> Result<T, DecodeError> {
    T::deserialize(Object(args)).map_err(|fault| *fault.0)
}

struct Object<'a>(&'a Map);

impl<'de> Deserializer<'de> for Object<'_> {
    type Error = Fault;
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(Entries::of(self.0))
    }
    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct struct map enum identifier ignored_any
    }
}

/// The entries of a mapping.
struct Entries<'a> {
    rest: serde_json::map::Iter<'a>,
    current: Option<(&'a String, &'a Value)>,
}

impl<'a> Entries<'a> {
    fn of(map: &'a Map) -> Entries<'a> {
        Entries { rest: map.iter(), current: None }
    }
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = Fault;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        self.current = self.rest.next();
        let Some((key, _)) = self.current else { return Ok(None) };
        let named: StrDeserializer<'_, Fault> = key.as_str().into_deserializer();
        seed.deserialize(named).map(Some).map_err(|error| error.at_key(key))
    }
    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Fault> {
        let (key, value) = self.current.expect("a value is asked for after its key");
        seed.deserialize(Lenient(value)).map_err(|error| error.below(key))
    }
}

struct Items<'a>(std::iter::Enumerate<std::slice::Iter<'a, Value>>);

impl<'de> de::SeqAccess<'de> for Items<'_> {
    type Error = Fault;
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some((index, value)) = self.0.next() else { return Ok(None) };
        seed.deserialize(Lenient(value)).map(Some).map_err(|error| error.within(Step::Index(index)))
    }
}

/// A value that turns into what is asked of it where a person would say that it is the same.
struct Lenient<'a>(&'a Value);

impl Lenient<'_> {
    fn wrong(&self, expected: &str) -> Fault {
        let got = match self.0 {
            Value::Null => "nothing".to_owned(),
            Value::Bool(value) => format!("the boolean {value}"),
            Value::Number(value) => format!("the number {value}"),
            Value::String(text) => format!("`{text}`"),
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "a mapping".to_owned(),
        };
        de::Error::custom(format_args!("expected {expected}, found {got}"))
    }

    fn text(&self) -> Option<String> {
        match self.0 {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            // As Python writes them, which is what Ansible passes on.
            Value::Bool(true) => Some("True".to_owned()),
            Value::Bool(false) => Some("False".to_owned()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    fn integer<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let number = match self.0 {
            Value::Number(number) => Some(number.clone()),
            Value::String(text) => match text.trim().parse::<i64>() {
                Ok(value) => Some(value.into()),
                Err(_) => None,
            },
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let Some(number) = number else { return Err(self.wrong("an integer")) };
        match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(value), _, _) => visitor.visit_u64(value),
            (None, Some(value), _) => visitor.visit_i64(value),
            (None, None, Some(value)) if value.fract() == 0.0 => visitor.visit_i64(value as i64),
            (None, None, _) => Err(self.wrong("an integer")),
        }
    }
}

/// Returns the boolean that a word stands for. Source: `BOOLEANS_TRUE` and `BOOLEANS_FALSE` of ansible-core.
fn boolean_of(word: &str) -> Option<bool> {
    match word.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" | "on" | "1" | "true" | "t" | "1.0" => Some(true),
        "n" | "no" | "off" | "0" | "false" | "f" | "0.0" => Some(false),
        _ => None,
    }
}

macro_rules! integers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            self.integer(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for Lenient<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => visitor.visit_u64(value),
                (None, Some(value)) => visitor.visit_i64(value),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_str(text),
            Value::Array(items) => visitor.visit_seq(Items(items.iter().enumerate())),
            Value::Object(entries) => visitor.visit_map(Entries::of(entries)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::Bool(value) => visitor.visit_bool(*value),
            _ => match self.text().as_deref().and_then(boolean_of) {
                Some(value) => visitor.visit_bool(value),
                None => Err(self.wrong("a boolean")),
            },
        }
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::Number(number) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) if text.trim().parse::<f64>().is_ok() => {
                visitor.visit_f64(text.trim().parse().unwrap_or(f64::NAN))
            }
            _ => Err(self.wrong("a number")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.text() {
            Some(text) => visitor.visit_string(text),
            None => Err(self.wrong("a string")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let items: Vec<Value> = match self.0 {
            Value::Array(items) => return visitor.visit_seq(Items(items.iter().enumerate())),
            Value::String(text) if text.is_empty() => Vec::new(),
            Value::String(text) => text.split(',').map(|item| Value::from(item.trim())).collect(),
            Value::Number(_) | Value::Bool(_) => vec![self.0.clone()],
            Value::Null | Value::Object(_) => return Err(self.wrong("a list")),
        };
        visitor.visit_seq(Items(items.iter().enumerate()))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::Object(entries) => visitor.visit_map(Entries::of(entries)),
            _ => Err(self.wrong("a mapping")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if let Some(text) = self.text() {
            let lower = text.to_ascii_lowercase();
            let text = if variants.contains(&text.as_str()) { text } else { lower };
            return visitor.visit_enum(text.into_deserializer());
        }
        Err(self.wrong("one word"))
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[derive(Debug, Arguments, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Args {
        name: String,
        #[serde(default)]
        gid: Option<u32>,
        #[serde(default)]
        system: bool,
        #[serde(default)]
        names: Vec<String>,
        #[serde(default)]
        labels: BTreeMap<String, String>,
    }

    fn decoded(args: Value) -> Result<Args, DecodeError> {
        arguments(args.as_object().expect("an object"))
    }

    #[test]
    fn says_the_same_in_other_types() {
        let args = decoded(json!({"name": 5, "gid": "999", "system": "yes", "names": "a, b", "labels": {"x": true}}));
        let labels = BTreeMap::from([("x".to_owned(), "True".to_owned())]);
        assert_eq!(
            args,
            Ok(Args { name: "5".into(), gid: Some(999), system: true, names: vec!["a".into(), "b".into()], labels })
        );
    }

    #[derive(Debug, Arguments, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Shared {
        #[serde(default, alias = "group")]
        groups: Vec<String>,
    }

    #[derive(Debug, Arguments, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Whole {
        name: String,
        mode: Option<crate::mode::Mode>,
        /// For the runner alone.
        #[serde(rename = "_sent_along")]
        sent_along: Option<String>,
        #[serde(rename = "+shared")]
        shared: Shared,
    }

    fn whole(args: Value) -> Result<Whole, DecodeError> {
        arguments(args.as_object().expect("an object"))
    }

    #[test]
    fn a_block_takes_its_fields_from_the_same_mapping() {
        let shared = Shared { groups: vec!["a".into(), "b".into()] };
        assert_eq!(
            whole(json!({"groups": "a,b", "name": "x"})),
            Ok(Whole { name: "x".into(), mode: None, sent_along: None, shared })
        );
        assert_eq!(whole(json!({"name": "x"})).map(|whole| whole.shared.groups), Ok(Vec::new()));
        for wrong in ["grups", "+shared"] {
            let error = whole(json!({"group": "a", wrong: 1, "name": "x"})).expect_err("it is unknown");
            let said = format!("unknown field `{wrong}`, expected one of `name`, `mode`, `group`, `groups`");
            assert_eq!((error.message, error.path), (said, vec![Step::Key(wrong.into())]));
            assert!(error.at_key);
        }
        let error = whole(json!({"groups": {}, "name": "x"})).expect_err("a mapping is no list");
        assert_eq!(error.to_string(), "`groups`: expected a list, found a mapping");
        let error = whole(json!({"mode": ["0644"], "name": "x"})).expect_err("a list is no mode");
        assert_eq!(error.to_string(), "`mode`: expected a mode such as \"0644\" or u=rw,g=r, found a list");
        for (gid, said) in [(json!(-1), "the number -1"), (json!(1_u64 << 40), "the number 1099511627776")] {
            let error = decoded(json!({"name": "x", "gid": gid})).expect_err("it is no gid");
            assert_eq!(error.to_string(), format!("`gid`: expected a whole number from 0 to 4294967295, found {said}"));
        }
        let sent = whole(json!({"_sent_along": "a", "name": "x"})).map(|whole| whole.sent_along);
        assert_eq!(sent, Ok(Some("a".into())));
        let error = whole(json!({"group": "a", "groups": "b", "name": "x"})).expect_err("both are one");
        assert_eq!(error.message, "duplicate field `groups`");
        assert_eq!(whole(json!({"groups": "a"})).expect_err("`name` is missing").missing.as_deref(), Some("name"));
    }

    #[test]
    fn points_at_the_key_or_the_value() {
        let error = decoded(json!({"name": "x", "gdi": 1})).expect_err("`gdi` is unknown");
        assert!(error.at_key && error.path == [Step::Key("gdi".into())], "{error:?}");
        let error = decoded(json!({"name": "x", "names": ["a", {}]})).expect_err("a mapping is no string");
        assert_eq!(error.to_string(), "`names[1]`: expected a string, found a mapping");
        let error = decoded(json!({"gid": 1})).expect_err("`name` is missing");
        assert_eq!(error.missing.as_deref(), Some("name"));
    }
}
