//! What must be applied, as the server's own dry runs say it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::set::Set;
use super::{Args, deleted, item, sent};
use crate::cluster::compare::{covers, diff, differs, no_namespace, refused, returned};
use crate::cluster::object::Object;
use crate::cluster::resource::{Discovery, Resource};
use crate::cluster::{Api, encoded, text};
use crate::{Change, Diff, Error, ErrorKind, Host, KubeRequest, Plan};

/// How long a new kind may take to be served once its definition is applied.
const SERVED_WITHIN: Duration = Duration::from_secs(30);

pub(super) fn plan(args: &Args, api: &Api, host: &dyn Host, mut objects: Vec<Object>) -> Result<Plan, Error> {
    objects.sort_by_key(Object::rank);
    let mut round = Round {
        args,
        api,
        host,
        discovery: Discovery::new(api),
        namespaces: BTreeMap::new(),
        definitions: objects
            .iter()
            .filter(|object| object.is_definition())
            .map(|object| object.value.clone())
            .collect(),
        pending: Vec::new(),
        plan: Plan::default(),
        items: Vec::new(),
        last: None,
    };
    let mut set = match &args.name {
        Some(name) => Some(Set::read(api, name, args.namespace.as_deref())?),
        None => None,
    };
    let mut removals = Vec::new();
    if let Some(set) = &mut set {
        for object in &mut objects {
            round.settle(object)?;
            set.mark(object);
        }
        removals = set.stale(&round.discovery, api, &objects)?;
        // Written before what it tells of, so that a run that breaks off leaves nothing unknown.
        let at = objects.iter().position(|object| !object.is_namespace()).unwrap_or(objects.len());
        objects.insert(at, set.inventory(&objects, &removals));
    }
    for mut object in objects {
        let inventory = set.as_ref().is_some_and(|set| set.is_inventory(&object));
        round.settle(&mut object)?;
        round.object(&object, inventory)?;
    }
    for removal in removals.iter().filter(|_| args.prune) {
        round.plan.changes.push(removal.change(api, args.propagation));
        round.plan.diff.push(diff(&removal.object, Some(&removal.live), None));
        round.items.push(item(&removal.object, "deleted"));
    }
    if let Some(set) = &set {
        round.plan.warnings.extend(set.warnings());
        round.items.extend(deleted(host, &round.discovery, &set.path())?);
    }
    let single = round.last.take().filter(|_| round.items.len() == 1).unwrap_or(Value::Null);
    Ok(round.plan.with("objects", round.items).with("result", single))
}

/// One plan's way through all objects.
struct Round<'a> {
    args: &'a Args,
    api: &'a Api<'a>,
    host: &'a dyn Host,
    discovery: Discovery<'a>,
    /// Whether a namespace is there already; one that this round makes is not.
    namespaces: BTreeMap<String, bool>,
    /// The definitions of kinds among the objects.
    definitions: Vec<Value>,
    /// Groups and kinds whose definitions this round changes.
    pending: Vec<(String, String)>,
    plan: Plan,
    items: Vec<Value>,
    last: Option<Value>,
}

impl Round<'_> {
    /// Gives an object its namespace, or takes it away where the kind has none.
    fn settle(&self, object: &mut Object) -> Result<(), Error> {
        let namespaced = match self.discovery.find(&object.api_version, &object.kind)? {
            Some(resource) => resource.namespaced,
            None => match self.definition_of(object) {
                Some(definition) => text(definition, "/spec/scope") == "Namespaced",
                None => return Err(self.discovery.missing(&object.api_version, &object.kind)),
            },
        };
        object.namespace = match (namespaced, object.namespace.take()) {
            (false, _) => None,
            (true, Some(own)) => Some(own),
            (true, None) => Some(self.args.namespace.clone().unwrap_or_else(|| "default".into())),
        };
        if let Some(metadata) = object.value["metadata"].as_object_mut() {
            match &object.namespace {
                Some(namespace) => metadata.insert("namespace".into(), namespace.as_str().into()),
                None => metadata.remove("namespace"),
            };
        }
        Ok(())
    }

    fn definition_of(&self, object: &Object) -> Option<&Value> {
        self.definitions.iter().find(|definition| {
            text(definition, "/spec/group") == object.group() && text(definition, "/spec/names/kind") == object.kind
        })
    }

    /// Whether this task has applied the definition of an object's kind in an earlier round.
    fn waited(&self, object: &Object) -> bool {
        self.definition_of(object).is_some_and(|definition| {
            let name = text(definition, "/metadata/name");
            sent(self.host, "PATCH", &format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"))
        })
    }

    fn is_pending(&self, object: &Object) -> bool {
        self.pending.iter().any(|(group, kind)| group == object.group() && kind == &object.kind)
    }

    fn object(&mut self, object: &Object, inventory: bool) -> Result<(), Error> {
        let Some(resource) = self.resource(object)? else {
            // Its kind comes with this round: the next one applies it.
            self.plan.diff.push(diff(object, None, Some(&object.value)));
            self.items.push(item(object, "applied"));
            return Ok(());
        };
        let there = match &object.namespace {
            Some(namespace) => self.namespace(namespace)?,
            None => true,
        };
        let path = resource.path(object.namespace.as_deref(), &object.name);
        let request = self.request(&path, object);
        let live = if there { self.live(&path, object)? } else { None };
        let (changes, after) = if there {
            match self.dry_run(&request, object, live.as_ref())? {
                Some(outcome) => outcome,
                None => {
                    if live.is_none() {
                        self.plan.diff.push(diff(object, None, Some(&object.value)));
                    }
                    self.items.push(item(object, "applied"));
                    return Ok(());
                }
            }
        } else {
            (true, object.value.clone())
        };
        if changes {
            if object.is_definition() {
                let (group, kind) = (text(&object.value, "/spec/group"), text(&object.value, "/spec/names/kind"));
                self.pending.push((group.to_owned(), kind.to_owned()));
            }
            if object.is_namespace() && live.is_none() {
                self.namespaces.insert(object.name.clone(), false);
            }
            // What waited for its kind was shown when it began to wait.
            let shown = live.is_none() && self.waited(object);
            if !inventory && !shown {
                // A new object is shown as it was written; the server's defaults would bury it.
                let shown = if live.is_some() { &after } else { &object.value };
                self.plan.diff.push(taken_over(object, live.as_ref(), shown));
            }
            self.plan.changes.push(Change::Kubernetes(request));
        }
        if !inventory {
            let applied = changes || sent(self.host, "PATCH", &path);
            self.items.push(item(object, if applied { "applied" } else { "unchanged" }));
            self.last = Some(returned(object, &after));
        }
        Ok(())
    }

    /// Returns how the object's kind is served; `None` when its definition has yet to be applied.
    fn resource(&self, object: &Object) -> Result<Option<Resource>, Error> {
        let found = self.discovery.find(&object.api_version, &object.kind)?;
        if found.is_some() || self.is_pending(object) {
            return Ok(found);
        }
        if self.definition_of(object).is_none() {
            return Err(self.discovery.missing(&object.api_version, &object.kind));
        }
        let found = self.api.until(SERVED_WITHIN, || {
            self.discovery.forget(&object.api_version);
            self.discovery.find(&object.api_version, &object.kind)
        })?;
        found.map(Some).ok_or_else(|| self.discovery.missing(&object.api_version, &object.kind))
    }

    /// Returns whether a namespace is there; plans to make it where that is asked for.
    fn namespace(&mut self, name: &str) -> Result<bool, Error> {
        if let Some(there) = self.namespaces.get(name) {
            return Ok(*there);
        }
        let path = format!("/api/v1/namespaces/{name}");
        let there = match self.api.get(&path) {
            Ok(found) => found.is_some(),
            // Who may work in a namespace need not be allowed to look at it.
            Err(error) if error.result.get("status") == Some(&403.into()) => true,
            Err(error) => return Err(error),
        };
        if !there {
            if !self.args.create_namespace {
                return Err(no_namespace(&[name]));
            }
            let value = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let object = Object {
                api_version: "v1".into(),
                kind: "Namespace".into(),
                name: name.to_owned(),
                namespace: None,
                value,
            };
            self.plan.diff.push(diff(&object, None, Some(&object.value)));
            self.plan.changes.push(Change::Kubernetes(self.request(&path, &object)));
        }
        self.namespaces.insert(name.to_owned(), there);
        Ok(there)
    }

    fn request(&self, path: &str, object: &Object) -> KubeRequest {
        let manager = encoded(&self.args.field_manager);
        let force = self.args.force_conflicts;
        let query = format!("fieldManager={manager}&force={force}&fieldValidation=Strict");
        let mut request = self.api.request("PATCH", format!("{path}?{query}"));
        request.content_type = Some("application/apply-patch+yaml".into());
        request.body = Some(object.value.clone());
        request
    }

    /// Returns what is there; one that is being removed is waited out.
    fn live(&self, path: &str, object: &Object) -> Result<Option<Value>, Error> {
        let limit = Duration::from_secs(self.args.wait_timeout);
        let found = self.api.until(limit, || {
            let live = self.api.get(path)?;
            let going = live.as_ref().is_some_and(|live| live["metadata"].get("deletionTimestamp").is_some());
            Ok((!going).then_some(live))
        })?;
        found.ok_or_else(|| {
            let message = format!("{}: is being removed, and still there after {} s", object.title(), limit.as_secs());
            Error::new(ErrorKind::Host, message)
        })
    }

    /// Returns whether applying changes anything, and what there would be then; `None` when only a later round can say.
    fn dry_run(
        &self,
        request: &KubeRequest,
        object: &Object,
        live: Option<&Value>,
    ) -> Result<Option<(bool, Value)>, Error> {
        let mut dry = request.clone();
        dry.path.push_str("&dryRun=All");
        let answer = self.api.ask(&dry)?;
        let said = text(&answer.body, "/message");
        match answer.status {
            200 | 201 => {
                let changes = live.is_none_or(|live| differs(live, &answer.body, &self.args.field_manager));
                Ok(Some((changes, answer.body)))
            }
            // The definition that it is checked against is changed by this round.
            400 | 404 | 422 if self.is_pending(object) => Ok(None),
            400 if said.contains("dry run") || said.contains("dryRun") => {
                let changes = live.is_none_or(|live| !covers(live, &object.value));
                Ok(Some((changes, object.value.clone())))
            }
            _ => Err(refused(object, request, &answer)),
        }
    }
}

/// Returns a difference; where no value differs, applying takes over fields, and that is said.
fn taken_over(object: &Object, live: Option<&Value>, after: &Value) -> Diff {
    let shown = diff(object, live, Some(after));
    if shown.before == shown.after {
        let prepared = format!("{}: its fields are managed by kubeon-run from now on\n", object.title());
        return Diff { prepared: Some(prepared), ..Diff::default() };
    }
    shown
}
