//! Filters of lists.

use super::choose::by_attribute;
use crate::template::call::{Call, Filter, callable};
use crate::template::live::{Live, Result};
use crate::template::undefined::Undefined;
use crate::template::{operators, sorting};
use crate::value::Value;

/// How many items `product` and its like may give.
const ITEMS_LIMIT: usize = 1_000_000;

pub(super) const FILTERS: &[Filter] = &[
    callable("list", &[], |call| Ok(call.items()?.into())),
    callable("first", &[], |call| edge(call, |items| items.into_iter().next(), "first")),
    callable("last", &[], |call| edge(call, |items| items.into_iter().next_back(), "last")),
    callable("length", &[], length),
    callable("count", &[], length),
    callable("join", &["d", "attribute"], join),
    callable("sort", &["reverse", "case_sensitive", "attribute"], sort),
    callable("unique", &["case_sensitive", "attribute"], unique),
    callable("union", &["b"], |call| set_operation(call, together)),
    callable("intersect", &["b"], |call| set_operation(call, |a, b| keep(a, |value| has(b, value)))),
    callable("difference", &["b"], |call| set_operation(call, |a, b| keep(a, |value| !has(b, value)))),
    callable("symmetric_difference", &["b"], |call| {
        set_operation(call, |a, b| {
            let mut left = keep(a, |value| !has(b, value));
            left.extend(keep(b, |value| !has(a, value)));
            left
        })
    }),
    callable("flatten", &["levels", "skip_nulls"], flatten),
    callable("batch", &["linecount", "fill_with"], batch),
    callable("slice", &["slices", "fill_with"], slice),
    callable("zip", &["*"], |call| zip(call, false)),
    callable("zip_longest", &["*", "**"], |call| zip(call, true)),
    callable("product", &["*", "**"], product),
    callable("permutations", &["r"], |call| arrangements(call, true)),
    callable("combinations", &["r"], |call| arrangements(call, false)),
    callable("groupby", &["attribute", "default", "case_sensitive"], groupby),
    callable("extract", &["container", "morekeys"], extract),
    callable("subelements", &["subelements", "skip_missing"], subelements),
];

fn edge(call: &mut Call<'_>, pick: fn(Vec<Live>) -> Option<Live>, which: &str) -> Result<Live> {
    let found = pick(call.items()?);
    Ok(found.unwrap_or_else(|| {
        let code = Some(call.evaluator.code.clone());
        Undefined { code, ..Undefined::new(which, format!("no {which} item, the sequence is empty")) }.into()
    }))
}

fn length(call: &mut Call<'_>) -> Result<Live> {
    let length = call.input.length();
    let length =
        length.ok_or_else(|| call.fault(format!("object of type '{}' has no length", call.input.type_name())))?;
    Ok((length as i64).into())
}

fn join(call: &mut Call<'_>) -> Result<Live> {
    let separator = call.text_or(0, "")?;
    let attribute = call.value_at(1)?;
    let texts = call.items()?.into_iter().map(|item| match &attribute {
        Some(attribute) => by_attribute(&item, attribute)?.text(),
        None => item.text(),
    });
    Ok(texts.collect::<Result<Vec<_>>>()?.join(&separator).into())
}

/// Returns a value as Jinja compares it: texts without their case, unless told otherwise.
fn comparable(value: Value, case_sensitive: bool) -> Value {
    match value {
        Value::Str(text) if !case_sensitive => Value::from(text.as_str().to_lowercase()),
        other => other,
    }
}

/// Sorts items by keys, stably.
fn sorted_by<T>(call: &Call<'_>, keyed: Vec<(Value, T)>) -> Result<Vec<(Value, T)>> {
    sorting::sorted(keyed, |(a, _), (b, _)| operators::less(a, b)).map_err(|message| call.fault(message))
}

fn sort(call: &mut Call<'_>) -> Result<Live> {
    let (reverse, case_sensitive) = (call.bool_or(0, false)?, call.bool_or(1, false)?);
    let attributes: Vec<Value> = match call.value_at(2)? {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Str(names)) => names.as_str().split(',').map(|name| Value::from(name.trim())).collect(),
        Some(other) => vec![other],
    };
    let keyed = call.items()?.into_iter().map(|item| {
        let key = match &attributes[..] {
            [] => comparable(item.force()?, case_sensitive),
            attributes => {
                let keys = attributes
                    .iter()
                    .map(|attribute| Ok(comparable(by_attribute(&item, attribute)?.force()?, case_sensitive)));
                Value::list(keys.collect::<Result<_>>()?)
            }
        };
        Ok((key, item))
    });
    let mut keyed = keyed.collect::<Result<Vec<_>>>()?;
    if reverse {
        keyed.reverse();
    }
    let mut keyed = sorted_by(call, keyed)?;
    if reverse {
        keyed.reverse();
    }
    Ok(keyed.into_iter().map(|(_, item)| item).collect::<Vec<_>>().into())
}

fn unique(call: &mut Call<'_>) -> Result<Live> {
    let case_sensitive = call.bool_or(0, false)?;
    let attribute = call.value_at(1)?.filter(|attribute| *attribute != Value::Null);
    let mut seen = std::collections::HashSet::new();
    let mut kept = Vec::new();
    for item in call.items()? {
        let key = match &attribute {
            Some(attribute) => by_attribute(&item, attribute)?.force()?,
            None => item.force()?,
        };
        if seen.insert(comparable(key, case_sensitive)) {
            kept.push(item);
        }
    }
    Ok(kept.into())
}

pub(super) fn has(values: &[Value], wanted: &Value) -> bool {
    values.iter().any(|value| operators::same(value, wanted))
}

/// Returns the values that are to stay, each once.
pub(super) fn keep(values: &[Value], stays: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut seen = std::collections::HashSet::new();
    values.iter().filter(|value| stays(value) && seen.insert((*value).clone())).cloned().collect()
}

fn together(a: &[Value], b: &[Value]) -> Vec<Value> {
    keep(&[a, b].concat(), |_| true)
}

fn set_operation(call: &mut Call<'_>, operation: fn(&[Value], &[Value]) -> Vec<Value>) -> Result<Live> {
    let values = |live: &Live| live.items()?.iter().map(Live::force).collect::<Result<Vec<_>>>();
    let (a, b) = (values(&call.input)?, values(&call.required(0)?)?);
    Ok(Live::Done(Value::list(operation(&a, &b))))
}

fn flatten(call: &mut Call<'_>) -> Result<Live> {
    let levels = call.int_at(0)?;
    let skip_nulls = call.bool_or(1, true)?;
    fn level(items: Vec<Live>, left: Option<i64>, skip_nulls: bool, out: &mut Vec<Live>) -> Result<()> {
        for item in items {
            match &item {
                Live::Done(Value::Null) if skip_nulls => {}
                Live::Done(Value::Str(text)) if skip_nulls && matches!(text.as_str(), "None" | "null") => {}
                list if list.is_list() && left != Some(0) => {
                    level(list.items()?, left.map(|left| left - 1), skip_nulls, out)?;
                }
                _ => out.push(item),
            }
        }
        Ok(())
    }
    let mut out = Vec::new();
    level(call.items()?, levels, skip_nulls, &mut out)?;
    Ok(out.into())
}

fn batch(call: &mut Call<'_>) -> Result<Live> {
    let size =
        call.int_at(0)?.and_then(|size| usize::try_from(size).ok()).filter(|size| (1..=ITEMS_LIMIT).contains(size));
    let size = size.ok_or_else(|| call.fault("`linecount` must be at least 1"))?;
    let fill = call.given(1);
    let items = call.items()?;
    let batches = items.chunks(size).map(|chunk| {
        let mut chunk = chunk.to_vec();
        if let Some(fill) = &fill {
            chunk.resize_with(size, || fill.clone());
        }
        Live::from(chunk)
    });
    Ok(batches.collect::<Vec<_>>().into())
}

fn slice(call: &mut Call<'_>) -> Result<Live> {
    let count =
        call.int_at(0)?.and_then(|count| usize::try_from(count).ok()).filter(|count| (1..=ITEMS_LIMIT).contains(count));
    let count = count.ok_or_else(|| call.fault("`slices` must be at least 1"))?;
    let fill = call.given(1);
    let items = call.items()?;
    let (each, more) = (items.len() / count, items.len() % count);
    let mut items = items.into_iter();
    let slices = (0..count).map(|nth| {
        let mut chosen: Vec<Live> = items.by_ref().take(each + usize::from(nth < more)).collect();
        if let Some(fill) = &fill
            && nth >= more
        {
            chosen.push(fill.clone());
        }
        Live::from(chosen)
    });
    Ok(slices.collect::<Vec<_>>().into())
}

fn zip(call: &mut Call<'_>, longest: bool) -> Result<Live> {
    let mut fill = Live::NULL;
    for (name, value) in call.named_arguments() {
        match &*name {
            "fillvalue" => fill = value,
            _ => return Err(call.fault(format!("no argument named `{name}`"))),
        }
    }
    let mut lists = vec![call.items()?];
    for list in &call.rest {
        lists.push(list.items()?);
    }
    let lengths = lists.iter().map(Vec::len);
    let rows = if longest { lengths.max() } else { lengths.min() }.unwrap_or(0);
    let row = |nth: usize| Live::tuple(lists.iter().map(|list| list.get(nth).cloned().unwrap_or_else(|| fill.clone())));
    Ok((0..rows).map(row).collect::<Vec<Live>>().into())
}

fn product(call: &mut Call<'_>) -> Result<Live> {
    let mut repeat = 1;
    for (name, value) in call.named_arguments() {
        match (&*name, value.force()?) {
            ("repeat", Value::Int(times @ 0..=20)) => repeat = times,
            _ => return Err(call.fault(format!("`{name}` can't be this"))),
        }
    }
    let mut lists = vec![call.items()?];
    for list in &call.rest {
        lists.push(list.items()?);
    }
    let mut rows: Vec<Vec<Live>> = vec![Vec::new()];
    for _ in 0..repeat {
        for list in &lists {
            if rows.len().saturating_mul(list.len()) > ITEMS_LIMIT {
                return Err(call.fault(format!("more than {ITEMS_LIMIT} items")));
            }
            rows = rows
                .iter()
                .flat_map(|row| list.iter().map(|item| [&row[..], std::slice::from_ref(item)].concat()))
                .collect();
        }
    }
    Ok(rows.into_iter().map(Live::tuple).collect::<Vec<_>>().into())
}

fn arrangements(call: &mut Call<'_>, in_any_order: bool) -> Result<Live> {
    let items = call.items()?;
    let count = call.int_at(0)?;
    let count = match (count, in_any_order) {
        (Some(count), _) => usize::try_from(count).map_err(|_| call.fault("`r` must not be negative"))?,
        (None, true) => items.len(),
        (None, false) => return Err(call.fault("argument `r` is missing")),
    };
    let mut rows: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..count {
        let mut longer = Vec::new();
        for row in &rows {
            let from = if in_any_order { 0 } else { row.last().map_or(0, |last| last + 1) };
            for nth in (from..items.len()).filter(|nth| !row.contains(nth)) {
                longer.push([&row[..], &[nth]].concat());
            }
            if longer.len() > ITEMS_LIMIT {
                return Err(call.fault(format!("more than {ITEMS_LIMIT} items")));
            }
        }
        rows = longer;
    }
    let rows = rows.into_iter().map(|row| Live::tuple(row.into_iter().map(|nth| items[nth].clone())));
    Ok(rows.collect::<Vec<Live>>().into())
}

fn groupby(call: &mut Call<'_>) -> Result<Live> {
    let attribute = call.required(0)?.force()?;
    let default = call.get(1);
    let case_sensitive = call.bool_or(2, false)?;
    let keyed = call.items()?.into_iter().map(|item| {
        let key = match (by_attribute(&item, &attribute)?, &default) {
            (Live::Undefined(_), Some(default)) => default.force()?,
            (found, _) => found.force()?,
        };
        Ok((key, item))
    });
    let keyed: Vec<(Value, (Value, Live))> = keyed
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .map(|(key, item)| (comparable(key.clone(), case_sensitive), (key, item)))
        .collect();
    let keyed = sorted_by(call, keyed)?;
    let mut groups: Vec<(Value, Value, Vec<Live>)> = Vec::new();
    for (compared, (key, item)) in keyed {
        match groups.last_mut() {
            Some((last, _, items)) if operators::same(last, &compared) => items.push(item),
            _ => groups.push((compared, key, vec![item])),
        }
    }
    let groups = groups.into_iter().map(|(_, key, items)| Live::tuple([Live::Done(key), items.into()]));
    Ok(groups.collect::<Vec<_>>().into())
}

fn extract(call: &mut Call<'_>) -> Result<Live> {
    let container = call.required(0)?;
    let mut keys = vec![call.value()?];
    match call.value_at(1)? {
        None | Some(Value::Null) => {}
        Some(Value::List(more)) => keys.extend(more.iter().cloned()),
        Some(key) => keys.push(key),
    }
    let mut found = container;
    for key in keys {
        found = match found.clone().defined()?.item(&key)? {
            Some(next) => next,
            None => {
                let code = Some(call.evaluator.code.clone());
                let message = format!("object of type '{}' has no attribute {key:?}", found.type_name());
                return Ok(Undefined { code, ..Undefined::new(key.to_string(), message) }.into());
            }
        };
    }
    Ok(found)
}

fn subelements(call: &mut Call<'_>) -> Result<Live> {
    let path = match call.required(0)?.force()? {
        Value::List(steps) => steps.iter().map(Value::to_string).collect::<Vec<_>>().join("."),
        Value::Str(path) => path.as_str().to_owned(),
        other => {
            return Err(call.fault(format!("subelements must be a list or a string, not {}", other.kind())));
        }
    };
    let skip_missing = call.bool_or(1, false)?;
    let elements = match call.input.entries() {
        Some(entries) => entries?.into_iter().map(|(_, value)| value).collect(),
        None if call.input.is_list() => call.items()?,
        None => return Err(call.fault("obj must be a list of dicts or a nested dict")),
    };
    let mut pairs = Vec::new();
    for element in elements {
        let mut found = Some(element.clone());
        for step in path.split('.') {
            let Some(of) = &found else { break };
            if !of.is_map() {
                let message = format!("the key {step} should point to a dictionary, got '{}'", of.type_name());
                return Err(call.fault(message));
            }
            found = of.item(&Value::from(step))?;
        }
        if skip_missing && matches!(found, None | Some(Live::Undefined(_) | Live::Done(Value::Null))) {
            continue;
        }
        let found =
            found.ok_or_else(|| call.fault(format!("could not find '{path}' key in iterated item")))?.defined()?;
        if !found.is_list() {
            let message = format!("the key {path} should point to a list, got '{}'", found.type_name());
            return Err(call.fault(message));
        }
        pairs.extend(found.items()?.into_iter().map(|item| Live::tuple([element.clone(), item])));
    }
    Ok(pairs.into())
}
