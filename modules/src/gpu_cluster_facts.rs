pub mod evidence;
mod read;

use schemars::JsonSchema;
use serde_json::Value;

use crate::cluster::{Api, encoded, text};
use crate::decode::Arguments;
use crate::gpu_cluster_facts::evidence::{Cluster, Pod};
use crate::{Error, ErrorKind, Host, Module, Plan};

/// Gather everything in a Kubernetes cluster that decides whether pods can have NVIDIA GPUs.
///
/// ```yaml
/// - gpu_cluster_facts:
///   delegate_to: localhost
///   register: cluster
/// - debug:
///     msg: "{{ cluster.nodes | items2dict('name', 'allocatable') }}"
/// ```
///
/// It reads and never changes anything. `kubeon-run doctor` asks for it and says what is wrong. The result holds
///
/// - `nodes`: each with its names, labels, taints, readiness, and what it has and offers of NVIDIA's resources
/// - `plugins`: the DaemonSets of NVIDIA's device plugin, and where they may run
/// - `pods`: the device plugins' pods, and pods that ask for GPUs, each with what keeps it from running
/// - `runtime_classes`: their handlers, by name
/// - `failures`: pods about GPUs that could not even be made, in the last minutes
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// A kubeconfig on the machine where the task runs; absent stands for `$KUBECONFIG`, `~/.kube/config`, then the
    /// pod's own service account.
    kubeconfig: Option<String>,
    /// A context of the kubeconfig; absent stands for its current one.
    context: Option<String>,
}

/// How long ago a failure may have been told that still counts.
const RECENT_S: f64 = 1200.0;
/// How many lines of a log are read.
const LOG_LINES: u32 = 60;
/// How long a kubelet may take to answer with a log.
const LOG_LIMIT_S: u64 = 5;

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let api = Api::new(host, self.kubeconfig.as_deref(), self.context.as_deref());
        let list = |path: &str, query: &str| api.list(path, query).map(Option::unwrap_or_default);
        let mut cluster = Cluster {
            nodes: list("/api/v1/nodes", "")?.iter().map(read::node).collect(),
            plugins: list("/apis/apps/v1/daemonsets", "")?.iter().filter_map(read::plugin).collect(),
            ..Cluster::default()
        };
        for class in list("/apis/node.k8s.io/v1/runtimeclasses", "")? {
            cluster
                .runtime_classes
                .insert(text(&class, "/metadata/name").to_owned(), text(&class, "/handler").to_owned());
        }
        cluster.pods = list("/api/v1/pods", "")?.iter().filter_map(|pod| read::pod(pod, &cluster.plugins)).collect();
        let warnings = list("/api/v1/events", &format!("&fieldSelector={}", encoded("type=Warning")))?;
        for event in &warnings {
            self.take_event(event, host.started_s(), &mut cluster);
        }
        let silent: Vec<String> =
            cluster.nodes.iter().filter(|node| node.offered() == 0).map(|node| node.name.clone()).collect();
        for pod in &mut cluster.pods {
            let plugin = cluster.plugins.iter().find(|plugin| Some(&plugin.name) == pod.plugin.as_ref());
            if let Some(plugin) = plugin.filter(|_| !pod.ready || silent.contains(&pod.node)) {
                pod.log = log_of(&api, pod, &plugin.container);
            }
        }
        match serde_json::to_value(&cluster) {
            Ok(Value::Object(result)) => Ok(Plan { result, ..Plan::default() }),
            Ok(_) | Err(_) => Err(Error::new(ErrorKind::Failed, "the evidence can't be written as JSON")),
        }
    }
}

impl Args {
    /// Keeps what a warning says of one of the pods, or of pods that could not be made.
    fn take_event(&self, event: &Value, now_s: f64, cluster: &mut Cluster) {
        let told = format!("{}: {}", text(event, "/reason"), text(event, "/message"));
        let uid = text(event, "/involvedObject/uid");
        if let Some(pod) = cluster.pods.iter_mut().find(|pod| pod.uid == uid) {
            if !pod.events.contains(&told) {
                pod.events.push(told);
            }
            return;
        }
        let about_pods = matches!(text(event, "/reason"), "FailedCreate" | "FailedAdmission");
        let about_gpus = told.contains("nvidia") || told.contains("RuntimeClass");
        let last = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime"];
        let last = last.iter().map(|pointer| text(event, pointer)).find(|time| !time.is_empty()).unwrap_or_default();
        let recent = read::seconds(last).is_none_or(|last_s| now_s - last_s < RECENT_S);
        if about_pods && about_gpus && recent {
            let object = &event["involvedObject"];
            let of = format!("{} {}/{}", text(object, "/kind"), text(object, "/namespace"), text(object, "/name"));
            cluster.failures.push((of, told));
        }
    }
}

/// Returns the end of a pod's log: of the container that crashed, where it did. Not every node gives logs.
fn log_of(api: &Api<'_>, pod: &Pod, container: &str) -> Vec<String> {
    let path = format!("/api/v1/namespaces/{}/pods/{}/log?tailLines={LOG_LINES}", pod.namespace, pod.name);
    let mut lines: Vec<String> = Vec::new();
    for previous in ["&previous=true", ""] {
        let mut request = api.request("GET", format!("{path}&container={}{previous}", encoded(container)));
        request.timeout_s = Some(LOG_LIMIT_S);
        if let Ok(answer) = api.ask(&request)
            && answer.status == 200
            && let Value::String(log) = answer.body
        {
            lines.extend(log.lines().map(|line| line.chars().take(1000).collect()));
        }
    }
    lines
}
