//! The keys of a mapping: which of them is given twice, however many there are.

use std::collections::{HashMap, HashSet};

use super::{Kind, Node};
use crate::source::Diagnostic;

/// A mapping that is being read.
#[derive(Default)]
pub(super) struct Mapping {
    entries: Vec<(Node, Node)>,
    /// A key that waits for its value.
    key: Option<Node>,
    /// Where among the entries the keys are that are words.
    words: HashMap<Word, usize>,
    /// And those that are lists and mappings.
    others: Vec<usize>,
    /// Entries whose key came again.
    replaced: HashSet<usize>,
}

/// What tells one key from another, where that is a word.
#[derive(PartialEq, Eq, Hash)]
enum Word {
    Text(std::sync::Arc<str>),
    Other(String),
}

impl Word {
    fn of(key: &Node) -> Option<Word> {
        match &key.kind {
            Kind::Str { text, .. } => Some(Word::Text(text.clone())),
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => Some(Word::Other(format!("{:?}", key.kind))),
            Kind::Vault(_) | Kind::List(_) | Kind::Map(_) => None,
        }
    }
}

impl Mapping {
    /// Returns whether a key is due, and not its value.
    pub fn expects_key(&self) -> bool {
        self.key.is_none()
    }

    /// Takes a key or its value, whichever is due; returns a warning when the key is there already.
    pub fn take(&mut self, node: Node) -> Option<Diagnostic> {
        let Some(key) = self.key.take() else {
            self.key = Some(node);
            return None;
        };
        let warning = self.place_of(&key).map(|first| {
            self.replaced.insert(first);
            let message = format!("key `{}` is given twice; the last one counts", key.text());
            Diagnostic::warning(key.place, message).related(self.entries[first].0.place, "given here first")
        });
        match Word::of(&key) {
            Some(_) if key.is_merge() => {}
            Some(word) => {
                self.words.insert(word, self.entries.len());
            }
            None => self.others.push(self.entries.len()),
        }
        self.entries.push((key, node));
        warning
    }

    fn place_of(&self, key: &Node) -> Option<usize> {
        match Word::of(key) {
            Some(word) => self.words.get(&word).copied(),
            None => {
                let there = |nth: &&usize| !self.replaced.contains(nth) && self.entries[**nth].0.same_key(key);
                self.others.iter().find(there).copied()
            }
        }
    }

    /// Returns the entries, what `<<` names under the keys that the mapping has itself.
    ///
    /// # Errors
    /// When `<<` names something else than mappings.
    pub fn finish(self) -> Result<Vec<(Node, Node)>, Diagnostic> {
        let Mapping { mut entries, replaced, .. } = self;
        if !replaced.is_empty() {
            let all = entries.into_iter().enumerate();
            entries = all.filter(|(nth, _)| !replaced.contains(nth)).map(|(_, entry)| entry).collect();
        }
        merged(entries)
    }
}

fn merged(entries: Vec<(Node, Node)>) -> Result<Vec<(Node, Node)>, Diagnostic> {
    if entries.iter().all(|(key, _)| !key.is_merge()) {
        return Ok(entries);
    }
    let (merges, own): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(key, _)| key.is_merge());
    let mut all = Mapping::default();
    for (key, value) in own {
        all.take(key);
        all.take(value);
    }
    for (key, value) in merges {
        let maps = match value.kind {
            Kind::List(items) => items,
            _ => vec![value],
        };
        for map in maps {
            let Kind::Map(more) = map.kind else {
                return Err(Diagnostic::error(key.place, "`<<` merges mappings, and this is none"));
            };
            for (key, value) in more {
                if all.place_of(&key).is_none() {
                    all.take(key);
                    all.take(value);
                }
            }
        }
    }
    Ok(all.entries)
}
