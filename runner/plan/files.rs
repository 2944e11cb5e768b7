//! Files that tasks name as they are, before any host is touched: those that are not there, and those that are there
//! and written wrong. A task that may be skipped, or whose file an earlier one may bring, is not judged.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::included::{DEPTH_LIMIT, Included, parent_of_included};
use super::writes::{Writes, plays_here};
use crate::action::candidates;
use crate::execute::{RunOptions, selected, truth};
use crate::inventory::{Inventory, joined};
use crate::playbook::{Item, Keyword, Loader, NO_FILE, Play, Task, role};
use crate::source::{Diagnostic, Place};
use crate::template;
use crate::value::{Map, Str, Value, may_be_template};

/// Arguments of `template` that say how its file is written.
const DELIMITERS: &[&str] =
    &["block_start_string", "block_end_string", "variable_start_string", "variable_end_string", "comment_start_string"];

/// Returns the mistakes in files that plays name.
pub fn check(plays: &[Play], inventory: &Inventory, options: &RunOptions, loader: &mut Loader) -> Vec<Diagnostic> {
    let mut writes = Writes::default();
    let mut problems = Vec::new();
    for play in plays {
        let pattern = joined(&play.hosts.value);
        let known = !may_be_template(&pattern);
        let runs = known && inventory.select(&pattern, options.limit.as_deref()).is_ok_and(|hosts| !hosts.is_empty());
        let mut walk = Walk {
            play,
            options,
            loader,
            writes: &mut writes,
            problems: &mut problems,
            here: plays_here(play, inventory, options),
            sure: runs && options.start_at_task.is_none(),
            depth: 0,
            seen: HashSet::new(),
            flushed: false,
        };
        walk.vars_files();
        walk.items(&play.pre_tasks);
        if !play.pre_tasks.is_empty() {
            walk.flush();
        }
        walk.items(&play.tasks);
        walk.flush();
        walk.items(&play.post_tasks);
    }
    // What was read here is brought anew when a host comes to it.
    loader.take_brought();
    problems
}

struct Walk<'a> {
    play: &'a Play,
    options: &'a RunOptions,
    loader: &'a mut Loader,
    writes: &'a mut Writes,
    problems: &'a mut Vec<Diagnostic>,
    /// Whether the play's tasks may run on this machine.
    here: bool,
    /// Whether a host surely comes to what is walked now, unless something fails.
    sure: bool,
    depth: usize,
    /// Files and roles that were followed.
    seen: HashSet<String>,
    /// Whether the handlers may have run.
    flushed: bool,
}

/// A file that a task names.
struct Named {
    name: String,
    /// The folder for such files.
    kind: &'static str,
    place: Place,
}

impl Walk<'_> {
    fn vars_files(&mut self) {
        let mut parents = std::iter::successors(Some(&self.play.parent), |parent| parent.parent.as_ref());
        let conditional = parents.any(|parent| parent.keywords.get(Keyword::When).is_some());
        for entry in &self.play.vars_files {
            let Value::Str(text) = entry else { continue };
            if !self.sure || conditional || may_be_template(text.as_str()) {
                continue;
            }
            let given = crate::execute::home_expanded(PathBuf::from(text.as_str()));
            let folder = self.play.folder.strip_prefix(".").unwrap_or(&self.play.folder);
            let paths = [folder.join("vars").join(&given), folder.join(&given)];
            match paths.iter().find(|path| path.is_file()) {
                Some(path) => {
                    self.loader.play_variables(path, text.place);
                    self.take_problems();
                }
                None => self.missing("file of variables", text.as_str(), text.place, &paths),
            }
        }
    }

    fn take_problems(&mut self) {
        self.problems.extend(self.loader.take_problems());
    }

    fn missing(&mut self, what: &str, name: &str, place: Place, paths: &[PathBuf]) {
        if paths.iter().any(|path| self.writes.may_bring(path)) {
            return;
        }
        let looked: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
        let problem = Diagnostic::error(place, format!("no {what} `{name}`")).width(name.chars().count());
        self.problems.push(problem.help(format!("looked for {}", looked.join(", "))));
    }

    fn items(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Task(task) => self.task(task),
                Item::Block(block) => {
                    let sure = self.sure;
                    // What fails in a block with a rescue may be meant to.
                    self.sure &= block.rescue.is_empty();
                    self.items(&block.tasks);
                    self.sure = false;
                    self.items(&block.rescue);
                    self.sure = sure && block.rescue.is_empty();
                    self.items(&block.always);
                    self.sure = sure;
                }
            }
        }
    }

    fn task(&mut self, task: &Arc<Task>) {
        let sure = self.sure && is_sure(task, self.options);
        let name = &*task.action.name;
        if crate::action::includes(name) {
            self.include(task, sure);
        } else if sure {
            for named in named(task) {
                self.file(task, &named);
            }
        }
        self.writes.add(task, self.play, self.here);
        // After these a host may be gone from the play.
        let word = task.action.args.get("_raw_params").map(ToString::to_string).unwrap_or_default();
        if name == "meta" && word.trim() == "flush_handlers" {
            self.flush();
        }
        self.sure &= !(name == "meta" && word.trim().starts_with("end_") || name == "fail" && sure);
    }

    /// Comes to where handlers run: what they may bring may be there from now on.
    fn flush(&mut self) {
        if !std::mem::replace(&mut self.flushed, true) {
            let sure = std::mem::replace(&mut self.sure, false);
            self.items(&self.play.handlers);
            self.sure = sure;
        }
    }

    fn file(&mut self, task: &Task, named: &Named) {
        let paths = candidates(task, &self.play.folder, &named.name, named.kind);
        let Some(path) = paths.iter().find(|path| path.exists()) else {
            return self.missing("file", &named.name, named.place, &paths);
        };
        if self.writes.may_bring(path) {
            return;
        }
        match &*task.action.name {
            "template" | "script" | "unarchive" if path.is_dir() => {
                let message = format!("`{}` is a folder, and `{}` takes a file", path.display(), task.action.written);
                self.problems.push(Diagnostic::error(named.place, message).width(named.name.chars().count()));
            }
            "include_vars" if path.is_file() => {
                self.loader.variables(path, named.place);
                self.take_problems();
            }
            "template" if !DELIMITERS.iter().any(|key| task.action.args.contains_key(key)) => {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                if let Err(error) = template::syntax_of_file(&text, path) {
                    self.problems.push(error.diagnostic());
                }
            }
            _ => {}
        }
    }

    /// Follows an include that a host surely comes to; of any other it is not known what it may run.
    fn include(&mut self, task: &Arc<Task>, sure: bool) {
        let known = sure && self.depth < DEPTH_LIMIT;
        let included = if known { Included::of(task, self.play) } else { Included::Unknown };
        let parent = parent_of_included(task);
        let items = match included {
            Included::Unknown => return self.writes.anything(),
            Included::Nothing => return,
            Included::Absent(name, place) => {
                let beside = task.file.parent().unwrap_or(Path::new("")).join(&name);
                return self.missing("file of tasks", &name, place, &[beside]);
            }
            Included::Tasks(path) if self.writes.may_bring(&path) => return self.writes.anything(),
            Included::Tasks(path) => {
                if !self.seen.insert(path.display().to_string()) {
                    return;
                }
                // Under its whole path, as a run that comes to it names it.
                let path = std::path::absolute(&path).unwrap_or(path);
                self.loader.tasks(&path, &parent, task.is_handler)
            }
            Included::Role(used) if self.writes.may_bring(&self.play.folder.join("roles").join(&used.name)) => {
                return self.writes.anything();
            }
            Included::Role(used) => {
                if !self.seen.insert(format!("role {used:?}")) {
                    return;
                }
                self.loader.role(&used, &parent, &self.play.folder, &role::line_of(task.role())).items
            }
        };
        // An import within it that is not there fails the host that comes to it, as what it includes itself does.
        let told = self.loader.take_problems().into_iter();
        self.problems.extend(told.filter(|problem| !problem.message.starts_with(NO_FILE)));
        super::tasks::check(&items, &mut HashSet::new(), self.problems);
        self.depth += 1;
        // What is applied to the included tasks may skip them.
        let before = self.sure;
        self.sure &= !task.action.args.contains_key("apply");
        let began = self.sure;
        self.items(&items);
        // A host that is gone within it does not come back.
        self.sure = before && (self.sure || !began);
        self.depth -= 1;
    }
}

/// Returns whether a host that comes to a task surely does it, and fails where it can't.
fn is_sure(task: &Task, options: &RunOptions) -> bool {
    const LENIENT: &[Keyword] =
        &[Keyword::IgnoreErrors, Keyword::FailedWhen, Keyword::Until, Keyword::Retries, Keyword::ModuleDefaults];
    !task.is_handler
        && task.loop_.is_none()
        && task.conditions().is_empty()
        && LENIENT.iter().all(|keyword| task.inherited(*keyword).is_none())
        && !task.action.args.contains_key("_variable_params")
        && selected(task, options)
}

/// Returns the files of this machine that a task names as they are.
fn named(task: &Task) -> Vec<Named> {
    let args = &task.action.args;
    let remote = |usual: bool| match args.get("remote_src") {
        None => usual,
        Some(value) => value.holds_template() || truth(value),
    };
    let one = |key: &'static str, kind: &'static str| literal(args, key).map(|text| named_as(task, key, text, kind));
    let found: Vec<Option<Named>> = match &*task.action.name {
        "copy" if !remote(false) && !args.contains_key("content") => vec![one("src", "files")],
        "unarchive" if !remote(false) => vec![one("src", "files").filter(|file| !file.name.contains("://"))],
        "assemble" if !remote(true) => vec![one("src", "files")],
        "template" => vec![one("src", "templates")],
        "include_vars" => vec![one("file", "vars"), one("_raw_params", "vars"), one("dir", "vars")],
        "k8s_apply" => vec![one("src", "files"), one("template", "templates")],
        "script" => vec![script(task)],
        _ => Vec::new(),
    };
    found.into_iter().flatten().collect()
}

fn literal<'a>(args: &'a Map, key: &str) -> Option<&'a Str> {
    match args.get(key) {
        Some(Value::Str(text)) if !may_be_template(text.as_str()) && !text.as_str().is_empty() => Some(text),
        Some(_) | None => None,
    }
}

fn named_as(task: &Task, key: &str, text: &Str, kind: &'static str) -> Named {
    Named { name: text.as_str().to_owned(), kind, place: super::tasks::value_place(task, key) }
}

/// The first word of a script's line is its file.
fn script(task: &Task) -> Option<Named> {
    let (key, line) = ["_raw_params", "cmd"].iter().find_map(|key| Some((*key, task.action.args.get(key)?)))?;
    let name = shell_words::split(&line.to_string()).ok()?.into_iter().next()?;
    let known = !may_be_template(&name);
    known.then(|| Named { name, kind: "files", place: super::tasks::value_place(task, key) })
}
