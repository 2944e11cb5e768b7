//! Filters that keep, take out and rename keys, of `ansible.utils` (however deep) and `community.general` (of each
//! mapping in a list).

use std::sync::Arc;

use fancy_regex::Regex;

use crate::template::call::{Call, Filter, callable};
use crate::template::live::{Live, Result};
use crate::template::regex::compiled;
use crate::value::{Map, Value};

const TAKES: &[&str] = &["target", "matching_parameter"];

pub(super) const FILTERS: &[Filter] = &[
    callable("ansible.utils.keep_keys", TAKES, |call| {
        let rules = targets(call)?;
        Ok(Live::Done(kept(&nested(call)?, &rules, true)))
    }),
    callable("ansible.utils.remove_keys", TAKES, |call| {
        let rules = targets(call)?;
        Ok(Live::Done(removed(&nested(call)?, &rules)))
    }),
    callable("ansible.utils.replace_keys", TAKES, |call| {
        let rules = replacements(call)?;
        Ok(Live::Done(replaced(&nested(call)?, &rules)))
    }),
    callable("community.general.keep_keys", TAKES, |call| {
        let rules = targets(call)?;
        each(call, |map| map.iter().filter(|(key, _)| matches(&rules, key)).map(cloned).collect())
    }),
    callable("community.general.remove_keys", TAKES, |call| {
        let rules = targets(call)?;
        each(call, |map| map.iter().filter(|(key, _)| !matches(&rules, key)).map(cloned).collect())
    }),
    callable("community.general.replace_keys", TAKES, |call| {
        let rules = replacements(call)?;
        each(call, |map| map.iter().map(|(key, value)| (renamed(&rules, key), value.clone())).collect())
    }),
];

/// How a key is recognised.
enum Rule {
    Equal(String),
    StartsWith(String),
    EndsWith(String),
    Regex(Arc<Regex>),
}

impl Rule {
    fn holds(&self, key: &Value) -> bool {
        let key = key.to_string();
        match self {
            Rule::Equal(wanted) => key == *wanted,
            Rule::StartsWith(start) => key.starts_with(start),
            Rule::EndsWith(end) => key.ends_with(end),
            // As Python's `re.match`: from the start.
            Rule::Regex(regex) => regex.find(&key).ok().flatten().is_some_and(|found| found.start() == 0),
        }
    }
}

fn matches(rules: &[Rule], key: &Value) -> bool {
    rules.iter().any(|rule| rule.holds(key))
}

fn cloned((key, value): (&Value, &Value)) -> (Value, Value) {
    (key.clone(), value.clone())
}

fn rule(call: &Call<'_>, text: &str) -> Result<Rule> {
    Ok(match call.text_or(1, "equality")?.as_str() {
        "equality" | "equal" => Rule::Equal(text.to_owned()),
        "starts_with" => Rule::StartsWith(text.to_owned()),
        "ends_with" => Rule::EndsWith(text.to_owned()),
        "regex" => Rule::Regex(compiled(call, text, false, false)?),
        other => {
            let error = call.fault(format!("no matching_parameter `{other}`"));
            return Err(error.help("one of equal, starts_with, ends_with, regex"));
        }
    })
}

fn target(call: &Call<'_>) -> Result<Vec<Value>> {
    let targets = match call.required(0)?.force()? {
        Value::List(items) => items.to_vec(),
        single => vec![single],
    };
    if targets.is_empty() {
        return Err(call.fault("`target` must not be empty"));
    }
    Ok(targets)
}

fn targets(call: &Call<'_>) -> Result<Vec<Rule>> {
    target(call)?.iter().map(|text| rule(call, &text.to_string())).collect()
}

fn replacements(call: &Call<'_>) -> Result<Vec<(Rule, Value)>> {
    let pairs = target(call)?.into_iter().map(|pair| match (pair.get("before"), pair.get("after")) {
        (Some(before), Some(after)) => Ok((rule(call, &before.to_string())?, after.clone())),
        _ => Err(call.fault("each of `target` must be a mapping with `before` and `after`")),
    });
    pairs.collect()
}

fn renamed(rules: &[(Rule, Value)], key: &Value) -> Value {
    let found = rules.iter().find(|(rule, _)| rule.holds(key));
    found.map_or_else(|| key.clone(), |(_, after)| after.clone())
}

/// Alters each mapping of a list.
fn each(call: &Call<'_>, alter: impl Fn(&Map) -> Map) -> Result<Live> {
    let Value::List(items) = call.value()? else {
        return Err(call.fault(format!("takes a list of mappings, not '{}'", call.input.type_name())));
    };
    let altered = items.iter().map(|item| match item {
        Value::Map(map) => Ok(Value::map(alter(map))),
        other => Err(call.fault(format!("takes a list of mappings, in which {other:?} is none"))),
    });
    Ok(Live::Done(Value::list(altered.collect::<Result<_>>()?)))
}

fn nested(call: &Call<'_>) -> Result<Value> {
    match call.value()? {
        value @ (Value::List(_) | Value::Map(_)) => Ok(value),
        other => Err(call.fault(format!("takes a mapping or a list of them, not {}", other.kind()))),
    }
}

/// Keeps entries under the keys, and what leads to them.
fn kept(value: &Value, rules: &[Rule], is_outermost: bool) -> Value {
    let is_something = |value: &Value| match value {
        Value::Map(map) => !map.is_empty(),
        Value::List(items) => !items.is_empty(),
        _ => false,
    };
    match value {
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| match matches(rules, key) {
                true => (key.clone(), Some(value.clone())),
                false => (key.clone(), Some(kept(value, rules, false)).filter(is_something)),
            });
            Value::map(entries.filter_map(|(key, value)| Some((key, value?))).collect())
        }
        Value::List(items) => {
            let items = items.iter().map(|item| kept(item, rules, false));
            Value::list(items.filter(|item| is_outermost || is_something(item)).collect())
        }
        _ => Value::Null,
    }
}

fn removed(value: &Value, rules: &[Rule]) -> Value {
    match value {
        Value::Map(map) => {
            let entries = map.iter().filter(|(key, _)| !matches(rules, key));
            Value::map(entries.map(|(key, value)| (key.clone(), removed(value, rules))).collect())
        }
        Value::List(items) => Value::list(items.iter().map(|item| removed(item, rules)).collect()),
        other => other.clone(),
    }
}

/// Renames keys; the renamed ones come behind the others.
fn replaced(value: &Value, rules: &[(Rule, Value)]) -> Value {
    match value {
        Value::Map(map) => {
            let is_renamed = |key: &Value| rules.iter().any(|(rule, _)| rule.holds(key));
            let (behind, before): (Vec<_>, Vec<_>) = map.iter().partition(|(key, _)| is_renamed(key));
            let entries = before.into_iter().chain(behind);
            Value::map(entries.map(|(key, value)| (renamed(rules, key), replaced(value, rules))).collect())
        }
        Value::List(items) => Value::list(items.iter().map(|item| replaced(item, rules)).collect()),
        other => other.clone(),
    }
}
