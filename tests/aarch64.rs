//! The agent of the other architecture, built as a release carries it and run by an emulator.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use kubeon_modules::wire::{self, Answer, Request, Task};
use sha2::{Digest, Sha256};

const TARGET: &str = "aarch64-unknown-linux-musl";

/// Builds the agent beside those that the build script builds, by the same means.
fn agent() -> std::path::PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_kubeon-run"));
    let folder = program.ancestors().nth(2).expect("a target folder").join("agents");
    let flags = ["-Clinker=rust-lld", "-Clink-self-contained=yes", "-Ctarget-feature=+crt-static"].join("\u{1f}");
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "kubeon-modules", "--bin", "kubeon-agent", "--target", TARGET])
        .args(["--profile", "agent-quick", "--target-dir"])
        .arg(&folder)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env("CARGO_ENCODED_RUSTFLAGS", flags)
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder.join(TARGET).join("agent-quick/kubeon-agent")
}

#[test]
fn the_agent_for_aarch64_answers() {
    let agent = agent();
    let bytes = std::fs::read(&agent).expect("read");
    // ELF, 64 bits, EM_AARCH64.
    assert!(bytes.starts_with(b"\x7fELF\x02") && bytes[18..20] == [183, 0]);
    let mut child = Command::new("qemu-aarch64-static")
        .arg(&agent)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("qemu-aarch64-static: apt-get install qemu-user-static");
    let (mut input, mut output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let mut greeting = vec![0; wire::GREETING.len()];
    output.read_exact(&mut greeting).expect("a greeting");
    assert_eq!(greeting, wire::GREETING);
    for (id, module) in [(1, "ping"), (2, "setup")] {
        let task = Task { id, module: module.into(), ..Task::default() };
        wire::send(&mut input, &Request::Run(task)).expect("sent");
        let result = loop {
            let frame = wire::read_frame(&mut output).expect("a frame").expect("an answer");
            match frame.message().expect("a message") {
                Answer::Done { id: answered, result } => {
                    assert_eq!(answered, id);
                    break result;
                }
                Answer::Alive { .. } => {}
                Answer::Want { .. } => panic!("no content was named"),
            }
        };
        if module == "ping" {
            assert_eq!(result["ping"], "pong");
        } else {
            assert_eq!(result["ansible_facts"]["ansible_machine"], "aarch64", "{result:?}");
        }
    }
    input.flush().expect("flush");
    drop(input);
    assert!(child.wait().expect("an end").success());

    // It proves its own content, as a host that just received it asks it to.
    let sha256: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    for (sha256, right) in [(sha256.as_str(), true), ("00", false)] {
        let checked = Command::new("qemu-aarch64-static").arg(&agent).args(["check", sha256]).output().expect("qemu");
        assert_eq!(checked.status.success(), right, "{}", String::from_utf8_lossy(&checked.stderr));
    }
}
