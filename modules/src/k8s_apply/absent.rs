//! What must be removed.

use super::set::{Removal, Set};
use super::{Args, deleted, item, sent};
use crate::cluster::Api;
use crate::cluster::compare::diff;
use crate::cluster::object::Object;
use crate::cluster::resource::Discovery;
use crate::{Error, Host, Plan};

pub(super) fn plan(args: &Args, api: &Api, host: &dyn Host, mut objects: Vec<Object>) -> Result<Plan, Error> {
    let discovery = Discovery::new(api);
    objects.sort_by_key(Object::rank);
    objects.reverse();
    let mut plan = Plan::default();
    let mut items = Vec::new();
    let mut removals = Vec::new();
    for object in &mut objects {
        // A kind that is not served has no objects.
        let Some(resource) = discovery.find(&object.api_version, &object.kind)? else {
            items.push(item(object, "absent"));
            continue;
        };
        object.namespace = match (resource.namespaced, object.namespace.take()) {
            (false, _) => None,
            (true, Some(own)) => Some(own),
            (true, None) => Some(args.namespace.clone().unwrap_or_else(|| "default".into())),
        };
        let path = resource.path(object.namespace.as_deref(), &object.name);
        match api.get(&path)?.filter(|live| live["metadata"].get("deletionTimestamp").is_none()) {
            Some(live) => {
                items.push(item(object, "deleted"));
                removals.push(Removal { object: object.clone(), live, path });
            }
            None if sent(host, "DELETE", &path) => items.push(item(object, "deleted")),
            None => items.push(item(object, "absent")),
        }
    }
    if let Some(name) = &args.name {
        let set = Set::read(api, name, args.namespace.as_deref())?;
        let mut rest = set.stale(&discovery, api, &objects)?;
        items.extend(rest.iter().map(|removal| item(&removal.object, "deleted")));
        rest.sort_by_key(|removal| std::cmp::Reverse(removal.object.rank()));
        removals.extend(rest);
        plan.warnings.extend(set.warnings());
        let before = deleted(host, &discovery, &set.path())?;
        items = before.into_iter().filter(|item| !items.contains(item)).chain(items.clone()).collect();
        // The list goes last: what is on it could not be found without it.
        if set.exists() && removals.is_empty() {
            let (object, path) = (set.inventory(&[], &[]), set.path());
            if let Some(live) = api.get(&path)?.filter(|live| live["metadata"].get("deletionTimestamp").is_none()) {
                plan.changes.push(Removal { object, live, path }.change(api, args.propagation));
            }
        }
    }
    for removal in &removals {
        plan.changes.push(removal.change(api, args.propagation));
        plan.diff.push(diff(&removal.object, Some(&removal.live), None));
    }
    Ok(plan.with("objects", items))
}
