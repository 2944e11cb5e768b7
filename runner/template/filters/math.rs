//! Filters of numbers.

use std::cmp::Ordering;

use super::choose::by_attribute;
use crate::template::ast::Binary;
use crate::template::call::{Call, Filter, callable};
use crate::template::live::{Live, Result, Undefined};
use crate::template::operators;
use crate::value::Value;

pub(super) const FILTERS: &[Filter] = &[
    callable("abs", &[], |call| match call.value()? {
        Value::Int(number) => number.checked_abs().map(Live::from).ok_or_else(|| call.fault("is beyond 64 bits")),
        Value::Float(number) => Ok(number.abs().into()),
        Value::Bool(flag) => Ok(i64::from(flag).into()),
        other => Err(call.fault(format!("takes a number, not {}", other.kind()))),
    }),
    callable("round", &["precision", "method"], round),
    callable("sum", &["attribute", "start"], sum),
    callable("min", &["case_sensitive", "attribute"], |call| extreme(call, Ordering::Less)),
    callable("max", &["case_sensitive", "attribute"], |call| extreme(call, Ordering::Greater)),
    callable("log", &["base"], |call| {
        let number = positive(call)?;
        Ok(match call.get(0).map(|base| number_of(call, &base)).transpose()? {
            Some(10.0) => number.log10().into(),
            Some(base) => number.log(base).into(),
            None => number.ln().into(),
        })
    }),
    callable("pow", &["y"], |call| {
        let power = number_of(call, &call.required(0)?)?;
        Ok(number_of(call, &call.input)?.powf(power).into())
    }),
    callable("root", &["base"], |call| {
        let base = call.get(0).map(|base| number_of(call, &base)).transpose()?.unwrap_or(2.0);
        let number = number_of(call, &call.input)?;
        Ok(if base == 2.0 { number.sqrt().into() } else { number.powf(1.0 / base).into() })
    }),
];

fn number_of(call: &Call<'_>, value: &Live) -> Result<f64> {
    match value.force()? {
        Value::Int(number) => Ok(number as f64),
        Value::Float(number) => Ok(number),
        Value::Bool(flag) => Ok(f64::from(u8::from(flag))),
        other => Err(call.fault(format!("takes a number, not {}", other.kind()))),
    }
}

fn positive(call: &Call<'_>) -> Result<f64> {
    let number = number_of(call, &call.input)?;
    if number > 0.0 { Ok(number) } else { Err(call.fault("takes a number above zero")) }
}

fn round(call: &mut Call<'_>) -> Result<Live> {
    let number = number_of(call, &call.input)?;
    let places = call.int_at(0)?.unwrap_or(0).clamp(-300, 300) as i32;
    let scale = 10_f64.powi(places);
    let rounded = match call.text_or(1, "common")?.as_str() {
        // Python rounds half to even, on the decimal writing of what the number really is.
        "common" if places >= 0 => format!("{number:.*}", places as usize).parse().unwrap_or(number),
        "common" => (number * scale).round_ties_even() / scale,
        "ceil" => (number * scale).ceil() / scale,
        "floor" => (number * scale).floor() / scale,
        other => return Err(call.fault(format!("`method` is common, ceil or floor, not `{other}`"))),
    };
    Ok(rounded.into())
}

fn sum(call: &mut Call<'_>) -> Result<Live> {
    let attribute = call.value_at(0)?.filter(|attribute| *attribute != Value::Null);
    let mut total = call.get(1).unwrap_or_else(|| 0_i64.into());
    for item in call.items()? {
        let value = match &attribute {
            Some(attribute) => by_attribute(&item, attribute)?.defined()?,
            None => item.defined()?,
        };
        total = operators::binary(Binary::Add, &total, &value, false)?;
    }
    Ok(total)
}

fn extreme(call: &mut Call<'_>, wanted: Ordering) -> Result<Live> {
    let case_sensitive = call.bool_or(0, true)?;
    let attribute = call.value_at(1)?.filter(|attribute| *attribute != Value::Null);
    let mut best: Option<(Value, Live)> = None;
    for item in call.items()? {
        let key = match &attribute {
            Some(attribute) => by_attribute(&item, attribute)?.force()?,
            None => item.force()?,
        };
        let key = match key {
            Value::Str(text) if !case_sensitive => Value::from(text.as_str().to_lowercase()),
            other => other,
        };
        let is_better = match &best {
            None => true,
            Some((so_far, _)) => {
                let order = operators::ordered(&key, so_far)
                    .map_err(|(a, b)| call.fault(format!("'<' not supported between instances of '{a}' and '{b}'")))?;
                order == Some(wanted)
            }
        };
        if is_better {
            best = Some((key, item));
        }
    }
    Ok(best.map(|(_, item)| item).unwrap_or_else(|| {
        let code = Some(call.evaluator.code.clone());
        Undefined { code, ..Undefined::new(call.name, "no aggregated item, the sequence is empty") }.into()
    }))
}
