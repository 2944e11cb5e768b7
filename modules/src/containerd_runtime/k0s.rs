//! k0s: a file of its own among those that k0s adds to the configuration that it manages, and that it watches.

use super::daemon::{Daemon, Service};
use super::dropin::DropIn;
use super::view::View;
use super::{Args, State, decide, folder, refused, tell};
use crate::{Change, Diff, Error, Exec, Host, Plan, Write};

pub(super) const CONFIG: &str = "/etc/k0s/containerd.toml";
const BINARY: &str = "/var/lib/k0s/bin/containerd";
const CLIENT: &str = "/var/lib/k0s/bin/ctr";
const SOCKET: &str = "/run/k0s/containerd.sock";
const OURS: &str = "/etc/k0s/containerd.d/90-kubeon-run-nvidia.toml";
/// The first line that tells k0s to keep the file.
const MANAGED: &str = "# k0s_managed=true";

/// Waits until containerd `$1`, with its client `$2`, has the runtime `$3` (or has it no more, where `$4` is `gone`) in
/// what it reads, and answers. k0s restarts it by itself.
const WAIT: &str = r#"n=0
while [ $n -lt 120 ]; do
    here=gone
    "$1" --config /etc/k0s/containerd.toml config dump 2>/dev/null | grep -Eq "runtimes\.[\"']?$3[\"']?\]" && here=there
    if [ $here = "$4" ]; then
        [ -x "$2" ] || exit 0
        timeout 10 "$2" --address /run/k0s/containerd.sock plugins ls 2>/dev/null |
            awk '$1 == "io.containerd.grpc.v1" && $2 == "cri" && $NF == "ok" { found = 1 } END { exit !found }' && exit 0
    fi
    sleep 1
    n=$((n + 1))
done
echo "k0s has not taken it in after $n seconds" >&2
exit 1"#;

pub(super) fn is_here(host: &dyn Host) -> Result<bool, Error> {
    Ok(host.stat(CONFIG)?.is_some())
}

pub(super) fn plan(args: &Args, host: &dyn Host) -> Result<Plan, Error> {
    let root = String::from_utf8_lossy(&host.read(CONFIG)?.unwrap_or_default()).into_owned();
    if root.lines().next().map(str::trim) != Some(MANAGED) {
        return Err(refused(format!(
            "`{CONFIG}` does not begin with `{MANAGED}`, so k0s adds no files to it: give `config: {CONFIG}`, \
             `containerd: {BINARY}` and the unit that runs k0s as `service` to have it edited itself"
        )));
    }
    let daemon = daemon(host)?;
    let view = daemon.dump_file(host)?.map_err(|said| {
        refused(format!("containerd {} does not load `{CONFIG}`: {said}; nothing was changed", daemon.version))
    })?;
    let site = Site { args, host, daemon, view };
    match args.state {
        State::Present => site.present(),
        State::Absent => site.absent(),
    }
}

fn daemon(host: &dyn Host) -> Result<Daemon, Error> {
    let output = host.probe(&crate::Probe::of(&[BINARY, "--version"]))?;
    let (version, major) = super::daemon::version_of(&output.stdout)
        .ok_or_else(|| refused(format!("`{BINARY} --version` names no version: start k0s first")))?;
    let service = if host.stat(SOCKET)?.is_some() { Service::Running } else { Service::Stopped };
    let ctr = if host.stat(CLIENT)?.is_some() { CLIENT } else { "ctr" };
    Ok(Daemon {
        binary: BINARY.to_owned(),
        ctr: ctr.to_owned(),
        version,
        major,
        config: CONFIG.to_owned(),
        service,
        unit: String::new(),
        address: None,
        root: None,
        placeholders: Vec::new(),
        env: Vec::new(),
    })
}

struct Site<'a> {
    args: &'a Args,
    host: &'a dyn Host,
    daemon: Daemon,
    view: View,
}

impl Site<'_> {
    fn present(&self) -> Result<Plan, Error> {
        let cri = self.view.enabled_cri().ok_or_else(|| refused("k0s's containerd has its CRI plugin disabled"))?;
        if decide::satisfied(self.args, &self.view, cri, self.host.stat(OURS)?.is_some()) {
            return Ok(self.told(Plan::default(), &self.view));
        }
        if self.args.require_binary && self.host.stat(&self.args.binary)?.is_none() {
            let binary = &self.args.binary;
            return Err(refused(format!("`{binary}` is not on this host: install nvidia-container-toolkit first")));
        }
        let drop_in = DropIn {
            args: self.args,
            host: self.host,
            daemon: &self.daemon,
            view: &self.view,
            path: OURS.to_owned(),
            version: if self.daemon.major >= 2 { 3 } else { 2 },
        };
        let proven = drop_in.proven()?;
        let mut plan = Plan { transaction: true, ..Plan::default() };
        plan.changes.extend(folder::make(self.host, OURS)?);
        plan.changes.push(Change::Write(Write::new(OURS, proven.text)));
        plan.changes.extend(self.wait("there"));
        plan.diff = vec![tell::effective(&self.daemon, &self.view, &proven.after)];
        Ok(self.told(plan, &proven.after).with("inherits", proven.wanted.base))
    }

    fn absent(&self) -> Result<Plan, Error> {
        let mut plan = Plan { transaction: true, ..Plan::default() };
        if self.host.stat(OURS)?.is_some() {
            plan.changes.push(Change::Remove { path: OURS.to_owned() });
            plan.changes.extend(self.wait("gone"));
            plan.changes.extend(folder::remove(self.host, OURS)?);
            let text = format!("effective configuration of k0s's containerd: without what `{OURS}` says\n");
            plan.diff = vec![Diff { prepared: Some(text), ..Diff::default() }];
        }
        Ok(self.told(plan, &self.view))
    }

    fn wait(&self, state: &str) -> Option<Change> {
        let words = ["sh", "-c", WAIT, "wait", BINARY, CLIENT, self.args.runtime_name.as_str(), state];
        let wait = Change::Exec(Exec { timeout_s: Some(180), ..Exec::of(&words) });
        (self.args.restart && self.daemon.service == Service::Running).then_some(wait)
    }

    fn told(&self, plan: Plan, view: &View) -> Plan {
        let cri = view.enabled_cri();
        let names: Vec<&String> = cri.iter().flat_map(|cri| cri.runtimes.keys()).collect();
        plan.with("config", OURS)
            .with("containerd_version", self.daemon.version.as_str())
            .with("default_runtime", cri.map(|cri| cri.default.clone()))
            .with("runtimes", serde_json::json!(names))
            .with("restarted", !self.host.applied().is_empty())
    }
}
