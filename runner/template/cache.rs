//! Parsed templates, kept by their text for the whole process: a fleet of hosts parses each once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, LazyLock, RwLock};

use super::ast::Parsed;
use super::files::FileOptions;
use super::nesting::{self, Marks};
use super::parse::{self, SyntaxFault};

/// How many parsed texts of a kind are kept; past it, all are dropped and those in use come back.
const KEPT: usize = 20_000;

type Read = Result<Arc<Parsed>, SyntaxFault>;

struct Kept<K>(LazyLock<RwLock<HashMap<K, Read>>>);

static TEMPLATES: Kept<Arc<str>> = Kept(LazyLock::new(RwLock::default));
static EXPRESSIONS: Kept<Arc<str>> = Kept(LazyLock::new(RwLock::default));
static FILES: Kept<(Arc<str>, FileOptions)> = Kept(LazyLock::new(RwLock::default));

impl<K: Hash + Eq + Clone> Kept<K> {
    fn get(&self, key: &K, read: impl FnOnce() -> Read) -> Read {
        if let Some(known) = self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner).get(key) {
            return known.clone();
        }
        let parsed = read();
        let mut kept = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(key.clone(), parsed.clone());
        parsed
    }
}

/// Returns a variable's template, under the syntax that playbooks have.
pub(super) fn template(text: &Arc<str>) -> Read {
    TEMPLATES.get(text, || read(text, &FileOptions::default(), true))
}

/// Returns a bare expression.
pub(super) fn expression(text: &Arc<str>) -> Read {
    EXPRESSIONS.get(text, || {
        let depth = nesting::of_expression(text);
        nesting::read(depth, || parse::expression(text).map(Arc::new)).unwrap_or_else(too_deep)
    })
}

/// Returns a template file, under a syntax of its own.
pub(super) fn file(text: &Arc<str>, options: &FileOptions) -> Read {
    FILES.get(&(text.clone(), options.clone()), || read(text, options, false))
}

fn read(text: &Arc<str>, options: &FileOptions, literal_backslashes: bool) -> Read {
    let syntax = options.syntax().map_err(|message| SyntaxFault { offset: 0, message, help: None })?;
    let pairs = [(&*options.variable_start, &*options.variable_end), (&*options.block_start, &*options.block_end)];
    let depth = nesting::of_template(text, &Marks { pairs });
    let parsed = || parse::template(text, syntax, literal_backslashes).map(Arc::new);
    nesting::read(depth, parsed).unwrap_or_else(too_deep)
}

fn too_deep() -> Read {
    let message = format!("the template has an expression of more than {} operators in one another", nesting::LIMIT);
    let help = Some("set variables for parts of it, or put the values into a list".to_owned());
    Err(SyntaxFault { offset: 0, message, help })
}
