//! `kubeon-run config`: the settings, what they are, and where that comes from.

mod common;

use std::process::Command;

use common::program::{Project, Ran};

fn config(project: &Project, arguments: &[&str], environment: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
    command.current_dir(project.folder.path()).env_clear().env("HOME", project.folder.path()).arg("config");
    command.args(arguments).envs(environment.iter().copied());
    project.wait(command)
}

fn project() -> Project {
    let project = Project { folder: common::sshd::Folder::new() };
    project.write(
        "ansible.cfg",
        "[defaults]\n# mine\nforks=9\nroles_path = a:b\nvault_identity_list = a@b, c@d\nhost_key_checking = no\n",
    );
    project
}

#[test]
fn dump_tells_values_and_where_they_come_from() {
    let project = project();
    let ran = config(&project, &["dump", "--only-changed"], &[("ANSIBLE_REMOTE_USER", "me")]);
    let lines = "CONFIG_FILE() = FOLDER/ansible.cfg\nDEFAULT_FORKS(FOLDER/ansible.cfg) = 9\n\
                 DEFAULT_REMOTE_USER(env: ANSIBLE_REMOTE_USER) = me\nDEFAULT_ROLES_PATH(FOLDER/ansible.cfg) = ['FOLDER/a', 'FOLDER/b']\n\
                 DEFAULT_VAULT_IDENTITY_LIST(FOLDER/ansible.cfg) = ['a@b', 'c@d']\nHOST_KEY_CHECKING(FOLDER/ansible.cfg) = False\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (0, lines), "{ran:?}");
    let all = config(&project, &["dump"], &[]).stdout;
    assert!(
        all.contains("\nDEFAULT_GATHERING(default) = implicit\n") && all.contains("TASK_TIMEOUT(default) = 0\n"),
        "{all}"
    );
    let json = config(&project, &["dump", "--only-changed", "-f", "json"], &[]).stdout;
    let rows: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(rows[1], serde_json::json!({"name": "DEFAULT_FORKS", "origin": "FOLDER/ansible.cfg", "value": 9}));
}

#[test]
fn a_written_file_means_what_is_so_anyway() {
    let project = project();
    let text = config(&project, &["init"], &[]).stdout;
    let folder = std::fs::canonicalize(project.folder.path()).expect("a folder").display().to_string();
    project.write("written.cfg", &text.replace("FOLDER", &folder));
    let ran = config(&project, &["validate", "-c", "written.cfg"], &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    let values = |text: &str| {
        let value = |line: &str| {
            line.split_once(") = ").map(|(name, value)| (name.split('(').next().map(str::to_owned), value.to_owned()))
        };
        text.lines().filter(|line| !line.starts_with("CONFIG_FILE")).filter_map(value).collect::<Vec<_>>()
    };
    let as_written = config(&project, &["dump", "-c", "written.cfg"], &[]).stdout;
    project.write("empty.cfg", "");
    let usual = config(&project, &["dump", "-c", "empty.cfg"], &[]).stdout;
    assert_eq!(values(&usual), values(&as_written));
    let disabled = config(&project, &["init", "--disabled"], &[]).stdout;
    assert!(disabled.lines().all(|line| line.is_empty() || line.starts_with([';', '#', '['])), "{disabled}");
    assert!(config(&project, &["init", "-f", "env"], &[]).stdout.contains("\nANSIBLE_FORKS=50\n"));
}

#[test]
fn files_are_shown_and_mistakes_in_them_told() {
    let project = project();
    assert_eq!(config(&project, &["view"], &[]).stdout, project.read("ansible.cfg"));
    let list = config(&project, &["list"], &[]).stdout;
    assert!(list.contains("\nDEFAULT_FORKS:\n  default: 50\n  description: How many hosts"), "{list}");
    project.write("wrong.cfg", "[defaults]\nforcks = 3\njinja2_extensions = x\n").write("plain", "");
    let wrong = config(&project, &["validate", "-c", "wrong.cfg"], &[]);
    assert!(
        wrong.code == 1
            && wrong.stderr.contains("did you mean `forks`?")
            && wrong.stderr.contains(" --> wrong.cfg:3:21"),
        "{wrong:?}"
    );
    for (arguments, says) in [
        (["view", "-c", "absent.cfg"], "missing or not accessible: absent.cfg"),
        (["view", "-c", "plain"], "Unsupported configuration file extension"),
    ] {
        let ran = config(&project, &arguments, &[]);
        assert!(ran.code == 1 && ran.stderr.contains(says), "{ran:?}");
    }
    assert_eq!(config(&project, &["list", "-t", "callback"], &[]).code, 2);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kubeon-run"), project.path("ansible-config")).expect("a link");
    let mut named = Command::new(project.path("ansible-config"));
    named.current_dir(project.folder.path()).env_clear().args(["dump", "--only-changed", "-v"]);
    let ran = project.wait(named);
    assert!(ran.stdout.starts_with("Using FOLDER/ansible.cfg as config file\nCONFIG_FILE() = "), "{ran:?}");
}
