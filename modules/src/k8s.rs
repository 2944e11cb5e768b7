use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::ask::bad;
use crate::cluster::object::{Object, objects_of};
use crate::cluster::resource::Discovery;
use crate::cluster::{Api, text};
use crate::decode::{Arguments, arguments};
use crate::host::{Map, Put as _};
use crate::passed::table;
use crate::{Done, Error, ErrorKind, Host, Module, Plan, k8s_apply};

/// Keep objects of a Kubernetes cluster, with the arguments of `kubernetes.core.k8s`.
///
/// ```yaml
/// - kubernetes.core.k8s:
///     state: present
///     src: manifests/nginx.yml
///     wait: true
///   delegate_to: localhost
/// ```
///
/// Objects are applied by the server, as `k8s_apply` does: fields that others manage are taken over, unless
/// `server_side_apply` says otherwise, and fields that an earlier task gave and this one does not are removed.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The objects: text with YAML documents, a mapping, or a list of mappings.
    #[serde(alias = "resource_definition", alias = "inline")]
    definition: Option<Value>,
    /// A file with YAML documents, in place of `definition`.
    src: Option<String>,
    /// A template of such a file, in place of `definition`.
    template: Option<Value>,
    /// `patched` changes objects that are there and makes none.
    #[serde(default)]
    state: State,
    /// The group and version of the one object that no definition gives.
    #[serde(default = "core", alias = "api", alias = "version")]
    api_version: String,
    /// The kind of the one object that no definition gives.
    kind: Option<String>,
    /// The name of the one object that no definition gives.
    name: Option<String>,
    /// The namespace of objects that name none.
    namespace: Option<String>,
    /// Wait until workloads are rolled out; with `absent`, until all is gone.
    #[serde(default)]
    wait: bool,
    /// How many seconds to wait at most, for all objects together.
    #[serde(default = "wait_timeout")]
    wait_timeout: u64,
    /// How the server applies.
    server_side_apply: Option<ServerSide>,
    /// How objects are removed.
    delete_options: Option<Removal>,
    /// A kubeconfig on the machine where the task runs; absent stands for `$KUBECONFIG`, `~/.kube/config`, then the
    /// pod's own service account.
    kubeconfig: Option<String>,
    /// A context of the kubeconfig; absent stands for its current one.
    context: Option<String>,
    #[serde(rename = "+accepted")]
    #[schemars(flatten)]
    #[expect(dead_code, reason = "none of it makes a difference here")]
    accepted: Accepted,
}

table! {
    pub(super) struct Accepted {
        /// Accepted: the server always applies.
        apply: Flag,
        /// Accepted: the server always merges.
        merge_type: List,
        /// Accepted: changes are waited for without a fixed pause.
        wait_sleep: Number,
        /// Accepted: what fails ends the task.
        continue_on_error: Flag,
        /// Accepted: managed fields are never returned.
        hidden_fields: List,
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum State {
    #[default]
    Present,
    Absent,
    Patched,
}

/// In whose name fields are managed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ServerSide {
    /// The name.
    field_manager: String,
    /// Take over fields that others manage.
    #[serde(default)]
    force_conflicts: bool,
}

/// How objects are removed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Removal {
    /// What happens to the objects that belong to a removed one: `Background`, `Foreground` or `Orphan`.
    #[serde(rename = "propagationPolicy", alias = "propagation_policy")]
    propagation: Option<String>,
}

fn core() -> String {
    "v1".into()
}

fn wait_timeout() -> u64 {
    120
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let objects = self.objects(host)?;
        if objects.is_empty() {
            return Ok(Plan::default().with("result", Map::new()));
        }
        self.apply(&objects)?.plan(host)
    }

    fn report(&self, host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        let objects = self.objects(host)?;
        if !objects.is_empty() {
            self.apply(&objects)?.report(host, done, result)?;
        }
        let api = self.api(host);
        let discovery = Discovery::new(&api);
        let mut found = Vec::new();
        for object in &objects {
            let live = self.live(&api, &discovery, object)?.unwrap_or_default();
            let told = result.get("objects").and_then(Value::as_array).into_iter().flatten();
            let action =
                told.into_iter().find(|item| text(item, "/kind") == object.kind && text(item, "/name") == object.name);
            let method = match action.map(|item| text(item, "/action")) {
                Some("created") => "create",
                Some("deleted") => "delete",
                Some(_) | None => "patch",
            };
            found.push((method, live));
        }
        match found.as_mut_slice() {
            [(method, live)] => {
                result.put("method", *method);
                result.put("result", shown(live));
            }
            all => {
                let row = |(method, live): &mut (&str, Value)| {
                    let mut row = Map::new();
                    row.put("method", *method);
                    row.put("result", shown(live));
                    Value::from(row)
                };
                let rows: Vec<Value> = all.iter_mut().map(row).collect();
                let mut whole = Map::new();
                whole.put("results", rows);
                result.put("result", whole);
            }
        }
        Ok(())
    }
}

/// Returns an object without the record of who manages what, which nobody reads.
fn shown(live: &mut Value) -> Value {
    if let Some(metadata) = live.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    if live.is_null() { Map::new().into() } else { live.take() }
}

impl Args {
    fn api<'a>(&'a self, host: &'a dyn Host) -> Api<'a> {
        Api::new(host, self.kubeconfig.as_deref(), self.context.as_deref())
    }

    fn live(&self, api: &Api, discovery: &Discovery, object: &Object) -> Result<Option<Value>, Error> {
        let Some(resource) = discovery.find(&object.api_version, &object.kind)? else { return Ok(None) };
        let namespace = object.namespace.as_deref().or(self.namespace.as_deref()).unwrap_or("default");
        api.get(&resource.path(Some(namespace), &object.name))
    }

    /// Returns the objects that the task is about.
    fn objects(&self, host: &dyn Host) -> Result<Vec<Object>, Error> {
        let definition = match (&self.definition, &self.src, &self.kind, &self.name) {
            (None, Some(path), _, _) => {
                let missing = || Error::new(ErrorKind::Host, format!("no file `{path}` where the task runs"));
                let bytes = host.read(path)?.ok_or_else(missing)?;
                Value::from(String::from_utf8_lossy(&bytes).into_owned())
            }
            (Some(_), Some(_), _, _) => return Err(bad("give `definition` or `src`, not both")),
            (Some(definition), None, _, _) => self.completed(definition),
            (None, None, Some(kind), Some(name)) => {
                let mut metadata = Map::new();
                metadata.put("name", name.as_str());
                let mut object = Map::new();
                object.put("apiVersion", self.api_version.as_str());
                object.put("kind", kind.as_str());
                object.put("metadata", metadata);
                object.into()
            }
            (None, None, _, _) => return Err(bad("what is it about? give `definition`, `src`, or `kind` and `name`")),
        };
        if self.template.is_some() {
            return Err(bad("the template was not rendered before the task came here"));
        }
        let mut objects = objects_of(&definition)?;
        if self.state == State::Patched {
            let api = self.api(host);
            let discovery = Discovery::new(&api);
            let mut there = Vec::new();
            for object in objects {
                if self.live(&api, &discovery, &object)?.is_some() {
                    there.push(object);
                }
            }
            objects = there;
        }
        Ok(objects)
    }

    /// Returns a lone definition with the kind and name that the task gives beside it.
    fn completed(&self, definition: &Value) -> Value {
        let mut definition = definition.clone();
        if let Some(object) = definition.as_object_mut() {
            object.entry("apiVersion").or_insert_with(|| self.api_version.as_str().into());
            if let Some(kind) = &self.kind {
                object.entry("kind").or_insert_with(|| kind.as_str().into());
            }
            let metadata = object.entry("metadata").or_insert_with(|| Map::new().into());
            if let (Some(name), Some(metadata)) = (&self.name, metadata.as_object_mut()) {
                metadata.entry("name").or_insert_with(|| name.as_str().into());
            }
        }
        definition
    }

    fn apply(&self, objects: &[Object]) -> Result<k8s_apply::Args, Error> {
        let mut args = Map::new();
        args.put("definition", objects.iter().map(|object| object.value.clone()).collect::<Value>());
        args.put("state", if self.state == State::Absent { "absent" } else { "present" });
        args.put("wait", self.wait);
        args.put("wait_timeout", self.wait_timeout);
        for (key, value) in
            [("namespace", &self.namespace), ("kubeconfig", &self.kubeconfig), ("context", &self.context)]
        {
            if let Some(value) = value {
                args.put(key, value.as_str());
            }
        }
        args.put("force_conflicts", self.server_side_apply.as_ref().is_none_or(|side| side.force_conflicts));
        if let Some(side) = &self.server_side_apply {
            args.put("field_manager", side.field_manager.as_str());
        }
        let removal = self.delete_options.as_ref().and_then(|removal| removal.propagation.as_ref());
        if let Some(propagation) = removal {
            args.put("propagation", propagation.to_ascii_lowercase());
        }
        arguments(&args).map_err(|error| bad(error.to_string()))
    }
}
