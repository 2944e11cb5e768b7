//! Filters of `ansible.utils` that look into data: `get_path`, `to_paths`, `index_of`, and compare it: `fact_diff`,
//! `param_list_compare`, `consolidate`.

use crate::template::call::{Arguments, Call, Filter, callable};
use crate::template::filters::data::nice_json;
use crate::template::live::{Live, Result};
use crate::template::undefined::Undefined;
use crate::template::{operators, tests};
use crate::value::{Map, Value};

pub(super) const FILTERS: &[Filter] = &[
    callable("ansible.utils.consolidate", CONSOLIDATE, consolidate),
    callable("ansible.utils.fact_diff", &["after"], fact_diff),
    callable("ansible.utils.get_path", &["path", "wantlist"], |call| {
        let path = call.required(0)?.text()?;
        let found = at_path(call, &path)?;
        Ok(if call.bool_or(1, false)? { vec![found].into() } else { found })
    }),
    callable("ansible.utils.index_of", &["test", "value", "key", "fail_on_missing", "wantlist"], index_of),
    callable("ansible.utils.param_list_compare", &["target"], param_list_compare),
    callable("ansible.utils.to_paths", &["prepend", "wantlist"], |call| {
        let mut paths = Map::new();
        flatten(&call.text_or(0, "")?, &call.value()?, &mut paths);
        let paths = Value::map(paths);
        Ok(Live::Done(if call.bool_or(1, false)? { Value::list(vec![paths]) } else { paths }))
    }),
];

/// Finds what a path such as `a.b[0]['c']` leads to.
fn at_path(call: &Call<'_>, path: &str) -> Result<Live> {
    let mut found = call.input.clone();
    let mut rest = path;
    while !rest.is_empty() {
        let step;
        (step, rest) = next_step(rest).ok_or_else(|| call.fault(format!("the path `{path}` can't be read")))?;
        let next = found.item(&step)?.or(match (&step, found.is_list()) {
            // `a.0` is the first item of a list too.
            (Value::Str(text), true) => match text.as_str().parse() {
                Ok(nth) => found.item(&Value::Int(nth))?,
                Err(_) => None,
            },
            _ => None,
        });
        let Some(next) = next else {
            let message = format!("object of type '{}' has no attribute {step:?}", found.type_name());
            let code = Some(call.evaluator.code.clone());
            return Err(Undefined { code, ..Undefined::new(step.to_string(), message) }.raise());
        };
        found = next.defined()?;
    }
    Ok(found)
}

/// Splits the next step off a path: a name, or a number or a quoted name in brackets.
fn next_step(path: &str) -> Option<(Value, &str)> {
    if let Some(inner) = path.strip_prefix('[') {
        let quote = inner.chars().next().filter(|c| ['\'', '"'].contains(c));
        let (step, rest) = match quote {
            Some(quote) => inner[1..].split_once(&format!("{quote}]")).map(|(name, rest)| (Value::from(name), rest))?,
            None => {
                let (number, rest) = inner.split_once(']')?;
                (Value::Int(number.trim().parse().ok()?), rest)
            }
        };
        return Some((step, rest.strip_prefix('.').unwrap_or(rest)));
    }
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let rest = &path[end..];
    (end > 0).then(|| (Value::from(&path[..end]), rest.strip_prefix('.').unwrap_or(rest)))
}

/// Lists every leaf under its path; an empty list or mapping is a leaf.
fn flatten(path: &str, value: &Value, paths: &mut Map) {
    match value {
        Value::Map(map) if !map.is_empty() => {
            for (key, value) in map.iter() {
                let name = key.to_string();
                let is_plain = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
                    && name.chars().all(|c| c.is_alphanumeric() || c == '_');
                let step = match (path.is_empty(), is_plain) {
                    (true, _) => name,
                    (false, true) => format!("{path}.{name}"),
                    (false, false) => format!("{path}['{name}']"),
                };
                flatten(&step, value, paths);
            }
        }
        Value::List(items) if !items.is_empty() => {
            for (nth, item) in items.iter().enumerate() {
                flatten(&format!("{path}[{nth}]"), item, paths);
            }
        }
        leaf => drop(paths.insert(path, leaf.clone())),
    }
}

/// Returns the places of the items for which a test holds: one number, or a list of several or none.
fn index_of(call: &mut Call<'_>) -> Result<Live> {
    let name = call.required(0)?.text()?;
    let Some(test) = tests::find(&name) else { return Err(call.fault(format!("no test named `{name}`"))) };
    let items = match call.input.is_list() {
        true => call.items()?,
        false => vec![call.input.clone()],
    };
    let arguments = Arguments { positional: call.get(1).into_iter().collect(), named: Vec::new() };
    let key = call.value_at(2)?.filter(|key| *key != Value::Null);
    let must_have = call.bool_or(3, false)?;
    let mut places = Vec::new();
    for (nth, item) in items.into_iter().enumerate() {
        let tested = match &key {
            None => item,
            Some(key) => match item.item(key)? {
                Some(found) => found,
                None if must_have => return Err(call.fault(format!("item {nth} has no `{key}`"))),
                None => continue,
            },
        };
        if Call::run(test, call.evaluator, tested, arguments.clone())? {
            places.push(Live::from(nth as i64));
        }
    }
    let wants_list = call.bool_or(4, false)?;
    Ok(match &places[..] {
        [only] if !wants_list => only.clone(),
        _ => places.into(),
    })
}

/// Returns the lines of a unified diff as Ansible's filter does: as the text of a list.
fn fact_diff(call: &mut Call<'_>) -> Result<Live> {
    let lines_of = |value: Value| {
        let text = match value {
            Value::Map(_) => nice_json(&value, 4) + "\n",
            Value::List(lines) => lines.iter().map(|line| format!("{line}\n")).collect(),
            Value::Str(text) => text.as_str().to_owned(),
            other => return Err(call.fault(format!("takes a mapping, a list or a string, not {}", other.kind()))),
        };
        Ok(text)
    };
    let (before, after) = (lines_of(call.value()?)?, lines_of(call.required(0)?.force()?)?);
    let diff = similar::TextDiff::from_lines(&before, &after);
    let diff = diff.unified_diff().header("before", "after").to_string();
    let lines = if diff.is_empty() { Vec::new() } else { diff.split('\n').map(Value::from).collect() };
    Ok(Value::list(lines).to_string().into())
}

/// Says which of the names wanted are known; `all` stands for all of them, and `!name` takes one out.
fn param_list_compare(call: &mut Call<'_>) -> Result<Live> {
    let names = |live: &Live| live.items()?.iter().map(Live::text).collect::<Result<Vec<String>>>();
    let (known, wanted) = (names(&call.input)?, names(&call.required(0)?)?);
    let is_out = |name: &String| wanted.iter().any(|wanted| wanted.strip_prefix('!') == Some(name));
    let wants_all = wanted.iter().any(|wanted| wanted == "all");
    let mut actionable: Vec<String> =
        known.iter().filter(|name| (wants_all || wanted.contains(name)) && !is_out(name)).cloned().collect();
    actionable.sort();
    let unsupported = wanted.iter().filter(|name| *name != "all" && !name.starts_with('!') && !known.contains(name));
    let mut answer = Map::new();
    answer.insert("actionable", Value::list(actionable.into_iter().map(Value::from).collect()));
    answer.insert("unsupported", Value::list(unsupported.map(|name| name.as_str().into()).collect()));
    Ok(Live::Done(answer.into()))
}

const CONSOLIDATE: &[&str] = &["fail_missing_match_key", "fail_missing_match_value", "fail_duplicate"];

/// Puts items of several sources together that have the same value under each source's key.
fn consolidate(call: &mut Call<'_>) -> Result<Live> {
    let [fail_key, fail_value, fail_duplicate] =
        [call.bool_or(0, true)?, call.bool_or(1, true)?, call.bool_or(2, true)?];
    let Value::List(sources) = call.value()? else {
        return Err(call.fault("takes a list of mappings with `data`, `match_key` and `name`"));
    };
    let mut named: Vec<(Value, Map)> = Vec::new();
    let mut values: Vec<Value> = Vec::new();
    for source in sources.iter() {
        let (Some(Value::List(data)), Some(key), Some(name)) =
            (source.get("data"), source.get("match_key"), source.get("name"))
        else {
            return Err(call.fault("each source must have `data` (a list), `match_key` and `name`"));
        };
        let mut found = Map::new();
        for item in data.iter() {
            let value = match item.as_map().and_then(|item| item.get_key(key)) {
                Some(value) => value,
                None if fail_key => return Err(call.fault(format!("an item of the source `{name}` has no `{key}`"))),
                None => continue,
            };
            if found.insert(value.clone(), item.clone()).is_some() && fail_duplicate {
                return Err(call.fault(format!("the source `{name}` has `{key}` {value:?} twice")));
            }
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        named.push((name.clone(), found));
    }
    operators::sort(&mut values).map_err(|message| call.fault(message))?;
    let mut together = Map::new();
    for value in values {
        let mut entries = Map::new();
        for (name, found) in &named {
            match found.get_key(&value) {
                Some(item) => drop(entries.insert(name.clone(), item.clone())),
                None if fail_value => return Err(call.fault(format!("the source `{name}` has no item {value:?}"))),
                None => drop(entries.insert(name.clone(), Map::new())),
            }
        }
        together.insert(value, entries);
    }
    Ok(Live::Done(together.into()))
}
