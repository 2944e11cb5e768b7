//! Stands between libssh2 and the user's SSH agent: libssh2 would wait for an agent that does not answer without limit.

use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// The most that an agent's message may hold. Source: `MAX_AGENT_REPLY_LEN` of OpenSSH.
const MESSAGE_LIMIT_BYTES: usize = 256 << 10;
/// What a socket's path may be long. Source: `sun_path` of `unix(7)`, less the end of the name.
const PATH_LIMIT_BYTES: usize = 90;

/// An agent's socket of ours, which carries one client's questions to the user's agent and its answers back.
pub(super) struct PatientAgent {
    folder: PathBuf,
    failure: Failure,
}

/// Why the agent did not answer.
#[derive(Clone, Default)]
pub(super) struct Failure(Arc<Mutex<Option<String>>>);

impl Failure {
    pub fn told(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tell(&self, error: &io::Error, limit: Duration) {
        let text = match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                format!("no answer within {:.1} s", limit.as_secs_f64())
            }
            _ => error.to_string(),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }
}

impl PatientAgent {
    /// Opens a socket in front of the agent's, which may take `limit` for each answer.
    pub fn before(agent: &Path, limit: Duration) -> io::Result<PatientAgent> {
        let folder = private_folder()?;
        let listener = UnixListener::bind(folder.join("agent"));
        let relay = PatientAgent { folder, failure: Failure::default() };
        let (listener, agent, failure) = (listener?, agent.to_owned(), relay.failure.clone());
        thread::spawn(move || {
            let Ok((mut near, _)) = listener.accept() else { return };
            drop(listener);
            // Told before the client sees its connection end.
            if let Err(error) = connect(agent, limit).and_then(|mut far| carry(&mut near, &mut far)) {
                failure.tell(&error, limit);
            }
        });
        Ok(relay)
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join("agent")
    }

    pub fn failure(&self) -> Failure {
        self.failure.clone()
    }
}

impl Drop for PatientAgent {
    fn drop(&mut self) {
        // A thread that nobody has called yet would wait for ever.
        UnixStream::connect(self.socket()).ok();
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

fn private_folder() -> io::Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let usual = std::env::temp_dir();
    let base = if usual.as_os_str().len() > PATH_LIMIT_BYTES - 40 { Path::new("/tmp") } else { usual.as_path() };
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = base.join(format!("kubeon-ssh-{}-{next}", std::process::id()));
        match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Connects to the agent. One with a full queue would keep us waiting, so that is done where nobody waits.
fn connect(agent: PathBuf, limit: Duration) -> io::Result<UnixStream> {
    let (sender, connected) = mpsc::channel();
    thread::spawn(move || sender.send(UnixStream::connect(agent)));
    let stream = connected.recv_timeout(limit).map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    Ok(stream)
}

/// Carries questions and answers until the client has gone.
fn carry(near: &mut UnixStream, far: &mut UnixStream) -> io::Result<()> {
    loop {
        let Ok(question) = message(near) else { return Ok(()) };
        far.write_all(&question)?;
        let answer = message(far)?;
        if near.write_all(&answer).is_err() {
            return Ok(());
        }
    }
}

/// Reads a message with its length before it. Source: draft-ietf-sshm-ssh-agent, section 3.
fn message(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    stream.read_exact(&mut bytes)?;
    let length = bytes.iter().fold(0_usize, |length, &byte| length << 8 | usize::from(byte));
    if length > MESSAGE_LIMIT_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it answers what makes no sense"));
    }
    bytes.resize(4 + length, 0);
    stream.read_exact(&mut bytes[4..])?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_does_not_answer_is_given_up() {
        let folder = private_folder().expect("a folder");
        let path = folder.join("dead");
        // It takes the connection and says nothing.
        let _agent = UnixListener::bind(&path).expect("a socket");
        let relay = PatientAgent::before(&path, Duration::from_millis(100)).expect("a relay");
        let mut client = UnixStream::connect(relay.socket()).expect("connected");
        let (failure, own) = (relay.failure(), relay.folder.clone());
        drop(relay);
        assert!(!own.exists());
        client.write_all(&[0, 0, 0, 1, 11]).expect("asked");
        assert_eq!(client.read(&mut [0; 8]).expect("an end"), 0);
        assert_eq!(failure.told().as_deref(), Some("no answer within 0.1 s"));
        std::fs::remove_dir_all(folder).expect("remove");
    }
}
