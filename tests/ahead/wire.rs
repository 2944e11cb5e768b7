//! Hosts that tell what they were sent.

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use crate::SETTING;
use crate::common::program::{Project, Ran, until};

/// Hosts behind a program in docker's place, which notes all that they are sent.
pub struct Wire {
    pub project: Project,
}

impl Wire {
    pub fn new(hosts: &[&str]) -> Wire {
        let project = Project::new("");
        let inventory: String =
            hosts.iter().fold(String::new(), |text, host| text + host + " ansible_connection=docker\n");
        project.write("hosts", &inventory);
        let home = project.folder.path().display().to_string();
        project.write(
            "bin/docker",
            &format!(
                "#!/bin/bash\nIFS= read -r line\nwhile test -e {home}/$3.wait; do sleep 0.05; done\n\
                 cut() {{ if test -e {home}/$3.cut; then dd bs=1 count=$(cat {home}/$3.cut) status=none; else cat; fi; }}\n\
                 hear() {{ dd bs=1 count=$(cat {home}/$3.deaf) status=none; exec 0<&-; sleep 3; }}\n\
                 sent() {{ if test -e {home}/$3.deaf; then hear $@; else cut $@ | tee -a {home}/$3.sent; fi; }}\n\
                 exec {} agent < <(sent $@) > >(tee -a {home}/$3.said)\n",
                env!("CARGO_BIN_EXE_kubeon-run")
            ),
        );
        let program = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(project.path("bin/docker"), program).expect("chmod");
        Wire { project }
    }

    pub fn command(&self, arguments: &[&str], setting: Option<&str>) -> std::process::Command {
        let mut command = self.project.command(arguments);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.project.path("bin").display()));
        command.envs(setting.map(|setting| (SETTING, setting)));
        command
    }

    pub fn run(&self, playbook: &str, setting: Option<&str>) -> Ran {
        self.project.write("site.yml", playbook);
        self.project.wait(self.command(&["site.yml"], setting))
    }

    /// Starts four commands on the host `a`, of which the second waits for the file `go`; returns when it does.
    pub fn at_the_second_of_four(&self) -> Child {
        let home = self.project.folder.path().display().to_string();
        self.project.write(
            "site.yml",
            &format!(
                "
- hosts: all
  gather_facts: false
  tasks:
    - shell: echo one >> {home}/log
    - shell: echo two >> {home}/log; touch {home}/waiting; until test -e {home}/go -o ! -e {home}; do sleep 0.05; done
    - shell: echo three >> {home}/log
    - shell: echo four >> {home}/log
"
            ),
        );
        let child = self
            .command(&["site.yml"], Some("safe"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        until("the second task", || self.project.path("waiting").exists());
        child
    }

    /// Returns how many tasks a host was sent alone, each of them a round trip, and how many behind another: to be
    /// executed, and to be planned.
    pub fn sent(&self, host: &str) -> (usize, usize, usize) {
        let text = self.text(&format!("{host}.sent"));
        let count = |kind: &str| text.matches(&format!("{{\"{kind}\":")).count();
        (count("run"), count("then"), count("plan"))
    }

    /// Returns what travelled: of a host that said something, or was sent something.
    pub fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.project.path(name)).unwrap_or_default()).into_owned()
    }
}
