use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::ask::{ask, bad, failed, run, slow};
use crate::decode::Arguments;
use crate::host::{Map, Put as _};
use crate::passed::table;
use crate::{Change, Done, Error, ErrorKind, Exec, Host, Module, Plan, Probe};

mod listing;

/// Seconds that may pass while lists of packages are downloaded.
pub(crate) const SLOW_S: u64 = 300;

/// Install, upgrade and remove packages on Fedora, RHEL, Rocky, Amazon Linux and their kin.
///
/// ```yaml
/// - dnf:
///     name: [nvidia-container-toolkit, "kubelet-1.34.*"]
///     enablerepo: [kubernetes]
///     disable_excludes: kubernetes
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Packages: names, `name-version`, what a package provides, `@groups`, files and URLs of packages; `*` with
    /// `latest` is all of them.
    #[serde(alias = "pkg")]
    name: Option<Vec<String>>,
    /// What the packages are to be; `present` when absent, unless `autoremove` is given.
    state: Option<State>,
    /// Return packages in place of changing any: `installed`, `available`, `updates`, `repos` or a name.
    list: Option<String>,
    /// Read the lists of packages anew first.
    #[serde(default, alias = "expire-cache")]
    update_cache: bool,
    /// Remove what was installed only for packages that are gone.
    #[serde(default)]
    autoremove: bool,
    /// Allow to go back to an older version.
    #[serde(default)]
    allow_downgrade: bool,
    /// Upgrade what is installed, and install nothing new; with `latest`.
    #[serde(default)]
    update_only: bool,
    /// Only upgrades that mend a security problem; with `latest`.
    #[serde(default)]
    security: bool,
    /// Only upgrades that mend a mistake; with `latest`.
    #[serde(default)]
    bugfix: bool,
    /// Download the packages and install none.
    #[serde(default)]
    download_only: bool,
    #[serde(rename = "+options")]
    #[schemars(flatten)]
    options: Options,
}

table! {
    pub(super) struct Options {
        /// Repositories to use although they are disabled.
        enablerepo: List,
        /// Repositories not to use.
        disablerepo: List,
        /// The program's configuration file.
        conf_file: Text,
        /// Take packages whose signature can't be checked.
        disable_gpg_check: Flag,
        /// The folder that is taken for the root of the system.
        installroot: Text,
        /// Packages to leave alone.
        exclude: List,
        /// Leave out packages whose dependencies can't be met.
        skip_broken: Flag,
        /// Plugins to use.
        enable_plugin: List,
        /// Plugins not to use.
        disable_plugin: List,
        /// Take packages that are excluded by the configuration: `all`, `main` or a repository.
        disable_excludes: Text,
        /// Whether servers must prove who they are.
        validate_certs: Flag,
        /// Whether servers of repositories must prove who they are.
        sslverify: Flag,
        /// Whether weak dependencies come along; as the host is set up when absent.
        install_weak_deps: Flag,
        /// The folder for `download_only`.
        download_dir: Text,
        /// Remove installed packages that are in the way.
        allowerasing: Flag,
        /// Take an older version where the newest can't be installed.
        nobest: Flag,
        /// Fail where the newest version can't be installed.
        best: Flag,
        /// Use nothing but what was downloaded before.
        cacheonly: Flag,
        /// The release whose packages are taken.
        releasever: Text,
        /// Accepted: the program waits for its lock by itself.
        lock_timeout: Number,
        /// Accepted: nothing needs to be installed for this module.
        install_repoquery: Flag,
        /// Accepted: it is the host's own program that is used.
        use_backend | use: Text,
        /// Accepted: nothing needs to be installed for this module.
        auto_install_module_deps: Flag,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    #[serde(alias = "installed")]
    Present,
    #[serde(alias = "removed")]
    Absent,
    Latest,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        self.check()?;
        let program = program(host)?;
        if let Some(what) = &self.list {
            return Ok(Plan::default().with("results", listing::list(self, host, program, what)?));
        }
        let run = host.applied().iter().any(|done| done.output.is_some());
        // A list that turned out empty asks for nothing, and gets it.
        if self.names().is_empty() && !self.autoremove && !self.update_cache {
            return Ok(Plan::default());
        }
        if self.names().is_empty() && !self.autoremove {
            let words = [program, "makecache"];
            let cache = Change::Exec(exec([&words[..], &as_strs(&self.options()?)].concat()));
            let changes = if run { Vec::new() } else { vec![cache] };
            return Ok(Plan::from(changes).with("changed", false).with("msg", "Cache updated").with("rc", 0));
        }
        let line = if run && self.download_only { None } else { self.line(host, program)? };
        let plan = Plan::from(line.into_iter().map(|argv| Change::Exec(exec(argv))).collect::<Vec<_>>());
        let plan = plan.with("rc", 0).with("results", Value::Array(Vec::new()));
        Ok(if plan.changes.is_empty() && !run { plan.with("msg", "Nothing to do") } else { plan })
    }

    fn report(&self, _host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        report(done, result);
        Ok(())
    }
}

/// Adds what the transactions of a task did.
pub(super) fn report(done: &[Done], result: &mut Map) {
    const HEADS: [&str; 6] = ["Installed", "Upgraded", "Updated", "Removed", "Downgraded", "Reinstalled"];
    let mut said = Vec::new();
    for output in done.iter().filter_map(|done| done.output.as_ref()) {
        let mut head = None;
        for line in output.stdout.lines() {
            if let Some(name) = line.strip_suffix(':').filter(|name| HEADS.contains(name)) {
                head = Some(name);
            } else if let (Some(name), true) = (head, line.starts_with(' ')) {
                said.extend(line.split_whitespace().map(|package| Value::from(format!("{name}: {package}"))));
            } else {
                head = None;
            }
        }
    }
    if !said.is_empty() {
        result.put("results", said);
    }
}

/// Returns the host's program for packages, the newest there is.
pub(super) fn program(host: &dyn Host) -> Result<&'static str, Error> {
    for program in ["dnf", "dnf5", "yum"] {
        if host.stat(&format!("/usr/bin/{program}"))?.is_some() {
            return Ok(program);
        }
    }
    Err(Error::new(
        ErrorKind::Refused,
        "this host has neither dnf nor yum: take `package`, which finds out what it has",
    ))
}

fn exec<S: AsRef<str>>(argv: Vec<S>) -> Exec {
    let env = vec![("LC_ALL".to_owned(), "C".to_owned())];
    Exec { env, ..Exec::new(argv.iter().map(|word| word.as_ref().to_owned())) }
}

fn as_strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

impl Args {
    fn names(&self) -> &[String] {
        self.name.as_deref().unwrap_or_default()
    }

    fn check(&self) -> Result<(), Error> {
        if self.names().iter().any(|name| name.trim().is_empty() || name.starts_with('-')) {
            return Err(bad("`name` is a list of packages"));
        }
        if self.list.is_some() && (!self.names().is_empty() || self.state.is_some()) {
            return Err(bad("`list` returns packages and changes none: leave `name` and `state` away"));
        }
        let nothing = self.name.is_none() && self.list.is_none() && !self.update_cache && !self.autoremove;
        if nothing {
            return Err(bad("nothing to do: give `name`, `list`, `update_cache` or `autoremove`"));
        }
        if self.autoremove && !matches!(self.state, None | Some(State::Absent)) {
            return Err(bad("`autoremove` goes with `state: absent`"));
        }
        if (self.security || self.bugfix || self.update_only) && self.state != Some(State::Latest) {
            return Err(bad("`security`, `bugfix` and `update_only` need `state: latest`"));
        }
        Ok(())
    }

    /// Returns the words that go with each command.
    fn options(&self) -> Result<Vec<String>, Error> {
        let given = &self.options;
        if given.is("nobest") && given.is("best") {
            return Err(bad("give `best` or `nobest`, not both"));
        }
        let mut words = Vec::new();
        let mut word = |text: String| words.push(text);
        given.list("disablerepo").iter().for_each(|name| word(format!("--disablerepo={name}")));
        given.list("enablerepo").iter().for_each(|name| word(format!("--enablerepo={name}")));
        given.list("exclude").iter().for_each(|name| word(format!("--exclude={name}")));
        given.list("enable_plugin").iter().for_each(|name| word(format!("--enableplugin={name}")));
        given.list("disable_plugin").iter().for_each(|name| word(format!("--disableplugin={name}")));
        for (name, option) in [
            ("conf_file", "--config="),
            ("installroot", "--installroot="),
            // dnf 5 has no option of its own for it.
            ("disable_excludes", "--setopt=disable_excludes="),
            ("releasever", "--releasever="),
            ("download_dir", "--downloaddir="),
        ] {
            if let Some(value) = given.text(name).filter(|value| !(name == "installroot" && *value == "/")) {
                // dnf 4 calls them `all`, dnf 5 `*`.
                let value = if name == "disable_excludes" && value == "all" { "all,*" } else { value };
                word(format!("{option}{value}"));
            }
        }
        for (name, when, option) in [
            ("disable_gpg_check", true, "--nogpgcheck"),
            ("skip_broken", true, "--skip-broken"),
            ("allowerasing", true, "--allowerasing"),
            ("nobest", true, "--nobest"),
            ("best", true, "--best"),
            ("cacheonly", true, "--cacheonly"),
            ("validate_certs", false, "--setopt=sslverify=0"),
            ("sslverify", false, "--setopt=sslverify=0"),
            ("install_weak_deps", false, "--setopt=install_weak_deps=False"),
            ("install_weak_deps", true, "--setopt=install_weak_deps=True"),
        ] {
            if given.flag(name) == Some(when) {
                word(option.to_owned());
            }
        }
        for (asked, option) in [
            (self.update_cache, "--refresh"),
            (self.security, "--security"),
            (self.bugfix, "--bugfix"),
            (self.download_only, "--downloadonly"),
        ] {
            if asked {
                word(option.to_owned());
            }
        }
        Ok(words)
    }

    /// Returns the command that makes it so; `None` when it is so.
    fn line(&self, host: &dyn Host, program: &str) -> Result<Option<Vec<String>>, Error> {
        let mut options = self.options()?;
        // The old yum always reads its lists anew when they are stale.
        if program == "yum" && host.stat("/usr/bin/dnf-3")?.is_none() {
            options.retain(|word| word != "--refresh");
        }
        let line = |verb: &str, names: &[&str]| -> Vec<String> {
            let words = [program, "-y", verb].map(str::to_owned).into_iter();
            words.chain(options.iter().cloned()).chain(names.iter().map(|name| (*name).to_owned())).collect()
        };
        let mut asked = Vec::new();
        match self.state {
            None | Some(State::Absent) if self.names().is_empty() => {
                self.if_it_does_something(host, line("autoremove", &[]))
            }
            Some(State::Absent) => {
                for name in self.names() {
                    if self.is_installed(host, name)? {
                        asked.push(name.as_str());
                    }
                }
                if asked.is_empty() {
                    return Ok(None);
                }
                let mut argv = line("remove", &asked);
                if program != "yum" && !self.autoremove {
                    // Else it takes what nothing needs any more along.
                    argv.insert(3, "--setopt=clean_requirements_on_remove=False".to_owned());
                }
                Ok(Some(argv))
            }
            None | Some(State::Present) => {
                for name in self.names() {
                    if !self.is_installed(host, name)? && !self.is_newer(host, name)? {
                        asked.push(name.as_str());
                    }
                }
                let argv = line("install", &asked);
                match asked.iter().any(|name| is_special(name)) {
                    _ if asked.is_empty() => Ok(None),
                    true => self.if_it_does_something(host, argv),
                    false => Ok(Some(argv)),
                }
            }
            Some(State::Latest) if self.names() == ["*"] => self.if_it_does_something(host, line("upgrade", &[])),
            Some(State::Latest) => {
                let mut new = Vec::new();
                for name in self.names() {
                    let there = self.is_installed(host, name)?;
                    if there { asked.push(name.as_str()) } else { new.push(name.as_str()) }
                }
                if !new.is_empty() && !self.update_only {
                    let argv = line("install", &new);
                    let argv = if new.iter().any(|name| is_special(name)) {
                        self.if_it_does_something(host, argv)?
                    } else {
                        Some(argv)
                    };
                    if argv.is_some() {
                        return Ok(argv);
                    }
                }
                if asked.is_empty() { Ok(None) } else { self.if_it_does_something(host, line("upgrade", &asked)) }
            }
        }
    }

    fn rpm<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        let root = self.options.text("installroot").filter(|root| *root != "/");
        let head = root.map_or(vec!["rpm"], |root| vec!["rpm", "--root", root]);
        [head.as_slice(), words].concat()
    }

    fn is_installed(&self, host: &dyn Host, name: &str) -> Result<bool, Error> {
        if name.starts_with('@') || name.contains("://") || name.ends_with(".rpm") {
            return Ok(false);
        }
        if name.contains(['*', '?', '[']) {
            return Ok(!ask(host, &self.rpm(&["-qa", name]))?.trim().is_empty());
        }
        Ok(run(host, &self.rpm(&["-q", "--", name]))?.success()
            || run(host, &self.rpm(&["-q", "--whatprovides", "--", name]))?.success())
    }

    /// Whether a newer version is installed than `name-version` asks for, and is to stay.
    fn is_newer(&self, host: &dyn Host, name: &str) -> Result<bool, Error> {
        if self.allow_downgrade || is_special(name) || name.contains('*') {
            return Ok(false);
        }
        for (at, _) in name.rmatch_indices('-') {
            let (base, version) = (&name[..at], &name[at + 1..]);
            if !version.starts_with(|letter: char| letter.is_ascii_digit()) {
                continue;
            }
            let format = ["-q", "--qf", "%{VERSION}-%{RELEASE}\\n", "--", base];
            let found = run(host, &self.rpm(&format))?;
            if let (true, Some(installed)) = (found.success(), found.stdout.lines().last()) {
                let quoted = |text: &str| text.replace(['\\', '\'', '"', '%', '{', '}'], "");
                let lua = format!("%{{lua: print(rpm.vercmp('{}', '{}'))}}", quoted(installed), quoted(version));
                return Ok(ask(host, &["rpm", "--eval", &lua])?.trim() == "1");
            }
        }
        Ok(false)
    }

    /// Returns the command unless trying it shows that it would do nothing.
    fn if_it_does_something(&self, host: &dyn Host, argv: Vec<String>) -> Result<Option<Vec<String>>, Error> {
        let trial: Vec<&str> = argv.iter().map(|word| if word == "-y" { "--assumeno" } else { word }).collect();
        let output = slow(host, &trial, SLOW_S)?;
        let all = format!("{}{}", output.stdout, output.stderr);
        match output.rc {
            0 => Ok(None),
            _ if ["Operation aborted", "Exiting on user"].iter().any(|said| all.contains(said)) => Ok(Some(argv)),
            _ if all.contains("Nothing to do") => Ok(None),
            _ => Err(failed(&trial, &output)),
        }
    }
}

/// Whether only the package manager can tell what this is.
fn is_special(name: &str) -> bool {
    name.starts_with('@') || name.contains("://") || name.contains('/') || name.ends_with(".rpm")
}

/// A probe that may download lists of packages.
pub(super) fn patient<const N: usize>(argv: [&str; N]) -> Probe {
    Probe { timeout_s: Some(SLOW_S), ..Probe::new(argv) }
}
