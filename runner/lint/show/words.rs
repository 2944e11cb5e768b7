//! Findings for a person: each with its line and a caret, and a sentence at the end.

use super::super::{Report, Weight};

/// Returns the report as it is shown.
pub fn words(report: &Report, color: bool) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text.push_str(&finding.diagnostic().render(color));
        text.push_str("\n\n");
    }
    let count = |weight: Weight| report.findings.iter().filter(|finding| finding.rule.weight == weight).count();
    let counted = |number: usize, what: &str| match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    };
    let files = counted(report.files.len(), "file");
    if report.mended > 0 {
        text.push_str(&format!("mended {}\n", counted(report.mended, "finding")));
    }
    if report.findings.is_empty() {
        return text + &format!("{files}: nothing found");
    }
    let kinds = [(Weight::Error, "error"), (Weight::Warning, "warning"), (Weight::Note, "note")];
    let kinds: Vec<String> = kinds
        .into_iter()
        .map(|(weight, what)| (count(weight), what))
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| counted(number, what))
        .collect();
    text.push_str(&format!("{files}: {}", kinds.join(", ")));
    let can = report.findings.iter().filter(|finding| !finding.edits.is_empty()).count();
    if can > 0 {
        text.push_str(&format!("; `--fix` mends {can}"));
    }
    text
}
