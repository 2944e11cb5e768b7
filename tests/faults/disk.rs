//! Disks that are full: whatever was to be written, the old file stays whole.

use crate::*;

/// Files that tasks write, each larger than the disk's free space, and what holds them in the end.
const WRITES: [(&str, &str, &str); 7] = [
    ("text", "copy: {dest: /small/text, content: '{{ long }}'}", "test $(wc -c </small/text) = 200000"),
    ("sent", "copy: {dest: /small/sent, src: big}", "test $(wc -c </small/sent) = 3000000"),
    ("template", "template: {dest: /small/template, src: long.j2}", "test $(wc -c </small/template) = 200000"),
    (
        "line",
        "lineinfile: {path: /small/line, line: '{{ long }}'}",
        "grep -q xxxx /small/line && grep -qx old /small/line",
    ),
    ("block", "blockinfile: {path: /small/block, block: '{{ long }}'}", "grep -q xxxx /small/block"),
    (
        "replaced",
        "replace: {path: /small/replaced, regexp: old, replace: '{{ long }}'}",
        "grep -q xxxx /small/replaced",
    ),
    ("moved", "copy: {dest: /small/moved, src: /usr/bin/bash, remote_src: true}", "cmp /small/moved /usr/bin/bash"),
];

#[test]
fn a_full_disk_leaves_old_files_whole() {
    let scene = Scene::new(&["victim"]);
    let folder = scene.fleet.folder();
    std::fs::write(folder.join("big"), vec![b'b'; 3_000_000]).expect("a writable folder");
    std::fs::create_dir_all(folder.join("templates")).expect("a writable folder");
    std::fs::write(folder.join("templates/long.j2"), "{{ long }}").expect("a writable folder");
    let tasks: String = WRITES.iter().map(|(_, task, _)| format!("    - {task}\n")).collect();
    let playbook = format!(
        "- hosts: all\n  gather_facts: false\n  ignore_errors: true\n  vars: {{long: \"{}\"}}\n  tasks:\n{tasks}",
        "x".repeat(200_000)
    );
    let names: Vec<&str> = WRITES.iter().map(|(name, ..)| *name).collect();
    let fill = format!("cd /small; for name in {}; do echo old >$name; done", names.join(" "));
    scene.fleet.see("victim", &format!("mkdir /small && mount -t tmpfs -o size=64k none /small && {fill}"));
    scene.fleet.see(BYSTANDER, &format!("mkdir /small && {fill}"));

    let run = scene.run(&playbook).ended(0);
    let count = WRITES.len() as u32;
    assert_eq!(run.count("victim", "ignored"), count, "{}", run.stdout);
    let told = run.stdout.lines().filter(|line| line.contains("fatal: [victim]"));
    let without: Vec<&str> =
        told.filter(|line| !line.contains("No space left") && !line.contains("no space left")).collect();
    assert!(without.is_empty(), "the reason is not told: {without:#?}");
    assert_eq!((run.count(BYSTANDER, "ignored"), run.count(BYSTANDER, "changed")), (0, count), "{}", run.stdout);
    let mut sorted = names.clone();
    sorted.sort_unstable();
    let seen = scene.fleet.see("victim", "cd /small; ls -A1; cat *");
    assert_eq!(seen, sorted.join("\n") + "\n" + &"old\n".repeat(names.len()), "{}", run.stdout);

    scene.fleet.see("victim", "mount -o remount,size=100m /small");
    let run = scene.run(&playbook).ended(0);
    assert_eq!((run.count("victim", "changed"), run.count(BYSTANDER, "changed")), (count, 0), "{}", run.stdout);
    for (name, _, holds) in WRITES {
        assert!(scene.fleet.try_see("victim", holds).status.success(), "{name}: {}", run.stdout);
    }
}

#[test]
fn a_package_that_finds_no_room_is_installed_by_a_rerun() {
    let scene = Scene::new(&["victim"]);
    let archives = "/var/cache/apt/archives";
    scene.fleet.see("victim", &format!("mount -t tmpfs -o size=4k none {archives} && mkdir {archives}/partial"));
    let install = "
- hosts: all
  gather_facts: false
  tasks:
    - apt: {name: lab-daemon, update_cache: true}
";
    let run = scene.run(install).ended(2);
    assert_eq!((run.count("victim", "failed"), run.count(BYSTANDER, "failed")), (1, 0), "{}", run.stdout);
    assert!(run.stdout.contains("free space") || run.stdout.contains("No space left"), "{}", run.stdout);
    assert!(!scene.fleet.try_see("victim", "dpkg -s lab-daemon").status.success());
    scene.fleet.see("victim", &format!("umount {archives}"));
    scene.run(install).ended(0);
    assert!(scene.fleet.see("victim", "dpkg -s lab-daemon").contains("Status: install ok installed"));
}
