//! A home for an account that has none.

use super::Args;
use crate::accounts::{self, User};
use crate::{Change, Error, Exec, Host};

/// Source: `login.defs(5)`: what applies where the file says nothing.
const USUAL_UMASK: u32 = 0o022;

impl Args {
    pub(super) fn make_home(&self, host: &dyn Host, user: &User) -> Result<Vec<Change>, Error> {
        // A home that is about to change is made when this is planned again.
        let moves = self.home.as_ref().is_some_and(|home| *home != user.home);
        if !self.create_home || moves || !user.home.starts_with('/') || host.stat(&user.home)?.is_some() {
            return Ok(Vec::new());
        }
        let skeleton = self.skeleton.as_deref().unwrap_or("/etc/skel");
        let mut changes: Vec<Change> = crate::attributes::missing_parents(host, &user.home)?
            .into_iter()
            .map(|path| Change::Mkdir { path, mode: None })
            .collect();
        if host.stat(skeleton)?.is_some() {
            changes.push(Change::Exec(Exec::of(&["cp", "-rT", "--preserve=mode,links", "--", skeleton, &user.home])));
        } else {
            changes.push(Change::Mkdir { path: user.home.clone(), mode: None });
        }
        let owner = format!("{}:{}", user.uid, user.gid);
        changes.push(Change::Exec(Exec::of(&["chown", "-R", "--", &owner, &user.home])));
        changes.push(Change::Chmod { path: user.home.clone(), mode: self.home_mode(host)? });
        Ok(changes)
    }

    fn home_mode(&self, host: &dyn Host) -> Result<u32, Error> {
        let octal = |text: &str| u32::from_str_radix(text, 8).ok();
        let lines = accounts::lines(host, "/etc/login.defs")?;
        let setting = |key: &str| {
            lines.iter().find_map(|line| {
                let mut words = line.split_whitespace();
                (words.next() == Some(key)).then(|| words.next().and_then(octal)).flatten()
            })
        };
        let own = self.umask.as_deref().and_then(octal).map(|umask| 0o777 & !umask);
        let mode = own.or_else(|| setting("HOME_MODE"));
        Ok(mode.unwrap_or_else(|| 0o777 & !setting("UMASK").unwrap_or(USUAL_UMASK)))
    }
}
