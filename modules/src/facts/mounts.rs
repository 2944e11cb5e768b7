//! File systems that are mounted, with their sizes.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::mpsc;
use std::time::Instant;

use serde_json::{Value, json};

use super::{Files, map};
use crate::background::background;
use crate::host::Map;
use crate::host::Put as _;
use crate::order::gathered;

/// A line of `/proc/mounts` or `/etc/fstab`. Source: `fstab(5)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub device: String,
    pub mount: String,
    pub kind: String,
    pub options: String,
    pub dump: i64,
    pub pass: i64,
}

/// Returns the entry of a line; `None` for a comment and for what is none.
pub(crate) fn entry_of(line: &str) -> Option<Entry> {
    let fields: Vec<String> = line.split_whitespace().map(unescaped).collect();
    if line.trim_start().starts_with('#') {
        return None;
    }
    let number = |nth: usize| fields.get(nth).and_then(|field| field.parse().ok()).unwrap_or(0);
    match fields.as_slice() {
        [device, mount, kind, rest @ ..] => Some(Entry {
            device: device.clone(),
            mount: mount.clone(),
            kind: kind.clone(),
            options: rest.first().cloned().unwrap_or_else(|| "defaults".to_owned()),
            dump: number(4),
            pass: number(5),
        }),
        _ => None,
    }
}

/// Turns `\040` and its like into the characters that they stand for.
pub(crate) fn unescaped(field: &str) -> String {
    let bytes = field.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = (bytes[at] == b'\\').then(|| field.get(at + 1..at + 4)).flatten();
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 4;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Sizes on their way: a file system on a network may take for ever to tell its own.
pub(super) struct Sizes {
    entries: Vec<Entry>,
    answers: mpsc::Receiver<(String, Option<Map>)>,
    deadline: Instant,
}

impl Sizes {
    pub(super) fn start(files: Files<'_>, deadline: Instant) -> Sizes {
        let text = files.text("/proc/self/mounts").or_else(|| files.text("/proc/mounts")).unwrap_or_default();
        // Each mount point once, as it is now: the last that was mounted over it.
        let mut entries: Vec<Entry> = Vec::new();
        for entry in text.lines().filter_map(entry_of).filter(of_a_device) {
            entries.retain(|other| other.mount != entry.mount);
            entries.push(entry);
        }
        let (sender, answers) = mpsc::channel();
        for entry in &entries {
            let (sender, mount) = (sender.clone(), entry.mount.clone());
            // Left behind when it hangs; nobody waits for it.
            background(move || {
                let size = size_of(&mount);
                // Nobody listens any more when time is up.
                sender.send((mount, size)).ok();
            });
        }
        Sizes { entries, answers, deadline }
    }

    pub(super) fn finish(self, files: Files<'_>, warnings: &mut Vec<String>) -> Value {
        let mut sizes = BTreeMap::new();
        while sizes.len() < self.entries.len() {
            match self.answers.recv_timeout(self.deadline.saturating_duration_since(Instant::now())) {
                Ok((mount, size)) => drop(sizes.insert(mount, size)),
                Err(_) => break,
            }
        }
        let bound = bind_mounts(&files.text("/proc/self/mountinfo").unwrap_or_default());
        let uuids = uuids(files);
        let described = |entry: Entry| {
            let mut options = entry.options;
            if bound.contains(&entry.mount) {
                options.push_str(",bind");
            }
            let uuid = uuids.get(real_device(files, &entry.device).as_str()).map_or("N/A", String::as_str);
            let mut facts = map([
                ("mount", entry.mount.as_str().into()),
                ("device", entry.device.into()),
                ("fstype", entry.kind.into()),
                ("options", options.into()),
                ("dump", entry.dump.into()),
                ("passno", entry.pass.into()),
            ]);
            match sizes.remove(&entry.mount) {
                Some(size) => {
                    facts.extend(size.unwrap_or_default());
                    facts.put("uuid", uuid);
                }
                None => {
                    facts.put("note", "Could not get extra information due to timeout");
                    warnings.push(format!("the size of `{}` was not told in time", entry.mount));
                }
            }
            Value::from(facts)
        };
        self.entries.into_iter().map(described).collect()
    }
}

/// Whether the mount is of a disk or of a share, and not of the kernel's own making.
fn of_a_device(entry: &Entry) -> bool {
    (entry.device.starts_with(['/', '\\']) || entry.device.contains(":/")) && entry.kind != "none"
}

fn size_of(mount: &str) -> Option<Map> {
    let path = CString::new(mount).ok()?;
    // SAFETY: statvfs is plain numbers for which zeros are a value; the path ends in a zero.
    let (stat, rc) = unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        let rc = libc::statvfs(path.as_ptr(), &raw mut stat);
        (stat, rc)
    };
    if rc != 0 {
        return None;
    }
    #[expect(clippy::unnecessary_cast, reason = "the fields' width is the platform's")]
    let (fragment, all, available) = (stat.f_frsize as u64, stat.f_blocks as u64, stat.f_bavail as u64);
    #[expect(clippy::unnecessary_cast, reason = "the fields' width is the platform's")]
    let (inodes, inodes_available) = (stat.f_files as u64, stat.f_favail as u64);
    Some(map([
        ("size_total", (fragment * all).into()),
        ("size_available", (fragment * available).into()),
        ("block_size", json!(stat.f_bsize)),
        ("block_total", all.into()),
        ("block_available", available.into()),
        ("block_used", all.saturating_sub(available).into()),
        ("inode_total", inodes.into()),
        ("inode_available", inodes_available.into()),
        ("inode_used", inodes.saturating_sub(inodes_available).into()),
    ]))
}

/// Returns the mount points that show a part of their file system. Source: `proc_pid_mountinfo(5)`.
fn bind_mounts(mountinfo: &str) -> Vec<String> {
    mountinfo
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(3);
            let (root, mount) = (fields.next()?, fields.next()?);
            (root != "/").then(|| unescaped(mount))
        })
        .collect()
}

/// Returns the UUID of each device that has a file system with one.
fn uuids(files: Files<'_>) -> BTreeMap<String, String> {
    const FOLDER: &str = "/dev/disk/by-uuid";
    let names = files.names(FOLDER).into_iter();
    let entry = |uuid: String| Some((format!("/dev/{}", files.link_name(&format!("{FOLDER}/{uuid}"))?), uuid));
    gathered(names.filter_map(entry))
}

/// Follows `/dev/mapper/NAME` to the device itself.
fn real_device(files: Files<'_>, device: &str) -> String {
    files.link_name(device).map_or_else(|| device.to_owned(), |name| format!("/dev/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_their_escapes() {
        let entry = entry_of("nas:/a\\040b /srv/a\\040b nfs4 rw,vers=4.2 0 0").expect("an entry");
        assert_eq!((entry.device.as_str(), entry.mount.as_str()), ("nas:/a b", "/srv/a b"));
        assert_eq!(entry_of("# /dev/sda1 / ext4"), None);
        assert_eq!(entry_of("/dev/sda1 / ext4").map(|entry| entry.options).as_deref(), Some("defaults"));
    }

    #[test]
    fn a_part_of_a_file_system_is_a_bind_mount() {
        let text = "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n30 22 8:1 /srv /mnt/x\\040y rw - ext4 /dev/sda1 rw\n";
        assert_eq!(bind_mounts(text), ["/mnt/x y"]);
    }
}
