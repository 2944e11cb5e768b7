//! What an API server would make of an object, against what it has.

use serde_json::{Value, json};

use super::object::Object;
use super::{listed, text, yaml};
use crate::{Diff, Error, ErrorKind, KubeAnswer, KubeRequest};

/// What the server itself writes, in `metadata`.
const SERVERS_OWN: [&str; 6] =
    ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"];
/// Where kubectl keeps a copy of what it applied last, secrets in clear text included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Returns an object without what the server alone writes.
pub(crate) fn stripped(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in SERVERS_OWN {
            metadata.remove(key);
        }
    }
    object
}

/// Whether applying changes an object: any value of it, or which fields are ours to change later.
pub(crate) fn differs(live: &Value, dry: &Value, manager: &str) -> bool {
    stripped(live) != stripped(dry) || owned(live, manager) != owned(dry, manager)
}

fn owned<'a>(object: &'a Value, manager: &str) -> Option<&'a Value> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    entries
        .iter()
        .find(|entry| {
            text(entry, "/manager") == manager
                && text(entry, "/operation") == "Apply"
                && text(entry, "/subresource").is_empty()
        })
        .and_then(|entry| entry.get("fieldsV1"))
}

/// Whether an object already holds all that is wanted; what it holds beside that does not matter.
pub(crate) fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(key, value)| match live.get(key) {
            Some(live) => covers(live, value),
            None => value.is_null(),
        }),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| covers(live, wanted))
        }
        (live, wanted) => live == wanted,
    }
}

/// Returns the difference that applying makes, a secret's values hidden.
pub(crate) fn diff(object: &Object, live: Option<&Value>, after: Option<&Value>) -> Diff {
    let secret = object.kind == "Secret";
    let shown = |value: Option<&Value>, other: Option<&Value>| {
        value.map(|value| yaml::written(&if secret { hidden(value, other) } else { readable(value) }))
    };
    let title = object.title();
    Diff {
        before_header: Some(title.clone()),
        after_header: Some(title),
        before: Some(shown(live, None).unwrap_or_default()),
        after: Some(shown(after, live).unwrap_or_default()),
        prepared: None,
    }
}

fn readable(object: &Value) -> Value {
    let mut object = stripped(object);
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    object
}

/// Returns an object as results hold it: without bookkeeping, and without a secret's values.
pub(crate) fn returned(object: &Object, value: &Value) -> Value {
    let mut value = if object.kind == "Secret" { hidden(value, None) } else { value.clone() };
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    value
}

fn hidden(secret: &Value, other: Option<&Value>) -> Value {
    let mut shown = readable(secret);
    if let Some(data) = shown.get_mut("data").and_then(Value::as_object_mut) {
        for (key, value) in data {
            let changed = other.is_some_and(|other| other["data"].get(key) != Some(value));
            *value = json!(if changed { "(hidden, another value)" } else { "(hidden)" });
        }
    }
    shown
}

/// Returns the refusal of a dry run as an error that says who owns what, or which field is wrong.
pub(crate) fn refused(object: &Object, request: &KubeRequest, answer: &KubeAnswer) -> Error {
    let title = object.title();
    let causes = answer.body.pointer("/details/causes").and_then(Value::as_array);
    let causes = causes.map(Vec::as_slice).unwrap_or_default();
    let conflicts: Vec<String> = causes
        .iter()
        .filter(|cause| text(cause, "/reason") == "FieldManagerConflict")
        .map(|cause| {
            // `conflict with "kubectl" using apps/v1`; the same with `with subresource "scale"` and a time.
            let said = text(cause, "/message");
            let manager = said.split('"').nth(1).unwrap_or(said);
            format!("`{}` is managed by `{manager}`", text(cause, "/field"))
        })
        .collect();
    let message = match answer.status {
        409 if !conflicts.is_empty() => format!(
            "{title}: {}; leave it out of the definition, or take it over with `force_conflicts: true`",
            conflicts.join(", ")
        ),
        415 => {
            format!("{title}: this API server does not know server-side apply, which needs Kubernetes 1.22 or newer")
        }
        _ => {
            let said = match &answer.body {
                Value::String(text) => text.as_str(),
                body => text(body, "/message"),
            };
            let said = if said.is_empty() { "no message" } else { said };
            let hint = if said.contains("field is immutable") || said.contains("may not be changed") {
                "; what exists can't be changed so: remove it first with `state: absent`"
            } else {
                ""
            };
            format!("{title}: status {}: {said}{hint}", answer.status)
        }
    };
    let kind = if answer.status == 409 { ErrorKind::Refused } else { ErrorKind::Host };
    Error::new(kind, message).with("status", answer.status).with("request", request.path.as_str())
}

/// Says which namespaces are missing.
pub(crate) fn no_namespace(names: &[&str]) -> Error {
    Error::new(
        ErrorKind::Host,
        format!("no namespace {}: add it to the definition, or set `create_namespace: true`", listed(names)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_which_key_changed_and_no_value() {
        let secret = |value: &str| json!({"kind": "Secret", "data": {"a": value, "b": "same"}});
        let object = Object {
            value: secret("new"),
            api_version: "v1".into(),
            kind: "Secret".into(),
            name: "s".into(),
            namespace: None,
        };
        let diff = diff(&object, Some(&secret("old")), Some(&secret("new")));
        assert_eq!(diff.before.as_deref(), Some("data:\n  a: \"(hidden)\"\n  b: \"(hidden)\"\nkind: Secret\n"));
        let after = "data:\n  a: \"(hidden, another value)\"\n  b: \"(hidden)\"\nkind: Secret\n";
        assert_eq!(diff.after.as_deref(), Some(after));
    }

    #[test]
    fn what_others_add_is_no_difference() {
        let live = json!({"spec": {"replicas": 2, "other": 1, "list": [{"a": 1, "b": 2}]}});
        assert!(covers(&live, &json!({"spec": {"replicas": 2, "list": [{"a": 1}], "gone": null}})));
        assert!(!covers(&live, &json!({"spec": {"replicas": 3}})));
        assert!(!covers(&live, &json!({"spec": {"list": []}})));
    }
}
