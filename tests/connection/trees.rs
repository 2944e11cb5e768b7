//! `synchronize`: rsync between this machine and a host over SSH, and on one host.

use std::fs;

use super::common::program::{Project, Ran};
use super::common::sshd::{Sshd, User, must};

/// A host of a user of its own: the project, whose inventory knows it as `h`.
fn project(sshd: &Sshd, user: &User, login: &str) -> Project {
    // The system's `ssh` takes its user's home from the accounts, not from `HOME`.
    let known = format!("'-o UserKnownHostsFile={}'", sshd.path("known_hosts").display());
    let host = format!("ansible_host=127.0.0.1 ansible_port={} ansible_ssh_common_args={known}", sshd.port);
    let project = Project::new(&format!("h {host} {login}\n"));
    project.write("files/site/one", "1").write("files/site/two/three", "3");
    must("chown", &["-R", &user.name, user.home.to_str().expect("a path")]);
    project
}

fn tasks(project: &Project, tasks: &str, options: &[&str]) -> Ran {
    project.write("site.yml", &format!("- hosts: h\n  gather_facts: false\n  tasks:\n{tasks}"));
    project.run(&[&["site.yml"], options].concat())
}

fn changed(ran: &Ran) -> bool {
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("changed=0") != ran.stdout.contains("changed=1"), "{}", ran.stdout);
    ran.stdout.contains("changed=1")
}

#[test]
fn a_tree_goes_to_a_host_and_comes_back() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/sh"));
    let login = format!("ansible_user={} ansible_ssh_private_key_file={}", user.name, sshd.path("id").display());
    let project = project(&sshd, &user, &login);
    let push = "    - synchronize: {src: site/, dest: copy, delete: true, owner: false, group: false}\n";
    let copy = user.home.join("copy");
    let checked = tasks(&project, push, &["--check", "--diff"]);
    assert!(changed(&checked) && checked.stdout.contains("<f+++++++++ one") && !copy.exists(), "{}", checked.stdout);
    assert!(changed(&tasks(&project, push, &[])));
    assert_eq!(fs::read_to_string(copy.join("two/three")).ok().as_deref(), Some("3"));
    assert!(!changed(&tasks(&project, push, &[])));
    fs::write(copy.join("more"), "").expect("a writable folder");
    project.write("files/site/one", "1 and more");
    let delegated = push.to_owned() + "      delegate_to: localhost\n";
    assert!(changed(&tasks(&project, &delegated, &[])));
    assert!(!copy.join("more").exists());
    assert_eq!(fs::read_to_string(copy.join("one")).ok().as_deref(), Some("1 and more"));

    let pull = "    - ansible.posix.synchronize: {src: copy/, dest: back/, mode: pull, recursive: true}\n";
    assert!(changed(&tasks(&project, pull, &[])));
    assert_eq!((project.read("back/one"), project.read("back/two/three")), ("1 and more".to_owned(), "3".to_owned()));
    assert!(!changed(&tasks(&project, pull, &[])));

    let there = "    - synchronize: {src: copy/, dest: twice}\n      delegate_to: '{{ inventory_hostname }}'\n";
    assert!(changed(&tasks(&project, there, &[])));
    assert!(user.home.join("twice/two/three").exists());
    assert!(!changed(&tasks(&project, there, &[])));

    let missing = tasks(&project, "    - synchronize: {src: /none/such, dest: x, mode: pull}\n", &[]);
    assert_eq!(missing.code, 2, "{}", missing.stdout);
    assert!(missing.stdout.contains("No such file"), "{}", missing.stdout);
}

#[test]
fn a_password_logs_rsync_in_and_sudo_takes_the_other_end() {
    let (sshd, user) = (Sshd::start("PasswordAuthentication yes"), User::new("/bin/sh"));
    user.set_password("tree-S3cr3t");
    let sudoers = std::path::PathBuf::from("/etc/sudoers.d").join(&user.name);
    fs::write(&sudoers, format!("{} ALL=(ALL) NOPASSWD: ALL\n", user.name)).expect("write");
    must("chmod", &["0440", sudoers.to_str().expect("a path")]);
    let project = project(&sshd, &user, &format!("ansible_user={} ansible_password=tree-S3cr3t", user.name));
    let dest = user.home.join("of-root");
    let push = format!("    - synchronize: {{src: site/, dest: {}}}\n      become: true\n", dest.display());
    let ran = tasks(&project, &push, &["-vvv"]);
    let again = tasks(&project, &push, &[]);
    fs::remove_file(&sudoers).ok();
    assert!(changed(&ran) && !changed(&again), "{}", ran.stdout);
    assert!(!ran.stdout.contains("tree-S3cr3t"), "{}", ran.stdout);
    let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(dest.join("one")).expect("a file"));
    assert_eq!(owner, 0, "the files are root's, as they are here");
}
