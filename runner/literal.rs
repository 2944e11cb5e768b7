//! Python literals, as values in INI inventories are written: numbers, strings, `True`, lists, dictionaries.

use crate::value::{Map, Value};

/// Returns the value that a text is a literal of; `None` when it is none.
pub fn parse(text: &str) -> Option<Value> {
    let mut parser = Parser { rest: text.trim(), depth: 0 };
    let value = parser.value()?;
    parser.blank();
    parser.rest.is_empty().then_some(value)
}

/// How deep lists may be nested.
const DEPTH_LIMIT: usize = 50;

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl Parser<'_> {
    fn blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, c: char) -> bool {
        self.blank();
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self) -> Option<Value> {
        self.blank();
        match self.rest.chars().next()? {
            '\'' | '"' => self.text().map(Value::from),
            // Bytes and other prefixed texts of Python are texts here.
            'b' | 'u' | 'r' if self.rest[1..].starts_with(['\'', '"']) => {
                self.rest = &self.rest[1..];
                self.text().map(Value::from)
            }
            '[' => self.items('[', ']'),
            '(' => self.items('(', ')'),
            '{' => self.map(),
            // What has no counterpart stays the text that it is.
            '.' if self.rest.starts_with("...") => {
                self.rest = &self.rest[3..];
                Some("...".into())
            }
            c if c.is_ascii_digit() || matches!(c, '-' | '+' | '.') => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Option<Value> {
        if let Some(rest) = self.rest.strip_prefix("set()") {
            self.rest = rest;
            return Some(Value::list(Vec::new()));
        }
        for (word, value) in [("True", Value::Bool(true)), ("False", Value::Bool(false)), ("None", Value::Null)] {
            if let Some(rest) = self.rest.strip_prefix(word)
                && !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
            {
                self.rest = rest;
                return Some(value);
            }
        }
        None
    }

    fn number(&mut self) -> Option<Value> {
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.' | '_')))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let plain = word.replace('_', "");
        if plain.strip_suffix('j').is_some_and(|number| number.parse::<f64>().is_ok()) {
            self.rest = rest;
            return Some(word.into());
        }
        let (sign, digits) = plain.strip_prefix('-').map_or((1, plain.trim_start_matches('+')), |digits| (-1, digits));
        let radix = |prefix: &str, radix| {
            digits.strip_prefix(prefix).and_then(|digits| i64::from_str_radix(digits, radix).ok())
        };
        let value = if let Some(number) = radix("0x", 16).or(radix("0o", 8)).or(radix("0b", 2)) {
            Value::Int(sign * number)
        } else if digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            // Python reads no number with a leading zero: a mode such as 0644 stays text.
            if digits.bytes().all(|byte| byte == b'0') { Value::Int(0) } else { return None }
        } else if let Ok(number) = plain.parse::<i64>() {
            Value::Int(number)
        } else if digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            Value::Float(plain.parse::<f64>().ok().filter(|number| number.is_finite())?)
        } else {
            return None;
        };
        self.rest = rest;
        Some(value)
    }

    fn text(&mut self) -> Option<String> {
        let quote = self.rest.chars().next()?;
        let mut text = String::new();
        let mut chars = self.rest[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.rest = &self.rest[1 + at + 1..];
                    return Some(text);
                }
                '\\' => match chars.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    c @ ('\\' | '\'' | '"') => text.push(c),
                    c => text.extend(['\\', c]),
                },
                c => text.push(c),
            }
        }
        None
    }

    fn items(&mut self, open: char, close: char) -> Option<Value> {
        self.deeper()?;
        self.eat(open);
        let mut items = Vec::new();
        let mut comma = false;
        while !self.eat(close) {
            if !items.is_empty() && !std::mem::take(&mut comma) {
                return None;
            }
            items.push(self.value()?);
            comma = self.eat(',');
        }
        self.depth -= 1;
        // Parentheses around one value without a comma are no tuple.
        match (open, items.len(), comma) {
            ('(', 1, false) => items.pop(),
            (_, _, _) => Some(Value::list(items)),
        }
    }

    fn map(&mut self) -> Option<Value> {
        self.deeper()?;
        self.eat('{');
        let mut map = Map::new();
        let mut comma = true;
        while !self.eat('}') {
            if !std::mem::take(&mut comma) {
                return None;
            }
            let key = self.value()?;
            if !self.eat(':') {
                // A set, which is a list here.
                return if map.is_empty() { self.set(key) } else { None };
            }
            map.insert(key, self.value()?);
            comma = self.eat(',');
        }
        self.depth -= 1;
        Some(Value::map(map))
    }

    fn set(&mut self, first: Value) -> Option<Value> {
        let mut items = vec![first];
        while self.eat(',') {
            if self.rest.trim_start().starts_with('}') {
                break;
            }
            items.push(self.value()?);
        }
        self.depth -= 1;
        self.eat('}').then(|| Value::list(items))
    }

    fn deeper(&mut self) -> Option<()> {
        self.depth += 1;
        (self.depth <= DEPTH_LIMIT).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_python_reads() {
        let json = |text| parse(text).map(|value| value.to_json().to_string());
        assert_eq!(
            json("['a', \"b\", 1, 2.5, True, None, {'x': (1, 2)}]").as_deref(),
            Some(r#"["a","b",1,2.5,true,null,{"x":[1,2]}]"#)
        );
        assert_eq!(json("0x1f").as_deref(), Some("31"));
        assert_eq!(json("-3").as_deref(), Some("-3"));
        assert_eq!(json("{'a'}").as_deref(), Some(r#"["a"]"#));
        for text in ["0644", "plain", "true", "1.2.3", "10.0.0.1", "'open", "[1, 2", "1 2", "", "{'a': 1, 'b'}"] {
            assert_eq!(json(text), None, "{text}");
        }
    }
}
