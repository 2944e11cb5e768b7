//! Objects as users write them: read from text or YAML values, checked before any is sent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{text, yaml};
use crate::{Error, ErrorKind};

/// One object of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object {
    pub(crate) value: Value,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    /// As written; where it is not, the task's own.
    pub(crate) namespace: Option<String>,
}

impl Object {
    /// ``DaemonSet `kube-system/nvidia-device-plugin` ``.
    pub(crate) fn title(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} `{namespace}/{}`", self.kind, self.name),
            None => format!("{} `{}`", self.kind, self.name),
        }
    }

    /// The API's group, empty for the core.
    pub(crate) fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Whether it defines a kind.
    pub(crate) fn is_definition(&self) -> bool {
        self.kind == "CustomResourceDefinition" && self.group() == "apiextensions.k8s.io"
    }

    pub(crate) fn is_namespace(&self) -> bool {
        self.kind == "Namespace" && self.api_version == "v1"
    }

    /// In which order objects are applied: what others need goes first, what may hold others back goes last.
    pub(crate) fn rank(&self) -> u8 {
        match self.kind.as_str() {
            "Namespace" => 0,
            "CustomResourceDefinition" => 1,
            "PriorityClass" | "RuntimeClass" | "ServiceAccount" | "Secret" | "ConfigMap" => 2,
            "ClusterRole" | "Role" | "ClusterRoleBinding" | "RoleBinding" => 3,
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => 5,
            _ => 4,
        }
    }
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Arguments, message)
}

/// Returns the objects of a definition: text with YAML documents, a mapping, or a list of these.
///
/// # Errors
/// [`ErrorKind::Arguments`] for what is no object, or holds a value that the API would take for another type.
pub(crate) fn objects_of(definition: &Value) -> Result<Vec<Object>, Error> {
    let mut objects = Vec::new();
    collect(definition, "", &mut objects)?;
    for (nth, object) in objects.iter().enumerate() {
        let same = |other: &Object| {
            (other.group(), &other.kind, &other.namespace, &other.name)
                == (object.group(), &object.kind, &object.namespace, &object.name)
        };
        if objects[..nth].iter().any(same) {
            return Err(bad(format!("{} is defined twice", object.title())));
        }
    }
    Ok(objects)
}

fn collect(value: &Value, place: &str, objects: &mut Vec<Object>) -> Result<(), Error> {
    match value {
        Value::Null => Ok(()),
        Value::String(text) => {
            for (nth, document) in yaml::documents(text)?.iter().enumerate() {
                collect(document, &format!(" in document {}", nth + 1), objects)?;
            }
            Ok(())
        }
        Value::Array(items) => items.iter().enumerate().try_for_each(|(nth, item)| {
            let place = if place.is_empty() { format!(" in item {}", nth + 1) } else { place.to_owned() };
            collect(item, &place, objects)
        }),
        Value::Object(fields) => match fields.get("items") {
            Some(Value::Array(items)) if text(value, "/kind").ends_with("List") => {
                items.iter().try_for_each(|item| collect(item, place, objects))
            }
            _ => {
                objects.push(object_of(value, place)?);
                Ok(())
            }
        },
        Value::Bool(_) | Value::Number(_) => Err(bad(format!("`{value}`{place} is no Kubernetes object"))),
    }
}

fn object_of(value: &Value, place: &str) -> Result<Object, Error> {
    let field = |pointer: &str, name: &str| match text(value, pointer) {
        "" => Err(bad(format!("the object{place} has no `{name}`, which every Kubernetes object has"))),
        text => Ok(text.to_owned()),
    };
    let (api_version, kind) = (field("/apiVersion", "apiVersion")?, field("/kind", "kind")?);
    if !text(value, "/metadata/generateName").is_empty() {
        return Err(bad(format!(
            "the {kind}{place} has `generateName`: each run would make another one, give it a `name`"
        )));
    }
    let object = Object {
        api_version,
        name: field("/metadata/name", "metadata.name").map_err(|error| error.context(&kind))?,
        kind,
        namespace: Some(text(value, "/metadata/namespace").to_owned()).filter(|name| !name.is_empty()),
        value: value.clone(),
    };
    check(&object)?;
    if object.kind == "Secret" && object.api_version == "v1" {
        return Ok(Object { value: packed(object.value), ..object });
    }
    Ok(object)
}

/// Moves `stringData`, which the API only takes and never gives back, into `data`.
fn packed(mut secret: Value) -> Value {
    if let Some(Value::Object(plain)) = secret.as_object_mut().and_then(|fields| fields.remove("stringData")) {
        for (key, value) in plain {
            let text = value.as_str().unwrap_or_default();
            secret["data"][key] = json!(STANDARD.encode(text));
        }
    }
    secret
}

/// Refuses values that must be strings and are not: YAML takes an unquoted `yes` for a boolean and `1.10` for 1.1.
fn check(object: &Object) -> Result<(), Error> {
    for key in ["labels", "annotations"] {
        strings(object, &object.value["metadata"][key], &format!("metadata.{key}"))?;
    }
    let own = object.group();
    let builtin = !own.contains('.') || own.ends_with(".k8s.io");
    if object.is_definition() || !builtin {
        return Ok(());
    }
    if matches!(object.kind.as_str(), "ConfigMap" | "Secret") {
        strings(object, &object.value["data"], "data")?;
        return strings(object, &object.value["stringData"], "stringData");
    }
    if object.kind == "Service" {
        strings(object, &object.value["spec"]["selector"], "spec.selector")?;
    }
    walk(object, &object.value["spec"], "spec")?;
    walk(object, &object.value["scheduling"], "scheduling")
}

fn walk(object: &Object, value: &Value, path: &str) -> Result<(), Error> {
    match value {
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            let path = format!("{path}.{key}");
            match key.as_str() {
                "labels" | "annotations" | "matchLabels" | "nodeSelector" => strings(object, value, &path),
                "env" => value.as_array().map(Vec::as_slice).unwrap_or_default().iter().try_for_each(|pair| {
                    let name = text(pair, "/name");
                    pair.get("value").map_or(Ok(()), |value| string(object, value, &format!("{path}[{name}].value")))
                }),
                _ => walk(object, value, &path),
            }
        }),
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(nth, item)| walk(object, item, &format!("{path}[{nth}]")))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn strings(object: &Object, value: &Value, path: &str) -> Result<(), Error> {
    let Value::Object(fields) = value else { return Ok(()) };
    fields.iter().try_for_each(|(key, value)| string(object, value, &format!("{path}[{key}]")))
}

fn string(object: &Object, value: &Value, path: &str) -> Result<(), Error> {
    let (what, hint) = match value {
        Value::Bool(found) => {
            let words = if *found { "`yes`, `on` and `true`" } else { "`no`, `off` and `false`" };
            (format!("the boolean {found}"), format!("YAML takes an unquoted {words} for one"))
        }
        Value::Number(found) => (format!("the number {found}"), "YAML takes unquoted digits for one".to_owned()),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => return Ok(()),
    };
    Err(bad(format!("{}: `{path}` must be a string and is {what}: quote it, {hint}", object.title())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_taken_apart_and_secrets_packed() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}});
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [secret]});
        let objects = objects_of(&list).expect("a list of one");
        assert_eq!(objects[0].value["data"], json!({"a": "Yg=="}));
        assert_eq!(objects[0].value.get("stringData"), None);
    }
}
