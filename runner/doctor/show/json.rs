//! A report as one JSON document.

use serde_json::{Map, Value, json};

use super::super::{Finding, Link, Report, Subject};
use super::{Look, address, remedy};

/// Returns a report as JSON.
pub fn json(report: &Report, look: &Look) -> Value {
    let subjects: Vec<Value> = report.subjects.iter().map(|subject| subject_of(subject, look)).collect();
    json!({"code": report.code(), "subjects": subjects, "remarks": report.remarks})
}

fn subject_of(subject: &Subject, look: &Look) -> Value {
    let links: Map<String, Value> = Link::ALL
        .into_iter()
        .map(|link| (link.name().to_owned(), json!({"state": subject.state(link), "seen": subject.fine.get(&link)})))
        .collect();
    let findings: Vec<Value> = subject.findings.iter().map(|finding| finding_of(finding, subject, look)).collect();
    json!({
        "name": subject.name,
        "kind": if subject.is_cluster { "cluster" } else { "host" },
        "node": subject.node,
        "has_gpu": subject.has_gpu,
        "broken": subject.broken().map(Link::name),
        "links": links,
        "findings": findings,
        "unread": subject.unread,
    })
}

fn finding_of(finding: &Finding, subject: &Subject, look: &Look) -> Value {
    let diagnosis = finding.diagnosis;
    let host = (!subject.is_cluster && !look.of_text).then_some(subject.name.as_str());
    let (fix, command) = remedy(finding, look, host);
    json!({
        "id": diagnosis.id,
        "link": diagnosis.link.name(),
        "severity": diagnosis.severity,
        "owner": diagnosis.owner.name(),
        "what": diagnosis.what,
        "why": diagnosis.why,
        "seen": finding.seen,
        "file": finding.file,
        "fix": fix,
        "command": command,
        "more": diagnosis.issues.iter().map(|issue| address(issue)).collect::<Vec<_>>(),
    })
}
