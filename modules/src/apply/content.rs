//! How [`Content`] is written in arguments, on the wire and in the cases: a string for text, `{base64: …}` for other
//! bytes, `{sha256: …, size_bytes: …}` for what waits at the runner, `{file: …}` for a file of the host.

use base64::{Engine, engine::general_purpose::STANDARD};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Content;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Content::Inline(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => serializer.serialize_str(text),
                Err(_) => Written { base64: Some(STANDARD.encode(bytes)), ..Written::default() }.serialize(serializer),
            },
            Content::Sent { sha256, size_bytes } => {
                Written { sha256: Some(sha256.clone()), size_bytes: Some(*size_bytes), ..Written::default() }
                    .serialize(serializer)
            }
            Content::File { path } => Written { file: Some(path.clone()), ..Written::default() }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Content;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("text")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Inline(text.as_bytes().to_vec()))
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Content, E> {
                self.visit_str(if value { "True" } else { "False" })
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Content, E> {
                self.visit_str(&value.to_string())
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Content, E> {
                self.visit_str(&value.to_string())
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Content, E> {
                self.visit_str(&value.to_string())
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Content, A::Error> {
                let written = Written::deserialize(de::value::MapAccessDeserializer::new(map))?;
                match written {
                    Written { base64: Some(text), .. } => STANDARD
                        .decode(text)
                        .map(Content::Inline)
                        .map_err(|error| de::Error::custom(format_args!("bad base64: {error}"))),
                    Written { sha256: Some(sha256), size_bytes: Some(size_bytes), .. } => {
                        Ok(Content::Sent { sha256, size_bytes })
                    }
                    Written { file: Some(path), .. } => Ok(Content::File { path }),
                    Written { .. } => Err(de::Error::custom("expected text")),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Content {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Content".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string"})
    }
}
