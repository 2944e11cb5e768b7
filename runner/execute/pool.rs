//! Open connections, kept for the next task of the same host.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::connection::{Connection, Target, Unreachable, UnreachableKind};
use crate::report::HostName;

/// The longest pause between two attempts to connect, as in Ansible.
const MOST_PAUSE: Duration = Duration::from_secs(30);

/// Idle connections by what they lead to. One is used by one thread at a time; a second thread opens another.
pub struct Pool {
    idle: Mutex<HashMap<String, Vec<Connection>>>,
    /// Whether the user asked to stop: then nothing is waited for.
    interrupted: Arc<AtomicBool>,
}

impl Pool {
    pub fn new(interrupted: Arc<AtomicBool>) -> Pool {
        Pool { idle: Mutex::default(), interrupted }
    }

    /// Uses an idle connection to `target`, or a new one. One that breaks is dropped. A host that can't be connected
    /// to is tried again as often as the target says, after 0, 1, 3, 7, … seconds; work that has begun never is.
    ///
    /// # Errors
    /// What `work` or opening reports.
    pub fn with<T>(
        &self,
        target: &Target,
        work: impl FnMut(&mut Connection) -> Result<T, Unreachable>,
    ) -> Result<T, Unreachable> {
        let (done, connection) = self.borrowed(target, work)?;
        self.give_back(target, connection);
        Ok(done)
    }

    /// As [`Pool::with`], for whoever keeps the connection until he gives it back.
    ///
    /// # Errors
    /// As there.
    pub fn borrowed<T>(
        &self,
        target: &Target,
        mut work: impl FnMut(&mut Connection) -> Result<T, Unreachable>,
    ) -> Result<(T, Connection), Unreachable> {
        let mut tried = 0;
        loop {
            let failure = match self.attempt(target, &mut work) {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            // The system's `ssh` connects when the agent is started, and that failure is of these kinds, too.
            let before_work = matches!(failure.kind, UnreachableKind::Connect | UnreachableKind::Resolve);
            if !before_work || tried == target.retries || self.interrupted.load(Ordering::Relaxed) {
                let often =
                    if before_work && tried > 0 { format!("; tried {} times", tried + 1) } else { String::new() };
                return Err(Unreachable { message: failure.message + &often, ..failure });
            }
            sleep_unless(&self.interrupted, Duration::from_secs((1 << tried.min(5)) - 1).min(MOST_PAUSE));
            tried += 1;
        }
    }

    fn attempt<T>(
        &self,
        target: &Target,
        work: &mut impl FnMut(&mut Connection) -> Result<T, Unreachable>,
    ) -> Result<(T, Connection), Unreachable> {
        let idle = self.lock().get_mut(&target.key()).and_then(Vec::pop);
        let mut connection = match idle {
            Some(connection) => connection,
            None => Connection::open(target)?,
        };
        connection.heed(&self.interrupted);
        let done = work(&mut connection)?;
        Ok((done, connection))
    }

    /// Keeps a connection for whoever needs it next.
    pub fn give_back(&self, target: &Target, connection: Connection) {
        self.lock().entry(target.key()).or_default().push(connection);
    }

    /// Returns how many round trips the open connections have made, by host.
    pub fn round_trips(&self) -> BTreeMap<HostName, u64> {
        let mut made = BTreeMap::new();
        for connection in self.lock().values().flatten() {
            *made.entry(HostName::from(connection.host())).or_default() += connection.statistics().round_trips;
        }
        made
    }

    /// Closes the connections to a target: `meta: reset_connection`, or a reboot.
    pub fn close(&self, target: &Target) {
        self.lock().remove(&target.key());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Vec<Connection>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sleeps, but not on when the user asks to stop.
pub fn sleep_unless(interrupted: &AtomicBool, duration: Duration) {
    const TICK: Duration = Duration::from_millis(50);
    let end = Instant::now() + duration;
    while !interrupted.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(TICK));
    }
}
