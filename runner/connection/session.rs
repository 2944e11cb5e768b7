//! One host's connection: an agent a user, requests out and answers in.

use std::collections::HashMap;
use std::io;
use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kubeon_modules::wire::{self, Task};
use kubeon_modules::{Map, Output};
use serde::de::DeserializeOwned;

use super::agent::{Start, Started};
use super::link::{Answered, Fault, Link, Outgoing, Plans};
use super::pipe::{Came, Ending, Order, Pipe, Text};
use super::{Become, Contents, Target, Transport, Unreachable, UnreachableKind};

/// How long an agent may take to end that makes room for another.
const PARTING: Duration = Duration::from_secs(2);
/// How much of a raw command's output is kept.
const OUTPUT_LIMIT_BYTES: usize = 32 << 20;
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

/// The most tasks that are planned ahead at a time.
const MOST_PLANS: usize = 32;
/// By how much fewer they become when the task in front changes something: the next ones are likely to, too.
const FEWER_PLANS: usize = 8;

/// A connection to one host, used by one thread at a time.
pub struct Connection {
    target: Target,
    transport: Transport,
    agents: HashMap<Option<Become>, Link>,
    /// Set when the user asks to stop.
    stop: Option<Arc<AtomicBool>>,
    /// How many tasks may be planned ahead at a time.
    most_plans: usize,
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
        Ok(Connection {
            target,
            transport,
            agents,
            stop: None,
            most_plans: MOST_PLANS,
            statistics: Statistics::default(),
        })
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
        let answered = self.run_as(become_, task, (0, &[]), Plans::default(), contents, alive)?;
        Ok(answered.result)
    }

    /// As [`Connection::run`], for a result that is read as another type. What is `behind`, so many
    /// frames of [`Ahead`], goes out with the task, to be executed after it for as long as nothing fails;
    /// [`Connection::answer`] gives the result of each, in their order. `plans` go out with it, too, and
    /// [`Connection::foreseen`] gives what came of each.
    ///
    /// # Errors
    /// As there.
    pub fn run_as<T: DeserializeOwned>(
        &mut self,
        become_: Option<&Become>,
        task: &Task,
        behind: (usize, &[u8]),
        plans: Plans,
        contents: &Contents,
        alive: &dyn Fn(&str),
    ) -> Result<Answered<T>, Unreachable> {
        let become_ = self.other_user(become_).cloned();
        let link = match self.agents.remove(&become_) {
            Some(link) => link,
            None => self.start(become_.as_ref())?,
        };
        let silence = self.target.silence_timeout;
        self.use_link(become_, link, &task.module, |link| link.run(task, behind, plans, contents, alive, silence))
    }

    /// Returns the result of a task that this user's agent has just planned ahead, as one that wants nothing; `None` where
    /// it was not, or where something was changed since: `changes` says how often that has been so far.
    ///
    /// # Errors
    /// As [`Connection::run`].
    pub fn foreseen<T: DeserializeOwned>(
        &mut self,
        become_: Option<&Become>,
        task: &Task,
        changes: u64,
        alive: &dyn Fn(&str),
    ) -> Result<Option<Answered<T>>, Unreachable> {
        let become_ = self.other_user(become_).cloned();
        let Some(link) = self.agents.remove(&become_) else { return Ok(None) };
        let silence = self.target.silence_timeout;
        self.use_link(become_, link, &task.module, |link| link.foreseen(task, changes, alive, silence))
    }

    /// Returns how many tasks it pays to plan ahead: many where tasks find all done, none where they have much to do.
    pub fn most_plans(&self) -> usize {
        self.most_plans
    }

    /// Notes whether a task that could have been planned ahead found all done.
    pub fn note_plan(&mut self, looked: bool) {
        self.most_plans =
            if looked { (2 * self.most_plans).clamp(2, MOST_PLANS) } else { self.most_plans / FEWER_PLANS };
    }

    /// See [`Link::keep_planned`].
    pub fn keep_planned(&mut self, become_: Option<&Become>, before: u64) {
        let become_ = self.other_user(become_).cloned();
        if let Some(link) = self.agents.get_mut(&become_) {
            link.keep_planned(before);
        }
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
    ) -> Result<Option<Answered<T>>, Unreachable> {
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
            link.send(&wire::stop_frame(), silence);
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
        if std::mem::take(&mut link.wasted) > 0 {
            self.most_plans /= 2;
        }
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

    /// Returns the name of its host in the inventory.
    pub fn host(&self) -> &str {
        &self.target.host
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
        Ok(Link::new(pipe, early, self.stop.clone()))
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
