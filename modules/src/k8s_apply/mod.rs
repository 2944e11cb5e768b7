mod absent;
mod present;
mod set;

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::cluster::object::{Object, objects_of};
use crate::cluster::resource::{Discovery, Resource};
use crate::cluster::{Api, FIELD_MANAGER, rollout, text};
use crate::decode::Arguments;
use crate::host::Map;
use crate::host::Put as _;
use crate::shared::State;
use crate::{Change, Done, Error, ErrorKind, Host, Module, Plan};

/// Keep objects of a Kubernetes cluster as a manifest says, by server-side apply.
///
/// ```yaml
/// - k8s_apply:
///     definition: "{{ lookup('template', 'nvidia-device-plugin.yml.j2') }}"
///     name: nvidia-device-plugin
///     prune: true
///     wait: true
///   delegate_to: localhost
/// ```
///
/// The server itself says what would change, by a dry run. A field that somebody else manages is not taken over unless
/// `force_conflicts` is set. With a `name`, what was once applied under it is remembered in a ConfigMap
/// `kubeon-run.NAME`, so that `prune` can remove what is no longer in the definition.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The objects: text with YAML documents, a mapping, or a list of mappings.
    #[serde(alias = "resource_definition")]
    definition: Option<Value>,
    /// A file with YAML documents on the machine where the task runs, in place of `definition`.
    src: Option<String>,
    /// `absent` removes the objects, the last one first.
    #[serde(default)]
    state: State,
    /// The namespace of objects that name none, `default` when absent; also where a `name` keeps its ConfigMap, then
    /// `kube-system` when absent.
    namespace: Option<String>,
    /// Make namespaces that are not there.
    #[serde(default)]
    create_namespace: bool,
    /// What these objects are together: they are labelled `kubeon-run/set: NAME` and remembered.
    name: Option<String>,
    /// Remove objects that were applied under this `name` before and are no longer in the definition.
    #[serde(default)]
    prune: bool,
    /// In whose name fields are managed.
    #[serde(default = "field_manager")]
    field_manager: String,
    /// Take over fields that others manage.
    #[serde(default)]
    force_conflicts: bool,
    /// Wait until workloads are rolled out, jobs complete, kinds established; with `absent`, until all is gone.
    #[serde(default)]
    wait: bool,
    /// How many seconds to wait at most, for all objects together.
    #[serde(default = "wait_timeout")]
    wait_timeout: u64,
    /// What happens to the objects that belong to a removed one.
    #[serde(default)]
    propagation: Propagation,
    /// A kubeconfig on the machine where the task runs; absent stands for `$KUBECONFIG`, `~/.kube/config`, then the
    /// pod's own service account.
    kubeconfig: Option<String>,
    /// A context of the kubeconfig; absent stands for its current one.
    context: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Propagation {
    /// They are removed afterwards.
    #[default]
    Background,
    /// They are removed before it.
    Foreground,
    /// They stay.
    Orphan,
}

impl Propagation {
    fn word(self) -> &'static str {
        match self {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        }
    }
}

fn field_manager() -> String {
    FIELD_MANAGER.into()
}

fn wait_timeout() -> u64 {
    120
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Arguments, message)
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        if self.prune && self.name.is_none() {
            return Err(bad("`prune` needs a `name`, under which what was applied is remembered"));
        }
        if self.field_manager.is_empty() || self.field_manager.len() > 128 {
            return Err(bad("`field_manager` must have 1 to 128 characters"));
        }
        let api = self.api(host);
        let objects = self.objects(host)?;
        match self.state {
            State::Present => present::plan(self, &api, host, objects),
            State::Absent => absent::plan(self, &api, host, objects),
        }
    }

    fn report(&self, host: &dyn Host, _done: &[Done], result: &mut Map) -> Result<(), Error> {
        if !self.wait {
            return Ok(());
        }
        let api = self.api(host);
        let discovery = Discovery::new(&api);
        let end = Instant::now() + Duration::from_secs(self.wait_timeout);
        // As `plan` lists them: those of a set that are to go are among them.
        for item in result.get("objects").and_then(Value::as_array).cloned().unwrap_or_default() {
            let object = Object {
                api_version: text(&item, "/apiVersion").into(),
                kind: text(&item, "/kind").into(),
                name: text(&item, "/name").into(),
                namespace: item["namespace"].as_str().map(str::to_owned),
                value: Value::Null,
            };
            let Some(resource) = discovery.find(&object.api_version, &object.kind)? else { continue };
            let left = end.saturating_duration_since(Instant::now());
            match text(&item, "/action") {
                "deleted" => gone(&api, &resource, &object, left)?,
                _ if self.state == State::Absent => gone(&api, &resource, &object, left)?,
                _ => rollout::wait(&api, &resource, &object, left)?,
            }
        }
        Ok(())
    }
}

/// Waits until an object is no longer there.
fn gone(api: &Api, resource: &Resource, object: &Object, limit: Duration) -> Result<(), Error> {
    let path = resource.path(object.namespace.as_deref(), &object.name);
    let mut finalizers = String::new();
    let done = api.until(limit, || {
        let live = api.get(&path)?;
        // Without a time of deletion it is another one that somebody has made anew.
        let going = live.filter(|live| live["metadata"].get("deletionTimestamp").is_some());
        finalizers = going.as_ref().map(|live| live["metadata"]["finalizers"].to_string()).unwrap_or_default();
        Ok(going.is_none().then_some(()))
    })?;
    match done {
        Some(()) => Ok(()),
        None => Err(Error::new(
            ErrorKind::Failed,
            format!("{}: still being removed after {} s, finalizers {finalizers}", object.title(), limit.as_secs()),
        )),
    }
}

impl Args {
    fn api<'a>(&'a self, host: &'a dyn Host) -> Api<'a> {
        Api::new(host, self.kubeconfig.as_deref(), self.context.as_deref())
    }

    fn objects(&self, host: &dyn Host) -> Result<Vec<Object>, Error> {
        let objects = match (&self.definition, &self.src) {
            (Some(definition), None) => objects_of(definition)?,
            (None, Some(path)) => {
                let bytes = host
                    .read(path)?
                    .ok_or_else(|| Error::new(ErrorKind::Host, format!("no file `{path}` where the task runs")))?;
                let text = String::from_utf8(bytes)
                    .map_err(|_| Error::new(ErrorKind::Host, format!("`{path}` is not UTF-8")))?;
                objects_of(&text.into()).map_err(|error| error.context(format!("`{path}`")))?
            }
            (Some(_), Some(_)) => return Err(bad("give `definition` or `src`, not both")),
            (None, None) if self.state == State::Absent && self.name.is_some() => Vec::new(),
            (None, None) => return Err(bad("what is to be applied? give `definition` or `src`")),
        };
        if objects.is_empty() && self.name.is_none() {
            return Err(bad("the definition holds no object"));
        }
        Ok(objects)
    }
}

/// What a task does about one object, for its result.
fn item(object: &Object, action: &str) -> Value {
    let mut item = Map::new();
    item.put("apiVersion", object.api_version.as_str());
    item.put("kind", object.kind.as_str());
    item.put("name", object.name.as_str());
    item.put("namespace", object.namespace.as_deref());
    item.put("action", action);
    item.into()
}

/// Whether this task has already sent a change of this method to a path.
fn sent(host: &dyn Host, method: &str, path: &str) -> bool {
    host.applied().iter().any(|done| match &done.change {
        Change::Kubernetes(request) => {
            request.method == method && request.path.split('?').next().is_some_and(|sent| sent == path)
        }
        _ => false,
    })
}

/// Returns the items of what this task has removed already; the list at `inventory` is none of its objects.
fn deleted(host: &dyn Host, discovery: &Discovery, inventory: &str) -> Result<Vec<Value>, Error> {
    let mut items = Vec::new();
    for done in host.applied() {
        let Change::Kubernetes(request) = &done.change else { continue };
        if request.method != "DELETE" || request.path == inventory {
            continue;
        }
        let words: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
        let (api_version, rest) = match words.as_slice() {
            ["api", version, rest @ ..] => ((*version).to_owned(), rest),
            ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
            _ => continue,
        };
        let (namespace, plural, name) = match rest {
            ["namespaces", namespace, plural, name] => (Some(*namespace), plural, name),
            [plural, name] => (None, plural, name),
            _ => continue,
        };
        let kind = discovery.find_by_any_name(&api_version, plural)?.map(|resource| resource.kind);
        let object = Object {
            api_version,
            kind: kind.unwrap_or_else(|| (*plural).to_owned()),
            name: (*name).to_owned(),
            namespace: namespace.map(str::to_owned),
            value: Value::Null,
        };
        items.push(item(&object, "deleted"));
    }
    Ok(items)
}
