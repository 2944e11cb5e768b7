//! Permission bits that are read otherwise than they are written.

use crate::lint::{Check, Edit, Found, Meant, Rule, Scalar, Weight, text};
use crate::yaml::Kind;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "risky-octal",
        also: &[],
        weight: Weight::Error,
        what: "a mode that is a number without quotes",
        why: "`mode: 644` is six hundred and forty-four, which is the mode 1204; `0644` is read as it is meant only by YAML 1.1",
        fix: "quote it, with its zero: `\"0644\"`",
        mends: true,
        check: Check::Scalar(octal),
    },
    Rule {
        id: "world-writable",
        also: &[],
        weight: Weight::Warning,
        what: "a mode that lets everybody write",
        why: "any user of the host, and any service that is broken into, can change what is there",
        fix: "name an owner or a group, and take the last digit down to 5, 4 or 0",
        mends: false,
        check: Check::Scalar(writable),
    },
];

fn octal(scalar: &Scalar<'_>, found: &mut Found) {
    if scalar.meant != Meant::Mode || !matches!(scalar.node.kind, Kind::Int(_)) {
        return;
    }
    let Some(word) = text::plain_word(scalar.node) else { return };
    let digits = word.trim_start_matches('0');
    let is_octal = !digits.is_empty() && digits.len() <= 4 && digits.chars().all(|c| ('0'..='7').contains(&c));
    let edits = match is_octal {
        true => vec![Edit::new(scalar.node.place, &*word, format!("\"0{digits}\""))],
        false => Vec::new(),
    };
    let message = match word.starts_with('0') {
        true => format!("the mode `{word}` is a number without quotes"),
        false => match scalar.node.kind {
            Kind::Int(number) => format!("the mode `{word}` is read as {number:o}"),
            _ => return,
        },
    };
    found.mend(scalar.node.place, word.chars().count(), message, edits);
}

fn writable(scalar: &Scalar<'_>, found: &mut Found) {
    if scalar.meant != Meant::Mode {
        return;
    }
    let written = scalar.node.as_str().map(str::to_owned).or_else(|| text::plain_word(scalar.node));
    let Some(mode) = written else { return };
    let digits = mode.strip_prefix("0o").unwrap_or(&mode);
    let last = digits.chars().last().and_then(|c| c.to_digit(8)).unwrap_or_default();
    let octal = digits.len() >= 3 && digits.chars().all(|c| c.is_digit(8));
    let sticky =
        digits.len() >= 4 && digits.chars().rev().nth(3).and_then(|c| c.to_digit(8)).is_some_and(|bits| bits & 1 == 1);
    let clauses = mode.split(',').any(|clause| {
        clause.split_once(['=', '+']).is_some_and(|(who, bits)| who.contains(['o', 'a']) && bits.contains('w'))
    });
    if octal && last & 2 == 2 && !sticky || !octal && clauses {
        found.tell(scalar.node.place, 0, format!("`{mode}` lets everybody write"));
    }
}
