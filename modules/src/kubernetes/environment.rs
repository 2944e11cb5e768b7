//! The environment that a task's client of Kubernetes works in.

use std::collections::BTreeMap;

/// Returns a variable of the task's environment, else of the process, when it is not empty.
pub(super) fn variable(env: &BTreeMap<String, String>, name: &str) -> Option<String> {
    env.get(name).cloned().or_else(|| std::env::var(name).ok()).filter(|value| !value.is_empty())
}
