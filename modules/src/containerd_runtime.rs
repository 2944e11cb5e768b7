mod crio;
mod daemon;
mod decide;
mod dropin;
mod edit;
mod folder;
mod k0s;
mod look;
mod microk8s;
mod owner;
mod propose;
mod prove;
mod rancher;
mod record;
mod tell;
mod undo;
mod view;

pub(crate) use look::{Look, look, runtimes_written};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::containerd_runtime::daemon::{Asked, Daemon, Service};
use crate::containerd_runtime::prove::Proof;
use crate::containerd_runtime::record::Record;
use crate::containerd_runtime::view::View;
use crate::decode::Arguments;
use crate::shared::{State, yes};
use crate::{Change, Done, Error, ErrorKind, Exec, Expect, Host, Module, Output, Plan, Write};

/// Let containerd start containers through NVIDIA's runtime, proven before it is put in place.
///
/// ```yaml
/// - containerd_runtime:
///     mode: default
/// ```
///
/// What counts is what the host's own containerd makes of its configuration, not how the file is written: it is asked
/// before and after. The file keeps its comments and its order. Before the file is replaced, that containerd boots with
/// the new one beside the running one, on folders and sockets of its own, and must load its CRI plugin; after the
/// restart it must answer again and start a container with the runtime, or the old file is put back byte for byte. Nothing is restarted unless the effective
/// configuration changes.
///
/// The runtime inherits every option of the default runtime (`SystemdCgroup`, `base_runtime_spec`, …). A file that this
/// can't be done to safely is left alone, and the task says why: one that another program generates, a Docker node's, one
/// that the daemon itself refuses.
///
/// Programs that generate their containerd's configuration are told in their own way, in a file of its own:
///
/// - k3s and RKE2 find the runtime by themselves and are restarted for it; `mode: default` is `default-runtime` in
///   `/etc/rancher/k3s/config.yaml.d/` (`/etc/rancher/rke2/config.yaml.d/`)
/// - k0s reads `/etc/k0s/containerd.d/`, and restarts its containerd when a file there changes
/// - CRI-O reads `/etc/crio/crio.conf.d/`
/// - MicroK8s makes its configuration from `args/containerd-template.toml`, which is edited: its containerd must boot
///   with what will be made of it, and is restarted
///
/// What it did is recorded in `CONFIG.kubeon-run.json`; `state: absent` puts the old file back from there.
///
/// The result holds `config`, `containerd_version`, `default_runtime`, `runtimes`, `inherits`, `restarted` and
/// `container` (`runs`, or `unknown` where this host can't start one by hand).
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Whether the NVIDIA runtime becomes the default, or is there for pods of its RuntimeClass.
    #[serde(default)]
    mode: Mode,
    /// NVIDIA's runtime program.
    #[serde(default = "usual_binary")]
    binary: String,
    /// The runtime's name in containerd, which a RuntimeClass calls its handler.
    #[serde(default = "usual_name")]
    runtime_name: String,
    /// The file that containerd reads; found from its service when absent.
    config: Option<String>,
    /// `absent` undoes what `present` did.
    #[serde(default)]
    state: State,
    /// Restart containerd when its effective configuration changed and it is running.
    #[serde(default = "yes")]
    restart: bool,
    /// The containerd program; found from its service when absent.
    containerd: Option<String>,
    /// The systemd unit that runs it.
    #[serde(default = "usual_service")]
    service: String,
    /// Inherit from this runtime instead of the default one.
    inherit: Option<String>,
    /// Refuse when `binary` is not on the host: containers would not start.
    #[serde(default = "yes")]
    require_binary: bool,
    /// Rewrite a file of version 1, or of none, in the version that the daemon speaks.
    #[serde(default)]
    migrate: bool,
    /// Enable the CRI plugin where it is disabled, as Docker's package has it.
    #[serde(default)]
    enable_cri: bool,
    /// Write the runtime into a file of its own, in the folder that containerd 2 reads where `imports` of `config` names it
    /// (as in the default configuration of 2.2 and newer): it stays when another program writes `config` anew.
    #[serde(default)]
    drop_in: bool,
    /// Replace runtime types that can't start NVIDIA's program, a deprecated `default_runtime`, a runtime of the GPU
    /// operator.
    #[serde(default)]
    repair: bool,
}

/// How pods get the runtime.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// Every pod, unless it asks for another.
    #[default]
    Default,
    /// Pods whose RuntimeClass names it.
    RuntimeClass,
}

fn usual_binary() -> String {
    "/usr/bin/nvidia-container-runtime".to_owned()
}

fn usual_name() -> String {
    "nvidia".to_owned()
}

fn usual_service() -> String {
    "containerd".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        self.check()?;
        judge_restart(host.applied())?;
        if self.config.is_none()
            && let Some(plan) = owner::plan(self, host)?
        {
            return Ok(plan);
        }
        let asked =
            Asked { binary: self.containerd.as_deref(), config: self.config.as_deref(), service: &self.service };
        let daemon = daemon::find(host, &asked)?;
        Site::of(self, host, daemon)?.plan()
    }
}

impl Args {
    fn check(&self) -> Result<(), Error> {
        let wrong = |message: String| Err(Error::new(ErrorKind::Arguments, message));
        let plain = |name: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            !name.is_empty() && name.bytes().all(allowed)
        };
        if !plain(&self.runtime_name) {
            return wrong(format!(
                "`runtime_name` is `{}`: expected letters, digits, `-`, `_`, `.`",
                self.runtime_name
            ));
        }
        for (name, path) in [("binary", Some(&self.binary)), ("config", self.config.as_ref())] {
            if let Some(path) = path.filter(|path| !path.starts_with('/')) {
                return wrong(format!("`{name}` is `{path}`: expected an absolute path"));
            }
        }
        Ok(())
    }
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Refused, message)
}

/// Everything known of the host before deciding.
struct Site<'a> {
    args: &'a Args,
    host: &'a dyn Host,
    daemon: Daemon,
    /// The file's text; `None` when there is no file.
    current: Option<String>,
    /// What an earlier run did.
    record: Option<Record>,
}

impl<'a> Site<'a> {
    fn of(args: &'a Args, host: &'a dyn Host, daemon: Daemon) -> Result<Site<'a>, Error> {
        let current = match host.read(&daemon.config)? {
            None => None,
            Some(bytes) => Some(String::from_utf8(bytes).map_err(|_| {
                refused(format!("`{}` is not UTF-8 text, which containerd can't read either", daemon.config))
            })?),
        };
        let record = Record::read(host, &daemon.config)?;
        Ok(Site { args, host, daemon, current, record })
    }

    fn plan(&self) -> Result<Plan, Error> {
        match self.args.state {
            State::Present => self.present(),
            State::Absent => self.absent(),
        }
    }

    /// Refuses what another program writes; a template that is known is edited itself.
    fn refuse_generated(&self, text: &str) -> Result<(), Error> {
        if !self.daemon.placeholders.is_empty() { Ok(()) } else { owner::refuse_generated(&self.daemon.config, text) }
    }

    /// Returns what the daemon makes of the file as it is, or what it says against it.
    fn view_now(&self) -> Result<Result<View, String>, Error> {
        match self.current {
            Some(_) => self.daemon.dump_file(self.host),
            None => self.daemon.dump_text(self.host, ""),
        }
    }

    /// Boots the daemon apart with a candidate.
    fn prove(&self, candidate: &str, after: &View, default: Option<&str>) -> Result<(), Error> {
        if self.host.uid() != 0 {
            return Err(refused("proving a configuration boots containerd, which takes root: add `become: true`"));
        }
        let untouched = format!("`{}` is untouched", self.daemon.config);
        match prove::boot(self.host, &self.daemon, candidate, after)? {
            Proof::Loaded { default: Some(found) } if default.is_some_and(|default| default != found) => {
                Err(refused(format!(
                    "containerd {} would start with the default runtime `{found}`; {untouched}",
                    self.daemon.version
                )))
            }
            Proof::Loaded { .. } => Ok(()),
            Proof::Failed(message) => {
                let mut message = format!("containerd {} does not work with it: {message}", self.daemon.version);
                if let (Some(text), Ok(view)) = (&self.current, self.view_now()?)
                    && let Proof::Failed(_) = prove::boot(self.host, &self.daemon, text, &view)?
                {
                    message.push_str("; the present configuration fails in the same way: repair it first");
                }
                Err(refused(format!("{message}; {untouched}")))
            }
        }
    }

    /// Returns the changes that put a proven text in place and see the daemon work with it.
    fn swap(&self, text: &str, record: &Record, restart: bool, cri: bool, after: &View) -> Vec<Change> {
        let mut changes = vec![record.write(&self.daemon.config)];
        if self.current.as_deref() != Some(text) {
            let secret = tell::holds_secrets(text) || self.current.as_deref().is_some_and(tell::holds_secrets);
            changes.push(Change::Write(Write { hidden: secret, ..Write::new(&self.daemon.config, text) }));
        }
        if restart {
            changes.extend(self.restarting(after, cri));
        }
        changes
    }

    /// Returns the changes that restart the daemon and wait until it answers.
    fn restarting(&self, view: &View, cri: bool) -> Vec<Change> {
        let mut restart = Exec::of(&["systemctl", "restart", self.daemon.unit.as_str()]);
        restart.timeout_s = Some(120);
        let mut changes = vec![Change::Exec(restart)];
        if cri {
            let mut verify = Exec::of(&["sh", "-c", VERIFY, "verify", self.daemon.ctr.as_str(), view.address.as_str()]);
            verify.timeout_s = Some(120);
            verify.expect = Expect::Any;
            changes.push(Change::Exec(verify));
        }
        changes
    }

    /// Returns the change that starts a container with the runtime, to see that one does.
    fn starting(&self, view: &View) -> Change {
        let words = ["sh", "-c", START, "start", &self.daemon.ctr, &view.address, &self.args.binary];
        Change::Exec(Exec { expect: Expect::Any, timeout_s: Some(150), ..Exec::new(words) })
    }

    /// Returns what runs once the old file is back: a unit that failed too often would not start again otherwise.
    fn returning(&self, view: &View) -> Vec<Change> {
        let mut forget = Exec::of(&["systemctl", "reset-failed", self.daemon.unit.as_str()]);
        forget.expect = Expect::Any;
        let cri = view.enabled_cri().is_some();
        let mut changes = vec![Change::Exec(forget)];
        changes.extend(self.restarting(view, cri));
        if let (Some(Change::Exec(verify)), true) = (changes.last_mut(), cri) {
            verify.expect = Expect::Success;
        }
        changes
    }

    /// Whether a new configuration takes a restart, and one is wanted.
    fn restarts(&self) -> bool {
        self.args.restart && self.daemon.service == Service::Running
    }
}

/// Waits until the daemon's CRI plugin is in order, or is known not to be.
const VERIFY: &str = r#"n=0
while [ $n -lt 60 ]; do
    state=$("$1" --address "$2" plugins ls 2>&1 | awk '$1 == "io.containerd.grpc.v1" && $2 == "cri" { print $NF }')
    case $state in
        ok) exit 0 ;;
        error | skip) break ;;
    esac
    sleep 1
    n=$((n + 1))
done
echo "${state:-not there after $n seconds}"
exit 1"#;

/// Starts a container with the runtime `$3` and, where that fails, with the default one: only when that works is the
/// first one to blame. Its root file system is one program that needs no library: glibc's own `ldconfig`.
const START: &str = r#"here=$(mktemp -d) || exit 0
trap 'rm -rf "$here"' EXIT
mkdir -p "$here/root/bin"
for program in /sbin/ldconfig.real /sbin/ldconfig; do [ -f $program ] && break; done
cp $program "$here/root/bin/program" 2>/dev/null || { echo unknown; exit 0; }
ask() { timeout 30 "$ctr" --address "$address" --namespace kubeon-run "$@"; }
start() {
    ask run --rm --rootfs "$@" "$here/root" kubeon-run-$$ /bin/program --version
    ended=$?
    [ $ended = 0 ] || { ask tasks rm --force kubeon-run-$$; ask containers rm kubeon-run-$$; } >/dev/null 2>&1
    return $ended
}
ctr=$1 address=$2 state=runs
start --runc-binary "$3" >/dev/null 2>"$here/said" || state=fails
[ $state = runs ] || start >/dev/null 2>&1 || state=unknown
ask namespaces rm kubeon-run >/dev/null 2>&1
echo $state
[ $state != fails ] || { cat "$here/said" >&2; exit 1; }"#;

/// Fails when a restart of this task left the daemon without its CRI plugin.
fn judge_restart(applied: &[Done]) -> Result<(), Error> {
    let verified = applied.iter().rev().find_map(|done| match &done.change {
        Change::Exec(exec) if exec.argv.get(2).is_some_and(|script| script == VERIFY) => done.output.as_ref(),
        _ => None,
    });
    match verified {
        Some(output) if output.rc != 0 => {
            let state = output.stdout.trim();
            let message =
                format!("containerd restarted, but its CRI plugin is {state}: see `journalctl -u containerd`");
            return Err(Error::new(ErrorKind::Failed, message));
        }
        Some(_) | None => {}
    }
    match started(applied) {
        Some(output) if output.rc == 1 => {
            let said: Vec<&str> = output.stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            let message = "containerd works, but no container starts with NVIDIA's runtime, while one does without it";
            Err(Error::new(ErrorKind::Failed, format!("{message}: {}", said.join("; "))))
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns how the container of this task ended that was started with the runtime.
fn started(applied: &[Done]) -> Option<&Output> {
    applied.iter().rev().find_map(|done| match &done.change {
        Change::Exec(exec) if exec.argv.get(2).is_some_and(|script| script == START) => done.output.as_ref(),
        _ => None,
    })
}
