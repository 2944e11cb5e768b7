//! Builds the agents, one static program an architecture, and packs them for `runner/connection/agent.rs` to embed.
//!
//! A release carries every architecture. A debug build carries this one's only, built quickly rather than small;
//! `KUBEON_AGENTS=x86_64,aarch64` names others. `KUBEON_AGENTS_DIR` holds `kubeon-agent-ARCH` files to embed instead.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

/// What an agent can be built for.
const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

/// How a static program is linked without a system's C library.
const LINKING: [&str; 3] = ["-Clinker=rust-lld", "-Clink-self-contained=yes", "-Ctarget-feature=+crt-static"];
/// What makes a release's agent small, beside its profile: no tables for unwinding, no relocations, equal code once.
const SMALL: [&str; 6] = [
    "-Cforce-unwind-tables=no",
    "-Crelocation-model=static",
    "-Cllvm-args=-enable-machine-outliner=always",
    "-Clink-arg=--icf=all",
    "-Clink-arg=-znorelro",
    "-Clink-arg=--no-eh-frame-hdr",
];

fn main() -> Result<(), Box<dyn Error>> {
    for path in ["modules/src", "modules/Cargo.toml", "Cargo.toml", "Cargo.lock", "runner/build.rs"] {
        println!("cargo::rerun-if-changed={path}");
    }
    for name in ["KUBEON_AGENTS", "KUBEON_AGENTS_DIR"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let release = env::var("PROFILE")? == "release";
    let mut list = String::from("&[\n");
    for architecture in wanted(release)? {
        let program = match env::var_os("KUBEON_AGENTS_DIR") {
            Some(folder) => {
                let path = PathBuf::from(folder).join(format!("kubeon-agent-{architecture}"));
                println!("cargo::rerun-if-changed={}", path.display());
                Some(path)
            }
            None => build(&architecture, release, &out)?,
        };
        let Some(program) = program else { continue };
        let bytes = fs::read(&program).map_err(|error| format!("read the agent {}: {error}", program.display()))?;
        let packed = out.join(format!("kubeon-agent-{architecture}.gz"));
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(&bytes)?;
        fs::write(&packed, packer.finish()?)?;
        let sha256 = Sha256::digest(&bytes).iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").ok();
            text
        });
        writeln!(
            list,
            "    Agent {{ architecture: {architecture:?}, sha256: {sha256:?}, size_bytes: {}, packed: \
             include_bytes!({:?}) }},",
            bytes.len(),
            packed
        )?;
    }
    list.push(']');
    fs::write(out.join("agents.rs"), list)?;
    Ok(())
}

/// Returns the architectures to carry.
fn wanted(release: bool) -> Result<Vec<String>, Box<dyn Error>> {
    let own = env::var("CARGO_CFG_TARGET_ARCH")?;
    let listed = match env::var("KUBEON_AGENTS") {
        Ok(list) => list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
        Err(_) if release => ARCHITECTURES.map(str::to_owned).to_vec(),
        Err(_) => vec![own],
    };
    if let Some(unknown) = listed.iter().find(|name| !ARCHITECTURES.contains(&name.as_str())) {
        return Err(format!("no agent can be built for `{unknown}`, only for {}", ARCHITECTURES.join(" and ")).into());
    }
    Ok(listed)
}

/// Builds one agent and returns its path; `None`, with a warning, when the toolchain lacks what it takes.
fn build(architecture: &str, release: bool, out: &Path) -> Result<Option<PathBuf>, Box<dyn Error>> {
    let musl = format!("{architecture}-unknown-linux-musl");
    let own = env::var("CARGO_CFG_TARGET_ARCH")? == architecture && env::var("CARGO_CFG_TARGET_OS")? == "linux";
    let (target, flags) = if installed(&musl)? {
        // The linker and the C start files come with the toolchain: no cross compiler is needed.
        let mut flags: Vec<String> = LINKING.map(str::to_owned).to_vec();
        if release {
            flags.extend(SMALL.map(str::to_owned));
            let script = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("modules/src/bin/agent/discard.ld");
            flags.push(format!("-Clink-arg=-T{}", script.display()));
        }
        (musl, flags.join("\u{1f}"))
    } else if own {
        println!(
            "cargo::warning=the agent for {architecture} is linked against this system's C library, since the \
             target is missing: rustup target add {musl}"
        );
        (env::var("TARGET")?, "-Ctarget-feature=+crt-static".to_owned())
    } else {
        println!("cargo::warning=no agent for {architecture}, since the target is missing: rustup target add {musl}");
        return Ok(None);
    };
    let folder = shared_folder(out)?;
    let profile = if release { "agent" } else { "agent-quick" };
    let mut cargo = Command::new(env::var("CARGO")?);
    cargo.args(["build", "--quiet", "--package", "kubeon-modules", "--bin", "kubeon-agent", "--no-default-features"]);
    cargo.args(["--profile", profile, "--target", &target]).arg("--target-dir").arg(&folder);
    // What was meant for the runner's own build: flags, targets and the compiler that clippy puts in place.
    for name in ["RUSTFLAGS", "CARGO_BUILD_TARGET", "CARGO_TARGET_DIR", "RUSTC_WORKSPACE_WRAPPER", "CLIPPY_ARGS"] {
        cargo.env_remove(name);
    }
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags);
    let output = cargo.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the agent for {architecture} does not build:\n{said}").into());
    }
    Ok(Some(folder.join(&target).join(profile).join("kubeon-agent")))
}

/// Returns the folder that all builds of the agents share: beside the profiles' folders, whatever this build is for.
fn shared_folder(out: &Path) -> Result<PathBuf, Box<dyn Error>> {
    // OUT_DIR is TARGET_DIR/PROFILE/build/NAME/out, with the target's name before the profile where `--target` gave it.
    let folder = out.ancestors().nth(4).ok_or("OUT_DIR is not in a target folder")?;
    let named = folder.file_name().is_some_and(|name| env::var_os("TARGET").is_some_and(|target| name == target));
    let folder = if named { folder.parent().unwrap_or(folder) } else { folder };
    Ok(folder.join("agents"))
}

/// Returns whether the toolchain has the standard library for a target.
fn installed(target: &str) -> Result<bool, Box<dyn Error>> {
    let rustc = env::var("RUSTC")?;
    let output = Command::new(rustc).args(["--print", "target-libdir", "--target", target]).output()?;
    Ok(output.status.success() && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}
