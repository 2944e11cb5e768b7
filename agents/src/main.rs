//! Builds the release's agents and prints a line for each: its architecture, the bytes that it takes on a host, and
//! those that travel there. Takes the architectures, all by default.

use std::env;
use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use kubeon_agents::{ARCHITECTURES, Purpose, build, listed, packed};

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = env::args().skip(1).collect();
    let architectures = listed(&if given.is_empty() { ARCHITECTURES.join(",") } else { given.join(",") })?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("this package is in no workspace")?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let say = |warning: &str| {
        writeln!(std::io::stderr(), "{warning}").ok();
    };
    for agent in build(root, &architectures, Purpose::Release, &target.join("agents"), &say)? {
        let program = std::fs::read(&agent.program)?;
        let travels = packed(&program, Purpose::Release)?.len();
        writeln!(std::io::stdout(), "{} {} {travels}", agent.architecture, program.len())?;
    }
    Ok(())
}
