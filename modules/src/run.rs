//! The loop around a module: plan, apply, plan again until nothing is wanted.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::apply::{Saved, apply};
use crate::host::Map;
use crate::host::Put as _;
use crate::{Change, Content, Decoded, Diff, Error, ErrorKind, FileKind, Host, Machine, Plan, Write};

/// How often a convergent module may want something in one task. Each round but the last applies changes.
const MOST_ROUNDS: usize = 12;
/// Above this a file is not diffed: nobody reads it, and it would travel.
const DIFF_LIMIT_BYTES: usize = 1 << 20;

/// How a task is to be executed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// Apply nothing: say what would change.
    pub check: bool,
    /// Return differences.
    pub diff: bool,
    /// Apply nothing: fail where something is wanted.
    pub look: bool,
}

/// Executes a module and returns the task's result under Ansible's keys: `changed`, `failed`, `msg`, `diff`,
/// `warnings` and the module's own.
pub fn run(module: &dyn Decoded, machine: &mut Machine<'_>, settings: Settings) -> Map {
    let mut saved = Vec::new();
    let mut diffs = Vec::new();
    let outcome = converge(module, machine, settings, &mut saved, &mut diffs);
    let mut result = match outcome {
        Ok(result) => result,
        Err(failure) => failure.into_result(machine, &saved),
    };
    if settings.diff && !diffs.is_empty() && result.get("failed") != Some(&Value::Bool(true)) {
        result.put("diff", json!(diffs));
    }
    result
}

struct Failure {
    error: Error,
    /// What to run once the files are put back; `None` leaves everything as it is.
    undo: Option<Vec<Change>>,
    changed: bool,
}

impl Failure {
    fn into_result(self, machine: &Machine<'_>, saved: &[Saved]) -> Map {
        let mut result = self.error.result.clone();
        let mut message = self.error.message.clone();
        let mut changed = self.changed;
        if let (Some(after), false) = (&self.undo, saved.is_empty()) {
            // What was not there goes first: on a full disk the others take its room. One that can't be put back keeps none
            // of the others from it.
            let (new, old): (Vec<&Saved>, Vec<&Saved>) = saved.iter().rev().partition(|file| file.was_absent());
            let put_back: Vec<_> = new.into_iter().chain(old).map(|file| file.restore(machine)).collect();
            let put_back = put_back.into_iter().collect::<Result<(), Error>>();
            let ran = put_back.and_then(|()| after.iter().try_for_each(|change| apply(machine, change).map(drop)));
            match ran {
                Ok(()) => {
                    changed = false;
                    message.push_str("; what this task had written was put back");
                }
                Err(error) => message.push_str(&format!("; and putting the old files back failed: {error}")),
            }
        }
        result.put("failed", true);
        result.put("changed", changed);
        result.put("msg", message);
        if self.error.kind == ErrorKind::Refused {
            result.put("refused", true);
        }
        result
    }
}

fn converge(
    module: &dyn Decoded,
    machine: &mut Machine<'_>,
    settings: Settings,
    saved: &mut Vec<Saved>,
    diffs: &mut Vec<Diff>,
) -> Result<Map, Failure> {
    let mut changed = false;
    let mut warnings = BTreeSet::new();
    let mut undo: Option<Vec<Change>> = None;
    let mut earlier = Map::new();
    let mut rounds = 0;
    let mut result = loop {
        let plan = module.plan(machine).map_err(|error| Failure { error, undo: undo.clone(), changed })?;
        let Plan { changes, result, warnings: said, diff, transaction, needed, after_undo } = plan;
        warnings.extend(said);
        diffs.extend(diff);
        let wants = !changes.is_empty();
        if wants && settings.look && !settings.check {
            let error =
                Error::new(ErrorKind::Failed, format!("it is to be planned only, and wants: {}", names(&changes)));
            return Err(Failure { error, undo, changed: false });
        }
        if settings.diff {
            diffs.extend(changes.iter().filter_map(|change| diff_of(machine, change)));
        }
        changed |= wants;
        if settings.check && !module.convergent() && wants {
            let mut result = result;
            if !needed {
                result.put("skipped", true);
                result.put("changed", false);
            }
            result.put("rc", 0);
            result.put("msg", "Command would have run if not in check mode");
            break result;
        }
        if settings.check || !wants {
            break result;
        }
        if rounds == MOST_ROUNDS {
            let error =
                Error::new(ErrorKind::Failed, format!("still not so after {rounds} tries: {}", names(&changes)));
            return Err(Failure { error, undo, changed });
        }
        if transaction {
            undo = Some(after_undo);
        }
        for change in &changes {
            let changed = !machine.applied.is_empty() || may_be_half_done(change);
            let failed = |error| Failure { error, undo: undo.clone(), changed };
            if let (true, Some(path)) = (undo.is_some(), file_of(machine, change))
                && saved.iter().all(|file| file.path() != path)
            {
                saved.push(Saved::new(path).map_err(failed)?);
            }
            let done = apply(machine, change).map_err(failed)?;
            machine.applied.push(done);
        }
        if !module.convergent() {
            break result;
        }
        earlier.extend(result);
        if rounds > 0 && repeats(&machine.applied, &changes) {
            let error =
                Error::new(ErrorKind::Failed, format!("applied, yet the host is still not so: {}", names(&changes)));
            return Err(Failure { error, undo, changed: true });
        }
        rounds += 1;
    };
    // What only an earlier plan could tell, such as how many lines it replaced.
    for (key, value) in earlier {
        result.entry(key).or_insert(value);
    }
    // First, as Ansible's modules have it: a result may be shown as the item of a loop.
    if !result.contains_key("changed") {
        result.shift_insert(0, "changed".to_owned(), changed.into());
    }
    if !settings.check {
        let done = std::mem::take(&mut machine.applied);
        let reported = module.report(machine, &done, &mut result);
        if let Some(backup) = done.iter().rev().find_map(|done| done.backup.as_deref()) {
            result.entry("backup_file").or_insert(backup.into());
        }
        machine.applied = done;
        reported.map_err(|error| Failure { error, undo, changed })?;
    }
    if !warnings.is_empty() {
        result.put("warnings", json!(warnings));
    }
    Ok(result)
}

/// Whether a change that fails may have altered something all the same; the others are made whole or not at all.
fn may_be_half_done(change: &Change) -> bool {
    match change {
        Change::Exec(_) | Change::Remove { .. } => true,
        Change::Write(write) => write.in_place,
        Change::Mkdir { .. }
        | Change::Chmod { .. }
        | Change::Chown { .. }
        | Change::Symlink { .. }
        | Change::Hardlink { .. }
        | Change::Rename { .. }
        | Change::Touch { .. }
        | Change::Kubernetes(_) => false,
    }
}

/// Returns the file that a change replaces or removes; trees and links are not put back.
fn file_of<'a>(machine: &Machine<'_>, change: &'a Change) -> Option<&'a str> {
    match change {
        Change::Write(write) => Some(&write.path),
        Change::Remove { path } => {
            let stat = machine.lstat(path).ok().flatten();
            stat.filter(|stat| stat.kind == FileKind::File).map(|_| path.as_str())
        }
        Change::Mkdir { .. }
        | Change::Chmod { .. }
        | Change::Chown { .. }
        | Change::Symlink { .. }
        | Change::Hardlink { .. }
        | Change::Rename { .. }
        | Change::Touch { .. }
        | Change::Exec(_)
        | Change::Kubernetes(_) => None,
    }
}

/// Whether the last round did exactly what the one before it had done: it changed nothing and never will.
fn repeats(applied: &[crate::Done], changes: &[Change]) -> bool {
    let count = changes.len();
    applied.len() >= 2 * count
        && applied[applied.len() - 2 * count..applied.len() - count].iter().map(|done| &done.change).eq(changes)
}

fn names(changes: &[Change]) -> String {
    let names: Vec<String> = changes.iter().map(name).collect();
    names.join(", ")
}

/// Returns a change in a few words.
fn name(change: &Change) -> String {
    match change {
        Change::Write(write) => format!("write `{}`", write.path),
        Change::Mkdir { path, .. } => format!("make directory `{path}`"),
        Change::Chmod { path, mode } => format!("set mode {mode:04o} of `{path}`"),
        Change::Chown { path, .. } => format!("set owner of `{path}`"),
        Change::Symlink { path, target } => format!("link `{path}` to `{target}`"),
        Change::Hardlink { path, target } => format!("hard-link `{path}` to `{target}`"),
        Change::Remove { path } => format!("remove `{path}`"),
        Change::Rename { path, to } => format!("rename `{path}` to `{to}`"),
        Change::Touch { path, .. } => format!("touch `{path}`"),
        Change::Exec(exec) => format!("run `{}`", exec.argv.join(" ")),
        Change::Kubernetes(request) => format!("{} {}", request.method, request.path),
    }
}

/// Returns the difference that a change makes, as Ansible's callbacks show it.
fn diff_of(machine: &Machine<'_>, change: &Change) -> Option<Diff> {
    let both = |path: &str, before: String, after: String| Diff {
        before_header: Some(path.to_owned()),
        after_header: Some(path.to_owned()),
        before: Some(before),
        after: Some(after),
        prepared: None,
    };
    match change {
        Change::Write(write) => diff_of_write(machine, write),
        Change::Chmod { path, mode } => {
            let old = machine.stat(path).ok()??.mode;
            Some(both(path, format!("mode: {old:04o}\n"), format!("mode: {mode:04o}\n")))
        }
        Change::Chown { path, uid, gid } => {
            let old = machine.lstat(path).ok()??;
            let (uid, gid) = (uid.unwrap_or(old.uid), gid.unwrap_or(old.gid));
            let text = |uid, gid| format!("owner: {uid}\ngroup: {gid}\n");
            Some(both(path, text(old.uid, old.gid), text(uid, gid)))
        }
        Change::Mkdir { path, .. } => Some(both(path, "state: absent\n".into(), "state: directory\n".into())),
        Change::Symlink { path, target } => Some(both(path, String::new(), format!("link to: {target}\n"))),
        Change::Hardlink { path, target } => Some(both(path, String::new(), format!("hard link to: {target}\n"))),
        Change::Remove { path } => Some(both(path, "state: present\n".into(), "state: absent\n".into())),
        Change::Rename { path, to } => Some(both(path, format!("{path}\n"), format!("{to}\n"))),
        Change::Exec(_) | Change::Kubernetes(_) | Change::Touch { .. } => None,
    }
}

fn diff_of_write(machine: &Machine<'_>, write: &Write) -> Option<Diff> {
    let said = |text: &str| Some(Diff { prepared: Some(format!("{}: {text}\n", write.path)), ..Diff::default() });
    if write.hidden {
        return said("changed, not shown because it holds secrets");
    }
    let before = machine.read(&write.path).ok()?.unwrap_or_default();
    let after = match &write.content {
        Content::Inline(bytes) => bytes.clone(),
        Content::Sent { size_bytes, .. } if *size_bytes as usize > DIFF_LIMIT_BYTES => {
            return said("changed, too large to show");
        }
        Content::File { path } if machine.stat(path).ok()??.size_bytes as usize > DIFF_LIMIT_BYTES => {
            return said("changed, too large to show");
        }
        elsewhere @ (Content::Sent { .. } | Content::File { .. }) => machine.content(elsewhere).ok()?,
    };
    if before.len().max(after.len()) > DIFF_LIMIT_BYTES {
        return said("changed, too large to show");
    }
    let (Ok(before), Ok(after)) = (String::from_utf8(before), String::from_utf8(after)) else {
        return said("changed, binary");
    };
    if before == after {
        return None;
    }
    Some(Diff {
        before_header: Some(write.path.clone()),
        after_header: Some(write.path.clone()),
        before: Some(before),
        after: Some(after),
        prepared: None,
    })
}
