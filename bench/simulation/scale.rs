//! The same run over more and more hosts, and what the controller takes for it.

use std::path::Path;
use std::time::Duration;

use crate::runs::{self, Fleet, Outcome, Run};
use crate::seeds;
use crate::weather::Weather;

/// Far ends in a process: each has three threads, and a process can't have any number of them.
const HOSTS_A_WORKER: usize = 2500;
const LIMIT: Duration = Duration::from_secs(1800);
/// What a controller without hosts may take.
const FREE_KIB: f64 = 20.0 * 1024.0;

/// Prints a table; returns how many runs told something untrue.
pub fn run(folder: &Path, sizes: &[usize], forks: usize, strategy: &str, weather: &Weather) -> Outcome<usize> {
    crate::say(
        "| hosts | wall s | controller CPU s | µs a host-task | peak MiB | KiB a host | far ends' CPU s | threads | descriptors | lost |",
    );
    crate::say("|---|---|---|---|---|---|---|---|---|---|");
    let mut wrong = 0;
    for &hosts in sizes {
        let folder = folder.join(hosts.to_string());
        runs::write(&folder, hosts, weather.tasks, strategy, false)?;
        let workers = hosts.div_ceil(HOSTS_A_WORKER);
        let fleet = Fleet::start(&folder, workers, weather)?;
        let run = Run { folder: &folder, workers, forks, retry: false, limit: LIMIT };
        let (used, threads, descriptors) = run.go()?;
        let (notes, far) = fleet.end()?;
        let lost = match seeds::compare(&notes, &runs::events(&folder)?, hosts) {
            Ok(lost) => lost.len().to_string(),
            Err(error) => {
                wrong += 1;
                format!("untrue: {error}")
            }
        };
        let steps = hosts as f64 * weather.tasks as f64;
        let cpu = used.cpu.as_secs_f64();
        crate::say(&format!(
            "| {hosts} | {:.2} | {cpu:.2} | {:.0} | {:.0} | {:.0} | {:.1} | {threads} | {descriptors} | {lost} |",
            used.wall.as_secs_f64(),
            cpu / steps * 1e6,
            used.peak_kib as f64 / 1024.0,
            (used.peak_kib as f64 - FREE_KIB).max(0.0) / hosts as f64,
            far.as_secs_f64(),
        ));
    }
    Ok(wrong)
}
