//! Python's two ways to format: `'%s' % x` and `'{}'.format(x)`.

use crate::value::Value;

/// How wide a field may be.
const WIDTH_LIMIT: usize = 1_000_000;

/// What one conversion asks for.
#[derive(Default, Debug)]
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    zero: bool,
    width: usize,
    comma: Option<char>,
    precision: Option<usize>,
    kind: char,
}

/// `format % values`; a tuple gives one value for each conversion, anything else is the only one.
pub(super) fn format(format: &str, values: &Value, is_tuple: bool) -> Result<String, String> {
    let single = [values.clone()];
    let given: &[Value] = match values {
        Value::List(items) if is_tuple => items,
        _ => &single,
    };
    let mut given_values = given.iter();
    let mut used_name = false;
    let mut text = String::with_capacity(format.len());
    let mut chars = format.chars().peekable();
    let mut next = |used: &str| given_values.next().cloned().ok_or(format!("not enough arguments for `{used}`"));
    while let Some(c) = chars.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let mut named = None;
        if chars.peek() == Some(&'(') {
            chars.next();
            let name: String = chars.by_ref().take_while(|c| *c != ')').collect();
            let value = values.get(&name).cloned().ok_or(format!("no key '{name}' for the format"))?;
            used_name = true;
            named = Some(value);
        }
        let mut spec = Spec::default();
        while let Some(&flag) = chars.peek() {
            match flag {
                '-' => spec.align = Some('<'),
                '+' | ' ' => spec.sign = spec.sign.filter(|sign| *sign == '+').or(Some(flag)),
                '0' => spec.zero = true,
                '#' => spec.alternate = true,
                _ => break,
            }
            chars.next();
        }
        spec.width = match chars.peek() {
            Some('*') => {
                chars.next();
                star(&next("%*")?)?
            }
            _ => number(&mut chars)?.unwrap_or(0),
        };
        if chars.peek() == Some(&'.') {
            chars.next();
            spec.precision = Some(match chars.peek() {
                Some('*') => {
                    chars.next();
                    star(&next("%*")?)?
                }
                _ => number(&mut chars)?.unwrap_or(0),
            });
        }
        while matches!(chars.peek(), Some('l' | 'h' | 'L')) {
            chars.next();
        }
        spec.kind = chars.next().ok_or("incomplete format")?;
        if spec.kind == '%' {
            text.push('%');
            continue;
        }
        let value = match named {
            Some(value) => value,
            None => next(&format!("%{}", spec.kind))?,
        };
        text.push_str(&percent_one(&value, &mut spec)?);
    }
    if !used_name && given_values.next().is_some() && !matches!(values, Value::Map(_)) {
        return Err("not all arguments converted during string formatting".to_owned());
    }
    Ok(text)
}

fn star(value: &Value) -> Result<usize, String> {
    match value {
        Value::Int(width) if (0..=WIDTH_LIMIT as i64).contains(width) => Ok(*width as usize),
        _ => Err("`*` wants a small integer".to_owned()),
    }
}

fn number(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Option<usize>, String> {
    let mut found = None;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        chars.next();
        let value = found.unwrap_or(0) * 10 + digit as usize;
        if value > WIDTH_LIMIT {
            return Err(format!("a width above {WIDTH_LIMIT}"));
        }
        found = Some(value);
    }
    Ok(found)
}

fn percent_one(value: &Value, spec: &mut Spec) -> Result<String, String> {
    // `%` puts everything to the right unless told otherwise.
    spec.align = spec.align.or(Some('>'));
    match spec.kind {
        's' => Ok(padded(&cut(value.to_string(), spec.precision), spec)),
        'r' | 'a' => Ok(padded(&cut(format!("{value:?}"), spec.precision), spec)),
        'c' => Ok(padded(&character(value)?, spec)),
        'd' | 'i' | 'u' => {
            let whole = match value {
                Value::Int(number) => *number,
                Value::Bool(flag) => i64::from(*flag),
                Value::Float(number) => number.trunc() as i64,
                other => return Err(format!("%d format: a real number is required, not {}", other.kind())),
            };
            spec.kind = 'd';
            Ok(integer(whole, spec))
        }
        'x' | 'X' | 'o' => match value {
            Value::Int(number) => Ok(integer(*number, spec)),
            other => Err(format!("%{} format: an integer is required, not {}", spec.kind, other.kind())),
        },
        'f' | 'F' | 'e' | 'E' | 'g' | 'G' => {
            let number = float_of(value).ok_or(format!("must be a real number, not {}", value.kind()))?;
            Ok(float(number, spec))
        }
        other => Err(format!("unsupported format character '{other}'")),
    }
}

fn cut(text: String, precision: Option<usize>) -> String {
    match precision {
        Some(precision) => text.chars().take(precision).collect(),
        None => text,
    }
}

fn character(value: &Value) -> Result<String, String> {
    match value {
        Value::Int(code) => u32::try_from(*code)
            .ok()
            .and_then(char::from_u32)
            .map(String::from)
            .ok_or(format!("{code} is no character")),
        Value::Str(text) if text.as_str().chars().count() == 1 => Ok(text.as_str().to_owned()),
        _ => Err("%c requires an integer or a character".to_owned()),
    }
}

fn float_of(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        _ => None,
    }
}

fn signed(negative: bool, digits: &str, prefix: &str, spec: &Spec) -> String {
    let sign = match (negative, spec.sign) {
        (true, _) => "-",
        (false, Some('+')) => "+",
        (false, Some(' ')) => " ",
        (false, _) => "",
    };
    let digits = match spec.comma {
        Some(comma) => grouped(digits, comma),
        None => digits.to_owned(),
    };
    let used = sign.len() + prefix.len() + digits.chars().count();
    if spec.zero && spec.align != Some('<') && used < spec.width {
        return format!("{sign}{prefix}{}{digits}", "0".repeat(spec.width - used));
    }
    padded(&format!("{sign}{prefix}{digits}"), spec)
}

fn grouped(digits: &str, comma: char) -> String {
    let (whole, rest) = digits.find(['.', 'e', 'E']).map_or((digits, ""), |at| digits.split_at(at));
    let mut text = String::new();
    for (nth, digit) in whole.chars().enumerate() {
        if nth > 0 && (whole.len() - nth) % 3 == 0 {
            text.push(comma);
        }
        text.push(digit);
    }
    text + rest
}

fn integer(number: i64, spec: &Spec) -> String {
    let size = number.unsigned_abs();
    let (digits, prefix) = match spec.kind {
        'x' => (format!("{size:x}"), "0x"),
        'X' => (format!("{size:X}"), "0X"),
        'o' => (format!("{size:o}"), "0o"),
        'b' => (format!("{size:b}"), "0b"),
        _ => (size.to_string(), ""),
    };
    let digits = match spec.precision {
        Some(least) if digits.len() < least => "0".repeat(least - digits.len()) + &digits,
        _ => digits,
    };
    signed(number < 0, &digits, if spec.alternate { prefix } else { "" }, spec)
}

fn float(number: f64, spec: &Spec) -> String {
    if !number.is_finite() {
        let digits = if number.is_nan() { "nan" } else { "inf" };
        return signed(number < 0.0, digits, "", &Spec { zero: false, ..copied(spec) });
    }
    let precision = spec.precision.unwrap_or(6);
    let size = number.abs();
    let digits = match spec.kind {
        'e' | 'E' => exponent(size, precision),
        'g' | 'G' => general(size, precision.max(1)),
        '%' => format!("{:.precision$}%", size * 100.0),
        _ => format!("{size:.precision$}"),
    };
    let digits = if spec.kind.is_ascii_uppercase() { digits.to_uppercase() } else { digits };
    signed(number.is_sign_negative(), &digits, "", spec)
}

fn copied(spec: &Spec) -> Spec {
    Spec { fill: spec.fill, align: spec.align, sign: spec.sign, width: spec.width, ..Spec::default() }
}

/// Python writes at least two digits of exponent, and always its sign.
fn exponent(size: f64, precision: usize) -> String {
    let text = format!("{size:.precision$e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    format!("{digits}e{}{:02}", if power < 0 { '-' } else { '+' }, power.abs())
}

fn general(size: f64, precision: usize) -> String {
    let scientific = exponent(size, precision - 1);
    let power: i32 = scientific.rsplit('e').next().and_then(|power| power.parse().ok()).unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if size != 0.0 && (power < -4 || power >= precision as i32) {
        let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
        return format!("{}e{power}", trimmed(digits));
    }
    let decimals = (precision as i32 - 1 - power).max(0) as usize;
    trimmed(&format!("{size:.decimals$}"))
}

fn padded(text: &str, spec: &Spec) -> String {
    let length = text.chars().count();
    if length >= spec.width {
        return text.to_owned();
    }
    let fill = spec.fill.unwrap_or(' ');
    let pad = |count: usize| fill.to_string().repeat(count);
    let missing = spec.width - length;
    match spec.align {
        Some('>') => pad(missing) + text,
        Some('^') => pad(missing / 2) + text + &pad(missing - missing / 2),
        _ => text.to_owned() + &pad(missing),
    }
}

/// `format.format(*positional, **named)`.
pub(super) fn braces(format: &str, positional: &[Value], named: &[(String, Value)]) -> Result<String, String> {
    let mut text = String::with_capacity(format.len());
    let mut rest = format;
    let mut automatic = 0;
    while let Some(at) = rest.find(['{', '}']) {
        text.push_str(&rest[..at]);
        let brace = &rest[at..at + 1];
        rest = &rest[at + 1..];
        if rest.starts_with(brace) {
            text.push_str(brace);
            rest = &rest[1..];
            continue;
        }
        if brace == "}" {
            return Err("single '}' in the format".to_owned());
        }
        let end = closing(rest).ok_or("a '{' in the format is never closed")?;
        let (field, spec) = match split_field(&rest[..end]) {
            (field, Some(spec)) if spec.contains('{') => {
                let value = field_value(field, &mut automatic, positional, named)?;
                let spec = braces_within(spec, &mut automatic, positional, named)?;
                text.push_str(&brace_one(&value, &spec)?);
                rest = &rest[end + 1..];
                continue;
            }
            (field, spec) => (field, spec.unwrap_or("")),
        };
        let value = field_value(field, &mut automatic, positional, named)?;
        text.push_str(&brace_one(&value, spec)?);
        rest = &rest[end + 1..];
    }
    Ok(text + rest)
}

fn braces_within(
    spec: &str,
    automatic: &mut usize,
    positional: &[Value],
    named: &[(String, Value)],
) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = spec;
    while let Some((before, after)) = rest.split_once('{') {
        let (field, after) = after.split_once('}').ok_or("a '{' in the format is never closed")?;
        text.push_str(before);
        text.push_str(&field_value(field, automatic, positional, named)?.to_string());
        rest = after;
    }
    Ok(text + rest)
}

fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn split_field(field: &str) -> (&str, Option<&str>) {
    match field.split_once(':') {
        Some((name, spec)) => (name, Some(spec)),
        None => (field, None),
    }
}

fn field_value(
    field: &str,
    automatic: &mut usize,
    positional: &[Value],
    named: &[(String, Value)],
) -> Result<Value, String> {
    let (path, conversion) = match field.split_once('!') {
        Some((path, conversion)) => (path, Some(conversion)),
        None => (field, None),
    };
    let name_end = path.find(['.', '[']).unwrap_or(path.len());
    let (name, mut steps) = path.split_at(name_end);
    let mut value = if name.is_empty() {
        *automatic += 1;
        positional.get(*automatic - 1).cloned().ok_or(format!("no argument {} for the format", *automatic - 1))?
    } else if let Ok(nth) = name.parse::<usize>() {
        positional.get(nth).cloned().ok_or(format!("no argument {nth} for the format"))?
    } else {
        named
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
            .ok_or(format!("no argument `{name}` for the format"))?
    };
    while !steps.is_empty() {
        let key;
        if let Some(after) = steps.strip_prefix('[') {
            let (inner, after) = after.split_once(']').ok_or("a '[' in the format is never closed")?;
            key = inner;
            steps = after;
        } else {
            let after = &steps[1..];
            let end = after.find(['.', '[']).unwrap_or(after.len());
            key = &after[..end];
            steps = &after[end..];
        }
        let next = match &value {
            Value::Map(map) => map.get(key).cloned(),
            Value::List(items) => key.parse::<usize>().ok().and_then(|nth| items.get(nth).cloned()),
            _ => None,
        };
        value = next.ok_or(format!("no `{key}` for the format"))?;
    }
    match conversion {
        None => Ok(value),
        Some("s") => Ok(Value::from(value.to_string())),
        Some("r" | "a") => Ok(Value::from(format!("{value:?}"))),
        Some(other) => Err(format!("unknown conversion '!{other}'")),
    }
}

fn brace_one(value: &Value, text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Ok(value.to_string());
    }
    let mut spec = Spec::default();
    let mut chars = text.chars().peekable();
    let mut ahead = text.chars();
    let (first, second) = (ahead.next(), ahead.next());
    if matches!(second, Some('<' | '>' | '^' | '=')) {
        spec.fill = first;
        spec.align = second;
        chars.next();
        chars.next();
    } else if matches!(first, Some('<' | '>' | '^' | '=')) {
        spec.align = first;
        chars.next();
    }
    if let Some(sign @ ('+' | '-' | ' ')) = chars.peek().copied() {
        spec.sign = Some(sign).filter(|sign| *sign != '-');
        chars.next();
    }
    if chars.next_if_eq(&'#').is_some() {
        spec.alternate = true;
    }
    if chars.next_if_eq(&'0').is_some() {
        spec.zero = true;
    }
    spec.width = number(&mut chars)?.unwrap_or(0);
    spec.comma = chars.next_if(|c| matches!(c, ',' | '_'));
    if chars.next_if_eq(&'.').is_some() {
        spec.precision = number(&mut chars)?;
    }
    let kind = chars.next();
    if chars.next().is_some() {
        return Err(format!("invalid format `{text}`"));
    }
    match (kind, value) {
        (None | Some('s'), Value::Str(_)) => Ok(padded(&cut(value.to_string(), spec.precision), &spec)),
        (None, Value::Int(number)) => {
            spec.kind = 'd';
            spec.align = spec.align.or(Some('>'));
            Ok(integer(*number, &spec))
        }
        (None, Value::Float(number)) if spec.precision.is_none() => {
            spec.align = spec.align.or(Some('>'));
            let digits = Value::Float(number.abs()).to_string();
            Ok(signed(*number < 0.0, &digits, "", &spec))
        }
        (Some(kind @ ('d' | 'x' | 'X' | 'o' | 'b' | 'n')), Value::Int(number)) => {
            spec.kind = kind;
            spec.align = spec.align.or(Some('>'));
            Ok(integer(*number, &spec))
        }
        (Some('c'), Value::Int(_)) => Ok(padded(&character(value)?, &spec)),
        (None | Some('f' | 'F' | 'e' | 'E' | 'g' | 'G' | '%'), value) if float_of(value).is_some() => {
            spec.kind = kind.unwrap_or('g');
            spec.align = spec.align.or(Some('>'));
            Ok(float(float_of(value).unwrap_or(0.0), &spec))
        }
        (None, value) => Ok(padded(&value.to_string(), &spec)),
        (Some(kind), value) => Err(format!("format code '{kind}' does not fit {}", value.kind())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent() {
        let tuple = Value::list(vec!["a".into(), Value::Int(7), Value::Float(2.5)]);
        assert_eq!(format("%s-%03d-%.2f%%", &tuple, true).as_deref(), Ok("a-007-2.50%"));
        assert_eq!(
            format("[%-4s|%4s]", &Value::list(vec!["a".into(), "b".into()]), true).as_deref(),
            Ok("[a   |   b]")
        );
        assert_eq!(format("%s", &Value::list(vec![Value::Int(1)]), false).as_deref(), Ok("[1]"));
        assert!(format("%s %s", &Value::Int(1), false).is_err());
        assert!(format("x", &Value::Int(1), false).is_err());
    }

    #[test]
    fn format_method() {
        let of = |text: &str| braces(text, &[Value::Int(1234567), "x".into(), Value::Float(0.5)], &[]);
        assert_eq!(of("{:,} {1:>3} {2:.1%} {{}}").as_deref(), Ok("1,234,567   x 50.0% {}"));
        assert_eq!(of("{0:08d} {0:#x} {2:e}").as_deref(), Ok("01234567 0x12d687 5.000000e-01"));
        assert!(of("{9}").is_err());
    }
}
