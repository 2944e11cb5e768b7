//! The labs of real hosts and of a real cluster, by their own commands.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::sshd::Folder;

/// A fleet of booted hosts in a folder of its own, taken down with the value.
pub struct Fleet {
    folder: Folder,
    inventory: PathBuf,
}

impl Fleet {
    /// Boots hosts, each `NAME:FACE` as `tests/fleet/README.md` describes them.
    pub fn up(hosts: &[&str]) -> Fleet {
        let folder = Folder::new();
        let inventory = folder.path().join("hosts.yml");
        let fleet = Fleet { folder, inventory };
        let mut arguments = vec!["up"];
        arguments.extend(hosts);
        fleet.lab("fleet/fleet", &arguments);
        fleet.write_inventory();
        fleet
    }

    /// Writes the inventory anew, after a host was added.
    pub fn write_inventory(&self) {
        let text = self.fleet(&["inventory"]);
        std::fs::write(&self.inventory, text).expect("a writable folder");
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn inventory(&self) -> &str {
        self.inventory.to_str().expect("a path in UTF-8")
    }

    /// Runs a command of the fleet lab, which must succeed, and returns what it printed.
    pub fn fleet(&self, arguments: &[&str]) -> String {
        self.lab("fleet/fleet", arguments)
    }

    /// Runs a program below `tests/`, which must succeed, and returns what it printed.
    pub fn lab(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.try_lab(program, arguments);
        let (told, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{program} {arguments:?}: {}\n{told}{said}", output.status);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a program below `tests/` and returns how it ended.
    pub fn try_lab(&self, program: &str, arguments: &[&str]) -> Output {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(program);
        Command::new(&path)
            .args(arguments)
            .env("KUBEON_LAB", self.folder.path().join("lab"))
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Runs a shell's line on a host, not through SSH: the judge's eye. It must succeed.
    pub fn see(&self, host: &str, line: &str) -> String {
        self.fleet(&["exec", host, "sh", "-c", line])
    }

    /// As [`Fleet::see`] for a line that may fail.
    pub fn try_see(&self, host: &str, line: &str) -> Output {
        self.try_lab("fleet/fleet", &["exec", host, "sh", "-c", line])
    }

    /// Starts a cluster that the hosts can reach, and makes nodes of hosts, each `HOST` or `HOST=NODE`.
    pub fn cluster_up(&self, nodes: &[&str]) {
        self.lab("cluster/cluster", &["up", "--fleet"]);
        self.join(nodes);
    }

    /// Makes nodes of hosts, each `HOST` or `HOST=NODE`.
    pub fn join(&self, nodes: &[&str]) {
        let mut arguments = vec!["kubelet", "join"];
        arguments.extend(nodes);
        self.lab("cluster/cluster", &arguments);
    }

    /// Returns the path of the cluster administrator's kubeconfig.
    pub fn kubeconfig(&self) -> String {
        self.lab("cluster/cluster", &["kubeconfig"]).trim().to_owned()
    }

    /// Runs kubectl, which must succeed, and returns what it printed.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let mut all = vec!["kubectl"];
        all.extend(arguments);
        self.lab("cluster/cluster", &all)
    }

    /// Returns objects of the cluster's API, as kubectl gets them.
    pub fn objects(&self, arguments: &[&str]) -> Vec<serde_json::Value> {
        let mut all = vec!["get", "--output", "json"];
        all.extend(arguments);
        let list: serde_json::Value = serde_json::from_str(&self.kubectl(&all)).expect("JSON from kubectl");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Returns a setting that `fleet env` prints.
    pub fn setting(&self, name: &str) -> String {
        let settings = self.fleet(&["env"]);
        let found = settings.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("no {name} in:\n{settings}")).to_owned()
    }

    /// Runs the program over the fleet's inventory.
    pub fn run(&self, arguments: &[&str]) -> Run {
        Run::of(self.command(arguments).output().expect("the program starts"))
    }

    /// Returns the program's command over the fleet's inventory, for tests that do something meanwhile.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
        command
            .args(["-i", self.inventory()])
            .args(arguments)
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .env("HOME", self.folder.path())
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // Nothing is to be learnt from a failure here that the next test would not meet anyway.
        self.try_lab("cluster/cluster", &["down"]);
        self.try_lab("fleet/fleet", &["down"]);
    }
}

/// How a run of the program ended.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    pub fn of(output: Output) -> Run {
        Run {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Returns a count of a host's recap line, such as `changed`.
    pub fn count(&self, host: &str, what: &str) -> u32 {
        let line = self
            .stdout
            .lines()
            .find(|line| line.starts_with(host) && line.contains(" : ok="))
            .unwrap_or_else(|| panic!("no recap of {host} in:\n{}\n{}", self.stdout, self.stderr));
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(what)?.strip_prefix('='));
        word.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {what} in: {line}"))
    }

    /// Asserts the exit status, showing everything when it is another.
    #[track_caller]
    pub fn ended(self, code: i32) -> Run {
        assert_eq!(self.code, Some(code), "\n{}\n{}", self.stdout, self.stderr);
        self
    }
}
