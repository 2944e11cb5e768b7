use base64::{Engine, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use sha1::{Digest, Sha1};

use crate::attributes::{Wanted, missing_parents};
use crate::decode::Arguments;
use crate::rewrite::{Rewrite, bare, lines_of};
use crate::shared::State;
use crate::{Change, Content, Error, ErrorKind, Host, Module, Plan, paths};

/// How a hashed name begins. Source: `sshd(8)`, "SSH_KNOWN_HOSTS FILE FORMAT".
const HASHED: &str = "|1|";

/// Keep a server's key in a `known_hosts` file, or keep a server out of it.
///
/// ```yaml
/// - known_hosts:
///     name: git.example.org
///     key: git.example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGfakefakefakefakefakefakefakefakefakefakefake
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The server's name or address; `[name]:port` where its port is not 22.
    #[serde(alias = "host")]
    name: String,
    /// The key's whole line, or several lines, each of which begins with the server's name.
    key: Option<String>,
    /// The file.
    #[serde(default = "file")]
    path: String,
    /// Write the server's name so that it can't be read from the file.
    #[serde(default)]
    hash_host: bool,
    /// Whether the key must be there; `absent` takes all the server's keys out.
    #[serde(default)]
    state: State,
}

fn file() -> String {
    "~/.ssh/known_hosts".to_owned()
}

/// A line of the file.
struct Entry<'a> {
    marker: Option<&'a str>,
    hosts: &'a str,
    kind: &'a str,
    key: &'a str,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let path = paths::expand(host, &self.path)?;
        let old = host.read(&path)?.unwrap_or_default();
        let mut lines: Vec<String> =
            lines_of(&old).iter().map(|line| String::from_utf8_lossy(bare(line)).into_owned()).collect();
        match self.state {
            State::Absent => lines.retain_mut(|line| without(line, &self.name, None)),
            State::Present => {
                for (nth, given) in self.given()?.into_iter().enumerate() {
                    let wanted = Entry::read(given).expect("checked when the key was read");
                    let same = |entry: &Entry<'_>| {
                        (entry.marker, entry.kind, entry.key) == (wanted.marker, wanted.kind, wanted.key)
                    };
                    if lines
                        .iter()
                        .filter_map(|line| Entry::read(line))
                        .any(|entry| entry.names(&self.name) && same(&entry))
                    {
                        continue;
                    }
                    if wanted.marker.is_none() {
                        lines.retain_mut(|line| without(line, &self.name, Some(wanted.kind)));
                    }
                    lines.push(if self.hash_host { self.hashed(host, nth, given) } else { given.to_owned() });
                }
            }
        }
        let mut new = lines.join("\n");
        if !new.is_empty() {
            new.push('\n');
        }
        let mut changes = Vec::new();
        if lines_of(&old).iter().map(|line| bare(line)).ne(lines.iter().map(String::as_bytes)) {
            for parent in missing_parents(host, &path)? {
                changes.push(Change::Mkdir { path: parent, mode: Some(0o700) });
            }
            let wanted = Wanted::default();
            let rewrite =
                Rewrite { wanted: &wanted, backup: false, validate: None, in_place: false, replace_link: false };
            rewrite.plan(host, &path, &Content::Inline(new.into_bytes()), &mut changes)?;
        }
        let state = match self.state {
            State::Absent => "absent",
            State::Present => "present",
        };
        Ok(Plan::from(changes)
            .with("name", self.name.as_str())
            .with("path", path)
            .with("state", state)
            .with("hash_host", self.hash_host)
            .with("key", self.key.clone()))
    }
}

impl Args {
    /// Returns the lines of `key`.
    fn given(&self) -> Result<Vec<&str>, Error> {
        let bad = |message: String| Error::new(ErrorKind::Arguments, message);
        if self.name.contains([',', ' ']) {
            return Err(bad(format!("`name: {}` must be one name", self.name)));
        }
        let key = self.key.as_deref().ok_or_else(|| bad("`state: present` needs `key`".into()))?;
        let lines: Vec<&str> =
            key.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        for line in &lines {
            match Entry::read(line) {
                Some(entry) if entry.names(&self.name) => {}
                Some(entry) => {
                    return Err(bad(format!(
                        "`key` is for `{}`, not for `{}`: it must begin with the name",
                        entry.hosts, self.name
                    )));
                }
                None => return Err(bad(format!("`{line}` is no key: expected a name, a type and the key itself"))),
            }
        }
        if lines.is_empty() {
            return Err(bad("`key` holds no key".into()));
        }
        Ok(lines)
    }

    /// Returns a key's line with its name hashed.
    fn hashed(&self, host: &dyn Host, nth: usize, line: &str) -> String {
        let entry = Entry::read(line).expect("checked when the key was read");
        if entry.hosts.starts_with(HASHED) {
            return line.to_owned();
        }
        // The salt must differ from entry to entry; it is written beside the hash, so it need not be secret.
        let salt = Sha1::digest(format!("{} {} {nth} {line}", host.started_s(), self.name));
        let name =
            format!("{HASHED}{}|{}", STANDARD.encode(salt), STANDARD.encode(hmac_sha1(&salt, self.name.as_bytes())));
        line.replacen(entry.hosts, &name, 1)
    }
}

impl<'a> Entry<'a> {
    /// Reads a line; `None` for a comment and for what is no key.
    fn read(line: &'a str) -> Option<Entry<'a>> {
        let mut words = line.split_whitespace();
        let first = words.next().filter(|first| !first.starts_with('#'))?;
        let (marker, hosts) = if first.starts_with('@') { (Some(first), words.next()?) } else { (None, first) };
        let (kind, key) = (words.next()?, words.next()?);
        STANDARD.decode(key).ok().map(|_| Entry { marker, hosts, kind, key })
    }

    fn names(&self, name: &str) -> bool {
        self.hosts.split(',').any(|host| is(host, name))
    }
}

/// Whether a name of the file, hashed or not, is this name.
fn is(host: &str, name: &str) -> bool {
    let Some(rest) = host.strip_prefix(HASHED) else { return host.eq_ignore_ascii_case(name) };
    let Some((salt, hash)) = rest.split_once('|') else { return false };
    match (STANDARD.decode(salt), STANDARD.decode(hash)) {
        (Ok(salt), Ok(hash)) => hmac_sha1(&salt, name.to_ascii_lowercase().as_bytes())[..] == hash[..],
        (Err(_), _) | (_, Err(_)) => false,
    }
}

/// Takes a server's name off a line, for keys of one kind or of all; returns whether anything stays of the line.
fn without(line: &mut String, name: &str, kind: Option<&str>) -> bool {
    let Some(entry) = Entry::read(line) else { return true };
    if !entry.names(name) || entry.marker.is_some() || kind.is_some_and(|kind| kind != entry.kind) {
        return true;
    }
    let others: Vec<&str> = entry.hosts.split(',').filter(|host| !is(host, name)).collect();
    let stays = !others.is_empty();
    *line = line.replacen(entry.hosts, &others.join(","), 1);
    stays
}

/// Source: RFC 2104.
fn hmac_sha1(key: &[u8], text: &[u8]) -> Vec<u8> {
    const BLOCK_BYTES: usize = 64;
    let mut block = [0_u8; BLOCK_BYTES];
    if key.len() > BLOCK_BYTES {
        block[..20].copy_from_slice(&Sha1::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = Sha1::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(text).finalize();
    Sha1::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::hexadecimal;

    /// Source: RFC 2202, test case 2.
    #[test]
    fn hmac_has_the_known_answer() {
        let answer = hmac_sha1(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(hexadecimal(&answer), "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
    }
}
