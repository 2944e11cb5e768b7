//! The only place that writes to the terminal. Reporters are told of events and can't change a run.

mod diff;
pub mod event;
mod json;
mod junit;
pub mod lines;
mod merged;
mod minimal;
mod outcome;
mod part;
pub mod past;
mod progress;
mod recap;
mod record;
pub mod secrets;
pub(crate) mod style;
mod tally;

pub use event::{Counts, Event, HostName, Outcome, Part, Recap, Status, TaskInfo, TaskKind};
pub use merged::{Merged, Row};
pub use outcome::{position, with_origin};
pub(crate) use part::counts_of;
pub use record::{About, fingerprint, runs_folder};

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::source::Diagnostic;
use json::JsonLines;
use junit::Junit;
use lines::{LineOptions, Lines};
use minimal::Minimal;
use part::PartLines;
use progress::Progress;
use record::Record;

/// How often reporters that show the time are asked to.
const TICK: Duration = Duration::from_millis(100);

/// How long the reporters let events gather.
const BREATH: Duration = Duration::from_millis(1);

/// How a run is to be reported.
#[derive(Debug, Clone)]
pub struct Reporting {
    pub format: Format,
    pub lines: LineOptions,
    /// What the record says of the run.
    pub about: About,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Progress where a person watches, lines elsewhere.
    Auto,
    Lines,
    Minimal,
    Oneline,
    Json,
    Junit,
    /// What a part of a spread run tells whoever holds the parts together.
    Part,
}

/// Is told what happens, and shows or keeps it.
pub(crate) trait Reporter: Send {
    fn take(&mut self, event: &Event);

    /// Some time has passed.
    fn tick(&mut self) {}
}

/// Starts the thread that owns the reporters; it ends when nobody can tell it anything any more.
pub fn start(mut reporting: Reporting, interrupted: Arc<AtomicBool>, events: Receiver<Event>) -> JoinHandle<()> {
    reporting.lines.color = colors();
    if std::io::stdout().is_terminal() {
        reporting.lines.columns = style::terminal_size().1.saturating_sub(1);
    }
    std::thread::spawn(move || {
        let mut reporters = vec![shown(&reporting)];
        // A part of a run leaves no record of its own.
        reporters.extend((reporting.format != Format::Part).then(|| recorder(reporting.about)).flatten());
        let mut told = false;
        loop {
            // In a burst of events, sleeping costs less than being woken for each of them.
            let event = events.try_recv().or_else(|_| {
                std::thread::sleep(BREATH);
                events.recv_timeout(TICK)
            });
            match event {
                Ok(Event::Asking(shown)) => {
                    std::io::stdout().flush().ok();
                    shown.send(()).ok();
                }
                Ok(event) => reporters.iter_mut().for_each(|reporter| reporter.take(&event)),
                Err(RecvTimeoutError::Timeout) => reporters.iter_mut().for_each(|reporter| reporter.tick()),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if !told && interrupted.load(Ordering::Relaxed) {
                told = true;
                let event = Event::Warning(STOPPING.to_owned());
                reporters.iter_mut().for_each(|reporter| reporter.take(&event));
            }
        }
    })
}

/// Returns what shows the run.
fn shown(reporting: &Reporting) -> Box<dyn Reporter> {
    let (out, errors) = (std::io::stdout(), std::io::stderr());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    match reporting.format {
        Format::Auto if out.is_terminal() && !dumb => Box::new(Progress::new(reporting.lines)),
        Format::Auto | Format::Lines => Box::new(Lines::new(out, errors, reporting.lines)),
        Format::Minimal => Box::new(Minimal::new(out, errors, reporting.lines.color, false)),
        Format::Oneline => Box::new(Minimal::new(out, errors, reporting.lines.color, true)),
        Format::Json => Box::new(JsonLines::new(out)),
        Format::Junit => Box::new(Junit::new(out, errors)),
        Format::Part => Box::new(PartLines::new(out, reporting.lines.verbosity)),
    }
}

const STOPPING: &str =
    "stopping: hosts finish the tasks that they are at; once more stops at once, and `--resume` goes on later";

/// Returns what keeps the run's record. A run goes on without one, but not silently.
fn recorder(about: About) -> Option<Box<dyn Reporter>> {
    let Some(folder) = runs_folder() else {
        warn("no record of this run is kept: neither XDG_STATE_HOME nor HOME names a folder");
        return None;
    };
    match Record::begin(&folder, about) {
        Ok(record) => Some(Box::new(record)),
        Err(error) => {
            warn(&format!("no record of this run is kept: make `{}`: {error}", folder.display()));
            None
        }
    }
}

/// Returns whether colours are wanted: on a terminal, unless `NO_COLOR` or `ANSIBLE_NOCOLOR` says no, or where
/// `ANSIBLE_FORCE_COLOR` says yes.
pub(crate) fn colors() -> bool {
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
    // One that shows a place in a file is whole already.
    let message = message.strip_prefix("error: ").unwrap_or(message);
    writeln!(std::io::stderr(), "error: {}", secrets::hide(message)).ok();
}

/// Shows a warning before a run begins.
pub fn warn(message: &str) {
    writeln!(std::io::stderr(), "[WARNING]: {}", secrets::hide(message)).ok();
}

/// Says something that is no part of what was asked for.
pub fn note(message: &str) {
    writeln!(std::io::stderr(), "{}", secrets::hide(message)).ok();
}

/// Prints what was asked for. A reader that has gone, such as `head`, is no fault.
pub fn say(text: &str) {
    writeln!(std::io::stdout(), "{}", secrets::hide(text)).ok();
}

/// Writes to standard output what was asked for as it is, with the secrets that are in it.
pub fn give(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).ok();
}
