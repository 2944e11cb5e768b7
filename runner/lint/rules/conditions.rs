//! Conditions that are templates, and lists that are not.

use crate::lint::{Check, Edit, Found, Rule, Task, Weight, text};
use crate::yaml::Node;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "no-jinja-when",
        also: &["jinja-when"],
        weight: Weight::Error,
        what: "a template in a condition",
        why: "a condition is an expression already: what the template gives is read as an expression once more",
        fix: "leave the braces out",
        mends: true,
        check: Check::Task(braces),
    },
    Rule {
        id: "literal-compare",
        also: &[],
        weight: Weight::Note,
        what: "a comparison with `true` or `false`",
        why: "the text `yes` or the number 1 of a command line or an inventory is not equal to `true`",
        fix: "`when: value | bool`, or `when: not value`",
        mends: false,
        check: Check::Task(compares),
    },
    Rule {
        id: "deprecated-bare-vars",
        also: &["no-bare-vars"],
        weight: Weight::Error,
        what: "a loop over a bare name",
        why: "the name is a text: the loop has one item, the name itself, or the task fails",
        fix: "`\"{{ name }}\"`",
        mends: true,
        check: Check::Task(bare),
    },
    Rule {
        id: "test-as-filter",
        also: &["deprecated-test"],
        weight: Weight::Error,
        what: "a test that is called as a filter: `result | failed`",
        why: "tests are no filters since Ansible 2.9: the task fails",
        fix: "`result is failed`",
        mends: true,
        check: Check::Task(filtered),
    },
];

const CONDITIONS: &[&str] = &["when", "changed_when", "failed_when", "until"];

/// Calls for every condition of a task, those of lists one by one.
fn each(task: &Task<'_>, mut look: impl FnMut(&Node, &str)) {
    for name in CONDITIONS {
        let Some((_, value)) = task.entry(name) else { continue };
        for node in value.items().unwrap_or(std::slice::from_ref(value)) {
            if let Some(text) = node.as_str() {
                look(node, text);
            }
        }
    }
}

/// Returns what replaces the first text of a node's line by another.
fn replaced(node: &Node, old: &str, new: &str) -> Vec<Edit> {
    let Some(line) = text::at(node.place) else { return Vec::new() };
    let quotes = line.starts_with(['"', '\'']);
    // Within quotes, what is written may be escaped: only what reads the same is replaced.
    match line.find(old) {
        Some(at) if !(quotes && old.contains(['\\', '\''])) => {
            vec![Edit::new(node.place.right(line[..at].chars().count()), old, new)]
        }
        Some(_) | None => Vec::new(),
    }
}

fn braces(task: &Task<'_>, found: &mut Found) {
    each(task, |node, text| {
        let Some(open) = text.find("{{").or_else(|| text.find("{%")) else { return };
        let trimmed = text.trim();
        let inner = trimmed
            .strip_prefix("{{")
            .and_then(|rest| rest.strip_suffix("}}"))
            .map(|inner| inner.trim_matches('-').trim());
        let lone = inner.filter(|inner| !inner.contains("{{") && !inner.contains("}}") && !inner.is_empty());
        let edits = lone.map(|inner| replaced(node, trimmed, inner)).unwrap_or_default();
        let what = &text[open..text.len().min(open + 2)];
        found.mend(node.place, 0, format!("`{what}` in a condition"), edits);
    });
}

fn compares(task: &Task<'_>, found: &mut Found) {
    each(task, |node, text| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let compared = words.windows(2).find(|pair| {
            let word = pair[1].trim_end_matches(')').to_ascii_lowercase();
            matches!(pair[0], "==" | "!=") && matches!(&*word, "true" | "false")
        });
        if let Some(pair) = compared {
            found.tell(node.place, 0, format!("a comparison with `{}`", pair[1].trim_end_matches(')')));
        }
    });
}

/// Loops over what a name holds; others take names of files and the like.
const OVER_VALUES: &[&str] = &[
    "loop",
    "with_items",
    "with_list",
    "with_dict",
    "with_nested",
    "with_flattened",
    "with_together",
    "with_subelements",
    "with_indexed_items",
    "with_random_choice",
];

fn bare(task: &Task<'_>, found: &mut Found) {
    for name in OVER_VALUES {
        let Some((_, node)) = task.entry(name) else { continue };
        let Some(text) = node.as_str().map(str::trim) else { continue };
        let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']'));
        if is_name {
            let edits = match text::is_quoted(node) {
                true => replaced(node, text, &format!("{{{{ {text} }}}}")),
                false => replaced(node, text, &format!("\"{{{{ {text} }}}}\"")),
            };
            found.mend(node.place, 0, format!("`{name}` over the bare name `{text}`"), edits);
        }
    }
}

/// Tests that were filters once.
const TESTS: &[&str] = &["failed", "succeeded", "success", "changed", "change", "skipped", "unreachable", "reachable"];

fn filtered(task: &Task<'_>, found: &mut Found) {
    each(task, |node, text| {
        let mut rest = text;
        let mut from = 0;
        while let Some(bar) = rest.find('|') {
            let after = &rest[bar + 1..];
            let name: String =
                after.trim_start().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            if TESTS.contains(&name.as_str()) {
                let end = from + bar + 1 + (after.len() - after.trim_start().len()) + name.len();
                let start = text[..from + bar].trim_end().len();
                let edits = replaced(node, &text[start..end], &format!(" is {name}"));
                found.mend(node.place, 0, format!("`| {name}` calls a test as a filter"), edits);
                return;
            }
            from += bar + 1;
            rest = after;
        }
    });
}
