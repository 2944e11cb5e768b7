//! Keywords, modules and handlers: their names and their values.

use super::{Project, expect};

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
fn a_handler_among_those_that_includes_bring() {
    let play = |notify: &str, more: &str| {
        format!(
            "- hosts: all
  tasks:
    - {{include_role: {{name: web}}}}
    - {{include_tasks: more.yml}}
    - {{command: uptime, notify: {notify}}}
{more}"
        )
    };
    let tell = |notify: &str, more: &str| {
        let files = [
            ("site.yml", &*play(notify, more)),
            ("more.yml", "- include_role: {name: proxy}\n"),
            ("roles/web/tasks/main.yml", "- import_role: {name: certificates}\n"),
            ("roles/web/handlers/main.yml", "- {name: restart web, command: uptime}\n"),
            ("roles/certificates/handlers/main.yml", "- {name: reload, listen: certificates, command: uptime}\n"),
            ("roles/proxy/handlers/main.yml", "- {name: restart proxy, command: uptime}\n"),
        ];
        Project::new("brought", &files).check()
    };
    for known in ["restart web", "certificates", "restart proxy", "'web : restart web'"] {
        let (status, stderr) = tell(known, "");
        assert_eq!(status, Some(0), "{known}: {stderr}");
    }
    let (status, stderr) = tell("restart prox", "");
    assert_eq!(status, Some(4), "{stderr}");
    assert!(stderr.contains("site.yml:5:33") && stderr.contains("did you mean `restart proxy`?"), "{stderr}");
    // What is not known yet may have it.
    for open in ["    - include_role: {name: '{{ role }}'}\n", "    - {include_tasks: '{{ tasks }}'}\n"] {
        let (status, stderr) = tell("restart prox", open);
        assert_eq!(status, Some(0), "{open}: {stderr}");
    }
}

#[test]
fn words_that_a_keyword_does_not_have() {
    expect(
        "words",
        "    - command: uptime\n      debugger: on_fail\n      become_method: sudoo\n    - command: uptime\n      \
         connection: winrm\n",
        "
error: `debugger: on_fail` is not supported: `always`, `never`, `on_failed`, `on_unreachable`, `on_skipped` are
 --> site.yml:6:17
  |
6 |       debugger: on_fail
  |                 ^^^^^^^
  |
  = help: did you mean `on_failed`?

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
        "`strategy: fre` is not supported: `linear`, `free`, `host_pinned`, `debug` are\n --> site.yml:2:13",
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
