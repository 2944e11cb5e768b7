//! What a private key's file tells without its passphrase.

use std::path::{Path, PathBuf};
use std::{fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A private key's file.
pub(super) struct Key {
    /// It takes a passphrase to use it.
    pub encrypted: bool,
    /// The public key as the wire has it, where the file or the one beside it tells.
    pub public: Option<Vec<u8>>,
}

impl Key {
    /// Looks into a file.
    ///
    /// # Errors
    /// When it can't be read or holds no private key.
    pub fn read(path: &Path) -> io::Result<Key> {
        let text = fs::read_to_string(path)?;
        if !text.contains("PRIVATE KEY-----") {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it holds no private key"));
        }
        let beside = public_beside(path);
        if !text.contains("BEGIN OPENSSH PRIVATE KEY") {
            let encrypted = text.contains("Proc-Type: 4,ENCRYPTED") || text.contains("BEGIN ENCRYPTED PRIVATE KEY");
            return Ok(Key { encrypted, public: beside });
        }
        let body: String = text.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
        let bytes = STANDARD.decode(body).unwrap_or_default();
        let (encrypted, public) = parse(&bytes).unwrap_or((false, None));
        Ok(Key { encrypted, public: public.or(beside) })
    }
}

/// Reads the head of OpenSSH's own format. Source: its `PROTOCOL.key`.
fn parse(bytes: &[u8]) -> Option<(bool, Option<Vec<u8>>)> {
    let mut rest = bytes.strip_prefix(b"openssh-key-v1\0")?;
    let cipher = field(&mut rest)?;
    let _derivation = field(&mut rest)?;
    let _options = field(&mut rest)?;
    rest = rest.get(4..)?;
    Some((cipher != b"none", field(&mut rest).map(<[u8]>::to_vec)))
}

/// Takes one field: its length in four bytes, then the field.
pub(super) fn field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let size = u32::from_be_bytes(*rest.first_chunk::<4>()?) as usize;
    let (field, after) = rest.get(4..)?.split_at_checked(size)?;
    *rest = after;
    Some(field)
}

/// Returns the type that a public key begins with.
pub(super) fn kind_of(mut public: &[u8]) -> String {
    String::from_utf8_lossy(field(&mut public).unwrap_or_default()).into_owned()
}

fn public_beside(path: &Path) -> Option<Vec<u8>> {
    let text = fs::read_to_string(PathBuf::from(format!("{}.pub", path.display()))).ok()?;
    STANDARD.decode(text.split_ascii_whitespace().nth(1)?).ok()
}
