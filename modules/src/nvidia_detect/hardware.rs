//! What is on the PCI bus, and on platforms whose GPU is not on it.

use crate::nvidia_detect::text;
use crate::{Error, Host};

/// Source: <https://pci-ids.ucw.cz>, vendor NVIDIA Corporation.
const NVIDIA: &str = "0x10de";

#[derive(Debug, Default)]
pub(super) struct Hardware {
    pub gpus: Vec<Gpu>,
    /// How many NVSwitches connect them: above 0 the fabric manager must have trained the links.
    pub switches: usize,
    pub platform: Platform,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Platform {
    #[default]
    Pci,
    /// A GPU inside an NVIDIA system on a chip.
    Tegra,
    /// Windows' GPU, shared with Linux under WSL 2.
    Wsl,
}

#[derive(Debug, Default, Clone)]
pub(super) struct Gpu {
    /// `0000:3b:00.0`; empty where the GPU is not on a PCI bus.
    pub address: String,
    /// The PCI device's number, such as `0x1eb8`.
    pub device: String,
    /// What it is bound to: `nvidia`, `nouveau`, `vfio-pci`; `None` when nothing is.
    pub driver: Option<String>,
}

/// Reads the bus.
///
/// # Errors
/// Whatever [`Host::read`] reports of sysfs, whose files everybody may read.
pub(super) fn read(host: &dyn Host) -> Result<Hardware, Error> {
    let mut hardware = Hardware::default();
    for address in host.list("/sys/bus/pci/devices")?.unwrap_or_default() {
        let folder = format!("/sys/bus/pci/devices/{address}");
        let word = |name: &str| -> Result<String, Error> {
            let bytes = host.read(&format!("{folder}/{name}"))?.unwrap_or_default();
            Ok(String::from_utf8_lossy(&bytes).trim().to_ascii_lowercase())
        };
        if word("vendor")? != NVIDIA {
            continue;
        }
        let class = word("class")?;
        if class.starts_with("0x0300") || class.starts_with("0x0302") {
            let driver = host.read_link(&format!("{folder}/driver"))?;
            let driver = driver.and_then(|target| target.rsplit('/').next().map(str::to_owned));
            hardware.gpus.push(Gpu { address, device: word("device")?, driver });
        } else if class.starts_with("0x0680") {
            hardware.switches += 1;
        }
    }
    if hardware.gpus.is_empty() {
        hardware.platform = platform(host);
        if hardware.platform != Platform::Pci {
            hardware.gpus.push(Gpu::default());
        }
    }
    Ok(hardware)
}

fn platform(host: &dyn Host) -> Platform {
    let there = |path: &str| matches!(host.stat(path), Ok(Some(_)));
    if there("/dev/dxg") && there("/usr/lib/wsl/lib") {
        return Platform::Wsl;
    }
    let family = text(host, "/sys/devices/soc0/family").unwrap_or_default();
    if there("/etc/nv_tegra_release") || family.eq_ignore_ascii_case("tegra") {
        return Platform::Tegra;
    }
    Platform::Pci
}
