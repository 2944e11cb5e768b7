//! Arguments of modules, and options of actions.

use super::{Project, expect};

#[test]
fn a_misspelt_argument() {
    expect(
        "argument",
        "    - group: {name: docker, gdi: 999}\n",
        "
error: unknown field `gdi`, expected one of `name`, `state`, `gid`, `system`, `local`, `non_unique`, `force`, `gid_min`, `gid_max`
 --> site.yml:5:29
  |
5 |     - group: {name: docker, gdi: 999}
  |                             ^^^
  |
  = help: did you mean `gid`?

error: one mistake found; nothing was run",
    );
}

#[test]
fn a_misspelt_value() {
    expect(
        "value",
        "    - service: {name: cron, state: strted}\n",
        "
error: unknown value `strted`, expected one of `running`, `started`, `stopped`, `restarted`, `reloaded`
 --> site.yml:5:36
  |
5 |     - service: {name: cron, state: strted}
  |                                    ^^^^^^
  |
  = help: did you mean `started`?

error: one mistake found; nothing was run",
    );
}

#[test]
fn an_argument_of_another_type() {
    expect(
        "type",
        "    - file: {path: /tmp/x, state: directory, recurse: maybe}\n",
        "
error: expected a boolean, found `maybe`
 --> site.yml:5:55
  |
5 |     - file: {path: /tmp/x, state: directory, recurse: maybe}
  |                                                       ^^^^^

error: one mistake found; nothing was run",
    );
}

#[test]
fn a_regular_expression_that_is_none() {
    expect(
        "regexp",
        "    - lineinfile: {path: /tmp/x, regexp: '(port', line: port 22}\n    - replace: {path: /tmp/x, regexp: '[a-'}\n",
        "
error: `(port` is no regular expression that can be used: Parsing error at position 5: Opening parenthesis without closing parenthesis
 --> site.yml:5:42
  |
5 |     - lineinfile: {path: /tmp/x, regexp: '(port', line: port 22}
  |                                          ^

error: `[a-` is no regular expression that can be used: a `[` is not closed
 --> site.yml:6:39
  |
6 |     - replace: {path: /tmp/x, regexp: '[a-'}
  |                                       ^

error: 2 mistakes found; nothing was run",
    );
}

#[test]
fn arguments_that_do_not_go_together_and_options_that_are_none() {
    let tasks = "    - meta: nonsense
    - include_tasks: {file: there.yml, apply: {tgas: x}}
    - include_tasks: there.yml x=1
    - import_tasks: {file: there.yml, x: 1}
    - import_role: {name: web, task_from: x}
    - command:
    - command: {cmd: x, argv: [y]}
    - debug: {msg: x, var: y}
    - add_host: {groups: x}
    - {ping: , notify: {a: b}}
    - {ping: , listen: x}
    - {ping: , register: 1x}
    - {ping: , loop: word}
    - {ping: , loop_control: {lop_var: x}}
";
    let play = format!("- hosts: all\n  gather_facts: false\n  vars_files: {{a: 1}}\n  tasks:\n{tasks}");
    let files = [("site.yml", &*play), ("there.yml", "[]"), ("roles/web/tasks/main.yml", "[]")];
    let (status, stderr) = Project::new("together", &files).run(&[]);
    let told: Vec<&str> = stderr.lines().filter(|line| line.starts_with("error") || line.contains("-->")).collect();
    let expected = [
        ("`vars_files` is a list of files, found a mapping", "3:15"),
        ("unknown value `nonsense`, expected one of", "5:13"),
        ("'tgas' is not a valid attribute for a Block", "6:48"),
        ("unknown field `x`, expected one of `file`, `apply`", "7:22"),
        ("Invalid options for import_tasks: x", "8:39"),
        ("Invalid options for import_role: task_from", "9:32"),
        ("`command` needs a command", "10:7"),
        ("give a command line or `argv`, not both", "11:7"),
        ("give `msg` or `var`, not both", "12:7"),
        ("`add_host` needs the argument `name`", "13:7"),
        ("`notify` must be a name or a list of names, found a mapping", "14:24"),
        ("'listen' is not a valid attribute for a Task", "15:16"),
        ("Invalid variable name '1x'", "16:26"),
        ("`loop` must be a list, found a string", "17:22"),
        ("`lop_var` is not a keyword of `loop_control`", "18:31"),
    ];
    for ((message, place), lines) in expected.iter().zip(told.chunks(2)) {
        assert!(lines[0].contains(message) && lines[1].ends_with(&format!("site.yml:{place}")), "{message}: {lines:?}");
    }
    assert_eq!((told.len(), status), (2 * expected.len() + 1, Some(4)), "{stderr}");
}

#[test]
fn defaults_of_modules_that_are_not_there() {
    let play =
        "- hosts: all\n  gather_facts: false\n  module_defaults: {cpoy: {mode: x}, group/k8s: {x: 1}}\n  tasks: []\n";
    let (status, stderr) = Project::new("defaults", &[("site.yml", play)]).run(&[]);
    assert!(stderr.contains("warning: no module `cpoy`: its defaults mean nothing\n --> site.yml:3:21"), "{stderr}");
    assert!(
        stderr.contains("error: groups of modules, such as `group/k8s`, have no defaults here\n --> site.yml:3:38"),
        "{stderr}"
    );
    assert_eq!(status, Some(4));
}

#[test]
fn a_task_that_is_meant_to_fail_is_warned_of_and_run() {
    let play = "- hosts: web1\n  gather_facts: false\n  tasks:\n    - {file: {pth: x}, register: r, ignore_errors: true}\n    \
                - {ping: {data: [1]}, register: s, failed_when: s is not failed}\n    - assert: {that: [r is failed, s is not failed]}\n";
    let project = Project::new("awaited", &[("site.yml", play)]);
    let (status, stderr) = project.run(&[]);
    assert_eq!(status, Some(0), "{stderr}");
    for told in ["warning: unknown field `pth`", " --> site.yml:4:15", "the task will fail", " --> site.yml:5:21"] {
        assert!(stderr.contains(told), "no `{told}` in {stderr}");
    }
    // Nobody looks at the result of this one.
    let play = play.replace("register: r, ", "");
    let (status, stderr) = Project::new("unawaited", &[("site.yml", &play)]).run(&[]);
    assert_eq!((status, stderr.contains("error: unknown field `pth`")), (Some(4), true), "{stderr}");
}

/// Each with the one thing that is told of it: what follows from it is not.
#[test]
fn what_is_told_once() {
    let cases = [
        ("command: {cmnd: ls}", "unknown field `cmnd`", 17),
        ("debug: {msg: x}\n      async: 5", "This action (debug) does not support async.", 14),
        ("set_fact: {a-b: 1}", "Invalid variable name 'a-b'", 18),
        ("command: ls\n      register: [a]", "`register` must be a string, found a list", 17),
        ("command: ls\n      args: word", "`args` must be a mapping, found a string", 13),
        ("template: {src: folder, dest: /tmp/x}", "`folder` is a folder, and `template` takes a file", 23),
    ];
    for (nth, (task, told, column)) in cases.into_iter().enumerate() {
        let play = format!("- hosts: all\n  gather_facts: false\n  tasks:\n    - {task}\n");
        let line = 3 + task.lines().count();
        let project = Project::new(&format!("once{nth}"), &[("site.yml", &play), ("folder/file", "")]);
        let (status, stderr) = project.run(&[]);
        assert!(stderr.contains(told) && stderr.contains(&format!(" --> site.yml:{line}:{column}\n")), "{stderr}");
        assert!(stderr.ends_with("error: one mistake found; nothing was run\n"), "{stderr}");
        assert_eq!(status, Some(4), "{task}");
    }
}
