//! k3s and RKE2, which write their containerd's configuration anew at each start: they find NVIDIA's runtime by
//! themselves, and their own settings say which runtime is the default.

use serde_json::Value;

use super::decide::binary_of;
use super::edit::{Text, containerd_keys};
use super::view::value_of;
use super::{Args, Mode, State, folder, refused};
use crate::host::Map;
use crate::{Change, Diff, Error, Exec, Host, Plan, Probe, Write};

pub(super) struct Rancher {
    name: &'static str,
    /// Where its containerd's configuration and the templates for it are.
    folder: &'static str,
    /// Where its own settings are.
    settings: &'static str,
    /// Its units: of servers, of agents.
    units: [&'static str; 2],
    /// Where its containerd's client may be.
    clients: [&'static str; 2],
}

pub(super) const RKE2: Rancher = Rancher {
    name: "RKE2",
    folder: "/var/lib/rancher/rke2/agent/etc/containerd",
    settings: "/etc/rancher/rke2",
    units: ["rke2-server", "rke2-agent"],
    clients: ["/var/lib/rancher/rke2/bin/ctr", "/usr/local/bin/ctr"],
};
pub(super) const K3S: Rancher = Rancher {
    name: "k3s",
    folder: "/var/lib/rancher/k3s/agent/etc/containerd",
    settings: "/etc/rancher/k3s",
    units: ["k3s", "k3s-agent"],
    clients: ["/var/lib/rancher/k3s/data/current/bin/ctr", "/usr/local/bin/ctr"],
};

/// What both call the runtime that they find.
const RUNTIME: &str = "nvidia";
/// The settings of this module, a file of its own beside the administrator's.
const OURS: &str = "config.yaml.d/90-kubeon-run-nvidia.yaml";
const SETTING: &str =
    "# Written by kubeon-run: `state: absent` of containerd_runtime removes it.\ndefault-runtime: nvidia\n";

/// Whether a file says what this module writes.
fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(SETTING.as_bytes())
}

/// Waits until the configuration `$1` has a line that matches `$2`, or none that does where `$3` is `gone`, and the CRI
/// plugin answers one of the clients `$4` and `$5`.
const WAIT: &str = r#"n=0
for ctr in "$4" "$5" none; do [ -x "$ctr" ] && break; done
while [ $n -lt 180 ]; do
    here=gone
    grep -Eq "$2" "$1" 2>/dev/null && here=there
    if [ $here = "$3" ]; then
        [ $ctr != none ] || exit 0
        timeout 10 "$ctr" --address /run/k3s/containerd/containerd.sock plugins ls 2>/dev/null |
            awk '$1 == "io.containerd.grpc.v1" && $2 == "cri" && $NF == "ok" { found = 1 } END { exit !found }' && exit 0
    fi
    sleep 1
    n=$((n + 1))
done
echo "not so after $n seconds" >&2
exit 1"#;

const DEFAULT: &str = r#"^[[:space:]]*default_runtime_name[[:space:]]*=[[:space:]]*["']nvidia["']"#;
const LISTED: &str = r#"containerd\.runtimes\.["']?nvidia["']?\]"#;

/// The configuration that was generated last.
struct Generated {
    path: String,
    default: String,
    runtimes: Map,
}

impl Rancher {
    pub(super) fn is_here(&self, host: &dyn Host) -> Result<bool, Error> {
        Ok(host.stat(self.folder)?.is_some())
    }

    pub(super) fn plan(&self, args: &Args, host: &dyn Host) -> Result<Plan, Error> {
        if args.runtime_name != RUNTIME {
            let name = &args.runtime_name;
            return Err(refused(format!(
                "{} calls the runtime `{RUNTIME}`, not `{name}`: leave `runtime_name` out",
                self.name
            )));
        }
        let generated = self.generated(host)?;
        let ours = format!("{}/{OURS}", self.settings);
        let written = host.read(&ours)?;
        let mut plan = Plan { transaction: true, ..Plan::default() };
        let default = generated.default == RUNTIME;
        match args.state {
            State::Absent if written.is_some() => plan.changes.push(Change::Remove { path: ours.clone() }),
            State::Absent => {}
            State::Present => {
                self.refuse_template(host)?;
                self.need_binary(args, host)?;
                self.refuse_other_setting(host, args.mode)?;
                match args.mode {
                    Mode::Default if !written.as_deref().is_some_and(is_ours) && !default => {
                        plan.changes.extend(self.write(host, &ours)?);
                    }
                    Mode::RuntimeClass if written.is_some() => plan.changes.push(Change::Remove { path: ours.clone() }),
                    Mode::Default | Mode::RuntimeClass => {}
                }
            }
        }
        let wanted = match (args.state, args.mode) {
            (State::Absent, _) => (DEFAULT, false),
            (State::Present, Mode::Default) => (DEFAULT, true),
            (State::Present, Mode::RuntimeClass) => (LISTED, true),
        };
        let found = generated.runtimes.get(RUNTIME).map(binary_of).unwrap_or_default();
        let stale = match (args.state, args.mode) {
            (State::Present, Mode::Default) => !default || found.is_empty(),
            (State::Present, Mode::RuntimeClass) => found.is_empty() || !plan.changes.is_empty(),
            (State::Absent, _) => !plan.changes.is_empty(),
        };
        let gone = plan.changes.iter().any(|change| matches!(change, Change::Remove { .. }));
        self.restart(args, host, &mut plan, stale, (&generated.path, wanted))?;
        if gone {
            plan.changes.extend(folder::remove(host, &ours)?);
        }
        if !found.is_empty() && found != args.binary {
            plan.warnings.push(format!("{} found NVIDIA's runtime at `{found}`, not `{}`", self.name, args.binary));
        }
        if stale {
            let to = if wanted.1 { "has" } else { "has no more" };
            let what = if wanted.0 == DEFAULT { "default runtime `nvidia`" } else { "runtime `nvidia`" };
            let text =
                format!("effective configuration of {}'s containerd, once restarted: it {to} the {what}\n", self.name);
            plan.diff.push(Diff { prepared: Some(text), ..Diff::default() });
        }
        let names: Vec<&String> = generated.runtimes.keys().collect();
        Ok(plan
            .with("config", if args.mode == Mode::Default { ours } else { generated.path })
            .with("default_runtime", generated.default.as_str())
            .with("runtimes", serde_json::json!(names))
            .with("restarted", super::propose::restarted(host)))
    }

    fn generated(&self, host: &dyn Host) -> Result<Generated, Error> {
        let path = format!("{}/config.toml", self.folder);
        let name = self.name;
        let Some(bytes) = host.read(&path)? else {
            return Err(refused(format!("{name} has not written `{path}` yet: start it first")));
        };
        let text = Text::parse(&String::from_utf8_lossy(&bytes))
            .map_err(|place| refused(format!("`{path}`, which {name} wrote, is no valid TOML: {place}")))?;
        let containerd = text.get(&containerd_keys(text.version())).map(value_of).unwrap_or_default();
        let default = containerd.get("default_runtime_name").and_then(Value::as_str).unwrap_or("runc").to_owned();
        let runtimes = containerd.get("runtimes").and_then(Value::as_object).cloned().unwrap_or_default();
        Ok(Generated { path, default, runtimes })
    }

    /// A template without the built-in one in it has no place for what k3s finds.
    fn refuse_template(&self, host: &dyn Host) -> Result<(), Error> {
        for name in ["config-v3.toml.tmpl", "config.toml.tmpl"] {
            let path = format!("{}/{name}", self.folder);
            let Some(bytes) = host.read(&path)? else { continue };
            if !String::from_utf8_lossy(&bytes).contains("template \"base\"") {
                return Err(refused(format!(
                    "the template `{path}` replaces {}'s own, which lists NVIDIA's runtime: let it begin with \
                     `{{{{ template \"base\" . }}}}`, or remove it; nothing was changed",
                    self.name
                )));
            }
        }
        Ok(())
    }

    fn need_binary(&self, args: &Args, host: &dyn Host) -> Result<(), Error> {
        if !args.require_binary || host.stat(&args.binary)?.is_some() {
            return Ok(());
        }
        Err(refused(format!("`{}` is not on this host: install nvidia-container-toolkit first", args.binary)))
    }

    /// Refuses a host whose administrator chose another default.
    fn refuse_other_setting(&self, host: &dyn Host, mode: Mode) -> Result<(), Error> {
        let folder = format!("{}/config.yaml.d", self.settings);
        let further = host.list(&folder)?.unwrap_or_default();
        let further = further.iter().map(|name| format!("{folder}/{name}"));
        for path in std::iter::once(format!("{}/config.yaml", self.settings)).chain(further) {
            let text = String::from_utf8_lossy(&host.read(&path)?.unwrap_or_default()).into_owned();
            let value = text.lines().find_map(|line| line.strip_prefix("default-runtime:"));
            let Some(value) =
                value.map(|value| value.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\'']))
            else {
                continue;
            };
            if mode == Mode::Default && value != RUNTIME {
                return Err(refused(format!(
                    "`{path}` sets `default-runtime: {value}`: remove that, or give `mode: runtime_class`"
                )));
            }
        }
        Ok(())
    }

    fn write(&self, host: &dyn Host, ours: &str) -> Result<Vec<Change>, Error> {
        let mut changes = folder::make(host, ours)?;
        let text = format!("{SETTING}{}", folder::note(folder::made(host, ours)?));
        changes.push(Change::Write(Write { mode: Some(0o600), ..Write::new(ours, text) }));
        Ok(changes)
    }

    /// Adds the restart that makes it write its configuration anew, and the wait for that.
    fn restart(
        &self,
        args: &Args,
        host: &dyn Host,
        plan: &mut Plan,
        stale: bool,
        (path, (pattern, there)): (&str, (&str, bool)),
    ) -> Result<(), Error> {
        if !stale {
            return Ok(());
        }
        let active = |unit: &&&str| {
            let state = host.probe(&Probe::of(&["systemctl", "is-active", unit]));
            state.is_ok_and(|output| matches!(output.stdout.trim(), "active" | "activating"))
        };
        let Some(unit) = self.units.iter().find(active).filter(|_| args.restart) else {
            let name = self.name;
            plan.warnings.push(format!(
                "{name} takes NVIDIA's runtime in when it starts the next time: it is not restarted now"
            ));
            return Ok(());
        };
        let restart = Change::Exec(Exec { timeout_s: Some(400), ..Exec::of(&["systemctl", "restart", unit]) });
        let state = if there { "there" } else { "gone" };
        let words = ["sh", "-c", WAIT, "wait", path, pattern, state, self.clients[0], self.clients[1]];
        let wait = Change::Exec(Exec { timeout_s: Some(240), ..Exec::of(&words) });
        plan.after_undo = vec![restart.clone()];
        plan.changes.extend([restart, wait]);
        Ok(())
    }
}
