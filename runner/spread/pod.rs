//! What a pod does: it unpacks what it was given, and becomes a plain run over its part of the hosts.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::bundle;
use super::words::Orders;

/// The file with the orders.
pub const ORDERS: &str = "orders.json";
/// Which of the pods this is. Source: the Job controller sets it, as the documentation of Indexed Jobs says.
const INDEX: &str = "JOB_COMPLETION_INDEX";

/// The folders and files that a pod is given.
#[derive(Debug, Clone)]
pub struct Given {
    /// Pieces of what everybody may see; none where the project lies elsewhere.
    pub open: Option<PathBuf>,
    /// Pieces of what nobody else may see.
    pub private: PathBuf,
    /// An empty folder.
    pub work: PathBuf,
    /// Where the project lies, if not among the pieces.
    pub tree: Option<PathBuf>,
    pub gate: Option<PathBuf>,
    pub shards: usize,
}

/// Unpacks, and becomes the run: returns only what went wrong.
pub fn start(given: &Given) -> String {
    match command(given) {
        Ok(mut command) => format!("start the run: {}", command.exec()),
        Err(message) => message,
    }
}

/// Returns the command that is the run.
fn command(given: &Given) -> Result<Command, String> {
    let index =
        std::env::var(INDEX).map_err(|_| format!("`{INDEX}` is not set: this runs in a pod of an Indexed Job"))?;
    let work = &given.work;
    for name in ["home", "tmp"] {
        private_folder(&work.join(name))?;
    }
    bundle::unpack(&given.private, work)?;
    if let Some(open) = &given.open {
        bundle::unpack(open, work)?;
    }
    let project = given.tree.clone().unwrap_or_else(|| work.join("project"));
    let text = fs::read_to_string(work.join(ORDERS)).map_err(|error| format!("read the orders: {error}"))?;
    let orders: Orders = serde_json::from_str(&text).map_err(|error| format!("read the orders: {error}"))?;
    let orders = orders.here(&project, work);
    let program = std::env::current_exe().map_err(|error| format!("find this program: {error}"))?;
    let mut command = Command::new(program);
    command
        .args(&orders.arguments)
        .args(["--shard", &format!("{index}/{}", given.shards)])
        .args(given.gate.iter().flat_map(|gate| [Path::new("--gate"), gate]))
        .envs(&orders.environment)
        .env("HOME", work.join("home"))
        .env("TMPDIR", work.join("tmp"))
        .env("KUBEON_SPREAD_PROJECT", &project)
        .current_dir(project.join(&orders.folder));
    Ok(command)
}

fn private_folder(path: &Path) -> Result<(), String> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| format!("make `{}`: {error}", path.display()))
}
