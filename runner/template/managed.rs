//! What a template's file sees of itself: `ansible_managed`, `template_path` and their like.

use std::path::Path;

use super::{Templar, TemplateError};
use crate::config;
use crate::value::{Str, Value, may_be_template};

/// What `ansible_managed` is where nobody says otherwise.
const USUAL: &str = "Ansible managed";

/// Returns the variables of a template's file; `written` is its name as the task has it.
///
/// # Errors
/// When the configured `ansible_managed` can't be put together.
pub fn about_file(templar: &Templar, written: &str, path: &Path) -> Result<Vec<(String, Value)>, TemplateError> {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
    let managed = match templar.variable("ansible_managed") {
        Some(set) => set,
        None => managed(templar, path, &[("file", written), ("host", &host), ("uid", &user)])?.into(),
    };
    let now = format_time("%Y-%m-%d %H:%M:%S", None);
    let names: [(&str, Value); 6] = [
        ("ansible_managed", managed),
        ("template_path", written.into()),
        ("template_fullpath", full.into()),
        ("template_host", host.into()),
        ("template_uid", user.into()),
        ("template_run_date", now.into()),
    ];
    Ok(names.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Puts the configured text together: `{file}`, `{host}` and `{uid}` as Python's `format` has them, the time of the file
/// as strftime has it, and templates. What a file is called is never rendered.
fn managed(templar: &Templar, path: &Path, fields: &[(&str, &str)]) -> Result<String, TemplateError> {
    let configured = config::current().get(&[], "defaults", "ansible_managed").unwrap_or_else(|| USUAL.to_owned());
    let changed = std::fs::metadata(path).and_then(|file| file.modified()).ok();
    let text = format_time(&placed(&configured, fields)?, changed);
    let text = match may_be_template(&text) {
        true => templar.text(&Value::Str(Str::template(text, Default::default())))?,
        false => text,
    };
    Ok(fields.iter().enumerate().fold(text, |text, (nth, (_, value))| text.replace(&mark(nth), value)))
}

/// Returns what stands for a field until everything else is done.
fn mark(nth: usize) -> String {
    format!("\u{1}{nth}\u{1}")
}

/// Puts marks in the place of fields, and single braces in that of double ones.
fn placed(text: &str, fields: &[(&str, &str)]) -> Result<String, TemplateError> {
    let fault = |what: String| {
        let error = TemplateError::new(Default::default(), format!("`ansible_managed = {text}`: {what}"));
        error.help("`{file}`, `{host}` and `{uid}` are known; a brace itself is written twice")
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            out.push_str(brace);
            rest = after;
            continue;
        }
        let Some((name, after)) = rest.split_once('}').filter(|_| brace == "{") else {
            return Err(fault(format!("a single `{brace}`")));
        };
        let nth = fields.iter().position(|(field, _)| *field == name);
        out.push_str(&mark(nth.ok_or_else(|| fault(format!("no field `{name}`")))?));
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Returns a text with the marks of strftime replaced, by a file's time or by now; those that there are none of stay.
fn format_time(text: &str, at: Option<std::time::SystemTime>) -> String {
    let at = at.and_then(|at| jiff::Timestamp::try_from(at).ok()).unwrap_or_else(jiff::Timestamp::now);
    let zoned = at.to_zoned_datetime(jiff::tz::TimeZone::system());
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let end = rest[at..].char_indices().nth(2).map_or(rest.len(), |(end, _)| at + end);
        let mark = &rest[at..end];
        out.push_str(&jiff::fmt::strtime::format(mark, &zoned).unwrap_or_else(|_| mark.to_owned()));
        rest = &rest[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_braces_and_times_are_put_in() {
        let placed = |text: &str| placed(text, &[("file", "%Y"), ("host", "h")]).map_err(|error| error.message);
        assert_eq!(placed("{file} {{x}} {host}"), Ok(format!("{} {{x}} {}", mark(0), mark(1))));
        assert!(placed("{nope}").is_err_and(|message| message.contains("no field `nope`")));
        assert!(placed("a } b").is_err());
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(86_400 * 200);
        assert_eq!(format_time("%Y 100% %é", Some(at)), "1970 100% %é");
    }
}
