//! What a vaulted text is made of: salt, guard and ciphertext, written in hexadecimal digits twice over.
//!
//! Source: the format's description in Ansible's documentation: PBKDF2-HMAC-SHA256 with 10,000 rounds gives a cipher
//! key, a MAC key and a counter; AES-256-CTR encrypts what PKCS #7 has padded, HMAC-SHA256 over the ciphertext guards it.

use std::io::Read;

use aes::Aes256;
use aes::cipher::{KeyIvInit, StreamCipher};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const ROUNDS: u32 = 10_000;
const KEY: usize = 32;
const BLOCK: usize = 16;
const SALT: usize = 32;

/// What is wrong with digits that are no vault's.
const MISSHAPEN: &str = "the vaulted text is damaged: it has no salt, guard and ciphertext";

type Cipher = ctr::Ctr128BE<Aes256>;

/// A vaulted text's parts.
pub(super) struct Sealed {
    salt: Vec<u8>,
    mac: Vec<u8>,
    cipher: Vec<u8>,
}

/// Reads the digits that follow the header.
///
/// # Errors
/// What is damaged, in the words that ansible-vault has for it.
pub(super) fn parse(digits: &str) -> Result<Sealed, String> {
    let inner = String::from_utf8(unhex(digits)?).map_err(|_| MISSHAPEN.to_owned())?;
    let mut parts = inner.lines().map(unhex);
    let mut part = || parts.next().unwrap_or_else(|| Err(MISSHAPEN.to_owned()));
    Ok(Sealed { salt: part()?, mac: part()?, cipher: part()? })
}

/// Decrypts; `None` when the password is another.
pub(super) fn open(password: &str, sealed: &Sealed) -> Option<Vec<u8>> {
    let (mut cipher, mut guard) = keyed(password, &sealed.salt);
    guard.update(&sealed.cipher);
    guard.verify_slice(&sealed.mac).ok()?;
    let mut plain = sealed.cipher.clone();
    cipher.apply_keystream(&mut plain);
    let padding = usize::from(*plain.last()?);
    plain.truncate(plain.len().checked_sub(padding)?);
    Some(plain)
}

/// Encrypts, and returns the digits that follow the header.
pub(super) fn seal(password: &str, salt: &[u8], plain: &[u8]) -> String {
    let (mut cipher, mut guard) = keyed(password, salt);
    let padding = BLOCK - plain.len() % BLOCK;
    let mut bytes = plain.to_vec();
    bytes.resize(plain.len() + padding, u8::try_from(padding).expect("a block is short"));
    cipher.apply_keystream(&mut bytes);
    guard.update(&bytes);
    let mac = guard.finalize().into_bytes();
    hex(format!("{}\n{}\n{}", hex(salt), hex(mac), hex(bytes)))
}

/// Returns a salt that nobody had before.
pub(super) fn random_salt() -> Result<[u8; SALT], String> {
    let mut salt = [0; SALT];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut salt));
    read.map(|()| salt).map_err(|error| format!("read random bytes from `/dev/urandom`: {error}"))
}

fn keyed(password: &str, salt: &[u8]) -> (Cipher, Hmac<Sha256>) {
    let mut keys = [0; 2 * KEY + BLOCK];
    pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), salt, ROUNDS, &mut keys);
    let (cipher_key, rest) = keys.split_at(KEY);
    let (mac_key, counter) = rest.split_at(KEY);
    let cipher = Cipher::new_from_slices(cipher_key, counter).expect("the key and the counter have AES-256's sizes");
    let guard = <Hmac<Sha256> as KeyInit>::new_from_slice(mac_key).expect("a key of any size does");
    (cipher, guard)
}

fn hex(bytes: impl AsRef<[u8]>) -> String {
    const DIGITS: &[u8] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.as_ref().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let text = text.trim();
    let fault = |what: &str| format!("the vaulted text is damaged: Vault format unhexlify error: {what}");
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(fault("Non-hexadecimal digit found"));
    }
    if !text.len().is_multiple_of(2) {
        return Err(fault("Odd-length string"));
    }
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16);
    (0..text.len()).step_by(2).map(byte).collect::<Result<_, _>>().map_err(|error| fault(&error.to_string()))
}
