//! One node: ready, with the device plugin in its place, and what it offers.

use std::collections::BTreeMap;

use kubeon_modules::cluster_evidence::{Cluster, Node, Plugin, Pod};
use kubeon_modules::evidence::Evidence;
use serde_json::Value;

use super::super::host::numbers;
use super::super::{Finding, Link, Severity, Subject, table, text};

/// The label that GPU nodes have.
pub const LABEL: &str = "nvidia.com/gpu.present";

/// Judges a node, with what was seen on its host where that was looked at.
pub fn examine(subject: &mut Subject, seen: Option<&Evidence>, node: &Node, cluster: &Cluster) {
    let here: Vec<&Pod> = cluster.pods.iter().filter(|pod| pod.plugin.is_some() && pod.node == node.name).collect();
    if !subject.has_gpu {
        without_gpu(subject, node, cluster, &here);
        return;
    }
    readiness(subject, node);
    if cluster.plugins.is_empty() && node.offered() == 0 {
        subject.find(Finding::new(table::NO_PLUGIN, "no DaemonSet in any namespace has the image k8s-device-plugin"));
        return;
    }
    placement(subject, node, cluster, &here);
    if !here.is_empty() {
        by_cdi(subject, seen, cluster, &here);
        running(subject, seen, cluster, &here);
    }
    let silent = here.is_empty() && !cluster.plugins.is_empty() && node.offered() == 0;
    let failing = subject.findings.iter().any(|finding| finding.diagnosis.link == Link::PluginPod);
    if !silent && !failing {
        offer(subject, seen, node, cluster, &here);
    }
}

fn without_gpu(subject: &mut Subject, node: &Node, cluster: &Cluster, here: &[&Pod]) {
    // Who passes GPUs through, or has none, needs no device plugin.
    let chosen = cluster.plugins.iter().find(|plugin| !plugin.node_selector.is_empty() && selects(plugin, node));
    if let (Some(plugin), Some(value)) = (chosen, node.labels.get(LABEL)) {
        let seen = format!("`{LABEL}` is `{value}`, which DaemonSet {} goes by", plugin.name);
        subject.find(Finding::new(table::LABEL_WITHOUT_GPU, seen));
    }
    if let Some(pod) = here.iter().find(|pod| !pod.ready) {
        let seen =
            format!("pod {}/{} is {}, restarted {} times", pod.namespace, pod.name, state_of(pod), restarts(pod));
        subject.find(Finding::new(table::PLUGIN_NOT_GPU_NODE, seen));
    }
}

fn readiness(subject: &mut Subject, node: &Node) {
    // A node whose runtime or kubelet is down is not ready because of that.
    let known = subject.broken().is_some_and(|link| link >= Link::Containerd)
        || subject
            .findings
            .iter()
            .any(|finding| finding.diagnosis.link == Link::Kubelet && finding.diagnosis.severity == Severity::Error);
    if node.ready != "True" && !known {
        let seen = format!("node `{}`: Ready is {}: {}", node.name, node.ready, node.message);
        subject.find(Finding::new(table::NODE_NOT_READY, seen));
    }
    if node.unschedulable {
        subject.find(Finding::new(table::NODE_CORDONED, format!("node `{}` is cordoned", node.name)));
    }
    if node.runtime.starts_with("docker://") {
        subject.find(Finding::new(table::DOCKER, format!("node `{}` has the runtime {}", node.name, node.runtime)));
    }
    subject.fine(Link::Kubelet, format!("node `{}` is ready, kubelet {}, {}", node.name, node.kubelet, node.runtime));
}

/// Whether a DaemonSet's nodeSelector and required affinity choose a node.
fn selects(plugin: &Plugin, node: &Node) -> bool {
    let selector = plugin.node_selector.iter().all(|(key, value)| node.labels.get(key) == Some(value));
    selector && (plugin.affinity.is_empty() || plugin.affinity.iter().any(|term| term_matches(term, node)))
}

fn term_matches(term: &Value, node: &Node) -> bool {
    let list = |key: &str| term[key].as_array().cloned().unwrap_or_default();
    let holds = |expression: &Value, found: Option<&str>| {
        let values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
        match expression["operator"].as_str().unwrap_or_default() {
            "In" => found.is_some_and(|found| values.contains(&found)),
            "NotIn" => found.is_none_or(|found| !values.contains(&found)),
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            "Gt" => number(found) > number(values.first().copied()),
            "Lt" => found.is_some() && number(found) < number(values.first().copied()),
            _ => true,
        }
    };
    let label =
        |expression: &Value| node.labels.get(expression["key"].as_str().unwrap_or_default()).map(String::as_str);
    list("matchExpressions").iter().all(|expression| holds(expression, label(expression)))
        && list("matchFields").iter().all(|expression| holds(expression, Some(&node.name)))
}

fn placement(subject: &mut Subject, node: &Node, cluster: &Cluster, here: &[&Pod]) {
    let names: Vec<&str> = cluster.plugins.iter().map(|plugin| plugin.name.as_str()).collect();
    let about = if names.is_empty() {
        "none of a DaemonSet; something else offers the GPUs".to_owned()
    } else {
        names.join(", ")
    };
    subject.fine(Link::DevicePlugin, about);
    let mut sets: Vec<&str> = here.iter().filter_map(|pod| pod.plugin.as_deref()).collect();
    sets.sort_unstable();
    sets.dedup();
    if sets.len() > 1 {
        subject
            .find(Finding::new(table::PLUGIN_TWICE, format!("pods of {} run on `{}`", sets.join(" and "), node.name)));
    }
    if cluster.plugins.is_empty() {
        return;
    }
    let chosen: Vec<&Plugin> = cluster.plugins.iter().filter(|plugin| selects(plugin, node)).collect();
    if let Some(value) = node.labels.get(LABEL) {
        subject.fine(Link::Label, format!("{LABEL}={value}"));
    } else if !chosen.is_empty() {
        subject.fine(Link::Label, "the device plugin needs none");
    }
    if !here.is_empty() {
        subject.fine(Link::Taint, "none that keeps the device plugin away");
        return;
    }
    if chosen.is_empty() {
        label(subject, node, cluster);
        return;
    }
    let blocking = |plugin: &&Plugin| {
        let hard = node.taints.iter().filter(|taint| taint.effect != "PreferNoSchedule");
        hard.filter(|taint| !tolerated(plugin, taint))
            .map(|taint| format!("{}={}:{}", taint.key, taint.value, taint.effect))
            .collect::<Vec<_>>()
    };
    let blocked: Vec<(&str, Vec<String>)> = chosen
        .iter()
        .map(|plugin| (plugin.name.as_str(), blocking(plugin)))
        .filter(|(_, taints)| !taints.is_empty())
        .collect();
    if blocked.len() == chosen.len() {
        for (plugin, taints) in blocked {
            subject.find(Finding::new(
                table::TAINT,
                format!("`{}` has {}; DaemonSet {plugin} does not tolerate that", node.name, taints.join(", ")),
            ));
        }
        return;
    }
    subject.fine(Link::Taint, "none that keeps the device plugin away");
    let mut found = false;
    for (of, told) in cluster.failures.iter().filter(|(of, _)| names.iter().any(|name| of.ends_with(name))) {
        for finding in text::explain(told).into_iter().filter(|finding| finding.diagnosis.link == Link::PluginPod) {
            subject.find(finding.also(of));
            found = true;
        }
    }
    if !found {
        subject.find(Finding::new(
            table::PLUGIN_ABSENT,
            format!("DaemonSet {} has no pod on `{}`", names.join(", "), node.name),
        ));
    }
}

/// The DaemonSet controller lets its pods tolerate these by itself.
const ALWAYS_TOLERATED: [&str; 6] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unschedulable",
];

fn tolerated(plugin: &Plugin, taint: &kubeon_modules::cluster_evidence::Taint) -> bool {
    ALWAYS_TOLERATED.contains(&taint.key.as_str())
        || plugin.tolerations.iter().any(|toleration| toleration.tolerates(taint))
}

/// No DaemonSet chooses the node: the label is missing, or another one.
fn label(subject: &mut Subject, node: &Node, cluster: &Cluster) {
    subject.fine.remove(&Link::Label);
    for plugin in &cluster.plugins {
        let wanted = plugin.node_selector.iter().find(|(key, value)| node.labels.get(*key) != Some(value));
        let Some((key, value)) = wanted else {
            let seen = format!("the affinity of DaemonSet {} does not choose `{}`", plugin.name, node.name);
            subject.find(Finding::new(table::NO_LABEL, seen));
            continue;
        };
        let finding = match node.labels.get(key) {
            Some(own) => Finding::new(
                table::LABEL_DIFFERS,
                format!("DaemonSet {} wants `{key}={value}`, `{}` has `{key}={own}`", plugin.name, node.name),
            ),
            None => Finding::new(
                table::NO_LABEL,
                format!("DaemonSet {} wants `{key}={value}`, `{}` has no label `{key}`", plugin.name, node.name),
            ),
        };
        // The playbook sets one label and knows of no other.
        subject.find(if key == LABEL {
            finding
        } else {
            finding.by(format!("kubectl label node {} {key}={value}", node.name))
        });
    }
}

fn state_of(pod: &Pod) -> String {
    let waiting = pod.containers.iter().find_map(|container| container.waiting.as_deref());
    let waiting = waiting.and_then(|told| told.split(':').next()).filter(|reason| !reason.is_empty());
    waiting.unwrap_or(&pod.phase).to_owned()
}

fn restarts(pod: &Pod) -> u64 {
    pod.containers.iter().map(|container| container.restarts).sum()
}

/// Judges the device plugin's pods on the node.
fn running(subject: &mut Subject, seen: Option<&Evidence>, cluster: &Cluster, here: &[&Pod]) {
    for pod in here {
        let name = format!("{}/{}", pod.namespace, pod.name);
        if pod.ready {
            subject.fine(Link::PluginPod, format!("{name} runs"));
            // One that waits for devices for ever is ready all the same.
            let said = text::explain(&pod.log.join("\n"));
            said.into_iter()
                .filter(|finding| finding.diagnosis.link == Link::PluginPod)
                .for_each(|finding| subject.find(finding.also(format!("the log of {name}"))));
            continue;
        }
        let told =
            pod.containers.iter().flat_map(|container| [container.waiting.clone(), container.ended.clone()]).flatten();
        let all: Vec<String> = pod.log.iter().cloned().chain(pod.events.iter().cloned()).chain(told).collect();
        let reasons = text::explain(&all.join("\n"));
        let state = format!("pod {name} is {}, restarted {} times", state_of(pod), restarts(pod));
        let known =
            |finding: &&Finding| subject.findings.iter().any(|known| known.diagnosis.id == finding.diagnosis.id);
        let explained: Vec<&Finding> = reasons.iter().filter(known).collect();
        // The host has shown why already: here is what follows.
        if explained.is_empty() && !reasons.is_empty() {
            reasons
                .into_iter()
                .filter(|finding| finding.diagnosis.severity == Severity::Error)
                .for_each(|finding| subject.find(finding.also(state.clone())));
        }
        if !subject.findings.iter().any(|finding| finding.diagnosis.link == Link::PluginPod) {
            let last = pod.log.last().or(pod.events.last()).map(|line| format!("it says: {line}"));
            let finding = Finding::new(table::PLUGIN_NOT_READY, state);
            subject.find(last.into_iter().fold(finding, Finding::also));
        }
    }
    not_default(subject, seen, cluster, here);
}

/// The device plugin itself must be started through NVIDIA's runtime.
fn not_default(subject: &mut Subject, seen: Option<&Evidence>, cluster: &Cluster, here: &[&Pod]) {
    let Some(seen) = seen else { return };
    let nvidia = |name: &str| {
        let runtime = seen.containerd.runtimes.get(name);
        runtime.is_some_and(|runtime| runtime.binary.contains("nvidia-container-runtime"))
    };
    let knows = seen.containerd.runtimes.keys().any(|name| nvidia(name));
    let asks = |pod: &&Pod| {
        let plugin = cluster.plugins.iter().find(|plugin| Some(&plugin.name) == pod.plugin.as_ref());
        plugin.is_none_or(|plugin| plugin.runtime_class.is_some())
    };
    if knows
        && !seen.containerd.default_runtime.is_empty()
        && !nvidia(&seen.containerd.default_runtime)
        && !here.iter().any(asks)
        && here.iter().any(|pod| !pod.ready || !pod.log.is_empty())
    {
        let told = format!(
            "the default runtime is `{}`, and the DaemonSet has no runtimeClassName",
            seen.containerd.default_runtime
        );
        subject.find(Finding::new(table::NOT_DEFAULT, told));
    }
}

/// Devices that are told of by CDI need a runtime that can read what the toolkit writes.
fn by_cdi(subject: &mut Subject, seen: Option<&Evidence>, cluster: &Cluster, here: &[&Pod]) {
    let Some(seen) = seen.filter(|seen| seen.containerd.kind == "containerd") else { return };
    let here = |plugin: &&Plugin| here.iter().any(|pod| pod.plugin.as_ref() == Some(&plugin.name));
    let strategy = cluster.plugins.iter().filter(here).filter_map(|plugin| plugin.env.get("DEVICE_LIST_STRATEGY"));
    let Some(strategy) = strategy.into_iter().find(|strategy| strategy.contains("cdi")) else { return };
    let Some(toolkit) = seen.toolkit.packages.get("nvidia-container-toolkit-base") else { return };
    let runtime = &seen.containerd.version;
    if numbers(toolkit) >= vec![1, 19, 1] && !runtime.is_empty() && numbers(runtime) < vec![1, 7, 16] {
        let told = format!("containerd {runtime}, toolkit {toolkit}, DEVICE_LIST_STRATEGY={strategy}");
        subject.find(Finding::new(table::CDI_TOO_NEW, told));
    }
}

/// Returns what the kubelet says of having lost the device plugin.
fn lost(seen: Option<&Evidence>) -> Option<Finding> {
    let said = text::explain(&seen?.kubelet.journal.join("\n"));
    said.into_iter().find(|finding| finding.diagnosis.id == table::PLUGIN_LOST.id)
}

/// Returns what the device plugin must offer at least of GPUs that are cut into slices, by name; `None` where none is.
fn slices(seen: &Evidence, cluster: &Cluster, here: &[&Pod]) -> Option<BTreeMap<String, u64>> {
    let cut: BTreeMap<&String, u64> = seen
        .nvidia
        .get("mig_devices")?
        .as_object()?
        .iter()
        .filter_map(|(profile, count)| Some((profile, count.as_u64()?)))
        .collect();
    let whole = seen.nvidia.get("whole")?.as_u64()?;
    let here = |plugin: &&Plugin| here.iter().any(|pod| pod.plugin.as_ref() == Some(&plugin.name));
    let strategy = cluster.plugins.iter().find(here)?.env.get("MIG_STRATEGY")?.as_str();
    let due: Vec<(String, u64)> = match strategy {
        _ if cut.is_empty() => return None,
        "mixed" => {
            let cut =
                cut.iter().map(|(profile, count)| (format!("nvidia.com/mig-{}", profile.replace('+', ".")), *count));
            cut.chain([("nvidia.com/gpu".to_owned(), whole)]).collect()
        }
        "single" => vec![("nvidia.com/gpu".to_owned(), cut.values().sum())],
        _ => return None,
    };
    Some(due.into_iter().filter(|(_, count)| *count > 0).collect())
}

/// Compares what the node offers with what the host has.
fn offer(subject: &mut Subject, seen: Option<&Evidence>, node: &Node, cluster: &Cluster, here: &[&Pod]) {
    let offered = node.offered();
    let listed: Vec<String> = node.allocatable.iter().map(|(name, count)| format!("{name}: {count}")).collect();
    let told = format!(
        "node `{}` offers {}",
        node.name,
        if listed.is_empty() { "nothing of NVIDIA's".to_owned() } else { listed.join(", ") }
    );
    let has = seen.and_then(|seen| seen.nvidia.get("count")).and_then(Value::as_u64);
    let mig = seen
        .and_then(|seen| seen.nvidia.get("gpus"))
        .and_then(Value::as_array)
        .is_some_and(|gpus| gpus.iter().any(|gpu| gpu["mig"] == "Enabled"));
    if let Some(due) = seen.and_then(|seen| slices(seen, cluster, here)).filter(|_| offered > 0) {
        let short = |(name, due): &(&String, &u64)| {
            let offers = node.allocatable.get(*name).and_then(|count| count.parse().ok());
            offers.unwrap_or(0) < **due
        };
        let lacking: Vec<String> = due.iter().filter(short).map(|(name, count)| format!("{name}: {count}")).collect();
        if lacking.is_empty() {
            subject.fine(Link::Allocatable, told);
        } else {
            let told = format!("{told}; of what the host has there should be {}", lacking.join(", "));
            subject.find(Finding::new(table::ALLOCATABLE_LESS, told));
        }
        return;
    }
    let has = has.or_else(|| node.capacity.get("nvidia.com/gpu").and_then(|count| count.parse().ok()));
    match has {
        _ if offered == 0 => {
            let runs = !here.is_empty() && here.iter().all(|pod| pod.ready);
            match lost(seen).filter(|_| runs && subject.broken().is_none()) {
                Some(finding) => subject.find(finding.also(told)),
                None if subject.broken().is_none() || !here.is_empty() => {
                    subject.find(Finding::new(table::ALLOCATABLE_NONE, told));
                }
                None => {}
            }
        }
        Some(has) if offered < has && !mig => {
            subject.find(Finding::new(table::ALLOCATABLE_LESS, format!("{told}; the host has {has}")));
        }
        Some(has) if offered > has && seen.is_some() => {
            subject.find(Finding::new(table::ALLOCATABLE_MORE, format!("{told}; the host has {has}")));
            subject.fine(Link::Allocatable, told);
        }
        Some(_) | None => subject.fine(Link::Allocatable, told),
    }
}
