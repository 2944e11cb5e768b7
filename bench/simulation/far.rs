//! The far ends: real agents, one a connection, over streams that wait and break as fate has it. What they execute is
//! noted here, whatever the runner hears of it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use kubeon_modules::wire::{self, Frame};
use serde_json::Value;

use crate::weather::{Break, Fate, Weather};

/// An agent's stack: there are thousands in a process.
const STACK_BYTES: usize = 512 << 10;

/// Serves hosts until standard input ends. Notes go to `FOLDER/NUMBER.log`.
///
/// # Errors
/// When the socket or the file can't be made.
pub fn serve(folder: &Path, number: u64, weather: &Weather) -> io::Result<()> {
    let listener = UnixListener::bind(folder.join(number.to_string()))?;
    let notes = BufWriter::new(File::create(folder.join(format!("{number}.log")))?);
    let fleet = Arc::new(Fleet { weather: weather.clone(), seen: Mutex::default(), notes: Mutex::new(notes) });
    io::stdout().write_all(b"ready\n")?;
    io::stdout().flush()?;
    let accepting = fleet.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let fleet = accepting.clone();
            let started = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
                // A runner that is gone has nothing more to be told.
                fleet.host(stream).ok();
            });
            if let Err(error) = started {
                accepting.note(&format!("broken\t-\tno thread: {error}"));
            }
        }
    });
    io::stdin().read_to_end(&mut Vec::new())?;
    fleet.notes().flush()
}

struct Fleet {
    weather: Weather,
    /// How many connections each host has had.
    seen: Mutex<HashMap<String, u64>>,
    notes: Mutex<BufWriter<File>>,
}

impl Fleet {
    fn notes(&self) -> MutexGuard<'_, BufWriter<File>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, line: &str) {
        // What can't be noted is missed when notes are compared with the run's record.
        writeln!(self.notes(), "{line}").ok();
    }

    fn host(self: Arc<Self>, stream: UnixStream) -> io::Result<()> {
        let stream = Arc::new(stream);
        let mut input = BufReader::new(Shared(stream.clone()));
        let mut host = String::new();
        input.read_line(&mut host)?;
        let host = host.trim_end().to_owned();
        input.read_until(b'\n', &mut Vec::new())?;
        let earlier = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let count = seen.entry(host.clone()).or_default();
            *count += 1;
            *count - 1
        };
        let fate = Fate::of(&self.weather, &host, earlier);
        if fate.breaks == Some(Break::AtStart) {
            self.note(&format!("lost\t{host}\tstart\t"));
            return stream.shutdown(Shutdown::Both);
        }
        let life = Arc::new(Life { fleet: self, host, stream, fate: Mutex::new(fate) });
        let input = Input { frames: input, life: life.clone(), left: io::Cursor::default(), received: 0 };
        kubeon_modules::serve(&[], input, Output { life, answered: 0 })
    }
}

/// One connection.
struct Life {
    fleet: Arc<Fleet>,
    host: String,
    stream: Arc<UnixStream>,
    fate: Mutex<Fate>,
}

impl Life {
    fn fate(&self) -> MutexGuard<'_, Fate> {
        self.fate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, how: &str, what: &str) -> io::Error {
        self.fleet.note(&format!("lost\t{}\t{how}\t{what}", self.host));
        self.stream.shutdown(Shutdown::Both).ok();
        io::ErrorKind::BrokenPipe.into()
    }
}

struct Shared(Arc<UnixStream>);

impl Read for Shared {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buffer)
    }
}

/// Requests, each held back for as long as its answer is to take.
struct Input {
    frames: BufReader<Shared>,
    life: Arc<Life>,
    left: io::Cursor<Vec<u8>>,
    received: u64,
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.left.read(buffer)?;
        if count > 0 {
            return Ok(count);
        }
        let Some(frame) = wire::read_frame(&mut self.frames)? else { return Ok(0) };
        let number = self.received;
        self.received += 1;
        let (kind, payload) = match frame {
            Frame::Message(bytes) => (0, bytes),
            Frame::Piece(bytes) => (1, bytes),
            Frame::Stop => (2, Vec::new()),
            Frame::Here { at_ms } => (3, at_ms.to_be_bytes().to_vec()),
            Frame::Kept { offset_bytes, size_bytes } => {
                (4, [offset_bytes.to_be_bytes(), size_bytes.to_be_bytes()].concat())
            }
        };
        let (delay, breaks) = {
            let mut fate = self.life.fate();
            (fate.next_delay(), fate.breaks)
        };
        if !delay.is_zero() {
            thread::sleep(delay);
        }
        if breaks == Some(Break::Before(number)) {
            let request: Value = serde_json::from_slice(&payload).unwrap_or_default();
            let task = request.get("run").or_else(|| request.get("then")).unwrap_or(&Value::Null);
            return Err(self.life.end("before", task["args"]["data"].as_str().unwrap_or_default()));
        }
        let mut bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
        bytes.push(kind);
        bytes.extend(payload);
        self.left = io::Cursor::new(bytes);
        self.left.read(buffer)
    }
}

/// Answers; a frame comes in one call.
struct Output {
    life: Arc<Life>,
    answered: u64,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let answer: Value = bytes.get(5..).and_then(|json| serde_json::from_slice(json).ok()).unwrap_or_default();
        let result = &answer["done"]["result"];
        let (breaks, piece) = {
            let fate = self.life.fate();
            (fate.breaks, fate.piece_bytes)
        };
        let mut sent = bytes;
        let what = result["ping"].as_str().unwrap_or_default();
        if result.is_object() {
            let number = self.answered;
            self.answered += 1;
            self.life.fleet.note(&format!("executed\t{}\t{what}", self.life.host));
            if breaks == Some(Break::After(number)) {
                return Err(self.life.end("after", what));
            }
            if breaks == Some(Break::Within(number)) {
                sent = &bytes[..bytes.len() / 2];
            }
        }
        for piece in sent.chunks(piece) {
            (&*self.life.stream).write_all(piece)?;
        }
        if sent.len() < bytes.len() {
            return Err(self.life.end("within", what));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
