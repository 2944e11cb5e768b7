//! The plugin `k8s_nodes`: the nodes of a Kubernetes cluster as hosts, their labels as groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubeon_modules::{Error, ErrorKind, Machine, Service};
use serde_json::Value as Json;

use super::constructed::{RULES, Rules, join};
use super::{Options, Plugin};
use crate::inventory::{Glob, Inventory, Reader, group_name};
use crate::source::{Diagnostic, Place};
use crate::template::{Folders, Templar};
use crate::value::{Map, Value};
use crate::yaml::{Kind, Node};

const OPTIONS: &[&str] = &["kubeconfig", "context", "label_selectors", "address_types", "group", "label_groups"];
/// The kinds of addresses that a node may have. Source: `NodeAddressType` of the API.
const ADDRESS_TYPES: &[&str] = &["InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS"];
/// The addresses that are taken where nothing is said of them.
const USUAL_ADDRESSES: &[&str] = &["InternalIP", "ExternalIP"];
/// The labels that make groups where nothing is said of them: those whose values many nodes share.
const USUAL_LABELS: &[&str] = &[
    "node-role.kubernetes.io/*",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/*",
    "nvidia.com/gpu.present",
    "nvidia.com/gpu.product",
];
const USUAL_GROUP: &str = "k8s_nodes";

/// Nothing is sent along with a question.
struct Alone;

impl Service for Alone {
    fn fetch(&self, sha256: &str, _: &mut dyn std::io::Write) -> Result<(), Error> {
        Err(Error::new(ErrorKind::Failed, format!("no content {sha256} is here")))
    }
    fn progress(&self, _: &str) {}
}

/// Which nodes, and what is made of them.
struct Wanted {
    place: Place,
    kubeconfig: Option<String>,
    context: Option<String>,
    selectors: Vec<String>,
    address_types: Vec<String>,
    group: String,
    labels: Vec<Glob>,
}

/// Reads a file of `k8s_nodes`: asks the cluster for its nodes.
pub(in crate::inventory) fn read(reader: &mut Reader, inventory: &mut Inventory, node: &Node) {
    let known: Vec<&str> = OPTIONS.iter().chain(RULES).copied().collect();
    let mut options = Options::new(Plugin::Nodes, node, &known);
    let rules = Rules::of(&mut options);
    let vars: Arc<Map> = reader.reading.extra_vars.clone();
    let templar = Templar::new(Arc::new(crate::vars::Fixed(vars)), Arc::new(Folders::default()));
    let wanted = Wanted::of(&mut options, node, &templar);
    if reader.mistaken(options.problems) {
        return;
    }
    let found = match wanted.ask() {
        Ok(found) => found,
        Err(message) => {
            let message = format!("ask the cluster for its nodes: {message}");
            return reader.problems.push(Diagnostic::error(wanted.place, message));
        }
    };
    inventory.group(&wanted.group);
    for node in &found {
        let Some(name) = node.pointer("/metadata/name").and_then(Json::as_str) else { continue };
        wanted.add(inventory, node, name);
        if !wanted.address_types.is_empty() && wanted.address_of(node).is_none() {
            let message = format!("node `{name}` has no address of type {}", wanted.address_types.join(" or "));
            let help = "it is reached by its name; `address_types` says which addresses are taken";
            reader.problems.push(Diagnostic::warning(wanted.place, message).help(help));
        }
        let vars = inventory.vars_of(name);
        if let Err(problem) = rules.apply(reader, inventory, name, vars) {
            return reader.problems.push(problem);
        }
    }
}

impl Wanted {
    fn of(options: &mut Options, node: &Node, templar: &Templar) -> Wanted {
        let place = node.get("plugin").map_or(node.place, |plugin| plugin.place);
        let mut text = |key: &str| {
            let given = options.get(key)?;
            match templar.text(&given.value()) {
                Ok(text) => Some(text).filter(|text| !text.is_empty()),
                Err(error) => {
                    options.problems.push(error.diagnostic());
                    None
                }
            }
        };
        let kubeconfig = text("kubeconfig").map(|path| found_from(place, &path));
        let context = text("context");
        let group = text("group").map_or_else(|| USUAL_GROUP.to_owned(), |name| group_name(&name));
        let selectors = texts(options, "label_selectors", &[]);
        let address_types = texts(options, "address_types", USUAL_ADDRESSES);
        if let Some(wrong) = address_types.iter().find(|kind| !ADDRESS_TYPES.contains(&kind.as_str())) {
            let at = options.get("address_types").map_or(place, |node| node.place);
            let problem = Diagnostic::error(at, format!("`{wrong}` is no type of a node's addresses"));
            let meant = crate::source::nearest(wrong, ADDRESS_TYPES.iter().copied());
            options.problems.push(match meant {
                Some(meant) => problem.help(format!("did you mean `{meant}`?")),
                None => problem.help(format!("there are `{}`", ADDRESS_TYPES.join("`, `"))),
            });
        }
        let labels = texts(options, "label_groups", USUAL_LABELS).iter().map(|label| Glob::new(label)).collect();
        Wanted { place, kubeconfig, context, selectors, address_types, group, labels }
    }

    /// Returns the nodes as the API has them.
    fn ask(&self) -> Result<Vec<Json>, String> {
        let mut args = kubeon_modules::Map::new();
        args.insert("kind".to_owned(), "Node".into());
        args.extend(self.kubeconfig.as_ref().map(|path| ("kubeconfig".to_owned(), path.as_str().into())));
        args.extend(self.context.as_ref().map(|name| ("context".to_owned(), name.as_str().into())));
        args.insert("label_selectors".to_owned(), self.selectors.clone().into());
        let spec = kubeon_modules::spec_of("k8s_info").expect("the runner has the modules for Kubernetes");
        let module = (spec.decode)(&args).map_err(|error| error.to_string())?;
        let mut plan = module.plan(&Machine::new(&Alone, BTreeMap::new(), None)).map_err(|error| error.to_string())?;
        match plan.result.remove("resources") {
            Some(Json::Array(nodes)) => Ok(nodes),
            _ => Ok(Vec::new()),
        }
    }

    fn add(&self, inventory: &mut Inventory, node: &Json, name: &str) {
        inventory.put(name, &self.group, self.place);
        for (key, value) in vars_of(node) {
            inventory.set_host_var(name, key.into(), value, self.place);
        }
        if let Some(address) = self.address_of(node) {
            inventory.set_host_var(name, "ansible_host".into(), address.into(), self.place);
        }
        for (key, value) in node.pointer("/metadata/labels").and_then(Json::as_object).into_iter().flatten() {
            if !self.labels.iter().any(|wanted| wanted.matches(key)) {
                continue;
            }
            // A group for the label, and below it one for each of its values.
            let all = group_name(key);
            match value.as_str().unwrap_or_default() {
                "" => join(inventory, name, &all, self.place),
                value => {
                    let group = group_name(&format!("{key}_{value}"));
                    join(inventory, name, &group, self.place);
                    // They can't go in a circle: the longer name is always below.
                    inventory.nest(&all, &group).ok();
                }
            }
        }
    }

    fn address_of(&self, node: &Json) -> Option<String> {
        let all = node.pointer("/status/addresses")?.as_array()?;
        let of_type = |kind: &String| {
            let found = all.iter().find(|one| one["type"].as_str() == Some(kind))?;
            found["address"].as_str().map(str::to_owned)
        };
        self.address_types.iter().find_map(of_type)
    }
}

/// Returns the path of a kubeconfig: one that is relative lies beside the file that names it.
fn found_from(place: Place, path: &str) -> String {
    if path.starts_with(['/', '~']) {
        return path.to_owned();
    }
    let folder = place.path().and_then(|file| file.parent().map(std::path::Path::to_owned)).unwrap_or_default();
    folder.join(path).to_string_lossy().into_owned()
}

/// Returns the texts of an option that is one text or a list of them.
fn texts(options: &mut Options, key: &str, usual: &[&str]) -> Vec<String> {
    let Some(node) = options.get(key) else { return usual.iter().map(|text| (*text).to_owned()).collect() };
    let one = |node: &Node| node.as_str().map(str::to_owned);
    let found = match &node.kind {
        Kind::List(items) => items.iter().map(one).collect(),
        _ => one(node).map(|text| vec![text]),
    };
    found.unwrap_or_else(|| {
        options.wrong(node, key, "a list of texts");
        Vec::new()
    })
}

/// Returns what is known of a node, as variables of the host that it is.
fn vars_of(node: &Json) -> Vec<(&'static str, Value)> {
    let at = |pointer: &str| node.pointer(pointer).cloned();
    let mapping = |pointer: &str| Value::from_json(at(pointer).unwrap_or_else(|| serde_json::json!({})));
    let list = |pointer: &str| Value::from_json(at(pointer).unwrap_or_else(|| serde_json::json!([])));
    let ready = node
        .pointer("/status/conditions")
        .and_then(Json::as_array)
        .is_some_and(|conditions| conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"));
    vec![
        ("k8s_labels", mapping("/metadata/labels")),
        ("k8s_annotations", mapping("/metadata/annotations")),
        ("k8s_taints", list("/spec/taints")),
        ("k8s_unschedulable", Value::Bool(at("/spec/unschedulable") == Some(Json::Bool(true)))),
        ("k8s_provider_id", Value::from_json(at("/spec/providerID").unwrap_or_default())),
        ("k8s_capacity", mapping("/status/capacity")),
        ("k8s_allocatable", mapping("/status/allocatable")),
        ("k8s_addresses", list("/status/addresses")),
        ("k8s_node_info", mapping("/status/nodeInfo")),
        ("k8s_ready", Value::Bool(ready)),
    ]
}
