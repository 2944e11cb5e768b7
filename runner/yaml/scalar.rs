//! What a scalar means under YAML 1.1, which playbooks are written for. Source: the resolvers of yaml.org/type.

use super::Kind;
use crate::value::Trust;

/// Returns a scalar's meaning; `plain` is one without quotes.
///
/// # Errors
/// A sentence for a person when the text does not fit its tag, or the tag is not known.
pub(super) fn kind(text: &str, plain: bool, tag: Option<&str>) -> Result<Kind, String> {
    let string = |trust| Ok(Kind::Str { text: text.into(), trust });
    match tag {
        None if plain => Ok(plain_kind(text)),
        None | Some("!" | "!!str") => string(Trust::Template),
        Some("!unsafe") => string(Trust::Data),
        Some("!vault" | "!vault-encrypted") => Ok(Kind::Vault(text.into())),
        Some("!!int") => integer(text).map(Kind::Int).ok_or_else(|| format!("`{text}` is no integer")),
        Some("!!float") => {
            let number = float(text).or_else(|| integer(text).map(|value| value as f64));
            number.map(Kind::Float).ok_or_else(|| format!("`{text}` is no number"))
        }
        Some("!!bool") => boolean(text).map(Kind::Bool).ok_or_else(|| format!("`{text}` is no boolean")),
        Some("!!null") => Ok(Kind::Null),
        Some("!!binary" | "!!timestamp") => string(Trust::Data),
        Some(tag) => Err(format!("unknown tag `{tag}`")),
    }
}

fn plain_kind(text: &str) -> Kind {
    if matches!(text, "" | "~" | "null" | "Null" | "NULL") {
        return Kind::Null;
    }
    if let Some(value) = boolean(text) {
        return Kind::Bool(value);
    }
    if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        if let Some(value) = integer(text) {
            return Kind::Int(value);
        }
        if let Some(value) = float(text) {
            return Kind::Float(value);
        }
    }
    Kind::Str { text: text.into(), trust: Trust::Template }
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// Decimal, `0…` octal, `0x…`, `0b…`, and numbers to the base of 60 such as `1:30`; `_` may part digits.
fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let plain: String = digits.chars().filter(|c| *c != '_').collect();
    let value = if let Some(hexadecimal) = plain.strip_prefix("0x") {
        i64::from_str_radix(hexadecimal, 16).ok()?
    } else if let Some(binary) = plain.strip_prefix("0b") {
        i64::from_str_radix(binary, 2).ok()?
    } else if plain.contains(':') {
        let mut parts = plain.split(':');
        let first: i64 = parts.next()?.parse().ok()?;
        parts.try_fold(first, |value, part| {
            let number: i64 = part.parse().ok().filter(|number| (0..60).contains(number) && part.len() <= 2)?;
            value.checked_mul(60)?.checked_add(number)
        })?
    } else if plain.len() > 1 && plain.starts_with('0') {
        i64::from_str_radix(&plain, 8).ok()?
    } else {
        plain.parse().ok()?
    };
    Some(sign * value)
}

/// A number with a point, `.inf` and `.nan`; an exponent counts only with a sign, as in `1.0e+3`.
fn float(text: &str) -> Option<f64> {
    match text.trim_start_matches(['+', '-']) {
        ".inf" | ".Inf" | ".INF" => {
            return Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY });
        }
        ".nan" | ".NaN" | ".NAN" => return Some(f64::NAN),
        _ => {}
    }
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let (mantissa, exponent) = plain.find(['e', 'E']).map_or((plain.as_str(), ""), |at| plain.split_at(at));
    let signed = exponent.is_empty() || exponent[1..].starts_with(['+', '-']);
    let digits = mantissa.trim_start_matches(['+', '-']);
    let shaped = digits.contains('.') && digits.chars().all(|c| c.is_ascii_digit() || c == '.') && digits.len() > 1;
    if signed && shaped { plain.parse().ok() } else { None }
}
