//! The container runtime and the kubelet: whether they run, what they say, what they are set to.

use crate::containerd_runtime::{self, Look};
use crate::facts::Files;
use crate::gpu_facts::evidence::{Containerd, Kubelet};
use crate::{Error, Host, Probe};

/// How many lines of a journal are kept.
const KEPT: usize = 60;
/// Distributions that bring a containerd of their own: a folder that gives each away, and the unit that runs it.
const DISTRIBUTIONS: [(&str, &str, &[&str]); 4] = [
    ("rke2", "/var/lib/rancher/rke2/agent/etc/containerd", &["rke2-agent", "rke2-server"]),
    ("k3s", "/var/lib/rancher/k3s/agent/etc/containerd", &["k3s-agent", "k3s"]),
    ("k0s", "/etc/k0s/containerd.toml", &["k0sworker", "k0scontroller"]),
    (
        "microk8s",
        "/var/snap/microk8s/current/args",
        &["snap.microk8s.daemon-containerd", "snap.microk8s.daemon-kubelite"],
    ),
];

/// A systemd unit.
struct Unit {
    name: String,
    loaded: bool,
    /// `active`, `inactive`, `failed`, `activating`, …
    state: String,
    /// Seconds since 1970 at which it became active.
    started_s: Option<f64>,
}

impl Unit {
    fn ask(host: &dyn Host, name: &str) -> Unit {
        let words =
            ["systemctl", "show", "--property=LoadState,ActiveState,ActiveEnterTimestampMonotonic", "--no-pager", name];
        let said = host.probe(&Probe::of(&words)).map(|output| output.stdout).unwrap_or_default();
        let value = |key: &str| said.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().to_owned();
        let up_s = Files(host).text("/proc/uptime").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        let entered_s = value("ActiveEnterTimestampMonotonic=").parse::<f64>().ok().map(|number| number / 1e6);
        let started_s = match (up_s, entered_s) {
            (Some(up_s), Some(entered_s)) if entered_s > 0.0 => Some(host.started_s() - up_s + entered_s),
            (_, _) => None,
        };
        Unit { name: name.to_owned(), loaded: value("LoadState=") == "loaded", state: value("ActiveState="), started_s }
    }
}

/// Looks at the container runtime.
pub(super) fn containerd(host: &dyn Host, unread: &mut Vec<String>) -> Containerd {
    let files = Files(host);
    for (kind, folder, units) in DISTRIBUTIONS {
        if files.exists(folder) {
            return of_distribution(host, kind, folder, units);
        }
    }
    let own = Unit::ask(host, "containerd");
    if !own.loaded {
        for (kind, unit) in [("cri-o", "crio"), ("docker", "docker")] {
            let unit = Unit::ask(host, unit);
            if unit.loaded {
                let mut found =
                    Containerd { kind: kind.to_owned(), service: unit.state.clone(), ..Containerd::default() };
                found.other_files = if kind == "cri-o" { of_crio(files) } else { Vec::new() };
                if unit.state != "active" {
                    found.journal = journal(host, &unit.name);
                }
                return found;
            }
        }
    }
    match containerd_runtime::look(host) {
        Ok(look) => usual(host, own, look),
        Err(error) => {
            if own.loaded {
                unread.push(format!("containerd: {error}"));
            }
            let service = if own.loaded { own.state } else { String::new() };
            let kind = if own.loaded { "containerd" } else { "" };
            Containerd { kind: kind.to_owned(), service, ..Containerd::default() }
        }
    }
}

fn usual(host: &dyn Host, unit: Unit, look: Look) -> Containerd {
    let mut found = Containerd { service: unit.state.clone(), ..look.found };
    let changed_s = host.stat(&found.config).ok().flatten().map(|stat| stat.modified_s);
    if let (Some(started_s), Some(changed_s), "active") = (unit.started_s, changed_s, unit.state.as_str()) {
        // Times of files are whole seconds.
        let late_s = changed_s as f64 - started_s;
        found.unread_change_s = (late_s > 2.0).then_some(late_s as i64);
    }
    if unit.state == "active" || !unit.loaded {
        match cri_of(host, &look.ctr, &look.address) {
            Ok(state) => found.cri = state,
            Err(error) => found.silence = Some(error.message.clone()),
        }
    }
    if found.service != "active" || found.cri != "ok" || found.fault.is_some() {
        found.journal = journal(host, &unit.name);
    }
    // A folder that older toolkits wrote to, and that no containerd reads.
    if Files(host).exists("/etc/containerd/config.d/99-nvidia.toml") {
        found.other_files.push("/etc/containerd/config.d/99-nvidia.toml".to_owned());
    }
    found
}

/// Asks the running daemon for its CRI plugin.
fn cri_of(host: &dyn Host, ctr: &str, address: &str) -> Result<String, Error> {
    let probe = Probe { timeout_s: Some(20), ..Probe::of(&[ctr, "--address", address, "plugins", "ls"]) };
    let output = host.probe(&probe)?;
    if !output.success() {
        let said = output.stderr.lines().last().unwrap_or("it says nothing").trim().to_owned();
        return Err(Error::new(crate::ErrorKind::Host, said));
    }
    let line = output.stdout.lines().find(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("io.containerd.grpc.v1") && words.next() == Some("cri")
    });
    Ok(line.and_then(|line| line.split_whitespace().next_back()).unwrap_or("absent").to_owned())
}

/// A distribution that generates its containerd's configuration: does what it generated know NVIDIA's runtime?
fn of_distribution(host: &dyn Host, kind: &str, folder: &str, units: &[&str]) -> Containerd {
    let files = Files(host);
    let units: Vec<Unit> = units.iter().map(|name| Unit::ask(host, name)).filter(|unit| unit.loaded).collect();
    let unit = units.iter().find(|unit| unit.state == "active").or_else(|| units.first());
    let mut found = Containerd { kind: kind.to_owned(), ..Containerd::default() };
    found.service = unit.map(|unit| unit.state.clone()).unwrap_or_default();
    found.config = match kind {
        "k0s" => folder.to_owned(),
        "microk8s" => format!("{folder}/containerd.toml"),
        _ => format!("{folder}/config.toml"),
    };
    let mut texts = vec![files.text(&found.config).unwrap_or_default()];
    if kind == "k0s" {
        let names = files.names("/etc/k0s/containerd.d");
        texts.extend(names.iter().filter_map(|name| files.text(&format!("/etc/k0s/containerd.d/{name}"))));
        found.other_files.extend(names.iter().map(|name| format!("/etc/k0s/containerd.d/{name}")));
    }
    for text in texts {
        containerd_runtime::runtimes_written(&text, &mut found);
    }
    if let Some(unit) = unit.filter(|unit| unit.state != "active") {
        found.journal = journal(host, &unit.name);
    }
    found
}

/// Returns the drop-ins of CRI-O that name NVIDIA's runtime.
fn of_crio(files: Files<'_>) -> Vec<String> {
    let folder = "/etc/crio/crio.conf.d";
    let names = files.names(folder).into_iter().map(|name| format!("{folder}/{name}"));
    names.filter(|path| files.text(path).is_some_and(|text| text.contains("nvidia-container-runtime"))).collect()
}

/// Units that may run the kubelet.
const KUBELETS: [&str; 8] = [
    "kubelet",
    "k3s-agent",
    "k3s",
    "rke2-agent",
    "rke2-server",
    "k0sworker",
    "k0scontroller",
    "snap.microk8s.daemon-kubelite",
];

/// Looks at the kubelet.
pub(super) fn kubelet(host: &dyn Host) -> Kubelet {
    let files = Files(host);
    let mut found = Kubelet::default();
    let unit = KUBELETS.iter().map(|name| Unit::ask(host, name)).find(|unit| unit.loaded);
    if let Some(unit) = unit {
        found.unit.clone_from(&unit.name);
        found.service.clone_from(&unit.state);
        let lines = journal(host, &unit.name);
        let about = |line: &String| {
            let line = line.to_ascii_lowercase();
            ["nvidia", "device plugin", "deviceplugin", "sandbox runtime", "runtimehandler"]
                .iter()
                .any(|word| line.contains(word))
        };
        let all = unit.state != "active";
        found.journal = lines.into_iter().filter(|line| all || about(line)).collect();
    }
    let config = files.text("/var/lib/kubelet/config.yaml").unwrap_or_default();
    let driver = config.lines().find_map(|line| line.strip_prefix("cgroupDriver:"));
    found.cgroup_driver = driver.map(|driver| driver.trim().trim_matches(['"', '\'']).to_owned());
    found.device_plugins = host.list("/var/lib/kubelet/device-plugins").ok().flatten();
    found
}

/// Returns the last lines of a unit's journal since the machine booted.
fn journal(host: &dyn Host, unit: &str) -> Vec<String> {
    let words = ["journalctl", "--unit", unit, "--boot", "--lines", "200", "--quiet", "--no-pager", "--output", "cat"];
    let said =
        host.probe(&Probe { timeout_s: Some(20), ..Probe::of(&words) }).map(|output| output.stdout).unwrap_or_default();
    let mut lines: Vec<String> = said.lines().map(|line| line.chars().take(1000).collect()).collect();
    lines.drain(..lines.len().saturating_sub(KEPT));
    lines
}
