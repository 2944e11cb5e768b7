//! Hosts and a cluster for the playbooks of GPUs, and the eyes that judge what came of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};

use super::lab::{Fleet, Run};

pub const LABEL: &str = "nvidia.com/gpu.present";

/// Hosts, most of which are nodes of a cluster, and how the playbooks are run over them.
pub struct Site {
    pub fleet: Fleet,
    variables: String,
}

impl Site {
    pub fn up(hosts: &[&str]) -> Site {
        let fleet = timed("boot hosts", || Fleet::up(hosts));
        let variables = repository_of(&fleet);
        Site { fleet, variables }
    }

    /// Returns the folder for temporary files of this machine.
    pub fn temporary(&self) -> PathBuf {
        let folder = self.fleet.folder().join("tmp");
        std::fs::create_dir_all(&folder).expect("a writable folder");
        folder
    }

    /// Runs a playbook as somebody with no kubeconfig would.
    pub fn run_without_cluster(&self, playbook: &str, arguments: &[&str]) -> Run {
        let mut command = self.fleet.command(&[playbook, "-T", "60", "-e", &self.variables]);
        command.args(arguments).env_remove("KUBECONFIG").env("TMPDIR", self.temporary());
        timed(&format!("{playbook} {}", arguments.join(" ")), || Run::of(command.output().expect("the program starts")))
    }

    pub fn run(&self, playbook: &str, arguments: &[&str]) -> Run {
        let kubeconfig = format!("kubeconfig={}", self.fleet.kubeconfig());
        let mut all = vec!["-e", kubeconfig.as_str()];
        all.extend(arguments);
        self.run_without_cluster(playbook, &all)
    }

    /// Returns all that a run might change on a host's disk: files, of `/usr` their sizes and of the others their content,
    /// links, modes, owners, packages.
    pub fn disk(&self, host: &str) -> String {
        self.fleet.see(
            host,
            "cd /; find etc usr opt root srv var/lib/systemd -xdev -path root/.cache -prune -o \
               ! -type d -printf '%p %y %m %u %g %s %l\\n' -o -printf '%p %y %m %u %g\\n' | sort
             find etc opt root srv -xdev -path root/.cache -prune -o -type f -print0 | sort -z | xargs -0 sha256sum
             ls -1 var/lib | grep -v '^cni$'; if [ -x usr/bin/rpm ]; then rpm -qa | sort; else dpkg-query -W; apt-mark showhold; fi",
        )
    }

    pub fn disks(&self, hosts: &[&'static str]) -> BTreeMap<&'static str, String> {
        hosts.iter().map(|host| (*host, self.disk(host))).collect()
    }

    #[track_caller]
    pub fn disks_are(&self, before: &BTreeMap<&'static str, String>) {
        for (host, disk) in before {
            let now = self.disk(host);
            let lines = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
            let (was, is) = (lines(disk), lines(&now));
            let changed: Vec<_> = was.symmetric_difference(&is).collect();
            assert!(changed.is_empty(), "the disk of {host} has changed: {changed:#?}");
        }
    }

    /// Returns when containerd was started last.
    pub fn started(&self, host: &str) -> String {
        self.fleet.see(host, "systemctl show --property ActiveEnterTimestampMonotonic containerd")
    }

    /// Returns the program that starts a container which asks for nothing.
    pub fn runtime(&self, host: &str) -> String {
        let said = self.fleet.lab("fleet/cri-run", &[host]);
        let ran = said.lines().find_map(|line| line.strip_prefix("ran: "));
        ran.unwrap_or_else(|| panic!("{host}: {said}")).to_owned()
    }

    /// Returns the nodes that have the label, each with its value.
    pub fn labelled(&self) -> BTreeMap<String, String> {
        let nodes = self.fleet.objects(&["nodes"]);
        let label = |node: &Value| Some((name(node), node["metadata"]["labels"][LABEL].as_str()?.to_owned()));
        nodes.iter().filter_map(label).collect()
    }

    /// Returns the nodes on which the device plugin's pods are ready.
    pub fn plugin_nodes(&self) -> Vec<String> {
        let pods =
            self.fleet.objects(&["pods", "--namespace", "kube-system", "--selector", "name=nvidia-device-plugin-ds"]);
        let ready = |pod: &&Value| pod["status"]["containerStatuses"][0]["ready"] == true;
        let mut nodes: Vec<String> = pods.iter().filter(ready).map(|pod| text(&pod["spec"]["nodeName"])).collect();
        nodes.sort();
        nodes
    }

    /// Returns how many GPUs pods can have, by node.
    pub fn allocatable(&self) -> BTreeMap<String, String> {
        let nodes = self.fleet.objects(&["nodes"]);
        let offered =
            |node: &Value| Some((name(node), node["status"]["allocatable"]["nvidia.com/gpu"].as_str()?.to_owned()));
        nodes.iter().filter_map(offered).filter(|(_, count)| count != "0").collect()
    }

    /// Returns what the playbook has applied to the cluster.
    pub fn applied(&self) -> Vec<String> {
        let objects = self.fleet.objects(&["daemonsets,configmaps,services,runtimeclasses", "--all-namespaces"]);
        objects.iter().map(name).filter(|name| name.contains("nvidia") || name.contains("kubeon-run")).collect()
    }

    /// Runs a pod on a node, which is ready while `probe` succeeds. The host's files are below `/host`.
    pub fn pod(&self, pod: &str, node: &str, probe: &str) {
        let manifest = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": pod},
            "spec": {
                "nodeName": node,
                "terminationGracePeriodSeconds": 0,
                "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
                "containers": [{
                    "name": "shell",
                    "image": "lab.kubeon.run/shell:1",
                    "command": ["sleep", "10000"],
                    "volumeMounts": [{"name": "host", "mountPath": "/host"}],
                    "readinessProbe": {
                        "exec": {"command": ["sh", "-c", probe]}, "periodSeconds": 1, "failureThreshold": 1,
                    },
                }],
            },
        });
        let path = self.fleet.folder().join("pod.json");
        std::fs::write(&path, manifest.to_string()).expect("a writable folder");
        self.fleet.kubectl(&["apply", "--filename", path.to_str().expect("UTF-8")]);
        self.is_ready(pod);
    }

    pub fn is_ready(&self, pod: &str) {
        self.fleet.kubectl(&["wait", &format!("pod/{pod}"), "--for=condition=Ready", "--timeout=60s"]);
    }

    /// Returns what tells a pod from its successors: its identity, and how often its container was started.
    pub fn identity(&self, pod: &str) -> (Value, Value) {
        let pods = self.fleet.objects(&["pods"]);
        let pod = pods.iter().find(|one| name(one) == pod).expect("the pod is there");
        (pod["metadata"]["uid"].clone(), pod["status"]["containerStatuses"][0]["restartCount"].clone())
    }
}

/// Writes the variables of gpu.yml that name the lab's repository and shorten what is only a wait, and returns what `-e`
/// takes for them.
pub fn repository_of(fleet: &Fleet) -> String {
    let path = fleet.folder().join("variables.yml");
    let text = format!(
        "gpu_repository_url: {0}/stable/deb/$(ARCH)\nlab_rpm: {0}/stable/rpm/$basearch\n\
         gpu_rpm_repository_url: \"{{{{ lab_rpm }}}}\"\ngpu_repository_fingerprint: {1}\ngpu_watch_s: 2\n",
        fleet.setting("LAB_REPO"),
        fleet.setting("LAB_REPO_FINGERPRINT")
    );
    std::fs::write(&path, text).expect("a writable folder");
    format!("@{}", path.display())
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub fn name(object: &Value) -> String {
    text(&object["metadata"]["name"])
}

pub fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Does a part and prints what it took.
pub fn timed<T>(what: &str, part: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let made = part();
    println!("{:6.1} s  {what}", start.elapsed().as_secs_f64());
    made
}

#[track_caller]
pub fn changed_nothing(run: &Run, hosts: &[&str]) {
    for host in hosts {
        assert_eq!(run.count(host, "changed"), 0, "{host}:\n{}", run.stdout);
    }
    assert!(!run.stdout.contains("+++ after"), "a diff where nothing changes:\n{}", run.stdout);
}

/// Asserts that the table at the end has these cells of a host's line, in this order.
#[track_caller]
pub fn table_has(run: &Run, host: &str, cells: &[&str]) {
    let line =
        run.stdout.lines().map(|line| line.trim().trim_matches(['"', ','])).find(|line| {
            line.split_whitespace().next() == Some(host) && !line.contains(" : ok=") && !line.contains(": [")
        });
    let line = line.unwrap_or_else(|| panic!("no line of {host} in the table:\n{}\n{}", run.stdout, run.stderr));
    let found: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).skip(1).collect();
    assert_eq!(found, cells, "{}", run.stdout);
}
