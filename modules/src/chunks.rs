//! What two versions of a file have in common: both are cut where their content says, so that an insertion moves the cuts
//! along, and each chunk is told by a sum. Source: FastCDC, Xia et al. 2020.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use base64::{Engine, engine::general_purpose::STANDARD};
use fastcdc::v2020::StreamCDC;
use sha2::{Digest, Sha256};

/// The least, the usual and the largest size of a chunk.
const SIZES_BYTES: [usize; 3] = [16 << 10, 64 << 10, crate::wire::PIECE_BYTES];
/// How much of a SHA-256 tells a chunk: the whole content is checked against its own in the end.
const SUM_BYTES: usize = 16;

pub type Sum = [u8; SUM_BYTES];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    pub offset_bytes: u64,
    pub size_bytes: u32,
    pub sum: Sum,
}

/// Cuts what `source` holds.
///
/// # Errors
/// When it can't be read.
pub fn chunks_of(source: &mut dyn Read) -> io::Result<Vec<Chunk>> {
    let [least, usual, most] = SIZES_BYTES;
    let mut chunks = Vec::new();
    for cut in StreamCDC::new(source, least, usual, most) {
        let cut = cut.map_err(io::Error::from)?;
        let mut sum = [0; SUM_BYTES];
        sum.copy_from_slice(&Sha256::digest(&cut.data)[..SUM_BYTES]);
        chunks.push(Chunk { offset_bytes: cut.offset, size_bytes: cut.length as u32, sum });
    }
    Ok(chunks)
}

/// Writes the chunks of a whole file in base64: each one's sum and its size in four bytes, big endian.
pub fn packed(chunks: &[Chunk]) -> String {
    let mut bytes = Vec::with_capacity(chunks.len() * (SUM_BYTES + 4));
    for chunk in chunks {
        bytes.extend_from_slice(&chunk.sum);
        bytes.extend_from_slice(&chunk.size_bytes.to_be_bytes());
    }
    STANDARD.encode(bytes)
}

/// Reads what [`packed`] wrote; `None` when it is nothing of the kind.
pub fn unpacked(text: &str) -> Option<Vec<Chunk>> {
    let mut offset_bytes = 0;
    let bytes = STANDARD.decode(text).ok()?;
    let (entries, []) = bytes.as_chunks::<{ SUM_BYTES + 4 }>() else { return None };
    let chunk = |entry: &[u8; SUM_BYTES + 4]| {
        let (sum, size) = entry.split_first_chunk::<SUM_BYTES>()?;
        let size_bytes = u32::from_be_bytes(size.try_into().ok()?);
        let chunk = Chunk { offset_bytes, size_bytes, sum: *sum };
        offset_bytes += u64::from(size_bytes);
        Some(chunk)
    };
    entries.iter().map(chunk).collect()
}

/// Files that hold parts of a content, as one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Known<'a> {
    files: Vec<(&'a File, Range<u64>)>,
    pub(crate) chunks: Vec<Chunk>,
}

impl Known<'_> {
    /// Reads them; one that can't be read is none.
    pub(crate) fn of(files: &[File]) -> Known<'_> {
        let mut known = Known::default();
        for mut file in files {
            let Ok(chunks) = chunks_of(&mut file) else { continue };
            let begin = known.files.last().map_or(0, |(_, part)| part.end);
            let placed = chunks.into_iter().map(|chunk| Chunk { offset_bytes: begin + chunk.offset_bytes, ..chunk });
            known.chunks.extend(placed);
            let end = known.chunks.last().map_or(begin, |chunk| chunk.offset_bytes + u64::from(chunk.size_bytes));
            known.files.push((file, begin..end));
        }
        known
    }

    /// Writes a part of them to `sink`.
    ///
    /// # Errors
    /// When they no longer hold it.
    pub(crate) fn write(&self, part: Range<u64>, sink: &mut dyn Write) -> io::Result<()> {
        let mut next = part.start;
        while next < part.end {
            let held = self.files.iter().find(|(_, held)| held.contains(&next));
            let (file, held) = held.ok_or(io::ErrorKind::InvalidData)?;
            let mut file: &File = file;
            file.seek(SeekFrom::Start(next - held.start))?;
            let wanted = held.end.min(part.end) - next;
            if io::copy(&mut file.take(wanted), sink)? != wanted {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            next += wanted;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    #[test]
    fn versions_have_most_chunks_in_common_and_lists_of_them_come_back_as_written() {
        let old = noise(4 << 20);
        let mut new = old.clone();
        new.splice(1_000_000..1_000_000, *b"inserted");
        new.truncate(3 << 20);
        let (old, new) = (chunks_of(&mut &*old).expect("read"), chunks_of(&mut &*new).expect("read"));
        assert!(old.len() > 30, "{}", old.len());
        let known = new.iter().filter(|chunk| old.iter().any(|other| other.sum == chunk.sum)).count();
        assert!(known + 3 >= new.len() && known < new.len(), "{known} of {}", new.len());
        assert_eq!(unpacked(&packed(&old)), Some(old));
        assert_eq!(unpacked("AAAA"), None);
    }

    #[test]
    fn files_that_hold_parts_are_read_as_one() {
        let bytes = noise(300_000);
        let [one, two] = [&bytes[..100_000], &bytes[100_000..]].map(|part| {
            let path = std::env::temp_dir().join(format!("kubeon-known-{}-{}", std::process::id(), part.len()));
            std::fs::write(&path, part).expect("write");
            let file = File::open(&path).expect("open");
            std::fs::remove_file(&path).expect("remove");
            file
        });
        let files = [one, two];
        let known = Known::of(&files);
        assert!(known.chunks.is_sorted_by_key(|chunk| chunk.offset_bytes), "{:?}", known.chunks);
        let mut read = Vec::new();
        known.write(50_000..250_000, &mut read).expect("it is there");
        assert!(read == bytes[50_000..250_000]);
        assert!(known.write(250_000..300_001, &mut Vec::new()).is_err());
    }
}
