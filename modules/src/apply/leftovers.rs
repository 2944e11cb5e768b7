//! What agents leave behind that were killed or cut off while they wrote: each temporary name says whose it is, and whoever
//! makes another beside it takes up what may be of use, and takes away those whose owner has gone.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An owner that can't be seen from here, such as one in another container, has gone when it has written nothing for so
/// long.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

/// Returns a temporary name of this process.
pub(super) fn name(before: &str, count: u32, after: &str) -> String {
    format!("{before}{}-{count}{after}", std::process::id())
}

/// Marks an open file or folder as in use for as long as it stays open. A file system without locks is none the worse:
/// the name tells the owner too.
pub(super) fn claim(file: &File) {
    file.try_lock().ok();
}

/// Returns what [`name`] has named alike in a folder, where nobody uses it any more.
pub(super) fn found<'a>(folder: &Path, before: &'a str, after: &'a str) -> impl Iterator<Item = PathBuf> + use<'a> {
    let entries = fs::read_dir(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    entries.into_iter().flatten().flatten().filter_map(move |entry| {
        let name = entry.file_name();
        let (process, count) = name.to_str()?.strip_prefix(before)?.strip_suffix(after)?.split_once('-')?;
        count.parse::<u32>().ok()?;
        let path = entry.path();
        is_forgotten(&path, process.parse().ok()?).then_some(path)
    })
}

/// Removes what [`found`] finds.
pub(super) fn sweep(folder: &Path, before: &str, after: &str) {
    for path in found(folder, before, after) {
        if path.is_dir() {
            fs::remove_dir_all(&path).ok()
        } else {
            fs::remove_file(&path).ok()
        };
    }
}

/// Whether a file or folder is this user's and its owner, the process of that number, has gone.
fn is_forgotten(path: &Path, process: u32) -> bool {
    // SAFETY: geteuid(2) can't fail and touches no memory.
    let uid = unsafe { libc::geteuid() };
    let Ok(found) = fs::symlink_metadata(path) else { return false };
    if process == std::process::id() || found.uid() != uid || !(found.is_file() || found.is_dir()) {
        return false;
    }
    let old = found.modified().ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age > FORGOTTEN_AFTER);
    if !old && Path::new("/proc").join(process.to_string()).exists() {
        return false;
    }
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    match opened.map(|file| file.try_lock()) {
        Ok(Ok(())) => true,
        Ok(Err(TryLockError::WouldBlock)) => false,
        // No locks there, or a mode that forbids looking.
        Ok(Err(TryLockError::Error(_))) | Err(_) => old,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_uses_is_swept() {
        let folder = std::env::temp_dir().join(format!("leftovers-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        // No process has a number above the kernel's limit of 2^22.
        let gone = 1 << 23;
        let file = |name: &str| File::create(folder.join(name)).expect("a file");
        let owned = file(&format!(".x.kubeon-{gone}-1~"));
        claim(&owned);
        file(&format!(".x.kubeon-{gone}-2~"));
        file(&format!(".x.kubeon-{}-0~", std::process::id()));
        file(".x.kubeon-1-0~");
        file(&format!(".y.kubeon-{gone}-0~"));
        file(&format!(".x.kubeon-{gone}-z~"));
        fs::create_dir_all(folder.join(format!(".x.kubeon-{gone}-3~/deeper"))).expect("a folder");
        std::os::unix::fs::symlink("/etc/passwd", folder.join(format!(".x.kubeon-{gone}-4~"))).expect("a link");
        sweep(&folder, ".x.kubeon-", "~");
        let mut left: Vec<String> = fs::read_dir(&folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().replace(&gone.to_string(), "GONE"))
            .map(|name| name.replace(&format!("-{}-", std::process::id()), "-OWN-"))
            .collect();
        left.sort();
        fs::remove_dir_all(&folder).expect("remove");
        let kept = [
            ".x.kubeon-1-0~",
            ".x.kubeon-GONE-1~",
            ".x.kubeon-GONE-4~",
            ".x.kubeon-GONE-z~",
            ".x.kubeon-OWN-0~",
            ".y.kubeon-GONE-0~",
        ];
        assert_eq!(left, kept);
    }
}
