//! What keeps a fleet safe: waves that stop at the first harm, go back by themselves, and drain where that is asked for.
//! Judged by what is on the hosts and in the API.

mod common;

use common::gpu::{Site, changed_nothing, map, table_has, timed};

const HOSTS: [&str; 5] = ["gpu1", "gpu2", "gpu3", "gpu4", "gpu5"];
const WAVES: &str = r#"{"gpu_waves": [1, 1, 2, 1], "gpu_watch_s": 6, "gpu_settle_wait_s": 9}"#;

#[test]
fn a_wave_that_does_harm_is_put_back_and_is_the_last_one() {
    let site = Site::up(&["gpu1:gpu", "gpu2:gpu", "gpu3:gpu", "gpu4:gpu", "gpu5:gpu"]);
    timed("start a cluster, join 5 nodes", || site.fleet.cluster_up(&HOSTS));
    let before = site.disks(&["gpu3", "gpu4", "gpu5"]);

    a_first_run_stops_at_the_third_wave(&site);
    site.disks_are(&before);
    what_is_right_again_is_finished(&site);
    what_an_earlier_run_made_is_kept(&site);
    a_node_is_drained_and_comes_back(&site);
}

fn a_first_run_stops_at_the_third_wave(site: &Site) {
    site.pod("steady", "gpu3", "true");
    site.pod("touchy", "gpu4", "test ! -e /host/usr/bin/nvidia-ctk");
    let (steady, since) = (site.identity("steady"), site.started("gpu5"));

    let run = site.run("playbooks/gpu.yml", &["-e", WAVES]).ended(2);
    for host in ["gpu1", "gpu2"] {
        table_has(&run, host, &[host, "1", "550.163.01", "nvidia", "yes", "1", "ready"]);
        assert_eq!(site.runtime(host), "nvidia");
    }
    table_has(&run, "gpu3", &["gpu3", "1", "550.163.01", "-", "-", "-", "rolled back"]);
    table_has(&run, "gpu4", &["gpu4", "1", "550.163.01", "-", "-", "-", "FAILED"]);
    table_has(&run, "gpu5", &["-", "-", "-", "-", "-", "-", "not reached"]);
    for said in [
        "gpu3: as gpu4 came to harm, all of its wave was put back as it was",
        "ready before and are not now: default/touchy; the host was put back as it was",
        "gpu5: stopped, as gpu4 failed",
    ] {
        assert!(run.stdout.contains(said), "no `{said}` in:\n{}", run.stdout);
    }

    assert_eq!(site.labelled(), map(&[("gpu1", "yes"), ("gpu2", "yes")]));
    assert_eq!(site.plugin_nodes(), ["gpu1", "gpu2"]);
    assert_eq!(site.allocatable(), map(&[("gpu1", "1"), ("gpu2", "1")]));
    for host in ["gpu3", "gpu4", "gpu5"] {
        assert_eq!(site.runtime(host), "runc", "{host}");
    }
    assert_eq!(site.started("gpu5"), since, "containerd was restarted");
    site.is_ready("touchy");
    assert_eq!(site.identity("steady"), steady);
}

fn what_is_right_again_is_finished(site: &Site) {
    site.fleet.kubectl(&["delete", "pod", "touchy", "--wait"]);
    let run = site.run("playbooks/gpu.yml", &["-e", WAVES]).ended(0);
    changed_nothing(&run, &["gpu1", "gpu2"]);
    assert_eq!(site.plugin_nodes(), HOSTS);
    assert_eq!(site.allocatable(), HOSTS.iter().map(|host| ((*host).to_owned(), "1".to_owned())).collect());
}

/// A fleet that has its GPUs is changed, and the last of two waves does harm.
fn what_an_earlier_run_made_is_kept(site: &Site) {
    site.pod("touchy", "gpu5", "grep -q 'default_runtime_name = \"nvidia\"' /host/etc/containerd/config.toml");
    let before = site.disks(&["gpu4", "gpu5"]);
    let waves =
        r#"{"gpu_waves": [3, 2], "gpu_watch_s": 6, "gpu_settle_wait_s": 9, "containerd_mode": "runtime_class"}"#;
    let run = site.run("playbooks/gpu.yml", &["-e", waves]).ended(2);
    site.disks_are(&before);
    for (host, runtime) in [("gpu1", "runc"), ("gpu3", "runc"), ("gpu4", "nvidia"), ("gpu5", "nvidia")] {
        assert_eq!(site.runtime(host), runtime, "{host}:\n{}", run.stdout);
    }
    site.is_ready("touchy");
    assert_eq!(site.labelled().len(), 5);
    site.fleet.kubectl(&["delete", "pod", "touchy", "--wait"]);
}

fn a_node_is_drained_and_comes_back(site: &Site) {
    let pods = || {
        let pods = site.fleet.objects(&["pods", "--selector", "app=web"]);
        let living = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        living.map(|pod| (pod["metadata"]["uid"].to_string(), pod["spec"]["nodeName"].clone())).collect::<Vec<_>>()
    };
    site.fleet.kubectl(&["delete", "pod", "steady", "--wait"]);
    site.fleet.kubectl(&[
        "create",
        "deployment",
        "web",
        "--image=lab.kubeon.run/shell:1",
        "--replicas=5",
        "--",
        "sleep",
        "1000",
    ]);
    site.fleet.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]);
    let moved: Vec<_> = pods().into_iter().filter(|(_, node)| node == "gpu4" || node == "gpu5").collect();
    assert!(!moved.is_empty(), "no pod on the nodes that are to change");

    let variables = r#"{"containerd_mode": "runtime_class", "gpu_drain": true}"#;
    let run = site.run("playbooks/gpu.yml", &["-e", variables]).ended(0);
    changed_nothing(&run, &["gpu1", "gpu2", "gpu3"]);
    for host in HOSTS {
        assert_eq!(site.runtime(host), "runc");
    }
    assert!(!pods().iter().any(|pod| moved.contains(pod)), "a pod was not moved");
    let nodes = site.fleet.objects(&["nodes"]);
    assert!(nodes.iter().all(|node| node["spec"]["unschedulable"].is_null()), "a node is left out of service");
}
