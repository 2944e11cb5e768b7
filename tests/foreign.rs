//! Modules that are not built in: programs of `library/` folders and collections, run on a host by the whole program.
//! ansible-core is stood in for by a package of a few lines, so that it need not be here.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A project's folder, with the files of a playbook.
struct Project(PathBuf);

impl Project {
    fn new(name: &str, files: &[(&str, &str)]) -> Project {
        let folder = std::env::temp_dir().join(format!("kubeon-foreign-{}-{name}", std::process::id()));
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a temporary folder");
            std::fs::write(path, text).expect("a writable folder");
        }
        Project(folder)
    }

    /// Runs the program under one of Ansible's names; returns the status and what was said.
    fn called(&self, name: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let program = self.0.join(name);
        if !program.exists() {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kubeon-run"), &program).expect("a link");
        }
        let mut command = Command::new(&program);
        command.current_dir(&self.0).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &self.0).args(arguments);
        let output = command.output().expect("the program starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_kubeon-run"))
            .current_dir(&self.0)
            .args(["site.yml", "-i", "web,", "-c", "local"])
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("PYTHONPATH", self.0.join("python"))
            .env("HOME", &self.0)
            .output()
            .expect("the program starts")
    }

    /// Runs the playbook, which must go well, and returns what it left in the file `seen`.
    #[track_caller]
    fn seen(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
        std::fs::read_to_string(self.0.join("seen")).unwrap_or_default()
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// What stands for ansible-core here: it prints what it was given, as the real one does for a module that ends well.
const ANSIBLE: &[(&str, &str)] = &[
    ("python/ansible/__init__.py", ""),
    ("python/ansible/release.py", "__version__ = '2.99'\n"),
    ("python/ansible/module_utils/__init__.py", ""),
    ("python/ansible/module_utils/_text.py", "def shout(text):\n    return text.upper()\n"),
    (
        "python/ansible/module_utils/basic.py",
        r#"
import json, sys
from ansible.module_utils._text import shout
_ANSIBLE_ARGS = None
_ANSIBLE_PROFILE = None
class AnsibleModule:
    def __init__(self):
        given = json.loads(_ANSIBLE_ARGS)["ANSIBLE_MODULE_ARGS"]
        self.check_mode = given["_ansible_check_mode"]
        self.params = {key: value for key, value in given.items() if not key.startswith("_ansible_")}
    def exit_json(self, **result):
        print("\n" + json.dumps(result))
        sys.exit(0)
    def fail_json(self, **result):
        print("\n" + json.dumps(dict(result, failed=True)))
        sys.exit(1)
"#,
    ),
];

const GREET: &str = r#"#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule, shout
from ansible.module_utils.ours import mark
module = AnsibleModule()
if "fail" in module.params:
    module.fail_json(msg="as it was asked to")
if not module.check_mode:
    open("seen", "a").write(mark + shout(module.params["name"]) + "\n")
module.exit_json(changed=True, greeted=module.params["name"], nested={"list": [1, None]}, ansible_facts={"met": True})
"#;

fn with_ansible<'a>(files: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    ANSIBLE.iter().chain(files).copied().collect()
}

#[test]
fn a_module_in_python_brings_what_it_imports() {
    let play = r#"
- hosts: all
  gather_facts: false
  tasks:
    - greet: {name: "{{ 'wo' ~ 'rld' }}"}
      register: greeting
    - assert:
        that:
          - greeting is changed and greeting.greeted == 'world' and greeting.nested.list == [1, none]
          - ansible_facts.met and greeting.invocation.module_args.name == 'world'
    - greet: {fail: true}
      register: failure
      ignore_errors: true
    - assert: {that: ["failure is failed and failure.msg == 'as it was asked to'"]}
    - greet: {name: checked}
      check_mode: true
    - action: greet name=again
"#;
    let files = [
        ("site.yml", play),
        ("library/greet.py", GREET),
        ("module_utils/ours.py", "from ansible.module_utils.basic import shout\nmark = shout('>')\n"),
    ];
    let project = Project::new("python", &with_ansible(&files));
    assert_eq!(project.seen(&[]), ">WORLD\n>AGAIN\n");
    std::fs::remove_file(project.0.join("seen")).expect("is there");
    assert_eq!(project.seen(&["--check"]), "", "a module that is told of check mode changes nothing");
}

#[test]
fn a_collection_s_module_imports_from_its_collection() {
    let base = "collections/ansible_collections/acme/tools/plugins";
    let module = format!("{base}/modules/greet.py");
    let code = "from ansible.module_utils.basic import AnsibleModule\nfrom ..module_utils.words import word\nfrom \
                ansible_collections.acme.tools.plugins.module_utils import words\n\nmodule = \
                AnsibleModule()\nopen('seen', 'a').write(word + words.word)\nmodule.exit_json(changed=True)\n";
    let words = format!("{base}/module_utils/words.py");
    let files = [
        ("site.yml", "- hosts: all\n  gather_facts: false\n  tasks:\n    - acme.tools.greet:\n"),
        (module.as_str(), code),
        (words.as_str(), "word = 'hi '\n"),
    ];
    assert_eq!(Project::new("collection", &with_ansible(&files)).seen(&[]), "hi hi ");
}

#[test]
fn programs_are_given_their_arguments_as_they_want_them() {
    let play = r#"
- hosts: all
  gather_facts: false
  roles: [tools]
  tasks:
    - json: {name: "a 'b'", list: [1, 2]}
      register: json
    - assert: {that: [json.told.name == "a 'b'", "json.told.list == [1, 2]", json is not changed]}
    - words: name="a b" number=3
      register: words
    - assert: {that: ["words.name == 'a b'", words.number == 3, words is changed]}
    - embedded: {name: "{{ '{{' }} raw }}"}
      register: embedded
    - assert: {that: "embedded.got.name == '{' ~ '{ raw }' ~ '}'"}
    - broken:
      register: broken
      ignore_errors: true
    - assert: {that: ["broken is failed", "'No start of json' in broken.msg", "broken.module_stdout is match('no json')"]}
    - ping: {data: ours}
      register: ours
    - ansible.builtin.ping: {data: theirs}
      register: theirs
    - assert: {that: [ours.ping == 'own', theirs.ping == 'theirs']}
"#;
    let files = [
        ("site.yml", play),
        ("roles/tools/tasks/main.yml", "- {assert: {that: true}}\n"),
        ("roles/tools/library/json.sh", "#!/bin/sh\n# WANT_JSON\nprintf '{\"told\": %s}' \"$(cat \"$1\")\"\n"),
        (
            "library/words.sh",
            "#!/bin/sh\neval \"$(cat \"$1\")\"\nprintf 'noise\\n{\"changed\": true, \"name\": \"%s\", \"number\": %s}\\n' \"$name\" \"$number\"\n",
        ),
        ("library/embedded", "#!/bin/sh\ncat <<'END'\n{\"got\": <<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>}\nEND\n"),
        ("library/broken.sh", "#!/bin/sh\necho no json\n"),
        ("library/ping.sh", "#!/bin/sh\necho '{\"ping\": \"own\"}'\n"),
        ("library/README.md", "no module"),
    ];
    Project::new("programs", &files).seen(&[]);
}

#[test]
fn what_can_not_be_run_is_refused_before_anything_runs() {
    let play = "- hosts: all\n  gather_facts: false\n  tasks:\n    - copy: {content: x, dest: \"{{ playbook_dir }}/seen\"}\n    \
                - greet: {name: x}\n    - wrap: {name: y}\n    - windows:\n    - README:\n";
    let files = [
        ("site.yml", play),
        ("library/greet.py", GREET),
        ("action_plugins/wrap.py", "class ActionModule: pass\n"),
        ("library/windows.ps1", "#!powershell\n"),
        ("library/README.md", "no module"),
    ];
    let project = Project::new("refused", &files);
    let output = project.run(&[]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{told}");
    for line in [
        "site.yml:5:7",
        "no Python of this machine has ansible-core",
        "site.yml:6:7",
        "`wrap` is the action plugin",
        "site.yml:7:7",
        "a module for Windows",
        "site.yml:8:7",
        "no module or action `README`",
    ] {
        assert!(told.contains(line), "`{line}` is missing in: {told}");
    }
    assert!(!Path::new(&project.0.join("seen")).exists(), "something ran: {told}");
}

#[test]
fn under_ansible_s_name_it_runs_one_module() {
    let project = Project::new("adhoc", &[("roles/hello/tasks/main.yml", "- debug: {msg: \"hello {{ who }}\"}\n")]);
    let run = |arguments: &[&str]| project.called("ansible", arguments);
    assert_eq!(run(&["localhost", "-a", "printf 'a b'"]), (Some(0), "localhost | CHANGED | rc=0 >>\na b\n".into()));
    let (status, said) =
        run(&["all", "-i", "a,b,", "-c", "local", "-m", "copy", "-a", "content=x dest=seen mode=0600", "-o"]);
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    assert_eq!(std::fs::read_to_string(project.0.join("seen")).ok().as_deref(), Some("x"));
    let (status, said) = run(&["localhost", "-m", "include_role", "-a", "name=hello", "-e", "who=you"]);
    assert!(status == Some(0) && said.contains("hello you"), "{said}");
    let (status, said) = run(&["localhost", "-m", "file", "-a", r#"{"path": "made here", "state": "directory"}"#]);
    assert!(status == Some(0) && project.0.join("made here").is_dir(), "{said}");
    let listed = |arguments: &[&str]| run(&[&["-i", "a,b,c,", "--list-hosts"], arguments].concat());
    assert_eq!(listed(&["all"]), (Some(0), "  hosts (3):\n    a\n    b\n    c\n".into()));
    assert_eq!(listed(&[",", "--limit", "b,,"]), (Some(0), "  hosts (1):\n    b\n".into()));
    assert_eq!(listed(&["all", "--limit", ""]).1.lines().count(), 4);
    assert_eq!(run(&["localhost", "-m", "command", "-a", "false"]).0, Some(2));
    assert_eq!(run(&["localhost", "-m", "no_such_module"]).0, Some(4));
    // There `-t` is a folder for results: taken for tags it would run nothing, and say that all went well.
    for strange in [&["-t", "tree"][..], &["--skip-tags", "a"], &["--start-at-task", "a"], &["--list-tasks"]] {
        let (status, said) = run(&[&["localhost", "-m", "ping"], strange].concat());
        assert_eq!((status, said.as_str()), (Some(2), ""), "{strange:?}");
    }
}

#[test]
fn under_ansible_inventory_s_name_it_shows_what_is_asked_for_alone() {
    let project = Project::new("asked", &[("hosts", "a\n")]);
    let shows = |arguments: &[&str]| project.called("ansible-inventory", &[&["-i", "hosts"], arguments].concat());
    let nothing = (Some(5), String::new());
    assert_eq!(shows(&[]), nothing);
    assert_eq!(shows(&["--list", "--graph"]), nothing);
    assert_eq!(shows(&["--host", "a", "--list"]), nothing);
    assert_eq!(shows(&["--host", "b"]), nothing);
    assert_eq!(shows(&["--host", "a"]), (Some(0), "{}\n".into()));
}
