//! What people type: each flag does what ansible-playbook's does. Lists are compared as a whole.

mod common;

use common::program::Project;

const HOSTS: &str = "
[web]
w[1:3] ansible_connection=local
[db]
d1 ansible_connection=local
";

/// Plays with everything that a list may show: a role with its dependency, an import, an include, blocks, tags.
fn listed() -> Project {
    let project = Project::new(HOSTS);
    project
        .write("roles/r/tasks/main.yml", "- {name: in role, ping: , tags: [rt]}\n- ping:\n- include_tasks: other.yml\n")
        .write("roles/r/tasks/other.yml", "- ping:\n")
        .write("roles/r/meta/main.yml", "dependencies: [{role: dep, tags: [dt]}]\n")
        .write("roles/r/handlers/main.yml", "- {name: handler, ping: }\n")
        .write("roles/dep/tasks/main.yml", "- {name: dep task, ping: }\n")
        .write("imported.yml", "- {name: one, ping: , tags: always}\n- {name: two, ping: , tags: [never, z]}\n")
        .write("more.yml", "- hosts: db\n  tags: [imp]\n  tasks:\n    - {name: i1, ping: }\n")
        .write(
            "site.yml",
            r#"
- hosts: web
  name: "Play {{ which }}"
  vars: {which: one}
  tags: [p]
  gather_facts: false
  roles: [{role: r, tags: rr}]
  pre_tasks:
    - {name: pre, ping: }
  tasks:
    - {name: "as written {{ which }}", ping: , tags: "{{ which }}"}
    - block:
        - ansible.builtin.ping:
        - import_tasks: imported.yml
      tags: [bt]
      rescue:
        - {name: rescues, ping: , tags: unseen}
      always:
        - {name: always, ping: , tags: unseen}
    - include_role: {name: r}
    - meta: flush_handlers
  post_tasks:
    - {name: post, debug: {msg: x}}
- hosts: ["{{ groups_of | default('d1') }}", "web:!w2"]
  tasks:
    - command: echo
- import_playbook: more.yml
- hosts: nobody
"#,
        );
    project
}

#[test]
fn tasks_are_listed_as_ansible_lists_them() {
    let ran = listed().run(&["site.yml", "more.yml", "--list-tasks"]);
    assert_eq!(
        ran.stdout,
        "
playbook: site.yml

  play #1 (web): Play one\tTAGS: [p]
    tasks:
      pre\tTAGS: [p]
      dep : dep task\tTAGS: [dt, p, rr]
      r : in role\tTAGS: [p, rr, rt]
      ping\tTAGS: [p, rr]
      include_tasks\tTAGS: [p, rr]
      as written {{ which }}\tTAGS: [one, p]
      ansible.builtin.ping\tTAGS: [bt, p]
      one\tTAGS: [always, bt, p]
      include_role\tTAGS: [p]
      meta\tTAGS: [p]
      post\tTAGS: [p]

  play #2 (d1,web:!w2): d1,web:!w2\tTAGS: []
    tasks:
      command\tTAGS: []

  play #3 (db): db\tTAGS: [imp]
    tasks:
      i1\tTAGS: [imp]

  play #4 (nobody): nobody\tTAGS: []
    tasks:

playbook: more.yml

  play #1 (db): db\tTAGS: [imp]
    tasks:
      i1\tTAGS: [imp]
"
    );
    assert_eq!(ran.stderr, "[WARNING]: Could not match supplied host pattern, ignoring: nobody\n");
    assert_eq!(ran.code, 0);
}

#[test]
fn hosts_are_listed_as_ansible_lists_them() {
    let project = listed();
    let ran = project.run(&["site.yml", "--list-hosts"]);
    assert_eq!(
        ran.stdout,
        "
playbook: site.yml

  play #1 (web): Play one\tTAGS: [p]
    pattern: ['web']
    hosts (3):
      w1
      w2
      w3

  play #2 (d1,web:!w2): d1,web:!w2\tTAGS: []
    pattern: ['d1', 'web:!w2']
    hosts (3):
      d1
      w1
      w3

  play #3 (db): db\tTAGS: [imp]
    pattern: ['db']
    hosts (1):
      d1

  play #4 (nobody): nobody\tTAGS: []
    pattern: ['nobody']
    hosts (0):
"
    );
    let limited = project.run(&["more.yml", "--list-hosts", "--list-tasks", "-l", "w*,d1", "-e", "x=1"]).stdout;
    assert_eq!(
        limited,
        "
playbook: more.yml

  play #1 (db): db\tTAGS: [imp]
    pattern: ['db']
    hosts (1):
      d1
    tasks:
      i1\tTAGS: [imp]
"
    );
}

#[test]
fn tags_are_listed_as_ansible_lists_them() {
    let project = listed();
    let tags = |arguments: &[&str]| {
        let text = project.run(&[&["site.yml"], arguments].concat()).stdout;
        text.lines().filter(|line| line.contains("TASK TAGS")).map(str::to_owned).collect::<Vec<_>>()
    };
    let every = ["      TASK TAGS: [always, bt, dt, never, one, p, rr, rt, z]", "      TASK TAGS: []"];
    assert_eq!(tags(&["--list-tags"])[..2], every);
    assert_eq!(tags(&["--list-tags"])[2], "      TASK TAGS: [imp]");
    // Of the tasks that would run when some are asked for; a play's own tags are always there.
    let some = ["      TASK TAGS: [always, bt, p, rr, rt]", "      TASK TAGS: []", "      TASK TAGS: [imp]"];
    assert_eq!(tags(&["--list-tags", "-t", "rt"])[..3], some);
    assert_eq!(tags(&["--list-tags", "--skip-tags", "z"])[0], "      TASK TAGS: [always, bt, dt, one, p, rr, rt]");
}

#[test]
fn lists_and_a_syntax_check_run_nothing() {
    let project = Project::new(HOSTS);
    project.write("site.yml", "- hosts: w1\n  tasks:\n    - file: {path: marker, state: touch}\n");
    for flag in ["--list-hosts", "--list-tasks", "--list-tags", "--syntax-check"] {
        let ran = project.run(&["site.yml", flag]);
        assert_eq!((ran.code, project.path("marker").exists()), (0, false), "{flag}: {ran:?}");
    }
    assert_eq!(project.run(&["site.yml", "--syntax-check"]).stdout, "\nplaybook: site.yml\n");
    project.write("site.yml", "- hosts: w1\n  tasks:\n    - fil: {path: marker, state: touch}\n");
    assert_eq!(project.run(&["site.yml", "--syntax-check"]).code, 4);
}

/// Two plays, each of whose tasks leaves its name.
fn named(project: &Project) {
    let home = project.folder.path().display();
    project.write("roles/r/tasks/main.yml", &format!("- {{name: three, shell: echo three >> {home}/ran}}\n"));
    project.write(
        "site.yml",
        &format!(
            "
- hosts: w1
  tasks:
    - {{name: one, shell: echo one >> {home}/ran}}
- hosts: w1
  gather_facts: false
  tasks:
    - {{name: two, shell: echo two >> {home}/ran}}
    - import_role: {{name: r}}
    - {{name: four, shell: echo four >> {home}/ran}}
"
        ),
    );
}

#[test]
fn a_run_starts_at_the_task_that_is_named() {
    let project = Project::new(HOSTS);
    named(&project);
    for (name, ran) in [("two", "two\nthree\nfour\n"), ("thr*", "three\nfour\n"), ("r : three", "three\nfour\n")] {
        project.write("ran", "");
        let run = project.run(&["site.yml", "--start-at-task", name]);
        assert_eq!(project.read("ran"), ran, "{name}: {run:?}");
        // Of the plays before it not even facts are gathered.
        assert!(!run.stdout.contains("Gathering Facts"), "{run:?}");
    }
    project.write("ran", "");
    let run = project.run(&["site.yml", "--start-at-task", "fuor"]);
    assert_eq!((run.code, project.read("ran")), (1, String::new()));
    assert_eq!(
        run.stderr,
        "
error: `--start-at-task fuor`: no task of that name
 |
 = help: did you mean `four`?

error: one mistake found; nothing was run
"
        .trim_start()
    );
}

#[test]
fn each_task_is_asked_for_with_step() {
    let project = Project::new(HOSTS);
    named(&project);
    let question = |name: &str| format!("Perform task: {name} (N)o/(y)es/(c)ontinue:");
    let questions = ["Gathering Facts", "one", "two", "r : three"].map(question);
    let answers = ["n", "y", "", "c"];
    let typed: Vec<(&str, &str)> = questions.iter().map(String::as_str).zip(answers).collect();
    let (code, text) = project.converse("site.yml --step", &typed);
    assert_eq!((code, project.read("ran")), (0, "one\nthree\nfour\n".to_owned()), "{text}");
}

#[test]
fn the_last_limit_counts_and_one_that_leaves_nobody_is_a_mistake() {
    let project = Project::new(HOSTS);
    let home = project.folder.path().display().to_string();
    project.write(
        "site.yml",
        &format!(
            "- hosts: all\n  gather_facts: false\n  tasks:\n    - shell: echo {{{{ inventory_hostname }}}} >> {home}/ran\n"
        ),
    );
    project.write("only", "w1\nd1\n");
    for (limits, ran) in [
        (&["-l", "w1", "-l", "w3"][..], "w3"),
        (&["--limit", "web:!w2"], "w1 w3"),
        (&["--limit", "@only"], "d1 w1"),
        (&["--limit", "~w[12]:&web"], "w1 w2"),
        (&["--limit", "web[0]"], "w1"),
    ] {
        project.write("ran", "");
        project.run(&[&["site.yml"], limits].concat());
        let text = project.read("ran");
        let mut hosts: Vec<&str> = text.split_whitespace().collect();
        hosts.sort_unstable();
        assert_eq!(hosts.join(" "), ran, "{limits:?}");
    }
    project.write("ran", "");
    let nobody = project.run(&["site.yml", "-l", "web:&db"]);
    assert_eq!((nobody.code, project.read("ran")), (1, String::new()));
    assert!(nobody.stderr.starts_with("error: `--limit web:&db` leaves no host of the inventory\n"), "{nobody:?}");
}

#[test]
fn variables_come_in_every_form() {
    let project = Project::new(HOSTS);
    let home = project.folder.path().display().to_string();
    project.write("vars.yml", "file: [1, two]\nlate: file\n").write(
        "site.yml",
        &format!(
            "- hosts: w1\n  gather_facts: false\n  tasks:\n    - copy: {{dest: {home}/seen, content: \"{{{{ [word, file, map.a, yaml, late] | \
             to_json }}}}\"}}\n"
        ),
    );
    let forms = ["-e", "word='a b' late=words", "-e", "@vars.yml", "-e", r#"{"map": {"a": 1}}"#, "-e", "{yaml: yes}"];
    let ran = project.run(&[&["site.yml"][..], &forms].concat());
    assert_eq!(project.read("seen"), r#"["a b", [1, "two"], 1, true, "file"]"#, "{ran:?}");
    let wrong = project.run(&["site.yml", "-e", "word"]);
    assert_eq!(
        (wrong.code, wrong.stderr.as_str()),
        (2, "error: --extra-vars: `word` is not of the form `key=value`\n")
    );
}

#[test]
fn forks_say_how_many_hosts_are_worked_on_at_once() {
    let project = Project::new(HOSTS);
    let home = project.folder.path().display().to_string();
    // Each task counts who is at work besides itself: with several forks they wait for one another.
    project.write(
        "site.yml",
        &format!(
            "
- hosts: all
  gather_facts: false
  tasks:
    - shell: |
        mkdir {home}/at.$$
        for try in $(seq {{{{ tries }}}}); do
          test $(ls -d {home}/at.* | wc -l) -ge 2 && touch {home}/together
          test -e {home}/together && break
          sleep 0.05
        done
        rmdir {home}/at.$$
"
        ),
    );
    assert_eq!(project.run(&["site.yml", "-f", "1", "-e", "tries=3"]).code, 0);
    assert!(!project.path("together").exists());
    assert_eq!(project.run(&["site.yml", "-f", "2", "-e", "tries=400"]).code, 0);
    assert!(project.path("together").exists());
    assert_eq!(project.run(&["site.yml", "-f", "0"]).code, 2);
}

#[test]
fn a_mistake_on_the_command_line_has_a_status_of_its_own() {
    let project = Project::new(HOSTS);
    project.write("site.yml", "- hosts: w1\n  gather_facts: false\n  tasks: [{ping: }]\n");
    let ran = |arguments: &[&str]| project.run(arguments);
    for (arguments, code, says) in [
        (&["site.yml", "--nonsense"][..], 2, "unexpected argument '--nonsense'"),
        (&["site.yml", "--forks", "many"], 2, "invalid value 'many'"),
        (&["site.yml", "-c", "telepathy"], 2, "`connection: telepathy` is not supported"),
        (&["-i", "hosts", "."], 1, "error: `.` is a folder: name a playbook in it"),
        (&["site.yml", "-e", "@absent"], 1, "error: --extra-vars: the file `absent` is not there"),
        (&["absent.yml"], 1, "no playbook `absent.yml`"),
        (&["site.yml", "-i", "absent"], 1, "no inventory `absent`"),
        (&["site.yml", "--resume", "--retry"], 2, "cannot be used with"),
        (&["site.yml", "-k", "--conn-pass-file", "file"], 2, "'--ask-pass' cannot be used with"),
        (&["site.yml", "-J", "--vault-pass-file", "file"], 2, "'--ask-vault-pass' cannot be used with"),
        (&["site.yml", "--ask", "file"], 2, "unexpected argument '--ask'"),
        (&["site.yml", "--vault-password-file", "absent"], 1, "read the vault password from `absent`"),
    ] {
        let ran = ran(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(says) && !ran.stderr.contains("error: error"), "{arguments:?}: {ran:?}");
    }
    // A long one may be cut short where it stays clear.
    assert_eq!(ran(&["site.yml", "--list-h", "--syn", "--extra", "a=1"]).stdout, "\nplaybook: site.yml\n");
    // Those that mean nothing here are taken all the same.
    assert_eq!(ran(&["site.yml", "--scp-extra-args", "-l 1000", "--sftp-extra-args=-f"]).code, 0);
}
