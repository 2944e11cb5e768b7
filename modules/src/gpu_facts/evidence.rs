//! What is seen of one host, as it travels to whoever judges it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::host::Map;

/// Everything on a host that decides whether pods can have its GPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// Whether it was looked at as root: else much can't be read.
    pub root: bool,
    /// What `nvidia_detect` returns.
    pub nvidia: Map,
    pub toolkit: Toolkit,
    pub repository: Repository,
    pub containerd: Containerd,
    pub kubelet: Kubelet,
    pub names: Names,
    /// The name under which containerd is expected to have NVIDIA's runtime.
    pub runtime_name: String,
    /// What could not be looked at, and why.
    pub unread: Vec<String>,
}

/// NVIDIA's container toolkit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Toolkit {
    /// Where its runtime is; absent where it is nowhere.
    pub runtime: Option<String>,
    /// Its packages, those that are installed.
    pub packages: BTreeMap<String, String>,
    /// The mode of its own configuration: `auto`, `legacy`, `cdi`, `csv`.
    pub mode: Option<String>,
    /// Settings of its configuration that keep containers from starting.
    pub faults: Vec<String>,
    /// Files in which CDI finds NVIDIA's devices.
    pub cdi: Vec<String>,
}

/// What the package manager knows of NVIDIA's repository.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Repository {
    /// `apt`, `dnf` or `zypper`, or empty where there is none that is understood.
    pub manager: String,
    pub sources: Vec<Source>,
    /// Files that are meant for NVIDIA's repository and name none, with their first line.
    pub idle: Vec<(String, String)>,
    /// What the package manager says against its sources.
    pub complaint: Option<String>,
    /// The toolkit's candidate and where it comes from.
    pub candidate: Option<String>,
    pub origins: Vec<String>,
}

/// One entry that names a repository of NVIDIA's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    pub path: String,
    pub uri: String,
    pub signed_by: Option<String>,
    /// What is wrong with the key's file.
    pub key_fault: Option<String>,
    /// A path that NVIDIA no longer serves.
    pub old: bool,
}

/// The container runtime.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Containerd {
    /// Who runs it: `containerd`, `k3s`, `rke2`, `k0s`, `microk8s`, `cri-o`, `docker`; empty where there is none.
    pub kind: String,
    /// What systemd says of its service.
    pub service: String,
    pub version: String,
    /// The file that it reads.
    pub config: String,
    /// Why it can't read that file, in its own words.
    pub fault: Option<String>,
    pub default_runtime: String,
    /// Each runtime's program and type, by name.
    pub runtimes: BTreeMap<String, Runtime>,
    /// Whether its CRI plugin is turned off.
    pub cri_disabled: bool,
    /// What the running daemon says of its CRI plugin: `ok`, `error`, `skip`; empty where it could not be asked.
    pub cri: String,
    /// Why it could not be asked.
    pub silence: Option<String>,
    /// The file was changed after the daemon had read it, so many seconds.
    pub unread_change_s: Option<i64>,
    /// Further files that it reads, or that lie where it does not look.
    pub other_files: Vec<String>,
    /// The last lines of its journal, where something is wrong.
    pub journal: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Runtime {
    pub binary: String,
    pub kind: String,
    pub systemd_cgroup: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kubelet {
    /// The systemd unit that runs it; empty where there is none.
    pub unit: String,
    /// What systemd says of it.
    pub service: String,
    pub cgroup_driver: Option<String>,
    /// Sockets and files in the folder of device plugins; absent where there is no such folder.
    pub device_plugins: Option<Vec<String>>,
    /// The last lines of its journal: all of them where it does not run, else those about GPUs and their pods.
    pub journal: Vec<String>,
}

/// What tells which node of a cluster a host is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Names {
    pub hostname: String,
    pub machine_id: String,
    pub addresses: Vec<String>,
}
