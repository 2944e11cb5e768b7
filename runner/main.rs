//! The command line's entry.

use std::process::ExitCode;

fn main() -> ExitCode {
    if kubeon_run::connection::answer_ssh() {
        return ExitCode::SUCCESS;
    }
    // Before anything else: this program is its own agent for the machine it runs on.
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("agent") {
        let arguments: Vec<String> = arguments.collect();
        return match kubeon_modules::serve(&arguments, std::io::stdin(), std::io::stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    kubeon_run::cli::keep_memory_together();
    kubeon_run::cli::main()
}
