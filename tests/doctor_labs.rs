//! The doctor over booted hosts and a real cluster: nothing is wrong after gpu.yml, then one link after another is broken, and
//! each is named as the first one that is.

mod common;

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use common::gpu::repository_of;
use common::lab::{Fleet, Run};
use common::program::until;
use serde_json::Value;

struct Site {
    fleet: Fleet,
    variables: String,
}

impl Site {
    fn up(hosts: &[&str]) -> Site {
        let fleet = Fleet::up(hosts);
        let variables = repository_of(&fleet);
        Site { fleet, variables }
    }

    fn doctor(&self, arguments: &[&str]) -> Run {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
        command
            .args(["doctor", "-i", self.fleet.inventory(), "-b", "-T", "60", "-e", &self.variables])
            .args(arguments)
            .env("XDG_STATE_HOME", self.fleet.folder().join("state"))
            .env("HOME", self.fleet.folder())
            .env_remove("KUBECONFIG")
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdin(Stdio::null());
        Run::of(command.output().expect("the program starts"))
    }

    fn with_cluster(&self, arguments: &[&str]) -> Run {
        let kubeconfig = self.fleet.kubeconfig();
        let mut all = vec!["--kubeconfig", kubeconfig.as_str()];
        all.extend(arguments);
        self.doctor(&all)
    }

    /// Asserts what is found on a host, or in the cluster, and which link is the first broken one.
    #[track_caller]
    fn finds(&self, whom: &str, expected: &[&str], first: Option<&str>) {
        let run = self.with_cluster(&["--output", "json"]);
        is_found(&run, whom, expected, first);
    }

    /// Waits until pods can have so many GPUs of a node.
    fn offered(&self, node: &str, count: &str) {
        until(&format!("{node} offers {count}"), || {
            let nodes = self.fleet.objects(&["nodes"]);
            let node = nodes.iter().find(|found| found["metadata"]["name"] == node).expect("a node");
            node["status"]["allocatable"]["nvidia.com/gpu"].as_str().unwrap_or("0") == count
        });
    }

    /// Waits until the device plugin has so many ready pods.
    fn plugins(&self, count: usize) {
        until(&format!("{count} device plugins"), || {
            let selector = ["pods", "--namespace", "kube-system", "--selector", "name=nvidia-device-plugin-ds"];
            let pods = self.fleet.objects(&selector);
            let ready = |pod: &&Value| pod["status"]["containerStatuses"][0]["ready"] == true;
            pods.len() == count && pods.iter().filter(ready).count() == count
        });
    }
}

#[track_caller]
fn is_found(run: &Run, whom: &str, expected: &[&str], first: Option<&str>) {
    let report: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("no JSON:\n{}\n{}", run.stdout, run.stderr));
    let subjects = report["subjects"].as_array().expect("subjects");
    let subject = subjects.iter().find(|subject| subject["name"] == whom);
    let subject = subject.unwrap_or_else(|| panic!("nothing of {whom}: {report:#}"));
    let findings = subject["findings"].as_array().expect("findings");
    let found: BTreeSet<&str> = findings.iter().filter_map(|finding| finding["id"].as_str()).collect();
    let expected: BTreeSet<&str> = expected.iter().copied().collect();
    assert_eq!(found, expected, "{whom}: {subject:#}");
    assert_eq!(subject["broken"].as_str(), first, "{whom}: {subject:#}");
}

#[test]
fn nothing_is_invented_and_each_broken_link_is_named() {
    let site = Site::up(&["gpu1:gpu", "gpu2:gpus", "plain1:none"]);
    site.fleet.cluster_up(&["gpu1", "gpu2", "plain1"]);
    before_anything_was_done(&site);
    everything_is_in_order(&site);
    the_runtime_is_broken(&site);
    the_cluster_is_broken(&site);
    pods_ask_for_what_they_cannot_have(&site);
    what_the_playbook_can_mend_is_mended(&site);
}

fn before_anything_was_done(site: &Site) {
    let expected = ["toolkit-missing", "containerd-without-nvidia-runtime", "plugin-missing"];
    site.finds("gpu1", &expected, Some("toolkit"));
    site.finds("plain1", &["gpu-none"], None);
}

fn everything_is_in_order(site: &Site) {
    let kubeconfig = format!("kubeconfig={}", site.fleet.kubeconfig());
    let arguments = ["playbooks/gpu.yml", "-T", "60", "-e", &site.variables, "-e", &kubeconfig];
    site.fleet.run(&arguments).ended(0);
    site.offered("gpu2", "4");
    let run = site.with_cluster(&[]).ended(0);
    for part in ["✓ gpu1", "✓ gpu2", "- plain1", "2 in order, 0 with warnings, 0 broken, 1 without a GPU"] {
        assert!(run.stdout.contains(part), "no `{part}` in:\n{}", run.stdout);
    }
    for host in ["gpu1", "gpu2"] {
        site.finds(host, &[], None);
    }
    // Seen by a user who may read less, nothing is invented either.
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
    command.args([
        "doctor",
        "-i",
        site.fleet.inventory(),
        "-T",
        "60",
        "-e",
        "ansible_user=admin",
        "--no-cluster",
        "--output",
        "json",
    ]);
    let run =
        Run::of(command.env("HOME", site.fleet.folder()).stdin(Stdio::null()).output().expect("the program starts"));
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(report["code"], 0, "{report:#}");
}

fn the_runtime_is_broken(site: &Site) {
    let see = |line: &str| site.fleet.see("gpu1", line);
    see("systemctl stop containerd");
    site.finds("gpu1", &["containerd-not-running"], Some("containerd"));
    see("systemctl start containerd");

    see(
        "cp /etc/containerd/config.toml /root/good.toml; printf 'version = 2\\n' >/etc/containerd/config.toml; systemctl restart containerd",
    );
    site.finds("gpu1", &["containerd-without-nvidia-runtime"], Some("containerd"));
    see("echo 'version = = 2' >/etc/containerd/config.toml");
    let run = site.with_cluster(&["--output", "json"]);
    let told = ["containerd-configuration-unreadable"];
    is_found(&run, "gpu1", &told, Some("containerd"));
    see(
        "printf 'version = 2\\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\\n' >/etc/containerd/config.toml; systemctl restart containerd",
    );
    site.finds("gpu1", &["cri-disabled"], Some("CRI"));
    see(
        "cp -p /root/good.toml /etc/containerd/config.toml; touch -d '1 hour ago' /etc/containerd/config.toml; systemctl restart containerd",
    );

    see("mv /usr/bin/nvidia-container-runtime /root/");
    see("echo 'deb https://nvidia.github.io/libnvidia-container/stable/deb/ /' >/etc/apt/sources.list.d/other.list");
    let expected = ["repository-path-without-architecture", "toolkit-missing"];
    site.finds("gpu1", &expected, Some("repository"));
    see("mv /root/nvidia-container-runtime /usr/bin/");
    site.finds("gpu1", &["repository-in-doubt"], None);
    see("rm /etc/apt/sources.list.d/other.list");

    see("systemctl stop kubelet");
    site.finds("gpu1", &["kubelet-not-running"], Some("kubelet"));
    see("systemctl start kubelet");
    site.fleet.kubectl(&["wait", "node/gpu1", "--for=condition=Ready", "--timeout=60s"]);
    site.plugins(2);
    site.offered("gpu1", "1");
    site.finds("gpu1", &[], None);
}

fn the_cluster_is_broken(site: &Site) {
    let kubectl = |arguments: &[&str]| site.fleet.kubectl(arguments);
    kubectl(&["label", "node", "gpu1", "nvidia.com/gpu.present-"]);
    site.plugins(1);
    site.finds("gpu1", &["label-missing"], Some("label"));
    kubectl(&["label", "node", "gpu1", "nvidia.com/gpu.present=true"]);
    site.finds("gpu1", &["label-of-another-value"], Some("label"));
    kubectl(&["label", "node", "gpu1", "nvidia.com/gpu.present=yes", "--overwrite"]);
    site.plugins(2);
    site.offered("gpu1", "1");

    kubectl(&["taint", "node", "gpu1", "dedicated=ml:NoExecute"]);
    site.plugins(1);
    site.finds("gpu1", &["taint-not-tolerated"], Some("taint"));
    kubectl(&["taint", "node", "gpu1", "dedicated-"]);
    site.plugins(2);
    site.offered("gpu1", "1");

    kubectl(&["cordon", "gpu1"]);
    site.finds("gpu1", &["node-cordoned"], None);
    kubectl(&["uncordon", "gpu1"]);
}

fn pods_ask_for_what_they_cannot_have(site: &Site) {
    let pod = |name: &str, resources: &str| {
        let text = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  containers:\n    - name: a\n      image: lab.kubeon.run/shell:1\n      \
             command: [sleep, '1000']\n      resources: {{{resources}}}\n"
        );
        let path = site.fleet.folder().join("pod.yml");
        std::fs::write(&path, text).expect("a writable folder");
        path.display().to_string()
    };
    let path = pod("more", "limits: {nvidia.com/gpu: 9}");
    site.fleet.kubectl(&["apply", "--filename", &path]);
    until("the scheduler has seen the pod", || {
        let pods = site.fleet.objects(&["pods", "--namespace", "default"]);
        pods.iter().any(|pod| pod["status"]["conditions"][0]["reason"] == "Unschedulable")
    });
    site.finds("cluster", &["pod-finds-no-free-gpu"], None);
    assert_eq!(site.with_cluster(&[]).code, Some(3));
    site.fleet.kubectl(&["delete", "pod", "more", "--wait"]);

    let path = pod("uneven", "limits: {nvidia.com/gpu: 2}, requests: {nvidia.com/gpu: 1}");
    let refused = site.fleet.try_lab("cluster/cluster", &["kubectl", "apply", "--filename", &path]);
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
    doctor.args(["doctor", "--text", "-", "--output", "json"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut doctor = doctor.spawn().expect("the program starts");
    doctor.stdin.take().expect("a pipe").write_all(&refused.stderr).expect("it reads");
    let run = Run::of(doctor.wait_with_output().expect("it ends"));
    is_found(&run, "standard input", &["pod-requests-are-not-limits"], Some("pods"));
}

fn what_the_playbook_can_mend_is_mended(site: &Site) {
    site.fleet.kubectl(&["delete", "daemonset", "--namespace", "kube-system", "nvidia-device-plugin-daemonset"]);
    site.plugins(0);
    site.offered("gpu1", "0");
    site.fleet.kubectl(&["label", "node", "gpu1", "nvidia.com/gpu.present-"]);
    site.finds("gpu1", &["plugin-missing"], Some("device plugin"));
    let run = site.with_cluster(&["--fix"]);
    assert!(run.stdout.contains("--tags plugin"), "{}", run.stdout);
    site.plugins(2);
    for (host, count) in [("gpu1", "1"), ("gpu2", "4")] {
        site.offered(host, count);
        site.finds(host, &[], None);
    }
}

#[test]
fn every_face_of_the_hardware_is_named() {
    let faces = [
        ("none", "gpu-none", None),
        ("olddriver", "driver-too-old", Some("driver")),
        ("nouveau", "driver-nouveau-holds-the-gpu", Some("driver")),
        ("nodriver", "driver-missing", Some("driver")),
        ("vfio", "gpu-passed-through", None),
        ("mismatch", "library-mismatch", Some("library")),
        ("xid", "gpu-fell-off-the-bus", Some("hardware")),
        ("secureboot", "driver-refused-by-secure-boot", Some("driver")),
        ("unsupported", "driver-does-not-know-the-gpu", Some("driver")),
        ("stale", "gpu-none", None),
        ("dockergpu", "toolkit-missing", Some("toolkit")),
    ];
    let hosts: Vec<String> = faces.iter().map(|(face, ..)| format!("{face}1:{face}")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let site = Site::up(&hosts);
    let run = site.doctor(&["--no-cluster", "--output", "json"]);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let mut wrong = Vec::new();
    for (face, id, first) in faces {
        let subjects = report["subjects"].as_array().expect("subjects");
        let subject = subjects.iter().find(|subject| subject["name"] == format!("{face}1")).expect("a host");
        let found = subject["findings"][0]["id"].as_str();
        if found != Some(id) || subject["broken"].as_str() != first {
            wrong.push(format!("{face}: {subject:#}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(run.code, Some(2));

    site.fleet.see("none1", "systemctl stop ssh ssh.socket 2>/dev/null || systemctl stop ssh");
    let run = site.doctor(&["--no-cluster", "--limit", "none1,mismatch1"]);
    assert_eq!(run.code, Some(6), "{}", run.stdout);
    assert!(run.stdout.contains("host-unreachable"), "{}", run.stdout);
}
