//! Tasks sent ahead: what travels, what is done and told of it, and that playbooks mean the same with and without.

#[path = "../common/mod.rs"]
mod common;
mod made_up;
mod wire;

use std::collections::BTreeMap;
use std::process::Stdio;

use common::program::{Project, files, until};
use made_up::Maker;
use serde_json::Value;
use wire::Wire;

const SETTING: &str = "KUBEON_SEND_AHEAD";
/// How many playbooks are made up, unless `KUBEON_TEST_SEEDS` says.
const SEEDS: u64 = 100;

fn repeated(task: &str, play: &str) -> String {
    format!("- hosts: all\n  gather_facts: false\n  {play}\n  tasks:\n{}", format!("    - {task}\n").repeat(20))
}

#[test]
fn twenty_commands_take_one_round_trip() {
    let commands = repeated("command: /bin/true", "");
    let files = |play| repeated("file: {path: /, state: directory}", play);
    for (hosts, playbook, setting, expected) in [
        (&["a"][..], &commands, None, (20, 0, 0)),
        (&["a"], &commands, Some("off"), (20, 0, 0)),
        (&["a"], &commands, Some("safe"), (1, 19, 0)),
        // Another host could tell that this one has gone on.
        (&["a", "b"], &commands, Some("safe"), (20, 0, 0)),
        (&["a", "b"], &commands, Some("all"), (1, 19, 0)),
        (&["a", "b"], &repeated("command: /bin/true", "strategy: free"), Some("safe"), (1, 19, 0)),
        (&["a", "b"], &repeated("command: /bin/true", "serial: 1"), Some("safe"), (1, 19, 0)),
        (&["a", "b"], &files(""), Some("safe"), (1, 19, 0)),
        // A plan changes nothing, whatever becomes of the task in front.
        (&["a", "b"], &files("any_errors_fatal: true"), Some("safe"), (1, 0, 19)),
        (&["a", "b"], &files("max_fail_percentage: 50"), Some("safe"), (1, 0, 19)),
        (&["a", "b"], &files(""), None, (1, 0, 19)),
        (&["a", "b"], &files("strategy: free"), None, (1, 0, 19)),
        (&["a", "b"], &files("serial: 1"), Some("plan"), (1, 0, 19)),
        (&["a"], &files(""), Some("off"), (20, 0, 0)),
    ] {
        let wire = Wire::new(hosts);
        let ran = wire.run(playbook, setting);
        assert_eq!(ran.code, 0, "{ran:?}");
        for host in hosts {
            assert_eq!(wire.sent(host), expected, "{hosts:?} {setting:?}\n{playbook}");
            assert!(ran.stdout.contains(&format!("{host}                          : ok=20 ")), "{}", ran.stdout);
        }
    }
}

#[test]
fn what_wants_a_change_waits_for_its_turn() {
    let wire = Wire::new(&["a", "b"]);
    let home = wire.project.folder.path().display().to_string();
    wire.project.write("b.wait", "").write(
        "site.yml",
        &format!(
            "
- hosts: all
  gather_facts: false
  tasks:
    - stat: {{path: /}}
    - stat: {{path: /etc}}
    - file: {{path: '{home}/made.{{{{ inventory_hostname }}}}', state: directory}}
    - stat: {{path: /usr}}
"
        ),
    );
    let mut child = wire
        .command(&["site.yml"], None)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    // It has planned all of them, and waits for the other host to come to its first.
    until("the end of what is planned ahead", || wire.text("a.said").matches("{\"passed\":").count() == 2);
    assert!(!wire.project.path("made.a").exists());
    std::fs::remove_file(wire.project.path("b.wait")).expect("it is there");
    assert_eq!(child.wait().expect("an end").code(), Some(0));
    // The first, with the second and third behind it; the third again; and the fourth, if another host has changed
    // something since it was planned: that is so for the host that was first to make a change, at least.
    let runs = ["a", "b"].map(|host| {
        assert!(wire.project.path(&format!("made.{host}")).is_dir());
        let (run, then, _) = wire.sent(host);
        assert_eq!(then, 0);
        run
    });
    assert!([[3, 3], [2, 3], [3, 2]].contains(&runs), "{runs:?}");
}

#[test]
fn what_others_change_is_seen_however_early_it_was_planned() {
    let wire = Wire::new(&["a", "b"]);
    let home = wire.project.folder.path().display().to_string();
    let ran = wire.run(
        &format!(
            "
- hosts: all
  gather_facts: false
  tasks:
    - {{stat: {{path: {home}/made}}, register: before}}
    - {{command: touch {home}/made, when: inventory_hostname == 'b'}}
    - {{stat: {{path: {home}/made}}, register: after}}
    - {{copy: {{content: '{{{{ before.stat.exists }}}} {{{{ after.stat.exists }}}}', dest: '{home}/told.{{{{ inventory_hostname }}}}'}}}}
    - {{stat: {{path: {home}/late}}, register: before}}
    - {{command: touch {home}/late, delegate_to: b, when: inventory_hostname == 'b'}}
    - {{stat: {{path: {home}/late}}, register: after}}
    - {{copy: {{content: '{{{{ before.stat.exists }}}} {{{{ after.stat.exists }}}}', dest: '{home}/late.{{{{ inventory_hostname }}}}'}}}}
"
        ),
        None,
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    for host in ["a", "b"] {
        assert_eq!(wire.project.read(&format!("told.{host}")), "False True");
        assert_eq!(wire.project.read(&format!("late.{host}")), "False True");
    }
    assert!(wire.sent("a").2 > 0, "nothing was planned ahead");
}

#[test]
fn a_rerun_with_nothing_to_do_takes_few_round_trips() {
    let wire = Wire::new(&["a", "b"]);
    let home = wire.project.folder.path().display().to_string();
    wire.project
        .write(
            "more.yml",
            &format!(
                "- {{name: more, lineinfile: {{path: '{home}/file.{{{{ inventory_hostname }}}}', line: more}}}}\n"
            ),
        )
        .write("never.yml", "- command: /bin/false\n");
    let playbook = format!(
        "
- hosts: all
  gather_facts: false
  vars: {{file: '{home}/file.{{{{ inventory_hostname }}}}'}}
  tasks:
    - {{stat: {{path: /}}, register: found}}
    - {{name: a loop, file: {{path: '{home}/{{{{ item }}}}.{{{{ inventory_hostname }}}}', state: directory}}, loop: [x, y, z]}}
    - {{include_tasks: never.yml, when: not found.stat.exists}}
    - {{name: with a condition, copy: {{dest: '{{{{ file }}}}', content: \"here\\n\", force: false}}, when: found.stat.exists, register: copied}}
    - {{copy: {{dest: '{{{{ file }}}}.s', content: not for this host}}, no_log: true, when: found.stat.isreg}}
    - {{name: with a default, stat: {{path: /etc}}, when: found.stat.isdir | default(false)}}
    - {{name: again after a change, file: {{path: '{{{{ file }}}}', state: touch}}, when: copied is changed}}
    - {{name: only after a change, command: /bin/false, when: copied is changed and never is defined}}
    - {{include_tasks: more.yml, when: found.stat.isdir}}
    - {{template: {{src: it.j2, dest: '{{{{ file }}}}.t'}}}}
    - {{set_fact: {{known: yes}}}}
    - {{debug: {{msg: '{{{{ known }}}}'}}}}
    - {{lineinfile: {{path: '{{{{ file }}}}', line: more}}, notify: changed}}
  handlers:
    - {{name: changed, command: /bin/false}}
"
    );
    wire.project.write("it.j2", "{{ inventory_hostname }}\n");
    let ran = wire.run(&playbook, None);
    assert_eq!(ran.code, 0, "{ran:?}");
    for host in ["a", "b"] {
        std::fs::remove_file(wire.project.path(&format!("{host}.sent"))).expect("it is there");
    }
    let ran = wire.run(&playbook, None);
    assert_eq!(ran.code, 0, "{ran:?}");
    for host in ["a", "b"] {
        assert!(
            ran.stdout.contains(&format!("{host}                          : ok=10   changed=0 ")),
            "{}",
            ran.stdout
        );
        let sent = wire.text(&format!("{host}.sent"));
        assert!(!sent.contains("not for this host"), "{sent}");
        assert_eq!(wire.sent(host), (1, 0, 8), "{sent}");
    }
}

#[test]
fn each_round_of_long_loops_travels_once() {
    let wire = Wire::new(&["a"]);
    let playbook = "
- hosts: all
  gather_facts: false
  tasks:
    - {stat: {path: '/none/{{ item }}'}, loop: '{{ range(100) }}'}
    - {file: {path: '/none/{{ item }}', state: absent}, loop: '{{ range(100) }}'}
";
    let ran = wire.run(playbook, None);
    assert_eq!(ran.code, 0, "{ran:?}");
    let (runs, _, plans) = wire.sent("a");
    assert_eq!(runs + plans, 200, "{runs} and {plans}");
    assert!(runs < 10, "{runs}");
}

#[test]
fn what_depends_on_a_result_waits_for_it() {
    let wire = Wire::new(&["a"]);
    let ran = wire.run(
        "
- hosts: all
  gather_facts: false
  vars: {through: '{{ first.stdout }}'}
  tasks:
    - {command: echo one, register: first}
    - {command: echo independent, register: other}
    - {command: 'echo {{ through }}', register: second}
    - {command: echo skipped, when: first is failed}
    - {command: echo independent}
    - {copy: {content: '{{ second.stdout }}', dest: '{{ playbook_dir }}/told'}}
",
        Some("safe"),
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(wire.project.read("told"), "one");
    // The first with the second; the third, whose follower depends on nothing new; and so on.
    let (run, then, _) = wire.sent("a");
    assert_eq!((run, then), (3, 2));
}

#[test]
fn nothing_begins_after_a_failure() {
    let wire = Wire::new(&["a"]);
    let home = wire.project.folder.path().display().to_string();
    let ran = wire.run(
        &format!(
            "
- hosts: all
  gather_facts: false
  tasks:
    - block:
        - shell: echo one >> {home}/log
        - shell: echo two >> {home}/log; false
        - shell: echo never >> {home}/log
      rescue:
        - shell: echo rescue >> {home}/log
    - shell: echo three >> {home}/log; false
      ignore_errors: true
    - shell: echo four >> {home}/log
    - shell: echo five >> {home}/log; false
    - shell: echo never >> {home}/log
"
        ),
        Some("safe"),
    );
    assert_eq!(ran.code, 2, "{ran:?}");
    assert_eq!(wire.project.read("log"), "one\ntwo\nrescue\nthree\nfour\nfive\n");
    assert!(ran.stdout.contains("ok=4    changed=4    unreachable=0    failed=1    skipped=0    rescued=1"), "{ran:?}");
}

#[test]
fn a_host_that_is_lost_underway_is_told_of_at_the_task_that_it_was_at() {
    let wire = Wire::new(&["a"]);
    let home = wire.project.folder.path().display().to_string();
    let ran = wire.run(
        &format!(
            "
- hosts: all
  gather_facts: false
  tasks:
    - {{name: first, shell: echo one >> {home}/log}}
    - {{name: second, shell: echo two >> {home}/log}}
    - {{name: deadly, shell: kill -9 $PPID}}
    - {{name: never, shell: echo never >> {home}/log}}
"
        ),
        Some("safe"),
    );
    assert_eq!(ran.code, 4, "{ran:?}");
    assert_eq!(wire.project.read("log"), "one\ntwo\n");
    assert_eq!(wire.sent("a"), (1, 3, 0));
    let told = ran.stdout.find("TASK [deadly]").map(|at| &ran.stdout[at..]).expect("the deadly task");
    assert!(told.contains("UNREACHABLE") && !told.contains("TASK [never]"), "{}", ran.stdout);
    assert!(ran.stdout.contains("ok=2    changed=2    unreachable=1"), "{}", ran.stdout);
}

#[test]
fn the_users_stop_holds_for_what_was_sent_ahead() {
    let wire = Wire::new(&["a"]);
    let mut child = wire.at_the_second_of_four();
    // SAFETY: kill(2) takes no pointer, and the child has not been waited for.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    let stop = [0, 0, 0, 0, 2];
    until("the frame that calls it off", || {
        std::fs::read(wire.project.path("a.sent")).is_ok_and(|sent| sent.ends_with(&stop))
    });
    wire.project.write("go", "");
    assert_eq!(child.wait().expect("an end").code(), Some(99));
    assert_eq!(wire.project.read("log"), "one\ntwo\n");
    assert_eq!(wire.sent("a"), (1, 3, 0));
    let summary: Value = serde_json::from_str(&wire.project.read_record("summary.json")).expect("JSON");
    assert_eq!(summary["hosts"]["a"]["changed"], 2);
    let resumed = wire.project.wait(wire.command(&["site.yml", "--resume"], Some("safe")));
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(wire.project.read("log"), "one\ntwo\nthree\nfour\n");
}

#[test]
fn a_host_that_hears_nothing_of_the_run_begins_nothing() {
    let wire = Wire::new(&["a"]);
    let mut child = wire.at_the_second_of_four();
    let here = [0, 0, 0, 8, 3];
    let sent = || std::fs::read(wire.project.path("a.sent")).unwrap_or_default();
    until("the answer to a sign of life", || sent().windows(here.len()).any(|window| window == here));
    let signal = |signal| {
        // SAFETY: kill(2) takes no pointer, and the child has not been waited for.
        unsafe { libc::kill(child.id().cast_signed(), signal) };
    };
    // To the host, this is a line that was cut.
    signal(libc::SIGSTOP);
    let signs = || wire.text("a.said").matches("{\"alive\":").count();
    let before = signs();
    until("signs of life that nobody answers, for more than a second", || signs() > before + 8);
    wire.project.write("go", "");
    until("what did not begin", || wire.text("a.said").matches("{\"passed\":").count() == 2);
    assert_eq!(wire.project.read("log"), "one\ntwo\n");
    // It was not cut in the end: what did not begin is done, once.
    signal(libc::SIGCONT);
    assert_eq!(child.wait().expect("an end").code(), Some(0));
    assert_eq!(wire.project.read("log"), "one\ntwo\nthree\nfour\n");
}

#[test]
fn wherever_a_line_is_cut_hosts_have_done_what_is_told_of_them() {
    let tasks: String = (1..=6).fold(String::new(), |text, number| {
        text + &format!(
            "    - stat: {{path: /}}\n    - shell: echo {number} >> {{{{ log }}}}\n    \
             - lineinfile: {{path: '{{{{ log }}}}', line: {number}}}\n    \
             - file: {{path: '{{{{ log }}}}', mode: '0600'}}\n    \
             - lineinfile: {{path: '{{{{ log }}}}', line: line {number}}}\n"
        )
    });
    let whole: Vec<String> = (1..=6).flat_map(|number| [number.to_string(), format!("line {number}")]).collect();
    let mut lost = 0;
    for (setting, hosts) in [("plan", &["a", "b"][..]), ("safe", &["a"]), ("all", &["a", "b"]), ("off", &["a", "b"])] {
        let mut after_bytes = 60;
        for _ in 0..24 {
            let wire = Wire::new(hosts);
            let home = wire.project.folder.path().display().to_string();
            wire.project.write("a.cut", &after_bytes.to_string());
            after_bytes = after_bytes * 6 / 5;
            let ran = wire.run(
                &format!(
                    "- hosts: all\n  gather_facts: false\n  vars: {{log: '{home}/log.{{{{ inventory_hostname }}}}'}}\n  \
                     tasks:\n{tasks}"
                ),
                Some(setting),
            );
            let is_cut = ran.stdout.contains("fatal: [a]: UNREACHABLE!");
            lost += usize::from(is_cut);
            assert_eq!(ran.code, if is_cut { 4 } else { 0 }, "{setting} {after_bytes} {ran:?}");
            let done = wire.text("log.a");
            let done: Vec<&str> = done.lines().collect();
            assert!(whole.iter().zip(&done).all(|(one, other)| one == other), "{setting} {after_bytes} {done:?}");
            let recap = ran.stdout.lines().find(|line| line.starts_with("a  ")).expect("a recap").to_owned();
            let changed: usize = recap
                .split_whitespace()
                .find_map(|word| word.strip_prefix("changed=")?.parse().ok())
                .expect("how many changed");
            // The file is made, and then its mode is set.
            let told = changed.saturating_sub(usize::from(changed > 1));
            assert!((told..=told + 1).contains(&done.len()), "{setting} {after_bytes} {done:?}\n{recap}");
            if hosts.len() > 1 {
                assert_eq!(wire.text("log.b").lines().count(), whole.len(), "{setting} {after_bytes} {ran:?}");
            }
        }
    }
    assert!(lost > 24, "cut {lost} times");
}

/// More is sent than a pipe holds, so that the runner is still sending when the line breaks.
#[test]
fn what_was_answered_before_a_line_broke_is_told() {
    let wire = Wire::new(&["a"]);
    wire.project.write("a.cut", "20000");
    let home = wire.project.folder.path().display().to_string();
    let long = "x".repeat(8000);
    let tasks: String = (1..=20)
        .fold(String::new(), |text, number| text + &format!("    - shell: 'echo {number} >> {home}/log; : {long}'\n"));
    let ran = wire.run(&format!("- hosts: all\n  gather_facts: false\n  tasks:\n{tasks}"), Some("safe"));
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let done = wire.text("log").lines().count();
    assert!((1..=4).contains(&done), "{done}");
    let told = format!("a                          : ok={done}    changed={done}    unreachable=1 ");
    assert!(ran.stdout.contains(&told), "{done} done:\n{}", ran.stdout.replace(&long, "…"));
}

/// The answer to a sign of life is the first that can't be sent.
#[test]
fn what_a_task_did_whose_line_broke_underway_is_told() {
    let wire = Wire::new(&["a"]);
    let home = wire.project.folder.path().display().to_string();
    let playbook = format!(
        "- hosts: all\n  gather_facts: false\n  tasks:\n    - shell: sleep 1.5; echo 1 >> {home}/log\n    \
         - shell: echo 2 >> {home}/log\n"
    );
    assert_eq!(wire.run(&playbook, Some("safe")).code, 0);
    assert_eq!(wire.text("log"), "1\n2\n");
    let sent = std::fs::read(wire.project.path("a.sent")).expect("what was sent");
    let here = [0, 0, 0, 8, 3];
    let at = sent.windows(here.len()).position(|bytes| bytes == here).expect("an answer to a sign of life");
    for file in ["log", "a.sent", "a.said"] {
        std::fs::remove_file(wire.project.path(file)).expect("remove");
    }
    wire.project.write("a.deaf", &at.to_string());
    let ran = wire.run(&playbook, Some("safe"));
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert_eq!(wire.text("log"), "1\n");
    assert!(ran.stdout.contains("a                          : ok=1    changed=1    unreachable=1 "), "{}", ran.stdout);
}

/// What a run came to: its status, each host's results in their order, the recap, and the files that hosts wrote.
#[derive(Debug, PartialEq)]
struct Came {
    code: i32,
    hosts: BTreeMap<String, Vec<Value>>,
    tasks: Vec<String>,
    summary: Value,
    written: BTreeMap<String, String>,
    stdout: String,
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for key in [
                "start",
                "end",
                "delta",
                "duration_s",
                "time",
                "id",
                "task_id",
                "mtime",
                "ctime",
                "atime",
                "inode",
                "version",
            ] {
                map.remove(key);
            }
            map.values_mut().for_each(without_times);
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn run(playbook: &str, arguments: &[&str], hosts: usize, setting: &str) -> Came {
    let inventory: String =
        (1..=hosts).fold(String::new(), |text, host| text + &format!("h{host} ansible_connection=local\n"));
    let project = Project::new(&inventory);
    project.write("site.yml", playbook).write("out/.keep", "");
    let mut command = project.command(arguments);
    command.arg("site.yml").env(SETTING, setting);
    let ran = project.wait(command);
    assert!(matches!(ran.code, 0 | 2 | 4 | 6), "{}: {playbook}\n{}\n{}", ran.code, ran.stdout, ran.stderr);
    let mut hosts: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut tasks = Vec::new();
    for line in project.read_record("events.jsonl").lines() {
        let mut event: Value = serde_json::from_str(line).expect("an event");
        without_times(&mut event);
        let text = project.fixed(&event.to_string());
        match (event["event"].as_str(), event["host"].as_str()) {
            (Some("task_start" | "task"), _) => tasks.push(text),
            (_, Some(host)) => {
                hosts.entry(host.to_owned()).or_default().push(serde_json::from_str(&text).expect("JSON"));
            }
            (_, None) => {}
        }
    }
    let mut summary: Value = serde_json::from_str(&project.read_record("summary.json")).unwrap_or_default();
    let summary = summary["hosts"].take();
    let home = project.path("out");
    let written = files(&home)
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&home).expect("below").display().to_string();
            (name, std::fs::read_to_string(&path).unwrap_or_default())
        })
        .collect();
    // Hosts that are at a task at the same time are told of in any order.
    let mut lines: Vec<String> = ran.stdout.lines().map(str::to_owned).collect();
    if hosts.len() > 1 {
        lines.sort();
    }
    Came { code: ran.code, hosts, tasks, summary, written, stdout: lines.join("\n") }
}

/// Runs a playbook both ways and returns whether they differ, in a text for whoever looks for the fault.
fn difference(playbook: &str, arguments: &[&str], hosts: usize, setting: &str) -> Option<String> {
    let mut without = run(playbook, arguments, hosts, "off");
    let mut with = run(playbook, arguments, hosts, setting);
    let is_free = playbook.contains("strategy: free");
    if is_free && hosts > 1 {
        // Hosts that go on by themselves come to tasks in any order.
        for came in [&mut without, &mut with] {
            came.tasks.clear();
            came.stdout.clear();
        }
    }
    let lines = |came: &Came| format!("{came:#?}").lines().map(str::to_owned).collect::<Vec<_>>();
    (without != with).then(|| {
        let (without, with) = (lines(&without), lines(&with));
        let at = without.iter().zip(&with).take_while(|(one, other)| one == other).count();
        let around = |lines: &[String]| lines[at.saturating_sub(25)..lines.len().min(at + 12)].join("\n");
        format!("{arguments:?} {setting}\n{playbook}\nwithout:\n{}\nwith:\n{}", around(&without), around(&with))
    })
}

#[test]
fn playbooks_mean_the_same_with_and_without() {
    let mut faults = Vec::new();
    let seeds = std::env::var("KUBEON_TEST_SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("a number"));
    for seed in 1..=seeds {
        let playbook = Maker::playbook(seed);
        let arguments: &[&str] = match seed % 6 {
            0 => &["--check"],
            1 => &["--tags", "some"],
            2 => &["--skip-tags", "some", "--diff"],
            _ => &[],
        };
        // Hosts in step read what others wrote only where they wait for them.
        let (hosts, setting) = if seed % 2 == 0 { (3, "safe") } else { (1, "safe") };
        let playbook = if hosts == 1 { playbook.replace("delegate_to: h3", "delegate_to: h1") } else { playbook };
        // Of hosts that go on by themselves, the order in which they come to a task decides what one tells the others.
        let tells_others = playbook.contains("hostvars") || playbook.contains("run_once");
        if hosts > 1 && playbook.contains("strategy: free") && tells_others {
            continue;
        }
        for setting in [setting, "plan"] {
            if let Some(fault) = difference(&playbook, arguments, hosts, setting) {
                faults.push(format!("seed {seed}: {fault}"));
            }
        }
        let is_apart = !playbook.contains("run_once") && !playbook.contains("delegate_to");
        if hosts > 1
            && is_apart
            && let Some(fault) = difference(&playbook, arguments, hosts, "all")
        {
            faults.push(format!("seed {seed}: {fault}"));
        }
    }
    assert!(faults.is_empty(), "{} playbooks differ:\n{}", faults.len(), faults.join("\n"));
}
