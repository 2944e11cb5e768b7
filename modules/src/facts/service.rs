//! What manages services and packages here.

use serde_json::json;

use super::{Distribution, Files, map};
use crate::host::{FileKind, Host, Map, Probe};

/// Returns Ansible's name of what the first process is.
pub(crate) fn service_manager(files: Files<'_>) -> String {
    let first = files.text("/proc/1/comm").or_else(|| files.link_name("/sbin/init"));
    // `init` may be anything, and a shell is a container's.
    if let Some(name) = first.filter(|name| name != "init" && !name.ends_with("sh")) {
        return match name.as_str() {
            "procd" => "openwrt_init".to_owned(),
            "runit-init" => "runit".to_owned(),
            "svscan" => "svc".to_owned(),
            "openrc-init" => "openrc".to_owned(),
            _ => name,
        };
    }
    let systemctl = ["/usr/bin/systemctl", "/bin/systemctl"].iter().any(|path| files.exists(path));
    let name = if systemctl && systemd_runs(files) {
        "systemd"
    } else if files.exists("/sbin/initctl") && files.exists("/etc/init") {
        "upstart"
    } else if files.exists("/sbin/openrc") {
        "openrc"
    } else if systemctl && files.link_name("/sbin/init").as_deref() == Some("systemd") {
        "systemd"
    } else if files.exists("/etc/init.d") {
        "sysvinit"
    } else if files.exists("/etc/dinit.d") {
        "dinit"
    } else {
        "service"
    };
    name.to_owned()
}

/// Whether systemd is in charge. Source: `sd_booted(3)`, and the older places that Ansible looks at.
pub(crate) fn systemd_runs(files: Files<'_>) -> bool {
    ["/run/systemd/system", "/dev/.run/systemd", "/dev/.systemd"].iter().any(|path| files.exists(path))
}

pub(super) fn systemd(host: &dyn Host) -> Map {
    if !systemd_runs(Files(host)) {
        return Map::new();
    }
    let Ok(output) = host.probe(&Probe::of(&["systemctl", "--version"])) else { return Map::new() };
    let mut lines = output.stdout.lines();
    let version = lines.next().and_then(|line| line.split_whitespace().nth(1)?.parse::<u32>().ok());
    match (version, lines.next()) {
        (Some(version), Some(features)) => map([("systemd", json!({"features": features, "version": version}))]),
        (_, None) | (None, _) => Map::new(),
    }
}

/// A program and the package manager that it stands for; the last that is there wins.
const PROGRAMS: [(&str, &str); 15] = [
    ("/usr/bin/rpm-ostree", "atomic_container"),
    ("/usr/bin/yum", "dnf"),
    ("/usr/bin/dnf-3", "dnf"),
    ("/usr/bin/dnf5", "dnf5"),
    ("/usr/bin/apt-get", "apt"),
    ("/usr/bin/zypper", "zypper"),
    ("/usr/sbin/urpmi", "urpmi"),
    ("/usr/bin/pacman", "pacman"),
    ("/bin/opkg", "opkg"),
    ("/sbin/apk", "apk"),
    ("/usr/bin/emerge", "portage"),
    ("/usr/bin/pkg", "pkg5"),
    ("/usr/bin/xbps-install", "xbps"),
    ("/usr/bin/swupd", "swupd"),
    ("/usr/sbin/sorcery", "sorcery"),
];

pub(super) fn package_manager(host: &dyn Host, distribution: &Distribution) -> Map {
    let files = Files(host);
    let found = PROGRAMS.iter().rev().find(|(path, _)| files.exists(path)).map(|&(_, name)| name);
    let name = match distribution.os_family.as_str() {
        "RedHat" => redhat(files),
        "Debian" => "apt",
        "Altlinux" if found == Some("apt") => "apt_rpm",
        _ => found.unwrap_or("unknown"),
    };
    map([("pkg_mgr", name.into())])
}

fn redhat(files: Files<'_>) -> &'static str {
    if files.exists("/run/ostree-booted") {
        return "atomic_container";
    }
    let Some(path) = ["/usr/bin/dnf", "/usr/bin/microdnf"].into_iter().find(|path| files.exists(path)) else {
        return "unknown";
    };
    let link = matches!(files.0.lstat(path), Ok(Some(stat)) if stat.kind == FileKind::Link);
    if link && files.link_name(path).as_deref() == Some("dnf5") { "dnf5" } else { "dnf" }
}
