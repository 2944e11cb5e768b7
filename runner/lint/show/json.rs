//! Findings as JSON, for programs.

use serde_json::{Value, json};

use super::super::Report;

/// Returns the report: one entry a finding, in the order of files and lines.
pub fn json(report: &Report) -> Value {
    let findings: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "rule": finding.rule.id,
                "level": finding.rule.weight.name(),
                "message": finding.message,
                "file": finding.place.path().unwrap_or_default(),
                "line": finding.place.line,
                "column": finding.place.column,
                "fix": finding.rule.fix,
                "mends": !finding.edits.is_empty(),
            })
        })
        .collect();
    json!({"files": report.files.len(), "mended": report.mended, "findings": findings})
}
