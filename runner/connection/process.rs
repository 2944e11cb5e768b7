//! Programs of this machine as transports: the machine itself, the system's `ssh`, `docker exec` and their like.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::pipe::{Came, Ending, Pipe, left_ms};

/// How long a program may take to end once its streams are closed.
const PARTING: Duration = Duration::from_secs(5);

/// A running program and its streams.
pub(super) struct ProcessPipe {
    child: Option<Child>,
    input: Option<File>,
    output: Option<File>,
    errors: Option<File>,
    /// What came while the program's input was full.
    early: VecDeque<(bool, Vec<u8>)>,
    /// Whether what it runs on a terminal over there does not learn that its input has ended.
    must_be_ended: bool,
}

impl ProcessPipe {
    /// Starts a program.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn start(mut command: Command) -> io::Result<ProcessPipe> {
        // In a group of its own: an interrupt at the terminal is this program's to handle.
        let mut child =
            command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let input = child.stdin.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let output = child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let errors = child.stderr.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        ProcessPipe::of(child, input, output, errors)
    }

    /// Makes dropping this end the program at once: on a terminal at its far end, the end of our input is no end.
    #[must_use]
    pub fn that_must_be_ended(mut self) -> ProcessPipe {
        self.must_be_ended = true;
        self
    }

    /// Starts a program on a terminal of its own, which carries all three streams.
    ///
    /// # Errors
    /// When there is no terminal to be had or the program can't be started.
    pub fn start_on_terminal(mut command: Command) -> io::Result<ProcessPipe> {
        let (master, slave) = terminal()?;
        let slave_again = || slave.try_clone().map(Stdio::from);
        command.stdin(slave_again()?).stdout(slave_again()?).stderr(slave_again()?);
        // SAFETY: both calls are async-signal-safe; descriptor 0 is the terminal by then.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn()?;
        ProcessPipe::of(child, Some(master.try_clone()?), Some(master), None)
    }

    fn of(child: Child, input: Option<File>, output: Option<File>, errors: Option<File>) -> io::Result<ProcessPipe> {
        let pipe =
            ProcessPipe { child: Some(child), input, output, errors, early: VecDeque::new(), must_be_ended: false };
        for file in [&pipe.input, &pipe.output, &pipe.errors].into_iter().flatten() {
            never_block(file.as_raw_fd())?;
        }
        Ok(pipe)
    }

    fn input_fd(&self) -> RawFd {
        self.input.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
    fn output_fd(&self) -> RawFd {
        self.output.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
    fn errors_fd(&self) -> RawFd {
        self.errors.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Reads what is there; `None` when nothing is yet.
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<Option<Came>> {
        if let Some(output) = &mut self.output {
            match output.read(buffer) {
                Ok(0) => self.output = None,
                Ok(count) => return Ok(Some(Came::Output(count))),
                Err(error) if not_yet(&error) => {}
                // A terminal's way to say that its last user has gone.
                Err(error) if error.raw_os_error() == Some(libc::EIO) => self.output = None,
                Err(error) => return Err(error),
            }
        }
        if let Some(errors) = &mut self.errors {
            match errors.read(buffer) {
                Ok(0) => self.errors = None,
                Ok(count) => return Ok(Some(Came::Error(count))),
                Err(error) if not_yet(&error) => {}
                Err(error) => return Err(error),
            }
        }
        // What keeps standard error open after standard output ended says nothing more to us.
        Ok(self.output.is_none().then_some(Came::End))
    }

    fn wait(&self, deadline: Instant, for_input: bool) -> io::Result<()> {
        let entry = |fd, events| libc::pollfd { fd, events, revents: 0 };
        let mut entries = [
            entry(self.output_fd(), libc::POLLIN),
            entry(self.errors_fd(), libc::POLLIN),
            entry(if for_input { self.input_fd() } else { -1 }, libc::POLLOUT),
        ];
        // SAFETY: the pointer and the length are those of `entries`; poll(2) skips negative descriptors.
        let rc = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, left_ms(deadline)?) };
        match rc {
            0 => Err(io::ErrorKind::TimedOut.into()),
            rc if rc > 0 => Ok(()),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                error => Err(error),
            },
        }
    }
}

/// Opens a terminal: this side and the program's.
fn terminal() -> io::Result<(File, File)> {
    let (mut master, mut slave) = (-1, -1);
    // SAFETY: the pointers are those of the two integers; no name, settings or size are asked for.
    let rc = unsafe {
        libc::openpty(&raw mut master, &raw mut slave, std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut())
    };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors are new and nobody else's.
    let (master, slave) = unsafe { (File::from_raw_fd(master), File::from_raw_fd(slave)) };
    for file in [&master, &slave] {
        // SAFETY: fcntl(2) with this command takes no pointer.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok((master, slave))
}

fn not_yet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn never_block(fd: RawFd) -> io::Result<()> {
    // SAFETY: fcntl(2) with these commands takes no pointers; the descriptor is this process's own end of a pipe.
    let rc = unsafe { libc::fcntl(fd, libc::F_SETFL, libc::fcntl(fd, libc::F_GETFL) | libc::O_NONBLOCK) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Pipe for ProcessPipe {
    fn read(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<Came> {
        if let Some((error, mut bytes)) = self.early.pop_front() {
            let count = bytes.len().min(buffer.len());
            buffer[..count].copy_from_slice(&bytes[..count]);
            if count < bytes.len() {
                self.early.push_front((error, bytes.split_off(count)));
            }
            return Ok(if error { Came::Error(count) } else { Came::Output(count) });
        }
        loop {
            if let Some(came) = self.take(buffer)? {
                return Ok(came);
            }
            self.wait(deadline, false)?;
        }
    }

    fn write(&mut self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        let mut buffer = vec![0; 16 << 10];
        while !bytes.is_empty() {
            let Some(input) = &mut self.input else { return Err(io::ErrorKind::BrokenPipe.into()) };
            match input.write(bytes) {
                Ok(count) => {
                    bytes = &bytes[count..];
                    continue;
                }
                Err(error) if not_yet(&error) => {}
                Err(error) => return Err(error),
            }
            // A program that is itself stuck writing would never read on.
            match self.take(&mut buffer)? {
                Some(Came::Output(count)) => self.early.push_back((false, buffer[..count].to_vec())),
                Some(Came::Error(count)) => self.early.push_back((true, buffer[..count].to_vec())),
                Some(Came::End) => return Err(io::ErrorKind::BrokenPipe.into()),
                None => self.wait(deadline, true)?,
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: Instant) -> io::Result<()> {
        self.input = None;
        Ok(())
    }

    fn ending(&mut self, deadline: Instant) -> Option<Ending> {
        self.input = None;
        let child = self.child.as_mut()?;
        loop {
            if let Some(status) = child.try_wait().ok()? {
                return Some(match status.code() {
                    Some(code) => Ending::Status(code),
                    None => Ending::Signal(status.signal().unwrap_or_default().to_string()),
                });
            }
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for ProcessPipe {
    fn drop(&mut self) {
        self.input = None;
        self.output = None;
        self.errors = None;
        let Some(mut child) = self.child.take() else { return };
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        if self.must_be_ended {
            // SAFETY: the child has not been waited for, so its number is still its own.
            unsafe { libc::kill(child.id().cast_signed(), libc::SIGTERM) };
        }
        // An agent ends by itself when its input does; whatever does not is ended, and nobody waits for that.
        thread::spawn(move || {
            let deadline = Instant::now() + PARTING;
            while Instant::now() < deadline {
                if matches!(child.try_wait(), Ok(Some(_))) {
                    return;
                }
                thread::sleep(Duration::from_millis(20));
            }
            child.kill().ok();
            child.wait().ok();
        });
    }
}
