//! SSH in this process, by libssh2. Nothing blocks inside the library: every wait is a poll(2) of ours with a limit.

mod auth;
mod keeper;
mod key;
mod known_hosts;
mod patience;

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use ssh2::{BlockDirections, ErrorCode};

use super::pipe::{Came, Ending, Order, Pipe, Text, left_ms};
use super::route::{Route, Strict};
use super::{Target, Unreachable, UnreachableKind};
use known_hosts::Known;

/// "Would block". Source: `LIBSSH2_ERROR_EAGAIN` of libssh2.
const AGAIN: i32 = -37;
/// How often a host that says nothing is asked whether it lives, at the least.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
/// How long ending a session politely may take.
const PARTING_MS: u32 = 200;

/// Why there is no session.
pub(super) enum Refusal {
    /// The system's `ssh` may do better, for this reason.
    OpenSsh(String),
    Final(Unreachable),
}

impl From<Unreachable> for Refusal {
    fn from(unreachable: Unreachable) -> Refusal {
        Refusal::Final(unreachable)
    }
}

/// A session that is logged in.
pub(super) struct Session {
    host: String,
    user: String,
    session: ssh2::Session,
    socket: Arc<Socket>,
}

/// The session's connection, on which all waiting happens.
struct Socket {
    stream: TcpStream,
    /// Acknowledge at once: while connecting, each side waits for the other's small packets.
    quick: AtomicBool,
    /// Held during every operation, so that the keeper never breaks into one.
    busy: Mutex<()>,
    /// How long the host may say nothing at all.
    silence: Duration,
    kept: Mutex<Option<keeper::Kept>>,
}

impl Session {
    /// Connects, checks the host's key and logs in.
    pub fn open(target: &Target, route: &Route) -> Result<Session, Refusal> {
        let deadline = Instant::now() + route.connect_timeout;
        let place = format!("`{}` ({}:{})", target.host, route.address, route.port);
        let stream = connect(target, route, deadline)?;
        let fault = |kind, message: String| Unreachable::new(kind, format!("{place}: {message}"));
        let broken = |error: &dyn std::fmt::Display| fault(UnreachableKind::Connect, format!("start SSH: {error}"));

        let mut session = ssh2::Session::new().map_err(|error| broken(&error))?;
        session.set_tcp_stream(stream.try_clone().map_err(|error| broken(&error))?);
        session.set_blocking(false);
        let socket = Arc::new(Socket {
            stream,
            quick: AtomicBool::new(true),
            busy: Mutex::default(),
            silence: target.silence_timeout,
            kept: Mutex::default(),
        });
        let known = Known::read(&route.known_hosts, &route.address, route.port, route.key_name.as_deref());
        if route.strict != Strict::No && known.has_authority() {
            return Err(Refusal::OpenSsh("an authority of host keys".to_owned()));
        }
        if let Some(order) = known.preferred(&session) {
            session.method_pref(ssh2::MethodType::HostKey, &order).map_err(|error| broken(&error))?;
        }
        socket
            .wait(&session.clone(), deadline, || session.handshake())
            .map_err(|error| broken(&explain(&error, route.connect_timeout)))?;
        let Some((key, _)) = session.host_key() else {
            return Err(fault(UnreachableKind::HostKey, "the host showed no key".to_owned()).into());
        };
        match route.strict {
            Strict::No => {}
            strict @ (Strict::Yes | Strict::AcceptNew) => known
                .check(key, strict == Strict::AcceptNew)
                .map_err(|message| fault(UnreachableKind::HostKey, message))?,
        }
        let password = target.password.as_deref();
        let login = auth::Login::new(&session, &socket, route, password, deadline);
        login.log_in().map_err(|refused| match refused.elsewhere {
            Some(why) => Refusal::OpenSsh(why),
            None => fault(UnreachableKind::Authentication, refused.message).into(),
        })?;
        // libssh2 counts whole seconds: a question that comes a moment early would be left out.
        session.set_keepalive(true, (socket.ask_every().as_secs() as u32).saturating_sub(1).max(1));
        Ok(Session { host: target.host.clone(), user: route.user.clone(), session, socket })
    }

    pub fn user(&self) -> &str {
        &self.user
    }

    /// Starts a program on the host.
    pub fn start(&self, order: &Order<'_>, deadline: Instant) -> Result<Box<dyn Pipe>, Unreachable> {
        let session = &self.session;
        let _busy = self.socket.busy();
        let limit = deadline.saturating_duration_since(Instant::now());
        let fault = |error: ssh2::Error| {
            let lost = format!("`{}`: open a channel: {}", self.host, explain(&error, limit));
            Unreachable::new(UnreachableKind::Lost, lost)
        };
        self.socket.quick.store(true, Ordering::Relaxed);
        let mut channel = self.socket.wait(session, deadline, || session.channel_session()).map_err(fault)?;
        if order.terminal {
            self.socket.wait(session, deadline, || channel.request_pty("dumb", None, None)).map_err(fault)?;
        }
        let line = order.text.line();
        // The host's consent is not waited for: what the program is told follows at once, and saves a round trip.
        let started = self.socket.until(session, deadline, BlockDirections::Inbound, || channel.exec(&line));
        let starting = started.map_err(fault)?.is_none().then_some(line);
        if matches!(order.text, Text::Plain(_)) {
            keeper::watch(&self.socket, session, &channel);
        }
        Ok(Box::new(SshPipe { session: session.clone(), socket: self.socket.clone(), channel, starting }))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _busy = self.socket.busy();
        self.session.set_blocking(true);
        self.session.set_timeout(PARTING_MS);
        self.session.disconnect(None, "done", None).ok();
        // Nothing that is freed later can wait for a host that is gone.
        self.socket.stream.shutdown(std::net::Shutdown::Both).ok();
    }
}

/// Says why an SSH operation failed; `limit` is how long it could take.
fn explain(error: &ssh2::Error, limit: Duration) -> String {
    match error.code() {
        ErrorCode::Session(AGAIN) => format!("no answer within {} s", (limit.as_secs_f64() * 10.0).round() / 10.0),
        ErrorCode::Session(_) | ErrorCode::SFTP(_) => error.message().to_owned(),
    }
}

/// Opens the connection, trying each address of the host.
fn connect(target: &Target, route: &Route, deadline: Instant) -> Result<TcpStream, Unreachable> {
    let addresses = resolve(target, route, deadline)?;
    let mut failures = Vec::new();
    for (nth, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        // A dead address must not use up what the others need.
        let share = left / u32::try_from(addresses.len() - nth).unwrap_or(1);
        if share.is_zero() {
            break;
        }
        let connected = TcpStream::connect_timeout(address, share).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            keep_alive(&stream)?;
            Ok(stream)
        });
        match connected {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => failures.push(format!("{address}: no answer")),
            Err(error) => failures.push(format!("{address}: {error}")),
        }
    }
    let message = format!("connect to `{}`: {}", target.host, failures.join(", "));
    Err(Unreachable::new(UnreachableKind::Connect, message))
}

/// Looks a name up. The system's resolver knows no limit, so it gets a thread that may be left behind.
fn resolve(target: &Target, route: &Route, deadline: Instant) -> Result<Vec<SocketAddr>, Unreachable> {
    let fault = |message: String| {
        let message = format!("look up `{}` of `{}`: {message}", route.address, target.host);
        Unreachable::new(UnreachableKind::Resolve, message)
    };
    let (name, port) = (route.address.trim_start_matches('[').trim_end_matches(']').to_owned(), route.port);
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let (sender, found) = mpsc::channel();
    thread::spawn(move || sender.send((name.as_str(), port).to_socket_addrs().map(Vec::from_iter)));
    match found.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(Ok(addresses)) if addresses.is_empty() => Err(fault("it has no address".to_owned())),
        Ok(Ok(addresses)) => Ok(addresses),
        Ok(Err(error)) => Err(fault(error.to_string())),
        Err(_) => Err(fault("no answer".to_owned())),
    }
}

/// Lets the system find out that the other end is gone while nothing is said, and keeps address translation awake.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    set_option(stream, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1_i32)?;
    set_option(stream, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 30_i32)?;
    set_option(stream, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 10_i32)?;
    set_option(stream, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 6_i32)
}

/// Sets an option whose value has the type that the system wants for it.
fn set_option<T>(stream: &TcpStream, level: i32, name: i32, value: T) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of `value`, which outlives the call.
    let rc = unsafe {
        let pointer = (&raw const value).cast();
        libc::setsockopt(stream.as_raw_fd(), level, name, pointer, size_of::<T>() as libc::socklen_t)
    };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Socket {
    fn busy(&self) -> MutexGuard<'_, ()> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the host for lost: what it has not received yet it never gets, be the line mended ever so soon. Otherwise
    /// the system would go on sending it a task that was given up.
    fn give_up(&self) {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        set_option(&self.stream, libc::SOL_SOCKET, libc::SO_LINGER, linger).ok();
    }

    /// How often a host that says nothing is asked: several times before it counts as lost.
    fn ask_every(&self) -> Duration {
        (self.silence / 3).clamp(Duration::from_secs(2), KEEPALIVE_EVERY)
    }

    /// Waits until the session's blocked operation can go on.
    fn ready(&self, session: &ssh2::Session, deadline: Instant) -> io::Result<()> {
        let events = match session.block_directions() {
            BlockDirections::Outbound => libc::POLLOUT,
            BlockDirections::Both => libc::POLLIN | libc::POLLOUT,
            BlockDirections::Inbound | BlockDirections::None => libc::POLLIN,
        };
        let mut entry = libc::pollfd { fd: self.stream.as_raw_fd(), events, revents: 0 };
        // SAFETY: the pointer is that of one entry.
        let rc = unsafe { libc::poll(&raw mut entry, 1, left_ms(deadline)?) };
        if self.quick.load(Ordering::Relaxed) {
            // The kernel forgets it after a few packets.
            set_option(&self.stream, libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1_i32)?;
        }
        match rc {
            0 => Err(io::ErrorKind::TimedOut.into()),
            rc if rc > 0 => Ok(()),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                error => Err(error),
            },
        }
    }

    /// Repeats an operation until it is done; past the deadline its error is [`AGAIN`].
    fn wait<T>(
        &self,
        session: &ssh2::Session,
        deadline: Instant,
        mut operation: impl FnMut() -> Result<T, ssh2::Error>,
    ) -> Result<T, ssh2::Error> {
        loop {
            match operation() {
                Err(error) if error.code() == ErrorCode::Session(AGAIN) => {
                    if self.ready(session, deadline).is_err() {
                        return Err(error);
                    }
                }
                other => return other,
            }
        }
    }

    /// As [`Socket::wait`], but returns `None` once all that is left is to wait in this direction.
    fn until<T>(
        &self,
        session: &ssh2::Session,
        deadline: Instant,
        left: BlockDirections,
        mut operation: impl FnMut() -> Result<T, ssh2::Error>,
    ) -> Result<Option<T>, ssh2::Error> {
        let stop = |result: Result<T, ssh2::Error>| match result {
            Err(error) if error.code() == ErrorCode::Session(AGAIN) && session.block_directions() == left => Ok(None),
            other => other.map(Some),
        };
        self.wait(session, deadline, || stop(operation()))
    }
}

/// A program on the host.
struct SshPipe {
    session: ssh2::Session,
    socket: Arc<Socket>,
    channel: ssh2::Channel,
    /// The line that starts it, while the host has not said that it does.
    starting: Option<String>,
}

impl SshPipe {
    /// Waits until the host has started the program.
    fn started(&mut self, deadline: Instant) -> io::Result<()> {
        let Some(line) = self.starting.take() else { return Ok(()) };
        let (session, channel) = (&self.session, &mut self.channel);
        let started = self.socket.wait(session, deadline, || channel.exec(&line));
        self.socket.quick.store(false, Ordering::Relaxed);
        started.map_err(|error| match error.code() {
            ErrorCode::Session(AGAIN) => io::ErrorKind::TimedOut.into(),
            ErrorCode::Session(_) | ErrorCode::SFTP(_) => io::Error::from(error),
        })
    }
}

impl SshPipe {
    /// Waits until something comes, and asks for it again and again. The answer is waited for here, and nothing is read
    /// meanwhile, as that would take it away unseen.
    fn sign_of_life(&self, limit: Instant) -> io::Result<()> {
        loop {
            let waited = self.socket.ready(&self.session, limit.min(Instant::now() + self.socket.ask_every()));
            match waited {
                Err(error) if error.kind() == io::ErrorKind::TimedOut && Instant::now() < limit => {
                    self.session.keepalive_send().map_err(io::Error::from)?;
                }
                waited => return waited,
            }
        }
    }
}

impl Pipe for SshPipe {
    fn read(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<Came> {
        let socket = self.socket.clone();
        let _busy = socket.busy();
        self.started(deadline)?;
        let (mut heard, mut seen) = (Instant::now(), 0);
        loop {
            match self.channel.read(buffer) {
                Ok(0) | Err(_) if self.channel.eof() => return Ok(Came::End),
                Ok(0) => {}
                Ok(count) => return Ok(Came::Output(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            match self.channel.stderr().read(buffer) {
                Ok(0) => {}
                Ok(count) => return Ok(Came::Error(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if self.channel.eof() {
                return Ok(Came::End);
            }
            // Asking for one stream takes what has come for the other off the socket, which then wakes nobody.
            let queued = self.channel.read_window().available;
            if queued > seen {
                seen = queued;
                continue;
            }
            // A host that lives answers to the question whether it does, be its program ever so quiet.
            let limit = deadline.min(heard + self.socket.silence);
            match self.sign_of_life(limit) {
                Ok(()) => heard = Instant::now(),
                Err(error) => {
                    if limit < deadline || heard.elapsed() >= self.socket.silence {
                        self.socket.give_up();
                    }
                    return Err(error);
                }
            }
        }
    }

    fn write(&mut self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        let _busy = self.socket.busy();
        while !bytes.is_empty() {
            match self.channel.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.socket.ready(&self.session, deadline).inspect_err(|_| self.socket.give_up())?
                }
                Err(error) if self.channel.eof() => return Err(io::Error::new(io::ErrorKind::BrokenPipe, error)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn finish(&mut self, deadline: Instant) -> io::Result<()> {
        let _busy = self.socket.busy();
        let (session, channel) = (&self.session, &mut self.channel);
        self.socket.wait(session, deadline, || channel.send_eof()).map_err(io::Error::from)
    }

    fn ending(&mut self, deadline: Instant) -> Option<Ending> {
        let socket = self.socket.clone();
        let _busy = socket.busy();
        self.started(deadline).ok()?;
        let (session, channel) = (&self.session, &mut self.channel);
        // The status comes after the output's end and before the channel's.
        self.socket.wait(session, deadline, || channel.close()).ok()?;
        self.socket.wait(session, deadline, || channel.wait_close()).ok()?;
        match channel.exit_signal().ok().and_then(|signal| signal.exit_signal) {
            Some(signal) => Some(Ending::Signal(signal)),
            None => channel.exit_status().ok().map(Ending::Status),
        }
    }
}
