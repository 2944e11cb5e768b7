//! Python's operators.

use std::cmp::Ordering;

use super::ast::{Binary, Compare};
use super::error::TemplateError;
use super::live::{Live, Result};
use super::{percent, sorting};
use crate::value::{Map, Value};

/// How long a text or a list that `*` makes may be.
const REPEAT_LIMIT: usize = 50_000_000;

fn fault(message: impl Into<String>) -> TemplateError {
    TemplateError::new(Default::default(), message)
}

fn unsupported(op: &str, left: &Live, right: &Live) -> TemplateError {
    let (left, right) = (left.type_name(), right.type_name());
    let error = fault(format!("unsupported operand types for {op}: '{left}' and '{right}'"));
    match (left, right) {
        ("str", "int" | "float") | ("int" | "float", "str") => {
            error.help("use `| int` or `| float` for arithmetic, `~` to put texts together")
        }
        _ => error,
    }
}

fn too_large(op: &str) -> TemplateError {
    fault(format!("the result of `{op}` is beyond 64 bits"))
}

/// A number as arithmetic takes it.
#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    fn of(value: &Live) -> Option<Number> {
        match value {
            Live::Done(Value::Int(number)) => Some(Number::Int(*number)),
            Live::Done(Value::Bool(flag)) => Some(Number::Int(i64::from(*flag))),
            Live::Done(Value::Float(number)) => Some(Number::Float(*number)),
            _ => None,
        }
    }

    fn float(self) -> f64 {
        match self {
            Number::Int(number) => number as f64,
            Number::Float(number) => number,
        }
    }
}

pub(super) fn negative(value: &Live) -> Result<Live> {
    match Number::of(&value.clone().defined()?) {
        Some(Number::Int(number)) => number.checked_neg().map(Live::from).ok_or_else(|| too_large("-")),
        Some(Number::Float(number)) => Ok((-number).into()),
        None => Err(fault(format!("bad operand type for unary -: '{}'", value.type_name()))),
    }
}

pub(super) fn binary(op: Binary, left: &Live, right: &Live) -> Result<Live> {
    match op {
        Binary::Add => add(left, right),
        Binary::Subtract => subtract(left, right),
        Binary::Multiply => multiply(left, right),
        Binary::Divide => arithmetic("/", left, right),
        Binary::FloorDivide => arithmetic("//", left, right),
        Binary::Power => arithmetic("**", left, right),
        Binary::Remainder => match left {
            Live::Done(Value::Str(format)) => {
                percent::format(format.as_str(), &right.force()?, matches!(right, Live::Tuple(_)))
                    .map(Live::from)
                    .map_err(fault)
            }
            _ => arithmetic("%", left, right),
        },
        Binary::Concatenate => Ok((left.text()? + &right.text()?).into()),
    }
}

fn add(left: &Live, right: &Live) -> Result<Live> {
    if left.is_list() && right.is_list() {
        let mut items = left.items()?;
        items.extend(right.items()?);
        return Ok(items.into());
    }
    if left.is_text() && right.is_text() {
        return Ok((left.text()? + &right.text()?).into());
    }
    match (left, right) {
        (Live::Moment(moment), Live::Duration(duration)) => return Ok(Live::Moment(moment.moved(*duration)?)),
        (Live::Duration(a), Live::Duration(b)) => return Ok(Live::Duration(*a + *b)),
        _ => {}
    }
    arithmetic("+", left, right)
}

fn subtract(left: &Live, right: &Live) -> Result<Live> {
    match (left, right) {
        (Live::Moment(a), Live::Moment(b)) => Ok(Live::Duration(a.since(b)?)),
        (Live::Moment(moment), Live::Duration(duration)) => Ok(Live::Moment(moment.moved(-*duration)?)),
        (Live::Duration(a), Live::Duration(b)) => Ok(Live::Duration(*a - *b)),
        _ => arithmetic("-", left, right),
    }
}

fn multiply(left: &Live, right: &Live) -> Result<Live> {
    let (of, times) = match (Number::of(left), Number::of(right)) {
        (Some(Number::Int(times)), None) => (right, times),
        (None, Some(Number::Int(times))) => (left, times),
        _ => return arithmetic("*", left, right),
    };
    let times = usize::try_from(times).unwrap_or(0);
    if of.length().unwrap_or(0).saturating_mul(times) > REPEAT_LIMIT {
        return Err(fault(format!("`*` gives more than {REPEAT_LIMIT} items")));
    }
    if of.is_text() {
        return Ok(of.text()?.repeat(times).into());
    }
    if of.is_list() {
        let items = of.items()?;
        return Ok(std::iter::repeat_n(items, times).flatten().collect::<Vec<_>>().into());
    }
    Err(unsupported("*", left, right))
}

fn arithmetic(op: &str, left: &Live, right: &Live) -> Result<Live> {
    let (Some(a), Some(b)) = (Number::of(left), Number::of(right)) else {
        return Err(unsupported(op, left, right));
    };
    if matches!(op, "/" | "//" | "%") && b.float() == 0.0 {
        return Err(fault(if op == "%" { "modulo by zero" } else { "division by zero" }));
    }
    if let (Number::Int(a), Number::Int(b)) = (a, b) {
        let whole = match op {
            "+" => a.checked_add(b),
            "-" => a.checked_sub(b),
            "*" => a.checked_mul(b),
            "//" => floor_division(a, b),
            "%" => a.checked_rem(b).map(|rest| if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }),
            "**" if b >= 0 => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
            _ => return Ok(float_arithmetic(op, a as f64, b as f64).into()),
        };
        return whole.map(Live::from).ok_or_else(|| too_large(op));
    }
    Ok(float_arithmetic(op, a.float(), b.float()).into())
}

fn floor_division(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

fn float_arithmetic(op: &str, a: f64, b: f64) -> f64 {
    match op {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "//" => (a / b).floor(),
        "%" => a - b * (a / b).floor(),
        _ => a.powf(b),
    }
}

pub(super) fn compare(op: Compare, left: &Live, right: &Live) -> Result<bool> {
    Ok(match op {
        Compare::Equal => equal(left, right)?,
        Compare::NotEqual => !equal(left, right)?,
        Compare::In => contains(right, left)?,
        Compare::NotIn => !contains(right, left)?,
        Compare::Less => order("<", left, right)?.is_some_and(Ordering::is_lt),
        Compare::LessOrEqual => order("<=", left, right)?.is_some_and(Ordering::is_le),
        Compare::Greater => order(">", left, right)?.is_some_and(Ordering::is_gt),
        Compare::GreaterOrEqual => order(">=", left, right)?.is_some_and(Ordering::is_ge),
    })
}

pub(super) fn equal(left: &Live, right: &Live) -> Result<bool> {
    if let (Live::Moment(a), Live::Moment(b)) = (left, right) {
        return Ok(a.since(b)?.is_zero());
    }
    Ok(same(&left.force()?, &right.force()?))
}

/// Returns whether two values are equal in Python, for which `True == 1`.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Bool(a), Value::Int(b)) | (Value::Int(b), Value::Bool(a)) => i64::from(*a) == *b,
        (Value::Bool(a), Value::Float(b)) | (Value::Float(b), Value::Bool(a)) => f64::from(u8::from(*a)) == *b,
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(a, b)),
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get_key(key).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}

pub(super) fn contains(within: &Live, wanted: &Live) -> Result<bool> {
    if let Live::Done(Value::Lazy(lazy)) = within {
        let wanted = wanted.force()?;
        return Ok(wanted.as_str().is_some_and(|name| lazy.keys().iter().any(|key| &**key == name)));
    }
    if within.is_map() {
        return Ok(within.item(&wanted.force()?)?.is_some());
    }
    if within.is_text() {
        if !wanted.is_text() {
            return Err(fault(format!("'in <string>' requires string as left operand, not {}", wanted.type_name())));
        }
        return Ok(within.text()?.contains(&wanted.text()?));
    }
    if within.is_list() {
        let wanted = wanted.force()?;
        for item in within.items()? {
            if same(&item.force()?, &wanted) {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    Err(fault(format!("argument of type '{}' is not iterable", within.type_name())))
}

fn order(op: &str, left: &Live, right: &Live) -> Result<Option<Ordering>> {
    match (left, right) {
        (Live::Moment(a), Live::Moment(b)) => Ok(Some(a.since(b)?.cmp(&jiff::SignedDuration::ZERO))),
        (Live::Duration(a), Live::Duration(b)) => Ok(Some(a.cmp(b))),
        _ => ordered(&left.force()?, &right.force()?).map_err(|(a, b)| {
            let error = fault(format!("'{op}' not supported between instances of '{a}' and '{b}'"));
            match (a, b) {
                ("str", "int" | "float") | ("int" | "float", "str") => error.help("use `| int` or `| float` first"),
                _ => error,
            }
        }),
    }
}

/// Orders two values as Python does.
///
/// # Errors
/// The names of two types that have no order between them.
pub(super) fn ordered(
    left: &Value,
    right: &Value,
) -> std::result::Result<Option<Ordering>, (&'static str, &'static str)> {
    match (left, right) {
        (Value::Str(a), Value::Str(b)) => Ok(Some(a.as_str().cmp(b.as_str()))),
        (Value::Int(a), Value::Int(b)) => Ok(Some(a.cmp(b))),
        (Value::List(a), Value::List(b)) => {
            for (a, b) in a.iter().zip(b.iter()) {
                if !same(a, b) {
                    return ordered(a, b);
                }
            }
            Ok(Some(a.len().cmp(&b.len())))
        }
        _ => match (Number::of(&Live::Done(left.clone())), Number::of(&Live::Done(right.clone()))) {
            (Some(a), Some(b)) => Ok(a.float().partial_cmp(&b.float())),
            _ => Err((super::live::type_name(left), super::live::type_name(right))),
        },
    }
}

/// `of[start:stop:step]`.
pub(super) fn slice(of: &Live, start: Option<i64>, stop: Option<i64>, step: Option<i64>) -> Result<Live> {
    if !of.is_list() && !of.is_text() {
        return Err(fault(format!("'{}' object can't be sliced", of.type_name())));
    }
    let items = of.items()?;
    let length = items.len() as i64;
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(fault("slice step cannot be zero"));
    }
    let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let bound = |at: i64| if at < 0 { (at + length).max(low) } else { at.min(high) };
    let mut at = start.map_or(if step > 0 { low } else { high }, bound);
    let stop = stop.map_or(if step > 0 { high } else { low }, bound);
    let mut chosen = Vec::new();
    while (step > 0 && at < stop) || (step < 0 && at > stop) {
        chosen.push(items[at as usize].clone());
        at = at.saturating_add(step);
    }
    match of.is_text() {
        true => chosen.iter().map(Live::text).collect::<Result<String>>().map(Live::from),
        false => Ok(chosen.into()),
    }
}

/// Sorts values as Python does, or says which two types have no order.
pub(super) fn sort(values: &mut Vec<Value>) -> std::result::Result<(), String> {
    *values = sorting::sorted(std::mem::take(values), less)?;
    Ok(())
}

/// Returns how two values are sorted; what has no order though its types have one counts as equal.
///
/// # Errors
/// A sentence that names two types without an order.
pub(super) fn less(a: &Value, b: &Value) -> std::result::Result<Ordering, String> {
    match ordered(a, b) {
        Ok(order) => Ok(order.unwrap_or(Ordering::Equal)),
        Err((a, b)) => Err(format!("'<' not supported between instances of '{a}' and '{b}'")),
    }
}

/// Returns a mapping with the entries of both, those of the second winning.
pub(super) fn merged(first: &Map, second: &Map) -> Map {
    let mut map = first.clone();
    map.extend(second.iter().map(|(key, value)| (key.clone(), value.clone())));
    map
}
