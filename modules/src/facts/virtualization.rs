//! Whether this is a virtual machine or a container, or the host of some.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Files, map};
use crate::host::Map;

const DMI: &str = "/sys/devices/virtual/dmi/id";

/// What was found; the first finding is the one that counts, all are kept.
#[derive(Default)]
struct Found {
    first: Option<(String, &'static str)>,
    guest: BTreeSet<String>,
    host: BTreeSet<String>,
}

impl Found {
    fn guest(&mut self, kind: &str) {
        self.guest.insert(kind.to_owned());
        self.first.get_or_insert_with(|| (kind.to_owned(), "guest"));
    }

    fn host(&mut self, kind: &str) {
        self.host.insert(kind.to_owned());
        self.first.get_or_insert_with(|| (kind.to_owned(), "host"));
    }
}

pub(super) fn facts(files: Files<'_>) -> Map {
    let mut found = Found::default();
    containers(files, &mut found);
    xen(files, &mut found);
    firmware(files, &mut found);
    processors(&files.text("/proc/cpuinfo").unwrap_or_default(), &mut found);
    modules(&files.text("/proc/modules").unwrap_or_default(), &mut found);
    if files.exists("/dev/kvm") {
        found.host("kvm");
    }
    let (kind, role) = found.first.unwrap_or_else(|| ("NA".to_owned(), "NA"));
    map([
        ("virtualization_type", kind.into()),
        ("virtualization_role", role.into()),
        ("virtualization_tech_guest", json!(found.guest)),
        ("virtualization_tech_host", json!(found.host)),
    ])
}

fn containers(files: Files<'_>, found: &mut Found) {
    for line in files.text("/proc/1/cgroup").unwrap_or_default().lines() {
        if line.contains("/docker/") || line.contains("/docker-") && line.contains(".scope") {
            found.guest("docker");
        }
        if line.contains("/lxc/") || line.contains("/machine.slice/machine-lxc") {
            found.guest("lxc");
        }
        if line.contains("/system.slice/containerd.service") {
            found.guest("containerd");
        }
    }
    for variable in files.text("/proc/1/environ").unwrap_or_default().split('\0') {
        match variable.strip_prefix("container=") {
            None | Some("") => {}
            Some(kind) => {
                if ["lxc", "podman"].contains(&kind) {
                    found.guest(kind);
                }
                found.guest("container");
            }
        }
    }
    if files.exists("/proc/vz") && !files.exists("/proc/lve") {
        if files.exists("/proc/bc") { found.host("openvz") } else { found.guest("openvz") }
    }
    let systemd = files.text("/run/systemd/container");
    if let Some(kind) = &systemd {
        found.guest(kind);
    }
    if files.exists("/.dockerenv") || files.exists("/.dockerinit") {
        found.guest("docker");
    }
    let known = ["docker", "lxc", "podman", "openvz", "containerd"];
    if systemd.is_some() || known.iter().any(|&kind| found.guest.contains(kind)) {
        found.guest.insert("container".to_owned());
    }
}

fn xen(files: Files<'_>, found: &mut Found) {
    if !files.exists("/proc/xen") {
        return;
    }
    if files.text("/proc/xen/capabilities").is_some_and(|text| text.contains("control_d")) {
        found.host("xen");
    } else {
        found.first.get_or_insert_with(|| ("xen".to_owned(), "guest"));
    }
}

/// What hypervisors write into the firmware's tables.
fn firmware(files: Files<'_>, found: &mut Found) {
    let text = |file: &str| files.text(&format!("{DMI}/{file}")).unwrap_or_default();
    let (product, vendor, family, bios) =
        (text("product_name"), text("sys_vendor"), text("product_family"), text("bios_vendor"));
    let (product, vendor, family, bios) = (product.as_str(), vendor.as_str(), family.as_str(), bios.as_str());
    if ["KVM", "KVM Server", "Bochs", "AHV", "CloudStack KVM Hypervisor"].contains(&product) {
        found.guest("kvm");
    }
    match (vendor, product, family) {
        ("oVirt", _, _) => found.guest("oVirt"),
        ("Red Hat", _, "RHV") => found.guest("RHV"),
        ("Red Hat", "RHEV Hypervisor", _) => found.guest("RHEV"),
        _ => {}
    }
    if product.starts_with("VMware") {
        found.guest("VMware");
    }
    if ["OpenStack Compute", "OpenStack Nova"].contains(&product) {
        found.guest("openstack");
    }
    match bios {
        "Xen" => found.guest("xen"),
        "innotek GmbH" => found.guest("virtualbox"),
        "Amazon EC2" | "DigitalOcean" | "Hetzner" | "Linode" => found.guest("kvm"),
        _ => {}
    }
    match vendor {
        "QEMU" | "Amazon EC2" | "DigitalOcean" | "Google" | "Scaleway" | "Nutanix" => found.guest("kvm"),
        "KubeVirt" => found.guest("KubeVirt"),
        "Microsoft Corporation" => found.guest("VirtualPC"),
        "Parallels Software International Inc." => found.guest("parallels"),
        "OpenStack Foundation" => found.guest("openstack"),
        _ => {}
    }
}

fn processors(cpuinfo: &str, found: &mut Found) {
    for line in cpuinfo.lines() {
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        match key.trim() {
            "model name" if value.contains("QEMU Virtual CPU") => found.guest("kvm"),
            "model name" if value.contains("UML") => found.guest("uml"),
            "vendor_id" if value.contains("User Mode Linux") => found.guest("uml"),
            "vendor_id" if value.contains("PowerVM Lx86") => found.guest("powervm_lx86"),
            "vendor_id" if value.contains("IBM/S390") => {
                found.guest.insert("PR/SM".to_owned());
                found.first.get_or_insert_with(|| ("PR/SM".to_owned(), "LPAR"));
            }
            "machine" if value.contains("CHRP IBM pSeries (emulated by qemu)") => found.guest("kvm"),
            _ => {}
        }
    }
}

fn modules(text: &str, found: &mut Found) {
    let has = |name: &str| text.lines().any(|line| line.split(' ').next() == Some(name));
    if has("kvm") {
        found.host("kvm");
    }
    if has("vboxdrv") {
        found.host("virtualbox");
    }
    if has("virtio") {
        found.host.insert("kvm".to_owned());
        found.first.get_or_insert_with(|| ("kvm".to_owned(), "guest"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_finding_counts_and_all_are_kept() {
        let mut found = Found::default();
        processors("model name\t: QEMU Virtual CPU version 2.5+\n", &mut found);
        modules("kvm_intel 1 0 - Live\nkvm 2 1 kvm_intel, Live\n", &mut found);
        assert_eq!(found.first, Some(("kvm".to_owned(), "guest")));
        assert_eq!(json!(found.host), json!(["kvm"]));
    }
}
