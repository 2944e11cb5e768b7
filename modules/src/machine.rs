//! The real host: this machine, and the service that its runner gives it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::algorithm::hexadecimal;
use crate::apply::{Command, Scratch, now_s, run_command};
use crate::host::{FileKind, Host, KubeAnswer, KubeRequest, Output, Probe, Stat};
use crate::order::{gathered, sort};
use crate::{Algorithm, Content, Done, Error, ErrorKind};

/// What a task needs of whoever sent it.
pub trait Service {
    /// Writes the content of this SHA-256 to `sink`.
    fn fetch(&self, sha256: &str, sink: &mut dyn io::Write) -> Result<(), Error>;
    /// The same where the host has `known`, files of which the content may hold parts.
    fn fetch_over(&self, sha256: &str, _known: &[fs::File], sink: &mut dyn io::Write) -> Result<(), Error> {
        self.fetch(sha256, sink)
    }
    /// Whether nothing comes from there any more.
    fn is_cut_off(&self) -> bool {
        false
    }
    /// Tells that the task lives, with its latest line of output.
    fn progress(&self, line: &str);
}

/// This machine, during one task.
pub struct Machine<'a> {
    service: &'a dyn Service,
    env: BTreeMap<String, String>,
    started_s: f64,
    /// When the task's own time is up.
    limit: Option<Instant>,
    pub(crate) applied: Vec<Done>,
    #[cfg(feature = "kubernetes")]
    kubernetes: RefCell<crate::kubernetes::Clients>,
    fetched: RefCell<Option<(String, Vec<u8>)>>,
}

impl<'a> Machine<'a> {
    pub fn new(service: &'a dyn Service, env: BTreeMap<String, String>, limit: Option<Instant>) -> Machine<'a> {
        Machine {
            service,
            env,
            started_s: now_s(),
            limit,
            applied: Vec::new(),
            #[cfg(feature = "kubernetes")]
            kubernetes: RefCell::default(),
            fetched: RefCell::default(),
        }
    }

    pub(crate) fn task_environment(&self) -> Vec<(String, String)> {
        self.env.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Returns how long a command may run: its own limit or what is left of the task's, whichever ends first.
    pub(crate) fn timeout(&self, own: Option<Duration>) -> Option<Duration> {
        let left = self.limit.map(|limit| limit.saturating_duration_since(Instant::now()));
        own.into_iter().chain(left).min()
    }

    pub(crate) fn progress(&self, line: &str) {
        self.service.progress(line);
    }

    pub(crate) fn is_cut_off(&self) -> bool {
        self.service.is_cut_off()
    }

    /// Receives content from the runner and checks it against its name. `known` are files that may hold parts of it.
    pub(crate) fn receive(
        &self,
        sha256: &str,
        size_bytes: u64,
        known: &[fs::File],
        sink: &mut dyn io::Write,
    ) -> Result<(), Error> {
        if let Some((name, bytes)) = &*self.fetched.borrow()
            && name == sha256
        {
            let attempted = |error| Error::new(ErrorKind::Failed, format!("write content: {error}"));
            return sink.write_all(bytes).map_err(attempted);
        }
        let mut checked = Checked { sink, digest: Sha256::new(), size_bytes: 0 };
        if known.is_empty() {
            self.service.fetch(sha256, &mut checked)?;
        } else {
            self.service.fetch_over(sha256, known, &mut checked)?;
        }
        let (got, size) = (hexadecimal(&checked.digest.finalize()), checked.size_bytes);
        if got != sha256 || size != size_bytes {
            return Err(Error::new(
                ErrorKind::Failed,
                format!("content arrived damaged: {size} of {size_bytes} bytes, SHA-256 {got} instead of {sha256}"),
            ));
        }
        Ok(())
    }

    pub(crate) fn change_kubernetes(&self, request: &KubeRequest) -> Result<serde_json::Value, Error> {
        let answer = self.kubernetes(request)?;
        // What is to be removed and is gone already, by a first try whose answer was lost, is as it should be.
        let removes = request.method == "DELETE" || request.path.ends_with("/eviction");
        let gone = removes && answer.status == 404;
        if gone || (200..300).contains(&answer.status) {
            return Ok(answer.body);
        }
        let said = answer.body.get("message").and_then(|message| message.as_str()).unwrap_or("no message");
        Err(Error::new(
            ErrorKind::Failed,
            format!("{} {}: status {}: {said}", request.method, request.path, answer.status),
        )
        .with("status", answer.status))
    }
}

struct Checked<'a> {
    sink: &'a mut dyn io::Write,
    digest: Sha256,
    size_bytes: u64,
}

impl io::Write for Checked<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.sink.write(bytes)?;
        self.digest.update(&bytes[..count]);
        self.size_bytes += count as u64;
        Ok(count)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

impl Host for Machine<'_> {
    fn lstat(&self, path: &str) -> Result<Option<Stat>, Error> {
        found(path, fs::symlink_metadata(path)).map(|found| found.map(|metadata| stat_of(&metadata)))
    }

    fn stat(&self, path: &str) -> Result<Option<Stat>, Error> {
        found(path, fs::metadata(path)).map(|found| found.map(|metadata| stat_of(&metadata)))
    }

    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        found(path, fs::read(path))
    }

    fn read_link(&self, path: &str) -> Result<Option<String>, Error> {
        match fs::read_link(path) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(None),
            other => found(path, other).map(|found| found.map(|target| target.to_string_lossy().into_owned())),
        }
    }

    fn list(&self, path: &str) -> Result<Option<Vec<String>>, Error> {
        let Some(entries) = found(path, fs::read_dir(path))? else { return Ok(None) };
        let mut names = entries
            .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unreadable(path, &error))?;
        sort(&mut names);
        Ok(Some(names))
    }

    fn sha256(&self, path: &str) -> Result<Option<String>, Error> {
        self.checksum(path, Algorithm::Sha256)
    }

    fn checksum(&self, path: &str, algorithm: Algorithm) -> Result<Option<String>, Error> {
        let Some(mut file) = found(path, fs::File::open(path))? else { return Ok(None) };
        algorithm.of_reader(&mut file).map(Some).map_err(|error| unreadable(path, &error))
    }

    fn probe(&self, probe: &Probe) -> Result<Output, Error> {
        let scratch = if probe.files.is_empty() { None } else { Some(Scratch::new()?) };
        let mut argv = probe.argv.clone();
        if let Some(scratch) = &scratch {
            let folder = scratch.path().to_string_lossy();
            for word in &mut argv {
                *word = word.replace("{scratch}", &folder);
            }
            for (name, bytes) in &probe.files {
                match std::str::from_utf8(bytes) {
                    Ok(text) => scratch.add(name, text.replace("{scratch}", &folder).as_bytes())?,
                    Err(_) => scratch.add(name, bytes)?,
                }
            }
        }
        let mut env = self.task_environment();
        env.extend(probe.env.iter().cloned());
        run_command(&Command {
            argv: &argv,
            stdin: probe.stdin.as_deref(),
            env,
            chdir: None,
            umask: None,
            timeout: self.timeout(Some(Duration::from_secs(probe.timeout_s.unwrap_or(Probe::DEFAULT_TIMEOUT_S)))),
            progress: &|line| self.progress(line),
        })
    }

    fn content(&self, content: &Content) -> Result<Vec<u8>, Error> {
        match content {
            Content::Inline(bytes) => Ok(bytes.clone()),
            Content::Sent { sha256, size_bytes } => {
                if let Some((name, bytes)) = &*self.fetched.borrow()
                    && name == sha256
                {
                    return Ok(bytes.clone());
                }
                let mut bytes = Vec::new();
                self.receive(sha256, *size_bytes, &[], &mut bytes)?;
                *self.fetched.borrow_mut() = Some((sha256.clone(), bytes.clone()));
                Ok(bytes)
            }
            Content::File { path } => match self.read(path)? {
                Some(bytes) => Ok(bytes),
                None => Err(Error::new(ErrorKind::Host, format!("`{path}` does not exist"))),
            },
        }
    }

    fn started_s(&self) -> f64 {
        self.started_s
    }

    fn applied(&self) -> &[Done] {
        &self.applied
    }

    fn env(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned().or_else(|| std::env::var(name).ok())
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let inherited = std::env::vars_os();
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let mut all: BTreeMap<String, String> = gathered(inherited.map(|(name, value)| (text(name), text(value))));
        all.extend(self.env.clone());
        all
    }

    fn uid(&self) -> u32 {
        // SAFETY: geteuid(2) takes nothing and can't fail.
        unsafe { libc::geteuid() }
    }

    #[cfg(feature = "kubernetes")]
    fn kubernetes(&self, request: &KubeRequest) -> Result<KubeAnswer, Error> {
        self.progress(&format!("{} {}", request.method, request.path));
        let Some(left) = self.timeout(None) else { return self.kubernetes.borrow_mut().ask(request, &self.env) };
        if left.is_zero() {
            return Err(Error::new(ErrorKind::Failed, "the task's time is up"));
        }
        let own = request.timeout_s.unwrap_or(KubeRequest::DEFAULT_TIMEOUT_S);
        let request = KubeRequest { timeout_s: Some(own.min(left.as_secs().max(1))), ..request.clone() };
        self.kubernetes.borrow_mut().ask(&request, &self.env)
    }

    #[cfg(not(feature = "kubernetes"))]
    fn kubernetes(&self, _: &KubeRequest) -> Result<KubeAnswer, Error> {
        Err(Error::new(ErrorKind::Refused, NOT_FROM_HERE))
    }
}

/// What an agent answers to a module that asks a Kubernetes API.
pub(crate) const NOT_FROM_HERE: &str =
    "the Kubernetes API is asked from the machine that runs kubeon-run: add `delegate_to: localhost`";

/// Turns "not there" into `None`; a path through something that is no directory is not there either.
fn found<T>(path: &str, result: io::Result<T>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(unreadable(path, &error)),
    }
}

fn unreadable(path: &str, error: &io::Error) -> Error {
    Error::new(ErrorKind::Host, format!("read `{path}`: {error}"))
}

fn stat_of(metadata: &fs::Metadata) -> Stat {
    let kind = metadata.file_type();
    let kind = match () {
        () if kind.is_dir() => FileKind::Directory,
        () if kind.is_symlink() => FileKind::Link,
        () if kind.is_char_device() => FileKind::CharacterDevice,
        () if kind.is_block_device() => FileKind::BlockDevice,
        () if kind.is_fifo() => FileKind::Fifo,
        () if kind.is_socket() => FileKind::Socket,
        () => FileKind::File,
    };
    Stat {
        kind,
        mode: metadata.mode() & 0o7777,
        uid: metadata.uid(),
        gid: metadata.gid(),
        size_bytes: metadata.len(),
        modified_s: metadata.mtime(),
        accessed_s: metadata.atime(),
        changed_s: metadata.ctime(),
        inode: metadata.ino(),
        links: metadata.nlink(),
        device: metadata.dev(),
        rdev: (libc::major(metadata.rdev()), libc::minor(metadata.rdev())),
        blocks: metadata.blocks(),
        block_size_bytes: metadata.blksize(),
    }
}
