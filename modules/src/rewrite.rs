//! Giving a file a new content: compare first, let a validator see it, then one whole write.

use crate::attributes::{Wanted, missing_parents};
use crate::{Algorithm, Change, Content, Error, ErrorKind, FileKind, Host, Plan, Probe, Write, paths};

/// How a file's new content is to be put in place.
pub(crate) struct Rewrite<'a> {
    pub wanted: &'a Wanted,
    pub backup: bool,
    pub validate: Option<&'a str>,
    /// Write into the file where it can't be replaced.
    pub in_place: bool,
    /// Replace a link by the file; otherwise the file that it leads to is written.
    pub replace_link: bool,
}

impl Rewrite<'_> {
    /// Adds what must change for the file at `path` to hold `content` and have its owner and mode. Content that is
    /// the same already is not fetched from the runner.
    ///
    /// # Errors
    /// [`ErrorKind::Host`] when `path` is a directory, [`ErrorKind::Failed`] when the validator refuses the content.
    pub fn plan(&self, host: &dyn Host, path: &str, content: &Content, changes: &mut Vec<Change>) -> Result<(), Error> {
        let is_link = host.lstat(path)?.is_some_and(|stat| stat.kind == FileKind::Link);
        let path = if is_link && !self.replace_link { paths::follow(host, path)? } else { path.to_owned() };
        let found = host.stat(&path)?;
        if found.is_some_and(|stat| stat.kind == FileKind::Directory) && !(is_link && self.replace_link) {
            return Err(Error::new(ErrorKind::Host, format!("`{path}` is a directory, not a file")));
        }
        let replaces_link = is_link && self.replace_link;
        if !replaces_link && holds(host, &path, content)? {
            if let Some(found) = &found {
                self.wanted.changes(host, &path, found, changes);
            }
            return Ok(());
        }
        if let Some(command) = self.validate {
            validate(host, command, &path, content)?;
        }
        let mut write = Write { content: content.clone(), ..Write::new(&path, "") };
        self.wanted.apply_to(&mut write, found.as_ref().filter(|_| !replaces_link));
        write.backup = self.backup && found.is_some();
        write.in_place = self.in_place;
        write.replace_link = replaces_link;
        changes.push(Change::Write(write));
        Ok(())
    }
}

/// A text file that a module is about to edit.
pub(crate) struct Edited {
    /// Where the file itself is, links followed.
    pub path: String,
    /// What it holds; `None` where it is still to be made.
    pub bytes: Option<Vec<u8>>,
    /// Whether this task has written it: an edit happens once, for a second one might find more to do.
    pub written: bool,
}

impl Edited {
    /// Reads the file at a path as the user wrote it.
    ///
    /// # Errors
    /// [`ErrorKind::Host`] when it is a directory.
    pub fn read(host: &dyn Host, path: &str) -> Result<Edited, Error> {
        let path = paths::follow(host, &paths::expand(host, path)?)?;
        if host.stat(&path)?.is_some_and(|stat| stat.kind == FileKind::Directory) {
            return Err(Error::new(ErrorKind::Host, format!("`{path}` is a directory, not a file")).with("rc", 256));
        }
        let bytes = host.read(&path)?;
        let written = host.applied().iter().any(|done| match &done.change {
            Change::Write(write) => write.path == path,
            Change::Mkdir { .. }
            | Change::Chmod { .. }
            | Change::Chown { .. }
            | Change::Symlink { .. }
            | Change::Hardlink { .. }
            | Change::Remove { .. }
            | Change::Rename { .. }
            | Change::Touch { .. }
            | Change::Exec(_)
            | Change::Kubernetes(_) => false,
        });
        Ok(Edited { path, bytes, written })
    }

    pub fn missing(&self) -> Error {
        Error::new(ErrorKind::Host, format!("`{}` does not exist; `create: true` makes it", self.path)).with("rc", 257)
    }

    /// Plans to give the file this content, with its missing parents; `said` tells what was edited. The result's
    /// `msg` is that of the plan which edits.
    pub fn plan(&self, host: &dyn Host, new: Vec<u8>, said: &str, rewrite: &Rewrite<'_>) -> Result<Plan, Error> {
        const ATTRIBUTES: &str = "ownership, perms or SE linux context changed";
        let mut changes = Vec::new();
        let edits = !self.written && self.bytes.as_ref() != Some(&new);
        if edits {
            for parent in missing_parents(host, &self.path)? {
                changes.push(Change::Mkdir { path: parent, mode: None });
            }
            rewrite.plan(host, &self.path, &Content::Inline(new), &mut changes)?;
        } else if let Some(found) = host.stat(&self.path)? {
            rewrite.wanted.changes(host, &self.path, &found, &mut changes);
        }
        let message = match (edits, changes.is_empty()) {
            (true, _) => said.to_owned(),
            (false, false) => ATTRIBUTES.to_owned(),
            (false, true) => String::new(),
        };
        let plan = Plan::from(changes);
        Ok(if host.applied().is_empty() { plan.with("msg", message) } else { plan })
    }
}

/// Returns the lines of a text, each with the newline that ends it.
pub(crate) fn lines_of(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Returns a line without what ends it.
pub(crate) fn bare(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |at| at + 1);
    &line[..end]
}

/// Whether the file at `path` holds exactly this content.
pub(crate) fn holds(host: &dyn Host, path: &str, content: &Content) -> Result<bool, Error> {
    let Some(found) = host.stat(path)?.filter(|stat| stat.kind == FileKind::File) else { return Ok(false) };
    let size = match content {
        Content::Inline(bytes) => Some(bytes.len() as u64),
        Content::Sent { size_bytes, .. } => Some(*size_bytes),
        Content::File { path } => host.stat(path)?.map(|stat| stat.size_bytes),
    };
    if size != Some(found.size_bytes) {
        return Ok(false);
    }
    let wanted = match content {
        Content::Inline(bytes) => Some(Algorithm::Sha256.of(bytes)),
        Content::Sent { sha256, .. } => Some(sha256.clone()),
        Content::File { path } => host.sha256(path)?,
    };
    Ok(wanted.is_some() && host.sha256(path)? == wanted)
}

/// Lets a command judge content before it is put in place: `%s` in it stands for a file that holds it.
fn validate(host: &dyn Host, command: &str, path: &str, content: &Content) -> Result<(), Error> {
    if !command.contains("%s") {
        return Err(Error::new(ErrorKind::Arguments, format!("`validate` must contain `%s`: {command}")));
    }
    let name = paths::name(path);
    let words = shell_words::split(command).map_err(|_| {
        Error::new(ErrorKind::Arguments, format!("`validate` has a quote that is not closed: {command}"))
    })?;
    let argv = words.iter().map(|word| word.replace("%s", &format!("{{scratch}}/{name}")));
    let files = vec![(name.to_owned(), host.content(content)?)];
    let output = host.probe(&Probe { files, ..Probe::new(argv) })?;
    if output.success() {
        return Ok(());
    }
    let said = if output.stderr.trim().is_empty() { output.stdout.trim() } else { output.stderr.trim() };
    Err(Error::new(
        ErrorKind::Failed,
        format!("`{path}` was left as it is: `{command}` refused the new content: {said}"),
    )
    .with("rc", output.rc)
    .with("stdout", output.stdout.as_str())
    .with("stderr", output.stderr.as_str()))
}
