//! What every transport gives: a program's standard streams, with a limit on every wait.

use std::io;
use std::time::Instant;

/// What a read brought, in how many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    Output(usize),
    Error(usize),
    /// The program has closed its output.
    End,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    Status(i32),
    /// The signal's name without `SIG`, or its number.
    Signal(String),
}

/// The streams of a program on a host. A wait that passes its deadline is `TimedOut`.
pub(super) trait Pipe: Send {
    fn read(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<Came>;
    fn write(&mut self, bytes: &[u8], deadline: Instant) -> io::Result<()>;
    /// Ends the program's input.
    fn finish(&mut self, deadline: Instant) -> io::Result<()>;
    /// Returns how the program ended, once its output has; `None` when that can't be known.
    fn ending(&mut self, deadline: Instant) -> Option<Ending>;
}

/// A program to start on a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order<'a> {
    pub text: Text<'a>,
    /// Give it a terminal, which some programs insist on before they take a password.
    pub terminal: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Text<'a> {
    /// What `/bin/sh` executes, without `'`, `\\`, `!` or a newline, so that one pair of single quotes carries it
    /// through any login shell: sh, fish and csh agree on nothing more.
    Plain(&'a str),
    /// A line for the login shell, or whatever takes its place on a device, as the user wrote it.
    Login(&'a str),
}

impl Text<'_> {
    /// Returns the line for the login shell.
    pub fn line(self) -> String {
        match self {
            Text::Plain(body) => format!("exec /bin/sh -c '{body}'"),
            Text::Login(line) => line.to_owned(),
        }
    }

    /// Returns what `/bin/sh -c` executes where no login shell stands between.
    pub fn body(&self) -> &str {
        match self {
            Text::Plain(text) | Text::Login(text) => text,
        }
    }
}

/// Returns how many milliseconds are left for poll(2); `TimedOut` when none are.
pub(super) fn left_ms(deadline: Instant) -> io::Result<i32> {
    let left = deadline.saturating_duration_since(Instant::now()).as_millis();
    if left == 0 { Err(io::ErrorKind::TimedOut.into()) } else { Ok(i32::try_from(left).unwrap_or(i32::MAX)) }
}
