//! Evaluates expressions as Jinja does under Ansible: lazily, strictly, with every mistake's place.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::ast::{Argument, Compare, Expr, Node, Parsed};
use super::call::{Arguments, Call, Callable};
use super::error::TemplateError;
use super::execute::Blocks;
use super::functions::Function;
use super::live::{Entries, Live, Result};
use super::undefined::Undefined;
use super::{Templar, cache, functions, operators, place, python};
use crate::source::Place;
use crate::value::{Str, Value};

/// How many templates may lead into one another before it can't be meant.
const DEPTH_LIMIT: usize = 50;

/// A template's text, for places in it.
pub(super) struct Code {
    pub text: Str,
    /// What runs, kept so that what it declares can be called later.
    pub parsed: Arc<Parsed>,
}

impl Code {
    pub fn place(&self, offset: u32) -> Place {
        place::within(&self.text, offset as usize)
    }
}

/// Whose variables templates see, and how deep they are in one another.
pub(super) struct Context {
    pub templar: Templar,
    pub session: Rc<Session>,
}

pub(super) struct Session {
    under_way: RefCell<Vec<(usize, usize, Place)>>,
    /// Where the stack was when rendering began.
    stack: usize,
}

/// How much of its thread's stack rendering may use; a thread has 2 MiB.
const STACK_BYTES: usize = 5 << 18;
/// How much of it a variable's template takes at least: a chain of them that is too long is told as such.
const VARIABLE_BYTES: usize = 1 << 16;

/// Returns about where the stack is now.
fn stack_now() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}

impl Session {
    /// Returns whether evaluation is deeper than the stack bears.
    /// Whether a template that needs so much stack may not be rendered any more.
    pub fn is_too_deep(&self, needed_bytes: usize) -> bool {
        self.stack.abs_diff(stack_now()) + needed_bytes > STACK_BYTES
    }
}

impl Context {
    pub fn new(templar: &Templar) -> Rc<Context> {
        let session = Session { under_way: RefCell::default(), stack: stack_now() };
        Rc::new(Context { templar: templar.clone(), session: Rc::new(session) })
    }
}

/// Renders a template: natively when it is a lone expression.
pub(super) fn render(text: &Str, context: &Rc<Context>) -> Result<Live> {
    let parsed = cache::template(text.shared()).map_err(|fault| syntax_error(text, &fault))?;
    entered(text, context, |context| {
        let code = Rc::new(Code { text: text.clone(), parsed });
        Evaluator::new(context.clone(), code).run()
    })
}

/// Evaluates a bare expression.
pub(super) fn evaluate(text: &Str, context: &Rc<Context>) -> Result<Live> {
    let parsed = cache::expression(text.shared()).map_err(|fault| syntax_error(text, &fault))?;
    entered(text, context, |context| {
        let code = Rc::new(Code { text: text.clone(), parsed });
        Evaluator::new(context.clone(), code).run()
    })
}

pub(super) fn syntax_error(text: &Str, fault: &super::parse::SyntaxFault) -> TemplateError {
    TemplateError { help: fault.help.clone(), ..TemplateError::new(place::within(text, fault.offset), &*fault.message) }
}

/// Says of a place that a name is used there.
pub(super) fn used(name: &str) -> String {
    format!("`{name}` is used here")
}

fn entered(text: &Str, context: &Rc<Context>, run: impl FnOnce(&Rc<Context>) -> Result<Live>) -> Result<Live> {
    let whose = Arc::as_ptr(&context.templar.inner).cast::<()>() as usize;
    let what = Arc::as_ptr(text.shared()).cast::<()>() as usize;
    {
        let mut under_way = context.session.under_way.borrow_mut();
        let is_again = under_way.iter().any(|(host, template, _)| (*host, *template) == (whose, what));
        if is_again || under_way.len() >= DEPTH_LIMIT || context.session.is_too_deep(VARIABLE_BYTES) {
            let mut error = TemplateError::new(text.place, "recursive loop detected in template");
            error.help = Some("a variable's template must not lead back to itself".to_owned());
            for (_, _, place) in under_way.iter().rev().take(8) {
                error = error.through(*place, "which comes from here");
            }
            return Err(error);
        }
        under_way.push((whose, what, text.place));
    }
    let result = run(context);
    context.session.under_way.borrow_mut().pop();
    result
}

pub(super) type Scope = Rc<RefCell<HashMap<Arc<str>, Live>>>;

/// Evaluates one template.
pub(super) struct Evaluator {
    pub context: Rc<Context>,
    pub code: Rc<Code>,
    pub scopes: Vec<Scope>,
    pub blocks: Blocks,
    /// The text of the block that a filter stands around.
    pub block_text: Option<Live>,
    pub loop_depth: usize,
    /// How deep calls of macros are.
    pub calls: usize,
}

impl Evaluator {
    pub fn new(context: Rc<Context>, code: Rc<Code>) -> Evaluator {
        Evaluator {
            context,
            code,
            scopes: vec![Scope::default()],
            blocks: Blocks::default(),
            block_text: None,
            loop_depth: 0,
            calls: 0,
        }
    }

    pub fn at(&self, node: &Node) -> Place {
        self.code.place(node.start)
    }

    /// Returns a mistake at a node.
    pub fn fault(&self, node: &Node, message: impl Into<String>) -> TemplateError {
        TemplateError::new(self.at(node), message)
    }

    fn placed<T>(&self, node: &Node, result: Result<T>) -> Result<T> {
        result.map_err(|error| if error.place.is_nowhere() { error.or_at(self.at(node)) } else { error })
    }

    /// Evaluates to something that is defined.
    pub fn defined(&mut self, node: &Node) -> Result<Live> {
        self.evaluate(node)?.defined()
    }

    pub fn evaluate(&mut self, node: &Node) -> Result<Live> {
        if self.context.session.is_too_deep(0) {
            return Err(self.fault(node, "the template is too deep").help("something in it calls itself"));
        }
        let result = self.evaluated(node);
        self.placed(node, result)
    }

    fn sequence(&mut self, items: &[Node], made: fn(Vec<Live>) -> Live) -> Result<Live> {
        items.iter().map(|item| self.evaluate(item)).collect::<Result<Vec<_>>>().map(made)
    }

    fn evaluated(&mut self, node: &Node) -> Result<Live> {
        match &node.kind {
            Expr::Const(value) => Ok(Live::Done(value.clone())),
            Expr::Embedded(text) => render(&Str::template(text.clone(), self.at(node)), &self.context.clone()),
            Expr::Var(name) => self.variable(node, name),
            Expr::List(items) => self.sequence(items, Live::from),
            Expr::Tuple(items) => self.sequence(items, Live::tuple),
            Expr::Map(entries) => {
                let mut map = Entries::new();
                for (key, value) in entries {
                    map.insert(self.evaluate(key)?.force()?, self.evaluate(value)?);
                }
                Ok(map.into())
            }
            Expr::Not(inner) => Ok((!self.evaluate(inner)?.truthy()?).into()),
            Expr::Negative(inner) => operators::negative(&self.evaluate(inner)?),
            Expr::And(sides) => {
                let left = self.evaluate(&sides.0)?;
                if left.truthy()? { self.evaluate(&sides.1) } else { Ok(left) }
            }
            Expr::Or(sides) => {
                let left = self.evaluate(&sides.0)?;
                if left.truthy()? { Ok(left) } else { self.evaluate(&sides.1) }
            }
            Expr::Binary(op, sides) => {
                let left = self.defined(&sides.0)?;
                let right = self.defined(&sides.1)?;
                operators::binary(*op, &left, &right)
            }
            Expr::Compare(first, others) => self.compare(first, others),
            Expr::If { test, then, otherwise } => self.choice(node, test, then, otherwise.as_deref()),
            Expr::Attribute(of, name) => {
                let of = self.evaluate(of)?;
                self.attribute(node, of, name)
            }
            Expr::Item(parts) => {
                let of = self.evaluate(&parts.0)?;
                let key = self.defined(&parts.1)?.force()?;
                self.item(node, of, &key)
            }
            Expr::Slice { of, start, stop, step } => {
                let of = self.defined(of)?;
                let mut bound = |part: &Option<Box<Node>>| -> Result<Option<i64>> {
                    let Some(part) = part else { return Ok(None) };
                    match self.defined(part)?.force()? {
                        Value::Null => Ok(None),
                        Value::Int(number) => Ok(Some(number)),
                        _ => Err(self.fault(part, "slice indices must be integers or none")),
                    }
                };
                let (start, stop, step) = (bound(start)?, bound(stop)?, bound(step)?);
                operators::slice(&of, start, stop, step)
            }
            Expr::Call(callee, arguments) => self.call(node, callee, arguments),
            Expr::Filter(input, filter, arguments) => {
                let input = match input {
                    Some(input) => self.tolerated(input, filter.tolerant)?,
                    None => self.block_text.clone().unwrap_or(Live::NULL),
                };
                let arguments = self.arguments(arguments)?;
                self.invoke(node, filter, input, arguments)
            }
            Expr::Test(input, test, arguments) => {
                let input = self.tolerated(input, test.tolerant)?;
                let arguments = self.arguments(arguments)?;
                Ok(self.invoke(node, test, input, arguments)?.into())
            }
        }
    }

    /// Evaluates what a filter stands behind; one that takes undefined values gets them however they came about.
    fn tolerated(&mut self, node: &Node, tolerant: bool) -> Result<Live> {
        match self.evaluate(node) {
            Err(error) if tolerant && error.undefined.is_some() => {
                let mut undefined = Undefined::new(error.undefined.clone().unwrap_or_default(), error.message.clone());
                undefined.inner = Some(error);
                Ok(undefined.into())
            }
            other => other,
        }
    }

    pub fn invoke<T>(
        &mut self,
        node: &Node,
        callable: &'static Callable<T>,
        input: Live,
        arguments: Arguments,
    ) -> Result<T> {
        let result = Call::run(callable, self, input, arguments);
        self.placed(node, result)
    }

    fn choice(&mut self, node: &Node, test: &Node, then: &Node, otherwise: Option<&Node>) -> Result<Live> {
        if self.evaluate(test)?.truthy()? {
            return self.evaluate(then);
        }
        match otherwise {
            Some(otherwise) => self.evaluate(otherwise),
            None => {
                let message = "the inline if has no `else`, and its condition is false";
                Ok(Undefined {
                    code: Some(self.code.clone()),
                    offset: node.start,
                    silent: true,
                    ..Undefined::new(String::new(), message)
                }
                .into())
            }
        }
    }

    fn compare(&mut self, first: &Node, others: &[(Compare, Node)]) -> Result<Live> {
        let mut left = self.defined(first)?;
        for (op, node) in others {
            let right = self.defined(node)?;
            if !operators::compare(*op, &left, &right)? {
                return Ok(false.into());
            }
            left = right;
        }
        Ok(true.into())
    }

    pub fn arguments(&mut self, arguments: &[Argument]) -> Result<Arguments> {
        let mut given = Arguments::default();
        for argument in arguments {
            match argument {
                Argument::Positional(value) => given.positional.push(self.tolerated(value, true)?),
                Argument::Named(name, value) => given.named.push((name.clone(), self.tolerated(value, true)?)),
                Argument::Unpacked(values) => given.positional.extend(self.defined(values)?.items()?),
                Argument::UnpackedMap(values) => {
                    let map = self.defined(values)?;
                    let entries = map.entries().ok_or_else(|| self.fault(values, "`**` unpacks mappings only"))??;
                    for (key, value) in entries {
                        given.named.push((key.to_string().into(), value));
                    }
                }
            }
        }
        Ok(given)
    }

    fn variable(&mut self, node: &Node, name: &Arc<str>) -> Result<Live> {
        if let Some(found) = self.local(name) {
            return Ok(found);
        }
        let variables = &self.context.templar.inner.variables;
        if let Some(value) = variables.get(name) {
            let found = Live::of(&value, &self.context);
            return self.through(found, node, name);
        }
        Ok(match &**name {
            "omit" => Live::Done(Value::Omit),
            "vars" => Live::Variables(self.context.clone()),
            _ => match functions::find(name) {
                Some(function) => Live::Function(Rc::new(Function::Builtin(function))),
                None => self.undefined_variable(node, name),
            },
        })
    }

    fn undefined_variable(&self, node: &Node, name: &Arc<str>) -> Live {
        Undefined {
            code: Some(self.code.clone()),
            offset: node.start,
            known: Some(self.context.clone()),
            ..Undefined::new(name.to_string(), format!("'{name}' is undefined"))
        }
        .into()
    }

    /// Returns a name that the template itself set.
    pub fn local(&self, name: &str) -> Option<Live> {
        self.scopes.iter().rev().find_map(|scope| scope.borrow().get(name).cloned())
    }

    /// Notes on what is undefined or wrong the use that led to it.
    fn through(&self, result: Result<Live>, node: &Node, name: &str) -> Result<Live> {
        match result {
            Ok(Live::Undefined(undefined)) => {
                let mut undefined = (*undefined).clone();
                undefined.used.push((self.code.clone(), node.start, name.to_owned()));
                Ok(undefined.into())
            }
            Ok(value) => Ok(value),
            Err(error) if error.undefined.is_some() => {
                let mut undefined = Undefined::new(error.undefined.clone().unwrap_or_default(), error.message.clone());
                undefined.inner = Some(error);
                undefined.used.push((self.code.clone(), node.start, name.to_owned()));
                Ok(undefined.into())
            }
            Err(error) => Err(error.through(self.at(node), used(name))),
        }
    }

    /// `of.name`: Python's methods first, then an entry.
    pub fn attribute(&mut self, node: &Node, of: Live, name: &Arc<str>) -> Result<Live> {
        if let Live::Undefined(_) = of {
            return Ok(of);
        }
        if python::has_method(&of, name) {
            return Ok(Live::Function(Rc::new(Function::Method(of, name.clone()))));
        }
        if let Some(found) = functions::special_attribute(&of, name)? {
            return Ok(found);
        }
        match of.item(&Value::str(name.clone())) {
            Ok(None) => Ok(self.missing(node, &of, name)),
            Ok(Some(found)) => self.through(Ok(found), node, name),
            Err(error) => self.through(Err(error), node, name),
        }
    }

    /// `of[key]`: an entry first, then Python's methods.
    fn item(&mut self, node: &Node, of: Live, key: &Value) -> Result<Live> {
        if let Live::Undefined(_) = of {
            return Ok(of);
        }
        let shown = key.to_string();
        let found = of.item(key)?;
        if let Some(found) = found {
            return self.through(Ok(found), node, &shown);
        }
        if let Some(name) = key.as_str() {
            let name: Arc<str> = name.into();
            if python::has_method(&of, &name) {
                return Ok(Live::Function(Rc::new(Function::Method(of, name))));
            }
            if let Some(found) = functions::special_attribute(&of, &name)? {
                return Ok(found);
            }
        }
        Ok(self.missing(node, &of, &shown))
    }

    fn missing(&self, node: &Node, of: &Live, shown: &str) -> Live {
        let message = match (of, shown.parse::<f64>()) {
            (_, Ok(_)) => format!("object of type '{}' has no attribute {shown}", of.type_name()),
            (_, Err(_)) => format!("object of type '{}' has no attribute '{shown}'", of.type_name()),
        };
        Undefined {
            code: Some(self.code.clone()),
            offset: match &node.kind {
                // The caret is for the attribute, which stands last.
                Expr::Attribute(_, name) => node.end.saturating_sub(name.len() as u32).max(node.start),
                _ => node.start,
            },
            of: Some(of.clone()),
            ..Undefined::new(shown, message)
        }
        .into()
    }

    fn call(&mut self, node: &Node, callee: &Node, arguments: &[Argument]) -> Result<Live> {
        if let Expr::Attribute(of, name) = &callee.kind {
            if let Expr::Var(owner) = &of.kind
                && &**owner == "self"
                && self.local("self").is_none()
            {
                return self.block_call(callee, name);
            }
            let of_value = self.defined(of)?;
            if python::has_method(&of_value, name) {
                let of_value = self.alterable(of, of_value, name);
                let arguments = self.arguments(arguments)?;
                return python::call(self, &of_value, name, arguments);
            }
            let callee_value = self.attribute(callee, of_value, name)?.defined()?;
            let arguments = self.arguments(arguments)?;
            return self.call_value(node, &callee_value, arguments);
        }
        let callee_value = self.defined(callee)?;
        let arguments = self.arguments(arguments)?;
        self.call_value(node, &callee_value, arguments)
    }

    /// Makes a list or a mapping that a template set alterable before a method alters it.
    fn alterable(&mut self, node: &Node, value: Live, method: &str) -> Live {
        if !python::alters(method) {
            return value;
        }
        let altered = match &value {
            Live::Done(Value::List(_)) | Live::Lazy(Value::List(_), _) => value.items().map(Live::from),
            Live::Done(Value::Map(_)) | Live::Lazy(Value::Map(_), _) => {
                value.entries().unwrap_or_else(|| Ok(Vec::new())).map(|entries| Entries::from_iter(entries).into())
            }
            _ => return value,
        };
        let Ok(altered) = altered else { return value };
        if let Expr::Var(name) = &node.kind {
            let scope = self.scopes.iter().rev().find(|scope| scope.borrow().contains_key(name)).cloned();
            let scope = scope.unwrap_or_else(|| self.scopes[0].clone());
            scope.borrow_mut().insert(name.clone(), altered.clone());
        }
        altered
    }

    pub fn call_value(&mut self, node: &Node, callee: &Live, arguments: Arguments) -> Result<Live> {
        match callee {
            Live::Function(function) => {
                let function = function.clone();
                self.call_function(node, &function, arguments)
            }
            Live::Loop(state) => match &state.again {
                Some(again) => {
                    let again = again.clone();
                    self.call_function(node, &again, arguments)
                }
                None => Err(self.fault(node, "`loop` can be called in a `recursive` loop only")),
            },
            other => Err(self.fault(node, format!("'{}' object is not callable", other.type_name()))),
        }
    }
}
