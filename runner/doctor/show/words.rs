//! A report in words: one line for a host that is in order, and for any other the chain up to the link that is broken.

use super::super::{Finding, Link, Report, Severity, State, Subject};
use super::{address, remedy};
use crate::report::style::{Color, Style};

/// How a report is shown.
#[derive(Debug, Clone, Default)]
pub struct Look {
    pub color: bool,
    /// Show the whole chain of every host, and the public reports of each finding.
    pub all: bool,
    /// The playbook that mends, as it was found.
    pub playbook: String,
    /// Arguments by which that playbook reaches the same hosts.
    pub reach: Vec<String>,
    /// Whether what is shown came from a text that was pasted.
    pub of_text: bool,
    /// How wide lines may be.
    pub columns: usize,
}

/// Where the parts of a finding begin.
const MARGIN: usize = 12;

/// Returns a report in words.
pub fn words(report: &Report, look: &Look) -> String {
    let style = Style { on: look.color };
    let mut out = String::new();
    let fine = |subject: &&Subject| subject.worst().is_none_or(|worst| worst == Severity::Note) && !look.all;
    let width = report.subjects.iter().map(|subject| subject.name.chars().count()).max().unwrap_or_default();
    for subject in report.subjects.iter().filter(fine) {
        out.push_str(&one_line(subject, width, style));
    }
    for subject in report.subjects.iter().filter(|subject| !fine(subject)) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&in_full(subject, look, style));
    }
    for remark in &report.remarks {
        out.push_str(&format!("\n{}", wrapped(remark, look.columns, 0)));
    }
    if !look.of_text {
        out.push_str(&format!("\n{}", summary(report, style)));
    }
    out
}

fn one_line(subject: &Subject, width: usize, style: Style) -> String {
    let name = format!("{:width$}", subject.name);
    let notes: Vec<&str> = subject.findings.iter().map(|finding| finding.diagnosis.what).collect();
    if !subject.has_gpu && !subject.is_cluster {
        let why = if notes.is_empty() { "nothing to look at".to_owned() } else { notes.join("; ") };
        return format!("{} {name}  {why}\n", style.paint("-", Color::Skip));
    }
    let told = [Link::Allocatable, Link::Hardware, Link::Driver].iter().filter_map(|link| subject.fine.get(link));
    let mut told: Vec<&str> = told.map(String::as_str).collect();
    told.extend(notes);
    format!("{} {name}  {}\n", style.paint("✓", Color::Ok), told.join("; "))
}

fn in_full(subject: &Subject, look: &Look, style: Style) -> String {
    let node = subject.node.as_ref().filter(|node| **node != subject.name);
    let node = node.map(|node| format!(" (node {node})")).unwrap_or_default();
    let mut out = format!("{}{node}\n", subject.name);
    let broken = subject.broken();
    let links: Vec<Link> = Link::ALL.into_iter().filter(|link| shown(subject, *link, broken, look)).collect();
    let width = links.iter().map(|link| link.name().chars().count()).max().unwrap_or_default();
    for link in links {
        let (mark, color) = match subject.state(link) {
            State::Fine | State::Noted => ("✓", Color::Ok),
            State::Doubtful => ("!", Color::Warn),
            State::Broken => ("✗", Color::Error),
            State::Unknown => ("·", Color::Skip),
        };
        let here: Vec<&Finding> = subject.findings.iter().filter(|finding| finding.diagnosis.link == link).collect();
        let told = match (here.first(), subject.fine.get(&link)) {
            (Some(finding), _) => finding.diagnosis.what.to_owned(),
            (None, Some(fine)) => fine.clone(),
            (None, None) => "not looked at".to_owned(),
        };
        out.push_str(&format!("  {} {:width$}  {told}\n", style.paint(mark, color), link.name()));
        // What comes after the broken link may follow from it: it is named, and explained on demand.
        let explained = look.all || broken.is_none_or(|broken| link <= broken);
        for (at, finding) in here.iter().enumerate() {
            if at > 0 {
                out.push_str(&format!("  {} {:width$}  {}\n", style.paint(mark, color), "", finding.diagnosis.what));
            }
            if explained && (look.all || finding.diagnosis.severity > Severity::Note) {
                out.push_str(&explain(finding, subject, look, style));
            }
        }
    }
    for unread in &subject.unread {
        out.push_str(&wrapped(&format!("not looked at: {unread}"), look.columns, 4));
    }
    out
}

/// Whether a link is worth a line.
fn shown(subject: &Subject, link: Link, broken: Option<Link>, look: &Look) -> bool {
    let found = subject.findings.iter().any(|finding| finding.diagnosis.link == link);
    if look.of_text || subject.is_cluster {
        return found;
    }
    match subject.state(link) {
        State::Broken | State::Doubtful => true,
        State::Fine | State::Noted => look.all || broken.is_none_or(|broken| link < broken),
        State::Unknown => look.all && subject.has_gpu,
    }
}

fn explain(finding: &Finding, subject: &Subject, look: &Look, style: Style) -> String {
    let diagnosis = finding.diagnosis;
    let mut out = String::new();
    let mut part = |name: &str, text: &str| {
        let text = wrapped(text, look.columns, MARGIN);
        let name = style.paint(&format!("{name:<6}"), Color::Hunk);
        out.push_str(&format!("    {name}  {}", text.trim_start()));
    };
    for seen in &finding.seen {
        part("seen", seen);
    }
    part("so", diagnosis.why);
    part("owner", diagnosis.owner.name());
    let host = (!subject.is_cluster && !look.of_text).then_some(subject.name.as_str());
    let (fix, command) = remedy(finding, look, host);
    part("fix", &fix);
    if let Some(command) = command {
        part("run", &command);
    }
    if look.all || look.of_text {
        for issue in diagnosis.issues {
            part("more", &address(issue));
        }
    }
    part("id", diagnosis.id);
    out
}

fn summary(report: &Report, style: Style) -> String {
    let hosts: Vec<&Subject> = report.subjects.iter().filter(|subject| !subject.is_cluster).collect();
    let count = |wanted: &dyn Fn(&Subject) -> bool| hosts.iter().filter(|subject| wanted(subject)).count();
    let broken = count(&|subject| subject.broken().is_some());
    let doubtful = count(&|subject| subject.broken().is_none() && subject.worst() == Some(Severity::Warning));
    let without = count(&|subject| !subject.has_gpu && subject.worst().is_none_or(|worst| worst == Severity::Note));
    let fine = hosts.len() - broken - doubtful - without;
    let told = |number: usize, what: &str, color: Color| {
        let text = format!("{number} {what}");
        if number > 0 { style.paint(&text, color) } else { text }
    };
    let cluster = report.subjects.iter().find(|subject| subject.is_cluster);
    let cluster = match cluster.and_then(Subject::worst) {
        Some(Severity::Error) => style.paint("; the cluster has faults of its own", Color::Error),
        Some(Severity::Warning) => style.paint("; the cluster has warnings of its own", Color::Warn),
        Some(Severity::Note) | None => String::new(),
    };
    format!(
        "{}, {}, {}, {}{cluster}\n",
        told(fine, "in order", Color::Ok),
        told(doubtful, "with warnings", Color::Warn),
        told(broken, "broken", Color::Error),
        told(without, "without a GPU of their own", Color::Skip),
    )
}

/// Breaks text into lines, each indented.
fn wrapped(text: &str, columns: usize, indent: usize) -> String {
    let room = columns.saturating_sub(indent).max(40);
    let mut out = String::new();
    for line in text.lines() {
        let mut current = String::new();
        for word in line.split(' ') {
            if !current.is_empty() && current.chars().count() + 1 + word.chars().count() > room {
                out.push_str(&format!("{:indent$}{current}\n", ""));
                current.clear();
            }
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(word);
        }
        out.push_str(&format!("{:indent$}{current}\n", ""));
    }
    out
}
