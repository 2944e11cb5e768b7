//! The ways to start a program on a host.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

use super::pipe::{Order, Pipe};
use super::process::ProcessPipe;
use super::ssh::Session;
use super::{Target, Unreachable, UnreachableKind, Via};

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Names the program that is this machine's agent when given the argument `agent`, in place of the running one.
/// The first call decides.
pub fn use_program(path: impl Into<PathBuf>) {
    PROGRAM.set(path.into()).ok();
}

/// A way to start programs on one host.
pub(super) enum Transport {
    Ssh(Box<Session>),
    /// A program of this machine that gets `/bin/sh -c …` as its last arguments; with none, the shell is run here.
    Program {
        host: String,
        arguments: Vec<String>,
    },
}

impl Transport {
    /// Connects as far as programs can be started.
    pub fn open(target: &Target) -> Result<Transport, Unreachable> {
        match &target.via {
            Via::Ssh => Session::open(target).map(Box::new).map(Transport::Ssh),
            Via::Local => Ok(Transport::Program { host: target.host.clone(), arguments: Vec::new() }),
            Via::Command(arguments) if arguments.is_empty() => {
                let message = format!("`{}`: no command is given to reach it by", target.host);
                Err(Unreachable::new(UnreachableKind::Configuration, message))
            }
            Via::Command(arguments) => {
                Ok(Transport::Program { host: target.host.clone(), arguments: arguments.clone() })
            }
            Via::OpenSsh => {
                let message = format!("`{}`: the system's `ssh` is not supported yet", target.host);
                Err(Unreachable::new(UnreachableKind::Configuration, message))
            }
        }
    }

    /// Returns the user that programs run as, where that is known.
    pub fn user(&self) -> Option<&str> {
        match self {
            Transport::Ssh(session) => Some(session.user()),
            Transport::Program { .. } => None,
        }
    }

    /// Returns a program on the host that is its own agent.
    pub fn own_program(&self) -> Option<PathBuf> {
        match self {
            Transport::Program { arguments, .. } if arguments.is_empty() => {
                PROGRAM.get().cloned().or_else(|| std::env::current_exe().ok())
            }
            Transport::Ssh(_) | Transport::Program { .. } => None,
        }
    }

    /// Starts a program.
    pub fn start(&mut self, order: &Order<'_>, deadline: Instant) -> Result<Box<dyn Pipe>, Unreachable> {
        match self {
            Transport::Ssh(session) => session.start(order, deadline),
            Transport::Program { host, arguments } => {
                if order.terminal {
                    let message = format!("`{host}`: a terminal can be had over SSH only");
                    return Err(Unreachable::new(UnreachableKind::Become, message));
                }
                let shell = ["/bin/sh".to_owned(), "-c".to_owned(), order.text.body().to_owned()];
                let mut words = arguments.iter().cloned().chain(shell);
                let program = words.next().unwrap_or_default();
                let mut command = Command::new(&program);
                command.args(words);
                let started = ProcessPipe::start(command).map_err(|error| {
                    Unreachable::new(UnreachableKind::Connect, format!("`{host}`: run `{program}`: {error}"))
                })?;
                Ok(Box::new(started))
            }
        }
    }
}
