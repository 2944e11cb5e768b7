//! The agent: serves one runner over its standard streams.

#[cfg(all(target_env = "musl", panic = "abort"))]
#[path = "agent/unwind.rs"]
mod unwind;

use std::io::Write as _;

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // A write to a runner that is gone must be an error here, not a signal; Rust ignores SIGPIPE for us.
    match kubeon_modules::serve(&arguments, std::io::stdin(), std::io::stdout()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            // Where a runner started it, standard error goes nowhere once it serves; `check` is heard.
            writeln!(std::io::stderr(), "{error}").ok();
            std::process::ExitCode::FAILURE
        }
    }
}
