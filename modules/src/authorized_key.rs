use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use schemars::JsonSchema;

use crate::attributes::{Wanted, missing_parents};
use crate::decode::Arguments;
use crate::owners::{Account, account_of};
use crate::rewrite::{Rewrite, bare, lines_of};
use crate::shared::{State, yes};
use crate::{Change, Content, Error, ErrorKind, Host, Mode, Module, Plan, accounts, paths, transfer};

/// Keep a key in a user's `authorized_keys` file, or keep it out.
///
/// ```yaml
/// - authorized_key:
///     user: deploy
///     key: "{{ lookup('file', 'deploy.pub') }}"
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Whose file.
    user: String,
    /// One key or several, each a line, or a URL of such lines that the host downloads.
    key: String,
    /// The file; `~/.ssh/authorized_keys` of the user when absent.
    path: Option<String>,
    /// Whether the key must be there.
    #[serde(default)]
    state: State,
    /// Options before the key, such as `no-port-forwarding,from="10.0.1.1"`.
    key_options: Option<String>,
    /// What stands behind the key, in place of its own comment.
    comment: Option<String>,
    /// Take all other keys out.
    #[serde(default)]
    exclusive: bool,
    /// Make the folder where it is missing, and keep it the user's own with mode 0700.
    #[serde(default = "yes")]
    manage_dir: bool,
    /// Where the file is a link, write the file that it leads to; otherwise the link is replaced.
    #[serde(default)]
    follow: bool,
    /// Whether the server of a URL must prove who it is.
    #[serde(default = "yes")]
    validate_certs: bool,
}

/// A line of the file. Source: `sshd(8)`, "AUTHORIZED_KEYS FILE FORMAT".
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    options: String,
    kind: String,
    key: String,
    comment: String,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let Some(account) = account_of(host, &self.user)? else {
            return Err(Error::new(
                ErrorKind::Host,
                format!("no user `{}` on this host; make it with `user` first", self.user),
            ));
        };
        let path = match &self.path {
            Some(path) => paths::expand(host, path)?,
            None => format!("{}/.ssh/authorized_keys", account.home.trim_end_matches('/')),
        };
        accounts::stays_own(host, account.uid, &account.home, &path)?;
        let path = if self.follow { paths::follow(host, &path)? } else { path };
        let given = self.given(host)?;
        let old = lines_of(&host.read(&path)?.unwrap_or_default());
        let old: Vec<String> = old.iter().map(|line| String::from_utf8_lossy(bare(line)).into_owned()).collect();
        let new = self.edited(&old, &given);
        let mut changes = Vec::new();
        if self.state == State::Present || new != old {
            self.write(host, &path, &account, new, &mut changes)?;
        }
        let state = match self.state {
            State::Absent => "absent",
            State::Present => "present",
        };
        Ok(Plan::from(changes)
            .with("user", self.user.as_str())
            .with("path", path)
            .with("keyfile", Option::<String>::None)
            .with("state", state)
            .with("exclusive", self.exclusive)
            .with("manage_dir", self.manage_dir)
            .with("key_options", self.key_options.clone())
            .with("comment", self.comment.clone())
            .with("key", self.key.as_str()))
    }
}

impl Args {
    /// Returns the keys of the task, with its options and comment.
    fn given(&self, host: &dyn Host) -> Result<Vec<Key>, Error> {
        let no_headers = BTreeMap::new();
        let text = match self.key.trim() {
            url if url.starts_with("http://") || url.starts_with("https://") || url.starts_with("file://") => {
                transfer::plain(url, &no_headers, self.validate_certs).read(host)?
            }
            text => text.to_owned(),
        };
        let mut keys = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let Some(mut key) = Key::read(line) else {
                return Err(Error::new(
                    ErrorKind::Arguments,
                    format!("`{line}` is no public key: expected a type and the key itself"),
                ));
            };
            if let Some(options) = &self.key_options {
                key.options.clone_from(options);
            }
            if let Some(comment) = &self.comment {
                key.comment.clone_from(comment);
            }
            keys.push(key);
        }
        if keys.is_empty() && !self.exclusive {
            return Err(Error::new(ErrorKind::Arguments, "`key` holds no key"));
        }
        Ok(keys)
    }

    /// Returns the lines with the keys in or out; other lines stay as they are.
    fn edited(&self, old: &[String], given: &[Key]) -> Vec<String> {
        let mut new = Vec::new();
        let mut seen = Vec::new();
        for line in old {
            let Some(found) = Key::read(line) else {
                new.push(line.clone());
                continue;
            };
            match (given.iter().find(|key| key.key == found.key), self.state) {
                (Some(_), State::Absent) => {}
                (None, State::Present) if self.exclusive => {}
                (Some(key), State::Present) => {
                    if !seen.contains(&&key.key) {
                        seen.push(&key.key);
                        new.push(if *key == found { line.clone() } else { key.line() });
                    }
                }
                (None, _) => new.push(line.clone()),
            }
        }
        if self.state == State::Present {
            for key in given {
                if !seen.contains(&&key.key) {
                    seen.push(&key.key);
                    new.push(key.line());
                }
            }
        }
        new
    }

    fn write(
        &self,
        host: &dyn Host,
        path: &str,
        account: &Account,
        lines: Vec<String>,
        changes: &mut Vec<Change>,
    ) -> Result<(), Error> {
        let own = |mode| Wanted { mode: Some(Mode::Bits(mode)), uid: Some(account.uid), gid: Some(account.gid) };
        if self.manage_dir {
            let folder = paths::parent(path);
            match host.stat(folder)? {
                Some(found) => own(0o700).changes(host, &paths::follow(host, folder)?, &found, changes),
                None => {
                    for parent in missing_parents(host, path)? {
                        own(0o700).make_directory(host, &parent, changes);
                    }
                }
            }
        }
        let mut text = lines.join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        let wanted = own(0o600);
        let rewrite =
            Rewrite { wanted: &wanted, backup: false, validate: None, in_place: false, replace_link: !self.follow };
        rewrite.plan(host, path, &Content::Inline(text.into_bytes()), changes)
    }
}

impl Key {
    /// Reads a line; `None` for a comment and for what is no key.
    fn read(line: &str) -> Option<Key> {
        let line = line.trim();
        if line.starts_with('#') {
            return None;
        }
        let (first, rest) = split_word(line);
        let (options, kind, rest) = if is_kind(first) {
            ("", first, rest)
        } else {
            let (kind, rest) = split_word(rest);
            (first, kind, rest)
        };
        let (key, comment) = split_word(rest);
        let is_key = is_kind(kind) && !key.is_empty() && STANDARD.decode(key).is_ok();
        is_key.then(|| Key { options: options.into(), kind: kind.into(), key: key.into(), comment: comment.into() })
    }

    fn line(&self) -> String {
        let words = [&self.options, &self.kind, &self.key, &self.comment];
        words.into_iter().filter(|word| !word.is_empty()).cloned().collect::<Vec<_>>().join(" ")
    }
}

fn is_kind(word: &str) -> bool {
    ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-", "rsa-sha2-"].iter().any(|prefix| word.starts_with(prefix))
}

/// Splits at the first blank that is not within quotes.
fn split_word(text: &str) -> (&str, &str) {
    let mut quoted = false;
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '"' if !escaped => quoted = !quoted,
            ' ' | '\t' if !quoted => return (&text[..at], text[at..].trim_start()),
            _ => {}
        }
        escaped = letter == '\\' && !escaped;
    }
    (text, "")
}
