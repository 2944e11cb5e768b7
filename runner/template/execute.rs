//! Executes a template's statements.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use indexmap::IndexMap;

use super::ast::{Expr, For, Node, Statement};
use super::call::Arguments;
use super::evaluate::{Code, Evaluator, Scope};
use super::functions::{Closure, Function, Recursion};
use super::live::{Live, Loop, Result};
use super::{cache, lookups};
use crate::value::Value;

/// How deep includes, imports and recursive loops may be in one another.
const NESTING_LIMIT: usize = 40;

/// What each block is: its own body first, then those of the templates it extends.
pub(super) type Blocks = HashMap<Arc<str>, Vec<(Arc<Vec<Statement>>, Rc<Code>)>>;

/// Returns how many newlines end a text.
pub(super) fn newlines(text: &str) -> usize {
    text.len() - text.trim_end_matches('\n').len()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Continue,
    Break,
}

impl Evaluator {
    /// Runs the template and returns its value: native when one expression alone gave output.
    pub fn run(mut self) -> Result<Live> {
        let written = self.code.text.clone();
        let mut out = Vec::new();
        self.run_root(&mut out)?;
        // What is none prints as nothing, and leaves a value beside it native.
        if out.len() > 1 {
            out.retain(|piece| !matches!(piece, Live::Done(Value::Null)));
        }
        let result = match out.len() {
            0 => return Ok(Live::NULL),
            1 => out.swap_remove(0),
            _ => joined(&out)?.into(),
        };
        // A text's newlines that rendering has lost are put back, as in Ansible; what is native loses them.
        let missing = match &result {
            Live::Done(Value::Str(text)) => newlines(written.as_str()).saturating_sub(newlines(text.as_str())),
            _ => 0,
        };
        if missing == 0 { Ok(result) } else { Ok(joined(&[result, "\n".repeat(missing).into()])?.into()) }
    }

    /// Runs the template and returns its text; `None` where it put out nothing, not even an empty text.
    pub fn run_text(mut self) -> Result<Option<String>> {
        let mut out = Vec::new();
        self.run_root(&mut out)?;
        if out.is_empty() { Ok(None) } else { joined(&out).map(Some) }
    }

    /// Runs the template and those that it extends.
    fn run_root(&mut self, out: &mut Vec<Live>) -> Result<()> {
        for _ in 0..NESTING_LIMIT {
            let code = self.code.clone();
            for (name, body) in &code.parsed.blocks {
                self.blocks.entry(name.clone()).or_default().push((body.clone(), code.clone()));
            }
            let mut parent = None;
            for statement in &code.parsed.body {
                match statement {
                    Statement::Extends(name) => parent = Some(self.load(name)?),
                    Statement::Block(_) if parent.is_some() => {}
                    // What stands outside of blocks in a template that extends another is not shown, but runs.
                    _ if parent.is_some() => drop(self.execute(statement, &mut Vec::new())?),
                    _ => drop(self.execute(statement, out)?),
                }
            }
            match parent {
                Some(parent) => self.code = parent,
                None => return Ok(()),
            }
        }
        Err(super::TemplateError::new(self.code.text.place, "templates extend one another without an end"))
    }

    fn body(&mut self, statements: &[Statement], out: &mut Vec<Live>) -> Result<Flow> {
        for statement in statements {
            match self.execute(statement, out)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    /// Returns what statements print, in a scope of their own.
    pub fn text_of(&mut self, statements: &[Statement]) -> Result<String> {
        let mut out = Vec::new();
        self.scoped(|this| this.body(statements, &mut out))?;
        joined(&out)
    }

    fn scoped<T>(&mut self, run: impl FnOnce(&mut Evaluator) -> Result<T>) -> Result<T> {
        self.scopes.push(Scope::default());
        let result = run(self);
        self.scopes.pop();
        result
    }

    fn set(&mut self, name: &Arc<str>, value: Live) {
        let scope = self.scopes.last().expect("there is always a scope");
        scope.borrow_mut().insert(name.clone(), value);
    }

    fn execute(&mut self, statement: &Statement, out: &mut Vec<Live>) -> Result<Flow> {
        match statement {
            Statement::Raw(text) => {
                if !text.is_empty() {
                    out.push(Live::Done(Value::str(text.clone())));
                }
            }
            Statement::Emit(node) => {
                let value = self.evaluate(node)?;
                out.push(value);
            }
            Statement::For(each) => {
                let code = self.code.clone();
                let items = self.defined(&each.over)?;
                let again = each.recursive.then(|| {
                    let scopes = self.scopes.clone();
                    Rc::new(Function::Recurse(Recursion { code, each: each.clone(), scopes }))
                });
                self.for_each(each, &items, again, out)?;
            }
            Statement::If { test, then, otherwise } => {
                let chosen = if self.evaluate(test)?.truthy()? { then } else { otherwise };
                return self.body(chosen, out);
            }
            Statement::With { assignments, body } => {
                return self.scoped(|this| {
                    for (target, value) in assignments {
                        let value = this.evaluate(value)?;
                        this.assign(target, value)?;
                    }
                    this.body(body, out)
                });
            }
            Statement::Set { target, value } => {
                let value = self.evaluate(value)?;
                self.assign(target, value)?;
            }
            Statement::SetBlock { target, filter, body } => {
                let text = self.text_of(body)?;
                let value = self.filtered(filter.as_ref(), text)?;
                self.assign(target, value)?;
            }
            Statement::FilterBlock { filter, body } => {
                let text = self.text_of(body)?;
                let value = self.filtered(Some(filter), text)?;
                out.push(value);
            }
            Statement::Plain(body) => return self.body(body, out),
            Statement::Block(name) => {
                let name = name.clone();
                let text = self.block_text_of(&name, 0)?;
                out.push(text.into());
            }
            Statement::Extends(node) => return Err(self.fault(node, "`extends` must stand outside of everything")),
            Statement::Include { name, ignore_missing } => self.include(name, *ignore_missing, out)?,
            Statement::Import { file, name } => {
                let module = self.module(file)?;
                self.set(name, Live::Module(Rc::new(module)));
            }
            Statement::FromImport { file, names } => {
                let module = self.module(file)?;
                for (name, alias) in names {
                    let Some(value) = module.get(name) else {
                        return Err(self.fault(file, format!("the template has no `{name}` to import")));
                    };
                    self.set(alias, value.clone());
                }
            }
            Statement::Macro(declared) => {
                let function = self.closure(declared);
                self.set(&declared.name, function);
            }
            Statement::CallBlock { call, body } => {
                let caller = self.closure(body);
                let Expr::Call(callee, arguments) = &call.kind else {
                    return Err(self.fault(call, "a `call` block calls a macro"));
                };
                let callee = self.defined(callee)?;
                let mut arguments: Arguments = self.arguments(arguments)?;
                arguments.named.push(("caller".into(), caller));
                let value = self.call_value(call, &callee, arguments)?;
                out.push(value);
            }
            Statement::Do(node) => drop(self.evaluate(node)?),
            Statement::Continue => return Ok(Flow::Continue),
            Statement::Break => return Ok(Flow::Break),
        }
        Ok(Flow::Next)
    }

    fn closure(&self, declared: &Arc<super::ast::Macro>) -> Live {
        let closure = Closure { code: self.code.clone(), declared: declared.clone(), scopes: self.scopes.clone() };
        Live::Function(Rc::new(Function::Macro(closure)))
    }

    fn filtered(&mut self, filter: Option<&Node>, text: String) -> Result<Live> {
        let Some(filter) = filter else { return Ok(text.into()) };
        let outer = self.block_text.replace(text.into());
        let result = self.evaluate(filter);
        self.block_text = outer;
        result
    }

    fn assign(&mut self, target: &Node, value: Live) -> Result<()> {
        match &target.kind {
            Expr::Var(name) => self.set(name, value),
            Expr::List(targets) | Expr::Tuple(targets) => {
                let values = value.items().map_err(|error| error.or_at(self.at(target)))?;
                if values.len() != targets.len() {
                    let (wanted, given) = (targets.len(), values.len());
                    return Err(self.fault(target, format!("{wanted} names for {given} values")));
                }
                for (target, value) in targets.iter().zip(values) {
                    self.assign(target, value)?;
                }
            }
            Expr::Attribute(of, name) => match self.defined(of)? {
                Live::Namespace(entries) => drop(entries.borrow_mut().insert(name.clone(), value)),
                other => {
                    let message = format!("attributes are set on a `namespace()`, not on a {}", other.type_name());
                    return Err(self.fault(target, message));
                }
            },
            _ => return Err(self.fault(target, "this can't be set")),
        }
        Ok(())
    }

    fn for_each(&mut self, each: &For, over: &Live, again: Option<Rc<Function>>, out: &mut Vec<Live>) -> Result<()> {
        let mut items = over.items().map_err(|error| error.or_at(self.at(&each.over)))?;
        if let Some(only_if) = &each.only_if {
            let mut kept = Vec::with_capacity(items.len());
            for item in items {
                let keep = self.scoped(|this| {
                    this.assign(&each.target, item.clone())?;
                    this.evaluate(only_if)?.truthy()
                })?;
                if keep {
                    kept.push(item);
                }
            }
            items = kept;
        }
        if items.is_empty() {
            self.scoped(|this| this.body(&each.otherwise, out))?;
            return Ok(());
        }
        let items = Rc::new(items);
        let changed = Rc::default();
        self.loop_depth += 1;
        for nth in 0..items.len() {
            let state = Loop {
                items: items.clone(),
                nth,
                depth: self.loop_depth,
                changed: Rc::clone(&changed),
                again: again.clone(),
            };
            let flow = self.scoped(|this| {
                this.set(&"loop".into(), Live::Loop(Rc::new(state)));
                this.assign(&each.target, items[nth].clone())?;
                this.body(&each.body, out)
            })?;
            if flow == Flow::Break {
                break;
            }
        }
        self.loop_depth -= 1;
        Ok(())
    }

    pub fn recurse(&mut self, node: &Node, recursion: &Recursion, arguments: Arguments) -> Result<Live> {
        let [over] = &arguments.positional[..] else {
            return Err(self.fault(node, "`loop()` takes the items of the next level"));
        };
        if self.loop_depth >= NESTING_LIMIT {
            return Err(self.fault(node, format!("loops are more than {NESTING_LIMIT} levels deep")));
        }
        let again = Rc::new(Function::Recurse(Recursion {
            code: recursion.code.clone(),
            each: recursion.each.clone(),
            scopes: recursion.scopes.clone(),
        }));
        let outer_scopes = std::mem::replace(&mut self.scopes, recursion.scopes.clone());
        let outer_code = std::mem::replace(&mut self.code, recursion.code.clone());
        let mut out = Vec::new();
        let result = self.for_each(&recursion.each, over, Some(again), &mut out);
        self.scopes = outer_scopes;
        self.code = outer_code;
        result?;
        Ok(joined(&out)?.into())
    }

    /// Reads the template that an expression names.
    fn load(&mut self, name: &Node) -> Result<Rc<Code>> {
        let value = self.defined(name)?.force()?;
        self.load_first(name, &value)?.ok_or_else(|| {
            self.fault(name, format!("no template `{value}`"))
                .help(lookups::searched(&self.context.templar, "templates"))
        })
    }

    /// Reads the first template there is of one name or a list of them.
    fn load_first(&mut self, node: &Node, names: &Value) -> Result<Option<Rc<Code>>> {
        self.context.templar.inner.variables.reads_here();
        let names: Vec<String> = match names {
            Value::List(names) => names.iter().map(Value::to_string).collect(),
            name => vec![name.to_string()],
        };
        for name in names {
            if let Some(path) = lookups::find_file(&self.context.templar, "templates", &name) {
                let text = super::files::read(&path).map_err(|message| self.fault(node, message))?;
                let syntax = self.context.templar.inner.syntax.clone();
                let parsed = cache::file(text.shared(), &syntax)
                    .map_err(|fault| super::evaluate::syntax_error(&text, &fault))?;
                return Ok(Some(Rc::new(Code { text, parsed })));
            }
        }
        Ok(None)
    }

    fn include(&mut self, name: &Node, ignore_missing: bool, out: &mut Vec<Live>) -> Result<()> {
        let value = self.defined(name)?.force()?;
        let code = match self.load_first(name, &value)? {
            Some(code) => code,
            None if ignore_missing => return Ok(()),
            None => {
                return Err(self
                    .fault(name, format!("no template `{value}`"))
                    .help(lookups::searched(&self.context.templar, "templates")));
            }
        };
        if self.calls >= NESTING_LIMIT {
            return Err(self.fault(name, format!("includes are more than {NESTING_LIMIT} levels deep")));
        }
        let mut inner = Evaluator::new(self.context.clone(), code);
        inner.scopes = self.scopes.clone();
        inner.scopes.push(Scope::default());
        inner.calls = self.calls + 1;
        inner.loop_depth = self.loop_depth;
        let text = inner.run_text().map_err(|error| error.through(self.at(name), "included here"))?;
        out.extend(text.map(Live::from));
        Ok(())
    }

    /// Runs a template for what it declares.
    fn module(&mut self, file: &Node) -> Result<IndexMap<Arc<str>, Live>> {
        let code = self.load(file)?;
        if self.calls >= NESTING_LIMIT {
            return Err(self.fault(file, format!("imports are more than {NESTING_LIMIT} levels deep")));
        }
        let mut inner = Evaluator::new(self.context.clone(), code);
        inner.scopes = self.scopes.clone();
        let own = Scope::default();
        inner.scopes.push(own.clone());
        inner.calls = self.calls + 1;
        inner.run_text().map_err(|error| error.through(self.at(file), "imported here"))?;
        let exports = own.borrow().iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        Ok(exports)
    }

    pub fn block_call(&mut self, node: &Node, name: &Arc<str>) -> Result<Live> {
        self.render_block(node, name, 0)
    }

    pub fn render_block(&mut self, node: &Node, name: &Arc<str>, level: usize) -> Result<Live> {
        match self.blocks.get(name).map(Vec::len) {
            Some(levels) if level < levels => Ok(self.block_text_of(name, level)?.into()),
            Some(_) => Err(self.fault(node, format!("block `{name}` overrides none"))),
            None => Err(self.fault(node, format!("no block `{name}`"))),
        }
    }

    fn block_text_of(&mut self, name: &Arc<str>, level: usize) -> Result<String> {
        let Some((body, code)) = self.blocks.get(name).and_then(|levels| levels.get(level)).cloned() else {
            return Ok(String::new());
        };
        if self.calls >= NESTING_LIMIT {
            return Err(super::TemplateError::new(code.text.place, format!("block `{name}` shows itself")));
        }
        let outer_code = std::mem::replace(&mut self.code, code);
        self.calls += 1;
        let mut out = Vec::new();
        let result = self.scoped(|this| {
            let above = Function::Super(name.clone(), level + 1);
            this.set(&"super".into(), Live::Function(Rc::new(above)));
            this.body(&body, &mut out)
        });
        self.calls -= 1;
        self.code = outer_code;
        result?;
        joined(&out)
    }
}

/// Returns pieces of output as one text; what is none prints as nothing.
fn joined(pieces: &[Live]) -> Result<String> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Live::Done(Value::Null | Value::Omit) => {}
            Live::Undefined(undefined) if undefined.silent => {}
            Live::Done(Value::Str(piece)) => text.push_str(piece.as_str()),
            // A tuple is a list by now.
            other => text.push_str(&other.force()?.to_string()),
        }
    }
    Ok(text)
}
