//! Inventories in every form, as `kubeon-run inventory` shows them and as a run takes them. What is expected is what
//! ansible-inventory shows.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use common::program::{Project, Ran};

/// A folder of inventories in every form.
fn folder() -> Project {
    let project = Project::new("");
    project
        .write(
            "inv/a.ini",
            "
lone ansible_port=2222
[web]
w[01:03:2].x n=1 s='a b' l=[1,2] # a comment
[db]
d1:2200
[site:children]
web
db
[site:vars]
v=1 2
b=True
",
        )
        .write(
            "inv/b.yml",
            "
all:
  children:
    gpu:
      hosts:
        g[a:b]: {gpus: 8}
      vars: {kind: gpu}
      children:
        big: {hosts: {ga: }}
",
        )
        .write("inv/group_vars/site/one.yml", "gv: {a: [1, x]}\n")
        .write("inv/host_vars/d1.yml", "hv: 1.5\n")
        .write("inv/ignored.txt", "no such thing\n")
        .write("inv/ignored.bak", "[\n")
        .write(
            "inv/script.sh",
            "#!/bin/sh\ntest \"$1\" = --list && echo '{\"dyn\": {\"hosts\": [\"s1\"], \"vars\": {\"answer\": 42}}, \
             \"plain\": [\"s2\"], \"_meta\": {\"hostvars\": {\"s1\": {\"z\": null}}}}'\n",
        )
        .write(
            "inv/z_asked.sh",
            "#!/bin/sh\ncase $1 in --list) echo '{\"asked\": {\"hosts\": [\"q1\"], \"children\": [\"plain\"]}}';;\n\
             --host) echo \"{\\\"told\\\": \\\"$2\\\"}\";; esac\n",
        );
    for script in ["inv/script.sh", "inv/z_asked.sh"] {
        fs::set_permissions(project.path(script), fs::Permissions::from_mode(0o700)).expect("chmod");
    }
    project
}

fn show(project: &Project, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
    command.current_dir(project.folder.path()).env_clear().env("HOME", project.folder.path());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).arg("inventory").args(arguments);
    project.wait(command)
}

#[test]
fn a_tree_shows_groups_and_hosts() {
    let project = folder();
    assert_eq!(
        show(&project, &["-i", "inv", "--graph", "--vars"]).stdout,
        "\
@all:
  |--@ungrouped:
  |  |--lone
  |  |  |--{ansible_port = 2222}
  |--@gpu:
  |  |--@big:
  |  |  |--ga
  |  |  |  |--{gpus = 8}
  |  |  |  |--{kind = gpu}
  |  |--ga
  |  |  |--{gpus = 8}
  |  |  |--{kind = gpu}
  |  |--gb
  |  |  |--{gpus = 8}
  |  |  |--{kind = gpu}
  |  |--{kind = gpu}
  |--@site:
  |  |--@web:
  |  |  |--w01.x
  |  |  |  |--{b = True}
  |  |  |  |--{gv = {'a': [1, 'x']}}
  |  |  |  |--{l = [1, 2]}
  |  |  |  |--{n = 1}
  |  |  |  |--{s = a b}
  |  |  |  |--{v = 1 2}
  |  |  |--w03.x
  |  |  |  |--{b = True}
  |  |  |  |--{gv = {'a': [1, 'x']}}
  |  |  |  |--{l = [1, 2]}
  |  |  |  |--{n = 1}
  |  |  |  |--{s = a b}
  |  |  |  |--{v = 1 2}
  |  |--@db:
  |  |  |--d1
  |  |  |  |--{ansible_port = 2200}
  |  |  |  |--{b = True}
  |  |  |  |--{gv = {'a': [1, 'x']}}
  |  |  |  |--{hv = 1.5}
  |  |  |  |--{v = 1 2}
  |  |--{b = True}
  |  |--{gv = {'a': [1, 'x']}}
  |  |--{v = 1 2}
  |--@dyn:
  |  |--s1
  |  |  |--{answer = 42}
  |  |  |--{z = None}
  |  |--{answer = 42}
  |--@asked:
  |  |--@plain:
  |  |  |--s2
  |  |--q1
  |  |  |--{told = q1}
"
    );
    assert_eq!(show(&project, &["-i", "inv", "--graph", "gpu"]).stdout.lines().count(), 5);
    let nobody = show(&project, &["-i", "inv", "--graph", "nobody"]);
    assert_eq!((nobody.code, nobody.stderr.as_str()), (5, "error: no group `nobody` in the inventory\n"));
}

#[test]
fn lists_are_json_or_yaml() {
    let project = folder();
    let list = |arguments: &[&str]| -> serde_json::Value {
        let ran = show(&project, &[&["-i", "inv", "--list"], arguments].concat());
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    };
    let all = list(&[]);
    assert_eq!(all["all"]["children"], serde_json::json!(["ungrouped", "gpu", "site", "dyn", "asked"]));
    assert_eq!(all["gpu"], serde_json::json!({"children": ["big"], "hosts": ["ga", "gb"]}));
    assert_eq!(all["site"], serde_json::json!({"children": ["web", "db"]}));
    let d1 = serde_json::json!({"ansible_port": 2200, "b": true, "gv": {"a": [1, "x"]}, "hv": 1.5, "v": "1 2"});
    assert_eq!(all["_meta"]["hostvars"]["d1"], d1);
    let own = list(&["--export"]);
    assert_eq!(own["_meta"]["hostvars"]["d1"], serde_json::json!({"ansible_port": 2200, "hv": 1.5}));
    assert_eq!(own["site"]["vars"], serde_json::json!({"b": true, "gv": {"a": [1, "x"]}, "v": "1 2"}));
    let some = list(&["--limit", "w*"]);
    assert_eq!(some["web"]["hosts"], serde_json::json!(["w01.x", "w03.x"]));
    assert_eq!((&some["gpu"]["hosts"], &some["_meta"]["hostvars"]["d1"]), (&().into(), &().into()));
    let yaml = show(&project, &["-i", "inv/b.yml", "--list", "--yaml"]).stdout;
    assert_eq!(
        yaml,
        "\
all:
  children:
    gpu:
      children:
        big:
          hosts:
            ga:
              gpus: 8
              kind: gpu
      hosts:
        ga: {}
        gb:
          gpus: 8
          kind: gpu
"
    );
    // What was shown can be read again.
    show(&project, &["-i", "inv/b.yml", "--list", "--yaml", "--export", "--output", "again.yml"]);
    assert_eq!(show(&project, &["-i", "again.yml", "--list", "--yaml"]).stdout, yaml);
}

#[test]
fn one_host_is_shown_with_its_variables() {
    let project = folder();
    assert_eq!(
        show(&project, &["-i", "inv", "--host", "ga"]).stdout,
        "{\n    \"gpus\": 8,\n    \"kind\": \"gpu\"\n}\n"
    );
    assert_eq!(show(&project, &["-i", "inv", "--host", "ga", "--yaml"]).stdout, "gpus: 8\nkind: gpu\n");
    project.write("play/host_vars/ga.yml", "beside: playbook\n");
    let beside = show(&project, &["-i", "inv", "--host", "ga", "--playbook-dir", "play", "-y"]);
    assert_eq!(beside.stdout, "beside: playbook\ngpus: 8\nkind: gpu\n");
    assert_eq!(show(&project, &["-i", "inv", "--host", "nobody"]).code, 5);
    // What is typed is over all that is written, for every host.
    let typed = ["--inventory-file", "inv", "-e", "gpus=9 own=1"];
    let with = |arguments: &[&str]| show(&project, &[&typed[..], arguments].concat()).stdout;
    assert_eq!(with(&["--ho", "ga", "-y"]), "gpus: '9'\nkind: gpu\nown: '1'\n");
    assert!(
        with(&["--graph", "--vars"]).contains("--ga\n  |  |  |  |--{gpus = 9}\n"),
        "{}",
        with(&["--graph", "--vars"])
    );
    assert!(!with(&["--list", "--export"]).contains("own"));
    let refused = with(&["--list", "--toml"]);
    assert_eq!(refused, "");
}

#[test]
fn hosts_are_given_by_name_and_in_several_inventories() {
    let project = folder();
    let graph = |arguments: &[&str]| show(&project, &[arguments, &["--graph"]].concat()).stdout;
    assert_eq!(graph(&["-i", "one,"]), "@all:\n  |--@ungrouped:\n  |  |--one\n");
    assert_eq!(graph(&["-i", "n[1:2],three"]), "@all:\n  |--@ungrouped:\n  |  |--n1\n  |  |--n2\n  |  |--three\n");
    project.write("first", "h x=1\n").write("second", "[g]\nh x=2\n");
    assert_eq!(show(&project, &["-i", "first", "-i", "second", "--host", "h", "-y"]).stdout, "x: 2\n");
}

#[test]
fn mistakes_have_their_places() {
    let project = Project::new("");
    project.write("bad.ini", "[web]\nw1 x\n[web:kids]\n").write("bad.yml", "all:\n  children: [web]\n");
    let bad = show(&project, &["-i", "bad.ini", "--list"]);
    assert!(bad.stderr.contains("`x` is not of the form `key=value`\n --> bad.ini:2:4"), "{bad:?}");
    assert!(
        bad.stderr.contains("`:kids` is no kind of section: expected `:children` or `:vars`\n --> bad.ini:3:5"),
        "{bad:?}"
    );
    let bad = show(&project, &["-i", "bad.yml", "--list"]);
    assert!(bad.stderr.contains("`children` must be a mapping of groups, found a list\n --> bad.yml:2:13"), "{bad:?}");
    assert_eq!((bad.code, bad.stdout.as_str()), (1, ""));
    let absent = show(&project, &["-i", "absent", "--list"]);
    assert!(
        absent.stderr.contains("no inventory `absent`") && absent.stderr.contains("as in `-i host,`"),
        "{absent:?}"
    );
}

/// Runs a playbook with no word about an inventory.
fn run_bare(project: &Project, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
    command.current_dir(project.folder.path()).env_clear().env("HOME", project.folder.path());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).args(arguments);
    project.wait(command)
}

#[test]
fn without_an_inventory_this_machine_is_the_only_host() {
    let project = Project::new("");
    let home = project.folder.path().display().to_string();
    project.write("group_vars/all.yml", "from_group: group\n").write("host_vars/localhost.yml", "from_host: host\n").write(
        "site.yml",
        &format!(
            "
- hosts: all
  gather_facts: false
  tasks:
    - shell: echo {{{{ inventory_hostname }}}} {{{{ from_group }}}} {{{{ from_host }}}} {{{{ ansible_connection }}}} >> {home}/ran
"
        ),
    );
    let ran = run_bare(&project, &["site.yml"]);
    assert_eq!((ran.code, project.read("ran")), (0, "localhost group host local\n".into()), "{ran:?}");
    // Named by a play it is there beside an inventory too, under the same variables, and is none of `all`.
    project.write("hosts", "other ansible_connection=local\n");
    project.write("site.yml", &project.read("site.yml").replace("hosts: all", "hosts: localhost"));
    let ran = run_bare(&project, &["site.yml", "-i", "hosts"]);
    assert_eq!((ran.code, project.read("ran")), (0, "localhost group host local\n".repeat(2)), "{ran:?}");
    assert!(!show(&project, &["-i", "hosts", "--graph"]).stdout.contains("localhost"));
}

#[test]
fn the_folder_s_own_inventory_is_taken_when_none_is_named() {
    let project = Project::new("");
    let home = project.folder.path().display().to_string();
    project.write("inventory/hosts.yml", "all: {hosts: {mine: {ansible_connection: local}}}\n").write(
        "site.yml",
        &format!("- hosts: all\n  gather_facts: false\n  tasks:\n    - shell: echo {{{{ inventory_hostname }}}} >> {home}/ran\n"),
    );
    let ran = run_bare(&project, &["site.yml"]);
    assert_eq!((ran.code, project.read("ran")), (0, "mine\n".into()), "{ran:?}");
}
