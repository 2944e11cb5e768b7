//! Hashes, passwords, and choosing at random.

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::random::Source;
use crate::template::call::{Call, Filter, callable};
use crate::template::live::{Live, Result};
use crate::value::Value;

pub(super) const FILTERS: &[Filter] = &[
    callable("hash", &["hashtype"], |call| {
        let sort = call.text_or(0, "sha1")?;
        hashed(call, &sort)
    }),
    callable("checksum", &[], |call| hashed(call, "sha1")),
    callable("sha1", &[], |call| hashed(call, "sha1")),
    callable("md5", &[], |call| hashed(call, "md5")),
    callable("to_uuid", &["namespace"], to_uuid),
    callable("password_hash", &["hashtype", "salt", "salt_size", "rounds", "ident"], password_hash),
    callable("random", &["start", "step", "seed"], random),
    callable("shuffle", &["seed"], |call| {
        let mut items = call.items()?;
        source(call, 0)?.shuffle(&mut items);
        Ok(items.into())
    }),
];

fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hashed(call: &Call<'_>, sort: &str) -> Result<Live> {
    let text = call.text()?;
    let text = text.as_bytes();
    Ok(match sort.to_ascii_lowercase().replace('-', "").as_str() {
        "md5" => hex(Md5::digest(text)),
        "sha1" => hex(Sha1::digest(text)),
        "sha224" => hex(Sha224::digest(text)),
        "sha256" => hex(Sha256::digest(text)),
        "sha384" => hex(Sha384::digest(text)),
        "sha512" => hex(Sha512::digest(text)),
        _ => {
            let error = call.fault(format!("no hash `{sort}`"));
            return Err(error.help("one of md5, sha1, sha224, sha256, sha384, sha512"));
        }
    }
    .into())
}

/// The namespace under which Ansible makes UUIDs.
const NAMESPACE: &str = "361E6D51-FAEC-444A-9079-341386DA8E2E";

fn to_uuid(call: &mut Call<'_>) -> Result<Live> {
    let namespace = call.text_or(0, NAMESPACE)?;
    let digits: String = namespace.chars().filter(|c| *c != '-').collect();
    let bytes: Option<Vec<u8>> = (0..digits.len())
        .step_by(2)
        .map(|at| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect();
    let bytes = bytes.filter(|bytes| bytes.len() == 16);
    let mut input = bytes.ok_or_else(|| call.fault(format!("`{namespace}` is no UUID")))?;
    input.extend(call.text()?.as_bytes());
    let mut uuid = Sha1::digest(&input)[..16].to_vec();
    uuid[6] = uuid[6] & 0x0f | 0x50;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    let text = hex(uuid);
    Ok(format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]).into())
}

fn source(call: &Call<'_>, nth: usize) -> Result<Source> {
    match call.value_at(nth)? {
        None | Some(Value::Null) => Source::unseeded().map_err(|message| call.fault(message)),
        Some(Value::Int(seed)) => Ok(Source::seeded_by_number(seed.unsigned_abs())),
        Some(Value::Bool(seed)) => Ok(Source::seeded_by_number(u64::from(seed))),
        Some(Value::Str(seed)) => Ok(Source::seeded_by_text(seed.as_str())),
        Some(other) => Err(call.fault(format!("`seed` is a text or an integer, not {}", other.kind()))),
    }
}

fn random(call: &mut Call<'_>) -> Result<Live> {
    let mut source = source(call, 2)?;
    if call.input.is_list() || call.input.is_text() || call.input.is_map() {
        if call.given(0).is_some() || call.given(1).is_some() {
            return Err(call.fault("`start` and `step` go with a number only"));
        }
        let items = call.items()?;
        if items.is_empty() {
            return Err(call.fault("takes a list that is not empty"));
        }
        return Ok(items[source.below(items.len() as u64) as usize].clone());
    }
    let end = match call.value()? {
        Value::Int(end) => end,
        other => return Err(call.fault(format!("takes an integer or a list, not {}", other.kind()))),
    };
    let (start, step) = (call.int_at(0)?.unwrap_or(0), call.int_at(1)?.unwrap_or(1));
    if step < 1 || end <= start {
        return Err(call.fault(format!("there is no number from {start} below {end} in steps of {step}")));
    }
    let count = (i128::from(end) - i128::from(start) + i128::from(step) - 1) / i128::from(step);
    Ok((start + step * source.below(count as u64) as i64).into())
}

const SALT_MARKS: &[u8] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const SALT_LIMIT: usize = 16;

/// Which of the two schemes of crypt(3) that are made of SHA-2.
#[derive(Clone, Copy)]
pub(crate) enum Scheme {
    Sha256,
    Sha512,
}

fn password_hash(call: &mut Call<'_>) -> Result<Live> {
    let password = match call.value()? {
        Value::Str(password) => password.as_str().to_owned(),
        other => return Err(call.fault(format!("takes a string, not {}", other.kind()))),
    };
    let sort = call.text_or(0, "sha512")?;
    let size = call.int_at(2)?.unwrap_or(16).clamp(1, SALT_LIMIT as i64) as usize;
    let salt = call.text_at(1)?.map_or_else(|| random_salt(size), Ok).map_err(|message| call.fault(message))?;
    let rounds = call.int_at(3)?;
    crypted(&password, &sort, &salt, rounds).map(Live::from).map_err(|message| call.fault(message))
}

/// Returns a salt of so many marks.
pub(crate) fn random_salt(size: usize) -> std::result::Result<String, String> {
    let mut source = Source::unseeded()?;
    let letters = &SALT_MARKS[2..];
    Ok((0..size).map(|_| char::from(letters[source.below(letters.len() as u64) as usize])).collect())
}

/// Returns the scheme of this name, how its hashes begin, and how many rounds it takes.
pub(crate) fn scheme_of(sort: &str) -> std::result::Result<(Scheme, &'static str, i64), String> {
    match sort {
        "sha512" | "sha512_crypt" => Ok((Scheme::Sha512, "$6$", 656_000)),
        "sha256" | "sha256_crypt" => Ok((Scheme::Sha256, "$5$", 535_000)),
        other => Err(format!("hash type `{other}` is not supported; use sha512 or sha256")),
    }
}

/// Hashes a password as crypt(3) does.
pub(crate) fn crypted(
    password: &str,
    sort: &str,
    salt: &str,
    rounds: Option<i64>,
) -> std::result::Result<String, String> {
    let (scheme, prefix, usual) = scheme_of(sort)?;
    if salt.len() > SALT_LIMIT || salt.is_empty() || !salt.bytes().all(|byte| SALT_MARKS.contains(&byte)) {
        return Err(format!("a salt is 1 to {SALT_LIMIT} of the marks A-Z, a-z, 0-9, `.` and `/`"));
    }
    let rounds = rounds.unwrap_or(usual);
    if !(1000..=999_999_999).contains(&rounds) {
        return Err("`rounds` is from 1000 to 999999999".to_owned());
    }
    // 5000 is what a hash that names no rounds means.
    let shown = if rounds == 5000 { String::new() } else { format!("rounds={rounds}$") };
    let digest = match scheme {
        Scheme::Sha512 => encoded(&sha_crypt::<Sha512>(password.as_bytes(), salt.as_bytes(), rounds), 21, 22),
        Scheme::Sha256 => encoded(&sha_crypt::<Sha256>(password.as_bytes(), salt.as_bytes(), rounds), 10, 21),
    };
    Ok(format!("{prefix}{shown}{salt}${digest}"))
}

fn repeated(bytes: &[u8], length: usize) -> Vec<u8> {
    bytes.iter().copied().cycle().take(length).collect()
}

/// The digest of crypt(3) with SHA-2, by its published specification (Drepper, 2007).
fn sha_crypt<D: Digest>(key: &[u8], salt: &[u8], rounds: i64) -> Vec<u8> {
    let inner = D::digest([key, salt, key].concat()).to_vec();
    let mut first = D::new();
    first.update(key);
    first.update(salt);
    first.update(repeated(&inner, key.len()));
    let mut bits = key.len();
    while bits > 0 {
        first.update(if bits & 1 == 1 { &inner[..] } else { key });
        bits >>= 1;
    }
    let mut digest = first.finalize().to_vec();
    let p = repeated(&D::digest(key.repeat(key.len())), key.len());
    let s = repeated(&D::digest(salt.repeat(16 + usize::from(digest[0]))), salt.len());
    for round in 0..rounds {
        let mut next = D::new();
        next.update(if round % 2 == 1 { &p } else { &digest });
        if round % 3 != 0 {
            next.update(&s);
        }
        if round % 7 != 0 {
            next.update(&p);
        }
        next.update(if round % 2 == 1 { &digest } else { &p });
        digest = next.finalize().to_vec();
    }
    digest
}

/// Writes a digest in crypt's base 64: bytes are taken in threes from three columns, turning by `turn` each time.
fn encoded(digest: &[u8], columns: usize, turn: usize) -> String {
    let mut out = String::new();
    let mut mark = |bits: u32, count: usize| {
        let mut bits = bits;
        for _ in 0..count {
            out.push(char::from(SALT_MARKS[(bits & 0x3f) as usize]));
            bits >>= 6;
        }
    };
    let (mut a, mut b, mut c) = (0, columns, 2 * columns);
    let modulus = 3 * columns;
    for _ in 0..columns {
        let byte = |at: usize| u32::from(digest[at]);
        mark(byte(a) << 16 | byte(b) << 8 | byte(c), 4);
        (a, b, c) = ((a + turn) % modulus, (b + turn) % modulus, (c + turn) % modulus);
    }
    match digest.len() - modulus {
        1 => mark(u32::from(digest[modulus]), 2),
        _ => mark(u32::from(digest[modulus + 1]) << 8 | u32::from(digest[modulus]), 3),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crypt_gives_the_published_examples() {
        assert_eq!(
            crypted("Hello world!", "sha512", "saltstring", Some(5000)).as_deref(),
            Ok("$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1")
        );
        assert_eq!(
            crypted("Hello world!", "sha256", "saltstring", Some(5000)).as_deref(),
            Ok("$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5")
        );
    }
}
