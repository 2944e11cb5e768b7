//! What the GPU playbook makes of its arguments, where no host is needed to see it.

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

/// What a node must offer for the playbook to call it ready: of each kind of GPU just as many as were found on the host.
#[test]
fn what_a_node_must_offer_follows_from_its_gpus_and_how_they_are_shared() {
    let folder = Folder::new();
    let role = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("playbooks/roles/gpu");
    let defaults = std::fs::read_to_string(role.join("defaults/main.yml")).expect("the defaults");
    let line = |name: &str| defaults.lines().find(|line| line.starts_with(name)).expect("a default").to_owned();
    let usual = ["mig_strategy:", "time_slicing_replicas:", "time_slicing_resources:"].map(line).join("\n    ");
    let whole = "{count: 4, whole: 4, mig_devices: {}}";
    let cut = "{count: 2, whole: 1, mig_devices: {1g.5gb: 2, 3g.20gb: 1}}";
    let all_cut = "{count: 2, whole: 0, mig_devices: {1g.10gb: 14}}";
    let odd = "{count: 1, whole: 0, mig_devices: {1g.5gb+me: 1}}";
    let mixed = "mig_strategy: mixed";
    let shared = "mig_strategy: mixed, time_slicing_replicas: 3, time_slicing_resources: [nvidia.com/gpu, nvidia.com/mig-1g.5gb]";
    let cases = [
        (whole, "", "nvidia.com/gpu=4"),
        (whole, "time_slicing_replicas: 1", "nvidia.com/gpu=4"),
        (whole, "time_slicing_replicas: 3", "nvidia.com/gpu=12"),
        (whole, mixed, "nvidia.com/gpu=4"),
        // Without a strategy the plugin offers a GPU that is cut as one.
        (cut, "", "nvidia.com/gpu=2"),
        (cut, mixed, "nvidia.com/gpu=1 nvidia.com/mig-1g.5gb=2 nvidia.com/mig-3g.20gb=1"),
        (cut, shared, "nvidia.com/gpu=3 nvidia.com/mig-1g.5gb=6 nvidia.com/mig-3g.20gb=1"),
        (all_cut, "mig_strategy: single", "nvidia.com/gpu=14"),
        (all_cut, "mig_strategy: single, time_slicing_replicas: 2", "nvidia.com/gpu=28"),
        (all_cut, mixed, "nvidia.com/mig-1g.10gb=14"),
        (odd, mixed, "nvidia.com/mig-1g.5gb.me=1"),
    ];
    let playbook = folder.path().join("offers.yml");
    let file = role.join("templates/offers.json.j2");
    let mut text = String::new();
    for (number, (gpu, chosen, _)) in cases.iter().enumerate() {
        text += &format!(
            "- hosts: localhost\n  gather_facts: false\n  vars:\n    {usual}\n    gpu: {gpu}\n  tasks:\n    - debug:\n        \
             msg: \"case {number}: {{{{ (lookup('template', '{}') | from_json).items() | map('join', '=') | sort | join(' ') }}}}.\"\n      \
             vars: {{{chosen}}}\n",
            file.display()
        );
    }
    std::fs::write(&playbook, text).expect("a writable folder");
    let output = Command::new(env!("CARGO_BIN_EXE_kubeon-run"))
        .arg(&playbook)
        .env("HOME", folder.path())
        .env("XDG_STATE_HOME", folder.path())
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    for (number, (gpu, chosen, offers)) in cases.iter().enumerate() {
        assert!(said.contains(&format!("case {number}: {offers}.\"")), "{gpu} with `{chosen}`:\n{said}");
    }
}

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

/// A variable that is misspelt on the command line is otherwise passed over without a word.
#[test]
fn a_misspelt_variable_of_the_command_line_is_told() {
    let folder = Folder::new();
    let playbook = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("playbooks/gpu.yml");
    let check = |playbook: &std::path::Path, extra: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
        command.arg("check").arg(playbook).args(["-i", "localhost,", "-e", extra]).env("HOME", folder.path());
        let output = command.current_dir(folder.path()).output().expect("the program");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    for extra in ["with_nvida=false", "{with_nvida: false}"] {
        let told = check(&playbook, extra);
        assert!(
            told.contains("warning: `-e with_nvida`: nothing that was read uses a variable of this name"),
            "{told}"
        );
        assert!(told.contains("did you mean `with_nvidia`?"), "{told}");
    }
    // Spelt right; and of another's making, nowhere near any.
    for extra in ["with_nvidia=false", "ticket=OPS-1234"] {
        assert!(!check(&playbook, extra).contains("`-e "), "{extra}");
    }
    // What only a template reads, which is opened during the run.
    let role = folder.path().join("roles/web");
    let write = |name: &str, text: &str| {
        let path = role.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
        std::fs::write(path, text).expect("a writable folder");
    };
    write("defaults/main.yml", "web_ports: 80\n");
    write("tasks/main.yml", "- template: {src: site.j2, dest: /tmp/site}\n");
    write("templates/site.j2", "listen {{ web_port | default(web_ports) }};\n");
    let site = folder.path().join("site.yml");
    std::fs::write(&site, "- hosts: localhost\n  roles: [web]\n").expect("a writable folder");
    assert!(!check(&site, "web_port=81").contains("`-e "));
    assert!(check(&site, "web_prots=81").contains("did you mean `web_ports`?"));
}
