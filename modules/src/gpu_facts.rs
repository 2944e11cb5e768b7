pub mod evidence;
mod services;
mod toolkit;

use schemars::JsonSchema;
use serde_json::Value;

use crate::decode::{Arguments, arguments};
use crate::facts::Files;
use crate::gpu_facts::evidence::{Evidence, Names, Repository};
use crate::host::Map;
use crate::{Error, ErrorKind, Host, Module, Plan, apt_repo, nvidia_detect, rpm_repo, setup};

/// Gather everything on a host that decides whether pods can have its NVIDIA GPUs.
///
/// ```yaml
/// - gpu_facts:
///   register: host
/// - debug:
///     msg: "{{ host.containerd.runtimes }}"
/// ```
///
/// It reads and never changes anything. `kubeon-run doctor` asks for it on every host and says what is wrong. The result
/// holds
///
/// - `nvidia`: what `nvidia_detect` returns
/// - `toolkit`: NVIDIA's container toolkit: its `runtime`, its `packages` and where their candidates come from
/// - `repository`: the `sources` that name NVIDIA's repository, their keys, and what the package manager says against
///   them
/// - `containerd`: its service, version, configuration and runtimes, the state of its CRI plugin, and the end of its
///   journal where something is wrong
/// - `kubelet`: its service, its device plugins' sockets, and what its journal has about GPUs
/// - `names`: what tells which node of a cluster this host is
/// - `unread`: what could not be looked at, and why
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The oldest driver that will do.
    #[serde(default = "oldest_driver")]
    minimum_driver: String,
    /// NVIDIA's runtime program.
    #[serde(default = "usual_binary")]
    binary: String,
    /// The runtime's name in containerd.
    #[serde(default = "usual_name")]
    runtime_name: String,
}

fn oldest_driver() -> String {
    "384.81".to_owned()
}

fn usual_binary() -> String {
    "/usr/bin/nvidia-container-runtime".to_owned()
}

fn usual_name() -> String {
    "nvidia".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let mut unread = Vec::new();
        let mut take = |what: &str, found: Result<Map, Error>| {
            found.unwrap_or_else(|error| {
                unread.push(format!("{what}: {error}"));
                Map::new()
            })
        };
        let detect = Map::from_iter([("minimum_driver".to_owned(), Value::from(self.minimum_driver.as_str()))]);
        let mut nvidia = take("the driver", result_of::<nvidia_detect::Args>(host, &detect));
        nvidia.remove("nvidia");
        let network = Map::from_iter([("gather_subset".to_owned(), Value::from(vec!["network"]))]);
        let network = take("the network", result_of::<setup::Args>(host, &network));
        let mut evidence =
            Evidence { root: host.uid() == 0, nvidia, names: names(host, &network), ..Evidence::default() };
        evidence.toolkit = toolkit::look(host, &self.binary, &mut unread);
        evidence.repository = repository(host).unwrap_or_else(|error| {
            unread.push(format!("the package manager: {error}"));
            Default::default()
        });
        evidence.containerd = services::containerd(host, &mut unread);
        evidence.kubelet = services::kubelet(host);
        evidence.unread = unread;
        evidence.runtime_name.clone_from(&self.runtime_name);
        match serde_json::to_value(&evidence) {
            Ok(Value::Object(result)) => Ok(Plan { result, ..Plan::default() }),
            Ok(_) | Err(_) => Err(Error::new(ErrorKind::Failed, "the evidence can't be written as JSON")),
        }
    }
}

/// Looks at NVIDIA's repository as the host's package manager has it; at nothing where there is none that is known.
fn repository(host: &dyn Host) -> Result<Repository, Error> {
    if host.stat("/etc/apt")?.is_some() {
        return apt_repo::look(host);
    }
    let there = |path: &str| host.stat(path).map(|stat| stat.is_some());
    if there("/usr/bin/dnf")? || there("/usr/bin/dnf5")? || there("/usr/bin/zypper")? {
        return rpm_repo::look(host);
    }
    Ok(Repository::default())
}

/// Returns what another module says of this host.
fn result_of<M: Module>(host: &dyn Host, args: &Map) -> Result<Map, Error> {
    let module: M = arguments(args).map_err(|error| Error::new(ErrorKind::Arguments, error.to_string()))?;
    module.plan(host).map(|plan| plan.result)
}

fn names(host: &dyn Host, network: &Map) -> Names {
    let files = Files(host);
    let facts = network.get("ansible_facts");
    let listed = |key: &str| {
        let found = facts.and_then(|facts| facts.get(key)).and_then(Value::as_array).into_iter().flatten();
        found.filter_map(|address| address.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let hostname = facts.and_then(|facts| facts.get("ansible_fqdn")).and_then(Value::as_str).unwrap_or_default();
    let hostname = if hostname.is_empty() {
        files.text("/proc/sys/kernel/hostname").unwrap_or_default()
    } else {
        hostname.to_owned()
    };
    let mut addresses = listed("ansible_all_ipv4_addresses");
    addresses.extend(listed("ansible_all_ipv6_addresses"));
    Names { hostname, machine_id: files.text("/etc/machine-id").unwrap_or_default(), addresses }
}
