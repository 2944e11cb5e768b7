//! The agent: the programs this one carries, how one gets onto a host, and how it is started for a user.

use std::io::{self, Read};
use std::time::Duration;

use super::escalate::{Become, quoted};
use super::pipe::Pipe;
use super::talk::{Fault, Heard, Talk};
use super::{Transport, Unreachable, UnreachableKind};

/// One architecture's program.
pub(super) struct Agent {
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
/// How often a host may ask for the agent: once a folder that it tries.
const UPLOADS: usize = 6;

/// Returns the carried agents: architecture and size in bytes, as it is and compressed.
pub fn agents() -> Vec<(&'static str, usize, usize)> {
    AGENTS.iter().map(|agent| (agent.architecture, agent.size_bytes, agent.packed.len())).collect()
}

pub(super) fn agent_of(architecture: &str) -> Option<&'static Agent> {
    AGENTS.iter().find(|agent| agent.architecture == architecture)
}

impl Agent {
    /// Returns what to send: compressed where the host can decompress.
    pub fn bytes(&self, compressed: bool) -> io::Result<Vec<u8>> {
        if compressed {
            return Ok(self.packed.to_vec());
        }
        let mut bytes = Vec::with_capacity(self.size_bytes);
        flate2::read::GzDecoder::new(self.packed).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// How to start an agent.
pub(super) struct Start<'a> {
    pub host: &'a str,
    /// The login user, for messages.
    pub login: String,
    pub become_: Option<&'a Become>,
    /// A program on the host that is its own agent: this one, where the host is this machine.
    pub own: Option<&'a str>,
    /// The system's `ssh` stands between, and its failures come as the program's.
    pub system_ssh: bool,
    pub connect: Duration,
    pub silence: Duration,
}

/// A started agent's streams, and what it has already written after its greeting.
pub(super) struct Started {
    pub pipe: Box<dyn Pipe>,
    pub early: Vec<u8>,
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
                Err(fault) => return Err(fault.unreachable()),
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
        started.map_err(Fault::unreachable)
    }

    fn attempt(&self, transport: &mut Transport, fresh: bool, terminal: bool) -> Result<Started, Fault> {
        let mut talk = Talk::begin(self, transport, terminal)?;
        talk.tell(&orders(&talk.token, fresh, self.own))?;
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

    pub fn error(&self, kind: UnreachableKind, message: impl std::fmt::Display) -> Unreachable {
        Unreachable { kind, message: format!("`{}`: {message}", self.host) }
    }

    /// What the host said about why it can't run an agent.
    pub fn refused(&self, word: &str, rest: &str) -> Unreachable {
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
fn orders(token: &str, fresh: bool, own: Option<&str>) -> String {
    let mut line = format!("token={token}; fresh={}; own={}; ", u8::from(fresh), quoted(own.unwrap_or("")));
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
