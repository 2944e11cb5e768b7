//! A spread run on real nodes: pods that the upstream kubelet runs on containerd, from the image that `packaging/image` makes,
//! as the user and with the file systems that their specification asks for, and hosts that they reach over SSH.

mod common;

use std::fs;
use std::process::{Command, Stdio};

use common::lab::{Fleet, Run};
use common::sshd::must;

const SITE: &str = "
- hosts: all
  tasks:
    - copy: {content: '{{ ansible_facts.hostname }} of {{ groups.all | length }}', dest: /root/spread}
- hosts: all
  gather_facts: false
  tasks:
    - lineinfile: {path: /root/spread, line: second}
    - template: {src: name.j2, dest: /root/name}
";

#[test]
fn pods_of_real_nodes_reach_their_hosts_over_ssh() {
    let fleet = Fleet::up(&["w1:none", "w2:none"]);
    fleet.cluster_up(&["w1", "w2"]);
    let image = fleet.folder().join("image.tar").display().to_string();
    let program = fleet.folder().join("kubeon-run").display().to_string();
    must("strip", &["-o", &program, env!("CARGO_BIN_EXE_kubeon-run")]);
    let name = "lab.kubeon.run/spread:1";
    let maker = concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/image");
    must(maker, &["--program", &program, "--name", name, "--output", &image]);
    for host in ["w1", "w2"] {
        let archive = fs::File::open(&image).expect("the archive");
        let mut import = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fleet/fleet"));
        import.args(["exec", host, "ctr", "--namespace", "k8s.io", "images", "import", "-"]);
        let lab = fleet.folder().join("lab");
        let output = import.env("KUBEON_LAB", &lab).stdin(Stdio::from(archive)).output().expect("the lab starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    // The project: a key and host keys go along, and the inventory names the key by where it is for the pods, too.
    let (keys, site) = (fleet.folder().join("lab/keys"), fleet.folder().join("site"));
    fs::create_dir_all(fleet.folder().join(".ssh")).expect("a folder");
    fs::create_dir_all(&site).expect("a folder");
    fs::copy(keys.join("known_hosts"), fleet.folder().join(".ssh/known_hosts")).expect("host keys");
    fs::copy(keys.join("id_ed25519"), site.join("key")).expect("a key");
    let inventory = fs::read_to_string(fleet.inventory()).expect("an inventory");
    let inventory: String = inventory
        .lines()
        .filter(|line| !line.contains("ansible_ssh_common_args"))
        .map(|line| line.replace(&keys.join("id_ed25519").display().to_string(), "key") + "\n")
        .collect();
    fs::write(site.join("hosts.yml"), inventory).expect("write");
    fs::write(site.join("site.yml"), SITE).expect("write");
    fs::write(site.join("name.j2"), "{{ inventory_hostname }}\n").expect("write");

    let mut spread = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
    spread
        .args(["spread", "site.yml", "-i", "hosts.yml", "--shards", "2", "--image", name])
        .args(["--kubeconfig", &fleet.kubeconfig(), "--requests", "cpu=50m,memory=64Mi"])
        .env("HOME", fleet.folder())
        .env("XDG_STATE_HOME", fleet.folder().join("state"))
        .current_dir(&site)
        .stdin(Stdio::null());
    let run = Run::of(spread.output().expect("the program starts")).ended(0);
    for host in ["w1", "w2"] {
        assert_eq!((run.count(host, "ok"), run.count(host, "changed")), (4, 3), "{}", run.stdout);
        assert_eq!(fleet.see(host, "cat /root/spread /root/name"), format!("{host} of 2\nsecond\n{host}\n"));
    }
}
