//! `list`: packages and repositories as facts.

use serde_json::Value;

use super::{Args, SLOW_S, as_strs};
use crate::ask::{failed, slow};
use crate::host::{Map, Put as _};
use crate::{Error, ErrorKind, Host};

/// Returns what `list` asks for.
pub(super) fn list(args: &Args, host: &dyn Host, program: &str, what: &str) -> Result<Vec<Value>, Error> {
    let options = args.options()?;
    let options = as_strs(&options);
    if program == "yum" {
        return Err(Error::new(ErrorKind::Refused, "`list` needs dnf: ask yum with `command`"));
    }
    let read = |words: &[&str]| -> Result<String, Error> {
        let argv = [&[program, "-q"], words, &options].concat();
        let output = slow(host, &argv, SLOW_S)?;
        if output.success() { Ok(output.stdout) } else { Err(failed(&argv, &output)) }
    };
    if matches!(what, "repos" | "repositories") {
        let text = read(&["repolist"])?;
        let names = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        let row = |name: &str| {
            let mut row = Map::new();
            row.put("repoid", name);
            row.put("state", "enabled");
            Value::from(row)
        };
        return Ok(names.map(row).collect());
    }
    let format = "--qf=%{name}|%{epoch}|%{version}|%{release}|%{arch}|%{repoid}\\n";
    let query = |words: &[&str]| read(&[&["repoquery", format], words].concat());
    let (text, installed) = match what {
        "installed" => (query(&["--installed"])?, true),
        "available" => (query(&["--available"])?, false),
        "updates" | "upgrades" => (query(&["--upgrades"])?, false),
        name => {
            let there = packages(&query(&["--installed", name])?, true);
            let all = packages(&query(&["--available", name])?, false);
            return Ok(there.into_iter().chain(all).collect());
        }
    };
    Ok(packages(&text, installed))
}

fn packages(text: &str, installed: bool) -> Vec<Value> {
    let mut found = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.trim().split('|').collect();
        let [name, epoch, version, release, arch, repo] = fields[..] else { continue };
        let epoch = if epoch == "(none)" { "0" } else { epoch };
        let mut row = Map::new();
        for (key, value) in
            [("name", name), ("epoch", epoch), ("version", version), ("release", release), ("arch", arch)]
        {
            row.put(key, value);
        }
        row.put("repo", if installed { "@System" } else { repo });
        row.put("nevra", format!("{name}-{epoch}:{version}-{release}.{arch}"));
        row.put("envra", format!("{epoch}:{name}-{version}-{release}.{arch}"));
        row.put("yumstate", if installed { "installed" } else { "available" });
        found.push(row.into());
    }
    found
}
