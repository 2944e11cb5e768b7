//! Lookups that only rearrange what they are given.

use crate::template::call::{Lookup, callable};

pub(super) const LOOKUPS: &[Lookup] = &[callable("items", &["*"], |call| {
    let mut items = Vec::new();
    for term in &call.rest {
        match term.is_list() {
            true => items.extend(term.items()?),
            false => items.push(term.clone()),
        }
    }
    Ok(items)
})];
