//! What a run prints, as a whole; its record; stopping, resuming and retrying.

mod common;

use std::process::Stdio;

use common::program::{Project, between, until};

const LOCAL: &str = "h ansible_connection=local\n";

#[test]
fn lines_are_those_of_ansible() {
    let project = Project::new("h ansible_connection=local\nother ansible_connection=local\n");
    project.write("more.yml", "- name: from a file\n  debug: {msg: more}\n").write(
        "site.yml",
        r#"
- hosts: none
  tasks: []
- name: Everything
  hosts: h
  gather_facts: false
  tasks:
    - {name: changes, command: echo hi, notify: restart}
    - {name: is fine, command: echo hi, changed_when: false}
    - {name: is skipped, ping: , when: false}
    - {name: says, debug: {msg: [one, {two: 2}]}}
    - {name: tells, debug: {var: inventory_hostname}}
    - {name: loops, command: "echo {{ item }}", loop: [a, b], changed_when: item == 'b'}
    - {name: loops in part, ping: , loop: [1, 2], when: item == 2}
    - {name: loops over nothing, ping: , loop: []}
    - {name: elsewhere, ping: , delegate_to: other}
    - {name: hides, command: echo hidden, no_log: true}
    - {name: hides items, command: "echo {{ item }}", loop: [hidden], no_log: true}
    - {name: includes, include_tasks: more.yml}
    - {name: tries, command: "false", until: false, retries: 1, delay: 0, ignore_errors: true}
    - block:
        - {name: breaks, fail: {msg: it is broken}}
      rescue:
        - {name: helps, debug: {msg: rescued}}
      always:
        - {name: ends, debug: {msg: always}}
    - {name: fails in part, command: "test {{ item }} = 1", loop: [1, 2]}
  handlers:
    - {name: restart, command: echo restarted}
"#,
    );
    let ran = project.run(&["site.yml"]);
    assert_eq!(
        ran.stdout,
        r#"
PLAY [none] ********************************************************************
skipping: no hosts matched

PLAY [Everything] **************************************************************

TASK [changes] *****************************************************************
changed: [h]

TASK [is fine] *****************************************************************
ok: [h]

TASK [is skipped] **************************************************************
skipping: [h]

TASK [says] ********************************************************************
ok: [h] => {
    "msg": [
        "one",
        {
            "two": 2
        }
    ]
}

TASK [tells] *******************************************************************
ok: [h] => {
    "inventory_hostname": "h"
}

TASK [loops] *******************************************************************
ok: [h] => (item=a)
changed: [h] => (item=b)

TASK [loops in part] ***********************************************************
skipping: [h] => (item=1) 
ok: [h] => (item=2)

TASK [loops over nothing] ******************************************************
skipping: [h]

TASK [elsewhere] ***************************************************************
ok: [h -> other]

TASK [hides] *******************************************************************
changed: [h]

TASK [hides items] *************************************************************
changed: [h] => (item=(censored due to no_log))

TASK [includes] ****************************************************************
included: FOLDER/more.yml for h

TASK [from a file] *************************************************************
ok: [h] => {
    "msg": "more"
}

TASK [tries] *******************************************************************
FAILED - RETRYING: [h]: tries (1 retries left).
[ERROR]: Task failed: non-zero return code
Origin: FOLDER/site.yml:19:7

17     - {name: hides items, command: "echo {{ item }}", loop: [hidden], no_log: true}
18     - {name: includes, include_tasks: more.yml}
19     - {name: tries, command: "false", until: false, retries: 1, delay: 0, ignore_errors: true}
         ^ column 7

fatal: [h]: FAILED! => {"attempts": 1, "changed": true, "cmd": ["false"], "delta": "DELTA", "end": "END", "msg": "non-zero return code", "rc": 1, "start": "START", "stderr": "", "stderr_lines": [], "stdout": "", "stdout_lines": []}
...ignoring

TASK [breaks] ******************************************************************
[ERROR]: Task failed: it is broken
Origin: FOLDER/site.yml:21:11

19     - {name: tries, command: "false", until: false, retries: 1, delay: 0, ignore_errors: true}
20     - block:
21         - {name: breaks, fail: {msg: it is broken}}
             ^ column 11

fatal: [h]: FAILED! => {"changed": false, "msg": "it is broken"}

TASK [helps] *******************************************************************
ok: [h] => {
    "msg": "rescued"
}

TASK [ends] ********************************************************************
ok: [h] => {
    "msg": "always"
}

TASK [fails in part] ***********************************************************
changed: [h] => (item=1)
[ERROR]: Task failed: non-zero return code
Origin: FOLDER/site.yml:26:7

24       always:
25         - {name: ends, debug: {msg: always}}
26     - {name: fails in part, command: "test {{ item }} = 1", loop: [1, 2]}
         ^ column 7

failed: [h] (item=2) => {"ansible_loop_var": "item", "changed": true, "cmd": ["test", "2", "=", "1"], "delta": "DELTA", "end": "END", "item": 2, "msg": "non-zero return code", "rc": 1, "start": "START", "stderr": "", "stderr_lines": [], "stdout": "", "stdout_lines": []}

PLAY RECAP *********************************************************************
h                          : ok=14   changed=5    unreachable=0    failed=1    skipped=2    rescued=1    ignored=1   

"#
    );
    assert_eq!(ran.code, 2);
}

#[test]
fn more_is_said_with_v() {
    let project = Project::new(LOCAL);
    project.write(
        "site.yml",
        "
- hosts: h
  gather_facts: false
  tasks:
    - {name: pings, ping: , notify: told, changed_when: true}
    - {name: loops, ping: , loop: [1, 2], when: item == 1}
  handlers:
    - {name: told, debug: {msg: x}}
",
    );
    let once = project.run(&["site.yml", "-v"]).stdout;
    assert_eq!(
        once,
        r#"
PLAY [h] ***********************************************************************

TASK [pings] *******************************************************************
changed: [h] => {"changed": true, "ping": "pong"}

TASK [loops] *******************************************************************
ok: [h] => (item=1) => {"ansible_loop_var": "item", "changed": false, "item": 1, "ping": "pong"}
skipping: [h] => (item=2)  => {"ansible_loop_var": "item", "changed": false, "false_condition": "item == 1", "item": 2, "skip_reason": "Conditional result was False"}

RUNNING HANDLER [told] *********************************************************
ok: [h] => {
    "msg": "x"
}

PLAY RECAP *********************************************************************
h                          : ok=3    changed=1    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0   

"#
    );
    let twice = project.run(&["site.yml", "-vv"]).stdout;
    assert!(twice.contains(
        "TASK [pings] *******************************************************************\ntask path: FOLDER/site.yml:4\n"
    ));
    assert!(twice.contains("Notification for handler told has been saved.\n"));
    let thrice = project.run(&["site.yml", "-vvv"]).stdout;
    let invocation = "    \"invocation\": {\n        \"module_args\": {}\n    },\n";
    let told = format!("changed: [h] => {{\n    \"changed\": true,\n{invocation}    \"ping\": \"pong\"\n}}\n");
    assert!(thrice.contains(&told), "{thrice}");
}

#[test]
fn differences_are_shown_as_ansible_shows_them() {
    let project = Project::new(LOCAL);
    project.write(
        "site.yml",
        "
- hosts: h
  gather_facts: false
  tasks:
    - {name: new, copy: {content: \"one\\ntwo\\n\", dest: \"{{ playbook_dir }}/file\"}}
    - {name: changed, copy: {content: \"one\\nthree\\n\", dest: \"{{ playbook_dir }}/file\"}, check_mode: false}
",
    );
    let head = "\nPLAY [h] ***********************************************************************\n";
    let expected = format!(
        "{head}
TASK [new] *********************************************************************
--- before
+++ after: FOLDER/file
@@ -0,0 +1,2 @@
+one
+two

changed: [h]

TASK [changed] *****************************************************************
--- before: FOLDER/file
+++ after: FOLDER/file
@@ -1,2 +1,2 @@
 one
-two
+three

changed: [h]

PLAY RECAP *********************************************************************
h                          : ok=2    changed=2    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0   

"
    );
    assert_eq!(project.run(&["site.yml", "--diff"]).stdout, expected);
    assert!(project.run(&["site.yml", "--check", "--diff"]).stdout.contains("-three\n+two\n"));
    assert_eq!(project.read("file"), "one\nthree\n");
    // Where colours are forced, and where they are not wanted.
    let mut colored = project.command(&["site.yml", "--diff", "--check"]);
    colored.env("ANSIBLE_FORCE_COLOR", "1");
    assert!(project.wait(colored).stdout.contains("\u{1b}[0;31m-three\u{1b}[0m\n\u{1b}[0;32m+two\u{1b}[0m\n"));
}

#[test]
fn a_host_out_of_reach_is_told_and_the_others_go_on() {
    let project =
        Project::new("h ansible_connection=local\ngone ansible_host=127.0.0.1 ansible_port=1\n[all:vars]\nx=1\n");
    project.write(
        "site.yml",
        "- hosts: gone,h\n  gather_facts: false\n  tasks:\n    - {name: first, ping: }\n    - {name: second, ping: }\n",
    );
    let ran = project.run(&["site.yml", "-f", "1"]);
    assert_eq!(ran.code, 4);
    assert_eq!(
        ran.stdout,
        r#"
PLAY [gone,h] ******************************************************************

TASK [first] *******************************************************************
[ERROR]: Task failed: connect to `gone`: 127.0.0.1:1: Connection refused (os error 111)
Origin: FOLDER/site.yml:4:7

2   gather_facts: false
3   tasks:
4     - {name: first, ping: }
        ^ column 7

fatal: [gone]: UNREACHABLE! => {"changed": false, "msg": "connect to `gone`: 127.0.0.1:1: Connection refused (os error 111)", "unreachable": true}
ok: [h]

TASK [second] ******************************************************************
ok: [h]

PLAY RECAP *********************************************************************
gone                       : ok=0    changed=0    unreachable=1    failed=0    skipped=0    rescued=0    ignored=0   
h                          : ok=2    changed=0    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0   

"#
    );
    // Only that host is taken the next time.
    let again = project.run(&["site.yml", "--retry"]);
    assert!(again.stdout.contains("gone ") && !again.stdout.contains("[h]"), "{}", again.stdout);
    let none = project.run(&["site.yml", "--retry", "--limit", "h"]);
    assert!(none.stderr.starts_with("error: nothing to retry: the inventory and `--limit` leave none"), "{none:?}");
}

#[test]
fn a_template_s_mistake_shows_its_place() {
    let project = Project::new(LOCAL);
    project.write(
        "site.yml",
        "- hosts: h\n  gather_facts: false\n  tasks:\n    - debug:\n        msg: \"a {{ nope }}\"\n",
    );
    let ran = project.run(&["site.yml"]);
    let place = " --> site.yml:5:20\n  |\n5 |         msg: \"a {{ nope }}\"\n  |                    ^^^^\n";
    assert!(ran.stdout.contains("[ERROR]: Task failed: ") && ran.stdout.contains(place), "{}", ran.stdout);
}

#[test]
fn json_is_one_event_a_line() {
    let project = Project::new(LOCAL);
    project.write("site.yml", "- hosts: h\n  gather_facts: false\n  tasks:\n    - {name: loops, ping: , loop: [1]}\n    - {name: hides, ping: , no_log: true}\n");
    let ran = project.run(&["site.yml", "--output", "json"]);
    let events: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(
        kinds,
        ["play_start", "task_start", "host_start", "item", "result", "task_start", "host_start", "result", "recap"]
    );
    assert_eq!(events[3]["item"], "1");
    assert_eq!(events[4]["task"]["place"], "FOLDER/site.yml:4:7");
    assert_eq!(events[4]["status"], "ok");
    assert_eq!(events[7]["result"]["changed"], false);
    assert!(events[7]["result"]["censored"].is_string() && events[7]["result"]["ping"].is_null());
    assert_eq!(events[8]["hosts"]["h"]["ok"], 2);
    assert_eq!(events[8]["exit_code"], 0);
}

#[test]
fn junit_is_one_document() {
    let project = Project::new(LOCAL);
    project.write(
        "site.yml",
        "- name: One & all\n  hosts: h\n  gather_facts: false\n  tasks:\n    - {name: pings, ping: }\n    - {name: changes, ping: , changed_when: true}\n    - {name: skips, ping: , when: false}\n    - {name: fails, fail: {msg: a < b}}\n",
    );
    let ran = project.run(&["site.yml", "--output", "junit"]);
    assert_eq!(ran.code, 2);
    assert_eq!(
        between(&ran.stdout, "b\">", "</failure>", "IN FULL"),
        r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="kubeon-run" time="TIME">
  <testsuite name="One &amp; all" tests="4" failures="1" errors="0" skipped="1" time="TIME">
    <testcase name="[h] pings" classname="FOLDER/site.yml:5:7" time="TIME"/>
    <testcase name="[h] changes" classname="FOLDER/site.yml:6:7" time="TIME">
      <system-out>changed</system-out>
    </testcase>
    <testcase name="[h] skips" classname="FOLDER/site.yml:7:7" time="TIME">
      <skipped message="Conditional result was False"/>
    </testcase>
    <testcase name="[h] fails" classname="FOLDER/site.yml:8:7" time="TIME">
      <failure message="a &lt; b">IN FULL</failure>
    </testcase>
  </testsuite>
</testsuites>
"#
    );
}

#[test]
fn callbacks_of_ansible_s_configuration_are_known_or_refused() {
    let project = Project::new(LOCAL);
    project.write("site.yml", "- hosts: h\n  gather_facts: false\n  tasks:\n    - {name: pings, ping: }\n");
    let with = |callback: &str| {
        let mut command = project.command(&["site.yml"]);
        command.env("ANSIBLE_STDOUT_CALLBACK", callback);
        project.wait(command)
    };
    assert_eq!(
        with("ansible.builtin.minimal").stdout,
        "h | SUCCESS => {\n    \"changed\": false,\n    \"ping\": \"pong\"\n}\n"
    );
    assert_eq!(with("oneline").stdout, "h | SUCCESS => {\"changed\": false, \"ping\": \"pong\"}\n");
    assert!(with("junit").stdout.starts_with("<?xml"));
    assert!(with("json").stdout.starts_with("{\"event\":\"play_start\""));
    let refused = with("dense");
    assert_eq!(refused.code, 2);
    assert_eq!(
        refused.stderr,
        "error: `stdout_callback` is `dense`, and default, minimal, oneline, yaml, json and junit are known; `--output` \
         overrules it\n"
    );
}

/// Two plays; the first stops in its third task until a file is there.
const STOPS: &str = "
- name: one
  hosts: all
  gather_facts: false
  tasks:
    - {name: counts, shell: \"echo counted >> {{ home }}/count\", register: counted, notify: handles}
    - {name: keeps, set_fact: {kept: \"kept by {{ inventory_hostname }}\"}}
    - name: waits
      shell: \"echo waiting >> {{ home }}/waiting; until test -e {{ home }}/go -o ! -e {{ home }}; do sleep 0.05; done\"
      register: waited
    # It needs what the one before comes to, and is not sent ahead.
    - {name: uses, shell: \"echo {{ kept }}, {{ counted.changed }} >> {{ home }}/uses\", when: waited is changed}
  handlers:
    - {name: handles, shell: \"echo handled >> {{ home }}/handled\"}
- name: two
  hosts: all
  gather_facts: false
  tasks:
    - {name: also, shell: \"echo {{ kept }} >> {{ home }}/also\"}
";

fn stopping() -> Project {
    let project = Project::new("");
    let home = project.folder.path().display().to_string();
    project.write("hosts", &format!("a ansible_connection=local\n[all:vars]\nhome={home}\n"));
    project.write("site.yml", STOPS);
    project
}

#[test]
fn what_was_stopped_can_be_resumed() {
    let project = stopping();
    let nothing = project.run(&["site.yml", "--resume"]);
    assert_eq!(nothing.code, 1);
    assert!(nothing.stderr.starts_with("error: no earlier run of `FOLDER/site.yml` is recorded"), "{nothing:?}");

    let mut child = project
        .command(&["site.yml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    until("the third task", || !project.read("waiting").is_empty());
    kill(&child, libc::SIGINT);
    until("a word on it", || project.read_record("events.jsonl").contains("stopping: hosts finish"));
    project.write("go", "");
    assert_eq!(child.wait().expect("an end").code(), Some(99));
    let output = child.wait_with_output().expect("its output");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("changed: [a]\n\nPLAY RECAP"), "{stdout}");
    let summary: serde_json::Value = serde_json::from_str(&project.read_record("summary.json")).expect("JSON");
    assert_eq!((&summary["exit_code"], &summary["interrupted"]), (&99.into(), &true.into()));
    assert_eq!(summary["hosts"]["a"]["changed"], 2);

    let check = project.run(&["site.yml", "--resume", "--check"]);
    assert!(check.stderr.contains("was for real: resume it without `--check`"), "{check:?}");
    let resumed = project.run(&["site.yml", "--resume"]);
    assert_eq!(
        resumed.stdout,
        "
PLAY [one] *********************************************************************

TASK [uses] ********************************************************************
changed: [a]

RUNNING HANDLER [handles] ******************************************************
changed: [a]

PLAY [two] *********************************************************************

TASK [also] ********************************************************************
changed: [a]

PLAY RECAP *********************************************************************
a                          : ok=3    changed=3    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0   

"
    );
    assert_eq!(project.read("count"), "counted\n");
    assert_eq!(project.read("uses"), "kept by a, True\n");
    assert_eq!(project.read("handled"), "handled\n");
    assert_eq!(project.read("also"), "kept by a\n");
    let again = project.run(&["site.yml", "--resume"]);
    assert_eq!(again.code, 0);
    assert!(again.stderr.starts_with("nothing to resume: the run of "), "{again:?}");
    let retry = project.run(&["site.yml", "--retry"]);
    assert!(retry.stderr.starts_with("nothing to retry: no host failed in the run of "), "{retry:?}");
}

#[test]
fn a_second_signal_ends_a_run_at_once_and_an_edited_playbook_starts_over() {
    let project = stopping();
    let mut child =
        project.command(&["site.yml"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    until("the third task", || !project.read("waiting").is_empty());
    kill(&child, libc::SIGTERM);
    until("a word on it", || project.read_record("events.jsonl").contains("stopping: hosts finish"));
    kill(&child, libc::SIGINT);
    assert_eq!(child.wait().expect("an end").code(), Some(99));
    assert_eq!(project.read_record("summary.json"), "");
    project.write("go", "");
    project.write("site.yml", &STOPS.replace("echo counted", "echo edited"));
    assert_eq!(project.run(&["site.yml", "--resume"]).code, 0);
    assert_eq!(project.read("count"), "counted\nedited\n");
}

#[test]
fn a_hidden_variable_makes_hosts_start_where_it_came_from() {
    let project = stopping();
    project.write("site.yml", &STOPS.replace("name: keeps,", "name: keeps, no_log: true,"));
    let mut child =
        project.command(&["site.yml"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    until("the third task", || !project.read("waiting").is_empty());
    child.kill().expect("a signal");
    child.wait().expect("an end");
    project.write("go", "");
    let resumed = project.run(&["site.yml", "--resume"]);
    assert_eq!(resumed.code, 0);
    assert!(!resumed.stdout.contains("TASK [counts]") && resumed.stdout.contains("TASK [keeps]"), "{}", resumed.stdout);
    assert_eq!(project.read("uses"), "kept by a, True\n");
}

#[test]
fn a_record_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new(LOCAL);
    project.write("site.yml", "- hosts: h\n  gather_facts: false\n  tasks:\n    - ping:\n");
    assert_eq!(project.run(&["site.yml"]).code, 0);
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    let record = project.record();
    assert_eq!(mode(&record), 0o700);
    assert_eq!(mode(&record.join("events.jsonl")), 0o600);
    assert_eq!(mode(&record.join("summary.json")), 0o600);
}

fn kill(child: &std::process::Child, signal: i32) {
    // SAFETY: the child has not been waited for, so its number is still its own.
    let sent = unsafe { libc::kill(child.id() as i32, signal) };
    assert_eq!(sent, 0);
}

/// Where all hosts go together a `meta` has its line like any task, and what `debug` shows of a variable its item.
#[test]
fn metas_are_named_and_a_variable_s_item_is_told() {
    let project = Project::new("a ansible_connection=local\nb ansible_connection=local\n");
    project.write(
        "site.yml",
        "
- hosts: all
  gather_facts: false
  tasks:
    - {name: at once, meta: flush_handlers}
    - {meta: clear_facts}
    - {name: perhaps, meta: end_host, when: inventory_hostname == 'nobody'}
- hosts: a
  gather_facts: false
  strategy: free
  tasks:
    - {name: unseen, meta: flush_handlers}
    - {debug: {var: item.n}, loop: [{n: 1}]}
    - {debug: {msg: '{{ item.n }}'}, loop: [{n: 2}]}
",
    );
    let stars = |title: &str| format!("{title} {}\n", "*".repeat(79 - title.len()));
    let expected = [
        stars("PLAY [all]"),
        stars("TASK [at once]"),
        stars("TASK [at once]"),
        stars("TASK [meta]"),
        stars("TASK [perhaps]") + "skipping: [a]\n",
        stars("TASK [perhaps]") + "skipping: [b]\n",
        stars("PLAY [a]"),
        stars("TASK [debug]")
            + "ok: [a] => (item={'n': 1}) => {\n    \"item\": {\n        \"n\": 1\n    },\n    \"item.n\": 1\n}\n",
        stars("TASK [debug]") + "ok: [a] => (item={'n': 2}) => {\n    \"msg\": 2\n}\n",
    ];
    let ran = project.run(&["site.yml"]);
    let told = ran.stdout.split("\nPLAY RECAP").next().unwrap_or_default();
    assert_eq!(told.trim(), expected.join("\n").trim(), "{}", ran.stderr);
}
