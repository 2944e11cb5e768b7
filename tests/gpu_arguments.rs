//! Each module of the GPU playbook refuses an argument that it doesn't have, with its place, before any connection.

mod common;

use std::net::TcpListener;
use std::process::Command;

use common::sshd::Folder;

const MODULES: [(&str, &str); 5] = [
    ("nvidia_detect", "minimum_driver: '384.81'"),
    ("apt_repo", "name: nvidia-container-toolkit"),
    ("containerd_runtime", "mode: default"),
    ("k8s_label", "labels: {nvidia.com/gpu.present: 'yes'}"),
    ("k8s_apply", "name: gpu"),
];

#[test]
fn an_unknown_argument_is_refused_with_its_place_before_connecting() {
    let folder = Folder::new();
    let door = TcpListener::bind("127.0.0.1:0").expect("a port");
    door.set_nonblocking(true).expect("a listener that does not wait");
    let port = door.local_addr().expect("an address").port();
    let inventory = folder.path().join("hosts.ini");
    std::fs::write(&inventory, format!("door ansible_host=127.0.0.1 ansible_port={port}\n"))
        .expect("a writable folder");
    for (module, argument) in MODULES {
        let playbook = folder.path().join(format!("{module}.yml"));
        let text = format!(
            "- hosts: all\n  gather_facts: false\n  tasks:\n    - ping:\n    - {module}:\n        {argument}\n        \
             no_such_argument: 1\n"
        );
        std::fs::write(&playbook, text).expect("a writable folder");
        let output = Command::new(env!("CARGO_BIN_EXE_kubeon-run"))
            .arg("-i")
            .arg(&inventory)
            .arg(&playbook)
            .env("HOME", folder.path())
            .env("XDG_STATE_HOME", folder.path())
            .output()
            .expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{module}: {said}");
        assert!(said.contains("no_such_argument"), "{module}: {said}");
        assert!(said.contains(&format!("{}:7:9", playbook.display())), "{module}: {said}");
        assert!(door.accept().is_err(), "{module}: it connected");
    }
}
