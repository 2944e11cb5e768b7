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

/// Lookups that do something, or take long: they are called at their task's turn, once.
const ACTS: &[&str] = &["lines", "password", "pipe", "url"];

/// What is made of a name that a task under way will set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsettled {
    /// Whoever asks for it, or for anything that may change, must wait.
    Waits,
    /// It is taken for the result of a task that went well and changed something, or nothing: a guess, which is compared
    /// with what is so in the end.
    Guessed { changed: bool },
}

/// The variables of one task, seen before its turn.
pub(super) struct Watch {
    pub under: Box<dyn Variables>,
    /// Names that tasks under way will set.
    pub unsettled: Arc<HashSet<String>>,
    pub manner: Unsettled,
    /// Set when such a name was asked for.
    pub touched: Arc<AtomicBool>,
}

impl Watch {
    fn note(&self) {
        self.touched.store(true, Ordering::Relaxed);
    }
}

impl Variables for Watch {
    fn get(&self, name: &str) -> Option<Value> {
        if self.unsettled.contains(name) {
            self.note();
            if let Unsettled::Guessed { changed } = self.manner {
                let result = [("changed", changed), ("failed", false), ("skipped", false)];
                return Some(Value::map(
                    result.map(|(key, is)| (Value::from(key), Value::Bool(is))).into_iter().collect(),
                ));
            }
        } else if self.manner == Unsettled::Waits && ALWAYS.binary_search(&name).is_ok() {
            self.note();
        }
        self.under.get(name)
    }

    fn names(&self) -> Vec<Arc<str>> {
        if self.manner == Unsettled::Waits {
            self.note();
        }
        self.under.names()
    }

    fn reads_here(&self) {
        if self.manner == Unsettled::Waits {
            self.note();
        }
    }

    fn may_look_up(&self, lookup: &str) -> bool {
        let may = ACTS.binary_search(&lookup).is_err();
        if !may {
            self.note();
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Place;
    use crate::template::{Folders, Templar};
    use crate::value::{Map, Str};

    const GUESSED: Unsettled = Unsettled::Guessed { changed: false };

    fn touches(template: &str, manner: Unsettled) -> (bool, Option<Value>) {
        let touched = Arc::new(AtomicBool::new(false));
        let mut map = Map::new();
        map.insert("plain", "x");
        map.insert("indirect", Value::Str(Str::template("{{ pending.rc }}", Place::default())));
        let unsettled = Arc::new(HashSet::from(["pending".to_owned()]));
        let watch = Watch { under: Box::new(map), unsettled, manner, touched: touched.clone() };
        let templar = Templar::new(Arc::new(watch), Arc::new(Folders::default()));
        let value = templar.value(&Value::Str(Str::template(template, Place::default()))).ok();
        (touched.load(Ordering::Relaxed), value)
    }

    #[test]
    fn whatever_may_change_under_way_is_noted() {
        assert!(ALWAYS.is_sorted());
        for template in ["{{ plain }}", "{{ plain | upper }}", "{{ [1, 2] | length }}", "{{ absent | default('x') }}"] {
            assert!(!touches(template, Unsettled::Waits).0, "{template}");
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
            assert!(touches(template, Unsettled::Waits).0, "{template}");
        }
    }

    #[test]
    fn a_guess_takes_what_is_under_way_for_unchanged_and_does_nothing_itself() {
        assert!(ACTS.is_sorted());
        let folder = std::env::temp_dir().join(format!("kubeon-watch-{}", std::process::id()));
        let made = folder.display();
        for lookup in
            [format!("'pipe', 'mkdir {made}'"), format!("'password', '{made}'"), format!("'lines', 'mkdir {made}'")]
        {
            for manner in [GUESSED, Unsettled::Waits] {
                let template = format!("{{{{ lookup({lookup}, errors='ignore') }}}}");
                assert_eq!(touches(&template, manner), (true, None), "{template}");
            }
        }
        assert!(!folder.exists());
        let told = |template| touches(template, GUESSED);
        assert_eq!(told("{{ pending is changed }}"), (true, Some(Value::Bool(false))));
        let changed = touches("{{ pending is changed }}", Unsettled::Guessed { changed: true });
        assert_eq!(changed, (true, Some(Value::Bool(true))));
        assert_eq!(told("{{ indirect }}"), (true, None));
        assert_eq!(told("{{ lookup('env', 'KUBEON_NONE') }}"), (false, Some(Value::from(""))));
    }
}
