//! SELinux, AppArmor, FIPS mode, capabilities, and whether this is a chroot.

use serde_json::{Value, json};

use super::{Files, assignment, map};
use crate::host::{Host, Map};

/// By bit. Source: `capability.h` of Linux 6.
const CAPABILITIES: [&str; 41] = [
    "cap_chown",
    "cap_dac_override",
    "cap_dac_read_search",
    "cap_fowner",
    "cap_fsetid",
    "cap_kill",
    "cap_setgid",
    "cap_setuid",
    "cap_setpcap",
    "cap_linux_immutable",
    "cap_net_bind_service",
    "cap_net_broadcast",
    "cap_net_admin",
    "cap_net_raw",
    "cap_ipc_lock",
    "cap_ipc_owner",
    "cap_sys_module",
    "cap_sys_rawio",
    "cap_sys_chroot",
    "cap_sys_ptrace",
    "cap_sys_pacct",
    "cap_sys_admin",
    "cap_sys_boot",
    "cap_sys_nice",
    "cap_sys_resource",
    "cap_sys_time",
    "cap_sys_tty_config",
    "cap_mknod",
    "cap_lease",
    "cap_audit_write",
    "cap_audit_control",
    "cap_setfcap",
    "cap_mac_override",
    "cap_mac_admin",
    "cap_syslog",
    "cap_wake_alarm",
    "cap_block_suspend",
    "cap_audit_read",
    "cap_perfmon",
    "cap_bpf",
    "cap_checkpoint_restore",
];

pub(super) fn selinux(files: Files<'_>) -> Map {
    let selinux = match files.text("/sys/fs/selinux/enforce") {
        None => json!({"status": "disabled"}),
        Some(enforce) => {
            let config = files.text("/etc/selinux/config").unwrap_or_default();
            let or_unknown = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
            let version = files.number("/sys/fs/selinux/policyvers").map_or("unknown".into(), Value::from);
            json!({
                "status": "enabled",
                "policyvers": version,
                "config_mode": or_unknown(assignment(&config, "SELINUX")),
                "mode": if enforce == "1" { "enforcing" } else { "permissive" },
                "type": or_unknown(assignment(&config, "SELINUXTYPE")),
            })
        }
    };
    // Playbooks ask for this before tasks that need the library; tasks here need none.
    map([("selinux", selinux), ("selinux_python_present", true.into())])
}

pub(super) fn apparmor(files: Files<'_>) -> Map {
    let status = if files.exists("/sys/kernel/security/apparmor") { "enabled" } else { "disabled" };
    map([("apparmor", json!({"status": status}))])
}

pub(super) fn fips(files: Files<'_>) -> Map {
    map([("fips", (files.text("/proc/sys/crypto/fips_enabled").as_deref() == Some("1")).into())])
}

/// Without a view of the first process, whose root is the host's, this is taken for no chroot.
pub(super) fn chroot(host: &dyn Host) -> Map {
    let place = |path: &str| host.stat(path).ok().flatten().map(|stat| (stat.device, stat.inode));
    let chroot = match (place("/"), place("/proc/1/root/.")) {
        (Some(here), Some(first)) => here != first,
        (_, None) | (None, _) => false,
    };
    map([("is_chroot", chroot.into())])
}

pub(super) fn capabilities(files: Files<'_>) -> Map {
    let status = files.text("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    let last = files.number("/proc/sys/kernel/cap_last_cap").unwrap_or(CAPABILITIES.len() as i64 - 1);
    let Some(effective) = effective else {
        return map([("system_capabilities_enforced", "N/A".into()), ("system_capabilities", "N/A".into())]);
    };
    let has = |bit: i64| effective >> bit & 1 == 1;
    if (0..=last).all(has) {
        return map([("system_capabilities_enforced", "False".into()), ("system_capabilities", json!([]))]);
    }
    let held: Vec<&str> =
        (0..=last).filter(|&bit| has(bit)).filter_map(|bit| CAPABILITIES.get(bit as usize).copied()).collect();
    map([("system_capabilities_enforced", "True".into()), ("system_capabilities", json!(held))])
}
