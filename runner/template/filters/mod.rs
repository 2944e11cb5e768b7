//! Filters, by what they work on.

pub(super) mod choose;
mod data;
mod lists;
mod maps;
mod math;
pub(super) mod strings;
pub(super) mod time;

use super::call::{Filter, find as find_callable};

const TABLES: &[&[Filter]] =
    &[choose::FILTERS, data::FILTERS, lists::FILTERS, maps::FILTERS, math::FILTERS, strings::FILTERS, time::FILTERS];

pub(super) fn find(name: &str) -> Option<&'static Filter> {
    find_callable(TABLES, name)
}

pub(super) fn names() -> Vec<&'static str> {
    TABLES.iter().copied().flatten().map(|filter| filter.name).collect()
}
