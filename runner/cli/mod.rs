//! The command line: what a person types, and what the environment and `ansible.cfg` add to it.

mod again;
mod args;
mod config;
mod config_tool;
mod connect;
mod console;
mod descriptors;
mod doctor;
mod doctor_args;
mod doctor_cluster;
mod extra_vars;
mod lint;
mod output;
pub mod prompt;
mod reach_args;
mod run;
mod run_args;
mod settings;
mod shard;
mod spread;
mod spread_args;
mod spread_orders;
mod spread_server;
mod tools;
mod unfollowed;
mod vault;
mod vault_args;
mod vault_files;
mod vault_passwords;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};
pub(crate) use config::Config;
pub use descriptors::raise_descriptors;

/// The exit status of a mistake on the command line.
const EXIT_BAD_OPTIONS: u8 = 2;

/// Runs the program.
pub fn main() -> ExitCode {
    match called() {
        Some(name)
            if name.starts_with("ansible") && std::env::args_os().nth(1).is_some_and(|word| word == "--version") =>
        {
            tools::version(&name);
            ExitCode::SUCCESS
        }
        Some(_) | None => main_of(words()),
    }
}

/// Runs the program by other words than those of the command line.
pub fn main_of(words: Vec<OsString>) -> ExitCode {
    let arguments = Arguments::parse_from(words);
    let done = match arguments.command {
        None => run::run(arguments.run),
        Some(Command::Check(run)) => run::check(run),
        Some(Command::Doctor(doctor)) => doctor::doctor(*doctor),
        Some(Command::Adhoc(adhoc)) => run::adhoc(*adhoc),
        Some(Command::Spread(args)) => spread::spread(*args),
        Some(Command::Shard(args)) => spread::shard(args),
        Some(Command::Console(args)) => console::console(*args),
        Some(Command::Inventory(inventory)) => tools::inventory(inventory),
        Some(Command::Lint(args)) => lint::lint(&args),
        Some(Command::Config { action }) => config_tool::config(&action),
        Some(Command::Vault { action }) => vault::vault(action),
        Some(Command::Doc(args)) => tools::doc(&args),
        Some(Command::Schema { what }) => tools::schema(what),
        Some(Command::Init { folder }) => tools::init(&folder),
        Some(Command::Completions { shell }) => tools::completions(shell),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(Problem { message, code }) => {
            crate::report::complain(&message);
            ExitCode::from(code)
        }
    }
}

/// Gives threads, of which there is one a host, a common store of memory a core, and freed large pieces back at once:
/// left to itself, the C library keeps a store for nearly every thread. For a program's first moment, before it has threads.
pub fn keep_memory_together() {
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

/// Returns the words of the command line; under the name of one of Ansible's programs, with the sub-command that does its
/// work.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let command = match called().as_deref() {
        Some("ansible") => "adhoc",
        Some("ansible-console") => "console",
        Some("ansible-inventory") => "inventory",
        Some("ansible-doc") => "doc",
        Some("ansible-vault") => "vault",
        Some("ansible-config") => "config",
        Some(_) | None => return words,
    };
    words.insert(1, command.into());
    words
}

/// Returns the name that the program was started by.
fn called() -> Option<String> {
    let first = std::env::args_os().next()?;
    Some(Path::new(&first).file_name()?.to_str()?.to_owned())
}

/// What ends the program before or instead of a run.
#[derive(Debug)]
pub(crate) struct Problem {
    message: String,
    code: u8,
}

impl Problem {
    fn new(message: impl Into<String>) -> Problem {
        Problem { message: message.into(), code: 1 }
    }

    /// A mistake on the command line.
    fn usage(message: impl Into<String>) -> Problem {
        Problem { message: message.into(), code: EXIT_BAD_OPTIONS }
    }
}
