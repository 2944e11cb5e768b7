//! What `bench/run` holds the program against: SSH with nothing around it, a wire with a delay, and a stopwatch.
//!
//!     kubeon-floor run frame|pipelined|exec HOSTS KEY HOST_KEY STEPS AGENT…   the same steps on all hosts, at once
//!     kubeon-floor agent                                                     its other end
//!     kubeon-floor wire PID PID                                              joins two network namespaces
//!     kubeon-floor listen DEVICE                                             counts what passes it
//!     kubeon-floor time FILE COMMAND…                                        runs it, writes what it took

mod agent;
mod counts;
mod listen;
mod run;
mod session;
mod stopwatch;
mod wire;

use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["run", mode, hosts, key, host_key, steps, agent @ ..] => {
            run::run(mode, hosts, key, host_key, steps, &agent.join(" "))
        }
        ["agent"] => agent::serve(),
        ["wire", near, far] => wire::join(near, far),
        ["listen", device] => listen::listen(device),
        ["time", file, command @ ..] => return stopwatch::time(file, command),
        _ => Err(io::Error::other("`run`, `agent`, `wire`, `listen` or `time`, as `bench/run` calls it")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
