//! Pods that ask for GPUs: what keeps them from having some.

use kubeon_modules::cluster_evidence::{Cluster, Pod};
use kubeon_modules::evidence::Evidence;

use super::super::{Finding, Link, Severity, Subject, table, text};

/// How many pods are shown for one diagnosis.
const MOST_SHOWN: usize = 5;

/// Returns what is wrong with pods, each with the node that it is on, where it is on one.
pub fn examine(cluster: &Cluster, hosts: &[(&Subject, Option<&Evidence>)]) -> Vec<(Option<String>, Finding)> {
    let mut found: Vec<(Option<String>, Finding)> = Vec::new();
    for (of, told) in &cluster.failures {
        for finding in text::explain(told).into_iter().filter(|finding| finding.diagnosis.link == Link::Pod) {
            found.push((None, finding.also(of)));
        }
    }
    for pod in cluster.pods.iter().filter(|pod| pod.plugin.is_none() && !pod.ready) {
        match &pod.unschedulable {
            Some(told) => found.extend(unplaced(pod, told, cluster).map(|finding| (None, finding))),
            None => found.extend(failing(pod).into_iter().map(|finding| (Some(pod.node.clone()), finding))),
        }
    }
    for pod in cluster.pods.iter().filter(|pod| pod.plugin.is_none() && pod.ready) {
        let host =
            hosts.iter().find(|(subject, _)| subject.node.as_ref() == Some(&pod.node)).and_then(|(_, seen)| *seen);
        found.extend(without_class(pod, host, cluster).map(|finding| (Some(pod.node.clone()), finding)));
    }
    let mut counts: Vec<(&str, usize)> = Vec::new();
    found.retain(|(_, finding)| {
        let id = finding.diagnosis.id;
        match counts.iter_mut().find(|(known, _)| *known == id) {
            Some((_, count)) => {
                *count += 1;
                *count <= MOST_SHOWN
            }
            None => {
                counts.push((id, 1));
                true
            }
        }
    });
    found
}

fn name(pod: &Pod) -> String {
    let asks: Vec<String> = pod.asks.iter().map(|(name, count)| format!("{count} {name}")).collect();
    format!("pod {}/{} asks for {}", pod.namespace, pod.name, asks.join(", "))
}

/// A pod that no node takes.
fn unplaced(pod: &Pod, told: &str, cluster: &Cluster) -> Option<Finding> {
    let name = name(pod);
    let lacking = pod.asks.keys().find(|resource| told.contains(&format!("Insufficient {resource}")));
    if let Some(resource) = lacking {
        let offers = |of: &dyn Fn(&str) -> bool| {
            cluster
                .nodes
                .iter()
                .filter(|node| node.allocatable.iter().any(|(name, count)| of(name) && count != "0"))
                .count()
        };
        // Where no node offers any, it is the nodes that are to be mended.
        return match (offers(&|name| name == resource), offers(&|_| true)) {
            (0, 0) => None,
            (0, _) => Some(Finding::new(table::POD_UNKNOWN_RESOURCE, name).also(told)),
            (_, _) => Some(Finding::new(table::POD_INSUFFICIENT, name).also(told)),
        };
    }
    if told.contains("taint") {
        return Some(Finding::new(table::POD_TAINT, name).also(told));
    }
    let known = text::explain(told).into_iter().next();
    known.filter(|finding| finding.diagnosis.link == Link::Pod).map(|finding| finding.also(name))
}

/// A pod on a node that does not run.
fn failing(pod: &Pod) -> Vec<Finding> {
    let states =
        pod.containers.iter().flat_map(|container| [container.waiting.clone(), container.ended.clone()]).flatten();
    let mut told: Vec<String> = states.chain(pod.events.iter().cloned()).collect();
    told.push(format!("{}: {}", pod.reason, pod.message));
    let said = text::explain(&told.join("\n"));
    let errors = said.into_iter().filter(|finding| finding.diagnosis.severity == Severity::Error);
    errors.map(|finding| finding.also(name(pod))).collect()
}

/// A pod that has a GPU and can't see it.
fn without_class(pod: &Pod, seen: Option<&Evidence>, cluster: &Cluster) -> Option<Finding> {
    let containerd = &seen?.containerd;
    let by_default = containerd.runtimes.get(&containerd.default_runtime).map(|runtime| runtime.binary.as_str());
    let known = containerd.runtimes.values().any(|runtime| runtime.binary.contains("nvidia-container-runtime"));
    let by_cdi = cluster
        .plugins
        .iter()
        .any(|plugin| plugin.env.get("DEVICE_LIST_STRATEGY").is_some_and(|strategy| strategy.contains("cdi")));
    let blind = known && by_default.is_some_and(|binary| !binary.contains("nvidia-container-runtime"));
    let finding = || Finding::new(table::POD_WITHOUT_CLASS, format!("{}, and has no runtimeClassName", name(pod)));
    (blind && !by_cdi && pod.runtime_class.is_none()).then(finding)
}
