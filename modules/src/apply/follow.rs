//! Following a command: its pipes are served as they can be, and read to the last byte that it wrote itself.

use std::fs::File;
use std::io::{ErrorKind as Io, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Error, ErrorKind};

/// How long output is still read after a command has ended while a child of its own holds the pipe open.
const LINGER: Duration = Duration::from_millis(300);
/// Between SIGTERM and SIGKILL of a command that ran out of time.
const GRACE: Duration = Duration::from_secs(3);
/// What one command's output may take in memory; the rest is read and dropped, and the output says so.
const OUTPUT_LIMIT_BYTES: usize = 32 << 20;
/// How often a command whose pipes are silent is asked whether it has ended.
const TICK: Duration = Duration::from_millis(20);
/// What is read of one pipe before the others get their turn: more than a pipe holds.
const TURN_BYTES: usize = 2 << 20;
/// What is shown of one line while a command runs.
const LINE_LIMIT_BYTES: usize = 4096;

/// How a command ended, and what it wrote.
pub(super) struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// Follows a command to its end or its limit. Its standard output and error, and its standard input when there is
/// something for it, are pipes.
///
/// # Errors
/// [`ErrorKind::Failed`] when the limit ran out: the command and all that it started are ended.
pub(super) fn follow(
    child: &mut Child,
    input: Option<&[u8]>,
    end: Option<Instant>,
    progress: &dyn Fn(&str),
) -> Result<Ended, Error> {
    let failed = |error: std::io::Error| Error::new(ErrorKind::Failed, format!("follow a command: {error}"));
    let mut stdin = Writer::new(child.stdin.take().map(OwnedFd::from), input.unwrap_or_default()).map_err(failed)?;
    let mut stdout = Reader::new(child.stdout.take().map(OwnedFd::from)).map_err(failed)?;
    let mut stderr = Reader::new(child.stderr.take().map(OwnedFd::from)).map_err(failed)?;
    let mut ended: Option<(ExitStatus, Instant)> = None;
    let mut pause = Duration::from_micros(100);
    let status = loop {
        // Asked before the pipes are read: what a command wrote is in them by the time it has ended.
        if ended.is_none() {
            ended = child.try_wait().map_err(failed)?.map(|status| (status, Instant::now()));
        }
        stdin.write();
        stdout.read(progress);
        stderr.read(progress);
        let closed = stdout.pipe.is_none() && stderr.pipe.is_none();
        match ended {
            Some((status, since)) if closed || since.elapsed() > LINGER => break status,
            Some(_) => {}
            None if end.is_some_and(|end| Instant::now() >= end) => {
                end_group(child);
                return Err(Error::new(ErrorKind::Failed, "ran longer than its limit and was ended"));
            }
            None => {}
        }
        if closed && stdin.pipe.is_none() {
            // Its pipes' end comes a moment before the command's own.
            thread::sleep(pause);
            pause = (pause * 2).min(TICK);
        } else {
            wait(&stdin, &[&stdout, &stderr]).map_err(failed)?;
        }
    };
    let dropped_bytes = stdout.dropped_bytes + stderr.dropped_bytes;
    let mut stderr = stderr.text();
    if dropped_bytes > 0 {
        stderr.push_str(&format!("[{dropped_bytes} more bytes of output dropped]\n"));
    }
    Ok(Ended { status, stdout: stdout.text(), stderr })
}

/// Waits until a pipe can be served, for [`TICK`] at most.
fn wait(stdin: &Writer, outputs: &[&Reader]) -> std::io::Result<()> {
    let on = |pipe: &Option<File>, events| libc::pollfd {
        // A negative number is passed over.
        fd: pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd),
        events,
        revents: 0,
    };
    let mut polled = vec![on(&stdin.pipe, libc::POLLOUT)];
    polled.extend(outputs.iter().map(|output| on(&output.pipe, libc::POLLIN)));
    // SAFETY: the pointer and the length are those of one live vector.
    let found =
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, TICK.as_millis() as libc::c_int) };
    match std::io::Error::last_os_error() {
        error if found < 0 && error.kind() != Io::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// Makes reads and writes of a pipe return at once.
fn unblocked(pipe: OwnedFd) -> std::io::Result<File> {
    // SAFETY: the descriptor is open, and these calls take no pointers.
    let set = unsafe {
        let flags = libc::fcntl(pipe.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)
    };
    if set < 0 { Err(std::io::Error::last_os_error()) } else { Ok(File::from(pipe)) }
}

/// What a command reads.
struct Writer<'a> {
    pipe: Option<File>,
    left: &'a [u8],
}

impl<'a> Writer<'a> {
    fn new(pipe: Option<OwnedFd>, left: &'a [u8]) -> std::io::Result<Writer<'a>> {
        Ok(Writer { pipe: pipe.map(unblocked).transpose()?, left })
    }

    /// Writes what fits, and closes the pipe after the last byte.
    fn write(&mut self) {
        while let Some(pipe) = &mut self.pipe {
            match pipe.write(self.left) {
                _ if self.left.is_empty() => self.pipe = None,
                Ok(count) => self.left = &self.left[count..],
                Err(error) if error.kind() == Io::Interrupted => {}
                Err(error) if error.kind() == Io::WouldBlock => return,
                // A command that does not read its input to the end closes the pipe: not a fault.
                Err(_) => self.pipe = None,
            }
        }
    }
}

/// What a command writes.
struct Reader {
    pipe: Option<File>,
    kept: Vec<u8>,
    dropped_bytes: usize,
    /// The beginning of a line that has not ended.
    line: Vec<u8>,
}

impl Reader {
    fn new(pipe: Option<OwnedFd>) -> std::io::Result<Reader> {
        let pipe = pipe.map(unblocked).transpose()?;
        Ok(Reader { pipe, kept: Vec::new(), dropped_bytes: 0, line: Vec::new() })
    }

    /// Reads what is there.
    fn read(&mut self, progress: &dyn Fn(&str)) {
        let mut buffer = [0; 16 << 10];
        let mut taken = 0;
        while let (Some(pipe), true) = (&mut self.pipe, taken < TURN_BYTES) {
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(count) => {
                    taken += count;
                    self.keep(&buffer[..count], progress);
                }
                Err(error) if error.kind() == Io::Interrupted => {}
                Err(error) if error.kind() == Io::WouldBlock => return,
                Err(_) => self.pipe = None,
            }
        }
        if self.pipe.is_none() && !self.line.is_empty() {
            self.show(progress);
        }
    }

    fn keep(&mut self, bytes: &[u8], progress: &dyn Fn(&str)) {
        let room = OUTPUT_LIMIT_BYTES - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.dropped_bytes += bytes.len().saturating_sub(room);
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let room = LINE_LIMIT_BYTES - self.line.len().min(LINE_LIMIT_BYTES);
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                self.show(progress);
            }
        }
    }

    fn show(&mut self, progress: &dyn Fn(&str)) {
        progress(String::from_utf8_lossy(&self.line).trim_end());
        self.line.clear();
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

/// Ends the command and all that it started: SIGTERM, then SIGKILL.
fn end_group(child: &mut Child) {
    let group = -(child.id() as libc::pid_t);
    let signal = |number| {
        // SAFETY: kill(2) takes no pointers; the group is the child's own, which is not yet reaped.
        unsafe { libc::kill(group, number) }
    };
    signal(libc::SIGTERM);
    let end = Instant::now() + GRACE;
    while Instant::now() < end {
        if matches!(child.try_wait(), Ok(Some(_))) {
            break;
        }
        thread::sleep(TICK);
    }
    signal(libc::SIGKILL);
    child.wait().ok();
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    fn shell(line: &str, input: Option<&[u8]>, limit: Duration) -> (Result<Ended, Error>, Vec<String>) {
        let shown = RefCell::new(Vec::new());
        let mut command = Command::new("sh");
        command.args(["-c", line]).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = command.spawn().expect("a shell");
        let end = Some(Instant::now() + limit);
        let ended = follow(&mut child, input, end, &|line| shown.borrow_mut().push(line.to_owned()));
        (ended, shown.into_inner())
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_goes_in_comes_out() {
        let input = "0123456789abcdef\n".repeat(100_000);
        let (ended, shown) = shell("cat; echo end >&2", Some(input.as_bytes()), LONG);
        let ended = ended.expect("an end");
        assert!(ended.stdout == input && ended.stderr == "end\n" && ended.status.success());
        assert_eq!(shown.len(), 100_001);
        let (ended, _) = shell("exit 3", Some(input.as_bytes()), LONG);
        assert_eq!(ended.expect("an end").status.code(), Some(3));
    }

    #[test]
    fn a_line_without_an_end_is_shown_and_kept() {
        let (ended, shown) = shell("printf 'a\\nb'", None, LONG);
        assert_eq!(
            (ended.expect("an end").stdout.as_str(), shown.as_slice()),
            ("a\nb", &["a".to_owned(), "b".into()][..])
        );
    }

    #[test]
    fn a_command_s_own_children_do_not_keep_it() {
        let begin = Instant::now();
        let (ended, _) = shell("echo said; sleep 30 & echo $!", None, LONG);
        let ended = ended.expect("an end");
        assert!(begin.elapsed() < Duration::from_secs(10));
        let (said, child) = ended.stdout.split_once('\n').expect("two lines");
        assert_eq!(said, "said");
        Command::new("kill").arg(child.trim()).status().expect("kill");
    }

    #[test]
    fn one_that_closes_its_pipes_is_waited_for() {
        let (ended, _) = shell("exec >&- 2>&-; sleep 0.2; exit 4", None, LONG);
        assert_eq!(ended.expect("an end").status.code(), Some(4));
    }

    #[test]
    fn one_that_takes_too_long_is_ended_with_its_children() {
        let (ended, shown) = shell("sleep 100 & echo $!; wait", None, Duration::from_millis(300));
        assert!(ended.is_err());
        let path = format!("/proc/{}/stat", shown[0]);
        let end = Instant::now() + LONG;
        // Gone, or a zombie that nobody has asked for yet.
        while std::fs::read_to_string(&path).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(Instant::now() < end, "the child still runs");
            thread::yield_now();
        }
    }
}
