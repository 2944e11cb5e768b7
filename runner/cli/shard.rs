//! A part of a spread run: a plain run over its own hosts, whose lines somebody else puts together.

use std::sync::Arc;

use super::Problem;
use crate::execute::{EXIT_INTERRUPTED, World};
use crate::report::{Event, Part};
use crate::spread::digest;

/// Tells whose part this is, where it is one; returns whether it is.
pub(super) fn begins(world: &Arc<World>) -> Result<bool, Problem> {
    let Some(shard) = &world.options.shard else { return Ok(false) };
    let whole = world.inventory().select("all", world.options.limit.as_deref()).map_err(Problem::new)?;
    let hosts = shard.hosts(&whole);
    let here = std::env::current_dir().and_then(std::fs::canonicalize);
    let project = std::env::var_os("KUBEON_SPREAD_PROJECT").map(std::path::PathBuf::from).or(here.ok());
    world.tell(Event::Part(Part::Begins {
        index: shard.index,
        count: shard.count,
        hosts: hosts.len(),
        digest: digest(&hosts),
        project: project.unwrap_or_default().display().to_string(),
    }));
    Ok(true)
}

/// Returns the exit status of a part whose run ended with this one: what happened to hosts is told in its lines, and a pod
/// that has told it has done its work. One that was interrupted is to be run again.
pub(super) fn status(code: u8) -> u8 {
    if code == EXIT_INTERRUPTED { code } else { 0 }
}
