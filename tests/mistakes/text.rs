//! Files that are no playbook: no YAML, no text, nothing in them.

use super::{Project, expect_files};

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

#[test]
fn what_is_no_playbook() {
    let cases: [(&str, &[u8], &str, &str); 6] = [
        ("binary", b"- hosts: all\n  name: \xff\xfe\n", "site.yml:2:9", "byte 21 is not UTF-8"),
        ("empty", b"", "site.yml:1:1", "Empty playbook, nothing to do: site.yml"),
        ("comment", b"# later\n", "site.yml:1:1", "Empty playbook, nothing to do: site.yml"),
        ("nobody", b"- hosts: []\n", "site.yml:1:10", "Hosts list cannot be empty"),
        ("word", b"hello\n", "site.yml:1:1", "a playbook is a list of plays, found a string"),
        ("tasks", b"- debug: {msg: x}\n", "site.yml:1:3", "'debug' is not a valid attribute for a Play"),
    ];
    for (name, bytes, place, told) in cases {
        let project = Project::new(name, &[("other.yml", "")]);
        std::fs::write(project.0.join("site.yml"), bytes).expect("a writable folder");
        let (status, stderr) = project.run(&[]);
        assert!(stderr.contains(told) && stderr.contains(&format!(" --> {place}\n")), "{name}: {stderr}");
        assert_eq!(status, Some(4), "{name}");
    }
}
