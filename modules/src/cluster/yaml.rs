//! YAML of manifests: read under the rules of kubectl, which are YAML 1.1's for scalars, and written for diffs.

use serde_json::Value;

#[cfg(not(feature = "kubernetes"))]
use crate::{Error, ErrorKind};

#[cfg(feature = "kubernetes")]
pub(crate) use super::yaml_read::documents;

/// Without the means to ask the API, text is not read either.
#[cfg(not(feature = "kubernetes"))]
pub(crate) fn documents(_: &str) -> Result<Vec<Value>, Error> {
    Err(Error::new(
        ErrorKind::Refused,
        "the Kubernetes API is asked from the machine that runs kubeon-run: add `delegate_to: localhost`",
    ))
}

/// Returns a value as YAML, mappings in the order of their keys.
pub(crate) fn written(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => mapping(fields, 0, &mut out),
        Value::Array(items) if !items.is_empty() => sequence(items, 0, &mut out),
        _ => {
            scalar(value, 0, &mut out);
        }
    }
    out
}

fn mapping(fields: &serde_json::Map<String, Value>, depth: usize, out: &mut String) {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by_key(|(key, _)| *key);
    for (nth, (key, value)) in sorted.into_iter().enumerate() {
        // The first key of a list's item follows its dash.
        if nth > 0 || !out.ends_with("- ") {
            indent(depth, out);
        }
        out.push_str(&plain(key));
        out.push(':');
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                out.push('\n');
                mapping(fields, depth + 1, out);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                sequence(items, depth, out);
            }
            _ => {
                out.push(' ');
                scalar(value, depth + 1, out);
            }
        }
    }
}

fn sequence(items: &[Value], depth: usize, out: &mut String) {
    for item in items {
        indent(depth, out);
        out.push_str("- ");
        match item {
            Value::Object(fields) if !fields.is_empty() => mapping(fields, depth + 1, out),
            // Lists in lists are rare: on one line, as JSON, which is YAML too.
            Value::Array(items) if !items.is_empty() => {
                out.push_str(&item.to_string());
                out.push('\n');
            }
            _ => scalar(item, depth + 1, out),
        }
    }
}

fn scalar(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::String(text) if text.contains('\n') && !text.starts_with([' ', '\n']) && !text.contains('\r') => {
            out.push_str(if text.ends_with('\n') { "|\n" } else { "|-\n" });
            for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
                if !line.is_empty() {
                    indent(depth, out);
                }
                out.push_str(line);
                out.push('\n');
            }
        }
        Value::String(text) => {
            out.push_str(&plain(text));
            out.push('\n');
        }
        other => {
            out.push_str(&other.to_string());
            out.push('\n');
        }
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Returns a string as it is where no reader takes it for something else, else in quotes.
fn plain(text: &str) -> String {
    let first = text.chars().next();
    let word = text.to_ascii_lowercase();
    let reserved = ["y", "yes", "true", "on", "n", "no", "false", "off", "null"].contains(&word.as_str());
    let safe = first.is_some_and(|first| first.is_ascii_alphabetic() || first == '/')
        && !reserved
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || " -_./:=+,@()".contains(letter))
        && !text.contains(": ")
        && !text.ends_with([':', ' ']);
    if safe { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_reads_as_yaml() {
        let value = json!({
            "kind": "X", "yes": "true", "empty": {}, "none": [], "n": 1.5, "script": "a\n\nb\n", "no": null,
            "list": [{"b": 1, "a": ["x", "1"]}, ["y"], "- z", "a: b", "10.0.0.1", "v1.2"],
        });
        let text = written(&value);
        let read: Value = serde_yaml::from_str(&text).expect("YAML");
        assert_eq!(read, value, "{text}");
        assert!(text.contains("- a:\n  - x\n  - \"1\"\n  b: 1\n"), "{text}");
    }
}
