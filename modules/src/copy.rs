use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::attributes::{Wanted, describe, missing_parents};
use crate::decode::Arguments;
use crate::rewrite::{Rewrite, holds};
use crate::shared::yes;
use crate::{Algorithm, Change, Content, Error, ErrorKind, FileKind, Host, Mode, Module, Plan, paths};

/// Put a file, or a directory of files, on the host.
///
/// ```yaml
/// - copy:
///     src: kubelet.yaml
///     dest: /etc/kubernetes/kubelet.yaml
///     mode: "0644"
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Where it goes. A directory, or a path that ends in `/`, gets the file under its own name.
    dest: String,
    /// What is copied: a path here, or on the host with `remote_src`. Of a directory that ends in `/` only what is in
    /// it is copied.
    src: Option<String>,
    /// The file's text, in place of `src`.
    content: Option<Content>,
    /// A directory's files; sent along for a `src` that is a directory, not written by users.
    #[schemars(skip)]
    files: Option<Vec<Entry>>,
    /// The file's own name; sent along for `src`, not written by users.
    #[serde(rename = "_original_basename")]
    #[schemars(skip)]
    original_basename: Option<String>,
    /// `src` is a path on the host.
    #[serde(default)]
    remote_src: bool,
    /// Permission bits such as "0644", clauses such as `u=rw,g=r`, or `preserve` for those of `src`.
    mode: Option<Mode>,
    /// Permission bits of directories that are made on the way.
    directory_mode: Option<Mode>,
    /// The owner's name or number.
    owner: Option<String>,
    /// The group's name or number.
    group: Option<String>,
    /// Keep what was there beside it, with the time in its name.
    #[serde(default)]
    backup: bool,
    /// Replace what is there; otherwise a file is only written where there is none.
    #[serde(default = "yes", alias = "thirsty")]
    force: bool,
    /// A command that must accept the new content before it is put in place; `%s` stands for a file that holds it.
    validate: Option<String>,
    /// The checksum that the content must have, in hexadecimal digits.
    checksum: Option<String>,
    /// Where `dest` is a link, write the file that it leads to; otherwise the link is replaced.
    #[serde(default)]
    follow: bool,
    /// Whether links in `src` are followed.
    #[serde(default = "yes")]
    local_follow: bool,
    /// Whether files in a vault are decrypted before they are sent.
    #[serde(default = "yes")]
    #[expect(dead_code, reason = "acts where the file is read, before it is sent")]
    decrypt: bool,
    /// Write into the file where it can't be replaced, such as one that is mounted by itself.
    #[serde(default)]
    unsafe_writes: bool,
}

/// One file, link or directory of a copied directory.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct Entry {
    /// Relative to `dest`.
    path: String,
    /// What the file holds; absent for a directory and for a link.
    content: Option<Content>,
    /// A symbolic link's target.
    link: Option<String>,
    /// Permission bits, in place of the task's `mode`.
    mode: Option<Mode>,
}

/// What is to be copied.
enum Source {
    File { content: Content, name: Option<String>, mode: Option<Mode> },
    Directory(Vec<Entry>),
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let wanted = Wanted::new(host, self.own_mode(), self.owner.as_deref(), self.group.as_deref())?;
        let mut dest = paths::expand(host, &self.dest)?;
        let mut changes = Vec::new();
        let plan = match self.source(host, &dest)? {
            Source::Directory(entries) => {
                let trimmed = dest.trim_end_matches('/').len().max(1);
                dest.truncate(trimmed);
                self.directory(host, &dest, &entries, &wanted, &mut changes)?;
                Plan::from(changes)
            }
            Source::File { content, name, mode } => {
                if dest.ends_with('/') || host.stat(&dest)?.is_some_and(|stat| stat.kind == FileKind::Directory) {
                    let Some(name) = name else {
                        return Err(bad("`dest` is a directory: with `content`, give the file's whole path"));
                    };
                    dest = paths::join(&dest, &name);
                    self.make_parents(host, &dest, None, &wanted, &mut HashSet::new(), &mut changes)?;
                }
                let wanted = Wanted { mode: mode.or(wanted.mode), ..wanted };
                self.file(host, &dest, &content, &wanted, &mut changes)?;
                let checksum = match &content {
                    Content::Inline(bytes) => Some(Algorithm::Sha1.of(bytes)),
                    Content::Sent { .. } if !changes.is_empty() => None,
                    Content::Sent { .. } | Content::File { .. } => host.checksum(&dest, Algorithm::Sha1)?,
                };
                let plan = Plan::from(changes);
                match checksum {
                    Some(checksum) => plan.with("checksum", checksum),
                    None => plan,
                }
            }
        };
        let mut plan = plan.with("dest", dest.as_str());
        if let Some(src) = &self.src {
            plan = plan.with("src", src.as_str());
        }
        describe(host, &dest, &mut plan.result)?;
        Ok(plan)
    }
}

impl Args {
    fn preserves(&self) -> bool {
        self.mode == Some(Mode::Symbolic("preserve".to_owned()))
    }

    /// Returns the mode that the task gives; `None` where it gives none or the source's is to be kept.
    fn own_mode(&self) -> Option<&Mode> {
        self.mode.as_ref().filter(|_| !self.preserves())
    }

    fn source(&self, host: &dyn Host, dest: &str) -> Result<Source, Error> {
        if let Some(files) = &self.files {
            return Ok(Source::Directory(files.clone()));
        }
        if !self.remote_src {
            let Some(content) = &self.content else {
                return Err(match &self.src {
                    Some(src) => bad(format!("the content of `{src}` was not sent along")),
                    None => bad("give `src` or `content`"),
                });
            };
            if self.preserves() && self.src.is_none() {
                return Err(bad("`mode: preserve` needs `src`"));
            }
            let name =
                self.original_basename.clone().or_else(|| self.src.as_deref().map(|src| paths::name(src).into()));
            return Ok(Source::File { content: content.clone(), name, mode: None });
        }
        let (Some(src), None) = (&self.src, &self.content) else {
            return Err(bad("`remote_src` needs `src`, and no `content`"));
        };
        let src = paths::expand(host, src)?;
        let Some(stat) = host.stat(&src)? else {
            return Err(Error::new(ErrorKind::Host, format!("`{src}` does not exist on this host")));
        };
        if stat.kind != FileKind::Directory {
            let mode = self.preserves().then_some(Mode::Bits(stat.mode));
            let name = Some(paths::name(&src).to_owned());
            return Ok(Source::File { content: Content::File { path: src }, name, mode });
        }
        let within = format!("{}/", dest.trim_end_matches('/'));
        if within.starts_with(&format!("{}/", src.trim_end_matches('/'))) {
            return Err(bad(format!("`{dest}` is within `{src}`: a directory is not copied into itself")));
        }
        let mut entries = Vec::new();
        let prefix = if src.ends_with('/') { "" } else { paths::name(&src) };
        self.entries_below(host, src.trim_end_matches('/'), prefix, &mut entries)?;
        Ok(Source::Directory(entries))
    }

    /// Adds what a directory of the host holds; `prefix` is where it goes below `dest`.
    fn entries_below(
        &self,
        host: &dyn Host,
        folder: &str,
        prefix: &str,
        entries: &mut Vec<Entry>,
    ) -> Result<(), Error> {
        let within = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
        if !prefix.is_empty() {
            let mode = host.stat(folder)?.map(|stat| Mode::Bits(stat.mode));
            entries.push(Entry { path: prefix.to_owned(), content: None, link: None, mode });
        }
        for name in host.list(folder)?.unwrap_or_default() {
            let from = paths::join(folder, &name);
            let path = within(&name);
            if let Some(target) = host.read_link(&from)?
                && !self.local_follow
            {
                entries.push(Entry { path, content: None, link: Some(target), mode: None });
                continue;
            }
            let Some(stat) = host.stat(&from)? else {
                return Err(Error::new(
                    ErrorKind::Host,
                    format!("`{from}` leads nowhere; `local_follow: false` copies it as a link"),
                ));
            };
            match stat.kind {
                FileKind::Directory => self.entries_below(host, &from, &path, entries)?,
                FileKind::File => {
                    let mode = self.own_mode().is_none().then_some(Mode::Bits(stat.mode));
                    entries.push(Entry { path, content: Some(Content::File { path: from }), link: None, mode });
                }
                FileKind::Link
                | FileKind::CharacterDevice
                | FileKind::BlockDevice
                | FileKind::Fifo
                | FileKind::Socket => {
                    return Err(Error::new(ErrorKind::Host, format!("`{from}` is no file: it can't be copied")));
                }
            }
        }
        Ok(())
    }

    fn file(
        &self,
        host: &dyn Host,
        dest: &str,
        content: &Content,
        wanted: &Wanted,
        changes: &mut Vec<Change>,
    ) -> Result<(), Error> {
        if !self.force && host.lstat(dest)?.is_some() {
            return Ok(());
        }
        if let Some(checksum) = &self.checksum
            && !holds(host, dest, content)?
        {
            verify(host, content, checksum)?;
        }
        let rewrite = Rewrite {
            wanted,
            backup: self.backup,
            validate: self.validate.as_deref(),
            in_place: self.unsafe_writes,
            replace_link: !self.follow,
        };
        rewrite.plan(host, dest, content, changes)
    }

    fn directory(
        &self,
        host: &dyn Host,
        dest: &str,
        entries: &[Entry],
        wanted: &Wanted,
        changes: &mut Vec<Change>,
    ) -> Result<(), Error> {
        let mut made = HashSet::new();
        if host.stat(dest)?.is_some_and(|stat| stat.kind != FileKind::Directory) {
            return Err(Error::new(ErrorKind::Host, format!("`{dest}` is not a directory")));
        }
        self.make_parents(host, &paths::join(dest, "x"), None, wanted, &mut made, changes)?;
        for entry in entries {
            if entry.path.starts_with('/') || entry.path.split('/').any(|part| part == "..") {
                return Err(bad(format!("`{}` leads out of `dest`", entry.path)));
            }
            let path = paths::join(dest, &entry.path);
            self.make_parents(host, &path, None, wanted, &mut made, changes)?;
            match (&entry.content, &entry.link) {
                (Some(content), _) => {
                    let wanted = Wanted { mode: entry.mode.clone().or(wanted.mode.clone()), ..*wanted };
                    self.file(host, &path, content, &wanted, changes)?;
                }
                (None, Some(target)) => {
                    if host.read_link(&path)?.as_ref() != Some(target) {
                        changes.push(Change::Symlink { path, target: target.clone() });
                    }
                }
                (None, None) => {
                    let inside = paths::join(&path, "x");
                    self.make_parents(host, &inside, entry.mode.as_ref(), wanted, &mut made, changes)?;
                }
            }
        }
        Ok(())
    }

    /// Makes the directories above `path` that are missing, with `mode` unless the task gives one. `made` are those
    /// that this plan makes already.
    fn make_parents(
        &self,
        host: &dyn Host,
        path: &str,
        mode: Option<&Mode>,
        wanted: &Wanted,
        made: &mut HashSet<String>,
        changes: &mut Vec<Change>,
    ) -> Result<(), Error> {
        let wanted = Wanted { mode: self.directory_mode.as_ref().or(mode).cloned(), ..*wanted };
        for parent in missing_parents(host, path)? {
            if made.insert(parent.clone()) {
                wanted.make_directory(host, &parent, changes);
            }
        }
        Ok(())
    }
}

/// Checks content against the checksum that the task gives, whose length tells the algorithm.
fn verify(host: &dyn Host, content: &Content, checksum: &str) -> Result<(), Error> {
    let checksum = checksum.trim().to_ascii_lowercase();
    let algorithm = match checksum.len() {
        32 => Algorithm::Md5,
        40 => Algorithm::Sha1,
        56 => Algorithm::Sha224,
        64 => Algorithm::Sha256,
        96 => Algorithm::Sha384,
        128 => Algorithm::Sha512,
        _ => return Err(bad(format!("`{checksum}` is no checksum in hexadecimal digits"))),
    };
    let found = match content {
        Content::Sent { sha256, .. } if algorithm == Algorithm::Sha256 => sha256.clone(),
        Content::Inline(_) | Content::Sent { .. } => algorithm.of(&host.content(content)?),
        Content::File { path } => host.checksum(path, algorithm)?.unwrap_or_default(),
    };
    if found == checksum {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Failed, format!("the content's checksum is {found}, not {checksum}")))
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Arguments, message)
}
