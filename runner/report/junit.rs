//! `--output junit`: one XML document at the run's end, a suite for each play, a case for each host and task.

use std::io::Write;

use super::Reporter;
use super::event::{Event, Outcome, Status};
use super::outcome::{censored, explanation, position, reason, visible};
use super::secrets;

struct Case {
    name: String,
    class: String,
    duration_s: f64,
    end: End,
}

enum End {
    Passed {
        changed: bool,
    },
    Skipped(String),
    /// What went wrong in a sentence, and in full.
    Failed(String, String),
    /// The host could not be reached, or the run broke off.
    Error(String, String),
}

struct Suite {
    name: String,
    cases: Vec<Case>,
}

/// Collects cases and writes them at the end.
pub struct Junit<W: Write, E: Write> {
    out: W,
    errors: E,
    suites: Vec<Suite>,
}

impl<W: Write, E: Write> Junit<W, E> {
    pub fn new(out: W, errors: E) -> Junit<W, E> {
        Junit { out, errors, suites: Vec::new() }
    }

    fn case(&mut self, outcome: &Outcome) {
        let result = if outcome.no_log { censored(outcome) } else { visible(&outcome.result) };
        let full = || {
            let shown = serde_json::to_string_pretty(&result).unwrap_or_default();
            format!("{}\n\n{shown}", explanation(outcome))
        };
        let end = match outcome.status {
            Status::Ok => End::Passed { changed: false },
            Status::Changed => End::Passed { changed: true },
            Status::Failed | Status::Unreachable if outcome.ignored => {
                End::Skipped(format!("failed, and that is ignored: {}", reason(outcome)))
            }
            Status::Skipped => {
                let why = result.get("skip_reason").or(result.get("skipped_reason")).or(result.get("msg"));
                End::Skipped(why.and_then(|why| why.as_str()).unwrap_or_default().to_owned())
            }
            Status::Failed => End::Failed(reason(outcome), full()),
            Status::Unreachable => End::Error(reason(outcome), full()),
        };
        let case = Case {
            name: format!("[{}] {}", outcome.host, outcome.task.name),
            class: position(outcome.task.place),
            duration_s: outcome.duration_s,
            end,
        };
        self.add(case);
    }

    fn add(&mut self, case: Case) {
        if self.suites.is_empty() {
            self.suites.push(Suite { name: "run".to_owned(), cases: Vec::new() });
        }
        if let Some(suite) = self.suites.last_mut() {
            suite.cases.push(case);
        }
    }

    fn write(&mut self, duration_s: f64) -> std::io::Result<()> {
        let counts = |cases: &[Case]| {
            let count = |is: &dyn Fn(&End) -> bool| cases.iter().filter(|case| is(&case.end)).count();
            format!(
                "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
                cases.len(),
                count(&|end| matches!(end, End::Failed(..))),
                count(&|end| matches!(end, End::Error(..))),
                count(&|end| matches!(end, End::Skipped(_))),
            )
        };
        writeln!(self.out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(self.out, "<testsuites name=\"kubeon-run\" time=\"{duration_s:.3}\">")?;
        for suite in &self.suites {
            let time: f64 = suite.cases.iter().map(|case| case.duration_s).sum();
            let counts = counts(&suite.cases);
            writeln!(self.out, "  <testsuite name=\"{}\" {counts} time=\"{time:.3}\">", escaped(&suite.name))?;
            for case in &suite.cases {
                write_case(&mut self.out, case)?;
            }
            writeln!(self.out, "  </testsuite>")?;
        }
        writeln!(self.out, "</testsuites>")?;
        self.out.flush()
    }
}

fn write_case(out: &mut impl Write, case: &Case) -> std::io::Result<()> {
    let (name, class) = (escaped(&case.name), escaped(&case.class));
    let head = format!("    <testcase name=\"{name}\" classname=\"{class}\" time=\"{:.3}\"", case.duration_s);
    let fault = |kind: &str, reason: &str, full: &str| {
        format!("{head}>\n      <{kind} message=\"{}\">{}</{kind}>\n    </testcase>", escaped(reason), escaped(full))
    };
    let text = match &case.end {
        End::Passed { changed: false } => format!("{head}/>"),
        End::Passed { changed: true } => format!("{head}>\n      <system-out>changed</system-out>\n    </testcase>"),
        End::Skipped(why) => format!("{head}>\n      <skipped message=\"{}\"/>\n    </testcase>", escaped(why)),
        End::Failed(reason, full) => fault("failure", reason, full),
        End::Error(reason, full) => fault("error", reason, full),
    };
    writeln!(out, "{text}")
}

impl<W: Write + Send, E: Write + Send> Reporter for Junit<W, E> {
    fn take(&mut self, event: &Event) {
        match event {
            Event::PlayStart { name, .. } => self.suites.push(Suite { name: name.clone(), cases: Vec::new() }),
            Event::Result(outcome) => self.case(outcome),
            Event::Error(text) => {
                let case = Case {
                    name: "run".to_owned(),
                    class: String::new(),
                    duration_s: 0.0,
                    end: End::Error(text.lines().next().unwrap_or_default().to_owned(), text.clone()),
                };
                self.add(case);
            }
            Event::Warning(text) | Event::Deprecated(text) => {
                writeln!(self.errors, "[WARNING]: {}", secrets::hide(text)).ok();
            }
            Event::Recap(recap) => {
                // A reader that is gone can't be told.
                self.write(recap.duration_s).ok();
            }
            Event::NoHosts
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
            | Event::Notified { .. } => {}
        }
    }
}

/// Returns text for XML, secrets hidden: what XML 1.0 can't hold becomes `?`, and line ends in attributes stay.
fn escaped(text: &str) -> String {
    let mut shown = String::new();
    for c in secrets::hide(text).chars() {
        match c {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\n' => shown.push_str("&#10;"),
            '\t' => shown.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => shown.push('?'),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_can_not_hold_is_replaced() {
        assert_eq!(escaped("a<b> & \"c\"\n\u{1}"), "a&lt;b&gt; &amp; &quot;c&quot;&#10;?");
    }
}
