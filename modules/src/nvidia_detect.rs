mod driver;
mod hardware;
mod kernel_log;
mod verdict;

use schemars::JsonSchema;

use crate::decode::Arguments;
use crate::host::Put as _;
use crate::shared::yes;
use crate::{Error, ErrorKind, Host, Module, Plan};

/// Find out whether a host's NVIDIA GPUs can be used, and what is missing where they can't.
///
/// ```yaml
/// - nvidia_detect:
///     minimum_driver: "384.81"
///   register: gpu
/// - debug:
///     msg: "{{ gpu.count }} GPUs, driver {{ gpu.driver_version }}"
///   when: gpu.verdict == "ready"
/// ```
///
/// It reads and never changes anything: the PCI bus, the kernel module, the driver's libraries, device nodes and the
/// kernel's log. `nvidia-smi` is asked where it is installed. The result holds
///
/// - `verdict`: `none` (no GPU), `hardware_no_driver` (a GPU without NVIDIA's driver), `broken` (a driver that does not
///   work) or `ready`; `reason` and `advice` say why and what to do
/// - `gpus`: each GPU on the bus with `address`, `uuid`, `model`, `driver` (what it is bound to), `mig`, `mig_devices`
///   and `usable`
/// - `count`: how many GPUs containers can use, 0 unless `ready`; `found`: how many GPUs the host has
/// - `whole`: how many of `count` are not in MIG mode; `mig_devices`: how many MIG devices the others are cut into, by
///   profile, as in `{"1g.10gb": 7}`
/// - `driver_version`, `driver_flavour` (`open` or `proprietary`), `library_version`, `platform` (`pci`, `tegra`, `wsl`)
/// - `gridd`: the state of the vGPU licence daemon: `absent`, `active`, `inactive`, …
/// - `evidence`: what was seen
///
/// The same keys are repeated below `nvidia`.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The oldest driver that counts as ready.
    #[serde(default = "oldest_driver")]
    minimum_driver: String,
    /// Ask `nvidia-smi` where it is installed. It wakes a sleeping GPU.
    #[serde(default = "yes")]
    nvidia_smi: bool,
}

/// The first driver that NVIDIA's container toolkit and device plugin support.
fn oldest_driver() -> String {
    "384.81".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let minimum = version_of(&self.minimum_driver).ok_or_else(|| {
            let message = format!("`minimum_driver` is `{}`: expected a version such as 384.81", self.minimum_driver);
            Error::new(ErrorKind::Arguments, message)
        })?;
        let hardware = hardware::read(host)?;
        let driver = driver::read(host, &hardware, self.nvidia_smi)?;
        let log = if hardware.gpus.is_empty() { kernel_log::Log::default() } else { kernel_log::read(host) };
        let found = verdict::Found { hardware, driver, log };
        let mut plan = Plan::default();
        let judged = verdict::judge(&found, &minimum, &self.minimum_driver);
        plan.warnings.clone_from(&judged.warnings);
        let keys = verdict::result(&found, judged);
        plan.result = keys.clone();
        plan.result.put("nvidia", keys);
        Ok(plan)
    }
}

/// Returns a dotted version's numbers, for comparing.
fn version_of(text: &str) -> Option<Vec<u32>> {
    let numbers: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
    numbers.filter(|numbers| numbers.len() > 1)
}

/// Returns a small file's text without blanks around it; `None` too when it can't be read, as evidence may be.
fn text(host: &dyn Host, path: &str) -> Option<String> {
    let bytes = host.read(path).ok()??;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}
