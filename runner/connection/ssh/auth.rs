//! Logging in: keys of an agent, key files, a password, questions of the host.

use std::path::{Path, PathBuf};
use std::time::Instant;

use ssh2::{ErrorCode, KeyboardInteractivePrompt, Prompt};

use super::key::{Key, kind_of};
use super::patience::PatientAgent;
use super::{AGAIN, Socket, explain};
use crate::connection::passphrase::ask;
use crate::connection::route::Route;

/// Tried, in OpenSSH's order, where no key is named.
const USUAL_KEYS: [&str; 3] = ["id_rsa", "id_ecdsa", "id_ed25519"];
/// Keys in hardware, which only the system's `ssh` can use.
const HARDWARE_KEYS: [&str; 2] = ["id_ecdsa_sk", "id_ed25519_sk"];

/// Why a login failed.
pub(super) struct Refused {
    pub message: String,
    /// Why the system's `ssh` may do better.
    pub elsewhere: Option<String>,
}

pub(super) struct Login<'a> {
    session: &'a ssh2::Session,
    socket: &'a Socket,
    route: &'a Route,
    password: Option<&'a str>,
    deadline: Instant,
    tried: Vec<String>,
    elsewhere: Option<String>,
    /// A key's file that was tried before the host was asked what it takes.
    tried_first: Option<PathBuf>,
}

/// Answers each question that hides its answer.
struct Answers<'a>(&'a str);

impl KeyboardInteractivePrompt for Answers<'_> {
    fn prompt<'a>(&mut self, _: &str, _: &str, prompts: &[Prompt<'a>]) -> Vec<String> {
        prompts.iter().map(|prompt| if prompt.echo { String::new() } else { self.0.to_owned() }).collect()
    }
}

impl<'a> Login<'a> {
    pub fn new(
        session: &'a ssh2::Session,
        socket: &'a Socket,
        route: &'a Route,
        password: Option<&'a str>,
        deadline: Instant,
    ) -> Login<'a> {
        Login { session, socket, route, password, deadline, tried: Vec::new(), elsewhere: None, tried_first: None }
    }

    /// Logs in by whatever both sides have.
    ///
    /// # Errors
    /// What was tried and what the host would take.
    pub fn log_in(mut self) -> Result<(), Refused> {
        match self.attempt() {
            Ok(()) => Ok(()),
            Err(message) => {
                let message = format!("log in as `{}`: {message}", self.route.user);
                Err(Refused { message, elsewhere: self.elsewhere })
            }
        }
    }

    fn attempt(&mut self) -> Result<(), String> {
        if self.by_likely_key()? {
            return Ok(());
        }
        let user = &self.route.user;
        let methods = self.wait(|| self.session.auth_methods(user).map(str::to_owned));
        if self.session.authenticated() {
            return Ok(());
        }
        let methods = methods.map_err(|error| self.why(&error))?;
        let offered: Vec<&str> = methods.split(',').collect();
        let can = |method: &str| offered.contains(&method) && self.route.methods.contains(&method);
        let (keys, password, questions) = (can("publickey"), can("password"), can("keyboard-interactive"));
        if keys && self.by_keys()? {
            return Ok(());
        }
        if let Some(secret) = self.password {
            if password && self.by_password(secret)? {
                return Ok(());
            }
            if questions && self.by_questions(secret)? {
                return Ok(());
            }
        }
        if self.route.gssapi && offered.contains(&"gssapi-with-mic") && std::env::var_os("KRB5CCNAME").is_some() {
            self.elsewhere.get_or_insert_with(|| "Kerberos".to_owned());
        }
        let tried = if self.tried.is_empty() { "there was nothing to try".to_owned() } else { self.tried.join("; ") };
        let hint = if self.password.is_none() && (password || questions) {
            "; a password can be given with `--ask-pass`"
        } else {
            ""
        };
        Err(format!("refused ({tried}); the host takes {methods}{hint}"))
    }

    fn wait<T>(&self, operation: impl FnMut() -> Result<T, ssh2::Error>) -> Result<T, ssh2::Error> {
        self.socket.wait(self.session, self.deadline, operation)
    }

    fn why(&self, error: &ssh2::Error) -> String {
        explain(error, self.route.connect_timeout)
    }

    /// Notes how an attempt went. An error that ends the connection ends the login.
    fn note(&mut self, what: String, result: Result<(), ssh2::Error>) -> Result<bool, String> {
        match result {
            Ok(()) if self.session.authenticated() => Ok(true),
            Ok(()) => {
                self.tried.push(format!("{what}: the host wants more than that"));
                Ok(false)
            }
            Err(error) if fatal(&error) => {
                let before = if self.tried.is_empty() {
                    String::new()
                } else {
                    format!(" (before that: {})", self.tried.join("; "))
                };
                Err(format!("{what}: {}{before}", self.why(&error)))
            }
            Err(error) => {
                self.tried.push(format!("{what}: {}", self.why(&error)));
                Ok(false)
            }
        }
    }

    /// Tries keys in OpenSSH's order: those of the agent that are named, files that are named, the agent's others.
    fn by_keys(&mut self) -> Result<bool, String> {
        let named = &self.route.identity_files;
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default().join(".ssh");
        let files: Vec<PathBuf> = if named.is_empty() {
            USUAL_KEYS.iter().map(|name| home.join(name)).filter(|path| path.is_file()).collect()
        } else {
            named.clone()
        };
        let hardware = HARDWARE_KEYS.iter().map(|name| home.join(name)).find(|path| path.is_file());
        if let Some(path) = hardware.filter(|_| named.is_empty()) {
            self.elsewhere = Some(format!("the hardware key `{}`", path.display()));
        }
        let publics: Vec<Vec<u8>> = files.iter().filter_map(|path| Key::read(path).ok()?.public).collect();
        let agent = self.agent();
        let by_agent = |login: &mut Login<'_>, own: bool| -> Result<bool, String> {
            let Some((agent, identities)) = &agent else { return Ok(false) };
            for identity in identities.iter().filter(|identity| publics.iter().any(|key| key == identity.blob()) == own)
            {
                let result = login.wait(|| agent.userauth(&login.route.user, identity));
                if login.note(format!("key `{}` of the SSH agent", identity.comment()), result)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        if by_agent(self, true)? {
            return Ok(true);
        }
        for path in files.iter().filter(|path| self.tried_first.as_ref() != Some(*path)).collect::<Vec<_>>() {
            if self.by_file(path)? {
                return Ok(true);
            }
        }
        Ok(!self.route.identities_only && by_agent(self, false)?)
    }

    /// Tries the key that would be tried first anyway, without asking what the host takes: a round trip less.
    fn by_likely_key(&mut self) -> Result<bool, String> {
        let Some(path) = self.route.identity_files.first().filter(|_| self.route.methods.contains(&"publickey")) else {
            return Ok(false);
        };
        // A key of the agent comes before it, and one that takes a passphrase is worth the question first.
        if self.route.agent.is_some() || !Key::read(path).is_ok_and(|key| !key.encrypted) {
            return Ok(false);
        }
        self.tried_first = Some(path.clone());
        self.by_file(path)
    }

    fn by_file(&mut self, path: &Path) -> Result<bool, String> {
        let what = format!("key `{}`", path.display());
        let key = match Key::read(path) {
            Ok(key) => key,
            Err(error) => {
                self.tried.push(format!("{what}: {error}"));
                return Ok(false);
            }
        };
        let passphrase = match (key.encrypted, self.password) {
            (false, _) => None,
            (true, Some(password)) => Some(password.to_owned()),
            (true, None) => {
                let asked = Instant::now();
                let answer = ask(&format!("Passphrase of {}: ", path.display()));
                // A person may take their time; the host's own limit on a login still runs.
                self.deadline += asked.elapsed();
                answer
            }
        };
        if key.encrypted && passphrase.is_none() {
            self.tried.push(format!("{what}: it is encrypted; add it to an SSH agent with `ssh-add`"));
            return Ok(false);
        }
        let user = &self.route.user;
        let result = self.wait(|| self.session.userauth_pubkey_file(user, None, path, passphrase.as_deref()));
        let what = if key.encrypted { format!("{what}, encrypted") } else { what };
        self.note(what, result)
    }

    /// Returns the agent and its keys that libssh2 can use.
    fn agent(&mut self) -> Option<(ssh2::Agent, Vec<ssh2::PublicKey>)> {
        let socket = self.route.agent.as_ref()?;
        // Half of what is left, so that an agent that does not answer leaves time for key files and a password.
        let limit = self.deadline.saturating_duration_since(Instant::now()) / 2;
        let listed = PatientAgent::before(socket, limit).map_err(|error| error.to_string());
        let listed = listed.and_then(|patient| {
            let failure = patient.failure();
            let identities = self.session.agent().and_then(|mut agent| {
                agent.set_identity_path(&patient.socket())?;
                agent.connect()?;
                agent.list_identities()?;
                let identities = agent.identities()?;
                Ok((agent, identities))
            });
            identities.map_err(|error| failure.told().unwrap_or_else(|| error.message().to_owned()))
        });
        match listed {
            Ok((agent, identities)) => {
                let strange = |identity: &ssh2::PublicKey| {
                    let kind = kind_of(identity.blob());
                    kind.starts_with("sk-") || kind.contains("-cert-")
                };
                if let Some(identity) = identities.iter().find(|identity| strange(identity)) {
                    self.elsewhere = Some(format!("key `{}` of the SSH agent", identity.comment()));
                }
                Some((agent, identities.into_iter().filter(|identity| !strange(identity)).collect()))
            }
            Err(error) => {
                self.tried.push(format!("the SSH agent at `{}`: {error}", socket.display()));
                None
            }
        }
    }

    fn by_password(&mut self, password: &str) -> Result<bool, String> {
        let result = self.wait(|| self.session.userauth_password(&self.route.user, password));
        self.note("the password".to_owned(), result)
    }

    fn by_questions(&mut self, password: &str) -> Result<bool, String> {
        let mut answers = Answers(password);
        let result = self.wait(|| self.session.userauth_keyboard_interactive(&self.route.user, &mut answers));
        self.note("the password, as an answer".to_owned(), result)
    }
}

/// Whether an error leaves no connection to go on with. Source: `libssh2.h`.
fn fatal(error: &ssh2::Error) -> bool {
    const SOCKET_SEND: i32 = -7;
    const TIMEOUT: i32 = -9;
    const SOCKET_DISCONNECT: i32 = -13;
    const SOCKET_TIMEOUT: i32 = -30;
    const SOCKET_RECV: i32 = -43;
    let codes = [SOCKET_SEND, TIMEOUT, SOCKET_DISCONNECT, SOCKET_TIMEOUT, SOCKET_RECV, AGAIN];
    matches!(error.code(), ErrorCode::Session(code) if codes.contains(&code))
}
