//! The kernel and the platform: its names, its command line, its load.

use serde_json::{Value, json};

use super::identity::Names;
use super::uname::{machine, uname};
use super::{Files, map};
use crate::host::Map;
use crate::host::Put as _;

pub(super) fn facts(files: Files<'_>, names: &Names) -> Map {
    let machine = machine();
    let kernel = |file: &str| files.text(&format!("/proc/sys/kernel/{file}"));
    let bits = user_bits(files);
    let intel32 = machine.len() == 4 && machine.starts_with('i') && machine.ends_with("86");
    let mut facts = map([
        ("system", kernel("ostype").unwrap_or_else(|| uname(|name| &name.sysname)).into()),
        ("kernel", kernel("osrelease").unwrap_or_else(|| uname(|name| &name.release)).into()),
        ("kernel_version", kernel("version").unwrap_or_else(|| uname(|name| &name.version)).into()),
        ("hostname", names.node.split('.').next().unwrap_or_default().into()),
        ("nodename", names.node.as_str().into()),
        ("architecture", if intel32 { "i386".into() } else { machine.as_str().into() }),
        ("userspace_bits", bits.into()),
    ]);
    if machine == "x86_64" || intel32 {
        facts.put("userspace_architecture", if bits == "64" { "x86_64" } else { "i386" });
    }
    facts.put("machine", machine);
    if let Some(id) = files.text("/var/lib/dbus/machine-id").or_else(|| files.text("/etc/machine-id")) {
        facts.put("machine_id", id.lines().next().unwrap_or_default());
    }
    facts
}

/// Returns the width of the programs there, which under a 64-bit kernel may be 32: the class of the shell's ELF file.
fn user_bits(files: Files<'_>) -> &'static str {
    let class = files.0.read("/bin/sh").ok().flatten().and_then(|bytes| bytes.get(4).copied());
    match class {
        Some(1) => "32",
        Some(2) => "64",
        Some(_) | None if cfg!(target_pointer_width = "64") => "64",
        Some(_) | None => "32",
    }
}

/// Returns the kernel's arguments: as a mapping where the last of a name wins, and as one where all of it are kept.
pub(super) fn command_line(files: Files<'_>) -> Map {
    let Some(line) = files.text("/proc/cmdline") else { return Map::new() };
    let (mut last, mut all) = (Map::new(), Map::new());
    for word in words(&line) {
        let Some((name, value)) = word.split_once('=') else {
            last.insert(word.to_owned(), true.into());
            all.insert(word.to_owned(), true.into());
            continue;
        };
        last.insert(name.to_owned(), value.into());
        let value = Value::from(value);
        match all.get_mut(name) {
            None => drop(all.insert(name.to_owned(), value)),
            Some(Value::Array(values)) => values.push(value),
            Some(old) => *old = json!([old.take(), value]),
        }
    }
    map([("cmdline", last.into()), ("proc_cmdline", all.into())])
}

/// Splits at blanks outside of quotes, which stay where they are.
fn words(line: &str) -> Vec<&str> {
    let mut quote = None;
    line.split(|letter: char| {
        match quote {
            Some(open) if letter == open => quote = None,
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            Some(_) | None => {}
        }
        quote.is_none() && letter.is_whitespace()
    })
    .filter(|word| !word.is_empty())
    .collect()
}

pub(super) fn load(files: Files<'_>) -> Map {
    let Some(text) = files.text("/proc/loadavg") else { return Map::new() };
    let numbers: Vec<f64> = text.split_whitespace().take(3).filter_map(|word| word.parse().ok()).collect();
    match numbers.as_slice() {
        [one, five, fifteen] => map([("loadavg", json!({"1m": one, "5m": five, "15m": fifteen}))]),
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_a_kernel_argument_together() {
        assert_eq!(words("ro  dyndbg=\"file a +p\" quiet"), ["ro", "dyndbg=\"file a +p\"", "quiet"]);
    }
}
