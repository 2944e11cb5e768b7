//! A fleet of simulated hosts under the real controller: `bench/README.md` says how to run it.

mod far;
mod runs;
mod scale;
mod seeds;
mod weather;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kubeon_run::connection::{Fleet, use_fleet};

use weather::Weather;

/// Runs the controller over simulated hosts, and compares what it tells with what the hosts did.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure the controller over fleets of these sizes.
    Scale {
        #[arg(long, value_delimiter = ',', default_values_t = [100, 1000, 10_000])]
        hosts: Vec<usize>,
        #[arg(long, default_value_t = 50)]
        forks: usize,
        #[arg(long, default_value = "linear")]
        strategy: String,
        #[command(flatten)]
        weather: Weather,
    },
    /// Run small fleets in bad weather, each by another seed.
    Seeds {
        #[arg(long, default_value_t = 1)]
        first: u64,
        #[arg(long, default_value_t = 200)]
        count: u64,
        #[arg(long, default_value_t = 8)]
        hosts: usize,
    },
    #[command(hide = true)]
    Far {
        folder: PathBuf,
        number: u64,
        #[command(flatten)]
        weather: Weather,
    },
    #[command(hide = true)]
    Controller {
        folder: PathBuf,
        workers: u64,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Scale { hosts, forks, strategy, weather } => {
            in_folder(|folder| scale::run(folder, &hosts, forks, &strategy, &weather))
        }
        Command::Seeds { first, count, hosts } => in_folder(|folder| seeds::run(folder, first, count, hosts)),
        Command::Far { folder, number, weather } => {
            kubeon_run::cli::raise_descriptors(u64::MAX);
            far::serve(&folder, number, &weather).map(|()| 0).map_err(Into::into)
        }
        Command::Controller { folder, workers, words } => {
            kubeon_run::cli::keep_memory_together();
            use_fleet(Fleet { folder, workers });
            return kubeon_run::cli::main_of([OsString::from("kubeon-run")].into_iter().chain(words).collect());
        }
    };
    match outcome {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Works in a folder of its own, which stays where something was untrue.
fn in_folder(work: impl FnOnce(&Path) -> runs::Outcome<usize>) -> runs::Outcome<usize> {
    let folder = std::env::temp_dir().join(format!("kubeon-simulate-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let wrong = work(&folder)?;
    if wrong == 0 {
        std::fs::remove_dir_all(&folder)?;
    } else {
        say(&format!("what was run is in `{}`", folder.display()));
    }
    Ok(wrong)
}

/// Prints a line at once.
fn say(line: &str) {
    let mut out = std::io::stdout();
    // A reader that is gone can't be told.
    writeln!(out, "{line}").and_then(|()| out.flush()).ok();
}
