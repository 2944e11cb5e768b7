use schemars::JsonSchema;

use crate::decode::Arguments;
use crate::{Change, Error, Exec, Host, Module, Plan};

/// Turn swap off until the next start.
///
/// ```yaml
/// - swap:
///     device: /dev/sda2
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Only this device or file; all of them when absent.
    device: Option<String>,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let swaps = String::from_utf8_lossy(&host.read("/proc/swaps")?.unwrap_or_default()).into_owned();
        let used = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        let on: Vec<&str> = used.filter(|name| self.device.as_deref().is_none_or(|only| only == *name)).collect();
        let changes: Vec<Change> = on.iter().map(|&name| Change::Exec(Exec::new(["swapoff", name]))).collect();
        Ok(Plan::from(changes).with("devices", on))
    }
}
