//! Files that are named and are not there, or not what they should be.

use std::process::Command;

use super::{Project, expect_files};

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

/// A handler runs after the tasks, so that nothing that they need comes from it.
#[test]
fn what_a_handler_brings_comes_later() {
    let play = |tasks: &str| {
        format!(
            "- hosts: all\n  connection: local\n  tasks:\n{tasks}    - {{copy: {{src: absent, dest: /tmp}}}}\n  handlers:\n    - {{name: make, \
             command: uptime}}\n"
        )
    };
    for (tasks, status) in [
        ("", 4),
        ("    - {ping: , notify: make}\n", 4),
        ("    - {ping: , notify: make}\n    - meta: flush_handlers\n", 0),
    ] {
        let project = Project::new("later", &[("site.yml", &play(tasks))]);
        let told = project.check();
        assert_eq!(told.0, Some(status), "{tasks}{}", told.1);
    }
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
