//! Lookups of one value in a file of many: `csvfile` and `ini`.

use super::files::{read, terms};
use crate::template::call::{Call, Lookup, callable};
use crate::template::live::{Live, Result};
use crate::template::regex;

pub(super) const LOOKUPS: &[Lookup] = &[
    callable("csvfile", &["*", "file", "delimiter", "col", "default", "keycol", "encoding"], csvfile),
    callable(
        "ini",
        &["*", "file", "section", "re", "default", "type", "case_sensitive", "allow_none", "encoding", "interpolation"],
        ini,
    ),
];

/// Splits a term into the key and the settings after it.
fn key_and_settings(call: &Call<'_>, term: &str) -> Result<(String, Vec<(String, String)>)> {
    let words = shell_words::split(term).map_err(|error| call.fault(format!("`{term}`: {error}")))?;
    let (mut key, mut settings) = (Vec::new(), Vec::new());
    for word in words {
        match word.split_once('=') {
            Some((name, value)) if !key.is_empty() => settings.push((name.to_owned(), value.to_owned())),
            _ => key.push(word),
        }
    }
    Ok((key.join(" "), settings))
}

fn csvfile(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let mut found = Vec::new();
    for term in terms(call)? {
        let (key, settings) = key_and_settings(call, &term)?;
        let (mut file, mut delimiter) = (call.text_or(0, "ansible.csv")?, call.text_or(1, "TAB")?);
        let (mut column, mut default, mut key_column) = (call.text_or(2, "1")?, call.get(3), call.text_or(4, "0")?);
        for (name, value) in settings {
            match name.as_str() {
                "file" => file = value,
                "delimiter" => delimiter = value,
                "col" => column = value,
                "default" => default = Some(value.into()),
                "keycol" => key_column = value,
                "encoding" => {}
                _ => return Err(call.fault(format!("no argument named `{name}`"))),
            }
        }
        let delimiter = match delimiter.as_str() {
            "TAB" | "\\t" => '\t',
            other => other.chars().next().unwrap_or('\t'),
        };
        let number =
            |text: &str| text.parse::<usize>().map_err(|_| call.fault(format!("`{text}` is no column's number")));
        let (column, key_column) = (number(&column)?, number(&key_column)?);
        let rows = csv_rows(&read(call, "files", &file)?, delimiter);
        let row = rows.iter().find(|row| row.get(key_column) == Some(&key));
        match row {
            Some(row) => {
                let value = row.get(column).ok_or_else(|| call.fault(format!("`{file}` has no column {column}")))?;
                found.push(Live::from(value.as_str()));
            }
            None => found.extend(default),
        }
    }
    Ok(found)
}

/// Splits CSV into rows; a field in double quotes may hold delimiters, newlines, and quotes written twice.
pub(in crate::template) fn csv_rows(text: &str, delimiter: char) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => field.push('"'),
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => quoted = true,
            '\r' if !quoted && chars.peek() == Some(&'\n') => {}
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            c if c == delimiter && !quoted => row.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    if !field.is_empty() || !row.is_empty() {
        row.push(field);
        rows.push(row);
    }
    rows
}

fn ini(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let mut found = Vec::new();
    for term in terms(call)? {
        let (key, settings) = key_and_settings(call, &term)?;
        let (mut file, mut section) = (call.text_or(0, "ansible.ini")?, call.text_or(1, "global")?);
        let (mut by_pattern, mut default) = (call.bool_or(2, false)?, call.get(3));
        let (mut sort, case_sensitive) = (call.text_or(4, "ini")?, call.bool_or(5, false)?);
        for (name, value) in settings {
            match name.as_str() {
                "file" => file = value,
                "section" => section = value,
                "re" => by_pattern = matches!(value.to_ascii_lowercase().as_str(), "true" | "yes" | "1" | "on"),
                "default" => default = Some(value.into()),
                "type" => sort = value,
                "encoding" | "case_sensitive" | "allow_none" | "interpolation" => {}
                _ => return Err(call.fault(format!("no argument named `{name}`"))),
            }
        }
        let is_properties = match sort.as_str() {
            "ini" => false,
            "properties" => true,
            other => return Err(call.fault(format!("`type` is ini or properties, not `{other}`"))),
        };
        let text = read(call, "files", &file)?;
        let entries = ini_entries(&text, if is_properties { None } else { Some(&section) });
        if by_pattern {
            let regex = regex::compiled(call, &key, false, false)?;
            let matching = entries.iter().filter(|(name, _)| regex.is_match(name).unwrap_or(false));
            found.extend(matching.map(|(_, value)| Live::from(value.as_str())));
            continue;
        }
        let is_same = |name: &str| if case_sensitive { name == key } else { name.eq_ignore_ascii_case(&key) };
        match entries.iter().rev().find(|(name, _)| is_same(name)) {
            Some((_, value)) => found.push(Live::from(value.as_str())),
            None => found.push(default.unwrap_or_else(|| "".into())),
        }
    }
    Ok(found)
}

/// Returns the entries of a section, those of `DEFAULT` first; of the whole text when no section is wanted.
fn ini_entries(text: &str, section: Option<&str>) -> Vec<(String, String)> {
    let mut own: Vec<(String, String)> = Vec::new();
    let mut default = Vec::new();
    let mut current = section.map(|_| String::new());
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))
            && section.is_some()
        {
            current = Some(name.to_owned());
            continue;
        }
        let target = match (&current, section) {
            (Some(current), Some(section)) if current == section => &mut own,
            (Some(current), _) if current == "DEFAULT" => &mut default,
            (None, _) => &mut own,
            _ => continue,
        };
        if line.starts_with([' ', '\t'])
            && let Some((_, value)) = target.last_mut()
        {
            value.push('\n');
            value.push_str(trimmed);
            continue;
        }
        let (name, value) = trimmed.split_once(['=', ':']).unwrap_or((trimmed, ""));
        target.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    default.extend(own);
    default
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_tables() {
        assert_eq!(csv_rows("a,\"b,\"\"c\"\"\"\nd,e", ','), [["a", "b,\"c\""], ["d", "e"]]);
        let entries = ini_entries("[DEFAULT]\nz = 0\n[a]\nx = 1\n y\n[b]\nx: 2\n", Some("a"));
        assert_eq!(entries, [("z".to_owned(), "0".to_owned()), ("x".to_owned(), "1\ny".to_owned())]);
    }
}
