//! Asking a host's files and programs.

use crate::{Error, ErrorKind, Host, Output, Probe};

/// Returns a file's text; nothing where there is no file. Bytes that are not UTF-8 are replaced.
pub(crate) fn text(host: &dyn Host, path: &str) -> Result<String, Error> {
    Ok(String::from_utf8_lossy(&host.read(path)?.unwrap_or_default()).into_owned())
}

/// Runs a program that must be there, in English; how it ended is the caller's to judge.
///
/// # Errors
/// [`ErrorKind::Host`] when the host has no such program.
pub(crate) fn run(host: &dyn Host, argv: &[&str]) -> Result<Output, Error> {
    slow(host, argv, Probe::DEFAULT_TIMEOUT_S)
}

/// As [`run`], for a program that may need longer than others.
///
/// # Errors
/// [`ErrorKind::Host`] when the host has no such program.
pub(crate) fn slow(host: &dyn Host, argv: &[&str], timeout_s: u64) -> Result<Output, Error> {
    let env = vec![("LC_ALL".to_owned(), "C".to_owned())];
    let output = host.probe(&Probe { env, timeout_s: Some(timeout_s), ..Probe::of(argv) })?;
    if output.rc == 127 {
        return Err(missing(argv[0]));
    }
    Ok(output)
}

/// Returns what a program prints.
///
/// # Errors
/// [`ErrorKind::Host`] when it fails or is not there.
pub(crate) fn ask(host: &dyn Host, argv: &[&str]) -> Result<String, Error> {
    let output = run(host, argv)?;
    if output.success() { Ok(output.stdout) } else { Err(failed(argv, &output)) }
}

/// Says that a program failed, and how.
pub(crate) fn failed(argv: &[&str], output: &Output) -> Error {
    let said = if output.stderr.trim().is_empty() { output.stdout.trim() } else { output.stderr.trim() };
    Error::new(ErrorKind::Host, format!("`{}` exited {}: {said}", argv.join(" "), output.rc))
        .with("rc", output.rc)
        .with("stdout", output.stdout.as_str())
        .with("stderr", output.stderr.as_str())
}

/// Says that a program failed: the lines that tell why, and the first of the hints whose words are in what it `said`.
pub(crate) fn explained(attempted: &str, lines: &[&str], said: &str, hints: &[(&str, &str)], output: &Output) -> Error {
    let mut message = format!("{attempted}: {}", lines.join("; "));
    if let Some((_, hint)) = hints.iter().find(|(words, _)| said.contains(words)) {
        message.push_str(&format!("\n{hint}"));
    }
    Error::new(ErrorKind::Failed, message)
        .with("rc", output.rc)
        .with("stdout", output.stdout.as_str())
        .with("stderr", output.stderr.as_str())
}

fn missing(program: &str) -> Error {
    let name = crate::paths::name(program);
    Error::new(ErrorKind::Host, format!("this host has no `{name}`: install it first"))
}

/// An error in the arguments.
pub(crate) fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Arguments, message)
}
