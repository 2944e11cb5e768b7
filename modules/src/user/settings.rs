//! Making an account, and the differences between one and what is wanted.

use super::{Args, UpdatePassword};
use crate::accounts::{self, Group, User};
use crate::order::sort;
use crate::{Change, Error, ErrorKind, Exec, Host};

const DAY_S: f64 = 86_400.0;

/// Returns the groups beside the primary one.
pub(super) fn groups_of(all: &[Group], user: &User) -> Vec<String> {
    let of_it = |group: &&Group| group.gid != user.gid && group.members.contains(&user.name);
    let mut names: Vec<String> = all.iter().filter(of_it).map(|group| group.name.clone()).collect();
    sort(&mut names);
    names
}

/// The fields of `/etc/shadow` that are managed. Source: `shadow(5)`.
struct Shadow {
    password: String,
    min: Option<i64>,
    max: Option<i64>,
    warn: Option<i64>,
    inactive: Option<i64>,
    /// Days since 1970; `None` is never.
    expires: Option<i64>,
}

impl Args {
    pub(super) fn create(&self, host: &dyn Host) -> Result<Vec<Change>, Error> {
        let mut argv = vec!["useradd".to_owned()];
        let mut option = |words: &[&str]| argv.extend(words.iter().map(|&word| word.to_owned()));
        if let Some(uid) = self.uid {
            option(&["--uid", &uid.to_string()]);
            if self.non_unique {
                option(&["--non-unique"]);
            }
        }
        match &self.group {
            Some(group) => option(&["--gid", &self.known_group(host, group)?.name]),
            // A group of the same name is there: let useradd not try to make it.
            None if accounts::group(host, &self.name, self.local)?.is_some_and(|group| group.name == self.name) => {
                option(&["--no-user-group"]);
            }
            None => {}
        }
        if let Some(groups) = self.groups.as_ref().filter(|groups| !groups.is_empty()) {
            let names: Result<Vec<String>, Error> =
                groups.iter().map(|group| Ok(self.known_group(host, group)?.name)).collect();
            option(&["--groups", &names?.join(",")]);
        }
        for (flag, text) in [("--comment", &self.comment), ("--home-dir", &self.home), ("--shell", &self.shell)] {
            if let Some(text) = text {
                option(&[flag, text]);
            }
        }
        if let Some(expires) = self.expires {
            option(&["--expiredate", &day(expires)]);
        }
        if self.create_home {
            option(&["--create-home"]);
            if let Some(skeleton) = &self.skeleton {
                option(&["--skel", skeleton]);
            }
            if let Some(umask) = &self.umask {
                option(&["--key", &format!("UMASK={umask}")]);
            }
        } else {
            option(&["--no-create-home"]);
        }
        if self.system {
            option(&["--system"]);
        }
        for (key, limit) in [("UID_MIN", self.uid_min), ("UID_MAX", self.uid_max)] {
            if let Some(limit) = limit {
                option(&["--key", &format!("{key}={limit}")]);
            }
        }
        argv.push(self.name.clone());
        let mut changes = vec![Change::Exec(Exec::new(argv))];
        changes.extend(self.password.as_deref().map(|hash| self.set_password(hash)));
        Ok(changes)
    }

    /// Sets a hash through the command's input, so that no list of processes shows it.
    fn set_password(&self, hash: &str) -> Change {
        let exec = Exec::of(&["chpasswd", "--encrypted"]);
        Change::Exec(Exec { stdin: Some(format!("{}:{hash}\n", self.name)), ..exec })
    }

    pub(super) fn change(&self, host: &dyn Host, user: &User) -> Result<Vec<Change>, Error> {
        let mut argv: Vec<String> = Vec::new();
        let mut option = |words: &[&str]| argv.extend(words.iter().map(|&word| word.to_owned()));
        if let Some(uid) = self.uid.filter(|&uid| uid != user.uid) {
            option(&["--uid", &uid.to_string()]);
            if self.non_unique {
                option(&["--non-unique"]);
            }
        }
        let mut primary = user.gid;
        if let Some(group) = &self.group {
            let group = self.known_group(host, group)?;
            primary = group.gid;
            if group.gid != user.gid {
                option(&["--gid", &group.name]);
            }
        }
        if let Some(groups) = &self.groups {
            let now = groups_of(&accounts::groups(host)?, user);
            let mut wanted = Vec::new();
            for group in groups {
                let group = self.known_group(host, group)?;
                if group.gid != primary && !wanted.contains(&group.name) {
                    wanted.push(group.name);
                }
            }
            let missing: Vec<&str> = wanted.iter().filter(|name| !now.contains(name)).map(String::as_str).collect();
            if self.append && !missing.is_empty() {
                option(&["--append", "--groups", &missing.join(",")]);
            }
            if !self.append && (!missing.is_empty() || now.iter().any(|name| !wanted.contains(name))) {
                option(&["--groups", &wanted.join(",")]);
            }
        }
        if let Some(comment) = self.comment.as_ref().filter(|comment| **comment != user.comment) {
            option(&["--comment", comment]);
        }
        if let Some(home) = self.home.as_ref().filter(|home| **home != user.home) {
            option(&["--home", home]);
            if self.move_home {
                option(&["--move-home"]);
            }
        }
        if let Some(shell) = self.shell.as_ref().filter(|shell| **shell != user.shell) {
            option(&["--shell", shell]);
        }
        let shadow = self.shadow(host)?;
        if let (Some(expires), Some(shadow)) = (self.expires, &shadow)
            && (expires >= 0.0).then(|| (expires / DAY_S) as i64) != shadow.expires
        {
            option(&["--expiredate", &day(expires)]);
        }
        let set = self.password.as_deref().filter(|hash| {
            self.update_password == UpdatePassword::Always
                && shadow.as_ref().is_none_or(|shadow| bare(&shadow.password) != bare(hash))
        });
        let locked = set.unwrap_or_else(|| shadow.as_ref().map_or("", |shadow| &shadow.password)).starts_with('!');
        match self.password_lock {
            Some(true) if !locked => option(&["--lock"]),
            Some(false) if locked => option(&["--unlock"]),
            Some(_) | None => {}
        }
        let mut changes: Vec<Change> = set.map(|hash| self.set_password(hash)).into_iter().collect();
        if !argv.is_empty() {
            argv.insert(0, "usermod".to_owned());
            argv.push(self.name.clone());
            changes.push(Change::Exec(Exec::new(argv)));
        }
        changes.extend(self.ageing(shadow.as_ref()));
        Ok(changes)
    }

    /// Returns the change of how passwords age.
    fn ageing(&self, shadow: Option<&Shadow>) -> Option<Change> {
        let now = |field: fn(&Shadow) -> Option<i64>| shadow.and_then(field);
        let wanted = [
            ("--maxdays", self.password_expire_max, now(|shadow| shadow.max)),
            ("--mindays", self.password_expire_min, now(|shadow| shadow.min)),
            ("--warndays", self.password_expire_warn, now(|shadow| shadow.warn)),
            ("--inactive", self.password_expire_account_disable, now(|shadow| shadow.inactive)),
        ];
        let mut argv = vec!["chage".to_owned()];
        for (flag, wanted, now) in wanted {
            // -1 takes a limit away, which the file shows as nothing.
            if let Some(days) = wanted.filter(|&days| Some(days) != now && !(days < 0 && now.is_none())) {
                argv.extend([flag.to_owned(), days.to_string()]);
            }
        }
        (argv.len() > 1).then(|| {
            argv.push(self.name.clone());
            Change::Exec(Exec::new(argv))
        })
    }

    /// Returns the account's line of `/etc/shadow`; `None` where it has none.
    fn shadow(&self, host: &dyn Host) -> Result<Option<Shadow>, Error> {
        let ask = self.password.is_some()
            || self.password_lock.is_some()
            || self.expires.is_some()
            || self.password_expire_max.is_some()
            || self.password_expire_min.is_some()
            || self.password_expire_warn.is_some()
            || self.password_expire_account_disable.is_some();
        if !ask {
            return Ok(None);
        }
        let lines = accounts::lines(host, "/etc/shadow")?;
        Ok(lines.iter().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let number = |nth: usize| fields.get(nth).and_then(|field| field.parse().ok());
            (fields.first() == Some(&self.name.as_str())).then(|| Shadow {
                password: fields.get(1).map_or(String::new(), |&field| field.to_owned()),
                min: number(3),
                max: number(4),
                warn: number(5),
                inactive: number(6),
                expires: number(7),
            })
        }))
    }

    fn known_group(&self, host: &dyn Host, name: &str) -> Result<Group, Error> {
        accounts::group(host, name, self.local)?.ok_or_else(|| {
            Error::new(ErrorKind::Host, format!("there is no group `{name}` on this host: make it first with `group`"))
        })
    }
}

/// Returns a hash without the mark of a locked one.
fn bare(hash: &str) -> &str {
    hash.trim_start_matches('!')
}

/// Returns the day of a time as `useradd` reads it: a number of days since 1970, or nothing for never.
fn day(seconds: f64) -> String {
    if seconds < 0.0 { String::new() } else { ((seconds / DAY_S) as i64).to_string() }
}
