use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::invocation::{self, Invocation};
use crate::{Done, Error, ErrorKind, Exec, Host, Module, Plan, host::Map, paths};

/// Run a command, without a shell.
///
/// ```yaml
/// - command: kubeadm token create --print-join-command
///   register: join
///   changed_when: false
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The command and its arguments in one line, split as a shell would split it.
    #[serde(rename = "_raw_params", alias = "cmd")]
    cmd: Option<String>,
    /// The command and its arguments as a list.
    argv: Option<Vec<String>>,
    /// Run it in this folder.
    chdir: Option<String>,
    /// Do not run it when this path exists; `*`, `?` and `[…]` match names.
    creates: Option<String>,
    /// Run it only when this path exists; `*`, `?` and `[…]` match names.
    removes: Option<String>,
    /// What the command reads as its standard input.
    stdin: Option<String>,
    /// End `stdin` with a newline.
    #[serde(default = "yes")]
    stdin_add_newline: bool,
    /// Take the empty lines off the end of the output.
    #[serde(default = "yes")]
    strip_empty_ends: bool,
    /// Replace `$NAME` and a leading `~` in the arguments.
    #[serde(default = "yes")]
    expand_argument_vars: bool,
    /// Not used: it is `shell` that takes another shell.
    executable: Option<String>,
}

fn yes() -> bool {
    true
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
        let invocation = Invocation {
            chdir: self.chdir.as_deref(),
            creates: self.creates.as_deref(),
            removes: self.removes.as_deref(),
            stdin: self.stdin.as_deref(),
            stdin_add_newline: self.stdin_add_newline,
        };
        let mut plan = invocation.plan(host, Exec::new(argv), cmd)?;
        if let Some(executable) = &self.executable {
            plan.warnings.push(format!("`command` runs no shell and does not use `executable: {executable}`"));
        }
        Ok(plan)
    }

    fn report(&self, _host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        invocation::report(done, self.strip_empty_ends, result);
        Ok(())
    }
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Arguments, message)
}
