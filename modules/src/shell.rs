use schemars::JsonSchema;
use serde::Deserialize;

use crate::invocation::{self, Invocation};
use crate::{Done, Error, ErrorKind, Exec, Host, Module, Plan, host::Map, paths};

/// Run a command line in a shell, with its pipes, redirections and variables.
///
/// ```yaml
/// - shell: lspci -nn | grep -c '\[10de:'
///   register: gpus
///   changed_when: false
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The command line.
    #[serde(rename = "_raw_params", alias = "cmd")]
    cmd: Option<String>,
    /// The shell's absolute path; `/bin/sh` when absent.
    executable: Option<String>,
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
}

fn yes() -> bool {
    true
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
        let invocation = Invocation {
            chdir: self.chdir.as_deref(),
            creates: self.creates.as_deref(),
            removes: self.removes.as_deref(),
            stdin: self.stdin.as_deref(),
            stdin_add_newline: self.stdin_add_newline,
        };
        invocation.plan(host, Exec::new([shell.as_str(), "-c", line]), line.into())
    }

    fn report(&self, _host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        invocation::report(done, self.strip_empty_ends, result);
        Ok(())
    }
}
