//! One host's connection: an agent a user, requests out and answers in.

use std::collections::HashMap;
use std::io::{self, Read};
use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kubeon_modules::wire::{self, Frame, Task};
use kubeon_modules::{Map, Output};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::agent::{Start, Started};
use super::pipe::{Came, Ending, Order, Pipe, Text};
use super::{Become, Contents, Target, Transport, Unreachable, UnreachableKind};

/// What a task may take over its own limit, which its host enforces, before the host counts as lost.
const SLACK: Duration = Duration::from_secs(30);
/// How long an agent may take to end that makes room for another.
const PARTING: Duration = Duration::from_secs(2);
/// How much of a raw command's output is kept.
const OUTPUT_LIMIT_BYTES: usize = 32 << 20;
/// How much is read at a time of what an agent says: most answers come whole.
const READ_BYTES: usize = 4 << 10;
/// The exit status of a raw command that ran out of time. Source: `timeout(1)`.
const TIMED_OUT_RC: i32 = 124;

/// What has travelled so far, all agents of the host together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    pub frames_sent: u64,
    pub frames_received: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// How often something was sent and an answer awaited: once a task, and once more a piece of content asked for.
    pub round_trips: u64,
    /// Signs of life of running tasks: they come unasked.
    pub signs_of_life: u64,
    pub agents_started: u64,
}

impl AddAssign for Statistics {
    fn add_assign(&mut self, other: Statistics) {
        self.frames_sent += other.frames_sent;
        self.frames_received += other.frames_received;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.round_trips += other.round_trips;
        self.signs_of_life += other.signs_of_life;
        self.agents_started += other.agents_started;
    }
}

/// A task that is sent before the one in front of it is answered.
pub struct Ahead {
    pub id: u64,
    pub module: String,
    pub timeout_s: Option<f64>,
    frame: Vec<u8>,
}

impl Ahead {
    /// Returns the task as it is to be sent.
    ///
    /// # Errors
    /// When it is too large.
    pub fn new(task: &Task) -> io::Result<Ahead> {
        let frame = wire::message_frame(&Outgoing::Then(task))?;
        Ok(Ahead { id: task.id, module: task.module.clone(), timeout_s: task.timeout_s, frame })
    }

    /// Returns how much travels.
    pub fn size_bytes(&self) -> usize {
        self.frame.len()
    }

    /// Hands out what travels.
    pub fn take_frame(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.frame)
    }
}

/// A connection to one host, used by one thread at a time.
pub struct Connection {
    target: Target,
    transport: Transport,
    agents: HashMap<Option<Become>, Link>,
    /// Set when the user asks to stop.
    stop: Option<Arc<AtomicBool>>,
    statistics: Statistics,
}

impl Connection {
    /// Connects and logs in. Agents are started when a task first needs them.
    ///
    /// # Errors
    /// Why the host can't be reached, within the target's `connect_timeout`.
    pub fn open(target: &Target) -> Result<Connection, Unreachable> {
        let transport = Transport::open(target)?;
        let (target, agents) = (target.clone(), HashMap::new());
        Ok(Connection { target, transport, agents, stop: None, statistics: Statistics::default() })
    }

    /// Lets nothing begin any more that was sent ahead, once `stop` is set.
    pub fn heed(&mut self, stop: &Arc<AtomicBool>) {
        self.stop = Some(stop.clone());
    }

    /// Executes one task as a user of the host and returns its result. `alive` gets the latest line of output of a
    /// task that takes long, or an empty one, every few seconds.
    ///
    /// # Errors
    /// When the host is lost, silent for longer than the target's `silence_timeout`, or can't run an agent as that
    /// user. A task's own failure is its result.
    pub fn run(
        &mut self,
        become_: Option<&Become>,
        task: &Task,
        contents: &Contents,
        alive: &dyn Fn(&str),
    ) -> Result<Map, Unreachable> {
        self.run_as(become_, task, (0, &[]), contents, alive)
    }

    /// As [`Connection::run`], for a result that is read as another type. What is `behind`, so many
    /// frames of [`Ahead`], goes out with the task, to be executed after it for as long as nothing fails;
    /// [`Connection::answer`] gives the result of each, in their order.
    ///
    /// # Errors
    /// As there.
    pub fn run_as<T: DeserializeOwned>(
        &mut self,
        become_: Option<&Become>,
        task: &Task,
        behind: (usize, &[u8]),
        contents: &Contents,
        alive: &dyn Fn(&str),
    ) -> Result<T, Unreachable> {
        let become_ = self.other_user(become_).cloned();
        let link = match self.agents.remove(&become_) {
            Some(link) => link,
            None => self.start(become_.as_ref())?,
        };
        let silence = self.target.silence_timeout;
        self.use_link(become_, link, &task.module, |link| link.run(task, behind, contents, alive, silence))
    }

    /// Returns the result of what was sent ahead and has no answer yet; `None` when it was not executed, and neither will
    /// be what came after it.
    ///
    /// # Errors
    /// As [`Connection::run`].
    pub fn answer<T: DeserializeOwned>(
        &mut self,
        become_: Option<&Become>,
        task: &Ahead,
        alive: &dyn Fn(&str),
    ) -> Result<Option<T>, Unreachable> {
        let become_ = self.other_user(become_).cloned();
        let Some(link) = self.agents.remove(&become_) else {
            let message = format!("`{}`: lost before it ran `{}`", self.target.host, task.module);
            return Err(Unreachable::new(UnreachableKind::Lost, message));
        };
        let silence = self.target.silence_timeout;
        self.use_link(become_, link, &task.module, |link| {
            let answer = link.answer(task.id, task.timeout_s, &Contents::default(), alive, silence)?;
            if answer.is_some() {
                link.owed = link.owed.saturating_sub(1);
            }
            Ok(answer)
        })
    }

    /// Lets nothing begin any more that was sent ahead. Each still has its answer.
    pub fn stop_ahead(&mut self, become_: Option<&Become>) {
        let become_ = self.other_user(become_).cloned();
        let silence = self.target.silence_timeout;
        if let Some(link) = self.agents.get_mut(&become_) {
            // A host that is gone is noticed when the answers are due.
            link.send(&wire::stop_frame(), silence).ok();
        }
    }

    fn use_link<T>(
        &mut self,
        become_: Option<Become>,
        mut link: Link,
        module: &str,
        work: impl FnOnce(&mut Link) -> Result<T, Fault>,
    ) -> Result<T, Unreachable> {
        let result = work(&mut link);
        self.statistics += std::mem::take(&mut link.statistics);
        match result {
            Ok(result) => {
                // An agent that failed is not kept: the next task starts another, or finds the host gone.
                self.agents.insert(become_, link);
                Ok(result)
            }
            Err(fault) => Err(self.unreachable(fault, link, module)),
        }
    }

    /// Runs a command without an agent: without `become_`, as one line for whatever takes the login. `rc` is 124
    /// when it ran longer than `timeout`.
    ///
    /// # Errors
    /// When the host is lost or the other user can't be become.
    pub fn raw(
        &mut self,
        become_: Option<&Become>,
        command: &str,
        stdin: Option<&[u8]>,
        timeout: Option<Duration>,
    ) -> Result<Output, Unreachable> {
        let started = Instant::now();
        let started_s = now_s();
        let connect = started + self.target.connect_timeout;
        let become_ = self.other_user(become_).cloned();
        let mut early = Vec::new();
        let mut pipe = match &become_ {
            None => self.transport.start(&Order { text: Text::Login(command), terminal: false }, connect)?,
            Some(_) => {
                let started = describe(&self.target, &self.transport, become_.as_ref(), None)
                    .shell(&mut self.transport, command)?;
                early = started.early;
                started.pipe
            }
        };
        let deadline = timeout.map_or_else(|| Instant::now() + Duration::from_secs(1 << 30), |limit| started + limit);
        let outcome = communicate(pipe.as_mut(), stdin, early, deadline);
        match outcome {
            Ok((rc, stdout, stderr)) => Ok(Output { rc, stdout, stderr, started_s, ended_s: now_s() }),
            Err(error) if error.kind() == io::ErrorKind::TimedOut && Instant::now() >= deadline => {
                let stderr = "ran longer than its limit and was ended".to_owned();
                Ok(Output { rc: TIMED_OUT_RC, stdout: String::new(), stderr, started_s, ended_s: now_s() })
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                let silence = self.target.silence_timeout.as_secs_f64();
                let message = format!("`{}`: no sign of life for {silence} s while it ran a command", self.target.host);
                Err(Unreachable::new(UnreachableKind::Silent, message))
            }
            Err(error) => {
                let message = format!("`{}`: lost while it ran a command: {error}", self.target.host);
                Err(Unreachable::new(UnreachableKind::Lost, message))
            }
        }
    }

    /// Returns what has travelled so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Returns the user to become; `None` when the login is that user already.
    fn other_user<'a>(&self, become_: Option<&'a Become>) -> Option<&'a Become> {
        become_.filter(|become_| self.transport.user() != Some(&become_.user))
    }

    fn start(&mut self, become_: Option<&Become>) -> Result<Link, Unreachable> {
        let own = self.transport.own_program();
        let own = own.as_ref().and_then(|path| path.to_str());
        let start = describe(&self.target, &self.transport, become_, own);
        let started = match start.agent(&mut self.transport) {
            // Some hosts allow few channels at a time: those of other users' agents make room.
            Err(unreachable) if unreachable.kind == UnreachableKind::Lost && !self.agents.is_empty() => {
                for (_, mut link) in self.agents.drain() {
                    link.pipe.finish(Instant::now() + PARTING).ok();
                    link.pipe.ending(Instant::now() + PARTING);
                }
                // sshd counts a channel until it has seen its program's end, a moment after it told of it.
                let until = Instant::now() + PARTING;
                loop {
                    match start.agent(&mut self.transport) {
                        Err(unreachable) if unreachable.kind == UnreachableKind::Lost && Instant::now() < until => {
                            std::thread::sleep(Duration::from_millis(50));
                        }
                        other => break other,
                    }
                }
            }
            other => other,
        };
        let Started { pipe, early } = started?;
        self.statistics.agents_started += 1;
        Ok(Link { pipe, early, owed: 0, stop: self.stop.clone(), stopped: false, statistics: Statistics::default() })
    }

    fn unreachable(&self, fault: Fault, mut link: Link, module: &str) -> Unreachable {
        let host = &self.target.host;
        let silence = self.target.silence_timeout.as_secs_f64();
        match fault {
            Fault::Task(error) => Unreachable::new(
                UnreachableKind::Configuration,
                format!("`{host}`: the task `{module}` can't be sent: {error}"),
            ),
            Fault::Overdue => {
                Unreachable::new(UnreachableKind::Silent, format!("`{host}`: `{module}` ran on long after its limit"))
            }
            Fault::Stream(error) if error.kind() == io::ErrorKind::TimedOut => Unreachable::new(
                UnreachableKind::Silent,
                format!("`{host}`: no sign of life for {silence} s while it ran `{module}`"),
            ),
            Fault::Stream(error) => {
                let how = match link.pipe.ending(Instant::now() + Duration::from_secs(1)) {
                    Some(Ending::Signal(signal)) => format!("its agent was ended by signal {signal}"),
                    Some(Ending::Status(status)) => format!("its agent exited {status}"),
                    None => error.to_string(),
                };
                Unreachable::new(UnreachableKind::Lost, format!("`{host}`: lost while it ran `{module}`: {how}"))
            }
        }
    }
}

fn describe<'a>(
    target: &'a Target,
    transport: &Transport,
    become_: Option<&'a Become>,
    own: Option<&'a str>,
) -> Start<'a> {
    Start {
        host: &target.host,
        login: transport.user().map_or_else(|| "the login user".to_owned(), |user| format!("`{user}`")),
        become_,
        own,
        system_ssh: matches!(transport, Transport::OpenSsh(_)),
        connect: target.connect_timeout,
        silence: target.silence_timeout,
    }
}

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |elapsed| elapsed.as_secs_f64())
}

/// Gives a command its input and gathers what it writes to its end.
fn communicate(
    pipe: &mut dyn Pipe,
    stdin: Option<&[u8]>,
    early: Vec<u8>,
    deadline: Instant,
) -> io::Result<(i32, String, String)> {
    match pipe.write(stdin.unwrap_or_default(), deadline) {
        // A command may end without reading its input.
        Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
        Ok(()) | Err(_) => {}
    }
    pipe.finish(deadline).ok();
    let (mut stdout, mut stderr) = (early, Vec::new());
    let mut buffer = vec![0; 32 << 10];
    loop {
        let (kept, count) = match pipe.read(&mut buffer, deadline)? {
            Came::Output(count) => (&mut stdout, count),
            Came::Error(count) => (&mut stderr, count),
            Came::End => break,
        };
        let room = OUTPUT_LIMIT_BYTES.saturating_sub(kept.len());
        kept.extend_from_slice(&buffer[..count.min(room)]);
    }
    let rc = match pipe.ending(deadline) {
        Some(Ending::Status(status)) => status,
        Some(Ending::Signal(signal)) => -signal.parse().unwrap_or(1),
        None => return Err(io::ErrorKind::UnexpectedEof.into()),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((rc, text(&stdout), text(&stderr)))
}

/// The agent of one user.
struct Link {
    pipe: Box<dyn Pipe>,
    /// Read but not yet used.
    early: Vec<u8>,
    /// How many answers to what was sent ahead are still to come.
    owed: usize,
    /// Set when nothing that was sent ahead is to begin any more, and whether the agent has been told.
    stop: Option<Arc<AtomicBool>>,
    stopped: bool,
    statistics: Statistics,
}

enum Fault {
    /// The task is too large to send.
    Task(io::Error),
    Stream(io::Error),
    /// It answers, but the task does not end.
    Overdue,
}

/// [`wire::Request`] of a task that stays where it is.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Outgoing<'a> {
    Run(&'a Task),
    Then(&'a Task),
}

/// [`wire::Answer`], a result's type being whatever is made of it.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", bound = "T: DeserializeOwned")]
enum Incoming<T> {
    Done { id: u64, result: T },
    Passed { id: u64 },
    Want { sha256: String },
    Alive { line: String },
}

/// A stream that gives up when nothing comes for `silence`.
struct Patient<'a> {
    link: &'a mut Link,
    silence: Duration,
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let link = &mut *self.link;
        if !link.early.is_empty() {
            let count = link.early.len().min(buffer.len());
            buffer[..count].copy_from_slice(&link.early[..count]);
            link.early.drain(..count);
            return Ok(count);
        }
        let mut ahead = [0; READ_BYTES];
        loop {
            let small = buffer.len() < READ_BYTES;
            let read = link.pipe.read(if small { &mut ahead } else { &mut *buffer }, Instant::now() + self.silence)?;
            match read {
                Came::Output(count) if small => {
                    link.statistics.bytes_received += count as u64;
                    let used = count.min(buffer.len());
                    buffer[..used].copy_from_slice(&ahead[..used]);
                    link.early.extend_from_slice(&ahead[used..count]);
                    return Ok(used);
                }
                Came::Output(count) => {
                    link.statistics.bytes_received += count as u64;
                    return Ok(count);
                }
                // An agent writes nothing there; what a wrapper of it says is none of the wire's.
                Came::Error(_) => {}
                Came::End => return Ok(0),
            }
        }
    }
}

fn disorder(message: String) -> Fault {
    Fault::Stream(io::Error::new(io::ErrorKind::InvalidData, message))
}

impl Link {
    fn send(&mut self, frame: &[u8], silence: Duration) -> Result<(), Fault> {
        // The limit is for each piece: a large frame on a slow line takes longer in all.
        for piece in frame.chunks(wire::PIECE_BYTES) {
            self.pipe.write(piece, Instant::now() + silence).map_err(Fault::Stream)?;
        }
        self.statistics.frames_sent += 1;
        self.statistics.bytes_sent += frame.len() as u64;
        Ok(())
    }

    fn receive<T: DeserializeOwned>(&mut self, silence: Duration) -> Result<Incoming<T>, Fault> {
        let frame = wire::read_frame(&mut Patient { link: self, silence });
        let frame: Frame = frame
            .map_err(Fault::Stream)?
            .ok_or_else(|| Fault::Stream(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed")))?;
        self.statistics.frames_received += 1;
        frame.message().map_err(Fault::Stream)
    }

    fn run<T: DeserializeOwned>(
        &mut self,
        task: &Task,
        behind: (usize, &[u8]),
        contents: &Contents,
        alive: &dyn Fn(&str),
        silence: Duration,
    ) -> Result<T, Fault> {
        let mut frames = wire::message_frame(&Outgoing::Run(task)).map_err(Fault::Task)?;
        let (count, behind) = behind;
        frames.extend_from_slice(behind);
        self.send(&frames, silence)?;
        self.statistics.frames_sent += count as u64;
        self.owed += count;
        self.statistics.round_trips += 1;
        let result = self.answer(task.id, task.timeout_s, contents, alive, silence)?;
        result.ok_or_else(|| disorder(format!("task {} was passed over", task.id)))
    }

    /// Takes in what comes up to a task's answer: `None` when the task was not executed.
    fn answer<T: DeserializeOwned>(
        &mut self,
        id: u64,
        timeout_s: Option<f64>,
        contents: &Contents,
        alive: &dyn Fn(&str),
        silence: Duration,
    ) -> Result<Option<T>, Fault> {
        let limit = timeout_s.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 1e9)) + SLACK);
        loop {
            match self.receive(silence)? {
                Incoming::Done { id: done, result } if done == id => return Ok(Some(result)),
                Incoming::Done { id: done, .. } => {
                    return Err(disorder(format!("an answer to task {done} where one to {id} was due")));
                }
                Incoming::Passed { id: passed } => {
                    self.owed = self.owed.saturating_sub(1);
                    // Nobody waits for the answers of what a failure before them kept from running.
                    if passed == id {
                        return Ok(None);
                    }
                }
                Incoming::Want { sha256 } => self.supply(&sha256, contents, silence)?,
                Incoming::Alive { line } => {
                    self.statistics.signs_of_life += 1;
                    alive(&line);
                    let asked_to_stop = self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
                    if self.owed > 0 && !self.stopped && asked_to_stop {
                        self.stopped = true;
                        self.send(&wire::stop_frame(), silence)?;
                    }
                    if limit.is_some_and(|limit| Instant::now() > limit) {
                        return Err(Fault::Overdue);
                    }
                }
            }
        }
    }

    /// Sends content that the agent asked for.
    fn supply(&mut self, sha256: &str, contents: &Contents, silence: Duration) -> Result<(), Fault> {
        self.statistics.round_trips += 1;
        let missing = |message: String| wire::message_frame(&wire::Request::Missing { message }).map_err(Fault::Stream);
        let mut source = match contents.open(sha256) {
            Some(Ok(source)) => source,
            Some(Err(error)) => return self.send(&missing(error.to_string())?, silence),
            None => return self.send(&missing(format!("nothing here has the SHA-256 {sha256}"))?, silence),
        };
        let mut buffer = vec![0; wire::PIECE_BYTES];
        loop {
            let count = match source.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // In the midst of content there is no taking back but to say so.
                Err(error) => return self.send(&missing(format!("read it here: {error}"))?, silence),
            };
            let frame = wire::piece_frame(&buffer[..count]).map_err(Fault::Stream)?;
            self.send(&frame, silence)?;
            if count == 0 {
                return Ok(());
            }
        }
    }
}
