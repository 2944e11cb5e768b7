//! Facts of a host, under Ansible's names, gathered from files and system calls and hardly ever from a command.

mod cpu;
mod devices;
mod distribution;
mod dmi;
mod identity;
mod kernel;
mod local;
mod memory;
mod mounts;
mod network;
mod resolve;
mod security;
mod service;
mod subset;
mod time;
mod uname;
mod virtualization;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub(crate) use distribution::{Distribution, distribution_of};
pub(crate) use mounts::{entry_of, unescaped};
pub(crate) use service::{service_manager, systemd_runs};
pub(crate) use subset::Subset;

use crate::host::Put as _;
use crate::host::{Host, Map};

/// A host's files as facts read them: what can't be read is as good as not there.
#[derive(Clone, Copy)]
pub(crate) struct Files<'a>(pub &'a dyn Host);

impl Files<'_> {
    /// Returns a file's text without the white space around it; `None` when that leaves nothing.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let bytes = self.0.read(path).ok()??;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    pub(crate) fn number(&self, path: &str) -> Option<i64> {
        self.text(path)?.parse().ok()
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        matches!(self.0.stat(path), Ok(Some(_)))
    }

    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        self.0.list(folder).ok().flatten().unwrap_or_default()
    }

    /// Returns the last part of a link's target.
    pub(crate) fn link_name(&self, path: &str) -> Option<String> {
        let target = self.0.read_link(path).ok()??;
        Some(target.rsplit('/').next().unwrap_or(&target).to_owned())
    }
}

/// What to gather.
pub(crate) struct Wanted<'a> {
    pub subsets: Vec<Subset>,
    /// How long one slow source, such as a network file system, may take.
    pub timeout: Duration,
    /// The folder of local facts.
    pub fact_path: &'a str,
}

/// Returns the facts without Ansible's prefix, and what could not be gathered, in words.
pub(crate) fn gather(host: &dyn Host, wanted: &Wanted<'_>) -> (Map, Vec<String>) {
    let files = Files(host);
    let mut facts = Map::new();
    let mut warnings = Vec::new();
    let names = identity::names(files);
    let lookup = wanted.subsets.contains(&Subset::Platform).then(|| resolve::Lookup::start(files, &names.node));
    let distribution = distribution_of(files);
    for subset in &wanted.subsets {
        let found = match subset {
            Subset::Platform => kernel::facts(files, &names),
            Subset::Distribution => distribution.facts(),
            Subset::Lsb => distribution::lsb(files),
            Subset::Selinux => security::selinux(files),
            Subset::Apparmor => security::apparmor(files),
            Subset::Chroot => security::chroot(host),
            Subset::Fips => security::fips(files),
            Subset::Caps => security::capabilities(files),
            Subset::PkgMgr => service::package_manager(host, &distribution),
            Subset::ServiceMgr => map([("service_mgr", service_manager(files).into())]),
            Subset::Systemd => service::systemd(host),
            Subset::Cmdline => kernel::command_line(files),
            Subset::Loadavg => kernel::load(files),
            Subset::DateTime => map([("date_time", time::date_time(time::now()).into())]),
            Subset::Env => map([("env", json!(host.environment()))]),
            Subset::SshPubKeys => identity::ssh_keys(files),
            Subset::User => identity::user(host),
            Subset::Virtual => virtualization::facts(files),
            Subset::Hardware => hardware(host, wanted.timeout, &mut warnings),
            Subset::Network => network::facts(files),
            Subset::Dns => network::dns(files),
            Subset::Iscsi => network::initiators(files),
            Subset::Local => local::facts(host, wanted.fact_path, wanted.timeout, &mut warnings),
            // No Python, facter or ohai is asked: there may be none.
            Subset::Python | Subset::Facter | Subset::Ohai => Map::new(),
        };
        facts.extend(found);
    }
    if let Some(lookup) = lookup {
        let fqdn = lookup.finish();
        let domain = fqdn.split_once('.').map_or("", |(_, domain)| domain);
        facts.put("domain", domain);
        facts.put("fqdn", fqdn);
    }
    (facts, warnings)
}

fn hardware(host: &dyn Host, timeout: Duration, warnings: &mut Vec<String>) -> Map {
    let files = Files(host);
    let sizes = mounts::Sizes::start(files, Instant::now() + timeout);
    let mut facts = Map::new();
    if let Some(text) = files.text("/proc/cpuinfo") {
        let xen = files.exists("/proc/xen") || files.text("/sys/hypervisor/type").as_deref() == Some("xen");
        facts.extend(cpu::facts(&text, &uname::machine(), xen, cpu::usable()));
    }
    if let Some(text) = files.text("/proc/meminfo") {
        facts.extend(memory::facts(&text));
    }
    facts.extend(dmi::facts(files));
    facts.extend(devices::facts(files));
    if let Some(seconds) = files.text("/proc/uptime").and_then(|text| text.split('.').next()?.parse::<u64>().ok()) {
        facts.put("uptime_seconds", seconds);
    }
    facts.put("lvm", devices::lvm(host));
    facts.put("mounts", sizes.finish(files, warnings));
    facts
}

/// Returns a host's name with its domain, where one can be found.
pub(crate) fn full_name(files: Files<'_>, node: &str) -> String {
    resolve::Lookup::start(files, node).finish()
}

/// Returns a map of these entries.
fn map<const N: usize>(entries: [(&str, Value); N]) -> Map {
    collected(Vec::from(entries))
}

#[inline(never)]
fn collected(entries: Vec<(&str, Value)>) -> Map {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Returns the value of `KEY=value` lines as a shell would read them.
fn assignment(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let value = line.trim().strip_prefix(key)?.strip_prefix('=')?.trim();
        Some(unquoted(value).to_owned())
    })
}

fn unquoted(value: &str) -> &str {
    ['"', '\''].iter().find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(value)
}
