//! The GPU, its driver and the driver's libraries.

use kubeon_modules::Map;
use kubeon_modules::evidence::Evidence;
use serde_json::Value;

use super::super::{Finding, Link, Severity, Subject, table, text};

/// Judges them; returns whether there is a GPU that this host's containers are meant to have.
pub fn examine(seen: &Evidence, subject: &mut Subject) -> bool {
    let nvidia = Nvidia(&seen.nvidia);
    let gpus = nvidia.gpus();
    let verdict = nvidia.text(&["verdict"]);
    if gpus.is_empty() {
        if !verdict.is_empty() {
            subject.find(Finding::new(table::NO_GPU, nvidia.text(&["reason"])));
        }
        return false;
    }
    let bound = |name: &str| gpus.iter().filter(|gpu| gpu["driver"] == name).count();
    if bound("vfio-pci") == gpus.len() {
        subject.find(Finding::new(
            table::PASSED_THROUGH,
            format!("{} of {} GPUs are bound to vfio-pci", gpus.len(), gpus.len()),
        ));
        return false;
    }
    hardware(&nvidia, &gpus, subject);
    match verdict {
        "hardware_no_driver" => missing(&nvidia, &gpus, subject),
        "broken" => broken(&nvidia, &gpus, subject),
        _ => {
            let flavour = nvidia.text(&["driver_flavour"]);
            let flavour = if flavour.is_empty() { String::new() } else { format!(", {flavour} kernel module") };
            subject.fine(Link::Driver, format!("{}{flavour}", nvidia.text(&["driver_version"])));
            subject.fine(Link::Library, nvidia.text(&["library_version"]));
        }
    }
    warnings(&nvidia, subject);
    true
}

/// What `nvidia_detect` returned.
struct Nvidia<'a>(&'a Map);

impl<'a> Nvidia<'a> {
    fn at(&self, path: &[&str]) -> &'a Value {
        let (first, rest) = path.split_first().expect("a path is never empty");
        let found = self.0.get(*first).unwrap_or(&Value::Null);
        rest.iter().fold(found, |value, key| &value[*key])
    }

    fn text(&self, path: &[&str]) -> &'a str {
        self.at(path).as_str().unwrap_or_default()
    }

    fn gpus(&self) -> Vec<&'a Value> {
        self.at(&["gpus"]).as_array().into_iter().flatten().collect()
    }

    fn log(&self) -> String {
        let lines = self.at(&["evidence", "kernel_log"]).as_array().into_iter().flatten();
        lines.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
    }
}

fn hardware(nvidia: &Nvidia<'_>, gpus: &[&Value], subject: &mut Subject) {
    let names: Vec<String> = gpus
        .iter()
        .map(|gpu| {
            let model = gpu["model"].as_str().unwrap_or("NVIDIA GPU");
            let address = gpu["address"].as_str().unwrap_or_default();
            if address.is_empty() { model.to_owned() } else { format!("{model} at {address}") }
        })
        .collect();
    let shown = if names.len() > 4 {
        format!("{} and {} more", names[..4].join(", "), names.len() - 4)
    } else {
        names.join(", ")
    };
    subject.fine(Link::Hardware, shown);
    let xids = nvidia.at(&["evidence", "xids"]).as_array().into_iter().flatten();
    for xid in xids {
        let (gpu, number) = (xid["gpu"].as_str().unwrap_or_default(), xid["xid"].as_u64().unwrap_or_default());
        let known = gpus.iter().any(|known| known["address"].as_str().is_some_and(|address| address.starts_with(gpu)));
        let line = format!("Xid (PCI:{gpu}): {number}");
        match text::explain(&line).first() {
            Some(found) if found.diagnosis.id == table::FELL_OFF.id && !known => {}
            Some(found) => subject
                .find(Finding::new(found.diagnosis, format!("the kernel's log: GPU {gpu} reported Xid {number}"))),
            None => {}
        }
    }
}

/// Whether nouveau, or nova, which follows it, has the GPU.
fn is_kernels_own(gpu: &Value) -> bool {
    gpu["driver"].as_str().is_some_and(|name| name == "nouveau" || name.to_ascii_lowercase().starts_with("nova"))
}

/// A GPU, and no driver of NVIDIA's.
fn missing(nvidia: &Nvidia<'_>, gpus: &[&Value], subject: &mut Subject) {
    let reason = nvidia.text(&["reason"]);
    let nouveau: Vec<&str> =
        gpus.iter().filter(|gpu| is_kernels_own(gpu)).filter_map(|gpu| gpu["address"].as_str()).collect();
    let said = text::explain(&nvidia.log());
    let tried = said
        .into_iter()
        .find(|finding| finding.diagnosis.link == Link::Driver && finding.diagnosis.severity == Severity::Error);
    if let Some(finding) = tried {
        subject.find(finding.also(reason));
    } else if nouveau.is_empty() {
        subject.find(Finding::new(table::NO_DRIVER, reason));
    } else {
        subject.find(Finding::new(table::NOUVEAU, format!("{}: {reason}", nouveau.join(", "))));
    }
}

/// A driver that does not work. What is evident is told by it; else what the kernel's log says, else the verdict.
fn broken(nvidia: &Nvidia<'_>, gpus: &[&Value], subject: &mut Subject) {
    let reason = nvidia.text(&["reason"]);
    let version = nvidia.text(&["driver_version"]);
    let library = nvidia.text(&["library_version"]);
    let smi = nvidia.text(&["evidence", "nvidia_smi", "message"]);
    let fabric = nvidia.at(&["evidence", "fabric"]).as_array().is_some_and(|states| !states.is_empty());
    let faults = nvidia.at(&["evidence", "node_faults"]).as_array().cloned().unwrap_or_default();
    let said = text::explain(&format!("{reason}\n{}", nvidia.log()));
    let by_log = |link: Link| {
        said.iter()
            .find(|finding| finding.diagnosis.link == link && finding.diagnosis.severity == Severity::Error)
            .cloned()
    };
    if subject.findings.iter().any(|finding| finding.diagnosis.id == table::FELL_OFF.id) {
        return;
    }
    let mismatch = !version.is_empty() && !library.is_empty() && version != library;
    if mismatch || smi.contains("Driver/library version mismatch") {
        subject.fine(Link::Driver, version);
        let seen = format!("kernel module {version}, libraries {library}");
        let finding = Finding::new(table::MISMATCH, seen);
        subject.find(if smi.is_empty() { finding } else { finding.also(format!("nvidia-smi: {smi}")) });
        return;
    }
    if !version.is_empty() && library.is_empty() {
        subject.fine(Link::Driver, version);
        subject.find(Finding::new(table::NO_LIBRARY, reason));
        return;
    }
    if version.is_empty() {
        let nouveau = gpus.iter().any(|gpu| is_kernels_own(gpu));
        match by_log(Link::Driver) {
            Some(finding) => subject.find(finding.also(reason)),
            None if nouveau => subject.find(Finding::new(table::NOUVEAU, reason)),
            None if nvidia.at(&["evidence", "secure_boot"]) == true => {
                subject.find(Finding::new(table::SECURE_BOOT, reason).also("Secure Boot is on"));
            }
            None => subject.find(Finding::new(table::DRIVER_NOT_LOADED, reason)),
        }
        return;
    }
    if !faults.is_empty() {
        let faults: Vec<&str> = faults.iter().filter_map(Value::as_str).collect();
        subject.find(Finding::new(table::WRONG_NODE, faults.join("; ")));
    } else if fabric {
        subject.find(Finding::new(table::FABRIC, reason));
    } else if reason.contains("is older than") {
        subject.find(Finding::new(table::OLD_DRIVER, reason));
    } else {
        match by_log(Link::Driver).or_else(|| by_log(Link::Hardware)) {
            Some(finding) => subject.find(finding.also(reason)),
            None => subject.find(Finding::new(table::DRIVER_BROKEN, reason).by(nvidia.text(&["advice"]))),
        }
    }
}

fn warnings(nvidia: &Nvidia<'_>, subject: &mut Subject) {
    let license = nvidia.text(&["evidence", "vgpu_license"]);
    let gridd = nvidia.text(&["gridd"]);
    if license.starts_with("Unlicensed") {
        subject.find(Finding::new(
            table::NO_LICENCE,
            format!("nvidia-smi: License Status: {license}; nvidia-gridd is {gridd}"),
        ));
    } else if !matches!(gridd, "" | "absent" | "active") {
        subject.find(Finding::new(table::NO_LICENCE, format!("nvidia-gridd is {gridd}")));
    }
}
