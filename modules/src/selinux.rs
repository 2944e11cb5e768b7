use schemars::JsonSchema;
use serde::Deserialize;

use crate::ask::{bad, text};
use crate::decode::Arguments;
use crate::{Change, Error, ErrorKind, Exec, Host, Module, Plan, Write};

/// Set the mode and policy of SELinux, now as far as that can be, and for the next start.
///
/// ```yaml
/// - selinux:
///     policy: targeted
///     state: permissive
/// ```
///
/// The result's `reboot_required` says whether the running kernel still has another mode.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The mode.
    state: Mode,
    /// The policy, such as `targeted`; needed unless the mode is `disabled`.
    policy: Option<String>,
    /// The configuration.
    #[serde(default = "usual_file", alias = "conf", alias = "file")]
    configfile: String,
    /// Say it to the kernel at each start too, which newer kernels need for `disabled`.
    #[serde(default)]
    update_kernel_param: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Enforcing,
    Permissive,
    Disabled,
}

fn usual_file() -> String {
    "/etc/selinux/config".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        if self.policy.is_none() && self.state != Mode::Disabled {
            return Err(bad("`policy` is missing: only `state: disabled` does without"));
        }
        let word = match self.state {
            Mode::Enforcing => "enforcing",
            Mode::Permissive => "permissive",
            Mode::Disabled => "disabled",
        };
        if host.stat(&self.configfile)?.is_none() {
            let message = format!("there is no `{}` on this host: SELinux is not installed", self.configfile);
            return Err(Error::new(ErrorKind::Host, message));
        }
        let mut changes = Vec::new();
        let old = text(host, &self.configfile)?;
        let policy = self.policy.as_deref();
        if let Some(policy) = policy.filter(|policy| self.state != Mode::Disabled && !policy.is_empty()) {
            let folder = format!("/etc/selinux/{policy}");
            if policy.contains('/') || host.stat(&folder)?.is_none() {
                let message = format!("the policy `{policy}` is not installed: there is no `{folder}`");
                return Err(Error::new(ErrorKind::Host, message));
            }
        }
        let new = set(&old, "SELINUX", word);
        let new = policy.map_or(new.clone(), |policy| set(&new, "SELINUXTYPE", policy));
        if new != old {
            changes.push(Change::Write(Write::new(&self.configfile, new)));
        }
        // The kernel has it on when its file system is there: 1 enforces, 0 only tells.
        let enforces = host.read("/sys/fs/selinux/enforce")?.map(|bytes| bytes.starts_with(b"1"));
        let reboot = match (self.state, enforces) {
            (Mode::Enforcing, Some(false)) => {
                changes.push(Change::Exec(Exec::of(&["setenforce", "1"])));
                false
            }
            // Until the next start the best there is.
            (Mode::Permissive | Mode::Disabled, Some(true)) => {
                changes.push(Change::Exec(Exec::of(&["setenforce", "0"])));
                self.state == Mode::Disabled
            }
            (Mode::Disabled, Some(false)) | (Mode::Enforcing | Mode::Permissive, None) => true,
            (Mode::Enforcing, Some(true)) | (Mode::Permissive, Some(false)) | (Mode::Disabled, None) => false,
        };
        if self.update_kernel_param {
            changes.extend(self.kernel(host)?);
        }
        let plan = Plan::from(changes).with("configfile", self.configfile.as_str()).with("state", word);
        Ok(plan.with("policy", policy).with("reboot_required", reboot))
    }
}

impl Args {
    fn kernel(&self, host: &dyn Host) -> Result<Option<Change>, Error> {
        let off = self.state == Mode::Disabled;
        let output = crate::ask::ask(host, &["grubby", "--info=ALL"])?;
        let entries: Vec<&str> = output.lines().filter(|line| line.starts_with("args=")).collect();
        let is_off = |line: &&&str| line.split(['"', ' ']).any(|word| word == "selinux=0");
        let right =
            if off { entries.iter().all(|line| is_off(&line)) } else { !entries.iter().any(|line| is_off(&line)) };
        let option = if off { "--args=selinux=0" } else { "--remove-args=selinux" };
        Ok((!right).then(|| Change::Exec(Exec::of(&["grubby", "--update-kernel=ALL", option]))))
    }
}

/// Returns the text with `key=value` in place of each line of the key, or at its end.
fn set(text: &str, key: &str, value: &str) -> String {
    let is_it = |line: &&str| line.split_once('=').is_some_and(|(name, _)| name.trim() == key);
    let new = format!("{key}={value}");
    let mut lines: Vec<&str> = text.lines().map(|line| if is_it(&line) { new.as_str() } else { line }).collect();
    if !text.lines().any(|line| is_it(&line)) {
        lines.push(&new);
    }
    lines.join("\n") + "\n"
}
