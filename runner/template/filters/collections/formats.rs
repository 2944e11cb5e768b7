//! Filters that read and write formats, and query them: `from_csv`, `from_ini`, `to_ini`, `json_query`.

use crate::template::call::{Call, Filter, callable};
use crate::template::live::{Live, Result};
use crate::template::{jmespath, lookups};
use crate::value::{Map, Value};

pub(super) const FILTERS: &[Filter] = &[
    callable("community.general.json_query", &["expr"], |call| {
        let expression = call.required(0)?.text()?;
        jmespath::search(&expression, &call.value()?).map(Live::Done).map_err(|message| call.fault(message))
    }),
    callable(
        "community.general.from_csv",
        &["dialect", "fieldnames", "delimiter", "skipinitialspace", "strict"],
        from_csv,
    ),
    callable("community.general.from_ini", &[], from_ini),
    callable("community.general.to_ini", &[], to_ini),
];

/// Reads rows into mappings, under the names in the first row or those given.
fn from_csv(call: &mut Call<'_>) -> Result<Live> {
    let delimiter = match call.text_or(0, "excel")?.as_str() {
        "excel" | "unix" => ",",
        "excel-tab" => "\t",
        other => return Err(call.fault(format!("no dialect `{other}`")).help("one of excel, excel-tab, unix")),
    };
    let delimiter = call.text_or(2, delimiter)?;
    let mut delimiters = delimiter.chars();
    let (Some(delimiter), None) = (delimiters.next(), delimiters.next()) else {
        return Err(call.fault("`delimiter` must be one character"));
    };
    let mut text = call.text()?;
    if call.bool_or(3, false)? {
        text = without_leading_spaces(&text, delimiter);
    }
    let mut rows = lookups::tables::csv_rows(&text, delimiter).into_iter().filter(|row| *row != [String::new()]);
    let names: Vec<Value> = match call.value_at(1)? {
        None | Some(Value::Null) => rows.next().unwrap_or_default().into_iter().map(Value::from).collect(),
        Some(Value::List(names)) => names.to_vec(),
        Some(other) => return Err(call.fault(format!("`fieldnames` must be a list, not {}", other.kind()))),
    };
    let rows = rows.map(|row| {
        let mut fields = row.into_iter().map(Value::from);
        let mut entries: Map = names.iter().map(|name| (name.clone(), fields.next().unwrap_or_default())).collect();
        let rest: Vec<Value> = fields.collect();
        if !rest.is_empty() {
            entries.insert(Value::Null, rest);
        }
        Value::map(entries)
    });
    Ok(Live::Done(Value::list(rows.collect())))
}

/// Takes the spaces behind delimiters out, outside of quotes.
fn without_leading_spaces(text: &str, delimiter: char) -> String {
    let mut out = String::new();
    let (mut is_quoted, mut at_start) = (false, true);
    for c in text.chars() {
        if c == ' ' && at_start && !is_quoted {
            continue;
        }
        is_quoted ^= c == '"';
        at_start = !is_quoted && (c == delimiter || c == '\n');
        out.push(c);
    }
    out
}

/// Reads sections of options, those of `DEFAULT` in each of them.
fn from_ini(call: &mut Call<'_>) -> Result<Live> {
    let text = call.text()?;
    let mut sections: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for (nth, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        let is_continued = line.starts_with([' ', '\t']);
        if let (Some((_, options)), true) = (sections.last_mut(), is_continued)
            && let Some((_, value)) = options.last_mut()
        {
            value.push('\n');
            value.push_str(trimmed);
            continue;
        }
        if let Some(end) = trimmed.rfind(']').filter(|_| trimmed.starts_with('[')) {
            let name = &trimmed[1..end];
            if sections.iter().any(|(known, _)| known == name) {
                return Err(call.fault(format!("line {}: the section `{name}` is there twice", nth + 1)));
            }
            sections.push((name.to_owned(), Vec::new()));
            continue;
        }
        let Some((_, options)) = sections.last_mut() else {
            return Err(call.fault(format!("line {}: an option stands before the first section", nth + 1)));
        };
        let Some((name, value)) = trimmed.split_once(['=', ':']) else {
            return Err(call.fault(format!("line {}: `{trimmed}` is neither a section nor an option", nth + 1)));
        };
        options.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    let of = |options: &[(String, String)]| -> Vec<(Value, Value)> {
        options.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into())).collect()
    };
    let default: Vec<(Value, Value)> =
        sections.iter().filter(|(name, _)| name == "DEFAULT").flat_map(|(_, options)| of(options)).collect();
    let mut read: Map = Map::new();
    for (name, options) in sections.iter().filter(|(name, _)| name != "DEFAULT") {
        let mut entries: Map = default.iter().cloned().collect();
        entries.extend(of(options));
        read.insert(name.as_str(), entries);
    }
    if !default.is_empty() {
        read.insert("DEFAULT", Map::from_iter(default));
    }
    Ok(Live::Done(read.into()))
}

/// Writes a mapping of mappings as sections of options.
fn to_ini(call: &mut Call<'_>) -> Result<Live> {
    let value = call.value()?;
    let sections = value.as_map().filter(|sections| !sections.is_empty());
    let sections = sections.ok_or_else(|| call.fault("takes a mapping of sections that is not empty"))?;
    let mut written = Vec::new();
    for (name, options) in sections.iter() {
        let Value::Map(options) = options else {
            return Err(call.fault(format!("the section `{name}` must be a mapping, not {}", options.kind())));
        };
        let mut section = format!("[{name}]\n");
        for (option, value) in options.iter() {
            if *value == Value::Null {
                return Err(call.fault(format!("the option `{option}` of `{name}` has no value")));
            }
            section.push_str(&format!("{option} = {}\n", value.to_string().replace('\n', "\n\t")));
        }
        written.push(section);
    }
    Ok(written.join("\n").into())
}
