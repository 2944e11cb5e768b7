//! Finds, before any host is touched, every mistake that can be seen in what was read. Pure: it opens no connection.

mod extras;
mod files;
mod included;
mod list;
mod names;
mod tasks;
pub mod whole;
mod writes;

pub use files::check as check_files;
pub use list::{Listing, by_playbook, list};

use std::collections::HashSet;
use std::sync::Arc;

use crate::inventory::{Inventory, joined};
use crate::playbook::{Item, Loader, Play};
use crate::source::{Diagnostic, Severity};

/// Returns the mistakes and warnings in plays that are there whatever is asked of the run.
pub fn check_plays(plays: &[Play], inventory: &Inventory, loader: &Loader, strict: bool) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    let mut seen = HashSet::new();
    for play in plays {
        check_hosts(play, inventory, &mut problems);
        names::check(play, loader, strict, &mut problems);
        seen.insert(Arc::as_ptr(&play.parent));
        for items in [&play.pre_tasks, &play.tasks, &play.post_tasks, &play.handlers] {
            tasks::check(items, &mut seen, &mut problems);
        }
        tasks::check_values(play, &mut problems);
    }
    problems
}

/// Returns the mistakes and warnings in plays; what may never matter in a run is a mistake if `strict`.
pub fn check(
    plays: &[Play],
    inventory: &Inventory,
    options: &crate::execute::RunOptions,
    loader: &Loader,
    strict: bool,
) -> Vec<Diagnostic> {
    let mut problems = check_plays(plays, inventory, loader, strict);
    problems.extend(start(plays, options));
    extras::check(plays, &options.extra_vars, &mut problems);
    if let Some(limit) = options.limit.as_deref() {
        if let Err(message) = inventory.select(limit, None) {
            let message = format!("`--limit {limit}`: {message}");
            problems.push(Diagnostic::error(crate::source::Place::default(), message));
        }
        for (name, meant) in inventory.strangers(limit) {
            let mut problem = Diagnostic::error(
                crate::source::Place::default(),
                format!("`--limit {limit}`: no host or group `{name}` in the inventory"),
            );
            if let Some(meant) = meant {
                problem = problem.help(format!("did you mean `{meant}`?"));
            }
            problems.push(problem);
        }
        // As in Ansible it is a mistake to leave nobody, however that comes about.
        let nobody = |hosts: Result<Vec<_>, String>| hosts.is_ok_and(|hosts| hosts.is_empty());
        if problems.is_empty() && nobody(inventory.select("all", Some(limit))) && nobody(inventory.select(limit, None))
        {
            let message = format!("`--limit {limit}` leaves no host of the inventory");
            problems.push(Diagnostic::error(crate::source::Place::default(), message));
        }
    }
    problems
}

/// Returns the mistake of a `--start-at-task` that no task is named.
fn start(plays: &[Play], options: &crate::execute::RunOptions) -> Option<Diagnostic> {
    let wanted = options.start_at_task.as_deref()?;
    let mut names: Vec<String> = Vec::new();
    let mut found = false;
    for play in plays {
        for items in [&play.pre_tasks, &play.tasks, &play.post_tasks] {
            visit(items, &mut |task| {
                found |= task.is_called(wanted);
                names.extend(task.name().map(|name| name.value.to_string()));
            });
        }
    }
    if found {
        return None;
    }
    let message = format!("`--start-at-task {wanted}`: no task of that name");
    let problem = Diagnostic::error(crate::source::Place::default(), message);
    Some(match crate::source::nearest(wanted, names.iter().map(String::as_str)) {
        Some(meant) => problem.help(format!("did you mean `{meant}`?")),
        None => {
            problem.help("tasks that are included during the run can't be started at; `--list-tasks` shows the others")
        }
    })
}

/// A play's pattern that names nobody is no error, as in Ansible: the host may be added by an earlier play.
fn check_hosts(play: &Play, inventory: &Inventory, problems: &mut Vec<Diagnostic>) {
    let patterns = joined(&play.hosts.value);
    if crate::value::may_be_template(&patterns) {
        return;
    }
    if let Err(message) = inventory.select(&patterns, None) {
        problems.push(Diagnostic::error(play.hosts.place, message));
    }
    // A name that nobody has may come during the run; one that is nearly somebody's is worth a word now.
    for (name, meant) in inventory.strangers(&patterns) {
        if let Some(meant) = meant {
            let message = format!("no host or group `{name}` in the inventory");
            let warning = Diagnostic::warning(play.hosts.place, message).help(format!("did you mean `{meant}`?"));
            problems.push(warning);
        }
    }
}

/// Returns warnings for the plays' patterns that name nobody now, as a run gives them when it comes to the play.
pub fn strangers(plays: &[Play], inventory: &Inventory, options: &crate::execute::RunOptions) -> Vec<String> {
    let warned = options.strangers == crate::execute::Strangers::Warn;
    let mut warnings: Vec<String> = Vec::new();
    for pattern in plays.iter().filter(|_| warned).map(|play| joined(&play.hosts.value)) {
        if crate::value::may_be_template(&pattern) {
            continue;
        }
        for (name, _) in inventory.strangers(&pattern) {
            let warning = format!("Could not match supplied host pattern, ignoring: {name}");
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    warnings
}

/// Puts problems in the order in which a person reads files, each once.
pub fn sort(problems: &mut Vec<Diagnostic>) {
    problems.sort_by_key(|problem| (problem.severity == Severity::Error, problem.place));
    problems.dedup();
}

/// Returns how many tasks a play has.
pub fn count_tasks(play: &Play) -> usize {
    fn count(items: &[Item]) -> usize {
        items
            .iter()
            .map(|item| match item {
                Item::Task(_) => 1,
                Item::Block(block) => count(&block.tasks) + count(&block.rescue) + count(&block.always),
            })
            .sum()
    }
    [&play.pre_tasks, &play.tasks, &play.post_tasks, &play.handlers].into_iter().map(|items| count(items)).sum()
}

/// Returns whether a task below items, those of blocks too, is of a kind.
pub fn any_task(items: &[Item], is: &mut dyn FnMut(&crate::playbook::Task) -> bool) -> bool {
    let mut any = false;
    visit(items, &mut |task| any |= is(task));
    any
}

/// Visits every task below items, those of blocks too.
fn visit<'a>(items: &'a [Item], see: &mut dyn FnMut(&'a std::sync::Arc<crate::playbook::Task>)) {
    for item in items {
        match item {
            Item::Task(task) => see(task),
            Item::Block(block) => {
                for section in [&block.tasks, &block.rescue, &block.always] {
                    visit(section, see);
                }
            }
        }
    }
}
