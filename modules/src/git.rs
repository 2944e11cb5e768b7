mod credentials;

use credentials::Credentials;
use schemars::JsonSchema;

use crate::ask::{ask, bad, failed};
use crate::decode::Arguments;
use crate::passed::table;
use crate::shared::yes;
use crate::{Change, Diff, Error, ErrorKind, Exec, FileKind, Host, Module, Output, Plan, Probe, attributes, paths};

/// Seconds that a server of repositories may take to answer.
const SLOW_S: u64 = 300;

/// Keep a checkout of a git repository at a version.
///
/// ```yaml
/// - git:
///     repo: https://github.com/kubernetes-sigs/kubespray.git
///     dest: /opt/kubespray
///     version: v2.29.0
///     depth: 1
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Where the repository is.
    #[serde(alias = "name")]
    repo: String,
    /// The folder of the checkout; not needed with `clone: false`.
    dest: Option<String>,
    /// A branch, a tag, a commit, or `HEAD`.
    #[serde(default = "head")]
    version: String,
    /// The remote's name.
    #[serde(default = "origin")]
    remote: String,
    /// What is fetched in addition.
    refspec: Option<String>,
    /// Throw away what was changed in the checkout.
    #[serde(default)]
    force: bool,
    /// Fetch what is new; otherwise a checkout that is there stays as it is.
    #[serde(default = "yes")]
    update: bool,
    /// Make the checkout where there is none.
    #[serde(default = "yes")]
    clone: bool,
    /// A repository without a checkout.
    #[serde(default)]
    bare: bool,
    /// See to the repository's submodules.
    #[serde(default = "yes")]
    recursive: bool,
    /// Take the newest commit of each submodule's branch.
    #[serde(default)]
    track_submodules: bool,
    #[serde(rename = "+options")]
    #[schemars(flatten)]
    options: Options,
}

table! {
    pub(super) struct Options {
        /// How many commits of the past come along.
        depth: Number,
        /// Fetch the one branch only.
        single_branch: Flag,
        /// Take the server's key whatever it is.
        accept_hostkey: Flag,
        /// Take the server's key where none is known.
        accept_newhostkey: Flag,
        /// Options for `ssh`.
        ssh_opts: Text,
        /// The file with the SSH key.
        key_file: Text,
        /// The program.
        executable: Text,
        /// Bits that files are made without, such as `"022"`.
        umask: Text,
        /// A repository of the host to take what it has from.
        reference: Text,
        /// Where the repository itself lies, apart from the checkout.
        separate_git_dir: Text,
    }
}

fn head() -> String {
    "HEAD".to_owned()
}

fn origin() -> String {
    "origin".to_owned()
}

/// A task, with what its URL says of who asks apart from the URL.
struct Task<'a> {
    args: &'a Args,
    repo: String,
    credentials: Option<Credentials>,
}

impl std::ops::Deref for Task<'_> {
    type Target = Args;

    fn deref(&self) -> &Args {
        self.args
    }
}

/// What a version is at the remote.
struct Remote {
    commit: Option<String>,
    /// Whether it is a branch: a checkout follows it.
    branch: Option<String>,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let (repo, credentials) = credentials::taken_from(&self.repo)?;
        Task { args: self, repo, credentials }.plan(host)
    }
}

impl Task<'_> {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let hyphen = [&self.repo, &self.version, &self.remote].iter().any(|text| text.starts_with('-'));
        if hyphen || self.repo.is_empty() || self.version.is_empty() {
            return Err(bad("`repo`, `version` and `remote` are names, not options"));
        }
        let Some(dest) = &self.dest else {
            if self.clone {
                return Err(bad("the folder of the checkout is missing: give `dest`"));
            }
            return Ok(Plan::default().with("before", "").with("after", self.remote(host)?.commit));
        };
        let dest = paths::expand(host, dest)?;
        let folder = if self.bare { dest.clone() } else { format!("{dest}/.git") };
        let there = host.stat(&if self.bare { format!("{dest}/HEAD") } else { folder })?.is_some();
        let before = if there { self.commit(host, &dest, "HEAD")? } else { None };
        if there && !self.update {
            return Ok(Plan::default().with("before", before.clone()).with("after", before));
        }
        let remote = self.remote(host)?;
        if !there {
            if !self.clone {
                return Ok(Plan::default().with("before", before).with("after", remote.commit));
            }
            if host.list(&dest)?.is_some_and(|names| !names.is_empty()) {
                let message = format!("`{dest}` is no checkout, and not empty: remove it first");
                return Err(Error::new(ErrorKind::Host, message));
            }
        }
        let applied = !host.applied().is_empty();
        let mut wanted = remote.commit.clone();
        if applied || wanted.is_none() && there {
            // A short commit, which no server lists: what it is shows in the checkout.
            wanted = wanted.or(self.commit(host, &dest, &self.version)?);
        }
        let dirty = there && !self.bare && self.is_dirty(host, &dest)?;
        if dirty && !self.force {
            let message = format!("Local modifications exist in the destination: {dest} (force=no).");
            return Err(Error::new(ErrorKind::Host, message));
        }
        let url = if there { self.url(host, &dest)? } else { None };
        let moved = there && url.as_deref() != Some(&self.repo);
        let right = there && !dirty && !moved && before.is_some() && before == wanted;
        let mut plan = Plan::default();
        if !right {
            plan.changes =
                if there { self.fetch(&dest, &remote, url.is_some(), moved) } else { self.make(host, &dest, &remote)? };
        } else if !applied && self.submodules_differ(host, &dest)? {
            plan.changes = vec![self.submodules(&dest)];
        }
        if !plan.changes.is_empty() && before != wanted {
            let text = |commit: &Option<String>| commit.as_ref().map_or(String::new(), |commit| format!("{commit}\n"));
            let [header, _] = [dest.clone(), String::new()];
            plan.diff.push(Diff {
                before_header: Some(header.clone()),
                after_header: Some(header),
                before: Some(text(&before)),
                after: Some(text(&wanted)),
                prepared: None,
            });
        }
        if !applied {
            plan = plan.with("before", before).with("remote_url_changed", moved);
        }
        Ok(plan.with("after", wanted))
    }
}

impl Task<'_> {
    fn program(&self) -> &str {
        self.options.text("executable").unwrap_or("git")
    }

    fn env(&self) -> Vec<(String, String)> {
        let mut ssh = vec!["ssh".to_owned(), "-o BatchMode=yes".to_owned()];
        if self.options.is("accept_hostkey") {
            ssh.push("-o StrictHostKeyChecking=no".to_owned());
        } else if self.options.is("accept_newhostkey") {
            ssh.push("-o StrictHostKeyChecking=accept-new".to_owned());
        }
        if let Some(key) = self.options.text("key_file") {
            ssh.push(format!("-i {} -o IdentitiesOnly=yes", shell_words::quote(key)));
        }
        ssh.extend(self.options.text("ssh_opts").map(str::to_owned));
        let mut env = vec![("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned()), ("LC_ALL".to_owned(), "C".to_owned())];
        if ssh.len() > 2 {
            env.push(("GIT_SSH_COMMAND".to_owned(), ssh.join(" ")));
        }
        env.extend(self.credentials.iter().flat_map(Credentials::env));
        env
    }

    fn argv(&self, words: &[&str]) -> Vec<String> {
        let mut argv = vec![self.program().to_owned()];
        argv.extend(self.credentials.iter().flat_map(Credentials::options));
        argv.extend(words.iter().map(|&word| word.to_owned()));
        argv
    }

    fn look(&self, host: &dyn Host, words: &[&str]) -> Result<Output, Error> {
        let argv = self.argv(words);
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        let output = host.probe(&Probe { env: self.env(), timeout_s: Some(SLOW_S), ..Probe::of(&argv) })?;
        match output.rc {
            127 => Err(Error::new(ErrorKind::Host, "this host has no `git`: install it first")),
            _ => Ok(output),
        }
    }

    fn exec(&self, dest: Option<&str>, words: &[&str]) -> Change {
        let folder: &[&str] = match &dest {
            Some(dest) => &["-C", dest],
            None => &[],
        };
        let umask = self.options.text("umask").and_then(|umask| u32::from_str_radix(umask, 8).ok());
        Change::Exec(Exec { env: self.env(), umask, ..Exec::new(self.argv(&[folder, words].concat())) })
    }

    fn commit(&self, host: &dyn Host, dest: &str, version: &str) -> Result<Option<String>, Error> {
        let version = format!("{version}^{{commit}}");
        let output = self.look(host, &["-C", dest, "rev-parse", "--verify", "--quiet", &version])?;
        if output.stderr.contains("dubious ownership") {
            return Err(failed(&["git", "rev-parse"], &output));
        }
        Ok(output.success().then(|| output.stdout.trim().to_owned()))
    }

    fn is_dirty(&self, host: &dyn Host, dest: &str) -> Result<bool, Error> {
        let output = self.look(host, &["-C", dest, "status", "--porcelain", "--untracked-files=no"])?;
        Ok(output.stdout.lines().any(|line| !line.trim().is_empty()))
    }

    fn url(&self, host: &dyn Host, dest: &str) -> Result<Option<String>, Error> {
        let output = self.look(host, &["-C", dest, "config", "--get", &format!("remote.{}.url", self.remote)])?;
        Ok(output.success().then(|| output.stdout.trim().to_owned()))
    }

    fn remote(&self, host: &dyn Host) -> Result<Remote, Error> {
        let is_commit = self.version.len() == 40 && self.version.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_commit {
            return Ok(Remote { commit: Some(self.version.clone()), branch: None });
        }
        let argv = ["ls-remote", "--symref", "--", &self.repo];
        let output = self.look(host, &argv)?;
        if !output.success() {
            return Err(failed(&["git", "ls-remote", &self.repo], &output));
        }
        let find = |name: &str| {
            let mut lines = output.stdout.lines().filter_map(|line| line.split_once('\t'));
            lines.find(|(what, other)| *other == name && !what.starts_with("ref:")).map(|(commit, _)| commit.to_owned())
        };
        if self.version == "HEAD" {
            let mut lines = output.stdout.lines().filter_map(|line| line.split_once('\t'));
            let branch = lines.find(|(what, name)| *name == "HEAD" && what.starts_with("ref:"));
            let branch = branch.and_then(|(what, _)| what.strip_prefix("ref: refs/heads/").map(str::to_owned));
            return Ok(Remote { commit: find("HEAD"), branch });
        }
        let version = &self.version;
        if let Some(commit) = find(&format!("refs/heads/{version}")) {
            return Ok(Remote { commit: Some(commit), branch: Some(version.clone()) });
        }
        // A signed or annotated tag is an object of its own; `^{}` is what it stands for.
        let tag = find(&format!("refs/tags/{version}^{{}}")).or_else(|| find(&format!("refs/tags/{version}")));
        Ok(Remote { commit: tag.or_else(|| find(version)), branch: None })
    }

    fn make(&self, host: &dyn Host, dest: &str, remote: &Remote) -> Result<Vec<Change>, Error> {
        let mut words = vec!["clone", "--origin", &self.remote];
        let depth = self.options.number("depth").map(|depth| depth.to_string());
        let named = remote.commit.as_deref() != Some(&self.version) && remote.commit.is_some();
        if self.bare {
            words.push("--bare");
        }
        if let Some(depth) = depth.as_deref().filter(|_| named) {
            words.extend(["--depth", depth]);
        }
        if named && self.version != "HEAD" && !self.version.starts_with("refs/") {
            words.extend(["--branch", &self.version]);
        }
        if self.options.is("single_branch") {
            words.push("--single-branch");
        }
        if let Some(reference) = self.options.text("reference") {
            words.extend(["--reference", reference]);
        }
        if let Some(folder) = self.options.text("separate_git_dir") {
            words.extend(["--separate-git-dir", folder]);
        }
        words.extend(["--", &self.repo, dest]);
        let mut changes = Vec::new();
        for parent in attributes::missing_parents(host, dest)? {
            changes.push(Change::Mkdir { path: parent, mode: None });
        }
        changes.push(self.exec(None, &words));
        if let Some(refspec) = &self.refspec {
            changes.push(self.exec(Some(dest), &["fetch", &self.remote, refspec]));
        }
        if !named && !self.bare {
            changes.push(self.exec(Some(dest), &["checkout", "--force", "--detach", &self.version]));
        }
        if self.recursive && !self.bare {
            changes.push(self.submodules(dest));
        }
        Ok(changes)
    }

    fn fetch(&self, dest: &str, remote: &Remote, has_remote: bool, moved: bool) -> Vec<Change> {
        let mut changes = Vec::new();
        if moved {
            let verb = if has_remote { "set-url" } else { "add" };
            changes.push(self.exec(Some(dest), &["remote", verb, &self.remote, &self.repo]));
        }
        let depth = self.options.number("depth").map(|depth| depth.to_string());
        let mut words = vec!["fetch", "--force"];
        if let Some(depth) = &depth {
            words.extend(["--depth", depth]);
        }
        let own = match (&remote.branch, self.version.as_str()) {
            (Some(branch), _) => format!("+refs/heads/{branch}:refs/remotes/{}/{branch}", self.remote),
            (None, version) if remote.commit.as_deref() != Some(version) && remote.commit.is_some() => {
                format!("+refs/tags/{version}:refs/tags/{version}")
            }
            (None, _) => String::new(),
        };
        if self.bare {
            words.extend([self.remote.as_str(), "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"]);
        } else if depth.is_some() && !own.is_empty() {
            words.extend([self.remote.as_str(), &own]);
        } else {
            words.extend(["--tags", &self.remote]);
        }
        changes.push(self.exec(Some(dest), &words));
        if let Some(refspec) = &self.refspec {
            changes.push(self.exec(Some(dest), &["fetch", &self.remote, refspec]));
        }
        if self.bare {
            return changes;
        }
        match &remote.branch {
            Some(branch) => {
                let upstream = format!("{}/{branch}", self.remote);
                changes.push(self.exec(Some(dest), &["checkout", "--force", "-B", branch, &upstream]));
            }
            None => changes.push(self.exec(Some(dest), &["checkout", "--force", "--detach", &self.version])),
        }
        if self.recursive {
            changes.push(self.submodules(dest));
        }
        changes
    }

    fn submodules(&self, dest: &str) -> Change {
        let mut words = vec!["submodule", "update", "--init", "--recursive", "--force"];
        if self.track_submodules {
            words.push("--remote");
        }
        self.exec(Some(dest), &words)
    }

    fn submodules_differ(&self, host: &dyn Host, dest: &str) -> Result<bool, Error> {
        let listed = host.stat(&format!("{dest}/.gitmodules"))?.is_some_and(|stat| stat.kind == FileKind::File);
        if !self.recursive || self.bare || !listed {
            return Ok(false);
        }
        let output = ask(host, &[self.program(), "-C", dest, "submodule", "status", "--recursive"])?;
        Ok(output.lines().any(|line| line.starts_with(['-', '+', 'U'])))
    }
}
