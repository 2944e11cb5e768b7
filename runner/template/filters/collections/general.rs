//! Filters of `community.general` for lists, mappings and texts.

use std::sync::Arc;

use unicode_normalization::UnicodeNormalization;

use crate::template::ast::Binary;
use crate::template::call::{Call, Filter, callable};
use crate::template::filters::lists::{has, keep};
use crate::template::filters::maps::{Lists, combined};
use crate::template::live::{Entries, Live, Result, type_name};
use crate::template::{operators, sorting, versions};
use crate::value::{Map, Value};

pub(super) const FILTERS: &[Filter] = &[
    callable("community.general.accumulate", &[], |call| {
        let mut sums: Vec<Live> = Vec::new();
        for item in call.items()? {
            sums.push(match sums.last() {
                Some(last) => operators::binary(Binary::Add, last, &item)?,
                None => item,
            });
        }
        Ok(sums.into())
    }),
    callable("community.general.counter", &[], |call| {
        if !call.input.is_list() && !call.input.is_text() {
            return Err(call.fault(format!("takes a list or a string, not '{}'", call.input.type_name())));
        }
        let mut counts = Map::new();
        for item in call.items()? {
            let item = item.force()?;
            let count = match counts.get_key(&item) {
                Some(Value::Int(count)) => count + 1,
                _ => 1,
            };
            counts.insert(item, Value::Int(count));
        }
        Ok(Live::Done(counts.into()))
    }),
    callable("community.general.crc32", &[], |call| {
        if !call.input.is_text() {
            return Err(call.fault(format!("takes a string, not '{}'", call.input.type_name())));
        }
        let mut sum = flate2::Crc::new();
        sum.update(call.text()?.as_bytes());
        Ok(format!("{:x}", sum.sum()).into())
    }),
    callable("community.general.dict", &[], |call| {
        let mut entries = Entries::new();
        for pair in call.items()? {
            let pair = pair.items()?;
            let [key, value] = &pair[..] else {
                return Err(call.fault(format!("takes a list of pairs, in which one has the length {}", pair.len())));
            };
            entries.insert(key.force()?, value.clone());
        }
        Ok(entries.into())
    }),
    callable("community.general.dict_kv", &["key"], |call| {
        Ok(Entries::from_iter([(call.required(0)?.force()?, call.input.clone())]).into())
    }),
    callable("community.general.groupby_as_dict", &["attribute"], groupby_as_dict),
    callable("community.general.lists_difference", LISTS, |call| {
        on_lists(call, |a, b| keep(a, |value| !has(b, value)))
    }),
    callable("community.general.lists_intersect", LISTS, |call| on_lists(call, |a, b| keep(a, |value| has(b, value)))),
    callable("community.general.lists_symmetric_difference", LISTS, |call| {
        on_lists(call, |a, b| [keep(a, |value| !has(b, value)), keep(b, |value| !has(a, value))].concat())
    }),
    callable("community.general.lists_union", LISTS, |call| on_lists(call, |a, b| keep(&[a, b].concat(), |_| true))),
    callable("community.general.lists_mergeby", &["*", "index", "recursive", "list_merge"], lists_mergeby),
    callable("community.general.reveal_ansible_type", &["alias"], |call| {
        let alias = call.value_at(0)?;
        Ok(revealed(&call.value()?, alias.as_ref()).into())
    }),
    callable("community.general.unicode_normalize", &["form"], |call| {
        let text = call.text()?;
        Ok(match call.text_or(0, "NFC")?.as_str() {
            "NFC" => text.nfc().collect::<String>().into(),
            "NFD" => text.nfd().collect::<String>().into(),
            "NFKC" => text.nfkc().collect::<String>().into(),
            "NFKD" => text.nfkd().collect::<String>().into(),
            other => return Err(call.fault(format!("no form `{other}`")).help("one of NFC, NFD, NFKC, NFKD")),
        })
    }),
    callable("community.general.version_sort", &["reverse"], version_sort),
];

const LISTS: &[&str] = &["*", "flatten"];

fn list_of(call: &Call<'_>, live: &Live) -> Result<Vec<Value>> {
    match live.force()? {
        Value::List(items) => Ok(items.to_vec()),
        other => Err(call.fault(format!("takes lists, not {}", other.kind()))),
    }
}

/// Takes lists one after the other into an operation; with `flatten`, also those that stand in a list.
fn on_lists(call: &mut Call<'_>, operation: fn(&[Value], &[Value]) -> Vec<Value>) -> Result<Live> {
    let is_flattened = call.bool_or(0, false)?;
    let mut lists = Vec::new();
    for live in std::iter::once(&call.input).chain(&call.rest) {
        let list = list_of(call, live)?;
        let is_nested = !list.is_empty() && list.iter().all(|item| matches!(item, Value::List(_)));
        match is_flattened && is_nested {
            true => lists.extend(list.iter().filter_map(|item| item.as_list().map(|items| items.to_vec()))),
            false => lists.push(list),
        }
    }
    let found = lists.into_iter().reduce(|a, b| operation(&a, &b)).unwrap_or_default();
    Ok(Live::Done(Value::list(found)))
}

fn groupby_as_dict(call: &mut Call<'_>) -> Result<Live> {
    let attribute = call.required(0)?.force()?;
    let mut groups = Entries::new();
    for (nth, item) in call.items()?.into_iter().enumerate() {
        let Some(value) = item.item(&attribute)? else {
            return Err(call.fault(format!("item {nth} has no `{attribute}`")));
        };
        let value = value.force()?;
        if groups.insert(value.clone(), item).is_some() {
            return Err(call.fault(format!("two items have {value:?} as their `{attribute}`")));
        }
    }
    Ok(groups.into())
}

/// Merges mappings of lists that have the same value under a key.
fn lists_mergeby(call: &mut Call<'_>) -> Result<Live> {
    let mut terms = vec![call.input.clone()];
    terms.append(&mut call.rest);
    let index = match call.value_at(0)? {
        Some(index) => index,
        None => match terms.pop().filter(|_| !terms.is_empty()) {
            Some(index) => index.force()?,
            None => return Err(call.fault("argument `index` is missing")),
        },
    };
    if index.as_str().is_none() {
        return Err(call.fault(format!("`index` must be a string, not {}", index.kind())));
    }
    let recursive = call.bool_or(1, false)?;
    let lists = Lists::read(call, &call.text_or(2, "replace")?)?;
    let mut merged: Vec<(Value, Arc<Map>)> = Vec::new();
    for term in &terms {
        let items = list_of(call, term)?;
        let items = items.into_iter().flat_map(|item| match item {
            Value::List(items) => items.to_vec(),
            other => vec![other],
        });
        for item in items {
            let Value::Map(map) = item else {
                return Err(call.fault(format!("takes lists of mappings, in which {item:?} is none")));
            };
            let Some(value) = map.get_key(&index).cloned() else { continue };
            match merged.iter_mut().find(|(known, _)| operators::same(known, &value)) {
                Some((_, known)) => *known = Arc::new(combined(known, &map, recursive, lists)),
                None => merged.push((value, map)),
            }
        }
    }
    let mut values: Vec<Value> = merged.iter().map(|(value, _)| value.clone()).collect();
    operators::sort(&mut values).map_err(|message| call.fault(message))?;
    merged.sort_by_key(|(value, _)| values.iter().position(|known| known == value));
    Ok(Live::Done(Value::list(merged.into_iter().map(|(_, map)| Value::Map(map)).collect())))
}

/// Names a value's type and the types in it, such as `dict[str, int]`.
pub(in crate::template) fn revealed(value: &Value, alias: Option<&Value>) -> String {
    let name = |value: &Value| {
        let name = type_name(value);
        alias.and_then(|alias| alias.get(name)).map_or_else(|| name.to_owned(), Value::to_string)
    };
    let union = |values: &mut dyn Iterator<Item = &Value>| {
        let mut names: Vec<String> = values.map(name).collect();
        names.sort();
        names.dedup();
        names.join("|")
    };
    match value {
        Value::List(items) if !items.is_empty() => format!("{}[{}]", name(value), union(&mut items.iter())),
        Value::Map(map) if !map.is_empty() => {
            format!("{}[{}, {}]", name(value), union(&mut map.keys()), union(&mut map.values()))
        }
        other => name(other),
    }
}

fn version_sort(call: &mut Call<'_>) -> Result<Live> {
    let versions = call.items()?.iter().map(Live::text).collect::<Result<Vec<_>>>()?;
    let sorted = sorting::sorted(versions, |a, b| versions::loose(a, b));
    let mut versions = sorted.map_err(|message| call.fault(message))?;
    if call.bool_or(0, false)? {
        versions.reverse();
    }
    Ok(versions.into_iter().map(Live::from).collect::<Vec<_>>().into())
}
