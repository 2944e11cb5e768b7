//! INI inventories: hosts with variables, `[group]`, `[group:children]`, `[group:vars]`.

use super::{Inventory, UNGROUPED, range};
use crate::source::{Diagnostic, FileId, Place};
use crate::value::{Map, Str, Value};

enum Section {
    Hosts(String),
    Children(String),
    Vars(String),
}

/// Reads an INI inventory into `inventory`; mistakes are added to `problems`, with places in `file`.
pub(super) fn read(inventory: &mut Inventory, file: FileId, text: &str, problems: &mut Vec<Diagnostic>) {
    let mut section = Section::Hosts(UNGROUPED.to_owned());
    for (number, line) in text.lines().enumerate() {
        let indent = line.chars().take_while(|c| c.is_whitespace()).count();
        let place = file.at(number + 1, indent + 1);
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        let done = if trimmed.starts_with('[') {
            begin(inventory, trimmed, place).map(|begun| section = begun)
        } else {
            match &section {
                Section::Hosts(group) => hosts(inventory, group, trimmed, place),
                Section::Children(group) => child(inventory, group, trimmed, place),
                Section::Vars(group) => variable(inventory, group, trimmed, place),
            }
        };
        if let Err(problem) = done {
            problems.push(problem);
        }
    }
}

fn begin(inventory: &mut Inventory, line: &str, place: Place) -> Result<Section, Diagnostic> {
    let inner = without_comment(line);
    let Some(inner) = inner.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return Err(Diagnostic::error(place, format!("`{line}` is no section: expected `[group]`")));
    };
    let (name, kind) = inner.split_once(':').unwrap_or((inner, ""));
    let name = inventory.safe(name.trim());
    let section = match kind {
        "" => Section::Hosts(name.clone()),
        "children" => Section::Children(name.clone()),
        "vars" => Section::Vars(name.clone()),
        other => {
            let message = format!("`:{other}` is no kind of section: expected `:children` or `:vars`");
            return Err(Diagnostic::error(place.right(1 + name.chars().count()), message));
        }
    };
    inventory.group(&name);
    Ok(section)
}

/// Cuts a comment off, outside quotes: ` # …`.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut blank = false;
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '#' && blank => return line[..at].trim_end(),
            None => {}
        }
        blank = c.is_whitespace();
    }
    line
}

fn hosts(inventory: &mut Inventory, group: &str, line: &str, place: Place) -> Result<(), Diagnostic> {
    let line = without_comment(line);
    let words = shell_words::split(line).map_err(|_| Diagnostic::error(place, "a quote is not closed on this line"))?;
    let Some((pattern, pairs)) = words.split_first() else { return Ok(()) };
    let (pattern, port) = host_and_port(pattern);
    let names = range::expand(pattern).map_err(|message| Diagnostic::error(place, message))?;
    let mut vars = Map::new();
    if let Some(port) = port {
        vars.insert("ansible_port", Value::Int(port));
    }
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=') else {
            let message = format!("`{pair}` is not of the form `key=value`");
            return Err(Diagnostic::error(word_place(line, pair, place), message)
                .help("one host a line, its variables behind it as `key=value`"));
        };
        vars.insert(key, literal(value, word_place(line, pair, place).right(key.chars().count() + 1)));
    }
    for name in names {
        inventory.put(&name, group, place);
        for (key, value) in &vars {
            inventory.set_host_var(&name, key.clone(), value.clone(), place);
        }
    }
    Ok(())
}

fn word_place(line: &str, word: &str, place: Place) -> Place {
    line.find(word).map_or(place, |at| place.right(line[..at].chars().count()))
}

/// Splits `host:22`; an IPv6 address keeps its colons unless it stands in brackets.
pub(super) fn host_and_port(word: &str) -> (&str, Option<i64>) {
    if let Some((address, port)) = word.strip_prefix('[').and_then(|rest| rest.split_once("]:"))
        && address.matches(':').count() > 2
    {
        return (address, port.parse().ok());
    }
    match word.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.contains('[') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (word, None),
        },
        Some(_) | None => (word, None),
    }
}

fn child(inventory: &mut Inventory, group: &str, line: &str, place: Place) -> Result<(), Diagnostic> {
    let name = without_comment(line);
    if name.contains(char::is_whitespace) || name.contains('=') {
        let message = format!("`{name}` is no group: a section of children names one group a line");
        return Err(Diagnostic::error(place, message));
    }
    let name = inventory.safe(name);
    inventory.nest(group, &name).map_err(|message| Diagnostic::error(place, message))
}

fn variable(inventory: &mut Inventory, group: &str, line: &str, place: Place) -> Result<(), Diagnostic> {
    let Some((key, value)) = line.split_once('=') else {
        return Err(Diagnostic::error(place, format!("`{line}` is not of the form `key=value`")));
    };
    let value_place = place.right(key.chars().count() + 1);
    let value = literal(without_comment(value.trim()), value_place);
    inventory.set_group_var(group, key.trim().into(), value);
    Ok(())
}

/// Reads a value as a Python literal where it is one, as Ansible does; anything else is text.
pub(super) fn literal(text: &str, place: Place) -> Value {
    match crate::literal::parse(text) {
        Some(value) => placed(value, place),
        None => Value::Str(Str::template(text, place)),
    }
}

/// Texts of an inventory may be templates.
fn placed(value: Value, place: Place) -> Value {
    match value {
        Value::Str(text) => Value::Str(Str::template(text.as_str(), place)),
        other => other,
    }
}
