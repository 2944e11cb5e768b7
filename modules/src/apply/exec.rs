//! Running commands: one way for probes and for changes, always with a limit and never with a leftover process.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command as Process, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::follow::{Ended, follow};
use super::{Exec, Expect, Scratch};
use crate::{Error, ErrorKind, Machine, Output};

/// How long a command waits for what somebody else holds before it is run again.
const AGAIN_EVERY: Duration = Duration::from_millis(500);

pub(crate) struct Command<'a> {
    pub argv: &'a [String],
    pub stdin: Option<&'a [u8]>,
    pub env: Vec<(String, String)>,
    pub chdir: Option<&'a str>,
    pub umask: Option<u32>,
    pub timeout: Option<Duration>,
    /// Gets each line of output as it comes.
    pub progress: &'a dyn Fn(&str),
}

/// Runs the command of a change and fails unless it ends as expected.
pub(super) fn exec(machine: &Machine, exec: &Exec) -> Result<Output, Error> {
    let mut env = machine.task_environment();
    env.extend(exec.env.iter().cloned());
    let scratch = if exec.files.is_empty() { None } else { Some(Scratch::new()?) };
    let mut argv = exec.argv.clone();
    if let Some(scratch) = &scratch {
        let folder = scratch.path().to_string_lossy();
        for (name, content) in &exec.files {
            scratch.add_content(machine, name, content)?;
        }
        for word in &mut argv {
            *word = word.replace("{scratch}", &folder);
        }
    }
    let started = Instant::now();
    let output = loop {
        let output = run_command(&Command {
            argv: &argv,
            stdin: exec.stdin.as_deref().map(str::as_bytes),
            env: env.clone(),
            chdir: exec.chdir.as_deref(),
            umask: exec.umask,
            timeout: machine.timeout(exec.timeout_s.map(Duration::from_secs)),
            progress: &|line| machine.progress(line),
        })?;
        let Some(again) = exec.again.as_ref().filter(|again| !output.success() && output.stderr.contains(&again.said))
        else {
            break output;
        };
        if started.elapsed() + AGAIN_EVERY > Duration::from_secs(again.for_s) {
            break output;
        }
        thread::sleep(AGAIN_EVERY);
    };
    let right = match &exec.expect {
        Expect::Success => output.rc == 0,
        Expect::Any => true,
        Expect::OneOf(codes) => codes.contains(&output.rc),
    };
    if right {
        return Ok(output);
    }
    let said = if output.stderr.trim().is_empty() { output.stdout.trim() } else { output.stderr.trim() };
    Err(Error::new(ErrorKind::Failed, format!("`{}` exited {}: {}", exec.argv.join(" "), output.rc, tail(said)))
        .with("rc", output.rc)
        .with("cmd", exec.argv.clone())
        .with("stdout", output.stdout.as_str())
        .with("stderr", output.stderr.as_str()))
}

fn tail(text: &str) -> &str {
    const KEPT: usize = 600;
    let start = text.len().saturating_sub(KEPT);
    let start = (start..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    &text[start..]
}

/// Runs a command to its end or its limit. A program that does not exist is `rc` 127, as a shell has it.
///
/// # Errors
/// [`ErrorKind::Failed`] when the limit ran out (everything the command started is ended) and when the system could
/// not start it for another reason than a missing program.
pub(crate) fn run_command(command: &Command<'_>) -> Result<Output, Error> {
    let (program, arguments) =
        command.argv.split_first().ok_or_else(|| Error::new(ErrorKind::Arguments, "no command given"))?;
    let started_s = now_s();
    let mut process = Process::new(program);
    process.args(arguments).envs(command.env.iter().map(|(key, value)| (key, value)));
    process.stdin(if command.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
    process.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    if let Some(folder) = command.chdir {
        process.current_dir(folder);
    }
    if let Some(umask) = command.umask {
        // SAFETY: umask(2) is async-signal-safe and touches only the child.
        unsafe {
            process.pre_exec(move || {
                libc::umask(umask as libc::mode_t);
                Ok(())
            });
        }
    }
    let mut child = match process.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let missing = command.chdir.filter(|folder| !std::path::Path::new(folder).is_dir());
            let stderr = match missing {
                Some(folder) => format!("no such folder to run in: {folder}"),
                None => format!("{program}: command not found"),
            };
            return Ok(Output { rc: 127, stdout: String::new(), stderr, started_s, ended_s: now_s() });
        }
        Err(error) => {
            return Err(Error::new(ErrorKind::Failed, format!("run `{program}`: {error}")));
        }
    };
    let end = command.timeout.map(|timeout| Instant::now() + timeout);
    let Ended { status, stdout, stderr } = follow(&mut child, command.stdin, end, command.progress)?;
    let rc = status.code().unwrap_or_else(|| -status.signal().unwrap_or(1));
    Ok(Output { rc, stdout, stderr, started_s, ended_s: now_s() })
}

pub(crate) fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |elapsed| elapsed.as_secs_f64())
}
