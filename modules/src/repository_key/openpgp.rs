//! OpenPGP public keys as far as a keyring needs it: out of ASCII armor, by fingerprint, with their expiry. Signatures
//! are not checked here: apt checks the repository's against the key, and the key is pinned by its fingerprint.
//!
//! Source: RFC 4880.

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::algorithm::Algorithm;

const BEGIN: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
const END: &str = "-----END PGP PUBLIC KEY BLOCK-----";

/// One primary key with all that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// In uppercase hexadecimal digits.
    pub fingerprint: String,
    /// Seconds since 1970; `None` when it never expires.
    pub expires_s: Option<i64>,
    pub revoked: bool,
    /// Its packets, as a keyring holds them.
    pub bytes: Vec<u8>,
}

/// Returns a key file's bytes without their armor, where they have one.
///
/// # Errors
/// What is wrong with the armor, or what the file is instead.
pub(crate) fn dearmored(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| text.contains(BEGIN)) else {
        return match bytes.first() {
            Some(first) if first & 0x80 != 0 => Ok(bytes.to_vec()),
            Some(_) => Err(format!("is no OpenPGP key: it begins with `{}`", beginning(bytes))),
            None => Err("is empty".to_owned()),
        };
    };
    let mut all = Vec::new();
    for block in text.split(BEGIN).skip(1) {
        let Some((block, _)) = block.split_once(END) else { return Err("is cut off: its armor has no end".to_owned()) };
        let block = block.replace('\r', "");
        // Headers such as `Version: …` end at the first empty line.
        let (_, body) = block.split_once("\n\n").ok_or("has an armor without an empty line before its data")?;
        let mut data = String::new();
        let mut checksum = None;
        for line in body.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.strip_prefix('=') {
                Some(sum) if sum.len() == 4 => checksum = Some(sum),
                Some(_) | None => data.push_str(line),
            }
        }
        let bytes = STANDARD.decode(&data).map_err(|error| format!("has a damaged armor: {error}"))?;
        if let Some(sum) = checksum {
            let expected = STANDARD.decode(sum).map_err(|error| format!("has a damaged checksum: {error}"))?;
            if expected != crc24(&bytes) {
                return Err("is damaged: its checksum does not match".to_owned());
            }
        }
        all.extend(bytes);
    }
    Ok(all)
}

/// Returns a key's bytes in ASCII armor, as rpm and its kin take them.
pub(crate) fn armored(bytes: &[u8]) -> String {
    let digits = STANDARD.encode(bytes);
    let mut text = format!("{BEGIN}\n\n");
    let mut rest = digits.as_str();
    while !rest.is_empty() {
        let (line, left) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = left;
    }
    text.push_str(&format!("={}\n{END}\n", STANDARD.encode(crc24(bytes))));
    text
}

fn beginning(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
    let line: String = text.trim_start().lines().next().unwrap_or_default().chars().take(40).collect();
    line.escape_debug().to_string()
}

/// Source: RFC 4880, section 6.1.
fn crc24(bytes: &[u8]) -> [u8; 3] {
    let mut crc: u32 = 0x00b7_04ce;
    for byte in bytes {
        crc ^= u32::from(*byte) << 16;
        for _ in 0..8 {
            crc <<= 1;
            if crc & 0x0100_0000 != 0 {
                crc ^= 0x0186_4cfb;
            }
        }
    }
    let [_, a, b, c] = crc.to_be_bytes();
    [a, b, c]
}

/// Returns the keys of a keyring.
///
/// # Errors
/// What is not understood of it.
pub(crate) fn certificates(bytes: &[u8]) -> Result<Vec<Certificate>, String> {
    let mut found: Vec<Certificate> = Vec::new();
    let mut created_s = 0;
    // The newest self-signature says when the key expires.
    let mut signed_s = 0;
    let mut of_subkey = false;
    let mut rest = bytes;
    while !rest.is_empty() {
        let (tag, body, length) = packet(rest)?;
        let whole = &rest[..length];
        rest = &rest[length..];
        match tag {
            PUBLIC_KEY => {
                if body.first() != Some(&4) {
                    let version = body.first().copied().unwrap_or_default();
                    return Err(format!("holds a key of version {version}: only version 4 is handled"));
                }
                created_s = i64::from(u32::from_be_bytes(four(body, 1)?));
                signed_s = -1;
                of_subkey = false;
                found.push(Certificate {
                    fingerprint: fingerprint(body),
                    expires_s: None,
                    revoked: false,
                    bytes: whole.to_vec(),
                });
                continue;
            }
            PUBLIC_SUBKEY => of_subkey = true,
            SIGNATURE => {
                if let (Some(certificate), Some(signature)) = (found.last_mut(), signature(body))
                    && !of_subkey
                {
                    let own = signature.issuer.is_none_or(|issuer| certificate.fingerprint.ends_with(&issuer));
                    certificate.revoked |= own && signature.kind == 0x20;
                    if own && matches!(signature.kind, 0x10..=0x13 | 0x1f) && signature.created_s >= signed_s {
                        signed_s = signature.created_s;
                        certificate.expires_s = signature.valid_s.map(|valid_s| created_s + valid_s);
                    }
                }
            }
            _ => {}
        }
        match found.last_mut() {
            Some(certificate) => certificate.bytes.extend(whole),
            None => return Err("begins with something else than a public key".to_owned()),
        }
    }
    Ok(found)
}

const SIGNATURE: u8 = 2;
const PUBLIC_KEY: u8 = 6;
const PUBLIC_SUBKEY: u8 = 14;

/// Returns the first packet's tag and body, and the length of all of it.
fn packet(bytes: &[u8]) -> Result<(u8, &[u8], usize), String> {
    let short = || "is cut off".to_owned();
    let first = *bytes.first().ok_or_else(short)?;
    if first & 0x80 == 0 {
        return Err("is damaged: a packet begins with a byte that none can begin with".to_owned());
    }
    let (tag, header, length) = if first & 0x40 == 0 {
        let size = 1 << (first & 3);
        if size == 8 {
            return Err("holds a packet of unknown length, which a key has not".to_owned());
        }
        let digits = bytes.get(1..1 + size).ok_or_else(short)?;
        (first >> 2 & 15, 1 + size, digits.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte)))
    } else {
        let (size, length) = new_length(&bytes[1..])?;
        (first & 63, 1 + size, length)
    };
    let body = bytes.get(header..header + length).ok_or_else(short)?;
    Ok((tag, body, header + length))
}

/// Returns how many bytes a length of the new format takes, and the length.
fn new_length(bytes: &[u8]) -> Result<(usize, usize), String> {
    let short = || "is cut off".to_owned();
    let byte = |at: usize| bytes.get(at).map(|&byte| usize::from(byte)).ok_or_else(short);
    Ok(match byte(0)? {
        first @ 0..=191 => (1, first),
        first @ 192..=223 => (2, ((first - 192) << 8) + byte(1)? + 192),
        255 => (5, u32::from_be_bytes(four(bytes, 1)?) as usize),
        _ => return Err("holds a packet in parts, which a key has not".to_owned()),
    })
}

fn four(bytes: &[u8], at: usize) -> Result<[u8; 4], String> {
    let found = bytes.get(at..at + 4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    found.ok_or_else(|| "is cut off".to_owned())
}

/// Source: RFC 4880, section 12.2.
fn fingerprint(body: &[u8]) -> String {
    let [.., high, low] = (body.len() as u32).to_be_bytes();
    let hashed: Vec<u8> = [0x99, high, low].into_iter().chain(body.iter().copied()).collect();
    Algorithm::Sha1.of(&hashed).to_ascii_uppercase()
}

struct Signature {
    kind: u8,
    created_s: i64,
    /// How long the key is valid after it was made.
    valid_s: Option<i64>,
    /// The key's ID in uppercase hexadecimal digits.
    issuer: Option<String>,
}

/// Reads a signature of version 4; others say nothing of expiry.
fn signature(body: &[u8]) -> Option<Signature> {
    if body.first() != Some(&4) {
        return None;
    }
    let mut signature = Signature { kind: *body.get(1)?, created_s: 0, valid_s: None, issuer: None };
    let hashed = usize::from(u16::from_be_bytes([*body.get(4)?, *body.get(5)?]));
    let plain_at = 6 + hashed;
    let plain = usize::from(u16::from_be_bytes([*body.get(plain_at)?, *body.get(plain_at + 1)?]));
    let areas = [body.get(6..plain_at)?, body.get(plain_at + 2..plain_at + 2 + plain)?];
    for (area, trusted) in areas.into_iter().zip([true, false]) {
        let mut rest = area;
        while !rest.is_empty() {
            let (size, length) = subpacket_length(rest)?;
            let content = rest.get(size..size + length)?;
            rest = &rest[size + length..];
            let (&kind, value) = content.split_first()?;
            let seconds = || four(value, 0).ok().map(|bytes| i64::from(u32::from_be_bytes(bytes)));
            match kind & 0x7f {
                2 if trusted => signature.created_s = seconds()?,
                9 if trusted => signature.valid_s = seconds().filter(|&seconds| seconds != 0),
                16 => signature.issuer = Some(crate::algorithm::hexadecimal(value).to_ascii_uppercase()),
                _ => {}
            }
        }
    }
    Some(signature)
}

/// Subpackets have no partial lengths: their two-byte form goes up to 254.
fn subpacket_length(bytes: &[u8]) -> Option<(usize, usize)> {
    Some(match usize::from(*bytes.first()?) {
        first @ 0..=191 => (1, first),
        255 => (5, u32::from_be_bytes(four(bytes, 1).ok()?) as usize),
        first => (2, ((first - 192) << 8) + usize::from(*bytes.get(1)?) + 192),
    })
}
