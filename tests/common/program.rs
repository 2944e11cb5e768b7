//! The program in a folder of its own: files in, exit status and output out.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::sshd::Folder;

/// What a run came to.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// A folder with playbooks, which is also the home of whoever runs them.
pub struct Project {
    pub folder: Folder,
}

impl Project {
    /// Makes a folder with an inventory.
    pub fn new(inventory: &str) -> Project {
        let project = Project { folder: Folder::new() };
        project.write("hosts", inventory);
        project
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> &Project {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text.trim_start_matches('\n')).expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("chmod");
        self
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Returns the program with nothing of this machine's configuration.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("ANSIBLE_CONFIG", "/dev/null")
            .current_dir(self.folder.path())
            .args(["-i", "hosts"])
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.wait(self.command(arguments))
    }

    pub fn wait(&self, mut command: Command) -> Ran {
        let output = command.output().expect("the program starts");
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: self.fixed(&String::from_utf8_lossy(&output.stdout)),
            stderr: self.fixed(&String::from_utf8_lossy(&output.stderr)),
        }
    }

    /// Returns text without what differs from run to run: the folder, times.
    pub fn fixed(&self, text: &str) -> String {
        let folder = fs::canonicalize(self.folder.path()).expect("a folder");
        let text = text.replace(&folder.display().to_string(), "FOLDER");
        let text = between(&text, "\"start\": \"", "\"", "START");
        let text = between(&text, "\"end\": \"", "\"", "END");
        let text = between(&text, "\"delta\": \"", "\"", "DELTA");
        between(&text, " time=\"", "\"", "TIME")
    }

    /// Returns the folder of the last run's record.
    pub fn record(&self) -> PathBuf {
        let mut runs: Vec<PathBuf> = fs::read_dir(self.path(".local/state/kubeon-run/runs"))
            .expect("records")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        runs.sort_by_key(|run| fs::metadata(run.join("events.jsonl")).and_then(|file| file.modified()).ok());
        runs.pop().expect("a record")
    }

    /// Returns a file of the last run's record; empty when it is not there.
    pub fn read_record(&self, name: &str) -> String {
        fs::read_to_string(self.record().join(name)).unwrap_or_default()
    }
}

/// Replaces what stands between two texts.
pub fn between(text: &str, before: &str, after: &str, by: &str) -> String {
    let mut parts = text.split(before);
    let mut fixed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.find(after).map_or(part, |at| &part[at..]);
        fixed.push_str(&format!("{before}{by}{rest}"));
    }
    fixed
}

/// Waits until something is so.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !so() {
        assert!(std::time::Instant::now() < end, "{what} did not come about");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Returns every file below a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            Ok(_) | Err(_) => {}
        }
    }
    found
}
