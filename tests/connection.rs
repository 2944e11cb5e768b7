//! Connections to real sshd processes on this machine. They add users and mounts, so they run as root.

mod common;

use std::path::Path;
use std::time::Duration;

use common::sshd::{Sshd, User};
use kubeon_modules::Map;
use kubeon_modules::wire::Task;
use kubeon_run::connection::{Become, Connection, Contents, Target, Unreachable, Via};
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
