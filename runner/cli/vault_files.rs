//! Files of vaults: replaced whole or left alone, and shown to an editor without leaving what they hold behind.

use std::ffi::CString;
use std::fs::{self, DirBuilder, Metadata, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Problem;
use super::config::Config;
use crate::report;

/// Standard input and output.
pub const STANDARD: &str = "-";
/// The mode of what is written anew: nobody but its owner reads it.
const MODE: u32 = 0o600;

/// Reads a file, or standard input.
pub fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    let read = match path == Path::new(STANDARD) {
        true => std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes),
        false => fs::read(path),
    };
    read.map_err(|error| Problem::new(format!("read `{}`: {error}", path.display())))
}

/// Whose a file's new version is, and who may read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// Its owner's alone.
    Private,
    /// As they were.
    Kept,
}

/// Writes a file whole or not at all, or to standard output. Where a link leads, its target is written.
pub fn write(path: &Path, bytes: &[u8], rights: Rights) -> Result<(), Problem> {
    if path == Path::new(STANDARD) {
        report::give(bytes);
        return Ok(());
    }
    let failed = |error: std::io::Error| Problem::new(format!("write `{}`: {error}", path.display()));
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match fs::metadata(&real) {
        Ok(there) if there.is_file() => replace(&real, bytes, Some(&there).filter(|_| rights == Rights::Kept)),
        Ok(there) if there.is_dir() => Err(std::io::Error::from(std::io::ErrorKind::IsADirectory)),
        // A pipe or a device.
        Ok(_) => OpenOptions::new().write(true).open(&real).and_then(|mut file| file.write_all(bytes)),
        Err(_) => replace(&real, bytes, None),
    }
    .map_err(failed)
}

fn replace(path: &Path, bytes: &[u8], like: Option<&Metadata>) -> std::io::Result<()> {
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?;
    let temporary = path.with_file_name(format!(".{}.kubeon-{}", name.to_string_lossy(), std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&temporary)?;
    let mut written = file.set_permissions(Permissions::from_mode(MODE)).and_then(|()| file.write_all(bytes));
    if let Some(like) = like {
        written = written
            .and_then(|()| std::os::unix::fs::fchown(&file, Some(like.uid()), Some(like.gid())))
            .and_then(|()| file.set_permissions(like.permissions()));
    }
    let done = written.and_then(|()| file.sync_all()).and_then(|()| fs::rename(&temporary, path));
    if done.is_err() {
        fs::remove_file(&temporary).ok();
    }
    done
}

/// Makes the folder that a new file is to lie in, if it is not there.
pub fn make_folder_of(path: &Path) -> Result<(), Problem> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) else {
        return Ok(());
    };
    report::warn(&format!("{} does not exist, creating...", folder.display()));
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Problem::new(format!("make `{}`: {error}", folder.display())))
}

/// Lets somebody change a text in an editor, and returns what came of it. It is kept in a folder of its own, in memory
/// where the session has a folder there, and is gone afterwards.
pub fn edited(config: &Config, name: &Path, text: &[u8]) -> Result<Vec<u8>, Problem> {
    let editor = config.get(&["ANSIBLE_EDITOR", "EDITOR"], "defaults", "editor").unwrap_or_else(|| "vi".to_owned());
    let words = shell_words::split(&editor).map_err(|error| Problem::new(format!("the editor `{editor}`: {error}")))?;
    let Some((program, arguments)) = words.split_first() else {
        return Err(Problem::new("no editor: EDITOR is empty"));
    };
    let draft = Draft::write(name, text)?;
    // What interrupts the editor must not leave the draft behind.
    let interrupted = held_back()?;
    let status = Command::new(program).args(arguments).arg(&draft.path).status();
    let status = status.map_err(|error| Problem::new(format!("start the editor `{editor}`: {error}")))?;
    if !status.success() || interrupted.load(Ordering::Relaxed) {
        return Err(Problem::new(format!("the editor `{editor}` failed ({status}): nothing is written")));
    }
    read(&draft.path)
}

/// Takes the signals that would end the program, and says whether the program was asked to end.
fn held_back() -> Result<Arc<AtomicBool>, Problem> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    let failed = |error: std::io::Error| Problem::new(format!("take signals: {error}"));
    let asked = Arc::new(AtomicBool::new(false));
    // A person at the terminal sends the first two to the editor, where they mean something else.
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::default()).map_err(failed)?;
    }
    for signal in [SIGHUP, SIGTERM] {
        signal_hook::flag::register(signal, asked.clone()).map_err(failed)?;
    }
    Ok(asked)
}

/// A text in a folder that only its owner can enter, both removed with the value.
struct Draft {
    folder: PathBuf,
    path: PathBuf,
}

impl Draft {
    fn write(name: &Path, text: &[u8]) -> Result<Draft, Problem> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
        let base = runtime.unwrap_or_else(std::env::temp_dir);
        let failed = |error: std::io::Error| Problem::new(format!("write below `{}`: {error}", base.display()));
        let folder = fresh_folder(&base).map_err(failed)?;
        // The file's ending tells editors what it is.
        let path = folder.join(name.file_name().unwrap_or(name.as_os_str()));
        let draft = Draft { folder, path };
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(MODE).open(&draft.path);
        file.and_then(|mut file| file.write_all(text)).map_err(failed)?;
        Ok(draft)
    }
}

/// Makes a folder with a name that nobody can foresee, for its owner alone.
fn fresh_folder(base: &Path) -> std::io::Result<PathBuf> {
    let pattern = base.join("kubeon-run-XXXXXX");
    let pattern = CString::new(pattern.as_os_str().as_bytes())?.into_raw();
    // SAFETY: `pattern` is a writable text that ends in NUL, of which mkdtemp(3) replaces letters only, and it is taken back.
    let (made, pattern) = unsafe { (!libc::mkdtemp(pattern).is_null(), CString::from_raw(pattern)) };
    match made {
        true => Ok(PathBuf::from(std::ffi::OsStr::from_bytes(pattern.as_bytes()))),
        false => Err(std::io::Error::last_os_error()),
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Where the disk writes in place, what was written is gone, too.
        if let Ok(length) = fs::metadata(&self.path).map(|file| file.len())
            && let Ok(mut file) = OpenOptions::new().write(true).open(&self.path)
        {
            std::io::copy(&mut std::io::repeat(0).take(length), &mut file).and_then(|_| file.sync_all()).ok();
        }
        fs::remove_dir_all(&self.folder).ok();
    }
}
