//! The toolkit, where it comes from, the container runtime and the kubelet.

use std::collections::BTreeSet;

use kubeon_modules::evidence::{Containerd, Evidence};

use super::super::{Diagnosis, Finding, Link, Subject, table, text};

pub fn repository(seen: &Evidence, subject: &mut Subject) {
    let repository = &seen.repository;
    if repository.manager.is_empty() {
        return;
    }
    let mut found: Vec<Finding> = Vec::new();
    if let Some(complaint) = &repository.complaint {
        let said = text::explain(complaint);
        let ours = said.into_iter().filter(|finding| finding.diagnosis.link == Link::Repository);
        found.extend(ours);
        if found.is_empty() {
            found.push(Finding::new(table::REPO_BROKEN, format!("{}: {complaint}", repository.manager)));
        }
    }
    for (path, first) in &repository.idle {
        let diagnosis = if first.contains("Unsupported distribution") { Some(table::REPO_UNSUPPORTED) } else { None };
        let html = first.trim_start().starts_with('<');
        if let Some(diagnosis) = if html { Some(table::REPO_HTML) } else { diagnosis } {
            found.push(Finding::new(diagnosis, format!("`{path}` begins with `{first}`")).in_file(path));
        }
    }
    for source in &repository.sources {
        let named = format!("`{}` names {}", source.path, source.uri);
        let bare = source.uri.trim_end_matches('/');
        let folders = ["/stable/deb", "/experimental/deb", "/stable/rpm", "/experimental/rpm"];
        if folders.iter().any(|folder| bare.ends_with(folder)) {
            found.push(Finding::new(table::REPO_NO_ARCH, named).in_file(&source.path));
        } else if source.old {
            found.push(Finding::new(table::REPO_OLD, named).in_file(&source.path));
        } else if let Some(fault) = &source.key_fault {
            let diagnosis = if fault.contains("expired") { table::REPO_EXPIRED } else { table::REPO_NO_KEY };
            found.push(Finding::new(diagnosis, fault).also(named).in_file(&source.path));
        }
    }
    // What dnf fetched, only root can see.
    let asked = seen.root || repository.manager == "apt";
    if found.is_empty() && !repository.sources.is_empty() && seen.toolkit.runtime.is_none() && asked {
        let from_there = repository.origins.iter().any(|origin| {
            repository
                .sources
                .iter()
                .any(|source| origin.starts_with(source.uri.split("$(").next().unwrap_or_default()))
        });
        if !from_there {
            let candidate = repository.candidate.as_deref().unwrap_or("none");
            let seen = format!("the candidate of nvidia-container-toolkit is {candidate}");
            found.push(Finding::new(table::NOT_OFFERED, seen));
        }
    }
    if seen.toolkit.runtime.is_some() {
        // It is installed already: this only stands in the way of upgrades.
        for finding in found {
            let mut doubt =
                Finding::new(table::REPO_STALE, format!("{} ({})", finding.diagnosis.what, finding.diagnosis.id));
            doubt.seen.extend(finding.seen);
            doubt.file = finding.file;
            subject.find(doubt);
        }
    } else {
        found.into_iter().for_each(|finding| subject.find(finding));
    }
    if let Some(source) = repository.sources.first() {
        subject.fine(Link::Repository, format!("{} ({})", source.uri, source.path));
    }
}

pub fn toolkit(seen: &Evidence, subject: &mut Subject) {
    let toolkit = &seen.toolkit;
    let Some(runtime) = &toolkit.runtime else {
        let seen = "no nvidia-container-runtime in /usr/bin, /usr/local/bin or /usr/local/nvidia/toolkit";
        subject.find(Finding::new(table::MISSING_RUNTIME, seen));
        return;
    };
    let versions: BTreeSet<&String> = toolkit.packages.values().collect();
    if versions.len() > 1 {
        let listed: Vec<String> = toolkit.packages.iter().map(|(name, version)| format!("{name} {version}")).collect();
        subject.find(Finding::new(table::APART, listed.join(", ")));
    }
    for fault in &toolkit.faults {
        subject.find(Finding::new(table::TOOLKIT_CONFIG, fault).in_file("/etc/nvidia-container-runtime/config.toml"));
    }
    let named = toolkit.packages.get("nvidia-container-toolkit");
    if seen.nvidia.get("platform").is_some_and(|platform| platform == "tegra")
        && let Some(version) = named.filter(|version| super::numbers(version) < vec![1, 11])
    {
        subject.find(Finding::new(table::TEGRA_TOOLKIT, format!("nvidia-container-toolkit {version} on a Tegra")));
    }
    let version = toolkit.packages.get("nvidia-container-toolkit-base").or_else(|| toolkit.packages.values().next());
    let version = version.map(|version| format!("{version}, ")).unwrap_or_default();
    subject.fine(Link::Toolkit, format!("{version}{runtime}"));
}

pub fn containerd(seen: &Evidence, subject: &mut Subject) {
    let containerd = &seen.containerd;
    match containerd.kind.as_str() {
        "" => {
            subject.find(Finding::new(
                table::NO_CONTAINERD,
                "no service containerd, crio, docker, k3s, RKE2, k0s or MicroK8s",
            ));
            return;
        }
        "docker" => {
            subject.find(Finding::new(
                table::DOCKER,
                format!("docker.service is {}, and there is no containerd.service", containerd.service),
            ));
            return;
        }
        _ => {}
    }
    if containerd.service != "active" {
        let state = if containerd.service.is_empty() { "unknown" } else { &containerd.service };
        down(containerd, &format!("the service of {} is {state}", containerd.kind), table::CONTAINERD_DOWN, subject);
    }
    if let Some(fault) = &containerd.fault {
        if !seen.root && fault.to_lowercase().contains("permission denied") {
            subject.unread.push(format!("`{}`: {fault}", containerd.config));
        } else {
            let of_log = text::explain(fault).into_iter().find(|finding| finding.diagnosis.link == Link::Containerd);
            let diagnosis = of_log.map_or(table::BAD_TOML, |finding| finding.diagnosis);
            subject
                .find(Finding::new(diagnosis, format!("`{}`: {fault}", containerd.config)).in_file(&containerd.config));
        }
        return;
    }
    match containerd.kind.as_str() {
        "cri-o" => {
            match containerd.other_files.first() {
                Some(file) => subject.fine(Link::Containerd, format!("cri-o, NVIDIA's runtime in {file}")),
                None => subject
                    .find(Finding::new(table::CRIO, "no file in /etc/crio/crio.conf.d names nvidia-container-runtime")),
            }
            return;
        }
        "containerd" => usual(seen, subject),
        kind => distribution(containerd, kind, subject),
    }
    cri(seen, subject);
}

/// Finds why a service is down: what its journal says, where that is known.
fn down(containerd: &Containerd, state: &str, general: &'static Diagnosis, subject: &mut Subject) {
    let said = text::explain(&containerd.journal.join("\n"));
    let mut reasons: Vec<Finding> = said
        .into_iter()
        .filter(|finding| {
            matches!(finding.diagnosis.link, Link::Containerd | Link::Cri) && finding.diagnosis.id != table::RESTARTS.id
        })
        .collect();
    match reasons.pop() {
        Some(reason) if reason.diagnosis.id != general.id => subject.find(reason.also(state)),
        Some(_) | None => {
            let last = containerd.journal.last().map(|line| format!("its journal ends with: {line}"));
            let finding = Finding::new(general, state);
            subject.find(last.into_iter().fold(finding, Finding::also));
        }
    }
}

/// Returns NVIDIA's runtimes: those whose program is NVIDIA's.
fn nvidia_runtimes(containerd: &Containerd) -> Vec<&String> {
    let ours =
        |binary: &str| binary.rsplit('/').next().is_some_and(|name| name.starts_with("nvidia-container-runtime"));
    containerd.runtimes.iter().filter(|(_, runtime)| ours(&runtime.binary)).map(|(name, _)| name).collect()
}

fn usual(seen: &Evidence, subject: &mut Subject) {
    let containerd = &seen.containerd;
    let listed: Vec<&str> = containerd.runtimes.keys().map(String::as_str).collect();
    let about = format!(
        "containerd {} reads {}: default runtime `{}`, runtimes {}",
        containerd.version,
        containerd.config,
        containerd.default_runtime,
        listed.join(", ")
    );
    if containerd.cri_disabled {
        // Its runtimes don't matter before that is mended.
        return;
    }
    let nvidia = nvidia_runtimes(containerd);
    let stray = containerd.other_files.iter().find(|file| file.starts_with("/etc/containerd/config.d/"));
    match (nvidia.first(), stray) {
        (None, Some(file)) => {
            subject.find(Finding::new(table::CONFIG_D, format!("`{file}`")).also(about).in_file(file))
        }
        (None, None) => subject.find(Finding::new(table::NO_NVIDIA_RUNTIME, about).in_file(&containerd.config)),
        (Some(name), _) => {
            let runtime = &containerd.runtimes[*name];
            let old = runtime.kind != "io.containerd.runc.v2"
                && !(runtime.kind == "io.containerd.runc.v1" && containerd.version.starts_with("1."));
            if runtime.kind.is_empty() {
                subject.find(
                    Finding::new(table::NO_RUNTIME_TYPE, format!("runtime `{name}`: no `runtime_type`"))
                        .in_file(&containerd.config),
                );
            } else if old {
                subject.find(
                    Finding::new(table::OLD_RUNTIME_TYPE, format!("runtime `{name}`: {}", runtime.kind))
                        .in_file(&containerd.config),
                );
            }
            cgroups(seen, name, runtime.systemd_cgroup, subject);
            let default = if nvidia.contains(&&containerd.default_runtime) { ", the default" } else { "" };
            subject.fine(Link::Containerd, format!("{}, runtime `{name}`{default}", containerd.version));
        }
    }
    if let Some(late_s) = containerd.unread_change_s {
        let seen = format!("`{}` was written {late_s} s after containerd was started", containerd.config);
        subject.find(Finding::new(table::NOT_READ, seen).in_file(&containerd.config));
    }
}

/// NVIDIA's runtime must do as the kubelet does. Where both of containerd's runtimes differ from it in the same way, the
/// node works with that already.
fn cgroups(seen: &Evidence, name: &str, systemd: bool, subject: &mut Subject) {
    let Some(driver) = &seen.kubelet.cgroup_driver else { return };
    let runc = seen.containerd.runtimes.get("runc").map(|runtime| runtime.systemd_cgroup);
    if (driver == "systemd") != systemd && runc.is_some_and(|runc| runc != systemd) {
        let seen =
            format!("`SystemdCgroup` of the runtime `{name}` is {systemd}, the kubelet's `cgroupDriver` is {driver}");
        subject.find(Finding::new(table::CGROUP_PATH, seen));
    }
}

fn distribution(containerd: &Containerd, kind: &str, subject: &mut Subject) {
    let nvidia = nvidia_runtimes(containerd);
    match nvidia.first() {
        Some(name) => {
            let default = if nvidia.contains(&&containerd.default_runtime) { ", the default" } else { "" };
            subject.fine(Link::Containerd, format!("{kind}, runtime `{name}`{default}"));
        }
        None if containerd.config.is_empty() => {}
        None => {
            let seen = format!("`{}` of {kind} names no runtime of NVIDIA's", containerd.config);
            subject.find(Finding::new(table::GENERATED, seen).in_file(&containerd.config));
        }
    }
}

fn cri(seen: &Evidence, subject: &mut Subject) {
    let containerd = &seen.containerd;
    if containerd.kind != "containerd" || containerd.service != "active" && !containerd.service.is_empty() {
        return;
    }
    if containerd.cri_disabled {
        let seen = format!("`disabled_plugins` of `{}` names the CRI plugin", containerd.config);
        subject.find(Finding::new(table::CRI_DISABLED, seen).in_file(&containerd.config));
        return;
    }
    match (containerd.cri.as_str(), &containerd.silence) {
        ("ok", _) => subject.fine(Link::Cri, "loaded, and answers"),
        ("", Some(silence)) if !seen.root => subject.unread.push(format!("containerd's CRI plugin: {silence}")),
        ("", Some(silence)) => subject.find(Finding::new(table::CRI_SILENT, format!("ctr: {silence}"))),
        ("", None) => {}
        (state, _) => {
            down(containerd, &format!("containerd says of its CRI plugin: {state}"), table::CRI_BROKEN, subject)
        }
    }
}

pub fn kubelet(seen: &Evidence, subject: &mut Subject) {
    let kubelet = &seen.kubelet;
    if kubelet.unit.is_empty() {
        return;
    }
    if kubelet.service == "active" {
        subject.fine(Link::Kubelet, format!("{} runs", kubelet.unit));
        return;
    }
    let state = format!("the service {} is {}", kubelet.unit, kubelet.service);
    let said = text::explain(&kubelet.journal.join("\n"));
    let reason = said
        .into_iter()
        .rev()
        .find(|finding| finding.diagnosis.link == Link::Kubelet && finding.diagnosis.id != table::KUBELET_DOWN.id);
    let finding = Finding::new(table::KUBELET_DOWN, state);
    let evidence =
        reason.map(|reason| reason.seen).unwrap_or_else(|| kubelet.journal.last().cloned().into_iter().collect());
    subject.find(evidence.into_iter().fold(finding, |finding, line| finding.also(format!("its journal: {line}"))));
}
