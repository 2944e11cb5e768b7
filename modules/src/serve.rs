//! The agent's side of the wire: takes requests from one stream, executes them in order, answers on another.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::time::{Duration, Instant};

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::algorithm::hexadecimal;
use crate::background::background;
use crate::host::Map;
use crate::host::Put as _;

use crate::wire::{self, Answer, Frame, Request, Task};
use crate::{Error, ErrorKind, Machine, Service, Settings, run, spec_of};

/// The least time between two signs of life of one task.
const ALIVE_EVERY: Duration = Duration::from_millis(200);
/// Between two signs of life while a task says nothing: a runner that gets none takes the host for lost.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(3);
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
        ["job", file] => return serve_job(file),
        ["check", sha256] => return check(sha256),
        _ => {}
    }
    add_system_folders();
    output.write_all(wire::GREETING)?;
    output.flush()?;
    let (sender, frames) = mpsc::channel();
    let (void, came) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (nudge, nudged) = mpsc::channel();
    let voids = void.clone();
    let count = came.clone();
    background(move || read_all(input, &sender, &voids, &count, &nudge));
    let output = Arc::new(Mutex::new(Output { stream: Box::new(output), task: None, number: 0 }));
    let weak = Arc::downgrade(&output);
    background(move || beat(&weak, &came, &nudged));
    let link = Link { frames, waiting: RefCell::default(), void, output, task: Cell::new(0), told: Cell::new(None) };
    // Whether the latest task was executed and did not fail.
    let mut went_well = true;
    while let Some(Numbered { number, frame }) = link.next()? {
        link.output().number = number;
        match frame.message()? {
            Request::Run(task) => went_well = link.perform(&task)?,
            Request::Then(task) if went_well && number > link.void.load(Ordering::Acquire) => {
                went_well = link.perform(&task)?;
            }
            Request::Then(task) => {
                went_well = false;
                wire::send(&mut link.output().stream, &Answer::Passed { id: task.id })?;
            }
            Request::Missing { .. } => {}
        }
    }
    Ok(())
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
fn beat(output: &Weak<Mutex<Output>>, came: &AtomicU64, nudged: &mpsc::Receiver<()>) {
    loop {
        let others_wait = |output: &Output| came.load(Ordering::Acquire) > output.number;
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
            wire::send(&mut output.stream, &Answer::Alive { id, line: String::new() }).ok();
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

/// Reads all frames, and notes in `void` up to which number nothing that was sent ahead begins any more: up to where the
/// runner calls it off, and none at all once the runner has gone.
fn read_all(
    mut input: impl Read,
    frames: &mpsc::Sender<io::Result<Numbered>>,
    void: &AtomicU64,
    came: &AtomicU64,
    nudge: &mpsc::Sender<()>,
) {
    let mut number = 0;
    loop {
        let frame = match wire::read_frame(&mut input) {
            Ok(Some(Frame::Stop)) => {
                void.store(number, Ordering::Release);
                continue;
            }
            Ok(Some(frame)) => {
                number += 1;
                came.store(number, Ordering::Release);
                nudge.send(()).ok();
                Ok(Numbered { number, frame })
            }
            Ok(None) => {
                void.store(u64::MAX, Ordering::Release);
                return;
            }
            Err(error) => {
                void.store(u64::MAX, Ordering::Release);
                Err(error)
            }
        };
        let last = frame.is_err();
        if frames.send(frame).is_err() || last {
            return;
        }
    }
}

/// Executes one task on this machine.
fn execute(task: &Task, service: &dyn Service) -> Map {
    let Some(spec) = spec_of(&task.module) else {
        let asks_a_cluster = ["k8s", "helm"].iter().any(|name| task.module.starts_with(name));
        if cfg!(not(feature = "cluster")) && asks_a_cluster {
            return failed(crate::machine::NOT_FROM_HERE);
        }
        return failed(&format!("this agent has no module `{}`", task.module));
    };
    let module = match (spec.decode)(&task.args) {
        Ok(module) => module,
        Err(error) => return failed(&error.to_string()),
    };
    let limit = task.timeout_s.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 1e9)));
    let mut machine = Machine::new(service, task.environment.clone(), limit);
    run(module.as_ref(), &mut machine, Settings { check: task.check, diff: task.diff })
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
    /// Up to this number, what was sent ahead does not begin.
    void: Arc<AtomicU64>,
    output: Arc<Mutex<Output>>,
    task: Cell<u64>,
    told: Cell<Option<Instant>>,
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

    /// Executes a task and answers; returns whether it did not fail.
    fn perform(&self, task: &Task) -> io::Result<bool> {
        self.task.set(task.id);
        self.output().task = Some(task.id);
        let result = match &task.job {
            Some(job) => start_job(task, job).unwrap_or_else(|error| failed(&error.to_string())),
            None => execute(task, self),
        };
        let is = |name: &str| result.get(name).is_some_and(|value| value.as_bool() == Some(true));
        let went_well = !is("failed") && !is("unreachable");
        self.answer(task, result)?;
        Ok(went_well)
    }

    fn answer(&self, task: &Task, result: Map) -> io::Result<()> {
        let frame = wire::message_frame(&Answer::Done { id: task.id, result }).or_else(|error| {
            wire::message_frame(&Answer::Done { id: task.id, result: failed(&format!("the result: {error}")) })
        })?;
        let mut output = self.output();
        output.task = None;
        output.stream.write_all(&frame)?;
        output.stream.flush()
    }

    fn piece(&self) -> Result<Numbered, Error> {
        match self.frames.recv_timeout(PIECE_TIMEOUT) {
            Ok(Ok(frame)) => Ok(frame),
            Ok(Err(error)) => Err(lost(&error.to_string())),
            Err(_) => Err(lost("no content came")),
        }
    }
}

fn lost(why: &str) -> Error {
    Error::new(ErrorKind::Failed, format!("receive content from the runner: {why}"))
}

impl Service for Link {
    fn fetch(&self, sha256: &str, sink: &mut dyn Write) -> Result<(), Error> {
        let want = Answer::Want { id: self.task.get(), sha256: sha256.to_owned() };
        wire::send(&mut self.output().stream, &want).map_err(|error| lost(&error.to_string()))?;
        loop {
            let Numbered { number, frame } = self.piece()?;
            match frame {
                Frame::Piece(bytes) if bytes.is_empty() => return Ok(()),
                Frame::Piece(bytes) => sink.write_all(&bytes).map_err(|error| {
                    self.drain();
                    Error::new(ErrorKind::Failed, format!("write content: {error}"))
                })?,
                frame @ Frame::Message(_) => match frame.message::<Request>() {
                    Ok(Request::Missing { message }) => return Err(lost(&message)),
                    Ok(Request::Run(_) | Request::Then(_)) => {
                        self.waiting.borrow_mut().push_back(Numbered { number, frame });
                    }
                    Err(error) => return Err(lost(&error.to_string())),
                },
                Frame::Stop => {}
            }
        }
    }

    fn progress(&self, line: &str) {
        let now = Instant::now();
        if self.told.get().is_some_and(|told| now - told < ALIVE_EVERY) {
            return;
        }
        self.told.set(Some(now));
        let line: String = line.chars().take(200).collect();
        // A runner that is gone is noticed when the answer is due.
        wire::send(&mut self.output().stream, &Answer::Alive { id: self.task.get(), line }).ok();
    }
}

impl Link {
    /// Takes the rest of content that can't be stored, so that the next task finds the stream in order.
    fn drain(&self) {
        while let Ok(Numbered { number, frame }) = self.piece() {
            match frame {
                Frame::Piece(bytes) if bytes.is_empty() => return,
                Frame::Piece(_) | Frame::Stop => {}
                Frame::Message(_) => self.waiting.borrow_mut().push_back(Numbered { number, frame }),
            }
        }
    }
}

/// Where jobs of this user keep their results. Source: `async_dir` of ansible-core.
fn job_folder() -> PathBuf {
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    home.join(".ansible_async")
}

/// Starts the task in a process of its own that outlives the connection.
fn start_job(task: &Task, job: &str) -> io::Result<Map> {
    let folder = job_folder();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let result = folder.join(job);
    let order = folder.join(format!(".{job}.task"));
    let private = |path: &PathBuf, bytes: &[u8]| {
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
    };
    let state = json!({"started": 1, "finished": 0, "ansible_job_id": job});
    private(&result, state.to_string().as_bytes())?;
    private(&order, &serde_json::to_vec(&Task { job: None, ..task.clone() })?)?;
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = std::env::args().nth(1).filter(|name| name == "agent") {
        command.arg(name);
    }
    command.arg("job").arg(&order).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: setsid(2) is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            Ok(())
        });
    }
    let mut child = command.spawn()?;
    background(move || drop(child.wait()));
    let mut answer = Map::new();
    answer.put("started", 1);
    answer.put("finished", 0);
    answer.put("changed", true);
    answer.put("ansible_job_id", job);
    answer.put("results_file", result.to_string_lossy());
    Ok(answer)
}

struct Alone;

impl Service for Alone {
    fn fetch(&self, _: &str, _: &mut dyn Write) -> Result<(), Error> {
        Err(lost("a job apart from the connection can't ask for it"))
    }
    fn progress(&self, _: &str) {}
}

fn serve_job(order: &str) -> io::Result<()> {
    let task: Task = serde_json::from_slice(&fs::read(order)?)?;
    fs::remove_file(order)?;
    let name = PathBuf::from(order);
    let job = name.file_name().unwrap_or_default().to_string_lossy();
    let job = job.trim_start_matches('.').trim_end_matches(".task").to_owned();
    let mut result = execute(&task, &Alone);
    result.put("started", 1);
    result.put("finished", 1);
    result.put("ansible_job_id", job.as_str());
    let path = job_folder().join(&job);
    let temporary = path.with_extension("new");
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?
        .write_all(&serde_json::to_vec(&result)?)?;
    fs::rename(temporary, path)
}
