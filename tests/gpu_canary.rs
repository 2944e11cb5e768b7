//! The first host that a run changes, when the change does harm. Judged by what is on the hosts and in the API.

mod common;

use common::gpu::{Site, table_has, timed};

const HOSTS: [&str; 3] = ["gpu1", "gpu2", "gpu3"];

/// The very first host of a fleet that never had GPUs: it is as it was, and so are the others and the cluster.
#[test]
fn a_canary_that_comes_to_harm_is_put_back_and_nothing_else_is_touched() {
    let site = Site::up(&["gpu1:gpu", "gpu2:gpu", "gpu3:gpu"]);
    timed("start a cluster, join 3 nodes", || site.fleet.cluster_up(&HOSTS));
    site.pod("touchy", "gpu1", "test ! -e /host/usr/bin/nvidia-ctk");
    site.pod("steady", "gpu1", "true");
    let (before, steady) = (site.disks(&HOSTS), site.identity("steady"));
    let since = ["gpu2", "gpu3"].map(|host| site.started(host));

    let run = site.run("playbooks/gpu.yml", &["-e", "gpu_watch_s=6 gpu_settle_wait_s=9"]).ended(2);
    table_has(&run, "gpu1", &["gpu1", "1", "550.163.01", "-", "-", "-", "FAILED"]);
    for host in ["gpu2", "gpu3"] {
        table_has(&run, host, &["-", "-", "-", "-", "-", "-", "not reached"]);
        assert_eq!(run.count(host, "changed"), 0, "{}", run.stdout);
    }
    assert!(run.stdout.contains("default/touchy; the host was put back as it was"), "{}", run.stdout);
    site.disks_are(&before);
    assert_eq!(["gpu2", "gpu3"].map(|host| site.started(host)), since, "containerd was restarted");
    assert!(site.labelled().is_empty(), "{:?}", site.labelled());
    assert_eq!(site.applied(), Vec::<String>::new());
    HOSTS.iter().for_each(|host| assert_eq!(site.runtime(host), "runc", "{host}"));
    site.is_ready("touchy");
    assert_eq!(site.identity("steady"), steady, "a pod that runs did not survive");
}
