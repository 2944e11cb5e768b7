//! What travels between a runner and an agent: frames of four bytes of length (big endian), one byte of kind, and a
//! payload. Kind 0 is one JSON message, kind 1 a piece of content; an empty piece ends it. Kind 2 is empty: no task that
//! was sent ahead and came before it begins any more. Kind 3 is eight bytes: the runner is there, and has heard the sign
//! of life that the agent gave at this time of its own clock. Kind 4 is sixteen bytes in a piece's place: an offset and a
//! size, of the next bytes of the content in the version that the host has. Kind 5 is a piece in RFC 1951's compression.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use crate::host::Map;

/// Written by the agent before anything else, so that whatever a login shell prints first can be told apart.
pub const GREETING: &[u8] = b"\0kubeon-agent\n";
/// The largest payload of a frame: a result larger than this fails its task.
pub const FRAME_LIMIT_BYTES: usize = 64 << 20;
/// How much content a frame carries.
pub const PIECE_BYTES: usize = 256 << 10;
/// Content up to this size travels inside the request; more is sent only when the host asks for it.
pub const INLINE_LIMIT_BYTES: usize = 64 << 10;

const MESSAGE: u8 = 0;
const PIECE: u8 = 1;
const STOP: u8 = 2;
const HERE: u8 = 3;
const KEPT: u8 = 4;
const PACKED: u8 = 5;
/// The quickest of the compressor's levels.
const PACKING_LEVEL: u8 = 1;

/// From the runner to the agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    Run(Task),
    /// Sent ahead, before the request in front of it was answered: executed only when that one was and did not fail.
    Then(Task),
    /// Sent ahead, and only planned: nothing of it is applied. A plan that wants a change is passed, and so is what was
    /// sent ahead behind it.
    Plan(Task),
    /// In place of content that was asked for: it can't be had.
    Missing {
        message: String,
    },
}

/// One module to execute.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Comes back with the answer.
    pub id: u64,
    pub module: String,
    pub args: Map,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub check: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub diff: bool,
    /// Set for what the task runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// How long it may take on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
    /// Execute it apart from the connection, as a job of this id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

impl Task {
    /// Returns whether both ask for the same, whatever their numbers.
    pub fn asks_the_same(&self, other: &Task) -> bool {
        let Task { id: _, module, args, check, diff, environment, timeout_s, job } = self;
        *module == other.module
            && *args == other.args
            && (*check, *diff) == (other.check, other.diff)
            && *environment == other.environment
            && *timeout_s == other.timeout_s
            && *job == other.job
    }
}

/// From the agent to the runner.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A task's result under Ansible's keys; `looked` where nothing at all was applied for it. One that was only planned
    /// tells how long after the latest task that was executed.
    Done {
        id: u64,
        result: Map,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        looked: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_ms: Option<u64>,
    },
    /// A task that was sent ahead was not executed, and never will be: one before it failed, it was called off, or nothing
    /// was heard of the runner for too long. Or its plan wants a change, which is made when it is sent for good.
    Passed { id: u64 },
    /// The task needs the content of this SHA-256: pieces follow. `has` tells what the host has in another version, as
    /// [`crate::chunks::packed`] writes it.
    Want {
        id: u64,
        sha256: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        has: String,
    },
    /// The task lives; `line` is its latest output. `at_ms` comes back in [`here_frame`] while tasks wait behind it.
    Alive { id: u64, line: String, at_ms: u64 },
}

/// One frame as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    Message(Vec<u8>),
    /// Empty: the content ends here.
    Piece(Vec<u8>),
    /// The content goes on with these bytes of the host's own version.
    Kept {
        offset_bytes: u64,
        size_bytes: u64,
    },
    /// What was sent ahead does not begin any more.
    Stop,
    /// The runner is there, and has heard the sign of life of that time.
    Here {
        at_ms: u64,
    },
}

impl Frame {
    /// Decodes a message.
    ///
    /// # Errors
    /// `InvalidData` when this is a piece or another type's message.
    pub fn message<T: for<'de> Deserialize<'de>>(&self) -> io::Result<T> {
        match self {
            Frame::Message(bytes) => serde_json::from_slice(bytes).map_err(io::Error::from),
            Frame::Piece(_) | Frame::Kept { .. } | Frame::Stop | Frame::Here { .. } => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "something else where a message was due"))
            }
        }
    }
}

/// Returns a message's frame, ready to write in one call.
///
/// # Errors
/// `InvalidInput` when the message is larger than [`FRAME_LIMIT_BYTES`].
pub fn message_frame<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let mut frame = vec![0, 0, 0, 0, MESSAGE];
    serde_json::to_writer(&mut frame, message)?;
    finish(frame)
}

/// Returns a piece's frame; an empty one ends the content.
///
/// # Errors
/// `InvalidInput` when the piece is larger than [`FRAME_LIMIT_BYTES`].
pub fn piece_frame(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut frame = Vec::with_capacity(bytes.len() + 5);
    frame.extend([0, 0, 0, 0, PIECE]);
    frame.extend_from_slice(bytes);
    finish(frame)
}

/// Returns the frame of a piece, compressed; it is read as the piece that it was.
///
/// # Errors
/// `InvalidInput` when what comes of it is larger than [`FRAME_LIMIT_BYTES`].
pub fn packed_frame(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut frame = vec![0, 0, 0, 0, PACKED];
    frame.extend(miniz_oxide::deflate::compress_to_vec(bytes, PACKING_LEVEL));
    finish(frame)
}

/// Returns the frame of what the content has in common with the host's own version.
pub fn kept_frame(offset_bytes: u64, size_bytes: u64) -> Vec<u8> {
    let mut frame = vec![0, 0, 0, 16, KEPT];
    frame.extend(offset_bytes.to_be_bytes());
    frame.extend(size_bytes.to_be_bytes());
    frame
}

/// Returns the frame that calls off what was sent ahead.
pub fn stop_frame() -> Vec<u8> {
    vec![0, 0, 0, 0, STOP]
}

/// Returns the frame that answers a sign of life.
pub fn here_frame(at_ms: u64) -> Vec<u8> {
    let mut frame = vec![0, 0, 0, 8, HERE];
    frame.extend(at_ms.to_be_bytes());
    frame
}

fn finish(mut frame: Vec<u8>) -> io::Result<Vec<u8>> {
    let size = frame.len() - 5;
    if size > FRAME_LIMIT_BYTES {
        let message = format!("a message of {size} bytes is over the limit of {FRAME_LIMIT_BYTES}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    frame[..4].copy_from_slice(&(size as u32).to_be_bytes());
    Ok(frame)
}

/// Reads the next frame; `None` when the other side has closed between frames.
///
/// # Errors
/// `UnexpectedEof` inside a frame, `InvalidData` for an unknown kind, a length over the limit, or a compressed piece that
/// is damaged or holds more than [`PIECE_BYTES`].
pub fn read_frame(input: &mut dyn Read) -> io::Result<Option<Frame>> {
    let mut head = [0; 5];
    let mut filled = 0;
    while filled < head.len() {
        match input.read(&mut head[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let size = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
    if size > FRAME_LIMIT_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {size} bytes is over the limit")));
    }
    let mut payload = vec![0; size];
    input.read_exact(&mut payload)?;
    match head[4] {
        MESSAGE => Ok(Some(Frame::Message(payload))),
        PIECE => Ok(Some(Frame::Piece(payload))),
        STOP => Ok(Some(Frame::Stop)),
        HERE => match payload.try_into().map(u64::from_be_bytes) {
            Ok(at_ms) => Ok(Some(Frame::Here { at_ms })),
            Err(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "a sign of life without its time")),
        },
        KEPT => match payload.as_chunks() {
            ([offset, size], []) => Ok(Some(Frame::Kept {
                offset_bytes: u64::from_be_bytes(*offset),
                size_bytes: u64::from_be_bytes(*size),
            })),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "kept content without its offset and size")),
        },
        PACKED => match miniz_oxide::inflate::decompress_to_vec_with_limit(&payload, PIECE_BYTES) {
            Ok(bytes) => Ok(Some(Frame::Piece(bytes))),
            Err(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "a damaged piece of content")),
        },
        kind => Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of unknown kind {kind}"))),
    }
}

/// Writes a message and flushes.
///
/// # Errors
/// As [`message_frame`], and whatever the writer reports.
pub fn send<T: Serialize>(output: &mut dyn Write, message: &T) -> io::Result<()> {
    output.write_all(&message_frame(message)?)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_sent_and_bad_ones_are_refused() {
        let mut bytes = message_frame(&Answer::Alive { id: 7, line: "x".into(), at_ms: 1 }).expect("a small message");
        bytes.extend(piece_frame(b"abc").expect("a small piece"));
        bytes.extend(packed_frame(&[7; 1000]).expect("a small piece"));
        bytes.extend(here_frame(0x0102_0304_0506));
        bytes.extend(kept_frame(7, 1 << 40));
        let mut input = bytes.as_slice();
        let first = read_frame(&mut input).expect("a frame").expect("not the end");
        assert!(matches!(first.message(), Ok(Answer::Alive { id: 7, .. })));
        assert_eq!(read_frame(&mut input).expect("a frame"), Some(Frame::Piece(b"abc".to_vec())));
        assert_eq!(read_frame(&mut input).expect("a frame"), Some(Frame::Piece(vec![7; 1000])));
        assert_eq!(read_frame(&mut input).expect("a frame"), Some(Frame::Here { at_ms: 0x0102_0304_0506 }));
        let kept = Frame::Kept { offset_bytes: 7, size_bytes: 1 << 40 };
        assert_eq!(read_frame(&mut input).expect("a frame"), Some(kept));
        assert_eq!(read_frame(&mut input).expect("the end"), None);
        assert!(read_frame(&mut &bytes[..3]).is_err(), "cut in the head");
        assert!(read_frame(&mut &bytes[..9]).is_err(), "cut in the payload");
        assert!(read_frame(&mut [0xff, 0xff, 0xff, 0xff, 0].as_slice()).is_err(), "too long");
        assert!(read_frame(&mut [0, 0, 0, 0, 9].as_slice()).is_err(), "unknown kind");
        assert!(read_frame(&mut [0, 0, 0, 1, PACKED, 0xff].as_slice()).is_err(), "damaged");
        let bomb = packed_frame(&vec![0; PIECE_BYTES + 1]).expect("small");
        assert!(bomb.len() < 10_000 && read_frame(&mut bomb.as_slice()).is_err(), "more than a piece");
    }
}
