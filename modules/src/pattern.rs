//! Regular expressions as Python writes them, which is what playbooks hold, matched over bytes as Ansible does it.

use std::fmt::Write as _;

use fancy_regex::{BytesMode, Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

use crate::{Error, ErrorKind};

/// A regular expression among a module's arguments: one that can't be used is a mistake where it is written.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Regexp(String);

impl std::ops::Deref for Regexp {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Regexp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Regexp, D::Error> {
        let text = String::deserialize(deserializer)?;
        Pattern::new(&text, Flags::default()).map_err(de::Error::custom)?;
        Ok(Regexp(text))
    }
}

/// How a pattern is to be read, beside the flags it gives itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flags {
    /// `^` and `$` match at each line.
    pub multi_line: bool,
    /// `.` matches a newline too.
    pub dot_all: bool,
}

/// A compiled pattern.
pub(crate) struct Pattern {
    regex: Regex,
    /// Whether `^` and `$` match at each line.
    pub multi_line: bool,
}

/// Where a pattern and its groups matched: `groups[0]` is the whole match.
pub(crate) struct Found {
    pub groups: Vec<Option<(usize, usize)>>,
}

impl Found {
    pub fn whole(&self) -> (usize, usize) {
        self.groups[0].expect("group 0 of a match is the match")
    }
}

impl Pattern {
    /// # Errors
    /// [`ErrorKind::Arguments`] naming what Python, or this implementation, does not take.
    pub fn new(pattern: &str, flags: Flags) -> Result<Pattern, Error> {
        let wrong = |said: &str| {
            Error::new(ErrorKind::Arguments, format!("`{pattern}` is no regular expression that can be used: {said}"))
        };
        let read = Reader::new(pattern, flags).read().map_err(|said| wrong(&said))?;
        RegexBuilder::new(&read.text)
            .bytes_mode(BytesMode::Ascii)
            .unicode_mode(false)
            .multi_line(read.multi_line)
            .dot_matches_new_line(read.dot_all)
            .case_insensitive(read.ignore_case)
            .verbose_mode(read.verbose)
            .build()
            .map(|regex| Pattern { regex, multi_line: read.multi_line })
            .map_err(|error| wrong(&error.to_string()))
    }

    /// Returns the first match at or after `start`.
    ///
    /// # Errors
    /// [`ErrorKind::Failed`] when the pattern backtracks without end on this text.
    pub fn find(&self, text: &[u8], start: usize) -> Result<Option<Found>, Error> {
        let found = self.regex.captures_from_pos(text, start).map_err(|error| {
            Error::new(ErrorKind::Failed, format!("match the regular expression `{}`: {error}", self.regex.as_str()))
        })?;
        Ok(found.map(|found| Found {
            groups: (0..found.len()).map(|nth| found.get(nth).map(|group| (group.start(), group.end()))).collect(),
        }))
    }

    pub fn is_match(&self, text: &[u8]) -> Result<bool, Error> {
        Ok(self.find(text, 0)?.is_some())
    }

    /// Returns the number of a named group.
    pub fn group(&self, name: &str) -> Option<usize> {
        self.regex.capture_names().position(|other| other == Some(name))
    }

    /// Returns the text with every match replaced, and how many there were.
    pub fn replace_all(&self, text: &[u8], template: &Template) -> Result<(Vec<u8>, usize), Error> {
        let mut replaced = Vec::with_capacity(text.len());
        let (mut copied, mut at, mut count) = (0, 0, 0);
        while at <= text.len() {
            let Some(found) = self.find(text, at)? else { break };
            let (start, end) = found.whole();
            replaced.extend_from_slice(&text[copied..start]);
            template.expand(text, &found, &mut replaced);
            count += 1;
            copied = end;
            // An empty match may follow a match that is not empty, but not another at the same place.
            at = if end == start { end + 1 } else { end };
        }
        replaced.extend_from_slice(&text[copied.min(text.len())..]);
        Ok((replaced, count))
    }
}

struct Read {
    text: String,
    multi_line: bool,
    dot_all: bool,
    ignore_case: bool,
    verbose: bool,
}

/// Rewrites a pattern where Python's syntax means something else than the engine's.
struct Reader {
    rest: std::iter::Peekable<std::vec::IntoIter<char>>,
    read: Read,
}

impl Reader {
    fn new(pattern: &str, flags: Flags) -> Reader {
        let mut read = Read {
            text: String::with_capacity(pattern.len() + 16),
            multi_line: flags.multi_line,
            dot_all: flags.dot_all,
            ignore_case: false,
            verbose: false,
        };
        let mut rest = pattern;
        while let Some((letters, after)) = rest.strip_prefix("(?").and_then(|inner| inner.split_once(')'))
            && !letters.is_empty()
            && letters.chars().all(|letter| "aiLmsux".contains(letter))
        {
            read.multi_line |= letters.contains('m');
            read.dot_all |= letters.contains('s');
            read.ignore_case |= letters.contains('i');
            read.verbose |= letters.contains('x');
            rest = after;
        }
        Reader { rest: rest.chars().collect::<Vec<_>>().into_iter().peekable(), read }
    }

    fn read(mut self) -> Result<Read, String> {
        while let Some(letter) = self.rest.next() {
            match letter {
                '\\' => self.escape()?,
                '$' if self.read.multi_line => self.read.text.push('$'),
                // The end, or just before a newline that ends the text.
                '$' => self.read.text.push_str(r"(?=\n?\z)"),
                '[' => self.class()?,
                '{' => self.brace(),
                '}' => self.read.text.push_str(r"\}"),
                '(' => self.group(),
                '#' if self.read.verbose => while self.rest.next().is_some_and(|letter| letter != '\n') {},
                other => self.read.text.push(other),
            }
        }
        Ok(self.read)
    }

    /// Writes what a backslash outside a class stands for.
    fn escape(&mut self) -> Result<(), String> {
        let letter = self.rest.next().ok_or("it ends in a backslash")?;
        match letter {
            'Z' => self.read.text.push_str(r"\z"),
            '0'..='9' => match self.octal(letter) {
                Some(byte) => self.byte(byte),
                None => {
                    let mut number = letter.to_string();
                    number.extend(self.rest.next_if(char::is_ascii_digit));
                    // A group of its own, so that a digit after it stays apart.
                    write!(self.read.text, r"(?:\{number})").expect("writing to a string");
                }
            },
            'A' | 'b' | 'B' | 'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'n' | 'r' | 't' | 'f' | 'v' | 'a' | 'x' | 'u'
            | 'U' => {
                self.read.text.extend(['\\', letter]);
            }
            letter if letter.is_ascii_alphabetic() => return Err(format!(r"`\{letter}` means nothing in it")),
            letter => self.literal(letter),
        }
        Ok(())
    }

    /// Reads an octal escape after its first digit: `\0`, `\07`, `\177`.
    fn octal(&mut self, first: char) -> Option<u32> {
        let mut ahead = self.rest.clone();
        let more: Vec<u32> = (0..2).map_while(|_| ahead.next().and_then(|letter| letter.to_digit(8))).collect();
        let first = first.to_digit(8)?;
        let digits = match (first, more.len()) {
            (0, count) | (1..=3, count @ 2) => count,
            _ => return None,
        };
        self.rest.by_ref().take(digits).for_each(drop);
        Some(more[..digits].iter().fold(first, |value, digit| value * 8 + digit))
    }

    fn byte(&mut self, byte: u32) {
        write!(self.read.text, r"\x{byte:02x}").expect("writing to a string");
    }

    fn literal(&mut self, letter: char) {
        if letter.is_ascii() && !matches!(letter, '<' | '>') && !letter.is_ascii_alphanumeric() {
            self.read.text.push('\\');
        }
        self.read.text.push(letter);
    }

    fn class(&mut self) -> Result<(), String> {
        self.read.text.push('[');
        self.read.text.extend(self.rest.next_if_eq(&'^'));
        let mut first = true;
        loop {
            let letter = self.rest.next().ok_or("a `[` is not closed")?;
            match letter {
                ']' if !first => break,
                '\\' => self.class_escape()?,
                '-' if first || self.rest.peek() == Some(&']') => self.read.text.push_str(r"\-"),
                '[' | ']' | '&' | '~' => self.read.text.extend(['\\', letter]),
                other => self.read.text.push(other),
            }
            first = false;
        }
        self.read.text.push(']');
        Ok(())
    }

    fn class_escape(&mut self) -> Result<(), String> {
        let letter = self.rest.next().ok_or("it ends in a backslash")?;
        match letter {
            'b' => self.byte(8),
            '0'..='7' => match self.octal(letter) {
                Some(byte) => self.byte(byte),
                None => return Err(format!(r"`\{letter}` means nothing inside `[…]`")),
            },
            'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'n' | 'r' | 't' | 'f' | 'v' | 'a' | 'x' | 'u' | 'U' => {
                self.read.text.extend(['\\', letter]);
            }
            letter if letter.is_ascii_alphanumeric() => {
                return Err(format!(r"`\{letter}` means nothing inside `[…]`"));
            }
            letter => self.literal(letter),
        }
        Ok(())
    }

    /// A brace repeats only when it holds numbers; else it is itself.
    fn brace(&mut self) {
        let mut ahead = self.rest.clone();
        let inner: String = ahead.by_ref().take_while(|&letter| letter != '}').collect();
        let numbers = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let repeats = match inner.split_once(',') {
            Some((least, most)) => numbers(least) && numbers(most),
            None => !inner.is_empty() && numbers(&inner),
        };
        let closed = self.rest.clone().any(|letter| letter == '}');
        if !(repeats && closed) {
            self.read.text.push_str(r"\{");
            return;
        }
        let least = if inner.starts_with(',') { "0" } else { "" };
        write!(self.read.text, "{{{least}{inner}}}").expect("writing to a string");
        self.rest = ahead;
    }

    /// A condition on a named group is written otherwise; a comment goes.
    fn group(&mut self) {
        let ahead: String = self.rest.clone().take(2).collect();
        if ahead == "?#" {
            while self.rest.next().is_some_and(|letter| letter != ')') {}
            return;
        }
        self.read.text.push('(');
        if ahead != "?(" {
            return;
        }
        self.rest.by_ref().take(2).for_each(drop);
        let name: String = std::iter::from_fn(|| self.rest.next_if(|&letter| letter != ')')).collect();
        self.rest.next();
        if name.bytes().all(|byte| byte.is_ascii_digit()) {
            write!(self.read.text, "?({name})").expect("writing to a string");
        } else {
            write!(self.read.text, "?(<{name}>)").expect("writing to a string");
        }
    }
}

/// What to put in place of a match: text with `\1`, `\g<name>`, `\n`.
pub(crate) struct Template(Vec<Piece>);

enum Piece {
    Text(Vec<u8>),
    Group(usize),
}

impl Template {
    /// # Errors
    /// [`ErrorKind::Arguments`] naming an escape or a group that the pattern does not have.
    pub fn new(text: &str, pattern: &Pattern) -> Result<Template, Error> {
        let wrong = |said: String| Error::new(ErrorKind::Arguments, format!("the replacement `{text}`: {said}"));
        let mut pieces = Vec::new();
        let mut plain = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('\\') {
            plain.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at + 1..];
            let letter = rest.chars().next().ok_or_else(|| wrong("it ends in a backslash".into()))?;
            let (group, size) = match letter {
                'g' => {
                    let (name, after) = rest[1..]
                        .strip_prefix('<')
                        .and_then(|inner| inner.split_once('>'))
                        .ok_or_else(|| wrong(r"`\g` is not followed by `<name>`".into()))?;
                    (Some(name), rest.len() - after.len())
                }
                '0' => {
                    let digits = rest[1..].bytes().take(2).take_while(|byte| (b'0'..b'8').contains(byte)).count();
                    plain.push(u8::from_str_radix(&rest[..=digits], 8).unwrap_or(0));
                    (None, digits + 1)
                }
                '1'..='9' => {
                    let digits = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
                    (Some(&rest[..digits]), digits)
                }
                _ => {
                    match escaped(letter) {
                        Some(byte) => plain.push(byte),
                        None if letter.is_ascii_alphabetic() => {
                            return Err(wrong(format!(r"`\{letter}` means nothing in it; write `\\{letter}`")));
                        }
                        None => plain.extend(format!("\\{letter}").into_bytes()),
                    }
                    (None, letter.len_utf8())
                }
            };
            if let Some(name) = group {
                let number = match name.parse() {
                    Ok(number) if number < pattern.regex.captures_len() => Some(number),
                    Ok(_) => None,
                    Err(_) => pattern.group(name),
                };
                let number = number.ok_or_else(|| wrong(format!("the regular expression has no group `{name}`")))?;
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Group(number));
            }
            rest = &rest[size..];
        }
        plain.extend_from_slice(rest.as_bytes());
        pieces.push(Piece::Text(plain));
        Ok(Template(pieces))
    }

    /// Writes the replacement of one match in `text`; a group that took no part is empty.
    pub fn expand(&self, text: &[u8], found: &Found, into: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                Piece::Text(plain) => into.extend_from_slice(plain),
                Piece::Group(number) => {
                    if let Some(Some((start, end))) = found.groups.get(*number) {
                        into.extend_from_slice(&text[*start..*end]);
                    }
                }
            }
        }
    }
}

/// Returns the byte that an escape stands for. Source: Python's string escapes.
fn escaped(letter: char) -> Option<u8> {
    match letter {
        'n' => Some(b'\n'),
        't' => Some(b'\t'),
        'r' => Some(b'\r'),
        'a' => Some(7),
        'b' => Some(8),
        'f' => Some(12),
        'v' => Some(11),
        '\\' => Some(b'\\'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(pattern: &str, template: &str, text: &str) -> String {
        let pattern = Pattern::new(pattern, Flags { multi_line: true, dot_all: false }).expect("a pattern");
        let template = Template::new(template, &pattern).expect("a template");
        let (bytes, _) = pattern.replace_all(text.as_bytes(), &template).expect("a match or none");
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn patterns_mean_what_they_mean_in_python() {
        let plain = Flags::default();
        for (pattern, text, fits) in [
            (r"^#?Port\s+\d+$", "Port 22\n", true),
            (r"^Port$", "Port\nx", false),
            (r"foo\Z", "foo\n", false),
            (r"(?i)HELLO", "say hello", true),
            (r"a{,2}b", "aab", true),
            (r"{{ name }}", "x {{ name }}", true),
            (r"[[:]x", "[x", true),
            (r"[]a]+z", "]az", true),
            (r"[a&&b]x", "&x", true),
            (r"\<tag\>", "<tag>", true),
            (r"\bgpu\b", "a gpu!", true),
            (r"(?P<q>['\x22])x(?P=q)", "'x'", true),
            (r"(a)?(?(1)b|c)", "c", true),
            (r"\/dev\/sd[a-z]\d", "/dev/sdb1", true),
            (r"^\S+\s[^\W\d]+", "x-y zed", true),
            ("é.", "é!", true),
            (r"(?x) a \  b # a [comment", "a b", true),
            (r"(\w)\1", "aa", true),
            (r"\x41\101", "AA", true),
        ] {
            let compiled = Pattern::new(pattern, plain).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(compiled.is_match(text.as_bytes()).ok(), Some(fits), "{pattern} on {text:?}");
        }
        assert!(Pattern::new("(unclosed", plain).is_err());
        assert!(Pattern::new(r"\q", plain).is_err());
        assert!(Pattern::new("\u{e9}", plain).is_ok_and(|pattern| pattern.is_match(b"\xff\xc3\xa9").unwrap_or(false)));
    }

    #[test]
    fn replacements_mean_what_they_mean_in_python() {
        assert_eq!(replaced(r"(\w+)=(\w+)", r"\2=\1", "a=b"), "b=a");
        assert_eq!(replaced(r"(?P<key>\w+)=", r"\g<key>: \g<0>\n", "a=b"), "a: a=\nb");
        assert_eq!(replaced("x*", "-", "abxd"), "-a-b--d-");
        assert_eq!(replaced("^", "# ", "a\nb"), "# a\n# b");
        assert_eq!(replaced(r"\.", r"\.", "a.b"), r"a\.b");
        assert_eq!(replaced("(a)|b", r"[\1]", "ab"), "[a][]");
        let pattern = Pattern::new("a", Flags::default()).expect("a pattern");
        assert!(Template::new(r"\1", &pattern).is_err());
        assert!(Template::new(r"\d", &pattern).is_err());
    }
}
