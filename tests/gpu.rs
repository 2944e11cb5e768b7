//! The main job, end to end: `gpu.yml` and `gpu-remove.yml` over booted hosts and a real cluster, judged by what is on the
//! hosts and in the API, not by what the program says.

mod common;

use std::collections::BTreeMap;

use common::gpu::{Site, changed_nothing, map, table_has, timed};
use common::sshd::must;

const GPU_HOSTS: [&str; 2] = ["gpu1", "gpu2"];
const OTHER_HOSTS: [&str; 2] = ["plain1", "nouveau1"];
const HOSTS: [&str; 4] = ["gpu1", "gpu2", "plain1", "nouveau1"];

#[test]
fn gpus_are_enabled_kept_and_taken_away_again() {
    let site = Site::up(&["gpu1:gpu", "gpu2:gpu", "plain1:none", "nouveau1:nouveau"]);
    timed("start a cluster, join 4 nodes", || site.fleet.cluster_up(&HOSTS));
    let before = site.disks(&HOSTS);
    HOSTS.iter().for_each(|host| assert_eq!(site.runtime(host), "runc"));

    a_check_before_changes_nothing(&site, &before);
    the_first_run_enables_what_has_gpus(&site, &before);
    a_second_run_and_a_check_change_nothing(&site);
    a_node_added_later_is_enabled_alone(&site);
    pods_get_whole_gpus(&site);
    a_running_container_keeps_its_runtime(&site);
    removing_leaves_nothing_behind(&site, &before);
}

fn a_check_before_changes_nothing(site: &Site, before: &BTreeMap<&'static str, String>) {
    let since = HOSTS.map(|host| site.started(host));
    let run = site.run("playbooks/gpu.yml", &["--check", "--diff"]).ended(0);
    for host in GPU_HOSTS {
        assert!(run.count(host, "changed") > 4, "{}", run.stdout);
        table_has(&run, host, &[host, "1", "550.163.01", "nvidia", "yes", "-", "would change"]);
    }
    for said in ["+deb [signed-by=", "BinaryName", "+nvidia.com/gpu.present", "+kind: DaemonSet", "1.19.1-1"] {
        assert!(run.stdout.contains(said), "no {said} in the diff:\n{}", run.stdout);
    }
    site.disks_are(before);
    assert_eq!(HOSTS.map(|host| site.started(host)), since, "containerd was restarted");
    assert!(site.labelled().is_empty() && site.applied().is_empty());
}

fn the_first_run_enables_what_has_gpus(site: &Site, before: &BTreeMap<&'static str, String>) {
    let config = |host: &str| site.fleet.see(host, "cat /etc/containerd/config.toml");
    let configs = GPU_HOSTS.map(config);
    let run = site.run("playbooks/gpu.yml", &[]).ended(0);
    for (&host, old) in GPU_HOSTS.iter().zip(&configs) {
        host_is_enabled(site, host);
        // Lines were added to the file; those that it had are there, each as it was and in their order.
        let new = config(host);
        let mut lines = new.lines();
        let lost: Vec<&str> = old.lines().filter(|line| !lines.any(|other| other == *line)).collect();
        assert!(lost.is_empty(), "{host}: lost {lost:#?}\n{new}");
        table_has(&run, host, &[host, "1", "550.163.01", "nvidia", "yes", "1", "ready"]);
    }
    table_has(&run, "plain1", &["-", "0", "-", "-", "-", "-", "no GPU"]);
    table_has(&run, "nouveau1", &["-", "1", "-", "-", "-", "-", "left alone"]);
    assert!(run.stdout.contains("nouveau1: the GPU is bound to nouveau"), "{}", run.stdout);
    for host in OTHER_HOSTS {
        site.disks_are(&BTreeMap::from([(host, before[host].clone())]));
        assert_eq!(site.runtime(host), "runc");
    }
    assert_eq!(site.labelled(), map(&[("gpu1", "yes"), ("gpu2", "yes")]));
    assert_eq!(site.plugin_nodes(), GPU_HOSTS);
    assert_eq!(site.allocatable(), map(&[("gpu1", "1"), ("gpu2", "1")]));
}

fn host_is_enabled(site: &Site, host: &str) {
    assert_eq!(site.runtime(host), "nvidia", "{host}");
    let seen = site.fleet.lab("fleet/cri-run", &[host, "-e", "NVIDIA_VISIBLE_DEVICES=all", "--", "ls", "/dev/nvidia0"]);
    assert!(seen.contains("output: /dev/nvidia0"), "{host}: {seen}");
    site.fleet.see(host, "systemctl is-active containerd");
    let plugins = site.fleet.see(host, "ctr plugins ls");
    let cri = plugins.lines().find(|line| line.split_whitespace().nth(1) == Some("cri"));
    assert!(cri.is_some_and(|line| line.trim_end().ends_with("ok")), "{host}: {plugins}");
    let toml = site.fleet.see(host, "cat /etc/containerd/config.toml");
    assert!(toml.contains("default_runtime_name = \"nvidia\""), "{host}: {toml}");
    let url = site.fleet.setting("LAB_REPO");
    let source = site.fleet.see(host, "cat /etc/apt/sources.list.d/nvidia-container-toolkit.list");
    let key = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg";
    assert_eq!(source, format!("deb [signed-by={key}] {url}/stable/deb/$(ARCH) /\n"), "{host}");
    for package in [
        "nvidia-container-toolkit",
        "nvidia-container-toolkit-base",
        "libnvidia-container-tools",
        "libnvidia-container1",
    ] {
        let policy = site.fleet.see(host, &format!("apt-cache policy {package}"));
        assert!(policy.contains("Installed: 1.19.1-1"), "{host}: {policy}");
        let installed = policy.split("*** 1.19.1-1").nth(1).unwrap_or_default();
        assert!(installed.contains(&url), "{host}: {package} is not from the repository: {policy}");
    }
    assert_eq!(
        site.fleet.see(host, "apt-mark showhold"),
        "libnvidia-container-tools\nlibnvidia-container1\nnvidia-container-toolkit\nnvidia-container-toolkit-base\n"
    );
    let keyring = site.fleet.see(host, "base64 --wrap 0 /usr/share/keyrings/nvidia-container-toolkit-keyring.gpg");
    let keys = must("sh", &["-c", &format!("echo {keyring} | base64 --decode | gpg --show-keys --with-colons")]);
    assert!(keys.contains(&site.fleet.setting("LAB_REPO_FINGERPRINT")), "{host}: {keys}");
}

fn a_second_run_and_a_check_change_nothing(site: &Site) {
    let (disks, since) = (site.disks(&HOSTS), HOSTS.map(|host| site.started(host)));
    changed_nothing(&site.run("playbooks/gpu.yml", &[]).ended(0), &HOSTS);
    changed_nothing(&site.run("playbooks/gpu.yml", &["--check", "--diff"]).ended(0), &HOSTS);
    site.disks_are(&disks);
    assert_eq!(HOSTS.map(|host| site.started(host)), since, "containerd was restarted");
}

/// It has four GPUs, its node is not called as the host is, and the cluster is reached through a control plane's file.
fn a_node_added_later_is_enabled_alone(site: &Site) {
    timed("boot and join a further host", || {
        site.fleet.fleet(&["add", "gpu3:gpus"]);
        site.fleet.write_inventory();
        site.fleet.join(&["gpu3=worker-7.example"]);
    });
    let admin = std::fs::read_to_string(site.fleet.kubeconfig()).expect("a kubeconfig");
    site.fleet.see(
        "plain1",
        &format!("umask 077; mkdir -p /etc/kubernetes; cat >/etc/kubernetes/admin.conf <<'END'\n{admin}\nEND"),
    );
    let (disks, since) = (site.disks(&HOSTS), HOSTS.map(|host| site.started(host)));
    let arguments = ["--limit", "gpu3", "-e", "gpu_control_plane=plain1"];
    let run = site.run_without_cluster("playbooks/gpu.yml", &arguments).ended(0);
    table_has(&run, "gpu3", &["worker-7.example", "4", "550.163.01", "nvidia", "yes", "4", "ready"]);
    host_is_enabled(site, "gpu3");
    site.disks_are(&disks);
    assert_eq!(HOSTS.map(|host| site.started(host)), since, "containerd was restarted on another host");
    assert_eq!(site.plugin_nodes(), ["gpu1", "gpu2", "worker-7.example"]);
    assert_eq!(site.allocatable(), map(&[("gpu1", "1"), ("gpu2", "1"), ("worker-7.example", "4")]));
    let again = site.run_without_cluster("playbooks/gpu.yml", &arguments).ended(0);
    changed_nothing(&again, &["gpu3"]);
    let left: Vec<_> = std::fs::read_dir(site.temporary()).expect("a folder").collect();
    assert!(left.is_empty(), "credentials are left here: {left:?}");
    site.fleet.see("plain1", "rm -r /etc/kubernetes/admin.conf; rmdir --ignore-fail-on-non-empty /etc/kubernetes");
}

/// The guide's example, as it is but for the image, which no registry can be asked for here.
fn pods_get_whole_gpus(site: &Site) {
    let guide = std::fs::read_to_string("docs/gpu.md").expect("the guide");
    let manifest =
        guide.split("```yaml\n").filter_map(|rest| rest.split("```").next()).find(|text| text.contains("kind: Pod"));
    let manifest = manifest.expect("a pod in the guide");
    assert_eq!(manifest.matches("nvidia.com/gpu: 1").count(), 2, "requests and limits: {manifest}");
    let image = manifest.lines().find_map(|line| line.trim().strip_prefix("image: ")).expect("an image");
    let runnable =
        manifest.replace(image, "lab.kubeon.run/shell:1").replace("[nvidia-smi, -L]", "[sh, -c, 'ls /dev/nvidia?']");
    let path = site.fleet.folder().join("pod.yml");
    std::fs::write(&path, runnable).expect("a writable folder");
    timed("a pod with a GPU", || {
        site.fleet.kubectl(&["apply", "--filename", path.to_str().expect("UTF-8")]);
        site.fleet.kubectl(&["wait", "pod/cuda", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s"]);
    });
    let seen = site.fleet.kubectl(&["logs", "cuda"]);
    assert!(seen.lines().count() == 1 && seen.starts_with("/dev/nvidia"), "not one GPU: {seen}");
    site.fleet.kubectl(&["delete", "pod", "cuda", "--wait"]);
}

/// A container that was started through NVIDIA's runtime could not be stopped without its program.
fn a_running_container_keeps_its_runtime(site: &Site) {
    let overrides = r#"{"spec": {"nodeName": "gpu2", "terminationGracePeriodSeconds": 0}}"#;
    let image = "--image=lab.kubeon.run/shell:1";
    site.fleet.kubectl(&["run", "busy", image, "--overrides", overrides, "--command", "--", "sleep", "1000"]);
    site.fleet.kubectl(&["wait", "pod/busy", "--for=condition=Ready", "--timeout=60s"]);
    let run = site.run("playbooks/gpu-remove.yml", &["--limit", "gpu2", "-e", "gpu_busy_wait_s=4"]).ended(2);
    assert!(run.stdout.contains("still run through NVIDIA's runtime"), "{}", run.stdout);
    site.fleet.see("gpu2", "test -x /usr/bin/nvidia-container-runtime && dpkg-query -W nvidia-container-toolkit");
    site.fleet.kubectl(&["delete", "pod", "busy", "--wait", "--timeout=60s"]);

    // And back again.
    site.run("playbooks/gpu.yml", &["--limit", "gpu2"]).ended(0);
    host_is_enabled(site, "gpu2");
}

fn removing_leaves_nothing_behind(site: &Site, before: &BTreeMap<&'static str, String>) {
    let check = site.run("playbooks/gpu-remove.yml", &["--check", "--diff"]).ended(0);
    assert!(check.count("gpu1", "changed") > 4, "{}", check.stdout);
    assert_eq!(site.allocatable().len(), 3);

    // One host alone: the others keep theirs.
    site.run("playbooks/gpu-remove.yml", &["--limit", "gpu3"]).ended(0);
    assert_eq!(site.labelled(), map(&[("gpu1", "yes"), ("gpu2", "yes")]));
    assert_eq!(site.plugin_nodes(), GPU_HOSTS);
    assert_eq!(site.runtime("gpu3"), "runc");

    site.run("playbooks/gpu-remove.yml", &[]).ended(0);
    site.disks_are(before);
    for host in HOSTS {
        assert_eq!(site.runtime(host), "runc");
        site.fleet.see(host, "systemctl is-active containerd");
        let policy = site.fleet.see(host, "apt-cache policy nvidia-container-toolkit");
        assert!(!policy.contains("1.19.1-1"), "{host}: {policy}");
    }
    assert!(site.labelled().is_empty() && site.plugin_nodes().is_empty());
    assert_eq!(site.applied(), Vec::<String>::new());
    // A kubelet takes up to ten seconds to say so.
    let none = r"--for=jsonpath={.status.allocatable.nvidia\.com/gpu}=0";
    for node in ["gpu1", "gpu2", "worker-7.example"] {
        site.fleet.kubectl(&["wait", &format!("node/{node}"), none, "--timeout=60s"]);
    }
    changed_nothing(&site.run("playbooks/gpu-remove.yml", &[]).ended(0), &HOSTS);
}

#[test]
fn hosts_that_cannot_be_given_gpus_are_left_alone_with_the_reason() {
    const LEFT: [&str; 3] = ["docker1", "old1", "mismatch1"];
    let site = Site::up(&["gpu1:gpu", "docker1:dockergpu", "old1:olddriver", "mismatch1:mismatch"]);
    let before = site.disks(&LEFT);
    let refused = site.run_without_cluster("playbooks/gpu.yml", &["-e", "with_nvidia=false"]).ended(0);
    changed_nothing(&refused, &["gpu1", "docker1", "old1", "mismatch1"]);
    table_has(&refused, "gpu1", &["-", "-", "-", "-", "-", "-", "not asked"]);

    let run = site.run_without_cluster("playbooks/gpu.yml", &[]).ended(0);
    table_has(&run, "docker1", &["-", "1", "550.163.01", "-", "-", "-", "refused"]);
    table_has(&run, "old1", &["-", "1", "375.66", "-", "-", "-", "left alone"]);
    table_has(&run, "mismatch1", &["-", "1", "550.163.01", "-", "-", "-", "left alone"]);
    for said in
        ["docker1: ", "old1: the driver 375.66 is older than 384.81", "mismatch1: driver/library version mismatch"]
    {
        assert!(run.stdout.contains(said), "no `{said}` in:\n{}", run.stdout);
    }
    assert!(run.stdout.lines().any(|line| line.contains("docker1: ") && line.contains("Docker")), "{}", run.stdout);
    site.disks_are(&before);

    // Without a cluster the host itself is enabled, and the table says what was left out.
    table_has(&run, "gpu1", &["-", "1", "550.163.01", "nvidia", "-", "-", "not in a cluster"]);
    host_is_enabled(&site, "gpu1");
    changed_nothing(&site.run_without_cluster("playbooks/gpu.yml", &[]).ended(0), &["gpu1"]);

    // A virtual GPU's licence daemon, as far as a host can tell.
    site.fleet.see(
        "gpu1",
        "mkdir -p /etc/nvidia; touch /etc/nvidia/gridd.conf
         printf '[Service]\\nExecStart=/bin/sleep 1000\\n' >/etc/systemd/system/nvidia-gridd.service
         systemctl daemon-reload; systemctl start nvidia-gridd",
    );
    let licensed = site.run_without_cluster("playbooks/gpu.yml", &["--limit", "gpu1"]).ended(0);
    let driver = "550.163.01, nvidia-gridd active";
    table_has(&licensed, "gpu1", &["-", "1", driver, "nvidia", "-", "-", "not in a cluster"]);

    let strict = site.run_without_cluster("playbooks/gpu.yml", &["-e", "gpu_strict=true"]).ended(2);
    LEFT.iter().for_each(|host| assert_eq!(strict.count(host, "failed"), 1, "{}", strict.stdout));
    assert_eq!(strict.count("gpu1", "failed"), 0, "{}", strict.stdout);

    an_installer_is_run_where_the_driver_is_too_old(&site);
}

/// A stand-in for NVIDIA's installer, which only notes how it is called.
fn an_installer_is_run_where_the_driver_is_too_old(site: &Site) {
    let installer = site.fleet.folder().join("NVIDIA-Linux-x86_64-550.163.01.run");
    std::fs::write(&installer, "#!/bin/sh\necho \"$@\" >/root/installed\n").expect("a writable folder");
    let variable = format!("nvidia_driver_runfile={}", installer.display());
    site.run_without_cluster("playbooks/gpu.yml", &["-e", &variable]).ended(0);
    assert_eq!(site.fleet.see("old1", "cat /root/installed"), "--silent --disable-nouveau\n");
    for host in ["gpu1", "docker1", "mismatch1"] {
        assert!(!site.fleet.try_see(host, "test -e /root/installed").status.success(), "{host} has a driver");
    }
}

/// A failing repository stops the run after the first wave, and the host that was changed so far is as it was.
#[test]
fn a_wave_that_fails_is_the_last_one() {
    let site = Site::up(&["gpu1:gpu", "gpu2:gpu"]);
    let before = site.disks(&["gpu2"]);
    let gateway = site.fleet.setting("LAB_GATEWAY");
    let mirror = format!("gpu_repository_url=http://{gateway}/wrongkey/stable/deb/$(ARCH)");
    let key = format!("gpu_repository_key_url=http://{gateway}/wrongkey/gpgkey");
    let run = site.run_without_cluster("playbooks/gpu.yml", &["-e", &mirror, "-e", &key]).ended(2);
    table_has(&run, "gpu1", &["-", "1", "550.163.01", "-", "-", "-", "FAILED"]);
    table_has(&run, "gpu2", &["-", "-", "-", "-", "-", "-", "not reached"]);
    assert!(run.stdout.contains("gpu2: stopped, as gpu1 failed"), "{}", run.stdout);
    site.disks_are(&before);
    let sources = site.fleet.see("gpu1", "ls /etc/apt/sources.list.d");
    assert!(!sources.contains("nvidia"), "{sources}");
}
