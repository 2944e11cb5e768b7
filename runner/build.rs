//! Embeds the agents, one static program an architecture, packed, for `runner/connection/agent.rs`.
//!
//! A release carries every architecture. A debug build carries this one's only, built quickly rather than small;
//! `KUBEON_AGENTS=x86_64,aarch64` names others. `KUBEON_AGENTS_DIR` holds `kubeon-agent-ARCH` files to embed instead.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use kubeon_agents::{ARCHITECTURES, Agent, Purpose, build, listed, packed};
use sha2::{Digest, Sha256};

fn main() -> Result<(), Box<dyn Error>> {
    for path in ["modules", "Cargo.toml", "Cargo.lock", "runner/build.rs"] {
        println!("cargo::rerun-if-changed={path}");
    }
    for name in ["KUBEON_AGENTS", "KUBEON_AGENTS_DIR"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let purpose = if env::var("PROFILE")? == "release" { Purpose::Release } else { Purpose::Debug };
    let architectures = match env::var("KUBEON_AGENTS") {
        Ok(list) => listed(&list)?,
        Err(_) if purpose == Purpose::Release => ARCHITECTURES.map(str::to_owned).to_vec(),
        Err(_) => listed(&env::var("CARGO_CFG_TARGET_ARCH")?)?,
    };
    let agents = match env::var_os("KUBEON_AGENTS_DIR") {
        Some(folder) => given(Path::new(&folder), architectures),
        None => {
            let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
            let say = |warning: &str| println!("cargo::warning={warning}");
            build(&root, &architectures, purpose, &shared_folder(&out)?, &say)?
        }
    };
    let mut list = String::from("&[\n");
    for Agent { architecture, program } in agents {
        let bytes = fs::read(&program).map_err(|error| format!("read the agent {}: {error}", program.display()))?;
        let path = out.join(format!("kubeon-agent-{architecture}.gz"));
        fs::write(&path, packed(&bytes, purpose)?)?;
        let sha256 = Sha256::digest(&bytes).iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").ok();
            text
        });
        writeln!(
            list,
            "    Agent {{ architecture: {architecture:?}, sha256: {sha256:?}, size_bytes: {}, packed: \
             include_bytes!({path:?}) }},",
            bytes.len(),
        )?;
    }
    list.push(']');
    fs::write(out.join("agents.rs"), list)?;
    Ok(())
}

/// Returns agents that were built before.
fn given(folder: &Path, architectures: Vec<String>) -> Vec<Agent> {
    let agent = |architecture: String| {
        let program = folder.join(format!("kubeon-agent-{architecture}"));
        println!("cargo::rerun-if-changed={}", program.display());
        Agent { architecture, program }
    };
    architectures.into_iter().map(agent).collect()
}

/// Returns the folder that all builds of the agents share: beside the profiles' folders, whatever this build is for.
fn shared_folder(out: &Path) -> Result<PathBuf, Box<dyn Error>> {
    // OUT_DIR is TARGET_DIR/PROFILE/build/NAME/out, with the target's name before the profile where `--target` gave it.
    let folder = out.ancestors().nth(4).ok_or("OUT_DIR is not in a target folder")?;
    let named = folder.file_name().is_some_and(|name| env::var_os("TARGET").is_some_and(|target| name == target));
    let folder = if named { folder.parent().unwrap_or(folder) } else { folder };
    Ok(folder.join("agents"))
}
