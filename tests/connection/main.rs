//! Connections to real sshd processes on this machine. They add users and mounts, so they run as root.

#[path = "../common/mod.rs"]
mod common;
mod logins;
mod lost;
mod places;
mod trees;
mod users;

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use common::sshd::{Relay, Sshd, User, must};
use kubeon_modules::Map;
use kubeon_modules::wire::Task;
use kubeon_run::connection::{Become, BecomeMethod, Connection, Contents, Target, Unreachable, UnreachableKind, Via};
use serde_json::json;

pub fn task(module: &str, args: serde_json::Value) -> Task {
    let args = args.as_object().expect("an object").clone();
    Task { id: 7, module: module.into(), args, ..Task::default() }
}

pub fn run(connection: &mut Connection, become_: Option<&Become>, task: &Task) -> Result<Map, Unreachable> {
    connection.run(become_, task, &Contents::default(), &|_| {})
}

pub fn open(target: &Target) -> Connection {
    Connection::open(target).unwrap_or_else(|unreachable| panic!("{unreachable}"))
}

/// Asserts that a host answers, and returns the user that its agent runs as.
pub fn user_of(connection: &mut Connection, become_: Option<&Become>) -> String {
    let result = run(connection, become_, &task("command", json!({"argv": ["id", "-un"]})))
        .unwrap_or_else(|unreachable| panic!("{unreachable}"));
    result["stdout"].as_str().unwrap_or_else(|| panic!("{result:?}")).to_owned()
}

pub fn stored(folder: &Path) -> Vec<String> {
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

/// `tests/measure` prints what this prints.
#[test]
fn what_a_task_costs() {
    const TASKS: u64 = 100;
    let (sshd, user) = (Sshd::start(""), User::new("/bin/bash"));
    let mut connection = open(&sshd.target(&user.name));
    let stat = task("stat", json!({"path": "/etc/passwd"}));
    run(&mut connection, None, &stat).expect("a result");
    let (before, started) = (connection.statistics(), Instant::now());
    for _ in 0..TASKS {
        run(&mut connection, None, &stat).expect("a result");
    }
    let (after, took) = (connection.statistics(), started.elapsed());
    let each = |count: fn(&kubeon_run::connection::Statistics) -> u64| (count(&after) - count(&before)) / TASKS;
    println!(
        "one `stat` over SSH: {} round trip, {} frame of {} bytes out, {} of {} bytes in, {:.2} ms",
        each(|seen| seen.round_trips),
        each(|seen| seen.frames_sent),
        each(|seen| seen.bytes_sent),
        each(|seen| seen.frames_received - seen.signs_of_life),
        each(|seen| seen.bytes_received),
        took.as_secs_f64() * 1000.0 / TASKS as f64,
    );
    assert_eq!(after.round_trips - before.round_trips, TASKS);
    assert_eq!(after.frames_sent - before.frames_sent, TASKS);
    assert_eq!(after.frames_received - after.signs_of_life - (before.frames_received - before.signs_of_life), TASKS);
}

#[test]
fn this_machine() {
    use_own_program();
    let mut connection = open(&local());
    assert_eq!(run(&mut connection, None, &task("ping", json!({}))).expect("a pong")["ping"], "pong");
    assert_eq!(connection.statistics().round_trips, 1);
}

pub fn use_own_program() {
    kubeon_run::connection::use_program(env!("CARGO_BIN_EXE_kubeon-run"));
}

pub fn local() -> Target {
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
        retries: 0,
        silence_timeout: Duration::from_secs(20),
        known_hosts: Vec::new(),
    }
}

pub fn as_user(method: BecomeMethod, user: &str, password: Option<&str>) -> Become {
    Become { method, user: user.into(), password: password.map(str::to_owned), exe: None, flags: None }
}

pub fn refused(result: Result<Map, Unreachable>) -> Unreachable {
    match result {
        Ok(result) => panic!("not refused: {result:?}"),
        Err(unreachable) => unreachable,
    }
}

pub fn fault(target: &Target) -> Unreachable {
    let connection = Connection::open(target);
    let result = connection.and_then(|mut connection| run(&mut connection, None, &task("ping", json!({}))));
    refused(result)
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
