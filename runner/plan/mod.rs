//! Finds, before any host is touched, every mistake that can be seen in what was read. Pure: it opens no connection.

mod list;
mod names;
mod tasks;

pub use list::{Listing, by_playbook, list};

use crate::inventory::Inventory;
use crate::playbook::{Item, Play};
use crate::source::{Diagnostic, Severity};

/// Returns the mistakes and warnings in plays.
pub fn check(plays: &[Play], inventory: &Inventory, options: &crate::execute::RunOptions) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for play in plays {
        check_hosts(play, inventory, &mut problems);
        names::check(play, options.error_on_missing_handler, &mut problems);
        for items in [&play.pre_tasks, &play.tasks, &play.post_tasks, &play.handlers] {
            tasks::check(items, &mut problems);
        }
        tasks::check_values(play, &mut problems);
    }
    if let Some(limit) = options.limit.as_deref() {
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
    }
    problems
}

/// A play's pattern that names nobody is no error, as in Ansible: the host may be added by an earlier play.
fn check_hosts(play: &Play, inventory: &Inventory, problems: &mut Vec<Diagnostic>) {
    let patterns = match &play.hosts.value {
        crate::value::Value::List(items) => items.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        one => one.to_string(),
    };
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
