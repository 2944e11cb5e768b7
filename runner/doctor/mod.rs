//! Why a node's GPU is not seen: the chain from the PCI bus to a pod's request, and what breaks each of its links.
//!
//! What was seen of hosts and of the cluster goes in, diagnoses come out; nothing here asks anybody. `table` holds every
//! diagnosis as data, `host` and `cluster` tell by what was seen which of them holds, `text` by what a log says.

pub mod cluster;
pub mod host;
pub mod page;
pub mod show;
pub mod table;
pub mod text;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// One link of the chain, in the order in which each needs those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// The host answers.
    Connection,
    /// A GPU is on the bus, and in order.
    Hardware,
    /// The kernel module is loaded and has it.
    Driver,
    /// The driver's libraries are those of the kernel module.
    Library,
    /// The toolkit's packages can be had.
    Repository,
    /// NVIDIA's container toolkit is installed.
    Toolkit,
    /// The container runtime runs and knows NVIDIA's runtime.
    Containerd,
    /// It answers the kubelet.
    Cri,
    /// The kubelet runs, and the host is a node that is ready.
    Kubelet,
    /// NVIDIA's device plugin is in the cluster.
    DevicePlugin,
    /// The node has the label by which the device plugin is placed.
    Label,
    /// The device plugin tolerates the node's taints.
    Taint,
    /// The device plugin's pod runs on the node.
    PluginPod,
    /// The node offers its GPUs.
    Allocatable,
    /// Pods ask for them in a way that can be granted.
    Pod,
}

impl Link {
    pub const ALL: [Link; 15] = [
        Link::Connection,
        Link::Hardware,
        Link::Driver,
        Link::Library,
        Link::Repository,
        Link::Toolkit,
        Link::Containerd,
        Link::Cri,
        Link::Kubelet,
        Link::DevicePlugin,
        Link::Label,
        Link::Taint,
        Link::PluginPod,
        Link::Allocatable,
        Link::Pod,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Link::Connection => "connection",
            Link::Hardware => "hardware",
            Link::Driver => "driver",
            Link::Library => "library",
            Link::Repository => "repository",
            Link::Toolkit => "toolkit",
            Link::Containerd => "containerd",
            Link::Cri => "CRI",
            Link::Kubelet => "kubelet",
            Link::DevicePlugin => "device plugin",
            Link::Label => "label",
            Link::Taint => "taint",
            Link::PluginPod => "plugin's pod",
            Link::Allocatable => "allocatable",
            Link::Pod => "pods",
        }
    }

    /// Whether it is looked at on the host, and not in the cluster.
    pub fn is_of_host(self) -> bool {
        self < Link::Kubelet
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// GPUs can be had, and something will get in their way.
    Warning,
    /// GPUs can't be had.
    Error,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// Who has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Whoever has root on the host.
    Host,
    /// Whoever has the machine itself in hand: the data centre, the cloud.
    Machine,
    /// Whoever runs the cluster.
    Cluster,
    /// NVIDIA's driver package, or whoever installed it.
    DriverPackage,
    /// NVIDIA's container toolkit, or whoever installed it.
    ToolkitPackage,
    /// k3s, RKE2, k0s, MicroK8s, Talos, a cloud's image: what generates the node's configuration.
    Distribution,
    /// NVIDIA's GPU operator and whoever set its values.
    Operator,
    /// Whoever wrote the pod.
    Workload,
}

impl Owner {
    pub fn name(self) -> &'static str {
        match self {
            Owner::Host => "the host's administrator",
            Owner::Machine => "whoever provides the machine: data centre or cloud",
            Owner::Cluster => "the cluster's administrator",
            Owner::DriverPackage => "whoever installs NVIDIA's driver",
            Owner::ToolkitPackage => "whoever installs NVIDIA's container toolkit",
            Owner::Distribution => "whoever configures the Kubernetes distribution",
            Owner::Operator => "whoever configures NVIDIA's GPU operator",
            Owner::Workload => "whoever wrote the pod",
        }
    }
}

/// The part of `playbooks/gpu.yml` that mends something: a tag of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Repository,
    Containerd,
    Label,
    Plugin,
}

impl Step {
    pub fn tag(self) -> &'static str {
        match self {
            Step::Repository => "repository",
            Step::Containerd => "containerd",
            Step::Label => "label",
            Step::Plugin => "plugin",
        }
    }
}

/// One thing that can be wrong.
#[derive(Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// What programs and people call it, for good.
    pub id: &'static str,
    pub link: Link,
    pub severity: Severity,
    pub owner: Owner,
    /// What is wrong, in a few words.
    pub what: &'static str,
    /// Why GPUs are not seen then.
    pub why: &'static str,
    /// What to do.
    pub fix: &'static str,
    /// What of the playbook does it.
    pub step: Option<Step>,
    /// What logs, events and commands say of it: words in this order within a line, `*` for anything between.
    pub says: &'static [&'static str],
    /// Public reports of it, as `owner/repository#number`.
    pub issues: &'static [&'static str],
}

/// A diagnosis that holds, with what shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub diagnosis: &'static Diagnosis,
    /// What was seen, one piece of evidence a line.
    pub seen: Vec<String>,
    /// The file that is to blame, where it is one.
    pub file: Option<String>,
    /// More exact than the diagnosis's own.
    pub fix: Option<String>,
}

impl Finding {
    pub fn new(diagnosis: &'static Diagnosis, seen: impl Into<String>) -> Finding {
        Finding { diagnosis, seen: vec![seen.into()], file: None, fix: None }
    }

    #[must_use]
    pub fn also(mut self, seen: impl Into<String>) -> Finding {
        self.seen.push(seen.into());
        self
    }

    #[must_use]
    pub fn in_file(mut self, file: impl Into<String>) -> Finding {
        self.file = Some(file.into());
        self
    }

    /// Says how to mend it here.
    #[must_use]
    pub fn by(mut self, fix: impl Into<String>) -> Finding {
        self.fix = Some(fix.into());
        self
    }

    pub fn fix(&self) -> &str {
        self.fix.as_deref().unwrap_or(self.diagnosis.fix)
    }
}

/// What became of one host, of a node that is no host of the inventory, or of the cluster as a whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Subject {
    pub name: String,
    /// The cluster's name for it.
    pub node: Option<String>,
    /// Whether this is the cluster as a whole.
    pub is_cluster: bool,
    /// Whether this is a host that was asked, and not only a node.
    pub is_host: bool,
    /// The links that are in order, each with what was seen.
    pub fine: BTreeMap<Link, String>,
    pub findings: Vec<Finding>,
    /// What could not be looked at, and why.
    pub unread: Vec<String>,
    /// Whether there is a GPU to be seen at all.
    pub has_gpu: bool,
}

impl Subject {
    pub fn find(&mut self, finding: Finding) {
        if let Some(known) = self.findings.iter_mut().find(|known| known.diagnosis.id == finding.diagnosis.id) {
            for seen in finding.seen {
                if !known.seen.contains(&seen) {
                    known.seen.push(seen);
                }
            }
            return;
        }
        self.findings.push(finding);
    }

    pub fn fine(&mut self, link: Link, seen: impl Into<String>) {
        self.fine.insert(link, seen.into());
    }

    /// Puts findings into the chain's order, the worst first within a link.
    pub fn settle(&mut self) {
        self.findings.sort_by_key(|finding| (finding.diagnosis.link, std::cmp::Reverse(finding.diagnosis.severity)));
    }

    /// Returns the first link at which GPUs can't pass.
    pub fn broken(&self) -> Option<Link> {
        let errors = self.findings.iter().filter(|finding| finding.diagnosis.severity == Severity::Error);
        errors.map(|finding| finding.diagnosis.link).min()
    }

    /// Returns whether a link is broken, doubtful, in order, or was not looked at.
    pub fn state(&self, link: Link) -> State {
        let worst = self.findings.iter().filter(|finding| finding.diagnosis.link == link);
        match worst.map(|finding| finding.diagnosis.severity).max() {
            Some(Severity::Error) => State::Broken,
            Some(Severity::Warning) => State::Doubtful,
            Some(Severity::Note) | None if self.fine.contains_key(&link) => State::Fine,
            Some(Severity::Note) => State::Noted,
            None => State::Unknown,
        }
    }

    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.diagnosis.severity).max()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Fine,
    Noted,
    Doubtful,
    Broken,
    Unknown,
}

/// Everything that was looked at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    pub subjects: Vec<Subject>,
    /// What is true of the whole, such as that no cluster was looked at.
    pub remarks: Vec<String>,
}

/// Exit statuses, by what is worst.
pub const EXIT_FINE: u8 = 0;
pub const EXIT_BROKEN: u8 = 2;
pub const EXIT_DOUBTFUL: u8 = 3;
pub const EXIT_UNREACHABLE: u8 = 4;

impl Report {
    /// Returns the exit status: 2 where GPUs can't be had, 4 where a host could not be reached, 6 where both are so, 3
    /// where something will get in their way, else 0.
    pub fn code(&self) -> u8 {
        let broken = |wanted: bool| {
            let links = self.subjects.iter().filter_map(Subject::broken);
            links.filter(|link| (*link == Link::Connection) == wanted).count() > 0
        };
        let (unreachable, broken) = (broken(true), broken(false));
        match (unreachable, broken) {
            (false, false) if self.subjects.iter().any(|subject| subject.worst() == Some(Severity::Warning)) => {
                EXIT_DOUBTFUL
            }
            (false, false) => EXIT_FINE,
            (false, true) => EXIT_BROKEN,
            (true, false) => EXIT_UNREACHABLE,
            (true, true) => EXIT_BROKEN | EXIT_UNREACHABLE,
        }
    }
}
