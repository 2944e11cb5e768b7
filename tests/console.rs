//! `kubeon-run console`: lines in, and what they did on the hosts that were chosen.

mod common;

use std::io::Write;
use std::process::{Command, Stdio};

use common::program::{Project, Ran};

const HOSTS: &str =
    "[web]\nw1 ansible_connection=local\nw2 ansible_connection=local\n[db]\nd1 ansible_connection=local\n";

/// Types lines into a console that works on hosts of this machine.
fn typed(project: &Project, arguments: &[&str], lines: &str) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
    command.env_clear().env("HOME", project.folder.path()).env("ANSIBLE_CONFIG", "/dev/null");
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).current_dir(project.folder.path());
    command.args(["console", "-i", "hosts"]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("a reader");
    let output = child.wait_with_output().expect("the program ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: output.status.code().unwrap_or(-1), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn lines_run_modules_on_the_chosen_hosts() {
    let project = Project::new(HOSTS);
    let at = project.folder.path().display().to_string();
    let say = |word: &str| format!("shell echo {word} {{{{ inventory_hostname }}}} >> {at}/ran\n");
    let lines = [
        "# nothing\n\n",
        &say("first"),
        "cd db\n",
        &format!("! echo line {{{{ inventory_hostname }}}} >> {at}/ran\n"),
        "cd nobody\n",
        &format!("echo plain >> {at}/ran\n"),
        "check yes\n",
        &format!("copy content=x dest={at}/never\n"),
        "check no\n",
        "cd w1,d1\n",
        &format!("ansible.builtin.copy content=x dest={at}/{{{{ inventory_hostname }}}}\n"),
        "cd\n",
        &say("all"),
        "exit\n",
        &say("late"),
    ]
    .concat();
    let ran = typed(&project, &["web"], &lines);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        sorted(&project.read("ran")),
        ["all d1", "all w1", "all w2", "first w1", "first w2", "line d1", "plain"],
        "{ran:?}"
    );
    assert!(!project.path("never").exists() && !project.path("w2").exists());
    assert_eq!((project.read("w1"), project.read("d1")), ("x".to_owned(), "x".to_owned()));
    assert!(ran.stderr.contains("no host matches `nobody`: `list groups` shows the groups"), "{ran:?}");
}

#[test]
fn what_holds_is_shown_and_changed() {
    let project = Project::new(HOSTS);
    let shown = |lines: &str| typed(&project, &[], lines);
    assert_eq!(shown("list\ncd web:!w1\nlist\nlist groups\n").stdout, "w1\nw2\nd1\nw2\nall\ndb\nungrouped\nweb\n");
    assert!(shown("help\n").stdout.contains("cd [PATTERN]"));
    assert!(shown("help forks\n").stdout.starts_with("forks NUMBER: "));
    assert!(shown("? ping\n").stdout.starts_with("# ping\n"));
    let wrong = shown("become\nforks 0\nforks many\nhelp png\nlist hosts\nlist\n");
    for said in
        ["`become` is yes or no", "`forks` is 0", "`forks` needs a number", "did you mean `ping`?", "`list hosts`"]
    {
        assert!(wrong.stderr.contains(said), "no {said}: {wrong:?}");
    }
    assert_eq!((wrong.code, wrong.stdout.as_str()), (0, "w1\nw2\nd1\n"));
    // A failure of a host, or of a line, ends nothing.
    let failed = shown("cd w1\nfail msg=no\ndebug msg=after\ncopy nothing=x\ndebug msg=last\n");
    assert!(failed.code == 0 && failed.stdout.contains("after") && failed.stdout.contains("last"), "{failed:?}");
    assert!(failed.stderr.contains("`nothing`"), "{failed:?}");
    // What is wrong from the start ends it.
    let refused = typed(&project, &["one", "two"], "list\n");
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{refused:?}");
}
