//! Words and digits that YAML 1.1 reads otherwise than people do.

use crate::lint::{Check, Edit, Found, Meant, Rule, Scalar, Weight, text};
use crate::yaml::Kind;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "truthy-text",
        also: &[],
        weight: Weight::Error,
        what: "`yes`, `no`, `on`, `off`, `true` or `false` where a text is meant",
        why: "it is a boolean: the text becomes `True` or `False`, Norway's `no` becomes false, and Kubernetes refuses the object",
        fix: "quote it",
        mends: true,
        check: Check::Scalar(truthy_text),
    },
    Rule {
        id: "truthy",
        also: &["yaml"],
        weight: Weight::Note,
        what: "a boolean that is written `yes`, `no`, `on` or `off`",
        why: "YAML 1.2, and so most other tools, reads `yes` and `on` as texts; who reads the file can't tell which is meant",
        fix: "write `true` or `false`",
        mends: true,
        check: Check::Scalar(truthy),
    },
    Rule {
        id: "octal-values",
        also: &["yaml"],
        weight: Weight::Warning,
        what: "a number with a leading zero",
        why: "it is read to the base of eight: `010` is 8, and other readers make ten of it",
        fix: "quote it where digits are meant, or write the number without the zero",
        mends: false,
        check: Check::Scalar(octal),
    },
    Rule {
        id: "sexagesimal",
        also: &[],
        weight: Weight::Error,
        what: "digits with colons without quotes",
        why: "`22:22` is a number to the base of 60, that is 1342: ports, times and addresses turn into something else",
        fix: "quote it",
        mends: true,
        check: Check::Scalar(sexagesimal),
    },
    Rule {
        id: "version-number",
        also: &[],
        weight: Weight::Error,
        what: "a version that is a number without quotes and ends in a zero",
        why: "`1.10` is the number 1.1: another version",
        fix: "quote it",
        mends: true,
        check: Check::Scalar(version),
    },
];

/// Returns a boolean's word where it is one by YAML 1.1 alone.
fn odd_boolean(scalar: &Scalar<'_>) -> Option<String> {
    match &scalar.node.kind {
        Kind::Bool(value) => text::plain_word(scalar.node)
            .filter(|word| !word.eq_ignore_ascii_case(if *value { "true" } else { "false" })),
        _ => None,
    }
}

fn is_text_meant(scalar: &Scalar<'_>) -> bool {
    // Among words, a word is meant.
    let among_texts = |nodes: &[crate::yaml::Node]| nodes.iter().any(|node| node.as_str().is_some());
    scalar.meant == Meant::Text || scalar.siblings.is_some_and(among_texts)
}

fn quoted(scalar: &Scalar<'_>, word: &str) -> Vec<Edit> {
    vec![Edit::new(scalar.node.place, word, format!("\"{word}\""))]
}

fn truthy_text(scalar: &Scalar<'_>, found: &mut Found) {
    let Kind::Bool(value) = scalar.node.kind else { return };
    let Some(word) = text::plain_word(scalar.node).filter(|_| is_text_meant(scalar)) else { return };
    let message = match word == value.to_string() {
        true => format!("a text is meant, and `{word}` is a boolean"),
        false => format!("a text is meant, and `{word}` is the boolean {value}"),
    };
    found.mend(scalar.node.place, word.len(), message, quoted(scalar, &word));
}

fn truthy(scalar: &Scalar<'_>, found: &mut Found) {
    let Kind::Bool(value) = scalar.node.kind else { return };
    let Some(word) = odd_boolean(scalar).filter(|_| !is_text_meant(scalar)) else { return };
    let edit = Edit::new(scalar.node.place, &*word, value.to_string());
    found.mend(scalar.node.place, word.len(), format!("`{word}` is the boolean {value}"), vec![edit]);
}

fn octal(scalar: &Scalar<'_>, found: &mut Found) {
    let Kind::Int(value) = scalar.node.kind else { return };
    // Modes are to the base of eight.
    let is_mode = scalar.key.is_some_and(|key| key.to_ascii_lowercase().ends_with("mode") || key.ends_with("umask"));
    let Some(word) = text::plain_word(scalar.node).filter(|_| scalar.meant != Meant::Mode && !is_mode) else { return };
    let digits = word.trim_start_matches(['-', '+']);
    if digits.len() > 1 && digits.starts_with('0') && digits.chars().all(|c| c.is_ascii_digit() || c == '_') {
        let edits = if is_text_meant(scalar) { quoted(scalar, &word) } else { Vec::new() };
        found.mend(scalar.node.place, word.len(), format!("`{word}` is the number {value}"), edits);
    }
}

fn sexagesimal(scalar: &Scalar<'_>, found: &mut Found) {
    let Kind::Int(value) = scalar.node.kind else { return };
    let Some(word) = text::plain_word(scalar.node).filter(|word| word.contains(':')) else { return };
    found.mend(scalar.node.place, word.len(), format!("`{word}` is the number {value}"), quoted(scalar, &word));
}

fn version(scalar: &Scalar<'_>, found: &mut Found) {
    let (Kind::Float(value), Some(key)) = (&scalar.node.kind, scalar.key) else { return };
    let Some(word) = text::plain_word(scalar.node) else { return };
    if key.to_ascii_lowercase().contains("version") && word.ends_with('0') && word.contains('.') {
        found.mend(
            scalar.node.place,
            word.len(),
            format!("the version `{word}` is the number {value}"),
            quoted(scalar, &word),
        );
    }
}
