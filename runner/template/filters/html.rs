//! Filters that write HTML: `urlize` and `xmlattr`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use fancy_regex::Regex;

use super::strings::escaped;
use crate::template::call::{Call, Filter, callable};
use crate::template::live::{Live, Result};
use crate::value::Value;

pub(in crate::template) const FILTERS: &[Filter] = &[
    callable("urlize", &["trim_url_limit", "nofollow", "target", "rel", "extra_schemes"], urlize),
    callable("xmlattr", &["autospace"], xmlattr),
];

/// What stands around a link without being part of it.
const PAIRS: [(&str, &str); 3] = [("(", ")"), ("<", ">"), ("&lt;", "&gt;")];

/// How links are written.
struct Links {
    limit: Option<usize>,
    rel: String,
    target: String,
    schemes: Vec<String>,
}

fn urlize(call: &mut Call<'_>) -> Result<Live> {
    let mut rel: BTreeSet<String> = call.text_or(3, "")?.split_whitespace().map(str::to_owned).collect();
    if call.bool_or(1, false)? {
        rel.insert("nofollow".to_owned());
    }
    rel.insert("noopener".to_owned());
    let rel: Vec<String> = rel.into_iter().collect();
    let schemes: Vec<String> = match call.given(4).map(|value| value.force()).transpose()? {
        None => Vec::new(),
        Some(Value::List(items)) => items.iter().map(ToString::to_string).collect(),
        Some(other) => return Err(call.fault(format!("`extra_schemes` must be a list, not {}", other.kind()))),
    };
    if let Some(wrong) = schemes.iter().find(|scheme| !fits(&SCHEME, scheme)) {
        return Err(call.fault(format!("`{wrong}` is no beginning of a URL, such as `tel:`")));
    }
    let links = Links {
        limit: call.int_at(0)?.and_then(|limit| usize::try_from(limit).ok()),
        rel: format!(" rel=\"{}\"", escaped(&rel.join(" "))),
        target: call.text_at(2)?.map(|target| format!(" target=\"{}\"", escaped(&target))).unwrap_or_default(),
        schemes,
    };
    let text = escaped(&call.text()?);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let blanks = rest.len() - rest.trim_start().len();
        let (before, from) = rest.split_at(blanks);
        out.push_str(before);
        let end = from.find(char::is_whitespace).unwrap_or(from.len());
        links.word(&from[..end], &mut out);
        rest = &from[end..];
    }
    Ok(out.into())
}

static SCHEME: LazyLock<Regex> = LazyLock::new(|| pattern(r"\A[\w.+-]{2,}:/{0,2}\z"));
static MAIL: LazyLock<Regex> = LazyLock::new(|| pattern(r"\A\S+@\w[\w.-]*\.\w+\z"));
/// A host with a scheme or `www.`, a name below a well-known domain, or an address with a scheme; then a port and a path.
static LINK: LazyLock<Regex> = {
    const NAMED: &str = r"(?:https?://|www\.)(?:[\w%-]+\.)*(?:[a-z]{2,63}|xn--[\w%]{2,59})";
    const KNOWN: &str = r"(?:[\w%-]{2,63}\.)+(?:com|net|int|edu|gov|org|info|mil)";
    const ADDRESS: &str = r"https?://(?:\d{1,3}(?:\.\d{1,3}){3}|\[(?:[\da-f]{0,4}:){2}(?:[\da-f]{0,4}:?){1,6}\])";
    LazyLock::new(|| pattern(&format!(r"(?i)\A(?:{NAMED}|{KNOWN}|{ADDRESS})(?::\d{{1,5}})?(?:[/?#]\S*)?\z")))
};

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is well formed")
}

/// Returns whether a text is what a pattern wants; one that takes too long to tell is not.
fn fits(pattern: &Regex, text: &str) -> bool {
    pattern.is_match(text).unwrap_or(false)
}

impl Links {
    /// Writes a word, as a link where it is one.
    fn word(&self, word: &str, out: &mut String) {
        let (head, middle, tail) = bared(word);
        out.push_str(head);
        let Links { rel, target, .. } = self;
        if fits(&LINK, middle) {
            let scheme = if middle.starts_with("http://") || middle.starts_with("https://") { "" } else { "https://" };
            out.push_str(&format!("<a href=\"{scheme}{middle}\"{rel}{target}>{}</a>", self.shortened(middle)));
        } else if middle.strip_prefix("mailto:").is_some_and(|address| fits(&MAIL, address)) {
            out.push_str(&format!("<a href=\"{middle}\">{}</a>", &middle["mailto:".len()..]));
        } else if !middle.starts_with("www.") && !middle.contains(':') && fits(&MAIL, middle) {
            out.push_str(&format!("<a href=\"mailto:{middle}\">{middle}</a>"));
        } else if self.schemes.iter().any(|scheme| middle.len() > scheme.len() && middle.starts_with(scheme.as_str())) {
            out.push_str(&format!("<a href=\"{middle}\"{rel}{target}>{middle}</a>"));
        } else {
            out.push_str(middle);
        }
        out.push_str(tail);
    }

    fn shortened(&self, text: &str) -> String {
        match self.limit {
            Some(limit) if text.chars().count() > limit => text.chars().take(limit).collect::<String>() + "...",
            Some(_) | None => text.to_owned(),
        }
    }
}

/// Splits a word into what opens before it, itself, and what closes behind it. A bracket that the word opens itself stays.
fn bared(word: &str) -> (&str, &str, &str) {
    let mut start = 0;
    while let Some((open, _)) = PAIRS.iter().find(|(open, _)| word[start..].starts_with(open)) {
        start += open.len();
    }
    let mut end = word.len();
    while let Some(mark) = [")", ">", ".", ",", "&gt;"].iter().find(|mark| word[start..end].ends_with(*mark)) {
        end -= mark.len();
    }
    for (open, close) in PAIRS {
        let opened = word[start..end].matches(open).count();
        let mut missing = opened.saturating_sub(word[start..end].matches(close).count());
        while missing > 0 {
            let Some(at) = word[end..].find(close) else { break };
            end += at + close.len();
            missing -= 1;
        }
    }
    (&word[..start], &word[start..end], &word[end..])
}

fn xmlattr(call: &mut Call<'_>) -> Result<Live> {
    let Value::Map(entries) = call.value()? else {
        return Err(call.fault(format!("attributes are a mapping, not {}", call.input.type_name())));
    };
    let mut words = Vec::new();
    for (key, value) in entries.iter().filter(|(_, value)| !matches!(value, Value::Null | Value::Omit)) {
        let key = key.to_string();
        if key.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '>' | '=')) {
            return Err(call.fault(format!("`{key}` is no name of an attribute: it has a blank, `/`, `>` or `=`")));
        }
        words.push(format!("{}=\"{}\"", escaped(&key), escaped(&value.to_string())));
    }
    let text = words.join(" ");
    Ok(if text.is_empty() || !call.bool_or(0, true)? { text } else { format!(" {text}") }.into())
}
