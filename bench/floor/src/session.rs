//! One login and its channels, with the fewest round trips: one known key, no question that can be spared.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::path::Path;

use ssh2::{BlockDirections, Channel, ErrorCode, Session as Ssh};

/// Source: `LIBSSH2_ERROR_EAGAIN`.
const AGAIN: i32 = -37;

pub struct Session {
    ssh: Ssh,
    stream: TcpStream,
}

impl Session {
    pub fn open(address: &str, key: &Path, host_key: &[u8]) -> io::Result<Session> {
        let stream = TcpStream::connect((address, 22))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut ssh = Ssh::new()?;
        ssh.set_tcp_stream(stream.try_clone()?);
        ssh.set_blocking(false);
        ssh.method_pref(ssh2::MethodType::HostKey, "ssh-ed25519")?;
        let session = Session { ssh: ssh.clone(), stream };
        session.wait(|| ssh.handshake())?;
        if ssh.host_key().is_none_or(|(shown, _)| shown != host_key) {
            return Err(io::Error::other("another host's key"));
        }
        session.wait(|| ssh.userauth_pubkey_file("root", None, key, None))?;
        Ok(session)
    }

    pub fn start(&self, line: &str) -> io::Result<Channel> {
        let mut channel = self.wait(|| self.ssh.channel_session())?;
        self.wait(|| channel.exec(line))?;
        Ok(channel)
    }

    fn wait<T>(&self, mut operation: impl FnMut() -> Result<T, ssh2::Error>) -> io::Result<T> {
        loop {
            match operation() {
                Err(error) if error.code() == ErrorCode::Session(AGAIN) => self.ready()?,
                other => return other.map_err(io::Error::from),
            }
        }
    }

    /// Waits for the socket, and acknowledges at once what it brings: sshd waits for that while small packets go around.
    fn ready(&self) -> io::Result<()> {
        let events = match self.ssh.block_directions() {
            BlockDirections::Outbound => libc::POLLOUT,
            BlockDirections::Both => libc::POLLIN | libc::POLLOUT,
            BlockDirections::Inbound | BlockDirections::None => libc::POLLIN,
        };
        let fd = self.stream.as_raw_fd();
        let mut entry = libc::pollfd { fd, events, revents: 0 };
        let one: libc::c_int = 1;
        // SAFETY: one entry, and an option of an int's size.
        unsafe {
            if libc::poll(&raw mut entry, 1, 60_000) == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let size = size_of::<libc::c_int>() as libc::socklen_t;
            libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_QUICKACK, (&raw const one).cast(), size);
        }
        Ok(())
    }

    pub fn write(&self, channel: &mut Channel, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match channel.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.ready()?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub fn read(&self, channel: &mut Channel, buffer: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            match channel.read(&mut buffer[filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.ready()?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads to the end, and returns the exit status.
    pub fn end(&self, channel: &mut Channel) -> io::Result<i32> {
        let mut buffer = [0; 4096];
        loop {
            match channel.read(&mut buffer) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.ready()?,
                Err(error) => return Err(error),
            }
        }
        self.wait(|| channel.close())?;
        self.wait(|| channel.wait_close())?;
        channel.exit_status().map_err(io::Error::from)
    }
}
