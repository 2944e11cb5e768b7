//! A value as text, as Python has it: `str()` for a lone one, `repr()` within lists and mappings.

use std::fmt;

use super::{Map, Str, Value, realized};

/// Writes a number as Python's `repr` does: the shortest digits that read back the same, a power of ten when far away.
fn float(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match power.parse::<i32>() {
        Ok(power) if value != 0.0 && !(-4..16).contains(&power) => {
            format!("{digits}e{}{:02}", if power < 0 { '-' } else { '+' }, power.abs())
        }
        _ if value.fract() == 0.0 => format!("{value:.1}"),
        _ => value.to_string(),
    }
}

/// Text as Jinja prints it: Python's `str()` for a lone value and `repr()` inside lists and maps.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Str(text) => f.write_str(text.as_str()),
            Value::Null => f.write_str("None"),
            Value::Omit => f.write_str("omit"),
            Value::Bool(true) => f.write_str("True"),
            Value::Bool(false) => f.write_str("False"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => f.write_str(&float(*value)),
            Value::List(items) => {
                f.write_str("[")?;
                for (nth, item) in items.iter().enumerate() {
                    f.write_str(if nth == 0 { "" } else { ", " })?;
                    item.repr(f)?;
                }
                f.write_str("]")
            }
            Value::Lazy(lazy) => write!(f, "{}", Value::map(realized(&**lazy))),
            Value::Map(map) => {
                f.write_str("{")?;
                for (nth, (key, value)) in map.iter().enumerate() {
                    f.write_str(if nth == 0 { "" } else { ", " })?;
                    key.repr(f)?;
                    f.write_str(": ")?;
                    value.repr(f)?;
                }
                f.write_str("}")
            }
        }
    }
}

impl Value {
    fn repr(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Value::Str(text) = self else { return write!(f, "{self}") };
        let text = text.as_str();
        let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
        write!(f, "{quote}")?;
        for c in text.chars() {
            match c {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                '\\' => f.write_str("\\\\")?,
                c if c == quote => write!(f, "\\{c}")?,
                c if (c as u32) < 0x20 || c == '\x7f' => write!(f, "\\x{:02x}", c as u32)?,
                c => write!(f, "{c}")?,
            }
        }
        write!(f, "{quote}")
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.repr(f)
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}
