//! Hosts that fall silent, agents that end, content on its way.

use crate::*;

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
    target.silence_timeout = Duration::from_secs(12);
    let mut connection = open(&target);
    // The host lives, so a quiet command may take longer than that.
    assert_eq!(connection.raw(None, "sleep 16", None, None).expect("an output").rc, 0);
    let output = connection.raw(None, "sleep 30", None, Some(Duration::from_secs(1))).expect("an output");
    assert_eq!(output.rc, 124);
    // The process of the session freezes itself: the shell's parent.
    let started = Instant::now();
    let unreachable = connection.raw(None, "kill -STOP $PPID; sleep 30", None, None).expect_err("silence");
    assert_eq!(unreachable.kind, UnreachableKind::Silent);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    drop(connection);
    assert!(started.elapsed() < Duration::from_secs(21), "{:?}", started.elapsed());
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

/// Returns what makes bytes that have nothing in common.
fn noise() -> impl FnMut(usize) -> Vec<u8> {
    let mut state = 1_u64;
    move |count| {
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        (0..count).map(next).collect()
    }
}

/// A file of which the host has another version: what stands elsewhere in it does not travel again.
#[test]
fn of_a_large_file_only_what_is_new_travels() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let mut connection = open(&sshd.target(&user.name));
    let mut noise = noise();
    let old = noise(8 << 20);
    let dest = user.home.join("big");
    let mut copy = |bytes: &[u8]| {
        let mut contents = Contents::default();
        let sha256 = contents.add_bytes(bytes.to_vec());
        let copy = task("copy", json!({"content": {"sha256": sha256, "size_bytes": bytes.len()}, "dest": dest}));
        let before = connection.statistics();
        let result = connection.run(None, &copy, &contents, &|_| {}).expect("a result");
        assert!(result["changed"] == true && std::fs::read(&dest).expect("read") == bytes, "{result:?}");
        let after = connection.statistics();
        assert_eq!(after.round_trips - before.round_trips, 2);
        after.bytes_sent - before.bytes_sent
    };
    assert!(copy(&old) > 8 << 20);
    let mut new = old.clone();
    new.splice(3_000_000..3_000_000, *b"inserted");
    new[6_000_000] ^= 1;
    new.drain(7_000_000..7_100_000);
    new.extend_from_slice(&old[..1 << 20]);
    let sent = copy(&new);
    assert!((1..1 << 20).contains(&sent), "{sent}");
    assert!(copy(&noise(2 << 20)) > 2 << 20);
    assert!(copy(&[vec![0; 3 << 20], old.clone()].concat()) > 8 << 20);
    // Nothing but what is there already, in another order.
    assert!(copy(&[&old[4 << 20..], &old[..4 << 20]].concat()) < 1 << 20);
    assert_eq!(
        std::fs::read_dir(&user.home)
            .expect("a folder")
            .filter(|entry| { entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().contains("big")) })
            .count(),
        1
    );
}

/// On a slow line content is compressed.
#[test]
fn content_is_compressed_where_the_line_is_slow() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let text = (0..).map(|number| format!("line {number}\n")).take(2 << 20).collect::<String>().into_bytes();
    let (relay, dest) = (Relay::to(sshd.port), user.home.join("much"));
    let mut target = sshd.target(&user.name);
    target.port = Some(relay.port);
    target.host_key_checking = false;
    let mut connection = open(&target);
    assert_eq!(user_of(&mut connection, None), user.name);
    let mut contents = Contents::default();
    let sha256 = contents.add_bytes(text.clone());
    let copy = task("copy", json!({"content": {"sha256": sha256, "size_bytes": text.len()}, "dest": dest}));
    let before = connection.statistics().bytes_sent;
    relay.slow_down(2 << 20);
    connection.run(None, &copy, &contents, &|_| {}).expect("a result");
    let sent = (connection.statistics().bytes_sent - before) as usize;
    assert!(sent < text.len() / 4 * 3, "{sent} of {}", text.len());
    assert!(std::fs::read(&dest).expect("the file") == text, "not what was sent");
}

/// What has come before the line was cut does not travel again, nor does what the old version has; and nothing is left then.
#[test]
fn content_goes_on_where_it_was_cut() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let relay = Relay::to(sshd.port);
    let mut target = sshd.target(&user.name);
    target.host_key_checking = false;
    target.port = Some(relay.port);
    let (mut noise, dest) = (noise(), user.home.join("big"));
    let old = noise(4 << 20);
    std::fs::write(&dest, &old).expect("write");
    must("chown", &[&format!("{}:", user.name), &dest.display().to_string()]);
    let new = [noise(12 << 20), old.clone()].concat();
    let mut contents = Contents::default();
    let sha256 = contents.add_bytes(new.clone());
    let copy = task("copy", json!({"content": {"sha256": sha256, "size_bytes": new.len()}, "dest": dest}));
    let mut connection = open(&target);
    assert_eq!(user_of(&mut connection, None), user.name);
    relay.close_after(8 << 20);
    refused(connection.run(None, &copy, &contents, &|_| {}));
    assert_eq!(std::fs::read(&dest).expect("the file"), old);
    let left = || stored(&user.home).into_iter().filter(|name| name.contains("big")).collect::<Vec<_>>();
    // Its agent has to see first that nobody is there.
    let started = Instant::now();
    let has_ended = || {
        let left = left();
        let agent = left.iter().find_map(|name| name.strip_prefix(".big.kubeon-")?.split_once('-'));
        agent.is_some_and(|(process, _)| !Path::new("/proc").join(process).exists())
    };
    while !has_ended() {
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", left());
        std::thread::sleep(Duration::from_millis(20));
    }

    target.port = Some(sshd.port);
    let mut connection = open(&target);
    assert_eq!(user_of(&mut connection, None), user.name);
    let before = connection.statistics().bytes_sent;
    let result = connection.run(None, &copy, &contents, &|_| {}).expect("a result");
    assert_eq!(result.get("failed"), None, "{result:?}");
    let sent = connection.statistics().bytes_sent - before;
    assert!((1 << 20..8 << 20).contains(&sent), "{sent} of {}", new.len());
    assert!(std::fs::read(&dest).expect("the file") == new);
    assert_eq!(left(), ["big"]);
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
        let sha256 = contents.add_bytes(noise()(16 << 20));
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

/// The line goes dead at one moment after another: in the greeting, the exchange of keys, the login, the agent's upload.
#[test]
fn a_line_that_goes_dead_while_a_host_is_reached() {
    let sshd = Sshd::start("");
    for silent in [true, false] {
        let moments = [0, 30, 1000, 1400, 1600, 1800, 2000, 2200, 20_000, 400_000];
        let kinds = std::thread::scope(|scope| {
            let sshd = &sshd;
            let cases: Vec<_> =
                moments.iter().map(|&bytes| scope.spawn(move || goes_dead(sshd, bytes, silent))).collect();
            cases.into_iter().map(|case| case.join().expect("its thread ends")).collect::<Vec<_>>()
        });
        let last = if silent { UnreachableKind::Silent } else { UnreachableKind::Lost };
        for kind in [UnreachableKind::Connect, UnreachableKind::Authentication, last] {
            assert!(kinds.contains(&kind), "no moment was {kind:?}: {kinds:?}");
        }
    }
}

/// Lets so many bytes through to a host, and returns why it then can't be worked with.
fn goes_dead(sshd: &Sshd, bytes: usize, silent: bool) -> UnreachableKind {
    // Who is new there has no agent yet.
    let user = User::new("/bin/bash");
    let relay = Relay::to(sshd.port);
    let mut target = sshd.target(&user.name);
    target.port = Some(relay.port);
    target.host_key_checking = false;
    target.connect_timeout = Duration::from_secs(4);
    target.silence_timeout = Duration::from_secs(4);
    if silent {
        relay.go_silent_after(bytes);
    } else {
        relay.close_after(bytes);
    }
    let started = Instant::now();
    let unreachable = fault(&target);
    let took = started.elapsed();
    assert!(took < Duration::from_secs(10), "{bytes}: {took:?} {unreachable}");
    // Nothing but the temporary file is left of the attempt, and the host is as good as ever.
    let cache = user.home.join(".cache/kubeon-run");
    assert!(stored(&cache).iter().all(|name| name.starts_with(".new-")), "{:?}", stored(&cache));
    target.port = Some(sshd.port);
    target.connect_timeout = Duration::from_secs(20);
    target.silence_timeout = Duration::from_secs(20);
    assert_eq!(user_of(&mut open(&target), None), user.name);
    unreachable.kind
}
