//! `gpu.yml` and `gpu-remove.yml` over hosts with dnf and zypper, judged by rpm, the files and the runtime of a container.

mod common;

use common::gpu::{Site, changed_nothing, table_has};

const HOSTS: [&str; 2] = ["rocky1", "suse1"];
const PACKAGES: [&str; 4] =
    ["nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools", "libnvidia-container1"];
/// Where each host's repository is, and what holds its packages.
const FILES: [(&str, &str, &str); 2] = [
    ("rocky1", "/etc/yum.repos.d/nvidia-container-toolkit.repo", "/etc/dnf/dnf.conf"),
    ("suse1", "/etc/zypp/repos.d/nvidia-container-toolkit.repo", "/etc/zypp/locks"),
];
/// A repository that one of the hosts does not find.
const ASTRAY: &str = r#"{"gpu_waves": [2], "gpu_rpm_repository_url": "{{ lab_rpm ~ ('/nowhere' if inventory_hostname == 'suse1' else '') }}"}"#;

#[test]
fn hosts_with_dnf_and_zypper_get_their_gpus_and_lose_them_again() {
    let site = Site::up(&["rocky1:gpu@rocky", "suse1:gpu@suse"]);
    let before = site.disks(&HOSTS);

    let run = site.run_without_cluster("playbooks/gpu.yml", &["--check", "--diff"]).ended(0);
    for host in HOSTS {
        table_has(&run, host, &["-", "1", "550.163.01", "nvidia", "-", "-", "would change"]);
    }
    for said in ["+baseurl=", "+repo_gpgcheck=1", "nvidia-container-toolkit-1.19.1-1", "BinaryName"] {
        assert!(run.stdout.contains(said), "no {said} in the diff:\n{}", run.stdout);
    }
    site.disks_are(&before);

    site.run_without_cluster("playbooks/gpu.yml", &[]).ended(0);
    the_hosts_are_enabled(&site, "1.19.1-1");
    changed_nothing(&site.run_without_cluster("playbooks/gpu.yml", &[]).ended(0), &HOSTS);

    one_that_fails_takes_the_wave_back(&site);

    let older = ["-e", "nvidia_toolkit_version=1.18.2-1"];
    site.run_without_cluster("playbooks/gpu.yml", &older).ended(0);
    the_hosts_are_enabled(&site, "1.18.2-1");
    changed_nothing(&site.run_without_cluster("playbooks/gpu.yml", &older).ended(0), &HOSTS);

    site.run_without_cluster("playbooks/gpu-remove.yml", &[]).ended(0);
    site.disks_are(&before);
    HOSTS.iter().for_each(|host| assert_eq!(site.runtime(host), "runc"));
    changed_nothing(&site.run_without_cluster("playbooks/gpu-remove.yml", &[]).ended(0), &HOSTS);
}

fn the_hosts_are_enabled(site: &Site, version: &str) {
    for (host, repository, held) in FILES {
        let query = format!("rpm -q --qf '%{{VERSION}}-%{{RELEASE}}\\n' {}", PACKAGES.join(" "));
        assert_eq!(site.fleet.see(host, &query), format!("{version}\n").repeat(4), "{host}");
        let text = site.fleet.see(host, &format!("cat {repository}"));
        for line in ["repo_gpgcheck=1", "gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-nvidia-container-toolkit"] {
            assert!(text.lines().any(|found| found == line), "{host}: no {line} in {text}");
        }
        let holds = site.fleet.see(host, &format!("cat {held}"));
        assert!(PACKAGES.iter().all(|package| holds.contains(package)), "{host}: {holds}");
        let container = site.fleet.lab("fleet/cri-run", &[host]);
        assert!(container.contains("binary: /usr/bin/nvidia-container-runtime"), "{host}: {container}");
    }
}

/// What the other host of the wave had changed already is put back, versions and holds.
fn one_that_fails_takes_the_wave_back(site: &Site) {
    let before = site.disks(&HOSTS);
    let arguments = ["-e", ASTRAY, "-e", "nvidia_toolkit_version=1.18.2-1", "--diff"];
    let run = site.run_without_cluster("playbooks/gpu.yml", &arguments).ended(2);
    table_has(&run, "rocky1", &["-", "1", "550.163.01", "-", "-", "-", "rolled back"]);
    assert!(run.stdout.contains("downgrade libnvidia-container1 to 1.18.2-1"), "{}", run.stdout);
    assert!(run.stdout.contains("there is no repository at this address"), "{}", run.stdout);
    the_hosts_are_enabled(site, "1.19.1-1");
    site.disks_are(&before);
}
