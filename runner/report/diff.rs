//! Differences as Ansible shows them: unified, with `before:` and `after:` heads.

use serde_json::Value;
use similar::TextDiff;

use super::style::{Color, Style};

/// Returns a task's `diff` as text: one difference or a list of them; empty when there is nothing to show.
pub fn render(diff: &Value, style: Style) -> String {
    match diff {
        Value::Array(items) => items.iter().map(|item| render(item, style)).collect(),
        Value::Object(_) => one(diff, style),
        _ => String::new(),
    }
}

fn one(diff: &Value, style: Style) -> String {
    if let Some(prepared) = diff.get("prepared").and_then(Value::as_str) {
        return format!("{}\n", prepared.trim_end_matches('\n'));
    }
    let text = |key: &str| match diff.get(key) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => format!("{}\n", serde_json::to_string_pretty(other).unwrap_or_default()),
    };
    let (before, after) = (text("before"), text("after"));
    if before == after {
        return String::new();
    }
    // What was not there before has no name.
    let head = |word: &str, key: &str, text: &str| match diff.get(key).and_then(Value::as_str) {
        Some(name) if !text.is_empty() => format!("{word}: {name}"),
        Some(_) | None => word.to_owned(),
    };
    let unified = TextDiff::from_lines(&before, &after)
        .unified_diff()
        .context_radius(3)
        .header(&head("before", "before_header", &before), &head("after", "after_header", &after))
        .to_string();
    let mut shown = String::new();
    for line in unified.lines() {
        let color = match line.as_bytes().first() {
            Some(b'+') => Some(Color::Added),
            Some(b'-') => Some(Color::Removed),
            Some(b'@') => Some(Color::Hunk),
            Some(_) | None => None,
        };
        shown.push_str(&color.map_or_else(|| line.to_owned(), |color| style.paint(line, color)));
        shown.push('\n');
    }
    shown.push('\n');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_changes() {
        let diff =
            serde_json::json!({"before": "a\nb\n", "after": "a\nc\n", "before_header": "/x", "after_header": "/x"});
        let shown = render(&diff, Style { on: false });
        assert_eq!(shown, "--- before: /x\n+++ after: /x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\n");
    }
}
