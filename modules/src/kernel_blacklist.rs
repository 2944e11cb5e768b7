use schemars::JsonSchema;

use crate::ask::{bad, text};
use crate::decode::Arguments;
use crate::shared::State;
use crate::{Change, Error, Host, Module, Plan, Write, attributes};

/// Keep a kernel module from being loaded for the hardware that it is for.
///
/// ```yaml
/// - kernel_blacklist:
///     name: nouveau
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The kernel module.
    name: String,
    #[serde(default)]
    state: State,
    /// The file.
    #[serde(default = "usual_file")]
    blacklist_file: String,
}

fn usual_file() -> String {
    "/etc/modprobe.d/blacklist-ansible.conf".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        if self.name.is_empty() || self.name.contains(char::is_whitespace) {
            return Err(bad(format!("`{}` is no kernel module's name", self.name)));
        }
        let old = text(host, &self.blacklist_file)?;
        let is_it = |line: &str| line.split_whitespace().eq(["blacklist", self.name.as_str()]);
        let there = old.lines().any(is_it);
        let mut changes = Vec::new();
        let new = match self.state {
            State::Present if !there => {
                for path in attributes::missing_parents(host, &self.blacklist_file)? {
                    changes.push(Change::Mkdir { path, mode: None });
                }
                let newline = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
                format!("{old}{newline}blacklist {}\n", self.name)
            }
            State::Absent if there => old.lines().filter(|line| !is_it(line)).map(|line| format!("{line}\n")).collect(),
            State::Present | State::Absent => return Ok(Plan::default()),
        };
        changes.push(Change::Write(Write::new(&self.blacklist_file, new)));
        Ok(changes.into())
    }
}
