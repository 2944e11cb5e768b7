//! Inventory plugins: what `tests/inventory_plugins/cases.yml` says, which ansible-inventory said; and what is refused.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use common::program::{Project, Ran};

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    arguments: Vec<String>,
    stdout: String,
}

/// Runs `kubeon-run inventory`, or what `KUBEON_REFERENCE` names in its place.
fn show(project: &Project, env: &BTreeMap<String, String>, arguments: &[&str]) -> Ran {
    let mut command = match std::env::var_os("KUBEON_REFERENCE") {
        Some(reference) => Command::new(reference),
        None => {
            let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
            command.arg("inventory");
            command
        }
    };
    command.args(arguments).current_dir(project.folder.path()).env_clear().env("HOME", project.folder.path());
    command
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("ANSIBLE_DEPRECATION_WARNINGS", "0")
        .envs(env);
    project.wait(command)
}

fn write(project: &Project, name: &str, text: &str) {
    project.write(name, text);
    if name.ends_with(".sh") {
        fs::set_permissions(project.path(name), fs::Permissions::from_mode(0o700)).expect("chmod");
    }
}

#[test]
fn inventories_are_what_ansible_makes_of_them() {
    let cases: Vec<Case> =
        serde_yaml::from_str(include_str!("inventory_plugins/cases.yml")).expect("the cases can be read");
    let mut wrong = Vec::new();
    for case in &cases {
        let project = Project::new("");
        case.files.iter().for_each(|(name, text)| write(&project, name, text));
        let ran = show(&project, &case.env, &case.arguments.iter().map(String::as_str).collect::<Vec<_>>());
        if ran.stdout.trim_end() != case.stdout.trim_end() {
            let theirs: Vec<&str> = case.stdout.lines().collect();
            let ours: Vec<&str> = ran.stdout.lines().collect();
            let lost: Vec<&&str> = theirs.iter().filter(|line| !ours.contains(line)).collect();
            let new: Vec<&&str> = ours.iter().filter(|line| !theirs.contains(line)).collect();
            wrong.push(format!("== {}\n  lost {lost:#?}\n  new {new:#?}\n{}", case.name, ran.stderr));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Writes files, reads them all as inventories and returns how that ended.
fn refused(files: &[(&str, &str)], env: &[(&str, &str)]) -> Ran {
    let project = Project::new("");
    files.iter().for_each(|(name, text)| write(&project, name, text));
    let env = env.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let mut arguments = vec!["--list"];
    files.iter().filter(|(name, _)| *name != "ansible.cfg").for_each(|(name, _)| arguments.extend(["-i", name]));
    show(&project, &env, &arguments)
}

#[test]
fn mistakes_in_options_have_their_places() {
    const HOSTS: (&str, &str) = ("hosts", "h1 n=1\n");
    let says = |text: &str, parts: &[&str]| {
        let ran = refused(&[HOSTS, ("p.yml", text)], &[]);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{text}: {ran:?}");
        for part in parts {
            assert!(ran.stderr.contains(part), "no `{part}` for\n{text}\n{}", ran.stderr);
        }
    };
    says(
        "plugin: amazon.aws.aws_ec2\n",
        &["inventory plugin `amazon.aws.aws_ec2` is not supported", "p.yml:1:9", "ansible-inventory -i FILE --list"],
    );
    says("plugin: construced\n", &["p.yml:1:9", "did you mean `constructed`?"]);
    says("plugin: [x]\n", &["`plugin` must be the name of an inventory plugin, found a list", "p.yml:1:9"]);
    says("plugin: yaml\n", &["the inventory plugin `yaml` reads no file of options", "p.yml:1:9"]);
    let constructed = |rest: &str, parts: &[&str]| says(&format!("plugin: constructed\n{rest}\n"), parts);
    constructed(
        "strit: true",
        &["`strit` is not an option of the inventory plugin `constructed`", "p.yml:2:1", "`strict`"],
    );
    constructed("strict: perhaps", &["`strict` of `constructed` must be a boolean", "p.yml:2:9"]);
    constructed("compose: {a: 'x >'}", &["syntax error in template", "p.yml:2:17"]);
    constructed("groups: {a: 5}", &["must be an expression", "p.yml:2:13"]);
    constructed(
        "keyed_groups: {key: n}",
        &["`keyed_groups` of `constructed` must be a list, found a mapping", "p.yml:2:15"],
    );
    constructed("keyed_groups: [{kye: n}]", &["p.yml:2:17", "did you mean `key`?"]);
    constructed(
        "keyed_groups: [{key: n, default_value: a, trailing_separator: false}]",
        &["`default_value` and `trailing_separator` exclude one another", "p.yml:2:40"],
    );
    constructed("keyed_groups: [{key: n}]", &["for host `h1`", "not an integer", "p.yml:2:22", "`| string`"]);
    constructed(
        "strict: true\ncompose: {a: nowhere}",
        &["could not set `a` for host `h1`", "'nowhere' is undefined", "p.yml:3:14"],
    );
    constructed(
        "strict: true\ngroups: {a: inventory_hostname}",
        &["could not add host `h1` to group `a`", "p.yml:3:13"],
    );
    constructed(
        "strict: true\nkeyed_groups: [{key: \"''\"}]",
        &["could not make groups of `''` for host `h1`", "p.yml:3:22"],
    );
    let generator = |rest: &str, parts: &[&str]| says(&format!("plugin: generator\n{rest}\n"), parts);
    generator("hosts: {name: h}", &["needs `layers`", "p.yml:1:1"]);
    generator("layers: {a: [1]}", &["needs `hosts`", "p.yml:1:1"]);
    generator(
        "hosts: {name: h, parent: [{name: x}]}\nlayers: {a: [1]}",
        &["`parent` is not a key of `hosts`", "p.yml:2:18", "`parents`"],
    );
    generator("hosts: {name: '{{ nope }}'}\nlayers: {a: [1]}", &["'nope' is undefined", "p.yml:2:"]);
    generator(
        "hosts: {name: h}\nlayers: {a: 1}",
        &["`layers` of `generator` must be a mapping of lists", "p.yml:3:13"],
    );
    says("plugin: k8s_nodes\naddress_types: [InternalIp]\n", &["p.yml:2:16", "did you mean `InternalIP`?"]);
    says(
        "plugin: k8s_nodes\nkubeconfig: absent.conf\n",
        &["ask the cluster for its nodes: ", "absent.conf", "p.yml:1:9"],
    );
    let bad = refused(&[("bad.toml", "[web]\nhosts = [\"a\"]\n")], &[]);
    assert!(bad.stderr.contains("`hosts` must be a mapping of hosts, found a list\n --> bad.toml:2:9"), "{bad:?}");
    let bad = refused(&[("bad.toml", "[web\n")], &[]);
    assert!(bad.stderr.contains("not TOML: ") && bad.stderr.contains("bad.toml:1:5"), "{bad:?}");
}

#[test]
fn only_what_is_enabled_reads() {
    let yaml = ("hosts.yml", "all: {hosts: {h1: }}\n");
    let ran = refused(&[yaml], &[("ANSIBLE_INVENTORY_ENABLED", "ini")]);
    assert!(ran.stderr.contains("`hosts.yml` is read by the inventory plugin `yaml`, which is not enabled"), "{ran:?}");
    let ran = refused(&[("hosts", "h1\n")], &[("ANSIBLE_INVENTORY_ENABLED", "yaml")]);
    assert!(ran.stderr.contains("by the inventory plugin `ini`") && ran.stderr.contains("`enable_plugins`"), "{ran:?}");
    let ran = refused(&[yaml, ("p.yml", "plugin: constructed\n")], &[("ANSIBLE_INVENTORY_ENABLED", "yaml, generator")]);
    assert!(ran.stderr.contains("the inventory plugin `constructed` is not enabled, and neither is `auto`"), "{ran:?}");
    // A script that is not to be run is not run.
    let script = ("touch.sh", "#!/bin/sh\ntouch was-run\necho '{}'\n");
    let ran = refused(&[script], &[("ANSIBLE_INVENTORY_ENABLED", "ini")]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let config = "[inventory]\nenable_plugins = yaml, nosuch.thing\n";
    let ran = refused(&[yaml, ("ansible.cfg", config)], &[]);
    assert!(ran.code == 0 && ran.stderr.contains("the inventory plugin `nosuch.thing`, which is not here"), "{ran:?}");
    assert!(ran.stderr.contains("ansible.cfg:2:"), "{ran:?}");
}

#[test]
fn facts_of_earlier_runs_make_groups() {
    let project = Project::new("");
    project
        .write("ansible.cfg", "[defaults]\nfact_caching = jsonfile\nfact_caching_connection = facts\n")
        .write("facts/h1", "{\"ansible_distribution\": \"Debian\"}")
        .write("hosts", "h1\nh2\n")
        .write("p.yml", "plugin: constructed\nkeyed_groups: [{key: ansible_distribution, prefix: os}]\n");
    let ran = show(&project, &BTreeMap::new(), &["-i", "hosts", "-i", "p.yml", "--graph", "os_Debian"]);
    assert_eq!(ran.stdout, "@os_Debian:\n  |--h1\n", "{ran:?}");
}
