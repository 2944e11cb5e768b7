use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::decode::Arguments;
use crate::facts::{Files, full_name, systemd_runs};
use crate::{Change, Error, ErrorKind, Exec, Host, Module, Plan, Write};

/// The longest name that Linux keeps. Source: `sethostname(2)`.
const LIMIT: usize = 64;

/// Set the host's name, now and for its next start.
///
/// ```yaml
/// - hostname:
///     name: "{{ inventory_hostname }}"
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The name.
    name: String,
    /// How to set it: by `systemd`, or in files for the rest; found out when absent.
    #[serde(rename = "use")]
    by: Option<By>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum By {
    Systemd,
    #[serde(alias = "alpine", alias = "generic", alias = "debian", alias = "redhat")]
    Files,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let name = self.name.trim();
        let label = |label: &str| {
            !label.is_empty()
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_')
        };
        if name.len() > LIMIT || !name.split('.').all(label) {
            return Err(Error::new(
                ErrorKind::Arguments,
                format!("`{name}` is no host's name: letters, digits, `-` and `.`, at most {LIMIT} of them"),
            ));
        }
        let files = Files(host);
        let running = files.text("/proc/sys/kernel/hostname").unwrap_or_default();
        let kept = files.text("/etc/hostname").unwrap_or_default();
        let kept = kept.lines().map(str::trim).find(|line| !line.starts_with('#')).unwrap_or_default();
        let systemd = self.by.map_or_else(|| systemd_runs(files), |by| by == By::Systemd);
        let mut changes = Vec::new();
        if running != name || kept != name {
            if systemd {
                changes.push(Change::Exec(Exec::of(&["hostnamectl", "set-hostname", name])));
            } else {
                if kept != name {
                    changes.push(Change::Write(Write::new("/etc/hostname", format!("{name}\n"))));
                }
                if running != name {
                    changes.push(Change::Exec(Exec::of(&["hostname", name])));
                }
            }
        }
        let fqdn = full_name(files, name);
        let facts: Value = json!({
            "ansible_hostname": name.split('.').next(),
            "ansible_nodename": name,
            "ansible_domain": fqdn.split_once('.').map_or("", |(_, domain)| domain),
            "ansible_fqdn": fqdn,
        });
        Ok(Plan::from(changes).with("name", name).with("ansible_facts", facts))
    }
}
