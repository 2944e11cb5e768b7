//! What tasks may need besides their arguments: files and texts named by their SHA-256, sent only when asked for.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// Content by its lowercase hexadecimal SHA-256. Cheap to clone: bytes are shared, files stay on disk.
#[derive(Debug, Default, Clone)]
pub struct Contents {
    sources: HashMap<String, Origin>,
}

#[derive(Debug, Clone)]
enum Origin {
    Bytes(Arc<[u8]>),
    File(PathBuf),
}

impl Contents {
    /// Adds bytes and returns their SHA-256.
    pub fn add_bytes(&mut self, bytes: impl Into<Arc<[u8]>>) -> String {
        let bytes = bytes.into();
        let sha256 = hexadecimal(&Sha256::digest(&bytes));
        self.sources.insert(sha256.clone(), Origin::Bytes(bytes));
        sha256
    }

    /// Adds a file, which is read once now and again whenever a host asks for it; returns its SHA-256 and size.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn add_file(&mut self, path: &Path) -> io::Result<(String, u64)> {
        let mut digest = Sha256::new();
        let mut file = File::open(path)?;
        let mut buffer = vec![0; 256 << 10];
        let mut size_bytes = 0;
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            digest.update(&buffer[..count]);
            size_bytes += count as u64;
        }
        let sha256 = hexadecimal(&digest.finalize());
        self.sources.insert(sha256.clone(), Origin::File(path.to_owned()));
        Ok((sha256, size_bytes))
    }

    /// Returns whether there is nothing to ask for.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Takes over all that `other` holds.
    pub fn extend(&mut self, other: &Contents) {
        self.sources.extend(other.sources.iter().map(|(sha256, origin)| (sha256.clone(), origin.clone())));
    }

    /// Opens content to read it from its start; `None` when nothing has this SHA-256.
    pub(super) fn open(&self, sha256: &str) -> Option<io::Result<Box<dyn Read + Send>>> {
        let boxed = |file| Box::new(file) as Box<dyn Read + Send>;
        Some(match self.sources.get(sha256)? {
            Origin::Bytes(bytes) => Ok(Box::new(Cursor::new(bytes.clone()))),
            Origin::File(path) => File::open(path)
                .map(boxed)
                .map_err(|error| io::Error::new(error.kind(), format!("read `{}`: {error}", path.display()))),
        })
    }
}

/// Returns bytes as lowercase hexadecimal digits.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
