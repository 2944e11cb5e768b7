//! The agent of the other architecture, built as a release carries it and run by an emulator; and the agent where the
//! toolchain lacks the target that it is built for.

mod common;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use common::program::Project;
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
                Answer::Done { id: answered, result, .. } => {
                    assert_eq!(answered, id);
                    break result;
                }
                Answer::Alive { .. } => {}
                Answer::Want { .. } | Answer::Passed { .. } => panic!("no content was named"),
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

/// What a person would do on a host, with as many modules as have side effects that can be seen.
const PLAYBOOK: &str = r#"
- hosts: all
  vars: {folder: FOLDER}
  tasks:
    - assert: {that: [ansible_facts.machine == 'aarch64', ansible_facts.architecture == 'aarch64', ansible_facts.system == 'Linux']}
    - assert: {that: [ansible_facts.memtotal_mb > 100, ansible_facts.processor_vcpus > 0, ansible_facts.mounts | length > 0]}
    - file: {path: '{{ folder }}/made/deep', state: directory, mode: '0750'}
    - copy: {dest: '{{ folder }}/made/text', content: "one\ntwo\n", mode: '0600', owner: root, force: false}
    - copy: {dest: '{{ folder }}/made/big', src: big}
    - template: {dest: '{{ folder }}/made/template', src: page.j2}
    - lineinfile: {path: '{{ folder }}/made/text', regexp: '^two', line: zwei}
    - blockinfile: {path: '{{ folder }}/made/text', block: three}
    - replace: {path: '{{ folder }}/made/text', regexp: '^one$', replace: eins}
    - file: {src: text, dest: '{{ folder }}/made/link', state: link}
    - unarchive: {src: archive.tar.gz, dest: '{{ folder }}/made/deep'}
    - find: {paths: '{{ folder }}/made', recurse: true}
      register: found
    - stat: {path: '{{ folder }}/made/big', checksum_algorithm: sha256}
      register: big
    - slurp: {src: '{{ folder }}/made/text'}
      register: text
    - assert: {that: [found.matched >= 4, big.stat.size == 300000, text.content | b64decode is search('zwei')]}
    - command: {cmd: uname -s, creates: '{{ folder }}/made/told'}
      register: system
    - shell: {cmd: 'echo "$0" "{{ system.stdout | default() }}" >told', chdir: '{{ folder }}/made', creates: told}
    - script: {cmd: script.sh done, creates: '{{ folder }}/made/scripted'}
    - getent: {database: passwd, key: root}
    - apt: {name: [dpkg, coreutils]}
    - package_facts:
    - assert: {that: ["'dpkg' in ansible_facts.packages", "ansible_facts.getent_passwd.root[1] == '0'"]}
"#;

/// Files for [`PLAYBOOK`], and a host whose agent is the emulated one: what stands in for a shell there takes its orders,
/// which would start this machine's own, and starts that.
fn project() -> Project {
    let project = Project::new("h ansible_connection=docker\n");
    let program = format!("#!/bin/sh\nIFS= read -r orders\nexec qemu-aarch64-static {}\n", agent().display());
    project.write("bin/docker", &program);
    project.write("site.yml", &PLAYBOOK.replace("FOLDER", &project.folder.path().display().to_string()));
    project.write("page.j2", "{{ ansible_facts.machine }} {{ inventory_hostname }}\n");
    project.write("script.sh", &format!("#!/bin/sh\necho $1 >{}\n", project.path("made/scripted").display()));
    project.write("packed/inner", "inner\n");
    std::fs::write(project.path("big"), vec![b'b'; 300_000]).expect("write");
    let folder = project.folder.path().display();
    common::sshd::must(
        "sh",
        &["-c", &format!("chmod 755 {folder}/bin/docker; tar czf {folder}/archive.tar.gz -C {folder}/packed inner")],
    );
    project
}

#[test]
fn a_playbook_runs_through_the_agent_for_aarch64() {
    let project = project();
    let path = format!("{}:{}", project.path("bin").display(), std::env::var("PATH").expect("a path"));
    let run = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.env("PATH", &path);
        project.wait(command)
    };
    let checked = run(&["site.yml", "--check", "--start-at-task", "file"]);
    assert!(!project.path("made").exists(), "{}", checked.stdout);
    let first = run(&["site.yml", "--diff"]);
    assert_eq!(first.code, 0, "{}{}", first.stdout, first.stderr);
    let text = project.read("made/text");
    assert!(text.starts_with("eins\nzwei\n# BEGIN ANSIBLE MANAGED BLOCK\nthree\n"), "{text}");
    assert_eq!(project.read("made/template"), "aarch64 h\n");
    assert_eq!((project.read("made/deep/inner"), project.read("made/link")), ("inner\n".to_owned(), text));
    assert_eq!((project.read("made/told"), project.read("made/scripted")), ("/bin/sh Linux\n".into(), "done\n".into()));
    assert_eq!(std::fs::metadata(project.path("made/big")).expect("a file").len(), 300_000);
    let again = run(&["site.yml"]);
    assert!(again.code == 0 && again.stdout.contains(" changed=0 "), "{}{}", again.stdout, again.stderr);
}

/// Runs the build script as Cargo does, with a compiler that lacks the targets for static programs.
#[test]
fn a_toolchain_without_musl_still_builds_an_agent_for_its_own_architecture() {
    let program = Path::new(env!("CARGO_BIN_EXE_kubeon-run"));
    let profile = program.parent().expect("a folder");
    let scripts = std::fs::read_dir(profile.join("build")).expect("a folder").filter_map(Result::ok);
    let script = scripts
        .map(|entry| entry.path().join("build-script-build"))
        .filter(|path| path.is_file() && path.to_string_lossy().contains("/kubeon-run-"))
        .max_by_key(|path| std::fs::metadata(path).and_then(|file| file.modified()).ok())
        .expect("a build script");
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let project = Project::new("");
    let lacking = format!(
        "#!/bin/sh\ncase \"$*\" in *target-libdir*musl*) echo /nonexistent; exit;; esac\nexec {compiler} \"$@\"\n"
    );
    project.write("rustc", &lacking);
    common::sshd::must("chmod", &["755", project.path("rustc").to_str().expect("UTF-8")]);
    // OUT_DIR is TARGET/PROFILE/build/NAME/out, and the agents are built beside the profiles.
    let out = profile.join("build/kubeon-run-without-musl/out");
    std::fs::create_dir_all(&out).expect("a folder");
    let host = common::sshd::must(&compiler, &["-vV"]);
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host").to_owned();
    let output = Command::new(script)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))
        .env("CARGO", env!("CARGO"))
        .env("RUSTC", project.path("rustc"))
        .env("OUT_DIR", &out)
        .env("TARGET", &host)
        .env("PROFILE", "debug")
        .env("CARGO_CFG_TARGET_ARCH", std::env::consts::ARCH)
        .env("CARGO_CFG_TARGET_OS", "linux")
        .env("KUBEON_AGENTS", "x86_64,aarch64")
        .env_remove("KUBEON_AGENTS_DIR")
        .output()
        .expect("the build script");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let own = std::env::consts::ARCH;
    let other = if own == "x86_64" { "aarch64" } else { "x86_64" };
    for line in [
        format!(
            "cargo::warning=the agent for {own} is linked against this system's C library, since the target is missing: rustup target add {own}-unknown-linux-musl"
        ),
        format!(
            "cargo::warning=no agent for {other}, since the target is missing: rustup target add {other}-unknown-linux-musl"
        ),
    ] {
        assert!(said.contains(&line), "not said: {line}\n{said}");
    }
    let list = std::fs::read_to_string(out.join("agents.rs")).expect("the list");
    assert!(list.contains(&format!("architecture: \"{own}\"")) && !list.contains(other), "{list}");
    // It is static, and it runs.
    let agent = profile
        .ancestors()
        .nth(1)
        .expect("a target folder")
        .join("agents")
        .join(&host)
        .join("agent-quick/kubeon-agent");
    let headers = common::sshd::must("readelf", &["--program-headers", agent.to_str().expect("UTF-8")]);
    assert!(!headers.contains("INTERP"), "{headers}");
    let mut child = Command::new(&agent).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the agent");
    let mut greeting = Vec::new();
    child.stdout.take().expect("a pipe").read_to_end(&mut greeting).expect("a greeting");
    assert_eq!(greeting, wire::GREETING);
    assert!(child.wait().expect("an end").success());
}
