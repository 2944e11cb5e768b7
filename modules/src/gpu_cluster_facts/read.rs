//! From objects of the API to evidence.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cluster::text;
use crate::gpu_cluster_facts::evidence::{Container, Node, Plugin, Pod, Taint, Toleration};

fn items<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn owned(value: &Value, pointer: &str) -> String {
    text(value, pointer).to_owned()
}

fn optional(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
}

fn map(value: &Value, pointer: &str) -> BTreeMap<String, String> {
    let entries = value.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Returns NVIDIA's resources.
fn resources(value: &Value, pointer: &str) -> BTreeMap<String, String> {
    let mut all = map(value, pointer);
    all.retain(|name, _| name.starts_with("nvidia.com/") || name.contains("nvidia-gpu"));
    all
}

pub(super) fn node(node: &Value) -> Node {
    let ready = items(node, "/status/conditions").iter().find(|condition| condition["type"] == "Ready");
    let taints = items(node, "/spec/taints").iter().map(|taint| Taint {
        key: owned(taint, "/key"),
        value: owned(taint, "/value"),
        effect: owned(taint, "/effect"),
    });
    Node {
        name: owned(node, "/metadata/name"),
        machine_id: owned(node, "/status/nodeInfo/machineID"),
        addresses: items(node, "/status/addresses").iter().map(|address| owned(address, "/address")).collect(),
        labels: map(node, "/metadata/labels"),
        taints: taints.collect(),
        ready: ready.map(|ready| owned(ready, "/status")).unwrap_or_else(|| "Unknown".to_owned()),
        message: ready.map(|ready| owned(ready, "/message")).unwrap_or_default(),
        unschedulable: node["spec"]["unschedulable"] == true,
        kubelet: owned(node, "/status/nodeInfo/kubeletVersion"),
        runtime: owned(node, "/status/nodeInfo/containerRuntimeVersion"),
        capacity: resources(node, "/status/capacity"),
        allocatable: resources(node, "/status/allocatable"),
    }
}

/// What the device plugin is told by its environment, as far as it matters.
const SETTINGS: [&str; 3] = ["MIG_STRATEGY", "DEVICE_LIST_STRATEGY", "FAIL_ON_INIT_ERROR"];

/// Returns a DaemonSet that is a device plugin of NVIDIA's. Feature discovery and MPS come in the same image.
pub(super) fn plugin(set: &Value) -> Option<Plugin> {
    let pod = &set["spec"]["template"]["spec"];
    let container = items(pod, "/containers").iter().find(|container| {
        let image = text(container, "/image");
        let called = format!("{} {} {}", text(container, "/name"), container["command"], container["args"]);
        let ours = image.contains("k8s-device-plugin") || image.contains("nvidia-gpu-device-plugin");
        ours && !image.contains("rocm") && !called.contains("feature-discovery") && !called.contains("mps-control")
    })?;
    let mut env = BTreeMap::new();
    for variable in items(container, "/env") {
        let name = text(variable, "/name");
        if SETTINGS.contains(&name) {
            env.insert(name.to_owned(), owned(variable, "/value"));
        }
    }
    let tolerations = items(pod, "/tolerations").iter().map(|toleration| Toleration {
        key: optional(toleration, "/key"),
        operator: optional(toleration, "/operator").unwrap_or_else(|| "Equal".to_owned()),
        value: owned(toleration, "/value"),
        effect: optional(toleration, "/effect"),
    });
    let required = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    Some(Plugin {
        name: format!("{}/{}", text(set, "/metadata/namespace"), text(set, "/metadata/name")),
        uid: owned(set, "/metadata/uid"),
        image: owned(container, "/image"),
        container: owned(container, "/name"),
        node_selector: map(pod, "/nodeSelector"),
        affinity: items(pod, required).to_vec(),
        tolerations: tolerations.collect(),
        runtime_class: optional(pod, "/runtimeClassName"),
        env,
    })
}

/// Returns a pod that is a device plugin's, or asks for GPUs.
pub(super) fn pod(pod: &Value, plugins: &[Plugin]) -> Option<Pod> {
    let owners = items(pod, "/metadata/ownerReferences");
    let plugin = plugins.iter().find(|plugin| owners.iter().any(|owner| text(owner, "/uid") == plugin.uid));
    let mut asks: BTreeMap<String, u64> = BTreeMap::new();
    for container in items(pod, "/spec/containers") {
        let mut wanted = resources(container, "/resources/requests");
        wanted.extend(resources(container, "/resources/limits"));
        for (name, count) in wanted {
            *asks.entry(name).or_default() += count.parse::<u64>().unwrap_or_default();
        }
    }
    let done = matches!(text(pod, "/status/phase"), "Succeeded");
    if plugin.is_none() && (asks.is_empty() || done) {
        return None;
    }
    let conditions = items(pod, "/status/conditions");
    let condition = |kind: &str| conditions.iter().find(|condition| condition["type"] == kind);
    let scheduled = condition("PodScheduled").filter(|condition| condition["status"] == "False");
    let statuses = items(pod, "/status/initContainerStatuses").iter().chain(items(pod, "/status/containerStatuses"));
    Some(Pod {
        namespace: owned(pod, "/metadata/namespace"),
        name: owned(pod, "/metadata/name"),
        uid: owned(pod, "/metadata/uid"),
        node: owned(pod, "/spec/nodeName"),
        phase: owned(pod, "/status/phase"),
        ready: condition("Ready").is_some_and(|condition| condition["status"] == "True"),
        reason: owned(pod, "/status/reason"),
        message: owned(pod, "/status/message"),
        unschedulable: scheduled.map(|condition| owned(condition, "/message")),
        runtime_class: optional(pod, "/spec/runtimeClassName"),
        plugin: plugin.map(|plugin| plugin.name.clone()),
        asks,
        containers: statuses.map(container).collect(),
        events: Vec::new(),
        log: Vec::new(),
    })
}

fn container(status: &Value) -> Container {
    let told = |state: Option<&Value>| {
        let state = state?;
        Some(format!("{}: {}", text(state, "/reason"), text(state, "/message")))
    };
    Container {
        name: owned(status, "/name"),
        image: owned(status, "/image"),
        restarts: status["restartCount"].as_u64().unwrap_or_default(),
        waiting: told(status.pointer("/state/waiting")),
        ended: told(status.pointer("/state/terminated").or_else(|| status.pointer("/lastState/terminated"))),
    }
}

/// Returns the seconds since 1970 of a time such as `2026-12-01T23:50:38Z`.
pub(super) fn seconds(time: &str) -> Option<f64> {
    let (day, clock) = time.split_once('T')?;
    let numbers = |text: &str, by: char| -> Option<Vec<i64>> { text.split(by).map(|part| part.parse().ok()).collect() };
    let (day, clock) = (numbers(day, '-')?, numbers(clock.get(..8)?, ':')?);
    let ([year, month, day], [hour, minute, second]) = (day.as_slice(), clock.as_slice()) else { return None };
    // Source: Howard Hinnant's `days_from_civil`.
    let year = if *month <= 2 { year - 1 } else { *year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some((days * 86_400 + hour * 3_600 + minute * 60 + second) as f64)
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_of_the_api_are_seconds() {
        assert_eq!(super::seconds("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!(super::seconds("2026-12-02T00:33:23.123456Z"), Some(1_796_171_603.0));
        assert_eq!(super::seconds(""), None);
    }
}
