//! What a person at a terminal sees: finished tasks condensed to a line each, and below them what goes on now.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::event::{Event, HostName, Outcome, Recap, Status, TaskInfo};
use super::lines::{LineOptions, Lines};
use super::style::{Color, Style, terminal_size};
use super::tally::{Order, Tally, clock, in_full, listed};
use super::{Reporter, secrets};

/// How often what goes on is drawn anew.
const REDRAW: Duration = Duration::from_millis(100);
/// A terminal's rows that are left to finished tasks.
const ROWS_FOR_RESULTS: usize = 8;
/// More hosts than this are never shown at work: the ones that take longest are.
const MOST_HOSTS: usize = 12;

/// A host at work.
struct Active {
    task: Arc<TaskInfo>,
    since: Instant,
    /// The latest line of the task's output.
    line: String,
}

struct Play {
    name: String,
    hosts: Order,
    tasks: usize,
    begun: usize,
}

pub struct Progress {
    draw: MultiProgress,
    /// The play and the task, then hosts at work.
    bars: Vec<ProgressBar>,
    /// Writes what is shown as elsewhere: warnings, the recap, everything with `-v`.
    lines: Lines<Buffer, Buffer>,
    buffer: Buffer,
    style: Style,
    verbose: bool,
    started: Instant,
    drawn: Instant,
    play: Option<Play>,
    tally: Option<Tally>,
    active: HashMap<HostName, Active>,
    /// Failures, for the end, by host.
    failures: Vec<(HostName, String)>,
}

impl Progress {
    pub fn new(options: LineOptions) -> Progress {
        let buffer = Buffer::default();
        let verbose = options.verbosity > 0;
        Progress {
            draw: MultiProgress::with_draw_target(ProgressDrawTarget::stdout()),
            bars: Vec::new(),
            lines: Lines::new(buffer.clone(), buffer.clone(), LineOptions { condense_recap: !verbose, ..options }),
            buffer,
            style: Style { on: options.color },
            verbose,
            started: Instant::now(),
            drawn: Instant::now(),
            play: None,
            tally: None,
            active: HashMap::new(),
            failures: Vec::new(),
        }
    }

    /// Shows text above what goes on.
    fn print(&self, text: &str) {
        let text = secrets::hide(text);
        // A terminal that is gone can't be told.
        if self.bars.is_empty() {
            // What indicatif writes last it fills up with blanks, where a line is to end: whoever copies it would get them.
            writeln!(std::io::stdout(), "{text}").ok();
        } else {
            self.draw.println(text).ok();
        }
    }

    /// Shows an event as it is shown where there is no terminal.
    fn as_lines(&mut self, event: &Event) {
        self.lines.show(event);
        let text = self.buffer.take();
        let text = text.strip_suffix('\n').unwrap_or(&text);
        if !text.is_empty() {
            self.print(text);
        }
    }

    /// Shows the task that has ended.
    fn flush(&mut self) {
        let Some(tally) = self.tally.take() else { return };
        if !self.verbose {
            let (_, columns) = terminal_size();
            let lines = tally.lines(self.style, columns);
            if !lines.is_empty() {
                self.print(&lines.join("\n"));
            }
        }
    }

    fn begin_play(&mut self, name: &str, hosts: &[HostName], tasks: usize) {
        self.flush();
        if !self.verbose {
            let count = if hosts.len() == 1 { "1 host".to_owned() } else { format!("{} hosts", hosts.len()) };
            self.print(&format!("\nPLAY [{name}] {count}"));
        }
        let hosts = Arc::new(hosts.iter().cloned().zip(0..).collect());
        self.play = Some(Play { name: name.to_owned(), hosts, tasks, begun: 0 });
    }

    fn begin_task(&mut self, task: &Arc<TaskInfo>) {
        if self.tally.as_ref().is_some_and(|tally| tally.task.id == task.id) {
            return;
        }
        self.flush();
        let order = self.play.as_ref().map(|play| play.hosts.clone()).unwrap_or_default();
        self.tally = Some(Tally::new(task.clone(), order));
        if let Some(play) = &mut self.play {
            play.begun += 1;
        }
    }

    fn result(&mut self, outcome: &Outcome) {
        self.active.remove(&outcome.host);
        self.begin_task(&outcome.task);
        if let Some(tally) = &mut self.tally {
            tally.add(outcome, self.style);
        }
        // A loop's rounds were told one by one.
        if !outcome.is_loop {
            self.failure(outcome);
        }
    }

    fn item(&mut self, outcome: &Outcome) {
        self.begin_task(&outcome.task);
        if let Some(tally) = &mut self.tally {
            tally.add_item(outcome, self.style);
        }
        if let (Some(active), Some(item)) = (self.active.get_mut(&outcome.host), &outcome.item)
            && !outcome.no_log
        {
            active.line = format!("after item {item}");
        }
        self.failure(outcome);
    }

    fn failure(&mut self, outcome: &Outcome) {
        let failed = matches!(outcome.status, Status::Failed | Status::Unreachable);
        if !failed || outcome.ignored {
            return;
        }
        if !self.verbose {
            let line = Tally::failure(outcome);
            self.print(&self.style.paint(&line, Color::Error));
        }
        self.failures.push((outcome.host.clone(), in_full(outcome)));
    }

    fn end(&mut self, recap: &Recap) {
        self.flush();
        self.active.clear();
        self.undraw();
        let lost = |host: &HostName| {
            recap.hosts.iter().any(|(name, counts)| name == host && (counts.failed > 0 || counts.unreachable > 0))
        };
        let failures: Vec<String> =
            self.failures.iter().filter(|(host, _)| lost(host)).map(|(_, text)| text.clone()).collect();
        if !failures.is_empty() && !self.verbose {
            self.print(&format!("\n{}", self.style.paint("FAILURES", Color::Error)));
            for failure in failures {
                self.print(&format!("\n{failure}"));
            }
        }
        self.as_lines(&Event::Recap(recap.clone()));
        self.print(&format!("done in {}", clock(self.started.elapsed())));
    }

    /// Draws what goes on now, unless that was done a moment ago.
    fn redraw(&mut self) {
        if self.drawn.elapsed() < REDRAW {
            return;
        }
        self.drawn = Instant::now();
        // A question on the terminal must not be drawn over.
        let asks = self.active.values().any(|active| active.task.action.rsplit('.').next() == Some("pause"));
        if self.active.is_empty() || asks {
            self.undraw();
            return;
        }
        let (rows, columns) = terminal_size();
        let texts = self.texts(rows.saturating_sub(ROWS_FOR_RESULTS).clamp(1, MOST_HOSTS), columns);
        while self.bars.len() > texts.len() {
            if let Some(bar) = self.bars.pop() {
                self.draw.remove(&bar);
            }
        }
        while self.bars.len() < texts.len() {
            let style = ProgressStyle::with_template("{wide_msg}").expect("the template is a good one");
            self.bars.push(self.draw.add(ProgressBar::new_spinner().with_style(style)));
        }
        for (bar, text) in self.bars.iter().zip(texts) {
            bar.set_message(secrets::hide(&text).into_owned());
        }
    }

    fn undraw(&mut self) {
        for bar in self.bars.drain(..) {
            bar.finish_and_clear();
            self.draw.remove(&bar);
        }
    }

    /// Returns the lines that say what goes on, at most `most` hosts among them.
    fn texts(&self, most: usize, columns: usize) -> Vec<String> {
        let mut texts = Vec::new();
        if let Some(play) = &self.play {
            let elapsed = clock(self.started.elapsed());
            let of = play.tasks.max(play.begun);
            texts.push(format!(
                "{} {} · task {} of about {of} · {elapsed}",
                bar(play.begun, of),
                play.name,
                play.begun
            ));
        }
        if let (Some(tally), Some(play)) = (&self.tally, &self.play) {
            let (done, at_work) = (tally.done(), self.active.len());
            let waiting = play.hosts.len().saturating_sub(done + at_work);
            let mut counts = format!("{done} of {} hosts done, {at_work} at work", play.hosts.len());
            if waiting > 0 {
                counts.push_str(&format!(", {waiting} waiting or not concerned"));
            }
            let name = self.style.paint(&tally.task.name, Color::Skip);
            texts.push(format!("  {name} · {counts} · {}", clock(tally.started.elapsed())));
        }
        let mut active: Vec<(&HostName, &Active)> = self.active.iter().collect();
        active.sort_by(|a, b| a.1.since.cmp(&b.1.since).then_with(|| a.0.cmp(b.0)));
        let longest = active.iter().take(most).map(|(host, _)| host.chars().count()).max().unwrap_or(0);
        let (hosts, rest) = active.split_at(most.min(active.len()));
        for (host, active) in hosts {
            let other = self.tally.as_ref().is_none_or(|tally| tally.task.id != active.task.id);
            let task = if other { format!("{} · ", active.task.name) } else { String::new() };
            let since = clock(active.since.elapsed());
            texts.push(format!("    {host:<longest$}  {since:>6}  {task}{}", active.line));
        }
        if !rest.is_empty() {
            let names: Vec<&str> = rest.iter().map(|(host, _)| &***host).collect();
            texts.push(format!("    and {} more: {}", rest.len(), listed(&names, columns.saturating_sub(24))));
        }
        texts
    }
}

impl Reporter for Progress {
    fn take(&mut self, event: &Event) {
        if self.verbose && !matches!(event, Event::Recap(_) | Event::Alive { .. }) {
            self.as_lines(event);
        }
        match event {
            Event::PlayStart { name, hosts, tasks, .. } => {
                self.begin_play(name, hosts, *tasks);
            }
            Event::HostStart { host, task } => {
                self.begin_task(task);
                let active = Active { task: task.clone(), since: Instant::now(), line: String::new() };
                self.active.insert(host.clone(), active);
            }
            Event::Alive { host, line } => {
                if let Some(active) = self.active.get_mut(host) {
                    active.line = shown_line(line);
                }
            }
            Event::Item(outcome) => self.item(outcome),
            Event::Result(outcome) => self.result(outcome),
            Event::Retry { host, left, .. } => {
                if let Some(active) = self.active.get_mut(host) {
                    active.line = format!("not yet so, {left} tries left");
                }
            }
            Event::Recap(recap) => self.end(recap),
            Event::NoHosts
            | Event::NoHostsLeft
            | Event::Note(_)
            | Event::Warning(_)
            | Event::Deprecated(_)
            | Event::Error(_)
                if !self.verbose =>
            {
                self.as_lines(event);
            }
            Event::NoHosts
            | Event::NoHostsLeft
            | Event::Note(_)
            | Event::Warning(_)
            | Event::Deprecated(_)
            | Event::Error(_)
            | Event::TaskStart(_)
            | Event::Included { .. }
            | Event::Notified { .. }
            | Event::Asking(_)
            | Event::Part(_)
            | Event::Replayed(_) => {}
        }
        self.redraw();
    }

    fn tick(&mut self) {
        self.redraw();
    }
}

/// Draws how much is done.
fn bar(done: usize, of: usize) -> String {
    const CELLS: usize = 20;
    let full = (done.saturating_sub(1) * CELLS).checked_div(of).unwrap_or(0).min(CELLS);
    format!("{}{}", "━".repeat(full), "┄".repeat(CELLS - full))
}

/// Returns a host's line without what would move the cursor.
fn shown_line(line: &str) -> String {
    let last = line.rsplit('\r').find(|part| !part.trim().is_empty()).unwrap_or_default();
    last.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Text on its way to the terminal.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn take(&self) -> String {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_output_can_not_move_the_cursor() {
        assert_eq!(shown_line(" 10%\r 20%\r"), "20%");
        assert_eq!(shown_line("a\u{1b}[2Jb"), "a [2Jb");
    }
}
