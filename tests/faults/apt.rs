//! apt that is killed, or loses its host, in the middle of its work.

use crate::*;

const INSTALL: &str = "
- hosts: all
  gather_facts: false
  tasks:
    - apt: {name: lab-daemon, update_cache: true, policy_rc_d: 0}
    - copy: {dest: /root/after, content: \"done\\n\"}
";

/// Where apt is when it is struck: how a host is made to wait there, `WAIT` standing for the waiting.
const POINTS: [(&str, &str); 3] = [
    ("before lists are fetched", r#"printf 'APT::Update::Pre-Invoke {"WAIT"};\n' >/etc/apt/apt.conf.d/99hold"#),
    ("before packages are unpacked", r#"printf 'DPkg::Pre-Invoke {"WAIT"};\n' >/etc/apt/apt.conf.d/99hold"#),
    // The package's own script calls it, by whatever path dpkg searches.
    (
        "while a package is configured",
        r#"cp /usr/bin/systemctl /root/real-systemctl
           printf '#!/bin/sh\n[ "$1" != daemon-reload ] || { WAIT; }\nexec /root/real-systemctl "$@"\n' >/root/hold-systemctl
           chmod 755 /root/hold-systemctl; mount --bind /root/hold-systemctl /usr/bin/systemctl"#,
    ),
];
const WAIT: &str = "touch /run/at-it; while test -e /run/hold; do sleep 0.1; done";
const RELEASE: &str = "rm -f /run/hold /run/at-it /etc/apt/apt.conf.d/99hold
    ! mountpoint -q /usr/bin/systemctl || umount --lazy /usr/bin/systemctl";
/// Ends apt and all that it has started, at once, whatever state that leaves.
const KILL: &str = "kill -STOP $(pidof apt-get) && kill -KILL $(pidof apt-get dpkg dpkg-deb) && pkill -KILL -f '/var/lib/dpkg/info/lab-[d]' ";

/// Who is struck, and how the run sees it end.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Struck {
    Apt,
    /// apt works on by itself.
    Agent,
    Power,
}

#[test]
fn apt_killed_in_the_middle_is_taken_up_by_a_rerun() {
    let scene = Scene::new(&["victim"]);
    let strikes = [
        (0, Struck::Apt),
        (1, Struck::Apt),
        (1, Struck::Power),
        (2, Struck::Apt),
        (2, Struck::Agent),
        (2, Struck::Power),
    ];
    for (point, struck) in strikes {
        let (name, hold) = POINTS[point];
        let begin = Instant::now();
        scene.fleet.see("victim", &format!("touch /run/hold; {}", hold.replace("WAIT", WAIT)));
        let (child, since) = scene.start(INSTALL);
        scene.until("victim", "test -e /run/at-it");
        match struck {
            Struck::Apt => drop(scene.fleet.see("victim", &format!("{KILL}; {RELEASE}"))),
            Struck::Agent => drop(scene.fleet.see("victim", &format!("{AGENTS} agents KILL"))),
            Struck::Power => drop(scene.fleet.fleet(&["kill", "victim"])),
        }
        let (code, what) = if struck == Struck::Apt { (2, "failed") } else { (4, "unreachable") };
        let run = scene.ended(child, since).ended(code);
        assert_eq!(run.count("victim", what), 1, "{name}, {struck:?}\n{}", run.stdout);
        assert_eq!(run.count(BYSTANDER, "failed") + run.count(BYSTANDER, "unreachable"), 0, "{}", run.stdout);
        assert_eq!(scene.fleet.see(BYSTANDER, "cat /root/after"), "done\n");
        if struck == Struck::Power {
            scene.fleet.fleet(&["boot", "victim"]);
        }
        assert!(!scene.fleet.try_see("victim", "test -e /root/after").status.success(), "it went on on a lost host");
        scene.fleet.see("victim", RELEASE);
        scene.run(INSTALL).ended(0);
        is_whole(&scene, name);
        println!("{:5.1} s  {name}, {struck:?}", begin.elapsed().as_secs_f64());
    }
}

/// Asserts that the package is there and working and dpkg has nothing to complain of; then takes it away again.
fn is_whole(scene: &Scene, when: &str) {
    assert!(scene.fleet.see("victim", "dpkg -s lab-daemon").contains("Status: install ok installed"), "{when}");
    scene.fleet.see("victim", "systemctl is-active lab-daemon");
    assert_eq!(scene.fleet.see("victim", "dpkg --audit; ls /usr/sbin/policy-rc.d* 2>/dev/null || true"), "", "{when}");
    assert_eq!(scene.fleet.see("victim", "cat /root/after"), "done\n", "{when}");
    scene
        .fleet
        .see("victim", "systemctl stop lab-daemon; dpkg --purge lab-daemon lab-hello >/dev/null; rm /root/after");
}

/// Where dpkg itself was interrupted between two packages, apt asks to be told to go on.
#[test]
fn an_interrupted_dpkg_is_taken_up() {
    let scene = Scene::new(&["victim"]);
    scene.fleet.see("victim", "mkdir -p /var/lib/dpkg/updates && : >/var/lib/dpkg/updates/0001");
    scene.run(INSTALL).ended(0);
    is_whole(&scene, "dpkg was interrupted");
}
