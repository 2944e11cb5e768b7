//! The lines of Ansible's callbacks `minimal` and `oneline`: one result after another, no banners.

use std::io::Write;

use serde_json::Value as Json;

use super::Reporter;
use super::event::{Event, Outcome, Status};
use super::lines::{host_label, indented, one_line, sorted};
use super::outcome::{censored, reason, visible};
use super::secrets;
use super::style::{Color, Style};

pub struct Minimal<W: Write, E: Write> {
    out: W,
    errors: E,
    style: Style,
    /// Whether a result takes one line.
    one_line: bool,
}

impl<W: Write, E: Write> Minimal<W, E> {
    pub fn new(out: W, errors: E, color: bool, one_line: bool) -> Minimal<W, E> {
        Minimal { out, errors, style: Style { on: color }, one_line }
    }

    fn result(&mut self, outcome: &Outcome) {
        let (word, color) = match outcome.status {
            Status::Ok => ("SUCCESS", Color::Ok),
            Status::Changed => ("CHANGED", Color::Changed),
            Status::Skipped => ("SKIPPED", Color::Skip),
            Status::Failed => ("FAILED!", Color::Error),
            Status::Unreachable => ("UNREACHABLE!", Color::Unreachable),
        };
        let host = host_label(outcome);
        let mut shown = if outcome.no_log { censored(outcome) } else { visible(&outcome.result) };
        for key in ["failed", "skipped", "invocation"] {
            shown.remove(key);
        }
        let text = match shown.get("stdout").and_then(Json::as_str) {
            // What a command said is shown as it said it.
            Some(stdout) if !self.one_line && outcome.status != Status::Skipped => {
                let stderr = shown.get("stderr").and_then(Json::as_str).unwrap_or_default();
                let rc = shown.get("rc").map(Json::to_string).unwrap_or_default();
                format!("{host} | {} | rc={rc} >>\n{stdout}{stderr}\n", word.trim_end_matches('!'))
            }
            Some(_) | None if self.one_line => {
                format!("{host} | {word} => {}", one_line(&sorted(Json::Object(shown))))
            }
            Some(_) | None => format!("{host} | {word} => {}", indented(&sorted(Json::Object(shown)))),
        };
        let text = self.style.paint(secrets::hide(&text).trim_end_matches('\n'), color);
        // A terminal that is gone can't be told.
        writeln!(self.out, "{text}").ok();
        self.out.flush().ok();
    }

    fn error(&mut self, kind: &str, text: &str, color: Color) {
        let text = self.style.paint(&format!("[{kind}]: {}", secrets::hide(text)), color);
        writeln!(self.errors, "{text}").ok();
    }
}

impl<W: Write + Send, E: Write + Send> Reporter for Minimal<W, E> {
    fn take(&mut self, event: &Event) {
        match event {
            Event::Result(outcome) => self.result(outcome),
            Event::Warning(text) => self.error("WARNING", text, Color::Warn),
            Event::Deprecated(text) => self.error("DEPRECATION WARNING", text, Color::Deprecate),
            Event::Error(text) => self.error("ERROR", text, Color::Error),
            Event::Item(outcome) if outcome.status == Status::Failed => {
                self.error("ERROR", &format!("{}: {}", outcome.host, reason(outcome)), Color::Error);
            }
            Event::PlayStart { .. }
            | Event::NoHosts
            | Event::NoHostsLeft
            | Event::Note(_)
            | Event::TaskStart(_)
            | Event::HostStart { .. }
            | Event::Alive { .. }
            | Event::Asking(_)
            | Event::Part(_)
            | Event::Item(_)
            | Event::Replayed(_)
            | Event::Retry { .. }
            | Event::Included { .. }
            | Event::Notified { .. }
            | Event::Recap(_) => {}
        }
    }
}
