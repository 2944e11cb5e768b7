//! Open connections, kept for the next task of the same host.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::connection::{Connection, Target, Unreachable};

/// Idle connections by what they lead to. One is used by one thread at a time; a second thread opens another.
#[derive(Default)]
pub struct Pool {
    idle: Mutex<HashMap<String, Vec<Connection>>>,
}

impl Pool {
    /// Uses an idle connection to `target`, or a new one. One that breaks is dropped.
    ///
    /// # Errors
    /// What `work` or opening reports.
    pub fn with<T>(
        &self,
        target: &Target,
        work: impl FnOnce(&mut Connection) -> Result<T, Unreachable>,
    ) -> Result<T, Unreachable> {
        let key = key_of(target);
        let idle = self.lock().get_mut(&key).and_then(Vec::pop);
        let mut connection = match idle {
            Some(connection) => connection,
            None => Connection::open(target)?,
        };
        let done = work(&mut connection)?;
        self.lock().entry(key).or_default().push(connection);
        Ok(done)
    }

    /// Closes the connections to a target: `meta: reset_connection`, or a reboot.
    pub fn close(&self, target: &Target) {
        self.lock().remove(&key_of(target));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Vec<Connection>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key_of(target: &Target) -> String {
    format!(
        "{:?} {} {:?} {:?} {:?} {:?} {:?}",
        target.via, target.address, target.port, target.user, target.private_key_file, target.ssh_args, target.password
    )
}
