//! Actions that take files from here to a host, or from a host to here.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use kubeon_modules::wire::INLINE_LIMIT_BYTES;
use schemars::JsonSchema;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::variables::find;
use super::{Failure, text};
use crate::connection::Contents;
use crate::execute::{self, ItemRun, truth};
use crate::value::{Map, Value};

/// What travels with a task.
#[derive(Default)]
pub(super) struct Parcel {
    contents: Contents,
}

impl Parcel {
    /// Returns the argument that stands for these bytes: themselves, or a checksum by which the host asks for them.
    pub(super) fn content(&mut self, bytes: Vec<u8>) -> Value {
        if bytes.len() > INLINE_LIMIT_BYTES {
            let size = bytes.len();
            return sent(self.contents.add_bytes(bytes), size as u64);
        }
        match String::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(error) => Value::map(Map::from_iter([("base64".into(), STANDARD.encode(error.as_bytes()).into())])),
        }
    }

    /// As [`Parcel::content`] for a file, of which a large one is never held in memory.
    fn file(&mut self, run: &ItemRun<'_>, path: &Path) -> Result<Value, Failure> {
        let failed = |error: std::io::Error| Failure::message(format!("read `{}`: {error}", path.display()));
        let size = fs::metadata(path).map_err(failed)?.len();
        if size <= INLINE_LIMIT_BYTES as u64 || is_vaulted(path) {
            return Ok(self.content(decrypted(run, path, read(path)?)?));
        }
        let (sha256, size) = self.contents.add_file(path).map_err(failed)?;
        Ok(sent(sha256, size))
    }

    /// Runs the module with what was put into the parcel.
    pub(super) fn send(self, run: &ItemRun<'_>, module: &str, args: &Map) -> Result<Map, Failure> {
        execute::module(run, module, args, &self.contents)
    }
}

fn sent(sha256: String, size_bytes: u64) -> Value {
    let mut map = Map::new();
    map.insert("sha256", sha256);
    map.insert("size_bytes", Value::Int(size_bytes as i64));
    Value::map(map)
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::message(format!("read `{}`: {error}", path.display())))
}

const VAULT_MAGIC: &[u8] = b"$ANSIBLE_VAULT;";

fn is_vaulted(path: &Path) -> bool {
    use std::io::Read;
    let mut start = [0; VAULT_MAGIC.len()];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == VAULT_MAGIC
}

/// Decrypts a vaulted file, as Ansible does unless `decrypt` is off.
pub(super) fn decrypted(run: &ItemRun<'_>, path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let wanted = run.task.action.args.get("decrypt").is_none_or(truth);
    if !wanted || !bytes.starts_with(VAULT_MAGIC) {
        return Ok(bytes);
    }
    let loader = run.world.loader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let plain = loader.vault().decrypt(&String::from_utf8_lossy(&bytes));
    plain.map_err(|message| Failure::message(format!("decrypt `{}`: {message}", path.display())))
}

pub(super) fn copy(run: &ItemRun<'_>, args: &Map) -> Result<Map, Failure> {
    let mut parcel = Parcel::default();
    let mut args = args.clone();
    if let Some(content) = args.remove("content") {
        if args.contains_key("src") {
            return Err(Failure::message("give `src` or `content`, not both"));
        }
        // A mapping or a list is written as JSON, as Ansible does.
        let text = match &content {
            Value::Map(_) | Value::List(_) | Value::Lazy(_) => content.to_json().to_string(),
            other => other.to_string(),
        };
        args.insert("content", parcel.content(text.into_bytes()));
        return parcel.send(run, "copy", &args);
    }
    if args.get("remote_src").is_some_and(truth) {
        return parcel.send(run, "copy", &args);
    }
    let Some(src) = text(&args, "src") else { return Err(Failure::message("`copy` needs `src` or `content`")) };
    let path = find(run, &src, "files")?;
    if path.is_dir() {
        args.insert("src", src.as_str());
        args.insert("files", directory(run, &mut parcel, &path)?);
        return parcel.send(run, "copy", &args);
    }
    if args.get("mode").is_some_and(|mode| mode.as_str() == Some("preserve")) {
        args.insert("mode", format!("{:04o}", mode_of(&path)));
    }
    args.remove("src");
    args.insert("content", parcel.file(run, &path)?);
    args.insert("_original_basename", path.file_name().unwrap_or_default().to_string_lossy().as_ref());
    parcel.send(run, "copy", &args)
}

fn mode_of(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).map_or(0o644, |metadata| metadata.permissions().mode() & 0o7777)
}

/// Lists a folder for the module: every file with its content, folders and links.
fn directory(run: &ItemRun<'_>, parcel: &mut Parcel, root: &Path) -> Result<Value, Failure> {
    let mut entries = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(folder) = waiting.pop() {
        let path = root.join(&folder);
        let failed = |error: std::io::Error| Failure::message(format!("read `{}`: {error}", path.display()));
        let mut names: Vec<_> = fs::read_dir(&path)
            .map_err(failed)?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        names.sort();
        for name in names {
            let relative = folder.join(&name);
            let full = root.join(&relative);
            let mut entry = Map::new();
            entry.insert("path", relative.to_string_lossy().as_ref());
            if full.is_dir() {
                waiting.push(relative);
            } else {
                entry.insert("content", parcel.file(run, &full)?);
                if run.task.action.args.get("mode").is_some_and(|mode| mode.as_str() == Some("preserve")) {
                    entry.insert("mode", format!("{:04o}", mode_of(&full)));
                }
            }
            entries.push(Value::map(entry));
        }
    }
    Ok(Value::list(entries))
}

pub(super) fn script(run: &ItemRun<'_>, args: &Map) -> Result<Map, Failure> {
    let line = text(args, "_raw_params").or_else(|| text(args, "cmd")).unwrap_or_default();
    let words = shell_words::split(&line).map_err(|_| Failure::message(format!("`{line}` has an unclosed quote")))?;
    let Some(name) = words.first() else { return Err(Failure::message("`script` must name a script")) };
    let path = find(run, name, "files")?;
    let mut parcel = Parcel::default();
    let mut args = args.clone();
    args.insert("content", parcel.file(run, &path)?);
    parcel.send(run, "script", &args)
}

pub(super) fn unarchive(run: &ItemRun<'_>, args: &Map) -> Result<Map, Failure> {
    let mut parcel = Parcel::default();
    let mut args = args.clone();
    let remote = args.get("remote_src").is_some_and(truth) || text(&args, "src").is_some_and(|src| src.contains("://"));
    if !remote {
        let src = text(&args, "src").unwrap_or_default();
        let path = find(run, &src, "files")?;
        args.insert("content", parcel.file(run, &path)?);
    }
    parcel.send(run, "unarchive", &args)
}

pub(super) fn assemble(run: &ItemRun<'_>, args: &Map) -> Result<Map, Failure> {
    let mut args = args.clone();
    if args.get("remote_src").is_none_or(truth) {
        args.insert("remote_src", true);
        return Parcel::default().send(run, "assemble", &args);
    }
    let folder = find(run, &text(&args, "src").unwrap_or_default(), "files")?;
    let pattern = text(&args, "regexp")
        .map(|pattern| fancy_regex::Regex::new(&pattern))
        .transpose()
        .map_err(|error| Failure::message(format!("`regexp`: {error}")))?;
    let failed = |error: std::io::Error| Failure::message(format!("read `{}`: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    paths.sort();
    let hidden = args.get("ignore_hidden").is_some_and(truth);
    let delimiter = text(&args, "delimiter").map(|text| text.replace("\\n", "\n"));
    let mut whole: Vec<u8> = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let matches = pattern.as_ref().is_none_or(|pattern| pattern.is_match(&name).unwrap_or(false));
        if !path.is_file() || !matches || hidden && name.starts_with('.') {
            continue;
        }
        if !whole.is_empty() {
            if !whole.ends_with(b"\n") {
                whole.push(b'\n');
            }
            if let Some(delimiter) = &delimiter {
                whole.extend(delimiter.bytes());
                if !delimiter.ends_with('\n') {
                    whole.push(b'\n');
                }
            }
        }
        whole.extend(decrypted(run, &path, read(&path)?)?);
    }
    let mut parcel = Parcel::default();
    args.insert("content", parcel.content(whole));
    parcel.send(run, "assemble", &args)
}

/// Manifests are read here; `template: true` renders them first.
pub(super) fn k8s_apply(run: &ItemRun<'_>, args: &Map) -> Result<Map, Failure> {
    with_manifests(run, "k8s_apply", args)
}

/// As [`k8s_apply`], for the module with the arguments of `kubernetes.core`.
pub(super) fn k8s(run: &ItemRun<'_>, args: &Map) -> Result<Map, Failure> {
    with_manifests(run, "k8s", args)
}

fn with_manifests(run: &ItemRun<'_>, module: &str, args: &Map) -> Result<Map, Failure> {
    let mut args = args.clone();
    for (key, kind, rendered) in [("src", "files", false), ("template", "templates", true)] {
        let names = match args.remove(key) {
            None => continue,
            Some(Value::List(items)) => items.iter().map(Value::to_string).collect::<Vec<_>>(),
            Some(one) => vec![one.to_string()],
        };
        let mut documents = Vec::new();
        for name in names {
            let path = find(run, &name, kind)?;
            let source = String::from_utf8(read(&path)?)
                .map_err(|_| Failure::message(format!("`{}` is not UTF-8", path.display())))?;
            documents.push(if rendered {
                run.templar.file(&source, &path, crate::template::FileOptions::default())?
            } else {
                source
            });
        }
        args.insert("definition", documents.join("\n---\n"));
    }
    Parcel::default().send(run, module, &args)
}

/// Bring a file from a host to this machine.
///
/// ```yaml
/// - fetch:
///     src: /etc/containerd/config.toml
///     dest: fetched
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FetchArgs {
    /// The file on the host.
    src: String,
    /// The folder here, below which it lies as `HOST/PATH`; with `flat`, the file here.
    dest: String,
    /// Whether `dest` is the file itself.
    #[serde(default)]
    flat: bool,
    /// Whether a file that is not there fails the task.
    #[serde(default = "yes")]
    fail_on_missing: bool,
    /// Taken and not used: the content comes in one piece with its length.
    #[serde(default = "yes")]
    validate_checksum: bool,
}

fn yes() -> bool {
    true
}

pub(super) fn fetch(run: &ItemRun<'_>, args: FetchArgs, _: &Map) -> Result<Map, Failure> {
    let mut slurp = Map::new();
    slurp.insert("src", args.src.as_str());
    let got = execute::module(run, "slurp", &slurp, &Contents::default())?;
    let mut result = Map::new();
    result.insert("changed", false);
    result.insert("file", args.src.as_str());
    if got.get("failed").is_some_and(truth) {
        let message = got.get("msg").cloned().unwrap_or_else(|| "the file can't be read".into());
        if !args.fail_on_missing {
            result.insert("msg", message);
            return Ok(result);
        }
        return Err(Failure::Failed(Box::new(got)));
    }
    let bytes = STANDARD
        .decode(text(&got, "content").unwrap_or_default())
        .map_err(|error| Failure::message(format!("the host's answer is damaged: {error}")))?;
    let dest = destination(run, &args)?;
    let checksum: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let _ = args.validate_checksum;
    result.insert("dest", dest.display().to_string());
    result.insert("checksum", got.get("checksum").cloned().unwrap_or_else(|| checksum.as_str().into()));
    if fs::read(&dest).is_ok_and(|old| old == bytes) {
        return Ok(result);
    }
    if !run.check {
        write_here(&dest, &bytes).map_err(|error| Failure::message(format!("write `{}`: {error}", dest.display())))?;
    }
    result.insert("changed", true);
    Ok(result)
}

/// Returns where a fetched file goes; no `..` of a host's path leads out of `dest`.
fn destination(run: &ItemRun<'_>, args: &FetchArgs) -> Result<PathBuf, Failure> {
    let base = run.play.play.folder.join(execute::home_expanded(PathBuf::from(&args.dest)));
    if args.flat {
        if args.dest.ends_with('/') {
            let name = Path::new(&args.src).file_name().unwrap_or_default();
            return Ok(base.join(name));
        }
        if base.is_dir() {
            return Err(Failure::message(format!("`{}` is a directory: end it with `/`", args.dest)));
        }
        return Ok(base);
    }
    let parts = Path::new(&args.src).components().filter_map(|part| match part {
        std::path::Component::Normal(part) => Some(part),
        _ => None,
    });
    let host = run.reach().host.replace('/', "_");
    Ok(parts.fold(base.join(host), |path, part| path.join(part)))
}

fn write_here(dest: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = dest.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let temporary = folder.join(format!(
        ".{}.kubeon-{}",
        dest.file_name().unwrap_or_default().to_string_lossy(),
        std::process::id()
    ));
    let mut file = fs::File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, dest)
}
