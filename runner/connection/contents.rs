//! What tasks may need besides their arguments: files and texts named by their SHA-256, sent only when asked for.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use kubeon_modules::chunks::{Chunk, chunks_of};
use sha2::{Digest, Sha256};

/// Content by its lowercase hexadecimal SHA-256. Cheap to clone: bytes are shared, files stay on disk.
#[derive(Debug, Default, Clone)]
pub struct Contents {
    sources: HashMap<String, Source>,
}

#[derive(Debug, Clone)]
struct Source {
    origin: Origin,
    /// Cut once, for the first host that has another version.
    chunks: Arc<Mutex<Option<Arc<[Chunk]>>>>,
}

#[derive(Debug, Clone)]
enum Origin {
    Bytes(Arc<[u8]>),
    File(PathBuf),
}

/// What content is read from.
pub(super) trait Opened: Read + Seek + Send {}
impl<T: Read + Seek + Send> Opened for T {}

impl Origin {
    /// Opens it to read it from its start.
    fn open(&self) -> io::Result<Box<dyn Opened>> {
        match self {
            Origin::Bytes(bytes) => Ok(Box::new(Cursor::new(bytes.clone()))),
            Origin::File(path) => match File::open(path) {
                Ok(file) => Ok(Box::new(file)),
                Err(error) => Err(io::Error::new(error.kind(), format!("read `{}`: {error}", path.display()))),
            },
        }
    }
}

impl Contents {
    /// Adds bytes and returns their SHA-256.
    pub fn add_bytes(&mut self, bytes: impl Into<Arc<[u8]>>) -> String {
        let bytes = bytes.into();
        let sha256 = hexadecimal(&Sha256::digest(&bytes));
        self.add(&sha256, Origin::Bytes(bytes));
        sha256
    }

    fn add(&mut self, sha256: &str, origin: Origin) {
        self.sources.insert(sha256.to_owned(), Source { origin, chunks: Arc::default() });
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
        self.add(&sha256, Origin::File(path.to_owned()));
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
    pub(super) fn open(&self, sha256: &str) -> Option<io::Result<Box<dyn Opened>>> {
        self.sources.get(sha256).map(|source| source.origin.open())
    }

    /// Returns the chunks of content; `None` when nothing has this SHA-256.
    pub(super) fn chunks(&self, sha256: &str) -> Option<io::Result<Arc<[Chunk]>>> {
        let source = self.sources.get(sha256)?;
        let mut chunks = source.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chunks) = &*chunks {
            return Some(Ok(chunks.clone()));
        }
        let cut = source.origin.open().and_then(|mut opened| chunks_of(&mut opened));
        Some(cut.map(|cut| chunks.insert(cut.into()).clone()))
    }
}

/// Returns bytes as lowercase hexadecimal digits.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
