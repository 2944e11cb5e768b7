use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::cluster::{Api, FIELD_MANAGER, listed, manager_of, refusal, text, yaml};
use crate::decode::Arguments;
use crate::host::Map;
use crate::shared::State;
use crate::{Change, Diff, Error, ErrorKind, Host, Module, Plan};

/// Label a node of a Kubernetes cluster, found by its name or by what a host knows of itself.
///
/// ```yaml
/// - k8s_label:
///     name: "{{ inventory_hostname }}"
///     address: "{{ ansible_default_ipv4.address }}"
///     hostname: "{{ ansible_hostname }}"
///     labels:
///       nvidia.com/gpu.present: "yes"
///     accept: ["true"]
///     kubeconfig: /etc/kubernetes/admin.conf
///   delegate_to: localhost
/// ```
///
/// Where several of `name`, `address`, `machine_id` and `hostname` are given, those that no node has are passed over,
/// and the others must all lead to the same node.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The node's name. Upper case, and a domain that only one of the two has, don't matter where one node is meant.
    #[serde(alias = "node")]
    name: Option<String>,
    /// Addresses, one of which is an internal or external IP of the node.
    #[serde(default, alias = "addresses")]
    address: Vec<String>,
    /// The content of the host's `/etc/machine-id`.
    machine_id: Option<String>,
    /// The host's name, short or with its domain.
    hostname: Option<String>,
    /// Labels and their values, in quotes; without a value, a label is removed.
    labels: BTreeMap<String, Label>,
    /// `absent` removes these labels, where they were set by this module.
    #[serde(default)]
    state: State,
    /// Give another value to a label that has one, or remove a label that somebody else has set.
    #[serde(default)]
    overwrite: bool,
    /// Values beside the wanted one that count as right: a label that has one of them keeps it.
    #[serde(default)]
    accept: Vec<String>,
    /// How many seconds to wait for the node to be there.
    #[serde(default, alias = "wait_timeout")]
    wait_s: u64,
    /// A kubeconfig on the machine where the task runs; absent stands for `$KUBECONFIG`, `~/.kube/config`, then the
    /// pod's own service account.
    kubeconfig: Option<String>,
    /// A context of the kubeconfig; absent stands for its current one.
    context: Option<String>,
}

/// A label's value; `None` for one that is to go.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(transparent)]
struct Label(Option<String>);

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Label, D::Error> {
        use serde::de::Error as _;
        let quote = |found: &dyn std::fmt::Display| {
            D::Error::custom(format_args!("a label's value is a string and this is {found}: write it in quotes"))
        };
        match Value::deserialize(deserializer)? {
            Value::Null => Ok(Label(None)),
            Value::String(text) if is_label_value(&text) => Ok(Label(Some(text))),
            Value::String(text) => Err(D::Error::custom(format_args!(
                "`{text}` is no label's value: expected at most 63 letters, digits, `-`, `_` and `.`, the first and \
                 the last a letter or a digit"
            ))),
            Value::Number(number) if number.is_u64() => Ok(Label(Some(number.to_string()))),
            Value::Bool(found) => Err(quote(&format_args!("the boolean {found}, as YAML takes yes, no, on and off"))),
            Value::Number(found) => Err(quote(&format_args!("the number {found}"))),
            Value::Array(_) => Err(quote(&"a list")),
            Value::Object(_) => Err(quote(&"a mapping")),
        }
    }
}

/// Source: `IsValidLabelValue` of apimachinery.
fn is_label_value(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let ends = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    text.len() <= 63 && text.bytes().all(inner) && ends(text.as_bytes().first()) && ends(text.as_bytes().last())
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Arguments, message)
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        if self.labels.is_empty() {
            return Err(bad("`labels` is empty"));
        }
        if let Some(key) = self.labels.keys().find(|key| !is_label_key(key)) {
            return Err(bad(format!("`{key}` is no label's name: expected NAME or DOMAIN/NAME, NAME as a value is")));
        }
        let api = Api::new(host, self.kubeconfig.as_deref(), self.context.as_deref());
        if let Some(node) = self.by_its_name(&api)? {
            return self.plan_for(&api, &node);
        }
        let mut nodes = Vec::new();
        let found = api.until(Duration::from_secs(self.wait_s), || {
            nodes = self.nodes(&api)?;
            self.find(&nodes)
        })?;
        match found {
            Some(node) => self.plan_for(&api, &node),
            None => Err(self.nowhere(&nodes)),
        }
    }
}

/// Source: `IsQualifiedName` of apimachinery.
fn is_label_key(key: &str) -> bool {
    let (domain, name) = key.split_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    let domain_ok = domain.is_none_or(|domain| {
        let part = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
                && !part.starts_with('-')
                && !part.ends_with('-')
        };
        domain.len() <= 253 && domain.split('.').all(part)
    });
    domain_ok && !name.is_empty() && is_label_value(name)
}

impl Args {
    /// Returns the node of exactly this name where all else that is known speaks for it: no need to read all nodes,
    /// which are many where this is asked for each of them.
    fn by_its_name(&self, api: &Api) -> Result<Option<Value>, Error> {
        let Some(name) = self.name.as_deref().map(str::to_ascii_lowercase).filter(|name| is_label_value(name)) else {
            return Ok(None);
        };
        let Some(node) = api.get(&format!("/api/v1/nodes/{name}"))? else { return Ok(None) };
        let all_agree = self.voices(std::slice::from_ref(&node))?.iter().all(|(_, nodes)| !nodes.is_empty());
        Ok(all_agree.then_some(node))
    }

    fn nodes(&self, api: &Api) -> Result<Vec<Value>, Error> {
        api.list("/api/v1/nodes", "")?.ok_or_else(|| {
            let request = api.request("GET", "/api/v1/nodes");
            refusal(&request, &crate::KubeAnswer { status: 404, body: Value::Null })
        })
    }

    /// Returns each identifier that is given and the nodes that have it.
    fn voices<'a>(&self, nodes: &'a [Value]) -> Result<Vec<(String, Vec<&'a Value>)>, Error> {
        let mut said: Vec<(String, Vec<&Value>)> = Vec::new();
        if let Some(id) = &self.machine_id {
            let id = id.trim();
            let same = |node: &&Value| text(node, "/status/nodeInfo/machineID").eq_ignore_ascii_case(id);
            said.push((format!("machine_id `{id}`"), nodes.iter().filter(same).collect()));
        }
        if let Some(name) = &self.name {
            said.push((format!("name `{name}`"), named(nodes, name)));
        }
        if !self.address.is_empty() {
            let has = |node: &&Value| {
                addresses(node).any(|(kind, own)| kind.ends_with("IP") && self.address.iter().any(|one| one == own))
            };
            said.push((format!("address {}", listed(&self.address)), nodes.iter().filter(has).collect()));
        }
        if let Some(name) = &self.hostname {
            said.push((format!("hostname `{name}`"), named(nodes, name)));
        }
        if said.is_empty() {
            return Err(bad("which node? give `name`, `address`, `machine_id` or `hostname`"));
        }
        Ok(said)
    }

    /// Returns the node that is meant; `None` when no node is.
    fn find(&self, nodes: &[Value]) -> Result<Option<Value>, Error> {
        let mut said = self.voices(nodes)?;
        said.retain(|(_, nodes)| !nodes.is_empty());
        let Some((_, first)) = said.first() else { return Ok(None) };
        let shared: Vec<&&Value> =
            first.iter().filter(|node| said.iter().all(|(_, others)| others.contains(node))).collect();
        match shared.as_slice() {
            [node] => Ok(Some((**node).clone())),
            _ => {
                let all: Vec<String> = said
                    .iter()
                    .map(|(what, nodes)| {
                        let names: Vec<&str> = nodes.iter().map(|node| text(node, "/metadata/name")).collect();
                        format!("{what} is that of {}", listed(&names))
                    })
                    .collect();
                Err(Error::new(ErrorKind::Refused, format!("which node is meant? {}", all.join("; "))))
            }
        }
    }

    fn nowhere(&self, nodes: &[Value]) -> Error {
        let mut sought: Vec<String> = Vec::new();
        sought.extend(self.machine_id.iter().map(|id| format!("machine_id `{}`", id.trim())));
        sought.extend(self.name.iter().map(|name| format!("name `{name}`")));
        sought.extend(self.address.iter().map(|address| format!("address `{address}`")));
        sought.extend(self.hostname.iter().map(|name| format!("hostname `{name}`")));
        let there: Vec<String> = nodes
            .iter()
            .map(|node| {
                let ip = addresses(node).find(|(kind, _)| *kind == "InternalIP").map_or("no address", |(_, ip)| ip);
                format!("{} ({ip})", text(node, "/metadata/name"))
            })
            .collect();
        let there = if there.is_empty() { "no nodes".to_owned() } else { listed(&there) };
        let waited = if self.wait_s > 0 { format!(" after {} s", self.wait_s) } else { String::new() };
        Error::new(ErrorKind::Host, format!("no node with {}{waited}; the cluster has {there}", sought.join(" or ")))
    }

    fn plan_for(&self, api: &Api, node: &Value) -> Result<Plan, Error> {
        let name = text(node, "/metadata/name");
        let mut plan = Plan::default();
        let (mut before, mut after, mut followed) = (Map::new(), Map::new(), Map::new());
        let mut patch = Map::new();
        for (key, Label(wanted)) in &self.labels {
            let current = node["metadata"]["labels"].get(key).and_then(Value::as_str);
            let wanted = wanted.as_deref().filter(|_| self.state == State::Present);
            before.insert(key.clone(), json!(current));
            after.insert(key.clone(), json!(current));
            let field = ["f:metadata".to_owned(), "f:labels".to_owned(), format!("f:{key}")];
            let manager = manager_of(node, &field);
            let by = manager.map_or_else(|| "set by an unknown manager".into(), |name| format!("set by `{name}`"));
            let ours = manager == Some(FIELD_MANAGER);
            match (current, wanted) {
                (Some(current), Some(wanted)) if current == wanted => {}
                (None, None) => {}
                (Some(current), Some(wanted)) if self.accept.iter().any(|other| other == current) => {
                    followed.insert(key.clone(), current.into());
                    plan.warnings.push(format!(
                        "node `{name}`: `{key}` is `{current}`, {by}, and stays so instead of `{wanted}`"
                    ));
                }
                (Some(current), Some(wanted)) if !self.overwrite && !ours => {
                    return Err(Error::new(
                        ErrorKind::Refused,
                        format!(
                            "node `{name}`: `{key}` is `{current}`, {by}: to make it `{wanted}` all the same, set \
                             `overwrite: true`; to leave it, add `{current}` to `accept`"
                        ),
                    ));
                }
                (Some(current), None) if !self.overwrite && !ours => {
                    if self.state == State::Present {
                        return Err(Error::new(
                            ErrorKind::Refused,
                            format!("node `{name}`: `{key}` is `{current}`, {by}: to remove it, set `overwrite: true`"),
                        ));
                    }
                    plan.warnings.push(format!("node `{name}`: `{key}` is `{current}`, {by}, and stays"));
                }
                (_, wanted) => {
                    patch.insert(key.clone(), json!(wanted));
                    after.insert(key.clone(), json!(wanted));
                }
            }
        }
        if !patch.is_empty() {
            let mut request = api.request("PATCH", format!("/api/v1/nodes/{name}?fieldManager={FIELD_MANAGER}"));
            request.content_type = Some("application/merge-patch+json".into());
            request.body = Some(json!({"metadata": {"labels": patch}}));
            plan.changes.push(Change::Kubernetes(request));
            plan.diff.push(diff(name, &before, &after));
        }
        Ok(plan.with("node", name).with("labels", after).with("before", before).with("followed", followed))
    }
}

fn diff(node: &str, before: &Map, after: &Map) -> Diff {
    let title = format!("labels of node `{node}`");
    let shown = |labels: &Map| {
        let set: Map =
            labels.iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
        if set.is_empty() { String::new() } else { yaml::written(&set.into()) }
    };
    Diff {
        before_header: Some(title.clone()),
        after_header: Some(title),
        before: Some(shown(before)),
        after: Some(shown(after)),
        prepared: None,
    }
}

fn addresses(node: &Value) -> impl Iterator<Item = (&str, &str)> {
    let all = node["status"]["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|address| (text(address, "/type"), text(address, "/address")))
}

/// Returns the nodes of a name: exactly so called, else the same but for a domain that only one of the two has.
fn named<'a>(nodes: &'a [Value], name: &str) -> Vec<&'a Value> {
    let name = name.trim().trim_end_matches('.').to_ascii_lowercase();
    let own = |node: &Value| -> Vec<String> {
        let label = node["metadata"]["labels"]["kubernetes.io/hostname"].as_str().unwrap_or_default();
        let hosts = addresses(node).filter(|(kind, _)| !kind.ends_with("IP")).map(|(_, name)| name);
        let mut all: Vec<String> =
            [text(node, "/metadata/name"), label].into_iter().chain(hosts).map(str::to_ascii_lowercase).collect();
        all.retain(|name| !name.is_empty());
        all
    };
    let exact: Vec<&Value> = nodes.iter().filter(|node| text(node, "/metadata/name") == name).collect();
    if !exact.is_empty() {
        return exact;
    }
    let exact: Vec<&Value> = nodes.iter().filter(|node| own(node).contains(&name)).collect();
    if !exact.is_empty() {
        return exact;
    }
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let like = |other: &String| (other.contains('.') != name.contains('.')) && short(other) == short(&name);
    nodes.iter().filter(|node| own(node).iter().any(like)).collect()
}
