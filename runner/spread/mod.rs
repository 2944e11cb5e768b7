//! A run whose hosts are spread over the pods of a Kubernetes Indexed Job: what the pods are given, how they are followed,
//! and how what they tell becomes one run.
//!
//! The Job controller is the engine: it starts a pod for each shard and starts it again when it is lost. Each pod runs
//! `kubeon-run shard`, which unpacks the project and becomes a plain run over its part of the hosts.

pub mod bundle;
pub mod job;
pub mod pod;
mod seen;
mod state;
mod watch;
pub mod words;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::report::HostName;

pub use watch::{Ended, Watch};

/// The label by which what belongs to a spread run is found.
pub const LABEL: &str = "kubeon.run/spread";
/// The annotation of the Job that holds its [`Plan`].
pub const PLAN: &str = "kubeon.run/plan";
/// The annotation of a pod that says how far it may go.
pub const GATE: &str = "kubeon.run/gate";
/// The key of a ConfigMap that holds the names of the hosts, packed.
pub const HOSTS: &str = "hosts.gz";

/// What whoever follows a spread run has to know of it; kept with the Job, so that another process can take over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub shards: usize,
    /// Whether shards wait for one another before each play and batch.
    pub gated: bool,
    /// Absolute paths on the machine that has launched the run.
    pub playbooks: Vec<PathBuf>,
    pub check: bool,
    /// Where the project lies on that machine.
    pub project: PathBuf,
    /// The version of the program that has launched it.
    pub version: String,
}

/// Returns what tells some hosts from others.
pub fn digest(hosts: &[HostName]) -> String {
    let mut sum = Sha256::new();
    for host in hosts {
        sum.update(host.as_bytes());
        sum.update([0]);
    }
    sum.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
