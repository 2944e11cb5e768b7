//! Becoming another user: the command line of sudo, su and doas, and what their refusals mean.

use std::fmt;

/// Another user to be on a host.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Become {
    pub method: BecomeMethod,
    pub user: String,
    pub password: Option<String>,
    /// The program in place of the method's own name.
    pub exe: Option<String>,
    /// Options in place of the usual ones, split as a shell would.
    pub flags: Option<String>,
}

/// Without the password.
impl fmt::Debug for Become {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Become { method, user, password: _, exe, flags } = self;
        let mut shown = f.debug_struct("Become");
        shown.field("method", method).field("user", user).field("exe", exe).field("flags", flags);
        shown.finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BecomeMethod {
    Sudo,
    Su,
    Doas,
}

impl BecomeMethod {
    pub fn name(self) -> &'static str {
        match self {
            BecomeMethod::Sudo => "sudo",
            BecomeMethod::Su => "su",
            BecomeMethod::Doas => "doas",
        }
    }
}

/// Printed by the login user's shell as it asks the method.
pub(super) const ASKED: &str = "asked";
/// Printed once the other user's shell reads its orders.
pub(super) const READY: &str = "ready";

/// Returns what the other user's shell does: it says that it is there, reads one line and executes it; on a terminal,
/// which must pass every byte as it is. `token` marks the lines of ours. Fit for [`super::pipe::Text::Plain`].
pub(super) fn read_orders(token: &str, terminal: bool) -> String {
    let raw = if terminal { "stty raw -echo 2>/dev/null; " } else { "" };
    format!(r#"{raw}printf "\nkubeon-{token}: {READY}\n"; IFS= read -r s; eval "$s""#)
}

/// Quotes a word for a POSIX shell.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl Become {
    /// Returns the line that makes a shell of the login user the other user's, which then runs `body`. `token` marks the
    /// lines of ours.
    pub(super) fn line(&self, token: &str, prompt: &str, body: &str) -> String {
        let exe = self.exe.as_deref().unwrap_or(self.method.name());
        let exe = shell_words::split(exe)
            .map_or_else(|_| quoted(exe), |words| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
        let user = quoted(&self.user);
        let flags = self.words();
        let shell = format!("/bin/sh -c {}", quoted(body));
        let become_line = match self.method {
            BecomeMethod::Sudo if self.password.is_some() => {
                format!("exec {exe} {flags} -S -p {} -u {user} -- {shell}", quoted(prompt))
            }
            BecomeMethod::Sudo => format!("exec {exe} {flags} -n -u {user} -- {shell}"),
            // The other user's login shell stands between, so its line is one that any shell reads alike.
            BecomeMethod::Su => {
                format!("exec {exe} {flags} {user} -c {}", quoted(&format!("exec /bin/sh -c '{body}'")))
            }
            BecomeMethod::Doas if self.password.is_some() => format!("exec {exe} {flags} -u {user} {shell}"),
            BecomeMethod::Doas => format!("exec {exe} {flags} -n -u {user} {shell}"),
        };
        // Nothing is to be gained, and permission may lack, when the login user is that user already.
        format!(
            r#"if [ "$(id -un)" = {user} ]; then exec {shell}; fi; printf "\nkubeon-{token}: {ASKED}\n"; {become_line}"#
        )
    }

    /// The options: those asked for, less what this program decides itself.
    fn words(&self) -> String {
        let usual = match self.method {
            BecomeMethod::Sudo => "-H",
            BecomeMethod::Su | BecomeMethod::Doas => "",
        };
        let flags = self.flags.as_deref().unwrap_or(usual);
        let words = shell_words::split(flags).unwrap_or_default();
        let kept = words.iter().filter(|word| !matches!(word.as_str(), "-n" | "-S"));
        kept.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    /// Whether the method reads a password from a terminal only.
    pub(super) fn needs_terminal(&self) -> bool {
        self.method == BecomeMethod::Doas && self.password.is_some()
    }

    /// Whether orders may follow at once: nothing but the other user's shell would read them.
    pub(super) fn reads_nothing(&self) -> bool {
        self.method == BecomeMethod::Sudo && self.password.is_none()
    }

    /// Returns whether the text ends in this method's question for a password.
    pub(super) fn asks(&self, text: &[u8], prompt: &str) -> bool {
        match self.method {
            BecomeMethod::Sudo => text.ends_with(prompt.as_bytes()),
            // In whatever language: the last line is not ended but by a colon.
            BecomeMethod::Su | BecomeMethod::Doas => {
                let text = String::from_utf8_lossy(text);
                let last = text.rsplit('\n').next().unwrap_or_default().trim_end();
                last.ends_with(':') || last.ends_with('\u{ff1a}')
            }
        }
    }

    /// Whether a method that asks on standard input ended at its question, for which there was no answer.
    fn asked_in_vain(&self, said: &str) -> bool {
        match self.method {
            BecomeMethod::Su | BecomeMethod::Doas => self.password.is_none() && self.asks(said.trim().as_bytes(), ""),
            BecomeMethod::Sudo => false,
        }
    }

    /// Returns what a refusal means and what to do; `said` is what the method printed.
    pub(super) fn refusal(&self, said: &str, login: &str) -> String {
        let name = self.exe.as_deref().unwrap_or(self.method.name());
        let user = &self.user;
        let lower = said.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let meaning =
            if has(&["incorrect password", "sorry, try again", "authentication failure", "authentication failed"]) {
                if self.password.is_some() {
                    "the password for it is wrong".to_owned()
                } else {
                    "it wants a password; give one with `--ask-become-pass` or `ansible_become_password`".to_owned()
                }
            } else if self.asked_in_vain(said)
                || has(&["a password is required", "no askpass", "authorization required", "authentication required"])
            {
                "it wants a password; give one with `--ask-become-pass` or `ansible_become_password`".to_owned()
            } else if has(&["must have a tty", "must be run from a terminal", "a terminal is required", "tty required"])
            {
                format!("it insists on a terminal; take `requiretty` out of the sudoers file for {login}")
            } else if has(&["not in the sudoers", "may not run sudo", "is not allowed to", "operation not permitted"]) {
                format!("{login} may not become `{user}` there; allow it or log in as another user")
            } else if has(&["unknown user", "does not exist", "no such user", "no passwd entry", "unknown login"]) {
                format!("the host has no user `{user}`")
            } else if has(&["not found", "no such file"]) {
                format!("`{name}` is not installed there; set `become_method` to one that is")
            } else if has(&["not available", "nologin"]) {
                format!("the user `{user}` has no shell to log in with; set `become_flags: -s /bin/sh`")
            } else if has(&["expired"]) {
                "an account or a password has expired".to_owned()
            } else {
                "it was refused".to_owned()
            };
        let said = said.trim();
        let said = if said.is_empty() { String::new() } else { format!(" ({said})") };
        format!("become `{user}` by {name}: {meaning}{said}")
    }
}
