use schemars::JsonSchema;

use crate::decode::Arguments;
use crate::invocation;
use crate::shared::{When, yes};
use crate::{Content, Done, Error, ErrorKind, Exec, Host, Module, Plan, host::Map, paths};

/// Run a script of the machine that runs kubeon-run on the host.
///
/// ```yaml
/// - script: files/check-disks.sh --quick
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The script's path here and its arguments.
    #[serde(rename = "_raw_params", alias = "cmd")]
    cmd: Option<String>,
    /// What the script holds; sent along, not written by users.
    #[schemars(skip)]
    content: Option<Content>,
    /// What runs the script, such as `/usr/bin/python3`; its `#!` line does when this is absent.
    executable: Option<String>,
    #[serde(rename = "+when")]
    #[schemars(flatten)]
    when: When,
    /// Whether a script in a vault is decrypted before it is sent.
    #[serde(default = "yes")]
    #[expect(dead_code, reason = "acts where the script is read, before it is sent")]
    decrypt: bool,
}

impl Module for Args {
    const CONVERGENT: bool = false;

    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let line = self.cmd.as_deref().unwrap_or_default();
        let words = invocation::words(line)?;
        let Some((script, arguments)) = words.split_first() else {
            return Err(Error::new(ErrorKind::Arguments, "no script given"));
        };
        let Some(content) = &self.content else {
            return Err(Error::new(ErrorKind::Arguments, format!("the content of `{script}` was not sent along")));
        };
        let name = paths::name(script);
        let mut argv = match &self.executable {
            Some(line) => invocation::words(line)?,
            None => Vec::new(),
        };
        argv.push(format!("{{scratch}}/{name}"));
        argv.extend(arguments.iter().cloned());
        let exec = Exec { files: vec![(name.to_owned(), content.clone())], ..Exec::new(argv) };
        let invocation = self.when.invocation();
        invocation.plan(host, exec, line.into())
    }

    fn report(&self, _host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        invocation::report(done, false, result);
        Ok(())
    }
}
