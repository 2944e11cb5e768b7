//! Connections to real sshd processes on this machine. They add users and mounts, so they run as root.

mod common;

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use common::sshd::{Relay, Sshd, User, must};
use kubeon_modules::Map;
use kubeon_modules::wire::Task;
use kubeon_run::connection::{Become, BecomeMethod, Connection, Contents, Target, Unreachable, UnreachableKind, Via};
use serde_json::json;

fn task(module: &str, args: serde_json::Value) -> Task {
    let args = args.as_object().expect("an object").clone();
    Task { id: 7, module: module.into(), args, ..Task::default() }
}

fn run(connection: &mut Connection, become_: Option<&Become>, task: &Task) -> Result<Map, Unreachable> {
    connection.run(become_, task, &Contents::default(), &|_| {})
}

fn open(target: &Target) -> Connection {
    Connection::open(target).unwrap_or_else(|unreachable| panic!("{unreachable}"))
}

/// Asserts that a host answers, and returns the user that its agent runs as.
fn user_of(connection: &mut Connection, become_: Option<&Become>) -> String {
    let result = run(connection, become_, &task("command", json!({"argv": ["id", "-un"]})))
        .unwrap_or_else(|unreachable| panic!("{unreachable}"));
    result["stdout"].as_str().unwrap_or_else(|| panic!("{result:?}")).to_owned()
}

fn stored(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).map(|entries| {
        entries.filter_map(Result::ok).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    });
    names.unwrap_or_default()
}

#[test]
fn one_round_trip_a_task_and_the_agent_is_kept() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let target = sshd.target(&user.name);
    let mut connection = open(&target);
    assert_eq!(run(&mut connection, None, &task("ping", json!({}))).expect("a pong")["ping"], "pong");
    let first = connection.statistics();
    assert_eq!((first.round_trips, first.frames_sent, first.frames_received), (1, 1, 1));
    assert_eq!(user_of(&mut connection, None), user.name);
    assert_eq!(connection.statistics().round_trips, 2);

    let cache = user.home.join(".cache/kubeon-run");
    let names = stored(&cache);
    assert!(names.len() == 1 && names[0].starts_with("agent-"), "{names:?}");
    let path = cache.join(&names[0]);
    let before = std::fs::metadata(&path).expect("stat").modified().expect("a time");
    assert_eq!(user_of(&mut open(&target), None), user.name);
    assert_eq!(std::fs::metadata(&path).expect("stat").modified().expect("a time"), before);
}

#[test]
fn this_machine() {
    use_own_program();
    let mut connection = open(&local());
    assert_eq!(run(&mut connection, None, &task("ping", json!({}))).expect("a pong")["ping"], "pong");
    assert_eq!(connection.statistics().round_trips, 1);
}

fn use_own_program() {
    kubeon_run::connection::use_program(env!("CARGO_BIN_EXE_kubeon-run"));
}

fn local() -> Target {
    Target {
        host: "localhost".into(),
        address: "localhost".into(),
        port: None,
        user: None,
        via: Via::Local,
        password: None,
        private_key_file: None,
        ssh_args: Vec::new(),
        host_key_checking: true,
        connect_timeout: Duration::from_secs(20),
        silence_timeout: Duration::from_secs(20),
        known_hosts: Vec::new(),
    }
}

fn as_user(method: BecomeMethod, user: &str, password: Option<&str>) -> Become {
    Become { method, user: user.into(), password: password.map(str::to_owned), exe: None, flags: None }
}

fn refused(result: Result<Map, Unreachable>) -> Unreachable {
    match result {
        Ok(result) => panic!("not refused: {result:?}"),
        Err(unreachable) => unreachable,
    }
}

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
fn an_idle_session_answers_its_host() {
    let (sshd, user) = (Sshd::start("ClientAliveInterval 1\nClientAliveCountMax 2"), User::new("/bin/bash"));
    let mut connection = open(&sshd.target(&user.name));
    assert_eq!(user_of(&mut connection, None), user.name);
    // The host gives up on clients that do not answer for three seconds.
    std::thread::sleep(Duration::from_secs(7));
    assert_eq!(user_of(&mut connection, None), user.name);
    assert_eq!(connection.statistics().agents_started, 1);
}

#[test]
fn a_frozen_host_is_unreachable_in_time_while_a_raw_command_runs() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let mut target = sshd.target(&user.name);
    target.silence_timeout = Duration::from_secs(7);
    let mut connection = open(&target);
    // The host lives, so a quiet command may take longer than that.
    assert_eq!(connection.raw(None, "sleep 10", None, None).expect("an output").rc, 0);
    let output = connection.raw(None, "sleep 30", None, Some(Duration::from_secs(1))).expect("an output");
    assert_eq!(output.rc, 124);
    // The process of the session freezes itself: the shell's parent.
    let started = Instant::now();
    let unreachable = connection.raw(None, "kill -STOP $PPID; sleep 30", None, None).expect_err("silence");
    assert_eq!(unreachable.kind, UnreachableKind::Silent);
    assert!(started.elapsed() < Duration::from_secs(11), "{:?}", started.elapsed());
    drop(connection);
    assert!(started.elapsed() < Duration::from_secs(12), "{:?}", started.elapsed());
    must("pkill", &["-KILL", "-u", &user.name]);
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

fn fault(target: &Target) -> Unreachable {
    let connection = Connection::open(target);
    let result = connection.and_then(|mut connection| run(&mut connection, None, &task("ping", json!({}))));
    refused(result)
}

#[test]
fn a_login_that_talks() {
    let (sshd, user) = (Sshd::start("PrintMotd yes"), User::new("/bin/bash"));
    std::fs::write(user.home.join(".bashrc"), "echo welcome; printf 'kubeon: need\\n'; echo oops >&2; umask 077\n")
        .expect("write");
    let mut connection = open(&sshd.target(&user.name));
    assert_eq!(user_of(&mut connection, None), user.name);
    let output = connection.raw(None, "echo out; echo err >&2; exit 3", None, None).expect("an output");
    assert!(output.rc == 3 && output.stdout.ends_with("out\n") && output.stderr.ends_with("err\n"), "{output:?}");
}

#[test]
fn login_shells_of_other_languages() {
    let sshd = Sshd::start("");
    for shell in ["/usr/bin/fish", "/usr/bin/tcsh", "/bin/dash", "/bin/busybox-sh"] {
        if shell.ends_with("busybox-sh") {
            let script = "#!/bin/sh\nexec /bin/busybox sh \"$@\"\n";
            std::fs::write(shell, script).expect("write");
            must("chmod", &["0755", shell]);
        }
        let user = User::new(shell);
        assert_eq!(user_of(&mut open(&sshd.target(&user.name)), None), user.name, "{shell}");
        assert_eq!(user_of(&mut open(&sshd.target(&user.name)), None), user.name, "{shell}");
        assert_eq!(stored(&user.home.join(".cache/kubeon-run")).len(), 1, "{shell}");
    }
    std::fs::remove_file("/bin/busybox-sh").expect("remove");
}

#[test]
fn a_login_without_a_shell() {
    let (sshd, user) = (Sshd::start(""), User::new("/usr/sbin/nologin"));
    let unreachable = fault(&sshd.target(&user.name));
    assert_eq!(unreachable.kind, UnreachableKind::Agent);
    assert!(unreachable.message.contains("This account is currently not available"), "{unreachable}");
}

#[test]
fn a_home_that_takes_nothing() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    must("chown", &["root:root", user.home.to_str().expect("a path")]);
    must("chmod", &["0555", user.home.to_str().expect("a path")]);
    let mut connection = open(&sshd.target(&user.name));
    assert_eq!(user_of(&mut connection, None), user.name);
    let id = must("id", &["-u", &user.name]);
    assert_eq!(stored(&Path::new("/var/tmp").join(format!("kubeon-run-{}", id.trim()))).len(), 1);
}

const EVERYWHERE: &str = "for d in /home /root /tmp /var/tmp /dev/shm /run/user; do mkdir -p $d; mount -t tmpfs -o";

#[test]
fn folders_where_nothing_runs() {
    // The folder of this very test is under the temporary one: only the others are covered.
    let user = User::new("/bin/bash");
    let home = user.home.display();
    let sshd = Sshd::start_after(&format!("mount -t tmpfs -o noexec,mode=1777 none {home}"), "");
    let mut connection = open(&sshd.target(&user.name));
    assert_eq!(user_of(&mut connection, None), user.name);
    let id = must("id", &["-u", &user.name]);
    assert_eq!(stored(&Path::new("/var/tmp").join(format!("kubeon-run-{}", id.trim()))).len(), 1);
}

/// Starts an sshd that sees every folder for agents mounted anew with these options.
fn sshd_with_mounts(options: &str) -> (Sshd, User) {
    let user = User::new("/bin/bash");
    let mounts = format!("{EVERYWHERE} {options} none $d; done");
    // Its own files must stay in sight.
    (Sshd::start_hidden(&mounts), user)
}

#[test]
fn no_folder_where_anything_runs() {
    let (sshd, user) = sshd_with_mounts("noexec,mode=1777");
    let unreachable = fault(&sshd.target(&user.name));
    assert_eq!(unreachable.kind, UnreachableKind::Agent);
    for part in ["the agent can be kept in no folder of the host", "/var/tmp/kubeon-run-", "Permission denied"] {
        assert!(unreachable.message.contains(part), "{unreachable}");
    }
}

#[test]
fn a_full_disk() {
    let (sshd, user) = sshd_with_mounts("size=64k,mode=1777");
    let unreachable = fault(&sshd.target(&user.name));
    assert_eq!(unreachable.kind, UnreachableKind::Agent);
    assert!(unreachable.message.contains("No space left on device"), "{unreachable}");
}

/// Replaces a file, as its old content may be running.
fn put(path: &Path, bytes: &[u8]) {
    std::fs::remove_file(path).expect("remove");
    std::fs::write(path, bytes).expect("write");
    must("chmod", &["0755", path.to_str().expect("a path")]);
    let owner = std::fs::metadata(path.parent().expect("a folder")).expect("stat").uid();
    std::os::unix::fs::chown(path, Some(owner), None).expect("chown");
}

#[test]
fn a_stored_agent_that_is_broken_is_replaced() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let target = sshd.target(&user.name);
    assert_eq!(user_of(&mut open(&target), None), user.name);
    let cache = user.home.join(".cache/kubeon-run");
    let path = cache.join(&stored(&cache)[0]);
    let size = std::fs::metadata(&path).expect("stat").len();
    put(&path, b"short");
    assert_eq!(user_of(&mut open(&target), None), user.name);
    assert_eq!(std::fs::metadata(&path).expect("stat").len(), size);
    // As long as it should be, and yet no program.
    put(&path, &vec![b'x'; size as usize]);
    assert_eq!(user_of(&mut open(&target), None), user.name);
    assert_eq!(stored(&cache).len(), 1);
}

#[test]
fn a_host_without_gzip() {
    let user = User::new("/bin/bash");
    let sshd = Sshd::start_after("mount --bind /dev/null /usr/bin/gzip; mount --bind /dev/null /bin/gzip", "");
    assert_eq!(user_of(&mut open(&sshd.target(&user.name)), None), user.name);
}

#[test]
fn an_architecture_without_an_agent() {
    let user = User::new("/bin/bash");
    let sshd = Sshd::start("");
    std::fs::create_dir(user.home.join("bin")).expect("a folder");
    std::fs::write(user.home.join("bin/uname"), "#!/bin/sh\n[ \"$1\" = -s ] && echo Linux || echo riscv64\n")
        .expect("write");
    must("chmod", &["0755", user.home.join("bin/uname").to_str().expect("a path")]);
    std::fs::write(user.home.join(".bashrc"), "PATH=$HOME/bin:$PATH\n").expect("write");
    let unreachable = fault(&sshd.target(&user.name));
    assert_eq!(unreachable.kind, UnreachableKind::Agent);
    assert!(unreachable.message.contains("the host's architecture is riscv64"), "{unreachable}");
}

#[test]
fn host_keys() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let mut target = sshd.target(&user.name);
    let known = sshd.path("known_hosts");
    let fingerprint = must("ssh-keygen", &["-l", "-f", sshd.path("host.pub").to_str().expect("a path")]);
    let fingerprint = fingerprint.split(' ').nth(1).expect("a fingerprint").to_owned();
    let good = std::fs::read_to_string(&known).expect("read");

    // Unknown: the message shows what to compare, and the line that it gives is the one that is right.
    std::fs::write(&known, "").expect("write");
    let unreachable = fault(&target);
    assert_eq!(unreachable.kind, UnreachableKind::HostKey);
    assert!(unreachable.message.contains(&fingerprint) && unreachable.message.contains("ssh-ed25519"), "{unreachable}");
    let line = unreachable.message.split("`echo '").nth(1).and_then(|rest| rest.split('\'').next()).expect("a line");
    std::fs::write(&known, format!("{line}\n")).expect("write");
    assert_eq!(user_of(&mut open(&target), None), user.name);

    // Hashed names.
    must("ssh-keygen", &["-H", "-f", known.to_str().expect("a path")]);
    assert!(std::fs::read_to_string(&known).expect("read").starts_with("|1|"));
    assert_eq!(user_of(&mut open(&target), None), user.name);

    // Changed.
    must("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", sshd.path("other").to_str().expect("a path")]);
    let other = std::fs::read_to_string(sshd.path("other.pub")).expect("read");
    std::fs::write(&known, format!("# a comment\n[127.0.0.1]:{} {other}", sshd.port)).expect("write");
    let unreachable = fault(&target);
    assert_eq!(unreachable.kind, UnreachableKind::HostKey);
    let place = format!("{}:2", known.display());
    assert!(unreachable.message.contains("has changed") && unreachable.message.contains(&place), "{unreachable}");
    target.host_key_checking = false;
    assert_eq!(user_of(&mut open(&target), None), user.name);
    target.host_key_checking = true;

    // Revoked, though also listed.
    std::fs::write(&known, format!("{good}@revoked * {}", good.split_once(' ').expect("a key").1)).expect("write");
    assert!(fault(&target).message.contains("is revoked by"));

    // New ones are taken when the user says so, and kept.
    std::fs::write(&known, "").expect("write");
    target.ssh_args.extend(["-o".into(), "StrictHostKeyChecking=accept-new".into()]);
    assert_eq!(user_of(&mut open(&target), None), user.name);
    let kept = std::fs::read_to_string(&known).expect("read");
    assert!(good.starts_with(kept.trim_end()), "{kept}");
}

#[test]
fn the_known_one_of_several_host_keys_is_asked_for() {
    let user = User::new("/bin/bash");
    let keys = common::sshd::Folder::new();
    let rsa = keys.path().join("rsa");
    must("ssh-keygen", &["-q", "-t", "rsa", "-N", "", "-f", rsa.to_str().expect("a path")]);
    let sshd = Sshd::start(&format!("HostKey {}", rsa.display()));
    let line = std::fs::read_to_string(keys.path().join("rsa.pub")).expect("read");
    std::fs::write(sshd.path("known_hosts"), format!("[127.0.0.1]:{} {line}", sshd.port)).expect("write");
    assert_eq!(user_of(&mut open(&sshd.target(&user.name)), None), user.name);
}

#[test]
fn ways_to_log_in() {
    let user = User::new("/bin/bash");
    user.set_password("open sesame");
    let sshd = Sshd::start("UsePAM yes\nKbdInteractiveAuthentication yes");
    let path = |name: &str| sshd.path(name).display().to_string();
    let mut target = sshd.target(&user.name);

    // An encrypted key, its passphrase right and wrong.
    for kind in ["ed25519", "rsa", "ecdsa"] {
        must("ssh-keygen", &["-q", "-t", kind, "-N", "secret", "-f", &path(kind)]);
        let public = std::fs::read_to_string(path(&format!("{kind}.pub"))).expect("read");
        std::fs::write(path("authorized_keys"), public).expect("write");
        target.private_key_file = Some(sshd.path(kind));
        target.password = Some("secret".into());
        assert_eq!(user_of(&mut open(&target), None), user.name, "{kind}");
        target.password = Some("guess".into());
        let unreachable = fault(&target);
        assert_eq!(unreachable.kind, UnreachableKind::Authentication);
        target.password = None;
        assert!(fault(&target).message.contains("it is encrypted; add it to an SSH agent"));
    }

    // An agent, named as the configuration would.
    let agent = must("ssh-agent", &["-s", "-a", &path("agent")]);
    must("sh", &["-c", &format!("SSH_AUTH_SOCK={} ssh-add -q {}", path("agent"), path("id"))]);
    std::fs::copy(path("id.pub"), path("authorized_keys")).expect("copy");
    target.private_key_file = None;
    target.ssh_args.extend(["-o".into(), format!("IdentityAgent={}", path("agent"))]);
    let outcome = std::panic::catch_unwind(|| user_of(&mut open(&target), None));
    let pid = agent.split("SSH_AGENT_PID=").nth(1).and_then(|rest| rest.split(';').next()).expect("a pid");
    must("kill", &[pid]);
    assert_eq!(outcome.expect("a login"), user.name);

    // Passwords, asked for both ways.
    target.ssh_args = sshd.target(&user.name).ssh_args;
    target.ssh_args.push("-oIdentityAgent=none".into());
    target.private_key_file = Some(sshd.path("none"));
    target.password = Some("open sesame".into());
    for method in ["password", "keyboard-interactive"] {
        let mut target = target.clone();
        target.ssh_args.push(format!("-oPreferredAuthentications={method}"));
        let mut connection = Connection::open(&target).unwrap_or_else(|error| panic!("{error} {}", sshd.log()));
        assert_eq!(user_of(&mut connection, None), user.name, "{method}");
    }
    target.password = None;
    let unreachable = fault(&target);
    assert!(unreachable.message.contains("--ask-pass"), "{unreachable}");
}

fn pid_of_agent(connection: &mut Connection) -> String {
    let result =
        run(connection, None, &task("command", json!({"argv": ["sh", "-c", "echo $PPID"]}))).expect("a result");
    result["stdout"].as_str().expect("a pid").to_owned()
}

#[test]
fn a_frozen_agent_is_unreachable_in_time() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let mut target = sshd.target(&user.name);
    target.silence_timeout = Duration::from_secs(5);
    let mut connection = open(&target);
    let pid = pid_of_agent(&mut connection);
    must("kill", &["-STOP", &pid]);
    let started = Instant::now();
    let unreachable = refused(run(&mut connection, None, &task("ping", json!({}))));
    must("kill", &["-KILL", &pid]);
    assert_eq!(unreachable.kind, UnreachableKind::Silent);
    assert!(unreachable.message.contains("no sign of life for 5 s while it ran `ping`"), "{unreachable}");
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    drop(connection);
    assert!(started.elapsed() < Duration::from_secs(9), "{:?}", started.elapsed());
}

#[test]
fn a_task_that_says_nothing_for_long_is_not_silent() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let mut target = sshd.target(&user.name);
    target.silence_timeout = Duration::from_secs(5);
    let mut connection = open(&target);
    let result = run(&mut connection, None, &task("command", json!({"argv": ["sleep", "8"]}))).expect("a result");
    assert_eq!(result["rc"], 0);
    assert!(connection.statistics().signs_of_life >= 2);
    assert_eq!(connection.statistics().round_trips, 1);
}

#[test]
fn a_killed_agent_is_lost_and_the_next_task_starts_another() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let mut connection = open(&sshd.target(&user.name));
    let kill = task("command", json!({"argv": ["sh", "-c", "kill -KILL $PPID"]}));
    let unreachable = refused(run(&mut connection, None, &kill));
    assert_eq!(unreachable.kind, UnreachableKind::Lost);
    assert!(unreachable.message.contains("its agent was ended by signal KILL"), "{unreachable}");
    assert_eq!(user_of(&mut connection, None), user.name);
}

#[test]
fn content_goes_out_only_where_it_differs() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let mut connection = open(&sshd.target(&user.name));
    let mut contents = Contents::default();
    let bytes: Vec<u8> = (0..3_000_000u32).map(|number| (number * 31 % 251) as u8).collect();
    let sha256 = contents.add_bytes(bytes.clone());
    let dest = user.home.join("big");
    let copy = task("copy", json!({"content": {"sha256": sha256, "size_bytes": bytes.len()}, "dest": dest}));
    let result = connection.run(None, &copy, &contents, &|_| {}).expect("a result");
    assert!(result["changed"] == true && std::fs::read(&dest).expect("read") == bytes, "{result:?}");
    let before = connection.statistics();
    assert_eq!(before.round_trips, 2);
    let result = connection.run(None, &copy, &contents, &|_| {}).expect("a result");
    assert_eq!(result["changed"], false);
    let after = connection.statistics();
    assert!(after.round_trips == 3 && after.bytes_sent - before.bytes_sent < 1000, "{after:?}");
    // Missing here: the task fails, the connection stays.
    std::fs::remove_file(&dest).expect("remove");
    let result = connection.run(None, &copy, &Contents::default(), &|_| {}).expect("a result");
    assert_eq!(result["failed"], true);
    assert_eq!(user_of(&mut connection, None), user.name);
}

#[test]
fn a_line_cut_in_the_midst_of_content() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    for silent in [true, false] {
        let relay = Relay::to(sshd.port);
        let mut target = sshd.target(&user.name);
        target.port = Some(relay.port);
        target.host_key_checking = false;
        target.silence_timeout = Duration::from_secs(4);
        let mut connection = open(&target);
        assert_eq!(user_of(&mut connection, None), user.name);
        let mut contents = Contents::default();
        let sha256 = contents.add_bytes(vec![7; 16 << 20]);
        let dest = user.home.join("cut");
        let copy = task("copy", json!({"content": {"sha256": sha256, "size_bytes": 16 << 20}, "dest": dest}));
        let started = Instant::now();
        if silent {
            relay.go_silent_after(3 << 20);
        } else {
            relay.close_after(3 << 20);
        }
        let unreachable = refused(connection.run(None, &copy, &contents, &|_| {}));
        let kind = if silent { UnreachableKind::Silent } else { UnreachableKind::Lost };
        assert_eq!(unreachable.kind, kind, "{unreachable}");
        assert!(started.elapsed() < Duration::from_secs(12), "{:?}", started.elapsed());
        assert!(!dest.exists());
    }
}

#[test]
fn a_port_where_nobody_answers() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut target = local();
    target.via = Via::Ssh;
    target.address = "127.0.0.1".into();
    target.port = Some(listener.local_addr().expect("an address").port());
    target.connect_timeout = Duration::from_secs(2);
    let started = Instant::now();
    let unreachable = fault(&target);
    assert_eq!(unreachable.kind, UnreachableKind::Connect);
    assert!(unreachable.message.contains("no answer within 2 s"), "{unreachable}");
    assert!(started.elapsed() < Duration::from_secs(4));
    drop(listener);
    assert_eq!(fault(&target).kind, UnreachableKind::Connect);
    target.address = "no-such-host.invalid".into();
    assert_eq!(fault(&target).kind, UnreachableKind::Resolve);
}

#[test]
fn the_users_ssh_configuration() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let config = sshd.path("client");
    let text = format!(
        "Host other*\n  User nobody\nHost gpu-*\n  HostName 127.0.0.1\n  Port {}\n  User {}\n  IdentityFile {}\n  UserKnownHostsFile {}\n",
        sshd.port,
        user.name,
        sshd.path("id").display(),
        sshd.path("known_hosts").display(),
    );
    std::fs::write(&config, &text).expect("write");
    let mut target = local();
    target.via = Via::Ssh;
    target.address = "gpu-1".into();
    target.ssh_args = vec!["-F".into(), config.display().to_string()];
    for extra in
        ["", "  ProxyCommand bash -c 'exec 3<>/dev/tcp/%h/%p; cat <&3 & exec cat >&3'\n", "  ForwardAgent yes\n"]
    {
        std::fs::write(&config, format!("{text}{extra}")).expect("write");
        // Each file is read once in a process.
        let copy = sshd.path(&format!("client-{}", extra.len()));
        std::fs::copy(&config, &copy).expect("copy");
        target.ssh_args[1] = copy.display().to_string();
        assert_eq!(user_of(&mut open(&target), None), user.name, "{extra}");
    }
}

#[test]
fn the_systems_ssh() {
    use_own_program();
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    user.set_password("open sesame");
    let mut target = sshd.target(&user.name);
    target.via = Via::OpenSsh;
    let mut connection = open(&target);
    assert_eq!(user_of(&mut connection, None), user.name);
    assert_eq!(user_of(&mut open(&target), None), user.name);
    let output = connection.raw(None, "cat; echo err >&2; exit 3", Some(b"in"), None).expect("an output");
    assert_eq!((output.rc, output.stdout.as_str(), output.stderr.as_str()), (3, "in", "err\n"));

    // A jump host, as an argument, without being told which program to take.
    let second = Sshd::start("");
    std::fs::copy(sshd.path("authorized_keys"), second.path("authorized_keys")).expect("copy");
    let both = [&sshd, &second].map(|sshd| std::fs::read_to_string(sshd.path("known_hosts")).expect("read")).concat();
    std::fs::write(sshd.path("both"), both).expect("write");
    let mut jump = sshd.target(&user.name);
    jump.known_hosts = Vec::new();
    let config = sshd.path("jump");
    let text = format!(
        "Host *\n  IdentityFile {}\n  UserKnownHostsFile {}\n",
        sshd.path("id").display(),
        sshd.path("both").display()
    );
    std::fs::write(&config, text).expect("write");
    jump.ssh_args = vec!["-F".into(), config.display().to_string()];
    jump.ssh_args.extend(["-J".into(), format!("{}@127.0.0.1:{}", user.name, second.port)]);
    assert_eq!(user_of(&mut open(&jump), None), user.name);

    // A password, and a wrong one.
    target.private_key_file = Some(sshd.path("none"));
    target.ssh_args.extend(["-o".into(), "IdentityAgent=none".into()]);
    target.password = Some("open sesame".into());
    assert_eq!(user_of(&mut open(&target), None), user.name);
    target.password = Some("guess".into());
    let unreachable = fault(&target);
    assert_eq!(unreachable.kind, UnreachableKind::Authentication, "{unreachable}");
    std::fs::write(sshd.path("known_hosts"), "").expect("write");
    assert_eq!(fault(&target).kind, UnreachableKind::HostKey);
    drop(sshd);
    assert_eq!(fault(&target).kind, UnreachableKind::Connect);
}

#[test]
fn commands_that_pass_streams_on() {
    use_own_program();
    let user = User::new("/bin/bash");
    let mut target = local();
    target.via = Via::Command(vec![
        "setpriv".into(),
        "--reuid".into(),
        user.name.clone(),
        "--clear-groups".into(),
        "env".into(),
        format!("HOME={}", user.home.display()),
    ]);
    assert_eq!(user_of(&mut open(&target), None), user.name);
    assert_eq!(stored(&user.home.join(".cache/kubeon-run")).len(), 1);
    target.via = Via::Command(vec!["/no/such/program".into()]);
    assert_eq!(fault(&target).kind, UnreachableKind::Connect);
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
