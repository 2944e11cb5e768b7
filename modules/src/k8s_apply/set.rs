//! What was applied under a name: a label on each object, and a list of them in a ConfigMap.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Propagation, bad};
use crate::cluster::object::Object;
use crate::cluster::resource::Discovery;
use crate::cluster::{Api, text};
use crate::{Change, Error};

/// The label of each object of a set; its value is the set's name.
const LABEL: &str = "kubeon-run/set";

/// An object that is there and must go.
pub(super) struct Removal {
    pub(super) object: Object,
    pub(super) live: Value,
    pub(super) path: String,
}

impl Removal {
    pub(super) fn change(&self, api: &Api, propagation: Propagation) -> Change {
        let mut request = api.request("DELETE", self.path.clone());
        request.content_type = Some("application/json".into());
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation.word()});
        if let Some(uid) = self.live["metadata"]["uid"].as_str() {
            options["preconditions"] = json!({"uid": uid});
        }
        request.body = Some(options);
        Change::Kubernetes(request)
    }
}

pub(super) struct Set {
    name: String,
    namespace: String,
    /// What the ConfigMap lists; without values.
    known: Vec<Object>,
    exists: bool,
    warnings: RefCell<Vec<String>>,
}

impl Set {
    /// Reads what was applied under a name before.
    pub(super) fn read(api: &Api, name: &str, namespace: Option<&str>) -> Result<Set, Error> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty()
            || name.len() > 63
            || !name.bytes().all(plain)
            || name.starts_with('-')
            || name.ends_with('-')
        {
            return Err(bad(format!(
                "`name: {name}`: expected at most 63 lowercase letters, digits and `-`, as in `nvidia-device-plugin`"
            )));
        }
        let mut set = Set {
            name: name.to_owned(),
            namespace: namespace.unwrap_or("kube-system").to_owned(),
            known: Vec::new(),
            exists: false,
            warnings: RefCell::default(),
        };
        if let Some(map) = api.get(&set.path())? {
            set.exists = true;
            set.known = text(&map, "/data/objects").lines().filter_map(parsed).collect();
        }
        Ok(set)
    }

    pub(super) fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps/{}", self.namespace, self.map_name())
    }

    fn map_name(&self) -> String {
        format!("kubeon-run.{}", self.name)
    }

    /// Whether the ConfigMap is there.
    pub(super) fn exists(&self) -> bool {
        self.exists
    }

    /// Labels an object as one of the set.
    pub(super) fn mark(&self, object: &mut Object) {
        object.value["metadata"]["labels"][LABEL] = self.name.as_str().into();
    }

    pub(super) fn is_inventory(&self, object: &Object) -> bool {
        object.kind == "ConfigMap"
            && object.name == self.map_name()
            && object.namespace.as_deref() == Some(self.namespace.as_str())
    }

    /// Returns what is listed, still there and still labelled, and not among `objects`.
    pub(super) fn stale(&self, discovery: &Discovery, api: &Api, objects: &[Object]) -> Result<Vec<Removal>, Error> {
        let mut removals = Vec::new();
        for known in &self.known {
            let same = |other: &Object| {
                (other.group(), &other.kind, &other.namespace, &other.name)
                    == (known.group(), &known.kind, &known.namespace, &known.name)
            };
            if objects.iter().any(same) {
                continue;
            }
            let Some(resource) = discovery.find(&known.api_version, &known.kind)? else { continue };
            let path = resource.path(known.namespace.as_deref(), &known.name);
            let Some(live) = api.get(&path)? else { continue };
            if live["metadata"].get("deletionTimestamp").is_some() {
                continue;
            }
            if live["metadata"]["labels"][LABEL].as_str() != Some(&self.name) {
                let title = known.title();
                let warning = format!("{title} is no longer labelled `{LABEL}: {}` and stays", self.name);
                self.warnings.borrow_mut().push(warning);
                continue;
            }
            removals.push(Removal { object: known.clone(), live, path });
        }
        removals.reverse();
        Ok(removals)
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        self.warnings.borrow().clone()
    }

    /// Returns the ConfigMap that lists all objects, those to be removed included: they are taken off once gone.
    pub(super) fn inventory(&self, objects: &[Object], removals: &[Removal]) -> Object {
        let lines: BTreeSet<String> =
            objects.iter().chain(removals.iter().map(|removal| &removal.object)).map(line).collect();
        let listed: String = lines.into_iter().map(|line| line + "\n").collect();
        let mut object = Object {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            name: self.map_name(),
            namespace: Some(self.namespace.clone()),
            value: json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": self.map_name(), "namespace": self.namespace},
                "data": {"objects": listed},
            }),
        };
        self.mark(&mut object);
        object
    }
}

/// `apps/v1 DaemonSet kube-system/name`, without a namespace `v1 Namespace /name`.
fn line(object: &Object) -> String {
    format!("{} {} {}/{}", object.api_version, object.kind, object.namespace.as_deref().unwrap_or(""), object.name)
}

fn parsed(line: &str) -> Option<Object> {
    let mut words = line.split_whitespace();
    let (api_version, kind) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (namespace, name) = words.next()?.split_once('/')?;
    let namespace = Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty());
    Some(Object { api_version, kind, name: name.to_owned(), namespace, value: Value::Null })
}
