//! Mistakes that can be seen are shown before anything runs: all of them, each at its place, as a person sees them.

mod arguments;
mod command_line;
mod compared;
mod files;
mod hosts;
mod keywords;
mod most_asked;
mod spread;
mod templates;
mod text;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with files, of which `site.yml` is run.
struct Project(PathBuf);

impl Project {
    fn new(name: &str, files: &[(&str, &str)]) -> Project {
        let folder = std::env::temp_dir().join(format!("kubeon-mistakes-{}-{name}", std::process::id()));
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a temporary folder");
            std::fs::write(path, text).expect("a writable folder");
        }
        Project(folder)
    }

    /// Runs the playbook; returns the status and what was told on standard error.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        self.kubeon(&[], arguments)
    }

    /// Checks the playbook, likewise.
    fn check(&self) -> (Option<i32>, String) {
        self.kubeon(&["check"], &[])
    }

    /// Runs the playbook; returns the status and all that was told, of tasks that failed too.
    fn told(&self) -> (Option<i32>, String) {
        let output = self.output(&[], &[]);
        let told = [output.stderr, output.stdout].concat();
        (output.status.code(), String::from_utf8_lossy(&told).into_owned())
    }

    fn kubeon(&self, command: &[&str], arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.output(command, arguments);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn output(&self, command: &[&str], arguments: &[&str]) -> Output {
        self.started("web1,web2,", command, arguments)
    }

    /// Runs the playbook on these hosts.
    fn output_of(&self, hosts: &str) -> Output {
        self.started(hosts, &[], &[])
    }

    fn started(&self, hosts: &str, command: &[&str], arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_kubeon-run"))
            .current_dir(&self.0)
            .args(command)
            .args(["site.yml", "-i", hosts, "-c", "local"])
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.0)
            .output()
            .expect("the program starts")
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Runs a play whose first task would leave a marker; expects it not to, and exactly these words.
#[track_caller]
fn expect(name: &str, tasks: &str, told: &str) {
    let play =
        format!("- hosts: all\n  gather_facts: false\n  tasks:\n    - file: {{path: marker, state: touch}}\n{tasks}");
    expect_files(name, &[("site.yml", &play)], &[], 4, told);
}

#[track_caller]
fn expect_files(name: &str, files: &[(&str, &str)], arguments: &[&str], code: i32, told: &str) {
    let project = Project::new(name, files);
    let (status, stderr) = project.run(arguments);
    assert_eq!(stderr.trim(), told.trim(), "of {name}: {stderr}");
    assert_eq!(status, Some(code), "of {name}");
    assert!(!Path::new(&project.0.join("marker")).exists(), "{name} ran something");
}
