//! A value while a template is evaluated: perhaps undefined, perhaps not rendered yet, perhaps being built.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use indexmap::IndexMap;
use jiff::SignedDuration;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::error::TemplateError;
use super::evaluate::{Context, render};
use super::functions::Function;
use super::undefined::Undefined;
use crate::value::{Lazy, Map, Trust, Value};

pub(super) type Result<T> = std::result::Result<T, TemplateError>;
pub(super) type Entries = IndexMap<Value, Live>;

#[derive(Clone)]
pub(super) enum Live {
    Undefined(Rc<Undefined>),
    /// Nothing in it is left to render.
    Done(Value),
    /// A list or a mapping as it was written: what is in it is rendered when it is looked at.
    Lazy(Value, Rc<Context>),
    /// A list that a template made, and may still alter.
    List(Rc<RefCell<Vec<Live>>>),
    /// A list that can't be altered, and that prints as Python's tuples do.
    Tuple(Rc<[Live]>),
    /// A mapping that a template made, and may still alter.
    Map(Rc<RefCell<Entries>>),
    Namespace(Rc<RefCell<IndexMap<Arc<str>, Live>>>),
    /// What `import` gives.
    Module(Rc<IndexMap<Arc<str>, Live>>),
    Function(Rc<Function>),
    Loop(Rc<Loop>),
    /// `vars`.
    Variables(Rc<Context>),
    Moment(Moment),
    Duration(SignedDuration),
}

/// A date and time, with a time zone where one is known.
#[derive(Debug, Clone)]
pub(super) struct Moment {
    pub civil: DateTime,
    pub zone: Option<TimeZone>,
}

/// Where a loop stands.
pub(super) struct Loop {
    pub items: Rc<Vec<Live>>,
    pub nth: usize,
    pub depth: usize,
    pub changed: Rc<RefCell<Option<Value>>>,
    pub again: Option<Rc<Function>>,
}

impl From<Value> for Live {
    fn from(value: Value) -> Live {
        Live::Done(value)
    }
}
impl From<String> for Live {
    fn from(text: String) -> Live {
        Live::Done(Value::str(text))
    }
}
impl From<&str> for Live {
    fn from(text: &str) -> Live {
        Live::Done(Value::str(text))
    }
}
impl From<bool> for Live {
    fn from(value: bool) -> Live {
        Live::Done(Value::Bool(value))
    }
}
impl From<i64> for Live {
    fn from(value: i64) -> Live {
        Live::Done(Value::Int(value))
    }
}
impl From<f64> for Live {
    fn from(value: f64) -> Live {
        Live::Done(Value::Float(value))
    }
}
impl From<Undefined> for Live {
    fn from(undefined: Undefined) -> Live {
        Live::Undefined(Rc::new(undefined))
    }
}
impl From<Vec<Live>> for Live {
    fn from(items: Vec<Live>) -> Live {
        Live::List(Rc::new(RefCell::new(items)))
    }
}
impl From<Entries> for Live {
    fn from(entries: Entries) -> Live {
        Live::Map(Rc::new(RefCell::new(entries)))
    }
}

impl Live {
    pub const NULL: Live = Live::Done(Value::Null);

    pub fn tuple(items: impl IntoIterator<Item = Live>) -> Live {
        Live::Tuple(items.into_iter().collect())
    }

    /// Returns a value as the context's templates see it: a template rendered, a container kept as it is until used.
    pub fn of(value: &Value, context: &Rc<Context>) -> Result<Live> {
        match value {
            Value::Str(text) if text.is_template() => render(text, context),
            Value::List(items) if !items.is_empty() => Ok(Live::Lazy(value.clone(), context.clone())),
            Value::Map(map) if !map.is_empty() => Ok(Live::Lazy(value.clone(), context.clone())),
            _ => Ok(Live::Done(value.clone())),
        }
    }

    /// Returns the name of its type in Python, as messages have it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Live::Undefined(_) => "AnsibleUndefined",
            Live::Done(value) | Live::Lazy(value, _) => type_name(value),
            Live::List(_) => "list",
            Live::Tuple(_) => "tuple",
            Live::Map(_) | Live::Variables(_) => "dict",
            Live::Namespace(_) => "Namespace",
            Live::Module(_) => "TemplateModule",
            Live::Function(_) => "function",
            Live::Loop(_) => "LoopContext",
            Live::Moment(_) => "datetime",
            Live::Duration(_) => "timedelta",
        }
    }

    /// Returns itself unless it is undefined.
    pub fn defined(self) -> Result<Live> {
        match self {
            Live::Undefined(undefined) => Err(undefined.raise()),
            other => Ok(other),
        }
    }

    /// Returns the value with everything in it rendered.
    pub fn force(&self) -> Result<Value> {
        match self {
            Live::Undefined(undefined) => Err(undefined.raise()),
            Live::Done(Value::Lazy(lazy)) => {
                let entries = lazy.keys().into_iter().map(|key| {
                    let value = made(&**lazy, &key)?.unwrap_or(Live::NULL).force()?;
                    Ok((Value::str(key), value))
                });
                Ok(Value::map(entries.collect::<Result<Map>>()?))
            }
            Live::Done(value) => Ok(value.clone()),
            Live::Lazy(value, context) => forced(value, context),
            Live::List(items) => {
                let items: Vec<Live> = items.borrow().clone();
                let items = items.iter().map(Live::force);
                Ok(Value::list(items.collect::<Result<_>>()?))
            }
            Live::Tuple(items) => Ok(Value::list(items.iter().map(Live::force).collect::<Result<_>>()?)),
            Live::Map(entries) => {
                let entries: Entries = entries.borrow().clone();
                let entries = entries.into_iter().map(|(key, value)| (key, value.force()));
                let entries = entries.map(|(key, value)| Ok((key, value?)));
                Ok(Value::map(entries.collect::<Result<Map>>()?))
            }
            Live::Variables(context) => {
                let variables = &context.templar.inner.variables;
                let entries = variables.names().into_iter().map(|name| {
                    let value = variables.get(&name).unwrap_or_default();
                    Ok((Value::str(name), Live::of(&value, context)?.force()?))
                });
                Ok(Value::map(entries.collect::<Result<Map>>()?))
            }
            Live::Moment(moment) => Ok(Value::from(moment.to_string())),
            Live::Duration(duration) => Ok(Value::from(super::filters::time::duration_text(*duration))),
            Live::Namespace(_) | Live::Module(_) | Live::Function(_) | Live::Loop(_) => {
                Err(TemplateError::new(Default::default(), format!("a {} is no value", self.type_name())))
            }
        }
    }

    /// Returns what it counts as in a condition inside a template, as in Python.
    pub fn truthy(&self) -> Result<bool> {
        Ok(match self {
            Live::Undefined(undefined) => return Err(undefined.raise()),
            Live::Done(value) | Live::Lazy(value, _) => value.truthy(),
            Live::List(items) => !items.borrow().is_empty(),
            Live::Tuple(items) => !items.is_empty(),
            Live::Map(entries) => !entries.borrow().is_empty(),
            Live::Duration(duration) => !duration.is_zero(),
            Live::Namespace(_)
            | Live::Module(_)
            | Live::Function(_)
            | Live::Loop(_)
            | Live::Variables(_)
            | Live::Moment(_) => true,
        })
    }

    /// Returns what it prints as.
    pub fn text(&self) -> Result<String> {
        match self {
            Live::Done(Value::Str(text)) => Ok(text.as_str().to_owned()),
            Live::List(_) | Live::Tuple(_) | Live::Map(_) => self.repr(),
            other => Ok(other.force()?.to_string()),
        }
    }

    /// Returns what it prints as within a list, as Python's `repr()` has it.
    fn repr(&self) -> Result<String> {
        let joined = |items: &[Live]| Ok(items.iter().map(Live::repr).collect::<Result<Vec<_>>>()?.join(", "));
        Ok(match self {
            Live::List(items) => format!("[{}]", joined(&items.borrow().clone())?),
            Live::Tuple(items) if items.len() == 1 => format!("({},)", items[0].repr()?),
            Live::Tuple(items) => format!("({})", joined(items)?),
            Live::Map(entries) => {
                let entries: Entries = entries.borrow().clone();
                let entries = entries.iter().map(|(key, value)| Ok(format!("{key:?}: {}", value.repr()?)));
                format!("{{{}}}", entries.collect::<Result<Vec<_>>>()?.join(", "))
            }
            other => format!("{:?}", other.force()?),
        })
    }

    /// Returns its items as a loop takes them: a mapping's keys, a text's characters.
    pub fn items(&self) -> Result<Vec<Live>> {
        let items = match self {
            Live::Undefined(undefined) => return Err(undefined.raise()),
            Live::List(items) => items.borrow().clone(),
            Live::Tuple(items) => items.to_vec(),
            Live::Map(entries) => entries.borrow().keys().cloned().map(Live::Done).collect(),
            Live::Done(Value::List(items)) => items.iter().cloned().map(Live::Done).collect(),
            Live::Lazy(Value::List(items), context) => {
                items.iter().map(|item| settled(item, context)).collect::<Result<_>>()?
            }
            Live::Done(Value::Map(map)) | Live::Lazy(Value::Map(map), _) => {
                map.keys().cloned().map(Live::Done).collect()
            }
            Live::Done(Value::Str(text)) => text.as_str().chars().map(|c| Live::from(c.to_string())).collect(),
            Live::Done(Value::Lazy(lazy)) => lazy.keys().into_iter().map(|key| Value::str(key).into()).collect(),
            Live::Variables(context) => {
                context.templar.inner.variables.names().into_iter().map(|name| Value::str(name).into()).collect()
            }
            other => {
                let message = format!("'{}' object is not iterable", other.type_name());
                return Err(TemplateError::new(Default::default(), message));
            }
        };
        Ok(items)
    }

    /// Returns a mapping's entries, their values not rendered before they are used; `None` for anything else.
    pub fn entries(&self) -> Option<Result<Vec<(Value, Live)>>> {
        match self {
            Live::Map(entries) => {
                Some(Ok(entries.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect()))
            }
            Live::Done(Value::Map(map)) => {
                Some(Ok(map.iter().map(|(key, value)| (key.clone(), Live::Done(value.clone()))).collect()))
            }
            Live::Lazy(Value::Map(map), context) => {
                Some(map.iter().map(|(key, value)| Ok((key.clone(), settled(value, context)?))).collect())
            }
            Live::Done(Value::Lazy(lazy)) => Some(
                lazy.keys()
                    .into_iter()
                    .map(|key| Ok((Value::str(key.clone()), made(&**lazy, &key)?.unwrap_or(Live::NULL))))
                    .collect(),
            ),
            Live::Variables(_) => Some(self.force().map(|value| match value {
                Value::Map(map) => map.iter().map(|(key, value)| (key.clone(), Live::Done(value.clone()))).collect(),
                _ => Vec::new(),
            })),
            _ => None,
        }
    }

    /// Returns how many items it has, for what has items.
    pub fn length(&self) -> Option<usize> {
        Some(match self {
            Live::List(items) => items.borrow().len(),
            Live::Tuple(items) => items.len(),
            Live::Map(entries) => entries.borrow().len(),
            Live::Done(Value::List(items)) | Live::Lazy(Value::List(items), _) => items.len(),
            Live::Done(Value::Map(map)) | Live::Lazy(Value::Map(map), _) => map.len(),
            Live::Done(Value::Str(text)) => text.as_str().chars().count(),
            Live::Done(Value::Lazy(lazy)) => lazy.keys().len(),
            Live::Variables(context) => context.templar.inner.variables.names().len(),
            Live::Loop(state) => state.items.len(),
            _ => return None,
        })
    }

    pub fn is_map(&self) -> bool {
        matches!(self, Live::Map(_) | Live::Done(Value::Map(_)) | Live::Lazy(Value::Map(_), _) | Live::Variables(_))
    }

    pub fn is_list(&self) -> bool {
        matches!(self, Live::List(_) | Live::Tuple(_) | Live::Done(Value::List(_)) | Live::Lazy(Value::List(_), _))
    }

    /// Returns whether a text carries one of ansible-core's tags.
    pub fn is_tagged(&self, tag: &str) -> bool {
        match (self, tag) {
            (Live::Done(Value::Str(text)), "TrustedAsTemplate") => text.trust == Trust::Template,
            (Live::Done(Value::Str(text)), _) => !text.place.is_nowhere(),
            _ => false,
        }
    }

    pub fn is_text(&self) -> bool {
        matches!(self, Live::Done(Value::Str(_)))
    }

    /// Returns an entry of a mapping or an item of a list, `None` when there is none.
    pub fn item(&self, key: &Value) -> Result<Option<Live>> {
        let nth = |length: usize| match key {
            Value::Int(nth) if *nth < 0 => usize::try_from(length as i64 + nth).ok(),
            Value::Int(nth) => usize::try_from(*nth).ok(),
            Value::Bool(nth) => Some(usize::from(*nth)),
            _ => None,
        };
        Ok(match self {
            Live::Map(entries) => entries.borrow().get(key).cloned(),
            Live::List(items) => {
                let items = items.borrow();
                nth(items.len()).and_then(|nth| items.get(nth).cloned())
            }
            Live::Tuple(items) => nth(items.len()).and_then(|nth| items.get(nth).cloned()),
            Live::Done(Value::Map(map)) => map.get_key(key).cloned().map(Live::Done),
            Live::Done(Value::List(items)) => nth(items.len()).and_then(|nth| items.get(nth).cloned()).map(Live::Done),
            Live::Lazy(Value::Map(map), context) => {
                map.get_key(key).map(|value| settled(value, context)).transpose()?
            }
            Live::Lazy(Value::List(items), context) => {
                nth(items.len()).and_then(|nth| items.get(nth)).map(|value| settled(value, context)).transpose()?
            }
            Live::Done(Value::Str(text)) => {
                let length = text.as_str().chars().count();
                nth(length).and_then(|nth| text.as_str().chars().nth(nth)).map(|c| Live::from(c.to_string()))
            }
            Live::Done(Value::Lazy(lazy)) => match key.as_str() {
                Some(key) => made(&**lazy, key)?,
                None => None,
            },
            Live::Variables(context) => {
                let found = key.as_str().and_then(|name| context.templar.inner.variables.get(name));
                found.map(|value| settled(&value, context)).transpose()?
            }
            _ => None,
        })
    }
}

/// As [`Live::of`], but what is undefined within stays to be asked about.
pub(super) fn settled(value: &Value, context: &Rc<Context>) -> Result<Live> {
    match Live::of(value, context) {
        Err(error) if error.undefined.is_some() => {
            let mut undefined = Undefined::new(error.undefined.clone().unwrap_or_default(), error.message.clone());
            undefined.inner = Some(error);
            Ok(undefined.into())
        }
        other => other,
    }
}

/// Returns an entry of a mapping that makes its entries when asked; one whose template fails for want of a variable
/// stays to be asked about.
fn made(lazy: &dyn Lazy, key: &str) -> Result<Option<Live>> {
    match lazy.get(key) {
        Ok(found) => Ok(found.map(Live::Done)),
        Err(message) if message.contains("is undefined") || message.contains("has no attribute") => {
            Ok(Some(Undefined::new(key, message).into()))
        }
        Err(message) => Err(TemplateError::new(Default::default(), message)),
    }
}

/// Takes out of lists and mappings what is `omit`.
pub(super) fn without_omitted(value: Value) -> Value {
    fn holds_omitted(value: &Value) -> bool {
        let is_or_holds = |value: &Value| matches!(value, Value::Omit) || holds_omitted(value);
        match value {
            Value::List(items) => items.iter().any(is_or_holds),
            Value::Map(map) => map.values().any(is_or_holds),
            _ => false,
        }
    }
    if !holds_omitted(&value) {
        return value;
    }
    let is_kept = |value: &Value| !matches!(value, Value::Omit);
    match value {
        Value::List(items) => {
            Value::list(items.iter().filter(|item| is_kept(item)).cloned().map(without_omitted).collect())
        }
        Value::Map(map) => {
            let entries = map.iter().filter(|(_, value)| is_kept(value));
            Value::map(entries.map(|(key, value)| (key.clone(), without_omitted(value.clone()))).collect())
        }
        other => other,
    }
}

fn forced(value: &Value, context: &Rc<Context>) -> Result<Value> {
    if !value.holds_template() {
        return Ok(value.clone());
    }
    Ok(match value {
        Value::Str(text) if text.is_template() => render(text, context)?.force()?,
        // It holds no template: rendering it again gives the same, and as a condition it is still its author's.
        Value::Str(_) => value.clone(),
        Value::List(items) => {
            let items = items.iter().map(|item| forced(item, context));
            Value::list(items.collect::<Result<Vec<Value>>>()?)
        }
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| (key, forced(value, context)));
            let entries = entries.map(|(key, value)| Ok((forced(key, context)?, value?)));
            Value::map(entries.collect::<Result<Map>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Omit | Value::Lazy(_) => value.clone(),
    })
}

pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Float(_) => "float",
        Value::Str(_) => "str",
        Value::List(_) => "list",
        Value::Map(_) | Value::Lazy(_) => "dict",
        Value::Omit => "Omit",
    }
}
