//! The plugin `k8s_nodes` on a real API server: the nodes of tests/cluster as hosts.

mod common;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::program::{Project, Ran};
use serde_json::{Value, json};

/// A cluster of its own, ended with the value.
struct Cluster(Project);

impl Cluster {
    fn up(nodes: &[&str]) -> Cluster {
        let cluster = Cluster(Project::new(""));
        let mut arguments = vec!["up"];
        nodes.iter().for_each(|node| arguments.extend(["--node", node]));
        cluster.lab(&arguments);
        cluster
    }

    fn try_lab(&self, arguments: &[&str]) -> Output {
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/cluster"))
            .args(arguments)
            .env("KUBEON_LAB", self.0.path("lab"))
            .stdin(Stdio::null())
            .output()
            .expect("the lab starts")
    }

    fn lab(&self, arguments: &[&str]) -> String {
        let output = self.try_lab(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn show(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
        command.current_dir(self.0.folder.path()).env_clear().env("HOME", self.0.folder.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).arg("inventory").args(arguments);
        self.0.wait(command)
    }

    fn hosts(&self, arguments: &[&str]) -> Value {
        let ran = self.show(&[&["-i", "nodes.yml", "--list"], arguments].concat());
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.try_lab(&["down"]);
    }
}

/// Waits until a node says what is awaited of it: its stand-in tells so when it has joined.
fn until_ready(cluster: &Cluster, nodes: &[&str]) {
    for node in nodes {
        let name = format!("node/{node}");
        cluster.lab(&["kubectl", "wait", "--for=condition=Ready", "--timeout=60s", &name]);
    }
}

#[test]
fn nodes_are_hosts_and_their_labels_groups() {
    let cluster = Cluster::up(&[
        "gpu-1=10.99.0.1,gpus=2,label=topology.kubernetes.io/zone:a-1,label=nvidia.com/gpu.present:true",
        "gpu-2=10.99.0.2,gpus=2,label=topology.kubernetes.io/zone:b,taint=nvidia.com/gpu:present:NoSchedule",
        "boss=10.99.0.3,control-plane",
    ]);
    until_ready(&cluster, &["gpu-1", "gpu-2", "boss"]);
    cluster.lab(&["kubectl", "annotate", "node", "gpu-1", "note={{ lookup('pipe', 'touch was-here') }}"]);
    cluster.lab(&["kubectl", "cordon", "gpu-2"]);
    let project = &cluster.0;
    std::fs::copy(cluster.lab(&["kubeconfig"]), project.path("admin.conf")).expect("a kubeconfig");
    project.write("nodes.yml", "plugin: k8s_nodes\nkubeconfig: admin.conf\n");

    let all = cluster.hosts(&[]);
    let text = |text: &str| json!({"__ansible_unsafe": text});
    let vars = |name: &str| &all["_meta"]["hostvars"][name];
    assert_eq!(vars("gpu-1")["ansible_host"], json!(text("10.99.0.1")), "{all:#}");
    assert_eq!(vars("gpu-1")["k8s_labels"]["nvidia.com/gpu.present"], text("true"));
    assert_eq!(vars("gpu-1")["k8s_annotations"]["note"], text("{{ lookup('pipe', 'touch was-here') }}"));
    assert_eq!(vars("gpu-2")["k8s_taints"][0]["effect"], text("NoSchedule"));
    assert_eq!(
        (&vars("gpu-1")["k8s_unschedulable"], &vars("gpu-2")["k8s_unschedulable"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(vars("boss")["k8s_ready"], json!(true));
    assert!(
        vars("boss")["k8s_capacity"]["cpu"].is_object() && vars("boss")["k8s_node_info"]["kubeletVersion"].is_object()
    );
    assert_eq!(all["k8s_nodes"]["hosts"], json!(["boss", "gpu-1", "gpu-2"]));
    assert_eq!(all["topology_kubernetes_io_zone"]["children"].as_array().map(Vec::len), Some(2));
    assert_eq!(all["topology_kubernetes_io_zone_a_1"]["hosts"], json!(["gpu-1"]));
    assert_eq!(all["nvidia_com_gpu_present_true"]["hosts"], json!(["gpu-1"]));
    assert_eq!(all["node_role_kubernetes_io_control_plane"]["hosts"], json!(["boss"]));
    assert_eq!(all["kubernetes_io_hostname"], Value::Null);

    // What a run makes of it: chosen by a label, reached at its address, rendered from what the API says.
    project.write(
        "site.yml",
        "- hosts: topology_kubernetes_io_zone
  gather_facts: false
  connection: local
  tasks:
    - shell: echo {{ inventory_hostname }} {{ ansible_host }} {{ k8s_labels['topology.kubernetes.io/zone'] }} >> ran
      args: {chdir: '{{ playbook_dir }}'}
      throttle: 1
    - copy: {content: '{{ k8s_annotations.note }}', dest: '{{ playbook_dir }}/note'}
      when: k8s_annotations.note is defined
",
    );
    let ran = project.run(&["site.yml", "-i", "nodes.yml"]);
    assert_eq!((ran.code, project.read("ran")), (0, "gpu-1 10.99.0.1 a-1\ngpu-2 10.99.0.2 b\n".to_owned()), "{ran:?}");
    assert_eq!(project.read("note"), "{{ lookup('pipe', 'touch was-here') }}");
    assert!(!project.path("was-here").exists());

    project.write(
        "nodes.yml",
        "plugin: k8s_nodes
kubeconfig: '{{ where }}'
label_selectors: ['topology.kubernetes.io/zone', '!nvidia.com/gpu.present']
address_types: Hostname
group: a cluster
label_groups: [kubernetes.io/hostname]
compose: {gpus: \"k8s_capacity.cpu is defined\"}
keyed_groups: [{key: \"k8s_taints | map(attribute='key')\", prefix: taint}]
",
    );
    let some = cluster.hosts(&["-e", "where=admin.conf"]);
    assert_eq!(some["a_cluster"]["hosts"], json!(["gpu-2"]), "{some:#}");
    assert_eq!(some["kubernetes_io_hostname_gpu_2"]["hosts"], json!(["gpu-2"]));
    assert_eq!(some["taint_nvidia_com_gpu"]["hosts"], json!(["gpu-2"]));
    assert_eq!(some["_meta"]["hostvars"]["gpu-2"]["gpus"], json!(true));
    assert_eq!(some["_meta"]["hostvars"]["gpu-2"]["ansible_host"], text("gpu-2"));

    project.write(
        "nodes.yml",
        "plugin: k8s_nodes\nkubeconfig: admin.conf\ncontext: elsewhere\naddress_types: [ExternalIP]\n",
    );
    let wrong = cluster.show(&["-i", "nodes.yml", "--list"]);
    assert!(wrong.stderr.contains("ask the cluster for its nodes: "), "{wrong:?}");
    assert!(wrong.stderr.contains("elsewhere") && wrong.stderr.contains("nodes.yml:1:9"), "{wrong:?}");
}
