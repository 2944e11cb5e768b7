use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{Change, Done, Error, ErrorKind, Exec, Expect, Host, Module, Plan, host::Map};

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
    /// Run it only when this path exists.
    removes: Option<String>,
    /// What the command reads as its standard input.
    stdin: Option<String>,
    /// End `stdin` with a newline.
    #[serde(default = "yes")]
    stdin_add_newline: bool,
    /// Take the empty lines off the end of the output.
    #[serde(default = "yes")]
    strip_empty_ends: bool,
    /// Replace `$NAME` and `~` in the arguments.
    #[serde(default = "yes")]
    expand_argument_vars: bool,
}

fn yes() -> bool {
    true
}

impl Module for Args {
    const CONVERGENT: bool = false;

    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let argv = match (&self.cmd, &self.argv) {
            (Some(line), None) => shell_words::split(line)
                .map_err(|_| bad(format!("`{line}` has a quote that is not closed")))?,
            (None, Some(argv)) => argv.clone(),
            (Some(_), Some(_)) => return Err(bad("give a command line or `argv`, not both")),
            (None, None) => return Err(bad("no command given")),
        };
        if argv.is_empty() {
            return Err(bad("no command given"));
        }
        let skipped = |why: String| {
            Ok(Plan::default().with("rc", 0).with("stdout", why.as_str()).with("stderr", "").with("cmd", argv.clone()))
        };
        if let Some(path) = &self.creates
            && host.stat(path)?.is_some()
        {
            return skipped(format!("skipped, since {path} exists"));
        }
        if let Some(path) = &self.removes
            && host.stat(path)?.is_none()
        {
            return skipped(format!("skipped, since {path} does not exist"));
        }
        let stdin = self.stdin.as_ref().map(|text| {
            if self.stdin_add_newline && !text.ends_with('\n') { format!("{text}\n") } else { text.clone() }
        });
        let exec = Exec { argv, stdin, chdir: self.chdir.clone(), expect: Expect::Any, ..Exec::default() };
        Ok(Plan::from(vec![Change::Exec(exec)]))
    }

    fn report(&self, _host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        let Some((Change::Exec(exec), Some(output))) = done.last().map(|done| (&done.change, &done.output)) else {
            return Ok(());
        };
        let strip = |text: &str| {
            if self.strip_empty_ends { text.trim_end_matches(['\r', '\n']).to_owned() } else { text.to_owned() }
        };
        result.insert("cmd".into(), json!(exec.argv));
        result.insert("rc".into(), output.rc.into());
        result.insert("stdout".into(), strip(&output.stdout).into());
        result.insert("stderr".into(), strip(&output.stderr).into());
        if output.rc != 0 {
            result.insert("failed".into(), true.into());
            result.insert("msg".into(), "non-zero return code".into());
        }
        Ok(())
    }
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Arguments, message)
}
