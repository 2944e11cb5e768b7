//! `gpu.yml` on a host whose pods CRI-O starts, with containerd's package installed beside it.

mod common;

use common::gpu::{Site, changed_nothing, table_has};

const HOST: &str = "gpu1";
const FILE: &str = "/etc/crio/crio.conf.d/99-nvidia.toml";

#[test]
fn cri_o_starts_containers_through_the_runtime_and_goes_back() {
    let site = Site::up(&["gpu1:gpu@cri-o"]);
    let before = site.disks(&[HOST]);
    assert_eq!(starts(&site, &[HOST]), ("/usr/sbin/runc".into(), "runc".into()));

    let checked = site.run_without_cluster("playbooks/gpu.yml", &["--check", "--diff"]).ended(0);
    assert!(checked.stdout.contains("nvidia-container-toolkit"), "{}", checked.stdout);
    site.disks_are(&before);

    let since = active_since(&site);
    let run = site.run_without_cluster("playbooks/gpu.yml", &[]).ended(0);
    table_has(&run, HOST, &["-", "1", "550.163.01", "nvidia", "-", "-", "not in a cluster"]);
    assert_ne!(active_since(&site), since, "CRI-O has not read its files again");
    let nvidia = ("/usr/bin/nvidia-container-runtime".to_owned(), "nvidia".to_owned());
    assert_eq!(starts(&site, &[HOST]), nvidia);
    let seen = site.fleet.lab("fleet/cri-run", &[HOST, "-e", "NVIDIA_VISIBLE_DEVICES=all", "--", "ls", "/dev/nvidia0"]);
    assert!(seen.contains("output: /dev/nvidia0"), "{seen}");
    // Of containerd, which does not run, nothing was touched.
    assert_eq!(site.fleet.see(HOST, "ls -A /etc/containerd"), "config.toml\n");

    let since = active_since(&site);
    changed_nothing(&site.run_without_cluster("playbooks/gpu.yml", &[]).ended(0), &[HOST]);
    assert_eq!(active_since(&site), since, "restarted without need");

    // As a class of its own, the default is what it was.
    site.run_without_cluster("playbooks/gpu.yml", &["-e", "containerd_mode=runtime_class"]).ended(0);
    assert_eq!(starts(&site, &[HOST]), ("/usr/sbin/runc".into(), "runc".into()));
    assert_eq!(starts(&site, &[HOST, "nvidia"]), nvidia);

    // A stopped CRI-O is told, not started.
    site.fleet.see(HOST, &format!("systemctl stop crio; rm {FILE}"));
    site.run_without_cluster("playbooks/gpu.yml", &[]).ended(0);
    assert!(!site.fleet.try_see(HOST, "systemctl is-active crio").status.success());
    site.fleet.see(HOST, "systemctl start crio");
    assert_eq!(starts(&site, &[HOST]), nvidia);

    site.run_without_cluster("playbooks/gpu-remove.yml", &[]).ended(0);
    site.disks_are(&before);
    assert_eq!(starts(&site, &[HOST]), ("/usr/sbin/runc".into(), "runc".into()));
}

/// Which program CRI-O has a container started by, and whether NVIDIA's runtime ran.
fn starts(site: &Site, arguments: &[&str]) -> (String, String) {
    let said = site.fleet.lab("fleet/cri-run", arguments);
    let value = |key: &str| said.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().to_owned();
    (value("binary: "), value("ran: "))
}

fn active_since(site: &Site) -> String {
    site.fleet.see(HOST, "systemctl show --property ActiveEnterTimestampMonotonic crio")
}
