//! Checksums under the names that users give them.

use std::io::{self, Read};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::Digest;

/// How much of a file is in memory at a time.
const PIECE_BYTES: usize = 128 << 10;

/// A checksum algorithm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Algorithm {
    Md5,
    #[default]
    #[serde(alias = "sha")]
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Algorithm {
    /// Returns the algorithm of this name in lowercase.
    pub fn named(name: &str) -> Option<Algorithm> {
        match name {
            "md5" => Some(Algorithm::Md5),
            "sha1" => Some(Algorithm::Sha1),
            "sha224" => Some(Algorithm::Sha224),
            "sha256" => Some(Algorithm::Sha256),
            "sha384" => Some(Algorithm::Sha384),
            "sha512" => Some(Algorithm::Sha512),
            _ => None,
        }
    }

    /// Returns the checksum in lowercase hexadecimal digits.
    pub fn of(self, bytes: &[u8]) -> String {
        self.of_reader(&mut &*bytes).expect("reading from memory can't fail")
    }

    pub(crate) fn of_reader(self, reader: &mut dyn Read) -> io::Result<String> {
        match self {
            Algorithm::Md5 => digest::<md5::Md5>(reader),
            Algorithm::Sha1 => digest::<sha1::Sha1>(reader),
            Algorithm::Sha224 => digest::<sha2::Sha224>(reader),
            Algorithm::Sha256 => digest::<sha2::Sha256>(reader),
            Algorithm::Sha384 => digest::<sha2::Sha384>(reader),
            Algorithm::Sha512 => digest::<sha2::Sha512>(reader),
        }
    }
}

fn digest<D: Digest>(reader: &mut dyn Read) -> io::Result<String> {
    let mut digest = D::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match reader.read(&mut piece) {
            Ok(0) => return Ok(hexadecimal(&digest.finalize())),
            Ok(count) => digest.update(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns bytes as lowercase hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: RFC 1321 and FIPS 180-4, the examples for `abc`.
    #[test]
    fn known_answers() {
        assert_eq!(Algorithm::Md5.of(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(Algorithm::Sha1.of(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert!(Algorithm::Sha256.of(b"abc").starts_with("ba7816bf8f01cfea"));
        assert!(Algorithm::Sha512.of(b"abc").starts_with("ddaf35a193617aba"));
    }
}
