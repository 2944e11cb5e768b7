use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cluster::{Api, FIELD_MANAGER, encoded, listed, text};
use crate::decode::Arguments;
use crate::host::Map;
use crate::{Change, Diff, Error, ErrorKind, Host, KubeRequest, Module, Plan};

/// Take a node of a Kubernetes cluster out of service: no new pods, and the ones it has are evicted.
///
/// ```yaml
/// - k8s_drain:
///     name: gpu-n3
///     delete_options:
///       ignore_daemonsets: true
///       delete_emptydir_data: true
///       wait_timeout: 600
///   delegate_to: localhost
/// ```
///
/// Pods are evicted, so a PodDisruptionBudget that allows no further disruption is waited for. Pods that could not be
/// evicted without losing something are told of before anything is changed.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The node's name.
    #[serde(alias = "node")]
    name: String,
    /// `cordon`: no new pods come. `drain`: also, those that are there leave. `uncordon`: new pods may come again.
    #[serde(default)]
    state: State,
    /// Only pods with these labels are evicted: `key=value`, `key!=value`, `key in (a,b)`.
    #[serde(default)]
    pod_selectors: Vec<String>,
    /// How pods leave.
    #[serde(default)]
    delete_options: Options,
    /// A kubeconfig on the machine where the task runs; absent stands for `$KUBECONFIG`, `~/.kube/config`, then the
    /// pod's own service account.
    kubeconfig: Option<String>,
    /// A context of the kubeconfig; absent stands for its current one.
    context: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum State {
    Cordon,
    #[default]
    Drain,
    Uncordon,
}

/// How pods leave a node.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Options {
    /// Evict pods that nothing would start again elsewhere, too.
    #[serde(default)]
    force: bool,
    /// Leave the pods of DaemonSets, which would come back at once, where they are; otherwise they stop the drain.
    #[serde(default)]
    ignore_daemonsets: bool,
    /// Evict pods with an emptyDir volume, whose data is lost by it.
    #[serde(default)]
    delete_emptydir_data: bool,
    /// Delete pods in place of evicting them: PodDisruptionBudgets are not asked.
    #[serde(default)]
    disable_eviction: bool,
    /// How many seconds a pod has to end; its own time when absent.
    terminate_grace_period: Option<u64>,
    /// How many seconds an eviction may wait for a PodDisruptionBudget, and evicted pods may take to be gone.
    wait_timeout: Option<u64>,
    /// Accepted for Ansible's sake: how long to wait between two looks is decided here.
    #[expect(dead_code, reason = "playbooks written for Ansible give it")]
    wait_sleep: Option<u64>,
}

const WAIT_TIMEOUT_S: u64 = 300;

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let api = Api::new(host, self.kubeconfig.as_deref(), self.context.as_deref());
        let Some(node) = api.get(&format!("/api/v1/nodes/{}", encoded(&self.name)))? else {
            return Err(Error::new(ErrorKind::Host, format!("the cluster has no node `{}`", self.name)));
        };
        let cordoned = node["spec"]["unschedulable"] == true;
        let mut plan = Plan::default();
        let mut evicted = Vec::new();
        if self.state == State::Drain {
            let pods = Pods::of(self.pods(&api)?, &self.delete_options);
            pods.refuse(&self.name)?;
            evicted = pods.leaving.iter().map(full_name).collect();
            plan.changes.extend(pods.leaving.iter().map(|pod| self.eviction(&api, pod)));
            if plan.changes.is_empty() && cordoned {
                self.wait_for(&api, &pods.ending)?;
            }
        }
        let wanted = self.state != State::Uncordon;
        if cordoned != wanted {
            plan.changes.insert(0, self.cordon(&api, wanted));
            plan.diff.push(diff(&self.name, wanted));
        }
        let done = match self.state {
            State::Cordon => "cordoned",
            State::Drain => "drained",
            State::Uncordon => "uncordoned",
        };
        Ok(plan
            .with("result", format!("node {} is {done}", self.name))
            .with("node", self.name.as_str())
            .with("was_cordoned", cordoned)
            .with("evicted", evicted))
    }

    /// The first plan knows what was there before.
    fn report(&self, _: &dyn Host, done: &[crate::Done], result: &mut Map) -> Result<(), Error> {
        let changes: Vec<&KubeRequest> = done
            .iter()
            .filter_map(|done| match &done.change {
                Change::Kubernetes(request) => Some(request),
                _ => None,
            })
            .collect();
        let turned = changes.iter().any(|request| request.method == "PATCH");
        let names: Vec<String> = changes.iter().filter_map(|request| pod_of(&request.path)).collect();
        let now = self.state != State::Uncordon;
        result.insert("was_cordoned".into(), json!(now != turned));
        result.insert("evicted".into(), json!(names));
        Ok(())
    }
}

impl Args {
    fn limit_s(&self) -> u64 {
        self.delete_options.wait_timeout.unwrap_or(WAIT_TIMEOUT_S)
    }

    /// Returns the node's pods that are selected.
    fn pods(&self, api: &Api) -> Result<Vec<Value>, Error> {
        let mut query = format!("&fieldSelector={}", encoded(&format!("spec.nodeName={}", self.name)));
        if !self.pod_selectors.is_empty() {
            query.push_str(&format!("&labelSelector={}", encoded(&self.pod_selectors.join(","))));
        }
        Ok(api.list("/api/v1/pods", &query)?.unwrap_or_default())
    }

    fn cordon(&self, api: &Api, wanted: bool) -> Change {
        let path = format!("/api/v1/nodes/{}?fieldManager={FIELD_MANAGER}", encoded(&self.name));
        let mut request = api.request("PATCH", path);
        request.content_type = Some("application/merge-patch+json".into());
        request.body = Some(json!({"spec": {"unschedulable": wanted.then_some(true)}}));
        Change::Kubernetes(request)
    }

    /// Source: the Eviction API of `policy/v1`; it answers 429 while a budget allows no disruption, which is asked again.
    fn eviction(&self, api: &Api, pod: &Value) -> Change {
        let (namespace, name) = (text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        // A pod of the same name that came since is another one.
        let mut options = json!({"preconditions": {"uid": pod["metadata"]["uid"]}});
        if let Some(seconds) = self.delete_options.terminate_grace_period {
            options["gracePeriodSeconds"] = seconds.into();
        }
        let mut request;
        if self.delete_options.disable_eviction {
            request = api.request("DELETE", path);
            request.body = Some(options);
        } else {
            request = api.request("POST", format!("{path}/eviction"));
            request.timeout_s = Some(self.limit_s());
            request.body = Some(json!({
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"namespace": namespace, "name": name},
                "deleteOptions": options,
            }));
        }
        Change::Kubernetes(request)
    }

    /// Waits until pods that were told to end are gone.
    fn wait_for(&self, api: &Api, ending: &[Value]) -> Result<(), Error> {
        if ending.is_empty() {
            return Ok(());
        }
        let mut left = Vec::new();
        let gone = api.until(Duration::from_secs(self.limit_s()), || {
            let pods = self.pods(api)?;
            let still = |pod: &&Value| pods.iter().any(|now| now["metadata"]["uid"] == pod["metadata"]["uid"]);
            left = ending.iter().filter(still).map(full_name).collect();
            Ok(left.is_empty().then_some(()))
        })?;
        gone.ok_or_else(|| {
            Error::new(
                ErrorKind::Failed,
                format!("node `{}`: {} still there after {} s", self.name, listed(&left), self.limit_s()),
            )
        })
    }
}

/// The pods of a node, by what a drain does with them.
#[derive(Default)]
struct Pods {
    leaving: Vec<Value>,
    /// Told to end already.
    ending: Vec<Value>,
    of_daemon_sets: Vec<String>,
    unmanaged: Vec<String>,
    with_data: Vec<String>,
}

impl Pods {
    /// Source: the filters of `kubectl drain`.
    fn of(pods: Vec<Value>, options: &Options) -> Pods {
        let mut sorted = Pods::default();
        for pod in pods {
            let owner = pod["metadata"]["ownerReferences"]
                .as_array()
                .and_then(|owners| owners.iter().find(|owner| owner["controller"] == true));
            let ended = matches!(text(&pod, "/status/phase"), "Succeeded" | "Failed");
            let volumes = pod["spec"]["volumes"].as_array().map(Vec::as_slice).unwrap_or_default();
            let is_static = !pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null();
            if is_static {
                continue;
            }
            if !pod["metadata"]["deletionTimestamp"].is_null() {
                sorted.ending.push(pod);
            } else if !ended && owner.is_some_and(|owner| owner["kind"] == "DaemonSet") {
                if !options.ignore_daemonsets {
                    sorted.of_daemon_sets.push(full_name(&pod));
                }
            } else if !ended && owner.is_none() && !options.force {
                sorted.unmanaged.push(full_name(&pod));
            } else if !ended
                && !options.delete_emptydir_data
                && volumes.iter().any(|volume| !volume["emptyDir"].is_null())
            {
                sorted.with_data.push(full_name(&pod));
            } else {
                sorted.leaving.push(pod);
            }
        }
        sorted
    }

    /// # Errors
    /// [`ErrorKind::Refused`] when a pod stops the drain.
    fn refuse(&self, node: &str) -> Result<(), Error> {
        let reasons: Vec<String> = [
            (&self.of_daemon_sets, "of a DaemonSet, which would come back at once (`ignore_daemonsets` leaves them)"),
            (&self.unmanaged, "of no controller, and would not come back anywhere (`force` evicts them)"),
            (&self.with_data, "with an emptyDir volume, whose data would be lost (`delete_emptydir_data` evicts them)"),
        ]
        .into_iter()
        .filter(|(names, _)| !names.is_empty())
        .map(|(names, reason)| format!("{} {} {reason}", listed(names), if names.len() == 1 { "is" } else { "are" }))
        .collect();
        if reasons.is_empty() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Refused, format!("node `{node}` is not drained: {}", reasons.join("; "))))
    }
}

fn full_name(pod: &Value) -> String {
    format!("{}/{}", text(pod, "/metadata/namespace"), text(pod, "/metadata/name"))
}

/// Returns the pod, as `namespace/name`, that a request evicts or deletes.
fn pod_of(path: &str) -> Option<String> {
    let (namespace, rest) = path.strip_prefix("/api/v1/namespaces/")?.split_once("/pods/")?;
    Some(format!("{namespace}/{}", rest.trim_end_matches("/eviction")))
}

fn diff(node: &str, cordoned: bool) -> Diff {
    let title = format!("node `{node}`");
    let shown = |cordoned: bool| format!("unschedulable: {cordoned}\n");
    Diff {
        before_header: Some(title.clone()),
        after_header: Some(title),
        before: Some(shown(!cordoned)),
        after: Some(shown(cordoned)),
        prepared: None,
    }
}
