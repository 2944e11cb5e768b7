//! The objects of a spread run: an Indexed Job, and the ConfigMaps and Secrets that go with it when it goes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json, json};

use super::bundle::{Bundle, pieces};
use super::{GATE, HOSTS, LABEL, PLAN, Plan};

/// The container of a pod.
pub const CONTAINER: &str = "shard";
/// Where a pod finds what it is given.
const PROJECT: &str = "/spread/project";
const PRIVATE: &str = "/spread/private";
const WORK: &str = "/spread/work";
const TREE: &str = "/spread/tree";
const GATES: &str = "/spread/gate";
/// Statuses with which the program ends before it has touched a host: every shard would, and so would every try.
const MISTAKES: [u8; 5] = [1, 2, 3, 4, 5];
/// Nobody in particular, as whom pods run. Source: distroless images have their `nonroot` under this number.
const NOBODY: u32 = 65_532;
/// How long a pod that is to end may take for the tasks that its hosts are at, in seconds.
const GRACE_S: u32 = 120;

/// Where the pods find the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tree {
    /// In ConfigMaps and Secrets, packed.
    Packed,
    /// On a volume, by the name of its claim and the folder on it.
    Volume { claim: String, folder: String },
    /// In the image, in this folder.
    Image(String),
}

/// How the Job is to be made.
#[derive(Debug, Clone)]
pub struct Settings {
    pub name: String,
    pub namespace: String,
    pub image: String,
    /// The program in the image.
    pub program: String,
    pub parallelism: usize,
    pub tree: Tree,
    pub service_account: Option<String>,
    pub pull_secret: Option<String>,
    pub node_selector: Map<String, Json>,
    pub tolerations: Vec<Json>,
    pub requests: Map<String, Json>,
    pub limits: Map<String, Json>,
    /// How often a lost pod of a shard is started again.
    pub retries: u32,
    /// How long the Job stays when it has ended and nobody has taken it away, in seconds.
    pub ttl_s: u32,
    /// How long the whole run may take, in seconds.
    pub deadline_s: Option<u64>,
}

impl Settings {
    fn labels(&self) -> Json {
        json!({"app.kubernetes.io/managed-by": "kubeon-run", LABEL: self.name})
    }

    fn configs(&self, bundle: &Bundle) -> Vec<String> {
        (0..pieces(&bundle.open).len()).map(|number| format!("{}-project-{number}", self.name)).collect()
    }

    fn secrets(&self, bundle: &Bundle) -> Vec<String> {
        (0..pieces(&bundle.private).len()).map(|number| format!("{}-private-{number}", self.name)).collect()
    }

    /// Returns the Job, which waits until it is let go: what its pods need is not there yet.
    pub fn job(&self, plan: &Plan, bundle: &Bundle) -> Json {
        let mut spec = json!({
            "completionMode": "Indexed",
            "completions": plan.shards,
            "parallelism": self.parallelism,
            "backoffLimitPerIndex": self.retries,
            // Two pods never work on the same hosts: a new one starts when the old one has surely ended.
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": self.ttl_s,
            "suspend": true,
            "podFailurePolicy": {"rules": [
                {"action": "FailJob", "onExitCodes": {"containerName": CONTAINER, "operator": "In", "values": MISTAKES}},
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]},
            "template": self.template(plan, bundle),
        });
        if let Some(seconds) = self.deadline_s {
            spec["activeDeadlineSeconds"] = seconds.into();
        }
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": self.name, "namespace": self.namespace, "labels": self.labels(),
                "annotations": {PLAN: serde_json::to_string(plan).unwrap_or_default()},
            },
            "spec": spec,
        })
    }

    fn template(&self, plan: &Plan, bundle: &Bundle) -> Json {
        let mut metadata = json!({"labels": self.labels()});
        if plan.gated {
            metadata["annotations"] = json!({GATE: "0.0"});
        }
        let mut spec = json!({
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": GRACE_S,
            // A pod asks the API for nothing, unless its tasks are to.
            "automountServiceAccountToken": self.service_account.is_some(),
            "enableServiceLinks": false,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": NOBODY, "runAsGroup": NOBODY, "fsGroup": NOBODY,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [self.container(plan)],
            "volumes": self.volumes(plan, bundle),
        });
        if let Some(name) = &self.service_account {
            spec["serviceAccountName"] = name.as_str().into();
        }
        if let Some(name) = &self.pull_secret {
            spec["imagePullSecrets"] = json!([{"name": name}]);
        }
        if !self.node_selector.is_empty() {
            spec["nodeSelector"] = Json::Object(self.node_selector.clone());
        }
        if !self.tolerations.is_empty() {
            spec["tolerations"] = Json::Array(self.tolerations.clone());
        }
        json!({"metadata": metadata, "spec": spec})
    }

    fn container(&self, plan: &Plan) -> Json {
        let shards = plan.shards.to_string();
        let mut command = vec![&*self.program, "shard", "--private", PRIVATE, "--work", WORK, "--shards", &shards];
        let mut mounts = vec![
            json!({"name": "private", "mountPath": PRIVATE, "readOnly": true}),
            json!({"name": "work", "mountPath": WORK}),
        ];
        let gate = format!("{GATES}/open");
        if plan.gated {
            command.extend(["--gate", &gate]);
            mounts.push(json!({"name": "gate", "mountPath": GATES, "readOnly": true}));
        }
        let tree;
        match &self.tree {
            Tree::Packed => {
                command.extend(["--open", PROJECT]);
                mounts.push(json!({"name": "project", "mountPath": PROJECT, "readOnly": true}));
            }
            Tree::Volume { folder, .. } => {
                tree = if folder.is_empty() { TREE.to_owned() } else { format!("{TREE}/{folder}") };
                command.extend(["--tree", &tree]);
                mounts.push(json!({"name": "tree", "mountPath": TREE, "readOnly": true}));
            }
            Tree::Image(folder) => command.extend(["--tree", folder]),
        }
        json!({
            "name": CONTAINER,
            "image": self.image,
            "command": command,
            "resources": {"requests": self.requests, "limits": self.limits},
            "volumeMounts": mounts,
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
        })
    }

    fn volumes(&self, plan: &Plan, bundle: &Bundle) -> Json {
        let sources = |kind: &str, names: Vec<String>| -> Vec<Json> {
            let item = |number: usize| json!([{"key": key(number), "path": key(number)}]);
            names
                .iter()
                .enumerate()
                .map(|(number, name)| json!({kind: {"name": name, "items": item(number)}}))
                .collect()
        };
        let mut volumes = vec![
            json!({"name": "private", "projected": {
                "defaultMode": 0o440, "sources": sources("secret", self.secrets(bundle)),
            }}),
            // In memory: what is unpacked into it holds keys and passwords.
            json!({"name": "work", "emptyDir": {"medium": "Memory"}}),
        ];
        if plan.gated {
            let field = format!("metadata.annotations['{GATE}']");
            volumes.push(json!({"name": "gate", "downwardAPI": {
                "items": [{"path": "open", "fieldRef": {"fieldPath": field}}],
            }}));
        }
        match &self.tree {
            Tree::Packed => volumes.push(json!({"name": "project", "projected": {
                "sources": sources("configMap", self.configs(bundle)),
            }})),
            Tree::Volume { claim, .. } => volumes.push(json!({"name": "tree", "persistentVolumeClaim": {
                "claimName": claim, "readOnly": true,
            }})),
            Tree::Image(_) => {}
        }
        Json::Array(volumes)
    }

    /// Returns what the pods are given, each owned by the Job of this identity; `hosts` is the list of names, packed.
    pub fn belongings(&self, uid: &str, bundle: &Bundle, hosts: &[u8]) -> Vec<Json> {
        let metadata = |name: &str| {
            json!({
                "name": name, "namespace": self.namespace, "labels": self.labels(),
                "ownerReferences": [{
                    "apiVersion": "batch/v1", "kind": "Job", "name": self.name, "uid": uid, "blockOwnerDeletion": false,
                }],
            })
        };
        let mut objects = Vec::new();
        let mut add = |kind: &str, field: &str, name: &str, key: &str, bytes: &[u8]| {
            objects.push(json!({
                "apiVersion": "v1", "kind": kind, "metadata": metadata(name), "immutable": true,
                field: {key: STANDARD.encode(bytes)},
            }));
        };
        for (name, (key, piece)) in self.configs(bundle).iter().zip(pieces(&bundle.open)) {
            add("ConfigMap", "binaryData", name, &key, piece);
        }
        for (name, (key, piece)) in self.secrets(bundle).iter().zip(pieces(&bundle.private)) {
            add("Secret", "data", name, &key, piece);
        }
        for (number, piece) in hosts.chunks(super::bundle::PIECE_BYTES).enumerate() {
            add("ConfigMap", "binaryData", &format!("{}-hosts-{number}", self.name), HOSTS, piece);
        }
        objects
    }
}

/// The name of a piece.
fn key(number: usize) -> String {
    format!("part-{number:04}")
}

/// Reads `KEY=VALUE`, `KEY=VALUE:EFFECT`, `KEY:EFFECT` or `KEY`, as kubectl writes taints.
///
/// # Errors
/// A sentence for a person.
pub fn toleration(text: &str) -> Result<Json, String> {
    let (pair, effect) = match text.rsplit_once(':') {
        Some((pair, effect)) if ["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) => {
            (pair, Some(effect))
        }
        Some((_, effect)) => {
            return Err(format!("`{effect}` is no effect of a taint: NoSchedule, PreferNoSchedule, NoExecute"));
        }
        None => (text, None),
    };
    let mut toleration = match pair.split_once('=') {
        Some((key, value)) => json!({"key": key, "operator": "Equal", "value": value}),
        None => json!({"key": pair, "operator": "Exists"}),
    };
    if let Some(effect) = effect {
        toleration["effect"] = effect.into();
    }
    Ok(toleration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_are_tolerated_as_kubectl_writes_them() {
        assert_eq!(
            toleration("a/b=c:NoSchedule").expect("one"),
            json!({"key": "a/b", "operator": "Equal", "value": "c", "effect": "NoSchedule"})
        );
        assert_eq!(toleration("a").expect("one"), json!({"key": "a", "operator": "Exists"}));
        assert!(toleration("a:Never").is_err());
    }
}
