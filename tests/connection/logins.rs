//! Host keys, ways to log in, and the user's SSH configuration.

use crate::*;

/// Runs the commands that a message gives, between backticks.
fn do_as_told(message: &str) {
    let commands: Vec<&str> =
        message.split('`').filter(|text| ["echo ", "ssh-keygen "].iter().any(|name| text.starts_with(name))).collect();
    assert!(!commands.is_empty(), "{message}");
    commands.iter().for_each(|command| drop(must("sh", &["-c", command])));
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
    do_as_told(&unreachable.message);
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
    do_as_told(&unreachable.message);
    assert_eq!(user_of(&mut open(&target), None), user.name);
    assert!(!std::fs::read_to_string(&known).expect("read").contains(other.trim_end()));

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

/// Whoever holds the keys of an agent may be asked for a touch or a passphrase, and not be there.
#[test]
fn an_ssh_agent_that_does_not_answer() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let path = |name: &str| sshd.path(name).display().to_string();
    let agent = must("ssh-agent", &["-s", "-a", &path("agent")]);
    let pid = agent.split("SSH_AGENT_PID=").nth(1).and_then(|rest| rest.split(';').next()).expect("a pid");
    must("sh", &["-c", &format!("SSH_AUTH_SOCK={} ssh-add -q {}", path("agent"), path("id"))]);
    must("kill", &["-STOP", pid]);
    let mut target = sshd.target(&user.name);
    target.connect_timeout = Duration::from_secs(3);
    target.private_key_file = None;
    target.ssh_args.extend(["-o".into(), format!("IdentityAgent={}", path("agent"))]);
    let started = Instant::now();
    let unreachable = fault(&target);
    let took = started.elapsed();
    // A key file is tried all the same.
    target.connect_timeout = Duration::from_secs(9);
    target.private_key_file = Some(sshd.path("id"));
    let tried = Connection::open(&target);
    must("kill", &["-KILL", pid]);
    assert_eq!(unreachable.kind, UnreachableKind::Authentication);
    assert!(unreachable.message.contains("no answer within 1"), "{unreachable}");
    assert!(took < Duration::from_secs(6), "{took:?}");
    assert_eq!(user_of(&mut tried.unwrap_or_else(|unreachable| panic!("{unreachable}")), None), user.name);
}

/// Signs a public key, for a host or a user.
fn certify(authority: &str, public: &str, options: &[&str]) {
    let mut arguments = vec!["-q", "-s", authority, "-I", "test"];
    arguments.extend(options);
    arguments.push(public);
    must("ssh-keygen", &arguments);
}

#[test]
fn certificates_of_hosts_and_users() {
    use_own_program();
    let (keys, user) = (common::sshd::Folder::new(), User::new("/bin/bash"));
    let key = |name: &str| keys.path().join(name).display().to_string();
    for name in ["host", "authority", "stranger", "user"] {
        must("ssh-keygen", &["-q", "-t", "ecdsa", "-N", "", "-f", &key(name)]);
    }
    certify(&key("authority"), &key("host.pub"), &["-h", "-n", "127.0.0.1"]);
    certify(&key("authority"), &key("user.pub"), &["-n", &user.name]);
    let sshd = Sshd::start(&format!(
        "HostKey {}\nHostCertificate {}\nTrustedUserCAKeys {}",
        key("host"),
        key("host-cert.pub"),
        key("authority.pub")
    ));
    let mut target = sshd.target(&user.name);
    let line = |mark: &str, name: &str| {
        let public = std::fs::read_to_string(key(name)).expect("a key");
        std::fs::write(sshd.path("known_hosts"), format!("{mark} [127.0.0.1]:{} {public}", sshd.port)).expect("write");
    };
    // An authority for hosts, the right one and another.
    line("@cert-authority", "authority.pub");
    assert_eq!(user_of(&mut open(&target), None), user.name);
    line("@cert-authority", "stranger.pub");
    let unreachable = fault(&target);
    assert_eq!(unreachable.kind, UnreachableKind::HostKey, "{unreachable}");

    // A certificate of the user beside the key; no key of theirs is allowed by itself.
    line("", "host.pub");
    std::fs::write(sshd.path("authorized_keys"), "").expect("write");
    assert_eq!(fault(&target).kind, UnreachableKind::Authentication);
    target.private_key_file = Some(keys.path().join("user"));
    assert_eq!(user_of(&mut open(&target), None), user.name);
    certify(&key("authority"), &key("user.pub"), &["-n", "somebody-else"]);
    let unreachable = fault(&target);
    assert_eq!(unreachable.kind, UnreachableKind::Authentication, "{unreachable}");
}

#[test]
fn the_forms_that_names_of_known_hosts_take() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let target = sshd.target(&user.name);
    let port = sshd.port;
    let key = std::fs::read_to_string(sshd.path("host.pub")).expect("read");
    let known = |names: &str| {
        std::fs::write(sshd.path("known_hosts"), format!("{names} {key}")).expect("write");
        match Connection::open(&target) {
            Ok(_) => true,
            Err(unreachable) if unreachable.kind == UnreachableKind::HostKey => false,
            Err(unreachable) => panic!("{unreachable}"),
        }
    };
    for names in [
        format!("[127.0.0.1]:{port}"),
        format!("web1,[127.0.0.1]:{port},10.0.0.1"),
        format!("[127.0.0.?]:{port}"),
        // Known on the usual port is known on each.
        "127.0.0.1".to_owned(),
        "127.0.0.*,!127.0.0.2".to_owned(),
    ] {
        assert!(known(&names), "{names}");
    }
    for names in [
        format!("[127.0.0.1]:{}", port ^ 1),
        format!("[127.0.0.2]:{port}"),
        format!("*,!127.0.0.1,![127.0.0.1]:{port}"),
        "# 127.0.0.1".to_owned(),
    ] {
        assert!(!known(&names), "{names}");
    }
}

#[test]
fn the_users_ssh_configuration_in_all_its_parts() {
    use_own_program();
    let (sshd, jump, user) = (Sshd::start(""), Sshd::start(""), User::new("/bin/bash"));
    std::fs::copy(sshd.path("authorized_keys"), jump.path("authorized_keys")).expect("copy");
    let both = [&sshd, &jump].map(|sshd| std::fs::read_to_string(sshd.path("known_hosts")).expect("read")).concat();
    std::fs::write(sshd.path("both"), both).expect("write");
    let path = |name: &str| sshd.path(name).display().to_string();
    let (name, port, id, known) = (&user.name, sshd.port, path("id"), path("both"));
    let common = format!("IdentityFile {id}\n  UserKnownHostsFile {known}\n");
    std::fs::write(sshd.path("included.conf"), format!("Host gpu-*\n  Port {port}\n  User {name}\n")).expect("write");
    let (included, pattern) = (path("included.conf"), path("incl*.conf"));
    let wrong = "Host *\n  User nobody\n  Port 9\n";
    let configurations = [
        format!("Include {included}\nHost *\n  HostName 127.0.0.1\n  {common}{wrong}"),
        format!("Host gpu-1\n  Include \"{pattern}\"\n  HostName=127.0.0.1\n  {common}{wrong}"),
        format!(
            "Host !gpu-1 *\n  User nobody\nHost gpu-?\n  HostName 127.0.0.1\n  Port {port}\n  User \"{name}\"\n  {common}"
        ),
        format!(
            "Match originalhost gpu-1\n  HostName 127.0.0.1\n  Port {port}\n  User {name}\nMatch host 127.0.0.1 user {name}\n  {common}{wrong}"
        ),
        // Beyond libssh2: the system's program does these.
        format!(
            "Match host gpu-1 exec \"test -e {id}\"\n  HostName 127.0.0.1\n  Port {port}\n  User {name}\n  {common}{wrong}"
        ),
        format!(
            "Host gpu-1\n  HostName 127.0.0.1\n  Port {port}\n  ProxyJump middle\nHost middle\n  HostName 127.0.0.1\n  Port {}\n\
             Host *\n  User {name}\n  {common}",
            jump.port
        ),
    ];
    for (number, text) in configurations.iter().enumerate() {
        // Each file is read once in a process.
        let file = path(&format!("config-{number}"));
        std::fs::write(&file, text).expect("write");
        let mut target = local();
        target.via = Via::Ssh;
        target.address = "gpu-1".into();
        target.ssh_args = vec!["-F".into(), file];
        assert_eq!(user_of(&mut open(&target), None), *name, "{text}");
    }
    assert!(jump.log().contains("Accepted publickey"), "nobody came through the jump host");
}
