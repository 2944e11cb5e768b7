//! Secrets in the open.

use crate::lint::{Check, Found, Rule, Scalar, Weight};

pub(super) const RULES: &[Rule] = &[Rule {
    id: "plain-secret",
    also: &[],
    weight: Weight::Warning,
    what: "a password or a token that stands in the file as it is",
    why: "whoever can read the repository, now or later, has it; it stays in the history when it is taken away",
    fix: "`kubeon-run vault encrypt_string`, or a lookup where it is kept",
    mends: false,
    check: Check::Scalar(secret),
}];

/// How names of secrets end.
const ENDINGS: &[&str] = &["password", "passwd", "_pass", "secret", "_token", "api_key", "private_key"];
/// What is written where nothing is.
const NOTHING: &[&str] = &["", "*", "!", "changeme", "none", "null", "omit", "password"];

fn secret(scalar: &Scalar<'_>, found: &mut Found) {
    let (Some(key), Some(text)) = (scalar.key, scalar.node.as_str()) else { return };
    let name = key.to_ascii_lowercase();
    let plain = text.trim();
    // A hash, a path and a name of something are no secrets.
    let harmless = crate::value::may_be_template(text)
        || plain.starts_with(['/', '~', '$'])
        || plain.len() < 4
        || NOTHING.contains(&&*plain.to_ascii_lowercase());
    let named = ENDINGS.iter().any(|ending| name.ends_with(ending)) || name == "token";
    if named && !harmless && !name.starts_with("update_") {
        found.tell(scalar.node.place, 1, format!("`{key}` stands here as it is"));
    }
}
