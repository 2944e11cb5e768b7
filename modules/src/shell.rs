use schemars::JsonSchema;

use crate::decode::Arguments;
use crate::invocation;
use crate::shared::{Streams, When};
use crate::{Done, Error, ErrorKind, Exec, Host, Module, Plan, host::Map, paths};

/// Run a command line in a shell, with its pipes, redirections and variables.
///
/// ```yaml
/// - shell: lspci -nn | grep -c '\[10de:'
///   register: gpus
///   changed_when: false
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The command line.
    #[serde(rename = "_raw_params", alias = "cmd")]
    cmd: Option<String>,
    /// The shell's absolute path; `/bin/sh` when absent.
    executable: Option<String>,
    #[serde(rename = "+when")]
    #[schemars(flatten)]
    when: When,
    #[serde(rename = "+streams")]
    #[schemars(flatten)]
    streams: Streams,
}

impl Module for Args {
    const CONVERGENT: bool = false;

    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let Some(line) = self.cmd.as_deref().filter(|line| !line.trim().is_empty()) else {
            return Err(Error::new(ErrorKind::Arguments, "no command given"));
        };
        let shell = match &self.executable {
            Some(executable) => paths::expand(host, executable)?,
            None => "/bin/sh".to_owned(),
        };
        let invocation = self.streams.of(self.when.invocation());
        invocation.plan(host, Exec::new([shell.as_str(), "-c", line]), line.into())
    }

    fn report(&self, _host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        invocation::report(done, self.streams.strip_empty_ends, result);
        Ok(())
    }
}
