//! Every choice of `gpu.yml` away from its default, in one run: it reaches the hosts and the cluster, a change of it is
//! followed, and `gpu-remove.yml` takes it away.

mod common;

use std::collections::BTreeMap;

use common::gpu::{Site, changed_nothing, map, table_has, timed};
use serde_json::{Value, json};

const LABEL: &str = "example.com/gpu";
const PACKAGES: [&str; 4] =
    ["libnvidia-container-tools", "libnvidia-container1", "nvidia-container-toolkit", "nvidia-container-toolkit-base"];

#[test]
fn every_choice_reaches_hosts_and_cluster() {
    let site = Site::up(&["gpu1:gpus"]);
    timed("start a cluster, join a node", || site.fleet.cluster_up(&["gpu1"]));
    let before = site.disks(&["gpu1"]);
    let others = others(&site);
    let image = "registry.internal/nvidia/k8s-device-plugin:v0.20.0-ours";
    site.fleet.lab("cluster/cluster", &["kubelet", "image", "gpu1", image]);
    site.fleet.kubectl(&["create", "namespace", "gpus"]);
    let choices = choices(&site);

    a_wrong_choice_is_refused(&site, &choices);
    what_the_runtime_cannot_read_is_refused(&site, &choices);
    let run = site.run("playbooks/gpu.yml", &["-e", &choices]).ended(0);
    let cells = ["gpu1", "4", "550.163.01", "runc + nvidia", "on", "12", "ready"];
    table_has(&run, "gpu1", &cells);
    the_host_is_as_chosen(&site, "1.18.2-1");
    the_plugin_is_as_chosen(&site, image);
    metrics_are_there(&site);
    changed_nothing(&site.run("playbooks/gpu.yml", &["-e", &choices]).ended(0), &["gpu1"]);

    // Other packages, whole GPUs again, no metrics.
    let other = [
        "-e",
        &choices,
        "-e",
        r#"{"nvidia_toolkit_version": "1.19.1-1", "time_slicing_replicas": 0, "dcgm_exporter": false}"#,
    ];
    let run = site.run("playbooks/gpu.yml", &other).ended(0);
    table_has(&run, "gpu1", &["gpu1", "4", "550.163.01", "runc + nvidia", "on", "4", "ready"]);
    the_host_is_as_chosen(&site, "1.19.1-1");
    // Back to the earlier version, on request: all of them, and nothing else has moved all the while.
    site.run("playbooks/gpu.yml", &["-e", &choices]).ended(0);
    the_host_is_as_chosen(&site, "1.18.2-1");
    assert_eq!(others, self::others(&site));
    site.run("playbooks/gpu.yml", &other).ended(0);
    // What is held is let go where it is asked for, and only then.
    let free = [
        "-e",
        &choices,
        "-e",
        r#"{"nvidia_toolkit_version": "1.19.1-1", "time_slicing_replicas": 0, "dcgm_exporter": false, "nvidia_toolkit_hold": false}"#,
    ];
    site.run("playbooks/gpu.yml", &free).ended(0);
    assert_eq!(site.fleet.see("gpu1", "apt-mark showhold"), "");
    let left: Vec<String> = applied(&site).iter().map(common::gpu::name).collect();
    assert_eq!(left, ["nvidia-device-plugin-daemonset", "kubeon-run.gpu", "nvidia"]);

    site.run("playbooks/gpu-remove.yml", &other).ended(0);
    site.disks_are(&before);
    assert_eq!(applied(&site), Vec::<Value>::new());
    // A kubelet takes up to ten seconds to say so.
    let none = r"--for=jsonpath={.status.allocatable.nvidia\.com/gpu}=0";
    site.fleet.kubectl(&["wait", "node/gpu1", none, "--timeout=60s"]);
    let nodes = site.fleet.objects(&["nodes"]);
    assert_eq!(nodes[0]["metadata"]["labels"][LABEL], Value::Null);
}

/// Writes what is chosen, among it a mirror without a key beside it, as where there is no internet.
fn choices(site: &Site) -> String {
    let lab = site.fleet.folder().join("lab");
    let www = lab.join("www");
    let mirror = www.join("mirror");
    std::fs::create_dir_all(&mirror).expect("a writable folder");
    std::os::unix::fs::symlink("../libnvidia-container/stable/deb", mirror.join("toolkit")).expect("a link");
    let text = json!({
        "gpu_repository_url": format!("http://{}/mirror/toolkit/$(ARCH)", site.fleet.setting("LAB_GATEWAY")),
        "gpu_repository_key_file": www.join("libnvidia-container/gpgkey"),
        "nvidia_toolkit_version": "1.18.2-1",
        "containerd_mode": "runtime_class",
        "gpu_label_name": LABEL,
        "gpu_label_value": "on",
        "gpu_namespace": "gpus",
        "device_plugin_image": "registry.internal/nvidia/k8s-device-plugin",
        "device_plugin_version": "v0.20.0-ours",
        "mig_strategy": "mixed",
        "time_slicing_replicas": 3,
        "time_slicing_resources": ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb"],
        "device_list_strategy": "volume-mounts,envvar",
        "dcgm_exporter": true,
        "dcgm_exporter_image": "registry.internal/nvidia/dcgm-exporter",
    });
    let path = site.fleet.folder().join("choices.json");
    std::fs::write(&path, text.to_string()).expect("a writable folder");
    format!("@{}", path.display())
}

fn a_wrong_choice_is_refused(site: &Site, choices: &str) {
    let before = site.disks(&["gpu1"]);
    for (wrong, said) in [
        ("mig_strategy=singel", "value of mig_strategy must be one of: none, single, mixed, got: singel"),
        ("device_list_strategy=envvars", "must be one or more of: envvar, volume-mounts, cdi-annotations, cdi-cri"),
        ("containerd_mode=all", "value of containerd_mode must be one of: default, runtime_class, got: all"),
        ("time_slicing_replicas=many", "time_slicing_replicas"),
    ] {
        let run = site.run("playbooks/gpu.yml", &["-e", choices, "-e", wrong]).ended(2);
        assert!(run.stdout.contains(said), "{}", run.stdout);
    }
    site.disks_are(&before);
}

/// Containerd 1.6 knows nothing of the devices that a newer toolkit describes by CDI.
fn what_the_runtime_cannot_read_is_refused(site: &Site, choices: &str) {
    let before = site.disks(&["gpu1"]);
    let by_cdi = r#"{"device_list_strategy": "cdi-cri", "nvidia_toolkit_version": "1.19.1-1"}"#;
    let run = site.run("playbooks/gpu.yml", &["-e", choices, "-e", by_cdi]).ended(0);
    table_has(&run, "gpu1", &["-", "4", "550.163.01", "-", "-", "-", "refused"]);
    assert!(run.stdout.contains("gpu1: containerd 1.6.20 does not read the CDI specifications"), "{}", run.stdout);
    site.disks_are(&before);
}

fn the_host_is_as_chosen(site: &Site, version: &str) {
    let mut installed = String::new();
    for package in PACKAGES {
        installed.push_str(&format!("{package} {version}\n"));
    }
    let found =
        site.fleet.see("gpu1", &format!("dpkg-query -Wf '${{Package}} ${{Version}}\\n' {}", PACKAGES.join(" ")));
    assert_eq!(found, installed);
    assert_eq!(site.fleet.see("gpu1", "apt-mark showhold | wc -l").trim(), "4");
    let policy = site.fleet.see("gpu1", "apt-cache policy nvidia-container-toolkit");
    let from = policy.split(&format!("*** {version}")).nth(1).unwrap_or_default();
    assert!(from.contains("/mirror/toolkit/"), "{policy}");
    assert_eq!(site.runtime("gpu1"), "runc");
    let class = site.fleet.lab("fleet/cri-run", &["gpu1", "nvidia"]);
    assert!(class.contains("binary: /usr/bin/nvidia-container-runtime"), "{class}");
    let setting =
        "grep -c '^accept-nvidia-visible-devices-as-volume-mounts = true$' /etc/nvidia-container-runtime/config.toml";
    assert_eq!(site.fleet.see("gpu1", setting), "1\n");
}

/// Every package but the four, with its version.
fn others(site: &Site) -> String {
    let all = site.fleet.see("gpu1", "dpkg-query -W");
    let lines =
        all.lines().filter(|line| !PACKAGES.iter().any(|package| line.split(['\t', ':']).next() == Some(package)));
    lines.map(|line| format!("{line}\n")).collect()
}

/// What was applied to the cluster, in the namespace that was chosen and beside it.
fn applied(site: &Site) -> Vec<Value> {
    let mut objects = site.fleet.objects(&["daemonsets,configmaps,services", "--namespace", "gpus"]);
    objects.retain(|object| object["metadata"]["name"] != "kube-root-ca.crt");
    objects.extend(site.fleet.objects(&["runtimeclasses"]));
    objects
}

fn object(site: &Site, kind: &str, name: &str) -> Value {
    let found = applied(site).into_iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} `{name}` among {:#?}", applied(site)))
}

/// What the plugin's documentation calls its options, where the API server has them.
fn the_plugin_is_as_chosen(site: &Site, image: &str) {
    let nodes = site.fleet.objects(&["nodes"]);
    assert_eq!(nodes[0]["metadata"]["labels"][LABEL], "on");
    assert_eq!(nodes[0]["metadata"]["labels"]["nvidia.com/gpu.present"], Value::Null);
    assert_eq!(site.allocatable(), map(&[("gpu1", "12")]));
    assert_eq!(object(site, "RuntimeClass", "nvidia")["handler"], "nvidia");

    let config = object(site, "ConfigMap", "nvidia-device-plugin");
    let text = config["data"]["config.yaml"].as_str().expect("the plugin's configuration");
    let read: Value = serde_yaml::from_str(text).expect("YAML");
    let resources = json!([
        {"name": "nvidia.com/gpu", "replicas": 3},
        {"name": "nvidia.com/mig-1g.10gb", "replicas": 3},
    ]);
    assert_eq!(read, json!({"version": "v1", "sharing": {"timeSlicing": {"resources": resources}}}));

    let pod = &object(site, "DaemonSet", "nvidia-device-plugin-daemonset")["spec"]["template"]["spec"];
    assert_eq!(pod["nodeSelector"], json!({LABEL: "on"}));
    assert_eq!(pod["runtimeClassName"], "nvidia");
    assert_eq!(pod["priorityClassName"], "system-node-critical");
    assert_eq!(pod["tolerations"][0]["key"], "nvidia.com/gpu");
    let container = &pod["containers"][0];
    assert_eq!(container["image"], image);
    let environment: BTreeMap<&str, &str> = container["env"]
        .as_array()
        .expect("variables")
        .iter()
        .filter_map(|variable| Some((variable["name"].as_str()?, variable["value"].as_str()?)))
        .collect();
    let wanted = [
        ("CONFIG_FILE", "/config/config.yaml"),
        ("DEVICE_LIST_STRATEGY", "volume-mounts,envvar"),
        ("FAIL_ON_INIT_ERROR", "true"),
        ("MIG_STRATEGY", "mixed"),
        ("NVIDIA_DRIVER_CAPABILITIES", "compute,utility"),
        ("NVIDIA_MIG_MONITOR_DEVICES", "all"),
        ("NVIDIA_VISIBLE_DEVICES", "all"),
    ];
    assert_eq!(environment, BTreeMap::from(wanted));
    assert_eq!(container["securityContext"]["capabilities"]["add"], json!(["SYS_ADMIN"]));
    let mounted = |name: &str| {
        let mounts = container["volumeMounts"].as_array().expect("mounts");
        mounts.iter().find(|mount| mount["name"] == name).map(|mount| mount["mountPath"].clone())
    };
    assert_eq!(mounted("config"), Some(json!("/config")));
    assert_eq!(mounted("kubelet-device-plugins-dir"), Some(json!("/var/lib/kubelet/device-plugins")));
}

fn metrics_are_there(site: &Site) {
    let pod = &object(site, "DaemonSet", "dcgm-exporter")["spec"]["template"]["spec"];
    assert_eq!(pod["nodeSelector"], json!({LABEL: "on"}));
    assert_eq!(pod["runtimeClassName"], "nvidia");
    let image = pod["containers"][0]["image"].as_str().expect("an image");
    assert!(image.starts_with("registry.internal/nvidia/dcgm-exporter:4."), "{image}");
    assert_eq!(object(site, "Service", "dcgm-exporter")["spec"]["ports"][0]["port"], 9400);
}
