//! Ansible Vault, format 1.1 and 1.2: texts and files encrypted with a password.
//!
//! Source: the format's description in Ansible's documentation: PBKDF2-HMAC-SHA256 with 10,000 rounds gives a cipher
//! key, a MAC key and a counter; AES-256-CTR encrypts, HMAC-SHA256 over the ciphertext guards it.

use std::path::Path;

use aes::Aes256;
use aes::cipher::{KeyIvInit, StreamCipher};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::report::secrets;
use crate::source::{Diagnostic, FileId, Place};
use crate::value::{Map, Str, Value};
use crate::yaml::{self, Kind, Node, Parsed};

const ROUNDS: u32 = 10_000;
const MAGIC: &str = "$ANSIBLE_VAULT;";

/// The passwords that were given, by their vault ids.
#[derive(Default)]
pub struct Vault {
    passwords: Vec<(String, String)>,
}

/// Passwords are never shown.
impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault").field("ids", &self.passwords.iter().map(|(id, _)| id).collect::<Vec<_>>()).finish()
    }
}

impl Vault {
    /// Adds a password under an id; `default` is the one without.
    pub fn add(&mut self, id: &str, password: &str) {
        secrets::register(password);
        self.passwords.push((id.to_owned(), password.to_owned()));
    }

    /// Reads a YAML file, decrypting it where the whole file is vaulted.
    ///
    /// # Errors
    /// As [`yaml::read`], and when no password decrypts it.
    pub fn read_yaml(&self, path: &Path) -> Result<Parsed, Diagnostic> {
        let nowhere = |message: String| Diagnostic::error(Place::default(), message);
        let bytes = std::fs::read(path).map_err(|error| nowhere(format!("read `{}`: {error}", path.display())))?;
        if !bytes.starts_with(MAGIC.as_bytes()) {
            // A pipe gives it but once.
            return yaml::read_bytes(path, bytes);
        }
        let encrypted = String::from_utf8_lossy(&bytes);
        let plain =
            self.decrypt(&encrypted).map_err(|message| nowhere(format!("decrypt `{}`: {message}", path.display())))?;
        let text = String::from_utf8(plain)
            .map_err(|_| nowhere(format!("decrypt `{}`: what comes out is not UTF-8", path.display())))?;
        // Places in it must never show a line of it.
        let blank: String = text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        let parsed = yaml::parse_as(FileId::register(path, blank), &text)?;
        for document in &parsed.documents {
            register_all(document);
        }
        Ok(parsed)
    }

    /// Returns a node's value with the vaulted texts in it decrypted.
    ///
    /// # Errors
    /// When no password decrypts one of them.
    pub fn value(&self, node: &Node) -> Result<Value, Diagnostic> {
        match &node.kind {
            Kind::Vault(text) => {
                let plain = self.decrypt(text).map_err(|message| Diagnostic::error(node.place, message))?;
                let plain = String::from_utf8(plain)
                    .map_err(|_| Diagnostic::error(node.place, "the decrypted text is not UTF-8"))?;
                secrets::register(&plain);
                Ok(Value::Str(Str::data(plain).at(node.place)))
            }
            Kind::List(items) => {
                items.iter().map(|item| self.value(item)).collect::<Result<Vec<_>, _>>().map(Value::list)
            }
            Kind::Map(entries) => entries
                .iter()
                .map(|(key, value)| Ok((key.value(), self.value(value)?)))
                .collect::<Result<Map, _>>()
                .map(Value::map),
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Str { .. } => Ok(node.value()),
        }
    }

    /// Decrypts a text that starts with `$ANSIBLE_VAULT;`, trying the password of its id first.
    ///
    /// # Errors
    /// A sentence for a person.
    pub fn decrypt(&self, text: &str) -> Result<Vec<u8>, String> {
        let mut lines = text.trim_start().lines();
        let header: Vec<&str> = lines.next().unwrap_or("").trim().split(';').collect();
        let id = match header[..] {
            ["$ANSIBLE_VAULT", "1.1", "AES256"] => "default",
            ["$ANSIBLE_VAULT", "1.2", "AES256", id] => id,
            ["$ANSIBLE_VAULT", version, cipher, ..] => {
                return Err(format!("vault format {version} with {cipher} is not supported: re-encrypt it"));
            }
            _ => return Err("not a vaulted text: it does not start with `$ANSIBLE_VAULT;`".to_owned()),
        };
        if self.passwords.is_empty() {
            return Err(
                "it is vaulted and no vault password was given: use `--vault-password-file` or `--ask-vault-pass`"
                    .to_owned(),
            );
        }
        let body: String = lines.map(str::trim).collect();
        let damaged = || "the vaulted text is damaged".to_owned();
        let inner = unhex(&body).and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(damaged)?;
        let mut parts = inner.lines().map(unhex);
        let mut part = || parts.next().flatten().ok_or_else(damaged);
        let (salt, mac, cipher) = (part()?, part()?, part()?);
        let (first, others): (Vec<_>, Vec<_>) = self.passwords.iter().partition(|(name, _)| name == id);
        for (_, password) in first.into_iter().chain(others) {
            if let Some(plain) = open(password, &salt, &mac, &cipher) {
                return Ok(plain);
            }
        }
        Err(format!("none of the vault passwords given decrypts it (its id is `{id}`)"))
    }
}

/// Decrypts; `None` when the password is another.
fn open(password: &str, salt: &[u8], mac: &[u8], cipher: &[u8]) -> Option<Vec<u8>> {
    let mut keys = [0; 80];
    pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), salt, ROUNDS, &mut keys);
    let (cipher_key, rest) = keys.split_at(32);
    let (mac_key, counter) = rest.split_at(32);
    let mut check = <Hmac<Sha256> as KeyInit>::new_from_slice(mac_key).ok()?;
    check.update(cipher);
    check.verify_slice(mac).ok()?;
    let mut plain = cipher.to_vec();
    ctr::Ctr128BE::<Aes256>::new_from_slices(cipher_key, counter).ok()?.apply_keystream(&mut plain);
    let padding = usize::from(*plain.last()?);
    plain.truncate(plain.len().checked_sub(padding)?);
    Some(plain)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// Every text of a vaulted file is a secret.
fn register_all(node: &Node) {
    match &node.kind {
        Kind::Str { text, .. } => secrets::register(text),
        Kind::List(items) => items.iter().for_each(register_all),
        Kind::Map(entries) => entries.iter().for_each(|(_, value)| register_all(value)),
        Kind::Int(_) | Kind::Float(_) => secrets::register(&node.text()),
        Kind::Null | Kind::Bool(_) | Kind::Vault(_) => {}
    }
}
