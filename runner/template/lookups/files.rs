//! Lookups that read files and run commands on this machine.

use std::process::Command;

use super::{expanded_home, find_file, folders, searched};
use crate::template::call::{Call, Lookup, callable};
use crate::template::live::{Live, Result};

pub(super) const LOOKUPS: &[Lookup] = &[
    callable("file", &["*", "lstrip", "rstrip"], file),
    callable("env", &["*", "default"], env),
    callable("pipe", &["*"], |call| run_each(call, false)),
    callable("lines", &["*"], |call| run_each(call, true)),
];

/// Reads a file that a lookup names.
pub(super) fn read(call: &Call<'_>, sort: &str, name: &str) -> Result<String> {
    let templar = &call.context().templar;
    let Some(path) = find_file(templar, sort, name) else {
        return Err(call.fault(format!("no file `{name}`")).help(searched(templar, sort)));
    };
    let bytes = std::fs::read(&path).map_err(|error| call.fault(format!("read `{}`: {error}", path.display())))?;
    String::from_utf8(bytes).map_err(|_| call.fault(format!("`{}` is not UTF-8", path.display())))
}

pub(super) fn terms(call: &Call<'_>) -> Result<Vec<String>> {
    call.rest.iter().map(Live::text).collect()
}

fn file(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let (left, right) = (call.bool_or(0, false)?, call.bool_or(1, true)?);
    let each = terms(call)?.into_iter().map(|name| {
        let text = read(call, "files", &name)?;
        let text = if left { text.trim_start() } else { &text };
        Ok(Live::from(if right { text.trim_end() } else { text }))
    });
    each.collect()
}

fn env(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let default = call.get(0);
    let each = terms(call)?.into_iter().map(|name| match std::env::var_os(&name) {
        Some(value) => Live::from(value.to_string_lossy().into_owned()),
        None => default.clone().unwrap_or_else(|| Live::from("")),
    });
    Ok(each.collect())
}

fn run_each(call: &mut Call<'_>, in_lines: bool) -> Result<Vec<Live>> {
    let mut found = Vec::new();
    for command in terms(call)? {
        let folder = &call.context().templar.inner.folders.playbook;
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(&command);
        if folder.is_dir() {
            shell.current_dir(folder);
        }
        let output = shell.output().map_err(|error| call.fault(format!("run `{command}`: {error}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(call.fault(format!("`{command}`: {}: {said}", output.status)));
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match in_lines {
            true => found.extend(text.lines().map(Live::from)),
            false => found.push(text.trim_end().into()),
        }
    }
    let _ = (expanded_home, folders);
    Ok(found)
}
