//! Filters of mappings.

use std::sync::Arc;

use crate::template::call::{Call, Filter, callable};
use crate::template::live::{Entries, Live, Result};
use crate::template::{operators, sorting};
use crate::value::{Map, Value};

pub(super) const FILTERS: &[Filter] = &[
    callable("combine", &["*", "**"], combine),
    callable("dict2items", &["key_name", "value_name"], dict2items),
    callable("items2dict", &["key_name", "value_name"], items2dict),
    callable("dictsort", &["case_sensitive", "by", "reverse"], dictsort),
    callable("items", &[], |call| {
        let entries = entries(call)?;
        Ok(entries.into_iter().map(|(key, value)| Live::from(vec![Live::Done(key), value])).collect::<Vec<_>>().into())
    }),
    callable("rekey_on_member", &["key", "duplicates"], rekey_on_member),
];

fn entries(call: &Call<'_>) -> Result<Vec<(Value, Live)>> {
    call.input
        .entries()
        .unwrap_or_else(|| Err(call.fault(format!("takes a mapping, not '{}'", call.input.type_name()))))
}

/// How lists under the same key are put together.
#[derive(Clone, Copy)]
pub(super) enum Lists {
    Replace,
    Keep,
    Append,
    Prepend,
    AppendMissing,
    PrependMissing,
}

impl Lists {
    pub fn read(call: &Call<'_>, text: &str) -> Result<Lists> {
        Ok(match text {
            "replace" => Lists::Replace,
            "keep" => Lists::Keep,
            "append" => Lists::Append,
            "prepend" => Lists::Prepend,
            "append_rp" => Lists::AppendMissing,
            "prepend_rp" => Lists::PrependMissing,
            other => {
                let error = call.fault(format!("no list_merge `{other}`"));
                return Err(error.help("one of replace, keep, append, prepend, append_rp, prepend_rp"));
            }
        })
    }
}

fn combine(call: &mut Call<'_>) -> Result<Live> {
    let mut recursive = false;
    let mut lists = Lists::Replace;
    for (name, value) in call.named_arguments() {
        match &*name {
            "recursive" => recursive = value.truthy()?,
            "list_merge" => {
                lists = Lists::read(call, &value.text()?)?;
            }
            _ => {
                let message = "'recursive' and 'list_merge' are the only valid keyword arguments";
                return Err(call.fault(message).help(format!("it was given `{name}`")));
            }
        }
    }
    let mut merged: Option<Arc<Map>> = None;
    for value in std::iter::once(&call.input).chain(&call.rest) {
        // A list stands for the mappings in it.
        let values = match value.force()? {
            Value::List(items) => items.to_vec(),
            other => vec![other],
        };
        for value in values {
            let map = match value {
                Value::Map(map) => map,
                // As in Ansible: nothing adds nothing.
                Value::Null => continue,
                other => {
                    let message = format!("failed to combine variables, expected dicts but got {}", other.kind());
                    return Err(call.fault(message));
                }
            };
            merged = Some(match merged {
                None => map,
                Some(before) => Arc::new(combined(&before, &map, recursive, lists)),
            });
        }
    }
    Ok(Live::Done(Value::Map(merged.unwrap_or_default())))
}

pub(super) fn combined(low: &Map, high: &Map, recursive: bool, lists: Lists) -> Map {
    if !recursive && matches!(lists, Lists::Replace) {
        return operators::merged(low, high);
    }
    let mut out = low.clone();
    for (key, value) in high {
        let both = match (low.get_key(key), value) {
            (Some(Value::Map(a)), Value::Map(b)) if recursive => Value::map(combined(a, b, recursive, lists)),
            (Some(Value::List(a)), Value::List(b)) => Value::list(listed(a, b, lists)),
            _ => value.clone(),
        };
        out.insert(key.clone(), both);
    }
    out
}

fn listed(low: &[Value], high: &[Value], lists: Lists) -> Vec<Value> {
    let without = |of: &[Value], others: &[Value]| -> Vec<Value> {
        of.iter().filter(|value| !others.iter().any(|other| operators::same(value, other))).cloned().collect()
    };
    match lists {
        Lists::Replace => high.to_vec(),
        Lists::Keep => low.to_vec(),
        Lists::Append => [low, high].concat(),
        Lists::Prepend => [high, low].concat(),
        Lists::AppendMissing => [&without(low, high)[..], high].concat(),
        Lists::PrependMissing => [high, &without(low, high)[..]].concat(),
    }
}

fn dict2items(call: &mut Call<'_>) -> Result<Live> {
    let (key_name, value_name) = (call.text_or(0, "key")?, call.text_or(1, "value")?);
    let entries = call.input.entries().unwrap_or_else(|| {
        Err(call.fault(format!("dict2items requires a dictionary, got '{}' instead", call.input.type_name())))
    });
    let items = entries?.into_iter().map(|(key, value)| {
        let pairs = [(Value::from(&*key_name), Live::Done(key)), (Value::from(&*value_name), value)];
        Live::from(Entries::from_iter(pairs))
    });
    Ok(items.collect::<Vec<_>>().into())
}

fn items2dict(call: &mut Call<'_>) -> Result<Live> {
    let (key_name, value_name) = (call.text_or(0, "key")?, call.text_or(1, "value")?);
    if !call.input.is_list() {
        return Err(call.fault(format!("items2dict requires a list, got '{}' instead", call.input.type_name())));
    }
    let mut out = Entries::new();
    for item in call.items()? {
        if !item.is_map() {
            let message = format!("items2dict requires a list of dictionaries, got a list with '{}'", item.type_name());
            return Err(call.fault(message));
        }
        let part = |name: &str| {
            item.item(&Value::from(name))?.ok_or_else(|| {
                call.fault(format!(
                    "items2dict requires each dictionary in the list to contain the keys '{key_name}' and '{value_name}'"
                ))
            })
        };
        out.insert(part(&key_name)?.force()?, part(&value_name)?);
    }
    Ok(out.into())
}

fn dictsort(call: &mut Call<'_>) -> Result<Live> {
    let case_sensitive = call.bool_or(0, false)?;
    let by_value = match call.text_or(1, "key")?.as_str() {
        "key" => false,
        "value" => true,
        other => return Err(call.fault(format!("`by` is `key` or `value`, not `{other}`"))),
    };
    let reverse = call.bool_or(2, false)?;
    let mut keyed = Vec::new();
    for (key, value) in entries(call)? {
        let by = if by_value { value.force()? } else { key.clone() };
        let by = match by {
            Value::Str(text) if !case_sensitive => Value::from(text.as_str().to_lowercase()),
            other => other,
        };
        keyed.push((by, key, value));
    }
    let keyed = sorting::sorted(keyed, |(a, ..), (b, ..)| {
        let order = operators::less(a, b)?;
        Ok(if reverse { order.reverse() } else { order })
    })
    .map_err(|message: String| call.fault(message))?;
    let pairs = keyed.into_iter().map(|(_, key, value)| Live::tuple([Live::Done(key), value]));
    Ok(pairs.collect::<Vec<_>>().into())
}

fn rekey_on_member(call: &mut Call<'_>) -> Result<Live> {
    let key = call.required(0)?.force()?;
    let overwrite = match call.text_or(1, "error")?.as_str() {
        "error" => false,
        "overwrite" => true,
        other => return Err(call.fault(format!("`duplicates` is `error` or `overwrite`, not `{other}`"))),
    };
    let members = match call.input.entries() {
        Some(entries) => entries?.into_iter().map(|(_, value)| value).collect(),
        None => call.items()?,
    };
    let mut out = Entries::new();
    for member in members {
        let found = member.item(&key)?.ok_or_else(|| call.fault(format!("key `{key}` was not found")))?.force()?;
        if out.insert(found.clone(), member).is_some() && !overwrite {
            return Err(call.fault(format!("key `{found}` is not unique")));
        }
    }
    Ok(out.into())
}
