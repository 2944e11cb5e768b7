//! What a spread run refuses before anything is made: what works on all hosts of a play at once, or on this machine.

use std::sync::atomic::{AtomicU32, Ordering};

use super::Project;

const INVENTORY: &str = "[web]\na\nb\nc\n[one]\na\n";
/// Spreads a playbook; returns the status and what was told on standard error.
fn spread(playbook: &str, more: &[&str]) -> (Option<i32>, String) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("spread-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let project = Project::new(&name, &[("site.yml", playbook), ("hosts", INVENTORY)]);
    let usual = ["-i", "hosts", "--shards", "2", "--image", "none", "--namespace", "n", "--kubeconfig", "not-there"];
    project.kubeon(&["spread"], &[&usual[..], more].concat())
}

#[track_caller]
fn refused(playbook: &str, place: &str, message: &str) {
    let (code, told) = spread(playbook, &[]);
    assert_eq!(code, Some(4), "{told}");
    assert!(told.contains(message) && told.contains(&format!("--> site.yml:{place}")), "{told}");
    assert!(told.contains("nothing was run"), "{told}");
}

#[test]
fn what_means_all_hosts_of_a_play_is_refused_with_its_place() {
    let task = |rest: &str| format!("- hosts: web\n  tasks:\n    - ping:\n      {rest}\n");
    refused(&task("run_once: true"), "4:17", "`run_once` does a task once for all hosts");
    refused(&task("run_once: '{{ x }}'"), "4:17", "`run_once`");
    refused(&task("any_errors_fatal: true"), "4:25", "`any_errors_fatal` stops all hosts");
    refused(&task("throttle: 2"), "4:17", "`throttle` says how many hosts");
    refused("- hosts: web\n  max_fail_percentage: 30\n  tasks: [ping: {}]\n", "2:24", "`max_fail_percentage` counts");
    refused("- hosts: web\n  tasks:\n    - block: [ping: {}]\n      run_once: yes\n", "4:17", "`run_once`");
    refused("- hosts: web\n  tasks:\n    - add_host: {name: new}\n", "3:7", "`add_host` adds a host for all shards");
    refused("- hosts: web\n  tasks:\n    - meta: end_play\n", "3:7", "`meta: end_play` is for all hosts");
    let shuffled = "- hosts: web\n  serial: 1\n  order: shuffle\n  tasks: [ping: {}]\n";
    refused(shuffled, "3:10", "`order: shuffle` with `serial`");
}

#[test]
fn what_would_be_done_in_a_pod_in_place_of_this_machine_is_refused() {
    refused("- hosts: localhost\n  tasks: [ping: {}]\n", "1:10", "is the machine that runs kubeon-run");
    let delegated = "- hosts: web\n  tasks:\n    - command: make\n      delegate_to: localhost\n";
    refused(delegated, "4:20", "`command` would run in a pod");
    refused("- hosts: web\n  tasks:\n    - fetch: {src: /etc/motd, dest: .}\n", "3:7", "`fetch` writes to the machine");
    refused("- hosts: web\n  tasks: [pause: {}]\n", "2:11", "`pause` asks somebody");
    refused("- hosts: web\n  vars_prompt: [{name: who}]\n  tasks: [ping: {}]\n", "1:3", "`vars_prompt` asks for `who`");
}

/// What is so anyway in one process, too, goes on to where the API is to be asked.
#[test]
fn what_keeps_its_meaning_is_not_refused() {
    for playbook in [
        "- hosts: one\n  max_fail_percentage: 0\n  tasks:\n    - ping:\n      run_once: true\n",
        "- hosts: web\n  serial: 1\n  any_errors_fatal: false\n  max_fail_percentage: 100\n  tasks: [ping: {}]\n",
        "- hosts: web\n  tasks:\n    - debug: {msg: x}\n      delegate_to: localhost\n    - meta: end_host\n",
    ] {
        let (code, told) = spread(playbook, &[]);
        assert!(code == Some(1) && told.contains("kubeconfig `not-there`"), "{playbook}{told}");
    }
}

#[test]
fn flags_that_make_no_sense_for_pods_are_refused() {
    let two_plays = "- hosts: web\n  tasks: [ping: {}]\n- hosts: web\n  tasks: [ping: {}]\n";
    for (more, message) in [
        (&["--step"][..], "`--step` is not for `spread`"),
        (&["--resume"], "`--resume` is not for `spread`: a spread run that goes on is followed with `--attach`"),
        (&["--output", "junit"], "`--output junit` is not for `spread`"),
        (&["--parallelism", "1"], "all shards wait for one another after each, and so must run at once"),
        (&["--name", "No_Name"], "`--name No_Name` can't name a Job"),
        (&["--toleration", "a:Never"], "`Never` is no effect of a taint"),
        (&["--node-selector", "zone"], "`--node-selector zone`: expected KEY=VALUE"),
    ] {
        let (code, told) = spread(two_plays, more);
        assert!(code == Some(2) && told.contains(message), "{more:?}: {code:?} {told}");
    }
    let (_, told) = spread(two_plays, &["--project", "/usr/share"]);
    assert!(told.contains("is outside of the project's folder `/usr/share`"), "{told}");
}
