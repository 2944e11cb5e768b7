//! The other end: does what a frame says and answers, with nothing read, checked or planned beyond that.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::process::Command;

/// Answers frames (four bytes of length, big endian, then a step) in the same form until its input ends.
pub fn serve() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout());
    loop {
        let mut head = [0; 4];
        match input.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        let mut step = vec![0; u32::from_be_bytes(head) as usize];
        input.read_exact(&mut step)?;
        let answer = perform(&step)?;
        let mut frame = (answer.len() as u32).to_be_bytes().to_vec();
        frame.extend(answer);
        output.write_all(&frame)?;
        output.flush()?;
    }
}

/// Steps: `c ARGV`, `f PATH`, `p PATH` and, after a zero byte, what is to be in that file.
fn perform(step: &[u8]) -> io::Result<Vec<u8>> {
    let (kind, rest) = step.split_at(step.len().min(2));
    let content = rest.iter().position(|byte| *byte == 0);
    let text = String::from_utf8_lossy(&rest[..content.unwrap_or(rest.len())]).into_owned();
    match kind {
        b"c " => {
            let mut words = text.split(' ');
            let done = Command::new(words.next().unwrap_or_default()).args(words).output()?;
            Ok(format!("{} {}", done.status, String::from_utf8_lossy(&done.stdout)).into_bytes())
        }
        b"f " => {
            let found = fs::symlink_metadata(&text)?;
            Ok(format!("{:o} {} {}", found.mode(), found.uid(), found.gid()).into_bytes())
        }
        b"p " => {
            let content = &rest[content.map_or(rest.len(), |at| at + 1)..];
            if same(&text, content) {
                return Ok(b"same".to_vec());
            }
            let new = format!("{text}.new");
            fs::write(&new, content)?;
            fs::rename(new, text)?;
            Ok(b"changed".to_vec())
        }
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "an unknown step")),
    }
}

/// Whether a file has this content, read piece by piece.
fn same(path: &str, mut content: &[u8]) -> bool {
    let Ok(mut file) = File::open(path) else { return false };
    if file.metadata().map_or(0, |about| about.len()) != content.len() as u64 {
        return false;
    }
    let mut piece = vec![0; content.len().min(1 << 16)];
    while !content.is_empty() {
        let size = content.len().min(piece.len());
        let (wanted, rest) = content.split_at(size);
        if file.read_exact(&mut piece[..size]).is_err() || piece[..size] != *wanted {
            return false;
        }
        content = rest;
    }
    true
}
