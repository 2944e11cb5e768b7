//! `ansible.cfg` and the variables of the environment: what they say is done, or refused by name at its place.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::program::{Project, Ran};
use common::sshd::{Relay, Sshd};

const LOCAL: &str = "h ansible_connection=local\n";

/// Runs the program so that it looks for its configuration as it does for anybody.
fn run(project: &Project, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = project.command(arguments);
    command.env_remove("ANSIBLE_CONFIG").envs(variables.iter().copied());
    project.wait(command)
}

/// A play that writes what an expression gives.
fn showing(project: &Project, expression: &str) {
    let seen = project.path("seen").display().to_string();
    project.write(
        "site.yml",
        &format!("- hosts: h\n  gather_facts: false\n  tasks:\n    - copy: {{dest: {seen}, content: \"{{{{ {expression} }}}}\"}}\n"),
    );
}

#[test]
fn the_file_is_found_where_ansible_finds_it() {
    let project = Project::new(LOCAL);
    showing(&project, "ansible_config_file | default('none') | basename ~ ansible_forks");
    project.write(".ansible.cfg", "[defaults]\nforks = 3\n");
    run(&project, &["site.yml"], &[]);
    assert_eq!(project.read("seen"), ".ansible.cfg3");
    project.write("ansible.cfg", "[defaults]\nforks = 4 ; many\n");
    run(&project, &["site.yml"], &[]);
    assert_eq!(project.read("seen"), "ansible.cfg4");
    project.write("other/my.cfg", "[defaults]\nFORKS: 5\n");
    run(&project, &["site.yml"], &[("ANSIBLE_CONFIG", "other/my.cfg")]);
    assert_eq!(project.read("seen"), "my.cfg5");
    run(&project, &["site.yml"], &[("ANSIBLE_CONFIG", "other/my.cfg"), ("ANSIBLE_FORKS", "6")]);
    assert_eq!(project.read("seen"), "my.cfg6");
    // Anybody could have put a file into a folder that anybody can write to.
    fs::set_permissions(project.folder.path(), fs::Permissions::from_mode(0o777)).expect("chmod");
    let ran = run(&project, &["site.yml"], &[]);
    assert_eq!(project.read("seen"), ".ansible.cfg3");
    assert!(ran.stderr.contains("everyone can write to the folder"), "{ran:?}");
    fs::set_permissions(project.folder.path(), fs::Permissions::from_mode(0o700)).expect("chmod");
}

#[test]
fn mappings_are_merged_where_that_is_asked_for() {
    let project = Project::new("[g]\nh ansible_connection=local\n[g:vars]\nm={'inventory': 1, 'last': 'inventory'}\n");
    let seen = project.path("seen").display().to_string();
    project
        .write("group_vars/all.yml", "m: {all: 1, deep: {all: 1}, last: all}\n")
        .write("group_vars/g/one.yml", "m: {g: 1, last: g}\n")
        .write("group_vars/g/two.yml", "m: {second: 1}\n")
        .write("host_vars/h.yml", "m: {host: 1, deep: {host: 1}, last: host}\n")
        .write("files.yml", "m: {files: 1, last: files}\n")
        .write("included.yml", "m: {included: 1, last: included}\n")
        .write("roles/r/defaults/main.yml", "m: {defaults: 1, last: defaults}\n")
        .write("roles/r/vars/main.yml", "m: {role: 1, last: role}\n")
        .write(
            "roles/r/tasks/main.yml",
            &format!(
                "
- copy: {{dest: {seen}, content: \"{{{{ m | to_json(sort_keys=true) }}}}\"}}
  vars: {{m: {{task: 1, last: task}}}}
- include_vars: included.yml
- copy: {{dest: {seen}2, content: \"{{{{ [m.included, m.role, m.last] | to_json }}}}\"}}
"
            ),
        )
        .write(
            "site.yml",
            "- hosts: h\n  gather_facts: false\n  vars: {m: {play: 1, last: play}}\n  vars_files: [files.yml]\n  roles: [r]\n",
        )
        .write("ansible.cfg", "[defaults]\nhash_behaviour = merge\n");
    let ran = run(&project, &["site.yml", "-e", "{m: {extra: 1, last: extra}}"], &[]);
    assert_eq!(
        project.read("seen"),
        r#"{"all": 1, "deep": {"all": 1, "host": 1}, "defaults": 1, "extra": 1, "files": 1, "g": 1, "host": 1, "inventory": 1, "last": "extra", "play": 1, "role": 1, "second": 1, "task": 1}"#,
        "{ran:?}"
    );
    assert_eq!(project.read("seen2"), r#"[1, 1, "extra"]"#);
    let shown = run(&project, &["inventory", "--host", "h"], &[]);
    assert!(!shown.stdout.contains("\"role\""), "{shown:?}");
    // Otherwise the strongest replaces all others.
    run(&project, &["site.yml"], &[("ANSIBLE_HASH_BEHAVIOUR", "replace")]);
    assert_eq!(project.read("seen"), r#"{"last": "task", "task": 1}"#);
    let wrong = run(&project, &["site.yml"], &[("ANSIBLE_HASH_BEHAVIOUR", "marge")]);
    assert!(wrong.stderr.contains("did you mean `merge`?"), "{wrong:?}");
    assert_eq!(wrong.code, 2);
}

#[test]
fn one_file_of_variables_can_be_merged() {
    let project = Project::new(LOCAL);
    let seen = project.path("seen").display().to_string();
    project.write("more.yml", "m: {new: 1, both: new}\n").write(
        "site.yml",
        &format!(
            "
- hosts: h
  gather_facts: false
  vars: {{m: {{old: 1, both: old}}}}
  tasks:
    - include_vars: {{file: more.yml, hash_behaviour: merge}}
    - copy: {{dest: {seen}, content: \"{{{{ m | to_json(sort_keys=true) }}}}\"}}
"
        ),
    );
    let ran = run(&project, &["site.yml"], &[]);
    assert_eq!(project.read("seen"), r#"{"both": "new", "new": 1, "old": 1}"#, "{ran:?}");
}

#[test]
fn what_is_secret_by_configuration_is_in_no_log() {
    let project = Project::new(LOCAL);
    project.write("site.yml", "- hosts: h\n  gather_facts: false\n  tasks:\n    - command: echo se''same\n");
    let open = run(&project, &["site.yml", "-v"], &[]);
    assert!(open.stdout.contains("sesame"), "{open:?}");
    project.write("ansible.cfg", "[defaults]\nno_log = true\n");
    let ran = run(&project, &["site.yml", "-vvv"], &[]);
    assert!(!ran.stdout.contains("sesame") && !project.read_record("events.jsonl").contains("sesame"), "{ran:?}");
}

#[test]
fn facts_are_gathered_and_named_as_configured() {
    let project = Project::new(LOCAL);
    let home = project.folder.path().display().to_string();
    project.write(
        "site.yml",
        &format!(
            "
- hosts: h
  tasks:
    - copy: {{dest: {home}/facts, content: \"{{{{ ansible_facts.kernel is defined }}}}\"}}
    - copy: {{dest: {home}/injected, content: \"{{{{ ansible_kernel is defined }}}}\"}}
- hosts: h
  tasks: []
"
        ),
    );
    let gathered = |ran: &Ran| ran.stdout.matches("TASK [Gathering Facts]").count();
    let usual = run(&project, &["site.yml"], &[]);
    assert_eq!((gathered(&usual), project.read("facts"), project.read("injected")), (2, "True".into(), "True".into()));
    let smart = run(&project, &["site.yml"], &[("ANSIBLE_GATHERING", "smart")]);
    assert_eq!(gathered(&smart), 1, "{smart:?}");
    run(&project, &["site.yml"], &[("ANSIBLE_INJECT_FACT_VARS", "false")]);
    assert_eq!((project.read("facts"), project.read("injected")), ("True".into(), "False".into()));
    let explicit = run(&project, &["site.yml"], &[("ANSIBLE_GATHERING", "explicit")]);
    assert_eq!((gathered(&explicit), project.read("facts")), (0, "False".into()));
    assert_eq!(run(&project, &["site.yml"], &[("ANSIBLE_GATHERING", "clever")]).code, 2);
}

#[test]
fn variables_of_roles_are_private_where_that_is_asked_for() {
    let project = Project::new(LOCAL);
    let seen = project.path("seen").display().to_string();
    project
        .write("roles/r/vars/main.yml", "own: 1\n")
        .write("roles/r/tasks/main.yml", &format!("- copy: {{dest: {seen}.role, content: \"{{{{ own }}}}\"}}\n"))
        .write(
            "site.yml",
            &format!(
                "- hosts: h\n  gather_facts: false\n  roles: [r]\n  tasks:\n    - copy: {{dest: {seen}, content: \"{{{{ own is defined }}}}\"}}\n"
            ),
        );
    run(&project, &["site.yml"], &[]);
    assert_eq!((project.read("seen"), project.read("seen.role")), ("True".into(), "1".into()));
    let ran = run(&project, &["site.yml"], &[("ANSIBLE_PRIVATE_ROLE_VARS", "yes")]);
    assert_eq!((project.read("seen"), project.read("seen.role")), ("False".into(), "1".into()), "{ran:?}");
}

/// A project whose `ssh` writes down what it is asked, and connects nowhere.
fn with_ssh() -> Project {
    let project = Project::new("h ansible_connection=openssh\n");
    let log = project.path("asked").display().to_string();
    project.write("bin/ssh", &format!("#!/bin/sh\nfor word; do echo \"$word\" >> {log}; done\nexit 255\n"));
    fs::set_permissions(project.path("bin/ssh"), fs::Permissions::from_mode(0o755)).expect("chmod");
    project.write("site.yml", "- hosts: h\n  gather_facts: false\n  tasks: [{ping: }]\n");
    project
}

/// Returns the words that `ssh` was given.
fn asked(project: &Project, variables: &[(&str, &str)], arguments: &[&str]) -> Vec<String> {
    project.write("asked", "");
    let path = format!("{}:{}", project.path("bin").display(), std::env::var("PATH").unwrap_or_default());
    let variables: Vec<_> = variables.iter().copied().chain([("PATH", path.as_str())]).collect();
    let ran = run(project, &[&["site.yml"], arguments].concat(), &variables);
    assert_eq!(ran.code, 4, "{ran:?}");
    project.read("asked").split_whitespace().map(str::to_owned).collect()
}

#[track_caller]
fn expect_words(words: &[String], expected: &[&str]) {
    for word in expected {
        assert!(words.iter().any(|asked| asked.contains(word)), "no {word} in {words:?}");
    }
}

#[test]
fn logins_are_configured() {
    let project = with_ssh();
    project.write(
        "ansible.cfg",
        "[defaults]\nremote_user = bob\nremote_port = 2222\n[ssh_connection]\nssh_args = -o ServerAliveInterval=7\n\
         ssh_common_args = -o LogLevel=ERROR\n",
    );
    expect_words(&asked(&project, &[], &[]), &["bob", "2222", "ServerAliveInterval=7", "LogLevel=ERROR"]);
    let variables = [("ANSIBLE_SSH_ARGS", "-o ServerAliveInterval=8"), ("ANSIBLE_REMOTE_PORT", "23")];
    let words = asked(&project, &variables, &["-u", "eve"]);
    expect_words(&words, &["eve", "23", "ServerAliveInterval=8"]);
    assert!(!words.iter().any(|asked| asked.contains("bob") || asked.contains("=7")), "{words:?}");
}

#[test]
fn logins_are_typed_and_written_as_keywords() {
    let project = with_ssh();
    project.write("key", "");
    let typed =
        ["--private-key", "key", "--ssh-common-args", "-o LogLevel=ERROR", "--ssh-extra-args=-o ServerAliveInterval=9"];
    expect_words(&asked(&project, &[], &typed), &["key", "LogLevel=ERROR", "ServerAliveInterval=9"]);
    project.write(
        "site.yml",
        "- hosts: h\n  gather_facts: false\n  remote_user: kate\n  port: 2200\n  tasks: [{ping: }]\n",
    );
    // Keywords are stronger than flags, and variables than both.
    let words = asked(&project, &[], &["-u", "eve"]);
    expect_words(&words, &["User=kate", "Port=2200"]);
    assert!(!words.iter().any(|asked| asked.contains("User=eve")), "{words:?}");
    expect_words(&asked(&project, &[], &["-e", "ansible_user=vera ansible_port=2300"]), &["vera", "2300"]);
}

#[test]
fn other_settings_do_what_they_do_in_ansible() {
    let project = Project::new("h ansible_connection=local\n");
    showing(&project, "1");
    project.write("t.j2", "{{ ansible_managed }}");
    let seen = project.path("seen").display().to_string();
    project
        .write(
            "site.yml",
            &format!(
                "- hosts: [h, nobody]\n  gather_facts: false\n  tasks: [{{template: {{src: t.j2, dest: {seen}}}}}]\n"
            ),
        )
        .write("ansible.cfg", "[defaults]\nansible_managed = kept by us\n");
    let ran = run(&project, &["site.yml"], &[]);
    assert_eq!((ran.code, project.read("seen")), (0, "kept by us".into()));
    // Fields, the time of the file, and templates; names of files are never rendered.
    let file = "a {{ 1 }} %Y.j2";
    project.write(file, "{{ ansible_managed }} {{ template_path }}");
    project.write("ansible.cfg", "[defaults]\nansible_managed = {{{{ 1 + 1 }}}} {{file}} {file} %Y\n");
    project.write(
        "named.yml",
        &format!(
            "- hosts: h\n  gather_facts: false\n  tasks: [{{template: {{src: !unsafe '{file}', dest: {seen}}}}}]\n"
        ),
    );
    let touched = std::process::Command::new("touch").args(["-d", "2001-02-03"]).arg(project.path(file)).status();
    assert!(touched.is_ok_and(|status| status.success()));
    let ran = run(&project, &["named.yml"], &[]);
    let told = format!("2 {{file}} {file} 2001 {file}");
    assert_eq!((ran.code, project.read("seen")), (0, told), "{ran:?}");
    project.write("ansible.cfg", "[defaults]\nansible_managed = kept by {nobody}\n");
    let ran = run(&project, &["site.yml"], &[]);
    assert!(ran.code == 2 && ran.stdout.contains("no field `nobody`"), "{ran:?}");
    project.write("ansible.cfg", "[defaults]\nansible_managed = kept by us\n");
    assert!(ran.stderr.contains("Could not match supplied host pattern, ignoring: nobody"), "{ran:?}");
    let ran = run(&project, &["site.yml"], &[("ANSIBLE_HOST_PATTERN_MISMATCH", "ignore")]);
    assert!(!ran.stderr.contains("nobody"), "{ran:?}");
    let ran = run(&project, &["site.yml"], &[("ANSIBLE_HOST_PATTERN_MISMATCH", "error")]);
    assert_eq!(ran.code, 1, "{ran:?}");
    // Files in a folder of inventories that are none.
    project
        .write("all/hosts", "h ansible_connection=local\n")
        .write("all/hosts.old", "old\n")
        .write("all/hosts.txt", "text\n")
        .write(
            "ansible.cfg",
            "[defaults]\ninventory = all\n[inventory]\nignore_extensions = .old\nignore_patterns = ^hosts.t\n",
        );
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
    command.current_dir(project.folder.path()).env_clear().env("HOME", project.folder.path());
    let listed = project.wait({
        command.args(["inventory", "--graph"]);
        command
    });
    assert!(
        listed.stdout.contains("--h") && !listed.stdout.contains("old") && !listed.stdout.contains("text"),
        "{listed:?}"
    );
}

#[test]
fn what_would_silently_change_a_run_is_refused_at_its_place() {
    let project = Project::new(LOCAL);
    project.write("site.yml", "- hosts: h\n  gather_facts: false\n  tasks: [{file: {path: marker, state: touch}}]\n").write(
        "ansible.cfg",
        "[defaults]\nprecedence = all_inventory\njinja2_extensions = jinja2.ext.do, jinja2.ext.i18n\n\
         error_on_undefined_vars = False\nhost_key_cheking = False\nlog_path = /tmp/log\ncallbacks_enabled = profile_tasks\n\
         strategy = linear\nprivate_key_file = keys/absent\n",
    );
    let ran = run(&project, &["site.yml"], &[("ANSIBLE_ALLOW_UNSAFE_LOOKUPS", "true")]);
    assert_eq!((ran.code, ran.stdout.as_str()), (4, ""), "{ran:?}");
    assert!(!Path::new(&project.path("marker")).exists());
    for told in [
        "error: `precedence = all_inventory` is not supported\n --> ansible.cfg:2:14\n",
        "error: `jinja2_extensions = jinja2.ext.do, jinja2.ext.i18n` is not supported\n --> ansible.cfg:3:21\n",
        "error: `error_on_undefined_vars = False` is not supported\n --> ansible.cfg:4:27\n",
        "error: `ANSIBLE_ALLOW_UNSAFE_LOOKUPS = true` is not supported\n",
        "warning: `host_key_cheking` is no setting of [defaults], and does nothing\n --> ansible.cfg:5:1\n",
        "did you mean `host_key_checking`?",
        "warning: `log_path` is not followed",
        "warning: `private_key_file`: no file `FOLDER/keys/absent`; other keys are tried\n --> ansible.cfg:9:20\n",
        "warning: the callback `profile_tasks` is not there, and is left out\n --> ansible.cfg:7:21\n",
        "error: 4 mistakes found; nothing was run\n",
    ] {
        assert!(ran.stderr.contains(told), "no `{told}` in {}", ran.stderr);
    }
    // What asks for what is done anyway is fine.
    project.write(
        "ansible.cfg",
        "[defaults]\njinja2_extensions = jinja2.ext.do,jinja2.ext.loopcontrols\nerror_on_undefined_vars = True\n\
         playbook_vars_root = top\nnocows = 1\nretry_files_enabled = False\ninterpreter_python = auto_silent\n\
         [ssh_connection]\npipelining = True\ncontrol_path = /tmp/%%h\n[colors]\nok = blue\n[persistent_connection]\nx = y\n",
    );
    let ran = run(&project, &["site.yml"], &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
}

#[test]
fn a_misspelt_switch_turns_nothing_off() {
    let project = Project::new(LOCAL);
    project.write("site.yml", "- hosts: h\n  gather_facts: false\n  tasks: [{ping: }]\n");
    project.write("ansible.cfg", "[defaults]\nhost_key_checking = Flase\n");
    let ran = run(&project, &["site.yml"], &[]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.starts_with("error: `host_key_checking` is `Flase`, neither yes nor no\n --> ansible.cfg:2:21\n"),
        "{ran:?}"
    );
    project.write("ansible.cfg", "nonsense\n");
    let ran = run(&project, &["site.yml"], &[]);
    assert!(
        ran.stderr.contains("`nonsense` is neither a section nor `key = value`\n --> ansible.cfg:1:1\n"),
        "{ran:?}"
    );
}

#[test]
fn a_host_that_refuses_at_first_is_tried_again_as_often_as_asked_for() {
    let sshd = Sshd::start("");
    let relay = Relay::to(sshd.port);
    let known = sshd.path("known_hosts").display().to_string();
    let key = std::fs::read_to_string(sshd.path("host.pub")).expect("a key");
    std::fs::write(&known, format!("[127.0.0.1]:{} {key}", relay.port)).expect("write");
    let project = Project::new(&format!(
        "h ansible_host=127.0.0.1 ansible_port={} ansible_user=root ansible_ssh_private_key_file={} \
         ansible_ssh_common_args='-F none -o UserKnownHostsFile={known}'\n",
        relay.port,
        sshd.path("id").display(),
    ));
    let seen = project.path("seen").display().to_string();
    project
        .write("site.yml", &format!("- hosts: h\n  gather_facts: false\n  tasks: [{{shell: echo once >> {seen}}}]\n"));
    for (how, config, arguments) in [
        ("ansible.cfg", "[connection]\nretries = 2\n", &["site.yml"][..]),
        ("the older section", "[ssh_connection]\nretries = 2\n", &["site.yml"]),
        ("a variable", "", &["site.yml", "-e", "ansible_ssh_retries=2"]),
        ("the system's ssh", "[connection]\nretries = 2\n", &["site.yml", "-c", "openssh"]),
    ] {
        std::fs::remove_file(&seen).ok();
        project.write("ansible.cfg", config);
        relay.refuse(2);
        let ran = run(&project, arguments, &[]);
        assert_eq!((ran.code, project.read("seen").as_str()), (0, "once\n"), "{how}: {ran:?}");
        assert_eq!(relay.refuse(0), 3, "{how}");
    }
    // Not once more than asked for, and never again when it is the login that is refused.
    relay.refuse(9);
    let ran = run(&project, &["site.yml"], &[("ANSIBLE_SSH_RETRIES", "1")]);
    assert_eq!((ran.code, relay.refuse(0)), (4, 2), "{ran:?}");
    assert!(ran.stdout.contains("tried 2 times"), "{ran:?}");
    let ran = run(&project, &["site.yml", "-e", "ansible_user=nobody"], &[("ANSIBLE_SSH_RETRIES", "3")]);
    assert_eq!((ran.code, relay.refuse(0)), (4, 1), "{ran:?}");
    let ran = run(&project, &["site.yml"], &[("ANSIBLE_SSH_RETRIES", "often")]);
    assert_eq!((ran.code, ran.stderr.contains("`retries` is `often`, not a number of attempts")), (2, true), "{ran:?}");
}
