//! The functions of JMESPath.

use std::cmp::Ordering;

use jmespath::ast::Ast;

use super::{Result, evaluate};
use crate::template::sorting;
use crate::value::{Map, Value};

/// An argument: a value, or an expression that the function evaluates itself.
enum Argument<'a> {
    Value(Value),
    Expression(&'a Ast),
}

/// The arguments of a call, and how messages name the function.
struct Call<'a> {
    name: &'a str,
    arguments: Vec<Argument<'a>>,
}

/// How many arguments each function takes; the second number is absent when there is no end to them.
const TAKES: &[(&str, usize, Option<usize>)] = &[
    ("abs", 1, Some(1)),
    ("avg", 1, Some(1)),
    ("ceil", 1, Some(1)),
    ("contains", 2, Some(2)),
    ("ends_with", 2, Some(2)),
    ("floor", 1, Some(1)),
    ("join", 2, Some(2)),
    ("keys", 1, Some(1)),
    ("length", 1, Some(1)),
    ("map", 2, Some(2)),
    ("max", 1, Some(1)),
    ("max_by", 2, Some(2)),
    ("merge", 1, None),
    ("min", 1, Some(1)),
    ("min_by", 2, Some(2)),
    ("not_null", 1, None),
    ("reverse", 1, Some(1)),
    ("sort", 1, Some(1)),
    ("sort_by", 2, Some(2)),
    ("starts_with", 2, Some(2)),
    ("sum", 1, Some(1)),
    ("to_array", 1, Some(1)),
    ("to_number", 1, Some(1)),
    ("to_string", 1, Some(1)),
    ("type", 1, Some(1)),
    ("values", 1, Some(1)),
];

/// Calls a function for a value.
pub(super) fn call(name: &str, arguments: &[Ast], value: &Value) -> Result<Value> {
    let Some((_, least, most)) = TAKES.iter().find(|(known, ..)| *known == name) else {
        return Err(format!("JMESPath has no function `{name}()`"));
    };
    if arguments.len() < *least || most.is_some_and(|most| arguments.len() > most) {
        return Err(format!("`{name}()` takes {least} arguments, not {}", arguments.len()));
    }
    let arguments = arguments.iter().map(|argument| match argument {
        Ast::Expref { ast, .. } => Ok(Argument::Expression(ast)),
        other => evaluate(other, value).map(Argument::Value),
    });
    let call = Call { name, arguments: arguments.collect::<Result<_>>()? };
    match name {
        "abs" | "avg" | "ceil" | "floor" | "sum" | "to_number" => call.numeric(),
        "map" | "max_by" | "min_by" | "sort_by" => call.by_expression(),
        "contains" | "ends_with" | "starts_with" | "join" | "to_string" | "type" => call.textual(),
        _ => call.collective(),
    }
}

/// Returns the order of two numbers or two texts; `None` for anything else.
pub(super) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Str(left), Value::Str(right)) => Some(left.as_str().cmp(right.as_str())),
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        (left, right) => number(left)?.partial_cmp(&number(right)?),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

/// Returns the name of a value's type.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null | Value::Omit => "null",
        Value::Bool(_) => "boolean",
        Value::Int(_) | Value::Float(_) => "number",
        Value::Str(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) | Value::Lazy(_) => "object",
    }
}

impl Call<'_> {
    fn value(&self, nth: usize) -> Result<&Value> {
        match &self.arguments[nth] {
            Argument::Value(value) => Ok(value),
            Argument::Expression(_) => Err(format!("`{}()` takes no expression with `&`", self.name)),
        }
    }

    fn expression(&self, nth: usize) -> Result<&Ast> {
        match &self.arguments[nth] {
            Argument::Expression(ast) => Ok(ast),
            Argument::Value(_) => Err(format!("`{}()` takes an expression, written with `&`, not a value", self.name)),
        }
    }

    fn wrong(&self, wanted: &str, given: &Value) -> String {
        format!("`{}()` takes {wanted}, not the {} {given:?}", self.name, kind(given))
    }

    fn list(&self, nth: usize) -> Result<&[Value]> {
        match self.value(nth)? {
            Value::List(items) => Ok(items),
            other => Err(self.wrong("an array", other)),
        }
    }

    fn text(&self, nth: usize) -> Result<&str> {
        let value = self.value(nth)?;
        value.as_str().ok_or_else(|| self.wrong("a string", value))
    }

    fn number(&self, value: &Value) -> Result<f64> {
        number(value).ok_or_else(|| self.wrong("numbers", value))
    }

    fn numeric(&self) -> Result<Value> {
        let value = self.value(0)?;
        Ok(match self.name {
            "abs" => match value {
                Value::Int(number) => Value::Int(number.saturating_abs()),
                other => Value::Float(self.number(other)?.abs()),
            },
            "ceil" => Value::Int(self.number(value)?.ceil() as i64),
            "floor" => Value::Int(self.number(value)?.floor() as i64),
            "to_number" => match value {
                Value::Int(_) | Value::Float(_) => value.clone(),
                Value::Str(text) => match (text.as_str().trim().parse(), text.as_str().trim().parse()) {
                    (Ok(whole), _) => Value::Int(whole),
                    (Err(_), Ok(number)) => Value::Float(number),
                    (Err(_), Err(_)) => Value::Null,
                },
                _ => Value::Null,
            },
            "avg" if self.list(0)?.is_empty() => Value::Null,
            name => {
                let items = self.list(0)?;
                let sum = items.iter().map(|item| self.number(item)).sum::<Result<f64>>()?;
                let whole = items.iter().try_fold(0_i64, |sum, item| match item {
                    Value::Int(number) => sum.checked_add(*number),
                    _ => None,
                });
                match (name, whole) {
                    ("avg", _) => Value::Float(sum / items.len() as f64),
                    (_, Some(whole)) => Value::Int(whole),
                    (_, None) => Value::Float(sum),
                }
            }
        })
    }

    fn textual(&self) -> Result<Value> {
        Ok(match self.name {
            "contains" => match self.value(0)? {
                Value::Str(text) => {
                    let wanted = self.value(1)?.as_str();
                    Value::Bool(wanted.is_some_and(|wanted| text.as_str().contains(wanted)))
                }
                Value::List(items) => Value::Bool(items.contains(self.value(1)?)),
                other => return Err(self.wrong("an array or a string", other)),
            },
            "starts_with" => Value::Bool(self.text(0)?.starts_with(self.text(1)?)),
            "ends_with" => Value::Bool(self.text(0)?.ends_with(self.text(1)?)),
            "join" => {
                let texts = self.list(1)?.iter().map(|item| item.as_str().ok_or_else(|| self.wrong("strings", item)));
                texts.collect::<Result<Vec<_>>>()?.join(self.text(0)?).into()
            }
            "to_string" => match self.value(0)? {
                Value::Str(text) => text.as_str().into(),
                other => other.to_json().to_string().into(),
            },
            _ => kind(self.value(0)?).into(),
        })
    }

    fn collective(&self) -> Result<Value> {
        Ok(match self.name {
            "keys" | "values" => match self.value(0)? {
                Value::Map(map) if self.name == "keys" => Value::list(map.keys().cloned().collect()),
                Value::Map(map) => Value::list(map.values().cloned().collect()),
                other => return Err(self.wrong("an object", other)),
            },
            "length" => Value::Int(match self.value(0)? {
                Value::Str(text) => text.as_str().chars().count(),
                Value::List(items) => items.len(),
                Value::Map(map) => map.len(),
                other => return Err(self.wrong("a string, an array or an object", other)),
            } as i64),
            "merge" => {
                let mut merged = Map::new();
                for nth in 0..self.arguments.len() {
                    match self.value(nth)? {
                        Value::Map(map) => merged.extend(map.iter().map(|(key, value)| (key.clone(), value.clone()))),
                        other => return Err(self.wrong("objects", other)),
                    }
                }
                merged.into()
            }
            "not_null" => {
                let values = (0..self.arguments.len()).map(|nth| self.value(nth)).collect::<Result<Vec<_>>>()?;
                values.into_iter().find(|value| **value != Value::Null).cloned().unwrap_or_default()
            }
            "reverse" => match self.value(0)? {
                Value::Str(text) => text.as_str().chars().rev().collect::<String>().into(),
                _ => Value::list(self.list(0)?.iter().rev().cloned().collect()),
            },
            "to_array" => match self.value(0)? {
                list @ Value::List(_) => list.clone(),
                other => Value::list(vec![other.clone()]),
            },
            _ => self.chosen(self.list(0)?.iter().map(|item| Ok((item.clone(), item))))?,
        })
    }

    fn by_expression(&self) -> Result<Value> {
        if self.name == "map" {
            let expression = self.expression(0)?;
            let found = self.list(1)?.iter().map(|item| evaluate(expression, item));
            return Ok(Value::list(found.collect::<Result<_>>()?));
        }
        let expression = self.expression(1)?;
        self.chosen(self.list(0)?.iter().map(|item| Ok((evaluate(expression, item)?, item))))
    }

    /// Returns the items sorted by their keys, or the first of those with the least or the greatest key. Keys are all
    /// numbers or all texts.
    fn chosen<'i>(&self, keyed: impl Iterator<Item = Result<(Value, &'i Value)>>) -> Result<Value> {
        let mut keyed = keyed.collect::<Result<Vec<_>>>()?;
        let Some((first, _)) = keyed.first() else {
            return Ok(if self.name.starts_with("sort") { Value::list(Vec::new()) } else { Value::Null });
        };
        if let Some((key, _)) = keyed.iter().find(|(key, _)| order(first, key).is_none()) {
            return Err(self.wrong("numbers only or strings only", key));
        }
        let compared = |left: &Value, right: &Value| order(left, right).unwrap_or(Ordering::Equal);
        if self.name.starts_with("max") {
            // Of equal items the last one is the greatest of all, and the first one is wanted.
            keyed.reverse();
        }
        let found = match self.name {
            "max" | "max_by" => keyed.into_iter().max_by(|(left, _), (right, _)| compared(left, right)),
            "min" | "min_by" => keyed.into_iter().min_by(|(left, _), (right, _)| compared(left, right)),
            _ => {
                let sorted = sorting::sorted(keyed, |(left, _), (right, _)| Ok::<_, String>(compared(left, right)))?;
                return Ok(Value::list(sorted.into_iter().map(|(_, item)| item.clone()).collect()));
            }
        };
        Ok(found.map_or(Value::Null, |(_, item)| item.clone()))
    }
}
