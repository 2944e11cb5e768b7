use schemars::JsonSchema;

use crate::decode::Arguments;
use crate::facts::Files;
use crate::{Change, Error, ErrorKind, Exec, Host, Module, Plan};

/// Start the host anew and wait until it is back.
///
/// ```yaml
/// - reboot:
///     reboot_timeout: 900
///   when: driver is changed
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// What users of the host are told.
    #[serde(default = "message")]
    msg: String,
    /// Seconds before the host goes down.
    #[serde(default)]
    pre_reboot_delay: u64,
    /// A command instead of `shutdown`.
    reboot_command: Option<String>,
    /// Seconds to wait once the host is back.
    #[serde(default, rename = "post_reboot_delay")]
    _post_reboot_delay: Option<f64>,
    /// Seconds in which the host must be back; 600 when absent.
    #[serde(default, rename = "reboot_timeout", alias = "reboot_timeout_sec")]
    _reboot_timeout: Option<f64>,
    /// Seconds that one try to connect may take.
    #[serde(default, rename = "connect_timeout", alias = "connect_timeout_sec")]
    _connect_timeout: Option<f64>,
    /// A command that succeeds once the host is ready; `whoami` when absent.
    #[serde(default, rename = "test_command")]
    _test_command: Option<String>,
    /// A command whose output differs between starts of the host, instead of the kernel's own id of a start.
    #[serde(default, rename = "boot_time_command")]
    _boot_time_command: Option<String>,
    /// Accepted for Ansible's sake: the host's own search path is used.
    #[serde(default, rename = "search_paths")]
    _search_paths: Option<Vec<String>>,
    /// Given by the runner when it asks whether the host is back: the id of the start that was to end. Nothing is
    /// started anew then.
    ended_boot_id: Option<String>,
}

fn message() -> String {
    "Reboot initiated by kubeon-run".to_owned()
}

impl Module for Args {
    const CONVERGENT: bool = false;

    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let files = Files(host);
        let boot_id = boot_id(files)?;
        let uptime: Option<f64> = files.text("/proc/uptime").and_then(|text| text.split(' ').next()?.parse().ok());
        let mut plan = Plan::default().with("boot_id", boot_id.as_str()).with("uptime_s", uptime.unwrap_or_default());
        if let Some(ended) = &self.ended_boot_id {
            return Ok(plan.with("rebooted", *ended != boot_id));
        }
        if host.uid() != 0 && self.reboot_command.is_none() {
            return Err(Error::new(ErrorKind::Host, "only root may start a host anew: set `become: true`"));
        }
        // Apart from the agent, and a moment later, so that this task's answer gets away first.
        let script = match &self.reboot_command {
            Some(command) => format!("(sleep \"$1\"; {command}) </dev/null >/dev/null 2>&1 &"),
            None => "(sleep \"$1\"; shutdown -r now \"$2\" || reboot) </dev/null >/dev/null 2>&1 &".to_owned(),
        };
        let delay = self.pre_reboot_delay.max(1).to_string();
        let argv = ["setsid", "sh", "-c", &script, "sh", &delay, &self.msg];
        plan.changes.push(Change::Exec(Exec::new(argv)));
        Ok(plan.with("rebooted", false))
    }
}

/// Returns what differs between two starts of the host: the kernel's own id of a start and, for a container, whose
/// kernel runs on, when the first process began.
fn boot_id(files: Files<'_>) -> Result<String, Error> {
    let kernel = files.text("/proc/sys/kernel/random/boot_id").ok_or_else(|| {
        let why = "this host's kernel tells no id of its start: `/proc/sys/kernel/random/boot_id` is missing";
        Error::new(ErrorKind::Host, why)
    })?;
    // Source: `proc_pid_stat(5)`: the 22nd field; the second is in parentheses and may hold blanks.
    let stat = files.text("/proc/1/stat").unwrap_or_default();
    let began = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)).unwrap_or("0");
    Ok(format!("{kernel}-{began}"))
}
