//! Reads a template with minijinja's parser, the one place that knows minijinja's syntax tree.

use std::sync::Arc;

use minijinja::machinery::{Span, ast, parse as parse_template, parse_expr};
use minijinja::syntax::SyntaxConfig;

use super::ast::{Argument, Binary, Compare, Expr, For, Macro, Node, Parsed, Statement};
use super::{backslashes, filters, signs, tests};
use crate::source::nearest;
use crate::value::{Value, may_be_template};

/// What is wrong with a template's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxFault {
    pub offset: usize,
    pub message: String,
    pub help: Option<String>,
}

type Result<T> = std::result::Result<T, SyntaxFault>;

/// Reads a text with `{{ … }}` in it. In a playbook, a backslash in a string inside `{{ }}` is a backslash.
pub(super) fn template(text: &str, syntax: SyntaxConfig, literal_backslashes: bool) -> Result<Parsed> {
    let (text, added) = match literal_backslashes && text.contains('\\') {
        true => backslashes::doubled(text),
        false => (text.to_owned(), Vec::new()),
    };
    let parsed = parse_template(&text, "template", syntax.clone());
    let unsigned = parsed.as_ref().err().and_then(|_| signs::blanked(&text));
    let again = unsigned.as_ref().and_then(|text| parse_template(text, "template", syntax).ok());
    let tree = again.map_or(parsed, Ok).map_err(|error| {
        let fault = fault_of(&text, &error);
        SyntaxFault { offset: original(&added, fault.offset as u32) as usize, ..fault }
    })?;
    let ast::Stmt::Template(root) = tree else { unreachable!("a parsed template is a template") };
    let mut reader = Reader { blocks: Vec::new(), is_bare: false, added };
    let body = reader.statements(&root.children)?;
    Ok(Parsed { body, blocks: reader.blocks })
}

/// Reads a bare expression, such as a condition.
pub(super) fn expression(text: &str) -> Result<Parsed> {
    let parsed = parse_expr(text);
    let unsigned = parsed.as_ref().err().and_then(|_| signs::blanked_expression(text));
    let again = unsigned.as_ref().and_then(|text| parse_expr(text).ok());
    let tree = again.map_or(parsed, Ok).map_err(|error| {
        let fault = fault_of(text, &error);
        match text.contains("{{") {
            true => {
                SyntaxFault { help: Some("an expression here takes no `{{ }}`: write the name alone".into()), ..fault }
            }
            false => fault,
        }
    })?;
    let body = vec![Statement::Emit(Reader { blocks: Vec::new(), is_bare: true, added: Vec::new() }.node(&tree)?)];
    Ok(Parsed { body, blocks: Vec::new() })
}

fn fault_of(text: &str, error: &minijinja::Error) -> SyntaxFault {
    let line_start = || {
        let before = error.line().unwrap_or(1).saturating_sub(1);
        text.split_inclusive('\n').take(before).map(str::len).sum()
    };
    let message = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    let offset = error.range().map_or_else(line_start, |range| range.start);
    SyntaxFault {
        offset,
        message: format!("syntax error in template: {message}"),
        help: operator(text.get(..offset).unwrap_or_default(), text.get(offset..).unwrap_or_default())
            .map(str::to_owned),
    }
}

/// Returns what to write for an operator of other languages that stands here.
fn operator(before: &str, rest: &str) -> Option<&'static str> {
    if before.ends_with('|') && rest.starts_with('|') {
        return Some("conditions are joined by `or`");
    }
    match rest.as_bytes() {
        [b'&', b'&', ..] => Some("conditions are joined by `and`"),
        [b'=', b'=', ..] => None,
        [b'=', ..] => Some("`==` compares"),
        [b'!', other, ..] if *other != b'=' => Some("a condition is denied by `not`"),
        [b'?', ..] => Some("a choice is written `a if condition else b`"),
        _ => None,
    }
}

struct Reader {
    blocks: Vec<(Arc<str>, Arc<Vec<Statement>>)>,
    /// Whether this is an expression alone, in which texts may hold templates.
    is_bare: bool,
    /// Where in the text that was parsed there is a backslash more than in the one that was written.
    added: Vec<u32>,
}

/// Returns where a byte of the text that was parsed is in the one that was written.
fn original(added: &[u32], offset: u32) -> u32 {
    offset - added.partition_point(|at| *at < offset) as u32
}

impl Reader {
    fn at(&self, span: Span, kind: Expr) -> Node {
        Node { start: original(&self.added, span.start_offset), end: original(&self.added, span.end_offset), kind }
    }

    fn statements(&mut self, statements: &[ast::Stmt<'_>]) -> Result<Vec<Statement>> {
        statements.iter().map(|statement| self.statement(statement)).collect()
    }

    fn statement(&mut self, statement: &ast::Stmt<'_>) -> Result<Statement> {
        Ok(match statement {
            ast::Stmt::Template(inner) => Statement::Plain(self.statements(&inner.children)?),
            ast::Stmt::EmitRaw(raw) => Statement::Raw(raw.raw.into()),
            ast::Stmt::EmitExpr(emit) => Statement::Emit(self.node(&emit.expr)?),
            ast::Stmt::ForLoop(each) => Statement::For(Arc::new(For {
                target: self.node(&each.target)?,
                over: self.node(&each.iter)?,
                only_if: each.filter_expr.as_ref().map(|filter| self.node(filter)).transpose()?,
                recursive: each.recursive,
                body: self.statements(&each.body)?,
                otherwise: self.statements(&each.else_body)?,
            })),
            ast::Stmt::IfCond(condition) => Statement::If {
                test: self.node(&condition.expr)?,
                then: self.statements(&condition.true_body)?,
                otherwise: self.statements(&condition.false_body)?,
            },
            ast::Stmt::WithBlock(with) => Statement::With {
                assignments: with
                    .assignments
                    .iter()
                    .map(|(target, value)| Ok((self.node(target)?, self.node(value)?)))
                    .collect::<Result<_>>()?,
                body: self.statements(&with.body)?,
            },
            ast::Stmt::Set(set) => Statement::Set { target: self.node(&set.target)?, value: self.node(&set.expr)? },
            ast::Stmt::SetBlock(set) => Statement::SetBlock {
                target: self.node(&set.target)?,
                filter: set.filter.as_ref().map(|filter| self.node(filter)).transpose()?,
                body: self.statements(&set.body)?,
            },
            ast::Stmt::AutoEscape(escape) => Statement::Plain(self.statements(&escape.body)?),
            ast::Stmt::FilterBlock(block) => {
                Statement::FilterBlock { filter: self.node(&block.filter)?, body: self.statements(&block.body)? }
            }
            ast::Stmt::Block(block) => {
                let name: Arc<str> = block.name.into();
                let body = self.statements(&block.body)?;
                self.blocks.push((name.clone(), Arc::new(body)));
                Statement::Block(name)
            }
            ast::Stmt::Extends(extends) => Statement::Extends(self.node(&extends.name)?),
            ast::Stmt::Include(include) => {
                Statement::Include { name: self.node(&include.name)?, ignore_missing: include.ignore_missing }
            }
            ast::Stmt::Import(import) => {
                Statement::Import { file: self.node(&import.expr)?, name: name_of(&import.name)? }
            }
            ast::Stmt::FromImport(import) => Statement::FromImport {
                file: self.node(&import.expr)?,
                names: import
                    .names
                    .iter()
                    .map(|(name, alias)| Ok((name_of(name)?, name_of(alias.as_ref().unwrap_or(name))?)))
                    .collect::<Result<_>>()?,
            },
            ast::Stmt::Macro(inner) => Statement::Macro(Arc::new(self.function(inner)?)),
            ast::Stmt::CallBlock(block) => Statement::CallBlock {
                call: self.call(&block.call, block.call.span())?,
                body: Arc::new(self.function(&block.macro_decl)?),
            },
            ast::Stmt::Do(inner) => Statement::Do(self.call(&inner.call, inner.call.span())?),
            ast::Stmt::Continue(_) => Statement::Continue,
            ast::Stmt::Break(_) => Statement::Break,
        })
    }

    fn function(&mut self, function: &ast::Macro<'_>) -> Result<Macro> {
        let required = function.args.len() - function.defaults.len();
        let parameters = function.args.iter().enumerate().map(|(nth, parameter)| {
            let default = nth.checked_sub(required).map(|nth| self.node(&function.defaults[nth])).transpose()?;
            Ok((name_of(parameter)?, default))
        });
        let parameters = parameters.collect::<Result<_>>()?;
        Ok(Macro { name: function.name.into(), parameters, body: self.statements(&function.body)? })
    }

    fn call(&mut self, call: &ast::Call<'_>, span: Span) -> Result<Node> {
        let mut arguments = self.arguments(&call.args)?;
        let is_lookup = matches!(&call.expr, ast::Expr::Var(var) if matches!(var.id, "lookup" | "query" | "q"));
        if is_lookup {
            // What follows the lookup's name may hold templates itself, as ansible-core still allows.
            arguments.iter_mut().skip(1).for_each(|argument| {
                if let Argument::Positional(node) = argument {
                    embed(node);
                }
            });
        }
        let kind = Expr::Call(Box::new(self.node(&call.expr)?), arguments);
        Ok(self.at(span, kind))
    }

    fn boxed(&mut self, expr: &ast::Expr<'_>) -> Result<Box<Node>> {
        self.node(expr).map(Box::new)
    }

    fn maybe(&mut self, expr: Option<&ast::Expr<'_>>) -> Result<Option<Box<Node>>> {
        expr.map(|expr| self.boxed(expr)).transpose()
    }

    fn node(&mut self, expr: &ast::Expr<'_>) -> Result<Node> {
        let kind = match expr {
            ast::Expr::Var(var) => Expr::Var(var.id.into()),
            ast::Expr::Const(constant) => match constant_of(&constant.value, expr.span())? {
                Value::Str(text) if self.is_bare && may_be_template(text.as_str()) => {
                    Expr::Embedded(text.shared().clone())
                }
                value => Expr::Const(value),
            },
            ast::Expr::Slice(slice) => Expr::Slice {
                of: self.boxed(&slice.expr)?,
                start: self.maybe(slice.start.as_ref())?,
                stop: self.maybe(slice.stop.as_ref())?,
                step: self.maybe(slice.step.as_ref())?,
            },
            ast::Expr::UnaryOp(unary) => match unary.op {
                ast::UnaryOpKind::Not => Expr::Not(self.boxed(&unary.expr)?),
                ast::UnaryOpKind::Neg => Expr::Negative(self.boxed(&unary.expr)?),
            },
            ast::Expr::BinOp(binary) => {
                let (left, right) = (self.node(&binary.left)?, self.node(&binary.right)?);
                binary_of(binary.op, left, right)
            }
            ast::Expr::Compare(compare) => Expr::Compare(
                self.boxed(&compare.expr)?,
                compare.ops.iter().map(|op| Ok((compare_of(op.op), self.node(&op.expr)?))).collect::<Result<_>>()?,
            ),
            ast::Expr::IfExpr(choice) => Expr::If {
                test: self.boxed(&choice.test_expr)?,
                then: self.boxed(&choice.true_expr)?,
                otherwise: self.maybe(choice.false_expr.as_ref())?,
            },
            ast::Expr::Filter(filter) => {
                let input = self.maybe(filter.expr.as_ref())?;
                let found = filters::find(filter.name)
                    .ok_or_else(|| unknown("filter", filter.name, filters::names(), expr.span()))?;
                Expr::Filter(input, found, self.arguments(&filter.args)?)
            }
            ast::Expr::Test(test) => {
                let found =
                    tests::find(test.name).ok_or_else(|| unknown("test", test.name, tests::names(), expr.span()))?;
                Expr::Test(self.boxed(&test.expr)?, found, self.arguments(&test.args)?)
            }
            ast::Expr::GetAttr(attribute) => Expr::Attribute(self.boxed(&attribute.expr)?, attribute.name.into()),
            ast::Expr::GetItem(item) => {
                Expr::Item(Box::new((self.node(&item.expr)?, self.node(&item.subscript_expr)?)))
            }
            ast::Expr::Call(call) => return self.call(call, expr.span()),
            ast::Expr::List(list) => Expr::List(self.nodes(&list.items)?),
            ast::Expr::Tuple(tuple) => Expr::Tuple(self.nodes(&tuple.items)?),
            ast::Expr::Map(map) => Expr::Map(
                map.keys
                    .iter()
                    .zip(&map.values)
                    .map(|(key, value)| Ok((self.node(key)?, self.node(value)?)))
                    .collect::<Result<_>>()?,
            ),
        };
        Ok(self.at(expr.span(), kind))
    }

    fn nodes(&mut self, exprs: &[ast::Expr<'_>]) -> Result<Vec<Node>> {
        exprs.iter().map(|expr| self.node(expr)).collect()
    }

    fn arguments(&mut self, arguments: &[ast::CallArg<'_>]) -> Result<Vec<Argument>> {
        let arguments = arguments.iter().map(|argument| {
            Ok(match argument {
                ast::CallArg::Pos(value) => Argument::Positional(self.node(value)?),
                ast::CallArg::Kwarg(name, value) => Argument::Named((*name).into(), self.node(value)?),
                ast::CallArg::PosSplat(value) => Argument::Unpacked(self.node(value)?),
                ast::CallArg::KwargSplat(value) => Argument::UnpackedMap(self.node(value)?),
            })
        });
        arguments.collect()
    }
}

/// Lets templates in texts that are written out be rendered.
fn embed(node: &mut Node) {
    if let Expr::List(nodes) | Expr::Tuple(nodes) = &mut node.kind {
        nodes.iter_mut().for_each(embed);
    } else if let Expr::Map(pairs) = &mut node.kind {
        pairs.iter_mut().for_each(|(_, value)| embed(value));
    } else if let Expr::Const(Value::Str(text)) = &node.kind
        && may_be_template(text.as_str())
    {
        node.kind = Expr::Embedded(text.shared().clone());
    }
}

fn unknown(what: &str, name: &str, known: Vec<&'static str>, span: Span) -> SyntaxFault {
    let help = match (nearest(name, known), name.rsplit_once('.')) {
        (Some(near), _) => Some(format!("did you mean `{near}`?")),
        (None, Some((collection, _))) => {
            Some(format!("{what}s of the collection `{collection}` work only as far as they are built in"))
        }
        (None, None) => None,
    };
    SyntaxFault { offset: span.start_offset as usize, message: format!("no {what} named `{name}`"), help }
}

fn name_of(expr: &ast::Expr<'_>) -> Result<Arc<str>> {
    match expr {
        ast::Expr::Var(var) => Ok(var.id.into()),
        other => Err(SyntaxFault {
            offset: other.span().start_offset as usize,
            message: format!("expected a name, found a {}", other.description()),
            help: None,
        }),
    }
}

fn constant_of(value: &minijinja::Value, span: Span) -> Result<Value> {
    use minijinja::value::ValueKind;
    let converted = match value.kind() {
        ValueKind::None => Some(Value::Null),
        ValueKind::Bool => Some(Value::Bool(value.is_true())),
        ValueKind::String => value.as_str().map(Value::from),
        ValueKind::Number if value.is_integer() => value.as_i64().map(Value::Int),
        ValueKind::Number => f64::try_from(value.clone()).ok().map(Value::Float),
        _ => None,
    };
    converted.ok_or_else(|| SyntaxFault {
        offset: span.start_offset as usize,
        message: format!("the number {value} is beyond 64 bits"),
        help: None,
    })
}

fn binary_of(op: ast::BinOpKind, left: Node, right: Node) -> Expr {
    use ast::BinOpKind as Op;
    let compare = |op, left, right| Expr::Compare(Box::new(left), vec![(op, right)]);
    let binary = |op, left, right| Expr::Binary(op, Box::new((left, right)));
    match op {
        Op::Eq => compare(Compare::Equal, left, right),
        Op::Ne => compare(Compare::NotEqual, left, right),
        Op::Lt => compare(Compare::Less, left, right),
        Op::Lte => compare(Compare::LessOrEqual, left, right),
        Op::Gt => compare(Compare::Greater, left, right),
        Op::Gte => compare(Compare::GreaterOrEqual, left, right),
        Op::In => compare(Compare::In, left, right),
        Op::ScAnd => Expr::And(Box::new((left, right))),
        Op::ScOr => Expr::Or(Box::new((left, right))),
        Op::Add => binary(Binary::Add, left, right),
        Op::Sub => binary(Binary::Subtract, left, right),
        Op::Mul => binary(Binary::Multiply, left, right),
        Op::Div => binary(Binary::Divide, left, right),
        Op::FloorDiv => binary(Binary::FloorDivide, left, right),
        Op::Rem => binary(Binary::Remainder, left, right),
        Op::Pow => binary(Binary::Power, left, right),
        Op::Concat => binary(Binary::Concatenate, left, right),
    }
}

fn compare_of(op: ast::CompareOpKind) -> Compare {
    use ast::CompareOpKind as Op;
    match op {
        Op::Eq => Compare::Equal,
        Op::Ne => Compare::NotEqual,
        Op::Lt => Compare::Less,
        Op::Lte => Compare::LessOrEqual,
        Op::Gt => Compare::Greater,
        Op::Gte => Compare::GreaterOrEqual,
        Op::In => Compare::In,
        Op::NotIn => Compare::NotIn,
    }
}
