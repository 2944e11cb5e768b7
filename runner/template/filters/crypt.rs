//! Hashes of passwords as crypt(3) writes them.

use base64::Engine as _;
use base64::alphabet::BCRYPT;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use md5::Md5;
use sha2::{Digest, Sha256, Sha512};

use super::random::Source;

const SALT_MARKS: &[u8] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// How many letters hold the 16 bytes of a salt of bcrypt.
const BCRYPT_SALT: usize = 22;
/// bcrypt's base 64, of which a salt's last letter may hold bits that are not used.
const BCRYPT_LETTERS: GeneralPurpose = GeneralPurpose::new(
    &BCRYPT,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// How a password is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Bcrypt,
    Md5,
    Sha256,
    Sha512,
}

impl Scheme {
    /// Returns the scheme of a name of Ansible's or passlib's.
    pub fn named(name: &str) -> Result<Scheme, String> {
        match name {
            "sha512" | "sha512_crypt" => Ok(Scheme::Sha512),
            "sha256" | "sha256_crypt" => Ok(Scheme::Sha256),
            "blowfish" | "bcrypt" => Ok(Scheme::Bcrypt),
            "md5" | "md5_crypt" => Ok(Scheme::Md5),
            other => Err(format!(
                "{other} is not in the list of supported passlib algorithms; use sha512, sha256, bcrypt or md5_crypt"
            )),
        }
    }

    fn most_salt(self) -> usize {
        match self {
            Scheme::Bcrypt => BCRYPT_SALT,
            Scheme::Md5 => 8,
            Scheme::Sha256 | Scheme::Sha512 => 16,
        }
    }

    /// Returns a salt of so many letters, of as many as can be when absent.
    pub fn random_salt(self, size: Option<usize>) -> Result<String, String> {
        // That of bcrypt has one size.
        let most = self.most_salt();
        let size = if self == Scheme::Bcrypt { most } else { size.unwrap_or(most).clamp(1, most) };
        let mut source = Source::unseeded()?;
        let letters = &SALT_MARKS[2..];
        Ok((0..size).map(|_| char::from(letters[source.below(letters.len() as u64) as usize])).collect())
    }

    /// Hashes a password; `ident` is the version of bcrypt.
    pub fn hash(self, password: &str, salt: &str, rounds: Option<i64>, ident: Option<&str>) -> Result<String, String> {
        let most = self.most_salt();
        if salt.len() > most || salt.is_empty() || !salt.bytes().all(|byte| SALT_MARKS.contains(&byte)) {
            return Err(format!("a salt is 1 to {most} of the marks A-Z, a-z, 0-9, `.` and `/`"));
        }
        let sha_rounds = |usual: i64| match rounds.unwrap_or(usual) {
            rounds @ 1000..=999_999_999 => Ok(rounds),
            _ => Err("`rounds` is from 1000 to 999999999".to_owned()),
        };
        // 5000 is what a hash that names no rounds means.
        let shown = |rounds: i64| if rounds == 5000 { String::new() } else { format!("rounds={rounds}$") };
        match self {
            Scheme::Bcrypt => bcrypt(password, salt, rounds, ident),
            Scheme::Md5 if rounds.is_some() => Err("md5_crypt has no `rounds`".to_owned()),
            Scheme::Md5 => Ok(format!("$1${salt}${}", md5_crypt(password.as_bytes(), salt.as_bytes()))),
            Scheme::Sha512 => {
                let rounds = sha_rounds(656_000)?;
                let digest = sha_crypt::<Sha512>(password.as_bytes(), salt.as_bytes(), rounds);
                Ok(format!("$6${}{salt}${}", shown(rounds), encoded(&digest, 21, 22)))
            }
            Scheme::Sha256 => {
                let rounds = sha_rounds(535_000)?;
                let digest = sha_crypt::<Sha256>(password.as_bytes(), salt.as_bytes(), rounds);
                Ok(format!("$5${}{salt}${}", shown(rounds), encoded(&digest, 10, 21)))
            }
        }
    }
}

fn bcrypt(password: &str, salt: &str, rounds: Option<i64>, ident: Option<&str>) -> Result<String, String> {
    let version = match ident.unwrap_or("2b") {
        "2a" => bcrypt::Version::TwoA,
        "2b" => bcrypt::Version::TwoB,
        "2y" => bcrypt::Version::TwoY,
        other => return Err(format!("`ident` of bcrypt is 2a, 2b or 2y, not `{other}`")),
    };
    let cost = rounds.unwrap_or(12);
    let cost = u32::try_from(cost).ok().filter(|cost| (4..=31).contains(cost));
    let cost = cost.ok_or_else(|| "`rounds` of bcrypt is from 4 to 31: its logarithm to the base 2".to_owned())?;
    let bytes = BCRYPT_LETTERS.decode(salt).ok().and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    let bytes = bytes.ok_or_else(|| format!("a salt of bcrypt has {BCRYPT_SALT} letters"))?;
    let hash = bcrypt::hash_with_salt(password, cost, bytes).map_err(|error| format!("bcrypt: {error}"))?;
    Ok(hash.format_for_version(version))
}

/// The digest of crypt(3) with MD5, in its letters.
///
/// Source: `crypt(5)`; made by Poul-Henning Kamp for FreeBSD, 1994.
fn md5_crypt(key: &[u8], salt: &[u8]) -> String {
    let inner = Md5::digest([key, salt, key].concat());
    let mut first = Md5::new();
    first.update([key, b"$1$", salt].concat());
    first.update(repeated(&inner, key.len()));
    let mut bits = key.len();
    while bits > 0 {
        // For an odd bit the byte is zero, for an even one the key's first.
        first.update(if bits & 1 == 1 { &[0][..] } else { &key[..1] });
        bits >>= 1;
    }
    let mut digest = first.finalize().to_vec();
    for round in 0..1000 {
        let mut next = Md5::new();
        next.update(if round % 2 == 1 { key } else { &digest });
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(key);
        }
        next.update(if round % 2 == 1 { &digest } else { key });
        digest = next.finalize().to_vec();
    }
    let mut out = String::new();
    for (a, b, c) in [(0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5)] {
        let byte = |at: usize| u32::from(digest[at]);
        letters(byte(a) << 16 | byte(b) << 8 | byte(c), 4, &mut out);
    }
    letters(u32::from(digest[11]), 2, &mut out);
    out
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
    let mut mark = |bits: u32, count: usize| letters(bits, count, &mut out);
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

/// Writes bits in crypt's base 64, the lowest first.
fn letters(mut bits: u32, count: usize, out: &mut String) {
    for _ in 0..count {
        out.push(char::from(SALT_MARKS[(bits & 0x3f) as usize]));
        bits >>= 6;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crypt_gives_the_published_examples() {
        assert_eq!(
            Scheme::Sha512.hash("Hello world!", "saltstring", Some(5000), None).as_deref(),
            Ok("$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1")
        );
        assert_eq!(
            Scheme::Sha256.hash("Hello world!", "saltstring", Some(5000), None).as_deref(),
            Ok("$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5")
        );
    }

    #[test]
    fn the_older_schemes_give_what_passlib_gives() {
        let bcrypt = |rounds, ident| Scheme::Bcrypt.hash("secret", "1234567890123456789012", Some(rounds), Some(ident));
        assert_eq!(bcrypt(10, "2a").as_deref(), Ok("$2a$10$123456789012345678901uqScQ/hK4OzMvwWyiEZRxCRgAX/LEQNu"));
        assert_eq!(bcrypt(5, "2y").as_deref(), Ok("$2y$05$123456789012345678901u.97m5mwuxOR3RvRKYm9sasohx5Mnzwq"));
        assert!(bcrypt(5, "2").is_err() && bcrypt(32, "2b").is_err());
        assert!(Scheme::Bcrypt.hash("secret", "short", Some(4), None).is_err());
        let md5 = |salt, rounds| Scheme::Md5.hash("secret", salt, rounds, None);
        assert_eq!(md5("saltsalt", None).as_deref(), Ok("$1$saltsalt$9xy1btjgzLYfb7hivXtC//"));
        assert_eq!(md5("sa", None).as_deref(), Ok("$1$sa$mLCpajj.FjT815ztHIb.p/"));
        assert!(md5("saltsalt", Some(1000)).is_err() && md5("saltsaltsalt", None).is_err());
    }
}
