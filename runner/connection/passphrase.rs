//! Asking the person at the terminal, once for each thing.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

type Asker = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

static ASKER: OnceLock<Asker> = OnceLock::new();

/// Sets what asks a person for a secret; it gets the question and returns nothing when no one answers. The first
/// call decides; without one, nobody is asked.
pub fn ask_with(asker: impl Fn(&str) -> Option<String> + Send + Sync + 'static) {
    ASKER.set(Box::new(asker)).ok();
}

/// Returns the answer to a question. Whoever asks the same meanwhile waits for that answer.
pub(super) fn ask(question: &str) -> Option<String> {
    static ANSWERS: LazyLock<Mutex<HashMap<String, Option<String>>>> = LazyLock::new(Mutex::default);
    let asker = ASKER.get()?;
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    answers.entry(question.to_owned()).or_insert_with(|| asker(question)).clone()
}
