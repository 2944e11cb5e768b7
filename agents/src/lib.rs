//! Builds the agents, one static program an architecture, and packs them: what the runner's build embeds, and what
//! `tests/agent-size` weighs.

use std::env;
use std::error::Error;
use std::io::Write as _;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What an agent can be built for.
pub const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

/// How a static program is linked without a system's C library.
const LINKING: [&str; 3] = ["-Clinker=rust-lld", "-Clink-self-contained=yes", "-Ctarget-feature=+crt-static"];
/// What makes a release's agent small, beside its profile: no tables for unwinding, no relocations, equal code once,
/// code that is alike side by side, where it packs best, and checksums in a loop where the processor has no
/// instructions for them.
const SMALL: [&str; 8] = [
    "-Cforce-unwind-tables=no",
    "-Crelocation-model=static",
    "-Clink-arg=-O2",
    "-Clink-arg=--icf=all",
    "-Clink-arg=--bp-compression-sort=function",
    "-Clink-arg=-znorelro",
    "-Clink-arg=--no-eh-frame-hdr",
    "--cfg=sha2_backend_soft=\"compact\"",
];
/// How often zopfli looks for a better packing; more gain less than a thousandth.
const PACKING_ROUNDS: u64 = 5;

/// For whom agents are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Small before all else.
    Release,
    /// Quick to build before all else.
    Debug,
}

/// One agent: its architecture, and where the program lies.
pub struct Agent {
    pub architecture: String,
    pub program: PathBuf,
}

/// Returns the architectures of a list such as `x86_64,aarch64`.
///
/// # Errors
/// A message naming one that there is no agent for.
pub fn listed(list: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let names: Vec<String> =
        list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    match names.iter().find(|name| !ARCHITECTURES.contains(&name.as_str())) {
        Some(unknown) => {
            Err(format!("no agent can be built for `{unknown}`, only for {}", ARCHITECTURES.join(" and ")).into())
        }
        None => Ok(names),
    }
}

/// Builds agents from the workspace at `root` in the folder `into`. Those whose target the toolchain lacks are left out,
/// which `say` is told; this machine's own is linked against its C library then.
///
/// # Errors
/// What the compiler says.
pub fn build(
    root: &Path,
    architectures: &[String],
    purpose: Purpose,
    into: &Path,
    say: &dyn Fn(&str),
) -> Result<Vec<Agent>, Box<dyn Error>> {
    let (mut targets, mut agents) = (Vec::new(), Vec::new());
    for architecture in architectures {
        let musl = format!("{architecture}-unknown-linux-musl");
        if installed(&musl)? {
            targets.push(musl.clone());
            agents.push(Agent { architecture: architecture.clone(), program: program(into, &musl, purpose) });
        } else if env::consts::OS == "linux" && env::consts::ARCH == architecture {
            say(&format!(
                "the agent for {architecture} is linked against this system's C library, since the target is \
                 missing: rustup target add {musl}"
            ));
            let own = format!("{architecture}-unknown-linux-gnu");
            cargo(root, std::slice::from_ref(&own), purpose, into, &["-Ctarget-feature=+crt-static".to_owned()])?;
            agents.push(Agent { architecture: architecture.clone(), program: program(into, &own, purpose) });
        } else {
            say(&format!("no agent for {architecture}, since the target is missing: rustup target add {musl}"));
        }
    }
    // The linker and the C start files come with the toolchain: no cross compiler is needed.
    let mut flags: Vec<String> = LINKING.map(str::to_owned).to_vec();
    if purpose == Purpose::Release {
        flags.extend(SMALL.map(str::to_owned));
        flags.push(format!("-Clink-arg=-T{}", root.join("modules/src/bin/agent/discard.ld").display()));
        // Panics name the place: not that on this machine.
        flags.push(format!("--remap-path-prefix={}=", root.display()));
        flags.extend(sources().map(|folder| format!("--remap-path-prefix={}=", folder.display())));
    }
    if !targets.is_empty() {
        cargo(root, &targets, purpose, into, &flags)?;
    }
    Ok(agents)
}

fn profile(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Release => "agent",
        Purpose::Debug => "agent-quick",
    }
}

fn program(into: &Path, target: &str, purpose: Purpose) -> PathBuf {
    into.join(target).join(profile(purpose)).join("kubeon-agent")
}

/// Returns where cargo keeps the sources of other crates.
fn sources() -> Option<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    Some(home.or_else(|| Some(env::home_dir()?.join(".cargo")))?.join("registry/src"))
}

/// Builds the agents for all targets at once, so that what takes one processor a long time is done side by side.
fn cargo(
    root: &Path,
    targets: &[String],
    purpose: Purpose,
    into: &Path,
    flags: &[String],
) -> Result<(), Box<dyn Error>> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo.args(["build", "--quiet", "--package", "kubeon-modules", "--bin", "kubeon-agent", "--no-default-features"]);
    cargo.args(["--profile", profile(purpose)]).arg("--target-dir").arg(into);
    cargo.args(targets.iter().flat_map(|target| ["--target", target]));
    // What was meant for the runner's own build: flags, targets and the compiler that clippy puts in place.
    for name in ["RUSTFLAGS", "CARGO_BUILD_TARGET", "CARGO_TARGET_DIR", "RUSTC_WORKSPACE_WRAPPER", "CLIPPY_ARGS"] {
        cargo.env_remove(name);
    }
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    let output = cargo.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the agent for {} does not build:\n{said}", targets.join(" or ")).into());
    }
    Ok(())
}

/// Returns whether the toolchain has the standard library for a target.
fn installed(target: &str) -> Result<bool, Box<dyn Error>> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "target-libdir", "--target", target]).output()?;
    Ok(output.status.success() && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

/// Packs an agent as it travels: any host's `gzip` unpacks it, however long the packing took.
///
/// # Errors
/// None but those of memory that is written to.
pub fn packed(program: &[u8], purpose: Purpose) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut packed = Vec::new();
    match purpose {
        Purpose::Release => {
            let options = zopfli::Options {
                iteration_count: NonZeroU64::new(PACKING_ROUNDS).unwrap_or(NonZeroU64::MIN),
                ..zopfli::Options::default()
            };
            zopfli::compress(options, zopfli::Format::Gzip, program, &mut packed)?;
        }
        Purpose::Debug => {
            let mut packer = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::fast());
            packer.write_all(program)?;
            packer.finish()?;
        }
    }
    Ok(packed)
}
