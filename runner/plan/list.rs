//! `--list-hosts`, `--list-tasks`, `--list-tags`: what a run would do, in ansible-playbook's form.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::execute::{RunOptions, selected, tags_of};
use crate::inventory::Inventory;
use crate::playbook::{Item, Keyword, Play};
use crate::template::Templar;
use crate::value::Value;
use crate::vars::{Fixed, static_map};

/// What to list.
#[derive(Debug, Clone, Copy)]
pub struct Listing {
    pub hosts: bool,
    pub tasks: bool,
    pub tags: bool,
}

/// Groups plays by the playbook that they were read for. Imported plays stand with the playbook that imports them.
pub fn by_playbook<'a>(playbooks: &[PathBuf], plays: &'a [Play]) -> Vec<(PathBuf, Vec<&'a Play>)> {
    let mut groups: Vec<(PathBuf, Vec<&Play>)> = playbooks.iter().map(|path| (path.clone(), Vec::new())).collect();
    let mut current = 0;
    for play in plays {
        if let Some(at) = play.place.path().and_then(|path| playbooks.iter().position(|playbook| *playbook == path)) {
            current = at;
        }
        if let Some((_, plays)) = groups.get_mut(current) {
            plays.push(play);
        }
    }
    groups
}

/// Returns the listing of one playbook.
///
/// # Errors
/// When a play's pattern is malformed.
pub fn list(
    path: &Path,
    plays: &[&Play],
    inventory: &Inventory,
    options: &RunOptions,
    listing: Listing,
) -> Result<String, String> {
    let mut text = format!("\nplaybook: {}\n", path.display());
    for (nth, play) in plays.iter().enumerate() {
        let known = static_map(&play.parent, &options.extra_vars);
        let templar = Templar::new(Arc::new(Fixed(Arc::new(known))), Arc::default());
        let shown = |value: &Value| templar.value(value).unwrap_or_else(|_| value.clone());
        let patterns = match shown(&play.hosts.value) {
            Value::List(items) => items.iter().map(Value::to_string).collect::<Vec<_>>(),
            one => vec![one.to_string()],
        };
        let named = play.setting(Keyword::Name).map(|name| shown(&name.value)).filter(Value::truthy);
        let name = named.map_or_else(|| patterns.join(","), |name| name.to_string());
        let own_tags = play.setting(Keyword::Tags).map(|tags| tags_text(&shown(&tags.value))).unwrap_or_default();
        text.push_str(&format!("\n  play #{} ({}): {name}\tTAGS: [{own_tags}]\n", nth + 1, patterns.join(",")));
        if listing.hosts {
            let hosts = inventory.select(&patterns.join("\n"), options.limit.as_deref())?;
            let quoted: Vec<String> = patterns.iter().map(|pattern| format!("'{pattern}'")).collect();
            text.push_str(&format!("    pattern: [{}]\n    hosts ({}):\n", quoted.join(", "), hosts.len()));
            for host in hosts {
                text.push_str(&format!("      {host}\n"));
            }
        }
        let mut tags: BTreeSet<String> = own_tags.split(',').filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
        if listing.tasks {
            text.push_str("    tasks:\n");
        }
        for items in [&play.pre_tasks, &play.tasks, &play.post_tasks] {
            tasks(items, options, listing, &mut tags, &mut text);
        }
        if listing.tags {
            let tags: Vec<String> = tags.into_iter().collect();
            text.push_str(&format!("      TASK TAGS: [{}]\n", tags.join(", ")));
        }
    }
    Ok(text)
}

fn tags_text(value: &Value) -> String {
    let texts = match value {
        Value::List(items) => items.iter().map(Value::to_string).collect::<Vec<_>>(),
        one => vec![one.to_string()],
    };
    texts.iter().flat_map(|text| text.split(',')).map(str::trim).collect::<Vec<_>>().join(",")
}

/// Adds the tasks that a run would take, as ansible-playbook lists them: what a block does about a failure is left out.
fn tasks(items: &[Item], options: &RunOptions, listing: Listing, all: &mut BTreeSet<String>, text: &mut String) {
    // All tags are listed, those of tasks that only run when asked for too.
    let every = listing.tags && options.tags.is_empty() && options.skip_tags.is_empty();
    for item in items {
        let task = match item {
            Item::Task(task) => task,
            Item::Block(block) => {
                tasks(&block.tasks, options, listing, all, text);
                continue;
            }
        };
        if !every && !selected(task, options) {
            continue;
        }
        let tags = tags_of(task, &options.extra_vars);
        all.extend(tags.iter().cloned());
        if listing.tasks {
            let role = task.role().map(|role| format!("{} : ", role.name)).unwrap_or_default();
            let shown = match task.name() {
                Some(name) if name.value.truthy() => format!("{role}{}", name.value),
                Some(_) | None => task.action.written.clone(),
            };
            let tags: Vec<String> = tags.into_iter().collect();
            text.push_str(&format!("      {shown}\tTAGS: [{}]\n", tags.join(", ")));
        }
    }
}
