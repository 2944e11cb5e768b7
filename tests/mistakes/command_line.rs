//! What is typed, and the exit status that ansible-playbook has for it.

use super::Project;

#[test]
fn what_is_typed_wrong_is_told_and_nothing_else() {
    let play = "- hosts: all\n  gather_facts: false\n  tasks:\n    - file: {path: marker, state: touch}\n";
    let project = Project::new("typed", &[("site.yml", play), ("list.yml", "- a\n"), ("bad.yml", "a: [\n")]);
    let cases: [(&[&str], i32, &str); 10] = [
        (&["-e", "@absent.yml"], 1, "error: --extra-vars: the file `absent.yml` is not there"),
        (&["-e", "@."], 1, "error: --extra-vars: the file `.` is a folder"),
        (&["-e", "{\"a\": 1"], 4, "--> --extra-vars:1:8"),
        (&["-e", "@bad.yml"], 4, "--> bad.yml:1:"),
        (&["-e", "[1]"], 5, "error: --extra-vars: variables must be a mapping, found a list"),
        (&["-e", "@list.yml"], 5, "error: list.yml: variables must be a mapping, found a list"),
        (&["--become-method", "sodu"], 2, "error: `become_method: sodu` is not supported: `sudo`, `su`, `doas` are"),
        (&["--vault-password-file", "absent"], 1, "error: read the vault password from `absent`"),
        (&["-l", "@absent"], 1, "error: `--limit @absent`: cannot read `absent`"),
        (&["--private-key", "absent"], 2, "error: `--private-key`: no file `absent`"),
    ];
    for (arguments, code, told) in cases {
        let (status, stderr) = project.run(arguments);
        assert!(stderr.contains(told), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("PLAY RECAP"), "{arguments:?}: {stderr}");
        assert_eq!(status, Some(code), "{arguments:?}: {stderr}");
    }
    assert!(!project.0.join("marker").exists(), "something ran");
}

#[test]
fn variables_come_through_a_pipe() {
    let play = "- hosts: all\n  gather_facts: false\n  tasks: [{file: {path: \"{{ made }}\", state: touch}}]\n";
    let project = Project::new("pipe", &[("site.yml", play)]);
    let pipe = project.0.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let writer = {
        let pipe = pipe.clone();
        std::thread::spawn(move || std::fs::write(pipe, "made: marker\n"))
    };
    let (status, stderr) = project.run(&["-e", "@pipe"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(project.0.join("marker").exists());
    writer.join().expect("a thread").expect("the pipe is read");
}
