//! Ansible Vault, format 1.1 and 1.2: texts and files encrypted with a password.
//!
//! Source: the format's description in Ansible's documentation: PBKDF2-HMAC-SHA256 with 10,000 rounds gives a cipher
//! key, a MAC key and a counter; AES-256-CTR encrypts, HMAC-SHA256 over the ciphertext guards it.

mod seal;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::report::secrets;
use crate::source::{Diagnostic, FileId, Place};
use crate::value::{Map, Str, Value};
use crate::yaml::{self, Kind, Node, Parsed};

const MAGIC: &str = "$ANSIBLE_VAULT;";
/// The id of what was encrypted under none.
pub const DEFAULT_ID: &str = "default";
/// How many digits stand on a line of a vaulted text.
const LINE: usize = 80;

static CURRENT: OnceLock<Arc<Vault>> = OnceLock::new();

/// Makes these the passwords of the run, for lookups that read vaulted files.
pub(crate) fn establish(vault: &Arc<Vault>) {
    CURRENT.set(vault.clone()).ok();
}

/// Returns the passwords of the run; none before it begins.
pub(crate) fn current() -> Arc<Vault> {
    CURRENT.get().cloned().unwrap_or_default()
}

/// Returns whether these bytes are a vaulted text.
pub fn is_vaulted(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC.as_bytes())
}

/// The passwords that were given, by their vault ids.
#[derive(Default)]
pub struct Vault {
    passwords: Vec<(String, String)>,
    strict: bool,
}

/// What a vaulted text held.
pub struct Opened {
    pub plain: Vec<u8>,
    /// The id that the text names.
    pub id: String,
    /// The password that opened it.
    pub password: String,
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

    /// From now on a text is opened only by passwords of its own id, as `vault_id_match` asks.
    pub fn only_by_id(&mut self) {
        self.strict = true;
    }

    /// Returns the ids and their passwords, in the order in which they were given.
    pub fn passwords(&self) -> impl Iterator<Item = (&str, &str)> {
        self.passwords.iter().map(|(id, password)| (&**id, &**password))
    }

    /// Reads a YAML file, decrypting it where the whole file is vaulted.
    ///
    /// # Errors
    /// As [`yaml::read`], and when no password decrypts it.
    pub fn read_yaml(&self, path: &Path) -> Result<Parsed, Diagnostic> {
        let nowhere = |message: String| Diagnostic::error(Place::default(), message);
        let bytes = std::fs::read(path).map_err(|error| nowhere(format!("read `{}`: {error}", path.display())))?;
        if !is_vaulted(&bytes) {
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

    /// Returns a node's value with the vaulted texts in it decrypted. One that no password opens fails once it is used.
    ///
    /// # Errors
    /// When one of them is damaged.
    pub fn value(&self, node: &Node) -> Result<Value, Diagnostic> {
        match &node.kind {
            Kind::Vault(text) => {
                let opened = self.try_open(text).map_err(|message| Diagnostic::error(node.place, message))?;
                if let (None, Some(late)) = (&opened, late(text)) {
                    return Ok(Value::Str(Str::template(late, node.place)));
                }
                let plain = match opened {
                    Some(opened) => opened.plain,
                    None => self.decrypt(text).map_err(|message| Diagnostic::error(node.place, message))?,
                };
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
        self.open(text).map(|opened| opened.plain)
    }

    /// As [`Vault::decrypt`], and says what opened it.
    ///
    /// # Errors
    /// A sentence for a person.
    pub fn open(&self, text: &str) -> Result<Opened, String> {
        self.try_open(text)?.ok_or_else(|| {
            if self.passwords.is_empty() {
                return "Attempting to decrypt but no vault secrets found: use `--vault-password-file` or `--ask-vault-pass`"
                    .to_owned();
            }
            let id = header(text).map_or(DEFAULT_ID, |(id, _)| id);
            format!("no vault secrets were found that could decrypt it: none of the passwords given is right (its id is `{id}`)")
        })
    }

    /// Opens a text; `None` where no password of those that were given does.
    fn try_open(&self, text: &str) -> Result<Option<Opened>, String> {
        let (id, body) = header(text)?;
        let sealed = seal::parse(&body.lines().map(str::trim).collect::<String>())?;
        let (first, others): (Vec<_>, Vec<_>) = self.passwords.iter().partition(|(name, _)| name == id);
        let others = others.into_iter().filter(|_| !self.strict);
        let opened = first.into_iter().chain(others).find_map(|(_, password)| {
            let plain = seal::open(password, &sealed)?;
            Some(Opened { plain, id: id.to_owned(), password: password.clone() })
        });
        Ok(opened)
    }
}

/// Returns the id that a vaulted text names, and what follows its header.
fn header(text: &str) -> Result<(&str, &str), String> {
    let text = text.trim_start();
    let (first, body) = text.split_once('\n').unwrap_or((text, ""));
    let header: Vec<&str> = first.trim().split(';').collect();
    match header[..] {
        ["$ANSIBLE_VAULT", "1.1", "AES256"] => Ok((DEFAULT_ID, body)),
        ["$ANSIBLE_VAULT", "1.2", "AES256", id] => Ok((id, body)),
        ["$ANSIBLE_VAULT", version, cipher, ..] => {
            Err(format!("vault format {version} with {cipher} is not supported: re-encrypt it"))
        }
        _ => Err("not a vaulted text: it does not start with `$ANSIBLE_VAULT;`".to_owned()),
    }
}

/// The filter that opens a vaulted value once it is used.
pub(crate) const LATE: &str = "kubeon._vaulted";

/// Returns a template that opens a vaulted text once it is used, which fails then where nothing opens it. Whoever has
/// the passwords of some ids only can use all that the others did not close.
fn late(text: &str) -> Option<String> {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // What has a meaning in a template is in no header that Ansible writes.
    let plain = words.chars().all(|c| c.is_alphanumeric() || " $_;.-:@".contains(c));
    plain.then(|| format!("{{{{ '{words}' | {LATE} }}}}"))
}

/// Returns the vaulted text of such a template; `None` of any other text.
pub(crate) fn late_text(template: &str) -> Option<String> {
    let words = template.strip_prefix("{{ '")?.strip_suffix(&format!("' | {LATE} }}}}"))?;
    Some(unlate(words) + "\n")
}

/// Returns what stands in such a template, as it was before.
pub(crate) fn unlate(words: &str) -> String {
    words.replace(' ', "\n")
}

/// Returns whether a message says that no password opens something.
pub(crate) fn says_closed(message: &str) -> bool {
    message.contains("no vault secrets")
}

/// Encrypts: format 1.2 with an id, 1.1 without. Ends in a line break.
///
/// # Errors
/// A sentence for a person, when there is no salt given and the system gives no random bytes.
pub fn encrypt(plain: &[u8], id: &str, password: &str, salt: Option<&[u8]>) -> Result<String, String> {
    secrets::register(password);
    let random;
    let salt = match salt {
        Some(salt) => salt,
        None => {
            random = seal::random_salt()?;
            &random
        }
    };
    let digits = seal::seal(password, salt, plain);
    let header = match id {
        DEFAULT_ID => format!("{MAGIC}1.1;AES256\n"),
        id => format!("{MAGIC}1.2;AES256;{id}\n"),
    };
    let lines = (0..digits.len()).step_by(LINE).map(|at| &digits[at..digits.len().min(at + LINE)]);
    Ok(lines.fold(header, |text, line| text + line + "\n"))
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
