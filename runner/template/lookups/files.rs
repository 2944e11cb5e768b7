//! Lookups that read files and run commands on this machine.

use std::path::Path;
use std::process::Command;

use super::{find_file, folders, searched};
use crate::report::secrets;
use crate::template::about_file;
use crate::template::call::{Call, Lookup, callable};
use crate::template::files::FileOptions;
use crate::template::filters::paths::globbed;
use crate::template::live::{Live, Result};
use crate::value::Value;
use crate::vault;

pub(super) const LOOKUPS: &[Lookup] = &[
    callable("file", &["*", "lstrip", "rstrip"], file),
    callable("unvault", &["*"], |call| {
        terms(call)?.into_iter().map(|name| Ok(Live::from(read(call, "files", &name)?))).collect()
    }),
    callable("env", &["*", "default"], env),
    callable("fileglob", &["*"], fileglob),
    callable("first_found", &["*", "files", "paths", "skip"], first_found),
    callable("template", &["*", "template_vars", "convert_data", "**"], template),
    callable("pipe", &["*"], |call| run_each(call, false)),
    callable("lines", &["*"], |call| run_each(call, true)),
];

/// Reads a file that a lookup names, decrypted where it is vaulted.
pub(super) fn read(call: &Call<'_>, sort: &str, name: &str) -> Result<String> {
    let templar = &call.context().templar;
    let Some(path) = find_file(templar, sort, name) else {
        return Err(call.fault(format!("no file `{name}`")).help(searched(templar, sort)));
    };
    contents(call, &path)
}

/// Reads a file, decrypted where it is vaulted.
fn contents(call: &Call<'_>, path: &Path) -> Result<String> {
    let mut bytes = std::fs::read(path).map_err(|error| call.fault(format!("read `{}`: {error}", path.display())))?;
    if vault::is_vaulted(&bytes) {
        let plain = vault::current().decrypt(&String::from_utf8_lossy(&bytes));
        bytes = plain.map_err(|message| call.fault(format!("decrypt `{}`: {message}", path.display())))?;
        secrets::register(&String::from_utf8_lossy(&bytes));
    }
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
    Ok(found)
}

fn fileglob(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let templar = call.context().templar.clone();
    let mut found = Vec::new();
    for pattern in terms(call)? {
        let files = match pattern.starts_with(['/', '~']) {
            true => globbed(&pattern),
            false => {
                let folders = folders(&templar, "files").into_iter();
                let tried = folders.map(|folder| globbed(&folder.join(&pattern).to_string_lossy()));
                tried.into_iter().find(|files| !files.is_empty()).unwrap_or_default()
            }
        };
        found.extend(files.into_iter().map(Live::from));
    }
    Ok(found)
}

/// Names, which one text may hold several of.
fn split_names(value: &Live) -> Result<Vec<String>> {
    let texts = match value.is_list() {
        true => value.items()?.iter().map(Live::text).collect::<Result<Vec<_>>>()?,
        false => vec![value.text()?],
    };
    let split = texts.iter().flat_map(|text| text.split([',', ';', ':'])).map(str::trim);
    Ok(split.filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn first_found(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let mut wanted: Vec<String> = Vec::new();
    let mut skip = call.bool_or(2, false)?;
    let mut add = |files: Vec<String>, paths: Vec<String>| match paths.is_empty() {
        true => wanted.extend(files),
        false if files.is_empty() => wanted.extend(paths),
        false => wanted.extend(paths.iter().flat_map(|path| files.iter().map(move |file| format!("{path}/{file}")))),
    };
    let names = |value: Option<Live>| value.map_or_else(|| Ok(Vec::new()), |value| split_names(&value));
    add(names(call.given(0))?, names(call.given(1))?);
    let mut pending: std::collections::VecDeque<Live> = call.rest.clone().into();
    while let Some(term) = pending.pop_front() {
        if term.is_list() {
            term.items()?.into_iter().rev().for_each(|item| pending.push_front(item));
        } else if term.is_map() {
            let entry = |name: &str| term.item(&Value::from(name));
            add(names(entry("files")?)?, names(entry("paths")?)?);
            skip |= entry("skip")?.map_or(Ok(false), |skip| skip.truthy())?;
        } else {
            add(vec![term.text()?], Vec::new());
        }
    }
    let templar = &call.context().templar;
    for name in &wanted {
        for sort in ["files", "templates", "vars"] {
            if let Some(path) = find_file(templar, sort, name) {
                return Ok(vec![Live::from(path.to_string_lossy().into_owned())]);
            }
        }
    }
    match skip {
        true => Ok(Vec::new()),
        false => Err(call.fault(format!("none of {} is there", shown(&wanted))).help(searched(templar, "files"))),
    }
}

fn shown(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn template(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let mut templar = call.context().templar.clone();
    if let Some(extra) = call.given(0) {
        let entries = extra.entries().unwrap_or_else(|| Err(call.fault("`template_vars` is a mapping")))?;
        let extra = entries.into_iter().map(|(name, value)| Ok((name.to_string(), value.force()?)));
        templar = templar.with(extra.collect::<Result<Vec<_>>>()?);
    }
    let mut options = FileOptions { lstrip_blocks: false, ..FileOptions::default() };
    for (name, value) in call.named_arguments() {
        match &*name {
            "variable_start_string" => options.variable_start = value.text()?,
            "variable_end_string" => options.variable_end = value.text()?,
            "block_start_string" => options.block_start = value.text()?,
            "block_end_string" => options.block_end = value.text()?,
            "comment_start_string" => options.comment_start = value.text()?,
            "comment_end_string" => options.comment_end = value.text()?,
            "trim_blocks" => options.trim_blocks = value.truthy()?,
            "lstrip_blocks" => options.lstrip_blocks = value.truthy()?,
            "jinja2_native" => {}
            _ => return Err(call.fault(format!("no argument named `{name}`"))),
        }
    }
    let each = terms(call)?.into_iter().map(|name| {
        let Some(path) = find_file(&templar, "templates", &name) else {
            return Err(call.fault(format!("no template `{name}`")).help(searched(&templar, "templates")));
        };
        let text = contents(call, &path)?;
        templar.with(about_file(&templar, &name, &path)?).file(&text, &path, options.clone()).map(Live::from)
    });
    each.collect()
}
