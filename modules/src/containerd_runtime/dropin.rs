//! A file of its own that containerd reads beside the main one: it stays when another program writes that anew.

use serde_json::Value;

use super::daemon::Daemon;
use super::decide::{self, Wanted};
use super::edit::{Text, containerd_keys};
use super::prove::{self, Proof};
use super::view::View;
use super::{Args, Mode, Site, folder, refused, tell};
use crate::host::Put as _;
use crate::{Change, Error, Host, Plan, Write};

/// The first line, by which it is known again.
pub(super) const HEADER: &str = "# Written by kubeon-run: `state: absent` of containerd_runtime removes it.\n";
const NAME: &str = "90-kubeon-run-nvidia.toml";

/// Where such a file goes, and in which configuration version.
pub(super) struct DropIn<'a> {
    pub args: &'a Args,
    pub host: &'a dyn Host,
    pub daemon: &'a Daemon,
    pub view: &'a View,
    pub path: String,
    pub version: i64,
}

/// A file that was proven, and what the daemon makes of all files with it.
pub(super) struct Proven {
    pub text: String,
    pub after: View,
    pub wanted: Wanted,
}

impl DropIn<'_> {
    /// Returns the file's text, once the daemon has booted apart with it.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) with what would be wrong; nothing was changed.
    pub(super) fn proven(&self) -> Result<Proven, Error> {
        let untouched = |message: String| refused(format!("{message}; nothing was changed"));
        let cri = self.view.enabled_cri().ok_or_else(|| refused("containerd's CRI plugin is disabled"))?;
        let wanted = decide::wanted(self.args, self.view, cri, self.daemon.major).map_err(untouched)?;
        let text = self.written("", self.version, &wanted).map_err(untouched)?;
        // All that the daemon makes of its files, with the tables of the new one: that is what it will make of them all.
        let whole = self.written(&self.view.text, self.view.version, &wanted).map_err(untouched)?;
        let mut whole = Text::parse(&whole).map_err(|place| refused(format!("containerd's own dump: {place}")))?;
        whole.put(&[], "imports", &Value::Array(Vec::new())).map_err(refused)?;
        let whole = whole.render();
        let after =
            self.daemon.dump_text(self.host, &whole)?.map_err(|said| untouched(format!("containerd: {said}")))?;
        let faults = decide::faults(self.args, self.view, &after, &wanted);
        if !faults.is_empty() {
            return Err(untouched(format!("with `{}` {}", self.path, faults.join("; "))));
        }
        if let Proof::Failed(message) = prove::boot(self.host, self.daemon, &whole, &after)? {
            return Err(untouched(format!("containerd {} does not work with it: {message}", self.daemon.version)));
        }
        let note = folder::note(folder::made(self.host, &self.path)?);
        Ok(Proven { text: format!("{HEADER}{note}{text}"), after, wanted })
    }

    /// Returns `text` with the runtime's tables.
    fn written(&self, text: &str, version: i64, wanted: &Wanted) -> Result<String, String> {
        let mut text = Text::parse(text)?;
        let keys = containerd_keys(version);
        text.set_version(version);
        if self.args.mode == Mode::Default {
            text.put(&keys, "default_runtime_name", &self.args.runtime_name.as_str().into())?;
        }
        let path = [keys[0], keys[1], keys[2], "runtimes", self.args.runtime_name.as_str()];
        text.put_table(&path, &wanted.table)?;
        Ok(text.render())
    }
}

/// Returns the folder whose files the daemon reads, from a pattern such as `/etc/containerd/conf.d/*.toml`.
fn folder_of(view: &View) -> Option<&str> {
    view.imports.iter().find_map(|pattern| pattern.strip_suffix("/*.toml").filter(|folder| folder.starts_with('/')))
}

/// Whether a main file says which further files are read: an empty list is as good as none.
pub(super) fn names_imports(text: &str) -> bool {
    let named =
        |text: Text| text.get(&["imports"]).and_then(|item| item.as_array()).is_some_and(|list| !list.is_empty());
    Text::parse(text).is_ok_and(named)
}

impl Site<'_> {
    /// Returns where a file of this module is or would be; `None` where the daemon reads no folder.
    fn drop_in_path(&self, view: &View) -> Option<String> {
        // The daemon's dump shows a folder even where the main file names none; it does not read it then.
        let named = self.current.as_deref().is_some_and(names_imports);
        folder_of(view).filter(|_| named).map(|folder| format!("{folder}/{NAME}"))
    }

    /// Whether there is such a file.
    pub(super) fn has_drop_in(&self, view: &View) -> Result<bool, Error> {
        let Some(path) = self.drop_in_path(view) else { return Ok(false) };
        Ok(self.host.read(&path)?.is_some_and(|bytes| bytes.starts_with(HEADER.as_bytes())))
    }

    /// `state: present` with `drop_in: true`, where the daemon has not the runtime yet.
    pub(super) fn dropped_in(&self, view: &View) -> Result<Plan, Error> {
        let version = &self.daemon.version;
        if self.daemon.major < 2 {
            return Err(refused(format!(
                "containerd {version} lets a further file replace all settings of the CRI plugin: leave `drop_in` out"
            )));
        }
        let Some(path) = self.drop_in_path(view) else {
            return Err(refused(format!(
                "containerd {version} reads no folder of further files: add `imports = [\"/etc/containerd/conf.d/*.toml\"]` \
                 to `{}`, or leave `drop_in` out",
                self.daemon.config
            )));
        };
        // A file of a newer version than the main one ends the daemon.
        let root = match &self.current {
            Some(text) => Text::parse(text).map_err(|place| refused(format!("`{}`: {place}", self.daemon.config)))?,
            None => Text::parse("").map_err(refused)?,
        };
        let version = if root.has_version() || !root.plugins().is_empty() { root.version() } else { 2 };
        if version < 2 {
            return Err(refused(format!(
                "`{}` is of version 1: leave `drop_in` out, and give `migrate: true`",
                self.daemon.config
            )));
        }
        let drop_in =
            DropIn { args: self.args, host: self.host, daemon: &self.daemon, view, path: path.clone(), version };
        let proven = drop_in.proven()?;
        let mut plan = Plan { transaction: true, ..Plan::default() };
        plan.changes.extend(folder::make(self.host, &path)?);
        plan.changes.push(Change::Write(Write::new(&path, proven.text)));
        if self.restarts() {
            plan.changes.extend(self.restarting(&proven.after, true));
            if self.args.require_binary {
                plan.changes.push(self.starting(&proven.after));
            }
            plan.after_undo = self.returning(view);
        }
        plan.diff = vec![tell::effective(&self.daemon, view, &proven.after)];
        let mut plan = self.told(plan, &proven.after, Some(&proven.wanted))?;
        plan.result.put("config", path);
        Ok(plan)
    }

    /// `state: absent` where there is such a file; `None` where there is none.
    pub(super) fn dropped_out(&self, view: &View) -> Result<Option<Plan>, Error> {
        let Some(path) = self.drop_in_path(view).filter(|_| self.has_drop_in(view).unwrap_or_default()) else {
            return Ok(None);
        };
        let mut plan =
            Plan { transaction: true, changes: vec![Change::Remove { path: path.clone() }], ..Plan::default() };
        if self.restarts() {
            plan.changes.extend(self.restarting(view, true));
            plan.after_undo = self.returning(view);
        }
        plan.changes.extend(folder::remove(self.host, &path)?);
        Ok(Some(plan.with("config", path).with("containerd_version", self.daemon.version.as_str())))
    }
}
