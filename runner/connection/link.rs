//! The agent of one user: requests out, answers in, and what was asked before its turn.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kubeon_modules::wire::{self, Frame, Task};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Contents;
use super::pipe::{Came, Pipe};
use super::session::Statistics;

/// What a task may take over its own limit, which its host enforces, before the host counts as lost.
const SLACK: Duration = Duration::from_secs(30);
/// How much is read at a time of what an agent says: most answers come whole.
const READ_BYTES: usize = 4 << 10;
/// How long an agent that can't be written to any more may take to say what it has done.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How old what an agent planned ahead may be when its turn comes.
const FRESH: Duration = Duration::from_secs(5);

/// A task's result, and whether nothing at all was applied for it.
pub struct Answered<T> {
    pub result: T,
    pub looked: bool,
    /// How long after the latest task that was executed it was planned, where it was only that.
    after: Duration,
}

/// Tasks that the agent is to plan, and not to apply, once the one that they travel with is done.
#[derive(Default)]
pub struct Plans {
    pub tasks: Vec<Task>,
    /// How many tasks had changed something somewhere when these were sent.
    pub changes: u64,
}

/// A task that was planned ahead, or is about to be.
struct Planned {
    task: Task,
    /// Only as many tasks may have changed something when its turn comes.
    changes: u64,
    /// When the task was done that it was sent behind.
    since: Instant,
    /// The answer, once it came.
    answer: Option<Frame>,
}

/// The agent of one user.
pub(super) struct Link {
    pub pipe: Box<dyn Pipe>,
    /// Read but not yet used.
    pub early: Vec<u8>,
    /// How many answers to what was sent ahead are still to come.
    pub owed: usize,
    /// Set when nothing that was sent ahead is to begin any more, and whether the agent has been told.
    pub stop: Option<Arc<AtomicBool>>,
    pub stopped: bool,
    /// In the order in which they were sent.
    planned: VecDeque<Planned>,
    /// How many of these were not asked for.
    pub wasted: usize,
    /// Why nothing can be sent any more. What the agent has answered by then is taken in all the same.
    pub(super) broken: Option<io::Error>,
    pub statistics: Statistics,
}

/// Why an answer did not come.
pub(super) enum Fault {
    /// The task is too large to send.
    Task(io::Error),
    Stream(io::Error),
    /// It answers, but the task does not end.
    Overdue,
}

/// [`wire::Request`] of a task that stays where it is.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outgoing<'a> {
    Run(&'a Task),
    Then(&'a Task),
    Plan(&'a Task),
}

/// [`wire::Answer`], a result's type being whatever is made of it.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", bound = "T: DeserializeOwned")]
enum Incoming<T> {
    Done {
        id: u64,
        result: T,
        #[serde(default)]
        looked: bool,
        #[serde(default)]
        after_ms: u64,
    },
    Passed {
        id: u64,
    },
    Want {
        sha256: String,
        #[serde(default)]
        has: String,
    },
    Alive {
        line: String,
        at_ms: u64,
    },
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

fn answered<T>(result: T, looked: bool, after_ms: u64) -> Answered<T> {
    Answered { result, looked, after: Duration::from_millis(after_ms) }
}

fn disorder(message: String) -> Fault {
    Fault::Stream(io::Error::new(io::ErrorKind::InvalidData, message))
}

impl Link {
    pub fn new(pipe: Box<dyn Pipe>, early: Vec<u8>, stop: Option<Arc<AtomicBool>>) -> Link {
        let (planned, statistics) = (VecDeque::new(), Statistics::default());
        Link { pipe, early, owed: 0, stop, stopped: false, planned, wasted: 0, broken: None, statistics }
    }

    /// Sends a frame. Where that fails, it is told by what is next received in vain.
    pub fn send(&mut self, frame: &[u8], silence: Duration) {
        // The limit is for each piece: a large frame on a slow line takes longer in all.
        for piece in frame.chunks(wire::PIECE_BYTES) {
            if self.broken.is_none() {
                self.broken = self.pipe.write(piece, Instant::now() + silence).err();
            }
        }
        if self.broken.is_none() {
            self.statistics.frames_sent += 1;
            self.statistics.bytes_sent += frame.len() as u64;
        }
    }

    fn receive(&mut self, silence: Duration) -> Result<Frame, Fault> {
        let silence = match &self.broken {
            Some(error) if error.kind() == io::ErrorKind::TimedOut => Duration::ZERO,
            Some(_) => silence.min(LAST_WORDS),
            None => silence,
        };
        let closed = || io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed");
        let frame = wire::read_frame(&mut Patient { link: self, silence });
        let frame = frame
            .and_then(|frame| frame.ok_or_else(closed))
            .map_err(|error| Fault::Stream(self.broken.take().unwrap_or(error)))?;
        self.statistics.frames_received += 1;
        Ok(frame)
    }

    /// Sends a task and takes in its answer. `behind` are frames of tasks to be executed after it, `plans` are to be
    /// planned after it.
    pub fn run<T: DeserializeOwned>(
        &mut self,
        task: &Task,
        behind: (usize, &[u8]),
        plans: Plans,
        contents: &Contents,
        alive: &dyn Fn(&str),
        silence: Duration,
    ) -> Result<Answered<T>, Fault> {
        let mut frames = Vec::new();
        if self.planned.iter().any(|planned| planned.answer.is_none()) {
            // Nobody will ask for what is still to be planned: this may change what it would find.
            frames.extend(wire::stop_frame());
            self.statistics.frames_sent += 1;
        }
        frames.extend(wire::message_frame(&Outgoing::Run(task)).map_err(Fault::Task)?);
        let (count, behind) = behind;
        frames.extend_from_slice(behind);
        let sent = plans.tasks.len();
        for task in plans.tasks {
            frames.extend(wire::message_frame(&Outgoing::Plan(&task)).map_err(Fault::Task)?);
            self.planned.push_back(Planned { task, changes: plans.changes, since: Instant::now(), answer: None });
        }
        self.send(&frames, silence);
        self.statistics.frames_sent += (count + sent) as u64;
        self.owed += count;
        self.statistics.round_trips += 1;
        let result = self.answer(task.id, task.timeout_s, contents, alive, silence)?;
        // What was sent before this and was not asked for by now never will be.
        let before = self.planned.len() - sent;
        self.planned.drain(..before);
        self.planned.iter_mut().for_each(|planned| planned.since = Instant::now());
        self.wasted = before;
        result.ok_or_else(|| disorder(format!("task {} was passed over", task.id)))
    }

    /// Lets what is being planned behind the latest task stand although that one changed something: it is planned
    /// after that change, and no other one was made since.
    pub fn keep_planned(&mut self, before: u64) {
        self.planned.iter_mut().filter(|planned| planned.changes == before).for_each(|planned| planned.changes += 1);
    }

    /// Returns the result of a task that was planned ahead and wants nothing, where nothing was changed since by
    /// anybody: `changes` says how many tasks have changed something by now.
    pub fn foreseen<T: DeserializeOwned>(
        &mut self,
        task: &Task,
        changes: u64,
        alive: &dyn Fn(&str),
        silence: Duration,
    ) -> Result<Option<Answered<T>>, Fault> {
        let asked = |planned: &Planned| planned.changes == changes && planned.task.asks_the_same(task);
        let Some(at) = self.planned.iter().position(asked) else { return Ok(None) };
        let Planned { task: Task { id, timeout_s, .. }, since, .. } = self.planned[at];
        let answer = match self.planned[at].answer.take() {
            Some(frame) => match frame.message().map_err(Fault::Stream)? {
                Incoming::Done { result, looked, after_ms, .. } => Some(answered(result, looked, after_ms)),
                Incoming::Passed { .. } | Incoming::Want { .. } | Incoming::Alive { .. } => None,
            },
            None => self.answer(id, timeout_s, &Contents::default(), alive, silence)?,
        };
        if let Some(at) = self.place_of(id) {
            self.planned.remove(at);
        }
        Ok(answer.filter(|answer| since.elapsed().saturating_sub(answer.after) < FRESH))
    }

    fn place_of(&self, id: u64) -> Option<usize> {
        self.planned.iter().position(|planned| planned.task.id == id)
    }

    /// Keeps the answer of a task that was planned ahead until its turn; returns whether it is one of those.
    fn keep(&mut self, id: u64, frame: Frame) -> bool {
        let Some(at) = self.place_of(id) else { return false };
        self.planned[at].answer = Some(frame);
        true
    }

    /// Takes in what comes up to a task's answer: `None` when the task was not executed.
    pub fn answer<T: DeserializeOwned>(
        &mut self,
        id: u64,
        timeout_s: Option<f64>,
        contents: &Contents,
        alive: &dyn Fn(&str),
        silence: Duration,
    ) -> Result<Option<Answered<T>>, Fault> {
        let limit = timeout_s.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 1e9)) + SLACK);
        loop {
            let frame = self.receive(silence)?;
            match frame.message().map_err(Fault::Stream)? {
                Incoming::Done { id: done, result, looked, after_ms } if done == id => {
                    return Ok(Some(answered(result, looked, after_ms)));
                }
                Incoming::Done::<T> { id: done, .. } => {
                    if !self.keep(done, frame) {
                        return Err(disorder(format!("an answer to task {done} where one to {id} was due")));
                    }
                }
                Incoming::Passed { id: passed } => {
                    if !self.keep(passed, frame) {
                        self.owed = self.owed.saturating_sub(1);
                    }
                    // Nobody waits for the answers of what a failure before them kept from running.
                    if passed == id {
                        return Ok(None);
                    }
                }
                Incoming::Want { sha256, has } => self.supply(&sha256, &has, contents, silence)?,
                Incoming::Alive { line, at_ms } => {
                    self.statistics.signs_of_life += 1;
                    alive(&line);
                    self.answer_life(at_ms, silence);
                    if limit.is_some_and(|limit| Instant::now() > limit) {
                        return Err(Fault::Overdue);
                    }
                }
            }
        }
    }

    /// Lets the agent go on with what was sent ahead, or not any more.
    fn answer_life(&mut self, at_ms: u64, silence: Duration) {
        if self.owed == 0 || self.stopped {
            return;
        }
        let asked_to_stop = self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        self.stopped = asked_to_stop;
        self.send(&if asked_to_stop { wire::stop_frame() } else { wire::here_frame(at_ms) }, silence);
    }
}
