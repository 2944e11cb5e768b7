//! Reads a module's arguments by a table of their names and types: the same code for every module.

use serde::de::{self, DeserializeOwned};
use serde_json::Value;

use super::{DecodeError, Fault, Lenient};
use crate::host::Map;

/// A struct whose fields are arguments; `#[derive(Arguments)]` writes this.
pub trait Arguments: Sized {
    const ROWS: &'static [Row];
    /// Takes each field from what was given for it, or what it is without.
    fn take(given: &Given<'_>) -> Self;
}

/// One argument, or a block of arguments that several modules share.
pub enum Row {
    Argument(Argument),
    Block(&'static [Row]),
}

pub struct Argument {
    /// Its name, then the others that it goes by.
    names: &'static [&'static str],
    required: bool,
    check: fn(&Value) -> Result<(), Fault>,
}

impl Row {
    pub const fn of<T: DeserializeOwned>(names: &'static [&'static str], required: bool) -> Row {
        Row::Argument(Argument { names, required, check: check::<T> })
    }
}

impl Argument {
    fn name(&self) -> &'static str {
        self.names[0]
    }
}

/// What was given, under the arguments' own names; each value is one that its argument takes.
pub struct Given<'a>(Vec<(&'static str, &'a Value)>);

impl<'a> Given<'a> {
    /// Checks what was given in the order in which it is written, and what is missing last.
    fn of(args: &'a Map, rows: &'static [Row]) -> Result<Given<'a>, Fault> {
        let mut given = Given(Vec::with_capacity(args.len()));
        for (key, value) in args {
            let Some(argument) = argument(rows, key) else { return Err(unknown(key, rows)) };
            if given.get(argument.name()).is_some() {
                return Err(de::Error::duplicate_field(argument.name()));
            }
            (argument.check)(value).map_err(|fault| fault.below(key))?;
            given.0.push((argument.name(), value));
        }
        given.complete(rows)?;
        Ok(given)
    }

    fn complete(&self, rows: &'static [Row]) -> Result<(), Fault> {
        rows.iter().try_for_each(|row| match row {
            Row::Argument(argument) if argument.required && self.get(argument.name()).is_none() => {
                Err(de::Error::missing_field(argument.name()))
            }
            Row::Argument(_) => Ok(()),
            Row::Block(rows) => self.complete(rows),
        })
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
    }

    /// Returns an argument's value, or what `absent` returns where it is not given.
    #[inline(never)]
    pub fn or<T: DeserializeOwned>(&self, name: &str, absent: fn() -> T) -> T {
        match self.get(name) {
            Some(value) => read(value).expect("what was given is checked"),
            None => absent(),
        }
    }

    pub fn optional<T: DeserializeOwned + Default>(&self, name: &str) -> T {
        self.or(name, T::default)
    }

    pub fn required<T: DeserializeOwned>(&self, name: &str) -> T {
        self.or(name, || unreachable!("what is required is checked"))
    }
}

#[inline(never)]
fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Fault> {
    T::deserialize(Lenient(value))
}

fn check<T: DeserializeOwned>(value: &Value) -> Result<(), Fault> {
    read::<T>(value).map(drop)
}

/// Returns the argument of this name.
fn argument(rows: &'static [Row], key: &str) -> Option<&'static Argument> {
    rows.iter().find_map(|row| match row {
        Row::Argument(argument) => argument.names.contains(&key).then_some(argument),
        Row::Block(rows) => argument(rows, key),
    })
}

/// Adds all names: the module's own before those of its blocks, one argument's in the order of the alphabet.
fn add_names(rows: &[Row], names: &mut Vec<String>) {
    for row in rows {
        if let Row::Argument(argument) = row {
            let before = names.len();
            // The others are for the runner, which sends them along.
            let written = argument.names.iter().filter(|name| !name.starts_with('_'));
            names.extend(written.map(|name| format!("`{name}`")));
            names[before..].sort();
        }
    }
    for row in rows {
        if let Row::Block(rows) = row {
            add_names(rows, names);
        }
    }
}

/// Tells which names there are, each in backticks.
pub(super) fn expected(names: &[String]) -> String {
    match names {
        [] => "there are no fields".to_owned(),
        [name] => format!("expected {name}"),
        [one, other] => format!("expected {one} or {other}"),
        names => format!("expected one of {}", names.join(", ")),
    }
}

fn unknown(key: &str, rows: &[Row]) -> Fault {
    let mut names = Vec::new();
    add_names(rows, &mut names);
    Fault::new(format!("unknown field `{key}`, {}", expected(&names)), None).at_key(key)
}

/// Decodes a module's arguments.
///
/// # Errors
/// The first fault, with the path to it. A missing key is reported only when nothing else is wrong.
pub fn arguments<T: Arguments>(args: &Map) -> Result<T, DecodeError> {
    let given = Given::of(args, T::ROWS).map_err(|fault| *fault.0)?;
    Ok(T::take(&given))
}
