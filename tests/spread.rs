//! Runs that are spread over the pods of an Indexed Job: the real API server and Job controller, and stand-ins of nodes that
//! run the pods' commands as processes. Judged by what is on the hosts, which are folders here, and in the API.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::program::{Project, Ran};
use common::sshd::Folder;
use serde_json::Value;

/// How long something that surely comes may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A cluster in a folder of its own, taken down with the value.
struct Cluster {
    folder: Folder,
}

impl Cluster {
    fn up() -> Cluster {
        let cluster = Cluster { folder: Folder::new() };
        let nodes = ["w1", "w2"].map(|name| format!("{name}=127.0.0.1,processes=true"));
        cluster.lab(&["up", "--node", &nodes[0], "--node", &nodes[1]]);
        cluster
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/cluster"));
        command.args(arguments).env("KUBEON_LAB", self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Runs a command of the lab, which must succeed, and returns what it printed.
    fn lab(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.command(arguments).output().expect("the lab starts");
        assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8_lossy(&stdout).into_owned()
    }

    fn kubeconfig(&self) -> String {
        self.lab(&["kubeconfig"]).trim().to_owned()
    }

    fn get(&self, what: &str) -> Vec<Value> {
        let list: Value = serde_json::from_str(&self.lab(&["kubectl", "get", what, "--output", "json"])).expect("JSON");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Returns the names of what belongs to spread runs.
    fn belongings(&self) -> Vec<String> {
        let list = self.lab(&[
            "kubectl",
            "get",
            "jobs,pods,secrets,configmaps",
            "--selector",
            "kubeon.run/spread",
            "--output",
            "name",
        ]);
        list.lines().map(str::to_owned).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.command(&["down"]).output().ok();
    }
}

/// A project whose hosts are folders of this machine.
struct Site {
    project: Project,
    kubeconfig: String,
}

impl Site {
    fn new(cluster: &Cluster, hosts: usize) -> Site {
        let names: String = (0..hosts).map(|number| format!("h{number:02}\n")).collect();
        let inventory = format!("[web]\n{names}[web:vars]\nansible_connection=local\n");
        Site { project: Project::new(&inventory), kubeconfig: cluster.kubeconfig() }
    }

    /// Returns a folder in which hosts have theirs; it is given to playbooks as `root`.
    fn root(&self, name: &str) -> PathBuf {
        let root = self.project.path(name);
        fs::create_dir_all(&root).expect("a folder");
        // Files of hosts are no part of the project.
        root
    }

    /// Returns the command that spreads a run.
    fn spread(&self, root: &str, arguments: &[&str]) -> Command {
        let mut command = self.project.command(&[]);
        let root = format!("root={}", self.root(root).display());
        command = {
            let mut spread = Command::new(command.get_program());
            spread.env_clear().current_dir(command.get_current_dir().expect("a folder")).stdin(Stdio::null());
            command.get_envs().for_each(|(name, value)| {
                value.map(|value| spread.env(name, value));
            });
            spread
        };
        command
            .args(["spread", "site.yml", "-i", "hosts", "--image", "none", "--program"])
            .arg(env!("CARGO_BIN_EXE_kubeon-run"))
            .args(["--kubeconfig", &self.kubeconfig, "-e", &root])
            .args(arguments);
        command
    }

    fn run_spread(&self, root: &str, arguments: &[&str]) -> Ran {
        self.project.wait(self.spread(root, arguments))
    }

    /// Runs the same in one process.
    fn run_alone(&self, root: &str) -> Ran {
        let root = format!("root={}", self.root(root).display());
        self.project.run(&["site.yml", "-e", &root])
    }

    /// Returns what is in a root, by paths.
    fn state(&self, root: &str) -> BTreeMap<PathBuf, String> {
        let root = self.root(root);
        let mut files = BTreeMap::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(&root).expect("below it").to_owned();
                    files.insert(name, fs::read_to_string(&path).expect("text"));
                }
            }
        }
        files
    }
}

/// Returns the lines of the recap.
fn recap(ran: &Ran) -> Vec<String> {
    let (_, recap) = ran.stdout.split_once("PLAY RECAP").unwrap_or_else(|| panic!("{}\n{}", ran.stdout, ran.stderr));
    recap.lines().skip(1).map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// Waits until something is so.
#[track_caller]
fn until(what: &str, is: impl Fn() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is() {
        assert!(Instant::now() < end, "not within {LIMIT:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

/// Batches over all hosts, an order between plays, and a host that fails.
const SITE: &str = "
- hosts: web
  gather_facts: false
  serial: [2, 50%]
  tasks:
    - file: {path: '{{ root }}/{{ inventory_hostname }}', state: directory}
    - shell: 'ls {{ root }} | wc -l > {{ root }}/{{ inventory_hostname }}/first'
      args: {creates: '{{ root }}/{{ inventory_hostname }}/first'}
    - set_fact: {mine: '{{ inventory_hostname }}!'}
    - command: 'false'
      when: inventory_hostname == 'h03' and not lookup('ansible.builtin.fileglob', root ~ '/mended')
- hosts: web
  gather_facts: false
  tasks:
    - shell: 'ls {{ root }} | wc -l > {{ root }}/{{ inventory_hostname }}/second'
    - copy: {content: '{{ mine }} of {{ groups.web | length }}', dest: '{{ root }}/{{ inventory_hostname }}/mine'}
";

#[test]
fn a_spread_run_comes_to_what_one_process_comes_to() {
    let cluster = Cluster::up();
    let site = Site::new(&cluster, 9);
    site.project.write("site.yml", SITE);
    let alone = site.run_alone("alone");
    let spread = site.run_spread("spread", &["--shards", "3"]);
    assert_eq!((alone.code, spread.code), (2, 2), "{}\n{}", spread.stdout, spread.stderr);
    assert_eq!(recap(&spread), recap(&alone));
    let mut wanted = site.state("alone");
    let count = |number: usize| format!("{number}\n");
    // The batches of both runs are the same: two hosts, then half of them each time.
    for (name, text) in &wanted {
        if name.ends_with("first") {
            assert!([count(2), count(6), count(9)].contains(text), "{name:?}: {text}");
        }
    }
    let mut found = site.state("spread");
    // Which of a batch's folders were there already when a host looked differs from run to run.
    for state in [&mut wanted, &mut found] {
        state.iter_mut().filter(|(name, _)| name.ends_with("first")).for_each(|(_, text)| text.clear());
    }
    assert_eq!(found, wanted);
    // No host came to the second play before all were through with the first.
    assert!(found.iter().filter(|(name, _)| name.ends_with("second")).all(|(_, text)| *text == count(9)), "{found:?}");
    assert!(spread.stderr.contains("FOLDER/site.yml:9:7"), "{}", spread.stderr);

    // The record is that of one run: whoever failed is taken again, and nobody else.
    fs::write(site.root("spread").join("mended"), "").expect("write");
    let again = site.run_spread("spread", &["--shards", "3", "--retry"]);
    assert_eq!(again.code, 0, "{}\n{}", again.stdout, again.stderr);
    let hosts: Vec<String> = recap(&again).iter().map(|line| line[..3].to_owned()).collect();
    assert_eq!(hosts, ["h03"]);
    until("the Jobs and all that belongs to them are gone", || cluster.belongings().is_empty());
}

/// All hosts do something, wait at a gate for the file `go`, and do something more.
const WAITING: &str = "
- hosts: web
  gather_facts: false
  tasks:
    - file: {path: '{{ root }}/{{ inventory_hostname }}', state: directory}
    - lineinfile: {path: '{{ root }}/{{ inventory_hostname }}/lines', line: first, create: true}
    - wait_for: {path: '{{ root }}/go', timeout: 60}
    - lineinfile: {path: '{{ root }}/{{ inventory_hostname }}/lines', line: second}
- hosts: web
  gather_facts: false
  tasks:
    - copy: {content: 'third', dest: '{{ root }}/{{ inventory_hostname }}/third'}
";

impl Site {
    /// Starts a spread run whose output is kept.
    fn start(&self, root: &str, arguments: &[&str]) -> Child {
        let mut command = self.spread(root, arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
    }

    /// Waits until each host has done what comes before the gate.
    #[track_caller]
    fn all_wait(&self, root: &str, hosts: usize) {
        let begun =
            || self.state(root).iter().filter(|(name, text)| name.ends_with("lines") && *text == "first\n").count();
        until("all hosts have begun", || begun() == hosts);
    }

    fn open(&self, root: &str) {
        fs::write(self.root(root).join("go"), "").expect("write");
    }

    fn end(&self, child: Child) -> Ran {
        let output = child.wait_with_output().expect("it ends");
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: self.project.fixed(&String::from_utf8_lossy(&output.stdout)),
            stderr: self.project.fixed(&String::from_utf8_lossy(&output.stderr)),
        }
    }

    /// Returns the processes of pods of this site, with their command lines.
    fn pods(&self) -> Vec<(i32, String)> {
        let entries = fs::read_dir("/proc").expect("/proc").flatten();
        let mine = self.kubeconfig.strip_suffix("credentials/admin.kubeconfig").expect("where the lab keeps it");
        entries
            .filter_map(|entry| {
                let number: i32 = entry.file_name().to_str()?.parse().ok()?;
                let line = fs::read_to_string(entry.path().join("cmdline")).ok()?.replace('\0', " ");
                (line.contains(mine) && line.contains(" --shard ")).then_some((number, line))
            })
            .collect()
    }

    /// Kills the pod that works on a shard.
    #[track_caller]
    fn kill(&self, shard: &str) {
        let pods = self.pods();
        let (pod, _) = pods.iter().find(|(_, line)| line.contains(&format!(" --shard {shard} "))).expect("a pod");
        // SAFETY: a signal to a process that this test has had started.
        assert_eq!(unsafe { libc::kill(*pod, libc::SIGKILL) }, 0);
    }
}

fn signal(child: &Child, signal: i32) {
    let number = i32::try_from(child.id()).expect("a process's number");
    // SAFETY: a signal to a process of this test.
    assert_eq!(unsafe { libc::kill(number, signal) }, 0);
}

/// A shard is killed in the middle, and the API server goes away and comes back: the hosts end as those of one process.
#[test]
fn what_is_lost_is_done_again() {
    let cluster = Cluster::up();
    let site = Site::new(&cluster, 6);
    site.project.write("site.yml", WAITING);
    site.open("alone");
    assert_eq!(site.run_alone("alone").code, 0);

    let run = site.start("spread", &["--shards", "3"]);
    site.all_wait("spread", 6);
    site.kill("1/3");
    cluster.lab(&["stop", "kube-apiserver"]);
    site.open("spread");
    until("the shards that are left come to the second play", || {
        site.state("spread").values().filter(|text| text.ends_with("second\n")).count() == 4
    });
    cluster.lab(&["start", "kube-apiserver"]);
    let ran = site.end(run);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("shard 1: ") && ran.stdout.contains("begins it again"), "{}", ran.stdout);
    assert_eq!(site.state("spread"), site.state("alone"));
    let line = |host: &str| recap(&ran).into_iter().find(|line| line.starts_with(host)).expect("each host has a line");
    assert!(line("h00").contains("ok=5    changed=4 "), "{}", line("h00"));
    assert!(line("h01").contains("ok=5    changed=2 "), "done before it was killed: {}", line("h01"));

    // A shard that is given up: its hosts are told as unreachable, and are the ones to try again.
    fs::remove_file(site.root("spread").join("go")).expect("it is there");
    for number in 0..6 {
        fs::write(site.root("spread").join(format!("h{number:02}/lines")), "first\n").expect("write");
    }
    let run = site.start("spread", &["--shards", "3", "--retries", "0"]);
    until("all pods run", || site.pods().len() == 3);
    site.kill("2/3");
    site.open("spread");
    let ran = site.end(run);
    assert_eq!(ran.code, 4, "{}\n{}", ran.stdout, ran.stderr);
    let lost: Vec<String> = recap(&ran)
        .into_iter()
        .filter(|line| line.contains("unreachable=1"))
        .map(|line| line[..3].to_owned())
        .collect();
    assert_eq!(lost, ["h02", "h05"]);
    let again = site.run_spread("spread", &["--shards", "2", "--retry"]);
    assert_eq!((again.code, recap(&again).len()), (0, 2), "{}", again.stdout);
    assert_eq!(site.state("spread"), site.state("alone"));
}

/// Whoever follows is killed, and another one takes over; and whoever wants to stop ends it for all.
#[test]
fn a_run_goes_on_without_whoever_follows_it_and_ends_when_it_is_told_to() {
    let cluster = Cluster::up();
    let site = Site::new(&cluster, 4);
    site.project.write("site.yml", WAITING);
    let mut run = site.start("spread", &["--shards", "2", "--name", "first"]);
    site.all_wait("spread", 4);
    run.kill().expect("it runs");
    run.wait().expect("it ends");
    site.open("spread");
    until("hosts go on", || site.state("spread").values().all(|text| text.ends_with("second\n") || text.is_empty()));
    assert!(
        !site.state("spread").keys().any(|name| name.ends_with("third")),
        "nobody has let the shards into the second play"
    );
    let mut attach = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
    attach
        .args(["spread", "--attach", "first", "--kubeconfig", &site.kubeconfig])
        .env_clear()
        .env("HOME", site.project.folder.path())
        .current_dir("/")
        .stdin(Stdio::null());
    let ran = site.project.wait(attach);
    assert_eq!((ran.code, recap(&ran).len()), (0, 4), "{}\n{}", ran.stdout, ran.stderr);
    assert_eq!(site.state("spread").keys().filter(|name| name.ends_with("third")).count(), 4);
    until("the Job is gone", || cluster.belongings().is_empty());

    let run = site.start("stopped", &["--shards", "2"]);
    site.all_wait("stopped", 4);
    signal(&run, libc::SIGINT);
    until("the Job is suspended", || cluster.get("jobs").iter().all(|job| job["spec"]["suspend"] == true));
    site.open("stopped");
    let ran = site.end(run);
    assert_eq!((ran.code, recap(&ran).len()), (99, 4), "{}\n{}", ran.stdout, ran.stderr);
    let state = site.state("stopped");
    assert!(state.values().all(|text| !text.contains("second")), "no further task has begun: {state:?}");
    until("the Job is gone", || cluster.belongings().is_empty());

    // One that is killed meanwhile has changed its hosts, and nobody knows how far: it is not passed over.
    let run = site.start("killed", &["--shards", "2"]);
    site.all_wait("killed", 4);
    signal(&run, libc::SIGINT);
    until("the Job is suspended", || cluster.get("jobs").iter().all(|job| job["spec"]["suspend"] == true));
    site.kill("1/2");
    site.open("killed");
    let ran = site.end(run);
    let lost: Vec<String> = recap(&ran).into_iter().filter(|line| line.contains("unreachable=1")).collect();
    assert_eq!((ran.code, recap(&ran).len(), lost.len()), (99, 4, 2), "{}\n{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("shard 1 is lost: "), "{}", ran.stderr);
}

#[test]
fn secrets_are_in_secrets_alone() {
    let cluster = Cluster::up();
    let site = Site::new(&cluster, 2);
    let secrets = ["vault-pass-w0rd", "become-pass-w0rd", "extra-w0rd", "inside-vault-w0rd", "key-w0rd", "host-w0rd"];
    let playbook = WAITING.replace(
        "state: directory}",
        "state: directory}\n    - fail: {msg: 'it is {{ sealed }}'}\n      ignore_errors: true",
    );
    site.project.write("site.yml", &playbook).write("sealed.yml", "sealed: inside-vault-w0rd\n");
    site.project.write("vault-pass", "vault-pass-w0rd\n").write("become-pass", "become-pass-w0rd\n");
    site.project.write("key", "key-w0rd\n").write("group_vars/web.yml", "ansible_become_password: host-w0rd\n");
    for name in ["vault-pass", "become-pass", "key", "site.yml", "hosts", "group_vars/web.yml"] {
        // Everybody may read them: what they are tells that they are secret.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        fs::set_permissions(site.project.path(name), mode).expect("chmod");
    }
    let mut seal = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
    seal.args(["vault", "encrypt", "sealed.yml", "--vault-password-file", "vault-pass"]);
    seal.env_clear().env("HOME", site.project.folder.path()).current_dir(site.project.folder.path());
    assert_eq!(site.project.wait(seal).code, 0);

    let arguments = ["--shards", "2", "--vault-password-file", "vault-pass", "--become-password-file", "become-pass"];
    let more = ["-e", "token=extra-w0rd", "-e", "@sealed.yml", "--private-key", "key", "-v"];
    let run = site.start("spread", &[&arguments[..], &more].concat());
    site.all_wait("spread", 2);
    let mut seen =
        cluster.lab(&["kubectl", "get", "jobs,pods,configmaps,events", "--output", "yaml", "--show-managed-fields"]);
    for config in cluster.get("configmaps") {
        let parts = config["binaryData"].as_object().into_iter().flatten();
        for (name, part) in parts.filter(|(name, _)| name.starts_with("part-")) {
            let bytes =
                base64::Engine::decode(&base64::engine::general_purpose::STANDARD, part.as_str().expect("text"));
            let text = kubeon_run::spread::bundle::unpacked(&bytes.expect("base64")).expect("one piece is a whole");
            assert!(text.contains("- hosts: web"), "{name}");
            seen.push_str(&text);
        }
    }
    let pods: Vec<String> =
        cluster.get("pods").iter().map(|pod| pod["metadata"]["name"].as_str().expect("a name").to_owned()).collect();
    assert_eq!(pods.len(), 2);
    for pod in &pods {
        let log = cluster.lab(&["kubectl", "logs", pod]);
        assert!(log.contains("it is ********"), "{log}");
        seen.push_str(&log);
    }
    site.pods().iter().for_each(|(_, line)| seen.push_str(line));
    for secret in secrets {
        let coded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, secret);
        assert!(
            !seen.contains(secret) && !seen.contains(&coded[..coded.len() - 3]),
            "{secret} is where it must not be"
        );
    }
    let owners: Vec<Value> =
        cluster.get("secrets").iter().map(|secret| secret["metadata"]["ownerReferences"][0]["kind"].clone()).collect();
    assert!(!owners.is_empty() && owners.iter().all(|kind| kind == "Job"), "{owners:?}");
    site.open("spread");
    let ran = site.end(run);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    assert!(!ran.stdout.contains("inside-vault-w0rd"), "{}", ran.stdout);
    until("the Secrets are gone with the Job", || cluster.belongings().is_empty());
}
