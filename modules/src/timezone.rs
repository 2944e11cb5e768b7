use schemars::JsonSchema;
use serde::Deserialize;

use crate::ask::{bad, text};
use crate::decode::Arguments;
use crate::{Change, Diff, Error, ErrorKind, Host, Module, Plan, Write};

const ZONES: &str = "/usr/share/zoneinfo";
const LOCALTIME: &str = "/etc/localtime";
/// What Debian and its kin keep beside the link.
const NAME: &str = "/etc/timezone";
/// Is there where systemd runs.
const SYSTEMD: &str = "/run/systemd/system";
const CLOCK: &str = "/etc/adjtime";

/// Set the host's time zone.
///
/// ```yaml
/// - timezone:
///     name: Europe/Berlin
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The zone, such as `Europe/Berlin` or `UTC`.
    name: Option<String>,
    /// What the hardware clock holds.
    #[serde(alias = "rtc")]
    hwclock: Option<Clock>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
enum Clock {
    #[serde(rename = "local")]
    Local,
    #[serde(rename = "UTC", alias = "utc")]
    Utc,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        if self.name.is_none() && self.hwclock.is_none() {
            return Err(bad("nothing to do: give `name` or `hwclock`"));
        }
        let mut plan = Plan::default();
        if let Some(name) = &self.name {
            let safe = !name.starts_with('/') && !name.split('/').any(|part| part == ".." || part.is_empty());
            if !safe || host.stat(&format!("{ZONES}/{name}"))?.is_none() {
                let hint = if host.stat(ZONES)?.is_none() { ": install `tzdata`" } else { "" };
                return Err(Error::new(ErrorKind::Host, format!("this host knows no time zone `{name}`{hint}")));
            }
            // As `timedatectl` leaves it: it makes the link a relative one, and knows nothing of Debian's file.
            let systemd = host.stat(SYSTEMD)?.is_some();
            let link = host.read_link(LOCALTIME)?.unwrap_or_default();
            let before = link.split_once("zoneinfo/").map_or("n/a", |(_, zone)| zone);
            if before != name.as_str() {
                let target = format!("{}{ZONES}/{name}", if systemd { ".." } else { "" });
                plan.changes.push(Change::Symlink { path: LOCALTIME.to_owned(), target });
                let side = |zone: &str| Some(format!("name: {zone}\n"));
                plan.diff.push(Diff { before: side(before), after: side(name), ..Diff::default() });
            }
            let noted = text(host, NAME)?;
            if !systemd && host.stat(NAME)?.is_some() && noted.trim() != name {
                plan.changes.push(Change::Write(Write::new(NAME, format!("{name}\n"))));
            }
        }
        if let Some(clock) = self.hwclock {
            let word = if clock == Clock::Utc { "UTC" } else { "LOCAL" };
            let old = text(host, CLOCK)?;
            let mut lines: Vec<&str> = old.lines().collect();
            // Source: `adjtime_config(5)`: what is not there stands for UTC.
            if lines.get(2).map_or("UTC", |line| line.trim()) != word {
                for (at, usual) in ["0.0 0 0.0", "0"].into_iter().enumerate().skip(lines.len()) {
                    lines.insert(at, usual);
                }
                lines.truncate(2);
                lines.push(word);
                plan.changes.push(Change::Write(Write::new(CLOCK, lines.join("\n") + "\n")));
            }
        }
        Ok(plan)
    }
}
