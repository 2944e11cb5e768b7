//! Texts that no report may show: decrypted values and passwords. Every reporter hides them, wherever they turn up.

use std::borrow::Cow;
use std::sync::RwLock;

use base64::Engine;
use serde_json::Value as Json;

/// Shorter texts are not hidden: they would blot out half of every report and are no secret worth the name.
const LEAST_LENGTH: usize = 4;
/// What stands in a secret's place.
pub const HIDDEN: &str = "********";

/// The longest first, so that a secret within another one does not leave the rest of it visible.
static SECRETS: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Hides this text from now on, each of its lines too, and its forms in JSON, base64 and URLs.
pub fn register(text: &str) {
    let mut forms: Vec<String> = vec![text.to_owned()];
    forms.extend(text.lines().map(|line| line.trim().to_owned()));
    let quoted = serde_json::Value::from(text).to_string();
    forms.push(quoted[1..quoted.len() - 1].to_owned());
    forms.push(base64::engine::general_purpose::STANDARD.encode(text));
    forms.push(percent_encoded(text));
    let mut secrets = SECRETS.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    for form in forms {
        if form.len() >= LEAST_LENGTH && !secrets.contains(&form) {
            secrets.push(form);
        }
    }
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
}

fn percent_encoded(text: &str) -> String {
    let keeps = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if keeps(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Returns JSON with every secret in its texts, keys and numbers replaced, and whether there was one.
pub fn hidden(value: Json) -> (Json, bool) {
    let mut any = false;
    let value = hide_within(value, &mut any);
    (value, any)
}

fn hide_within(value: Json, any: &mut bool) -> Json {
    let mut text = |text: String| match hide(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(hidden) => {
            *any = true;
            hidden
        }
    };
    match value {
        Json::String(string) => Json::String(text(string)),
        Json::Number(number) => {
            let shown = text(number.to_string());
            if shown.contains(HIDDEN) { Json::String(shown) } else { Json::Number(number) }
        }
        Json::Array(items) => items.into_iter().map(|item| hide_within(item, any)).collect(),
        Json::Object(entries) => {
            let names: Vec<(String, Json)> = entries.into_iter().map(|(key, value)| (text(key), value)).collect();
            Json::Object(names.into_iter().map(|(key, value)| (key, hide_within(value, any))).collect())
        }
        Json::Null | Json::Bool(_) => value,
    }
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
        assert_eq!(hide("https://u:hunter2%22quoted%0Asecond-line@h/"), format!("https://u:{HIDDEN}@h/"));
        assert_eq!(hidden(serde_json::json!({"k": ["no", "a second-line"]})).0["k"][1], format!("a {HIDDEN}"));
        assert_eq!(hide(r#"{"a": "hunter2\"quoted\nsecond-line"}"#), format!(r#"{{"a": "{HIDDEN}"}}"#));
    }
}
