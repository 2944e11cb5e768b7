//! What is seen of a cluster, as it travels to whoever judges it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything in a cluster that decides whether pods can have GPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cluster {
    pub nodes: Vec<Node>,
    pub plugins: Vec<Plugin>,
    pub pods: Vec<Pod>,
    /// Handlers by name.
    pub runtime_classes: BTreeMap<String, String>,
    /// What could not be made, and why.
    pub failures: Vec<(String, String)>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    pub name: String,
    pub machine_id: String,
    pub addresses: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    /// The condition `Ready`: `True`, `False` or `Unknown`.
    pub ready: String,
    pub message: String,
    pub unschedulable: bool,
    pub kubelet: String,
    pub runtime: String,
    /// NVIDIA's resources alone.
    pub capacity: BTreeMap<String, String>,
    pub allocatable: BTreeMap<String, String>,
}

impl Node {
    /// Returns how many GPUs, and slices of GPUs, pods can have.
    pub fn offered(&self) -> u64 {
        let gpus = |name: &str| name.starts_with("nvidia.com/gpu") || name.starts_with("nvidia.com/mig-");
        let offered = self.allocatable.iter().filter(|(name, _)| gpus(name));
        offered.filter_map(|(_, count)| count.parse::<u64>().ok()).sum()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Taint {
    pub key: String,
    pub value: String,
    pub effect: String,
}

/// A DaemonSet of NVIDIA's device plugin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plugin {
    /// `NAMESPACE/NAME`.
    pub name: String,
    pub uid: String,
    pub image: String,
    /// The name of its container.
    pub container: String,
    pub node_selector: BTreeMap<String, String>,
    /// Terms of the required node affinity, of which one must match.
    pub affinity: Vec<Value>,
    pub tolerations: Vec<Toleration>,
    pub runtime_class: Option<String>,
    /// `MIG_STRATEGY`, `DEVICE_LIST_STRATEGY`, `FAIL_ON_INIT_ERROR`, where they are set.
    pub env: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Toleration {
    /// Every key, where absent.
    pub key: Option<String>,
    /// `Equal` or `Exists`.
    pub operator: String,
    pub value: String,
    /// Every effect, where absent.
    pub effect: Option<String>,
}

impl Toleration {
    /// Whether a pod that has this may run in spite of a taint. Source: `ToleratesTaint` of the Kubernetes API.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let effect = self.effect.as_ref().is_none_or(|effect| effect.is_empty() || *effect == taint.effect);
        let key = self.key.as_ref().is_none_or(|key| key.is_empty() || *key == taint.key);
        effect && key && (self.operator == "Exists" || self.value == taint.value)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Both names, as they are in paths of the API.
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub node: String,
    pub phase: String,
    pub ready: bool,
    pub reason: String,
    pub message: String,
    /// Why no node takes it.
    pub unschedulable: Option<String>,
    pub runtime_class: Option<String>,
    /// The device plugin whose pod it is.
    pub plugin: Option<String>,
    /// What it asks for of NVIDIA's resources, by name: the limits of all containers.
    pub asks: BTreeMap<String, u64>,
    pub containers: Vec<Container>,
    /// `REASON: MESSAGE` of its warnings.
    pub events: Vec<String>,
    /// The end of its log, of a device plugin that does not work.
    pub log: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Container {
    pub name: String,
    pub image: String,
    pub restarts: u64,
    /// `REASON: MESSAGE` of what keeps it from running.
    pub waiting: Option<String>,
    /// `REASON: MESSAGE` of how it ended last.
    pub ended: Option<String>,
}
