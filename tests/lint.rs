//! `kubeon-run lint`: what each rule finds and mends (`tests/lint/cases.yml`), and how it is told.

mod common;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use common::program::{Project, Ran};
use serde_json::Value;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    about: String,
    file: String,
    #[serde(default)]
    only: Vec<String>,
    text: String,
    finds: Vec<String>,
    fixed: Option<String>,
}

fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lint/cases.yml");
    serde_yaml::from_str(&std::fs::read_to_string(path).expect("the cases")).expect("cases")
}

fn lint(project: &Project, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
    command.current_dir(project.folder.path()).arg("lint").args(arguments);
    project.wait(command)
}

fn found(ran: &Ran) -> Vec<String> {
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let one = |finding: &Value| {
        format!("{} {}:{}", finding["rule"].as_str().expect("a rule"), finding["line"], finding["column"])
    };
    report["findings"].as_array().expect("findings").iter().map(one).collect()
}

#[test]
fn rules_find_what_they_are_for_and_mend_it() {
    for case in cases() {
        let project = Project { folder: common::sshd::Folder::new() };
        project.write("files/there", "");
        let path = project.path(&case.file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, &case.text).expect("write");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("chmod");
        let only = case.only.join(",");
        let mut arguments = vec![case.file.as_str(), "--output", "json"];
        if !only.is_empty() {
            arguments.extend(["--only", &only]);
        }
        let ran = lint(&project, &arguments);
        assert_eq!(found(&ran), case.finds, "{}", case.about);
        assert_eq!(ran.code, if case.finds.is_empty() { 0 } else { 2 }, "{}", case.about);
        assert_eq!(std::fs::read_to_string(&path).expect("read"), case.text, "{}: it only reads", case.about);
        arguments.push("--fix");
        let ran = lint(&project, &arguments);
        let fixed = case.fixed.as_ref().unwrap_or(&case.text);
        assert_eq!(std::fs::read_to_string(&path).expect("read"), *fixed, "{}: mended", case.about);
        let mode = std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode, 0o640, "{}", case.about);
        // What could be mended is not found again.
        let again = found(&lint(&project, &arguments));
        assert_eq!(found(&ran), again, "{}", case.about);
        assert_eq!(case.fixed.is_some(), again.len() < case.finds.len(), "{}", case.about);
    }
}

#[test]
fn every_rule_has_a_case() {
    let cases = cases();
    let seen: BTreeSet<&str> =
        cases.iter().flat_map(|case| &case.finds).filter_map(|find| find.split(' ').next()).collect();
    let all: BTreeSet<&str> = kubeon_run::lint::rules().map(|rule| rule.id).collect();
    assert_eq!(seen, all);
    let names: Vec<&str> = kubeon_run::lint::rules().map(|rule| rule.id).collect();
    assert_eq!(names.len(), all.len(), "two rules of one name");
}

#[test]
fn a_person_is_shown_the_place_and_what_to_do() {
    let project = Project { folder: common::sshd::Folder::new() };
    project.write(
        "site.yml",
        "- name: Play\n  hosts: all\n  tasks:\n    - name: Copy\n      copy: {src: a, dest: /a, mode: 644}\n",
    );
    let ran = lint(&project, &["site.yml"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (
            2,
            "error: the mode `644` is read as 1204 (risky-octal)\n --> site.yml:5:38\n  |\n5 |       copy: {src: a, dest: /a, mode: 644}\n  |                                      \
             ^^^\n  |\n  = help: quote it, with its zero: `\"0644\"`\n\n1 file: 1 error; `--fix` mends 1\n"
        )
    );
    let ran = lint(&project, &["--fix"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "mended 1 finding\n1 file: nothing found\n"));
}

#[test]
fn sarif_names_rules_places_and_fixes() {
    let project = Project { folder: common::sshd::Folder::new() };
    project.write("a b/site.yml", "- name: Play\n  hosts: all\n  become: yes\n  tasks: []\n");
    let ran = lint(&project, &["--output", "sarif"]);
    let log: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let run = &log["runs"][0];
    let result = &run["results"][0];
    assert_eq!((log["version"].as_str(), run["invocations"][0]["exitCode"].as_i64()), (Some("2.1.0"), Some(2)));
    let rule = result["ruleIndex"].as_u64().expect("an index") as usize;
    assert_eq!(run["tool"]["driver"]["rules"][rule]["id"], "truthy");
    assert_eq!((&result["ruleId"], &result["level"]), (&"truthy".into(), &"note".into()));
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "a%20b/site.yml");
    assert_eq!(place["region"], serde_json::json!({"startLine": 3, "startColumn": 11, "endColumn": 14}));
    let change = &result["fixes"][0]["artifactChanges"][0]["replacements"][0];
    assert_eq!(change["insertedContent"]["text"], "true");
    assert_eq!(change["deletedRegion"], serde_json::json!({"startLine": 3, "startColumn": 11, "endColumn": 14}));
}

#[test]
fn rules_and_files_are_chosen() {
    let project = Project { folder: common::sshd::Folder::new() };
    project
        .write("site.yml", "- hosts: all\n  become: yes\n  tasks: []\n")
        .write("templates/x.yml", "{{ no yaml }}: -");
    project.write(".hidden/x.yml", "a: [").write("vars/notes.txt", "a: [");
    assert_eq!(found(&lint(&project, &["--output", "json"])), ["name-play 1:3", "truthy 2:11"]);
    assert_eq!(found(&lint(&project, &["--output", "json", "--skip", "name"])), ["truthy 2:11"]);
    assert_eq!(found(&lint(&project, &["--output", "json", "--only", "name-play"])), ["name-play 1:3"]);
    let wrong = lint(&project, &["--only", "truthi"]);
    assert_eq!((wrong.code, wrong.stderr.as_str()), (2, "error: no rule `truthi`; did you mean `truthy`?\n"));
    let absent = lint(&project, &["absent.yml"]);
    assert!(absent.code == 1 && absent.stderr.contains("read `absent.yml`"), "{absent:?}");
    assert!(lint(&project, &["--rules"]).stdout.contains("### risky-octal\n"));
    // Vaulted files say nothing.
    project.write("group_vars/vault.yml", "$ANSIBLE_VAULT;1.1;AES256\n00\n");
    assert_eq!(lint(&project, &["group_vars"]).stdout, "1 file: nothing found\n");
}

#[test]
fn what_is_shipped_has_no_findings() {
    let root = env!("CARGO_MANIFEST_DIR");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
    let output = command.current_dir(root).args(["lint", "playbooks", "inventory"]).output().expect("the program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
