//! Hashes, passwords, and choosing at random.

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::crypt::Scheme;
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
        if !call.input.is_list() && !call.input.is_text() {
            // As in Ansible: what has no order stays as it is.
            return Ok(call.input.clone());
        }
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
            let error = call.fault(format!("unsupported hash type `{sort}`"));
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
    let mut input =
        bytes.ok_or_else(|| call.fault(format!("Invalid value '{namespace}' for 'namespace': it is no UUID")))?;
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
            return Err(call.fault("start and step can only be used with integer values"));
        }
        let items = call.items()?;
        if items.is_empty() {
            return Err(call.fault("takes a list that is not empty"));
        }
        return Ok(items[source.below(items.len() as u64) as usize].clone());
    }
    let end = match call.value()? {
        Value::Int(end) => end,
        other => {
            return Err(call.fault(format!("random can only be used on sequences and integers, not {}", other.kind())));
        }
    };
    let (start, step) = (call.int_at(0)?.unwrap_or(0), call.int_at(1)?.unwrap_or(1));
    if step < 1 || end <= start {
        return Err(call.fault(format!("there is no number from {start} below {end} in steps of {step}")));
    }
    let count = (i128::from(end) - i128::from(start) + i128::from(step) - 1) / i128::from(step);
    Ok((start + step * source.below(count as u64) as i64).into())
}

fn password_hash(call: &mut Call<'_>) -> Result<Live> {
    let password = match call.value()? {
        Value::Str(password) => password.as_str().to_owned(),
        other => return Err(call.fault(format!("takes a string, not {}", other.kind()))),
    };
    let scheme = Scheme::named(&call.text_or(0, "sha512")?).map_err(|message| call.fault(message))?;
    let size = call.int_at(2).map_err(|_| call.fault("salt_size must be an integer"))?;
    let size = size.map(|size| usize::try_from(size).unwrap_or_default());
    let salt = match call.text_at(1)? {
        Some(salt) => salt,
        None => scheme.random_salt(size).map_err(|message| call.fault(message))?,
    };
    let (rounds, ident) = (call.int_at(3)?, call.text_at(4)?);
    let hash = scheme.hash(&password, &salt, rounds, ident.as_deref());
    hash.map(Live::from).map_err(|message| call.fault(format!("Could not hash the secret: {message}")))
}
