//! Files, folders and links: every write is whole or not at all.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::ops::RangeInclusive;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Content, Write, leftovers};
use crate::{Error, ErrorKind, Machine};

/// The extended attribute that carries a file's SELinux label.
const SELINUX_LABEL: &std::ffi::CStr = c"security.selinux";
/// Sizes of files that are compared with the version that is here, to receive only what is new. Of larger ones the list
/// of chunks would take the runner longer than a host waits for it.
const COMPARED_BYTES: RangeInclusive<u64> = 1 << 20..=8 << 30;
/// How the names of private folders begin.
const SCRATCH: &str = "kubeon-";

/// Writes to a temporary name in the same folder, fsyncs, gives it mode, owner and label, renames it over `path` and
/// fsyncs the folder. A link at `path` is followed. Returns where the backup went, where one was asked for.
pub(super) fn write(machine: &Machine, write: &Write) -> Result<Option<String>, Error> {
    let attempted = |error: io::Error| match missing_parent(&write.path) {
        Some(parent) => Error::new(
            ErrorKind::Failed,
            format!("write `{}`: its folder `{parent}` does not exist; make it with `file` first", write.path),
        ),
        None => failed(format!("write `{}`", write.path), &error),
    };
    let target = match fs::canonicalize(&write.path) {
        Ok(target) if !write.replace_link => target,
        Ok(_) | Err(_) => PathBuf::from(&write.path),
    };
    let old = match if write.replace_link { fs::symlink_metadata(&target) } else { fs::metadata(&target) } {
        Ok(old) if old.is_symlink() => None,
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(attempted(error)),
    };
    if old.as_ref().is_some_and(fs::Metadata::is_dir) {
        return Err(Error::new(ErrorKind::Failed, format!("write `{}`: it is a directory", write.path)));
    }
    let backup = match (&old, write.backup) {
        (Some(_), true) => Some(back_up(&target).map_err(attempted)?),
        (None, _) | (_, false) => None,
    };
    let left = left_of(&target, &write.content);
    let (temporary, mut file) = temporary_beside(&target).map_err(attempted)?;
    let written = (|| {
        match &write.content {
            Content::Inline(bytes) => file.write_all(bytes).map_err(attempted)?,
            Content::Sent { sha256, size_bytes } => {
                let is_old = old.as_ref().is_some_and(|old| worth_comparing(old, *size_bytes));
                let here = if is_old { File::open(&target).ok() } else { None };
                let known: Vec<File> = left.into_iter().chain(here).collect();
                let received = machine.receive(sha256, *size_bytes, &known, &mut file);
                // What is here may be written to while it is compared.
                match received {
                    Err(_) if !known.is_empty() && !machine.is_cut_off() => {
                        file.set_len(0).and_then(|()| file.rewind()).map_err(attempted)?;
                        machine.receive(sha256, *size_bytes, &[], &mut file)?;
                    }
                    received => received?,
                }
            }
            Content::File { path } => copy_of(path, &mut file)?,
        }
        let uid = write.uid.or(old.as_ref().map(MetadataExt::uid));
        let gid = write.gid.or(old.as_ref().map(MetadataExt::gid));
        if uid.is_some() || gid.is_some() {
            std::os::unix::fs::fchown(&file, uid, gid).map_err(attempted)?;
        }
        let mode = write.mode.or(old.as_ref().map(|old| old.mode() & 0o7777)).unwrap_or(0o644 & !umask());
        file.set_permissions(fs::Permissions::from_mode(mode)).map_err(attempted)?;
        if old.is_some() {
            copy_label(&target, &temporary);
        }
        file.sync_all().map_err(attempted)?;
        match fs::rename(&temporary, &target) {
            Err(error) if write.in_place && error.kind() == io::ErrorKind::ResourceBusy => {
                write_into(&temporary, &target).map_err(attempted)
            }
            renamed => renamed.map_err(attempted),
        }
    })();
    if let Err(error) = written {
        // What has come of large content is taken up by whoever writes here next.
        let is_worth_it = file.metadata().is_ok_and(|got| worth_comparing(&got, got.len()));
        if !(machine.is_cut_off() && is_worth_it) {
            fs::remove_file(&temporary).ok();
        }
        return Err(error);
    }
    sync_parent(&target);
    Ok(backup)
}

/// Whether it is worth to look for what content of this size has of a file.
fn worth_comparing(file: &fs::Metadata, size_bytes: u64) -> bool {
    file.is_file() && [file.len(), size_bytes].iter().all(|size| COMPARED_BYTES.contains(size))
}

/// Opens what is left of an earlier try to receive content for `target`, before it is swept away.
fn left_of(target: &Path, content: &Content) -> Option<File> {
    let Content::Sent { size_bytes, .. } = content else { return None };
    if !COMPARED_BYTES.contains(size_bytes) {
        return None;
    }
    let (folder, before) = beside(target);
    let largest = leftovers::found(folder, &before, "~")
        .filter_map(|path| {
            let careful = libc::O_NOFOLLOW | libc::O_NONBLOCK;
            let file = OpenOptions::new().read(true).custom_flags(careful).open(path).ok()?;
            let metadata = file.metadata().ok()?;
            worth_comparing(&metadata, *size_bytes).then_some((metadata.len(), file))
        })
        .max_by_key(|(size, _)| *size)?;
    Some(largest.1)
}

/// Returns the folder of `target`, and how the names of temporary files beside it begin.
fn beside(target: &Path) -> (&Path, String) {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let short: String = name.chars().take(100).collect();
    (target.parent().unwrap_or(Path::new("/")), format!(".{short}.kubeon-"))
}

fn copy_of(path: &str, into: &mut File) -> Result<(), Error> {
    File::open(path)
        .and_then(|mut from| io::copy(&mut from, into))
        .map(drop)
        .map_err(|error| failed(format!("copy `{path}`"), &error))
}

/// Returns the folder of `path` where there is none.
fn missing_parent(path: &str) -> Option<String> {
    let parent = Path::new(path).parent().filter(|parent| !parent.as_os_str().is_empty())?;
    if parent.exists() { None } else { Some(parent.display().to_string()) }
}

/// Copies what is in `temporary` into `target` and removes `temporary`: for a file that can't be replaced.
fn write_into(temporary: &Path, target: &Path) -> io::Result<()> {
    let mut from = File::open(temporary)?;
    let mut to = OpenOptions::new().write(true).truncate(true).open(target)?;
    io::copy(&mut from, &mut to)?;
    to.sync_all()?;
    fs::remove_file(temporary)
}

/// Makes a file beside `target` that only its owner can read, under a name no reader of the folder takes for its own
/// (a leading dot, no known ending).
fn temporary_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (folder, before) = beside(target);
    leftovers::sweep(folder, &before, "~");
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = target.with_file_name(leftovers::name(&before, count, "~"));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => {
                leftovers::claim(&file);
                return Ok((path, file));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Copies `target` to `PATH.PID.DATE@TIME~`, the name that Ansible gives a backup.
fn back_up(target: &Path) -> io::Result<String> {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    let (date, time) = date_and_time(now_s);
    let backup = format!("{}.{}.{date}@{time}~", target.display(), std::process::id());
    fs::copy(target, &backup)?;
    let old = fs::metadata(target)?;
    std::os::unix::fs::chown(&backup, Some(old.uid()), Some(old.gid())).ok();
    Ok(backup)
}

/// Returns `YYYY-MM-DD` and `HH:MM:SS` in UTC. Source: Howard Hinnant's `civil_from_days`.
fn date_and_time(seconds: u64) -> (String, String) {
    let days = (seconds / 86_400) as i64 + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let rest = seconds % 86_400;
    (format!("{year:04}-{month:02}-{day:02}"), format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60))
}

fn umask() -> u32 {
    // /proc tells it without setting it, which would race with other threads.
    fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
            u32::from_str_radix(line.trim(), 8).ok()
        })
        .unwrap_or(0o022)
}

fn copy_label(from: &Path, to: &Path) {
    use std::os::unix::ffi::OsStrExt;
    let (Ok(from), Ok(to)) =
        (std::ffi::CString::new(from.as_os_str().as_bytes()), std::ffi::CString::new(to.as_os_str().as_bytes()))
    else {
        return;
    };
    let mut label = [0_u8; 1024];
    // SAFETY: all pointers are to live, NUL-terminated strings or to `label`, whose length is passed.
    unsafe {
        let size = libc::getxattr(from.as_ptr(), SELINUX_LABEL.as_ptr(), label.as_mut_ptr().cast(), label.len());
        if size > 0 {
            libc::setxattr(to.as_ptr(), SELINUX_LABEL.as_ptr(), label.as_ptr().cast(), size as usize, 0);
        }
    }
}

fn sync_parent(path: &Path) {
    if let Some(parent) = path.parent()
        && let Ok(folder) = File::open(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
    {
        folder.sync_all().ok();
    }
}

pub(super) fn mkdir(path: &str, mode: Option<u32>) -> Result<(), Error> {
    let attempted = |error: io::Error| failed(format!("make directory `{path}`"), &error);
    fs::DirBuilder::new().mode(0o755).create(path).map_err(attempted)?;
    match mode {
        Some(mode) => fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(attempted),
        None => Ok(()),
    }
}

pub(super) fn chmod(path: &str, mode: u32) -> Result<(), Error> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(|error| failed(format!("set mode {mode:04o} of `{path}`"), &error))
}

pub(super) fn chown(path: &str, uid: Option<u32>, gid: Option<u32>) -> Result<(), Error> {
    std::os::unix::fs::lchown(path, uid, gid).map_err(|error| failed(format!("set owner of `{path}`"), &error))
}

pub(super) fn symlink(path: &str, target: &str) -> Result<(), Error> {
    replace(path, |temporary| std::os::unix::fs::symlink(target, temporary))
        .map_err(|error| failed(format!("link `{path}` to `{target}`"), &error))
}

pub(super) fn hardlink(path: &str, target: &str) -> Result<(), Error> {
    replace(path, |temporary| fs::hard_link(target, temporary))
        .map_err(|error| failed(format!("hard-link `{path}` to `{target}`"), &error))
}

/// Makes something under a temporary name and renames it to `path`, so that `path` is never absent in between.
fn replace(path: &str, make: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let target = Path::new(path);
    let (temporary, _) = temporary_beside(target)?;
    fs::remove_file(&temporary)?;
    make(&temporary)?;
    if fs::symlink_metadata(target).is_ok_and(|old| old.is_dir()) {
        fs::remove_dir(target)?;
    }
    fs::rename(&temporary, target).inspect_err(|_| {
        fs::remove_file(&temporary).ok();
    })?;
    sync_parent(target);
    Ok(())
}

pub(super) fn remove(path: &str) -> Result<(), Error> {
    let removed = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    };
    removed.map_err(|error| failed(format!("remove `{path}`"), &error))
}

pub(super) fn rename(path: &str, to: &str) -> Result<(), Error> {
    fs::rename(path, to).map_err(|error| failed(format!("rename `{path}` to `{to}`"), &error))?;
    sync_parent(Path::new(to));
    Ok(())
}

pub(super) fn touch(path: &str, accessed_s: Option<f64>, modified_s: Option<f64>) -> Result<(), Error> {
    let attempted = |error: io::Error| failed(format!("touch `{path}`"), &error);
    if !Path::new(path).exists() {
        OpenOptions::new().write(true).create_new(true).mode(0o644).open(path).map_err(attempted)?;
    }
    let at = |seconds: f64| UNIX_EPOCH + Duration::from_secs_f64(seconds.max(0.0));
    let mut times = FileTimes::new();
    if let Some(seconds) = accessed_s {
        times = times.set_accessed(at(seconds));
    }
    if let Some(seconds) = modified_s {
        times = times.set_modified(at(seconds));
    }
    // Opening for reading sets times too, and works on directories.
    File::open(path).and_then(|file| file.set_times(times)).map_err(attempted)
}

fn failed(attempted: String, error: &io::Error) -> Error {
    Error::new(ErrorKind::Failed, format!("{attempted}: {error}"))
}

/// A file as it was before the task's first write to it.
pub(crate) struct Saved {
    path: String,
    before: Option<(Vec<u8>, fs::Metadata)>,
}

impl Saved {
    /// Keeps what is at `path` now, so that [`Saved::restore`] can put it back.
    pub(crate) fn new(path: &str) -> Result<Saved, Error> {
        let attempted = |error: io::Error| failed(format!("keep `{path}` as it was"), &error);
        let before = match fs::metadata(path) {
            Ok(metadata) => Some((fs::read(path).map_err(attempted)?, metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(attempted(error)),
        };
        Ok(Saved { path: path.to_owned(), before })
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn was_absent(&self) -> bool {
        self.before.is_none()
    }

    /// Puts the file back byte for byte, with its owner and mode; removes it where there was none. A disk that has no
    /// room for a second file is written in place.
    pub(crate) fn restore(&self, machine: &Machine) -> Result<(), Error> {
        let Some((bytes, metadata)) = &self.before else { return remove(&self.path) };
        let old = Write {
            mode: Some(metadata.mode() & 0o7777),
            uid: Some(metadata.uid()),
            gid: Some(metadata.gid()),
            ..Write::new(&self.path, bytes.clone())
        };
        write(machine, &old).map(drop).or_else(|error| {
            if fs::read(&self.path).is_ok_and(|now| now == *bytes) {
                return Ok(());
            }
            let in_place = || {
                let mut file = fs::File::create(&self.path)?;
                file.write_all(bytes)?;
                file.sync_all()
            };
            in_place().map_err(|_| error)
        })
    }
}

/// A private folder that goes with this value.
pub(crate) struct Scratch {
    path: PathBuf,
    /// Open, so that it counts as in use.
    _claimed: Option<File>,
}

impl Scratch {
    pub(crate) fn new() -> Result<Scratch, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let base = std::env::temp_dir();
        leftovers::sweep(&base, SCRATCH, "");
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = base.join(leftovers::name(SCRATCH, count, ""));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let claimed = File::open(&path).ok();
                    claimed.iter().for_each(leftovers::claim);
                    return Ok(Scratch { path, _claimed: claimed });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(format!("make `{}`", path.display()), &error)),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn add(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.make(name)?.write_all(bytes).map_err(|error| failed(format!("write `{name}`"), &error))
    }

    /// Adds content, fetched from the runner where it waits there.
    pub(super) fn add_content(&self, machine: &Machine, name: &str, content: &Content) -> Result<(), Error> {
        match content {
            Content::Inline(bytes) => self.add(name, bytes),
            Content::Sent { sha256, size_bytes } => machine.receive(sha256, *size_bytes, &[], &mut self.make(name)?),
            Content::File { path } => copy_of(path, &mut self.make(name)?),
        }
    }

    fn make(&self, name: &str) -> Result<File, Error> {
        let path = self.path.join(name);
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o700)
            .open(&path)
            .map_err(|error| failed(format!("make `{}`", path.display()), &error))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).ok();
    }
}
