//! What a filter, a test, a lookup or a function is, and the arguments it was given.

use std::rc::Rc;
use std::sync::Arc;

use super::error::TemplateError;
use super::evaluate::{Context, Evaluator};
use super::live::{Live, Result};
use crate::source::nearest;
use crate::value::Value;

/// Something that templates call by its name.
pub(super) struct Callable<T> {
    pub name: &'static str,
    /// Its parameters in their order; `*` takes further positional ones, `**` further named ones.
    pub takes: &'static [&'static str],
    /// Whether it may be given what is undefined.
    pub tolerant: bool,
    pub run: fn(&mut Call<'_>) -> Result<T>,
}

pub(super) type Filter = Callable<Live>;
pub(super) type Test = Callable<bool>;
/// A lookup gives a list, from which `lookup` makes a text or a single value and `query` nothing else.
pub(super) type Lookup = Callable<Vec<Live>>;

impl<T> std::fmt::Debug for Callable<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

pub(super) const fn callable<T>(
    name: &'static str,
    takes: &'static [&'static str],
    run: fn(&mut Call<'_>) -> Result<T>,
) -> Callable<T> {
    Callable { name, takes, tolerant: false, run }
}

impl<T> Callable<T> {
    pub const fn tolerant(self) -> Callable<T> {
        Callable { tolerant: true, ..self }
    }
}

/// Arguments as a template gave them.
#[derive(Default, Clone)]
pub(super) struct Arguments {
    pub positional: Vec<Live>,
    pub named: Vec<(Arc<str>, Live)>,
}

/// Filters and tests whose results depend on files or on the clock of this machine.
const READS_HERE: &[&str] = &[
    "directory",
    "exists",
    "expanduser",
    "expandvars",
    "file",
    "fileglob",
    "is_dir",
    "is_file",
    "is_link",
    "is_mount",
    "is_same_file",
    "link",
    "link_exists",
    "mount",
    "path_exists",
    "realpath",
    "relpath",
    "same_file",
    "strftime",
    "vaulted_file",
];

/// One call under way.
pub(super) struct Call<'e> {
    pub evaluator: &'e mut Evaluator,
    pub name: &'static str,
    /// What stands before the `|` or the `is`; null for a function.
    pub input: Live,
    takes: &'static [&'static str],
    bound: Vec<Option<Live>>,
    pub rest: Vec<Live>,
    pub named: Vec<(Arc<str>, Live)>,
}

impl<'e> Call<'e> {
    pub fn run<T>(
        callable: &'static Callable<T>,
        evaluator: &'e mut Evaluator,
        input: Live,
        arguments: Arguments,
    ) -> Result<T> {
        if !callable.tolerant {
            let given = arguments.positional.iter().chain(arguments.named.iter().map(|(_, value)| value));
            for value in std::iter::once(&input).chain(given) {
                if let Live::Undefined(undefined) = value {
                    return Err(undefined.raise());
                }
            }
        }
        if READS_HERE.contains(&callable.name) {
            evaluator.context.templar.inner.variables.reads_here();
        }
        let mut call = Call {
            evaluator,
            name: callable.name,
            input,
            takes: callable.takes,
            bound: Vec::new(),
            rest: Vec::new(),
            named: Vec::new(),
        };
        call.bind(arguments)?;
        (callable.run)(&mut call)
    }

    fn bind(&mut self, arguments: Arguments) -> Result<()> {
        let parameters: Vec<&'static str> = self.takes.iter().copied().filter(|name| !name.starts_with('*')).collect();
        self.bound = vec![None; parameters.len()];
        let mut positional = arguments.positional.into_iter();
        // What stands after `*` can be given by its name only.
        let by_position = self.takes.iter().position(|name| name.starts_with('*')).unwrap_or(self.bound.len());
        for slot in self.bound.iter_mut().take(by_position) {
            *slot = positional.next();
        }
        self.rest = positional.collect();
        if !self.rest.is_empty() && !self.takes.contains(&"*") {
            return Err(self.fault(format!("takes at most {} arguments", parameters.len())));
        }
        for (name, value) in arguments.named {
            match parameters.iter().position(|parameter| *parameter == &*name) {
                Some(nth) if self.bound[nth].is_some() => {
                    return Err(self.fault(format!("argument `{name}` is given twice")));
                }
                Some(nth) => self.bound[nth] = Some(value),
                None if self.takes.contains(&"**") => self.named.push((name, value)),
                None => {
                    let error = self.fault(format!("no argument named `{name}`"));
                    return Err(match nearest(&name, parameters) {
                        Some(near) => error.help(format!("did you mean `{near}`?")),
                        None => error,
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns a mistake that names what was called; its place is filled in by the caller.
    pub fn fault(&self, message: impl std::fmt::Display) -> TemplateError {
        TemplateError::new(Default::default(), format!("`{}`: {message}", self.name))
    }

    pub fn context(&self) -> &Rc<Context> {
        &self.evaluator.context
    }

    /// Returns an argument by its position among the parameters.
    pub fn get(&self, nth: usize) -> Option<Live> {
        self.bound.get(nth).cloned().flatten()
    }

    /// As [`Call::get`], but null counts as absent.
    pub fn given(&self, nth: usize) -> Option<Live> {
        self.get(nth).filter(|value| !matches!(value, Live::Done(Value::Null | Value::Omit)))
    }

    pub fn required(&self, nth: usize) -> Result<Live> {
        self.get(nth).ok_or_else(|| self.fault(format!("argument `{}` is missing", self.takes[nth])))
    }

    /// Returns the input with everything in it rendered.
    pub fn value(&self) -> Result<Value> {
        self.input.force()
    }

    /// Returns the input as it prints.
    pub fn text(&self) -> Result<String> {
        self.input.text()
    }

    pub fn items(&self) -> Result<Vec<Live>> {
        self.input.items().map_err(|error| match error.place.is_nowhere() && error.undefined.is_none() {
            true => self.fault(error.message),
            false => error,
        })
    }

    pub fn value_at(&self, nth: usize) -> Result<Option<Value>> {
        self.get(nth).map(|value| value.force()).transpose()
    }

    pub fn text_at(&self, nth: usize) -> Result<Option<String>> {
        self.given(nth).map(|value| value.text()).transpose()
    }

    pub fn text_or(&self, nth: usize, default: &str) -> Result<String> {
        Ok(self.text_at(nth)?.unwrap_or_else(|| default.to_owned()))
    }

    pub fn int_at(&self, nth: usize) -> Result<Option<i64>> {
        let Some(value) = self.given(nth) else { return Ok(None) };
        let value = value.force()?;
        match &value {
            Value::Int(number) => Ok(Some(*number)),
            Value::Bool(flag) => Ok(Some(i64::from(*flag))),
            Value::Float(number) if number.fract() == 0.0 => Ok(Some(*number as i64)),
            Value::Str(text) if text.as_str().trim().parse::<i64>().is_ok() => Ok(text.as_str().trim().parse().ok()),
            other => Err(self.fault(format!("`{}` must be an integer, not {}", self.takes[nth], other.kind()))),
        }
    }

    pub fn bool_or(&self, nth: usize, default: bool) -> Result<bool> {
        match self.given(nth) {
            None => Ok(default),
            Some(Live::Done(Value::Str(text))) => match text.as_str().to_ascii_lowercase().as_str() {
                "yes" | "true" | "on" | "1" | "y" | "t" => Ok(true),
                "no" | "false" | "off" | "0" | "n" | "f" | "" => Ok(false),
                other => Err(self.fault(format!("`{}` must be a boolean, not `{other}`", self.takes[nth]))),
            },
            Some(value) => value.truthy(),
        }
    }

    /// Returns whether anything was given under no name or a name of its own.
    pub fn named_arguments(&self) -> Vec<(Arc<str>, Live)> {
        self.named.clone()
    }
}

/// Finds a callable by its name, with or without `ansible.builtin.` before it. Those of `ansible._protomatter`, which
/// look at how values are kept, have their full names.
pub(super) fn find<T>(tables: &[&'static [Callable<T>]], name: &str) -> Option<&'static Callable<T>> {
    let name = name.strip_prefix("ansible.builtin.").or_else(|| name.strip_prefix("ansible.legacy.")).unwrap_or(name);
    tables.iter().copied().flatten().find(|callable| callable.name == name)
}
