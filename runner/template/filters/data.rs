//! Filters between values and their writings: JSON, YAML, base64, and the plain types.

use std::fmt::Write;

use base64::Engine;

use super::encodings::Encoding;
use crate::template::call::{Call, Filter, callable};
use crate::template::live::{Live, Result};
use crate::value::{Map, Str, Trust, Value, realized};
use crate::yaml;

pub(super) const FILTERS: &[Filter] = &[
    callable("to_json", &["vault_to_text", "preprocess_unsafe", "**"], |call| json_filter(call, None)),
    callable("to_nice_json", &["indent", "sort_keys", "**"], |call| {
        let indent = call.int_at(0)?.unwrap_or(4);
        json_filter(call, Some(indent))
    }),
    callable("tojson", &["indent"], |call| {
        let style =
            JsonStyle { indent: call.int_at(0)?.and_then(width), sort: true, ascii: true, ..JsonStyle::default() };
        Ok(json(&call.value()?, &style).into())
    }),
    callable("from_json", &["**"], from_json),
    callable("to_yaml", &["indent", "width", "sort_keys", "default_flow_style", "**"], |call| yaml_filter(call, false)),
    callable("to_nice_yaml", &["indent", "width", "sort_keys", "default_flow_style", "**"], |call| {
        yaml_filter(call, true)
    }),
    callable("from_yaml", &[], |call| {
        let documents = parsed_yaml(call)?;
        match documents.len() {
            0 => Ok(Live::NULL),
            1 => Ok(Live::Done(documents.into_iter().next().unwrap_or_default())),
            _ => Err(call.fault("there is more than one document").help("use `from_yaml_all`")),
        }
    }),
    callable("from_yaml_all", &[], |call| match &call.input {
        // As in Ansible: what is no text has been read.
        input if input.is_text() || matches!(input, Live::Done(Value::Null)) => {
            Ok(Live::Done(Value::list(parsed_yaml(call)?)))
        }
        input => Ok(input.clone()),
    }),
    callable("b64encode", &["encoding", "urlsafe"], |call| {
        let (engine, encoding) = base64_of(call)?;
        let bytes = encoding.encoded(&call.text()?);
        let bytes = bytes.map_err(|c| call.fault(format!("`{c}` can't be written in this encoding")))?;
        Ok(engine.encode(bytes).into())
    }),
    callable("b64decode", &["encoding", "urlsafe"], b64decode),
    callable("bool", &[], boolean),
    callable("int", &["default", "base"], int),
    callable("float", &["default"], float),
];

fn width(width: i64) -> Option<usize> {
    usize::try_from(width).ok().filter(|width| *width <= 100)
}

/// How JSON is written.
#[derive(Default)]
struct JsonStyle {
    indent: Option<usize>,
    sort: bool,
    ascii: bool,
    separators: Option<(String, String)>,
}

fn json_filter(call: &mut Call<'_>, indent: Option<i64>) -> Result<Live> {
    let mut style = JsonStyle { indent: indent.and_then(width), ascii: true, ..JsonStyle::default() };
    if indent.is_some() {
        style.sort = call.bool_or(1, true)?;
    }
    for (name, value) in call.named_arguments() {
        match (&*name, value.force()?) {
            ("indent", Value::Int(indent)) => style.indent = width(indent),
            ("indent", Value::Null) => {}
            ("sort_keys", value) => style.sort = value.truthy(),
            ("ensure_ascii", value) => style.ascii = value.truthy(),
            ("separators", Value::List(both)) if both.len() == 2 => {
                style.separators = Some((both[0].to_string(), both[1].to_string()));
            }
            ("allow_nan" | "check_circular" | "skipkeys" | "default", _) => {}
            (name, _) => return Err(call.fault(format!("no argument named `{name}`, or not with this value"))),
        }
    }
    Ok(json(&call.value()?, &style).into())
}

/// Writes JSON over several lines, its keys sorted, as Python's `json.dumps` does.
pub(super) fn nice_json(value: &Value, indent: usize) -> String {
    json(value, &JsonStyle { indent: Some(indent), sort: true, ascii: true, ..JsonStyle::default() })
}

/// Writes JSON as Python's `json.dumps` does.
fn json(value: &Value, style: &JsonStyle) -> String {
    let (comma, colon) = match &style.separators {
        Some((comma, colon)) => (comma.as_str(), colon.as_str()),
        None if style.indent.is_some() => (",", ": "),
        None => (", ", ": "),
    };
    let mut out = String::new();
    write_json(&mut out, value, style, comma, colon, 0);
    out
}

fn write_json(out: &mut String, value: &Value, style: &JsonStyle, comma: &str, colon: &str, depth: usize) {
    let newline = |out: &mut String, depth: usize| {
        if let Some(indent) = style.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent * depth));
        }
    };
    match value {
        Value::Null | Value::Omit => out.push_str("null"),
        Value::Lazy(lazy) => write_json(out, &Value::map(realized(&**lazy)), style, comma, colon, depth),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Int(number) => drop(write!(out, "{number}")),
        Value::Float(number) if number.is_nan() => out.push_str("NaN"),
        Value::Float(number) if number.is_infinite() => {
            out.push_str(if *number > 0.0 { "Infinity" } else { "-Infinity" });
        }
        Value::Float(_) => drop(write!(out, "{value}")),
        Value::Str(text) => write_json_text(out, text.as_str(), style.ascii),
        Value::List(items) if items.is_empty() => out.push_str("[]"),
        Value::List(items) => {
            out.push('[');
            for (nth, item) in items.iter().enumerate() {
                out.push_str(if nth == 0 { "" } else { comma });
                newline(out, depth + 1);
                write_json(out, item, style, comma, colon, depth + 1);
            }
            newline(out, depth);
            out.push(']');
        }
        Value::Map(map) if map.is_empty() => out.push_str("{}"),
        Value::Map(map) => {
            let mut entries: Vec<(String, &Value)> = map.iter().map(|(key, value)| (json_key(key), value)).collect();
            if style.sort {
                entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            }
            out.push('{');
            for (nth, (key, value)) in entries.into_iter().enumerate() {
                out.push_str(if nth == 0 { "" } else { comma });
                newline(out, depth + 1);
                write_json_text(out, &key, style.ascii);
                out.push_str(colon);
                write_json(out, value, style, comma, colon, depth + 1);
            }
            newline(out, depth);
            out.push('}');
        }
    }
}

fn json_key(key: &Value) -> String {
    match key {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        other => other.to_string(),
    }
}

fn write_json_text(out: &mut String, text: &str, ascii: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || (ascii && !c.is_ascii()) => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn from_json(call: &mut Call<'_>) -> Result<Live> {
    let text = call.text()?;
    let named = call.named_arguments();
    let profile = named.iter().find(|(name, _)| &**name == "profile").map(|(_, value)| value.clone());
    let marked = match profile.map(|value| value.force()).transpose()? {
        None | Some(Value::Null) => false,
        Some(Value::Str(name)) if name.as_str() == "legacy" => false,
        Some(Value::Str(name)) if name.as_str() == "inventory_legacy" => true,
        Some(other) => {
            let fault = call.fault(format!("no profile of JSON is called `{other}`"));
            return Err(fault.help("one of `legacy` and `inventory_legacy`"));
        }
    };
    let trust = if call.input.is_tagged("TrustedAsTemplate") { Trust::Template } else { Trust::Data };
    serde_json::from_str::<serde_json::Value>(&text)
        .map(|json| Live::Done(if marked { unmarked(json, trust) } else { Value::from_json(json) }))
        .map_err(|error| call.fault(format!("not JSON: {error}")))
}

/// Takes a value as inventories are written in JSON: what is no template is marked so.
fn unmarked(json: serde_json::Value, trust: Trust) -> Value {
    match json {
        serde_json::Value::String(text) => Value::Str(Str::data(text).trusted(trust)),
        serde_json::Value::Array(items) => Value::list(items.into_iter().map(|item| unmarked(item, trust)).collect()),
        serde_json::Value::Object(entries) => match entries.get("__ansible_unsafe") {
            Some(serde_json::Value::String(text)) => Value::str(text.as_str()),
            Some(_) | None => {
                Value::map(entries.into_iter().map(|(key, value)| (Value::str(key), unmarked(value, trust))).collect())
            }
        },
        other => Value::from_json(other),
    }
}

fn yaml_filter(call: &mut Call<'_>, nice: bool) -> Result<Live> {
    for (name, _) in call.named_arguments() {
        if !matches!(
            &*name,
            "allow_unicode" | "explicit_start" | "explicit_end" | "line_break" | "default_style" | "canonical"
        ) {
            return Err(call.fault(format!("no argument named `{name}`")));
        }
    }
    let named = call.named_arguments();
    let flag = |wanted: &str| -> Result<bool> {
        named.iter().find(|(name, _)| &**name == wanted).map_or(Ok(false), |(_, value)| value.truthy())
    };
    let scalars =
        match named.iter().find(|(name, _)| &**name == "default_style").map(|(_, value)| value.force()).transpose()? {
            None | Some(Value::Null) => None,
            Some(Value::Str(text)) if text.as_str().is_empty() => None,
            Some(Value::Str(text)) => Some(super::yaml::Scalars::named(text.as_str()).ok_or_else(|| {
                call.fault(format!("`default_style` is `{}`", text.as_str())).help("one of `|`, `>`, `'` and `\"`")
            })?),
            Some(other) => return Err(call.fault(format!("`default_style` must be a text, not {}", other.kind()))),
        };
    let canonical = flag("canonical")?;
    let style = super::yaml::Style {
        scalars: if canonical { Some(super::yaml::Scalars::DoubleQuoted) } else { scalars },
        canonical,
        indent: call.int_at(0)?.and_then(width).filter(|indent| *indent > 1).unwrap_or(if nice { 4 } else { 2 }),
        width: call.int_at(1)?.and_then(|width| usize::try_from(width).ok()).filter(|width| *width > 4).unwrap_or(80),
        sort: call.bool_or(2, true)?,
        flow: match call.get(3) {
            Some(Live::Done(Value::Null)) => None,
            Some(value) => Some(value.truthy()?),
            None if nice => Some(false),
            None => None,
        },
        start: canonical || flag("explicit_start")?,
        end: flag("explicit_end")?,
    };
    Ok(super::yaml::written(&call.value()?, &style).into())
}

fn parsed_yaml(call: &Call<'_>) -> Result<Vec<Value>> {
    let text = match call.value()? {
        Value::Str(text) => text,
        Value::Null => return Ok(Vec::new()),
        other => return Ok(vec![other]),
    };
    let parsed = yaml::parse_data(text.as_str());
    let parsed =
        parsed.map_err(|error| call.fault(format!("not YAML: line {}: {}", error.place.line, error.message)))?;
    Ok(parsed.documents.iter().map(|document| sealed(document.value())).collect())
}

/// Returns whether any text in it may be a template by where it came from.
fn holds_trusted(value: &Value) -> bool {
    match value {
        Value::Str(text) => text.trust == Trust::Template,
        Value::List(items) => items.iter().any(holds_trusted),
        Value::Map(map) => map.iter().any(|(key, value)| holds_trusted(key) || holds_trusted(value)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Omit | Value::Lazy(_) => false,
    }
}

/// Makes data of every text in a value: a template's result is never rendered again.
pub(in crate::template) fn sealed(value: Value) -> Value {
    if !holds_trusted(&value) {
        return value;
    }
    match value {
        Value::Str(text) => Value::Str(Str::data(text.shared().clone())),
        Value::List(items) => Value::list(items.iter().cloned().map(sealed).collect()),
        Value::Map(map) => {
            Value::map(map.iter().map(|(key, value)| (sealed(key.clone()), sealed(value.clone()))).collect::<Map>())
        }
        other => other,
    }
}

/// Returns the alphabet and the encoding that a filter's arguments name.
fn base64_of(call: &Call<'_>) -> Result<(base64::engine::GeneralPurpose, Encoding)> {
    let name = call.text_or(0, "utf-8")?;
    let encoding = Encoding::named(&name).ok_or_else(|| {
        call.fault(format!("encoding `{name}` is not supported"))
            .help("one of utf-8, ascii, latin-1, utf-16, utf-16-le, utf-16-be")
    })?;
    let is_for_urls = call.bool_or(1, false)?;
    Ok((if is_for_urls { base64::prelude::BASE64_URL_SAFE } else { base64::prelude::BASE64_STANDARD }, encoding))
}

fn b64decode(call: &mut Call<'_>) -> Result<Live> {
    let (engine, encoding) = base64_of(call)?;
    let text: String = call.text()?.chars().filter(|c| !c.is_whitespace()).collect();
    let bytes = engine.decode(text).map_err(|error| call.fault(format!("not base64: {error}")))?;
    let text = encoding.decoded(&bytes).ok_or_else(|| {
        call.fault(format!("what it decodes to is not {}", call.text_or(0, "UTF-8").unwrap_or_default()))
    })?;
    Ok(text.into())
}

fn boolean(call: &mut Call<'_>) -> Result<Live> {
    let value = call.value()?;
    Ok(match &value {
        Value::Bool(flag) => (*flag).into(),
        Value::Str(text) => {
            matches!(text.as_str().trim().to_ascii_lowercase().as_str(), "yes" | "on" | "1" | "true" | "t" | "y").into()
        }
        Value::Int(number) => (*number == 1).into(),
        Value::Float(number) => (*number == 1.0).into(),
        Value::Null | Value::List(_) | Value::Map(_) | Value::Omit | Value::Lazy(_) => false.into(),
    })
}

fn int(call: &mut Call<'_>) -> Result<Live> {
    let default = || Ok(call.get(0).unwrap_or_else(|| 0_i64.into()));
    let base = u32::try_from(call.int_at(1)?.unwrap_or(10)).unwrap_or(10);
    match call.value()? {
        Value::Int(number) => Ok(number.into()),
        Value::Bool(flag) => Ok(i64::from(flag).into()),
        Value::Float(number) if number.is_finite() && number.abs() < 9.2e18 => Ok((number.trunc() as i64).into()),
        Value::Str(text) => match whole(text.as_str(), base) {
            Some(number) => Ok(number.into()),
            None => default(),
        },
        _ => default(),
    }
}

fn whole(text: &str, base: u32) -> Option<i64> {
    let text = text.trim().replace('_', "");
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(&text)),
    };
    let lower = digits.to_ascii_lowercase();
    let prefix = |mark: &str, of: u32| lower.strip_prefix(mark).filter(|_| base == of);
    let digits = prefix("0x", 16).or_else(|| prefix("0o", 8)).or_else(|| prefix("0b", 2)).unwrap_or(&lower);
    let size = match (2..=36).contains(&base) {
        true => i64::from_str_radix(digits, base).ok(),
        false => None,
    };
    let size = size.or_else(|| {
        let number: f64 = digits.parse().ok().filter(|_| base == 10)?;
        (number.is_finite() && number.abs() < 9.2e18).then_some(number.trunc() as i64)
    })?;
    Some(if negative { -size } else { size })
}

fn float(call: &mut Call<'_>) -> Result<Live> {
    let found = match call.value()? {
        Value::Int(number) => Some(number as f64),
        Value::Bool(flag) => Some(f64::from(u8::from(flag))),
        Value::Float(number) => Some(number),
        Value::Str(text) => text.as_str().trim().replace('_', "").parse().ok(),
        _ => None,
    };
    Ok(match found {
        Some(number) => number.into(),
        None => call.get(0).unwrap_or_else(|| 0.0.into()),
    })
}
