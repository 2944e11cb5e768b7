//! The agent's side of the wire: takes requests from one stream, executes them in order, answers on another.

mod job;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::algorithm::hexadecimal;
use crate::background::background;
use crate::chunks::{Known, packed};
use crate::host::Map;
use crate::host::Put as _;

use crate::wire::{self, Answer, Frame, Request, Task};
use crate::{Error, ErrorKind, Machine, Service, Settings, run, spec_of};

/// The least time between two signs of life of one task.
const ALIVE_EVERY: Duration = Duration::from_millis(200);
/// Between two signs of life while a task says nothing: a runner that gets none takes the host for lost.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(3);
/// For how long after a sign of the runner tasks begin that were sent ahead: one that is cut off must not see its host go
/// on without it. Signs of life, which it answers, are more frequent.
const LEASE: Duration = Duration::from_secs(1);
/// How long the runner may take for the next piece of content.
const PIECE_TIMEOUT: Duration = Duration::from_secs(120);

/// Serves requests until `input` ends: `arguments` are the program's own, `["job", FILE]` for a job apart and
/// `["check", SHA256]` to prove a program that was just received.
///
/// # Errors
/// When the streams fail; a task's failure is its answer.
pub fn serve(
    arguments: &[String],
    input: impl Read + Send + 'static,
    mut output: impl Write + Send + 'static,
) -> io::Result<()> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["job", file] => return job::serve_job(file),
        ["check", sha256] => return check(sha256),
        _ => {}
    }
    add_system_folders();
    output.write_all(wire::GREETING)?;
    output.flush()?;
    let (sender, frames) = mpsc::channel();
    let heard = Arc::new(Heard::default());
    let (nudge, nudged) = mpsc::channel();
    let hears = heard.clone();
    background(move || read_all(input, &sender, &hears, &nudge));
    let output = Arc::new(Mutex::new(Output { stream: Box::new(output), task: None, number: 0 }));
    let weak = Arc::downgrade(&output);
    let hears = heard.clone();
    background(move || beat(&weak, &hears, &nudged));
    let link = Link {
        frames,
        waiting: RefCell::default(),
        heard,
        output,
        task: Cell::new(0),
        told: Cell::new(None),
        cut_off: Cell::new(false),
        ended_ms: Cell::new(0),
    };
    // Whether the latest task was executed and did not fail, and whether what was sent behind it may be planned.
    let (mut went_well, mut plans) = (true, true);
    while let Some(Numbered { number, frame }) = link.next()? {
        link.output().number = number;
        match frame.message()? {
            Request::Run(task) => {
                went_well = link.perform(&task, false)?;
                plans = went_well;
            }
            Request::Then(task) if went_well && link.heard.lets_begin(number) => {
                went_well = link.perform(&task, false)?;
                plans = went_well;
            }
            Request::Then(task) => {
                (went_well, plans) = (false, false);
                wire::send(&mut link.output().stream, &Answer::Passed { id: task.id })?;
            }
            Request::Plan(task) if plans && !link.heard.is_void(number) => plans = link.perform(&task, true)?,
            Request::Plan(task) => {
                plans = false;
                wire::send(&mut link.output().stream, &Answer::Passed { id: task.id })?;
            }
            Request::Missing { .. } => {}
        }
    }
    Ok(())
}

/// What was heard of the runner.
#[derive(Default)]
struct Heard {
    /// How many requests came.
    came: AtomicU64,
    /// Up to this number, what was sent ahead does not begin.
    void: AtomicU64,
    /// When the runner was there, for certain: a sign of life that it has answered, or a request.
    at_ms: AtomicU64,
}

impl Heard {
    fn is_void(&self, number: u64) -> bool {
        number <= self.void.load(Ordering::Acquire)
    }

    /// Returns whether a task that was sent ahead may change this host.
    fn lets_begin(&self, number: u64) -> bool {
        !self.is_void(number) && now_ms().saturating_sub(self.at_ms.load(Ordering::Acquire)) < LEASE.as_millis() as u64
    }
}

/// Returns a time that goes on while the machine sleeps.
fn now_ms() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live value.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1000 + time.tv_nsec.unsigned_abs() / 1_000_000
}

/// A frame with its number: the first one is 1.
struct Numbered {
    number: u64,
    frame: Frame,
}

/// Lets tasks find what is for administrators, which the login of many a user does not.
fn add_system_folders() {
    let before = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned());
    let mut path = before.clone();
    for folder in ["/usr/local/sbin", "/usr/sbin", "/sbin"] {
        if path.split(':').all(|other| other != folder) {
            path.push(':');
            path.push_str(folder);
        }
    }
    if path == before {
        return;
    }
    // SAFETY: called before this process has a second thread; one that serves many runners has all of them already.
    unsafe { std::env::set_var("PATH", path) };
}

/// Proves that this program arrived whole and can run here, and puts it on disk for good.
fn check(sha256: &str) -> io::Result<()> {
    let mut program = fs::File::open("/proc/self/exe")?;
    let mut bytes = Vec::new();
    program.read_to_end(&mut bytes)?;
    if hexadecimal(&Sha256::digest(&bytes)) != sha256 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the agent arrived damaged"));
    }
    program.sync_all()
}

/// Tells every few seconds that the running task lives, until the agent ends; more often while others wait behind it, as
/// the runner calls them off in answer.
fn beat(output: &Weak<Mutex<Output>>, heard: &Heard, nudged: &mpsc::Receiver<()>) {
    loop {
        let others_wait = |output: &Output| heard.came.load(Ordering::Acquire) > output.number;
        let Some(hurries) = output.upgrade().map(|output| others_wait(&lock(&output))) else { return };
        match nudged.recv_timeout(if hurries { ALIVE_EVERY } else { HEARTBEAT_EVERY }) {
            Ok(()) => continue,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            // The runner has gone.
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
        let Some(output) = output.upgrade() else { return };
        let mut output = lock(&output);
        if hurries && !others_wait(&output) {
            continue;
        }
        if let Some(id) = output.task {
            // A runner that is gone is noticed when the answer is due.
            wire::send(&mut output.stream, &Answer::Alive { id, line: String::new(), at_ms: now_ms() }).ok();
        }
    }
}

/// Where answers go: shared with the thread that tells of life.
struct Output {
    stream: Box<dyn Write + Send>,
    /// The task that is running.
    task: Option<u64>,
    /// The number of its frame.
    number: u64,
}

fn lock(output: &Mutex<Output>) -> MutexGuard<'_, Output> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads all frames, and notes up to which number nothing that was sent ahead begins any more: up to where the runner
/// calls it off, and none at all once the runner has gone.
fn read_all(
    mut input: impl Read,
    frames: &mpsc::Sender<io::Result<Numbered>>,
    heard: &Heard,
    nudge: &mpsc::Sender<()>,
) {
    let mut number = 0;
    loop {
        let frame = match wire::read_frame(&mut input) {
            Ok(Some(Frame::Stop)) => {
                heard.void.store(number, Ordering::Release);
                continue;
            }
            // What was on its way while this machine stood still says nothing about now: the time of what it answers does.
            Ok(Some(Frame::Here { at_ms })) => {
                heard.at_ms.fetch_max(at_ms, Ordering::AcqRel);
                continue;
            }
            Ok(Some(frame)) => {
                number += 1;
                heard.at_ms.store(now_ms(), Ordering::Release);
                heard.came.store(number, Ordering::Release);
                nudge.send(()).ok();
                Ok(Numbered { number, frame })
            }
            Ok(None) => {
                heard.void.store(u64::MAX, Ordering::Release);
                return;
            }
            Err(error) => {
                heard.void.store(u64::MAX, Ordering::Release);
                Err(error)
            }
        };
        let last = frame.is_err();
        if frames.send(frame).is_err() || last {
            return;
        }
    }
}

/// Executes one task on this machine; to `look`, only plans it. Returns whether nothing was applied, too.
fn execute(task: &Task, service: &dyn Service, look: bool) -> (Map, bool) {
    let Some(spec) = spec_of(&task.module) else {
        let asks_a_cluster = ["k8s", "helm"].iter().any(|name| task.module.starts_with(name));
        if cfg!(not(feature = "cluster")) && asks_a_cluster {
            return (failed(crate::machine::NOT_FROM_HERE), false);
        }
        return (failed(&format!("this agent has no module `{}`", task.module)), false);
    };
    let module = match (spec.decode)(&task.args) {
        Ok(module) => module,
        Err(error) => return (failed(&error.to_string()), false),
    };
    let limit = task.timeout_s.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 1e9)));
    let mut machine = Machine::new(service, task.environment.clone(), limit);
    let result = run(module.as_ref(), &mut machine, Settings { check: task.check, diff: task.diff, look });
    let looked = machine.applied.is_empty() && !is(&result, "failed");
    (result, looked)
}

fn is(result: &Map, key: &str) -> bool {
    result.get(key).is_some_and(|value| value.as_bool() == Some(true))
}

fn failed(message: &str) -> Map {
    let mut result = Map::new();
    result.put("failed", true);
    result.put("changed", false);
    result.put("msg", message);
    result
}

struct Link {
    frames: mpsc::Receiver<io::Result<Numbered>>,
    /// Requests that came while a task was waiting for content.
    waiting: RefCell<VecDeque<Numbered>>,
    heard: Arc<Heard>,
    output: Arc<Mutex<Output>>,
    task: Cell<u64>,
    told: Cell<Option<Instant>>,
    /// Nothing comes from the runner any more.
    cut_off: Cell<bool>,
    /// When the latest task ended that was executed.
    ended_ms: Cell<u64>,
}

impl Link {
    fn output(&self) -> MutexGuard<'_, Output> {
        lock(&self.output)
    }

    /// Returns the next request; `None` when the runner has gone.
    fn next(&self) -> io::Result<Option<Numbered>> {
        match self.waiting.borrow_mut().pop_front() {
            Some(frame) => Ok(Some(frame)),
            None => self.frames.recv().ok().transpose(),
        }
    }

    /// Executes a task, or only plans it, and answers; returns whether it did not fail.
    fn perform(&self, task: &Task, look: bool) -> io::Result<bool> {
        self.task.set(task.id);
        self.output().task = Some(task.id);
        let (result, looked) = match &task.job {
            Some(job) => (job::start_job(task, job).unwrap_or_else(|error| failed(&error.to_string())), false),
            None => execute(task, self, look),
        };
        let went_well = !is(&result, "failed") && !is(&result, "unreachable");
        let id = task.id;
        let after_ms = look.then(|| now_ms().saturating_sub(self.ended_ms.get()));
        let is_passed = look && !went_well;
        self.answer(
            &if is_passed { Answer::Passed { id } } else { Answer::Done { id, result, looked, after_ms } },
            id,
        )?;
        if !look {
            self.ended_ms.set(now_ms());
        }
        Ok(went_well)
    }

    fn answer(&self, answer: &Answer, id: u64) -> io::Result<()> {
        let frame = wire::message_frame(answer).or_else(|error| {
            let result = failed(&format!("the result: {error}"));
            wire::message_frame(&Answer::Done { id, result, looked: false, after_ms: None })
        })?;
        let mut output = self.output();
        output.task = None;
        output.stream.write_all(&frame)?;
        output.stream.flush()
    }

    fn piece(&self) -> Result<Numbered, Error> {
        let why = match self.frames.recv_timeout(PIECE_TIMEOUT) {
            Ok(Ok(frame)) => return Ok(frame),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no content came".to_owned(),
        };
        self.cut_off.set(true);
        Err(lost(&why))
    }
}

fn lost(why: &str) -> Error {
    Error::new(ErrorKind::Failed, format!("receive content from the runner: {why}"))
}

impl Service for Link {
    fn fetch(&self, sha256: &str, sink: &mut dyn Write) -> Result<(), Error> {
        self.receive(sha256, &[], sink)
    }

    fn fetch_over(&self, sha256: &str, known: &[fs::File], sink: &mut dyn Write) -> Result<(), Error> {
        self.receive(sha256, known, sink)
    }

    fn is_cut_off(&self) -> bool {
        self.cut_off.get()
    }

    fn progress(&self, line: &str) {
        let now = Instant::now();
        if self.told.get().is_some_and(|told| now - told < ALIVE_EVERY) {
            return;
        }
        self.told.set(Some(now));
        let line: String = line.chars().take(200).collect();
        // A runner that is gone is noticed when the answer is due.
        wire::send(&mut self.output().stream, &Answer::Alive { id: self.task.get(), line, at_ms: now_ms() }).ok();
    }
}

impl Link {
    fn receive(&self, sha256: &str, known: &[fs::File], sink: &mut dyn Write) -> Result<(), Error> {
        let known = Known::of(known);
        let want = Answer::Want { id: self.task.get(), sha256: sha256.to_owned(), has: packed(&known.chunks) };
        wire::send(&mut self.output().stream, &want).map_err(|error| lost(&error.to_string()))?;
        let mut took = Ok(());
        loop {
            let Numbered { number, frame } = self.piece()?;
            let written = match frame {
                Frame::Piece(bytes) if bytes.is_empty() => return took,
                // The rest of content that can't be stored is taken all the same, so that the next task finds the stream
                // in order.
                Frame::Piece(_) | Frame::Kept { .. } if took.is_err() => continue,
                Frame::Piece(bytes) => sink.write_all(&bytes),
                Frame::Kept { offset_bytes, size_bytes } => {
                    known.write(offset_bytes..offset_bytes.saturating_add(size_bytes), sink)
                }
                frame @ Frame::Message(_) => match frame.message::<Request>() {
                    Ok(Request::Missing { message }) => return took.and(Err(lost(&message))),
                    Ok(Request::Run(_) | Request::Then(_) | Request::Plan(_)) => {
                        self.waiting.borrow_mut().push_back(Numbered { number, frame });
                        continue;
                    }
                    Err(error) => return Err(lost(&error.to_string())),
                },
                Frame::Stop | Frame::Here { .. } => continue,
            };
            took = written.map_err(|error| Error::new(ErrorKind::Failed, format!("write content: {error}")));
        }
    }
}
