//! Becoming other users.

use crate::*;

/// Lines of sudo's configuration, gone with the value.
struct Sudoers(std::path::PathBuf);

impl Sudoers {
    fn new(user: &User, text: &str) -> Sudoers {
        let path = std::path::PathBuf::from("/etc/sudoers.d").join(&user.name);
        std::fs::write(&path, text).expect("write");
        must("chmod", &["0440", path.to_str().expect("a path")]);
        Sudoers(path)
    }
}

impl Drop for Sudoers {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

#[test]
fn sudo_without_a_password() {
    let (sshd, user, other) = (Sshd::start(""), User::new("/bin/bash"), User::new("/bin/sh"));
    let name = &user.name;
    let _sudoers = Sudoers::new(&user, &format!("{name} ALL=(ALL) NOPASSWD: ALL\nDefaults:{name} use_pty\n"));
    let mut connection = open(&sshd.target(name));
    assert_eq!(user_of(&mut connection, Some(&as_user(BecomeMethod::Sudo, "root", None))), "root");
    // One user's folder is closed to another; each has an agent of its own.
    assert_eq!(user_of(&mut connection, Some(&as_user(BecomeMethod::Sudo, &other.name, None))), other.name);
    assert_eq!(user_of(&mut connection, Some(&as_user(BecomeMethod::Sudo, name, None))), *name);
    assert_eq!(user_of(&mut connection, Some(&as_user(BecomeMethod::Sudo, "root", Some("unused")))), "root");
    assert_eq!(connection.statistics().agents_started, 4);
    let output =
        connection.raw(Some(&as_user(BecomeMethod::Sudo, "root", None)), "id -un\necho \"it's\" >&2", None, None);
    let output = output.expect("an output");
    assert_eq!((output.rc, output.stdout.as_str(), output.stderr.as_str()), (0, "root\n", "it's\n"));
}

#[test]
fn sudo_with_a_password() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    user.set_password("open sesame");
    let name = &user.name;
    let _sudoers = Sudoers::new(&user, &format!("{name} ALL=(ALL) ALL\nDefaults:{name} timestamp_timeout=0\n"));
    let mut connection = open(&sshd.target(name));
    let right = as_user(BecomeMethod::Sudo, "root", Some("open sesame"));
    assert_eq!(user_of(&mut connection, Some(&right)), "root");
    let output = connection.raw(Some(&right), "cat; id -un", Some(b"in\n"), None).expect("an output");
    assert_eq!((output.rc, output.stdout.as_str()), (0, "in\nroot\n"));

    let wrong = as_user(BecomeMethod::Sudo, "root", Some("guess"));
    let unreachable = refused(run(&mut connection, Some(&wrong), &task("ping", json!({}))));
    assert_eq!(unreachable.kind, UnreachableKind::Become);
    assert!(unreachable.message.contains("the password for it is wrong"), "{unreachable}");
    let none = as_user(BecomeMethod::Sudo, "root", None);
    let unreachable = refused(run(&mut connection, Some(&none), &task("ping", json!({}))));
    assert_eq!(unreachable.kind, UnreachableKind::Become);
    assert!(unreachable.message.contains("it wants a password"), "{unreachable}");
    // The connection is as good as before.
    assert_eq!(user_of(&mut connection, Some(&right)), "root");
}

#[test]
fn sudo_that_insists_on_a_terminal_gets_one() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    user.set_password("open sesame");
    let name = &user.name;
    let _sudoers = Sudoers::new(&user, &format!("{name} ALL=(ALL) ALL\nDefaults:{name} requiretty\n"));
    let mut connection = open(&sshd.target(name));
    let root = as_user(BecomeMethod::Sudo, "root", Some("open sesame"));
    assert_eq!(user_of(&mut connection, Some(&root)), "root");
    // Every byte passes.
    let text: String = (0..=0x2ff).filter_map(char::from_u32).collect();
    let cat =
        task("command", json!({"argv": ["cat"], "stdin": text, "stdin_add_newline": false, "strip_empty_ends": false}));
    assert_eq!(run(&mut connection, Some(&root), &cat).expect("a result")["stdout"].as_str(), Some(text.as_str()));
}

#[test]
fn the_systems_ssh_gives_a_terminal_too() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    user.set_password("open sesame");
    let name = &user.name;
    let _sudoers = Sudoers::new(&user, &format!("{name} ALL=(ALL) ALL\nDefaults:{name} requiretty\n"));
    let mut target = sshd.target(name);
    target.via = Via::OpenSsh;
    let root = as_user(BecomeMethod::Sudo, "root", Some("open sesame"));
    assert_eq!(user_of(&mut open(&target), Some(&root)), "root");
}

#[test]
fn a_host_that_allows_one_channel() {
    let (sshd, user) = (Sshd::start("MaxSessions 1"), User::new("/bin/bash"));
    let _sudoers = Sudoers::new(&user, &format!("{} ALL=(ALL) NOPASSWD: ALL\n", user.name));
    let mut connection = open(&sshd.target(&user.name));
    let root = as_user(BecomeMethod::Sudo, "root", None);
    for _ in 0..2 {
        assert_eq!(user_of(&mut connection, None), user.name);
        assert_eq!(user_of(&mut connection, Some(&root)), "root");
    }
}

#[test]
fn files_get_the_modes_of_the_users_own_umask() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    // Both where the agent was just received and where it was there.
    for name in ["first", "second"] {
        let touch = task("command", json!({"argv": ["touch", name]}));
        run(&mut open(&sshd.target(&user.name)), None, &touch).expect("a result");
        let mode = std::fs::metadata(user.home.join(name)).expect("stat").mode() & 0o777;
        assert_eq!(mode, 0o644, "{name}");
    }
}

#[test]
fn sudo_refused() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    user.set_password("open sesame");
    let mut connection = open(&sshd.target(&user.name));
    let root = as_user(BecomeMethod::Sudo, "root", Some("open sesame"));
    let unreachable = refused(run(&mut connection, Some(&root), &task("ping", json!({}))));
    assert_eq!(unreachable.kind, UnreachableKind::Become);
    let want = format!("`{}` may not become `root` there", user.name);
    assert!(unreachable.message.contains(&want), "{unreachable}");
    let gone = Become { exe: Some("/usr/bin/no-sudo".into()), ..root };
    let unreachable = refused(run(&mut connection, Some(&gone), &task("ping", json!({}))));
    assert!(unreachable.message.contains("`/usr/bin/no-sudo` is not installed there"), "{unreachable}");
}

#[test]
fn su_with_and_without_a_password() {
    let (sshd, user, other) = (Sshd::start(""), User::new("/bin/bash"), User::new("/usr/bin/fish"));
    other.set_password("open sesame");
    let mut connection = open(&sshd.target(&user.name));
    let right = as_user(BecomeMethod::Su, &other.name, Some("open sesame"));
    assert_eq!(user_of(&mut connection, Some(&right)), other.name);
    let wrong = as_user(BecomeMethod::Su, &other.name, Some("guess"));
    let unreachable = refused(run(&mut connection, Some(&wrong), &task("ping", json!({}))));
    assert_eq!(unreachable.kind, UnreachableKind::Become);
    assert!(unreachable.message.contains("the password for it is wrong"), "{unreachable}");
    let mut root = open(&sshd.target("root"));
    assert_eq!(user_of(&mut root, Some(&as_user(BecomeMethod::Su, &other.name, None))), other.name);
}

#[test]
fn doas_with_and_without_a_password() {
    let (sshd, user, other) = (Sshd::start(""), User::new("/bin/bash"), User::new("/bin/sh"));
    user.set_password("open sesame");
    let config = Path::new("/etc/doas.conf");
    let before = std::fs::read(config).ok();
    let name = &user.name;
    std::fs::write(config, format!("permit {name} as root\npermit nopass {name} as {}\n", other.name)).expect("write");
    let mut connection = open(&sshd.target(name));
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        assert_eq!(user_of(&mut connection, Some(&as_user(BecomeMethod::Doas, &other.name, None))), other.name);
        assert_eq!(user_of(&mut connection, Some(&as_user(BecomeMethod::Doas, "root", Some("open sesame")))), "root");
        let wrong = as_user(BecomeMethod::Doas, "root", Some("guess"));
        let unreachable = refused(run(&mut connection, Some(&wrong), &task("ping", json!({}))));
        assert!(unreachable.message.contains("the password for it is wrong"), "{unreachable}");
    }));
    match before {
        Some(bytes) => std::fs::write(config, bytes).expect("write"),
        None => std::fs::remove_file(config).expect("remove"),
    }
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[test]
fn this_machine_as_other_users() {
    use_own_program();
    let user = User::new("/bin/bash");
    let mut connection = open(&local());
    assert_eq!(user_of(&mut connection, Some(&as_user(BecomeMethod::Sudo, &user.name, None))), user.name);
    assert_eq!(user_of(&mut connection, Some(&as_user(BecomeMethod::Su, &user.name, None))), user.name);
    assert_eq!(user_of(&mut connection, Some(&as_user(BecomeMethod::Sudo, "root", None))), "root");

    // On a terminal where sudo wants one, from a user that may not run this program.
    let _sudoers = Sudoers::new(&user, "Defaults:root requiretty\n");
    let mut connection = open(&local());
    assert_eq!(user_of(&mut connection, Some(&as_user(BecomeMethod::Sudo, &user.name, None))), user.name);
}
