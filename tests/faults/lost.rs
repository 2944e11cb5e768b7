//! Hosts that are lost, each in another way, at several points of a run.

use crate::*;

/// What happens to a host; its name is the host's.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// The network carries nothing any more.
    Cut,
    /// The kernel still answers, nothing else does.
    Freeze,
    PowerLoss,
    /// It shuts down and comes back by itself.
    Reboot,
    AgentKilled,
    /// The server's side of the connection ends.
    LoginKilled,
}

const FAULTS: [(&str, Fault); 6] = [
    ("cut", Fault::Cut),
    ("freeze", Fault::Freeze),
    ("power", Fault::PowerLoss),
    ("reboot", Fault::Reboot),
    ("agent", Fault::AgentKilled),
    ("login", Fault::LoginKilled),
];

impl Fault {
    fn strike(self, scene: &Scene, host: &str) {
        match self {
            Fault::Cut => drop(scene.fleet.fleet(&["cut", host])),
            Fault::Freeze => drop(scene.fleet.fleet(&["freeze", host])),
            Fault::PowerLoss => drop(scene.fleet.fleet(&["kill", host])),
            Fault::Reboot => drop(scene.fleet.see(host, "touch /run/before; systemctl reboot --no-block")),
            Fault::AgentKilled => drop(scene.fleet.see(host, &format!("{AGENTS} agents KILL"))),
            Fault::LoginKilled => {
                let parents = AGENTS.replace("kill -$1 ${p#/proc/}", "awk '/^PPid/ { print $2 }' $p/status");
                drop(scene.fleet.see(host, &format!("{parents} kill -KILL $(agents)")));
            }
        }
    }

    fn mend(self, scene: &Scene, host: &str) {
        match self {
            Fault::Cut => drop(scene.fleet.fleet(&["uncut", host])),
            Fault::Freeze => drop(scene.fleet.fleet(&["thaw", host])),
            Fault::PowerLoss => drop(scene.fleet.fleet(&["boot", host])),
            Fault::Reboot => scene.until(host, "test ! -e /run/before && systemctl is-active ssh"),
            Fault::AgentKilled | Fault::LoginKilled => {}
        }
        // A point of ours may have stopped the agent: what is left of it ends as it would have.
        scene.fleet.see(host, &format!("{AGENTS} agents CONT"));
    }
}

/// Where in a run the faults strike.
struct Point {
    name: &'static str,
    playbook: String,
    /// Done on each victim before the run: it makes `/run/at-it` when the point is reached.
    arrange: &'static str,
    /// On each victim, after the fault is mended and before the rerun.
    untouched: &'static str,
    /// On every host, after the rerun.
    converged: &'static str,
}

/// Size of the file whose upload is cut short: far more than all buffers on the way hold.
const BIG_BYTES: usize = 12 << 20;

/// A task that goes on only when the test says so.
const WAIT: &str = "sh -c 'touch /run/at-it; while test ! -e /run/go; do sleep 0.1; done'";

fn play(tasks: &str) -> String {
    format!(
        "- hosts: all\n  gather_facts: false\n  tasks:\n{tasks}    - copy: {{dest: /root/after, content: \"done\\n\"}}\n"
    )
}

fn points(big: &str) -> Vec<Point> {
    vec![
        Point {
            name: "between two tasks",
            playbook: play(&format!(
                "    - command: touch /run/at-it\n    - {{command: \"{WAIT}\", when: inventory_hostname == '{BYSTANDER}'}}\n"
            )),
            arrange: "true",
            // What a frozen host's kernel has received is read once it thaws.
            untouched: "test ! -e /root/after || test $(hostname) = freeze",
            converged: "true",
        },
        Point {
            name: "while a command runs",
            playbook: play(&format!("    - command: \"{WAIT}\"\n")),
            arrange: "true",
            untouched: "test ! -e /root/after",
            converged: "true",
        },
        Point {
            name: "in the midst of an upload",
            playbook: play(&format!("    - copy: {{src: {big}, dest: /srv/big}}\n")),
            // The temporary file's name tells whose it is.
            arrange: "echo old >/srv/big
                setsid sh -c 'while sleep 0.05; do
                    part=$(find /srv -name \".big.kubeon-*\" -size +1000k)
                    pid=${part#*.kubeon-}
                    [ -z \"$part\" ] || { kill -STOP ${pid%-*}; touch /run/at-it; exit; }
                done' >/dev/null 2>&1 &",
            untouched: "test \"$(cat /srv/big)\" = old && test ! -e /root/after",
            converged: "test \"$(ls -A /srv)\" = big && sha256sum --check --quiet /root/sum",
        },
        Point {
            name: "between a change and its proof",
            playbook: play("    - group: {name: proven, gid: 4321}\n"),
            arrange: "cat >/usr/local/sbin/groupadd <<'END'
#!/bin/sh
/usr/sbin/groupadd \"$@\" || exit
rm /usr/local/sbin/groupadd
kill -STOP $PPID
touch /run/at-it
END
                chmod 755 /usr/local/sbin/groupadd",
            untouched: "grep -q '^proven:x:4321:' /etc/group && test ! -e /root/after",
            converged: "test $(grep -c '^proven:' /etc/group) = 1 && test ! -e /etc/group.lock",
        },
    ]
}

#[test]
fn hosts_that_are_lost_are_lost_alone_wherever_a_run_is() {
    let names: Vec<&str> = FAULTS.iter().map(|(name, _)| *name).collect();
    let scene = Scene::new(&names);
    let big = scene.fleet.folder().join("big");
    let bytes: Vec<u8> = (0..BIG_BYTES as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(&big, bytes).expect("a writable folder");
    let sum = common::sshd::must("sha256sum", &[big.to_str().expect("UTF-8")]);
    let sum = format!("{}  /srv/big", sum.split(' ').next().expect("a sum"));
    let everywhere: Vec<&str> = names.iter().copied().chain([BYSTANDER]).collect();
    at_once(&everywhere, |host| drop(scene.fleet.see(host, &format!("echo '{sum}' >/root/sum"))));
    for point in points(big.to_str().expect("UTF-8")) {
        let begin = Instant::now();
        strike_at(&scene, &point, &everywhere);
        println!("{:5.1} s  {}", begin.elapsed().as_secs_f64(), point.name);
    }
    gone_before_the_run(&scene, &everywhere);
}

fn strike_at(scene: &Scene, point: &Point, everywhere: &[&str]) {
    let name = point.name;
    at_once(&FAULTS, |(host, _)| drop(scene.fleet.see(host, point.arrange)));
    let (child, since) = scene.start(&point.playbook);
    let waiting = if point.playbook.contains(BYSTANDER) { &[BYSTANDER][..] } else { &[] };
    for host in FAULTS.iter().map(|(host, _)| host).chain(waiting) {
        scene.until(host, "test -e /run/at-it");
    }
    at_once(&FAULTS, |(host, fault)| fault.strike(scene, host));
    scene.fleet.see(BYSTANDER, "touch /run/go");
    let run = scene.ended(child, since).ended(4);
    at_once(&FAULTS, |(host, fault)| fault.mend(scene, host));
    lost_alone(scene, &run, name);

    for (host, _) in FAULTS {
        let seen = scene.fleet.try_see(host, point.untouched);
        assert!(seen.status.success(), "{name}, {host}: {} is not so\n{}", point.untouched, run.stdout);
    }
    at_once(everywhere, |host| drop(scene.fleet.see(host, "touch /run/go")));
    converges(scene, point, everywhere);
}

/// Asserts that each host that met a fault was lost, and no other.
fn lost_alone(scene: &Scene, run: &Run, when: &str) {
    for (host, _) in FAULTS {
        assert_eq!((run.count(host, "unreachable"), run.count(host, "failed")), (1, 0), "{when}\n{}", run.stdout);
        assert!(run.stdout.contains(&format!("fatal: [{host}]: UNREACHABLE! ")), "{when}\n{}", run.stdout);
    }
    assert_eq!(run.count(BYSTANDER, "unreachable") + run.count(BYSTANDER, "failed"), 0, "{when}\n{}", run.stdout);
    assert_eq!(scene.fleet.see(BYSTANDER, "cat /root/after"), "done\n");
}

/// Asserts that a rerun brings every host to where it was to be, and leaves no traces.
fn converges(scene: &Scene, point: &Point, everywhere: &[&str]) {
    let name = point.name;
    let run = scene.run(&point.playbook).ended(0);
    for host in everywhere {
        let seen = scene.fleet.try_see(host, point.converged);
        assert!(seen.status.success(), "{name}, {host}: {} is not so\n{}", point.converged, run.stdout);
        assert_eq!(scene.fleet.see(host, "cat /root/after"), "done\n", "{name}, {host}");
    }
    at_once(everywhere, |host| {
        let left = scene.fleet.see(host, "find / -xdev -name '*kubeon-[0-9]*' -o -name '.new-*' -path '*kubeon-run*'");
        assert_eq!(left, "", "{name}: left behind on {host}");
        drop(scene.fleet.see(host, "rm -rf /root/after /srv/* /run/at-it /run/go"));
    });
}

/// Before the run there is neither an agent nor a login to end: there the server itself is not running.
fn gone_before_the_run(scene: &Scene, everywhere: &[&str]) {
    let faults = &FAULTS[..3];
    let refusing = &FAULTS[5].0;
    at_once(faults, |(host, fault)| fault.strike(scene, host));
    scene.fleet.see(refusing, "systemctl stop ssh.socket ssh");
    let playbook = play("");
    let run = scene.run(&playbook).ended(4);
    at_once(faults, |(host, fault)| fault.mend(scene, host));
    scene.fleet.see(refusing, "systemctl start ssh");
    let lost: Vec<&str> = faults.iter().map(|(host, _)| *host).chain([*refusing]).collect();
    for host in everywhere {
        let unreachable = u32::from(lost.contains(host));
        assert_eq!((run.count(host, "unreachable"), run.count(host, "failed")), (unreachable, 0), "{}", run.stdout);
    }
    for host in lost {
        assert!(!scene.fleet.try_see(host, "test -e /root/after").status.success(), "it went on on {host}");
    }
    scene.run(&playbook).ended(0);
    at_once(everywhere, |host| assert_eq!(scene.fleet.see(host, "cat /root/after"), "done\n", "{host}"));
}

#[test]
fn a_reboot_task_waits_for_its_host() {
    let scene = Scene::new(&["victim"]);
    let boot = "stat -c %Y /proc/1";
    let before = [scene.fleet.see("victim", boot), scene.fleet.see(BYSTANDER, boot)];
    let reboot = "
- hosts: victim
  gather_facts: false
  tasks:
    - reboot: {reboot_timeout: 60}
    - copy: {dest: /root/after, content: \"done\\n\"}
";
    scene.run(reboot).ended(0);
    assert_ne!(scene.fleet.see("victim", boot), before[0], "it did not reboot");
    assert_eq!(scene.fleet.see(BYSTANDER, boot), before[1], "another host was rebooted");
    assert_eq!(scene.fleet.see("victim", "cat /root/after"), "done\n");
}
