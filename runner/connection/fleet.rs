//! Simulated hosts behind local sockets, for the program `kubeon-simulate` alone: no setting and no argument of a
//! user's leads here.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Instant;

use super::pipe::{Came, Ending, Pipe, left_ms};
use super::{Unreachable, UnreachableKind};

/// Where the far ends of simulated hosts listen.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// Holds a socket for each worker, by its number.
    pub folder: PathBuf,
    /// How many programs share the hosts.
    pub workers: u64,
}

static FLEET: OnceLock<Fleet> = OnceLock::new();

/// Leads every host that is reached by SSH to a fleet, in this process. The first call decides.
pub fn use_fleet(fleet: Fleet) {
    FLEET.set(fleet).ok();
}

/// Returns the fleet that stands in for hosts.
pub(super) fn fleet() -> Option<&'static Fleet> {
    FLEET.get()
}

/// Connects to a host's far end, which reads the host's name, then the line for its shell, and then serves as its agent.
pub(super) fn connect(fleet: &Fleet, host: &str) -> Result<Box<dyn Pipe>, Unreachable> {
    let number = host.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let path = fleet.folder.join((number % fleet.workers.max(1)).to_string());
    let connected = UnixStream::connect(&path).and_then(|mut stream| {
        stream.write_all(format!("{host}\n").as_bytes())?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    });
    match connected {
        Ok(stream) => Ok(Box::new(SocketPipe(stream))),
        Err(error) => Err(Unreachable::new(UnreachableKind::Connect, format!("`{host}`: connect: {error}"))),
    }
}

struct SocketPipe(UnixStream);

impl SocketPipe {
    fn wait(&self, events: libc::c_short, deadline: Instant) -> io::Result<()> {
        let mut entry = libc::pollfd { fd: self.0.as_raw_fd(), events, revents: 0 };
        // SAFETY: the pointer is that of one entry.
        match unsafe { libc::poll(&raw mut entry, 1, left_ms(deadline)?) } {
            0 => Err(io::ErrorKind::TimedOut.into()),
            rc if rc > 0 => Ok(()),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                error => Err(error),
            },
        }
    }
}

impl Pipe for SocketPipe {
    fn read(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<Came> {
        loop {
            match self.0.read(buffer) {
                Ok(0) => return Ok(Came::End),
                Ok(count) => return Ok(Came::Output(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(libc::POLLIN, deadline)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn write(&mut self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.0.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(libc::POLLOUT, deadline)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: Instant) -> io::Result<()> {
        self.0.shutdown(Shutdown::Write)
    }

    fn ending(&mut self, _: Instant) -> Option<Ending> {
        None
    }
}
