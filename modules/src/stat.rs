use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::decode::Arguments;
use crate::host::Map;
use crate::host::Put as _;
use crate::inode::{Names, describe};
use crate::shared::yes;
use crate::{Algorithm, Error, FileKind, Host, Module, Plan, Probe, Stat, paths};

/// Look at a file: whether it exists, what it is, who owns it, its checksum.
///
/// ```yaml
/// - stat:
///     path: /dev/nvidia0
///   register: device
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The path.
    #[serde(alias = "dest", alias = "name")]
    path: String,
    /// Where the path is a link, look at what it leads to.
    #[serde(default)]
    follow: bool,
    /// Whether to read a file for its checksum.
    #[serde(default = "yes")]
    get_checksum: bool,
    /// The checksum's algorithm; `sha1` when absent.
    #[serde(default, alias = "checksum", alias = "checksum_algo")]
    checksum_algorithm: Algorithm,
    /// Whether to ask `file` for the type and encoding of what is in it, where the host has `file`.
    #[serde(default = "yes", alias = "mime", alias = "mime_type", alias = "mime-type")]
    get_mime: bool,
    /// Whether to ask `lsattr` for the attributes of its file system, where the host has `lsattr`.
    #[serde(default = "yes", alias = "attr", alias = "attributes")]
    get_attributes: bool,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let path = paths::expand(host, &self.path)?;
        let found = if self.follow { host.stat(&path)? } else { host.lstat(&path)? };
        let Some(stat) = found else { return Ok(Plan::default().with("stat", json!({"exists": false}))) };
        let mut told = Map::new();
        told.put("exists", true);
        told.put("path", path.as_str());
        told.extend(describe(host, &Names::default(), &stat)?);
        told.put("blocks", stat.blocks);
        told.put("block_size", stat.block_size_bytes);
        told.put("device_type", device_number(stat.rdev));
        let access = access(host, &path, &stat)?;
        for (key, may) in ["readable", "writeable", "executable"].into_iter().zip(access) {
            told.insert(key.into(), may.into());
        }
        if stat.kind == FileKind::Link
            && let Some(target) = host.read_link(&path)?
        {
            told.put("lnk_source", paths::real(host, &path)?);
            told.put("lnk_target", target);
        }
        // Where Ansible's `stat` has them.
        for key in ["pw_name", "gr_name"] {
            if let Some(name) = told.shift_remove(key) {
                told.insert(key.to_owned(), name);
            }
        }
        if self.get_checksum && stat.kind == FileKind::File && access[0] {
            told.put("checksum", host.checksum(&path, self.checksum_algorithm)?);
        }
        if self.get_mime {
            told.extend(mime(host, &path)?);
        }
        if self.get_attributes {
            told.extend(attributes(host, &path)?);
        }
        Ok(Plan::default().with("stat", told))
    }
}

/// Returns a device's number in one, as `stat(2)` has it.
fn device_number((major, minor): (u32, u32)) -> u64 {
    libc::makedev(major, minor)
}

/// Whether the user may read, write and execute. Root may read and write all, and execute what anybody may.
fn access(host: &dyn Host, path: &str, stat: &Stat) -> Result<[bool; 3], Error> {
    if host.uid() == 0 {
        return Ok([true, true, stat.kind == FileKind::Directory || stat.mode & 0o111 != 0]);
    }
    if host.uid() == stat.uid && stat.kind != FileKind::Link {
        return Ok([0o400, 0o200, 0o100].map(|bit| stat.mode & bit != 0));
    }
    // Only the kernel knows of all groups, access lists and read-only mounts.
    let may = |what: &str| host.probe(&Probe::of(&["test", what, path])).map(|output| output.success());
    Ok([may("-r")?, may("-w")?, may("-x")?])
}

fn mime(host: &dyn Host, path: &str) -> Result<Map, Error> {
    let output = host.probe(&Probe::of(&["file", "--brief", "--mime-type", "--mime-encoding", "--", path]))?;
    let said = Some(output.stdout.trim()).filter(|_| output.success()).and_then(|said| said.split_once("; charset="));
    let (mimetype, charset) = said.unwrap_or(("unknown", "unknown"));
    Ok(Map::from_iter(
        [("mimetype", mimetype), ("charset", charset)].map(|(key, value)| (key.to_owned(), value.into())),
    ))
}

/// What the flags of `lsattr` are called. Source: `chattr(1)` and the names that Ansible gives them.
const ATTRIBUTES: [(char, &str); 20] = [
    ('A', "noatime"),
    ('a', "append"),
    ('c', "compressed"),
    ('C', "nocow"),
    ('d', "nodump"),
    ('D', "dirsync"),
    ('e', "extents"),
    ('E', "encrypted"),
    ('h', "blocksize"),
    ('i', "immutable"),
    ('I', "indexed"),
    ('j', "journalled"),
    ('N', "inline"),
    ('s', "zero"),
    ('S', "synchronous"),
    ('t', "notail"),
    ('T', "blockroot"),
    ('u', "undelete"),
    ('X', "compressedraw"),
    ('Z', "compresseddirty"),
];

/// Returns the file system's own attributes, nothing where it has none or `lsattr` is not there.
fn attributes(host: &dyn Host, path: &str) -> Result<Map, Error> {
    let output = host.probe(&Probe::of(&["lsattr", "-vd", "--", path]))?;
    let mut told = Map::new();
    let mut words = output.stdout.split_whitespace();
    if let (true, Some(version), Some(flags)) = (output.success(), words.next(), words.next()) {
        let names = ATTRIBUTES.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, name)| Value::from(*name));
        told.put("version", version);
        told.put("attributes", names.collect::<Vec<_>>());
        told.put("attr_flags", flags.replace('-', ""));
    }
    Ok(told)
}
