//! `--retry` and `--resume`: what the record of the last run of the same playbooks says about this one.

use std::collections::HashSet;

use super::Problem;
use super::run_args::RunArguments;
use crate::execute::{Replay, RunOptions};
use crate::inventory::Inventory;
use crate::report::past::{self, Past};
use crate::report::{self, About};

/// What an earlier run leaves to do.
pub enum Earlier {
    /// Nothing, which has been said.
    Nothing,
    /// A run that passes over what was done.
    Run(Replay),
}

/// Reads the last run of the same playbooks where the user asks for that.
pub fn earlier(
    args: &RunArguments,
    about: &About,
    inventory: &Inventory,
    options: &mut RunOptions,
) -> Result<Earlier, Problem> {
    if !args.retry && !args.resume {
        return Ok(Earlier::Run(Replay::default()));
    }
    let folder = report::runs_folder()
        .ok_or_else(|| Problem::new("no runs are recorded: neither XDG_STATE_HOME nor HOME names a folder"))?;
    let past = past::last(&folder, &about.playbooks).map_err(Problem::new)?;
    if args.retry { retry(&past, inventory, options) } else { resume(past, about) }
}

fn retry(past: &Past, inventory: &Inventory, options: &mut RunOptions) -> Result<Earlier, Problem> {
    if past.lost.is_empty() {
        report::note(&format!("nothing to retry: no host failed in the run of {}", past.started));
        return Ok(Earlier::Nothing);
    }
    let lost: HashSet<&str> = past.lost.iter().map(String::as_str).collect();
    let mut hosts = inventory.select("all", options.limit.as_deref()).map_err(Problem::new)?;
    // The machine itself is in no group unless the inventory names it.
    hosts.extend(inventory.select("localhost", options.limit.as_deref()).unwrap_or_default());
    let mut chosen: Vec<&str> = hosts.iter().map(|host| &**host).filter(|host| lost.contains(host)).collect();
    chosen.dedup();
    if chosen.is_empty() {
        let names: Vec<&str> = past.lost.iter().map(String::as_str).collect();
        return Err(Problem::new(format!(
            "nothing to retry: the inventory and `--limit` leave none of the hosts that failed in the run of {}: {}",
            past.started,
            names.join(", ")
        )));
    }
    options.limit = Some(chosen.join(","));
    Ok(Earlier::Run(Replay::default()))
}

fn resume(past: Past, about: &About) -> Result<Earlier, Problem> {
    if !past.interrupted {
        let hint = if past.lost.is_empty() { "" } else { "; `--retry` takes the hosts that failed" };
        report::note(&format!("nothing to resume: the run of {} came to its end{hint}", past.started));
        return Ok(Earlier::Nothing);
    }
    if past.check != about.check {
        let (was, flag) =
            if past.check { ("in check mode", "with `--check`") } else { ("for real", "without `--check`") };
        return Err(Problem::new(format!("the run of {} was {was}: resume it {flag}", past.started)));
    }
    let (tasks, hosts) = past.count();
    report::note(&format!("resuming the run of {}: {tasks} tasks on {hosts} hosts were done", past.started));
    Ok(Earlier::Run(past.replay()))
}
