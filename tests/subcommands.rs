//! The sub-commands beside the plain form: check, init, doc, schema, completions.

mod common;

use std::path::Path;
use std::process::Command;

use common::program::{Project, Ran};

fn run(project: &Project, folder: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
    command.current_dir(project.path(folder)).env_clear().env("HOME", project.folder.path());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).args(arguments);
    project.wait(command)
}

#[test]
fn a_starting_project_runs_as_it_is() {
    let project = Project::new("");
    let written = run(&project, ".", &["init", "new/project"]);
    assert_eq!(
        (written.code, written.stdout.as_str()),
        (
            0,
            "written new/project/inventory/hosts.yml\nwritten new/project/group_vars/all.yml\nwritten new/project/site.yml\n"
        )
    );
    let here = ["site.yml", "-i", "localhost,", "-c", "local", "--check", "--diff"];
    let would = run(&project, "new/project", &here);
    assert!(would.code == 0 && would.stdout.contains("+hello\n"), "{would:?}");
    let bare = run(&project, "new/project", &["site.yml", "--check"]);
    assert_eq!((bare.code, bare.stderr.as_str()), (0, ""), "{bare:?}");
    assert_eq!(run(&project, "new/project", &["inventory", "--graph"]).stdout.lines().last(), Some("  |--@web:"));
    // Nothing that is there is overwritten.
    project.write("new/project/site.yml", "[]\n");
    assert!(run(&project, "new/project", &["init"]).stdout.ends_with("kept    ./site.yml\n"));
    assert_eq!(project.read("new/project/site.yml"), "[]\n");
}

#[test]
fn check_finds_mistakes_and_touches_nobody() {
    let project = Project::new("h ansible_connection=local\n");
    let play = |task: &str| format!("- hosts: h\n  tasks:\n    - file: {{path: marker, state: touch}}\n    - {task}\n");
    project.write("site.yml", &play("ping: {dta: 1}"));
    let wrong = run(&project, ".", &["check", "-i", "hosts", "site.yml"]);
    assert_eq!((wrong.code, wrong.stdout.as_str()), (4, ""));
    assert!(wrong.stderr.contains(" --> site.yml:4:14"), "{wrong:?}");
    project.write("site.yml", &play("ping: {data: 1}"));
    let right = run(&project, ".", &["check", "-i", "hosts", "site.yml"]);
    assert_eq!((right.code, right.stdout.as_str()), (0, "1 play with 2 tasks: no mistake found\n"), "{right:?}");
    assert!(!project.path("marker").exists() && !project.path(".local").exists());
    assert_eq!(run(&project, ".", &["check"]).code, 2);
}

#[test]
fn pages_are_those_of_the_documentation() {
    let project = Project::new("");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let list = run(&project, ".", &["doc"]).stdout;
    for module in ["copy", "nvidia_detect", "set_fact", "include_tasks"] {
        assert!(list.lines().any(|line| line.starts_with(&format!("{module} "))), "{module} in {list}");
        let page = run(&project, ".", &["doc", module]).stdout;
        let kept = std::fs::read_to_string(docs.join(format!("modules/{module}.md"))).expect("a page");
        assert_eq!(page.trim_end(), kept.trim_end(), "{module}");
    }
    let collection = run(&project, ".", &["doc", "ansible.builtin.copy"]);
    assert_eq!(collection.stdout, run(&project, ".", &["doc", "copy"]).stdout);
    assert_eq!(run(&project, ".", &["doc", "-l"]).stdout, list);
    let two = run(&project, ".", &["doc", "-t", "module", "ping", "copy"]).stdout;
    assert!(two.starts_with("# ping\n") && two.contains("\n# copy\n"), "{two}");
    let json: serde_json::Value =
        serde_json::from_str(&run(&project, ".", &["doc", "-j", "copy"]).stdout).expect("JSON");
    let copy = &json["copy"]["doc"];
    assert_eq!((copy["module"].as_str(), copy["options"]["backup"]["type"].as_str()), (Some("copy"), Some("boolean")));
    assert!(json["copy"]["examples"].as_str().is_some_and(|example| example.contains("dest:")), "{json}");
    let list: serde_json::Value = serde_json::from_str(&run(&project, ".", &["doc", "-l", "-j"]).stdout).expect("JSON");
    assert!(list["copy"].as_str().is_some_and(|sentence| sentence.ends_with('.')), "{list}");
    assert_eq!(run(&project, ".", &["doc", "-t", "lookup", "file"]).code, 2);
    let unknown = run(&project, ".", &["doc", "cpoy"]);
    assert_eq!((unknown.code, unknown.stderr.as_str()), (1, "error: no module `cpoy`; did you mean `copy`?\n"));
}

#[test]
fn schemas_are_those_of_the_documentation() {
    let project = Project::new("");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema");
    for (arguments, file) in [(&["schema"][..], "playbook"), (&["schema", "modules"], "modules")] {
        let printed = run(&project, ".", arguments).stdout;
        let printed: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
        let kept = std::fs::read_to_string(docs.join(format!("{file}.json"))).expect("a schema");
        assert_eq!(printed, serde_json::from_str::<serde_json::Value>(&kept).expect("JSON"), "{file}");
    }
}

#[test]
fn completions_know_every_flag() {
    let project = Project::new("");
    for shell in ["bash", "zsh", "fish"] {
        let text = run(&project, ".", &["completions", shell]).stdout;
        for flag in ["start-at-task", "limit", "become-user", "retry", "playbook-dir"] {
            assert!(text.contains(flag), "{flag} for {shell}");
        }
    }
    project.write("complete.bash", &run(&project, ".", &["completions", "bash"]).stdout);
    // As bash itself takes it.
    let line = ". ./complete.bash; COMP_WORDS=(kubeon-run --star); COMP_CWORD=1; complete -p kubeon-run > how; \
                $(sed 's/.*-F \\([^ ]*\\).*/\\1/' how) kubeon-run --star kubeon-run; echo ${COMPREPLY[@]}";
    let output = Command::new("bash").current_dir(project.folder.path()).args(["-c", line]).output().expect("bash");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "--start-at-task\n", "{output:?}");
    assert_eq!(run(&project, ".", &["completions", "nosh"]).code, 2);
}
