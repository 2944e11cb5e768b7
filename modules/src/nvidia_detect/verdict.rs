//! From what was found to one word, a reason and advice.

use serde_json::{Value, json};

use crate::host::Map;
use crate::nvidia_detect::driver::{Driver, Flavour};
use crate::nvidia_detect::hardware::{Gpu, Hardware, Platform};
use crate::nvidia_detect::kernel_log::{Log, meaning};
use crate::nvidia_detect::version_of;

pub(super) struct Found {
    pub hardware: Hardware,
    pub driver: Driver,
    pub log: Log,
}

#[derive(Debug)]
pub(super) struct Judged {
    verdict: &'static str,
    reason: String,
    advice: String,
    pub warnings: Vec<String>,
}

impl Judged {
    fn new(verdict: &'static str, reason: impl Into<String>, advice: impl Into<String>) -> Judged {
        Judged { verdict, reason: reason.into(), advice: advice.into(), warnings: Vec::new() }
    }
}

const INSTALL: &str = "install NVIDIA's driver on this host (drivers are the administrator's to choose)";
const REBOOT: &str = "reboot the host, so that the kernel module and the libraries are of one version";

/// Judges a host. `minimum` is the oldest driver that will do, `minimum_text` the same as written.
pub(super) fn judge(found: &Found, minimum: &[u32], minimum_text: &str) -> Judged {
    let judged = match found.hardware.platform {
        Platform::Wsl => wsl(found),
        Platform::Tegra => tegra(found),
        Platform::Pci if found.hardware.gpus.is_empty() => none(found),
        Platform::Pci if found.driver.module_version.is_some() => loaded(found, minimum, minimum_text),
        Platform::Pci => not_loaded(found),
    };
    Judged { warnings: warnings(found, judged.verdict == "ready"), ..judged }
}

fn none(found: &Found) -> Judged {
    let mut reason = "no NVIDIA GPU is on the PCI bus".to_owned();
    let stale: Vec<&str> = found.driver.nodes.iter().map(|node| node.path.as_str()).collect();
    if found.hardware.switches > 0 {
        reason.push_str("; NVSwitches alone compute nothing");
    }
    if !stale.is_empty() {
        reason.push_str(&format!("; {} are left over and prove nothing", stale.join(", ")));
    } else if found.driver.module_version.is_some() {
        reason.push_str("; the driver's kernel module is loaded all the same");
    }
    Judged::new("none", reason, "")
}

fn wsl(found: &Found) -> Judged {
    match &found.driver.smi {
        _ if found.driver.library_version.is_none() => Judged::new(
            "hardware_no_driver",
            "WSL shows a GPU, but Windows gives no NVIDIA driver to it",
            "install NVIDIA's driver on Windows, none inside WSL",
        ),
        Some(smi) if smi.rc != 0 => Judged::new("broken", smi.message.clone(), "update NVIDIA's driver on Windows"),
        Some(_) | None => Judged::new("ready", "WSL gives Windows' NVIDIA driver", ""),
    }
}

fn tegra(found: &Found) -> Judged {
    if found.driver.library_version.is_none() && found.driver.nodes.is_empty() {
        return Judged::new(
            "hardware_no_driver",
            "a Tegra without NVIDIA's user space",
            "install NVIDIA's L4T packages",
        );
    }
    Judged::new("ready", "the GPU inside a Tegra, with NVIDIA's own kernel", "")
}

/// Whether it is one of the kernel's own drivers: nouveau, or nova, which follows it.
fn is_kernels_own(driver: &str) -> bool {
    driver == "nouveau" || driver.to_ascii_lowercase().starts_with("nova")
}

/// A GPU, and no kernel module.
fn not_loaded(found: &Found) -> Judged {
    let gpus = &found.hardware.gpus;
    let passed = gpus.iter().filter(|gpu| gpu.driver.as_deref() == Some("vfio-pci")).count();
    let other = gpus.iter().filter_map(|gpu| gpu.driver.as_deref()).find(|name| is_kernels_own(name));
    let installed = found.driver.installed_version.as_ref().or(found.driver.library_version.as_ref());
    if let Some(version) = installed {
        let state = format!("the driver {version} is installed, but its kernel module is not loaded");
        if found.log.key_rejected {
            let advice = "enrol the key that signed the module (`mokutil --import`), or turn Secure Boot off";
            return Judged::new("broken", format!("{state}: the kernel refused the module's signature"), advice);
        }
        if found.log.unsupported {
            let advice = "install a driver that supports this GPU: an older branch for an old GPU, a newer for a new";
            return Judged::new("broken", format!("{state}: it does not support this GPU"), advice);
        }
        if let Some(other) = other {
            let advice = format!("blacklist {other}, rebuild the initramfs and reboot");
            return Judged::new("broken", format!("{state}: {other} holds the GPU"), advice);
        }
        if found.driver.secure_boot == Some(true) {
            let advice =
                "see what `modprobe nvidia` says: under Secure Boot the module must be signed by an enrolled key";
            return Judged::new("broken", format!("{state}, and Secure Boot is on"), advice);
        }
        if passed < gpus.len() {
            let advice =
                "see what `modprobe nvidia` says; after a kernel upgrade the module must be built again (dkms)";
            return Judged::new("broken", state, advice);
        }
    }
    if passed == gpus.len() {
        let reason = "every GPU is bound to vfio-pci: it is passed through to a guest";
        return Judged::new("hardware_no_driver", reason, "nothing, where that is meant: the guest is the GPU node");
    }
    if let Some(other) = other {
        let reason = format!("the GPU is bound to {other}, which containers can't use");
        let advice = match other {
            "nouveau" => format!("{INSTALL}; its installer disables nouveau"),
            other => format!("{INSTALL}, and blacklist {other}"),
        };
        return Judged::new("hardware_no_driver", reason, advice);
    }
    Judged::new("hardware_no_driver", "NVIDIA's driver is not installed", INSTALL)
}

/// A GPU and a loaded module: what makes both useless for containers.
fn loaded(found: &Found, minimum: &[u32], minimum_text: &str) -> Judged {
    let driver = &found.driver;
    let version = driver.module_version.as_deref().unwrap_or_default();
    let broken = |reason: String, advice: &str| Judged::new("broken", reason, advice);
    match version_of(version) {
        None => return broken(format!("the kernel module's version `{version}` can't be read"), INSTALL),
        Some(numbers) if numbers.as_slice() < minimum => {
            let reason = format!("the driver {version} is older than {minimum_text}");
            return broken(reason, "install a newer driver");
        }
        Some(_) => {}
    }
    match driver.library_version.as_deref() {
        None => {
            let reason = format!("the kernel module {version} is loaded, but there is no libnvidia-ml.so.1");
            return broken(reason, "install the driver's libraries of the same version");
        }
        Some(library) if library != version => {
            let reason = format!("driver/library version mismatch: kernel module {version}, libraries {library}");
            return broken(reason, REBOOT);
        }
        Some(_) => {}
    }
    if let Some(node) = driver.nodes.iter().find(|node| node.fault.is_some()) {
        let fault = node.fault.as_deref().unwrap_or_default();
        let advice = format!("remove `{}`: the driver makes it again", node.path);
        return broken(format!("`{}` does not lead to the driver: {fault}", node.path), &advice);
    }
    if let Some((gpu, _)) = found.log.xids.iter().find(|(gpu, xid)| *xid == 79 && present(found, gpu)) {
        let reason = format!("GPU {gpu} has fallen off the bus (Xid 79)");
        return broken(reason, "reboot, then look at power, cooling and seating of the card");
    }
    if let Some(smi) = &driver.smi
        && let Some(judged) = smi_fault(found, smi)
    {
        return judged;
    }
    let usable = found.hardware.gpus.iter().filter(|gpu| is_usable(found, gpu)).count();
    if usable == 0 {
        let advice = "see the kernel's log: `dmesg | grep NVRM`";
        let reason = if found.log.unsupported {
            format!("the driver {version} does not support this GPU")
        } else {
            format!("the driver {version} is loaded and bound to no GPU")
        };
        return broken(reason, advice);
    }
    Judged::new("ready", format!("driver {version}, GPUs: {usable}"), "")
}

fn smi_fault(found: &Found, smi: &crate::nvidia_detect::driver::Smi) -> Option<Judged> {
    if smi.message.contains("Driver/library version mismatch") {
        return Some(Judged::new("broken", smi.message.clone(), REBOOT));
    }
    if smi.rc != 0 || smi.gpus.is_empty() {
        let advice = "see the kernel's log: `dmesg | grep NVRM`";
        return Some(Judged::new("broken", format!("`nvidia-smi` fails: {}", smi.message), advice));
    }
    let state = smi.fabric.first()?;
    let manager = found.driver.fabric_manager.as_deref().unwrap_or("unknown");
    let advice = "start nvidia-fabricmanager of the driver's own version, and see its log";
    Some(Judged::new("broken", format!("the NVLink fabric is `{state}`; nvidia-fabricmanager is {manager}"), advice))
}

fn present(found: &Found, address: &str) -> bool {
    found.hardware.gpus.iter().any(|gpu| gpu.address.starts_with(address))
}

/// Whether containers can have this GPU once the host is ready.
fn is_usable(found: &Found, gpu: &Gpu) -> bool {
    let excluded = found.driver.gpus.iter().any(|known| known.address == gpu.address && known.excluded);
    match found.hardware.platform {
        Platform::Tegra | Platform::Wsl => true,
        Platform::Pci => gpu.driver.as_deref() == Some("nvidia") && !excluded,
    }
}

fn warnings(found: &Found, ready: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if ready {
        for gpu in found.hardware.gpus.iter().filter(|gpu| !is_usable(found, gpu)) {
            let bound = gpu.driver.as_deref().unwrap_or("no driver");
            warnings.push(format!("GPU {} is bound to {bound} or excluded: containers can't have it", gpu.address));
        }
    }
    for (gpu, xid) in &found.log.xids {
        if let Some(meaning) = meaning(*xid) {
            warnings.push(format!("GPU {gpu} reported Xid {xid} since the last boot: {meaning}"));
        }
    }
    if let Some(license) = found.driver.smi.as_ref().and_then(|smi| smi.license.as_deref())
        && license.starts_with("Unlicensed")
    {
        let gridd = &found.driver.gridd;
        warnings.push(format!("the vGPU has no licence, so it is slowed down; nvidia-gridd is {gridd}"));
    } else if !matches!(found.driver.gridd.as_str(), "absent" | "active") {
        warnings.push(format!("nvidia-gridd is {}: a vGPU without a licence is slowed down", found.driver.gridd));
    }
    warnings
}

/// Returns the task's result.
pub(super) fn result(found: &Found, judged: Judged) -> Map {
    let Found { hardware, driver, log } = found;
    let ready = judged.verdict == "ready";
    let gpus: Vec<Value> = hardware.gpus.iter().map(|gpu| gpu_value(found, gpu, ready)).collect();
    let count = if ready { hardware.gpus.iter().filter(|gpu| is_usable(found, gpu)).count() } else { 0 };
    let cut = |value: &&Value| value["usable"] == true && value["mig"] == "Enabled";
    let whole = count - gpus.iter().filter(cut).count();
    let mut slices = Map::new();
    for (profile, number) in gpus.iter().filter(cut).filter_map(|value| value["mig_devices"].as_object()).flatten() {
        let sum = slices.get(profile).and_then(Value::as_u64).unwrap_or(0) + number.as_u64().unwrap_or(0);
        slices.insert(profile.clone(), sum.into());
    }
    let platform = match hardware.platform {
        Platform::Pci => "pci",
        Platform::Tegra => "tegra",
        Platform::Wsl => "wsl",
    };
    let flavour = driver.flavour.map(|flavour| match flavour {
        Flavour::Open => "open",
        Flavour::Proprietary => "proprietary",
    });
    let faults: Vec<String> = driver
        .nodes
        .iter()
        .filter_map(|node| node.fault.as_ref().map(|fault| format!("{}: {fault}", node.path)))
        .collect();
    let keys = json!({
        "verdict": judged.verdict,
        "reason": judged.reason,
        "advice": judged.advice,
        "platform": platform,
        "gpus": gpus,
        "count": count,
        "whole": whole,
        "mig_devices": slices,
        "found": hardware.gpus.len(),
        "driver_version": driver.module_version,
        "driver_flavour": flavour,
        "library_version": driver.library_version,
        "gridd": driver.gridd,
        "evidence": {
            "nodes": driver.nodes.iter().map(|node| node.path.clone()).collect::<Vec<_>>(),
            "node_faults": faults,
            "nvswitches": hardware.switches,
            "installed_driver": driver.installed_version,
            "module_uses": driver.module_uses,
            "driver_root": driver.container_root.as_deref().unwrap_or("/"),
            "nvidia_smi": driver.smi.as_ref().map(|smi| json!({"rc": smi.rc, "message": smi.message})),
            "fabric_manager": driver.fabric_manager,
            "fabric": driver.smi.as_ref().map(|smi| smi.fabric.clone()).unwrap_or_default(),
            "vgpu_license": driver.smi.as_ref().and_then(|smi| smi.license.clone()),
            "vgpu_host": driver.vgpu_host,
            "secure_boot": driver.secure_boot,
            "reboot_required": driver.reboot_required,
            "kernel_log_read": log.read,
            "kernel_log": log.lines,
            "xids": log.xids.iter().map(|(gpu, xid)| json!({"gpu": gpu, "xid": xid})).collect::<Vec<_>>(),
        },
    });
    match keys {
        Value::Object(keys) => keys,
        other => unreachable!("a literal object is an object: {other}"),
    }
}

fn gpu_value(found: &Found, gpu: &Gpu, ready: bool) -> Value {
    let known = found.driver.gpus.iter().find(|known| known.address == gpu.address);
    let told = found.driver.smi.iter().flat_map(|smi| &smi.gpus);
    let told = told.into_iter().find(|told| told.address == gpu.address || gpu.address.is_empty());
    let mut slices = Map::new();
    for profile in told.iter().flat_map(|told| &told.slices) {
        let number = slices.get(profile).and_then(Value::as_u64).unwrap_or(0) + 1;
        slices.insert(profile.clone(), number.into());
    }
    let uuid = known.and_then(|known| known.uuid.clone()).or_else(|| told.map(|told| told.uuid.clone()));
    let model = known.and_then(|known| known.model.clone()).or_else(|| told.map(|told| told.model.clone()));
    json!({
        "address": gpu.address,
        "device": gpu.device,
        "uuid": uuid,
        "model": model,
        "driver": gpu.driver,
        "mig": told.and_then(|told| told.mig.clone()),
        "mig_devices": slices,
        "usable": ready && is_usable(found, gpu),
    })
}
