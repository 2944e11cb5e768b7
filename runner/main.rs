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
    keep_memory_together();
    kubeon_run::cli::main()
}

/// Gives threads, of which there is one a host, a common store of memory a core, and freed large pieces back at once:
/// left to itself, the C library keeps a store for nearly every thread.
fn keep_memory_together() {
    #[cfg(target_env = "gnu")]
    {
        const LARGE_BYTES: libc::c_int = 128 << 10;
        let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
        // SAFETY: called before there is a second thread; a setting that is refused changes nothing.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, libc::c_int::try_from(cores).unwrap_or(libc::c_int::MAX));
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
            libc::mallopt(libc::M_TRIM_THRESHOLD, LARGE_BYTES);
        }
    }
}
