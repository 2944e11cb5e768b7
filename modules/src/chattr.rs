//! The flags that `chattr` sets on files: what a task wants, and the changes that make it so.

use std::collections::BTreeSet;

use crate::order::gathered;
use crate::{Change, Error, ErrorKind, Exec, Host, Probe};

/// Flags that a file system sets by itself, and that no `=` is meant to take away.
///
/// Source: `chattr(1)`, where they are said to be read-only or not to be set with it.
const INTRINSIC: &str = "eEhINVBZX";

/// Adds what must change of the flags at `path`: `+i` adds, `-i` takes away, `=i` or `i` leaves no others. What is taken
/// away comes before all other changes, since an immutable file can't be changed.
///
/// # Errors
/// [`ErrorKind::Arguments`] for what is no flag, [`ErrorKind::Host`] when the file system has no flags.
pub(crate) fn changes(host: &dyn Host, path: &str, wanted: &str, changes: &mut Vec<Change>) -> Result<(), Error> {
    let (how, letters) = match wanted.split_at_checked(1) {
        Some((how @ ("+" | "-" | "="), letters)) => (how, letters),
        _ => ("=", wanted),
    };
    if letters.is_empty() || !letters.bytes().all(|letter| letter.is_ascii_alphabetic()) {
        return Err(Error::new(
            ErrorKind::Arguments,
            format!("`attributes` is made of the letters of `chattr`, such as `+i` or `-i`, not `{wanted}`"),
        ));
    }
    let output = host.probe(&Probe::of(&["lsattr", "-d", path]))?;
    if !output.success() {
        return Err(Error::new(ErrorKind::Host, format!("read the flags of `{path}`: {}", output.stderr.trim())));
    }
    let found = output.stdout.split_whitespace().next().unwrap_or_default();
    let found: BTreeSet<char> = gathered(found.chars().filter(|letter| *letter != '-'));
    let wanted: BTreeSet<char> = gathered(letters.chars());
    let text = |letters: &mut dyn Iterator<Item = char>| letters.collect::<String>();
    let added = match how {
        "-" => String::new(),
        _ => text(&mut wanted.difference(&found).copied()),
    };
    let removed = match how {
        "+" => String::new(),
        "-" => text(&mut wanted.intersection(&found).copied()),
        _ => text(&mut found.difference(&wanted).copied().filter(|letter| !INTRINSIC.contains(*letter))),
    };
    let chattr = |sign: &str, letters: &str| Change::Exec(Exec::of(&["chattr", &format!("{sign}{letters}"), path]));
    if !removed.is_empty() {
        changes.insert(0, chattr("-", &removed));
    }
    if !added.is_empty() {
        changes.push(chattr("+", &added));
    }
    Ok(())
}
