//! What logs, events and commands say: which diagnosis a text speaks of.

use super::table::{self, GENERAL};
use super::{Diagnosis, Finding};

/// Over how many lines a message may be wrapped.
const WRAPPED: usize = 4;
/// How much of a line is shown as evidence.
const SHOWN: usize = 300;
/// How many lines are shown for one diagnosis.
const MOST_SHOWN: usize = 3;

/// Returns what a text speaks of, in the order in which it does; each diagnosis once, and none that follows from
/// another one.
pub fn explain(text: &str) -> Vec<Finding> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let known: Vec<(&'static Diagnosis, Vec<Vec<String>>)> = table::all().map(|one| (one, patterns(one))).collect();
    let first = |text: &str| {
        let plain = plain(text);
        known.iter().find(|(_, patterns)| patterns.iter().any(|parts| holds(&plain, parts))).map(|(one, _)| *one)
    };
    let mut findings: Vec<Finding> = Vec::new();
    let mut matched = vec![false; lines.len()];
    for (at, line) in lines.iter().enumerate() {
        if let Some(diagnosis) = first(line) {
            matched[at] = true;
            add(&mut findings, diagnosis, line);
        }
    }
    for size in 2..=WRAPPED {
        for at in 0..(lines.len() + 1).saturating_sub(size) {
            if matched[at..at + size].iter().any(|matched| *matched) {
                continue;
            }
            let joined = lines[at..at + size].join(" ");
            if let Some(diagnosis) = first(&joined) {
                matched[at..at + size].fill(true);
                add(&mut findings, diagnosis, &joined);
            }
        }
    }
    specific(findings)
}

fn add(findings: &mut Vec<Finding>, diagnosis: &'static Diagnosis, line: &str) {
    let mut shown: String = line.chars().take(SHOWN).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    match findings.iter_mut().find(|finding| finding.diagnosis.id == diagnosis.id) {
        Some(finding) if finding.seen.len() < MOST_SHOWN && !finding.seen.contains(&shown) => finding.seen.push(shown),
        Some(_) => {}
        None => findings.push(Finding::new(diagnosis, shown)),
    }
}

/// Leaves out what follows from something else that was found, at the same link or an earlier one.
fn specific(findings: Vec<Finding>) -> Vec<Finding> {
    let is_general = |one: &Diagnosis| GENERAL.iter().any(|general| general.id == one.id);
    let reasons: Vec<&'static Diagnosis> =
        findings.iter().map(|finding| finding.diagnosis).filter(|one| !is_general(one)).collect();
    let explained = |one: &Diagnosis| is_general(one) && reasons.iter().any(|reason| reason.link <= one.link);
    findings.into_iter().filter(|finding| !explained(finding.diagnosis)).collect()
}

/// Returns each pattern's parts, which must come in this order.
fn patterns(diagnosis: &Diagnosis) -> Vec<Vec<String>> {
    let parts = |pattern: &&str| pattern.split('*').map(plain).filter(|part| !part.is_empty()).collect();
    diagnosis.says.iter().map(parts).collect()
}

fn holds(text: &str, parts: &[String]) -> bool {
    let mut rest = text;
    parts.iter().all(|part| match rest.find(part.as_str()) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// Takes away what differs from one log to another: case, blanks, the form of quotes, how often they are escaped, and the name
/// under which the operator's toolkit keeps a program that it wraps.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut blank = false;
    for letter in text.chars() {
        match letter {
            letter if letter.is_whitespace() => {
                blank = true;
                continue;
            }
            '\\' => continue,
            _ => {}
        }
        if std::mem::take(&mut blank) && !plain.is_empty() {
            plain.push(' ');
        }
        match letter {
            '“' | '”' | '„' => plain.push('"'),
            '‘' | '’' => plain.push('\''),
            letter => plain.extend(letter.to_lowercase()),
        }
    }
    plain.replace("nvidia-container-cli.real:", "nvidia-container-cli:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<&'static str> {
        explain(text).iter().map(|finding| finding.diagnosis.id).collect()
    }

    #[test]
    fn quotes_case_and_wrapping_do_not_matter() {
        assert_eq!(ids("no runtime for “nvidia” is configured"), ["containerd-without-nvidia-runtime"]);
        assert_eq!(
            ids(r#"error="… no runtime for \\\"nvidia\\\" is configured""#),
            ["containerd-without-nvidia-runtime"]
        );
        assert_eq!(
            ids("failed to get sandbox runtime: no runtime for\n   \"nvidia\" is configured"),
            ["containerd-without-nvidia-runtime"]
        );
        assert_eq!(ids("everything is fine\n"), [""; 0]);
    }

    #[test]
    fn what_follows_from_something_else_is_left_out() {
        let text = "containerd: drop-in config version 4 higher than root config version 2\n\
            containerd.service: Main process exited, code=exited, status=1/FAILURE\n";
        assert_eq!(ids(text), ["containerd-drop-in-too-new"]);
        assert_eq!(ids("containerd.service: Main process exited"), ["containerd-not-running"]);
    }
}
