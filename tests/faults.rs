//! What goes wrong on real hosts while a run is at work there: each fault is one host's alone, ends within its time,
//! leaves nothing half-written, and a rerun converges.

mod common;

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::lab::{Fleet, Run};

/// How long a host may be silent before it counts as unreachable, in these tests.
const SILENCE_S: u64 = 12;
/// What a run may take beyond that: it connects, and the other hosts end their work.
const SLACK: Duration = Duration::from_secs(30);

/// Two hosts, of which the first meets the fault.
struct Scene {
    fleet: Fleet,
}

impl Scene {
    fn new() -> Scene {
        Scene { fleet: Fleet::up(&["victim:none", "bystander:none"]) }
    }

    fn start(&self, playbook: &str) -> (Child, Instant) {
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

    /// Waits until a shell's line succeeds on a host.
    fn until(&self, host: &str, line: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        while !self.fleet.try_see(host, line).status.success() {
            assert!(Instant::now() < end, "never so on {host}: {line}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn ended(&self, child: Child, since: Instant) -> Run {
        let run = Run::of(child.wait_with_output().expect("the program ends"));
        let took = since.elapsed();
        assert!(took < Duration::from_secs(SILENCE_S) + SLACK, "took {took:?}\n{}", run.stdout);
        run
    }

    /// Asserts that only the victim was lost.
    fn lost_alone(&self, run: Run) {
        let run = run.ended(4);
        assert_eq!(run.count("victim", "unreachable"), 1, "{}", run.stdout);
        assert_eq!(run.count("bystander", "unreachable") + run.count("bystander", "failed"), 0, "{}", run.stdout);
        assert_eq!(self.fleet.see("bystander", "cat /root/after"), "done\n");
        assert!(!self.fleet.try_see("victim", "test -e /root/after").status.success(), "it went on on a lost host");
    }

    /// Asserts that a rerun brings the victim to where it was to be.
    fn rerun_converges(&self, playbook: &str) {
        let (child, since) = self.start(playbook);
        self.ended(child, since).ended(0);
        assert_eq!(self.fleet.see("victim", "cat /root/after"), "done\n");
        self.fleet.see("victim", "rm -f /root/after");
    }
}

/// A task that takes a while, and one after it that shows who got there.
const SLOW: &str = "
- hosts: all
  gather_facts: false
  tasks:
    - command: sh -c 'touch /run/at-it; sleep 3; rm /run/at-it'
    - copy: {dest: /root/after, content: \"done\\n\"}
";

#[test]
fn a_host_that_vanishes_freezes_or_dies_is_lost_alone() {
    let scene = Scene::new();
    for (fault, mend) in [("cut", "uncut"), ("freeze", "thaw"), ("kill", "boot")] {
        let (child, since) = scene.start(SLOW);
        scene.until("victim", "test -e /run/at-it");
        scene.fleet.fleet(&[fault, "victim"]);
        let run = scene.ended(child, since);
        scene.fleet.fleet(&[mend, "victim"]);
        scene.lost_alone(run);
        scene.rerun_converges(SLOW);
        scene.fleet.see("bystander", "rm -f /root/after");
    }
}

#[test]
fn a_host_that_is_gone_before_the_run_is_lost_alone() {
    let scene = Scene::new();
    scene.fleet.fleet(&["cut", "victim"]);
    let (child, since) = scene.start(SLOW);
    let run = scene.ended(child, since);
    scene.fleet.fleet(&["uncut", "victim"]);
    scene.lost_alone(run);
    scene.rerun_converges(SLOW);
}

#[test]
fn an_agent_that_is_killed_loses_its_host_alone() {
    let scene = Scene::new();
    let (child, since) = scene.start(SLOW);
    scene.until("victim", "test -e /run/at-it");
    // The agent is the parent of the task's own shell.
    scene.fleet.see("victim", "kill -9 $(ps -o ppid= -p $(pgrep -f 'touch /run/at-i[t]' | head -1))");
    scene.lost_alone(scene.ended(child, since));
    scene.rerun_converges(SLOW);
}

#[test]
fn a_host_that_reboots_by_itself_is_lost_alone_and_a_reboot_task_waits_for_it() {
    let scene = Scene::new();
    let (child, since) = scene.start(SLOW);
    scene.until("victim", "test -e /run/at-it");
    scene.fleet.see("victim", "systemctl reboot --no-block");
    let run = scene.ended(child, since);
    scene.lost_alone(run);
    scene.until("victim", "systemctl is-active ssh");
    scene.rerun_converges(SLOW);

    let before = scene.fleet.see("victim", "stat -c %Y /proc/1");
    let reboot = "
- hosts: victim
  gather_facts: false
  tasks:
    - reboot: {reboot_timeout: 60}
    - copy: {dest: /root/after, content: \"done\\n\"}
";
    let (child, since) = scene.start(reboot);
    scene.ended(child, since).ended(0);
    assert_ne!(scene.fleet.see("victim", "stat -c %Y /proc/1"), before, "it did not reboot");
    assert_eq!(scene.fleet.see("victim", "cat /root/after"), "done\n");
}

#[test]
fn a_full_disk_leaves_the_old_file_whole() {
    let scene = Scene::new();
    scene.fleet.see("victim", "mkdir /small && mount -t tmpfs -o size=64k none /small && echo old >/small/file");
    scene.fleet.see("bystander", "mkdir /small");
    let big = format!(
        "
- hosts: all
  gather_facts: false
  tasks:
    - copy: {{dest: /small/file, content: \"{}\\n\"}}
    - copy: {{dest: /root/after, content: \"done\\n\"}}
",
        "x".repeat(200_000)
    );
    let (child, since) = scene.start(&big);
    let run = scene.ended(child, since).ended(2);
    assert_eq!((run.count("victim", "failed"), run.count("bystander", "failed")), (1, 0), "{}", run.stdout);
    assert!(run.stdout.contains("No space left"), "the reason is not told:\n{}", run.stdout);
    assert_eq!(scene.fleet.see("victim", "cat /small/file; ls -A /small"), "old\nfile\n", "something was left behind");
    assert_eq!(scene.fleet.see("bystander", "wc -c </small/file"), "200001\n");
    scene.fleet.see("victim", "umount /small");
    scene.rerun_converges(&big);
}

#[test]
fn apt_killed_in_the_middle_is_taken_up_by_a_rerun() {
    let scene = Scene::new();
    let install = "
- hosts: victim
  gather_facts: false
  tasks:
    - apt: {name: lab-daemon, update_cache: true}
    - copy: {dest: /root/after, content: \"done\\n\"}
";
    // A hook that waits lets the test strike while dpkg holds its lock.
    let hook = r#"printf 'DPkg::Pre-Invoke {"touch /run/at-it; while test -e /run/hold; do sleep 0.1; done"};\n' >/etc/apt/apt.conf.d/99hold; touch /run/hold"#;
    scene.fleet.see("victim", hook);
    let (child, since) = scene.start(install);
    scene.until("victim", "test -e /run/at-it");
    scene.fleet.see("victim", "pkill -9 apt-get; rm -f /run/hold /etc/apt/apt.conf.d/99hold /run/at-it");
    let run = scene.ended(child, since).ended(2);
    assert_eq!(run.count("victim", "failed"), 1, "{}", run.stdout);
    // Half-way through unpacking is where dpkg asks to be told to go on.
    scene.fleet.see("victim", "mkdir -p /var/lib/dpkg/updates && : >/var/lib/dpkg/updates/0001");
    scene.rerun_converges(install);
    assert!(scene.fleet.see("victim", "dpkg -s lab-daemon").contains("Status: install ok installed"));
}
