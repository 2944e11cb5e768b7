use schemars::JsonSchema;

use crate::decode::Arguments;
use crate::invocation::{self, Invocation};
use crate::{Done, Error, ErrorKind, Exec, Host, Module, Plan, host::Map};

/// Run a command line in a shell, with nothing around it.
///
/// ```yaml
/// - raw: uptime
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The command line.
    #[serde(rename = "_raw_params", alias = "cmd")]
    cmd: Option<String>,
    /// The shell's absolute path; `/bin/sh` when absent.
    executable: Option<String>,
}

impl Module for Args {
    const CONVERGENT: bool = false;

    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let Some(line) = self.cmd.as_deref().filter(|line| !line.trim().is_empty()) else {
            return Err(Error::new(ErrorKind::Arguments, "no command given"));
        };
        let shell = self.executable.as_deref().unwrap_or("/bin/sh");
        Invocation::default().plan(host, Exec::new([shell, "-c", line]), line.into())
    }

    fn report(&self, _host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        invocation::report(done, false, result);
        Ok(())
    }
}
