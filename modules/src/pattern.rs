//! Regular expressions as Python writes them, which is what playbooks hold, matched over bytes as Ansible does it.

mod matcher;
mod parse;
mod program;
mod set;

use crate::{Error, ErrorKind};
use matcher::{Matcher, NOWHERE};
use parse::Parser;
use program::{Program, Step};

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
    written: String,
    program: Program,
    /// The name of each group; group 0 is the whole match.
    names: Vec<Option<String>>,
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
        let mut parser = Parser::new(pattern, flags);
        let node = parser.read().map_err(|said| wrong(&said))?;
        let program = program::compile(&node, parser.names.len()).map_err(|said| wrong(&said))?;
        let multi_line = parser.options.flags.multi_line;
        Ok(Pattern { written: pattern.to_owned(), program, names: parser.names, multi_line })
    }

    /// Returns the first match at or after `start`.
    ///
    /// # Errors
    /// [`ErrorKind::Failed`] when the pattern goes back and forth without end on this text.
    pub fn find(&self, text: &[u8], start: usize) -> Result<Option<Found>, Error> {
        let mut matcher = Matcher::new(&self.program, text);
        let first = match self.program.steps.first() {
            Some(Step::One(set)) => Some(set),
            _ => None,
        };
        for at in start..=text.len() {
            if first.is_some_and(|set| text.get(at).is_none_or(|&byte| !set.has(byte))) {
                continue;
            }
            let end = matcher.run(at).map_err(|_| {
                let said = "it takes too many steps on this text";
                Error::new(ErrorKind::Failed, format!("match the regular expression `{}`: {said}", self.written))
            })?;
            let Some(end) = end else { continue };
            let group = |nth: usize| match (matcher.slots[nth * 2], matcher.slots[nth * 2 + 1]) {
                (_, NOWHERE) | (NOWHERE, _) => None,
                (start, end) => Some((start, end)),
            };
            let mut groups = vec![Some((at, end))];
            groups.extend((1..self.names.len()).map(group));
            return Ok(Some(Found { groups }));
        }
        Ok(None)
    }

    pub fn is_match(&self, text: &[u8]) -> Result<bool, Error> {
        Ok(self.find(text, 0)?.is_some())
    }

    /// Returns the number of a named group.
    pub fn group(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|other| other.as_deref() == Some(name))
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
                    Ok(number) if number < pattern.names.len() => Some(number),
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
