//! No secret is found on a real host after a run, in its journal, or in what a person who watches sees: passwords of the
//! login, of sudo and of a registry, values from a vault and of tasks with `no_log`.

mod common;

use std::process::{Command, Stdio};

use common::lab::Fleet;
use common::program::files;
use common::secrets::Secrets;
use common::sshd::must;

const VAULT_PASSWORD: &str = "vault-Pass-9Lw3";
const VAULTED: &str = "vaulted-S3cr3t-Mk27";
const UNLOGGED: &str = "unlogged-S3cr3t-Td60";
const REGISTRY_PASSWORD: &str = "registry-Pass-Ws94";

const PLAYBOOK: &str = "
- hosts: all
  gather_facts: true
  become: true
  vars_files: [secret.yml]
  tasks:
    - {name: from a vault, command: {cmd: cat, stdin: '{{ vaulted }}'}, register: said}
    - {name: what it said, debug: {var: said}}
    - {name: apart, command: {cmd: cat, stdin: '{{ vaulted }}'}, async: 20, poll: 1}
    - {name: not logged, shell: {cmd: cat, stdin: '{{ unlogged }}'}, no_log: true}
    - {name: not logged apart, command: {cmd: cat, stdin: '{{ unlogged }}'}, async: 20, poll: 1, no_log: true}
    - {name: kept, copy: {content: '{{ vaulted }}', dest: /root/kept, mode: '0600'}, diff: true}
    - {name: added, lineinfile: {line: 'x = {{ vaulted }}', path: /root/kept}, diff: true}
    - {name: gone, file: {path: /root/kept, state: absent}, diff: true}
    - {name: fails, command: {cmd: 'sh -c \"cat; cat >&2; exit 3\"', stdin: '{{ vaulted }}'}, ignore_errors: true}
";

/// One that has a login to a registry, as `/etc/containerd/config.toml` may.
const CONTAINERD: &str = r#"version = 2
[plugins."io.containerd.grpc.v1.cri".registry.configs."registry.example".auth]
  username = "me"
  password = "PASSWORD"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
"#;

fn secrets(fleet: &Fleet) -> Secrets {
    let operator = fleet.setting("LAB_OPERATOR_PASSWORD");
    let encoded = must("sh", &["-c", &format!("printf %s '{VAULTED}' | base64")]);
    Secrets::new(&[
        VAULT_PASSWORD,
        VAULTED,
        UNLOGGED,
        REGISTRY_PASSWORD,
        &operator,
        encoded.trim_end().trim_end_matches('='),
    ])
}

/// Writes what the runs need, and an inventory whose login and sudo take a password.
fn write_project(fleet: &Fleet) {
    let write = |name: &str, text: &str| std::fs::write(fleet.folder().join(name), text).expect("a writable folder");
    write("site.yml", PLAYBOOK);
    write("vault-password", VAULT_PASSWORD);
    let extra = serde_json::json!({"unlogged": UNLOGGED});
    write("extra.json", &extra.to_string());
    let inventory = fleet.fleet(&["inventory"]);
    let address = inventory.lines().find_map(|line| line.trim().strip_prefix("ansible_host: ")).expect("an address");
    let password = fleet.setting("LAB_OPERATOR_PASSWORD");
    write(
        "login",
        &format!(
            "gpu1 ansible_host={address} ansible_user=operator ansible_password={password} ansible_become_password={password} \
             ansible_ssh_common_args='-o UserKnownHostsFile={} -o IdentitiesOnly=yes -o IdentityAgent=none'\n",
            fleet.setting("LAB_KNOWN_HOSTS")
        ),
    );
    write("secret.yml", VARIABLES);
}

/// [`VAULTED`] under [`VAULT_PASSWORD`].
const VARIABLES: &str = "vaulted: !vault |
  $ANSIBLE_VAULT;1.1;AES256
  63636564643634656338623461363530613836313632616539626634616566343338653365643234
  3364356561353764336263366137383565343836653034300a393837656635383865646134303734
  30643963663663643039646138383066373531376234383265353436653530663265353533333739
  6236643339646264300a646639623734643539323466393332306364336331663230636166393836
  33313662373031376665386236323062343662353738626338376637663163653535
";

/// Returns the program's command, its inventory the one with passwords.
fn command(fleet: &Fleet, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
    let path = |name: &str| fleet.folder().join(name).display().to_string();
    command
        .args([
            "-i",
            &path("login"),
            "--vault-password-file",
            &path("vault-password"),
            "-e",
            &format!("@{}", path("extra.json")),
        ])
        .args(arguments)
        .env("XDG_STATE_HOME", path("state"))
        .env("HOME", fleet.folder())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null());
    command
}

/// Looks everywhere on the host: its disk, its memory's files, its journal. Files that are meant to hold a secret are
/// named, and then only their owner may read them.
fn nothing_on_the_host(fleet: &Fleet, secrets: &Secrets, meant: &[&str]) {
    let pattern = secrets.lines();
    std::fs::write(fleet.folder().join("pattern"), &pattern).expect("a writable folder");
    let disk = fleet.folder().join("lab/hosts/gpu1/upper");
    let pattern_file = fleet.folder().join("pattern").display().to_string();
    let grep =
        Command::new("grep").args(["-rlaFf", &pattern_file, disk.to_str().expect("UTF-8")]).output().expect("grep");
    let found = String::from_utf8_lossy(&grep.stdout).into_owned();
    let found: Vec<&str> = found.lines().filter(|path| !meant.iter().any(|meant| path.ends_with(meant))).collect();
    assert!(found.is_empty(), "secrets are on the host's disk: {found:#?}");
    for path in meant {
        let mode = fleet.see("gpu1", &format!("stat -c %a {path}"));
        assert!(mode.trim().ends_with("00"), "{path} has a secret and can be read by others: {mode}");
    }
    // What lies in memory, and the journal, which is packed on disk.
    let lines = pattern.replace('\n', "' -e '");
    let seen = fleet.try_see(
        "gpu1",
        &format!("grep -rlaF -e '{lines}' /tmp /var/tmp /run /dev/shm 2>/dev/null; journalctl --no-pager -o export | grep -aF -e '{lines}'"),
    );
    assert_eq!(String::from_utf8_lossy(&seen.stdout), "", "secrets are in the host's memory or journal");
    // The journal was there to be read, and sudo wrote to it.
    assert!(fleet.see("gpu1", "journalctl --no-pager").contains("operator"), "an empty journal");
}

fn nothing_here(fleet: &Fleet, secrets: &Secrets) {
    for file in files(&fleet.folder().join("state")) {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap_or_default()).into_owned();
        secrets.none_in(&file.display().to_string(), &text);
    }
}

#[test]
fn no_secret_is_left_on_a_host() {
    let fleet = Fleet::up(&["gpu1:gpu"]);
    write_project(&fleet);
    let secrets = secrets(&fleet);
    let site = fleet.folder().join("site.yml").display().to_string();
    for output in ["lines", "json", "junit"] {
        let watch = secrets.watch();
        let ran = command(&fleet, &[&site, "-vvvv", "--output", output]).output().expect("the program starts");
        let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        watch.end();
        assert_eq!(ran.status.code(), Some(0), "{stdout}{stderr}");
        assert!(output == "junit" || stdout.contains("********"), "nothing was hidden: {stdout}");
        secrets.none_in(output, &stdout);
        secrets.none_in("stderr", &stderr);
        nothing_here(&fleet, &secrets);
        nothing_on_the_host(&fleet, &secrets, &[]);
    }

    // On a terminal, with everything that moves there.
    let program = command(&fleet, &[&site, "-v", "--diff"]);
    let words: Vec<String> = std::iter::once(program.get_program())
        .chain(program.get_args())
        .map(|word| format!("'{}'", word.to_str().expect("UTF-8")))
        .collect();
    let mut on_terminal = Command::new("script");
    on_terminal.args(["--quiet", "--return", "--command", &words.join(" "), "/dev/null"]);
    for (name, value) in program.get_envs() {
        on_terminal.env(name, value.expect("a value"));
    }
    let ran = on_terminal.env("TERM", "xterm-256color").stdin(Stdio::null()).output().expect("script");
    let seen = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && seen.contains("\u{1b}["), "{seen}");
    secrets.none_in("what a terminal shows", &seen);

    a_registrys_password_stays_where_it_is(&fleet, &secrets);
}

/// The GPU playbook alters the file that holds it.
fn a_registrys_password_stays_where_it_is(fleet: &Fleet, secrets: &Secrets) {
    let config = "/etc/containerd/config.toml";
    let text = CONTAINERD.replace("PASSWORD", REGISTRY_PASSWORD);
    fleet.see("gpu1", &format!("cat >{config} <<'END'\n{text}END\nchmod 600 {config}; systemctl restart containerd"));
    let variables = [
        format!("gpu_repository_url={}/stable/deb/$(ARCH)", fleet.setting("LAB_REPO")),
        format!("gpu_repository_fingerprint={}", fleet.setting("LAB_REPO_FINGERPRINT")),
    ];
    for mode in [&["--check", "--diff"][..], &["--diff"]] {
        let watch = secrets.watch();
        let mut run = command(fleet, &["playbooks/gpu.yml", "-vvvv", "-e", &variables[0], "-e", &variables[1]]);
        let ran = run.args(mode).output().expect("the program starts");
        watch.end();
        let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert_eq!(ran.status.code(), Some(0), "{stdout}{stderr}");
        secrets.none_in("stdout", &stdout);
        secrets.none_in("stderr", &stderr);
        nothing_here(fleet, secrets);
    }
    let after = fleet.see("gpu1", &format!("cat {config}"));
    assert!(after.contains(REGISTRY_PASSWORD) && after.contains("nvidia"), "{after}");
    let holders = fleet.see("gpu1", &format!("grep -rlF {REGISTRY_PASSWORD} /etc /var /root /opt 2>/dev/null || true"));
    nothing_on_the_host(fleet, secrets, &holders.lines().collect::<Vec<_>>());
}
