//! The agent: serves one runner over its standard streams.

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // A write to a runner that is gone must be an error here, not a signal; Rust ignores SIGPIPE for us.
    match kubeon_modules::serve(&arguments, std::io::stdin(), std::io::stdout()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(_) => std::process::ExitCode::FAILURE,
    }
}
