use schemars::JsonSchema;
use serde_json::Value;

use crate::ask::bad;
use crate::decode::Arguments;
use crate::order::sort_by;
use crate::passed::table;
use crate::repository_key::openpgp::dearmored;
use crate::rewrite::Edited;
use crate::shared::State;
use crate::transfer::plain;
use crate::{Change, Error, ErrorKind, Host, Mode, Module, Plan, Write};

const FOLDER: &str = "/etc/apt/sources.list.d";
const KEYS: &str = "/etc/apt/keyrings";

/// Keep a repository of apt in a file of its own, in the format of fields.
///
/// ```yaml
/// - deb822_repository:
///     name: docker
///     uris: https://download.docker.com/linux/debian
///     suites: bookworm
///     components: stable
///     architectures: amd64
///     signed_by: https://download.docker.com/linux/debian/gpg
/// ```
///
/// apt's lists are not refreshed: `apt` with `update_cache` does that.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The repository's name, of which the file's is made.
    name: String,
    #[serde(default)]
    state: State,
    /// Permission bits of the file and of its key.
    #[serde(default = "usual_mode")]
    mode: Mode,
    /// Accepted for Ansible's sake: nothing needs to be installed for this module.
    #[serde(default, rename = "install_python_debian")]
    _install_python_debian: Option<bool>,
    #[serde(rename = "+options")]
    #[schemars(flatten)]
    options: Options,
}

table! {
    pub(super) struct Options {
        /// Allow that a repository that was signed no longer is.
        allow_downgrade_to_insecure: Flag,
        /// Allow a repository that is not signed.
        allow_insecure: Flag,
        /// Allow checksums that are known to be weak.
        allow_weak: Flag,
        /// Architectures of the packages.
        architectures: List,
        /// Whether indexes are fetched by their checksum.
        by_hash: Flag,
        /// Whether the index's date is checked.
        check_date: Flag,
        /// Whether the index's end is checked.
        check_valid_until: Flag,
        /// The parts of the release.
        components: List,
        /// How many seconds the index's date may lie in the future.
        date_max_future: Number,
        /// Whether it is used.
        enabled: Flag,
        /// Packages to leave alone.
        exclude: List,
        /// The only packages to take.
        include: List,
        /// The index's path in the repository.
        inrelease_path: Text,
        /// Languages of descriptions.
        languages: List,
        /// Whether changes of indexes are fetched in place of whole ones.
        pdiffs: Flag,
        /// The key: its URL, its file on the host, its fingerprint or the armored key itself.
        signed_by: Text,
        /// The releases, or a folder that ends with a slash.
        suites: List,
        /// Which indexes are fetched.
        targets: List,
        /// Whether it is trusted without a signature; only what is not signed when false.
        trusted: Flag,
        /// `deb`, which it is when absent, and `deb-src`.
        types: List,
        /// The addresses.
        uris: List,
    }
}

fn usual_mode() -> Mode {
    Mode::Bits(0o644)
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let slug: String = self
            .name
            .to_ascii_lowercase()
            .split(|letter: char| !letter.is_ascii_alphanumeric() && !"-_.".contains(letter))
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join("-");
        if slug.is_empty() {
            return Err(bad(format!("`{}` is no repository's name", self.name)));
        }
        let path = format!("{FOLDER}/{slug}.sources");
        if self.state == State::Absent {
            let keys = ["asc", "gpg"].map(|ending| format!("{KEYS}/{slug}.{ending}"));
            let mut changes = Vec::new();
            for path in [path.clone()].into_iter().chain(keys) {
                if host.lstat(&path)?.is_some() {
                    changes.push(Change::Remove { path });
                }
            }
            return Ok(Plan::from(changes)
                .with("repo", Value::Null)
                .with("dest", path)
                .with("key_filename", Value::Null));
        }
        let mut changes = Vec::new();
        let signed_by = self.signed_by(host, &slug, &mut changes)?;
        let text = self.text(signed_by.as_deref());
        let edited = Edited::read(host, &path)?;
        self.put(host, &edited.path, text.clone().into_bytes(), &mut changes)?;
        let key = signed_by.filter(|key| key.starts_with(KEYS) && self.options.text("signed_by") != Some(key));
        Ok(Plan::from(changes).with("repo", text).with("dest", path).with("key_filename", key))
    }
}

impl Args {
    /// Adds what must change for a file to hold `bytes` and have its mode.
    fn put(&self, host: &dyn Host, path: &str, bytes: Vec<u8>, changes: &mut Vec<Change>) -> Result<(), Error> {
        let found = host.stat(path)?;
        let mode = self.mode.bits(found.as_ref(), crate::FileKind::File, 0o644);
        if host.read(path)?.as_ref() != Some(&bytes) {
            changes.push(Change::Write(Write { mode: Some(mode), ..Write::new(path, bytes) }));
        } else if found.is_some_and(|found| found.mode != mode) {
            changes.push(Change::Chmod { path: path.to_owned(), mode });
        }
        Ok(())
    }

    /// Returns the value of `Signed-By`; a key that comes from elsewhere is put into a file.
    fn signed_by(&self, host: &dyn Host, slug: &str, changes: &mut Vec<Change>) -> Result<Option<String>, Error> {
        let Some(given) = self.options.text("signed_by") else { return Ok(None) };
        if !given.contains("://") {
            return Ok(Some(given.trim_end().to_owned()));
        }
        // It was fetched for this task's first plan, and is there since.
        let there = host.applied().iter().find_map(|done| match &done.change {
            Change::Write(write) if write.path.starts_with(KEYS) => Some(write.path.clone()),
            _ => None,
        });
        if there.is_some() {
            return Ok(there);
        }
        let bytes = plain(given, &Default::default(), true).bytes(host)?;
        dearmored(&bytes).map_err(|why| Error::new(ErrorKind::Host, format!("the key from `{given}` {why}")))?;
        let armored = bytes.starts_with(b"-----");
        let path = format!("{KEYS}/{slug}.{}", if armored { "asc" } else { "gpg" });
        if host.stat(KEYS)?.is_none() {
            changes.push(Change::Mkdir { path: KEYS.to_owned(), mode: Some(0o755) });
        }
        self.put(host, &path, bytes, changes)?;
        Ok(Some(path))
    }

    /// Returns the file's text, whose fields are in the order of their arguments.
    fn text(&self, signed_by: Option<&str>) -> String {
        let mut fields = vec![("X-Repolib-Name".to_owned(), "name", self.name.clone())];
        if self.options.get("types").is_none() {
            fields.push(("Types".to_owned(), "types", "deb".to_owned()));
        }
        for (name, value) in self.options.iter() {
            let text = match value {
                Value::Bool(value) => if *value { "yes" } else { "no" }.to_owned(),
                Value::Number(value) => value.to_string(),
                Value::Array(_) => self.options.list(name).join(" "),
                Value::Null | Value::Object(_) | Value::String(_) if name == "signed_by" => {
                    signed_by.unwrap_or_default().to_owned()
                }
                Value::Null | Value::Object(_) | Value::String(_) => value.as_str().unwrap_or_default().to_owned(),
            };
            fields.push((title(name), name, text));
        }
        sort_by(&mut fields, |(_, one, _), (_, other, _)| one.cmp(other));
        let line = |(title, _, text): &(String, &str, String)| {
            if !text.contains('\n') {
                return format!("{title}: {text}\n");
            }
            // The following lines of a value are set in; an empty one is a dot.
            let lines = text.lines().map(|line| format!("    {}\n", if line.trim().is_empty() { "." } else { line }));
            format!("{title}:\n{}", lines.collect::<String>())
        };
        fields.iter().map(line).collect()
    }
}

/// Returns the field's name for an argument's. Source: `sources.list(5)`.
fn title(name: &str) -> String {
    match name {
        "uris" => return "URIs".to_owned(),
        "pdiffs" => return "PDiffs".to_owned(),
        "inrelease_path" => return "InRelease-Path".to_owned(),
        _ => {}
    }
    let word = |word: &str| format!("{}{}", word[..1].to_ascii_uppercase(), &word[1..]);
    name.split('_').map(word).collect::<Vec<_>>().join("-")
}
