//! What goes wrong on real hosts while a run is at work there: each fault is one host's alone, ends within its time,
//! leaves nothing half-written, and a rerun converges.

#[path = "../common/mod.rs"]
mod common;

mod apt;
mod disk;
mod lost;

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::lab::{Fleet, Run};

/// How long a host may be silent before it counts as unreachable, in these tests.
pub const SILENCE_S: u64 = 8;
/// What a run may take beyond that: it connects, and the other hosts end their work.
const SLACK: Duration = Duration::from_secs(60);
/// The host to which nothing happens.
pub const BYSTANDER: &str = "bystander";

/// A shell's function that ends the agents of a host, and one that lets those go on that were stopped.
pub const AGENTS: &str = r#"
agents() { for p in /proc/[0-9]*; do case $(readlink $p/exe) in */kubeon-run/agent-*) kill -$1 ${p#/proc/};; esac; done; }
"#;

/// Hosts to which something happens, and a bystander.
pub struct Scene {
    pub fleet: Fleet,
}

impl Scene {
    pub fn new(victims: &[&str]) -> Scene {
        let mut hosts: Vec<String> = victims.iter().map(|name| format!("{name}:none")).collect();
        hosts.push(format!("{BYSTANDER}:none"));
        Scene { fleet: Fleet::up(&hosts.iter().map(String::as_str).collect::<Vec<_>>()) }
    }

    /// Starts a run over all hosts.
    pub fn start(&self, playbook: &str) -> (Child, Instant) {
        let path = self.fleet.folder().join("site.yml");
        std::fs::write(&path, playbook).expect("a writable folder");
        let child = self
            .fleet
            .command(&[path.to_str().expect("a path in UTF-8"), "-T", "5"])
            .env("KUBEON_SILENCE_TIMEOUT", SILENCE_S.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        (child, Instant::now())
    }

    /// Waits for the end of a run, which must come in time.
    pub fn ended(&self, child: Child, since: Instant) -> Run {
        let run = Run::of(child.wait_with_output().expect("the program ends"));
        let took = since.elapsed();
        assert!(took < Duration::from_secs(SILENCE_S) + SLACK, "took {took:?}\n{}", run.stdout);
        run
    }

    /// Runs a playbook to its end.
    pub fn run(&self, playbook: &str) -> Run {
        let (child, since) = self.start(playbook);
        self.ended(child, since)
    }

    /// Waits until a shell's line succeeds on a host: longer than systemd gives a service to stop, 90 s.
    pub fn until(&self, host: &str, line: &str) {
        let end = Instant::now() + Duration::from_secs(150);
        while !self.fleet.try_see(host, line).status.success() {
            if Instant::now() > end {
                let seen = self.fleet.try_see(host, "ps axo pid,stat,etime,args; ls -lA /srv /run /root");
                panic!("never so on {host}: {line}\n{}", String::from_utf8_lossy(&seen.stdout));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Does something for each of several hosts at once.
pub fn at_once<T: Sync>(all: &[T], each: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        for one in all {
            let each = &each;
            scope.spawn(move || each(one));
        }
    });
}
