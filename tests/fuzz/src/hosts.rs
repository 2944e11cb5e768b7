//! What comes from hosts: frames, answers, and the texts that facts are read from.

use kubeon_modules::chunks;
use kubeon_modules::spec_of;
use kubeon_modules::wire::{self, Answer, Frame, Request};
use kubeon_run::value::Map;

use crate::fake::Fake;
use crate::{Target, growing, put};

pub const TARGETS: &[Target] = &[
    Target { name: "frames", run: frames, longest: 1024, grow: &[growing("", "\0\0\0\0\0", "")] },
    Target { name: "facts", run: facts, longest: 2048, grow: &[] },
];

fn frames(input: &[u8]) {
    let mut rest = input;
    while let Ok(Some(frame)) = wire::read_frame(&mut rest) {
        match frame.message::<Answer>() {
            Ok(Answer::Done { result, .. }) => {
                let map = Map::from_json(result);
                assert!(!map.iter().any(|(_, value)| value.holds_template()), "what a host says is no template");
            }
            Ok(Answer::Want { has, .. }) => {
                let chunks = chunks::unpacked(&has).unwrap_or_default();
                assert_eq!(chunks::unpacked(&chunks::packed(&chunks)), Some(chunks));
            }
            Ok(Answer::Passed { .. } | Answer::Alive { .. }) | Err(_) => {}
        }
        frame.message::<Request>().ok();
        match frame {
            Frame::Message(bytes) => assert!(bytes.len() <= input.len()),
            Frame::Piece(bytes) => {
                assert_eq!(wire::piece_frame(&bytes).expect("it came in one frame").len(), bytes.len() + 5);
            }
            Frame::Kept { offset_bytes, size_bytes } => {
                let again = wire::read_frame(&mut wire::kept_frame(offset_bytes, size_bytes).as_slice());
                assert_eq!(again.expect("a frame"), Some(Frame::Kept { offset_bytes, size_bytes }));
            }
            Frame::Stop | Frame::Here { .. } => {}
        }
    }
}

/// What facts are read from: an input's first byte chooses the file that it is the text of.
const FACT_FILES: &[&str] = &[
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/mounts",
    "/proc/self/mounts",
    "/proc/self/mountinfo",
    "/etc/mtab",
    "/proc/net/route",
    "/proc/net/ipv6_route",
    "/proc/net/if_inet6",
    "/proc/cmdline",
    "/proc/uptime",
    "/proc/loadavg",
    "/proc/modules",
    "/proc/1/cgroup",
    "/proc/1/environ",
    "/proc/1/comm",
    "/etc/os-release",
    "/etc/lsb-release",
    "/etc/redhat-release",
    "/etc/SuSE-release",
    "/etc/debian_version",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/iscsi/initiatorname.iscsi",
    "/etc/selinux/config",
    "/proc/self/status",
    "/sys/block/sda/size",
    "/sys/block/sda/queue/scheduler",
    "/sys/class/net/eth0/bonding/slaves",
    "/sys/class/net/eth0/address",
    "/sys/devices/virtual/dmi/id/product_name",
    "/etc/ssh/ssh_host_rsa_key.pub",
    "/proc/sys/kernel/osrelease",
    "/etc/passwd",
];

fn facts(input: &[u8]) {
    let Some((which, text)) = input.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let mut host: Fake = serde_yaml::from_str("files: {}").expect("an empty host");
    put(&mut host, FACT_FILES[usize::from(*which) % FACT_FILES.len()], &text);
    for path in ["/sys/block/sda/removable", "/sys/class/net/eth0/mtu"] {
        put(&mut host, path, "1500\n");
    }
    let args = serde_json::from_str(r#"{"gather_subset": ["all", "!facter", "!ohai"], "gather_timeout": 1}"#);
    let module = (spec_of("setup").expect("a module").decode)(&args.expect("valid JSON"));
    module.expect("right arguments").plan(&host).ok();
}
