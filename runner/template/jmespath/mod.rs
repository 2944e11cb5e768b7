//! JMESPath, the language of `json_query`: the crate `jmespath` reads an expression, which is evaluated here, because
//! mappings keep their order and numbers their kind.

mod functions;

use jmespath::Variable;
use jmespath::ast::{Ast, Comparator};

use crate::value::{Map, Value};

/// What went wrong, as a sentence for a person.
type Result<T> = std::result::Result<T, String>;

/// Returns what an expression finds in a value.
///
/// # Errors
/// A sentence that says what is wrong with the expression, or with the value that a function of it was given.
pub(super) fn search(expression: &str, value: &Value) -> Result<Value> {
    let expression = with_quoted_literals(expression);
    let ast = jmespath::parse(&expression).map_err(|error| {
        let lines = error.to_string();
        format!("the query `{expression}`: {}", lines.lines().next().unwrap_or_default().trim_end_matches(':'))
    })?;
    evaluate(&ast, value)
}

/// Quotes what stands between backticks and is no JSON: `` `up` `` means `` `"up"` `` to users of json_query.
fn with_quoted_literals(expression: &str) -> String {
    let mut whole = String::new();
    let mut rest = expression;
    while let Some(start) = rest.find(['`', '\'', '"']) {
        let quote = rest.as_bytes()[start] as char;
        let inner = &rest[start + 1..];
        let Some(end) = end_of(inner, quote) else { break };
        let literal = inner[..end].trim_start();
        whole.push_str(&rest[..=start]);
        match quote == '`' && serde_json::from_str::<serde_json::Value>(&literal.replace("\\`", "`")).is_err() {
            true => whole.extend(["\"", literal, "\""]),
            false => whole.push_str(&inner[..end]),
        }
        whole.push(quote);
        rest = &inner[end + 1..];
    }
    whole + rest
}

/// Returns where a quoted text ends.
fn end_of(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let is_end = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        is_end.then_some(at)
    })
}

fn evaluate(ast: &Ast, value: &Value) -> Result<Value> {
    Ok(match ast {
        Ast::Identity { .. } => value.clone(),
        Ast::Field { name, .. } => value.get(name).cloned().unwrap_or_default(),
        Ast::Index { idx, .. } => item(value, *idx),
        Ast::Slice { start, stop, step, .. } => slice(value, *start, *stop, *step)?,
        Ast::Subexpr { lhs, rhs, .. } => evaluate(rhs, &evaluate(lhs, value)?)?,
        Ast::Literal { value, .. } => literal(value),
        Ast::And { lhs, rhs, .. } => match evaluate(lhs, value)? {
            found if holds(&found) => evaluate(rhs, value)?,
            found => found,
        },
        Ast::Or { lhs, rhs, .. } => match evaluate(lhs, value)? {
            found if holds(&found) => found,
            _ => evaluate(rhs, value)?,
        },
        Ast::Not { node, .. } => Value::Bool(!holds(&evaluate(node, value)?)),
        Ast::Condition { predicate, then, .. } => match holds(&evaluate(predicate, value)?) {
            true => evaluate(then, value)?,
            false => Value::Null,
        },
        Ast::Comparison { comparator, lhs, rhs, .. } => {
            compared(comparator, &evaluate(lhs, value)?, &evaluate(rhs, value)?)
        }
        Ast::ObjectValues { node, .. } => match evaluate(node, value)? {
            Value::Map(map) => Value::list(map.values().cloned().collect()),
            _ => Value::Null,
        },
        Ast::Projection { lhs, rhs, .. } => match evaluate(lhs, value)? {
            Value::List(items) => {
                let found = items.iter().map(|item| evaluate(rhs, item));
                let found = found.filter(|found| !matches!(found, Ok(Value::Null)));
                Value::list(found.collect::<Result<_>>()?)
            }
            _ => Value::Null,
        },
        Ast::Flatten { node, .. } => match evaluate(node, value)? {
            Value::List(items) => Value::list(items.iter().flat_map(flattened).collect()),
            _ => Value::Null,
        },
        Ast::MultiList { .. } | Ast::MultiHash { .. } if *value == Value::Null => Value::Null,
        Ast::MultiList { elements, .. } => {
            Value::list(elements.iter().map(|element| evaluate(element, value)).collect::<Result<_>>()?)
        }
        Ast::MultiHash { elements, .. } => {
            let entries = elements.iter().map(|pair| Ok((Value::from(&*pair.key), evaluate(&pair.value, value)?)));
            Value::map(entries.collect::<Result<Map>>()?)
        }
        Ast::Function { name, args, .. } => functions::call(name, args, value)?,
        Ast::Expref { .. } => return Err("`&` stands before an argument of a function only".to_owned()),
    })
}

fn flattened(item: &Value) -> Vec<Value> {
    match item {
        Value::List(items) => items.to_vec(),
        other => vec![other.clone()],
    }
}

/// Returns whether a value counts as true: numbers always do.
fn holds(value: &Value) -> bool {
    match value {
        Value::Int(_) | Value::Float(_) => true,
        other => other.truthy(),
    }
}

fn item(value: &Value, nth: i32) -> Value {
    let Value::List(items) = value else { return Value::Null };
    let nth = if nth < 0 { items.len() as i64 + i64::from(nth) } else { i64::from(nth) };
    usize::try_from(nth).ok().and_then(|nth| items.get(nth)).cloned().unwrap_or_default()
}

/// Returns a part of a list, as Python's `[start:stop:step]` does.
fn slice(value: &Value, start: Option<i32>, stop: Option<i32>, step: i32) -> Result<Value> {
    if step == 0 {
        return Err("a slice's step must not be zero".to_owned());
    }
    let Value::List(items) = value else { return Ok(Value::Null) };
    let (length, step) = (items.len() as i64, i64::from(step));
    let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let bound = |given: Option<i32>, otherwise: i64| match given.map(i64::from) {
        None => otherwise,
        Some(given) if given < 0 => (given + length).max(lowest),
        Some(given) => given.min(highest),
    };
    let (first, end) = if step > 0 { (lowest, highest) } else { (highest, lowest) };
    let (mut at, end) = (bound(start, first), bound(stop, end));
    let mut found = Vec::new();
    while if step > 0 { at < end } else { at > end } {
        found.extend(usize::try_from(at).ok().and_then(|at| items.get(at)).cloned());
        at += step;
    }
    Ok(Value::list(found))
}

fn literal(variable: &Variable) -> Value {
    match variable {
        Variable::Null | Variable::Expref(_) => Value::Null,
        Variable::Bool(flag) => Value::Bool(*flag),
        Variable::String(text) => Value::from(text.as_str()),
        Variable::Number(number) => Value::from_json(serde_json::Value::Number(number.clone())),
        Variable::Array(items) => Value::list(items.iter().map(|item| literal(item)).collect()),
        Variable::Object(entries) => {
            Value::map(entries.iter().map(|(key, value)| (Value::from(&**key), literal(value))).collect())
        }
    }
}

/// Compares: anything for sameness, numbers and texts for their order.
fn compared(how: &Comparator, left: &Value, right: &Value) -> Value {
    use std::cmp::Ordering;
    let holds: fn(Ordering) -> bool = match how {
        Comparator::Equal => return Value::Bool(left == right),
        Comparator::NotEqual => return Value::Bool(left != right),
        Comparator::LessThan => Ordering::is_lt,
        Comparator::LessThanEqual => Ordering::is_le,
        Comparator::GreaterThan => Ordering::is_gt,
        Comparator::GreaterThanEqual => Ordering::is_ge,
    };
    functions::order(left, right).map_or(Value::Null, |order| Value::Bool(holds(order)))
}
