//! Logging in: keys of an agent, key files, a password, questions of the host.

use std::path::{Path, PathBuf};
use std::time::Instant;

use ssh2::{ErrorCode, KeyboardInteractivePrompt, Prompt};

use super::{AGAIN, Socket, explain};
use crate::connection::Target;

/// Tried, in OpenSSH's order, where no key is named.
const USUAL_KEYS: [&str; 3] = ["id_rsa", "id_ecdsa", "id_ed25519"];

/// Logs in by whatever both sides have.
///
/// # Errors
/// What was tried and what the host would take.
pub(super) fn log_in(
    session: &ssh2::Session,
    socket: &Socket,
    user: &str,
    target: &Target,
    deadline: Instant,
) -> Result<(), String> {
    let mut login = Login { session, socket, user, target, deadline, tried: Vec::new() };
    let methods = login.wait(|| session.auth_methods(user).map(str::to_owned));
    if session.authenticated() {
        return Ok(());
    }
    let methods = methods.map_err(|error| format!("log in as `{user}`: {}", login.why(&error)))?;
    let offers = |method: &str| methods.split(',').any(|offered| offered == method);
    if offers("publickey") && login.by_keys()? {
        return Ok(());
    }
    if let Some(password) = &target.password {
        if offers("password") && login.by_password(password)? {
            return Ok(());
        }
        if offers("keyboard-interactive") && login.by_questions(password)? {
            return Ok(());
        }
    }
    let tried = if login.tried.is_empty() { "nothing to try".to_owned() } else { login.tried.join("; ") };
    let hint = if target.password.is_none() && (offers("password") || offers("keyboard-interactive")) {
        "; a password can be given with `--ask-pass`"
    } else {
        ""
    };
    Err(format!("log in as `{user}`: refused ({tried}); the host takes {methods}{hint}"))
}

struct Login<'a> {
    session: &'a ssh2::Session,
    socket: &'a Socket,
    user: &'a str,
    target: &'a Target,
    deadline: Instant,
    tried: Vec<String>,
}

/// Answers each question that hides its answer.
struct Answers<'a>(&'a str);

impl KeyboardInteractivePrompt for Answers<'_> {
    fn prompt<'a>(&mut self, _: &str, _: &str, prompts: &[Prompt<'a>]) -> Vec<String> {
        prompts.iter().map(|prompt| if prompt.echo { String::new() } else { self.0.to_owned() }).collect()
    }
}

impl Login<'_> {
    fn wait<T>(&self, operation: impl FnMut() -> Result<T, ssh2::Error>) -> Result<T, ssh2::Error> {
        self.socket.wait(self.session, self.deadline, operation)
    }

    fn why(&self, error: &ssh2::Error) -> String {
        explain(error, self.target.connect_timeout)
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
                let tried = self.tried.join("; ");
                Err(format!("log in as `{}`: {what}: {} (before that: {tried})", self.user, self.why(&error)))
            }
            Err(error) => {
                self.tried.push(format!("{what}: {}", self.why(&error)));
                Ok(false)
            }
        }
    }

    fn by_keys(&mut self) -> Result<bool, String> {
        if let Some(path) = &self.target.private_key_file
            && self.by_file(path)?
        {
            return Ok(true);
        }
        if self.by_agent()? {
            return Ok(true);
        }
        if self.target.private_key_file.is_none() {
            let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
            for path in USUAL_KEYS.map(|name| home.join(".ssh").join(name)) {
                if path.is_file() && self.by_file(&path)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn by_file(&mut self, path: &Path) -> Result<bool, String> {
        let what = format!("key `{}`", path.display());
        if let Err(error) = std::fs::File::open(path) {
            self.tried.push(format!("{what}: {error}"));
            return Ok(false);
        }
        let passphrase = self.target.password.as_deref();
        let result = self.wait(|| self.session.userauth_pubkey_file(self.user, None, path, passphrase));
        self.note(what, result)
    }

    fn by_agent(&mut self) -> Result<bool, String> {
        if std::env::var_os("SSH_AUTH_SOCK").is_none() {
            return Ok(false);
        }
        let listed = self.session.agent().and_then(|mut agent| {
            agent.connect()?;
            agent.list_identities()?;
            let identities = agent.identities()?;
            Ok((agent, identities))
        });
        let (agent, identities) = match listed {
            Ok(listed) => listed,
            Err(error) => {
                self.tried.push(format!("the SSH agent: {}", error.message()));
                return Ok(false);
            }
        };
        for identity in &identities {
            let result = self.wait(|| agent.userauth(self.user, identity));
            if self.note(format!("key `{}` of the SSH agent", identity.comment()), result)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn by_password(&mut self, password: &str) -> Result<bool, String> {
        let result = self.wait(|| self.session.userauth_password(self.user, password));
        self.note("the password".to_owned(), result)
    }

    fn by_questions(&mut self, password: &str) -> Result<bool, String> {
        let mut answers = Answers(password);
        let result = self.wait(|| self.session.userauth_keyboard_interactive(self.user, &mut answers));
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
