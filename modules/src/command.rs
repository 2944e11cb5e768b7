use schemars::JsonSchema;
use serde_json::json;

use crate::decode::Arguments;
use crate::invocation;
use crate::shared::{Streams, When, yes};
use crate::{Done, Error, ErrorKind, Exec, Host, Module, Plan, host::Map, paths};

/// Run a command, without a shell.
///
/// ```yaml
/// - command: kubeadm token create --print-join-command
///   register: join
///   changed_when: false
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The command and its arguments in one line, split as a shell would split it.
    #[serde(rename = "_raw_params", alias = "cmd")]
    cmd: Option<String>,
    /// The command and its arguments as a list.
    argv: Option<Vec<String>>,
    #[serde(rename = "+when")]
    #[schemars(flatten)]
    when: When,
    #[serde(rename = "+streams")]
    #[schemars(flatten)]
    streams: Streams,
    /// Replace `$NAME` and a leading `~` in the arguments.
    #[serde(default = "yes")]
    expand_argument_vars: bool,
    /// Not used: it is `shell` that takes another shell.
    executable: Option<String>,
}

impl Module for Args {
    const CONVERGENT: bool = false;

    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let argv = match (&self.cmd, &self.argv) {
            (Some(line), None) => invocation::words(line)?,
            (None, Some(argv)) => argv.clone(),
            (Some(_), Some(_)) => return Err(bad("give a command line or `argv`, not both")),
            (None, None) => return Err(bad("no command given")),
        };
        if argv.is_empty() {
            return Err(bad("no command given"));
        }
        let cmd = json!(argv);
        let argv = match self.expand_argument_vars {
            true => argv.iter().map(|word| paths::expand(host, word)).collect::<Result<_, _>>()?,
            false => argv,
        };
        let invocation = self.streams.of(self.when.invocation());
        let mut plan = invocation.plan(host, Exec::new(argv), cmd)?;
        if let Some(executable) = &self.executable {
            plan.warnings.push(format!("`command` runs no shell and does not use `executable: {executable}`"));
        }
        Ok(plan)
    }

    fn report(&self, _host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        invocation::report(done, self.streams.strip_empty_ends, result);
        Ok(())
    }
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Arguments, message)
}
