//! The only place that writes to the terminal. Reporters are told of events and can't change a run.

mod diff;
pub mod event;
pub mod lines;
pub mod secrets;
mod style;

pub use event::{Counts, Event, HostName, Outcome, Recap, Status, TaskInfo, TaskKind};

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use crate::source::Diagnostic;
use lines::{LineOptions, Lines};

/// How a run is to be reported.
#[derive(Debug, Clone)]
pub struct Reporting {
    pub verbosity: u8,
    pub format: Format,
    pub show_skipped: bool,
    pub show_ok: bool,
    pub yaml: bool,
    pub playbooks: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Progress where a person watches, lines elsewhere.
    Auto,
    Lines,
    Json,
    Junit,
}

/// Starts the thread that owns the reporters; it ends when nobody can tell it anything any more.
pub fn start(reporting: Reporting, events: Receiver<Event>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let options = LineOptions {
            verbosity: reporting.verbosity,
            color: colors(),
            show_skipped: reporting.show_skipped,
            show_ok: reporting.show_ok,
            yaml: reporting.yaml,
            ..LineOptions::default()
        };
        let mut lines = Lines::new(std::io::stdout(), std::io::stderr(), options);
        for event in events {
            lines.take(&event);
        }
    })
}

/// Returns whether colours are wanted: on a terminal, unless `NO_COLOR` or `ANSIBLE_NOCOLOR` says no, or where
/// `ANSIBLE_FORCE_COLOR` says yes.
fn colors() -> bool {
    let says = |name: &str| {
        std::env::var(name).is_ok_and(|value| !value.is_empty() && value != "0" && !value.eq_ignore_ascii_case("false"))
    };
    if says("ANSIBLE_FORCE_COLOR") {
        return true;
    }
    std::io::stdout().is_terminal() && !says("NO_COLOR") && !says("ANSIBLE_NOCOLOR")
}

/// Shows mistakes and warnings, secrets hidden.
pub fn show_diagnostics(diagnostics: &[Diagnostic]) {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut errors = std::io::stderr();
    for diagnostic in diagnostics {
        writeln!(errors, "{}\n", secrets::hide(&diagnostic.render(color))).ok();
    }
}

/// Shows what ends the program.
pub fn complain(message: &str) {
    writeln!(std::io::stderr(), "error: {}", secrets::hide(message)).ok();
}

/// Shows a warning before a run begins.
pub fn warn(message: &str) {
    writeln!(std::io::stderr(), "[WARNING]: {}", secrets::hide(message)).ok();
}

/// Prints what was asked for. A reader that has gone, such as `head`, is no fault.
pub fn say(text: &str) {
    writeln!(std::io::stdout(), "{}", secrets::hide(text)).ok();
}
