//! Arguments that a module hands on to a program or a file under their own names: a table instead of a struct's fields,
//! read by the same code for every module.

use std::fmt;

use schemars::{Schema, json_schema};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::host::Map;

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Flag,
    Text,
    Number,
    List,
}

/// One argument.
#[derive(Debug)]
pub(crate) struct Row {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub kind: Kind,
}

/// The arguments that were given, in the order of the table.
#[derive(Debug, Default)]
pub(crate) struct Values(Vec<(&'static str, Value)>);

impl Values {
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// Whether a flag is given as true.
    pub fn is(&self, name: &str) -> bool {
        self.flag(name) == Some(true)
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).and_then(Value::as_bool)
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_i64)
    }

    /// Returns a list's words; none when it is not given.
    pub fn list(&self, name: &str) -> Vec<&str> {
        self.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// Declares a block of such arguments, for a module's field `+…` (see `shared.rs`). Each has one line of meaning.
macro_rules! table {
    ($vis:vis struct $struct:ident { $(#[doc = $meaning:literal] $field:tt $(| $alias:tt)*: $kind:ident,)* }) => {
        #[derive(Debug)]
        $vis struct $struct(crate::passed::Values);

        impl $struct {
            const NAMES: &'static [&'static str] = &[$(stringify!($field), $(stringify!($alias),)*)*];
            const ROWS: &'static [crate::passed::Row] = &[$(crate::passed::Row {
                name: stringify!($field),
                aliases: &[$(stringify!($alias),)*],
                kind: crate::passed::Kind::$kind,
            },)*];
        }

        impl<'de> serde::Deserialize<'de> for $struct {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$struct, D::Error> {
                crate::passed::read(deserializer, $struct::NAMES, $struct::ROWS).map($struct)
            }
        }

        impl schemars::JsonSchema for $struct {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($struct).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                crate::passed::schema($struct::ROWS, &[$($meaning,)*])
            }
        }

        impl std::ops::Deref for $struct {
            type Target = crate::passed::Values;
            fn deref(&self) -> &crate::passed::Values {
                &self.0
            }
        }
    };
}
pub(crate) use table;

/// Reads the arguments of a table, as leniently as those of a struct.
///
/// # Errors
/// What the deserializer reports, such as a text where a boolean belongs.
pub(crate) fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
    names: &'static [&'static str],
    rows: &'static [Row],
) -> Result<Values, D::Error> {
    deserializer.deserialize_struct("", names, Rows(rows))
}

struct Rows(&'static [Row]);

impl<'de> Visitor<'de> for Rows {
    type Value = Values;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("arguments")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
        let mut given: Vec<(usize, Value)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let is_it = |row: &Row| row.name == key || row.aliases.contains(&key.as_str());
            let at = self.0.iter().position(is_it).ok_or_else(|| serde::de::Error::unknown_field(&key, &[]))?;
            if given.iter().any(|(other, _)| *other == at) {
                return Err(serde::de::Error::duplicate_field(self.0[at].name));
            }
            let value = map.next_value_seed(self.0[at].kind)?;
            if !value.is_null() {
                given.push((at, value));
            }
        }
        given.sort_by_key(|(at, _)| *at);
        Ok(Values(given.into_iter().map(|(at, value)| (self.0[at].name, value)).collect()))
    }
}

impl<'de> DeserializeSeed<'de> for Kind {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Ok(match self {
            Kind::Flag => Option::<bool>::deserialize(deserializer)?.into(),
            Kind::Text => Option::<String>::deserialize(deserializer)?.into(),
            Kind::Number => Option::<i64>::deserialize(deserializer)?.into(),
            Kind::List => Option::<Vec<String>>::deserialize(deserializer)?.into(),
        })
    }
}

/// Returns the schema of a table, whose meanings are in the rows' order.
pub(crate) fn schema(rows: &[Row], meanings: &[&str]) -> Schema {
    let mut properties = Map::new();
    for (row, meaning) in rows.iter().zip(meanings) {
        let mut property = match row.kind {
            Kind::Flag => json_schema!({"type": ["boolean", "null"]}),
            Kind::Text => json_schema!({"type": ["string", "null"]}),
            Kind::Number => json_schema!({"type": ["integer", "null"]}),
            Kind::List => json_schema!({"type": ["array", "null"], "items": {"type": "string"}}),
        };
        property.insert("description".to_owned(), meaning.trim().into());
        properties.insert(row.name.to_owned(), property.to_value());
    }
    json_schema!({"type": "object", "properties": properties, "additionalProperties": false})
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    table! {
        struct Options {
            /// Whether.
            match: Flag,
            /// Which.
            names | pkg: List,
        }
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Args {
        path: String,
        #[serde(rename = "+options")]
        options: Options,
    }

    fn args(args: serde_json::Value) -> Result<Args, crate::DecodeError> {
        crate::decode(args.as_object().expect("an object"))
    }

    #[test]
    fn a_table_is_as_strict_as_a_struct() {
        let given = args(json!({"pkg": "a,b", "path": "x", "match": "yes"})).expect("all is right");
        assert_eq!((given.path.as_str(), given.options.is("match")), ("x", true));
        assert_eq!(given.options.list("names"), ["a", "b"]);
        let error = args(json!({"path": "x", "match": "maybe"})).expect_err("it is no boolean");
        assert_eq!(error.to_string(), "`match`: expected a boolean, found `maybe`");
        let error = args(json!({"path": "x", "name": "a"})).expect_err("it is unknown");
        assert_eq!(error.message, "unknown field `name`, expected one of `path`, `match`, `names`, `pkg`");
        let error = args(json!({"path": "x", "pkg": "a", "names": "a"})).expect_err("both are one");
        assert_eq!(error.message, "duplicate field `names`");
    }
}
