//! The conversation with a host's shell, from login to the agent's greeting.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use kubeon_modules::wire;

use super::agent::{Start, agent_of};
use super::escalate::{ASKED, Become, READY, read_orders};
use super::pipe::{Came, Ending, Order, Pipe, Text};
use super::{Transport, Unreachable, UnreachableKind, contents, openssh};

/// What a login may print before the agent greets.
const NOISE_LIMIT_BYTES: usize = 1 << 20;
/// How long the end of a program may take to be told, once its output has ended.
const ENDING: Duration = Duration::from_secs(1);

/// Why an attempt to start failed.
pub(super) enum Fault {
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

impl Fault {
    pub fn unreachable(self) -> Unreachable {
        match self {
            Fault::Stale(unreachable) | Fault::Terminal(unreachable) | Fault::Final(unreachable) => unreachable,
        }
    }
}

/// What comes from a host before the agent's own frames.
pub(super) enum Heard {
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
pub(super) struct Talk<'a> {
    start: &'a Start<'a>,
    pub pipe: Box<dyn Pipe>,
    /// All that came; what lies before `at` is dealt with.
    pub seen: Vec<u8>,
    pub at: usize,
    /// Marks the lines that `start.sh` or a shell of ours writes: what else a login prints is none of them.
    pub token: String,
    prompt: String,
    /// The login user's shell is there, and has asked to become the other user.
    asked: bool,
    /// Nothing more will ask for a password.
    pub ready: bool,
    deadline: Instant,
}

impl<'a> Talk<'a> {
    /// Opens a shell of the user to be.
    pub fn begin(start: &'a Start<'a>, transport: &mut Transport, terminal: bool) -> Result<Talk<'a>, Fault> {
        let deadline = Instant::now() + start.silence.max(start.connect);
        let token = unguessable();
        let orders = read_orders(&token, terminal);
        let body = if terminal { orders.as_str() } else { r#"IFS= read -r s; eval "$s""# };
        let pipe = transport.start(&Order { text: Text::Plain(body), terminal }, deadline)?;
        let prompt = format!("[kubeon-run {token}] password: ");
        let ready = start.become_.is_none();
        let mut talk = Talk { start, pipe, seen: Vec::new(), at: 0, token, prompt, asked: false, ready, deadline };
        if terminal {
            // Input before the terminal is raw would be echoed and altered.
            match talk.next()? {
                Heard::Ready => {}
                _ => return Err(talk.ended(false)),
            }
        }
        if let Some(become_) = start.become_ {
            talk.tell(&format!("{}\n", become_.line(&talk.token, &talk.prompt, &orders)))?;
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

    pub fn tell(&mut self, text: &str) -> Result<(), Fault> {
        match self.pipe.write(text.as_bytes(), self.deadline) {
            Ok(()) => Ok(()),
            // What it said before it closed its input tells more than the closing.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(self.lost(&error)),
        }
    }

    /// Returns the next thing the host says.
    pub fn next(&mut self) -> Result<Heard, Fault> {
        let mut buffer = vec![0; 16 << 10];
        loop {
            if let Some(heard) = self.parse() {
                return Ok(heard);
            }
            let rest = &self.seen[self.at..];
            let begun = rest.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
            let is_ours = begun.starts_with(self.mark().trim().as_bytes());
            let question = |become_: &Become| become_.asks(rest, &self.prompt);
            if !self.ready && !is_ours && self.start.become_.is_some_and(question) {
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

    fn mark(&self) -> String {
        format!("\nkubeon-{}: ", self.token)
    }

    /// Finds the greeting or a line of ours in what has come, whichever is first.
    fn parse(&mut self) -> Option<Heard> {
        loop {
            match self.parse_one()? {
                Heard::Line(text) if text == ASKED => self.asked = true,
                heard => return Some(heard),
            }
        }
    }

    fn parse_one(&mut self) -> Option<Heard> {
        let rest = &self.seen[self.at..];
        let greeting = find(rest, wire::GREETING);
        let mark = self.mark();
        let says = find(rest, mark.as_bytes()).filter(|&at| greeting.is_none_or(|greeting| at < greeting));
        if let Some(at) = says {
            let line = at + mark.len();
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
    pub fn send_agent(&mut self, what: &str) -> Result<(), Fault> {
        let (architecture, form) = what.split_once(' ').unwrap_or((what, "raw"));
        let agent = agent_of(architecture).ok_or_else(|| self.start.refused("architecture", architecture))?;
        let bytes = agent
            .bytes(form == "gzip")
            .map_err(|error| self.start.error(UnreachableKind::Agent, format!("unpack the agent: {error}")))?;
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
        let mark = self.mark();
        let text = String::from_utf8_lossy(&self.seen).replace(&self.prompt, "").replace('\0', "");
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(mark.trim_start()));
        let lines: Vec<_> = lines.collect();
        lines[lines.len().saturating_sub(6)..].join(" / ")
    }

    /// Why the shell ended, or asked, where an agent was due.
    pub fn ended(&mut self, fresh: bool) -> Fault {
        let said = self.said();
        let mut ending = None;
        if self.start.system_ssh {
            ending = self.pipe.ending(Instant::now() + ENDING);
            if ending == Some(Ending::Status(openssh::OWN_FAILURE)) {
                let kind = openssh::kind_of_failure(&said);
                return Fault::Final(self.start.error(kind, format!("the system's `ssh` failed: {said}")));
            }
        }
        if let Some(become_) = self.start.become_
            && self.asked
            && !self.ready
        {
            let refusal = self.start.error(UnreachableKind::Become, become_.refusal(&said, &self.start.login));
            return if refusal.message.contains("insists on a terminal") {
                Fault::Terminal(refusal)
            } else {
                Fault::Final(refusal)
            };
        }
        let how = match ending.or_else(|| self.pipe.ending(Instant::now() + ENDING)) {
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
    contents::hexadecimal(&bytes)
}
