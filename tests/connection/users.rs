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
    let (sshd, user, other) = (Sshd::start(""), User::new("/bin/bash"), User::new("/bin/sh"));
    user.set_password("open sesame");
    let name = &user.name;
    let _sudoers = Sudoers::new(&user, &format!("{name} ALL=(ALL) ALL\nDefaults:{name} requiretty\n"));
    let mut target = sshd.target(name);
    target.via = Via::OpenSsh;
    let root = as_user(BecomeMethod::Sudo, "root", Some("open sesame"));
    let mut connection = open(&target);
    assert_eq!(user_of(&mut connection, Some(&root)), "root");
    // A new user's agent goes through the terminal, with all bytes that mean something to terminals and to `ssh`.
    let other_user = as_user(BecomeMethod::Sudo, &other.name, Some("open sesame"));
    assert_eq!(user_of(&mut connection, Some(&other_user)), other.name);
    let parent = task("command", json!({"argv": ["sh", "-c", "echo $PPID"]}));
    let agent =
        run(&mut connection, Some(&root), &parent).expect("a result")["stdout"].as_str().expect("a pid").to_owned();
    let is_there = || std::path::Path::new("/proc").join(&agent).exists();
    assert!(is_there(), "{agent}");
    drop(connection);
    // A terminal knows no end of input: neither `ssh` nor the agent would end by itself.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(3);
    while is_there() {
        assert!(std::time::Instant::now() < end, "the agent is left behind");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
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

/// sudo, su and doas, with a password and without one, to root and to an ordinary user. The files that allow it are
/// seen by this server alone. Each also takes content that terminals and `ssh` might read orders in.
#[test]
fn every_method_to_every_user() {
    let [asked, free, other] = [User::new("/bin/bash"), User::new("/bin/bash"), User::new("/bin/sh")];
    let (own, theirs, roots) = ("own password", "their password", "root's password");
    asked.set_password(own);
    other.set_password(theirs);
    let (asked_name, free_name) = (&asked.name, &free.name);
    let rules = format!(
        "{asked_name} ALL=(ALL) ALL\nDefaults:{asked_name} timestamp_timeout=0\n{free_name} ALL=(ALL) NOPASSWD: ALL\n"
    );
    let doas = format!("permit {asked_name}\npermit nopass {free_name}\n");
    // The whole folder is its own: a file that others rename would not stay covered.
    let prepare = format!(
        "cp -a /etc $FOLDER/etc 2>/dev/null || test -s $FOLDER/etc/shadow; cd $FOLDER/etc; hash=$(printf '%s\\n' \"{roots}\" | openssl passwd -6 -stdin); \
         sed -i \"s|^root:[^:]*:|root:$hash:|\" shadow; printf '{}' >sudoers.d/test; chmod 440 sudoers.d/test; \
         printf '{}' >doas.conf; chmod 600 doas.conf; cd /; mount --bind $FOLDER/etc /etc",
        rules.replace('\n', "\\n"),
        doas.replace('\n', "\\n"),
    );
    let sshd = Sshd::start_after(&prepare, "");
    // Whatever means something to a terminal, a shell or `ssh`, and more of it than any buffer holds.
    let bytes: Vec<u8> =
        (0..500_000u32).flat_map(|number| [b'\n', b'~', (number % 251) as u8, (number / 251) as u8]).collect();
    let mut contents = Contents::default();
    let content = json!({"sha256": contents.add_bytes(bytes.clone()), "size_bytes": bytes.len()});
    for via in [Via::Ssh, Via::OpenSsh] {
        let reach = |user: &User| open(&Target { via: via.clone(), ..sshd.target(&user.name) });
        let (mut asked, mut free) = (reach(&asked), reach(&free));
        for method in [BecomeMethod::Sudo, BecomeMethod::Su, BecomeMethod::Doas] {
            for (user, password) in [("root", roots), (other.name.as_str(), theirs)] {
                let case = format!("{method:?} to {user} by {via:?}");
                // su asks for the other user's password, the others for one's own.
                let right = as_user(method, user, Some(if method == BecomeMethod::Su { password } else { own }));
                assert_eq!(user_of(&mut asked, Some(&right)), user, "{case}");
                let dest = other.home.join("content");
                let copy = task("copy", json!({"content": content, "dest": dest}));
                let copied = asked.run(Some(&right), &copy, &contents, &|_| {}).expect("a result");
                assert!(copied["changed"] == true && std::fs::read(&dest).is_ok_and(|read| read == bytes), "{case}");
                std::fs::remove_file(&dest).expect("remove");
                for (password, meaning) in
                    [(Some("guess"), "the password for it is wrong"), (None, "it wants a password")]
                {
                    let become_ = as_user(method, user, password);
                    let unreachable = refused(run(&mut asked, Some(&become_), &task("ping", json!({}))));
                    assert_eq!(unreachable.kind, UnreachableKind::Become, "{case}: {unreachable}");
                    assert!(unreachable.message.contains(meaning), "{case}: {unreachable}");
                }
                if method != BecomeMethod::Su {
                    assert_eq!(user_of(&mut free, Some(&as_user(method, user, None))), user, "{case}");
                }
            }
        }
    }
    // su asks root for nothing.
    let mut root = open(&sshd.target("root"));
    assert_eq!(user_of(&mut root, Some(&as_user(BecomeMethod::Su, &other.name, None))), other.name);
}

#[test]
fn a_method_that_hangs_is_given_up() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let script = user.home.join("hangs");
    std::fs::write(&script, "#!/bin/sh\necho 'Touch your key now'\nexec sleep 100\n").expect("write");
    must("chmod", &["0755", script.to_str().expect("a path")]);
    let mut target = sshd.target(&user.name);
    target.silence_timeout = Duration::from_secs(3);
    target.connect_timeout = Duration::from_secs(3);
    let mut connection = open(&target);
    for method in [BecomeMethod::Sudo, BecomeMethod::Su, BecomeMethod::Doas] {
        for password in [None, Some("secret")] {
            let exe = Some(script.display().to_string());
            let become_ = Become { exe, ..as_user(method, "root", password) };
            let started = Instant::now();
            let unreachable = refused(run(&mut connection, Some(&become_), &task("ping", json!({}))));
            assert!(started.elapsed() < Duration::from_secs(6), "{method:?}: {:?}", started.elapsed());
            assert!(unreachable.message.contains("Touch your key now"), "{method:?}: {unreachable}");
            // The login itself works on.
            assert_eq!(user_of(&mut connection, None), user.name);
        }
    }
}
