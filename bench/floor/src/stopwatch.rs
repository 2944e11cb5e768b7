//! Runs a command and writes what it took. Small itself, so that it hides no memory that the command takes.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Instant;

pub fn time(file: &str, command: &[&str]) -> ExitCode {
    let Some((program, arguments)) = command.split_first() else { return ExitCode::FAILURE };
    let begin = Instant::now();
    let child = match Command::new(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("error: run `{program}`: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut status = 0;
    // SAFETY: zeroes are a value of this plain structure, and both pointers outlive the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::wait4(child.id() as libc::pid_t, &raw mut status, 0, &raw mut usage);
        usage
    };
    let wall_s = begin.elapsed().as_secs_f64();
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let rc = ExitStatus::from_raw(status).code().unwrap_or(255);
    let took = serde_json::json!({
        "wall_s": wall_s,
        "cpu_s": seconds(usage.ru_utime) + seconds(usage.ru_stime),
        "memory_kib": usage.ru_maxrss,
        "rc": rc,
    });
    if fs::write(file, took.to_string()).is_err() {
        return ExitCode::FAILURE;
    }
    ExitCode::from(u8::try_from(rc).unwrap_or(255))
}
