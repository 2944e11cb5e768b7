//! A report as SARIF, for whatever collects findings of many tools. Source: SARIF 2.1.0, OASIS.

use serde_json::{Value, json};

use super::super::{Diagnosis, Finding, Report, Severity, Subject, table};
use super::{Look, address, remedy};

/// Where the schema of SARIF is.
pub const SARIF_SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Returns a report as a SARIF log with one run.
pub fn sarif(report: &Report, look: &Look) -> Value {
    let rules: Vec<&Diagnosis> = table::all().collect();
    let results: Vec<Value> = report
        .subjects
        .iter()
        .flat_map(|subject| subject.findings.iter().map(move |finding| (subject, finding)))
        .map(|(subject, finding)| result_of(finding, subject, &rules, look))
        .collect();
    json!({
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "kubeon-run doctor",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|rule| rule_of(rule)).collect::<Vec<_>>(),
            }},
            "invocations": [{"executionSuccessful": true, "exitCode": report.code()}],
            "results": results,
        }],
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

fn rule_of(rule: &Diagnosis) -> Value {
    let mut value = json!({
        "id": rule.id,
        "shortDescription": {"text": rule.what},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.fix},
        "defaultConfiguration": {"level": level(rule.severity)},
        "properties": {"link": rule.link.name(), "owner": rule.owner.name()},
    });
    if let Some(issue) = rule.issues.first() {
        value["helpUri"] = address(issue).into();
    }
    value
}

fn result_of(finding: &Finding, subject: &Subject, rules: &[&Diagnosis], look: &Look) -> Value {
    let diagnosis = finding.diagnosis;
    let host = (!subject.is_cluster && !look.of_text).then_some(subject.name.as_str());
    let (fix, command) = remedy(finding, look, host);
    let mut location = json!({"logicalLocations": [{
        "name": subject.name,
        "fullyQualifiedName": format!("{}/{}", subject.name, diagnosis.link.name()),
        "kind": "resource",
    }]});
    if let Some(file) = &finding.file {
        // The file is on the host, not in whatever is checked out here.
        location["physicalLocation"] = json!({"artifactLocation": {"uri": uri_of(&subject.name, file)}});
    }
    json!({
        "ruleId": diagnosis.id,
        "ruleIndex": rules.iter().position(|rule| rule.id == diagnosis.id),
        "level": level(diagnosis.severity),
        "message": {"text": format!("{}: {}: {}", subject.name, diagnosis.what, finding.seen.join("; "))},
        "locations": [location],
        "properties": {"owner": diagnosis.owner.name(), "fix": fix, "command": command, "seen": finding.seen},
    })
}

/// Returns the address of a file on a host.
fn uri_of(host: &str, file: &str) -> String {
    format!("ssh://{}{}", escaped(host, ""), escaped_path(file))
}

/// Returns a path as it stands in an address. Source: RFC 3986, section 2, for what is written as it is.
pub fn escaped_path(path: &str) -> String {
    escaped(path, "/")
}

fn escaped(text: &str, also: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte) || also.as_bytes().contains(byte);
    let one = |byte: u8| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}
