//! The system's `ssh`, for what libssh2 can't do: jump hosts, proxies, certificates, hardware keys, Kerberos.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;

use super::pipe::{Order, Pipe};
use super::process::ProcessPipe;
use super::route::{Route, Strict};
use super::transport::program;
use super::{Target, Unreachable, UnreachableKind};

/// The file that holds the answer, for this program where `ssh` runs it to ask for a password.
const ASKED_FOR: &str = "KUBEON_RUN_ASKPASS";
/// The exit status of `ssh` itself. Source: `ssh(1)`.
pub(super) const OWN_FAILURE: i32 = 255;

/// Answers `ssh`, where it runs this program to ask for a password. Returns whether it did.
pub fn answer_ssh() -> bool {
    let Some(path) = std::env::var_os(ASKED_FOR) else { return false };
    let mut answer = Vec::new();
    let read = std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut answer));
    read.is_ok() && io::stdout().write_all(&answer).is_ok()
}

/// How to run `ssh` for one host.
pub(super) struct OpenSsh {
    host: String,
    user: String,
    arguments: Vec<OsString>,
    /// Holds the password, in memory only.
    password: Option<OwnedFd>,
}

impl OpenSsh {
    /// Prepares for a host; `why` says what asks for the system's `ssh` where the user did not.
    pub fn new(target: &Target, route: &Route, why: Option<&str>) -> Result<OpenSsh, Unreachable> {
        let fault =
            |message: String| Unreachable::new(UnreachableKind::Configuration, format!("`{}`: {message}", target.host));
        if !installed() {
            let why = why.map_or_else(String::new, |why| format!(", which {why} takes"));
            return Err(fault(format!("the system's `ssh` is not installed{why}")));
        }
        let mut arguments: Vec<OsString> = Vec::new();
        // What the inventory says comes first: `ssh` takes the first value of each option.
        let mut option = |text: String| arguments.extend([OsString::from("-o"), OsString::from(text)]);
        match route.strict {
            Strict::No => {
                option("StrictHostKeyChecking=no".into());
                if !target.host_key_checking {
                    option("UserKnownHostsFile=/dev/null".into());
                }
            }
            Strict::AcceptNew => option("StrictHostKeyChecking=accept-new".into()),
            // Not `ask`: nobody is there to answer.
            Strict::Yes => option("StrictHostKeyChecking=yes".into()),
        }
        if !target.known_hosts.is_empty() {
            let names = target.known_hosts.iter().map(|path| format!("\"{}\"", path.display()));
            option(format!("UserKnownHostsFile={}", names.collect::<Vec<_>>().join(" ")));
        }
        option(format!("ConnectTimeout={}", route.connect_timeout.as_secs().max(1)));
        // A host that is gone ends `ssh` by itself, too.
        option("ServerAliveInterval=15".into());
        option("ServerAliveCountMax=4".into());
        option("LogLevel=ERROR".into());
        // With a terminal, `ssh` would take what follows a `~` at the start of a line for orders to itself.
        option("EscapeChar=none".into());
        if target.password.is_some() {
            option("NumberOfPasswordPrompts=1".into());
        } else {
            option("BatchMode=yes".into());
        }
        if let Some(port) = target.port {
            option(format!("Port={port}"));
        }
        if let Some(user) = &target.user {
            option(format!("User={user}"));
        }
        if let Some(path) = &target.private_key_file {
            option(format!("IdentityFile=\"{}\"", path.display()));
        }
        arguments.extend(target.ssh_args.iter().map(OsString::from));
        // Nothing that follows is an option, whatever a host is named.
        let address = target.address.trim_start_matches('[').trim_end_matches(']');
        arguments.extend([OsString::from("--"), OsString::from(address)]);
        let password = target.password.as_deref().map(in_memory).transpose();
        let password = password.map_err(|error| fault(format!("keep the password for `ssh`: {error}")))?;
        Ok(OpenSsh { host: target.host.clone(), user: route.user.clone(), arguments, password })
    }

    pub fn user(&self) -> &str {
        &self.user
    }

    /// Returns what makes `ssh` ask this program for the password.
    fn asking(&self) -> Vec<(&'static str, OsString)> {
        let (Some(password), Some(program)) = (&self.password, program()) else { return Vec::new() };
        let path = format!("/proc/{}/fd/{}", std::process::id(), password.as_raw_fd());
        vec![
            (ASKED_FOR, path.into()),
            ("SSH_ASKPASS", program.into()),
            ("SSH_ASKPASS_REQUIRE", "force".into()),
            ("DISPLAY", std::env::var_os("DISPLAY").unwrap_or_else(|| "none".into())),
        ]
    }

    /// Starts a program on the host.
    pub fn start(&self, order: &Order<'_>) -> Result<Box<dyn Pipe>, Unreachable> {
        let mut command = Command::new("ssh");
        command.arg(if order.terminal { "-tt" } else { "-T" });
        command.args(&self.arguments).arg(order.text.line());
        command.envs(self.asking());
        let started = ProcessPipe::start(command).map_err(|error| {
            Unreachable::new(UnreachableKind::Connect, format!("`{}`: run `ssh`: {error}", self.host))
        })?;
        Ok(Box::new(if order.terminal { started.that_must_be_ended() } else { started }))
    }
}

/// How a program that runs `ssh` itself, such as rsync, gets to a host: the command but for the host, and its environment.
pub struct Shell {
    pub words: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Holds the password while this lives.
    _ssh: OpenSsh,
}

/// Returns how programs that run `ssh` themselves get to a host.
///
/// # Errors
/// When the host's settings make no sense, or the system's `ssh` is not installed.
pub fn shell_to(target: &Target) -> Result<Shell, Unreachable> {
    let ssh = OpenSsh::new(target, &Route::of(target)?, Some("`synchronize`"))?;
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let options = &ssh.arguments[..ssh.arguments.len() - 2];
    let words = std::iter::once("ssh".to_owned()).chain(options.iter().map(text)).collect();
    let env = ssh.asking().iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect();
    Ok(Shell { words, env, _ssh: ssh })
}

fn installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join("ssh").is_file())
}

/// Puts a secret into a file without a name, which other programs of this user can open while this one lives.
fn in_memory(secret: &str) -> io::Result<OwnedFd> {
    // SAFETY: the name is a C string; what is returned is checked before it is owned.
    let fd = unsafe { libc::memfd_create(c"kubeon-run".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    let mut file = unsafe { std::fs::File::from_raw_fd(fd) };
    writeln!(file, "{secret}")?;
    Ok(file.into())
}

/// Returns what a failure of `ssh` itself means.
pub(super) fn kind_of_failure(said: &str) -> UnreachableKind {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if has(&["Host key verification failed", "HOST IDENTIFICATION HAS CHANGED", "host key is known", "REVOKED"]) {
        UnreachableKind::HostKey
    } else if has(&["Permission denied", "Too many authentication failures", "No more authentication methods"]) {
        UnreachableKind::Authentication
    } else if has(&["Could not resolve hostname", "Name or service not known"]) {
        UnreachableKind::Resolve
    } else if has(&["Bad configuration option", "command-line: line", "unknown option", "Bad port"]) {
        UnreachableKind::Configuration
    } else {
        UnreachableKind::Connect
    }
}
