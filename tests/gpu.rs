//! The main job, end to end: `gpu.yml` and `gpu-remove.yml` over booted hosts and a real cluster, judged by what is on the
//! hosts and in the API, not by what the program says.

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use common::lab::{Fleet, Run};
use common::sshd::must;
use serde_json::Value;

const GPU_HOSTS: [&str; 2] = ["gpu1", "gpu2"];
const OTHER_HOSTS: [&str; 2] = ["plain1", "nouveau1"];
const HOSTS: [&str; 4] = ["gpu1", "gpu2", "plain1", "nouveau1"];
const LABEL: &str = "nvidia.com/gpu.present";

/// Hosts, most of which are nodes of a cluster, and how the playbooks are run over them.
struct Site {
    fleet: Fleet,
    variables: String,
}

impl Site {
    fn up(hosts: &[&str]) -> Site {
        let fleet = timed("boot hosts", || Fleet::up(hosts));
        let variables = fleet.folder().join("variables.yml");
        let text = format!(
            "gpu_repository_url: {}/stable/deb/$(ARCH)\ngpu_repository_fingerprint: {}\n",
            fleet.setting("LAB_REPO"),
            fleet.setting("LAB_REPO_FINGERPRINT")
        );
        std::fs::write(&variables, text).expect("a writable folder");
        let variables = format!("@{}", variables.display());
        Site { fleet, variables }
    }

    /// Returns the folder for temporary files of this machine.
    fn temporary(&self) -> PathBuf {
        let folder = self.fleet.folder().join("tmp");
        std::fs::create_dir_all(&folder).expect("a writable folder");
        folder
    }

    /// Runs a playbook as somebody with no kubeconfig would.
    fn run_without_cluster(&self, playbook: &str, arguments: &[&str]) -> Run {
        let mut command = self.fleet.command(&[playbook, "-T", "60", "-e", &self.variables]);
        command.args(arguments).env_remove("KUBECONFIG").env("TMPDIR", self.temporary());
        timed(&format!("{playbook} {}", arguments.join(" ")), || Run::of(command.output().expect("the program starts")))
    }

    fn run(&self, playbook: &str, arguments: &[&str]) -> Run {
        let kubeconfig = format!("kubeconfig={}", self.fleet.kubeconfig());
        let mut all = vec!["-e", kubeconfig.as_str()];
        all.extend(arguments);
        self.run_without_cluster(playbook, &all)
    }

    /// Returns all that a run might change on a host's disk: files, of `/usr` their sizes and of the others their content,
    /// links, modes, owners, packages.
    fn disk(&self, host: &str) -> String {
        self.fleet.see(
            host,
            "cd /; find etc usr opt root srv var/lib/systemd -xdev -path root/.cache -prune -o \
               ! -type d -printf '%p %y %m %u %g %s %l\\n' -o -printf '%p %y %m %u %g\\n' | sort
             find etc opt root srv -xdev -path root/.cache -prune -o -type f -print0 | sort -z | xargs -0 sha256sum
             ls -1 var/lib | grep -v '^cni$'; dpkg-query -W",
        )
    }

    fn disks(&self, hosts: &[&'static str]) -> BTreeMap<&'static str, String> {
        hosts.iter().map(|host| (*host, self.disk(host))).collect()
    }

    #[track_caller]
    fn disks_are(&self, before: &BTreeMap<&'static str, String>) {
        for (host, disk) in before {
            let now = self.disk(host);
            let lines = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
            let (was, is) = (lines(disk), lines(&now));
            let changed: Vec<_> = was.symmetric_difference(&is).collect();
            assert!(changed.is_empty(), "the disk of {host} has changed: {changed:#?}");
        }
    }

    /// Returns when containerd was started last.
    fn started(&self, host: &str) -> String {
        self.fleet.see(host, "systemctl show --property ActiveEnterTimestampMonotonic containerd")
    }

    /// Returns the program that starts a container which asks for nothing.
    fn runtime(&self, host: &str) -> String {
        let said = self.fleet.lab("fleet/cri-run", &[host]);
        let ran = said.lines().find_map(|line| line.strip_prefix("ran: "));
        ran.unwrap_or_else(|| panic!("{host}: {said}")).to_owned()
    }

    /// Returns the nodes that have the label, each with its value.
    fn labelled(&self) -> BTreeMap<String, String> {
        let nodes = self.fleet.objects(&["nodes"]);
        let label = |node: &Value| Some((name(node), node["metadata"]["labels"][LABEL].as_str()?.to_owned()));
        nodes.iter().filter_map(label).collect()
    }

    /// Returns the nodes on which the device plugin's pods are ready.
    fn plugin_nodes(&self) -> Vec<String> {
        let pods =
            self.fleet.objects(&["pods", "--namespace", "kube-system", "--selector", "name=nvidia-device-plugin-ds"]);
        let ready = |pod: &&Value| pod["status"]["containerStatuses"][0]["ready"] == true;
        let mut nodes: Vec<String> = pods.iter().filter(ready).map(|pod| text(&pod["spec"]["nodeName"])).collect();
        nodes.sort();
        nodes
    }

    /// Returns how many GPUs pods can have, by node.
    fn allocatable(&self) -> BTreeMap<String, String> {
        let nodes = self.fleet.objects(&["nodes"]);
        let offered =
            |node: &Value| Some((name(node), node["status"]["allocatable"]["nvidia.com/gpu"].as_str()?.to_owned()));
        nodes.iter().filter_map(offered).filter(|(_, count)| count != "0").collect()
    }

    /// Returns what the playbook has applied to the cluster.
    fn applied(&self) -> Vec<String> {
        let objects = self.fleet.objects(&["daemonsets,configmaps,services,runtimeclasses", "--all-namespaces"]);
        objects.iter().map(name).filter(|name| name.contains("nvidia") || name.contains("kubeon-run")).collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn name(object: &Value) -> String {
    text(&object["metadata"]["name"])
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Does a part and prints what it took.
fn timed<T>(what: &str, part: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let made = part();
    println!("{:6.1} s  {what}", start.elapsed().as_secs_f64());
    made
}

#[track_caller]
fn changed_nothing(run: &Run, hosts: &[&str]) {
    for host in hosts {
        assert_eq!(run.count(host, "changed"), 0, "{host}:\n{}", run.stdout);
    }
    assert!(!run.stdout.contains("+++ after"), "a diff where nothing changes:\n{}", run.stdout);
}

/// Asserts that the table at the end has these cells of a host's line, in this order.
#[track_caller]
fn table_has(run: &Run, host: &str, cells: &[&str]) {
    let line =
        run.stdout.lines().map(|line| line.trim().trim_matches(['"', ','])).find(|line| {
            line.split_whitespace().next() == Some(host) && !line.contains(" : ok=") && !line.contains(": [")
        });
    let line = line.unwrap_or_else(|| panic!("no line of {host} in the table:\n{}\n{}", run.stdout, run.stderr));
    let found: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).skip(1).collect();
    assert_eq!(found, cells, "{}", run.stdout);
}

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
    let run = site.run("playbooks/gpu.yml", &[]).ended(0);
    for host in GPU_HOSTS {
        host_is_enabled(site, host);
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
    let toml = site.fleet.see(host, "cat /etc/containerd/config.toml");
    assert!(toml.contains("default_runtime_name = \"nvidia\""), "{host}: {toml}");
    let url = site.fleet.setting("LAB_REPO");
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
    assert!(site.allocatable().is_empty());
    changed_nothing(&site.run("playbooks/gpu-remove.yml", &[]).ended(0), &HOSTS);
}

#[test]
fn hosts_that_cannot_be_given_gpus_are_left_alone_with_the_reason() {
    const LEFT: [&str; 3] = ["docker1", "old1", "mismatch1"];
    let site = Site::up(&["gpu1:gpu", "docker1:dockergpu", "old1:olddriver", "mismatch1:mismatch"]);
    let before = site.disks(&LEFT);
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
