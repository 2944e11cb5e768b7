//! From what was seen of the cluster to diagnoses: of each node, and of pods.

mod placed;
mod pods;

use kubeon_modules::cluster_evidence::{Cluster, Node};
use kubeon_modules::evidence::Evidence;

use super::{Finding, Link, Subject, table};

/// Adds what the cluster says to the hosts, each with what was seen on it, and returns further subjects: nodes that are
/// no hosts of the inventory, and the cluster as a whole.
pub fn examine(hosts: &mut [(Subject, Option<Evidence>)], cluster: &Cluster) -> Vec<Subject> {
    let mut taken: Vec<&str> = Vec::new();
    for (subject, seen) in hosts.iter_mut() {
        let node = node_of(&subject.name, seen.as_ref(), cluster);
        if let Some(node) = node {
            taken.push(&node.name);
            subject.node = Some(node.name.clone());
        }
        match (node, seen) {
            (Some(node), seen) => placed::examine(subject, seen.as_ref(), node, cluster),
            (None, Some(seen)) => nowhere(subject, seen, cluster),
            (None, None) => {}
        }
        subject.settle();
    }
    let others = cluster.nodes.iter().filter(|node| !taken.contains(&node.name.as_str()));
    let mut more: Vec<Subject> = others.filter_map(|node| alone(node, cluster)).collect();
    let seen: Vec<(&Subject, Option<&Evidence>)> =
        hosts.iter().map(|(subject, seen)| (subject, seen.as_ref())).collect();
    let found = pods::examine(cluster, &seen);
    let mut whole = Subject { name: "cluster".to_owned(), is_cluster: true, ..Subject::default() };
    for (node, finding) in found {
        let host = hosts.iter_mut().map(|(subject, _)| subject).chain(more.iter_mut());
        let host = host.into_iter().find(|subject| node.is_some() && subject.node == node);
        host.unwrap_or(&mut whole).find(finding);
    }
    whole.settle();
    hosts.iter_mut().for_each(|(subject, _)| subject.settle());
    more.iter_mut().for_each(Subject::settle);
    if !whole.findings.is_empty() {
        more.push(whole);
    }
    more
}

/// Returns the node that a host is: the one for which most of what is known speaks.
fn node_of<'a>(name: &str, seen: Option<&Evidence>, cluster: &'a Cluster) -> Option<&'a Node> {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let called = |node: &Node, name: &str| {
        let own = node.labels.get("kubernetes.io/hostname").map(String::as_str).unwrap_or_default();
        let name = name.to_ascii_lowercase();
        match () {
            () if node.name == name || own == name => 2,
            () if !name.is_empty() && (short(&node.name) == short(&name) || short(own) == short(&name)) => 1,
            () => 0,
        }
    };
    let weigh = |node: &Node| -> u32 {
        let mut weight = called(node, name);
        if let Some(seen) = seen {
            weight += called(node, &seen.names.hostname);
            weight += if seen.names.addresses.iter().any(|address| node.addresses.contains(address)) { 8 } else { 0 };
            weight += if !node.machine_id.is_empty() && node.machine_id == seen.names.machine_id { 4 } else { 0 };
        }
        weight
    };
    let best = cluster.nodes.iter().max_by_key(|node| weigh(node)).filter(|node| weigh(node) > 0)?;
    let alone = cluster.nodes.iter().filter(|node| weigh(node) == weigh(best)).count() == 1;
    alone.then_some(best)
}

fn nowhere(subject: &mut Subject, seen: &Evidence, cluster: &Cluster) {
    if !subject.has_gpu {
        return;
    }
    if seen.kubelet.unit.is_empty() {
        subject.unread.push(
            "no kubelet is on this host, and no node of the cluster is it: the cluster has no part in this".to_owned(),
        );
        return;
    }
    let names: Vec<&str> = cluster.nodes.iter().take(5).map(|node| node.name.as_str()).collect();
    let seen = format!(
        "no node has its name `{}`, its address or its machine id; the cluster has {} nodes: {}",
        seen.names.hostname,
        cluster.nodes.len(),
        names.join(", ")
    );
    subject.find(Finding::new(table::NODE_MISSING, seen));
}

/// Judges a node that is no host of the inventory; `None` where it has nothing to do with GPUs.
fn alone(node: &Node, cluster: &Cluster) -> Option<Subject> {
    let mut subject = Subject { name: node.name.clone(), node: Some(node.name.clone()), ..Subject::default() };
    let labelled = ["yes", "true"].iter().any(|yes| node.labels.get(placed::LABEL).is_some_and(|value| value == yes));
    subject.has_gpu = labelled || node.capacity.values().any(|count| count != "0");
    if !subject.has_gpu {
        return None;
    }
    subject.fine(Link::Connection, "not asked: no host of the inventory");
    placed::examine(&mut subject, None, node, cluster);
    subject.settle();
    Some(subject)
}
