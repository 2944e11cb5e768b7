//! Keeps sessions alive between tasks: a host that asks whether this side lives is answered, and a path through
//! address translation is kept open. One thread does it for all hosts.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, Once, PoisonError, TryLockError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::{KEEPALIVE_EVERY, Socket};

/// Between two looks at all sessions.
const TICK: Duration = Duration::from_secs(1);

static WATCHED: Mutex<Vec<Weak<Socket>>> = Mutex::new(Vec::new());

/// What it takes to keep a session alive.
pub(super) struct Kept {
    session: ssh2::Session,
    /// An agent's standard error, where nothing comes: reading it takes in what waits for the whole session.
    ear: ssh2::Stream,
    asked: Instant,
}

/// Looks after a session, through one of its channels, for as long as its socket is in use.
pub(super) fn watch(socket: &Arc<Socket>, session: &ssh2::Session, channel: &ssh2::Channel) {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        thread::spawn(|| {
            loop {
                thread::sleep(TICK);
                look();
            }
        });
    });
    let kept = Kept { session: session.clone(), ear: channel.stderr(), asked: Instant::now() };
    if socket.kept.lock().unwrap_or_else(PoisonError::into_inner).replace(kept).is_none() {
        WATCHED.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(socket));
    }
}

/// Attends to each session that is idle.
fn look() {
    let sockets: Vec<Arc<Socket>> = {
        let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(|socket| socket.strong_count() > 0);
        watched.iter().filter_map(Weak::upgrade).collect()
    };
    for socket in sockets {
        // Whoever uses it keeps it alive.
        let _busy = match socket.busy.try_lock() {
            Ok(busy) => busy,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => continue,
        };
        if let Some(kept) = &mut *socket.kept.lock().unwrap_or_else(PoisonError::into_inner) {
            kept.attend(&socket);
        }
    }
}

impl Kept {
    fn attend(&mut self, socket: &Socket) {
        if self.asked.elapsed() >= KEEPALIVE_EVERY {
            self.asked = Instant::now();
            // A session that is lost is found so by its next task.
            self.session.keepalive_send().ok();
        }
        let mut entry = libc::pollfd { fd: socket.stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer is that of one entry; the limit makes it return at once.
        if unsafe { libc::poll(&raw mut entry, 1, 0) } > 0 {
            // What little may come there is of no interest; all else stays where its channel finds it.
            while self.ear.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        }
    }
}
