//! Filters of texts.

use crate::template::call::{Call, Filter, callable};
use crate::template::live::{Live, Result};
use crate::template::percent;
use crate::value::Value;

/// How wide a text may be made.
const WIDTH_LIMIT: usize = 10_000_000;

pub(in crate::template) const FILTERS: &[Filter] = &[
    callable("string", &[], |call| Ok(call.text()?.into())),
    callable("upper", &[], |call| Ok(call.text()?.to_uppercase().into())),
    callable("lower", &[], |call| Ok(call.text()?.to_lowercase().into())),
    callable("capitalize", &[], |call| Ok(capitalized(&call.text()?).into())),
    callable("title", &[], |call| Ok(jinja_title(&call.text()?).into())),
    callable("trim", &["chars"], |call| {
        let text = call.text()?;
        let set = call.text_at(0)?;
        let strip = |c: char| set.as_ref().map_or_else(|| c.is_whitespace(), |set| set.contains(c));
        Ok(text.trim_matches(strip).into())
    }),
    callable("replace", &["old", "new", "count"], |call| {
        let (text, old, new) = (call.text()?, call.required(0)?.text()?, call.required(1)?.text()?);
        Ok(match call.int_at(2)?.and_then(|count| usize::try_from(count).ok()) {
            Some(count) => text.replacen(&old, &new, count).into(),
            None => text.replace(&old, &new).into(),
        })
    }),
    callable("split", &["sep", "maxsplit"], |call| {
        let (text, separator, most) = (call.text()?, call.text_at(0)?, call.int_at(1)?.unwrap_or(-1));
        let pieces = split(&text, separator.as_deref(), most, false).ok_or_else(|| call.fault("empty separator"))?;
        Ok(Live::Done(Value::list(pieces.into_iter().map(Value::from).collect())))
    }),
    callable("splitlines", &["keepends"], |call| {
        let pieces = lines(&call.text()?, call.bool_or(0, false)?);
        Ok(Live::Done(Value::list(pieces.into_iter().map(Value::from).collect())))
    }),
    callable("center", &["width"], |call| {
        let width = call.int_at(0)?.unwrap_or(80);
        adjusted(&call.text()?, "center", width, ' ').map(Live::from).map_err(|message| call.fault(message))
    }),
    callable("indent", &["width", "first", "blank"], indent),
    callable("wordcount", &[], |call| Ok((call.text()?.split_whitespace().count() as i64).into())),
    callable("wordwrap", &["width", "break_long_words", "wrapstring", "break_on_hyphens"], wordwrap),
    callable("truncate", &["length", "killwords", "end", "leeway"], truncate),
    callable("format", &["*", "**"], |call| {
        let text = call.text()?;
        let values = match call.rest.is_empty() {
            true => {
                let entries =
                    call.named_arguments().into_iter().map(|(name, value)| Ok((Value::str(name), value.force()?)));
                Value::map(entries.collect::<Result<_>>()?)
            }
            false => Value::list(call.rest.iter().map(Live::force).collect::<Result<_>>()?),
        };
        percent::format(&text, &values, true).map(Live::from).map_err(|message| call.fault(message))
    }),
    callable("quote", &[], |call| match &call.input {
        Live::Done(Value::Null) => Ok("''".into()),
        _ => Ok(quoted(&call.text()?).into()),
    }),
    callable("comment", &["style", "**"], comment),
    callable("safe", &[], |call| Ok(call.input.clone())),
    callable("escape", &[], |call| Ok(escaped(&call.text()?).into())),
    callable("e", &[], |call| Ok(escaped(&call.text()?).into())),
    callable("forceescape", &[], |call| Ok(escaped(&call.text()?).into())),
    callable("striptags", &[], striptags),
    callable("reverse", &[], |call| match call.input.is_text() {
        true => Ok(call.text()?.chars().rev().collect::<String>().into()),
        false => {
            let mut items = call.items()?;
            items.reverse();
            Ok(items.into())
        }
    }),
    callable("urlencode", &[], urlencode),
    callable("urldecode", &[], |call| {
        url_decoded(&call.text()?).map(Live::from).ok_or_else(|| call.fault("what it decodes to is not UTF-8"))
    }),
    callable("pprint", &[], |call| Ok(format!("{:?}", call.value()?).into())),
];

pub(in crate::template) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(chars.as_str().to_lowercase().chars()).collect())
}

/// Jinja's `title`: a word starts after white space, a dash or an opening bracket.
fn jinja_title(text: &str) -> String {
    titled(text, |before| before.is_whitespace() || "-({[<".contains(before))
}

/// Python's `str.title`: a word starts after anything that is no letter.
pub(in crate::template) fn python_title(text: &str) -> String {
    titled(text, |before| !before.is_alphabetic())
}

fn titled(text: &str, starts_after: impl Fn(char) -> bool) -> String {
    let mut before = ' ';
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if starts_after(before) {
            out.extend(c.to_uppercase());
        } else {
            out.extend(c.to_lowercase());
        }
        before = c;
    }
    out
}

/// Python's `split`; `None` for an empty separator.
pub(in crate::template) fn split(
    text: &str,
    separator: Option<&str>,
    most: i64,
    from_right: bool,
) -> Option<Vec<String>> {
    let most = usize::try_from(most).map_or(usize::MAX, |most| most.saturating_add(1));
    let own = |pieces: Vec<&str>| Some(pieces.into_iter().map(str::to_owned).collect());
    match separator {
        Some("") => None,
        Some(separator) if from_right => {
            let mut pieces: Vec<&str> = text.rsplitn(most, separator).collect();
            pieces.reverse();
            own(pieces)
        }
        Some(separator) => own(text.splitn(most, separator).collect()),
        None => {
            let mut pieces = Vec::new();
            let mut rest = text.trim();
            while !rest.is_empty() {
                let at = if from_right { rest.rfind(char::is_whitespace) } else { rest.find(char::is_whitespace) };
                let Some(at) = at.filter(|_| pieces.len() + 1 < most) else {
                    pieces.push(rest);
                    break;
                };
                if from_right {
                    let width = rest[at..].chars().next().map_or(1, char::len_utf8);
                    pieces.push(&rest[at + width..]);
                    rest = rest[..at].trim_end();
                } else {
                    pieces.push(&rest[..at]);
                    rest = rest[at..].trim_start();
                }
            }
            if from_right {
                pieces.reverse();
            }
            own(pieces)
        }
    }
}

pub(in crate::template) fn lines(text: &str, keep_ends: bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = rest.find(['\n', '\r', '\u{b}', '\u{c}', '\u{2028}', '\u{2029}', '\u{85}']).unwrap_or(rest.len());
        let end = match &rest[at..] {
            "" => at,
            ending if ending.starts_with("\r\n") => at + 2,
            ending => at + ending.chars().next().map_or(0, char::len_utf8),
        };
        found.push(if keep_ends { &rest[..end] } else { &rest[..at] }.to_owned());
        rest = &rest[end..];
    }
    found
}

/// `center`, `ljust`, `rjust` and `zfill`.
pub(in crate::template) fn adjusted(
    text: &str,
    how: &str,
    width: i64,
    fill: char,
) -> std::result::Result<String, String> {
    let width = usize::try_from(width).unwrap_or(0);
    if width > WIDTH_LIMIT {
        return Err(format!("a width above {WIDTH_LIMIT}"));
    }
    let length = text.chars().count();
    let Some(missing) = width.checked_sub(length).filter(|missing| *missing > 0) else { return Ok(text.to_owned()) };
    let pad = |count: usize| fill.to_string().repeat(count);
    Ok(match how {
        "ljust" => text.to_owned() + &pad(missing),
        "rjust" => pad(missing) + text,
        "zfill" => {
            let (sign, digits) = text.strip_prefix(['-', '+']).map_or(("", text), |digits| (&text[..1], digits));
            format!("{sign}{}{digits}", "0".repeat(missing))
        }
        // Python puts the odd blank to the left when the width is odd.
        _ => {
            let left = missing / 2 + (missing & width & 1);
            pad(left) + text + &pad(missing - left)
        }
    })
}

pub(in crate::template) fn expanded_tabs(text: &str, size: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' if size > 0 => {
                let blanks = size - column % size;
                out.push_str(&" ".repeat(blanks));
                column += blanks;
            }
            '\t' => {}
            '\n' | '\r' => {
                out.push(c);
                column = 0;
            }
            c => {
                out.push(c);
                column += 1;
            }
        }
    }
    out
}

fn indent(call: &mut Call<'_>) -> Result<Live> {
    let text = call.text()?;
    let prefix = match call.get(0) {
        Some(Live::Done(Value::Str(prefix))) => prefix.as_str().to_owned(),
        _ => " ".repeat(usize::try_from(call.int_at(0)?.unwrap_or(4)).unwrap_or(0).min(WIDTH_LIMIT)),
    };
    let (first, blank) = (call.bool_or(1, false)?, call.bool_or(2, false)?);
    // Jinja adds a newline before it splits, so that one at the end is kept.
    let mut lines = lines(&(text + "\n"), false);
    for (nth, line) in lines.iter_mut().enumerate() {
        let wanted = if nth == 0 { first } else { blank || !line.is_empty() };
        if wanted {
            line.insert_str(0, &prefix);
        }
    }
    Ok(lines.join("\n").into())
}

fn wordwrap(call: &mut Call<'_>) -> Result<Live> {
    let width = usize::try_from(call.int_at(0)?.unwrap_or(79)).unwrap_or(79).max(1);
    let break_long = call.bool_or(1, true)?;
    let newline = call.text_or(2, "\n")?;
    let wrapped: Vec<String> =
        lines(&call.text()?, false).iter().map(|line| wrapped(line, width, break_long).join(&newline)).collect();
    Ok(wrapped.join(&newline).into())
}

fn wrapped(line: &str, width: usize, break_long: bool) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut current = String::new();
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let mut word: String = word.to_owned();
        loop {
            let used = current.chars().count();
            let room = if used == 0 { width } else { width.saturating_sub(used + 1) };
            let length = word.chars().count();
            if length <= room {
                if used > 0 {
                    current.push(' ');
                }
                current.push_str(&word);
                break;
            }
            if used == 0 && !break_long {
                current.push_str(&word);
                break;
            }
            if used == 0 {
                out.push(word.chars().take(width).collect());
                word = word.chars().skip(width).collect();
                continue;
            }
            out.push(std::mem::take(&mut current));
        }
    }
    if !current.is_empty() || out.is_empty() {
        out.push(current);
    }
    out
}

fn truncate(call: &mut Call<'_>) -> Result<Live> {
    let text = call.text()?;
    let length = usize::try_from(call.int_at(0)?.unwrap_or(255)).unwrap_or(0);
    let (kill_words, end) = (call.bool_or(1, false)?, call.text_or(2, "...")?);
    // Ansible leaves Jinja's policy for the leeway as it is: 5.
    let leeway = usize::try_from(call.int_at(3)?.unwrap_or(5)).unwrap_or(0);
    if text.chars().count() <= length + leeway {
        return Ok(text.into());
    }
    let kept: String = text.chars().take(length.saturating_sub(end.chars().count())).collect();
    let kept = if kill_words { kept.as_str() } else { kept.rsplit_once(' ').map_or(kept.as_str(), |(kept, _)| kept) };
    Ok(format!("{kept}{end}").into())
}

/// Quotes a text for a shell, as Python's `shlex.quote` does.
pub(in crate::template) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c);
    match text {
        "" => "''".to_owned(),
        text if text.chars().all(is_plain) => text.to_owned(),
        text => format!("'{}'", text.replace('\'', "'\"'\"'")),
    }
}

/// What frames a comment in a language.
struct Style {
    beginning: &'static str,
    decoration: &'static str,
    end: &'static str,
}

fn comment_style(name: &str) -> Option<Style> {
    Some(match name {
        "plain" => Style { beginning: "", decoration: "# ", end: "" },
        "decoration" => Style { beginning: "", decoration: "", end: "" },
        "erlang" => Style { beginning: "", decoration: "% ", end: "" },
        "c" => Style { beginning: "", decoration: "// ", end: "" },
        "cblock" => Style { beginning: "/*", decoration: " * ", end: " */" },
        "xml" => Style { beginning: "<!--", decoration: " - ", end: "-->" },
        _ => return None,
    })
}

fn comment(call: &mut Call<'_>) -> Result<Live> {
    let text = call.text()?;
    let name = call.text_or(0, "plain")?;
    let style = comment_style(&name)
        .ok_or_else(|| call.fault(format!("Invalid style '{name}'")).help("one of plain, erlang, c, cblock, xml"))?;
    let mut settings = std::collections::BTreeMap::new();
    for (setting, value) in call.named_arguments() {
        if !matches!(
            &*setting,
            "newline" | "beginning" | "prefix" | "prefix_count" | "decoration" | "postfix" | "postfix_count" | "end"
        ) {
            return Err(call.fault(format!("no argument named `{setting}`")));
        }
        settings.insert(setting.to_string(), value.text()?);
    }
    let setting = |name: &str, default: &str| settings.get(name).cloned().unwrap_or_else(|| default.to_owned());
    let newline = setting("newline", "\n");
    let decoration = setting("decoration", style.decoration);
    // Around the text stands what decorates it, unless told otherwise.
    let prefix = setting("prefix", decoration.trim_end());
    let postfix = setting("postfix", decoration.trim_end());
    let count = |name: &str| setting(name, "1").parse::<usize>().unwrap_or(1).min(1000);
    let with_newline = |text: String| if text.is_empty() { text } else { text + &newline };
    let around = |mark: &str, count: usize| match mark {
        "" if name == "plain" || !settings.is_empty() => String::new(),
        mark => mark.lines().map(|line| format!("{line}{newline}")).collect::<String>().repeat(count),
    };
    let decorated: Vec<String> =
        text.split(newline.as_str()).map(|line| format!("{decoration}{line}").trim_end().to_owned()).collect();
    let end = setting("end", style.end);
    let out = format!(
        "{}{}{}{}{}",
        with_newline(setting("beginning", style.beginning)),
        around(&prefix, count("prefix_count")),
        decorated.join(&newline),
        format!("{newline}{postfix}").repeat(count("postfix_count")),
        if end.is_empty() { end } else { format!("{newline}{end}") },
    );
    Ok(out.into())
}

pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn striptags(call: &mut Call<'_>) -> Result<Live> {
    let text = call.text()?;
    let mut out = String::new();
    let mut in_tag = false;
    for c in text.chars() {
        match c {
            '<' => in_tag = true,
            '>' if in_tag => in_tag = false,
            c if !in_tag => out.push(c),
            _ => {}
        }
    }
    Ok(out.split_whitespace().collect::<Vec<_>>().join(" ").into())
}

/// Encodes for a URL; `kept` are the marks that stay.
pub(in crate::template) fn url_encoded(text: &str, kept: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match char::from(byte) {
            c if c.is_ascii_alphanumeric() || "_.-~".contains(c) || kept.contains(c) => out.push(c),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn url_decoded(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text.get(at + 1..at + 3).and_then(|code| u8::from_str_radix(code, 16).ok());
        match (bytes[at], code) {
            (b'%', Some(code)) => {
                out.push(code);
                at += 2;
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8(out).ok()
}

/// In a query, a blank is a plus.
fn plus_encoded(value: &Value) -> String {
    url_encoded(&value.to_string(), " ").replace(' ', "+")
}

fn urlencode(call: &mut Call<'_>) -> Result<Live> {
    let pair = |key: &Value, value: &Value| format!("{}={}", plus_encoded(key), plus_encoded(value));
    Ok(match call.value()? {
        Value::Map(map) => map.iter().map(|(key, value)| pair(key, value)).collect::<Vec<_>>().join("&").into(),
        Value::List(items) => {
            let pairs = items.iter().map(|item| match item.as_list().map(|pair| &pair[..]) {
                Some([key, value]) => Ok(pair(key, value)),
                _ => Err(call.fault("takes a text, a mapping or a list of pairs")),
            });
            pairs.collect::<Result<Vec<_>>>()?.join("&").into()
        }
        other => url_encoded(&other.to_string(), "/").into(),
    })
}
