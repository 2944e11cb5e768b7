//! The keys that hosts are known by, in OpenSSH's files. Source: `sshd(8)`, SSH_KNOWN_HOSTS FILE FORMAT.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use sha1::Digest as _;
use sha2::Sha256;

use super::key::kind_of;
use crate::connection::pattern::list_matches;

const DEFAULT_PORT: u16 = 22;

/// What the files say about one host.
pub(super) struct Known {
    /// The host's name as the files write it.
    name: String,
    /// Where a new key would be added.
    home: PathBuf,
    entries: Vec<Entry>,
}

struct Entry {
    mark: Mark,
    kind: String,
    blob: Vec<u8>,
    path: PathBuf,
    line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Key,
    Revoked,
    Authority,
}

impl Known {
    /// Reads what concerns a host; files that can't be read say nothing. `key_name` stands for address and port.
    pub fn read(files: &[PathBuf], address: &str, port: u16, key_name: Option<&str>) -> Known {
        let address = address.to_ascii_lowercase();
        let name = match key_name {
            Some(name) => name.to_ascii_lowercase(),
            None if port == DEFAULT_PORT => address.clone(),
            None => format!("[{address}]:{port}"),
        };
        let files = if files.is_empty() { usual_files() } else { files.to_vec() };
        let home = files.first().cloned().unwrap_or_default();
        let entries_for = |name: &str| {
            let read = |path: &PathBuf| fs::read_to_string(path).map(|text| entries(&text, path, name));
            files.iter().filter_map(|path| read(path).ok()).flatten().collect::<Vec<_>>()
        };
        let mut found = entries_for(&name);
        // A host known under its plain name is known on every port, as OpenSSH has it.
        if key_name.is_none() && port != DEFAULT_PORT && !found.iter().any(|entry| entry.mark == Mark::Key) {
            found.extend(entries_for(&address));
        }
        Known { name, home, entries: found }
    }

    /// Returns the algorithms to ask for, known ones first: otherwise a host with several keys may show another.
    pub fn preferred(&self, session: &ssh2::Session) -> Option<String> {
        let supported = session.supported_algs(ssh2::MethodType::HostKey).ok()?;
        let known = |algorithm: &str| {
            let kind = if algorithm.starts_with("rsa-sha2-") { "ssh-rsa" } else { algorithm };
            self.entries.iter().any(|entry| entry.mark == Mark::Key && entry.kind == kind)
        };
        let (mut order, rest): (Vec<&str>, Vec<&str>) = supported.iter().partition(|algorithm| known(algorithm));
        if order.is_empty() {
            return None;
        }
        order.extend(rest);
        Some(order.join(","))
    }

    /// Whether certificates of an authority are trusted for this host.
    pub fn has_authority(&self) -> bool {
        self.entries.iter().any(|entry| entry.mark == Mark::Authority)
    }

    /// Checks the key that the host showed. A new host's is kept where `accept_new` says so.
    ///
    /// # Errors
    /// Why it is not to be trusted, and what to do.
    pub fn check(&self, key: &[u8], accept_new: bool) -> Result<(), String> {
        let kind = kind_of(key);
        let fingerprint = format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(key)));
        if let Some(entry) = self.entries.iter().find(|entry| entry.mark == Mark::Revoked && entry.blob == key) {
            return Err(format!("the host's key {fingerprint} ({kind}) is revoked by {}", entry.place()));
        }
        let keys: Vec<_> = self.entries.iter().filter(|entry| entry.mark == Mark::Key).collect();
        if keys.iter().any(|entry| entry.blob == key) {
            return Ok(());
        }
        let line = format!("{} {kind} {}", self.name, STANDARD.encode(key));
        let accept = format!("echo '{line}' >> {}", shell_words::quote(&self.home.to_string_lossy()));
        if let Some(old) = keys.iter().find(|entry| entry.kind == kind).or(keys.first()) {
            let path = shell_words::quote(&old.path.to_string_lossy()).into_owned();
            return Err(format!(
                "the host's key has changed, or someone else answers in its place: it shows {kind} {fingerprint}, \
                 {} has another ({}); when the change is right, remove the old one with \
                 `ssh-keygen -f {path} -R '{}'` and accept the new one with `{accept}`",
                old.place(),
                old.described(),
                self.name,
            ));
        }
        if accept_new {
            return self.keep(&line).map_err(|error| format!("keep its key in {}: {error}", self.home.display()));
        }
        Err(format!(
            "the host's key {fingerprint} ({kind}) is not known; compare the fingerprint with the host's own, then \
             accept it with `{accept}`"
        ))
    }
}

impl Known {
    fn keep(&self, line: &str) -> io::Result<()> {
        if let Some(folder) = self.home.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(&self.home)?;
        // In one write: others append to the same file.
        file.write_all(format!("{line}\n").as_bytes())
    }
}

impl Entry {
    fn place(&self) -> String {
        format!("{}:{}", self.path.display(), self.line)
    }
    fn described(&self) -> String {
        format!("{} SHA256:{}", self.kind, STANDARD_NO_PAD.encode(Sha256::digest(&self.blob)))
    }
}

/// Returns the files that OpenSSH reads without being told.
fn usual_files() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_else(|| PathBuf::from("/"));
    let system = Path::new("/etc/ssh");
    vec![
        home.join(".ssh/known_hosts"),
        home.join(".ssh/known_hosts2"),
        system.join("ssh_known_hosts"),
        system.join("ssh_known_hosts2"),
    ]
}

/// Returns the entries of a file for a host.
fn entries(text: &str, path: &Path, name: &str) -> Vec<Entry> {
    let numbered = text.lines().enumerate().map(|(nth, line)| (nth + 1, line.trim()));
    let entry = |(line, text): (usize, &str)| {
        let mut words = text.split_ascii_whitespace().peekable();
        let mark = match *words.peek()? {
            "@revoked" => Mark::Revoked,
            "@cert-authority" => Mark::Authority,
            first if first.starts_with(['#', '@']) => return None,
            _ => Mark::Key,
        };
        if mark != Mark::Key {
            words.next();
        }
        let names = words.next()?;
        // First, for a file may hold thousands of hosts.
        if !names_match(names, name) {
            return None;
        }
        let kind = words.next()?.to_owned();
        let blob = STANDARD.decode(words.next()?).ok()?;
        Some(Entry { mark, kind, blob, path: path.to_owned(), line })
    };
    numbered.filter_map(entry).collect()
}

/// Returns whether a list of patterns, or a hashed name, means this host.
fn names_match(names: &str, name: &str) -> bool {
    if let Some(hashed) = names.strip_prefix("|1|") {
        let Some((salt, hash)) = hashed.split_once('|') else { return false };
        let (Ok(salt), Ok(hash)) = (STANDARD.decode(salt), STANDARD.decode(hash)) else { return false };
        return hmac_sha1(&salt, name.as_bytes()) == hash;
    }
    list_matches(names.split(','), name)
}

/// Source: RFC 2104.
fn hmac_sha1(key: &[u8], message: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 64;
    let mut block = [0; BLOCK];
    let key = if key.len() > BLOCK { sha1::Sha1::digest(key).to_vec() } else { key.to_vec() };
    block[..key.len()].copy_from_slice(&key);
    let inner = sha1::Sha1::digest([&block.map(|byte| byte ^ 0x36)[..], message].concat());
    sha1::Sha1::digest([&block.map(|byte| byte ^ 0x5c)[..], &inner].concat()).to_vec()
}
