//! A configuration of containerd that turns out to be bad, at every point of putting it in place: the host ends as it
//! began, byte for byte, its CRI answers, and what ran on it still runs. And what ran on it survives a good one.

mod common;

use common::gpu::Site;
use common::lab::Run;

const HOST: &str = "gpu1";

/// A playbook with the one task.
const PLAYBOOK: &str = "- hosts: all\n  gather_facts: false\n  become: true\n  tasks:\n    - containerd_runtime:\n        \
    state: \"{{ wanted | default('present') }}\"\n";

/// Stands in front of the host's containerd and spoils what `/run/fault` names, for configurations with NVIDIA's runtime.
const WRAPPER: &str = r#"#!/bin/sh
real=/usr/bin/containerd.real
fault=$(cat /run/fault 2>/dev/null)
config=/etc/containerd/config.toml kind=live before=
for word in "$@"; do
    [ "$before" != --config ] || config=$word
    case $word in dump) kind=dump ;; --root) kind=proof ;; --version) kind=version ;; esac
    before=$word
done
grep -q nvidia "$config" 2>/dev/null || exec $real "$@"
without_cri() {
    copy=$(mktemp)
    { sed 's/^disabled_plugins = .*//' "$config" | sed '1a disabled_plugins = ["io.containerd.grpc.v1.cri"]'; } >"$copy"
    [ $kind != proof ] || { shift 2; exec $real --config "$copy" "$@"; }
    exec $real --config "$copy"
}
case $kind-$fault in
    dump-refused) echo 'containerd: failed to load TOML: spoilt' >&2; exit 1 ;;
    dump-stranger) $real "$@" | sed 's/max_container_log_line_size = .*/max_container_log_line_size = 77/' ;;
    dump-lost) $real "$@" | sed 's/default_runtime_name = "nvidia"/default_runtime_name = "runc"/' ;;
    proof-exits) echo 'containerd: spoilt' >&2; exit 1 ;;
    proof-hangs) exec sleep 600 ;;
    proof-nocri | live-nocri) without_cri "$@" ;;
    live-dies) exit 1 ;;
    live-full) dd if=/dev/zero of=/etc/containerd/filler2 bs=4k 2>/dev/null; exec $real "$@" ;;
    *) exec $real "$@" ;;
esac
"#;

/// In place of NVIDIA's runtime: it is there, and starts nothing.
const SPOILT: &str = "#!/bin/sh\n[ \"$1\" != --version ] || exec runc --version\necho spoilt >&2\nexit 1\n";

/// Prints all that the host keeps of containerd's configuration, and how it is.
const STATE: &str = "cd /etc/containerd && find . -type f ! -name 'filler*' -printf '%p %m %U %G %s\\n' | sort && \
    find . -type f ! -name 'filler*' -print0 | sort -z | xargs -0 sha256sum && systemctl is-active containerd && \
    crictl info >/dev/null && echo answers";

/// Starts a pod's container that runs until it is stopped, and prints the number of its process.
const START: &str = r#"mkdir -p /run/pod && cd /run/pod
echo '{"metadata": {"name": "lasting", "namespace": "lab", "uid": "lasting"}, "log_directory": "/run/pod",
  "linux": {"security_context": {"namespace_options": {"network": 2}}}}' >pod.json
echo '{"metadata": {"name": "main"}, "image": {"image": "repo.lab/busybox:lab"}, "command": ["/pause"],
  "log_path": "main.log", "linux": {}}' >container.json
pod=$(crictl runp pod.json) && container=$(crictl create --no-pull "$pod" container.json pod.json) &&
    crictl start "$container" >/dev/null && echo "$container" >container"#;

/// Prints whether it runs as it did: its state, its process, since when, and that it can be entered.
const LASTING: &str = r#"container=$(cat /run/pod/container)
crictl inspect -o go-template --template '{{.status.state}} {{.info.pid}} {{.status.startedAt}}' "$container"
echo; crictl exec -s "$container" echo entered; grep -c . /proc/"$(crictl inspect -o go-template --template '{{.info.pid}}' "$container")"/cmdline"#;

struct Trial {
    site: Site,
    playbook: String,
}

impl Trial {
    fn up() -> Trial {
        let site = Site::up(&["gpu1:gpu"]);
        site.run_without_cluster("playbooks/gpu.yml", &[]).ended(0);
        let playbook = site.fleet.folder().join("containerd.yml");
        std::fs::write(&playbook, PLAYBOOK).expect("a writable folder");
        let trial = Trial { playbook: playbook.to_str().expect("UTF-8").to_owned(), site };
        // The toolkit stays, containerd is as it was.
        trial.run(&["-e", "wanted=absent"]).ended(0);
        assert_eq!(trial.site.runtime(HOST), "runc");
        trial
    }

    fn run(&self, arguments: &[&str]) -> Run {
        self.site.run_without_cluster(&self.playbook, arguments)
    }

    fn see(&self, line: &str) -> String {
        self.site.fleet.see(HOST, line)
    }

    /// Has a fault happen, and asserts that the task says so and that nothing is left of it.
    #[track_caller]
    fn fails_without_a_trace(&self, fault: &str, said: &str) {
        let (state, lasting) = (self.see(STATE), self.see(LASTING));
        self.see(&format!("echo {fault} >/run/fault"));
        let run = self.run(&[]).ended(2);
        assert!(run.stdout.contains(said), "{fault}: no `{said}` in:\n{}", run.stdout);
        self.see("rm -f /run/fault");
        assert_eq!(self.see(STATE), state, "{fault}\n{}", run.stdout);
        assert_eq!(self.see(LASTING), lasting, "{fault}: what ran is not as it was");
    }

    /// As above, where `/etc/containerd` is a file system with room for so many further files.
    #[track_caller]
    fn fails_on_a_full_disk(&self, room: u32, fault: &str) {
        self.see(&format!(
            "set -e; cp -a /etc/containerd /run/kept; mount -t tmpfs -o size=64k tmpfs /etc/containerd
             cp -a /run/kept/. /etc/containerd; dd if=/dev/zero of=/etc/containerd/filler bs=4k 2>/dev/null || true
             truncate -s -$(({room} * 4096)) /etc/containerd/filler"
        ));
        self.fails_without_a_trace(fault, "o space left on device");
        self.see("umount /etc/containerd; rm -r /run/kept");
    }
}

#[test]
fn a_bad_candidate_leaves_the_host_as_it_was_and_a_good_one_what_runs() {
    let trial = Trial::up();
    trial.see(START);
    let lasting = trial.see(LASTING);
    assert!(lasting.starts_with("CONTAINER_RUNNING ") && lasting.contains("\nentered\n"), "{lasting}");
    let plain = trial.see(STATE);
    trial.see(&format!(
        "set -e; cat >/run/wrapper <<'END'\n{WRAPPER}END\ncp -a /usr/bin/containerd /usr/bin/containerd.real
         install -m 755 /run/wrapper /usr/bin/containerd.new; mv /usr/bin/containerd.new /usr/bin/containerd"
    ));

    // Before anything is written.
    trial.fails_without_a_trace("refused", "containerd does not load it: failed to load TOML: spoilt");
    trial.fails_without_a_trace("stranger", "max_container_log_line_size` would change");
    trial.fails_without_a_trace("lost", "the default runtime would be `runc`, not `nvidia`");
    trial.fails_without_a_trace("exits", "the daemon exits: ");
    trial.fails_without_a_trace("nocri", "does not work with it: ");
    trial.fails_without_a_trace("hangs", "the daemon does not come up");
    // While it is written.
    trial.fails_on_a_full_disk(0, "none");
    trial.fails_on_a_full_disk(1, "none");
    // Once it is in place.
    trial.fails_without_a_trace("dies", "`systemctl restart containerd`");
    trial.see("sed -i 's/proof-nocri | //' /usr/bin/containerd");
    trial.fails_without_a_trace("nocri", "containerd restarted, but its CRI plugin is ");
    trial.fails_on_a_full_disk(2, "full");
    trial.see(&format!(
        "mv /usr/bin/nvidia-container-runtime /run/aside; cat >/usr/bin/nvidia-container-runtime <<'END'\n{SPOILT}END\n\
         chmod 755 /usr/bin/nvidia-container-runtime"
    ));
    trial.fails_without_a_trace("none", "no container starts with NVIDIA's runtime, while one does without it");
    trial.see("mv /run/aside /usr/bin/nvidia-container-runtime; mv /usr/bin/containerd.real /usr/bin/containerd");

    // A good one: the daemon is another process, the container is the same one.
    let daemon = trial.site.started(HOST);
    let run = trial.run(&[]).ended(0);
    assert_eq!(run.count(HOST, "changed"), 1, "{}", run.stdout);
    assert_ne!(trial.site.started(HOST), daemon, "containerd was not restarted");
    assert_eq!(trial.see(LASTING), lasting, "what ran did not survive");
    assert_eq!(trial.site.runtime(HOST), "nvidia");
    trial.run(&["-e", "wanted=absent"]).ended(0);
    assert_eq!(trial.see(LASTING), lasting, "what ran did not survive the way back");
    assert_eq!((trial.see(STATE), trial.site.runtime(HOST).as_str()), (plain, "runc"));
}
