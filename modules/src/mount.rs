use schemars::JsonSchema;
use serde::Deserialize;

use crate::decode::Arguments;
use crate::facts::{entry_of, unescaped};
use crate::host::Put as _;
use crate::shared::yes;
use crate::{Change, Error, ErrorKind, Exec, Host, Module, Plan, Write};

/// Mount a file system, and keep its line in `/etc/fstab`.
///
/// ```yaml
/// - mount:
///     path: /srv/models
///     src: nas.example.org:/models
///     fstype: nfs4
///     opts: ro,_netdev
///     state: mounted
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The mount point.
    #[serde(alias = "name")]
    path: String,
    /// What is to be.
    state: State,
    /// The device or share.
    src: Option<String>,
    /// The file system's kind, such as `ext4`.
    fstype: Option<String>,
    /// Options; `defaults` when absent.
    opts: Option<String>,
    /// The fifth field of `/etc/fstab`.
    #[serde(default = "zero")]
    dump: String,
    /// The sixth field of `/etc/fstab`: the order of checks at start.
    #[serde(default = "zero")]
    passno: String,
    /// Another file instead of `/etc/fstab`.
    #[serde(default = "fstab")]
    fstab: String,
    /// Whether it is mounted at start: `false` adds `noauto`.
    #[serde(default = "yes")]
    boot: bool,
    /// Keep the old `/etc/fstab` beside the new one.
    #[serde(default)]
    backup: bool,
    /// Do not show the difference of `/etc/fstab`: the options hold a secret.
    #[serde(default)]
    opts_no_log: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum State {
    /// Mounted, and in the file; the mount point is made.
    Mounted,
    /// In the file, whether mounted or not.
    Present,
    /// Not mounted; the file stays as it is.
    Unmounted,
    /// Not mounted and not in the file; an empty mount point is removed.
    Absent,
    /// Not in the file, whether mounted or not.
    AbsentFromFstab,
    /// Mounted anew with the options.
    Remounted,
    /// Mounted, and not in the file.
    Ephemeral,
}

fn zero() -> String {
    "0".to_owned()
}

fn fstab() -> String {
    "/etc/fstab".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let path = self.check()?;
        let bytes = host.read(&self.fstab)?.unwrap_or_default();
        let old = String::from_utf8_lossy(&bytes).into_owned();
        let source = mounted_source(host, &path)?;
        let mut plan = Plan::default().with("name", path.as_str()).with("fstab", self.fstab.as_str());
        let ran = |word: &str| {
            host.applied()
                .iter()
                .any(|done| matches!(&done.change, Change::Exec(exec) if exec.argv.iter().any(|other| other == word)))
        };
        let changes = &mut plan.changes;
        match self.state {
            State::Present | State::Mounted => {
                let edited = self.write(&old, &self.with_entry(&old, &path));
                let changed = edited.is_some();
                changes.extend(edited);
                if self.state == State::Mounted {
                    self.mount_point(host, &path, changes)?;
                    if source.is_none() {
                        changes.push(self.mount_by_file(&path));
                    } else if changed {
                        changes.push(self.remount(&path));
                    }
                }
            }
            State::Unmounted => changes.extend(source.map(|_| unmount(&path))),
            State::Absent | State::AbsentFromFstab => {
                changes.extend(self.write(&old, &without_entry(&old, &path, self.source_of_swap())));
                if self.state == State::Absent {
                    let mounted = source.is_some();
                    changes.extend(source.map(|_| unmount(&path)));
                    let edited = host.applied().iter().any(|done| matches!(done.change, Change::Write(_)));
                    if edited && !mounted && host.list(&path)?.is_some_and(|names| names.is_empty()) {
                        changes.push(Change::Exec(Exec::of(&["rmdir", "--", &path])));
                    }
                }
            }
            State::Remounted if ran("mount") => {}
            State::Remounted if source.is_some() => changes.push(self.remount(&path)),
            State::Remounted => {
                return Err(Error::new(ErrorKind::Host, format!("`{path}` is not mounted: use `state: mounted`")));
            }
            State::Ephemeral => self.ephemeral(host, &path, source.as_deref(), changes)?,
        }
        for (key, value) in [("src", &self.src), ("fstype", &self.fstype)] {
            if let Some(value) = value {
                plan.result.insert(key.to_owned(), value.as_str().into());
            }
        }
        plan.result.put("opts", self.options());
        plan.result.put("dump", self.dump.as_str());
        plan.result.put("passno", self.passno.as_str());
        Ok(plan)
    }
}

impl Args {
    fn check(&self) -> Result<String, Error> {
        let bad = |message: String| Err(Error::new(ErrorKind::Arguments, message));
        let needs = matches!(self.state, State::Mounted | State::Present | State::Ephemeral);
        if needs && (self.src.is_none() || self.fstype.is_none()) {
            return bad("`state` of `mounted`, `present` and `ephemeral` needs `src` and `fstype`".into());
        }
        let swap = ["none", "swap"].contains(&self.path.as_str());
        if !self.path.starts_with('/') && !swap {
            return bad(format!("`path: {}` is no absolute path", self.path));
        }
        if swap && !matches!(self.state, State::Present | State::Absent | State::AbsentFromFstab) {
            return bad("swap can be `present` in and `absent` from the file, and is not mounted".into());
        }
        if self.dump.parse::<u8>().is_err() || self.passno.parse::<u8>().is_err() {
            return bad("`dump` and `passno` are small numbers".into());
        }
        let trimmed = self.path.trim_end_matches('/');
        Ok(if trimmed.is_empty() { "/".to_owned() } else { trimmed.to_owned() })
    }

    fn options(&self) -> String {
        let options = self.opts.as_deref().unwrap_or("defaults");
        if self.boot || options.split(',').any(|option| option == "noauto") {
            return options.to_owned();
        }
        format!("{options},noauto")
    }

    /// Lines of swap have the same mount point: the device tells them apart.
    fn source_of_swap(&self) -> Option<&str> {
        self.src.as_deref().filter(|_| ["none", "swap"].contains(&self.path.as_str()))
    }

    fn with_entry(&self, old: &str, path: &str) -> String {
        let (source, kind) = (self.src.as_deref().unwrap_or_default(), self.fstype.as_deref().unwrap_or_default());
        let fields = [escaped(source), escaped(path), escaped(kind), escaped(&self.options())];
        let line = format!("{} {} {}", fields.join(" "), self.dump, self.passno);
        let wanted = entry_of(&line);
        let mut placed = false;
        let mut new = String::new();
        for old_line in old.lines() {
            if !is_entry(old_line, path, self.source_of_swap()) {
                new.push_str(old_line);
            } else if placed {
                continue;
            } else {
                placed = true;
                // A line that says the same is kept as it is written, with its columns and comment.
                new.push_str(if entry_of(old_line) == wanted { old_line } else { &line });
            }
            new.push('\n');
        }
        if !placed {
            new.push_str(&line);
            new.push('\n');
        }
        new
    }

    fn write(&self, old: &str, new: &str) -> Option<Change> {
        (old != new).then(|| {
            Change::Write(Write { backup: self.backup, hidden: self.opts_no_log, ..Write::new(&self.fstab, new) })
        })
    }

    fn mount_point(&self, host: &dyn Host, path: &str, changes: &mut Vec<Change>) -> Result<(), Error> {
        if host.stat(path)?.is_none() {
            let parents = crate::attributes::missing_parents(host, path)?;
            changes.extend(parents.into_iter().map(|path| Change::Mkdir { path, mode: None }));
            changes.push(Change::Mkdir { path: path.to_owned(), mode: None });
        }
        Ok(())
    }

    fn mount_by_file(&self, path: &str) -> Change {
        let mut argv = vec!["mount"];
        if self.fstab != fstab() {
            argv.extend(["-T", &self.fstab]);
        }
        argv.push(path);
        Change::Exec(Exec::new(argv))
    }

    fn remount(&self, path: &str) -> Change {
        let options = match &self.opts {
            Some(options) => format!("remount,{options}"),
            None => "remount".to_owned(),
        };
        let mut argv = vec!["mount"];
        if self.fstab != fstab() {
            argv.extend(["-T", &self.fstab]);
        }
        argv.extend(["-o", &options, path]);
        Change::Exec(Exec::new(argv))
    }

    fn ephemeral(
        &self,
        host: &dyn Host,
        path: &str,
        source: Option<&str>,
        changes: &mut Vec<Change>,
    ) -> Result<(), Error> {
        let (wanted, kind) = (self.src.as_deref().unwrap_or_default(), self.fstype.as_deref().unwrap_or_default());
        match source {
            None => {
                self.mount_point(host, path, changes)?;
                let mut argv = vec!["mount", "-t", kind];
                argv.extend(self.opts.as_deref().into_iter().flat_map(|options| ["-o", options]));
                argv.extend(["--", wanted, path]);
                changes.push(Change::Exec(Exec::new(argv)));
                Ok(())
            }
            Some(source) if source == wanted || real(host, source) == real(host, wanted) => Ok(()),
            Some(source) => Err(Error::new(
                ErrorKind::Host,
                format!("`{source}` is mounted on `{path}`, not `{wanted}`: unmount it first"),
            )),
        }
    }
}

/// Follows a link such as `/dev/disk/by-label/data` to the device's name.
fn real(host: &dyn Host, device: &str) -> String {
    let target = host.read_link(device).ok().flatten();
    let target = target.as_deref().unwrap_or(device);
    target.rsplit('/').next().unwrap_or(target).to_owned()
}

fn unmount(path: &str) -> Change {
    Change::Exec(Exec::of(&["umount", path]))
}

fn escaped(field: &str) -> String {
    field.replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011").replace('\n', "\\012")
}

fn is_entry(line: &str, path: &str, source: Option<&str>) -> bool {
    entry_of(line).is_some_and(|entry| {
        let mount = entry.mount.trim_end_matches('/');
        (if mount.is_empty() { "/" } else { mount }) == path && source.is_none_or(|source| entry.device == source)
    })
}

fn without_entry(old: &str, path: &str, source: Option<&str>) -> String {
    old.lines().filter(|line| !is_entry(line, path, source)).map(|line| format!("{line}\n")).collect()
}

/// Returns what is mounted on `path`, the last where several are. Source: `proc_pid_mountinfo(5)`.
fn mounted_source(host: &dyn Host, path: &str) -> Result<Option<String>, Error> {
    let bytes = host.read("/proc/self/mountinfo")?.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let at = |line: &str| {
        let (head, tail) = line.split_once(" - ")?;
        let mount = unescaped(head.split(' ').nth(4)?);
        (mount == path).then(|| unescaped(tail.split(' ').nth(1).unwrap_or_default()))
    };
    Ok(text.lines().rev().find_map(at))
}
