//! The rules, a file a subject.

mod commands;
mod conditions;
mod deprecated;
mod failures;
mod gpu;
mod images;
mod modes;
mod names;
mod paths;
mod secrets;
mod shell;
mod words;

use super::{Check, Rule, Weight};

const TABLES: &[&[Rule]] = &[
    READING,
    commands::RULES,
    conditions::RULES,
    deprecated::RULES,
    failures::RULES,
    gpu::RULES,
    images::RULES,
    modes::RULES,
    names::RULES,
    paths::RULES,
    secrets::RULES,
    shell::RULES,
    words::RULES,
];

/// What is found while a file is read.
const READING: &[Rule] = &[
    Rule {
        id: "syntax-check",
        also: &["load-failure", "parser-error"],
        weight: Weight::Error,
        what: "a file that can't be read, or is not YAML",
        why: "nothing else in it can be looked at",
        fix: "mend the place that is shown; often it is a missing quote or a tab",
        mends: false,
        check: Check::Reading,
    },
    Rule {
        id: "duplicate-key",
        also: &["yaml", "key-duplicates"],
        weight: Weight::Error,
        what: "a key that is given twice in one mapping",
        why: "the last one counts, and the first one is lost without a word",
        fix: "take one of them away",
        mends: false,
        check: Check::Reading,
    },
];

pub(super) const SYNTAX: &Rule = &READING[0];
pub(super) const DUPLICATE: &Rule = &READING[1];

/// Returns every rule.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    TABLES.iter().copied().flatten()
}
