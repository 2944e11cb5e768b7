//! `state: absent`: back to the file as it was.

use serde_json::Value;

use crate::containerd_runtime::decide::binary_of;
use crate::containerd_runtime::edit::Text;
use crate::containerd_runtime::propose::{restarted, table_keys};
use crate::containerd_runtime::record::{self, Record};
use crate::containerd_runtime::view::{View, differences, is_about};
use crate::containerd_runtime::{Site, refused, tell};
use crate::{Change, Error, Plan};

impl Site<'_> {
    pub(super) fn absent(&self) -> Result<Plan, Error> {
        let record_path = record::path_of(&self.daemon.config);
        let undone = |change: &Change| matches!(change, Change::Remove { path } if *path == record_path);
        if self.host.applied().iter().any(|done| undone(&done.change)) {
            return Ok(self.ended_blind());
        }
        let Some(record) = &self.record else {
            if let Ok(view) = self.view_now()?
                && let Some(plan) = self.dropped_out(&view)?
            {
                return Ok(plan);
            }
            return self.never_present();
        };
        let Some(current) = &self.current else {
            let plan = Plan::from(vec![Change::Remove { path: record::path_of(&self.daemon.config) }]);
            return Ok(plan.with("config", self.daemon.config.as_str()));
        };
        self.refuse_generated(current)?;
        let now = self.view_now()?;
        let untouched = record.is_of(current);
        let target =
            if untouched { record.original.clone().unwrap_or_default() } else { self.stripped(current, record)? };
        let after = self.daemon.dump_text(self.host, &target)?.map_err(|said| {
            refused(format!("containerd {} does not load the file as it was: {said}", self.daemon.version))
        })?;
        if let (Ok(now), false) = (&now, untouched) {
            self.only_ours(now, &after, record)?;
        }
        // A file that named a default runtime which was not there is put back as it was, and no pod starts again.
        let dead = after.enabled_cri().filter(|cri| untouched && !cri.runtimes.contains_key(&cri.default));
        let cri = after.enabled_cri().filter(|_| dead.is_none());
        let effective = now.as_ref().is_ok_and(|now| !differences(now, &after).is_empty()) || now.is_err();
        if effective && cri.is_some() {
            self.prove(&target, &after, None)?;
        }
        let restart = self.restarts() && (effective || record.pending);
        let undone = Record::new(record.original.as_deref(), &target, &record.runtime);
        let mut plan = Plan { transaction: true, ..Plan::default() };
        plan.changes = self.swap(&target, &undone, restart, cri.is_some(), &after);
        if untouched && record.original.is_none() {
            plan.changes.push(Change::Remove { path: self.daemon.config.clone() });
        }
        plan.changes.push(Change::Remove { path: record::path_of(&self.daemon.config) });
        if restart && let Ok(now) = &now {
            plan.after_undo = self.returning(now);
        }
        if let Ok(now) = &now {
            plan.diff = vec![tell::effective(&self.daemon, now, &after)];
        }
        if let Some(dead) = dead {
            plan.warnings.push(format!(
                "`{}` is as it was before: its default runtime `{}` does not exist, so the CRI plugin does not load",
                self.daemon.config, dead.default
            ));
        }
        Ok(self.ended(plan, &after))
    }

    /// No record: there is nothing to undo, unless another hand added the runtime.
    fn never_present(&self) -> Result<Plan, Error> {
        let Ok(view) = self.view_now()? else { return Ok(self.ended_blind()) };
        let other = view.enabled_cri().and_then(|cri| cri.runtimes.get(&self.args.runtime_name));
        let mut plan = Plan::default();
        if other.is_some_and(|table| binary_of(table) == self.args.binary) {
            plan.warnings.push(format!(
                "the runtime `{}` is in containerd's configuration, but not by this module (there is no `{}`): it stays",
                self.args.runtime_name,
                record::path_of(&self.daemon.config)
            ));
        }
        Ok(self.ended(plan, &view))
    }

    /// Takes the runtime out of a file that was edited since.
    pub(super) fn stripped(&self, current: &str, record: &Record) -> Result<String, Error> {
        let unparsable = |place: String| refused(format!("`{}` is no valid TOML: {place}", self.daemon.config));
        let mut text = Text::parse(current).map_err(unparsable)?;
        let original = Text::parse(record.original.as_deref().unwrap_or_default()).map_err(unparsable)?;
        for keys in table_keys(&text) {
            let runtimes: Vec<&str> = keys.iter().copied().chain(["runtimes"]).collect();
            text.remove(&runtimes, &record.runtime);
            let default = [keys[0], keys[1], keys[2], "default_runtime_name"];
            if text.get(&default).and_then(|item| item.as_str()) == Some(record.runtime.as_str()) {
                match original.get(&default).and_then(|item| item.as_str()) {
                    Some(name) => text.put(&keys, "default_runtime_name", &Value::from(name)).map_err(refused)?,
                    None => text.remove(&keys, "default_runtime_name"),
                }
            }
        }
        Ok(text.render())
    }

    fn only_ours(&self, now: &View, after: &View, record: &Record) -> Result<(), Error> {
        let mut others = differences(now, after);
        others.retain(|difference| !is_about(difference, &record.runtime));
        let Some(first) = others.first() else { return Ok(()) };
        Err(refused(format!(
            "`{}` was edited since, and taking the runtime `{}` out would change `{}` too; it is untouched: remove the \
             runtime by hand",
            self.daemon.config, record.runtime, first.path
        )))
    }

    fn ended(&self, plan: Plan, view: &View) -> Plan {
        let default = view.enabled_cri().map(|cri| cri.default.clone());
        self.ended_with(plan).with("default_runtime", default)
    }

    fn ended_blind(&self) -> Plan {
        self.ended_with(Plan::default())
    }

    fn ended_with(&self, plan: Plan) -> Plan {
        plan.with("config", self.daemon.config.as_str())
            .with("containerd_version", self.daemon.version.as_str())
            .with("restarted", restarted(self.host))
    }
}
