//! The counts of all hosts at a run's end, and how they are condensed where a person watches many hosts.

use super::event::{Counts, HostName, Recap};
use super::style::{Color, Style};

/// More hosts than this are condensed where a person watches.
pub const MOST_LINES: usize = 30;

/// Returns a line for each host, as ansible-core's default callback has them.
pub fn lines(recap: &Recap, style: Style) -> Vec<String> {
    recap.hosts.iter().map(|(host, counts)| line(host, counts, style)).collect()
}

/// Returns the lines for a person: of many hosts, those that are as they were share one, and whoever failed comes last,
/// where it is seen.
pub fn condensed(recap: &Recap, style: Style) -> Vec<String> {
    if recap.hosts.len() <= MOST_LINES {
        return lines(recap, style);
    }
    let as_it_was =
        |counts: &Counts| counts.changed + counts.unreachable + counts.failed + counts.rescued + counts.ignored == 0;
    let (quiet, mut told): (Vec<_>, Vec<_>) = recap.hosts.iter().partition(|(_, counts)| as_it_was(counts));
    told.sort_by_key(|(_, counts)| color(counts) == Color::Error);
    let summary = match quiet.len() {
        0 => None,
        1 => Some("1 host: ok, nothing changed".to_owned()),
        many => Some(format!("{many} hosts: ok, nothing changed")),
    };
    let summary = summary.map(|text| style.paint(&text, Color::Ok));
    summary.into_iter().chain(told.iter().map(|(host, counts)| line(host, counts, style))).collect()
}

/// Returns the colour of a host's name.
fn color(counts: &Counts) -> Color {
    if counts.failed > 0 || counts.unreachable > 0 {
        Color::Error
    } else if counts.changed > 0 {
        Color::Changed
    } else {
        Color::Ok
    }
}

fn line(host: &HostName, counts: &Counts, style: Style) -> String {
    let part = |name: &str, count: u64, color: Color| {
        let text = format!("{name}={count:<4}");
        if count > 0 { style.paint(&text, color) } else { text }
    };
    let host = format!("{host:<26}");
    format!(
        "{} : {} {} {} {} {} {} {}",
        style.paint(&host, color(counts)),
        part("ok", counts.ok, Color::Ok),
        part("changed", counts.changed, Color::Changed),
        part("unreachable", counts.unreachable, Color::Unreachable),
        part("failed", counts.failed, Color::Error),
        part("skipped", counts.skipped, Color::Skip),
        part("rescued", counts.rescued, Color::Ok),
        part("ignored", counts.ignored, Color::Warn),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(ok: u64, changed: u64, failed: u64) -> Counts {
        Counts { ok, changed, failed, ..Counts::default() }
    }

    #[test]
    fn few_hosts_are_all_listed() {
        let hosts = (0..MOST_LINES).map(|number| (format!("n{number}").into(), counts(1, 0, 0))).collect();
        let recap = Recap { hosts, ..Recap::default() };
        assert_eq!(condensed(&recap, Style { on: false }), lines(&recap, Style { on: false }));
    }

    #[test]
    fn of_many_hosts_those_with_news_are_listed() {
        let mut hosts: Vec<(HostName, Counts)> =
            (0..40).map(|number| (format!("n{number}").into(), counts(2, 0, 0))).collect();
        hosts[3].1 = counts(1, 0, 1);
        hosts[5].1 = counts(1, 1, 0);
        hosts[7].1 = Counts { ignored: 1, ..counts(2, 0, 0) };
        let recap = Recap { hosts, ..Recap::default() };
        let shown = condensed(&recap, Style { on: false });
        let begins: Vec<&str> = shown.iter().map(|line| line.split("  ").next().unwrap_or_default()).collect();
        assert_eq!(begins, ["37 hosts: ok, nothing changed", "n5", "n7", "n3"]);
        assert_eq!(shown.last(), lines(&recap, Style { on: false }).get(3));
    }
}
