//! Mistakes that can be seen are shown before anything runs: all of them, each at its place, as a person sees them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with files, of which `site.yml` is run.
struct Project(PathBuf);

impl Project {
    fn new(name: &str, files: &[(&str, &str)]) -> Project {
        let folder = std::env::temp_dir().join(format!("kubeon-mistakes-{}-{name}", std::process::id()));
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a temporary folder");
            std::fs::write(path, text).expect("a writable folder");
        }
        Project(folder)
    }

    /// Runs the playbook; returns the status and what was told on standard error.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        self.kubeon(&[], arguments)
    }

    /// Checks the playbook, likewise.
    fn check(&self) -> (Option<i32>, String) {
        self.kubeon(&["check"], &[])
    }

    fn kubeon(&self, command: &[&str], arguments: &[&str]) -> (Option<i32>, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_kubeon-run"))
            .current_dir(&self.0)
            .args(command)
            .args(["site.yml", "-i", "web1,web2,", "-c", "local"])
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.0)
            .output()
            .expect("the program starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Runs a play whose first task would leave a marker; expects it not to, and exactly these words.
#[track_caller]
fn expect(name: &str, tasks: &str, told: &str) {
    let play =
        format!("- hosts: all\n  gather_facts: false\n  tasks:\n    - file: {{path: marker, state: touch}}\n{tasks}");
    expect_files(name, &[("site.yml", &play)], &[], 4, told);
}

#[track_caller]
fn expect_files(name: &str, files: &[(&str, &str)], arguments: &[&str], code: i32, told: &str) {
    let project = Project::new(name, files);
    let (status, stderr) = project.run(arguments);
    assert_eq!(stderr.trim(), told.trim(), "of {name}: {stderr}");
    assert_eq!(status, Some(code), "of {name}");
    assert!(!Path::new(&project.0.join("marker")).exists(), "{name} ran something");
}

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
fn a_misspelt_keyword() {
    expect(
        "keyword",
        "    - command: uptime\n      registr: up\n",
        "
error: 'registr' is not a valid attribute for a Task
 --> site.yml:6:7
  |
6 |       registr: up
  |       ^^^^^^^
  |
  = help: did you mean `register`?

error: one mistake found; nothing was run",
    );
}

#[test]
fn a_misspelt_module() {
    expect(
        "module",
        "    - comand: uptime\n",
        "
error: no module or action `comand`
 --> site.yml:5:7
  |
5 |     - comand: uptime
  |       ^^^^^^
  |
  = help: did you mean `command`?

error: one mistake found; nothing was run",
    );
}

#[test]
fn a_handler_that_is_not_there() {
    let play = "- hosts: all
  gather_facts: false
  tasks:
    - {file: {path: marker, state: touch}, register: marker}
    - debug:
      changed_when: marker is changed and change | default(true)
      notify: restart
  handlers:
    - {name: restarts, command: uptime}
";
    let told = |severity: &str| {
        format!(
            "{severity}: no handler is named `restart`, and none listens to `restart`
 --> site.yml:7:15
  |
7 |       notify: restart
  |               ^^^^^^^
  |
  = help: did you mean `restarts`?
"
        )
    };
    let project = Project::new("handler", &[("site.yml", play)]);
    let (status, stderr) = project.check();
    assert_eq!((status, stderr), (Some(4), told("error") + "\nerror: one mistake found; nothing was run\n"));
    assert!(!project.0.join("marker").exists(), "a check runs nothing");
    // Nobody is notified: as in Ansible, the run goes well.
    let (status, stderr) = project.run(&["-e", "{change: false}"]);
    assert_eq!((status, stderr.trim()), (Some(0), told("warning").trim()));
    let (status, stderr) = project.run(&[]);
    assert_eq!(status, Some(2));
    assert!(
        stderr.contains("The requested handler 'restart' was not found in either the main handlers list"),
        "{stderr}"
    );
}

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

#[test]
fn files_and_roles_that_are_not_there() {
    let play = "- hosts: all\n  gather_facts: false\n  roles: [webs]\n  tasks:\n    - import_tasks: absent.yml\n";
    let role = ("roles/web/tasks/main.yml", "- command: uptime\n");
    expect_files(
        "files",
        &[("site.yml", play), role],
        &[],
        4,
        "
error: no role `webs`
 --> site.yml:3:11
  |
3 |   roles: [webs]
  |           ^^^^
  |
  = help: did you mean `web`?

error: Could not find or access 'absent.yml'
 --> site.yml:5:21
  |
5 |     - import_tasks: absent.yml
  |                     ^^^^^^^^^^
  |
  = help: looked beside `site.yml`

error: 2 mistakes found; nothing was run",
    );
}

#[test]
fn yaml_that_is_none() {
    expect_files(
        "yaml",
        &[("site.yml", "- hosts: all\n  tasks:\n    - debug: msg: hello\n")],
        &[],
        4,
        "
error: mapping values are not allowed in this context
 --> site.yml:3:17
  |
3 |     - debug: msg: hello
  |                 ^
  |
  = help: a value that holds `: ` must be quoted

error: one mistake found; nothing was run",
    );
}

#[test]
fn a_limit_that_names_nobody() {
    let play = "- hosts: all\n  gather_facts: false\n  tasks:\n    - file: {path: marker, state: touch}\n";
    expect_files(
        "limit",
        &[("site.yml", play)],
        &["--limit", "wbe1"],
        1,
        "
error: `--limit wbe1`: no host or group `wbe1` in the inventory
 |
 = help: did you mean `web1`?

error: one mistake found; nothing was run",
    );
}

#[test]
fn a_pattern_that_is_none() {
    expect_files(
        "pattern",
        &[("site.yml", "- hosts: ~web(\n  gather_facts: false\n  tasks: [{ping: }]\n")],
        &[],
        4,
        "
error: pattern `~web(`: Parsing error at position 9: Opening parenthesis without closing parenthesis
 --> site.yml:1:10
  |
1 | - hosts: ~web(
  |          ^

error: one mistake found; nothing was run",
    );
}

#[test]
fn a_playbook_that_is_not_there() {
    expect_files("playbook", &[("other.yml", "[]\n")], &[], 1, "error: no playbook `site.yml`");
}

/// Files that tasks name are looked for on the way to hosts that are never reached: 192.0.2.0/24 is nobody's.
fn project_with_files(name: &str, tasks: &str) -> Project {
    let play = format!("- hosts: all\n  gather_facts: false\n  tasks:\n{tasks}");
    Project::new(
        name,
        &[
            ("site.yml", &play),
            ("templates/bad.j2", "{{ x | uper }}\n"),
            ("vars/bad.yml", "a: [\n"),
            ("there.yml", "- cop: {src: x}\n"),
            ("roles/web/tasks/main.yml", "- copy: {src: absent4, dest: /tmp}\n"),
            ("roles/web/files/there", "x"),
        ],
    )
}

fn over_ssh(project: &Project) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_kubeon-run"))
        .current_dir(&project.0)
        .args(["site.yml", "-i", "192.0.2.1,", "-T", "0.2"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &project.0)
        .output()
        .expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn files_that_tasks_name_and_that_are_not_there() {
    let tasks = "    - copy: {src: absent.txt, dest: /tmp/x}
    - copy: src=absent2.txt dest=/tmp/x
    - template: {src: absent.j2, dest: /tmp/x}
    - script: absent.sh --flag
    - unarchive: {src: absent.tgz, dest: /tmp/x}
    - include_vars: absent.yml
    - include_tasks: absent.yml
    - include_role: {name: wbe}
    - include_role: {name: web}
";
    let (status, stdout, stderr) = over_ssh(&project_with_files("named", tasks));
    let told: Vec<&str> = stderr.lines().filter(|line| line.starts_with("error") || line.contains("-->")).collect();
    assert_eq!(
        told,
        [
            "error: no file `absent.txt`",
            " --> site.yml:4:19",
            "error: no file `absent2.txt`",
            " --> site.yml:5:17",
            "error: no file `absent.j2`",
            " --> site.yml:6:23",
            "error: no file `absent.sh`",
            " --> site.yml:7:15",
            "error: no file `absent.tgz`",
            " --> site.yml:8:24",
            "error: no file `absent.yml`",
            " --> site.yml:9:21",
            "error: no file of tasks `absent.yml`",
            "  --> site.yml:10:22",
            "error: no role `wbe`",
            "  --> site.yml:11:28",
            "error: no file `absent4`",
            " --> ./roles/web/tasks/main.yml:1:15",
            "error: 9 mistakes found; nothing was run",
        ]
    );
    assert!(stderr.contains("  = help: looked for `files/absent.txt`, `absent.txt`\n"), "{stderr}");
    assert_eq!((status, stdout.as_str()), (Some(4), ""));
}

#[test]
fn mistakes_within_files_that_tasks_name() {
    let tasks = "    - template: {src: bad.j2, dest: /tmp/x}
    - include_vars: bad.yml
    - include_tasks: there.yml
";
    let project = project_with_files("within", tasks);
    let (status, _, stderr) = over_ssh(&project);
    // An included file is named as a run names it, by its whole path.
    let stderr = stderr.replace(&format!("{}/", project.0.display()), "");
    let told: Vec<&str> = stderr.lines().filter(|line| line.starts_with("error") || line.contains("-->")).collect();
    assert_eq!(
        told,
        [
            "error: no filter named `uper`",
            " --> templates/bad.j2:1:8",
            "error: while parsing a node, did not find expected node content",
            " --> vars/bad.yml:1:6",
            "error: no module or action `cop`",
            " --> there.yml:1:3",
            "error: 3 mistakes found; nothing was run",
        ]
    );
    assert_eq!(status, Some(4));
}

#[test]
fn files_that_may_come_to_be_there_or_not_be_needed() {
    // The host is looked for, so that nothing was found wrong before.
    let may = [
        "    - copy: {src: absent, dest: /tmp/x}\n      when: inventory_hostname == 'nobody'\n",
        "    - copy: {src: absent, dest: /tmp/x}\n      loop: []\n",
        "    - copy: {src: absent, dest: /tmp/x, remote_src: true}\n",
        "    - copy: {src: \"{{ 'absent' }}\", dest: /tmp/x}\n",
        "    - copy: {src: absent, dest: /tmp/x}\n      ignore_errors: true\n",
        "    - copy: {src: absent, dest: /tmp/x}\n      failed_when: false\n",
        "    - copy: {src: absent, dest: /tmp/x}\n      tags: never\n",
        "    - block: [{copy: {src: absent, dest: /tmp/x}}]\n      rescue: [{ping: }]\n",
        "    - {file: {path: files/absent, state: touch}, delegate_to: localhost}\n    - copy: {src: absent, dest: /tmp/x}\n",
        "    - {command: touch files/absent, delegate_to: localhost}\n    - copy: {src: absent, dest: /tmp/x}\n",
        "    - local_action: command touch files/absent\n    - copy: {src: absent, dest: /tmp/x}\n",
        "    - {fetch: {src: /etc/hostname, dest: files/absent, flat: true}}\n    - copy: {src: absent, dest: /tmp/x}\n",
        "    - include_tasks: \"{{ 'some' }}.yml\"\n    - copy: {src: absent, dest: /tmp/x}\n",
        "    - {meta: end_host, when: true}\n    - copy: {src: absent, dest: /tmp/x}\n",
        "    - {ping: , notify: h}\n  handlers:\n    - {name: h, copy: {src: absent, dest: /tmp/x}}\n",
    ];
    for (nth, tasks) in may.iter().enumerate() {
        let (status, stdout, stderr) = over_ssh(&project_with_files(&format!("may{nth}"), tasks));
        assert!(stdout.contains("PLAY [all]") && status != Some(1), "{tasks}: {status:?} {stdout} {stderr}");
        assert!(!stderr.contains("nothing was run"), "{tasks}: {stderr}");
    }
    // What is written elsewhere brings nothing.
    let elsewhere =
        "    - {file: {path: other, state: touch}, delegate_to: localhost}\n    - copy: {src: absent, dest: /tmp/x}\n";
    let (status, _, stderr) = over_ssh(&project_with_files("elsewhere", elsewhere));
    assert_eq!(status, Some(4), "{stderr}");
}

#[test]
fn words_that_a_keyword_does_not_have() {
    expect(
        "words",
        "    - command: uptime\n      debugger: on_failed\n      become_method: sudoo\n    - command: uptime\n      \
         connection: winrm\n",
        "
error: `debugger: on_failed` is not supported: there is no interactive debugger
 --> site.yml:6:17
  |
6 |       debugger: on_failed
  |                 ^^^^^^^^^
  |
  = help: take it out; `--step` asks before each task, `-vvv` shows its arguments

error: `become_method: sudoo` is not supported: `sudo`, `su`, `doas` are
 --> site.yml:7:22
  |
7 |       become_method: sudoo
  |                      ^^^^^
  |
  = help: did you mean `sudo`?

error: `connection: winrm` is not supported: `ssh`, `smart`, `paramiko`, `paramiko_ssh`, `ssh2`, `openssh`, `local`, `docker`, `podman`, `chroot`, `kubectl` are
 --> site.yml:9:19
  |
9 |       connection: winrm
  |                   ^^^^^

error: 3 mistakes found; nothing was run",
    );
    let play = "- hosts: all\n  strategy: fre\n  order: sortd\n  serial: [1, many]\n  vars_prompt: [{name: p, encrypt: des}]\n  \
                vars_files: [absent.yml]\n  tasks: []\n";
    let project = Project::new("words of a play", &[("site.yml", play)]);
    let (status, stderr) = project.run(&[]);
    for told in [
        "`strategy: fre` is not supported: `linear`, `free`, `host_pinned` are\n --> site.yml:2:13",
        "`order: sortd` is not supported",
        "did you mean `sorted`?",
        "`serial` is a number of hosts, a percentage or a list of them, not `many`\n --> site.yml:4:15",
        "`encrypt`: des is not in the list of supported passlib algorithms; use sha512, sha256, bcrypt or md5_crypt\n --> site.yml:5:36",
        "no file of variables `absent.yml`\n --> site.yml:6:16",
    ] {
        assert!(stderr.contains(told), "no `{told}` in {stderr}");
    }
    assert_eq!(status, Some(4));
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
        ("unknown variant `nonsense`, expected one of", "5:13"),
        ("'tgas' is not a valid attribute for a Block", "6:48"),
        ("unknown field `x`, expected one of `file`, `apply`", "7:22"),
        ("Invalid options for import_tasks: x", "8:39"),
        ("Invalid options for import_role: task_from", "9:32"),
        ("`command` needs the argument `a command`", "10:7"),
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

#[test]
fn a_tab_is_pointed_at() {
    for (name, file, place) in [
        ("tab in a list", "- hosts: all\n  tasks:\n\t- ping:\n", "site.yml:3:1"),
        ("tab in a mapping", "- hosts: all\n  vars:\n    a: 1\n\tb: 2\n", "site.yml:4:1"),
        ("tab after blanks", "- hosts: all\n  vars:\n    a: 1\n  \tb: 2\n", "site.yml:4:3"),
    ] {
        let project = Project::new(name, &[("site.yml", file)]);
        let (status, stderr) = project.run(&[]);
        assert_eq!(status, Some(4), "{stderr}");
        assert!(stderr.contains(&format!(" --> {place}\n")), "{stderr}");
        assert!(stderr.contains("indented with blanks, never with tabs"), "{stderr}");
    }
}
