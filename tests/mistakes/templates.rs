//! Templates and conditions, wherever they stand.

use super::{Project, expect};

#[test]
fn a_template_that_is_none_and_an_unknown_filter() {
    expect(
        "templates",
        "    - debug: {msg: \"{{ 1 + }}\"}\n    - debug: {msg: \"{{ 1 | uper }}\"}\n      when: 1 +\n    - debug: {msg: hi}\n      when: \"{{ foo\"\n",
        "
error: syntax error in template: unexpected end of variable block
 --> site.yml:5:28
  |
5 |     - debug: {msg: \"{{ 1 + }}\"}
  |                            ^

error: no filter named `uper`
 --> site.yml:6:28
  |
6 |     - debug: {msg: \"{{ 1 | uper }}\"}
  |                            ^^^^
  |
  = help: did you mean `upper`?

error: syntax error in template: unexpected end of input, expected expression
 --> site.yml:7:15
  |
7 |       when: 1 +
  |               ^

error: syntax error in template: unexpected end of input, expected `:`
 --> site.yml:9:17
  |
9 |       when: \"{{ foo\"
  |                 ^^^
  |
  = help: an expression here takes no `{{ }}`: write the name alone

error: 4 mistakes found; nothing was run",
    );
}

/// Wherever a template or an expression may stand, one that is not closed is told with its place.
#[test]
fn templates_that_are_not_closed() {
    let in_task = [
        ("when: \"{{ foo\"", 17),
        ("when: [\"{% if foo\"]", 16),
        ("changed_when: \"{# foo\"", 23),
        ("failed_when: [\"{{ foo\"]", 25),
        ("until: \"{{ foo\"", 18),
        ("name: \"of {{ foo\"", 20),
        ("loop: \"{{ foo\"", 17),
        ("with_items: \"{{ foo\"", 23),
        ("loop_control: {label: \"{{ foo\"}\n      loop: [1]", 33),
        ("loop_control: {break_when: \"1 +\"}\n      loop: [1]", 37),
        ("delegate_to: \"{{ foo\"", 24),
        ("environment: {A: \"{{ foo\"}", 28),
        ("notify: \"{{ foo\"", 19),
        ("vars: {a: \"{{ foo\"}", 21),
    ];
    let whole = [
        ("- hosts: \"{{ foo\"\n  tasks: []\n", 1, 14),
        ("- hosts: all\n  vars_files: [\"{{ foo\"]\n  tasks: []\n", 2, 20),
        ("- hosts: all\n  roles: [{role: r, when: \"{{ foo\"}]\n", 2, 31),
        ("- hosts: all\n  tasks:\n    - {import_tasks: t.yml, when: \"{{ foo\"}\n", 3, 39),
        ("- hosts: all\n  tasks:\n    - {block: [{ping: }], when: \"{{ foo\"}\n", 3, 37),
        ("- {import_playbook: other.yml, when: \"{{ foo\"}\n", 1, 42),
        ("- hosts: all\n  tasks:\n    - debug: {msg: \"{{ foo\"}\n", 3, 24),
        ("- hosts: all\n  tasks:\n    - debug: {var: \"1 +\"}\n", 3, 23),
        ("- hosts: all\n  tasks:\n    - assert: {that: [\"{{ foo\"]}\n", 3, 27),
    ];
    let mut cases: Vec<(String, usize, usize)> = Vec::new();
    cases.extend(
        in_task.map(|(line, column)| (format!("- hosts: all\n  tasks:\n    - ping:\n      {line}\n"), 4, column)),
    );
    cases.extend(whole.map(|(text, line, column)| (text.to_owned(), line, column)));
    for (nth, (text, line, column)) in cases.iter().enumerate() {
        let files = [
            ("site.yml", &**text),
            ("roles/r/tasks/main.yml", "- ping:\n"),
            ("t.yml", "- ping:\n"),
            ("other.yml", "- hosts: all\n  tasks: [{ping: }]\n"),
        ];
        let project = Project::new(&format!("open{nth}"), &files);
        for (status, stderr) in [project.check(), project.run(&[])] {
            assert!(stderr.contains(&format!(" --> site.yml:{line}:{column}\n")), "{text}: {stderr}");
            assert!(stderr.ends_with("error: one mistake found; nothing was run\n"), "{text}: {stderr}");
            assert_eq!(status, Some(4), "{text}");
        }
    }
}

#[test]
fn an_end_of_a_loop_that_can_not_be_told_fails_the_task() {
    let play = "- hosts: web1\n  gather_facts: false\n  tasks:\n    - file: {path: \"{{ playbook_dir }}/{{ item }}\", state: touch}\n      loop: [first, second]\n      loop_control: {break_when: nobody}\n";
    let project = Project::new("end of a loop", &[("site.yml", play)]);
    let (status, stderr) = project.run(&[]);
    assert_eq!(status, Some(2), "{stderr}");
    assert!(project.0.join("first").exists() && !project.0.join("second").exists(), "{stderr}");
}
