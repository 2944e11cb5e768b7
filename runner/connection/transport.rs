//! The ways to start a program on a host.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

use super::openssh::OpenSsh;
use super::pipe::{Order, Pipe};
use super::process::ProcessPipe;
use super::route::Route;
use super::ssh::{Refusal, Session};
use super::{Target, Unreachable, UnreachableKind, Via};

/// Returns this machine's own agent.
pub(super) fn program() -> Option<PathBuf> {
    PROGRAM.get().cloned().or_else(|| std::env::current_exe().ok())
}

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Names the program that is this machine's agent when given the argument `agent`, in place of the running one.
/// The first call decides.
pub fn use_program(path: impl Into<PathBuf>) {
    PROGRAM.set(path.into()).ok();
}

/// A way to start programs on one host.
pub(super) enum Transport {
    Ssh(Box<Session>),
    OpenSsh(Box<OpenSsh>),
    /// A program of this machine that gets `/bin/sh -c …` as its last arguments; with none, the shell is run here.
    Program {
        host: String,
        arguments: Vec<String>,
    },
    #[cfg(feature = "simulate")]
    Simulated {
        host: String,
        fleet: &'static super::fleet::Fleet,
    },
}

impl Transport {
    /// Connects as far as programs can be started.
    pub fn open(target: &Target) -> Result<Transport, Unreachable> {
        match &target.via {
            Via::Ssh => {
                #[cfg(feature = "simulate")]
                if let Some(fleet) = super::fleet::fleet() {
                    return Ok(Transport::Simulated { host: target.host.clone(), fleet });
                }
                let route = Route::of(target)?;
                if let Some(why) = &route.openssh {
                    return OpenSsh::new(target, &route, Some(why)).map(Box::new).map(Transport::OpenSsh);
                }
                match Session::open(target, &route) {
                    Ok(session) => Ok(Transport::Ssh(Box::new(session))),
                    Err(Refusal::Final(unreachable)) => Err(unreachable),
                    Err(Refusal::OpenSsh(why)) => {
                        OpenSsh::new(target, &route, Some(&why)).map(Box::new).map(Transport::OpenSsh)
                    }
                }
            }
            Via::OpenSsh => OpenSsh::new(target, &Route::of(target)?, None).map(Box::new).map(Transport::OpenSsh),
            Via::Local => Ok(Transport::Program { host: target.host.clone(), arguments: Vec::new() }),
            Via::Command(arguments) if arguments.is_empty() => {
                let message = format!("`{}`: no command is given to reach it by", target.host);
                Err(Unreachable::new(UnreachableKind::Configuration, message))
            }
            Via::Command(arguments) => {
                Ok(Transport::Program { host: target.host.clone(), arguments: arguments.clone() })
            }
        }
    }

    /// Returns the user that programs run as, where that is known.
    pub fn user(&self) -> Option<&str> {
        match self {
            Transport::Ssh(session) => Some(session.user()),
            Transport::OpenSsh(openssh) => Some(openssh.user()),
            Transport::Program { .. } => None,
            #[cfg(feature = "simulate")]
            Transport::Simulated { .. } => None,
        }
    }

    /// Returns a program on the host that is its own agent.
    pub fn own_program(&self) -> Option<PathBuf> {
        match self {
            Transport::Program { arguments, .. } if arguments.is_empty() => program(),
            Transport::Ssh(_) | Transport::OpenSsh(_) | Transport::Program { .. } => None,
            #[cfg(feature = "simulate")]
            Transport::Simulated { .. } => None,
        }
    }

    /// Starts a program.
    pub fn start(&mut self, order: &Order<'_>, deadline: Instant) -> Result<Box<dyn Pipe>, Unreachable> {
        match self {
            Transport::Ssh(session) => session.start(order, deadline),
            Transport::OpenSsh(openssh) => openssh.start(order),
            Transport::Program { host, arguments } => {
                if order.terminal && !arguments.is_empty() {
                    let message = format!("`{host}`: a terminal can be had over SSH and on this machine only");
                    return Err(Unreachable::new(UnreachableKind::Become, message));
                }
                let shell = ["/bin/sh".to_owned(), "-c".to_owned(), order.text.body().to_owned()];
                let mut words = arguments.iter().cloned().chain(shell);
                let program = words.next().unwrap_or_default();
                let mut command = Command::new(&program);
                command.args(words);
                let start = if order.terminal { ProcessPipe::start_on_terminal } else { ProcessPipe::start };
                let started = start(command).map_err(|error| {
                    Unreachable::new(UnreachableKind::Connect, format!("`{host}`: run `{program}`: {error}"))
                })?;
                Ok(Box::new(started))
            }
            #[cfg(feature = "simulate")]
            Transport::Simulated { host, fleet } => super::fleet::connect(fleet, host),
        }
    }
}
