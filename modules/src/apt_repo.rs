mod keyring;
mod look;
mod offer;
pub(crate) mod others;
mod sources;

pub(crate) use look::look;

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::apt::{command, explain, lock};
use crate::apt_repo::offer::Offer;
use crate::apt_repo::sources::{FOLDER, Named, Source};
use crate::decode::Arguments;
use crate::repository_key::{date, nvidias_key};
use crate::shared::{State, toolkit, toolkit_list, two_minutes};
use crate::{Change, Content, Done, Error, ErrorKind, Host, Module, Plan, Probe, Write};

/// Add a signed apt repository, proven by the packages that it offers.
///
/// ```yaml
/// - apt_repo:
///     packages: [nvidia-container-toolkit]
/// - apt_repo:                                # a mirror, without the internet
///     uri: http://mirror.internal/libnvidia-container/stable/deb/$(ARCH)
///     key: "{{ lookup('file', 'nvidia.asc') }}"
///     packages: [nvidia-container-toolkit]
/// ```
///
/// Without arguments it is NVIDIA's repository of the container toolkit. The key is pinned by its fingerprint, taken
/// out of its armor and written where apt's own user can read it; the repository names it with `signed-by`. Then the
/// repository's index is fetched, and that alone. apt ends well although it could not use a repository, so what
/// counts is that the candidate of every one of `packages` comes from here; else all files are put back.
///
/// An entry of another file that names the very same repository is taken out of service (commented out, or
/// `Enabled: no`), since apt fails on two keys for one repository; `state: absent` puts it back. Entries that name
/// NVIDIA's paths of old are reported, and taken out of service with `disable_old: true`.
///
/// The result holds `source_file`, `keyring`, `fingerprint`, `key_expires`, `candidates`, `disabled` and `old`.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The name of the source file, without its ending.
    #[serde(default = "toolkit")]
    name: String,
    /// The repository's address; apt replaces `$(ARCH)`.
    #[serde(default = "nvidia")]
    uri: String,
    /// The release, or a folder that ends with a slash.
    #[serde(default = "slash")]
    suite: String,
    /// The parts of the release; none where `suite` is a folder.
    #[serde(default)]
    components: Vec<String>,
    /// The key itself, armored or not.
    key: Option<Content>,
    /// A file on the host that holds the key.
    key_file: Option<String>,
    /// Where the host fetches the key, through the proxy of its environment. By default `gpgkey` in the folder
    /// `libnvidia-container` of `uri`.
    key_url: Option<String>,
    /// The primary key's fingerprint: 40 hexadecimal digits, blanks allowed.
    #[serde(default = "nvidias_key")]
    fingerprint: String,
    /// Where the key is put; `/usr/share/keyrings/NAME-keyring.gpg` by default.
    keyring: Option<String>,
    /// How the source file is written.
    #[serde(default)]
    format: Format,
    /// Packages whose candidates must come from this repository.
    #[serde(default = "toolkit_list")]
    packages: Vec<String>,
    /// Whether the repository shall be there.
    #[serde(default)]
    state: State,
    /// Take entries out of service that name NVIDIA's paths of before 2023.
    #[serde(default)]
    disable_old: bool,
    /// Seconds to wait while another package manager is at work.
    #[serde(default = "two_minutes")]
    lock_timeout: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// As the host has it: the file that is there, else deb822 where the distribution's own sources are in it.
    #[default]
    Auto,
    /// One line in `NAME.list`.
    List,
    /// A stanza in `NAME.sources`.
    Deb822,
}

fn nvidia() -> String {
    "https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH)".to_owned()
}

fn slash() -> String {
    "/".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        self.check()?;
        self.judge_update(host.applied())?;
        let output = host.probe(&Probe::of(&["dpkg", "--print-architecture"]))?;
        if !output.success() {
            let message = "this host has no dpkg: `apt_repo` is for Debian, Ubuntu and their kin; on hosts with dnf or zypper `rpm_repo` \
                           adds a repository";
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let architecture = output.stdout.trim().to_owned();
        let site =
            Site { args: self, host, named: Named { uri: &self.uri, suite: &self.suite, architecture: &architecture } };
        match self.state {
            State::Present => site.present(),
            State::Absent => site.absent(),
        }
    }
}

impl Args {
    fn check(&self) -> Result<(), Error> {
        let wrong = |message: String| Err(Error::new(ErrorKind::Arguments, message));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if self.name.is_empty() || !self.name.bytes().all(plain) {
            return wrong(format!("`name` is `{}`: expected letters, digits, `-`, `_` and `.`", self.name));
        }
        if !self.uri.contains("://") && !self.uri.starts_with("file:") {
            return wrong(format!("`uri` is `{}`: expected an address such as https://host/path", self.uri));
        }
        let words = self.components.iter().chain([&self.uri, &self.suite]);
        if let Some(word) = words.into_iter().find(|word| word.is_empty() || word.contains(char::is_whitespace)) {
            return wrong(format!("`{word}` can't be written in a source file: it is empty or holds a blank"));
        }
        if self.suite.ends_with('/') != self.components.is_empty() {
            return wrong("`components` go with a release; a `suite` that ends with a slash has none".to_owned());
        }
        if self.pinned().len() != 40 || !self.pinned().bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return wrong(format!("`fingerprint` is `{}`: expected 40 hexadecimal digits", self.fingerprint));
        }
        Ok(())
    }

    fn pinned(&self) -> String {
        self.fingerprint.split_whitespace().collect::<String>().to_ascii_uppercase()
    }

    fn keyring(&self) -> String {
        self.keyring.clone().unwrap_or_else(|| format!("/usr/share/keyrings/{}-keyring.gpg", self.name))
    }

    /// Fails when the index could not be fetched, whatever apt's exit status.
    fn judge_update(&self, applied: &[Done]) -> Result<(), Error> {
        let Some(output) =
            applied.iter().rev().find(|done| is_update(&done.change)).and_then(|done| done.output.as_ref())
        else {
            return Ok(());
        };
        if output.rc == 0 && !explain::incomplete(output) {
            return Ok(());
        }
        Err(explain::failure(&format!("fetch the index of `{}`", self.uri), output))
    }

    fn text(&self, deb822: bool) -> String {
        let (uri, suite, keyring) = (&self.uri, &self.suite, self.keyring());
        let components = self.components.join(" ");
        if !deb822 {
            let components = if components.is_empty() { String::new() } else { format!(" {components}") };
            return format!("deb [signed-by={keyring}] {uri} {suite}{components}\n");
        }
        let components = if components.is_empty() { String::new() } else { format!("Components: {components}\n") };
        format!("Types: deb\nURIs: {uri}\nSuites: {suite}\n{components}Signed-By: {keyring}\n")
    }
}

fn is_update(change: &Change) -> bool {
    matches!(change, Change::Exec(exec) if exec.argv.first().is_some_and(|word| word == "apt-get"))
}

struct Site<'a> {
    args: &'a Args,
    host: &'a dyn Host,
    named: Named<'a>,
}

impl Site<'_> {
    fn present(&self) -> Result<Plan, Error> {
        let mut plan = Plan { transaction: true, ..Plan::default() };
        let certificate = self.keyring(&mut plan)?;
        let sources = Source::all(self.host)?;
        let path = self.source_path(&sources);
        let disabled = self.reconcile(&sources, &path, &mut plan)?;
        let old = self.old(&sources, &path, &mut plan)?;
        let own = sources.iter().find(|source| source.path == path);
        if !own.is_some_and(|source| self.is_right(source)) {
            let text = self.args.text(path.ends_with(".sources"));
            plan.changes.push(Change::Write(Write { mode: Some(0o644), ..Write::new(&path, text) }));
        }
        let updated = self.host.applied().iter().any(|done| is_update(&done.change));
        let offers = if plan.changes.is_empty() { self.offers()? } else { BTreeMap::new() };
        let missing = self.missing(&offers);
        if !plan.changes.is_empty() || !missing.is_empty() {
            if updated && plan.changes.is_empty() {
                return Err(self.not_offered(&offers, &missing, &path));
            }
            lock::wait(self.host, Duration::from_secs(self.args.lock_timeout))?;
            plan.changes.push(self.update(&path));
        }
        let candidate = |(name, offer): (&String, &Offer)| (name.clone(), offer.candidate.clone().into());
        let candidates: crate::host::Map = offers.iter().map(candidate).collect();
        Ok(plan
            .with("source_file", path)
            .with("keyring", self.args.keyring())
            .with("fingerprint", self.args.pinned())
            .with("key_expires", certificate.expires_s.map(date))
            .with("candidates", candidates)
            .first("disabled", disabled, self.host)
            .first("old", old, self.host))
    }

    /// Returns the file that is ours: the one that is there, or as the distribution's own are.
    fn source_path(&self, sources: &[Source]) -> String {
        let [list, deb822] = ["list", "sources"].map(|ending| format!("{FOLDER}/{}.{ending}", self.args.name));
        let there = |path: &String| sources.iter().any(|source| source.path == *path);
        match self.args.format {
            Format::List => list,
            Format::Deb822 => deb822,
            Format::Auto if there(&list) => list,
            Format::Auto if there(&deb822) => deb822,
            Format::Auto => {
                let distribution = ["debian.sources", "ubuntu.sources"].map(|name| format!("{FOLDER}/{name}"));
                if distribution.iter().any(there) { deb822 } else { list }
            }
        }
    }

    /// Whether our file names the repository, the key and nothing else.
    fn is_right(&self, source: &Source) -> bool {
        let keyring = self.args.keyring();
        match source.entries().as_slice() {
            [entry] => {
                self.named.is_in(entry) == Some(false)
                    && entry.signed_by.as_deref() == Some(keyring.as_str())
                    && (self.args.components.is_empty() || source.text.contains(&self.args.components.join(" ")))
            }
            _ => false,
        }
    }

    fn offers(&self) -> Result<BTreeMap<String, Offer>, Error> {
        if self.args.packages.is_empty() {
            return Ok(BTreeMap::new());
        }
        let argv = ["apt-cache".to_owned(), "policy".to_owned()].into_iter().chain(self.args.packages.iter().cloned());
        let output = self.host.probe(&Probe { env: vec![("LC_ALL".into(), "C".into())], ..Probe::new(argv) })?;
        if !output.success() {
            return Err(explain::failure("ask apt for its candidates", &output));
        }
        Ok(offer::parse(&output.stdout))
    }

    /// Returns the packages whose candidate does not come from here.
    fn missing(&self, offers: &BTreeMap<String, Offer>) -> Vec<String> {
        let address = self.named.address();
        let from_here = |name: &&String| offers.get(*name).is_some_and(|offer| offer.is_from(&address));
        self.args.packages.iter().filter(|name| !from_here(name)).cloned().collect()
    }

    fn not_offered(&self, offers: &BTreeMap<String, Offer>, missing: &[String], path: &str) -> Error {
        let address = self.named.address();
        let mut told = Vec::new();
        for name in missing {
            let offer = offers.get(name);
            let known = offer.is_some_and(|offer| offer.is_known_from(&address));
            told.push(match offer.and_then(|offer| offer.candidate.as_deref().map(|version| (offer, version))) {
                None => format!("`{name}` is not offered"),
                Some((offer, version)) => {
                    let origins: Vec<&str> =
                        offer.origins().iter().map(String::as_str).filter(|origin| origin.contains(':')).collect();
                    let from =
                        if origins.is_empty() { "this host's own database".to_owned() } else { origins.join(", ") };
                    let why = if known { ", by a pin or a higher version" } else { ", and this repository has none" };
                    format!("the candidate of `{name}` is {version} from {from}{why}")
                }
            });
        }
        Error::new(
            ErrorKind::Failed,
            format!("`{path}` names `{address}` and its index was fetched, yet {}", told.join("; ")),
        )
    }

    /// Fetches the index of this repository alone, and leaves the others' as they are.
    fn update(&self, path: &str) -> Change {
        let options = [
            format!("Dir::Etc::sourcelist={path}"),
            "Dir::Etc::sourceparts=-".to_owned(),
            "APT::Get::List-Cleanup=0".to_owned(),
            "APT::Update::Error-Mode=any".to_owned(),
            "Acquire::Retries=3".to_owned(),
            format!("DPkg::Lock::Timeout={}", self.args.lock_timeout),
        ];
        let mut argv = vec!["apt-get".to_owned()];
        argv.extend(options.into_iter().flat_map(|option| ["-o".to_owned(), option]));
        argv.push("update".to_owned());
        Change::Exec(command::exec(argv, self.args.lock_timeout))
    }

    /// Removes the source file and the key, and puts back what was taken out of service.
    fn absent(&self) -> Result<Plan, Error> {
        let mut plan = Plan { transaction: true, ..Plan::default() };
        let sources = Source::all(self.host)?;
        let keyring = self.args.keyring();
        let mut still_used = false;
        for source in &sources {
            let own =
                ["list", "sources"].iter().any(|ending| source.path == format!("{FOLDER}/{}.{ending}", self.args.name));
            let restored = source.restored();
            if own {
                plan.changes.push(Change::Remove { path: source.path.clone() });
                continue;
            }
            if restored != source.text {
                plan.changes.push(Change::Write(Write::new(&source.path, restored.clone())));
            }
            still_used |= restored.contains(&keyring);
        }
        if self.host.stat(&keyring)?.is_some() {
            if still_used {
                plan.warnings.push(format!("`{keyring}` stays: another source file names it"));
            } else {
                plan.changes.push(Change::Remove { path: keyring.clone() });
            }
        }
        Ok(plan.with("keyring", keyring))
    }
}
