use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::cluster::resource::{Discovery, Resource};
use crate::cluster::rollout::{State, condition_of, state_of};
use crate::cluster::{Api, encoded, text};
use crate::decode::Arguments;
use crate::{Error, ErrorKind, Host, Module, Plan};

/// Return objects of a Kubernetes cluster.
///
/// ```yaml
/// - k8s_info:
///     kind: Node
///     name: gpu-n3
///   delegate_to: localhost
///   register: node
///   until: node.resources[0].status.allocatable['nvidia.com/gpu'] | default(0) | int == 8
///   retries: 30
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The kind of the objects, by any of its names: `Node`, `nodes`, `no`.
    kind: String,
    /// Its group and version.
    #[serde(default = "core", alias = "api", alias = "version")]
    api_version: String,
    /// Only the object of this name.
    name: Option<String>,
    /// Only objects of this namespace; of all when absent, of `default` where a name is given.
    namespace: Option<String>,
    /// Only objects with these labels: `key`, `key=value`, `key!=value`, `key in (a,b)`.
    #[serde(default)]
    label_selectors: Selectors,
    /// Only objects with these fields: `status.phase=Running`.
    #[serde(default)]
    field_selectors: Selectors,
    /// Wait until the objects are there and ready, or fulfil `wait_condition`.
    #[serde(default)]
    wait: bool,
    /// How many seconds to wait at most.
    #[serde(default = "wait_timeout")]
    wait_timeout: u64,
    /// The condition of `status.conditions` to wait for, in place of readiness.
    wait_condition: Option<Condition>,
    /// Fields that are left out, such as `metadata.managedFields`.
    #[serde(default = "hidden_fields")]
    hidden_fields: Vec<String>,
    /// A kubeconfig on the machine where the task runs; absent stands for `$KUBECONFIG`, `~/.kube/config`, then the
    /// pod's own service account.
    kubeconfig: Option<String>,
    /// A context of the kubeconfig; absent stands for its current one.
    context: Option<String>,
}

/// Selectors, which hold commas: one text is one selector.
#[derive(Debug, Default, JsonSchema)]
#[schemars(transparent)]
struct Selectors(Vec<String>);

impl<'de> Deserialize<'de> for Selectors {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Selectors, D::Error> {
        use serde::de::Error as _;
        let one = |value: Value| match value {
            Value::String(text) => Ok(text),
            other => Err(D::Error::custom(format_args!("expected a selector such as `key=value`, found `{other}`"))),
        };
        match Value::deserialize(deserializer)? {
            Value::Array(items) => items.into_iter().map(one).collect::<Result<_, _>>().map(Selectors),
            other => one(other).map(|selector| Selectors(vec![selector])),
        }
    }
}

/// A condition of an object's status.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Condition {
    /// Its type, such as `Ready`.
    #[serde(rename = "type")]
    kind: String,
    /// What it must be: `True`, `False` or `Unknown`.
    #[serde(default = "truth")]
    status: String,
    /// Its reason, where that matters.
    reason: Option<String>,
}

fn core() -> String {
    "v1".into()
}

fn truth() -> String {
    "True".into()
}

fn wait_timeout() -> u64 {
    120
}

fn hidden_fields() -> Vec<String> {
    vec!["metadata.managedFields".into()]
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let api = Api::new(host, self.kubeconfig.as_deref(), self.context.as_deref());
        let discovery = Discovery::new(&api);
        let limit = Duration::from_secs(if self.wait { self.wait_timeout } else { 0 });
        let mut last = None;
        let found = api.until(limit, || {
            discovery.forget(&self.api_version);
            last = match discovery.find_by_any_name(&self.api_version, &self.kind)? {
                Some(resource) => Some(self.objects(&api, &resource)?),
                None => None,
            };
            let done = match &last {
                Some(objects) => !objects.is_empty() && objects.iter().all(|object| self.waited_for(object).is_none()),
                None => false,
            };
            Ok((done || !self.wait).then_some(()))
        })?;
        if found.is_none() {
            return Err(self.not_in_time(last.as_deref(), &discovery));
        }
        let served = last.is_some();
        let mut resources = last.unwrap_or_default();
        for object in &mut resources {
            for field in &self.hidden_fields {
                hide(object, field);
            }
        }
        Ok(Plan::default().with("api_found", served).with("resources", resources))
    }
}

impl Args {
    fn objects(&self, api: &Api, resource: &Resource) -> Result<Vec<Value>, Error> {
        let Some(name) = &self.name else {
            let query: String =
                [("labelSelector", &self.label_selectors.0), ("fieldSelector", &self.field_selectors.0)]
                    .into_iter()
                    .filter(|(_, selectors)| !selectors.is_empty())
                    .map(|(key, selectors)| format!("&{key}={}", encoded(&selectors.join(","))))
                    .collect();
            return Ok(api.list(&resource.list_path(self.namespace.as_deref()), &query)?.unwrap_or_default());
        };
        if !self.label_selectors.0.is_empty() || !self.field_selectors.0.is_empty() {
            return Err(Error::new(ErrorKind::Arguments, "give a `name` or selectors, not both"));
        }
        let namespace = self.namespace.as_deref().unwrap_or("default");
        Ok(api.get(&resource.path(Some(namespace), name))?.into_iter().collect())
    }

    /// Returns what an object still lacks; `None` when it is as awaited.
    fn waited_for(&self, object: &Value) -> Option<String> {
        let Some(wanted) = &self.wait_condition else {
            return match state_of(object) {
                State::Ready => None,
                State::Waiting(said) | State::Failed(said) => Some(said),
            };
        };
        let found = condition_of(object, &wanted.kind);
        let right = found.is_some_and(|found| {
            text(found, "/status").eq_ignore_ascii_case(&wanted.status)
                && wanted.reason.as_ref().is_none_or(|reason| text(found, "/reason") == reason)
        });
        let said = found.map_or("not there".into(), |found| {
            format!("{} {} {}", text(found, "/status"), text(found, "/reason"), text(found, "/message"))
        });
        (!right).then(|| format!("condition `{}` is {}", wanted.kind, said.trim_end()))
    }

    fn not_in_time(&self, last: Option<&[Value]>, discovery: &Discovery) -> Error {
        let said = match last {
            None => return discovery.missing(&self.api_version, &self.kind),
            Some([]) => "there is none".to_owned(),
            Some(objects) => {
                let all = objects.iter().filter_map(|object| {
                    Some(format!("`{}`: {}", text(object, "/metadata/name"), self.waited_for(object)?))
                });
                all.collect::<Vec<_>>().join("; ")
            }
        };
        Error::new(ErrorKind::Failed, format!("{} not ready within {} s: {said}", self.kind, self.wait_timeout))
    }
}

/// Takes a field, named by keys with dots between, out of an object.
fn hide(object: &mut Value, field: &str) {
    match field.split_once('.') {
        Some((key, rest)) => {
            if let Some(inner) = object.get_mut(key) {
                hide(inner, rest);
            }
        }
        None => {
            if let Some(fields) = object.as_object_mut() {
                fields.remove(field);
            }
        }
    }
}
