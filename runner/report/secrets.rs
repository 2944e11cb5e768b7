//! Texts that no report may show: decrypted values and passwords. Every reporter hides them, wherever they turn up.

use std::borrow::Cow;
use std::sync::RwLock;

/// Shorter texts are not hidden: they would blot out half of every report and are no secret worth the name.
const LEAST_LENGTH: usize = 4;
/// What stands in a secret's place.
pub const HIDDEN: &str = "********";

/// The longest first, so that a secret within another one does not leave the rest of it visible.
static SECRETS: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Hides this text from now on, each of its lines too, and its forms in JSON and URLs.
pub fn register(text: &str) {
    let mut forms: Vec<String> = vec![text.to_owned()];
    forms.extend(text.lines().map(|line| line.trim().to_owned()));
    let quoted = serde_json::Value::from(text).to_string();
    forms.push(quoted[1..quoted.len() - 1].to_owned());
    let mut secrets = SECRETS.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    for form in forms {
        if form.len() >= LEAST_LENGTH && !secrets.contains(&form) {
            secrets.push(form);
        }
    }
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
}

/// Returns the text with every secret replaced.
pub fn hide(text: &str) -> Cow<'_, str> {
    let secrets = SECRETS.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut shown = Cow::Borrowed(text);
    for secret in secrets.iter() {
        if shown.contains(secret.as_str()) {
            shown = Cow::Owned(shown.replace(secret.as_str(), HIDDEN));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hides_a_secret_in_every_form() {
        register("hunter2\"quoted\nsecond-line");
        assert_eq!(hide("x second-line y"), format!("x {HIDDEN} y"));
        assert_eq!(hide(r#"{"a": "hunter2\"quoted\nsecond-line"}"#), format!(r#"{{"a": "{HIDDEN}"}}"#));
    }
}
