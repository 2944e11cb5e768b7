//! Variables that note when something is asked for that a task which is still under way may change.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::template::Variables;
use crate::value::Value;

/// What changes, or may change, with every task: what other hosts know and which of them are left, all variables at once,
/// the clock, and whatever a lookup reads.
const ALWAYS: &[&str] = &[
    "ansible_failed_result",
    "ansible_failed_task",
    "ansible_play_batch",
    "ansible_play_hosts",
    "hostvars",
    "lookup",
    "now",
    "play_hosts",
    "q",
    "query",
    "vars",
];

/// The variables of one task, seen before its turn.
pub(super) struct Watch {
    pub under: Box<dyn Variables>,
    /// Names that tasks under way will set.
    pub unsettled: Arc<HashSet<String>>,
    pub touched: Arc<AtomicBool>,
}

impl Watch {
    fn note(&self) {
        self.touched.store(true, Ordering::Relaxed);
    }
}

impl Variables for Watch {
    fn get(&self, name: &str) -> Option<Value> {
        if ALWAYS.binary_search(&name).is_ok() || self.unsettled.contains(name) {
            self.note();
        }
        self.under.get(name)
    }

    fn names(&self) -> Vec<Arc<str>> {
        self.note();
        self.under.names()
    }

    fn reads_here(&self) {
        self.note();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Place;
    use crate::template::{Folders, Templar};
    use crate::value::{Map, Str};

    fn touches(template: &str) -> bool {
        let touched = Arc::new(AtomicBool::new(false));
        let mut map = Map::new();
        map.insert("plain", "x");
        map.insert("indirect", Value::Str(Str::template("{{ pending.rc }}", Place::default())));
        let unsettled = Arc::new(HashSet::from(["pending".to_owned()]));
        let watch = Watch { under: Box::new(map), unsettled, touched: touched.clone() };
        let templar = Templar::new(Arc::new(watch), Arc::new(Folders::default()));
        // What it gives does not matter here, not even that it fails.
        templar.value(&Value::Str(Str::template(template, Place::default()))).ok();
        touched.load(Ordering::Relaxed)
    }

    #[test]
    fn whatever_may_change_under_way_is_noted() {
        assert!(ALWAYS.is_sorted());
        for template in ["{{ plain }}", "{{ plain | upper }}", "{{ [1, 2] | length }}", "{{ absent | default('x') }}"] {
            assert!(!touches(template), "{template}");
        }
        for template in [
            "{{ pending.rc }}",
            "{{ pending is defined }}",
            "{{ indirect }}",
            "{{ hostvars['a'].b }}",
            "{{ vars['plain'] }}",
            "{{ lookup('env', 'HOME') }}",
            "{{ q('vars', 'plain') }}",
            "{{ query('vars', 'plain') }}",
            "{{ now() }}",
            "{{ '/tmp' is exists }}",
            "{{ '/tmp' is directory }}",
            "{{ '/etc/*' | fileglob }}",
            "{{ '/tmp' | realpath }}",
            "{{ '%Y' | strftime }}",
            "{% include 'x.j2' %}",
            "{% import 'x.j2' as x %}",
            "{{ ansible_play_hosts }}",
        ] {
            assert!(touches(template), "{template}");
        }
    }
}
