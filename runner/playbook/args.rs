//! A task's action: its name, and its arguments from a mapping, from `key=value` words or from free text.

use std::borrow::Cow;
use std::sync::Arc;

use crate::foreign::Foreign;
use crate::source::{Diagnostic, Place};
use crate::template;
use crate::value::{Map, Str, Value};
use crate::yaml::{Kind, Node};

/// Which action a task calls, and with what.
#[derive(Debug)]
pub struct ActionCall {
    /// Without a collection's name where it is one that we have.
    pub name: Arc<str>,
    /// As written.
    pub written: String,
    pub place: Place,
    pub args: Arc<Map>,
    /// What the arguments were read from, for places of keys.
    pub node: Node,
    /// `args:` of the task, beneath the action's own.
    pub more: Option<Node>,
    /// The program that is called where it is no action and no module of ours.
    pub foreign: Option<Arc<Foreign>>,
}

impl ActionCall {
    /// Returns where an argument's key and value stand; the action's own place where they can't be told apart.
    pub fn place_of(&self, key: &str) -> (Place, Place) {
        let within = |node: &Node| {
            node.entries()
                .iter()
                .find(|(name, _)| name.as_str() == Some(key))
                .map(|(key, value)| (key.place, value.place))
        };
        within(&self.node)
            .or_else(|| self.more.as_ref().and_then(within))
            .unwrap_or_else(|| (self.node_place(), self.node_place()))
    }

    fn node_place(&self) -> Place {
        if self.node.is_null() { self.place } else { self.node.place }
    }
}

/// The actions whose argument may be free text.
pub(super) const FREE_FORM: &[&str] = &[
    "command",
    "shell",
    "script",
    "raw",
    "meta",
    "include_tasks",
    "import_tasks",
    "import_playbook",
    "include_vars",
    "add_host",
    "group_by",
    "set_fact",
    "win_command",
    "win_shell",
    "import_role",
    "include_role",
];

/// The actions whose free text is one text, in which only known `key=value` words are arguments.
const RAW: &[(&str, &[&str])] = &[
    (
        "command",
        &["chdir", "creates", "removes", "stdin", "stdin_add_newline", "strip_empty_ends", "executable", "warn"],
    ),
    ("shell", &["chdir", "creates", "removes", "executable", "stdin", "stdin_add_newline", "warn"]),
    ("script", &["chdir", "creates", "removes", "executable"]),
    ("raw", &["executable"]),
    ("meta", &[]),
];

/// Reads an action's arguments.
///
/// # Errors
/// When the text can't be split, or the node is of no use as arguments.
pub(super) fn read(name: &str, node: &Node) -> Result<Map, Diagnostic> {
    match &node.kind {
        Kind::Null => Ok(Map::new()),
        Kind::Map(entries) => {
            let name = |key: &Node| match key.value() {
                Value::Str(text) if text.is_template() => Value::Str(text),
                _ => Value::str(key.text()),
            };
            Ok(entries.iter().map(|(key, value)| (name(key), value.value())).collect())
        }
        Kind::Str { text, .. } => read_text(name, text, node),
        Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) if FREE_FORM.contains(&name) => {
            read_text(name, &node.text(), node)
        }
        Kind::List(_) | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Vault(_) => Err(Diagnostic::error(
            node.place,
            format!("arguments of `{name}`: expected a mapping, found {}", node.what()),
        )),
    }
}

fn read_text(name: &str, text: &str, node: &Node) -> Result<Map, Diagnostic> {
    let mut args = Map::new();
    let text_value = |text: &str| match node.value() {
        Value::Str(whole) => Value::Str(Str::template(text, node.place).trusted(whole.trust)),
        _ => Value::Str(Str::template(text, node.place)),
    };
    if let Some((_, known)) = RAW.iter().find(|(raw, _)| *raw == name) {
        let mut rest = Vec::new();
        for word in split_words(text).map_err(|message| Diagnostic::error(node.place, message))? {
            match word.text.split_once('=') {
                Some((key, value)) if known.contains(&key) => {
                    args.insert(key, text_value(unquoted(&decoded(value))));
                }
                Some(_) | None => rest.push(word),
            }
        }
        // The text between the words stays as it was: a shell's newlines and blanks mean something.
        let raw: String = rest.iter().map(|word| format!("{}{}", word.before, word.text)).collect();
        if !raw.trim().is_empty() {
            args.insert("_raw_params", text_value(raw.trim()));
        }
        return Ok(args);
    }
    if text.trim().is_empty() {
        return Ok(args);
    }
    let (pairs, rest) = parse_key_values(text).map_err(|message| Diagnostic::error(node.place, message))?;
    for (key, value) in pairs {
        args.insert(key, text_value(&value));
    }
    if !rest.is_empty() {
        // What these take beside words is the whole of their arguments, too.
        let is_lone = template::is_lone(text) && matches!(name, "add_host" | "group_by" | "set_fact");
        if args.is_empty() && (is_lone || !FREE_FORM.contains(&name)) && text.trim_start().starts_with("{{") {
            args.insert("_variable_params", text_value(text.trim()));
            return Ok(args);
        }
        if !FREE_FORM.contains(&name) {
            return Err(Diagnostic::error(
                node.place,
                format!("arguments of `{name}`: `{rest}` is not of the form `key=value`"),
            )
            .help("write the arguments as a mapping below the action's name"));
        }
        args.insert("_raw_params", text_value(&rest));
    }
    Ok(args)
}

/// A word of a line, with the blanks before it.
#[derive(Debug, PartialEq, Eq)]
pub struct Word<'a> {
    pub before: &'a str,
    pub text: &'a str,
}

/// Splits a line at blanks that stand outside quotes and outside `{{ … }}`, `{% … %}` and `{# … #}`. Quotes stay.
///
/// # Errors
/// When a quote or a template is not closed.
pub fn split_words(line: &str) -> Result<Vec<Word<'_>>, String> {
    let mut words = Vec::new();
    let bytes = line.as_bytes();
    let (mut at, mut before) = (0, 0);
    // What is not found from one place on is not found from a later one.
    let mut absent: Vec<&str> = Vec::new();
    while at < bytes.len() {
        if bytes[at].is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let start = at;
        let mut quote = None;
        while at < bytes.len() {
            let byte = bytes[at];
            if let Some(open) = quote {
                // A template's own quotes don't end the one around it.
                if let Some(close) = template_end(&bytes[at..]).filter(|close| !absent.contains(close)) {
                    if let Some(end) = line[at..].find(close) {
                        at += end + close.len();
                        continue;
                    }
                    absent.push(close);
                }
                if byte == b'\\' && at + 1 < bytes.len() {
                    at += 1;
                } else if byte == open {
                    quote = None;
                }
            } else if let Some(close) = template_end(&bytes[at..]) {
                // A mark is ASCII: the text may be cut there.
                let end = line[at..].find(close).ok_or_else(|| format!("`{}` is not closed", &line[at..at + 2]))?;
                at += end + close.len();
                continue;
            } else if byte == b'\\' && at + 1 < bytes.len() {
                at += 1;
            } else if byte == b'"' || byte == b'\'' {
                quote = Some(byte);
            } else if byte.is_ascii_whitespace() {
                break;
            }
            at += 1;
        }
        if quote.is_some() {
            return Err(format!("a quote is not closed in `{line}`"));
        }
        let at_char = (at..=line.len()).find(|&at| line.is_char_boundary(at)).unwrap_or(line.len());
        at = at_char;
        words.push(Word { before: &line[before..start], text: &line[start..at] });
        before = at;
    }
    Ok(words)
}

fn template_end(rest: &[u8]) -> Option<&'static str> {
    match rest {
        [b'{', b'{', ..] => Some("}}"),
        [b'{', b'%', ..] => Some("%}"),
        [b'{', b'#', ..] => Some("#}"),
        _ => None,
    }
}

/// Puts in what `\n`, `\t`, `\x41`, `\u00e9` and their like stand for, as in Python; any other `\` stays.
fn decoded(word: &str) -> Cow<'_, str> {
    if !word.contains('\\') {
        return Cow::Borrowed(word);
    }
    let mut out = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let letter = after.chars().next();
        let simple = match letter {
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('t') => Some('\t'),
            Some('a') => Some('\u{7}'),
            Some('b') => Some('\u{8}'),
            Some('f') => Some('\u{c}'),
            Some('v') => Some('\u{b}'),
            Some(mark @ ('\\' | '\'' | '"')) => Some(mark),
            _ => None,
        };
        let digits = match letter {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => 0,
        };
        let by_number = after.get(1..1 + digits).filter(|digits| !digits.is_empty());
        let by_number = by_number.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let by_number = by_number.and_then(|digits| char::from_u32(u32::from_str_radix(digits, 16).ok()?));
        match (simple, by_number) {
            (Some(c), _) => {
                out.push(c);
                rest = &after[1..];
            }
            (None, Some(c)) => {
                out.push(c);
                rest = &after[1 + digits..];
            }
            (None, None) => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Takes the pair of quotes around a word away.
fn unquoted(word: &str) -> &str {
    for quote in ['"', '\''] {
        if word.len() >= 2
            && let Some(inner) = word.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote))
        {
            return inner;
        }
    }
    word
}

/// Reads `key=value` words; returns the pairs and the words that are none.
///
/// # Errors
/// When a quote or a template is not closed.
pub fn parse_key_values(line: &str) -> Result<(Vec<(String, String)>, String), String> {
    let mut pairs = Vec::new();
    let mut rest = Vec::new();
    for Word { text, .. } in split_words(line)? {
        let key_like = |key: &str| {
            !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '@' | '/'))
        };
        match text.split_once('=') {
            Some((key, value)) if key_like(key) => pairs.push((key.to_owned(), unquoted(&decoded(value)).to_owned())),
            Some(_) | None => rest.push(text),
        }
    }
    Ok((pairs, rest.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::FileId;

    fn args(name: &str, text: &str) -> String {
        let file = FileId::register(std::path::Path::new("t.yml"), format!("{text:?}"));
        let node = crate::yaml::parse(file).expect("valid").documents.remove(0);
        read(name, &node)
            .map_or_else(|error| error.message, |args| serde_json::Value::Object(args.to_json()).to_string())
    }

    #[test]
    fn words_become_arguments() {
        assert_eq!(
            args("file", "path=/x mode=0644 state='directory'"),
            r#"{"path":"/x","mode":"0644","state":"directory"}"#
        );
        assert_eq!(
            args("command", "echo a=b  'c d' chdir=/tmp"),
            r#"{"chdir":"/tmp","_raw_params":"echo a=b  'c d'"}"#
        );
        assert_eq!(args("debug", "msg=\"{{ 'a b' }} c\""), r#"{"msg":"{{ 'a b' }} c"}"#);
        assert_eq!(args("debug", "msg={{ x | join(' ') }}"), r#"{"msg":"{{ x | join(' ') }}"}"#);
        assert!(args("file", "path /x").contains("key=value"));
        assert_eq!(
            args("command", "echo π > \"ßΩ\" {{ 'ß' }} -Ӧther"),
            r#"{"_raw_params":"echo π > \"ßΩ\" {{ 'ß' }} -Ӧther"}"#
        );
        assert_eq!(args("debug", "msg=Ω\\ß"), r#"{"msg":"Ω\\ß"}"#);
        assert_eq!(args("debug", r#"msg="a\nb\t\x41\u00e9\q \"c\"""#), r#"{"msg":"a\nb\tAé\\q \"c\""}"#);
        assert_eq!(
            args("command", r#"printf 'a\n' chdir="/a\x20b""#),
            r#"{"chdir":"/a b","_raw_params":"printf 'a\\n'"}"#
        );
        assert_eq!(args("debug", r#"msg="{{ "a b" | split }}""#), r#"{"msg":"{{ \"a b\" | split }}"}"#);
        assert_eq!(args("add_host", "{{ host }}"), r#"{"_variable_params":"{{ host }}"}"#);
    }
}
