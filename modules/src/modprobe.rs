use schemars::JsonSchema;
use serde::Deserialize;

use crate::decode::Arguments;
use crate::shared::State;
use crate::{Change, Error, ErrorKind, Exec, Host, Module, Plan, Write};

const LOAD: &str = "/etc/modules-load.d";
const OPTIONS: &str = "/etc/modprobe.d";

/// Load or unload a kernel module, now and at each start.
///
/// ```yaml
/// - modprobe:
///     name: br_netfilter
///     persistent: present
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The kernel module.
    name: String,
    #[serde(default)]
    state: State,
    /// Its parameters, as `modprobe` takes them.
    #[serde(default)]
    params: String,
    /// Whether it is loaded at each start; left as it is when `disabled`.
    #[serde(default)]
    persistent: Persistent,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Persistent {
    #[default]
    Disabled,
    Present,
    Absent,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let name = self.name.as_str();
        if name.is_empty() || name.contains(['/', ' ', '\n']) || name.starts_with('-') {
            return Err(Error::new(ErrorKind::Arguments, format!("`{name}` is no kernel module's name")));
        }
        let mut changes = Vec::new();
        match (self.state, self.loaded(host)?) {
            (State::Present, None) => {
                let params = self.params.split_whitespace();
                changes.push(Change::Exec(Exec::new(["modprobe", name].into_iter().chain(params))));
            }
            (State::Absent, Some(Loaded::Loaded)) => {
                changes.push(Change::Exec(Exec::of(&["modprobe", "-r", name])));
            }
            (State::Absent, Some(Loaded::BuiltIn)) => {
                return Err(Error::new(
                    ErrorKind::Host,
                    format!("`{name}` is built into this host's kernel: it can't go"),
                ));
            }
            (State::Present, Some(_)) | (State::Absent, None) => {}
        }
        match self.persistent {
            Persistent::Disabled => {}
            Persistent::Present => self.persist(host, &mut changes)?,
            Persistent::Absent => self.forget(host, &mut changes)?,
        }
        let state = if self.state == State::Present { "present" } else { "absent" };
        Ok(Plan::from(changes).with("name", name).with("params", self.params.as_str()).with("state", state))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loaded {
    Loaded,
    BuiltIn,
}

impl Args {
    fn loaded(&self, host: &dyn Host) -> Result<Option<Loaded>, Error> {
        let text = |path: &str| -> Result<String, Error> {
            Ok(String::from_utf8_lossy(&host.read(path)?.unwrap_or_default()).into_owned())
        };
        if text("/proc/modules")?.lines().any(|line| same(line.split(' ').next().unwrap_or_default(), &self.name)) {
            return Ok(Some(Loaded::Loaded));
        }
        let release = text("/proc/sys/kernel/osrelease")?;
        let built_in = text(&format!("/lib/modules/{}/modules.builtin", release.trim()))?;
        let file = |line: &str| line.rsplit('/').next().and_then(|file| file.strip_suffix(".ko")).map(str::to_owned);
        let is_in = built_in.lines().filter_map(file).any(|name| same(&name, &self.name));
        // What is built in and has parameters shows here too, where nobody installed the list of what is.
        let shown = host.stat(&format!("/sys/module/{}", self.name.replace('-', "_")))?.is_some();
        Ok((is_in || shown).then_some(Loaded::BuiltIn))
    }

    fn persist(&self, host: &dyn Host, changes: &mut Vec<Change>) -> Result<(), Error> {
        let mut listed = false;
        for (_, text) in files(host, LOAD)? {
            listed |= text.lines().any(|line| same(line.trim(), &self.name));
        }
        if !listed {
            make_folder(host, LOAD, changes)?;
            changes.push(Change::Write(Write::new(format!("{LOAD}/{}.conf", self.name), format!("{}\n", self.name))));
        }
        let params: Vec<&str> = self.params.split_whitespace().collect();
        if params.is_empty() {
            return Ok(());
        }
        let mut set: Vec<String> = Vec::new();
        for (_, text) in files(host, OPTIONS)? {
            set.extend(text.lines().filter_map(|line| self.options(line)).flatten().map(str::to_owned));
        }
        let as_wanted = set.len() == params.len() && params.iter().all(|param| set.iter().any(|other| other == param));
        if !as_wanted {
            self.comment_out(host, OPTIONS, &|line| self.options(line).is_some(), changes)?;
            make_folder(host, OPTIONS, changes)?;
            let path = format!("{OPTIONS}/{}.conf", self.name);
            let line = format!("options {} {}\n", self.name, params.join(" "));
            // What this writes replaces what commenting out left of the same file.
            changes.retain(|change| !matches!(change, Change::Write(write) if write.path == path));
            changes.push(Change::Write(Write::new(path, line)));
        }
        Ok(())
    }

    fn forget(&self, host: &dyn Host, changes: &mut Vec<Change>) -> Result<(), Error> {
        self.comment_out(host, LOAD, &|line| same(line.trim(), &self.name), changes)?;
        self.comment_out(host, OPTIONS, &|line| self.options(line).is_some(), changes)
    }

    /// Returns the parameters of an `options` line of this module.
    fn options<'a>(&self, line: &'a str) -> Option<Vec<&'a str>> {
        let mut words = line.split_whitespace();
        (words.next() == Some("options") && words.next().is_some_and(|name| same(name, &self.name)))
            .then(|| words.collect())
    }

    fn comment_out(
        &self,
        host: &dyn Host,
        folder: &str,
        goes: &dyn Fn(&str) -> bool,
        changes: &mut Vec<Change>,
    ) -> Result<(), Error> {
        for (path, text) in files(host, folder)? {
            if text.lines().any(goes) {
                let kept = text.lines().map(|line| if goes(line) { format!("#{line}\n") } else { format!("{line}\n") });
                changes.push(Change::Write(Write::new(path, kept.collect::<String>())));
            }
        }
        Ok(())
    }
}

/// Dashes and underscores are one to the kernel.
fn same(a: &str, b: &str) -> bool {
    a.replace('-', "_") == b.replace('-', "_")
}

fn files(host: &dyn Host, folder: &str) -> Result<Vec<(String, String)>, Error> {
    let mut files = Vec::new();
    for name in host.list(folder)?.unwrap_or_default() {
        let path = format!("{folder}/{name}");
        if name.ends_with(".conf")
            && let Some(bytes) = host.read(&path)?
        {
            files.push((path, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    Ok(files)
}

fn make_folder(host: &dyn Host, folder: &str, changes: &mut Vec<Change>) -> Result<(), Error> {
    if host.stat(folder)?.is_none() {
        changes.push(Change::Mkdir { path: folder.to_owned(), mode: Some(0o755) });
    }
    Ok(())
}
