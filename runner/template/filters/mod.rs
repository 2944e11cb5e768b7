//! Filters, by what they work on.

pub(super) mod choose;
pub(super) mod collections;
pub(super) mod crypt;
mod data;
mod encodings;
pub(super) mod hashing;
mod html;
mod lists;
mod maps;
mod math;
pub(super) mod paths;
pub(super) mod random;
mod regexes;
pub(super) mod strings;
pub(super) mod time;
mod vaults;
mod yaml;

use super::call::{Filter, find as find_callable};

const TABLES: &[&[Filter]] = &[
    choose::FILTERS,
    data::FILTERS,
    hashing::FILTERS,
    html::FILTERS,
    lists::FILTERS,
    maps::FILTERS,
    math::FILTERS,
    paths::FILTERS,
    regexes::FILTERS,
    strings::FILTERS,
    time::FILTERS,
    vaults::FILTERS,
];

pub(super) fn find(name: &str) -> Option<&'static Filter> {
    find_callable(TABLES, name).or_else(|| collections::find(name))
}

pub(super) fn names() -> Vec<&'static str> {
    let all = TABLES.iter().chain(collections::TABLES).copied().flatten().map(|filter| filter.name);
    // Nobody writes it.
    all.filter(|name| *name != crate::vault::LATE).collect()
}
