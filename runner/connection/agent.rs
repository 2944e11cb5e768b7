//! The agent: the programs this one carries, how one gets onto a host, and how it is started for a user.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use kubeon_modules::wire;

use super::escalate::{Become, READ_ORDERS, READ_ORDERS_RAW, READY, quoted};
use super::pipe::{Came, Ending, Order, Pipe, Text};
use super::{Transport, Unreachable, UnreachableKind};

/// One architecture's program.
struct Agent {
    /// As `uname -m` has it.
    architecture: &'static str,
    sha256: &'static str,
    size_bytes: usize,
    /// Compressed by gzip.
    packed: &'static [u8],
}

const AGENTS: &[Agent] = include!(concat!(env!("OUT_DIR"), "/agents.rs"));
/// What a host executes to find, receive and become the agent.
const START: &str = include_str!("start.sh");
/// Every architecture that `start.sh` knows.
const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];
/// Marks a line that `start.sh` or a shell of ours wrote.
const SAYS: &[u8] = b"\nkubeon: ";
/// What a login may print before the agent greets.
const NOISE_LIMIT_BYTES: usize = 1 << 20;
/// How often a host may ask for the agent: once a folder that it tries.
const UPLOADS: usize = 6;

/// Returns the carried agents: architecture and size in bytes, as it is and compressed.
pub fn agents() -> Vec<(&'static str, usize, usize)> {
    AGENTS.iter().map(|agent| (agent.architecture, agent.size_bytes, agent.packed.len())).collect()
}

fn agent_of(architecture: &str) -> Option<&'static Agent> {
    AGENTS.iter().find(|agent| agent.architecture == architecture)
}

/// How to start an agent.
pub(super) struct Start<'a> {
    pub host: &'a str,
    /// The login user, for messages.
    pub login: String,
    pub become_: Option<&'a Become>,
    /// A program on the host that is its own agent: this one, where the host is this machine.
    pub own: Option<&'a str>,
    pub connect: Duration,
    pub silence: Duration,
}

/// A started agent's streams, and what it has already written after its greeting.
pub(super) struct Started {
    pub pipe: Box<dyn Pipe>,
    pub early: Vec<u8>,
}

/// Why an attempt to start failed.
enum Fault {
    /// A stored agent does not run: receive it anew.
    Stale(Unreachable),
    /// The method wants a terminal.
    Terminal(Unreachable),
    Final(Unreachable),
}

impl From<Unreachable> for Fault {
    fn from(unreachable: Unreachable) -> Fault {
        Fault::Final(unreachable)
    }
}

impl Start<'_> {
    /// Starts the agent for a user, sent to the host first where it is not yet there.
    pub fn agent(&self, transport: &mut Transport) -> Result<Started, Unreachable> {
        let mut fresh = false;
        let mut terminal = self.become_.is_some_and(Become::needs_terminal);
        loop {
            match self.attempt(transport, fresh, terminal) {
                Ok(started) => return Ok(started),
                Err(Fault::Stale(_)) if !fresh => fresh = true,
                Err(Fault::Terminal(_)) if !terminal => terminal = true,
                Err(Fault::Stale(unreachable) | Fault::Terminal(unreachable) | Fault::Final(unreachable)) => {
                    return Err(unreachable);
                }
            }
        }
    }

    /// Starts a command as the other user, without an agent.
    pub fn shell(&self, transport: &mut Transport, command: &str) -> Result<Started, Unreachable> {
        let begin = |transport: &mut Transport, terminal| -> Result<Started, Fault> {
            let mut talk = Talk::begin(self, transport, terminal)?;
            while !talk.ready {
                match talk.next()? {
                    Heard::Ready => talk.ready = true,
                    Heard::Line(_) => {}
                    Heard::Question | Heard::Greeting | Heard::End => return Err(talk.ended(true)),
                }
            }
            talk.tell(&format!("exec /bin/sh -c \"$(printf %b '{}')\"\n", escaped(command)))?;
            // The newline that ends the line of ours.
            let early = talk.seen.split_off(talk.at + 1);
            Ok(Started { pipe: talk.pipe, early })
        };
        let started = match begin(transport, self.become_.is_some_and(Become::needs_terminal)) {
            Err(Fault::Terminal(_)) => begin(transport, true),
            other => other,
        };
        started.map_err(|fault| match fault {
            Fault::Stale(unreachable) | Fault::Terminal(unreachable) | Fault::Final(unreachable) => unreachable,
        })
    }

    fn attempt(&self, transport: &mut Transport, fresh: bool, terminal: bool) -> Result<Started, Fault> {
        let mut talk = Talk::begin(self, transport, terminal)?;
        talk.tell(&orders(fresh, self.own))?;
        let mut uploads = 0;
        loop {
            match talk.next()? {
                Heard::Greeting => {
                    let early = talk.seen.split_off(talk.at);
                    return Ok(Started { pipe: talk.pipe, early });
                }
                Heard::Line(line) => match line.split_once(' ').unwrap_or((&line, "")) {
                    ("need", what) if uploads < UPLOADS => {
                        uploads += 1;
                        talk.send_agent(what)?;
                    }
                    (word, rest) => return Err(Fault::Final(self.refused(word, rest))),
                },
                Heard::Ready => talk.ready = true,
                Heard::Question | Heard::End => return Err(talk.ended(fresh)),
            }
        }
    }

    fn error(&self, kind: UnreachableKind, message: impl std::fmt::Display) -> Unreachable {
        Unreachable { kind, message: format!("`{}`: {message}", self.host) }
    }

    /// What the host said about why it can't run an agent.
    fn refused(&self, word: &str, rest: &str) -> Unreachable {
        let carried = AGENTS.iter().map(|agent| agent.architecture).collect::<Vec<_>>().join(" and ");
        let message = match word {
            "system" => format!("the host runs {rest}; modules need Linux there"),
            "architecture" if ARCHITECTURES.contains(&rest) => {
                format!("this build carries no agent for {rest}, only for {carried}; build with `--release`")
            }
            "architecture" => format!("the host's architecture is {rest}; there are agents for {carried}"),
            "nowhere" => format!("the agent can be kept in no folder of the host: {rest}"),
            _ => format!("the host said what makes no sense: {word} {rest}"),
        };
        self.error(UnreachableKind::Agent, message)
    }
}

/// Writes a text in one line for `printf %b` in single quotes.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\'' | b'\\') || byte == b' ';
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("\\0{byte:03o}") }).collect()
}

/// Returns the line that a host's shell executes.
fn orders(fresh: bool, own: Option<&str>) -> String {
    let mut line = format!("fresh={}; own={}; ", u8::from(fresh), quoted(own.unwrap_or("")));
    for architecture in ARCHITECTURES {
        let (sha256, size, packed) =
            agent_of(architecture).map_or(("", 0, 0), |agent| (agent.sha256, agent.size_bytes, agent.packed.len()));
        line +=
            &format!("{architecture}_sha256={sha256}; {architecture}_size={size}; {architecture}_packed={packed}; ");
    }
    // One line, for `read` takes no more.
    line += &START.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    line.push('\n');
    line
}

/// What comes from a host before the agent's own frames.
enum Heard {
    Greeting,
    /// The other user's shell reads orders.
    Ready,
    /// A line of `start.sh`.
    Line(String),
    /// The method asks for a password.
    Question,
    End,
}

/// The conversation with a host's shell.
struct Talk<'a> {
    start: &'a Start<'a>,
    pipe: Box<dyn Pipe>,
    /// All that came; what lies before `at` is dealt with.
    seen: Vec<u8>,
    at: usize,
    prompt: String,
    /// Nothing more will ask for a password.
    ready: bool,
    deadline: Instant,
}

impl<'a> Talk<'a> {
    /// Opens a shell of the user to be.
    fn begin(start: &'a Start<'a>, transport: &mut Transport, terminal: bool) -> Result<Talk<'a>, Fault> {
        let deadline = Instant::now() + start.connect;
        let body = if terminal { READ_ORDERS_RAW } else { r#"IFS= read -r s; eval "$s""# };
        let pipe = transport.start(&Order { text: Text::Plain(body), terminal }, deadline)?;
        let prompt = format!("[kubeon-run {}] password: ", unguessable());
        let ready = start.become_.is_none();
        let mut talk = Talk { start, pipe, seen: Vec::new(), at: 0, prompt, ready, deadline };
        if terminal {
            // Input before the terminal is raw would be echoed and altered.
            match talk.next()? {
                Heard::Ready => {}
                _ => return Err(talk.ended(false)),
            }
        }
        if let Some(become_) = start.become_ {
            let body = if terminal { READ_ORDERS_RAW } else { READ_ORDERS };
            talk.tell(&format!("{}\n", become_.line(&talk.prompt, body)))?;
            if !become_.reads_nothing() || terminal {
                talk.authenticate(become_)?;
            }
        }
        Ok(talk)
    }

    /// Answers the question for a password, once: asking again means that it was wrong.
    fn authenticate(&mut self, become_: &Become) -> Result<(), Fault> {
        match self.next()? {
            Heard::Ready => {
                self.ready = true;
                return Ok(());
            }
            Heard::Question => {}
            Heard::Greeting | Heard::Line(_) | Heard::End => return Err(self.ended(false)),
        }
        let Some(password) = &become_.password else { return Err(self.ended(false)) };
        self.tell(&format!("{password}\n"))?;
        match self.next()? {
            Heard::Ready => {
                self.ready = true;
                Ok(())
            }
            Heard::Question => {
                self.seen.extend(b"\nincorrect password\n");
                Err(self.ended(false))
            }
            Heard::Greeting | Heard::Line(_) | Heard::End => Err(self.ended(false)),
        }
    }

    fn tell(&mut self, text: &str) -> Result<(), Fault> {
        match self.pipe.write(text.as_bytes(), self.deadline) {
            Ok(()) => Ok(()),
            // What it said before it closed its input tells more than the closing.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(self.lost(&error)),
        }
    }

    /// Returns the next thing the host says.
    fn next(&mut self) -> Result<Heard, Fault> {
        let mut buffer = vec![0; 16 << 10];
        loop {
            if let Some(heard) = self.parse() {
                return Ok(heard);
            }
            let question = !self.ready
                && self.start.become_.is_some_and(|become_| become_.asks(&self.seen[self.at..], &self.prompt));
            if question {
                self.at = self.seen.len();
                return Ok(Heard::Question);
            }
            if self.seen.len() > NOISE_LIMIT_BYTES {
                return Err(self.start.error(UnreachableKind::Agent, "the login prints without end").into());
            }
            match self.pipe.read(&mut buffer, self.deadline) {
                Ok(Came::Output(count) | Came::Error(count)) => self.seen.extend_from_slice(&buffer[..count]),
                Ok(Came::End) => return Ok(Heard::End),
                Err(error) => return Err(self.lost(&error)),
            }
        }
    }

    /// Finds the greeting or a line of ours in what has come, whichever is first.
    fn parse(&mut self) -> Option<Heard> {
        let rest = &self.seen[self.at..];
        let greeting = find(rest, wire::GREETING);
        let says = find(rest, SAYS).filter(|&at| greeting.is_none_or(|greeting| at < greeting));
        if let Some(at) = says {
            let line = at + SAYS.len();
            let end = line + find(&rest[line..], b"\n")?;
            let text = String::from_utf8_lossy(&rest[line..end]).trim_end().to_owned();
            // Its last newline may begin the next line of ours.
            self.at += end;
            return Some(if text == READY { Heard::Ready } else { Heard::Line(text) });
        }
        self.at += greeting? + wire::GREETING.len();
        Some(Heard::Greeting)
    }

    /// Sends the agent: `what` is the architecture, and `gzip` where the host can decompress it.
    fn send_agent(&mut self, what: &str) -> Result<(), Fault> {
        let (architecture, form) = what.split_once(' ').unwrap_or((what, "raw"));
        let agent = agent_of(architecture).ok_or_else(|| self.start.refused("architecture", architecture))?;
        let bytes = match form {
            "gzip" => agent.packed.to_vec(),
            _ => {
                let mut bytes = Vec::with_capacity(agent.size_bytes);
                flate2::read::GzDecoder::new(agent.packed)
                    .read_to_end(&mut bytes)
                    .map_err(|error| self.start.error(UnreachableKind::Agent, format!("unpack the agent: {error}")))?;
                bytes
            }
        };
        for piece in bytes.chunks(wire::PIECE_BYTES) {
            self.deadline = Instant::now() + self.start.silence.max(self.start.connect);
            if let Err(error) = self.pipe.write(piece, self.deadline) {
                return Err(self.lost(&error));
            }
        }
        self.deadline = Instant::now() + self.start.silence.max(self.start.connect);
        Ok(())
    }

    fn lost(&self, error: &io::Error) -> Fault {
        let said = self.said();
        let said = if said.is_empty() { String::new() } else { format!("; it said: {said}") };
        Fault::Final(if error.kind() == io::ErrorKind::TimedOut {
            let message = format!("the host does not answer while its agent is started{said}");
            self.start.error(UnreachableKind::Silent, message)
        } else {
            self.start.error(UnreachableKind::Lost, format!("start the agent: {error}{said}"))
        })
    }

    /// What came that is none of ours: a login's noise and the reasons of programs that failed.
    fn said(&self) -> String {
        let text = String::from_utf8_lossy(&self.seen).replace(&self.prompt, "").replace('\0', "");
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("kubeon: "));
        let lines: Vec<_> = lines.collect();
        lines[lines.len().saturating_sub(6)..].join(" / ")
    }

    /// Why the shell ended, or asked, where an agent was due.
    fn ended(&mut self, fresh: bool) -> Fault {
        let said = self.said();
        if let Some(become_) = self.start.become_
            && !self.ready
        {
            let refusal = self.start.error(UnreachableKind::Become, become_.refusal(&said, &self.start.login));
            return if refusal.message.contains("insists on a terminal") {
                Fault::Terminal(refusal)
            } else {
                Fault::Final(refusal)
            };
        }
        let how = match self.pipe.ending(Instant::now() + Duration::from_secs(1)) {
            Some(Ending::Status(status)) => format!("exited {status}"),
            Some(Ending::Signal(signal)) => format!("was ended by signal {signal}"),
            None => "ended".to_owned(),
        };
        let said = if said.is_empty() { "it said nothing".to_owned() } else { format!("it said: {said}") };
        let message = format!("the shell of {} {how} before its agent ran; {said}", self.start.login);
        let unreachable = self.start.error(UnreachableKind::Agent, message);
        if fresh { Fault::Final(unreachable) } else { Fault::Stale(unreachable) }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// Returns a word that nothing on a host prints by chance.
fn unguessable() -> String {
    let mut bytes = [0; 8];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    if read.is_err() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        bytes = (now.as_nanos() as u64 ^ u64::from(std::process::id()) << 32).to_be_bytes();
    }
    super::contents::hexadecimal(&bytes)
}
