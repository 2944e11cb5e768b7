mod cache;
mod look;
pub(crate) mod offer;
mod others;
mod own;
mod proxy;

pub(crate) use look::look;

use schemars::JsonSchema;

use crate::ask::{ask, bad};
use crate::attributes::missing_parents;
use crate::decode::Arguments;
use crate::host::Map;
use crate::repository_key::openpgp::{self, Certificate};
use crate::repository_key::{Origin, date, expires_soon, nvidias_key, write_key};
use crate::rpm::files::RepoFile;
use crate::rpm::{Manager, explain, wait};
use crate::rpm_key;
use crate::shared::{State, toolkit, toolkit_list, two_minutes};
use crate::{Change, Content, Done, Error, ErrorKind, Exec, Host, Module, Plan, Write};

/// Add a signed repository of dnf or zypper, proven by the packages that it offers.
///
/// ```yaml
/// - rpm_repo:
///     packages: [nvidia-container-toolkit]
/// - rpm_repo:                                # a mirror, without the internet
///     uri: http://mirror.internal/libnvidia-container/stable/rpm/$basearch
///     key: "{{ lookup('file', 'nvidia.asc') }}"
///     packages: [nvidia-container-toolkit]
/// ```
///
/// Without arguments it is NVIDIA's repository of the container toolkit. Its index must be signed (`repo_gpgcheck`) with
/// the key that is pinned by its fingerprint; the index has the checksums of the packages, which NVIDIA does not sign one
/// by one. Then the index is fetched, and what counts is that the candidate of every one of `packages` comes from
/// here; else all files are put back. A repository that signs packages and no index is one for `yum_repository`.
///
/// A section of another file that names the very same repository, or has its name, is taken out of service (commented out),
/// since it would let packages in without that key; `state: absent` puts it back. Sections that name NVIDIA's paths of
/// old are reported, and taken out of service with `disable_old: true`.
///
/// dnf accepts an index by the keys that it has for this repository alone. zypper has one set of keys for all of them, rpm's
/// database, where the key is put, too.
///
/// The result holds `manager`, `source_file`, `keyring`, `fingerprint`, `key_expires`, `candidates`, `disabled` and `old`.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The repository's name: its section, and its file without the ending.
    #[serde(default = "toolkit")]
    name: String,
    /// The repository's address, the folder that holds `repodata`; `$basearch` stands for the host's architecture.
    #[serde(default = "nvidia", alias = "baseurl")]
    uri: String,
    /// The key itself, armored or not.
    key: Option<Content>,
    /// A file on the host that holds the key.
    key_file: Option<String>,
    /// Where the host fetches the key, through the proxy of its environment or its package manager. By default `gpgkey`
    /// in the folder `libnvidia-container` of `uri`.
    key_url: Option<String>,
    /// The primary key's fingerprint: 40 hexadecimal digits, blanks allowed.
    #[serde(default = "nvidias_key")]
    fingerprint: String,
    /// Where the key is put; `/etc/pki/rpm-gpg/RPM-GPG-KEY-NAME` by default.
    keyring: Option<String>,
    /// Its rank among repositories, the lowest number first; 99 is what others have that name none. So packages come from
    /// here although another repository has them, too, as NVIDIA's own for CUDA does.
    #[serde(default = "before_others")]
    priority: u32,
    /// Packages whose candidates must come from this repository.
    #[serde(default = "toolkit_list")]
    packages: Vec<String>,
    /// Whether the repository shall be there.
    #[serde(default)]
    state: State,
    /// Take sections out of service that name NVIDIA's paths of before 2023.
    #[serde(default)]
    disable_old: bool,
    /// Seconds to wait while another package manager is at work.
    #[serde(default = "two_minutes")]
    lock_timeout: u64,
}

fn nvidia() -> String {
    "https://nvidia.github.io/libnvidia-container/stable/rpm/$basearch".to_owned()
}

fn before_others() -> u32 {
    50
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        self.check()?;
        let manager = Manager::of(host)?;
        self.judge_fetch(host.applied())?;
        let architecture = ask(host, &["uname", "-m"])?.trim().to_owned();
        let (files, folder) = RepoFile::all(host, manager)?;
        let site =
            Site { args: self, host, manager, architecture, path: format!("{folder}/{}.repo", self.name), files };
        match self.state {
            State::Present => site.present(),
            State::Absent => site.absent(),
        }
    }
}

impl Args {
    fn check(&self) -> Result<(), Error> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if self.name.is_empty() || self.name == "main" || !self.name.bytes().all(plain) {
            return Err(bad(format!("`name` is `{}`: expected letters, digits, `-`, `_` and `.`", self.name)));
        }
        if !self.uri.contains("://") || self.uri.contains([' ', '\t', '\n', ',']) {
            return Err(bad(format!("`uri` is `{}`: expected one address such as https://host/path", self.uri)));
        }
        if self.pinned().len() != 40 || !self.pinned().bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(bad(format!("`fingerprint` is `{}`: expected 40 hexadecimal digits", self.fingerprint)));
        }
        if self.priority == 0 || self.priority > 99 {
            return Err(bad(format!("`priority` is {}: expected a number from 1 to 99", self.priority)));
        }
        let odd = |name: &&String| name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace);
        if let Some(name) = self.packages.iter().find(odd) {
            return Err(bad(format!("`{name}` is no package's name")));
        }
        Ok(())
    }

    fn pinned(&self) -> String {
        self.fingerprint.split_whitespace().collect::<String>().to_ascii_uppercase()
    }

    fn keyring(&self) -> String {
        self.keyring.clone().unwrap_or_else(|| format!("/etc/pki/rpm-gpg/RPM-GPG-KEY-{}", self.name))
    }

    /// Fails when the index could not be fetched.
    fn judge_fetch(&self, applied: &[Done]) -> Result<(), Error> {
        let fetch = applied.iter().rev().find(|done| is_fetch(&done.change));
        match fetch.and_then(|done| done.output.as_ref()) {
            Some(output) if !output.success() => {
                Err(explain::failure(&format!("fetch the index of `{}`", self.uri), output))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Whether a change fetches the repository's index.
fn is_fetch(change: &Change) -> bool {
    let says = |exec: &Exec| exec.argv.iter().any(|word| word == "makecache" || word == "refresh");
    matches!(change, Change::Exec(exec) if says(exec))
}

struct Site<'a> {
    args: &'a Args,
    host: &'a dyn Host,
    manager: Manager,
    architecture: String,
    /// The file that is ours.
    path: String,
    files: Vec<RepoFile>,
}

impl Site<'_> {
    fn present(&self) -> Result<Plan, Error> {
        let mut plan = Plan { transaction: true, ..Plan::default() };
        let certificate = self.keyring(&mut plan)?;
        let old = self.old(&mut plan)?;
        let disabled = self.reconcile(&mut plan);
        if let Some(text) = self.own_text() {
            let parents = missing_parents(self.host, &self.path)?;
            plan.changes.extend(parents.into_iter().map(|path| Change::Mkdir { path, mode: Some(0o755) }));
            plan.changes.push(Change::Write(Write { mode: Some(0o644), ..Write::new(&self.path, text) }));
        }
        if !plan.changes.is_empty() {
            // With the index go the keys by which one was accepted before.
            self.forget(&mut plan)?;
        }
        self.import(&certificate, &mut plan)?;
        let fetched = self.host.applied().iter().any(|done| is_fetch(&done.change));
        let offers = if plan.changes.is_empty() { self.offers(fetched)? } else { Vec::new() };
        let strangers = self.strangers(&offers);
        if !plan.changes.is_empty() || !strangers.is_empty() {
            if fetched && plan.changes.is_empty() {
                let message = format!("`{}` names `{}` and its index was fetched, yet ", self.path, self.args.uri);
                return Err(Error::new(ErrorKind::Failed, message + &strangers.join("; ")));
            }
            wait(self.host, self.args.lock_timeout)?;
            plan.changes.push(Change::Exec(self.fetch()));
        }
        let candidate = |name: &String| Some((name.clone(), self.candidate(&offers, name)?.version.clone().into()));
        let candidates: Map = self.args.packages.iter().filter_map(candidate).collect();
        Ok(plan
            .with("manager", self.manager.name())
            .with("source_file", self.path.as_str())
            .with("keyring", self.args.keyring())
            .with("fingerprint", self.args.pinned())
            .with("key_expires", certificate.expires_s.map(date))
            .with("candidates", candidates)
            .first("disabled", disabled, self.host)
            .first("old", old, self.host))
    }

    /// Sees to the key's file; returns the key.
    fn keyring(&self, plan: &mut Plan) -> Result<Certificate, Error> {
        let path = self.args.keyring();
        let bytes = self.host.read(&path)?;
        let there = bytes.as_ref().and_then(|bytes| openpgp::dearmored(bytes).ok());
        let there = there.and_then(|bytes| openpgp::certificates(&bytes).ok()).unwrap_or_default();
        let pinned = self.args.pinned();
        let origin = Origin {
            key: self.args.key.as_ref(),
            key_file: self.args.key_file.as_deref(),
            key_url: self.args.key_url.as_deref(),
            uri: &self.args.uri,
            pinned: &pinned,
            env: proxy::variables(self.host, self.manager)?,
        };
        let (certificate, _) = origin.certificate(self.host, there)?;
        // Nothing but this key: a second one would be accepted, too.
        let text = openpgp::armored(&certificate.bytes);
        if bytes.as_deref() != Some(text.as_bytes()) {
            write_key(self.host, &path, text.into_bytes(), plan)?;
        }
        plan.warnings.extend(expires_soon(self.host, &certificate));
        Ok(certificate)
    }

    /// Puts the key into rpm's database, where zypper looks for it.
    fn import(&self, certificate: &Certificate, plan: &mut Plan) -> Result<(), Error> {
        let id = certificate.fingerprint.to_ascii_lowercase();
        if self.manager != Manager::Zypper || rpm_key::entry_of(self.host, &id)?.is_some() {
            return Ok(());
        }
        wait(self.host, self.args.lock_timeout)?;
        let text = openpgp::armored(&certificate.bytes);
        let files = vec![("key".to_owned(), Content::Inline(text.into_bytes()))];
        plan.changes.push(Change::Exec(Exec { files, ..Exec::of(&["rpm", "--import", "{scratch}/key"]) }));
        let words = ["sh", "-c", ERASE, "erase", &id];
        plan.after_undo.push(Change::Exec(Exec { expect: crate::Expect::Any, ..Exec::of(&words) }));
        Ok(())
    }

    /// Fetches the index of this repository alone.
    fn fetch(&self) -> Exec {
        let name = &self.args.name;
        let argv = match self.manager {
            Manager::Dnf(_) => {
                let (only, must) = (format!("--repo={name}"), format!("--setopt={name}.skip_if_unavailable=0"));
                self.manager.line(&["makecache", "--refresh", &only, &must])
            }
            Manager::Zypper => self.manager.line(&["refresh", "--force", name]),
        };
        self.manager.exec(argv, self.args.lock_timeout)
    }

    /// Removes the section and the key, and puts back what was taken out of service.
    fn absent(&self) -> Result<Plan, Error> {
        let mut plan = Plan { transaction: true, ..Plan::default() };
        let keyring = self.args.keyring();
        let mut still_used = false;
        for file in &self.files {
            let text = if file.path == self.path { self.without_own(file) } else { Some(file.restored()) };
            match text {
                None => plan.changes.push(Change::Remove { path: file.path.clone() }),
                Some(text) => {
                    still_used |= text.contains(&keyring);
                    if text != file.text {
                        plan.changes.push(Change::Write(Write::new(&file.path, text)));
                    }
                }
            }
        }
        self.forget(&mut plan)?;
        if still_used {
            plan.warnings.push(format!("`{keyring}` stays: another file names it"));
            return Ok(plan.with("manager", self.manager.name()).with("keyring", keyring));
        }
        if self.manager == Manager::Zypper
            && let Some(entry) = rpm_key::entry_of(self.host, &self.args.pinned().to_ascii_lowercase())?
        {
            wait(self.host, self.args.lock_timeout)?;
            plan.changes.push(rpm_key::removal(&entry));
        }
        if self.host.stat(&keyring)?.is_some() {
            plan.changes.push(Change::Remove { path: keyring.clone() });
        }
        Ok(plan.with("manager", self.manager.name()).with("keyring", keyring))
    }
}

/// Takes the key `$1` out of rpm's database again, which knows it by the end of its fingerprint or all of it.
const ERASE: &str = r#"rpm -q --qf '%{VERSION} %{VERSION}-%{RELEASE}\n' gpg-pubkey | while read -r id entry; do
    case $1 in *"$id") rpm --erase --allmatches "gpg-pubkey-$entry" ;; esac
done"#;
