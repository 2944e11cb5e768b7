//! Running commands: one way for probes and for changes, always with a limit and never with a leftover process.

use std::io::{BufRead, BufReader, Read, Write as _};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command as Process, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{Exec, Expect, Scratch};
use crate::{Error, ErrorKind, Machine, Output};

/// How long output is still read after a command has ended while a child of its own holds the pipe open.
const LINGER: Duration = Duration::from_millis(300);
/// Between SIGTERM and SIGKILL of a command that ran out of time.
const GRACE: Duration = Duration::from_secs(3);
/// What one command's output may take in memory; the rest is read and dropped, and the output says so.
const OUTPUT_LIMIT_BYTES: usize = 32 << 20;

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
    let output = run_command(&Command {
        argv: &argv,
        stdin: exec.stdin.as_deref().map(str::as_bytes),
        env,
        chdir: exec.chdir.as_deref(),
        umask: exec.umask,
        timeout: machine.timeout(exec.timeout_s.map(Duration::from_secs)),
        progress: &|line| machine.progress(line),
    })?;
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
    if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), command.stdin.map(<[u8]>::to_vec)) {
        // A command that does not read its input to the end closes the pipe: not a fault.
        thread::spawn(move || pipe.write_all(&bytes).ok());
    }
    let (sender, lines) = mpsc::channel();
    if let Some(pipe) = child.stdout.take() {
        collect(pipe, Stream::Stdout, sender.clone());
    }
    if let Some(pipe) = child.stderr.take() {
        collect(pipe, Stream::Stderr, sender.clone());
    }
    drop(sender);
    let end = command.timeout.map(|timeout| Instant::now() + timeout);
    let mut output = Collected::default();
    let status = output.follow(&mut child, &lines, end, command.progress)?;
    let rc = status.code().unwrap_or_else(|| -status.signal().unwrap_or(1));
    let [stdout, stderr] = output.texts();
    Ok(Output { rc, stdout, stderr, started_s, ended_s: now_s() })
}

/// Ends the command and all that it started: SIGTERM, then SIGKILL.
fn end_group(child: &mut Child) {
    let group = -(child.id() as libc::pid_t);
    let signal = |number| {
        // SAFETY: kill(2) takes no pointers; the group is the child's own, which is not yet reaped.
        unsafe { libc::kill(group, number) }
    };
    signal(libc::SIGTERM);
    let end = Instant::now() + GRACE;
    while Instant::now() < end {
        if matches!(child.try_wait(), Ok(Some(_))) {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    signal(libc::SIGKILL);
    child.wait().ok();
}

#[derive(Clone, Copy)]
enum Stream {
    Stdout,
    Stderr,
}

/// Sends a pipe's lines until its end. Detached: a daemon that keeps the pipe open must not keep the task.
fn collect(pipe: impl Read + Send + 'static, stream: Stream, lines: mpsc::Sender<(Stream, Vec<u8>)>) {
    thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        loop {
            let mut line = Vec::new();
            match reader.by_ref().take(OUTPUT_LIMIT_BYTES as u64).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if lines.send((stream, line)).is_err() => return,
                Ok(_) => {}
            }
        }
    });
}

#[derive(Default)]
struct Collected {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    dropped_bytes: usize,
}

impl Collected {
    /// Gathers lines until the command has ended and its pipes are closed, or linger in a child left behind.
    fn follow(
        &mut self,
        child: &mut Child,
        lines: &mpsc::Receiver<(Stream, Vec<u8>)>,
        end: Option<Instant>,
        progress: &dyn Fn(&str),
    ) -> Result<ExitStatus, Error> {
        const TICK: Duration = Duration::from_millis(20);
        let failed = |error: std::io::Error| Error::new(ErrorKind::Failed, format!("wait for a command: {error}"));
        let mut ended: Option<(ExitStatus, Instant)> = None;
        let mut closed = false;
        loop {
            if closed {
                // The pipes' end comes a moment before the command's own; only one that closed them early waits.
                if let Some(status) = child.try_wait().map_err(failed)? {
                    return Ok(status);
                }
                thread::sleep(Duration::from_micros(500));
            } else {
                match lines.recv_timeout(TICK) {
                    Ok((stream, line)) => self.keep(stream, &line, progress),
                    Err(mpsc::RecvTimeoutError::Disconnected) => closed = true,
                    Err(mpsc::RecvTimeoutError::Timeout) if ended.is_none() => {
                        ended = child.try_wait().map_err(failed)?.map(|status| (status, Instant::now()));
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                }
            }
            if let Some((status, since)) = ended
                && since.elapsed() > LINGER
            {
                return Ok(status);
            }
            if let Some(end) = end
                && ended.is_none()
                && Instant::now() >= end
            {
                end_group(child);
                return Err(Error::new(ErrorKind::Failed, "ran longer than its limit and was ended"));
            }
        }
    }

    fn keep(&mut self, stream: Stream, line: &[u8], progress: &dyn Fn(&str)) {
        progress(String::from_utf8_lossy(line).trim_end());
        let kept = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        if kept.len() + line.len() <= OUTPUT_LIMIT_BYTES {
            kept.extend_from_slice(line);
        } else {
            self.dropped_bytes += line.len();
        }
    }

    fn texts(&self) -> [String; 2] {
        let mut texts = [&self.stdout, &self.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        if self.dropped_bytes > 0 {
            texts[1].push_str(&format!("[{} more bytes of output dropped]\n", self.dropped_bytes));
        }
        texts
    }
}

pub(crate) fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |elapsed| elapsed.as_secs_f64())
}
