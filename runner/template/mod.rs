//! Templates, set up as Ansible sets up Jinja: lazy variables, native values, strict about what is undefined.
//!
//! minijinja parses; what it gives is kept as a tree of our own (`ast`) and evaluated here, because variables are
//! templates themselves, know who wrote them, and must say where a mistake in them was written.

mod address;
mod ast;
mod backslashes;
mod cache;
mod call;
mod error;
mod evaluate;
mod execute;
mod files;
mod filters;
mod functions;
mod jmespath;
mod live;
mod lookups;
mod managed;
mod nesting;
mod network_tests;
mod operators;
mod parse;
mod percent;
mod place;
mod python;
mod regex;
mod signs;
mod sorting;
mod tests;
mod undefined;
mod versions;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

pub use error::TemplateError;
use evaluate::{Code, Context, Evaluator};
pub use files::FileOptions;
pub(crate) use filters::crypt::Scheme;
use live::Live;
pub use managed::about_file;
pub(crate) use place::within as place_within;

use crate::source::Place;
use crate::value::{Map, Str, Trust, Value};

/// Where a name's value comes from during one task on one host: layered, lazily looked up.
pub trait Variables: Send + Sync {
    /// Returns a variable as it was written.
    fn get(&self, name: &str) -> Option<Value>;
    /// Returns the names of all variables.
    fn names(&self) -> Vec<Arc<str>>;
    /// Is told of a template that reads files or the clock of this machine.
    fn reads_here(&self) {}
    /// Returns whether a template may call a lookup; an evaluation that is only a guess must not, where it does something.
    fn may_look_up(&self, _lookup: &str) -> bool {
        true
    }
}

/// Where lookups and includes look for files.
#[derive(Debug, Clone, Default)]
pub struct Folders {
    /// The folder of the playbook.
    pub playbook: PathBuf,
    /// The folder of the role, for a task in one.
    pub role: Option<PathBuf>,
    /// The file that the task was read from.
    pub task_file: Option<PathBuf>,
}

/// Renders templates with the variables of one task on one host. Cheap to clone.
#[derive(Clone)]
pub struct Templar {
    inner: Arc<Inner>,
}

struct Inner {
    variables: Arc<dyn Variables>,
    folders: Arc<Folders>,
    /// The template file being rendered: what it includes is looked for next to it too.
    template_folder: Option<PathBuf>,
    syntax: FileOptions,
}

/// Variables over others.
struct Layer {
    over: HashMap<Arc<str>, Value>,
    under: Arc<dyn Variables>,
}

impl Variables for Layer {
    fn get(&self, name: &str) -> Option<Value> {
        self.over.get(name).cloned().or_else(|| self.under.get(name))
    }

    fn names(&self) -> Vec<Arc<str>> {
        let mut names = self.under.names();
        names.extend(self.over.keys().cloned());
        names.sort();
        names.dedup();
        names
    }

    fn reads_here(&self) {
        self.under.reads_here();
    }

    fn may_look_up(&self, lookup: &str) -> bool {
        self.under.may_look_up(lookup)
    }
}

impl Templar {
    pub fn new(variables: Arc<dyn Variables>, folders: Arc<Folders>) -> Templar {
        let inner = Inner { variables, folders, template_folder: None, syntax: FileOptions::default() };
        Templar { inner: Arc::new(inner) }
    }

    /// Returns a templar that knows further variables, stronger than all others.
    #[must_use]
    pub fn with(&self, extra: impl IntoIterator<Item = (String, Value)>) -> Templar {
        let over = extra.into_iter().map(|(name, value)| (name.into(), value)).collect();
        let variables = Arc::new(Layer { over, under: self.inner.variables.clone() });
        self.derived(|inner| inner.variables = variables)
    }

    /// Returns the items of `with_NAME`: what the lookup of that name makes of its terms.
    ///
    /// # Errors
    /// As [`Templar::value`], and what the lookup reports.
    pub fn loop_items(&self, name: &str, terms: &Value) -> Result<Vec<Value>, TemplateError> {
        let terms = match self.value(terms)? {
            Value::List(items) => items,
            one => Arc::new(vec![one]),
        };
        let names: Vec<String> = (0..terms.len()).map(|nth| format!("_with_{nth}")).collect();
        let call = format!("query('{name}', {})", names.join(", "));
        let inner = self.with(names.into_iter().zip(terms.iter().cloned()));
        match inner.expression(&Str::template(call, Place::default()))? {
            Value::List(items) => Ok(Arc::unwrap_or_clone(items)),
            one => Ok(vec![one]),
        }
    }

    /// Returns the names of all variables.
    pub fn names(&self) -> Vec<Arc<str>> {
        self.inner.variables.names()
    }

    /// Returns a variable as it is, unrendered.
    pub fn variable(&self, name: &str) -> Option<Value> {
        self.inner.variables.get(name)
    }

    fn derived(&self, change: impl FnOnce(&mut Inner)) -> Templar {
        let Inner { variables, folders, template_folder, syntax } = &*self.inner;
        let mut inner = Inner {
            variables: variables.clone(),
            folders: folders.clone(),
            template_folder: template_folder.clone(),
            syntax: syntax.clone(),
        };
        change(&mut inner);
        Templar { inner: Arc::new(inner) }
    }

    /// Renders every template in a value, its keys too. A lone `{{ … }}` keeps its native type; what is `omit` gives
    /// [`Value::Omit`], and leaves the list or mapping that it is in. No string of the result is rendered again.
    ///
    /// # Errors
    /// Whatever is wrong with a template in it, undefined variables among it.
    pub fn value(&self, value: &Value) -> Result<Value, TemplateError> {
        if !value.holds_template() {
            return Ok(value.clone());
        }
        let context = Context::new(self);
        match value {
            // A container's children are rendered by `force`; a scalar is a template itself.
            Value::List(_) | Value::Map(_) => Live::Lazy(value.clone(), context).force().map(live::without_omitted),
            Value::Str(text) if text.is_template() => {
                evaluate::render(text, &context)?.force().map(live::without_omitted)
            }
            Value::Str(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Omit
            | Value::Lazy(_) => Ok(value.clone()),
        }
    }

    /// Renders a value and returns it as it prints.
    ///
    /// # Errors
    /// As [`Templar::value`].
    pub fn text(&self, value: &Value) -> Result<String, TemplateError> {
        Ok(match self.value(value)? {
            Value::Null | Value::Omit => String::new(),
            other => other.to_string(),
        })
    }

    /// Decides a condition: a boolean, a bare expression, or a list of them that must all hold.
    ///
    /// # Errors
    /// When the result is no boolean, besides what [`Templar::value`] reports.
    pub fn condition(&self, value: &Value) -> Result<bool, TemplateError> {
        match value {
            Value::Bool(holds) => Ok(*holds),
            Value::List(all) => {
                for condition in all.iter() {
                    if !self.condition(condition)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Value::Str(text) => match self.expression(text)? {
                Value::Bool(holds) => Ok(holds),
                other => counted(text.place, &other),
            },
            other => counted(Place::default(), other),
        }
    }

    /// Evaluates a bare expression to its native value.
    ///
    /// # Errors
    /// As [`Templar::value`], and when the expression came from data and was not written by a user.
    pub fn expression(&self, text: &Str) -> Result<Value, TemplateError> {
        if text.trust == Trust::Data {
            let error = TemplateError::new(
                text.place,
                "encountered untrusted template or expression: a text that came from data is never evaluated",
            );
            return Err(error.help("write the expression in the playbook, or use the variable's value in one"));
        }
        let context = Context::new(self);
        match is_lone(text.as_str()) {
            true => evaluate::render(text, &context)?.force().map(live::without_omitted),
            false => evaluate::evaluate(text, &context)?.force().map(live::without_omitted),
        }
    }

    /// Renders the text of a template file, as the module `template` does.
    ///
    /// # Errors
    /// Whatever is wrong in it, with its place in the file.
    pub fn file(&self, text: &str, path: &Path, options: FileOptions) -> Result<String, TemplateError> {
        let mut options = options;
        let whole = files::registered(path, text);
        let header = options.take_header(&whole)?;
        let body = match header {
            0 => whole,
            length => {
                let second = whole.place.file().map_or(whole.place, |file| file.at(2, 1));
                Str::template(&text[length..], second)
            }
        };
        let parsed = cache::file(body.shared(), &options).map_err(|fault| evaluate::syntax_error(&body, &fault))?;
        let newline = options.newline_sequence.clone();
        let templar = self.derived(|inner| {
            inner.template_folder = path.parent().map(Path::to_owned);
            inner.syntax = options;
        });
        let code = Rc::new(Code { text: body, parsed });
        // As in Ansible: newlines that rendering has lost are put back, but to nothing at all.
        let rendered = match Evaluator::new(Context::new(&templar), code).run_text()? {
            Some(rendered) => {
                let missing = execute::newlines(text).saturating_sub(execute::newlines(&rendered));
                rendered + &"\n".repeat(missing)
            }
            None if text.trim_end_matches('\n').is_empty() => text.to_owned(),
            None => String::new(),
        };
        Ok(if newline == "\n" { rendered } else { rendered.replace("\r\n", "\n").replace('\n', &newline) })
    }
}

/// Returns whether the whole text is one `{{ … }}`.
pub fn is_lone(text: &str) -> bool {
    let text = text.trim();
    let inner = text.strip_prefix("{{").and_then(|text| text.strip_suffix("}}"));
    inner.is_some_and(|inner| !inner.contains("}}") && !inner.contains("{{"))
}

/// Decides by a result that is no boolean, where the user allows that.
fn counted(place: Place, value: &Value) -> Result<bool, TemplateError> {
    match crate::config::is_set("ALLOW_BROKEN_CONDITIONALS") {
        true => Ok(value.truthy()),
        false => Err(not_boolean(place, value)),
    }
}

fn not_boolean(place: Place, value: &Value) -> TemplateError {
    let message = format!("the condition gives {}, and must give a boolean", value.kind());
    let help = match value {
        Value::Str(_) => {
            "compare it, as in `x == 'yes'`; for \"is not empty\" use `x | length > 0`, for \"yes\" or \"no\" `x | bool`"
        }
        Value::List(_) | Value::Map(_) | Value::Lazy(_) => "for \"is not empty\" use `x | length > 0`",
        Value::Int(_) | Value::Float(_) => "compare it, as in `x > 0`",
        Value::Null | Value::Omit => "use `x is not none`, or `x is defined`",
        Value::Bool(_) => "compare it",
    };
    TemplateError::new(place, message).help(help)
}

/// Checks a string that may hold templates, without any variables: its syntax and the names of filters and tests.
///
/// # Errors
/// The first mistake in it.
pub fn syntax(text: &Str) -> Result<(), TemplateError> {
    if !text.is_template() {
        return Ok(());
    }
    let parsed = cache::template(text.shared()).map_err(|fault| evaluate::syntax_error(text, &fault))?;
    lookups::check(&parsed, text)
}

/// Checks a bare expression, such as a condition.
///
/// # Errors
/// The first mistake in it.
pub fn syntax_of_condition(text: &Str) -> Result<(), TemplateError> {
    if text.trust == Trust::Data {
        return Ok(());
    }
    if is_lone(text.as_str()) {
        return syntax(text);
    }
    let parsed = cache::expression(text.shared()).map_err(|fault| evaluate::syntax_error(text, &fault))?;
    lookups::check(&parsed, text)
}

/// Checks the text of a template file, without any variables.
///
/// # Errors
/// The first mistake in it, with its place in the file.
pub fn syntax_of_file(text: &str, path: &Path) -> Result<(), TemplateError> {
    let mut options = FileOptions::default();
    let whole = files::registered(path, text);
    if options.take_header(&whole)? > 0 {
        // It says itself how it is written, and is read when it is rendered.
        return Ok(());
    }
    let parsed = cache::file(whole.shared(), &options).map_err(|fault| evaluate::syntax_error(&whole, &fault))?;
    lookups::check(&parsed, &whole)
}

/// Returns the names of all filters.
pub fn filter_names() -> Vec<&'static str> {
    filters::names()
}

/// Returns the names of all tests.
pub fn test_names() -> Vec<&'static str> {
    tests::names()
}

/// Returns the names of all lookups.
pub fn lookup_names() -> Vec<&'static str> {
    lookups::names()
}

impl Variables for Map {
    fn get(&self, name: &str) -> Option<Value> {
        Map::get(self, name).cloned()
    }

    fn names(&self) -> Vec<Arc<str>> {
        self.keys().filter_map(|key| key.as_str().map(Arc::from)).collect()
    }
}

#[cfg(test)]
mod checks;
