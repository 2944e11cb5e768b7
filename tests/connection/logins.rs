//! Host keys, ways to log in, and the user's SSH configuration.

use crate::*;

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
