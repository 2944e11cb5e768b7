//! Arguments that a module hands on to a program or a file under their own names: a table instead of a struct's fields,
//! read by the same code for every module.

use schemars::{Schema, json_schema};
use serde_json::Value;

use crate::decode::{Given, Row};
use crate::host::Map;

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Flag,
    Text,
    Number,
    List,
}

impl Kind {
    pub const fn row(self, names: &'static [&'static str]) -> Row {
        match self {
            Kind::Flag => Row::of::<Option<bool>>(names, false),
            Kind::Text => Row::of::<Option<String>>(names, false),
            Kind::Number => Row::of::<Option<i64>>(names, false),
            Kind::List => Row::of::<Option<Vec<String>>>(names, false),
        }
    }
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
            const KINDS: &'static [(&'static str, crate::passed::Kind)] =
                &[$((stringify!($field), crate::passed::Kind::$kind),)*];
        }

        impl crate::decode::Arguments for $struct {
            const ROWS: &'static [crate::decode::Row] =
                &[$(crate::passed::Kind::$kind.row(&[stringify!($field), $(stringify!($alias),)*]),)*];
            fn take(given: &crate::decode::Given<'_>) -> $struct {
                $struct(crate::passed::take(given, $struct::KINDS))
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
                crate::passed::schema($struct::KINDS, &[$($meaning,)*])
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

/// Takes what was given of a table.
pub(crate) fn take(given: &Given<'_>, kinds: &[(&'static str, Kind)]) -> Values {
    let value = |&(name, kind): &(&'static str, Kind)| {
        let value: Value = match kind {
            Kind::Flag => given.optional::<Option<bool>>(name).into(),
            Kind::Text => given.optional::<Option<String>>(name).into(),
            Kind::Number => given.optional::<Option<i64>>(name).into(),
            Kind::List => given.optional::<Option<Vec<String>>>(name).into(),
        };
        (!value.is_null()).then_some((name, value))
    };
    Values(kinds.iter().filter_map(value).collect())
}

/// Returns the schema of a table, whose meanings are in the rows' order.
pub(crate) fn schema(kinds: &[(&str, Kind)], meanings: &[&str]) -> Schema {
    let mut properties = Map::new();
    for ((name, kind), meaning) in kinds.iter().zip(meanings) {
        let mut property = match kind {
            Kind::Flag => json_schema!({"type": ["boolean", "null"]}),
            Kind::Text => json_schema!({"type": ["string", "null"]}),
            Kind::Number => json_schema!({"type": ["integer", "null"]}),
            Kind::List => json_schema!({"type": ["array", "null"], "items": {"type": "string"}}),
        };
        property.insert("description".to_owned(), meaning.trim().into());
        properties.insert((*name).to_owned(), property.to_value());
    }
    json_schema!({"type": "object", "properties": properties, "additionalProperties": false})
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::decode::Arguments;

    table! {
        struct Options {
            /// Whether.
            match: Flag,
            /// Which.
            names | pkg: List,
        }
    }

    #[derive(Debug, Arguments)]
    #[serde(deny_unknown_fields)]
    struct Args {
        path: String,
        #[serde(rename = "+options")]
        options: Options,
    }

    fn args(args: serde_json::Value) -> Result<Args, crate::DecodeError> {
        crate::decode::arguments(args.as_object().expect("an object"))
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
