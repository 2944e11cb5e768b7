//! Findings as SARIF, for whatever collects findings of many tools. Source: SARIF 2.1.0, OASIS.

use serde_json::{Value, json};

use super::super::{Finding, Report, Rule, rules};
use crate::doctor::show::{SARIF_SCHEMA, escaped_path};
use crate::source::Place;

/// Returns the report as a SARIF log with one run.
pub fn sarif(report: &Report, code: u8) -> Value {
    let rules: Vec<&Rule> = rules().collect();
    json!({
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "kubeon-run lint",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|rule| rule_of(rule)).collect::<Vec<_>>(),
            }},
            // Columns are counted in characters.
            "columnKind": "unicodeCodePoints",
            "invocations": [{"executionSuccessful": true, "exitCode": code}],
            "results": report.findings.iter().map(|finding| result_of(finding, &rules)).collect::<Vec<_>>(),
        }],
    })
}

fn rule_of(rule: &Rule) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": {"text": rule.what},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.fix},
        "defaultConfiguration": {"level": rule.weight.name()},
        "properties": {"mends": rule.mends},
    })
}

fn result_of(finding: &Finding, rules: &[&Rule]) -> Value {
    let file = finding.place.path().unwrap_or_default();
    let artifact = json!({"uri": escaped_path(&file.to_string_lossy())});
    let mut region = json!({"startLine": finding.place.line.max(1), "startColumn": finding.place.column.max(1)});
    if finding.width > 0 {
        region["endColumn"] = (finding.place.column as usize + finding.width).into();
    }
    let mut result = json!({
        "ruleId": finding.rule.id,
        "ruleIndex": rules.iter().position(|rule| rule.id == finding.rule.id),
        "level": finding.rule.weight.name(),
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
    });
    if !finding.edits.is_empty() {
        let replaced = |place: Place, old: &str, new: &str| {
            json!({
                "deletedRegion": {
                    "startLine": place.line,
                    "startColumn": place.column,
                    "endColumn": place.column as usize + old.chars().count(),
                },
                "insertedContent": {"text": new},
            })
        };
        let replacements: Vec<Value> =
            finding.edits.iter().map(|edit| replaced(edit.place, &edit.old, &edit.new)).collect();
        result["fixes"] = json!([{
            "description": {"text": finding.rule.fix},
            "artifactChanges": [{"artifactLocation": artifact, "replacements": replacements}],
        }]);
    }
    result
}
