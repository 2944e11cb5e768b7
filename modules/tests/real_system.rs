//! Modules that manage a system, on a real Debian host: `tests/fleet/fleet up t1:none`, then
//! `KUBEON_TEST_HOST="tests/fleet/fleet exec t1"`, a command that runs what follows it as root inside, with its
//! input and output. What the host itself says afterwards is asserted. The agent must suit the host's C library.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use kubeon_modules::Map;
use kubeon_modules::wire::{self, Answer, Request, Task};
use serde_json::{Value, json};

const AGENT: &str = "/usr/local/bin/kubeon-test-agent";

/// Held by whoever changes or reads the host's one set of repositories: a dead one, for a moment, fails any update.
static REPOSITORIES: Mutex<()> = Mutex::new(());

/// The words before a command that runs inside the host.
fn inside() -> Vec<String> {
    let command = std::env::var("KUBEON_TEST_HOST").expect("KUBEON_TEST_HOST runs a command inside a host");
    let mut words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    if words[0].contains('/') && !words[0].starts_with('/') {
        words[0] = format!("{root}/{}", words[0]);
    }
    words
}

fn command(words: &[&str]) -> Command {
    let prefix = inside();
    let mut command = Command::new(&prefix[0]);
    command.args(&prefix[1..]).args(words).current_dir("/");
    command
}

/// What a shell line prints inside the host.
fn shell(line: &str) -> String {
    let output = command(&["sh", "-c", line]).output().expect("the host runs commands");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// An agent inside the host.
struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
}

impl Agent {
    fn start() -> Agent {
        let binary = std::fs::read(env!("CARGO_BIN_EXE_kubeon-agent")).expect("the agent is built");
        let name = format!("{AGENT}.{}.{:?}", std::process::id(), std::thread::current().id());
        let name = name.replace(['(', ')'], "");
        let line = format!("cat > {name} && chmod 755 {name}");
        let mut copy = command(&["sh", "-c", &line]).stdin(Stdio::piped()).spawn().expect("the host runs commands");
        copy.stdin.take().expect("a pipe").write_all(&binary).expect("the agent is sent");
        assert!(copy.wait().expect("it ends").success());
        let mut child =
            command(&[&name]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the agent starts");
        let (input, mut output) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        let mut greeting = vec![0; wire::GREETING.len()];
        output.read_exact(&mut greeting).expect("the agent greets");
        assert_eq!(greeting, wire::GREETING);
        shell(&format!("rm {name}"));
        Agent { child, input, output }
    }

    fn run(&mut self, module: &str, args: Value, check: bool) -> Map {
        let args = args.as_object().expect("arguments are a mapping").clone();
        let task = Task { id: 1, module: module.to_owned(), args, check, ..Task::default() };
        wire::send(self.input.as_mut().expect("open"), &Request::Run(task)).expect("the agent listens");
        loop {
            let frame = wire::read_frame(&mut self.output).expect("a frame").expect("the agent lives");
            match frame.message().expect("an answer") {
                Answer::Done { result, .. } => return result,
                Answer::Alive { .. } => {}
                Answer::Want { .. } | Answer::Passed { .. } => panic!("no content is sent"),
            }
        }
    }

    /// Says what would change, changes it, and finds it so: the three answers of a module that can be trusted.
    fn makes(&mut self, module: &str, args: Value) -> Map {
        let told = self.run(module, args.clone(), true);
        assert_eq!(told["changed"], true, "check mode: {told:#?}");
        let made = self.run(module, args.clone(), false);
        assert_eq!((made.get("failed"), &made["changed"]), (None, &json!(true)), "{made:#?}");
        self.finds(module, args);
        made
    }

    fn finds(&mut self, module: &str, args: Value) -> Map {
        let found = self.run(module, args, false);
        assert_eq!((found.get("failed"), &found["changed"]), (None, &json!(false)), "{found:#?}");
        found
    }

    fn refuses(&mut self, module: &str, args: Value) -> String {
        let refused = self.run(module, args, false);
        assert_eq!(refused.get("failed"), Some(&json!(true)), "{refused:#?}");
        refused["msg"].as_str().expect("a message").to_owned()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.input.take());
        self.child.wait().ok();
    }
}

#[test]
fn packages_come_at_a_version_are_held_and_go() {
    let _alone = REPOSITORIES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut agent = Agent::start();
    let updated = agent.run("apt", json!({"update_cache": true}), false);
    assert_eq!((updated.get("failed"), updated.get("warnings")), (None, None), "{updated:#?}");
    agent.finds("apt", json!({"update_cache": true, "cache_valid_time": 3600}));
    agent.run("apt", json!({"name": "lab-hello", "state": "absent", "purge": true}), false);
    agent.makes("apt", json!({"name": "lab-hello=1.*"}));
    assert_eq!(shell("dpkg-query -Wf '${Version}' lab-hello"), "1.0");
    agent.makes("package", json!({"name": "lab-hello", "state": "latest"}));
    assert_eq!(shell("dpkg-query -Wf '${Version}' lab-hello"), "2.0");
    agent.makes("dpkg_selections", json!({"name": "lab-hello", "selection": "hold"}));
    assert_eq!(shell("apt-mark showhold"), "lab-hello");
    assert!(agent.refuses("apt", json!({"name": "lab-hello=1.0"})).contains("allow_downgrade: true"));
    let held = agent.refuses("apt", json!({"name": "lab-hello=1.0", "allow_downgrade": true}));
    assert!(held.contains("allow_change_held_packages: true"), "{held}");
    let facts = agent.finds("package_facts", json!({}));
    assert_eq!(facts["ansible_facts"]["packages"]["lab-hello"][0]["version"], "2.0");
    agent.makes("dpkg_selections", json!({"name": "lab-hello", "selection": "install"}));
    shell("touch /var/lib/dpkg/updates/0001");
    let gone = agent.run("apt", json!({"name": "lab-hello", "state": "absent"}), false);
    assert!(gone["warnings"][0].as_str().is_some_and(|text| text.contains("interrupted")), "{gone:#?}");
    assert_eq!(shell("dpkg-query -Wf '${Status}' lab-hello 2>/dev/null | grep -c ' installed'"), "0");
    assert!(agent.refuses("apt", json!({"name": "no-such-package"})).contains("No package matching"));
}

#[test]
fn services_start_fail_and_are_enabled() {
    let mut agent = Agent::start();
    shell(
        "printf '[Service]\\nExecStart=/bin/sleep 1000\\n[Install]\\nWantedBy=multi-user.target\\n' \
         > /etc/systemd/system/kubeon-good.service; \
         printf '[Service]\\nType=oneshot\\nExecStart=/bin/sh -c \"echo no config; exit 3\"\\n' \
         > /etc/systemd/system/kubeon-bad.service",
    );
    let made = agent.run(
        "systemd_service",
        json!({"name": "kubeon-good", "state": "started", "enabled": true, "daemon_reload": true}),
        false,
    );
    assert_eq!((&made["changed"], &made["status"]["ActiveState"]), (&json!(true), &json!("active")), "{made:#?}");
    assert_eq!(shell("systemctl is-enabled kubeon-good"), "enabled");
    agent.finds("service", json!({"name": "kubeon-good", "state": "started", "enabled": true}));
    let before = shell("systemctl show -p MainPID kubeon-good");
    assert_eq!(agent.run("service", json!({"name": "kubeon-good", "state": "restarted"}), false)["changed"], true);
    assert_ne!(shell("systemctl show -p MainPID kubeon-good"), before);
    let failure = agent.refuses("systemd_service", json!({"name": "kubeon-bad", "state": "started"}));
    assert!(failure.contains("no config"), "{failure}");
    agent.makes("service", json!({"name": "kubeon-good", "state": "stopped", "enabled": false}));
    let missing = agent.refuses("service", json!({"name": "kubeon-none", "state": "started"}));
    assert!(missing.contains("Could not find the requested service"), "{missing}");
    let facts = agent.finds("service_facts", json!({}));
    assert_eq!(facts["ansible_facts"]["services"]["kubeon-good.service"]["state"], "inactive");
    let services = facts["ansible_facts"]["services"].as_object().expect("services");
    let scripts = services.values().filter(|service| service["source"] == "sysv");
    let mark = |service: &Value| if service["state"] == "running" { '+' } else { '-' };
    let told: String = scripts
        .map(|service| format!(" [ {} ]  {}\n", mark(service), service["name"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(told.trim_end(), shell("service --status-all 2>/dev/null"));
    shell("rm /etc/systemd/system/kubeon-good.service /etc/systemd/system/kubeon-bad.service; systemctl daemon-reload");
}

#[test]
fn accounts_are_made_changed_and_removed() {
    let mut agent = Agent::start();
    agent.makes("group", json!({"name": "kubeon-ops", "gid": 4321}));
    let args = json!({
        "name": "kubeon-user", "uid": 5001, "groups": ["kubeon-ops", "adm"], "shell": "/bin/bash", "password": "$6$a$b",
        "expires": 4_102_444_800u64, "password_expire_max": 90,
    });
    agent.makes("user", args);
    assert_eq!(shell("id -Gn kubeon-user"), "kubeon-user adm kubeon-ops");
    let shadow = shell("getent shadow kubeon-user");
    assert!(shadow.starts_with("kubeon-user:$6$a$b:") && shadow.ends_with(":0:90:7::47482:"), "{shadow}");
    let key = json!({"name": "kubeon-user", "generate_ssh_key": true, "ssh_key_type": "ed25519"});
    let made = agent.makes("user", key);
    assert!(made["ssh_public_key"].as_str().is_some_and(|key| key.starts_with("ssh-ed25519 ")), "{made:#?}");
    assert_eq!(
        shell("stat -c '%U %a' ~kubeon-user/.ssh ~kubeon-user/.ssh/id_ed25519"),
        "kubeon-user 700\nkubeon-user 600"
    );
    agent.makes("user", json!({"name": "kubeon-user", "groups": [], "password_lock": true}));
    assert!(shell("getent shadow kubeon-user").starts_with("kubeon-user:!$6$a$b:"));
    let facts = agent.finds("getent", json!({"database": "passwd", "key": "kubeon-user"}));
    assert_eq!(facts["ansible_facts"]["getent_passwd"]["kubeon-user"][5], "/bin/bash");
    agent.makes("user", json!({"name": "kubeon-user", "state": "absent", "remove": true}));
    assert_eq!(shell("ls -d /home/kubeon-user 2>/dev/null"), "");
    agent.makes("group", json!({"name": "kubeon-ops", "state": "absent"}));
}

#[test]
fn the_kernel_and_its_files_agree() {
    let mut agent = Agent::start();
    let file = "/etc/sysctl.d/99-kubeon-test.conf";
    shell("sysctl -qw net.ipv4.ip_default_ttl=64");
    let name = "net.ipv4.ip_default_ttl";
    agent.makes("sysctl", json!({"name": name, "value": 65, "sysctl_set": true, "sysctl_file": file}));
    assert_eq!(shell(&format!("cat {file}; sysctl -n {name}")), format!("{name}=65\n65"));
    agent.makes("sysctl", json!({"name": name, "state": "absent", "sysctl_file": file}));
    shell(&format!("rm {file}; sysctl -qw {name}=64"));
    let mounted = json!({"path": "/srv/a b", "src": "tmpfs", "fstype": "tmpfs", "opts": "size=1m", "state": "mounted"});
    agent.makes("mount", mounted);
    assert_eq!(shell("findmnt -rno SIZE '/srv/a b'; grep -c 'a.040b' /etc/fstab"), "1M\n1");
    let larger = json!({"path": "/srv/a b", "src": "tmpfs", "fstype": "tmpfs", "opts": "size=2m", "state": "mounted"});
    agent.makes("mount", larger);
    assert_eq!(shell("findmnt -rno SIZE '/srv/a b'"), "2M");
    agent.makes("mount", json!({"path": "/srv/a b", "state": "absent"}));
    assert_eq!(shell("findmnt -no SIZE '/srv/a b'; grep -c 'a.040b' /etc/fstab; ls /srv | grep 'a b'"), "0");
}

#[test]
fn names_jobs_facts_and_ports() {
    let mut agent = Agent::start();
    let old = shell("hostname");
    agent.makes("hostname", json!({"name": "kubeon-renamed"}));
    assert_eq!(shell("hostname; cat /etc/hostname"), "kubeon-renamed\nkubeon-renamed");
    agent.makes("hostname", json!({"name": old}));
    let job = json!({"name": "a", "minute": "5", "job": "/bin/true", "user": "root", "cron_file": "kubeon-test"});
    agent.makes("cron", job);
    assert_eq!(shell("cat /etc/cron.d/kubeon-test"), "#Ansible: a\n5 * * * * root /bin/true");
    agent.makes("cron", json!({"name": "a", "state": "absent", "user": "root", "cron_file": "kubeon-test"}));
    let facts = agent.finds("setup", json!({}))["ansible_facts"].clone();
    let wanted = [
        ("ansible_distribution", "Debian".to_owned()),
        ("ansible_distribution_release", shell(". /etc/os-release; echo $VERSION_CODENAME")),
        ("ansible_kernel", shell("uname -r")),
        ("ansible_hostname", old),
        ("ansible_service_mgr", "systemd".to_owned()),
        ("ansible_pkg_mgr", "apt".to_owned()),
        ("ansible_user_id", "root".to_owned()),
    ];
    for (name, value) in wanted {
        assert_eq!(facts[name], json!(value), "{name}");
    }
    let route = shell("ip -4 route get 8.8.8.8 2>/dev/null | sed -n 's/.* src \\([^ ]*\\).*/\\1/p'");
    if !route.is_empty() {
        assert_eq!(facts["ansible_default_ipv4"]["address"], json!(route));
    }
    agent.finds("wait_for", json!({"port": 22, "search_regex": "OpenSSH", "timeout": 10}));
    agent.finds("wait_for", json!({"port": 2, "state": "stopped"}));
}

/// A key of OpenPGP with the fingerprint 8544AA1B4515F0F455BD2C65596B4DC1B06E7D35.
const KEY: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEZZIAgBYJKwYBBAHaRw8BAQdAhq0FbrT9CYXuwCsohpNFJxuz4E2xjMI30snw
kEAEWvi0B1QgPHRAeD6IlgQTFggAPhYhBIVEqhtFFfD0Vb0sZVlrTcGwbn01BQJl
kgCAAhsDBQkSzAMABQsJCAcCBhUKCQgLAgQWAgMBAh4BAheAAAoJEFlrTcGwbn01
I9cBAOoGoTssHGZn2j7gislaSBrHOmKLfFgR2thM1eHavguqAP0ZycdIUJpDh6AZ
4HF6meOZrm88P9Rk7Qh4rvfu939pDQ==
=6Pu1
-----END PGP PUBLIC KEY BLOCK-----
";

/// Holds the lock of apt's lists for three seconds, in the way that `/proc/locks` tells apart from apt's own.
const HOLD_LISTS: &str = r#"
    use Fcntl;
    open(my $lock, ">>", "/var/lib/apt/lists/lock") or die $!;
    my $set = 37; # F_OFD_SETLK
    my $all = pack("s s x4 q q i x4", F_WRLCK, 0, 0, 0, 0);
    until (fcntl($lock, $set, $all)) { select(undef, undef, undef, 0.1) }
    syswrite(STDOUT, "held\n");
    close(STDOUT); close(STDERR);
    sleep(3);
"#;

#[test]
fn repositories_of_apt_come_and_go() {
    let _alone = REPOSITORIES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut agent = Agent::start();
    // The lab's own repository, which every host has, once more under another name.
    let line = shell("cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | grep -m1 '/debian'");
    assert!(line.starts_with("deb "), "the lab's repository: {line}");
    let file = "/etc/apt/sources.list.d/kubeon-test.list";
    let entry = format!("{line} # again").replace("/debian", "/debian/.");
    // Somebody takes the lock of the lists after the module has looked: one that it does not see coming.
    assert_eq!(shell(&format!("(perl -e '{HOLD_LISTS}' </dev/null 2>&1 &) | head -n 1")), "held");
    agent.makes("apt_repository", json!({"repo": entry, "filename": "kubeon-test"}));
    assert_eq!(shell(&format!("cat {file}")), entry);
    assert_ne!(shell("ls /var/lib/apt/lists | grep -c 'debian_%2e\\|debian_\\.'"), "0");
    agent.makes("apt_repository", json!({"repo": entry, "state": "absent"}));
    assert_eq!(shell(&format!("ls {file} 2>/dev/null | wc -l")), "0");
    // One that nobody serves is put back.
    let address = line.split_whitespace().find(|word| word.contains("://")).expect("an address");
    let dead = line.replace(address, "http://127.0.0.1:9/none");
    let said = agent.refuses("apt_repository", json!({"repo": dead, "filename": "kubeon-test"}));
    assert!(said.contains("was put back"), "{said}");
    assert_eq!(shell(&format!("ls {file} 2>/dev/null | wc -l")), "0");

    let stanza = json!({"name": "Kubeon Test", "uris": address, "suites": "./", "signed_by": KEY, "enabled": false});
    let made = agent.makes("deb822_repository", stanza);
    assert_eq!(made["dest"], "/etc/apt/sources.list.d/kubeon-test.sources");
    assert_eq!(shell("apt-get indextargets 2>&1 | grep -c 'Malformed'"), "0");
    assert!(shell("cat /etc/apt/sources.list.d/kubeon-test.sources").contains("Enabled: no\n"));
    agent.makes("deb822_repository", json!({"name": "Kubeon Test", "state": "absent"}));

    let id = "8544AA1B4515F0F455BD2C65596B4DC1B06E7D35";
    agent.makes("apt_key", json!({"data": KEY, "id": id}));
    assert_eq!(shell(&format!("stat -c %a /etc/apt/trusted.gpg.d/{id}.gpg")), "644");
    agent.makes("apt_key", json!({"id": "596B4DC1B06E7D35", "state": "absent"}));
    assert_eq!(shell(&format!("ls /etc/apt/trusted.gpg.d | grep -c {id}")), "0");
    let ring = json!({"data": KEY, "id": id, "keyring": "/etc/apt/keyrings/kubeon-test.gpg"});
    agent.makes("apt_key", ring);
    shell("rm /etc/apt/keyrings/kubeon-test.gpg");
    assert!(agent.refuses("apt_key", json!({"data": KEY, "id": "DEADBEEF"})).contains("is not there, but"));
}

#[test]
fn zones_answers_and_alternatives() {
    let mut agent = Agent::start();
    let old = shell("readlink /etc/localtime");
    agent.makes("timezone", json!({"name": "Europe/Berlin"}));
    assert_eq!(shell("date -d 2024-07-01T12:00Z +%H%Z"), "14CEST");
    agent.makes("timezone", json!({"name": "UTC"}));
    assert!(agent.refuses("timezone", json!({"name": "Europe/Atlantis"})).contains("knows no time zone"));
    shell(&format!("ln -sfn {old} /etc/localtime"));

    let answer = |value: &str| json!({"name": "kubeon", "question": "kubeon/x", "vtype": "string", "value": value});
    agent.makes("debconf", answer("one two"));
    assert_eq!(shell("debconf-show kubeon"), "* kubeon/x: one two");
    agent.makes("debconf", answer("three"));
    shell("echo PURGE | debconf-communicate kubeon");

    shell("for name in a b; do echo $name >/opt/kubeon-$name; done");
    let path = |name: &str, rank: u32| json!({"name": "kubeon", "path": format!("/opt/kubeon-{name}"), "link": "/usr/local/bin/kubeon-x", "priority": rank});
    agent.makes("alternatives", path("a", 10));
    agent.makes("alternatives", path("b", 5));
    assert_eq!(shell("cat /usr/local/bin/kubeon-x"), "b");
    agent.makes("alternatives", json!({"name": "kubeon", "state": "auto"}));
    assert_eq!(shell("cat /usr/local/bin/kubeon-x"), "a");
    for name in ["a", "b"] {
        let gone = json!({"name": "kubeon", "path": format!("/opt/kubeon-{name}"), "state": "absent"});
        agent.makes("alternatives", gone);
    }
    assert_eq!(shell("ls /usr/local/bin | grep -c kubeon-x; rm /opt/kubeon-a /opt/kubeon-b"), "0");
}
