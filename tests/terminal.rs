//! What a person sees who watches a run on a terminal.

mod common;

use common::program::{Project, until};
use common::terminal::plain;

#[test]
fn a_terminal_shows_what_goes_on() {
    let mut hosts = String::new();
    for number in 1..=200 {
        hosts.push_str(&format!("n{number} ansible_connection=local\n"));
    }
    let project = Project::new(&hosts);
    let home = project.folder.path().display().to_string();
    project.write(
        "site.yml",
        &format!(
            "
- name: many
  hosts: all
  gather_facts: false
  tasks:
    - {{name: says, debug: {{msg: all the same}}}}
    - {{name: differs, set_fact: {{x: 1}}, changed_when: inventory_hostname != 'n7'}}
    - {{name: fails once, assert: {{that: inventory_hostname != 'n9', fail_msg: it is n9}}}}
- name: one
  hosts: n1
  gather_facts: false
  tasks:
    - {{name: takes long, shell: \"echo downloading; until test -e {home}/go -o ! -e {home}; do sleep 0.05; done\"}}
"
        ),
    );
    let mut child = on_a_terminal(&project, "site.yml");
    until("the task's own words", || project.read("typescript").contains("downloading"));
    project.write("go", "");
    child.wait().expect("an end");
    let text = plain(&project.read("typescript"));
    for expected in [
        "PLAY [many] 200 hosts",
        "TASK [says] 200 ok",
        // Whoever came first.
        "  n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15, n16, n17, n18 and 182 more: all the same",
        "TASK [differs] 1 ok, 199 changed",
        "  changed: n1, n2, n3,",
        "failed: [n9] fails once: it is n9",
        "TASK [fails once] 199 ok, 1 failed",
        "one · task 1 of about 1 · ",
        "takes long · 0 of 1 hosts done, 1 at work",
        "TASK [takes long] 1 changed",
        "FAILURES",
        "code 2",
    ] {
        assert!(text.contains(expected), "no `{expected}` in {text}");
    }
    // What the first play shows for 200 hosts fits on a screen.
    let first = text.split("PLAY [one]").next().expect("a first part");
    let kept = first.lines().filter(|line| !line.trim().is_empty() && !line.contains('·')).count();
    assert!(kept < 20, "{kept} lines: {first}");
}

/// A run of many hosts ends with those that have news, in a person's sight; elsewhere each has its line.
#[test]
fn a_terminal_lists_only_hosts_with_news_at_the_end() {
    let hosts: String = (1..=40).map(|number| format!("n{number} ansible_connection=local\n")).collect();
    let project = Project::new(&hosts);
    project.write(
        "site.yml",
        "
- hosts: all
  gather_facts: false
  tasks:
    - {name: changes, set_fact: {x: 1}, changed_when: \"inventory_hostname in ['n7', 'n30']\"}
    - {name: fails, assert: {that: inventory_hostname != 'n20'}}
",
    );
    let counts = |changed, failed, ok| {
        format!(
            "ok={ok}    changed={changed}    unreachable=0    failed={failed}    skipped=0    rescued=0    ignored=0   "
        )
    };
    on_a_terminal(&project, "site.yml").wait().expect("an end");
    let text = plain(&project.read("typescript"));
    let (_, recap) = text.split_once("PLAY RECAP").expect("a recap");
    // Lines end where they end: nothing fills them up to the terminal's edge.
    let recap: Vec<&str> = recap.lines().filter(|line| !line.is_empty()).skip(1).take(4).collect();
    assert_eq!(
        recap,
        [
            "37 hosts: ok, nothing changed".to_owned(),
            format!("{:<26} : {}", "n30", counts(1, 0, 2)),
            format!("{:<26} : {}", "n7", counts(1, 0, 2)),
            format!("{:<26} : {}", "n20", counts(0, 1, 1)),
        ],
        "{text}"
    );
    let elsewhere = project.run(&["site.yml"]);
    let (_, recap) = elsewhere.stdout.split_once("PLAY RECAP").expect("a recap");
    assert_eq!(recap.lines().filter(|line| line.contains(" : ok=")).count(), 40, "{recap}");
}

#[test]
fn colours_are_for_terminals_and_can_be_had_off() {
    let project = Project::new("h ansible_connection=local\n");
    project.write("site.yml", "- hosts: h\n  gather_facts: false\n  tasks: [{command: echo}]\n");
    let program = env!("CARGO_BIN_EXE_kubeon-run");
    let colored = |before: &str| {
        project.converse_with(&format!("{before} {program} -i hosts site.yml; echo \"status $?.\""), &[]);
        project.read("typescript").contains("\u{1b}[0;33m")
    };
    assert!(colored(""));
    assert!(!colored("NO_COLOR=1"));
    assert!(!colored("ANSIBLE_NOCOLOR=true"));
    assert!(!project.run(&["site.yml"]).stdout.contains('\u{1b}'));
}

/// Starts the program where a person watches.
fn on_a_terminal(project: &Project, playbook: &str) -> std::process::Child {
    let program = env!("CARGO_BIN_EXE_kubeon-run");
    let line = format!("{program} -i hosts {playbook}; echo code $?");
    project.on_terminal(&line).spawn().expect("`script` of util-linux")
}
