use schemars::JsonSchema;
use serde::Deserialize;

use crate::attributes::{Wanted, describe, missing_parents};
use crate::decode::Arguments;
use crate::shared::yes;
use crate::{Change, Error, ErrorKind, FileKind, Host, Mode, Module, Plan, Stat, Write, clock, paths};

/// Keep a file, directory or link present with its owner and mode, or absent.
///
/// ```yaml
/// - file:
///     path: /etc/kubernetes
///     state: directory
///     mode: "0755"
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The path itself; for `link` and `hard`, where the link is.
    #[serde(alias = "dest", alias = "name")]
    path: String,
    /// What must be there; absent keeps what is there and sets its owner and mode only.
    state: Option<State>,
    /// What a `link` or `hard` leads to. A relative one is seen from the link's own folder.
    src: Option<String>,
    /// Permission bits such as "0644", or clauses such as `u=rwX,go=rX`; left as they are when absent.
    mode: Option<Mode>,
    /// The owner's name or number.
    owner: Option<String>,
    /// The group's name or number.
    group: Option<String>,
    /// Flags of `chattr`: `+i` adds, `-i` takes away, `=i` or `i` leaves no others.
    #[serde(alias = "attr")]
    attributes: Option<String>,
    /// Set owner, group and mode of all that is in the directory too.
    #[serde(default)]
    recurse: bool,
    /// Make a link whose target does not exist, and replace a file or an empty directory by a link.
    #[serde(default)]
    force: bool,
    /// Where the path is a link, mean what it leads to.
    #[serde(default = "yes")]
    follow: bool,
    /// `now`, `preserve`, or a time as `modification_time_format` has it. For `touch`, `now` when absent.
    modification_time: Option<String>,
    /// How `modification_time` is written.
    #[serde(default = "touch_format")]
    modification_time_format: String,
    /// As `modification_time`, for the time of the last access.
    access_time: Option<String>,
    /// How `access_time` is written.
    #[serde(default = "touch_format")]
    access_time_format: String,
    /// Accepted; a `file` task writes no content.
    #[serde(default)]
    #[expect(dead_code, reason = "users pass it to all modules that deal with files")]
    unsafe_writes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum State {
    /// Nothing; a directory goes with all that is in it.
    Absent,
    /// A directory; missing parents are made.
    Directory,
    /// A file that is there already.
    File,
    /// A hard link to `src`.
    Hard,
    /// A symbolic link to `src`.
    Link,
    /// A file, made empty where it is missing, with its times set.
    Touch,
}

fn touch_format() -> String {
    "%Y%m%d%H%M.%S".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let wanted = Wanted::new(host, self.mode.as_ref(), self.owner.as_deref(), self.group.as_deref())?;
        let mut path = paths::expand(host, &self.path)?;
        if path.len() > 1 {
            path.truncate(path.trim_end_matches('/').len().max(1));
        }
        let found = host.lstat(&path)?;
        let state = self.state.unwrap_or(match found.map(|stat| stat.kind) {
            Some(FileKind::Directory) => State::Directory,
            Some(FileKind::Link) if self.src.is_some() || !self.follow => State::Link,
            Some(FileKind::Link) if is_directory(host, &path)? => State::Directory,
            Some(_) => State::File,
            None if self.recurse => State::Directory,
            None => State::File,
        });
        self.agree(state)?;
        if let (State::Hard | State::Touch, Some(src)) = (state, &self.src)
            && is_directory(host, &path)?
        {
            path = paths::join(&path, paths::name(src));
        }
        let mut changes = Vec::new();
        match state {
            State::Absent if found.is_some() => changes.push(Change::Remove { path: path.clone() }),
            State::Absent => {}
            State::Directory => self.directory(host, &path, &wanted, &mut changes)?,
            State::File => self.file(host, &path, &wanted, &mut changes)?,
            State::Hard => self.hard(host, &path, &wanted, &mut changes)?,
            State::Link => self.link(host, &path, &wanted, &mut changes)?,
            State::Touch => self.touch(host, &path, &wanted, &mut changes)?,
        }
        if let (Some(wanted), true) = (&self.attributes, state != State::Absent) {
            let meant = self.meant(host, &path)?;
            // What is not there yet is looked at again once it is made.
            if host.lstat(&meant)?.is_some() {
                crate::chattr::changes(host, &meant, wanted, &mut changes)?;
            }
        }
        let mut plan = Plan::from(changes).with("path", path.as_str());
        if let State::Link | State::Hard = state {
            plan = plan.with("dest", path.as_str());
            if let Some(src) = &self.src {
                plan = plan.with("src", src.as_str());
            }
        }
        describe(host, &path, &mut plan.result)?;
        if state == State::Absent {
            plan.result.retain(|key, _| matches!(key.as_str(), "path" | "state"));
            plan = plan.with("state", "absent");
        }
        Ok(plan)
    }
}

impl Args {
    fn agree(&self, state: State) -> Result<(), Error> {
        if self.recurse && state != State::Directory {
            return Err(bad("`recurse` needs `state: directory`"));
        }
        if self.recurse && self.attributes.is_some() {
            return Err(bad("`attributes` is for the path alone: use `command: chattr -R` for all that is in it"));
        }
        if self.src.is_some() && !matches!(state, State::Link | State::Hard) {
            return Err(bad("`src` needs `state: link` or `state: hard`"));
        }
        if state == State::Hard && self.src.is_none() {
            return Err(bad("`state: hard` needs `src`"));
        }
        Ok(())
    }

    /// Returns the path that is meant: what a link leads to, unless links are not to be followed.
    fn meant(&self, host: &dyn Host, path: &str) -> Result<String, Error> {
        if self.follow { paths::follow(host, path) } else { Ok(path.to_owned()) }
    }

    fn file(&self, host: &dyn Host, path: &str, wanted: &Wanted, changes: &mut Vec<Change>) -> Result<(), Error> {
        let path = self.meant(host, path)?;
        match host.lstat(&path)? {
            Some(stat) if stat.kind == FileKind::Directory => {
                Err(wrong(format!("`{path}` is a directory, not a file")))
            }
            Some(stat) if stat.kind == FileKind::Link => Err(wrong(format!("`{path}` is a link, not a file"))),
            Some(stat) => self.attributes(host, &path, &stat, wanted, changes),
            None => Err(wrong(format!("file ({path}) is absent, cannot continue"))
                .with("path", path)
                .with("state", "absent")),
        }
    }

    /// Adds owner, mode and times of what is there.
    fn attributes(
        &self,
        host: &dyn Host,
        path: &str,
        found: &Stat,
        wanted: &Wanted,
        changes: &mut Vec<Change>,
    ) -> Result<(), Error> {
        wanted.changes(host, path, found, changes);
        self.times(host, path, Some(found), Time::Preserve, changes)
    }

    fn times(
        &self,
        host: &dyn Host,
        path: &str,
        found: Option<&Stat>,
        absent: Time,
        changes: &mut Vec<Change>,
    ) -> Result<(), Error> {
        let touched = host
            .applied()
            .iter()
            .any(|done| matches!(&done.change, Change::Touch { path: other, .. } if other == path));
        let wanted = |text: &Option<String>, format: &str, now_is: Option<i64>| -> Result<Option<f64>, Error> {
            Ok(match Time::read(text.as_deref(), format, absent)? {
                Time::Preserve => None,
                Time::Now if touched => None,
                Time::Now => Some(host.started_s()),
                Time::At(seconds) => Some(seconds).filter(|_| now_is != Some(seconds as i64)),
            })
        };
        let accessed_s = wanted(&self.access_time, &self.access_time_format, found.map(|stat| stat.accessed_s))?;
        let modified_s =
            wanted(&self.modification_time, &self.modification_time_format, found.map(|stat| stat.modified_s))?;
        if accessed_s.is_some() || modified_s.is_some() {
            changes.push(Change::Touch { path: path.to_owned(), accessed_s, modified_s });
        }
        Ok(())
    }

    fn directory(&self, host: &dyn Host, path: &str, wanted: &Wanted, changes: &mut Vec<Change>) -> Result<(), Error> {
        let path = self.meant(host, path)?;
        match host.lstat(&path)? {
            Some(stat) if stat.kind == FileKind::Directory => {
                self.attributes(host, &path, &stat, wanted, changes)?;
                if self.recurse {
                    self.below(host, &path, wanted, &mut vec![(stat.device, stat.inode)], changes)?;
                }
                Ok(())
            }
            Some(stat) if stat.kind == FileKind::Link => Err(wrong(format!("`{path}` is a link, not a directory"))),
            Some(_) => Err(wrong(format!("`{path}` exists and is not a directory"))),
            None => {
                for parent in missing_parents(host, &path)? {
                    wanted.make_directory(host, &parent, changes);
                }
                wanted.make_directory(host, &path, changes);
                self.times(host, &path, None, Time::Preserve, changes)
            }
        }
    }

    /// Adds the owner and mode of all that is below a directory. `within` are the directories on the way, so that a
    /// link to one of them ends there.
    fn below(
        &self,
        host: &dyn Host,
        folder: &str,
        wanted: &Wanted,
        within: &mut Vec<(u64, u64)>,
        changes: &mut Vec<Change>,
    ) -> Result<(), Error> {
        for name in host.list(folder)?.unwrap_or_default() {
            let mut path = paths::join(folder, &name);
            let Some(mut stat) = host.lstat(&path)? else { continue };
            if stat.kind == FileKind::Link && self.follow {
                match host.stat(&path)? {
                    Some(target) => (path, stat) = (paths::follow(host, &path)?, target),
                    None => continue,
                }
            }
            wanted.changes(host, &path, &stat, changes);
            if stat.kind == FileKind::Directory && !within.contains(&(stat.device, stat.inode)) {
                within.push((stat.device, stat.inode));
                self.below(host, &path, wanted, within, changes)?;
                within.pop();
            }
        }
        Ok(())
    }

    fn link(&self, host: &dyn Host, path: &str, wanted: &Wanted, changes: &mut Vec<Change>) -> Result<(), Error> {
        let old = host.read_link(path)?;
        let target = match (&self.src, &old) {
            (Some(src), _) => paths::expand(host, src)?,
            (None, Some(old)) => old.clone(),
            (None, None) => return Err(bad("`state: link` needs `src`")),
        };
        let found = host.lstat(path)?;
        let leads_to = match found.map(|stat| stat.kind) {
            Some(FileKind::Directory) if !target.starts_with('/') => paths::join(path, &target),
            Some(_) | None => paths::beside(path, &target),
        };
        if !self.force && host.stat(&leads_to)?.is_none() && old.as_ref() != Some(&target) {
            return Err(wrong(format!("`{leads_to}` does not exist; `force: true` links to it nevertheless")));
        }
        match found.map(|stat| stat.kind) {
            Some(FileKind::Directory) if !self.force => {
                return Err(wrong(format!("`{path}` is a directory; `force: true` replaces it when it is empty")));
            }
            Some(FileKind::Directory) if host.list(path)?.is_some_and(|names| !names.is_empty()) => {
                return Err(wrong(format!("the directory `{path}` is not empty: it is not replaced by a link")));
            }
            Some(FileKind::Link | FileKind::Directory) | None => {}
            Some(_) if !self.force => {
                return Err(wrong(format!("`{path}` is a file; `force: true` replaces it by a link")));
            }
            Some(_) => {}
        }
        if old.as_ref() != Some(&target) {
            changes.push(Change::Symlink { path: path.to_owned(), target });
            return Ok(());
        }
        let path = self.meant(host, path)?;
        match host.lstat(&path)? {
            Some(stat) => self.attributes(host, &path, &stat, wanted, changes),
            None => Ok(()),
        }
    }

    fn hard(&self, host: &dyn Host, path: &str, wanted: &Wanted, changes: &mut Vec<Change>) -> Result<(), Error> {
        let src = paths::expand(host, self.src.as_deref().expect("checked before: `hard` has `src`"))?;
        if !src.starts_with('/') {
            return Err(bad("`src` of a hard link must be an absolute path"));
        }
        let Some(source) = host.stat(&src)? else { return Err(wrong(format!("`{src}` does not exist"))) };
        match host.lstat(path)? {
            Some(stat) if (stat.device, stat.inode) == (source.device, source.inode) => {
                return self.attributes(host, path, &stat, wanted, changes);
            }
            Some(stat) if stat.kind == FileKind::Directory => {
                return Err(wrong(format!("`{path}` is a directory, not replaced by a hard link")));
            }
            Some(_) if !self.force => {
                return Err(wrong(format!("`{path}` is another file; `force: true` replaces it by the hard link")));
            }
            Some(_) | None => changes.push(Change::Hardlink { path: path.to_owned(), target: src }),
        }
        Ok(())
    }

    fn touch(&self, host: &dyn Host, path: &str, wanted: &Wanted, changes: &mut Vec<Change>) -> Result<(), Error> {
        let path = self.meant(host, path)?;
        let found = host.lstat(&path)?;
        match &found {
            Some(stat) => wanted.changes(host, &path, stat, changes),
            None => {
                let mut write = Write::new(&path, "");
                wanted.apply_to(&mut write, None);
                changes.push(Change::Write(write));
                // A new file's times are now already.
                if self.access_time.is_none() && self.modification_time.is_none() {
                    return Ok(());
                }
            }
        }
        let made = host.applied().iter().any(|done| matches!(&done.change, Change::Write(write) if write.path == path));
        let absent = if made { Time::Preserve } else { Time::Now };
        self.times(host, &path, found.as_ref(), absent, changes)
    }
}

/// A time that a file is to have.
#[derive(Clone, Copy)]
enum Time {
    Preserve,
    Now,
    At(f64),
}

impl Time {
    fn read(text: Option<&str>, format: &str, absent: Time) -> Result<Time, Error> {
        match text {
            None | Some("") => Ok(absent),
            Some("preserve") => Ok(Time::Preserve),
            Some("now") => Ok(Time::Now),
            Some(text) => match clock::parse(text, format) {
                Some(seconds) => Ok(Time::At(seconds)),
                None => Err(bad(format!("`{text}` is no time written as `{format}`"))),
            },
        }
    }
}

fn is_directory(host: &dyn Host, path: &str) -> Result<bool, Error> {
    Ok(host.stat(path)?.is_some_and(|stat| stat.kind == FileKind::Directory))
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Arguments, message)
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Host, message)
}
