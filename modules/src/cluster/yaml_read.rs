//! Reads the documents of a manifest as kubectl does.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};
use serde_json::{Map, Number, Value};

use crate::{Error, ErrorKind};

/// How many values a manifest may hold once its aliases are followed.
const MOST_VALUES: usize = 1_000_000;
/// How deep values may be nested.
const DEEPEST: usize = 200;

/// Returns the documents of a text, empty ones left out.
///
/// # Errors
/// [`ErrorKind::Arguments`] with line and column.
pub(crate) fn documents(text: &str) -> Result<Vec<Value>, Error> {
    let mut reader = Reader { events: Parser::new_from_str(text), anchors: HashMap::new(), values: 0 };
    let mut documents = Vec::new();
    loop {
        match reader.next()? {
            (Event::StreamEnd, _) => return Ok(documents),
            (Event::DocumentStart(_), _) => {
                let (first, span) = reader.next()?;
                let value = reader.value(first, span, 0)?;
                if !value.is_null() {
                    documents.push(value);
                }
                reader.anchors.clear();
            }
            _ => {}
        }
    }
}

struct Reader<'a, I: Iterator<Item = Result<(Event<'a>, Span), ScanError>>> {
    events: I,
    anchors: HashMap<usize, (Value, usize)>,
    values: usize,
}

fn wrong(span: Span, message: impl std::fmt::Display) -> Error {
    let (line, column) = (span.start.line(), span.start.col() + 1);
    Error::new(ErrorKind::Arguments, format!("the manifest, line {line}, column {column}: {message}"))
}

impl<'a, I: Iterator<Item = Result<(Event<'a>, Span), ScanError>>> Reader<'a, I> {
    fn next(&mut self) -> Result<(Event<'a>, Span), Error> {
        match self.events.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let at = *error.marker();
                Err(wrong(Span::new(at, at), error.info()))
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn count(&mut self, values: usize, span: Span) -> Result<(), Error> {
        self.values += values;
        if self.values > MOST_VALUES {
            return Err(wrong(span, format_args!("more than {MOST_VALUES} values, aliases followed")));
        }
        Ok(())
    }

    fn value(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Value, Error> {
        if depth > DEEPEST {
            return Err(wrong(span, format_args!("nested deeper than {DEEPEST}")));
        }
        self.count(1, span)?;
        let before = self.values;
        let (value, anchor) = match event {
            Event::Alias(anchor) => {
                let Some((value, values)) = self.anchors.get(&anchor).cloned() else {
                    return Err(wrong(span, "an alias inside of what it names"));
                };
                self.count(values, span)?;
                return Ok(value);
            }
            Event::Scalar(text, style, anchor, tag) => (scalar(&text, style, tag.as_deref(), span)?, anchor),
            Event::SequenceStart(anchor, _) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break (Value::Array(items), anchor),
                        (event, span) => items.push(self.value(event, span, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(anchor, _) => (Value::Object(self.mapping(depth)?), anchor),
            _ => return Err(wrong(span, "no value where one is due")),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, (value.clone(), self.values - before + 1));
        }
        Ok(value)
    }

    fn mapping(&mut self, depth: usize) -> Result<Map<String, Value>, Error> {
        let mut fields = Map::new();
        let mut merged: Vec<Value> = Vec::new();
        loop {
            let (event, span) = match self.next()? {
                (Event::MappingEnd, _) => break,
                next => next,
            };
            let merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let key = match self.value(event, span, depth + 1)? {
                Value::String(text) => text,
                Value::Array(_) | Value::Object(_) => return Err(wrong(span, "a key that is no scalar")),
                other => other.to_string(),
            };
            let (event, at) = self.next()?;
            let value = self.value(event, at, depth + 1)?;
            match value {
                Value::Array(items) if merge => merged.extend(items),
                value if merge => merged.push(value),
                value => {
                    if fields.insert(key.clone(), value).is_some() {
                        return Err(wrong(span, format_args!("`{key}` is given twice")));
                    }
                }
            }
        }
        for value in merged {
            let Value::Object(other) = value else { continue };
            for (key, value) in other {
                fields.entry(key).or_insert(value);
            }
        }
        Ok(fields)
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Result<Value, Error> {
    match tag {
        None if style == ScalarStyle::Plain => Ok(resolved(text)),
        None => Ok(text.into()),
        Some(tag) if tag.is_yaml_core_schema() => match tag.suffix.as_str() {
            "str" | "binary" => Ok(text.into()),
            "int" | "float" | "bool" | "null" => Ok(resolved(text)),
            other => Err(wrong(span, format_args!("the tag `!!{other}` means nothing in a manifest"))),
        },
        Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => Ok(text.into()),
        Some(tag) => {
            Err(wrong(span, format_args!("the tag `{}{}` means nothing in a manifest", tag.handle, tag.suffix)))
        }
    }
}

/// Returns what a plain scalar stands for.
///
/// Source: the resolver of go-yaml 2, on which sigs.k8s.io/yaml builds: YAML 1.1's booleans, and integers as Go reads
/// them with base 0, so that `0644` is octal.
fn resolved(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return true.into(),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => return false.into(),
        _ => {}
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
        return text.into();
    }
    let packed = text.replace('_', "");
    if let Some(number) = integer(&packed) {
        return Value::Number(number);
    }
    let float = packed.bytes().any(|byte| byte.is_ascii_digit())
        && packed.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    match packed.parse::<f64>().ok().filter(|_| float).and_then(Number::from_f64) {
        Some(number) => Value::Number(number),
        None => text.into(),
    }
}

fn integer(text: &str) -> Option<Number> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (base, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0o" | "0O") => (8, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        Some(start) if start.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let size = u64::from_str_radix(digits, base).ok()?;
    match negative {
        true => i64::try_from(size).ok().map(|size| Number::from(-size)),
        false => Some(Number::from(size)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_mean_what_they_mean_to_kubectl() {
        let text = "
a: yes
b: 'yes'
c: 0644
d: 0o644
e: 1.10
f: 10.0.0.1
g: 12e3
h: 2001-01-01
i: !!str 5
j: ~
k: 0x10
l: -3
m: 500m
n2: 1_000
on: off
1: one
";
        let read = documents(text).expect("a document");
        assert_eq!(
            read[0],
            json!({
                "a": true, "b": "yes", "c": 420, "d": 420, "e": 1.1, "f": "10.0.0.1", "g": 12000.0,
                "h": "2001-01-01", "i": "5", "j": null, "k": 16, "l": -3, "m": "500m", "n2": 1000, "true": false,
                "1": "one",
            })
        );
    }

    #[test]
    fn documents_anchors_and_merges() {
        let read = documents("---\n# nothing\n---\na: &x {k: 1}\nb: *x\nc: {<<: *x, d: 2}\n---\n- 1\n").expect("two");
        assert_eq!(read, [json!({"a": {"k": 1}, "b": {"k": 1}, "c": {"k": 1, "d": 2}}), json!([1])]);
        let error = documents("a: 1\na: 2\n").expect_err("twice");
        assert_eq!(error.message, "the manifest, line 2, column 1: `a` is given twice");
        assert!(documents("a: {b\n").is_err());
        let bomb = (1..30).fold("a0: &a0 [x, x]\n".to_owned(), |text, nth| {
            format!("{text}a{nth}: &a{nth} [*a{}, *a{}]\n", nth - 1, nth - 1)
        });
        assert!(documents(&bomb).expect_err("a bomb").message.contains("aliases followed"));
    }
}
