//! Filters of numbers.

use std::cmp::Ordering;

use super::choose::by_attribute;
use crate::template::ast::Binary;
use crate::template::call::{Call, Filter, callable};
use crate::template::live::{Live, Result};
use crate::template::operators;
use crate::template::undefined::Undefined;
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
    callable("human_readable", &["isbits", "unit"], human_readable),
    callable("human_to_bytes", &["default_unit", "isbits"], human_to_bytes),
    callable("filesizeformat", &["binary"], filesizeformat),
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
        total = operators::binary(Binary::Add, &total, &value)?;
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

/// What sizes are counted in, the largest first.
const SIZES: [(char, u32); 9] =
    [('Y', 80), ('Z', 70), ('E', 60), ('P', 50), ('T', 40), ('G', 30), ('M', 20), ('K', 10), ('B', 0)];

fn human_readable(call: &mut Call<'_>) -> Result<Live> {
    let size = number_of(call, &call.input).or_else(|error| match call.text()?.trim().parse() {
        Ok(size) => Ok(size),
        Err(_) => Err(error),
    })?;
    let in_bits = call.bool_or(0, false)?;
    let wanted = call.text_at(1)?.map(|unit| unit.to_ascii_uppercase());
    let found = SIZES.iter().find(|(letter, power)| match &wanted {
        Some(wanted) => *wanted == letter.to_string(),
        None => size >= 2_f64.powi(*power as i32),
    });
    let (letter, power) = found.copied().unwrap_or(('B', 0));
    let unit = match (power, in_bits) {
        (0, true) => "bits".to_owned(),
        (0, false) => "Bytes".to_owned(),
        (_, true) => format!("{letter}b"),
        (_, false) => format!("{letter}B"),
    };
    Ok(format!("{:.2} {unit}", size / 2_f64.powi(power as i32)).into())
}

fn human_to_bytes(call: &mut Call<'_>) -> Result<Live> {
    let text = call.text()?;
    let text = text.trim();
    let in_bits = call.bool_or(1, false)?;
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().map_err(|_| call.fault(format!("`{text}` is no size, such as 10 MB")))?;
    let unit = match text[end..].trim() {
        "" => call.text_or(0, "")?,
        unit => unit.to_owned(),
    };
    let Some(letter) = unit.chars().next() else { return Ok((number.round_ties_even() as i64).into()) };
    let upper = letter.to_ascii_uppercase();
    let power = SIZES.iter().find(|(known, _)| *known == upper).map(|(_, power)| *power);
    let (class, word) = if in_bits { ("b", "bit") } else { ("B", "byte") };
    let rest = &unit[letter.len_utf8()..];
    let is_known = match upper {
        'B' => rest.is_empty() || [word, &format!("{word}s")].contains(&unit.to_ascii_lowercase().as_str()),
        _ => {
            rest.is_empty()
                || rest == class
                || rest.to_ascii_lowercase().ends_with(word)
                || rest.to_ascii_lowercase().ends_with(&format!("{word}s"))
        }
    };
    match power.filter(|_| is_known) {
        Some(power) => Ok(((number * 2_f64.powi(power as i32)).round_ties_even() as i64).into()),
        None => Err(call
            .fault(format!("`{unit}` is no unit"))
            .help(format!("one of {class}, K{class}, M{class}, G{class}, T{class}"))),
    }
}

fn filesizeformat(call: &mut Call<'_>) -> Result<Live> {
    let size = number_of(call, &call.input)?;
    let binary = call.bool_or(0, false)?;
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    let units = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
    if size == 1.0 {
        return Ok("1 Byte".into());
    }
    if size < base {
        return Ok(format!("{} Bytes", size as i64).into());
    }
    let nth = (1..units.len()).find(|nth| size < base.powi(*nth as i32 + 1)).unwrap_or(units.len());
    let unit =
        if binary { format!("{}iB", units[nth - 1].to_ascii_uppercase()) } else { format!("{}B", units[nth - 1]) };
    Ok(format!("{:.1} {unit}", size / base.powi(nth as i32)).into())
}
