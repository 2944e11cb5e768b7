//! The debugger, by somebody at a terminal: what is looked at, changed, done again.

mod common;

use common::program::Project;

const PROMPT: &str = "[h] TASK: Write it (debug)>";

/// A play whose task fails, since its folder is not there.
fn project(keywords: &str) -> Project {
    let project = Project::new("h ansible_connection=local\n");
    project.write(
        "site.yml",
        &format!(
            "- hosts: h\n  gather_facts: false\n  vars: {{folder: /nonexistent}}\n  {keywords}\n  tasks:\n    - name: Write it\n      \
             copy: {{dest: \"{{{{ folder }}}}/seen\", content: hello, mode: \"0600\"}}\n      register: done\n    - name: After\n      \
             copy: {{dest: \"{{{{ playbook_dir }}}}/after\", content: \"{{{{ done is changed }}}}\"}}\n"
        ),
    );
    project
}

#[test]
fn a_variable_is_changed_and_the_task_done_again() {
    let project = project("debugger: on_failed");
    let folder = project.folder.path().display().to_string();
    let change = format!("task_vars['folder'] = '{folder}'");
    let typed = [
        (PROMPT, "p task.args['dest']"),
        (PROMPT, "task_vars['folder'] ~ host"),
        (PROMPT, "p result.nothing_like_it"),
        (PROMPT, change.as_str()),
        (PROMPT, "update_task"),
        (PROMPT, "p task.args"),
        (PROMPT, "redo"),
    ];
    let (code, text) = project.converse("site.yml", &typed);
    assert_eq!((code, project.read("seen").as_str(), project.read("after").as_str()), (0, "hello", "True"), "{text}");
    for shown in [
        "\n'/nonexistent/seen'\n",
        "\n'/nonexistenth'\n",
        "\n***object of type",
        &format!("'dest': '{folder}/seen'"),
        "ok=2    changed=2    unreachable=0    failed=0 ",
    ] {
        assert!(text.contains(shown), "no {shown} in {text}");
    }
}

#[test]
fn arguments_are_changed_and_taken_away() {
    let project = project("strategy: debug");
    let folder = project.folder.path().display().to_string();
    let change = format!("task.args['dest'] = '{folder}/' ~ 'seen'");
    let typed = [
        (PROMPT, "help"),
        ("quit, q", ""),
        (PROMPT, change.as_str()),
        (PROMPT, "del task.args['mode']"),
        (PROMPT, "del task.args['nobody']"),
        ("***KeyError: `nobody`", ""),
        (PROMPT, "task.name = 'x'"),
        ("***`task.name` can't be changed", ""),
        (PROMPT, "r"),
    ];
    let (code, text) = project.converse("site.yml", &typed);
    assert_eq!((code, project.read("seen").as_str()), (0, "hello"), "{text}");
    let mode = std::fs::metadata(project.path("seen"))
        .map(|file| std::os::unix::fs::PermissionsExt::mode(&file.permissions()));
    assert_ne!(mode.expect("it was written") & 0o777, 0o600);
}

#[test]
fn one_goes_on_or_ends_the_run() {
    let failing = project("debugger: on_failed");
    let (code, text) = failing.converse("site.yml", &[(PROMPT, "continue")]);
    assert!(code == 2 && text.contains("failed=1 ") && !failing.path("after").exists(), "{text}");
    let (code, text) = failing.converse("site.yml", &[(PROMPT, "q")]);
    assert!(code == 99 && text.contains("User interrupted execution"), "{text}");
    // Done again, it fails again, and counts once.
    let (code, text) = failing.converse("site.yml", &[(PROMPT, "r"), (PROMPT, "r"), (PROMPT, "c")]);
    assert!(code == 2 && text.contains("failed=1 "), "{text}");
}

#[test]
fn it_opens_when_it_is_asked_to() {
    let always = project("debugger: always");
    let good = format!("site.yml -e folder={}", always.folder.path().display());
    let typed = [(PROMPT, "p result.changed"), (PROMPT, "c"), ("[h] TASK: After (debug)>", "c")];
    let (code, text) = always.converse(&good, &typed);
    assert!(code == 0 && text.contains("\nTrue\n"), "{text}");
    let never = project("debugger: never");
    let enabled = format!(
        "ANSIBLE_ENABLE_TASK_DEBUGGER=1 {} -i hosts site.yml; echo \"status $?.\"",
        env!("CARGO_BIN_EXE_kubeon-run")
    );
    let (code, text) = never.converse_with(&enabled, &[]);
    assert!(code == 2 && !text.contains("(debug)>"), "{text}");
    let plain = project("become: false");
    let (code, text) = plain.converse_with(&enabled, &[(PROMPT, "c")]);
    assert_eq!(code, 2, "{text}");
    assert_eq!(plain.converse("site.yml", &[]).0, 2);
}

#[test]
fn nobody_is_there_without_a_terminal() {
    let project = project("debugger: on_failed");
    let ran = project.run(&["site.yml"]);
    assert!(
        ran.code == 99 && ran.stderr.contains("the debugger of the task at site.yml:6:7 has nobody to ask"),
        "{ran:?}"
    );
    let folder = format!("folder={}", project.folder.path().display());
    assert_eq!(project.run(&["site.yml", "-e", &folder]).code, 0);
}
