//! What of NVIDIA's driver is there: the kernel module, its libraries, its device nodes, and what `nvidia-smi` says.

use crate::nvidia_detect::hardware::{Hardware, Platform};
use crate::nvidia_detect::text;
use crate::{Error, FileKind, Host, Probe};

#[derive(Debug, Default)]
pub(super) struct Driver {
    /// The loaded kernel module's version.
    pub module_version: Option<String>,
    pub flavour: Option<Flavour>,
    /// How many programs and modules hold the loaded module: it can be unloaded at 0 only.
    pub module_uses: Option<i64>,
    /// The version of the `libnvidia-ml.so.1` that programs load.
    pub library_version: Option<String>,
    /// The driver is inside the GPU operator's driver container, below this folder.
    pub container_root: Option<String>,
    /// A module file for the running kernel, loaded or not.
    pub installed_version: Option<String>,
    /// One per folder of `/proc/driver/nvidia/gpus`.
    pub gpus: Vec<Information>,
    pub nodes: Vec<Node>,
    pub smi: Option<Smi>,
    /// The state of `nvidia-gridd` as systemd calls it, or `absent`.
    pub gridd: String,
    pub fabric_manager: Option<String>,
    pub secure_boot: Option<bool>,
    pub reboot_required: bool,
    /// The host shares its GPUs as vGPUs to guests.
    pub vgpu_host: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flavour {
    Open,
    Proprietary,
}

/// What the driver tells of one GPU.
#[derive(Debug, Default)]
pub(super) struct Information {
    pub address: String,
    pub model: Option<String>,
    pub uuid: Option<String>,
    pub excluded: bool,
}

#[derive(Debug)]
pub(super) struct Node {
    pub path: String,
    /// Why the kernel's driver is not behind it.
    pub fault: Option<String>,
}

#[derive(Debug)]
pub(super) struct Smi {
    pub rc: i32,
    pub gpus: Vec<SmiGpu>,
    /// What it said when it failed.
    pub message: String,
    /// Fabric states other than `Completed`, where there are NVSwitches.
    pub fabric: Vec<String>,
    /// `License Status` of a vGPU guest.
    pub license: Option<String>,
}

#[derive(Debug)]
pub(super) struct SmiGpu {
    pub address: String,
    pub uuid: String,
    pub model: String,
    /// `Enabled` or `Disabled`; `None` for a GPU that can't be cut.
    pub mig: Option<String>,
    /// The profiles of the MIG devices that it is cut into, such as `1g.10gb`, one each.
    pub slices: Vec<String>,
}

/// Reads all of it.
///
/// # Errors
/// What [`Host::read`] reports of the driver's own files, and what [`Host::probe`] reports.
pub(super) fn read(host: &dyn Host, hardware: &Hardware, ask_smi: bool) -> Result<Driver, Error> {
    let mut driver = Driver { gridd: gridd(host)?, ..Driver::default() };
    if let Some(bytes) = host.read("/proc/driver/nvidia/version")? {
        (driver.module_version, driver.flavour) = parse_version(&String::from_utf8_lossy(&bytes));
    }
    if driver.module_version.is_none() {
        let versions = ["nvidia", "nvidia_current"].map(|name| text(host, &format!("/sys/module/{name}/version")));
        driver.module_version = versions.into_iter().flatten().next();
    }
    let uses = ["nvidia", "nvidia_current"].map(|name| text(host, &format!("/sys/module/{name}/refcnt")));
    driver.module_uses = uses.into_iter().flatten().find_map(|count| count.parse().ok());
    driver.gpus = information(host)?;
    driver.nodes = nodes(host)?;
    if hardware.gpus.is_empty() {
        return Ok(driver);
    }
    (driver.library_version, driver.container_root) = library(host, hardware.platform)?;
    if driver.module_version.is_none() {
        driver.installed_version = installed(host)?;
    }
    driver.secure_boot = secure_boot(host);
    driver.reboot_required = matches!(host.stat("/run/reboot-required"), Ok(Some(_)));
    driver.vgpu_host = host.list("/sys/class/mdev_bus")?.is_some_and(|names| !names.is_empty());
    if hardware.switches > 0 {
        driver.fabric_manager = Some(unit_state(host, "nvidia-fabricmanager")?);
    }
    if ask_smi && (driver.module_version.is_some() || hardware.platform == Platform::Wsl) {
        driver.smi = smi(host, hardware)?;
    }
    Ok(driver)
}

/// Reads the first line of `/proc/driver/nvidia/version`: `… x86_64 Kernel Module  520.56.06  Thu …` or
/// `… Open Kernel Module for x86_64  555.42.06  Release Build …`.
fn parse_version(text: &str) -> (Option<String>, Option<Flavour>) {
    let Some((_, rest)) = text.lines().find_map(|line| line.strip_prefix("NVRM version:")?.split_once("Kernel Module"))
    else {
        return (None, None);
    };
    let open = text.lines().next().is_some_and(|line| line.contains("Open Kernel Module"));
    let version = rest.split_whitespace().find(|word| super::version_of(word).is_some()).map(str::to_owned);
    (version, Some(if open { Flavour::Open } else { Flavour::Proprietary }))
}

fn information(host: &dyn Host) -> Result<Vec<Information>, Error> {
    let mut gpus = Vec::new();
    for address in host.list("/proc/driver/nvidia/gpus")?.unwrap_or_default() {
        let path = format!("/proc/driver/nvidia/gpus/{address}/information");
        let text = String::from_utf8_lossy(&host.read(&path)?.unwrap_or_default()).into_owned();
        let value = |name: &str| {
            let found = text.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name);
            found.map(|(_, value)| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        gpus.push(Information {
            model: value("Model"),
            uuid: value("GPU UUID").filter(|uuid| !uuid.contains('?')),
            excluded: value("GPU Excluded").is_some_and(|said| said == "Yes"),
            address,
        });
    }
    Ok(gpus)
}

/// Folders in which distributions and NVIDIA's installer put the driver's 64-bit libraries.
const LIBRARY_FOLDERS: [&str; 7] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/usr/lib/wsl/lib",
];
/// Where the GPU operator's driver container shows its root.
const DRIVER_ROOT: &str = "/run/nvidia/driver";

/// Returns the version of the NVML library that the loader finds, and the driver container's root when it is there.
fn library(host: &dyn Host, platform: Platform) -> Result<(Option<String>, Option<String>), Error> {
    let cache = host.probe(&Probe::of(&["ldconfig", "-p"]))?;
    let cached = cache.stdout.lines().filter(|line| {
        let name = line.trim();
        name.starts_with("libnvidia-ml.so.1 ") && (name.contains("x86-64") || name.contains("AArch64"))
    });
    let cached = cached.filter_map(|line| line.split_once("=> ")).map(|(_, path)| path.trim().to_owned());
    let known = LIBRARY_FOLDERS.iter().map(|folder| format!("{folder}/libnvidia-ml.so.1"));
    for path in cached.chain(known) {
        if let Some(version) = library_version(host, &path)? {
            return Ok((Some(version), None));
        }
        if platform == Platform::Wsl && host.stat(&path)?.is_some() {
            return Ok((Some("wsl".to_owned()), None));
        }
    }
    for folder in LIBRARY_FOLDERS {
        if let Some(version) = library_version(host, &format!("{DRIVER_ROOT}{folder}/libnvidia-ml.so.1"))? {
            return Ok((Some(version), Some(DRIVER_ROOT.to_owned())));
        }
    }
    Ok((None, None))
}

/// Follows links to a name such as `libnvidia-ml.so.550.163.01`.
fn library_version(host: &dyn Host, path: &str) -> Result<Option<String>, Error> {
    let root = if path.starts_with(DRIVER_ROOT) { DRIVER_ROOT } else { "" };
    let mut path = path.to_owned();
    for _ in 0..8 {
        if let Some((_, version)) = path.rsplit_once("libnvidia-ml.so.")
            && super::version_of(version).is_some()
        {
            return Ok(host.lstat(&path)?.map(|_| version.to_owned()));
        }
        let Some(target) = host.read_link(&path)? else { return Ok(None) };
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        path = if target.starts_with('/') { format!("{root}{target}") } else { format!("{folder}/{target}") };
    }
    Ok(None)
}

/// Returns the version of a module that is installed for the running kernel, loaded or not.
fn installed(host: &dyn Host) -> Result<Option<String>, Error> {
    for name in ["nvidia", "nvidia-current"] {
        let output = host.probe(&Probe::of(&["modinfo", "-F", "version", name]))?;
        let version = output.stdout.trim();
        if output.success() && super::version_of(version).is_some() {
            return Ok(Some(version.to_owned()));
        }
    }
    Ok(None)
}

/// Compares `/dev/nvidia*` with what the kernel registered.
fn nodes(host: &dyn Host) -> Result<Vec<Node>, Error> {
    let devices = text(host, "/proc/devices").unwrap_or_default();
    let major_of = |name: &str| {
        let mut lines = devices.lines().filter_map(|line| line.trim().split_once(' '));
        lines.find(|(_, registered)| registered.trim() == name).and_then(|(major, _)| major.parse::<u32>().ok())
    };
    let mut nodes = Vec::new();
    for name in host.list("/dev")?.unwrap_or_default() {
        let Some(rest) = name.strip_prefix("nvidia") else { continue };
        let path = format!("/dev/{name}");
        let (driver, minor) = match rest {
            "ctl" => (["nvidiactl", "nvidia", "nvidia-frontend"].as_slice(), Some(255)),
            "-modeset" => (["nvidia-modeset", "nvidia", "nvidia-frontend"].as_slice(), Some(254)),
            "-uvm" => (["nvidia-uvm"].as_slice(), Some(0)),
            "-uvm-tools" => (["nvidia-uvm"].as_slice(), Some(1)),
            digits if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                (["nvidia", "nvidia-frontend"].as_slice(), digits.parse().ok())
            }
            _ => {
                nodes.push(Node { path, fault: None });
                continue;
            }
        };
        let Some(stat) = host.stat(&path)? else { continue };
        let fault = if stat.kind != FileKind::CharacterDevice {
            Some("it is no character device".to_owned())
        } else {
            match driver.iter().find_map(|name| major_of(name)) {
                // The module behind it is loaded when somebody first asks for it.
                None => None,
                Some(major) if major != stat.rdev.0 => {
                    Some(format!("its major number is {}, the driver's is {major}", stat.rdev.0))
                }
                Some(_) => minor
                    .filter(|&minor: &u32| minor != stat.rdev.1)
                    .map(|minor| format!("its minor number is {}, not {minor}", stat.rdev.1)),
            }
        };
        nodes.push(Node { path, fault });
    }
    Ok(nodes)
}

fn gridd(host: &dyn Host) -> Result<String, Error> {
    for path in ["/usr/bin/nvidia-gridd", "/etc/nvidia/gridd.conf"] {
        if host.stat(path)?.is_some() {
            return unit_state(host, "nvidia-gridd");
        }
    }
    Ok("absent".to_owned())
}

/// Returns what `systemctl is-active` says: `active`, `inactive`, `failed`, `unknown`.
fn unit_state(host: &dyn Host, unit: &str) -> Result<String, Error> {
    let output = host.probe(&Probe::of(&["systemctl", "is-active", unit]))?;
    let state = output.stdout.trim();
    Ok(if state.is_empty() { "unknown".to_owned() } else { state.to_owned() })
}

/// Reads the EFI variable: four bytes of attributes, then one of value.
fn secure_boot(host: &dyn Host) -> Option<bool> {
    let path = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    let bytes = host.read(path).ok()??;
    bytes.get(4).map(|&value| value == 1)
}

fn smi(host: &dyn Host, hardware: &Hardware) -> Result<Option<Smi>, Error> {
    let query = |fields: &str| {
        host.probe(&Probe::of(&["nvidia-smi", &format!("--query-gpu={fields}"), "--format=csv,noheader"]))
    };
    // A driver that is out of order lets it hang: that too is an answer.
    let output = match query("index,uuid,pci.bus_id,name") {
        Ok(output) => output,
        Err(error) => {
            let message = format!("`nvidia-smi`: {error}");
            return Ok(Some(Smi { rc: -1, gpus: Vec::new(), message, fabric: Vec::new(), license: None }));
        }
    };
    if output.rc == 127 {
        return Ok(None);
    }
    let mut smi =
        Smi { rc: output.rc, gpus: parse_gpus(&output.stdout), message: String::new(), fabric: vec![], license: None };
    if output.rc != 0 || smi.gpus.is_empty() {
        let said = format!("{} {}", output.stdout.trim(), output.stderr.trim());
        smi.message = said.split_whitespace().collect::<Vec<_>>().join(" ");
        return Ok(Some(smi));
    }
    // Drivers before 450 do not know the field.
    let modes = query("index,mig.mode.current")?;
    if modes.success() {
        for (gpu, line) in smi.gpus.iter_mut().zip(modes.stdout.lines()) {
            gpu.mig = line.split(',').nth(1).map(|mode| mode.trim().to_owned()).filter(|mode| !mode.contains("N/A"));
        }
    }
    if smi.gpus.iter().any(|gpu| gpu.mig.as_deref() == Some("Enabled")) {
        let list = host.probe(&Probe::of(&["nvidia-smi", "-L"]))?;
        for (uuid, profile) in parse_slices(&list.stdout) {
            smi.gpus.iter_mut().filter(|gpu| gpu.uuid == uuid).for_each(|gpu| gpu.slices.push(profile.to_owned()));
        }
    }
    if hardware.switches > 0 || host.stat("/etc/nvidia/gridd.conf")?.is_some() {
        let all = host.probe(&Probe::of(&["nvidia-smi", "-q"]))?;
        (smi.fabric, smi.license) = parse_query(&all.stdout);
    }
    Ok(Some(smi))
}

fn parse_gpus(text: &str) -> Vec<SmiGpu> {
    let rows = text.lines().map(|line| line.split(',').map(str::trim).collect::<Vec<_>>());
    rows.filter_map(|row| match row[..] {
        [_, uuid, address, name, ..] if uuid.starts_with("GPU-") => Some(SmiGpu {
            address: pci_address(address),
            uuid: uuid.to_owned(),
            model: name.to_owned(),
            mig: None,
            slices: Vec::new(),
        }),
        _ => None,
    })
    .collect()
}

/// Returns the MIG devices of `nvidia-smi -L`, each with its GPU: `GPU 0: NVIDIA A100 (UUID: GPU-…)`, and below it
/// `  MIG 1g.5gb      Device  0: (UUID: MIG-…)`.
fn parse_slices(text: &str) -> Vec<(&str, &str)> {
    let mut slices = Vec::new();
    let mut uuid = "";
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("GPU") => uuid = line.rsplit_once("(UUID: ").map_or("", |(_, rest)| rest.trim_end_matches([')', ' '])),
            Some("MIG") => slices.extend(words.next().map(|profile| (uuid, profile))),
            Some(_) | None => {}
        }
    }
    slices
}

/// Turns `00000000:3B:00.0` into the kernel's `0000:3b:00.0`.
fn pci_address(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    match text.split_once(':') {
        Some((domain, rest)) if domain.len() == 8 => format!("{}:{rest}", &domain[4..]),
        Some(_) | None => text,
    }
}

/// Returns the fabric states that are not `Completed`, and the licence's status.
fn parse_query(text: &str) -> (Vec<String>, Option<String>) {
    let mut fabric = Vec::new();
    let mut license = None;
    let mut inside = false;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            inside = line.trim() == "Fabric";
            continue;
        };
        match (key.trim(), value.trim()) {
            ("State", value) if inside && !matches!(value, "Completed" | "N/A") => fabric.push(value.to_owned()),
            ("License Status", value) => license = Some(value.to_owned()),
            _ => {}
        }
    }
    (fabric, license)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_formats_of_the_version() {
        let proprietary = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  520.56.06  Thu Oct  6 21:38:55 UTC 2022\n";
        assert_eq!(parse_version(proprietary), (Some("520.56.06".into()), Some(Flavour::Proprietary)));
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  555.42.06  Release Build  (abuild@host)\n";
        assert_eq!(parse_version(open), (Some("555.42.06".into()), Some(Flavour::Open)));
    }

    #[test]
    fn reads_what_gpus_are_cut_into() {
        let text = "GPU 0: NVIDIA A100 (UUID: GPU-aa)\n  MIG 3g.20gb     Device  0: (UUID: MIG-1)\n  \
            MIG 1g.5gb+me   Device  1: (UUID: MIG-2)\nGPU 1: NVIDIA A100 (UUID: GPU-bb)\n";
        assert_eq!(parse_slices(text), [("GPU-aa", "3g.20gb"), ("GPU-aa", "1g.5gb+me")]);
    }

    #[test]
    fn reads_the_fabric_and_the_licence() {
        let text =
            "    Fabric\n        State                 : In Progress\n        Status    : N/A\n    Processes : None\n";
        assert_eq!(parse_query(text), (vec!["In Progress".to_owned()], None));
        let text = "    vGPU Software Licensed Product\n        License Status : Unlicensed (Unrestricted)\n";
        assert_eq!(parse_query(text), (vec![], Some("Unlicensed (Unrestricted)".to_owned())));
    }
}
