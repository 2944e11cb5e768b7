//! `kubeon-run vault`: what it writes is what ansible-vault writes, and a failure leaves every file as it was.

mod common;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

use common::program::{Project, Ran};

/// `hello` under the password `pw1` with the salt `abc`, as ansible-core 2.19 writes it.
const HELLO: &str = "!vault |
          $ANSIBLE_VAULT;1.1;AES256
          3631363236330a376463633839666261326163616535333833663333333865663232373733666331
          366131333630313866386435653062653163663433323238663039613434390a3832376335306339
          623737636331636166666335663439626461623264646134
";

/// A folder with passwords.
fn passwords() -> Project {
    let project = Project::new("h ansible_connection=local\n");
    project.write("p1", "pw1\n").write("p2", "pw2\n");
    project
}

fn command(project: &Project, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
    command.current_dir(project.folder.path()).env_clear().env("HOME", project.folder.path());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("ANSIBLE_CONFIG", "/dev/null");
    command.env("TMPDIR", project.folder.path()).arg("vault").args(arguments.split(' ')).stdin(Stdio::null());
    command
}

fn vault(project: &Project, arguments: &str) -> Ran {
    project.wait(command(project, arguments))
}

#[track_caller]
fn done(project: &Project, arguments: &str) -> String {
    let ran = vault(project, arguments);
    assert_eq!(ran.code, 0, "{arguments}: {ran:?}");
    ran.stdout
}

fn mode(project: &Project, name: &str) -> u32 {
    fs::metadata(project.path(name)).expect("a file").permissions().mode() & 0o777
}

fn set_mode(project: &Project, name: &str, mode: u32) {
    fs::set_permissions(project.path(name), fs::Permissions::from_mode(mode)).expect("chmod");
}

fn program(project: &Project, name: &str, text: &str) {
    project.write(name, text);
    set_mode(project, name, 0o755);
}

/// Runs with a text on standard input.
fn fed(project: &Project, arguments: &str, text: &str) -> String {
    let mut command = command(project, arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    child.stdin.take().expect("its input").write_all(text.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("an end");
    assert!(output.status.success(), "{arguments}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_text_is_written_as_ansible_writes_it() {
    let project = passwords();
    let mut salted = command(&project, "encrypt_string --vault-password-file p1 hello");
    salted.env("ANSIBLE_VAULT_ENCRYPT_SALT", "abc");
    assert_eq!(project.wait(salted).stdout, HELLO);
    let file: String = HELLO.lines().skip(1).map(|line| format!("{}\n", line.trim())).collect();
    project.write("hello", &file);
    assert_eq!(done(&project, "view hello --vault-password-file p1"), "hello\n");
    // Without a salt of one's own, no two are alike.
    let once = done(&project, "encrypt_string --vault-password-file p1 hello");
    assert_ne!(once, done(&project, "encrypt_string --vault-password-file p1 hello"));
}

#[test]
fn files_go_into_a_vault_and_out_of_it_for_their_owner_alone() {
    let project = passwords();
    project.write("f", "a: 1\n");
    set_mode(&project, "f", 0o644);
    fs::hard_link(project.path("f"), project.path("other-name")).expect("a link");
    std::os::unix::fs::symlink("f", project.path("link")).expect("a link");
    done(&project, "encrypt link --vault-password-file p1");
    let text = project.read("f");
    assert!(text.starts_with("$ANSIBLE_VAULT;1.1;AES256\n") && text.lines().all(|line| line.len() <= 80), "{text}");
    assert_eq!((mode(&project, "f"), project.read("other-name").as_str()), (0o600, "a: 1\n"));
    assert!(fs::symlink_metadata(project.path("link")).expect("a link").is_symlink());
    let twice = vault(&project, "encrypt f --vault-password-file p1");
    assert_eq!((twice.code, twice.stderr.as_str()), (1, "error: `f` is already encrypted\n"));
    done(&project, "decrypt f --vault-password-file p1 --output plain");
    assert_eq!((mode(&project, "plain"), project.read("plain").as_str()), (0o600, "a: 1\n"));
    assert_eq!(done(&project, "decrypt f --vault-password-file p1 --output -"), "a: 1\n");
    done(&project, "decrypt f --vault-password-file p1");
    assert_eq!(project.read("f"), "a: 1\n");
    let bytes = [0, 255, 10, 128];
    fs::write(project.path("binary"), bytes).expect("write");
    done(&project, "encrypt binary --vault-password-file p1");
    done(&project, "decrypt binary --vault-password-file p1");
    assert_eq!(fs::read(project.path("binary")).expect("read"), bytes);
    // The password itself may be what is in a file: nothing is hidden from who asked for it.
    project.write("secret", "pw1-and-pw1\n").write("long", "pw1-and-pw1");
    done(&project, "encrypt secret --vault-password-file long");
    assert_eq!(done(&project, "view secret --vault-password-file long"), "pw1-and-pw1\n");
}

#[test]
fn ids_choose_the_password_and_stand_in_the_header() {
    let project = passwords();
    project.write("f", "a: 1\n");
    let header = |project: &Project| project.read("f").lines().next().unwrap_or_default().to_owned();
    let two = vault(&project, "encrypt f --vault-id dev@p1 --vault-id prod@p2");
    assert!(two.code == 5 && two.stderr.contains("dev, prod") && project.read("f") == "a: 1\n", "{two:?}");
    let unknown = vault(&project, "encrypt f --vault-id dev@p1 --encrypt-vault-id nobody");
    assert!(unknown.code == 1 && unknown.stderr.contains("`nobody`"), "{unknown:?}");
    done(&project, "encrypt f --vault-id dev@p1 --vault-id prod@p2 --encrypt-vault-id prod");
    assert_eq!(header(&project), "$ANSIBLE_VAULT;1.2;AES256;prod");
    // Another id's password serves, unless ids have to match.
    assert_eq!(done(&project, "view f --vault-id x@p1 --vault-id y@p2"), "a: 1\n");
    let mut strict = command(&project, "view f --vault-id y@p2");
    strict.env("ANSIBLE_VAULT_ID_MATCH", "yes");
    assert_eq!(project.wait(strict).code, 1);
    done(&project, "rekey f --vault-id prod@p2 --new-vault-id dev@p1");
    assert_eq!((header(&project).as_str(), mode(&project, "f")), ("$ANSIBLE_VAULT;1.2;AES256;dev", 0o600));
    let mut configured = command(&project, "view f");
    configured.env("ANSIBLE_VAULT_IDENTITY_LIST", "prod@p2,dev@p1");
    assert_eq!(project.wait(configured).stdout, "a: 1\n");
    program(&project, "keys-client.sh", "#!/bin/sh\n[ \"$1\" = --vault-id ] && [ \"$2\" = dev ] && echo pw1\n");
    assert_eq!(done(&project, "view f --vault-id dev@keys-client.sh"), "a: 1\n");
    let refused = vault(&project, "view f --vault-id prod@keys-client.sh");
    assert!(refused.code == 1 && refused.stderr.contains("for the id `prod`"), "{refused:?}");
}

#[test]
fn a_failure_leaves_every_file_as_it_was() {
    let project = passwords();
    project.write("a", "a: 1\n").write("b", "b: 1\n").write("c", "c: 1\n");
    done(&project, "encrypt a --vault-password-file p1");
    done(&project, "encrypt b --vault-password-file p2");
    let before = [project.read("a"), project.read("b"), project.read("c")];
    let wrong = [
        "rekey a b --vault-password-file p1 --new-vault-password-file p2",
        "rekey a --vault-password-file p2 --new-vault-password-file p1",
        "rekey a --vault-password-file p1 --new-vault-password-file absent",
        "decrypt a b --vault-password-file p1",
        "decrypt a c --vault-password-file p1",
        "encrypt c absent --vault-password-file p1",
        "encrypt c a --vault-password-file p1",
        "decrypt a c --vault-password-file p1 --output out",
    ];
    for arguments in wrong {
        let ran = vault(&project, arguments);
        assert!(ran.code != 0 && ran.stderr.starts_with("error: "), "{arguments}: {ran:?}");
        assert_eq!([project.read("a"), project.read("b"), project.read("c")], before, "{arguments}");
    }
    let names = common::program::files(project.folder.path());
    assert!(names.iter().all(|name| !name.to_string_lossy().contains(".kubeon-")), "{names:?}");
    assert!(!project.path("out").exists());
}

#[test]
fn an_editor_s_draft_is_private_and_gone_afterwards() {
    let project = passwords();
    let editor = "#!/bin/sh\nstat -c '%a' \"$1\" \"${1%/*}\" >> seen\necho \"$1\" >> seen\necho 'more: 1' >> \"$1\"\n";
    program(&project, "editor", editor);
    program(&project, "idle", "#!/bin/sh\nexit 0\n");
    program(&project, "broken", "#!/bin/sh\necho 'half: 1' >> \"$1\"\nexit 3\n");
    let with = |editor: &str, arguments: &str| {
        let mut command = command(&project, arguments);
        command.env("EDITOR", editor);
        project.wait(command)
    };
    assert_eq!(with("./editor", "create new.yml --vault-id dev@p1").code, 5);
    assert_eq!(with("./broken", "create in/new.yml --vault-id dev@p1 --skip-tty-check").code, 1);
    assert!(!project.path("in").exists());
    assert_eq!(with("./editor", "create new.yml --vault-id dev@p1 --skip-tty-check").code, 0);
    let seen = project.read("seen");
    let [file, folder, path] = seen.lines().collect::<Vec<_>>()[..] else { panic!("{seen}") };
    assert_eq!((file, folder, path.ends_with("/new.yml")), ("600", "700", true), "{seen}");
    assert!(!std::path::Path::new(path).exists());
    set_mode(&project, "new.yml", 0o640);
    assert_eq!(with("./editor", "edit new.yml --vault-id other@p1 --encrypt-vault-id other").code, 0);
    assert!(project.read("new.yml").starts_with("$ANSIBLE_VAULT;1.2;AES256;dev\n"));
    assert_eq!(mode(&project, "new.yml"), 0o640);
    assert_eq!(done(&project, "view new.yml --vault-id dev@p1"), "more: 1\nmore: 1\n");
    let before = fs::metadata(project.path("new.yml")).expect("a file").ino();
    assert_eq!(with("./idle", "edit new.yml --vault-id dev@p1").code, 0);
    assert_eq!(fs::metadata(project.path("new.yml")).expect("a file").ino(), before);
    let text = project.read("new.yml");
    let failed = with("./broken", "edit new.yml --vault-id dev@p1");
    assert!(failed.code == 1 && failed.stderr.contains("nothing is written"), "{failed:?}");
    assert_eq!(project.read("new.yml"), text);
    let again = with("./editor", "create new.yml --vault-id dev@p1 --skip-tty-check");
    assert_eq!((again.code, again.stderr.as_str()), (1, "error: `new.yml` exists: use `edit`\n"));
    let left = fs::read_dir(project.folder.path()).expect("a folder").flatten();
    assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().contains("kubeon-run-")));
}

#[test]
fn standard_input_and_names_are_taken() {
    let project = passwords();
    let text = fed(&project, "encrypt --vault-password-file p1", "x: 1\n");
    assert!(text.starts_with("$ANSIBLE_VAULT;1.1;AES256\n"));
    assert_eq!(fed(&project, "decrypt - --vault-password-file p1", &text), "x: 1\n");
    let named = fed(&project, "encrypt_string --vault-id dev@p1 --stdin-name first -n second plain", "in");
    let heads: Vec<&str> = named.lines().filter(|line| !line.starts_with("  ")).collect();
    assert_eq!(heads, ["first: !vault |", "second: !vault |"]);
    let said = vault(&project, "encrypt_string --vault-id dev@p1 one two -n only").stderr;
    assert_eq!(
        said,
        "The number of --name options do not match the number of args.\nThe last named variable will be \"only\". The rest \
         will not have names.\n# The encrypted version of variable (\"only\", the string #1 from the command line \
         args).\n# The encrypted version of the string #2 from the command line args.)\n"
    );
    assert_eq!(vault(&project, "encrypt_string --vault-id dev@p1").code, 5);
    assert_eq!(vault(&project, "encrypt_string --vault-id dev@p1 -p -").code, 5);
}

#[test]
fn new_passwords_are_asked_for_twice() {
    let project = passwords();
    project.write("f", "a: 1\n");
    let vault = |line: &str, answers: &[(&str, &str)]| {
        let line = format!("{} vault {line}; echo \"status $?.\"", env!("CARGO_BIN_EXE_kubeon-run"));
        project.converse_with(&line, answers)
    };
    let new = "New Vault password:";
    let (code, text) = vault("encrypt f", &[(new, "*sesame"), ("Confirm New Vault password:", "*sesam")]);
    assert!(code == 1 && text.contains("the two passwords differ") && project.read("f") == "a: 1\n", "{text}");
    let (code, text) = vault("encrypt f", &[(new, "*sesame"), ("Confirm New Vault password:", "*sesame")]);
    assert!(code == 0 && text.contains("Encryption successful") && !text.contains("sesame"), "{text}");
    let questions = [
        ("Vault password:", "*sesame"),
        ("New vault password (b):", "*open"),
        ("Confirm new vault password (b):", "*open"),
    ];
    let (code, text) = vault("rekey f --new-vault-id b@prompt", &questions);
    assert!(code == 0 && text.contains("Rekey successful"), "{text}");
    let (code, text) = vault("decrypt f --vault-id b@prompt", &[("Vault password (b):", "*open")]);
    assert!(code == 0 && text.contains("Decryption successful") && project.read("f") == "a: 1\n", "{text}");
    let questions = [("Variable name (enter for no name):", "v"), ("String to encrypt (hidden):", "*hidden-text")];
    let (code, text) = vault("encrypt_string --vault-id x@p1 --prompt", &questions);
    assert!(code == 0 && text.contains("v: !vault |\n") && !text.contains("hidden-text"), "{text}");
}

#[test]
fn playbooks_read_what_was_written_and_templates_open_and_close_vaults() {
    let project = passwords();
    project.write("vars.yml", "whole: from-a-file\n").write("note", "a note\n\n").write("open", "not vaulted\n");
    done(&project, "encrypt vars.yml note --vault-id dev@p1");
    let inline = done(&project, "encrypt_string --vault-id dev@p1 in-a-value -n inline");
    let seen = project.path("seen").display().to_string();
    project.write(
        "site.yml",
        &format!(
            "- hosts: h\n  gather_facts: false\n  vars_files: vars.yml\n  vars:\n    {}\n    into: \"{{{{ 'plain' | vault('pw', \
             'salt') }}}}\"\n  tasks:\n    - copy:\n        dest: {seen}\n        content: |\n          {{{{ whole }}}} {{{{ inline }}}}\n          \
             {{{{ into.splitlines()[0] }}}} {{{{ into | unvault('pw') }}}} {{{{ 'as it is' | unvault('pw') }}}}\n          {{{{ lookup('file', 'note') }}}}|{{{{ \
             lookup('unvault', 'note') }}}}|{{{{ lookup('unvault', 'open') }}}}\n      no_log: true\n",
            inline.trim_end().replace('\n', "\n    ")
        ),
    );
    let ran = project.run(&["site.yml", "--vault-id", "dev@p1"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        project.read("seen"),
        "from-a-file in-a-value\n$ANSIBLE_VAULT;1.2;AES256;filter_default plain as it is\na note|a note\n\n|not vaulted\n"
    );
    project.write(
        "wrong.yml",
        "- hosts: h\n  gather_facts: false\n  tasks:\n    - debug: {msg: \"{{ 'x' | vault('a') | unvault('b') }}\"}\n",
    );
    let ran = project.run(&["wrong.yml"]);
    assert!(ran.code == 2 && ran.stdout.contains("Unable to decrypt"), "{ran:?}");
}

#[test]
fn the_name_of_ansible_s_program_is_enough() {
    let project = passwords();
    project.write("f", "a: 1\n");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kubeon-run"), project.path("ansible-vault")).expect("a link");
    let called = |arguments: &[&str]| {
        let mut command = Command::new(project.path("ansible-vault"));
        command.current_dir(project.folder.path()).env_clear().env("ANSIBLE_CONFIG", "/dev/null").args(arguments);
        project.wait(command)
    };
    assert_eq!(called(&["encrypt", "f", "--vault-pass-file", "p1"]).code, 0);
    assert_eq!(called(&["view", "f", "--vault-pass-file", "p1"]).stdout, "a: 1\n");
    assert_eq!((called(&["bogus"]).code, called(&["view", "--bogus"]).code), (2, 2));
    let version = called(&["--version"]).stdout;
    assert!(version.starts_with("ansible-vault [core 2.") && version.contains("kubeon-run "), "{version}");
}

/// Whoever has the password of one id can use all that the others did not close.
#[test]
fn a_value_that_no_password_opens_fails_where_it_is_used() {
    let project = passwords();
    let mine = done(&project, "encrypt_string --vault-id dev@p1 value-of-dev -n mine");
    let theirs = done(&project, "encrypt_string --vault-id prod@p2 value-of-prod -n theirs");
    project.write("group_vars/all.yml", &(mine + &theirs));
    let seen = project.path("seen").display().to_string();
    let task = |value: &str| {
        format!(
            "- hosts: h\n  gather_facts: false\n  tasks:\n    - copy: {{dest: {seen}, content: \"{{{{ {value} }}}}\"}}\n"
        )
    };
    project.write("mine.yml", &task("mine")).write("theirs.yml", &task("theirs"));
    assert_eq!(project.run(&["mine.yml", "--vault-id", "dev@p1"]).code, 0);
    assert_eq!(project.read("seen"), "value-of-dev");
    let ran = project.run(&["theirs.yml", "--vault-id", "dev@p1"]);
    assert!(ran.code == 2 && ran.stdout.contains("no vault secrets were found that could decrypt"), "{ran:?}");
    assert!(ran.stdout.contains("its id is `prod`") && ran.stdout.contains("group_vars/all.yml:"), "{ran:?}");
    assert_eq!(project.run(&["theirs.yml", "--vault-id", "dev@p1", "--vault-id", "prod@p2"]).code, 0);
    assert_eq!(project.read("seen"), "value-of-prod");
    let mut inventory = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
    inventory.current_dir(project.folder.path()).env("ANSIBLE_CONFIG", "/dev/null");
    let listed = project.wait({
        inventory.args(["inventory", "-i", "hosts", "--playbook-dir", ".", "--list", "--vault-id", "dev@p1"]);
        inventory
    });
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let theirs = &listed["_meta"]["hostvars"]["h"]["theirs"]["__ansible_vault"];
    project.write("theirs", theirs.as_str().expect("the text of a vault"));
    assert_eq!(done(&project, "view theirs --vault-id prod@p2"), "value-of-prod\n");
    let none = project.run(&["mine.yml"]);
    assert!(none.code == 2 && none.stdout.contains("Attempting to decrypt but no vault secrets found"), "{none:?}");
    // One that is damaged is told before anything runs.
    project.write("group_vars/all.yml", "bad: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  3g\n");
    let damaged = project.run(&["mine.yml", "--vault-id", "dev@p1"]);
    assert!(damaged.code == 4 && damaged.stderr.contains("Non-hexadecimal digit found"), "{damaged:?}");
}

#[test]
fn inventories_templates_and_password_files_may_be_vaulted() {
    let project = passwords();
    project
        .write("secret-hosts", "[web]\nweb1 ansible_connection=local colour=dark-green\n")
        .write("t.j2", "colour {{ colour }}\n");
    project.write("inner", "pw-inside\n").write("site.yml", "- hosts: web\n  gather_facts: false\n  tasks:\n    - template: {src: t.j2, dest: \"{{ playbook_dir }}/seen\"}\n    - debug: {var: colour}\n");
    done(&project, "encrypt inner --vault-id p1");
    done(&project, "encrypt secret-hosts t.j2 --vault-id p1 --vault-id in@inner --encrypt-vault-id in");
    let mut command =
        project.command(&["site.yml", "-i", "secret-hosts", "--vault-id", "p1", "--vault-id", "in@inner"]);
    command.stdin(Stdio::null());
    let ran = project.wait(command);
    assert_eq!((ran.code, project.read("seen").as_str()), (0, "colour dark-green\n"), "{ran:?}");
    assert!(!ran.stdout.contains("dark-green"), "{ran:?}");
}

#[test]
fn one_password_of_several_sources_is_enough() {
    let project = passwords();
    project.write("f", "a: 1\n");
    done(&project, "encrypt f --vault-id dev@p1");
    let ran = vault(&project, "view f --vault-id x@absent --vault-id dev@p1");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "a: 1\n"));
    assert!(ran.stderr.starts_with("[WARNING]: Error getting vault password file (x): "), "{ran:?}");
    assert_eq!(vault(&project, "view f --vault-id x@absent --vault-id y@absent").code, 1);
    // Beside the file of the flag, the configured one counts.
    let mut both = command(&project, "view f --vault-password-file p2");
    both.env("ANSIBLE_VAULT_PASSWORD_FILE", "p1");
    assert_eq!(project.wait(both).stdout, "a: 1\n");
}

/// Without a terminal, standard input answers.
#[test]
fn a_password_may_come_through_a_pipe() {
    let project = passwords();
    project.write("f", "a: 1\n");
    let program = env!("CARGO_BIN_EXE_kubeon-run");
    let piped = |line: &str| {
        let mut command = Command::new("setsid");
        let line = line.replace("VAULT", &format!("{program} vault"));
        command.args(["-w", "sh", "-c", &line]).current_dir(project.folder.path()).stdin(Stdio::null());
        project.wait(command)
    };
    assert_eq!(piped("printf 'sesame\nsesame\n' | VAULT encrypt f -J").code, 0);
    assert_eq!(piped("echo sesame | VAULT view f -J").stdout, "a: 1\n");
    assert_eq!(piped("echo wrong | VAULT view f -J").code, 1);
    let nobody = piped("VAULT view f -J");
    assert_eq!(
        (nobody.code, nobody.stderr.as_str()),
        (1, "error: Vault password: nobody is there to answer: no terminal\n")
    );
}

/// As in Ansible: what is closed to whoever runs it is no mistake in what was read.
#[test]
fn a_closed_file_ends_a_run_with_1() {
    let project = passwords();
    project.write("vars.yml", "a: 1\n").write("site.yml", "- hosts: h\n  vars_files: vars.yml\n  tasks: []\n");
    done(&project, "encrypt vars.yml --vault-id dev@p1");
    let ran = project.run(&["site.yml", "--vault-id", "dev@p2"]);
    assert!(ran.code == 1 && ran.stderr.contains("no vault secrets were found that could decrypt it"), "{ran:?}");
}
