//! When an object does what it was applied for, and why it does not yet.

use std::time::Duration;

use serde_json::Value;

use super::object::Object;
use super::resource::Resource;
use super::{Api, encoded, text};
use crate::{Error, ErrorKind};

/// How far an object has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// Not yet: says how far it is.
    Waiting(String),
    /// It won't come by itself.
    Failed(String),
}

/// How many pods are asked why they don't run.
const MOST_PODS: usize = 3;

/// Returns how far an object has come. Kinds that have no such thing are ready at once.
pub(crate) fn state_of(object: &Value) -> State {
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    let seen = object["status"]["observedGeneration"].as_i64().unwrap_or_default();
    match text(object, "/kind") {
        "DaemonSet" | "Deployment" | "StatefulSet" if seen < generation => {
            State::Waiting("its controller has not looked at it yet".into())
        }
        "DaemonSet" => daemon_set(object),
        "Deployment" => deployment(object),
        "StatefulSet" => stateful_set(object),
        "Job" => job(object),
        "Pod" => pod(object),
        "Node" => condition(object, "Ready"),
        "CustomResourceDefinition" => condition(object, "Established"),
        "APIService" => condition(object, "Available"),
        "Namespace" if text(object, "/status/phase") == "Active" => State::Ready,
        "Namespace" => State::Waiting("not active".into()),
        _ => State::Ready,
    }
}

fn count(object: &Value, key: &str) -> i64 {
    object["status"][key].as_i64().unwrap_or_default()
}

fn daemon_set(object: &Value) -> State {
    let desired = count(object, "desiredNumberScheduled");
    let updated = count(object, "updatedNumberScheduled");
    let available = count(object, "numberAvailable");
    let by_hand = text(object, "/spec/updateStrategy/type") == "OnDelete";
    match () {
        () if !by_hand && updated < desired => State::Waiting(format!("{updated} of {desired} pods are updated")),
        () if available < desired => State::Waiting(format!("{available} of {desired} pods are available")),
        () => State::Ready,
    }
}

fn deployment(object: &Value) -> State {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let updated = count(object, "updatedReplicas");
    let available = count(object, "availableReplicas");
    let old = count(object, "replicas") - updated;
    let progress = condition_of(object, "Progressing");
    if let Some(progress) = progress
        && text(progress, "/reason") == "ProgressDeadlineExceeded"
    {
        return State::Failed(text(progress, "/message").to_owned());
    }
    match () {
        () if updated < wanted => State::Waiting(format!("{updated} of {wanted} pods are updated")),
        () if old > 0 => State::Waiting(format!("{old} old pods are still there")),
        () if available < wanted => State::Waiting(format!("{available} of {wanted} pods are available")),
        () => State::Ready,
    }
}

fn stateful_set(object: &Value) -> State {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let updated = count(object, "updatedReplicas");
    let ready = count(object, "readyReplicas");
    let by_hand = text(object, "/spec/updateStrategy/type") == "OnDelete";
    let partition = object["spec"]["updateStrategy"]["rollingUpdate"]["partition"].as_i64().unwrap_or_default();
    match () {
        () if !by_hand && updated < wanted - partition => {
            State::Waiting(format!("{updated} of {} pods are updated", wanted - partition))
        }
        () if ready < wanted => State::Waiting(format!("{ready} of {wanted} pods are ready")),
        () => State::Ready,
    }
}

fn job(object: &Value) -> State {
    if object["spec"]["suspend"] == Value::Bool(true) {
        return State::Ready;
    }
    if let Some(failed) = condition_of(object, "Failed").filter(|failed| text(failed, "/status") == "True") {
        return State::Failed(format!("{}: {}", text(failed, "/reason"), text(failed, "/message")));
    }
    match condition(object, "Complete") {
        State::Ready => State::Ready,
        _ => State::Waiting(format!(
            "not complete, {} active and {} failed",
            count(object, "active"),
            count(object, "failed")
        )),
    }
}

fn pod(object: &Value) -> State {
    match text(object, "/status/phase") {
        "Succeeded" => State::Ready,
        "Failed" => State::Failed(format!("{} {}", text(object, "/status/reason"), text(object, "/status/message"))),
        _ => match condition(object, "Ready") {
            State::Ready => State::Ready,
            other => pod_trouble(object).map_or(other, State::Waiting),
        },
    }
}

pub(crate) fn condition_of<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| text(condition, "/type") == kind)
}

fn condition(object: &Value, kind: &str) -> State {
    match condition_of(object, kind) {
        Some(found) if text(found, "/status") == "True" => State::Ready,
        Some(found) => {
            let (reason, message) = (text(found, "/reason"), text(found, "/message"));
            let said = [reason, message].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
            State::Waiting(format!("not {}{}{said}", kind.to_lowercase(), if said.is_empty() { "" } else { ", " }))
        }
        None => State::Waiting(format!("not {}", kind.to_lowercase())),
    }
}

/// Returns why a pod does not run, where it says so itself.
fn pod_trouble(pod: &Value) -> Option<String> {
    for list in ["initContainerStatuses", "containerStatuses"] {
        for status in pod["status"][list].as_array().map(Vec::as_slice).unwrap_or_default() {
            let name = text(status, "/name");
            let waiting = text(status, "/state/waiting/reason");
            if !waiting.is_empty() && waiting != "ContainerCreating" && waiting != "PodInitializing" {
                let ended = ["/lastState/terminated/message", "/lastState/terminated/reason", "/state/waiting/message"]
                    .into_iter()
                    .map(|pointer| text(status, pointer).trim())
                    .find(|said| !said.is_empty());
                return Some(format!("container `{name}`: {waiting}{}", tail(ended)));
            }
        }
    }
    let scheduled = condition_of(pod, "PodScheduled")?;
    (text(scheduled, "/status") == "False").then(|| format!("not scheduled{}", tail(Some(text(scheduled, "/message")))))
}

fn tail(said: Option<&str>) -> String {
    said.filter(|said| !said.is_empty()).map(|said| format!(": {said}")).unwrap_or_default()
}

/// Waits until an object is ready.
///
/// # Errors
/// [`ErrorKind::Failed`] when it is not in time or can't be any more, with what its pods say.
pub(crate) fn wait(api: &Api, resource: &Resource, object: &Object, limit: Duration) -> Result<(), Error> {
    let path = resource.path(object.namespace.as_deref(), &object.name);
    let mut last = State::Waiting("it is not there".into());
    api.until(limit, || {
        last = match api.get(&path)? {
            Some(mut live) => {
                live["kind"] = object.kind.as_str().into();
                match state_of(&live) {
                    State::Ready if object.kind == "DaemonSet" => unscheduled(api, &live)?,
                    state => state,
                }
            }
            None => State::Waiting("it is not there".into()),
        };
        Ok((!matches!(last, State::Waiting(_))).then_some(()))
    })?;
    let said = match last {
        State::Ready => return Ok(()),
        State::Failed(said) => said,
        State::Waiting(said) => format!("not ready within {} s: {said}", limit.as_secs()),
    };
    let why = reasons(api, &path, object).unwrap_or_default();
    let why = if why.is_empty() { String::new() } else { format!("; {}", why.join("; ")) };
    Err(Error::new(ErrorKind::Failed, format!("{}: {said}{why}", object.title())).with("reasons", why))
}

/// Counts the nodes that a DaemonSet is for: its controller may not have seen a label yet that was set just before, and
/// is content with fewer until then.
fn unscheduled(api: &Api, object: &Value) -> Result<State, Error> {
    let pod = &object["spec"]["template"]["spec"];
    // Which nodes an affinity leaves is the scheduler's to say.
    if pod["affinity"].is_object() {
        return Ok(State::Ready);
    }
    let selector: Vec<String> = pod["nodeSelector"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    let query = match selector.is_empty() {
        true => String::new(),
        false => format!("&labelSelector={}", encoded(&selector.join(","))),
    };
    let nodes = api.list("/api/v1/nodes", &query)?.unwrap_or_default();
    let tolerations = pod["tolerations"].as_array().map(Vec::as_slice).unwrap_or_default();
    let suitable = nodes.iter().filter(|node| {
        let taints = node["spec"]["taints"].as_array().map(Vec::as_slice).unwrap_or_default();
        taints.iter().all(|taint| is_tolerated(taint, tolerations))
    });
    let (wanted, scheduled) = (suitable.count() as i64, count(object, "desiredNumberScheduled"));
    match scheduled < wanted {
        true => Ok(State::Waiting(format!("it is on {scheduled} of {wanted} suitable nodes"))),
        false => Ok(State::Ready),
    }
}

fn is_tolerated(taint: &Value, tolerations: &[Value]) -> bool {
    let (key, effect) = (text(taint, "/key"), text(taint, "/effect"));
    // Source: the tolerations that the DaemonSet controller adds by itself.
    let added = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/unschedulable",
    ];
    effect == "PreferNoSchedule"
        || added.contains(&key)
        || tolerations.iter().any(|toleration| {
            let (own_key, own_effect) = (text(toleration, "/key"), text(toleration, "/effect"));
            let any = text(toleration, "/operator") == "Exists";
            (own_effect.is_empty() || own_effect == effect)
                && ((own_key.is_empty() && any)
                    || (own_key == key && (any || text(toleration, "/value") == text(taint, "/value"))))
        })
}

/// Returns what pods of a workload say of why they don't run, the first few.
fn reasons(api: &Api, path: &str, object: &Object) -> Result<Vec<String>, Error> {
    let namespace = object.namespace.as_deref().unwrap_or("default");
    let Some(live) = api.get(path)? else { return Ok(Vec::new()) };
    let labels = live["spec"]["selector"]["matchLabels"].as_object();
    let Some(labels) = labels.filter(|labels| !labels.is_empty()) else { return Ok(Vec::new()) };
    let selector: Vec<String> =
        labels.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    let query = format!("&labelSelector={}", encoded(&selector.join(",")));
    let pods = api.list(&format!("/api/v1/namespaces/{namespace}/pods"), &query)?.unwrap_or_default();
    let mut reasons = Vec::new();
    for pod in pods.iter().filter(|pod| pod_state(pod) != State::Ready).take(MOST_PODS) {
        let name = text(pod, "/metadata/name");
        let node = text(pod, "/spec/nodeName");
        let place = if node.is_empty() { String::new() } else { format!(" on node `{node}`") };
        let said = match pod_trouble(pod) {
            Some(said) => Some(said),
            None => last_warning(api, namespace, name)?,
        };
        reasons.push(format!("pod `{name}`{place}: {}", said.unwrap_or_else(|| "says nothing".into())));
    }
    Ok(reasons)
}

fn pod_state(pod: &Value) -> State {
    self::pod(pod)
}

/// Returns the latest warning among a pod's events: where a sandbox could not be made, only they say why.
fn last_warning(api: &Api, namespace: &str, pod: &str) -> Result<Option<String>, Error> {
    let query = format!("&fieldSelector={}", encoded(&format!("involvedObject.name={pod},type=Warning")));
    let events = api.list(&format!("/api/v1/namespaces/{namespace}/events"), &query)?.unwrap_or_default();
    let time = |event: &Value| {
        ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"]
            .into_iter()
            .map(|pointer| text(event, pointer))
            .find(|time| !time.is_empty())
            .unwrap_or_default()
            .to_owned()
    };
    Ok(events
        .iter()
        .max_by_key(|event| time(event))
        .map(|event| format!("{}: {}", text(event, "/reason"), text(event, "/message"))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_workload_is_ready_when_all_of_it_is_new_and_available() {
        let set = |updated: i64, available: i64, seen: i64| {
            state_of(&json!({
                "kind": "DaemonSet",
                "metadata": {"generation": 2},
                "status": {
                    "observedGeneration": seen, "desiredNumberScheduled": 2,
                    "updatedNumberScheduled": updated, "numberAvailable": available,
                },
            }))
        };
        assert_eq!(set(2, 2, 2), State::Ready);
        assert!(matches!(set(2, 2, 1), State::Waiting(_)));
        assert_eq!(set(1, 2, 2), State::Waiting("1 of 2 pods are updated".into()));
        assert_eq!(set(2, 1, 2), State::Waiting("1 of 2 pods are available".into()));
    }

    #[test]
    fn taints_keep_a_daemon_set_away_unless_tolerated() {
        let gpu = json!({"key": "nvidia.com/gpu", "value": "x", "effect": "NoSchedule"});
        assert!(!is_tolerated(&gpu, &[]));
        assert!(is_tolerated(&gpu, &[json!({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"})]));
        assert!(is_tolerated(&gpu, &[json!({"operator": "Exists"})]));
        assert!(!is_tolerated(&gpu, &[json!({"key": "nvidia.com/gpu", "value": "y"})]));
        assert!(is_tolerated(&json!({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}), &[]));
    }

    #[test]
    fn a_pod_says_why_it_waits() {
        let pod = json!({"kind": "Pod", "status": {"phase": "Pending", "containerStatuses": [
            {"name": "plugin", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}},
        ]}});
        assert_eq!(state_of(&pod), State::Waiting("container `plugin`: ImagePullBackOff: no such image".into()));
    }
}
