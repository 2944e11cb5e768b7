//! The methods that Python's texts, lists, mappings and dates have.

use std::sync::Arc;

use super::call::Arguments;
use super::error::TemplateError;
use super::evaluate::Evaluator;
use super::filters::{strings, time};
use super::functions::Function;
use super::live::{Entries, Live, Result};
use super::{operators, percent};
use crate::value::Value;

const TEXT: &[&str] = &[
    "capitalize",
    "casefold",
    "center",
    "count",
    "encode",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "translate",
    "upper",
    "zfill",
];
const LIST: &[&str] =
    &["append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort"];
const MAP: &[&str] = &["clear", "copy", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"];
const VIEW: &[&str] = &["get", "items", "keys", "values"];
const MOMENT: &[&str] = &["astimezone", "date", "isoformat", "isoweekday", "strftime", "time", "timestamp", "weekday"];

/// Returns whether a value has a method of this name.
pub(super) fn has_method(of: &Live, name: &str) -> bool {
    let methods: &[&str] = match of {
        Live::Done(Value::Str(_)) => TEXT,
        Live::Done(Value::List(_)) | Live::Lazy(Value::List(_), _) | Live::List(_) => LIST,
        Live::Tuple(_) => &["count", "index"],
        Live::Done(Value::Map(_)) | Live::Lazy(Value::Map(_), _) | Live::Map(_) => MAP,
        Live::Done(Value::Lazy(_)) | Live::Variables(_) => VIEW,
        Live::Done(Value::Int(_)) => &["bit_length"],
        Live::Done(Value::Float(_)) => &["is_integer"],
        Live::Moment(_) => MOMENT,
        Live::Duration(_) => &["total_seconds"],
        Live::Loop(_) => &["cycle", "changed"],
        Live::Function(function) if matches!(**function, Function::Cycler(..)) => &["next", "reset"],
        _ => &[],
    };
    methods.contains(&name)
}

/// Returns whether a method of this name alters what it is called on.
pub(super) fn alters(name: &str) -> bool {
    matches!(
        name,
        "append"
            | "clear"
            | "extend"
            | "insert"
            | "pop"
            | "popitem"
            | "remove"
            | "reverse"
            | "setdefault"
            | "sort"
            | "update"
    )
}

/// A method's arguments.
pub(super) struct Given<'a> {
    name: &'a str,
    arguments: Arguments,
}

impl Given<'_> {
    pub fn fault(&self, message: impl std::fmt::Display) -> TemplateError {
        TemplateError::new(Default::default(), format!("`{}()`: {message}", self.name))
    }

    /// Returns an argument by position or by one of its names.
    pub fn get(&self, nth: usize, name: &str) -> Option<Live> {
        let by_name =
            || self.arguments.named.iter().find(|(given, _)| &**given == name).map(|(_, value)| value.clone());
        self.arguments.positional.get(nth).cloned().or_else(by_name)
    }

    pub fn required(&self, nth: usize, name: &str) -> Result<Live> {
        self.get(nth, name).ok_or_else(|| self.fault(format!("argument `{name}` is missing")))?.defined()
    }

    pub fn text(&self, nth: usize, name: &str) -> Result<Option<String>> {
        match self.get(nth, name) {
            None | Some(Live::Done(Value::Null)) => Ok(None),
            Some(Live::Done(Value::Str(text))) => Ok(Some(text.as_str().to_owned())),
            Some(other) => {
                Err(self.fault(format!("`{name}` must be a string, not '{}'", other.defined()?.type_name())))
            }
        }
    }

    pub fn int(&self, nth: usize, name: &str) -> Result<Option<i64>> {
        match self.get(nth, name).map(Live::defined).transpose()? {
            None | Some(Live::Done(Value::Null)) => Ok(None),
            Some(Live::Done(Value::Int(number))) => Ok(Some(number)),
            Some(other) => Err(self.fault(format!("`{name}` must be an integer, not '{}'", other.type_name()))),
        }
    }

    /// Returns one text or the texts of a tuple.
    pub fn texts(&self, nth: usize, name: &str) -> Result<Vec<String>> {
        let value = self.required(nth, name)?;
        match value.is_list() {
            true => value.items()?.iter().map(Live::text).collect(),
            false => Ok(vec![self.text(nth, name)?.unwrap_or_default()]),
        }
    }

    pub fn positional(&self) -> &[Live] {
        &self.arguments.positional
    }

    pub fn named(&self) -> &[(Arc<str>, Live)] {
        &self.arguments.named
    }
}

/// Calls a method that [`has_method`] knows.
pub(super) fn call(evaluator: &mut Evaluator, of: &Live, name: &str, arguments: Arguments) -> Result<Live> {
    let given = Given { name, arguments };
    match of {
        Live::Done(Value::Str(text)) => text_method(text.as_str(), name, &given),
        Live::List(items) => list_method(&mut items.borrow_mut(), name, &given),
        Live::Done(Value::List(_)) | Live::Lazy(Value::List(_), _) | Live::Tuple(_) => {
            list_method(&mut of.items()?, name, &given)
        }
        Live::Map(entries) => map_method(&mut entries.borrow_mut(), name, &given),
        Live::Done(Value::Map(_)) | Live::Lazy(Value::Map(_), _) | Live::Done(Value::Lazy(_)) | Live::Variables(_) => {
            if name == "get" {
                let found = of.item(&given.required(0, "key")?.force()?)?;
                return Ok(found.or_else(|| given.get(1, "default")).unwrap_or(Live::NULL));
            }
            if name == "keys" {
                return of.items().map(Live::from);
            }
            let entries = of.entries().unwrap_or_else(|| Ok(Vec::new()))?;
            map_method(&mut Entries::from_iter(entries), name, &given)
        }
        Live::Moment(moment) => time::method(moment, name, &given),
        Live::Duration(duration) => Ok(duration.as_secs_f64().into()),
        Live::Done(Value::Int(number)) => Ok(i64::from(64 - number.unsigned_abs().leading_zeros()).into()),
        Live::Done(Value::Float(number)) => Ok((number.fract() == 0.0).into()),
        Live::Loop(state) if name == "cycle" => match given.positional() {
            [] => Err(given.fault("takes the values to go through")),
            values => Ok(values[state.nth % values.len()].clone()),
        },
        Live::Loop(state) => {
            let now = Value::list(given.positional().iter().map(Live::force).collect::<Result<_>>()?);
            let is_new = state.changed.borrow().as_ref() != Some(&now);
            *state.changed.borrow_mut() = Some(now);
            Ok(is_new.into())
        }
        Live::Function(function) => match &**function {
            Function::Cycler(items, at) if name == "next" && !items.is_empty() => {
                let nth = at.get();
                at.set((nth + 1) % items.len());
                Ok(items[nth].clone())
            }
            Function::Cycler(_, at) => {
                at.set(0);
                Ok(Live::NULL)
            }
            _ => Err(given.fault("there is no such method")),
        },
        _ => {
            let _ = evaluator;
            Err(given.fault(format!("there is no such method on a '{}'", of.type_name())))
        }
    }
}

fn nth_of(length: usize, at: i64) -> Option<usize> {
    let at = if at < 0 { at + length as i64 } else { at };
    usize::try_from(at).ok().filter(|at| *at < length)
}

fn position(items: &[Live], wanted: &Live) -> Result<Option<usize>> {
    let wanted = wanted.force()?;
    for (nth, item) in items.iter().enumerate() {
        if operators::same(&item.force()?, &wanted) {
            return Ok(Some(nth));
        }
    }
    Ok(None)
}

fn list_method(items: &mut Vec<Live>, name: &str, given: &Given<'_>) -> Result<Live> {
    match name {
        "append" => items.push(given.get(0, "object").ok_or_else(|| given.fault("takes the item to add"))?),
        "extend" => items.extend(given.required(0, "iterable")?.items()?),
        "insert" => {
            let at = given.int(0, "index")?.unwrap_or(0);
            let length = items.len() as i64;
            let at = if at < 0 { (at + length).max(0) } else { at.min(length) };
            items.insert(at as usize, given.required(1, "object")?);
        }
        "clear" => items.clear(),
        "reverse" => items.reverse(),
        "copy" => return Ok(items.clone().into()),
        "count" => {
            let wanted = given.required(0, "value")?.force()?;
            let mut count = 0;
            for item in items.iter() {
                count += i64::from(operators::same(&item.force()?, &wanted));
            }
            return Ok(count.into());
        }
        "index" => {
            let wanted = given.required(0, "value")?;
            let at = position(items, &wanted)?;
            return at
                .map(|at| Live::from(at as i64))
                .ok_or_else(|| given.fault(format!("{} is not in list", wanted.text().unwrap_or_default())));
        }
        "pop" => {
            let at = nth_of(items.len(), given.int(0, "index")?.unwrap_or(-1));
            return at.map(|at| items.remove(at)).ok_or_else(|| given.fault("pop index out of range"));
        }
        "remove" => {
            let at = position(items, &given.required(0, "value")?)?;
            items.remove(at.ok_or_else(|| given.fault("the item is not in the list"))?);
        }
        _ => {
            let mut values = items.iter().map(Live::force).collect::<Result<Vec<_>>>()?;
            operators::sort(&mut values).map_err(|message| given.fault(message))?;
            if given.get(9, "reverse").is_some_and(|flag| flag.truthy().unwrap_or(false)) {
                values.reverse();
            }
            *items = values.into_iter().map(Live::Done).collect();
        }
    }
    Ok(Live::NULL)
}

fn map_method(entries: &mut Entries, name: &str, given: &Given<'_>) -> Result<Live> {
    match name {
        "get" => {
            let key = given.required(0, "key")?.force()?;
            let found = entries.get(&key).cloned();
            Ok(found.or_else(|| given.get(1, "default")).unwrap_or(Live::NULL))
        }
        "items" => {
            let pairs = entries.iter().map(|(key, value)| Live::tuple([Live::Done(key.clone()), value.clone()]));
            Ok(pairs.collect::<Vec<_>>().into())
        }
        "keys" => Ok(entries.keys().cloned().map(Live::Done).collect::<Vec<_>>().into()),
        "values" => Ok(entries.values().cloned().collect::<Vec<_>>().into()),
        "copy" => Ok(entries.clone().into()),
        "clear" => {
            entries.clear();
            Ok(Live::NULL)
        }
        "pop" => {
            let key = given.required(0, "key")?.force()?;
            let found = entries.shift_remove(&key).or_else(|| given.get(1, "default"));
            found.ok_or_else(|| given.fault(format!("no key {key:?}")))
        }
        "popitem" => {
            let (key, value) = entries.pop().ok_or_else(|| given.fault("the mapping is empty"))?;
            Ok(vec![Live::Done(key), value].into())
        }
        "setdefault" => {
            let key = given.required(0, "key")?.force()?;
            Ok(entries.entry(key).or_insert_with(|| given.get(1, "default").unwrap_or(Live::NULL)).clone())
        }
        _ => {
            if let Some(more) = given.get(0, "other") {
                match more.entries() {
                    Some(more) => entries.extend(more?),
                    None => {
                        for pair in more.items()? {
                            let [key, value] = &pair.items()?[..] else {
                                return Err(given.fault("takes a mapping or a list of pairs"));
                            };
                            entries.insert(key.force()?, value.clone());
                        }
                    }
                }
            }
            for (name, value) in given.named() {
                entries.insert(Value::str(name.clone()), value.clone());
            }
            Ok(Live::NULL)
        }
    }
}

fn texts(pieces: impl IntoIterator<Item = String>) -> Live {
    pieces.into_iter().map(Live::from).collect::<Vec<_>>().into()
}

fn text_method(text: &str, name: &str, given: &Given<'_>) -> Result<Live> {
    let chars = || text.chars();
    let all = |is: fn(char) -> bool| Ok(Live::from(!text.is_empty() && chars().all(is)));
    match name {
        "upper" => Ok(text.to_uppercase().into()),
        "lower" | "casefold" => Ok(text.to_lowercase().into()),
        "capitalize" => Ok(strings::capitalized(text).into()),
        "title" => Ok(strings::python_title(text).into()),
        "swapcase" => Ok(chars()
            .map(|c| if c.is_uppercase() { c.to_lowercase().to_string() } else { c.to_uppercase().to_string() })
            .collect::<String>()
            .into()),
        "strip" | "lstrip" | "rstrip" => {
            let set = given.text(0, "chars")?;
            let strip = |c: char| set.as_ref().map_or_else(|| c.is_whitespace(), |set| set.contains(c));
            let text = if name == "rstrip" { text } else { text.trim_start_matches(strip) };
            let text = if name == "lstrip" { text } else { text.trim_end_matches(strip) };
            Ok(text.into())
        }
        "split" | "rsplit" => {
            let separator = given.text(0, "sep")?;
            let most = given.int(1, "maxsplit")?.unwrap_or(-1);
            strings::split(text, separator.as_deref(), most, name == "rsplit")
                .map(texts)
                .ok_or_else(|| given.fault("empty separator"))
        }
        "splitlines" => {
            let keep = given.get(0, "keepends").is_some_and(|keep| keep.truthy().unwrap_or(false));
            Ok(texts(strings::lines(text, keep)))
        }
        "join" => {
            let items = given.required(0, "iterable")?.items()?;
            let items = items.iter().map(Live::text).collect::<Result<Vec<_>>>()?;
            Ok(items.join(text).into())
        }
        "replace" => {
            let (old, new) = (given.text(0, "old")?.unwrap_or_default(), given.text(1, "new")?.unwrap_or_default());
            Ok(match given.int(2, "count")?.and_then(|count| usize::try_from(count).ok()) {
                Some(count) => text.replacen(&old, &new, count).into(),
                None => text.replace(&old, &new).into(),
            })
        }
        "startswith" => Ok(given.texts(0, "prefix")?.iter().any(|prefix| text.starts_with(prefix.as_str())).into()),
        "endswith" => Ok(given.texts(0, "suffix")?.iter().any(|suffix| text.ends_with(suffix.as_str())).into()),
        "removeprefix" => {
            let prefix = given.text(0, "prefix")?.unwrap_or_default();
            Ok(text.strip_prefix(prefix.as_str()).unwrap_or(text).into())
        }
        "removesuffix" => {
            let suffix = given.text(0, "suffix")?.unwrap_or_default();
            Ok(text.strip_suffix(suffix.as_str()).unwrap_or(text).into())
        }
        "find" | "rfind" | "index" | "rindex" => search(text, name, given),
        "count" => {
            let wanted = given.text(0, "sub")?.unwrap_or_default();
            let count = if wanted.is_empty() { chars().count() + 1 } else { text.matches(wanted.as_str()).count() };
            Ok((count as i64).into())
        }
        "partition" | "rpartition" => {
            let separator = given.text(0, "sep")?.filter(|separator| !separator.is_empty());
            let separator = separator.ok_or_else(|| given.fault("empty separator"))?;
            let found = if name == "partition" { text.split_once(&separator) } else { text.rsplit_once(&separator) };
            let pieces = match (found, name) {
                (Some((before, after)), _) => [before, &separator, after],
                (None, "partition") => [text, "", ""],
                (None, _) => ["", "", text],
            };
            Ok(Live::tuple(pieces.map(Live::from)))
        }
        "center" | "ljust" | "rjust" | "zfill" => {
            let width = given.int(0, "width")?.ok_or_else(|| given.fault("argument `width` is missing"))?;
            let fill = given.text(1, "fillchar")?.and_then(|fill| fill.chars().next()).unwrap_or(' ');
            strings::adjusted(text, name, width, fill).map(Live::from).map_err(|message| given.fault(message))
        }
        "expandtabs" => {
            let size = given.int(0, "tabsize")?.unwrap_or(8).clamp(0, 1000) as usize;
            Ok(strings::expanded_tabs(text, size).into())
        }
        "format" => {
            let positional = given.positional().iter().map(Live::force).collect::<Result<Vec<_>>>()?;
            let named = given.named().iter().map(|(name, value)| Ok((name.to_string(), value.force()?)));
            let named = named.collect::<Result<Vec<_>>>()?;
            percent::braces(text, &positional, &named).map(Live::from).map_err(|message| given.fault(message))
        }
        "format_map" => {
            let named = given.required(0, "mapping")?.entries().unwrap_or_else(|| Ok(Vec::new()))?;
            let named = named.into_iter().map(|(name, value)| Ok((name.to_string(), value.force()?)));
            let named = named.collect::<Result<Vec<_>>>()?;
            percent::braces(text, &[], &named).map(Live::from).map_err(|message| given.fault(message))
        }
        "encode" => Ok(text.into()),
        "translate" => Err(given.fault("is not supported; use `replace` or `regex_replace`")),
        "isalnum" => all(char::is_alphanumeric),
        "isalpha" => all(char::is_alphabetic),
        "isascii" => Ok(text.is_ascii().into()),
        "isdigit" | "isdecimal" | "isnumeric" => all(char::is_numeric),
        "isspace" => all(char::is_whitespace),
        "isprintable" => Ok(chars().all(|c| !c.is_control()).into()),
        "isidentifier" => {
            let start = chars().next().is_some_and(|c| c == '_' || c.is_alphabetic());
            Ok((start && chars().all(|c| c == '_' || c.is_alphanumeric())).into())
        }
        "islower" => Ok((chars().any(char::is_lowercase) && !chars().any(char::is_uppercase)).into()),
        "isupper" => Ok((chars().any(char::is_uppercase) && !chars().any(char::is_lowercase)).into()),
        "istitle" => Ok((chars().any(char::is_alphabetic) && strings::python_title(text) == text).into()),
        _ => Err(given.fault("there is no such method")),
    }
}

fn search(text: &str, name: &str, given: &Given<'_>) -> Result<Live> {
    let wanted = given.text(0, "sub")?.unwrap_or_default();
    let length = text.chars().count();
    let bound = |at: i64| if at < 0 { (at + length as i64).max(0) as usize } else { (at as usize).min(length) };
    let from = given.int(1, "start")?.map_or(0, bound);
    let to = given.int(2, "end")?.map_or(length, bound);
    let within: String = text.chars().skip(from).take(to.saturating_sub(from)).collect();
    let found = if name.starts_with('r') { within.rfind(&wanted) } else { within.find(&wanted) };
    match found {
        Some(at) => Ok(((from + within[..at].chars().count()) as i64).into()),
        None if name.ends_with("find") => Ok((-1_i64).into()),
        None => Err(given.fault("substring not found")),
    }
}
