//! Which tasks a run takes: `--tags` and `--skip-tags`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::RunOptions;
use crate::playbook::Task;
use crate::template::Templar;
use crate::value::{Map, Value};

/// Returns a task's tags, its parents' included. No host is known to their templates: what encloses the task is, and
/// the command line. One that fails counts as written.
pub fn tags_of(task: &Task, extra_vars: &Map) -> BTreeSet<String> {
    let mut tags = BTreeSet::new();
    for value in task.tags() {
        let rendered = if value.holds_template() {
            let known = crate::vars::static_map(&task.parent, extra_vars);
            let templar = Templar::new(Arc::new(crate::vars::Fixed(Arc::new(known))), Arc::default());
            templar.value(value).unwrap_or_else(|_| value.clone())
        } else {
            value.clone()
        };
        match &rendered {
            Value::List(items) => items.iter().for_each(|item| add(&mut tags, item)),
            one => add(&mut tags, one),
        }
    }
    tags
}

fn add(tags: &mut BTreeSet<String>, value: &Value) {
    let text = value.to_string();
    tags.extend(text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned));
}

/// Returns whether a run with these tags takes the task. Source: `Taggable.evaluate_tags` as documented.
pub fn selected(task: &Task, options: &RunOptions) -> bool {
    let tags = tags_of(task, &options.extra_vars);
    if options.tags.is_empty() && options.skip_tags.is_empty() {
        return !tags.contains("never");
    }
    chosen(&tags, &options.tags, &options.skip_tags)
}

fn chosen(tags: &BTreeSet<String>, only: &[String], skip: &[String]) -> bool {
    let asked = |list: &[String], tag: &str| list.iter().any(|asked| asked == tag);
    let any = |list: &[String]| tags.iter().any(|tag| asked(list, tag));
    let (always, never, tagged) = (tags.contains("always"), tags.contains("never"), !tags.is_empty());
    let taken = if only.is_empty() {
        !never
    } else {
        any(only)
            || always
            || asked(only, "all") && !never
            || asked(only, "tagged") && tagged && !never
            || asked(only, "untagged") && !tagged
    };
    let skipped = any(skip)
        || asked(skip, "all") && (!always || asked(skip, "always"))
        || asked(skip, "tagged") && tagged
        || asked(skip, "untagged") && !tagged;
    taken && !skipped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(tags: &[&str], only: &[&str], skip: &[&str]) -> bool {
        let owned = |list: &[&str]| list.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
        chosen(&owned(tags).into_iter().collect(), &owned(only), &owned(skip))
    }

    #[test]
    fn takes_what_ansible_takes() {
        assert!(takes(&["a"], &["a", "b"], &[]));
        assert!(!takes(&["a"], &["b"], &[]));
        assert!(takes(&["always"], &["b"], &[]));
        assert!(!takes(&["always"], &["b"], &["always"]));
        assert!(!takes(&["never"], &[], &[]));
        assert!(!takes(&["never", "a"], &["all"], &[]));
        assert!(takes(&["never", "a"], &["a"], &[]));
        assert!(takes(&[], &["untagged"], &[]));
        assert!(!takes(&["a"], &["untagged"], &[]));
        assert!(takes(&["a"], &["tagged"], &[]));
        assert!(!takes(&[], &["tagged"], &[]));
        assert!(!takes(&["a"], &[], &["a"]));
        assert!(takes(&["always"], &[], &["all"]));
    }
}
