//! Tests: what stands behind `is`.

use super::call::{Call, Test, callable, find as find_callable};
use super::filters::choose::by_path;
use super::live::{Live, Result};
use super::{filters, operators, regex, versions};
use crate::value::Value;

const TABLES: &[&[Test]] = &[TESTS, STATES, PATHS, super::network_tests::TESTS];

pub(super) fn find(name: &str) -> Option<&'static Test> {
    find_callable(TABLES, name)
}

pub(super) fn names() -> Vec<&'static str> {
    TABLES.iter().copied().flatten().map(|test| test.name).collect()
}

/// What a value may be known to be: whether it may be rendered, and whether it is known where it was written.
const TAGS: &[&str] = &["Origin", "TrustedAsTemplate"];

const TESTS: &[Test] = &[
    callable("defined", &[], |call| Ok(!matches!(call.input, Live::Undefined(_)))).tolerant(),
    callable("undefined", &[], |call| Ok(matches!(call.input, Live::Undefined(_)))).tolerant(),
    callable("none", &[], |call| Ok(matches!(call.input, Live::Done(Value::Null)))),
    callable("boolean", &[], |call| Ok(matches!(call.input, Live::Done(Value::Bool(_))))),
    callable("true", &[], |call| Ok(matches!(call.input, Live::Done(Value::Bool(true))))),
    callable("false", &[], |call| Ok(matches!(call.input, Live::Done(Value::Bool(false))))),
    callable("integer", &[], |call| Ok(matches!(call.input, Live::Done(Value::Int(_))))),
    callable("float", &[], |call| Ok(matches!(call.input, Live::Done(Value::Float(_))))),
    callable("number", &[], |call| {
        Ok(matches!(call.input, Live::Done(Value::Int(_) | Value::Float(_) | Value::Bool(_))))
    }),
    callable("string", &[], |call| Ok(call.input.is_text())),
    callable("mapping", &[], |call| Ok(call.input.is_map())),
    callable("sequence", &[], |call| Ok(call.input.length().is_some())),
    callable("iterable", &[], |call| Ok(call.input.length().is_some())),
    callable("callable", &[], |call| Ok(matches!(call.input, Live::Function(_)))),
    callable("escaped", &[], |_| Ok(false)),
    callable("filter", &[], |call| Ok(filters::find(&call.text()?).is_some())),
    callable("test", &[], |call| Ok(find(&call.text()?).is_some())),
    callable("even", &[], |call| Ok(whole(call)? % 2 == 0)),
    callable("odd", &[], |call| Ok(whole(call)? % 2 != 0)),
    callable("divisibleby", &["num"], |call| match call.int_at(0)? {
        Some(0) | None => Err(call.fault("takes a number that is not zero")),
        Some(by) => Ok(whole(call)? % by == 0),
    }),
    callable("lower", &[], |call| {
        let text = call.text()?;
        Ok(text.chars().any(char::is_lowercase) && !text.chars().any(char::is_uppercase))
    }),
    callable("upper", &[], |call| {
        let text = call.text()?;
        Ok(text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase))
    }),
    callable("in", &["seq"], |call| operators::contains(&call.required(0)?, &call.input)),
    callable("contains", &["item"], |call| operators::contains(&call.input, &call.required(0)?)),
    callable("sameas", &["other"], |call| {
        let other = call.required(0)?;
        Ok(call.input.type_name() == other.type_name() && operators::equal(&call.input, &other)?)
    }),
    callable("eq", &["other"], equal),
    callable("equalto", &["other"], equal),
    callable("==", &["other"], equal),
    callable("ne", &["other"], |call| equal(call).map(|same| !same)),
    callable("!=", &["other"], |call| equal(call).map(|same| !same)),
    callable("lt", &["other"], |call| compare(call, super::ast::Compare::Less)),
    callable("lessthan", &["other"], |call| compare(call, super::ast::Compare::Less)),
    callable("<", &["other"], |call| compare(call, super::ast::Compare::Less)),
    callable("le", &["other"], |call| compare(call, super::ast::Compare::LessOrEqual)),
    callable("<=", &["other"], |call| compare(call, super::ast::Compare::LessOrEqual)),
    callable("gt", &["other"], |call| compare(call, super::ast::Compare::Greater)),
    callable("greaterthan", &["other"], |call| compare(call, super::ast::Compare::Greater)),
    callable(">", &["other"], |call| compare(call, super::ast::Compare::Greater)),
    callable("ge", &["other"], |call| compare(call, super::ast::Compare::GreaterOrEqual)),
    callable(">=", &["other"], |call| compare(call, super::ast::Compare::GreaterOrEqual)),
    callable("all", &[], |call| {
        for item in call.items()? {
            if !item.truthy()? {
                return Ok(false);
            }
        }
        Ok(true)
    }),
    callable("any", &[], |call| {
        for item in call.items()? {
            if item.truthy()? {
                return Ok(true);
            }
        }
        Ok(false)
    }),
    callable("truthy", &["convert_bool"], |call| truthy(call)),
    callable("falsy", &["convert_bool"], |call| truthy(call).map(|holds| !holds)),
    callable("subset", &["b"], |call| included(&call.input, &call.required(0)?)),
    callable("issubset", &["b"], |call| included(&call.input, &call.required(0)?)),
    callable("superset", &["b"], |call| included(&call.required(0)?, &call.input)),
    callable("issuperset", &["b"], |call| included(&call.required(0)?, &call.input)),
    callable("match", &["pattern", "ignorecase", "multiline"], |call| regex::test(call, "match")),
    callable("search", &["pattern", "ignorecase", "multiline"], |call| regex::test(call, "search")),
    callable("regex", &["pattern", "ignorecase", "multiline", "match_type"], |call| {
        let how = call.text_or(3, "search")?;
        regex::test(call, &how)
    }),
    callable("version", &["version", "operator", "strict", "version_type"], versions::test),
    callable("version_compare", &["version", "operator", "strict", "version_type"], versions::test),
    callable("nan", &[], |call| Ok(matches!(call.input, Live::Done(Value::Float(number)) if number.is_nan()))),
    callable("isnan", &[], |call| Ok(matches!(call.input, Live::Done(Value::Float(number)) if number.is_nan()))),
    callable("urn", &[], |call| Ok(call.text()?.to_ascii_lowercase().starts_with("urn:"))),
    callable("uri", &["schemes"], |call| uri(call, false)),
    callable("url", &["schemes"], |call| uri(call, true)),
    callable("ansible._protomatter.tagged", &[], |call| {
        Ok(call.input.is_tagged("TrustedAsTemplate") || call.input.is_tagged("Origin"))
    }),
    callable("ansible._protomatter.tagged_with", &["tag_name"], |call| {
        let tag = call.required(0)?.text()?;
        match TAGS.contains(&tag.as_str()) {
            true => Ok(call.input.is_tagged(&tag)),
            false => Err(call.fault(format!("no tag `{tag}`, there are {}", TAGS.join(" and ")))),
        }
    }),
    callable("community.general.ansible_type", &["dtype", "alias"], |call| {
        let alias = call.value_at(1)?;
        let revealed = filters::collections::general::revealed(&call.value()?, alias.as_ref());
        Ok(match call.required(0)?.force()? {
            Value::List(types) => types.contains(&Value::from(revealed)),
            other => other == Value::from(revealed),
        })
    }),
    callable("vault_encrypted", &[], |call| Ok(call.text()?.starts_with("$ANSIBLE_VAULT"))),
];

/// Tests of what a task returned.
const STATES: &[Test] = &[
    callable("failed", &[], |call| state(call, "failed", |result| flag(result, "failed"))),
    callable("failure", &[], |call| state(call, "failed", |result| flag(result, "failed"))),
    callable("succeeded", &[], |call| state(call, "failed", |result| flag(result, "failed").map(|failed| !failed))),
    callable("success", &[], |call| state(call, "failed", |result| flag(result, "failed").map(|failed| !failed))),
    callable("successful", &[], |call| state(call, "failed", |result| flag(result, "failed").map(|failed| !failed))),
    callable("changed", &[], |call| {
        state(call, "changed", |result| {
            if result.item(&Value::from("changed"))?.is_some() {
                return flag(result, "changed");
            }
            match result.item(&Value::from("results"))? {
                Some(results) if results.is_list() => {
                    for each in results.items()? {
                        if each.is_map() && flag(&each, "changed")? {
                            return Ok(true);
                        }
                    }
                    Ok(false)
                }
                _ => Ok(false),
            }
        })
    }),
    callable("change", &[], |call| state(call, "changed", |result| flag(result, "changed"))),
    callable("skipped", &[], |call| state(call, "skipped", |result| flag(result, "skipped"))),
    callable("skip", &[], |call| state(call, "skipped", |result| flag(result, "skipped"))),
    callable("unreachable", &[], |call| state(call, "unreachable", |result| flag(result, "unreachable"))),
    callable("reachable", &[], |call| {
        state(call, "unreachable", |result| flag(result, "unreachable").map(|unreachable| !unreachable))
    }),
    callable("timedout", &[], |call| {
        state(call, "timedout", |result| match result.item(&Value::from("timedout"))? {
            Some(timeout) if timeout.is_map() => flag(&timeout, "period"),
            _ => Ok(false),
        })
    }),
    // What never ran in the background has both begun and ended.
    callable("started", &[], |call| state(call, "started", |result| background(result, "started"))),
    callable("finished", &[], |call| state(call, "finished", |result| background(result, "finished"))),
];

/// Tests of files on this machine.
const PATHS: &[Test] = &[
    callable("exists", &[], |call| Ok(path(call)?.exists())),
    callable("path_exists", &[], |call| Ok(path(call)?.exists())),
    callable("file", &[], |call| Ok(path(call)?.is_file())),
    callable("is_file", &[], |call| Ok(path(call)?.is_file())),
    callable("directory", &[], |call| Ok(path(call)?.is_dir())),
    callable("is_dir", &[], |call| Ok(path(call)?.is_dir())),
    callable("link", &[], |call| Ok(path(call)?.is_symlink())),
    callable("is_link", &[], |call| Ok(path(call)?.is_symlink())),
    callable("link_exists", &[], |call| Ok(path(call)?.symlink_metadata().is_ok())),
    callable("abs", &[], |call| Ok(path(call)?.is_absolute())),
    callable("is_abs", &[], |call| Ok(path(call)?.is_absolute())),
    callable("same_file", &["b"], |call| {
        let (a, b) = (path(call)?, call.required(0)?.text()?);
        Ok(matches!((a.canonicalize(), std::path::Path::new(&b).canonicalize()), (Ok(a), Ok(b)) if a == b))
    }),
    callable("is_same_file", &["b"], |call| {
        let (a, b) = (path(call)?, call.required(0)?.text()?);
        Ok(matches!((a.canonicalize(), std::path::Path::new(&b).canonicalize()), (Ok(a), Ok(b)) if a == b))
    }),
    callable("mount", &[], mount),
    callable("is_mount", &[], mount),
    callable("vaulted_file", &[], |call| {
        let text = std::fs::read(path(call)?).map_err(|error| call.fault(error))?;
        Ok(text.starts_with(b"$ANSIBLE_VAULT"))
    }),
];

fn path(call: &Call<'_>) -> Result<std::path::PathBuf> {
    Ok(call.text()?.into())
}

fn mount(call: &mut Call<'_>) -> Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let path = path(call)?;
    let parent = path.join("..").metadata();
    Ok(match (path.symlink_metadata(), parent) {
        (Ok(own), Ok(parent)) => !own.is_symlink() && (own.dev() != parent.dev() || own.ino() == parent.ino()),
        _ => false,
    })
}

fn whole(call: &Call<'_>) -> Result<i64> {
    match call.value()? {
        Value::Int(number) => Ok(number),
        Value::Bool(flag) => Ok(i64::from(flag)),
        Value::Float(number) if number.fract() == 0.0 => Ok(number as i64),
        other => Err(call.fault(format!("takes an integer, not {}", other.kind()))),
    }
}

fn equal(call: &mut Call<'_>) -> Result<bool> {
    operators::equal(&call.input, &call.required(0)?)
}

fn compare(call: &mut Call<'_>, op: super::ast::Compare) -> Result<bool> {
    operators::compare(op, &call.input, &call.required(0)?)
}

fn truthy(call: &Call<'_>) -> Result<bool> {
    match (&call.input, call.bool_or(0, false)?) {
        (Live::Done(Value::Str(text)), true) => {
            let text = text.as_str().to_ascii_lowercase();
            Ok(match text.as_str() {
                "no" | "off" | "0" | "false" | "f" | "n" => false,
                text => !text.is_empty(),
            })
        }
        (input, _) => input.truthy(),
    }
}

fn included(inner: &Live, outer: &Live) -> Result<bool> {
    for item in inner.items()? {
        if !operators::contains(outer, &item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn uri(call: &Call<'_>, with_host: bool) -> Result<bool> {
    let text = call.text()?;
    let Some((scheme, rest)) = text.split_once(':') else { return Ok(false) };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
    let is_wanted = match call.given(0) {
        Some(schemes) => operators::contains(&schemes, &Live::from(scheme))?,
        None => true,
    };
    let host = rest.strip_prefix("//").map(|rest| rest.split(['/', '?', '#']).next().unwrap_or(""));
    Ok(is_scheme && is_wanted && !rest.is_empty() && (!with_host || host.is_some_and(|host| !host.is_empty())))
}

fn state(call: &Call<'_>, name: &str, holds: impl Fn(&Live) -> Result<bool>) -> Result<bool> {
    if !call.input.is_map() {
        let message = format!("takes what a task registered, not '{}'", call.input.type_name());
        return Err(call.fault(message).help(format!("register the task's result and write `result is {name}`")));
    }
    holds(&call.input)
}

fn flag(result: &Live, name: &str) -> Result<bool> {
    match by_path(result, name)? {
        Live::Undefined(_) => Ok(false),
        value => value.truthy(),
    }
}

fn background(result: &Live, name: &str) -> Result<bool> {
    match result.item(&Value::from(name))? {
        Some(_) => flag(result, name),
        None => Ok(true),
    }
}
