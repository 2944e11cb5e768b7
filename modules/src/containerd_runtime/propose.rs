//! `state: present`: from the file as it is to a candidate that the daemon takes, or to a reason to leave it alone.

use crate::host::Put as _;
use serde_json::{Value, json};

use crate::containerd_runtime::decide::{self, Wanted};
use crate::containerd_runtime::edit::{Text, containerd_keys};
use crate::containerd_runtime::record::Record;
use crate::containerd_runtime::view::{View, differences};
use crate::containerd_runtime::{Mode, Site, refused, started, tell};
use crate::{Error, Plan, Probe};

/// A text and what the daemon makes of it.
struct Stage {
    text: String,
    view: View,
}

impl Site<'_> {
    pub(super) fn present(&self) -> Result<Plan, Error> {
        let text = self.current.clone().unwrap_or_default();
        self.refuse_generated(&text)?;
        let now = self.view_now()?;
        let mut drop_in = self.args.drop_in;
        if let Ok(view) = &now {
            self.refuse_newer(&text, view)?;
            let dropped = self.has_drop_in(view)?;
            drop_in |= dropped;
            if let Some(cri) = view.enabled_cri()
                && decide::satisfied(self.args, view, cri, dropped || self.is_ours(&text))
                && self.dead_key(view).is_none()
            {
                return self.already(view);
            }
        }
        self.need_binary()?;
        if drop_in && let Ok(view) = &now {
            return self.dropped_in(view);
        }
        let start = self.start(&text, now)?;
        let start = self.with_cri(start)?;
        let start = self.migrated(start)?;
        let (candidate, wanted) = self.edited(&start)?;
        let default = match self.args.mode {
            Mode::Default => self.args.runtime_name.clone(),
            Mode::RuntimeClass => start.view.cri.as_ref().map(|cri| cri.default.clone()).unwrap_or_default(),
        };
        self.prove(&candidate.text, &candidate.view, Some(&default))?;
        self.put(&start, &candidate, &wanted)
    }

    /// Whether the present default runtime is one that an earlier run of this module chose.
    fn is_ours(&self, text: &str) -> bool {
        self.record.as_ref().is_some_and(|record| record.is_of(text) && record.runtime == self.args.runtime_name)
    }

    /// A node that is right already: nothing to do but a restart that an earlier run still owes.
    fn already(&self, view: &View) -> Result<Plan, Error> {
        let mut plan = Plan::default();
        if let Some(record) = self.record.as_ref().filter(|record| record.pending)
            && self.restarts()
        {
            plan.changes = self.restarting(view, true);
            plan.changes.push(record.settled().write(&self.daemon.config));
        }
        self.told(plan, view, None)
    }

    /// A file of a version that the daemon does not know is ignored by 1.6, without a word.
    fn refuse_newer(&self, text: &str, view: &View) -> Result<(), Error> {
        let version = Text::parse(text).map(|text| text.version()).unwrap_or(1);
        if version <= view.version {
            return Ok(());
        }
        Err(refused(format!(
            "`{}` is of version {version}, and containerd {} knows {} at most: it ignores what the file says of pods. \
             Nothing was changed: write it in version {}, or upgrade containerd",
            self.daemon.config, self.daemon.version, view.version, view.version
        )))
    }

    /// The program must be there and start: it asks for the low-level runtime too.
    fn need_binary(&self) -> Result<(), Error> {
        if !self.args.require_binary {
            return Ok(());
        }
        let binary = &self.args.binary;
        if self.host.stat(binary)?.is_none_or(|stat| stat.mode & 0o111 == 0) {
            return Err(refused(format!(
                "`{binary}` is not there, so no container would start with it: install the package \
                 `nvidia-container-toolkit-base` first"
            )));
        }
        let output = self.host.probe(&Probe::new([binary.as_str(), "--version"]))?;
        if output.success() {
            return Ok(());
        }
        let said = if output.stderr.trim().is_empty() { output.stdout.trim() } else { output.stderr.trim() };
        Err(refused(format!("`{binary} --version` exited {}, so no container would start with it: {said}", output.rc)))
    }

    /// Returns the text to edit: the file as it was before an earlier run of this module, where nobody edited it since.
    fn start(&self, text: &str, now: Result<View, String>) -> Result<Stage, Error> {
        let original = self.record.as_ref().filter(|record| record.is_of(text));
        if let Some(record) = original {
            let text = record.original.clone().unwrap_or_default();
            let view = self.daemon.dump_text(self.host, &text)?.map_err(|said| self.unloadable(&text, &said))?;
            return Ok(Stage { text, view });
        }
        match now {
            Ok(view) => Ok(Stage { text: text.to_owned(), view }),
            Err(said) if self.args.enable_cri && said.contains("disabled plugin URI") => {
                let mut parsed = Text::parse(text).map_err(|error| self.unloadable(text, &error))?;
                parsed.enable_cri();
                let text = parsed.render();
                let view = self.daemon.dump_text(self.host, &text)?.map_err(|said| self.unloadable(&text, &said))?;
                Ok(Stage { text, view })
            }
            Err(said) => Err(self.unloadable(text, &said)),
        }
    }

    /// Says why the daemon does not take a file, where in it, and what to do.
    fn unloadable(&self, text: &str, said: &str) -> Error {
        let mut message = format!(
            "containerd {} does not load `{}`, so nothing was changed: {said}",
            self.daemon.version, self.daemon.config
        );
        if let Err(place) = Text::parse(text) {
            message.push_str(&format!(" ({place})"));
        }
        let advice = if text.starts_with('\u{feff}') {
            "the file starts with a byte order mark, which this containerd refuses: remove it"
        } else if said.contains("disabled plugin URI") {
            "names in `disabled_plugins` are whole ones since version 2, such as `io.containerd.snapshotter.v1.btrfs`: \
             write it so; for `cri` give `enable_cri: true`"
        } else if said.contains("higher than root") {
            "a file in `imports` is of a newer version than this one: remove that file or write it in this version"
        } else if said.contains("config version") {
            "the file is of a newer version than this containerd knows: write it in an older one, or upgrade containerd"
        } else {
            "repair the file first"
        };
        refused(format!("{message}; {advice}"))
    }

    /// Enables the CRI plugin where that was asked for.
    fn with_cri(&self, start: Stage) -> Result<Stage, Error> {
        if start.view.enabled_cri().is_some() {
            return Ok(start);
        }
        if !self.args.enable_cri {
            let docker = ["/usr/bin/dockerd", "/usr/sbin/dockerd", "/etc/docker"];
            let docker = docker.iter().any(|path| matches!(self.host.stat(path), Ok(Some(_))));
            let whose = if docker {
                "this is a Docker node: Docker's package disables containerd's CRI plugin, and Kubernetes does not use \
                 this containerd"
            } else {
                "containerd's CRI plugin is disabled, as Docker's package has it: Kubernetes can't use this containerd"
            };
            return Err(refused(format!(
                "{whose}; `{}` is untouched: give `enable_cri: true` where Kubernetes shall use it (and `migrate: true` \
                 for a file of version 1)",
                self.daemon.config
            )));
        }
        let mut text = Text::parse(&start.text).map_err(|place| self.unloadable(&start.text, &place))?;
        text.enable_cri();
        let text = text.render();
        let view = self.daemon.dump_text(self.host, &text)?.map_err(|said| self.unloadable(&text, &said))?;
        if view.enabled_cri().is_none() {
            return Err(refused(format!(
                "the CRI plugin stays disabled, by another file or by how containerd was built ({})",
                view.disabled.join(", ")
            )));
        }
        Ok(Stage { text, view })
    }

    /// Brings a file without a version, or of version 1, to one whose settings the daemon heeds.
    fn migrated(&self, start: Stage) -> Result<Stage, Error> {
        let parsed = Text::parse(&start.text).map_err(|place| self.unparsable(&place))?;
        if parsed.version() >= 2 {
            return Ok(start);
        }
        let plugins = parsed.plugins();
        let bare = plugins.is_empty() && !parsed.has_version();
        // Names such as `aufs` in `disabled_plugins` are none in a later version: such a file takes more than a number.
        if bare
            && let Ok(stage) = self.with_version(Text::parse(&start.text).map_err(refused)?, start.view.version)
            && decide::strangers(self.args, &start.view, &stage.view).is_empty()
        {
            return Ok(stage);
        }
        if !self.args.migrate {
            let ignored = match start.view.version {
                3 => ", which this containerd ignores in part",
                _ => "",
            };
            let state = if parsed.has_version() { "is of version 1" } else { "names no version, so it counts as 1" };
            return Err(refused(format!(
                "`{}` {state}{ignored}; it is untouched: give `migrate: true` to have it rewritten in version {}",
                self.daemon.config, start.view.version
            )));
        }
        // Plugin names of version 2 or 3 in a file that only forgot to say so.
        let forgot = !parsed.has_version() && plugins.iter().all(|name| name.starts_with("io.containerd."));
        if forgot {
            let three = plugins.iter().any(|name| name.starts_with("io.containerd.cri.v1."));
            let stage = self.with_version(parsed, if three { 3 } else { 2 });
            if let Ok(stage) = stage
                && decide::strangers(self.args, &start.view, &stage.view).is_empty()
            {
                // The runtimes that now come to life are edited; what they replace is what ran until now.
                return Ok(Stage { text: stage.text, view: start.view });
            }
        }
        self.dumped(start)
    }

    fn with_version(&self, mut parsed: Text, version: i64) -> Result<Stage, Error> {
        parsed.set_version(version);
        let text = parsed.render();
        let view = self.daemon.dump_text(self.host, &text)?.map_err(|said| self.unloadable(&text, &said))?;
        Ok(Stage { text, view })
    }

    /// Takes the daemon's own dump for the file: all settings that count, in its own version.
    fn dumped(&self, start: Stage) -> Result<Stage, Error> {
        let mut text = Text::parse(&start.view.text).map_err(|place| self.unparsable(&place))?;
        text.put(&[], "imports", &Value::Array(Vec::new())).map_err(refused)?;
        if !start.view.disabled.is_empty() {
            text.put(&[], "disabled_plugins", &json!(start.view.disabled)).map_err(refused)?;
        }
        if decide::legacy_default(&start.view).is_some() && self.args.repair {
            let keys = containerd_keys(text.version());
            text.remove(&keys, "default_runtime");
        }
        let text = text.render();
        let view = self.daemon.dump_text(self.host, &text)?.map_err(|said| self.unloadable(&text, &said))?;
        let lost = decide::strangers(self.args, &start.view, &view);
        if let Some(first) = lost.first() {
            return Err(refused(format!(
                "rewritten in version {}, `{}` would change in `{}` and {} more; it is untouched: rewrite it by hand",
                view.version,
                self.daemon.config,
                first.path,
                lost.len() - 1
            )));
        }
        Ok(Stage { text, view })
    }

    fn unparsable(&self, place: &str) -> Error {
        refused(format!(
            "`{}` is no valid TOML, though containerd {} reads it: {place}; it is untouched: repair it first",
            self.daemon.config, self.daemon.version
        ))
    }

    /// Edits a text, and has the daemon say that nothing but the runtime changes.
    fn edited(&self, start: &Stage) -> Result<(Stage, Wanted), Error> {
        let args = self.args;
        let untouched = format!("`{}` is untouched", self.daemon.config);
        if let Some(message) = self.dead_key(&start.view) {
            return Err(refused(format!("{message}; {untouched}")));
        }
        let cri = start.view.enabled_cri().ok_or_else(|| refused("the CRI plugin is disabled"))?;
        let wanted = decide::wanted(args, &start.view, cri, self.daemon.major)
            .map_err(|message| refused(format!("{message}; {untouched}")))?;
        let parsed = Text::parse(&start.text).map_err(|place| self.unparsable(&place))?;
        let mut faults = Vec::new();
        for keys in table_keys(&parsed) {
            let mut text = Text::parse(&start.text).map_err(|place| self.unparsable(&place))?;
            self.edit(&mut text, keys, &start.view, &wanted)
                .map_err(|message| refused(format!("{message}; {untouched}")))?;
            let text = text.render();
            match self.daemon.dump_text(self.host, &text)? {
                Err(said) => faults.push(vec![format!("containerd does not load it: {said}")]),
                Ok(view) => match decide::faults(args, &start.view, &view, &wanted) {
                    none if none.is_empty() => return Ok((Stage { text, view }, wanted)),
                    some => faults.push(some),
                },
            }
        }
        let found = faults.into_iter().next().unwrap_or_default().join("; ");
        let mut message = format!("the edited file would not do: {found}; {untouched}");
        let others = self.daemon.other_files(self.host, &start.view)?;
        if !others.is_empty() {
            message.push_str(&format!(
                "; containerd also reads {}, which may say otherwise (1.x lets such a file replace all settings of the \
                 CRI plugin): move what it says into `{}`",
                others.join(", "),
                self.daemon.config
            ));
        }
        Err(refused(message))
    }

    fn edit(&self, text: &mut Text, keys: [&str; 3], view: &View, wanted: &Wanted) -> Result<(), String> {
        let args = self.args;
        let runtime = |name: &'_ str| -> Vec<String> {
            keys.iter().map(|key| (*key).to_owned()).chain(["runtimes".to_owned(), name.to_owned()]).collect()
        };
        let put = |text: &mut Text, name: &str, table: &crate::Map| {
            let path = runtime(name);
            text.put_table(&path.iter().map(String::as_str).collect::<Vec<_>>(), table)
        };
        if args.mode == Mode::Default {
            text.put(&keys, "default_runtime_name", &args.runtime_name.as_str().into())?;
        }
        // The built-in runtimes of 1.x are gone as soon as the file names any.
        if self.daemon.major < 2 {
            for (name, table) in view.cri.iter().flat_map(|cri| &cri.runtimes) {
                let path = runtime(name);
                let missing = text.get(&path.iter().map(String::as_str).collect::<Vec<_>>()).is_none();
                if *name != args.runtime_name && missing {
                    put(text, name, &decide::written_out(table))?;
                }
            }
        }
        put(text, &args.runtime_name, &wanted.table)
    }

    /// `systemd_cgroup` of old ends the CRI plugin of 1.x and is ignored by 2.x.
    fn dead_key(&self, view: &View) -> Option<String> {
        (self.daemon.major < 2 && view.cri_flag("systemd_cgroup")).then(|| {
            format!(
                "`systemd_cgroup = true` keeps the CRI plugin of containerd {} from loading: remove it, and set \
                 `SystemdCgroup = true` in the options of the runtime `runc`",
                self.daemon.version
            )
        })
    }

    /// Returns the plan that puts a proven candidate in place.
    fn put(&self, start: &Stage, candidate: &Stage, wanted: &Wanted) -> Result<Plan, Error> {
        let current = self.current.as_deref();
        let before = match self.view_now()? {
            Ok(view) => view,
            Err(_) => start.view.clone(),
        };
        let effective = !differences(&before, &candidate.view).is_empty();
        let original = match (&self.record, current) {
            (Some(record), Some(text)) if record.is_of(text) => record.original.clone(),
            (Some(record), Some(text)) => Some(self.stripped(text, record)?),
            (Some(_) | None, text) => text.map(str::to_owned),
        };
        let restart = self.restarts() && (effective || self.record.as_ref().is_some_and(|record| record.pending));
        let mut record = Record::new(original.as_deref(), &candidate.text, &self.args.runtime_name);
        record.inherits = Some(wanted.base.clone());
        let record = if effective { record } else { record.settled() };
        let mut plan = Plan { transaction: true, ..Plan::default() };
        plan.changes = self.swap(&candidate.text, &record, restart, true, &candidate.view);
        if restart {
            if self.args.require_binary {
                plan.changes.push(self.starting(&candidate.view));
            }
            plan.changes.push(record.settled().write(&self.daemon.config));
            plan.after_undo = self.returning(&before);
        }
        plan.diff = vec![tell::effective(&self.daemon, &before, &candidate.view)];
        plan.result.put("needs_restart", restart);
        self.told(plan, &candidate.view, Some(wanted))
    }

    /// Adds the result and the warnings.
    pub(super) fn told(&self, plan: Plan, view: &View, wanted: Option<&Wanted>) -> Result<Plan, Error> {
        let recorded = self.record.as_ref().and_then(|record| record.inherits.clone());
        let inherits = wanted.map(|wanted| wanted.base.clone()).or(recorded);
        let mut plan = plan
            .with("config", self.daemon.config.as_str())
            .with("containerd_version", self.daemon.version.as_str())
            .with("inherits", inherits)
            .with("restarted", restarted(self.host));
        if let Some(output) = started(self.host.applied()) {
            plan.result.put("container", output.stdout.trim());
        }
        if let Some(cri) = view.enabled_cri() {
            plan.result.put("default_runtime", cri.default.as_str());
            plan.result.put("runtimes", json!(cri.runtimes.keys().collect::<Vec<_>>()));
            plan.warnings = tell::warnings(self.host, self.args, &self.daemon, view, cri)?;
        }
        if self.current.as_deref().is_some_and(|text| text.contains("systemd_cgroup = true")) && self.daemon.major >= 2
        {
            plan.warnings.push("`systemd_cgroup = true` is ignored by this containerd: `SystemdCgroup` in the runtime's options counts".into());
        }
        if let Some(parsed) = self.current.as_deref().and_then(|text| Text::parse(text).ok()) {
            for keys in table_keys(&parsed).into_iter().skip(1) {
                plan.warnings.push(format!(
                    "`{}` is of version {} and holds `{}`, a name of another version: containerd {} may ignore it",
                    self.daemon.config,
                    parsed.version(),
                    keys.join("."),
                    self.daemon.version
                ));
            }
        }
        if self.record.as_ref().is_some_and(|record| record.pending) && plan.changes.is_empty() && !self.args.restart {
            plan.warnings.push("containerd has not been restarted since its configuration changed".into());
        }
        Ok(plan)
    }
}

/// Returns where the runtimes may be written: below the plugin name of the file's own version, and below that of
/// another version where the file has it, since some daemons heed that instead.
pub(super) fn table_keys(text: &Text) -> Vec<[&'static str; 3]> {
    let own = containerd_keys(text.version());
    let others = [2, 3].map(containerd_keys).into_iter().filter(|keys| *keys != own && text.get(keys).is_some());
    [own].into_iter().chain(others).collect()
}

/// Whether this task has restarted the daemon.
pub(super) fn restarted(host: &dyn crate::Host) -> bool {
    host.applied().iter().any(|done| match &done.change {
        crate::Change::Exec(exec) => exec.argv.get(1).is_some_and(|word| word == "restart"),
        _ => false,
    })
}
