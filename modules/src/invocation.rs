//! What `command`, `shell`, `script` and `raw` share: when to run, and how the result reads.

use serde_json::Value;

use crate::host::Map;
use crate::host::Put as _;
use crate::{Change, Done, Error, ErrorKind, Exec, Expect, Host, Plan, clock, paths};

/// When a user's command runs, and what it reads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Invocation<'a> {
    pub chdir: Option<&'a str>,
    pub creates: Option<&'a str>,
    pub removes: Option<&'a str>,
    pub stdin: Option<&'a str>,
    pub stdin_add_newline: bool,
}

impl Invocation<'_> {
    /// Plans to run `exec`, unless what it creates is there or what it removes is not. `cmd` is what the result says
    /// was run.
    ///
    /// # Errors
    /// Whatever looking at the paths reports.
    pub fn plan(&self, host: &dyn Host, exec: Exec, cmd: Value) -> Result<Plan, Error> {
        let chdir = self.chdir.map(|folder| paths::expand(host, folder)).transpose()?;
        let there = |pattern: &str| -> Result<bool, Error> {
            let pattern = paths::expand(host, pattern)?;
            let pattern = match &chdir {
                Some(folder) if !pattern.starts_with('/') => paths::join(folder, &pattern),
                Some(_) | None => pattern,
            };
            Ok(!paths::glob(host, &pattern)?.is_empty())
        };
        let skipped = |path: &str, why: &str| {
            Ok(Plan::default()
                .with("cmd", cmd.clone())
                .with("rc", 0)
                .with("stdout", format!("skipped, since {path} {why}"))
                .with("stderr", "")
                .with("msg", format!("Did not run command since '{path}' {why}")))
        };
        if let Some(path) = self.creates
            && there(path)?
        {
            return skipped(path, "exists");
        }
        if let Some(path) = self.removes
            && !there(path)?
        {
            return skipped(path, "does not exist");
        }
        let stdin = self.stdin.map(|text| {
            if self.stdin_add_newline && !text.ends_with('\n') { format!("{text}\n") } else { text.into() }
        });
        let exec = Exec { stdin, chdir, expect: Expect::Any, ..exec };
        Ok(Plan {
            changes: vec![Change::Exec(exec)],
            needed: self.creates.is_some() || self.removes.is_some(),
            ..Plan::default()
        }
        .with("cmd", cmd))
    }
}

/// Adds how the command ended; one that did not exit 0 fails the task.
pub(crate) fn report(done: &[Done], strip_empty_ends: bool, result: &mut Map) {
    let Some(output) = done.iter().rev().find_map(|done| done.output.as_ref()) else { return };
    let text = |text: &str| Value::from(if strip_empty_ends { text.trim_end_matches(['\r', '\n']) } else { text });
    result.put("rc", output.rc);
    result.put("stdout", text(&output.stdout));
    result.put("stderr", text(&output.stderr));
    result.put("start", clock::local(output.started_s));
    result.put("end", clock::local(output.ended_s));
    result.put("delta", clock::duration(output.ended_s - output.started_s));
    result.put("msg", "");
    if output.rc != 0 {
        result.put("failed", true);
        result.put("msg", "non-zero return code");
    }
}

/// Returns a command line's words.
///
/// # Errors
/// [`ErrorKind::Arguments`] when a quote is not closed.
pub(crate) fn words(line: &str) -> Result<Vec<String>, Error> {
    shell_words::split(line)
        .map_err(|_| Error::new(ErrorKind::Arguments, format!("`{line}` has a quote that is not closed")))
}
