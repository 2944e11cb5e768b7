//! What a template asks for and is not there: how it came to be asked for, and what to do about it.

use std::rc::Rc;

use super::error::TemplateError;
use super::evaluate::{Code, Context, used};
use super::live::Live;
use crate::source::nearest;
use crate::value::Value;

/// What is not there, and how evaluation came to ask for it.
#[derive(Clone)]
pub(super) struct Undefined {
    pub name: String,
    pub message: String,
    pub code: Option<Rc<Code>>,
    pub offset: u32,
    /// Set when a template within reported it.
    pub inner: Option<TemplateError>,
    /// The names that led to it, and where they are used.
    pub used: Vec<(Rc<Code>, u32, String)>,
    /// What it would be an entry of.
    pub of: Option<Live>,
    /// Whose variables may hold what was meant.
    pub known: Option<Rc<Context>>,
    /// An `if` without an `else`, which prints as nothing.
    pub silent: bool,
}

/// How many keys of a mapping are told where one is not there.
const SHOWN_KEYS: usize = 6;

fn counted(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}"),
        1 => format!("one {what}"),
        _ => format!("{count} {what}s"),
    }
}

impl Undefined {
    pub fn new(name: impl Into<String>, message: impl Into<String>) -> Undefined {
        Undefined {
            name: name.into(),
            message: message.into(),
            code: None,
            offset: 0,
            inner: None,
            used: Vec::new(),
            of: None,
            known: None,
            silent: false,
        }
    }

    /// Returns the name that may have been meant.
    fn near(&self) -> Option<String> {
        let names: Vec<String> = match (&self.known, &self.of) {
            (Some(context), _) => context.templar.inner.variables.names().iter().map(ToString::to_string).collect(),
            (None, Some(of)) if of.is_map() => of.items().ok()?.iter().filter_map(|key| key.text().ok()).collect(),
            (None, _) => Vec::new(),
        };
        nearest(&self.name, names.iter().map(String::as_str)).map(str::to_owned)
    }

    /// Returns what to do about it.
    fn help(&self) -> Option<String> {
        if let Some(near) = self.near() {
            return Some(format!("did you mean `{near}`?"));
        }
        let Some(of) = &self.of else {
            return match &*self.name {
                "item" => Some(
                    "`item` is there in a task with `loop` or `with_…`, under the name that `loop_var` gives".into(),
                ),
                name if self.known.is_some() && name.starts_with("ansible_") => {
                    Some("facts are known once they were gathered: by `gather_facts: true`, or the task `setup`".into())
                }
                _ => None,
            };
        };
        let says =
            |key: &str| of.item(&Value::from(key)).ok().flatten().is_some_and(|value| value.truthy().unwrap_or(false));
        let items = of.items().ok();
        match &items {
            Some(items) if of.is_list() => Some(match self.name.parse::<i64>() {
                Ok(_) => format!("the list has {}, the first is 0", counted(items.len(), "item")),
                Err(_) => format!(
                    "it is a list: take one, as in `x[0].{0}`, or of all, as in `x | map(attribute='{0}')`",
                    self.name
                ),
            }),
            Some(_) if of.is_map() && says("skipped") => {
                Some("the task that it comes from was skipped: ask `is skipped` first".into())
            }
            Some(_) if of.is_map() && says("failed") => {
                Some("the task that it comes from failed: ask `is failed` first".into())
            }
            Some(items) if of.is_map() && items.is_empty() => Some("it is empty".into()),
            Some(items) if of.is_map() && items.len() <= SHOWN_KEYS => {
                let names: Vec<String> =
                    items.iter().filter_map(|key| key.text().ok()).map(|key| format!("`{key}`")).collect();
                Some(format!("it has {}", names.join(", ")))
            }
            _ => None,
        }
    }

    /// Returns the mistake that using it is.
    pub fn raise(&self) -> TemplateError {
        let mut error = match &self.inner {
            Some(inner) => inner.clone(),
            None => {
                let place = self.code.as_ref().map(|code| code.place(self.offset)).unwrap_or_default();
                let mut error = TemplateError::undefined(place, &*self.name, &*self.message);
                error.help = self.help();
                error
            }
        };
        for (code, offset, name) in &self.used {
            error = error.through(code.place(*offset), used(name));
        }
        error
    }
}
