//! The controller over simulated hosts that are slow, break off in the midst of a task, and come back or don't.

use std::process::Command;

fn simulate(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kubeon-simulate")).args(arguments).output().expect("a program");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn every_seed_tells_what_hosts_did_and_retries_those_that_were_lost() {
    let said = simulate(&["seeds", "--count", "20"]);
    let lost = said.split_once(" connections lost").and_then(|(before, _)| before.rsplit(' ').next());
    let lost: u32 = lost.and_then(|count| count.parse().ok()).expect("a count");
    assert!(lost > 20, "too calm to show anything: {said}");
}

#[test]
fn a_hundred_hosts_are_all_told_of() {
    let said = simulate(&["scale", "--hosts", "100", "--tasks", "3", "--strategy", "free"]);
    assert!(said.lines().any(|line| line.starts_with("| 100 |") && line.ends_with("| 0 |")), "{said}");
}
