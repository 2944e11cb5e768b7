use std::collections::BTreeMap;

use schemars::JsonSchema;

use crate::attributes::{Wanted, describe};
use crate::decode::Arguments;
use crate::host::Map;
use crate::host::Put as _;
use crate::shared::yes;
use crate::transfer::{FETCH, failure, plain};
use crate::{Change, Content, Done, Error, ErrorKind, Exec, Expect, FileKind, Host, Mode, Module, Plan, Probe, paths};

/// How long listing and comparing an archive may take.
const COMPARE_TIMEOUT_S: u64 = 900;
/// Stands between the list of an archive and what differs.
const MARK: &str = "--kubeon-differs--";

/// Unpack an archive on the host, by the host's own tar or unzip.
///
/// ```yaml
/// - unarchive:
///     src: https://example.org/cni-plugins.tgz
///     dest: /opt/cni/bin
///     remote_src: true
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The archive: a path here, or with `remote_src` a path on the host or a URL. A tar archive, packed or not, or a
    /// zip archive.
    src: String,
    /// The directory to unpack into, which must exist.
    dest: String,
    /// `src` is on the host, or a URL that the host downloads from.
    #[serde(default)]
    remote_src: bool,
    /// The opposite of `remote_src`, from older playbooks.
    copy: Option<bool>,
    /// What the archive holds; sent along for a `src` that is not on the host, not written by users.
    #[schemars(skip)]
    content: Option<Content>,
    /// Do nothing when this path exists; `*`, `?` and `[…]` match names.
    creates: Option<String>,
    /// Return the names in the archive as `files`.
    #[serde(default)]
    list_files: bool,
    /// Names, or patterns of names, to leave out.
    #[serde(default)]
    exclude: Vec<String>,
    /// The only names to unpack.
    #[serde(default)]
    include: Vec<String>,
    /// Keep files that are newer than those in the archive.
    #[serde(default)]
    keep_newer: bool,
    /// More options for tar or unzip, each an item.
    #[serde(default)]
    extra_opts: Vec<String>,
    /// Whether the server of a URL must prove who it is.
    #[serde(default = "yes")]
    validate_certs: bool,
    /// Whether an archive in a vault is decrypted before it is sent.
    #[serde(default = "yes")]
    #[expect(dead_code, reason = "acts where the archive is read, before it is sent")]
    decrypt: bool,
    /// Permission bits of all that is unpacked.
    mode: Option<Mode>,
    /// The owner's name or number, of all that is unpacked.
    owner: Option<String>,
    /// The group's name or number, of all that is unpacked.
    group: Option<String>,
}

/// Where the archive comes from.
enum Source<'a> {
    Sent(&'a Content),
    Host(String),
    Url(&'a str),
}

/// What a command that reads the archive needs.
struct Prepared {
    /// The archive's path in a shell's quotes.
    archive: String,
    /// Put beside the command.
    files: Vec<(String, Content)>,
    /// What the command begins with.
    begin: String,
}

/// What is in an archive, and whether it is in place.
struct Compared {
    zip: bool,
    names: Vec<String>,
    differs: bool,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let dest = paths::expand(host, &self.dest)?;
        if let Some(creates) = &self.creates
            && host.applied().is_empty()
            && !paths::glob(host, &paths::expand(host, creates)?)?.is_empty()
        {
            let message = format!("skipped, since {creates} exists");
            return Ok(Plan::default().with("skipped", true).with("msg", message).with("dest", dest));
        }
        let wanted = Wanted::new(host, self.mode.as_ref(), self.owner.as_deref(), self.group.as_deref())?;
        if host.stat(&dest)?.is_none_or(|stat| stat.kind != FileKind::Directory) {
            return Err(Error::new(ErrorKind::Host, format!("`{dest}` must be an existing directory")));
        }
        let unpacked = host.applied().iter().find_map(|done| done.output.as_ref());
        if let Some(output) = unpacked.filter(|output| !output.success()) {
            return Err(match output.rc {
                90 => failure(&self.src, 90, ""),
                rc => Error::new(ErrorKind::Failed, format!("unpack `{}`: {}", self.src, output.stderr.trim()))
                    .with("rc", rc),
            });
        }
        let source = self.source(host)?;
        let compared = self.compare(host, &source, &dest, &wanted, unpacked.is_some())?;
        let mut changes = Vec::new();
        if compared.differs {
            changes.push(Change::Exec(self.unpack(&source, &dest, compared.zip)?));
        } else {
            for name in &compared.names {
                let path = paths::join(&dest, name.trim_end_matches('/'));
                if let Some(found) = host.lstat(&path)? {
                    wanted.changes(host, &path, &found, &mut changes);
                }
            }
        }
        let mut plan = Plan::from(changes)
            .with("src", self.src.as_str())
            .with("dest", dest.as_str())
            .with("handler", if compared.zip { "ZipArchive" } else { "TarArchive" });
        if self.list_files {
            let excluded = |name: &String| !self.exclude.iter().any(|pattern| crate::fnmatch::fnmatch(pattern, name));
            plan = plan.with("files", compared.names.into_iter().filter(excluded).collect::<Vec<_>>());
        }
        describe(host, &dest, &mut plan.result)?;
        Ok(plan)
    }

    fn report(&self, _host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        if let Some(output) = done.iter().find_map(|done| done.output.as_ref()) {
            let told = serde_json::json!({"rc": output.rc, "out": output.stdout, "err": output.stderr});
            result.put("extract_results", told);
        }
        Ok(())
    }
}

impl Args {
    fn source(&self, host: &dyn Host) -> Result<Source<'_>, Error> {
        if let Some(content) = &self.content {
            return Ok(Source::Sent(content));
        }
        if !self.remote_src && self.copy.unwrap_or(true) {
            let message =
                format!("the content of `{}` was not sent along; `remote_src: true` takes the host's", self.src);
            return Err(Error::new(ErrorKind::Arguments, message));
        }
        if self.src.contains("://") {
            return Ok(Source::Url(&self.src));
        }
        let path = paths::expand(host, &self.src)?;
        match host.stat(&path)? {
            Some(stat) if stat.kind == FileKind::File => Ok(Source::Host(path)),
            Some(_) => Err(Error::new(ErrorKind::Host, format!("`{path}` is not a file"))),
            None => Err(Error::new(ErrorKind::Host, format!("`{path}` does not exist on this host"))),
        }
    }

    fn prepare(&self, source: &Source<'_>) -> Result<Prepared, Error> {
        let archive = "{scratch}/archive".to_owned();
        Ok(match source {
            Source::Sent(content) => {
                Prepared { archive, files: vec![("archive".to_owned(), (*content).clone())], begin: String::new() }
            }
            // A file of its own, however empty, so that there is a scratch folder.
            Source::Host(path) => Prepared {
                archive: quoted(path),
                files: vec![("none".to_owned(), Content::Inline(Vec::new()))],
                begin: String::new(),
            },
            Source::Url(url) => {
                let no_headers = BTreeMap::new();
                let transfer = plain(url, &no_headers, self.validate_certs);
                let begin = format!("{FETCH}\nfetch {{scratch}} {{scratch}}/archive >&2 || exit\n");
                Prepared { archive, files: transfer.files()?, begin }
            }
        })
    }

    fn tar_options(&self) -> String {
        let excluded = self.exclude.iter().map(|name| format!("--exclude={name}"));
        let words: Vec<String> = self.extra_opts.iter().cloned().chain(excluded).chain(self.include.clone()).collect();
        shell_words::join(words)
    }

    fn zip_options(&self, archive: &str, extra: bool) -> String {
        let before = shell_words::join(self.extra_opts.iter().filter(|_| extra));
        let include = shell_words::join(&self.include);
        let exclude = match self.exclude.is_empty() {
            true => String::new(),
            false => format!("-x {}", shell_words::join(&self.exclude)),
        };
        format!("{before} {archive} {include} {exclude}")
    }

    /// Returns a script that prints the archive's kind, its names, and what differs from what is in place.
    fn comparison(&self, prepared: &Prepared, dest: &str) -> String {
        let Prepared { archive, begin, .. } = prepared;
        let (tar, to) = (self.tar_options(), quoted(dest));
        let (zip_list, zip) = (self.zip_options(archive, false), self.zip_options(archive, true));
        format!(
            r#"{begin}
if [ "$(head -c 2 {archive} 2>/dev/null | tr -d '\000')" = PK ]; then
    command -v unzip >/dev/null 2>&1 || exit 83
    echo zip
    unzip -Z1 {zip_list} || exit 81
    echo {MARK}
    mkdir {{scratch}}/x && unzip -qq -o {zip} -d {{scratch}}/x >&2 || exit 81
    cd {{scratch}}/x && find . -exec sh -c '
        to=$1
        shift
        for at; do
            if [ -L "$at" ]; then [ "$(readlink "$at")" = "$(readlink "$to/$at")" ]
            elif [ -d "$at" ]; then [ -d "$to/$at" ]
            else cmp -s "$at" "$to/$at"
            fi || echo "$at: Contents differ"
        done' sh {to} {{}} +
else
    tar --version 2>/dev/null | grep -q 'GNU tar' || exit 84
    echo tar
    tar --list --absolute-names --quoting-style=literal --show-transformed-names -f {archive} {tar} || exit 81
    echo {MARK}
    LC_ALL=C tar --diff --show-transformed-names -f {archive} -C {to} {tar} 2>&1
    exit 0
fi"#
        )
    }

    /// Lists the archive and compares it with what is in place. Once it is `unpacked`, only what it holds counts.
    fn compare(
        &self,
        host: &dyn Host,
        source: &Source<'_>,
        dest: &str,
        wanted: &Wanted,
        unpacked: bool,
    ) -> Result<Compared, Error> {
        let prepared = self.prepare(source)?;
        let mut files = Vec::new();
        for (name, content) in &prepared.files {
            files.push((name.clone(), host.content(content)?));
        }
        let script = self.comparison(&prepared, dest);
        let probe = Probe { files, timeout_s: Some(COMPARE_TIMEOUT_S), ..Probe::of(&["/bin/sh", "-c", &script]) };
        let output = host.probe(&probe)?;
        let refused = |what: &str| Error::new(ErrorKind::Refused, format!("unpack `{}`: {what}", self.src));
        match output.rc {
            0 => {}
            81 => return Err(Error::new(ErrorKind::Failed, format!("list `{}`: {}", self.src, output.stderr.trim()))),
            83 => return Err(refused("this host has no unzip; install it first")),
            84 => return Err(refused("this host has no GNU tar; install it first")),
            rc => return Err(failure(&self.src, rc, &output.stderr)),
        }
        let mut lines = output.stdout.lines();
        let is_zip = lines.next() == Some("zip");
        // What `--strip-components` leaves nothing of is listed as `/`.
        let listed = lines.by_ref().take_while(|line| *line != MARK);
        let names: Vec<String> = listed.filter(|name| !matches!(*name, "/" | "")).map(str::to_owned).collect();
        if let Some(name) = names.iter().find(|name| name.starts_with('/') || name.split('/').any(|part| part == ".."))
        {
            return Err(refused(&format!("`{name}` in it leads out of `{dest}`")));
        }
        let root = host.uid() == 0;
        let ignored = |line: &str| {
            let said = |what: &str| line.ends_with(what);
            (said(": Uid differs") && (unpacked || !root || wanted.uid.is_some()))
                || (said(": Gid differs") && (unpacked || !root || wanted.gid.is_some()))
                || (said(": Mode differs") && (unpacked || !root || wanted.mode.is_some()))
                || (said(": Mod time differs") && (unpacked || self.keep_newer))
                || line.starts_with("tar: Exiting")
                // What `--strip-components` leaves nothing of is looked for under no name.
                || line.starts_with("tar: : ")
                || line.starts_with("tar: Removing leading")
        };
        let differs = lines.any(|line| !ignored(line));
        // Options may leave out or rename what the comparison still looks for, and newer files are kept.
        let told = unpacked && (!self.extra_opts.is_empty() || self.keep_newer);
        Ok(Compared { zip: is_zip, names, differs: differs && !told })
    }

    fn unpack(&self, source: &Source<'_>, dest: &str, zip: bool) -> Result<Exec, Error> {
        let Prepared { archive, files, begin } = self.prepare(source)?;
        let to = quoted(dest);
        let command = if zip {
            let replace = if self.keep_newer { "-uo" } else { "-o" };
            format!("unzip -q {replace} {} -d {to}", self.zip_options(&archive, true))
        } else {
            let newer = if self.keep_newer { "--keep-newer-files" } else { "" };
            format!("tar --extract {newer} -f {archive} -C {to} {}", self.tar_options())
        };
        Ok(Exec { files, expect: Expect::Any, ..Exec::of(&["/bin/sh", "-c", &format!("{begin}{command}")]) })
    }
}

fn quoted(text: &str) -> String {
    shell_words::quote(text).into_owned()
}
