//! Filters that choose: `default`, `ternary`, `map`, `select` and their like.

use std::sync::Arc;

use crate::source::{Place, nearest};
use crate::template::call::{Arguments, Call, Filter, callable};
use crate::template::error::TemplateError;
use crate::template::functions::special_attribute;
use crate::template::live::{Live, Result};
use crate::template::undefined::Undefined;
use crate::template::{filters, live, tests};
use crate::value::{Str, Value};

pub(in crate::template) const FILTERS: &[Filter] = &[
    callable("default", &["default_value", "boolean"], default).tolerant(),
    callable("d", &["default_value", "boolean"], default).tolerant(),
    callable("mandatory", &["msg"], mandatory).tolerant(),
    callable("ternary", &["true_val", "false_val", "none_val"], ternary).tolerant(),
    // What a template's result goes through at its end: everything in it rendered.
    callable("ansible._protomatter.finalize", &[], |call| Ok(Live::Done(live::without_omitted(call.value()?)))),
    callable("ansible._protomatter.tag_names", &[], |call| {
        let tags = ["Origin", "TrustedAsTemplate"].into_iter().filter(|tag| call.input.is_tagged(tag));
        Ok(tags.map(Live::from).collect::<Vec<_>>().into())
    }),
    callable("ansible._protomatter.apply_trust", &[], |call| {
        let text = call.text()?;
        Ok(Live::Done(Value::Str(Str::template(text, Place::default()))))
    }),
    callable("type_debug", &[], |call| Ok(call.input.type_name().into())).tolerant(),
    callable("map", &["*", "**"], |call| of_defined(call, map)).tolerant(),
    callable("select", &["*", "**"], |call| of_defined(call, |call| select(call, true, false))).tolerant(),
    callable("reject", &["*", "**"], |call| of_defined(call, |call| select(call, false, false))).tolerant(),
    callable("selectattr", &["*", "**"], |call| of_defined(call, |call| select(call, true, true))).tolerant(),
    callable("rejectattr", &["*", "**"], |call| of_defined(call, |call| select(call, false, true))).tolerant(),
    callable("attr", &["name"], attr),
];

fn default(call: &mut Call<'_>) -> Result<Live> {
    let absent = match &call.input {
        Live::Undefined(_) => true,
        input if call.bool_or(1, false)? => !input.truthy()?,
        _ => false,
    };
    Ok(if absent { call.get(0).unwrap_or_else(|| Live::from("")) } else { call.input.clone() })
}

fn mandatory(call: &mut Call<'_>) -> Result<Live> {
    let Live::Undefined(undefined) = &call.input else { return Ok(call.input.clone()) };
    let mut error = undefined.raise();
    error.message = match call.text_at(0)? {
        Some(message) => message,
        None => format!("Mandatory variable '{}' not defined.", undefined.name),
    };
    // It was said to be wanted: nothing may take it for absent now.
    error.undefined = None;
    Err(error)
}

fn ternary(call: &mut Call<'_>) -> Result<Live> {
    let input = call.input.clone().defined()?;
    let chosen = match (&input, call.get(2)) {
        (Live::Done(Value::Null), Some(none)) => Some(none),
        _ if input.truthy()? => call.get(0),
        _ => call.get(1),
    };
    chosen.ok_or_else(|| call.fault("takes a value for true and one for false"))
}

/// Looks a dotted attribute up in a value.
pub(in crate::template) fn by_path(value: &Live, path: &str) -> Result<Live> {
    let mut found = value.clone();
    for step in path.split('.') {
        if let Live::Undefined(_) = found {
            return Ok(found);
        }
        let by_number = step.parse::<i64>().ok().map(Value::Int);
        let next = match (by_number, found.is_map()) {
            (Some(number), false) => found.item(&number)?,
            (Some(number), true) => match found.item(&Value::from(step))? {
                Some(next) => Some(next),
                None => found.item(&number)?,
            },
            (None, _) => found.item(&Value::from(step))?,
        };
        found = match next.map_or_else(|| special_attribute(&found, step), |next| Ok(Some(next)))? {
            Some(next) => next,
            None => {
                let message = format!("object of type '{}' has no attribute '{step}'", found.type_name());
                Undefined::new(step, message).into()
            }
        };
    }
    Ok(found)
}

/// Looks up what `attribute=` names: a dotted path or a number.
pub(in crate::template) fn by_attribute(value: &Live, attribute: &Value) -> Result<Live> {
    match attribute {
        Value::Int(_) => Ok(value.item(attribute)?.unwrap_or_else(|| {
            let message = format!("object of type '{}' has no attribute {attribute}", value.type_name());
            Undefined::new(attribute.to_string(), message).into()
        })),
        other => by_path(value, &other.to_string()),
    }
}

fn attr(call: &mut Call<'_>) -> Result<Live> {
    let name = call.required(0)?.text()?;
    by_path(&call.input, &name)
}

fn unknown(what: &str, name: &str, known: Vec<&'static str>) -> TemplateError {
    let error = TemplateError::new(Default::default(), format!("no {what} named `{name}`"));
    match nearest(name, known) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error,
    }
}

/// Hands on what is undefined, for a test or a `default` that follows.
fn of_defined(call: &mut Call<'_>, filter: fn(&mut Call<'_>) -> Result<Live>) -> Result<Live> {
    match &call.input {
        Live::Undefined(_) => Ok(call.input.clone()),
        _ => filter(call),
    }
}

fn map(call: &mut Call<'_>) -> Result<Live> {
    let items = call.items()?;
    let mut named = call.named_arguments();
    let take = |named: &mut Vec<(Arc<str>, Live)>, wanted: &str| {
        named.iter().position(|(name, _)| &**name == wanted).map(|nth| named.remove(nth).1)
    };
    if call.rest.is_empty() {
        let attribute = take(&mut named, "attribute")
            .ok_or_else(|| call.fault("takes a filter's name or `attribute=`"))?
            .force()?;
        let default = take(&mut named, "default");
        if let Some((name, _)) = named.first() {
            return Err(call.fault(format!("no argument named `{name}` beside `attribute`")));
        }
        let found = items.iter().map(|item| match by_attribute(item, &attribute)? {
            Live::Undefined(undefined) => default.clone().ok_or_else(|| undefined.raise()),
            found => Ok(found),
        });
        return Ok(found.collect::<Result<Vec<_>>>()?.into());
    }
    let mut positional = call.rest.clone();
    let name = positional.remove(0).text()?;
    let filter = filters::find(&name).ok_or_else(|| unknown("filter", &name, filters::names()))?;
    let results = items.into_iter().map(|item| {
        Call::run(filter, call.evaluator, item, Arguments { positional: positional.clone(), named: named.clone() })
    });
    Ok(results.collect::<Result<Vec<_>>>()?.into())
}

fn select(call: &mut Call<'_>, wanted: bool, by_attr: bool) -> Result<Live> {
    let items = call.items()?;
    let mut positional = call.rest.clone();
    let attribute = match by_attr {
        true if positional.is_empty() => return Err(call.fault("takes an attribute's name")),
        true => Some(positional.remove(0).force()?),
        false => None,
    };
    let test = match positional.is_empty() {
        true => None,
        false => {
            let name = positional.remove(0).text()?;
            Some(tests::find(&name).ok_or_else(|| unknown("test", &name, tests::names()))?)
        }
    };
    let mut kept: Vec<Live> = Vec::new();
    for item in items {
        let value = match &attribute {
            Some(attribute) => by_attribute(&item, attribute)?,
            None => item.clone(),
        };
        let holds = match test {
            Some(test) => {
                let arguments = Arguments { positional: positional.clone(), named: call.named_arguments() };
                Call::run(test, call.evaluator, value, arguments)?
            }
            // With no test, what is undefined counts as false.
            None => !matches!(value, Live::Undefined(_)) && value.truthy()?,
        };
        if holds == wanted {
            kept.push(item);
        }
    }
    Ok(live::Live::from(kept))
}
