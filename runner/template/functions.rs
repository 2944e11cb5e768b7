//! What templates call without a `|`: `range`, `lookup`, `now`, macros, `super()` and their like.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use super::ast::{For, Macro, Node};
use super::call::{Arguments, Call, Callable, callable};
use super::evaluate::{Code, Evaluator, Scope};
use super::filters::time;
use super::live::{Entries, Live, Result};
use super::undefined::Undefined;
use super::{lookups, python};
use crate::value::Value;

/// How many numbers `range` may give.
const RANGE_LIMIT: i64 = 10_000_000;
/// How deep macros may call one another.
const CALL_LIMIT: usize = 60;

pub(super) enum Function {
    Builtin(&'static Callable<Live>),
    Macro(Closure),
    /// A method that was named and not called yet.
    Method(Live, Arc<str>),
    /// `super()` inside a block, with the block's name and how far up it is.
    Super(Arc<str>, usize),
    /// `loop(…)` inside a recursive loop.
    Recurse(Recursion),
    Cycler(Vec<Live>, Cell<usize>),
    Joiner(String, Cell<bool>),
}

pub(super) struct Closure {
    pub code: Rc<Code>,
    pub declared: Arc<Macro>,
    pub scopes: Vec<Scope>,
}

/// A recursive loop, to be run again for the next level.
pub(super) struct Recursion {
    pub code: Rc<Code>,
    pub each: Arc<For>,
    pub scopes: Vec<Scope>,
}

const FUNCTIONS: &[Callable<Live>] = &[
    callable("range", &["start", "stop", "step"], range),
    callable("dict", &["of", "**"], dict),
    callable("namespace", &["of", "**"], namespace),
    callable("lookup", &["*", "**"], |call| lookups::call(call, lookups::Answer::Joined)),
    callable("query", &["*", "**"], |call| lookups::call(call, lookups::Answer::List)),
    callable("q", &["*", "**"], |call| lookups::call(call, lookups::Answer::List)),
    callable("now", &["utc", "fmt"], time::now),
    callable("undef", &["hint"], undef),
    callable("cycler", &["*"], |call| Ok(Live::Function(Rc::new(Function::Cycler(call.rest.clone(), Cell::new(0)))))),
    callable("joiner", &["sep"], |call| {
        let separator = call.text_or(0, ", ")?;
        Ok(Live::Function(Rc::new(Function::Joiner(separator, Cell::new(false)))))
    }),
];

pub(super) fn find(name: &str) -> Option<&'static Callable<Live>> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

fn range(call: &mut Call<'_>) -> Result<Live> {
    let first = call.int_at(0)?.ok_or_else(|| call.fault("argument `stop` is missing"))?;
    let (start, stop) = match call.int_at(1)? {
        Some(stop) => (first, stop),
        None => (0, first),
    };
    let step = call.int_at(2)?.unwrap_or(1);
    if step == 0 {
        return Err(call.fault("`step` must not be zero"));
    }
    let count = match step > 0 {
        true => (i128::from(stop) - i128::from(start) + i128::from(step) - 1) / i128::from(step),
        false => (i128::from(start) - i128::from(stop) - i128::from(step) - 1) / -i128::from(step),
    };
    if count > i128::from(RANGE_LIMIT) {
        return Err(call.fault(format!("more than {RANGE_LIMIT} numbers")));
    }
    let numbers = (0..count.max(0) as i64).map(|nth| Value::Int(start + nth * step)).collect();
    Ok(Live::Done(Value::list(numbers)))
}

fn entries_of(call: &Call<'_>) -> Result<Entries> {
    let mut entries = Entries::new();
    if let Some(of) = call.get(0) {
        match of.entries() {
            Some(known) => entries.extend(known?),
            None => {
                for pair in of.items()? {
                    let pair = pair.items()?;
                    let [key, value] = &pair[..] else {
                        return Err(call.fault("takes a mapping or a list of pairs"));
                    };
                    entries.insert(key.force()?, value.clone());
                }
            }
        }
    }
    for (name, value) in &call.named {
        entries.insert(Value::str(name.clone()), value.clone());
    }
    Ok(entries)
}

fn dict(call: &mut Call<'_>) -> Result<Live> {
    entries_of(call).map(Live::from)
}

fn namespace(call: &mut Call<'_>) -> Result<Live> {
    let entries = entries_of(call)?.into_iter().map(|(key, value)| (Arc::from(key.to_string()), value));
    Ok(Live::Namespace(Rc::new(RefCell::new(entries.collect()))))
}

fn undef(call: &mut Call<'_>) -> Result<Live> {
    let hint = call.text_or(0, "Mandatory variable has not been overridden")?;
    Ok(Undefined { code: Some(call.evaluator.code.clone()), ..Undefined::new("undef()", hint) }.into())
}

/// Returns an attribute of what is neither a mapping nor a list: loops, namespaces, moments.
pub(super) fn special_attribute(of: &Live, name: &str) -> Result<Option<Live>> {
    Ok(match of {
        // A group that `groupby` made.
        Live::Tuple(pair) if matches!(name, "grouper" | "list") => match &pair[..] {
            [grouper, items] if items.is_list() => Some(if name == "list" { items.clone() } else { grouper.clone() }),
            _ => None,
        },
        Live::Namespace(entries) => entries.borrow().get(name).cloned(),
        Live::Module(exports) => exports.get(name).cloned(),
        Live::Loop(state) => {
            let count = state.items.len();
            let int = |number: usize| Some(Live::from(number as i64));
            match name {
                "index" => int(state.nth + 1),
                "index0" => int(state.nth),
                "revindex" => int(count - state.nth),
                "revindex0" => int(count - state.nth - 1),
                "first" => Some((state.nth == 0).into()),
                "last" => Some((state.nth + 1 == count).into()),
                "length" => int(count),
                "depth" => int(state.depth),
                "depth0" => int(state.depth - 1),
                "previtem" => match state.nth.checked_sub(1) {
                    Some(nth) => state.items.get(nth).cloned(),
                    None => Some(Undefined::new("previtem", "there is no previous item").into()),
                },
                "nextitem" => match state.items.get(state.nth + 1) {
                    Some(next) => Some(next.clone()),
                    None => Some(Undefined::new("nextitem", "there is no next item").into()),
                },
                _ => None,
            }
        }
        Live::Moment(moment) => time::field(moment, name),
        Live::Duration(duration) => time::duration_field(*duration, name),
        Live::Function(function) => match (&**function, name) {
            (Function::Cycler(items, at), "current") => items.get(at.get()).cloned(),
            (Function::Macro(closure), "name") => Some(Live::from(&*closure.declared.name)),
            _ => None,
        },
        _ => None,
    })
}

impl Evaluator {
    pub fn call_function(&mut self, node: &Node, function: &Function, arguments: Arguments) -> Result<Live> {
        match function {
            Function::Builtin(builtin) => self.invoke(node, builtin, Live::NULL, arguments),
            Function::Macro(closure) => self.call_macro(node, closure, arguments),
            Function::Method(of, name) => python::call(self, of, name, arguments),
            Function::Super(name, level) => self.render_block(node, name, *level),
            Function::Recurse(recursion) => self.recurse(node, recursion, arguments),
            Function::Joiner(separator, used) => Ok(match used.replace(true) {
                true => Live::from(separator.as_str()),
                false => Live::from(""),
            }),
            Function::Cycler(..) => Err(self.fault(node, "a cycler has `next()`, `reset()` and `current`")),
        }
    }

    fn call_macro(&mut self, node: &Node, closure: &Closure, arguments: Arguments) -> Result<Live> {
        let declared = &closure.declared;
        if self.calls >= CALL_LIMIT {
            return Err(self.fault(node, format!("macros call one another more than {CALL_LIMIT} levels deep")));
        }
        let mut bound = std::collections::HashMap::new();
        let mut positional = arguments.positional.into_iter();
        let mut named = arguments.named;
        let caller = named.iter().position(|(name, _)| &**name == "caller").map(|nth| named.remove(nth).1);
        let mut missing = Vec::new();
        for (name, default) in &declared.parameters {
            let given = positional.next();
            let by_name = named.iter().position(|(other, _)| other == name).map(|nth| named.remove(nth).1);
            match given.or(by_name) {
                Some(value) => drop(bound.insert(name.clone(), value)),
                None => missing.push((name, default.as_ref())),
            }
        }
        bound.insert("varargs".into(), Live::from(positional.collect::<Vec<_>>()));
        let rest = named.into_iter().map(|(name, value)| (Value::str(name), value));
        bound.insert("kwargs".into(), Live::from(Entries::from_iter(rest)));
        if let Some(caller) = caller {
            bound.insert("caller".into(), caller);
        }
        let scope: Scope = Rc::new(RefCell::new(bound));
        let mut scopes = closure.scopes.clone();
        scopes.push(scope.clone());
        let outer_scopes = std::mem::replace(&mut self.scopes, scopes);
        let outer_code = std::mem::replace(&mut self.code, closure.code.clone());
        self.calls += 1;
        let result = self.macro_body(declared, &scope, missing);
        self.calls -= 1;
        self.scopes = outer_scopes;
        self.code = outer_code;
        result.map_err(|error| error.through(self.at(node), format!("`{}` is called here", declared.name)))
    }

    fn macro_body(
        &mut self,
        declared: &Macro,
        scope: &Scope,
        missing: Vec<(&Arc<str>, Option<&Node>)>,
    ) -> Result<Live> {
        for (name, default) in missing {
            let value = match default {
                Some(default) => self.evaluate(default)?,
                None => {
                    let message = format!("parameter '{name}' was not provided");
                    Undefined { code: Some(self.code.clone()), ..Undefined::new(name.to_string(), message) }.into()
                }
            };
            scope.borrow_mut().insert(name.clone(), value);
        }
        self.text_of(&declared.body).map(Live::from)
    }
}
