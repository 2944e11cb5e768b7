//! What a person is asked at the terminal: `vars_prompt`, passwords, and how their answers are taken.

mod common;

use common::program::Project;

/// A play that asks as `prompt` says, and writes the answer.
fn asking(prompt: &str) -> Project {
    let project = Project::new("h ansible_connection=local\n");
    let seen = project.path("seen").display().to_string();
    project.write(
        "site.yml",
        &format!(
            "- hosts: h\n  gather_facts: false\n  vars: {{other: rendered}}\n  vars_prompt:\n    - {prompt}\n  tasks:\n    - copy: {{dest: {seen}, \
             content: \"{{{{ answer }}}}\"}}\n      no_log: true\n"
        ),
    );
    project
}

#[test]
fn a_hidden_answer_is_not_shown_and_an_open_one_is() {
    let project = asking("{name: answer, prompt: Which word}");
    let (code, text) = project.converse("site.yml", &[("Which word:", "*sesame")]);
    assert_eq!((code, project.read("seen").as_str(), text.contains("sesame")), (0, "sesame", false), "{text}");
    let project = asking("{name: answer, prompt: Which word, private: no}");
    let (code, text) = project.converse("site.yml", &[("Which word:", "open")]);
    assert_eq!((code, project.read("seen").as_str(), text.contains("open")), (0, "open", true), "{text}");
}

#[test]
fn a_default_stands_for_no_answer() {
    let project = asking("{name: answer, default: usual, private: no}");
    let (_, text) = project.converse("site.yml", &[("answer [usual]:", "")]);
    assert_eq!(project.read("seen"), "usual", "{text}");
    // Nobody is asked for what the command line gives, nor where nobody can answer.
    project.run(&["site.yml", "-e", "answer=given"]);
    assert_eq!(project.read("seen"), "given");
    project.run(&["site.yml"]);
    assert_eq!(project.read("seen"), "usual");
}

#[test]
fn an_answer_to_be_confirmed_is_asked_for_until_it_is() {
    let project = asking("{name: answer, confirm: true}");
    let answers =
        [("answer:", "*one"), ("confirm answer:", "*two"), ("DO NOT MATCH", "*three"), ("confirm answer:", "*three")];
    let (code, text) = project.converse("site.yml", &answers);
    assert_eq!((code, project.read("seen").as_str()), (0, "three"), "{text}");
}

#[test]
fn an_answer_is_hashed_as_crypt_does() {
    // The published example of SHA-512 crypt has 5000 rounds; these are those of passlib's default.
    let project = asking("{name: answer, encrypt: sha512_crypt, salt: saltstring}");
    let (code, text) = project.converse("site.yml", &[("answer:", "*Hello world!")]);
    let fixed = project.read("seen");
    assert!(code == 0 && fixed.starts_with("$6$rounds=656000$saltstring$") && fixed.len() == 28 + 86, "{fixed} {text}");
    assert!(verified("Hello world!", &fixed), "{fixed}");
    let project = asking("{name: answer, encrypt: sha256_crypt, salt_size: 5}");
    project.converse("site.yml", &[("answer:", "*sesame")]);
    let random = project.read("seen");
    assert_eq!(random.split('$').nth(3).map(str::len), Some(5), "{random}");
    assert!(verified("sesame", &random) && !verified("sesam", &random), "{random}");
    for (scheme, begin) in [("bcrypt", "$2b$12$"), ("md5_crypt", "$1$")] {
        let project = asking(&format!("{{name: answer, encrypt: {scheme}}}"));
        project.converse("site.yml", &[("answer:", "*sesame")]);
        let hash = project.read("seen");
        assert!(hash.starts_with(begin) && verified("sesame", &hash) && !verified("sesam", &hash), "{hash}");
    }
}

/// Asks the system's own crypt(3), by Perl.
fn verified(password: &str, hash: &str) -> bool {
    let output = std::process::Command::new("perl")
        .args(["-e", "print crypt($ARGV[0], $ARGV[1])", password, hash])
        .output()
        .expect("perl, which every Debian has");
    String::from_utf8_lossy(&output.stdout) == hash
}

#[test]
fn an_unsafe_answer_is_never_a_template() {
    let project = asking("{name: answer, unsafe: true}");
    project.converse("site.yml", &[("answer:", "*{{ other }}")]);
    assert_eq!(project.read("seen"), "{{ other }}");
    let project = asking("{name: answer}");
    project.converse("site.yml", &[("answer:", "*{{ other }}")]);
    assert_eq!(project.read("seen"), "rendered");
}

#[test]
fn passwords_are_asked_for_by_flags_and_by_configuration() {
    let project = Project::new("h ansible_connection=local\n");
    project.write("site.yml", "- hosts: h\n  gather_facts: false\n  tasks: [{ping: }]\n");
    let questions = [("SSH password:", "*sesame1"), ("BECOME password:", "*sesame2")];
    let (code, text) = project.converse("site.yml -k -K", &questions);
    assert!(code == 0 && !text.contains("sesame"), "{text}");
    project.write("ask.cfg", "[defaults]\nask_pass = yes\n[privilege_escalation]\nbecome_ask_pass = yes\n");
    let line = "-e x=1 site.yml";
    let program =
        format!("ANSIBLE_CONFIG=ask.cfg {} -i hosts {line}; echo \"status $?.\"", env!("CARGO_BIN_EXE_kubeon-run"));
    let (code, text) = project.converse_with(&program, &questions);
    assert_eq!(code, 0, "{text}");
    // Nobody is there to answer.
    let ran = project.run(&["site.yml", "-k"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, "error: SSH password: nobody is there to answer: no terminal\n"));
}
