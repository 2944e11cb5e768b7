//! Lookups of variables and of the inventory's hosts.

use std::sync::Arc;

use super::files::terms;
use crate::config;
use crate::source::nearest;
use crate::template::call::{Call, Lookup, callable};
use crate::template::filters::paths::matches;
use crate::template::live::{Live, Result, settled};
use crate::template::regex;
use crate::template::undefined::Undefined;
use crate::value::Value;

pub(super) const LOOKUPS: &[Lookup] = &[
    callable("vars", &["*", "default"], vars).tolerant(),
    callable("varnames", &["*"], varnames),
    callable("inventory_hostnames", &["*"], inventory_hostnames),
    callable("config", &["*", "on_missing", "show_origin", "plugin_type", "plugin_name"], config),
];

/// What settings are: those of the configuration file and the environment that this program follows.
fn config(call: &mut Call<'_>) -> Result<Vec<Live>> {
    if call.given(2).is_some() || call.given(3).is_some() {
        return Err(call.fault("plugins have no settings of their own here").help("name a setting of the program"));
    }
    let on_missing = call.text_or(0, "error")?;
    let with_origin = call.bool_or(1, false)?;
    let mut found = Vec::new();
    for name in terms(call)? {
        let Some(setting) = config::setting(&name) else {
            match on_missing.as_str() {
                "skip" | "warn" => continue,
                "error" => {}
                other => {
                    return Err(call.fault(format!("`on_missing` is `error`, `warn` or `skip`, not `{other}`")));
                }
            }
            let error = call.fault(format!("Unable to find setting {name}"));
            return Err(match nearest(&name, config::SETTINGS.iter().map(|setting| setting.name)) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help("docs/compatibility.md lists the settings that are followed"),
            });
        };
        let (config, value) = (config::current(), config::current().value(setting));
        found.push(match with_origin {
            false => Live::Done(value),
            true => Live::from(vec![Live::Done(value), Live::from(config.origin_of(setting))]),
        });
    }
    Ok(found)
}

fn vars(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let default = call.get(0);
    let context = call.context().clone();
    let each = terms(call)?.into_iter().map(|name| match context.templar.inner.variables.get(&name) {
        Some(value) => settled(&value, &context),
        None => match &default {
            Some(default) => Ok(default.clone()),
            None => Ok(Undefined {
                code: Some(call.evaluator.code.clone()),
                known: Some(context.clone()),
                ..Undefined::new(name.clone(), format!("'{name}' is undefined"))
            }
            .into()),
        },
    });
    each.collect()
}

fn varnames(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let names = call.context().templar.inner.variables.names();
    let mut found = Vec::new();
    for pattern in terms(call)? {
        let regex = regex::compiled(call, &pattern, false, false)?;
        found.extend(
            names
                .iter()
                .filter(|name| regex.is_match(name.as_ref() as &str).unwrap_or(false))
                .map(|name| Live::from(&**name)),
        );
    }
    Ok(found)
}

fn inventory_hostnames(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let context = call.context().clone();
    let groups = match context.templar.inner.variables.get("groups") {
        Some(groups) => settled(&groups, &context)?,
        None => return Err(call.fault("there is no inventory here")),
    };
    let mut names: Vec<(String, Vec<String>)> = Vec::new();
    for (group, hosts) in groups.entries().unwrap_or_else(|| Ok(Vec::new()))? {
        names.push((group.to_string(), hosts.items()?.iter().map(Live::text).collect::<Result<_>>()?));
    }
    let mut all: Vec<String> = Vec::new();
    for host in names.iter().flat_map(|(_, hosts)| hosts) {
        if !all.contains(host) {
            all.push(host.clone());
        }
    }
    let of = |pattern: &str| -> Vec<String> {
        let marks: Vec<char> = pattern.chars().collect();
        if matches!(pattern, "all" | "*") {
            return all.clone();
        }
        let groups = names.iter().filter(|(group, _)| matches(&marks, group)).flat_map(|(_, hosts)| hosts);
        let wanted: Vec<&String> = groups.chain(all.iter().filter(|host| matches(&marks, host))).collect();
        all.iter().filter(|host| wanted.contains(host)).cloned().collect()
    };
    let patterns = terms(call)?;
    let mut patterns: Vec<&str> = patterns
        .iter()
        .flat_map(|pattern| pattern.split([',', ':']))
        .map(str::trim)
        .filter(|p| !p.is_empty())
        .collect();
    // What is left out or kept only applies to all that was named.
    patterns.sort_by_key(|pattern| match pattern.chars().next() {
        Some('&') => 1,
        Some('!') => 2,
        _ => 0,
    });
    let mut chosen: Vec<String> = Vec::new();
    for pattern in patterns {
        if let Some(pattern) = pattern.strip_prefix('!') {
            let gone = of(pattern);
            chosen.retain(|host| !gone.contains(host));
        } else if let Some(pattern) = pattern.strip_prefix('&') {
            let kept = of(pattern);
            chosen.retain(|host| kept.contains(host));
        } else {
            for host in of(pattern) {
                if !chosen.contains(&host) {
                    chosen.push(host);
                }
            }
        }
    }
    Ok(chosen.into_iter().map(|host| Live::Done(Value::str(Arc::<str>::from(host)))).collect())
}
