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
