//! MicroK8s, which makes its containerd's configuration from a template at every start: the template is edited, and what
//! will be made of it is what counts.

use super::daemon::{self, Daemon};
use super::{Args, Site, refused};
use crate::{Error, Host, Plan, Probe, paths};

const TEMPLATE: &str = "/var/snap/microk8s/current/args/containerd-template.toml";
/// What was made of it when containerd was started.
const MADE: &str = "/var/snap/microk8s/current/args/containerd.toml";
const SNAP: &str = "/snap/microk8s/current";
const SNAP_DATA: &str = "/var/snap/microk8s/current";
const SNAP_COMMON: &str = "/var/snap/microk8s/common";
const UNIT: &str = "snap.microk8s.daemon-containerd";
/// There where the addon for GPUs is enabled: the placeholder for the runtime stands for NVIDIA's then.
const GPU_LOCK: &str = "/var/snap/microk8s/current/var/lock/gpu";

pub(super) fn is_here(host: &dyn Host) -> Result<bool, Error> {
    Ok(host.stat(TEMPLATE)?.is_some())
}

pub(super) fn plan(args: &Args, host: &dyn Host) -> Result<Plan, Error> {
    Site::of(args, host, daemon(host)?)?.plan()
}

fn daemon(host: &dyn Host) -> Result<Daemon, Error> {
    let binary = format!("{SNAP}/bin/containerd");
    let snap = paths::real(host, SNAP)?;
    let libraries = ["lib", "usr/lib", "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"];
    let libraries = libraries.map(|folder| format!("{snap}/{folder}")).join(":");
    let env = vec![("LD_LIBRARY_PATH".to_owned(), libraries)];
    let asked = Probe { env: env.clone(), ..Probe::of(&[&binary, "--version"]) };
    let (version, major) = daemon::version_of(&host.probe(&asked)?.stdout).ok_or_else(|| {
        refused(format!("`{TEMPLATE}` is there, and `{binary} --version` names no version: repair MicroK8s first"))
    })?;
    let ctr = format!("{SNAP}/bin/ctr");
    let ctr = if host.stat(&ctr)?.is_some() { ctr } else { "ctr".to_owned() };
    Ok(Daemon {
        binary,
        ctr,
        version,
        major,
        config: TEMPLATE.to_owned(),
        service: daemon::service(host, UNIT)?,
        unit: UNIT.to_owned(),
        address: Some(format!("{SNAP_COMMON}/run/containerd.sock")),
        root: Some(format!("{SNAP_COMMON}/var/lib/containerd")),
        placeholders: placeholders(host, &snap)?,
        env,
    })
}

/// Returns what the template's placeholders stand for: those that every version has, and others as they were filled in
/// when containerd was last started.
fn placeholders(host: &dyn Host, snap: &str) -> Result<Vec<(String, String)>, Error> {
    let text = |path: &str| -> Result<String, Error> {
        Ok(String::from_utf8_lossy(&host.read(path)?.unwrap_or_default()).into_owned())
    };
    let runtime = if host.stat(GPU_LOCK)?.is_some() { "nvidia-container-runtime" } else { "runc" };
    let data = paths::real(host, SNAP_DATA)?;
    let known = [("SNAP_DATA", data.as_str()), ("SNAP_COMMON", SNAP_COMMON), ("SNAP", snap), ("RUNTIME", runtime)];
    let mut found: Vec<(String, String)> =
        known.iter().map(|(name, value)| (format!("${{{name}}}"), (*value).to_owned())).collect();
    let (template, made) = (text(TEMPLATE)?, text(MADE)?);
    for line in template.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let line = found.iter().fold(line.to_owned(), |line, (name, value)| line.replace(name, value));
        let Some((before, rest)) = line.split_once("${") else { continue };
        let Some((name, after)) = rest.split_once('}') else { continue };
        let value = made.lines().find_map(|line| line.strip_prefix(before)?.strip_suffix(after)).ok_or_else(|| {
            refused(format!(
                "what `${{{name}}}` in `{TEMPLATE}` stands for can't be told from `{MADE}`: start MicroK8s first, or \
                 write the value in its place; nothing was changed"
            ))
        })?;
        found.push((format!("${{{name}}}"), value.to_owned()));
    }
    Ok(found)
}
