//! What the doctor makes of what it sees and of what it is told: every file below `tests/doctor/`.

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::program::Project;
use kubeon_modules::evidence::Evidence;
use kubeon_run::doctor::{Finding, Subject, host, table, text};
use serde::Deserialize;
use serde_json::Value;

/// One case: a change to what is in order, or a text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    about: String,
    /// A merge patch of the healthy host.
    #[serde(default)]
    change: Value,
    /// What somebody has pasted.
    text: Option<String>,
    /// Every diagnosis that must come out, and no other.
    found: BTreeSet<String>,
    /// The first broken link.
    first: Option<String>,
}

fn read<T: for<'de> Deserialize<'de>>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doctor").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Changes a document as RFC 7396 says.
fn merge(document: &mut Value, change: &Value) {
    let Value::Object(changes) = change else {
        *document = change.clone();
        return;
    };
    if !document.is_object() {
        *document = Value::Object(Default::default());
    }
    let entries = document.as_object_mut().expect("an object");
    for (key, value) in changes {
        if value.is_null()
            && entries.get(key).is_some_and(|old| {
                old.is_object() || key.starts_with("libnvidia") || key.starts_with("nvidia-container")
            })
        {
            entries.shift_remove(key);
        } else {
            merge(entries.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

fn ids(findings: &[Finding]) -> BTreeSet<String> {
    findings.iter().map(|finding| finding.diagnosis.id.to_owned()).collect()
}

fn healthy(change: &Value) -> Subject {
    let mut evidence: Value = read("healthy-host.yml");
    if !change.is_null() {
        merge(&mut evidence, change);
    }
    let evidence: Evidence = serde_json::from_value(evidence).expect("what gpu_facts returns");
    host::examine("gpu1", &evidence)
}

#[test]
fn what_a_host_shows_is_judged() {
    let mut wrong = Vec::new();
    for case in read::<Vec<Case>>("hosts.yml") {
        let subject = healthy(&case.change);
        let first = subject.broken().map(|link| link.name().to_owned());
        if ids(&subject.findings) != case.found || case.first.is_some() && first != case.first {
            wrong.push(format!("{}: {:?}, first {first:?}", case.about, ids(&subject.findings)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_pasted_is_recognised() {
    let mut wrong = Vec::new();
    for case in read::<Vec<Case>>("texts.yml") {
        let found = ids(&text::explain(case.text.as_deref().expect("a text")));
        if found != case.found {
            wrong.push(format!("{}: {found:?}", case.about));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whoever adds a diagnosis shows with a case that it is found.
#[test]
fn every_diagnosis_is_found_by_a_case() {
    let mut cases = read::<Vec<Case>>("hosts.yml");
    cases.extend(read::<Vec<Case>>("texts.yml"));
    let shown: BTreeSet<String> = cases.into_iter().flat_map(|case| case.found).collect();
    let elsewhere = [
        "host-unreachable",
        "host-not-examined",
        "containerd-nvidia-is-not-the-default",
        "plugin-missing",
        "plugin-twice-on-a-node",
        "plugin-on-a-node-without-gpu",
        "plugin-sandbox-fails",
        "plugin-pod-missing",
        "plugin-not-running",
        "allocatable-more",
        "label-of-another-value",
        "label-without-gpu",
    ];
    let poor: Vec<&str> =
        table::all().map(|one| one.id).filter(|id| !shown.contains(*id) && !elsewhere.contains(id)).collect();
    assert!(poor.is_empty(), "no case in tests/doctor finds {poor:?}");
    let mut ids = BTreeSet::new();
    assert!(table::all().all(|one| ids.insert(one.id)), "two diagnoses have one id");
}

/// Every message by itself leads to the diagnosis that has it.
#[test]
fn every_message_of_the_table_is_recognised() {
    let mut wrong = Vec::new();
    for one in table::all() {
        for message in one.says {
            let found = ids(&text::explain(&message.replace('*', " something ")));
            if !found.contains(one.id) {
                wrong.push(format!("`{message}` of {} leads to {found:?}", one.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_pasted_message_is_explained() {
    let project = Project::new("");
    project.write("message", "Failed to create pod sandbox: no runtime for \"nvidia\" is configured\n");
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
        command.current_dir(project.folder.path()).arg("doctor").args(arguments).env("HOME", project.folder.path());
        project.wait(command)
    };
    let ran = run(&["--text", "message"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    for part in
        ["containerd-without-nvidia-runtime", "owner   the host's administrator", "--tags containerd", "issues/730"]
    {
        assert!(ran.stdout.contains(part), "no {part} in:\n{}", ran.stdout);
    }
    let json: Value = serde_json::from_str(&run(&["--text", "message", "--output", "json"]).stdout).expect("JSON");
    assert_eq!(json["subjects"][0]["findings"][0]["id"], "containerd-without-nvidia-runtime");
    let sarif: Value = serde_json::from_str(&run(&["--text", "message", "--output", "sarif"]).stdout).expect("JSON");
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(result["level"], "error");
    let rule = result["ruleIndex"].as_u64().expect("an index") as usize;
    assert_eq!(sarif["runs"][0]["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
    project.write("message", "all is well\n");
    let ran = run(&["--text", "message"]);
    assert_eq!((ran.code, ran.stdout.contains("nothing in it is known")), (0, true), "{ran:?}");
}
