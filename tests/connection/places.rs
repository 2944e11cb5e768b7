//! Where an agent is kept on a host, and what a login may be like.

use crate::*;

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
    for shell in ["/usr/bin/fish", "/usr/bin/tcsh", "/bin/csh", "/bin/dash", "/bin/busybox-sh"] {
        if shell.ends_with("busybox-sh") {
            let script = "#!/bin/sh\nexec /bin/busybox sh \"$@\"\n";
            std::fs::write(shell, script).expect("write");
            must("chmod", &["0755", shell]);
        }
        let user = User::new(shell);
        // Each prints something when it starts.
        for (file, text) in [
            (".config/fish/config.fish", "echo welcome to fish\n"),
            (".cshrc", "echo welcome to csh\n"),
            (".tcshrc", "echo welcome to tcsh; printf 'no newline'\n"),
        ] {
            let path = user.home.join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("write");
        }
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
    std::fs::write(user.home.join("bin/uname"), "#!/bin/sh\necho Linux riscv64\n").expect("write");
    must("chmod", &["0755", user.home.join("bin/uname").to_str().expect("a path")]);
    std::fs::write(user.home.join(".bashrc"), "PATH=$HOME/bin:$PATH\n").expect("write");
    let unreachable = fault(&sshd.target(&user.name));
    assert_eq!(unreachable.kind, UnreachableKind::Agent);
    assert!(unreachable.message.contains("the host's architecture is riscv64"), "{unreachable}");
}

/// None of these tests' servers has it; this one shows that it is so, and that content gets there.
#[test]
fn a_host_without_the_sftp_subsystem() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let port = sshd.port.to_string();
    let (id, known) = (sshd.path("id").display().to_string(), sshd.path("known_hosts").display().to_string());
    let known = format!("UserKnownHostsFile={known}");
    let login = format!("{}@127.0.0.1", user.name);
    let sftp = std::process::Command::new("sftp")
        .args(["-F", "none", "-b", "/dev/null", "-P", &port, "-i", &id, "-o", &known, &login])
        .output()
        .expect("sftp");
    let said = String::from_utf8_lossy(&sftp.stderr);
    assert!(!sftp.status.success() && said.contains("subsystem request failed"), "{said}");
    let mut contents = Contents::default();
    let sha256 = contents.add_bytes(vec![3; 300_000]);
    let dest = user.home.join("there");
    let copy = task("copy", json!({"content": {"sha256": sha256, "size_bytes": 300_000}, "dest": dest}));
    let result = open(&sshd.target(&user.name)).run(None, &copy, &contents, &|_| {}).expect("a result");
    assert_eq!(result["changed"], true, "{result:?}");
    assert_eq!(std::fs::metadata(&dest).expect("a file").len(), 300_000);
}

/// A mount each over folders that agents are kept in, and the folder where one is kept then.
#[test]
fn one_folder_after_another_is_tried() {
    let full = |folder: &str| format!("mount -t tmpfs -o size=64k,mode=1777 none {folder}");
    let noexec = |folder: &str| format!("mount -t tmpfs -o noexec,mode=1777 none {folder}");
    let read_only = |home: &str| format!("mount --bind {home} {home}; mount -o remount,ro,bind {home}");
    let user = User::new("/bin/bash");
    let home = user.home.display().to_string();
    let id = must("id", &["-u", &user.name]);
    let id = id.trim();
    let private = |folder: &str| format!("{folder}/kubeon-run-{id}");
    let cases = [
        (noexec("/tmp"), format!("{home}/.cache/kubeon-run")),
        (full("/tmp"), format!("{home}/.cache/kubeon-run")),
        (read_only(&home), private("/var/tmp")),
        (format!("{}; {}", read_only(&home), full("/var/tmp")), private("/tmp")),
        (format!("{}; {}; {}", read_only(&home), noexec("/var/tmp"), full("/tmp")), private("/dev/shm")),
    ];
    for (mounts, kept) in cases {
        std::fs::remove_dir_all(user.home.join(".cache")).ok();
        // Its own mounts, so that what one case keeps is not found by the next.
        let hidden = "for d in /var/tmp /dev/shm; do mount -t tmpfs -o mode=1777 none $d; done";
        let sshd = Sshd::start_hidden(&format!("{hidden}; mount -o remount,exec /dev/shm; {mounts}"));
        let mut connection = open(&sshd.target(&user.name));
        assert_eq!(user_of(&mut connection, None), user.name, "{mounts}");
        let seen = task("shell", json!({"_raw_params": "readlink /proc/$PPID/exe"}));
        let result = run(&mut connection, None, &seen).expect("a result");
        let path = result["stdout"].as_str().unwrap_or_default();
        assert!(path.starts_with(&kept), "{mounts}: {path}, not below {kept}");
    }
}

#[test]
fn a_login_whose_files_are_its_own_alone() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    std::fs::write(user.home.join(".bashrc"), "umask 077\n").expect("write");
    let sudoers = Path::new("/etc/sudoers.d").join(&user.name);
    std::fs::write(&sudoers, format!("{} ALL=(ALL) NOPASSWD: ALL\n", user.name)).expect("write");
    let other = User::new("/bin/sh");
    let mut connection = open(&sshd.target(&user.name));
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        assert_eq!(user_of(&mut connection, None), user.name);
        // Whom this login becomes can run an agent all the same.
        for name in ["root", other.name.as_str()] {
            assert_eq!(user_of(&mut connection, Some(&as_user(BecomeMethod::Sudo, name, None))), name);
        }
        run(&mut connection, None, &task("command", json!({"argv": ["touch", "made"]}))).expect("a result");
    }));
    std::fs::remove_file(&sudoers).expect("remove");
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    assert_eq!(std::fs::metadata(user.home.join("made")).expect("stat").mode() & 0o777, 0o600);
}
