//! How groups stand above and below one another.

use std::collections::HashMap;

use indexmap::{IndexMap, IndexSet};

use super::{ALL, Group, Name};

/// The groups' parents, and how deep below `all` each group stands by its longest way.
#[derive(Debug, Default)]
pub(super) struct Ladder {
    parents: HashMap<Name, Vec<Name>>,
    depths: HashMap<Name, usize>,
}

impl Ladder {
    pub fn of(groups: &IndexMap<Name, Group>) -> Ladder {
        let mut parents: HashMap<Name, Vec<Name>> = HashMap::new();
        for (name, group) in groups {
            for child in &group.children {
                parents.entry(child.clone()).or_default().push(name.clone());
            }
        }
        // Those whose parents' depths are all known come next; there are no circles.
        let mut missing: HashMap<Name, usize> =
            parents.iter().map(|(name, parents)| (name.clone(), parents.len())).collect();
        let mut depths: HashMap<Name, usize> = HashMap::new();
        let mut ready: Vec<Name> = groups.keys().filter(|name| !missing.contains_key(*name)).cloned().collect();
        while let Some(name) = ready.pop() {
            let depth = depths.entry(name.clone()).or_insert(usize::from(&*name != ALL)).to_owned();
            for child in groups.get(&name).into_iter().flat_map(|group| &group.children) {
                let below = depths.entry(child.clone()).or_insert(1);
                *below = (*below).max(depth + 1);
                if let Some(count) = missing.get_mut(child) {
                    *count -= 1;
                    if *count == 0 {
                        ready.push(child.clone());
                    }
                }
            }
        }
        Ladder { parents, depths }
    }

    pub fn depth(&self, group: &str) -> usize {
        self.depths.get(group).copied().unwrap_or(1)
    }

    /// Returns groups with all that are above them.
    pub fn with_parents(&self, groups: &[Name]) -> IndexSet<Name> {
        let mut found: IndexSet<Name> = IndexSet::new();
        let mut waiting: Vec<Name> = groups.to_vec();
        while let Some(name) = waiting.pop() {
            if found.insert(name.clone()) {
                waiting.extend(self.parents.get(&name).into_iter().flatten().cloned());
            }
        }
        found
    }
}
