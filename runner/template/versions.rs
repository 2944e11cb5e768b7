//! Comparing versions: `is version`.

use std::cmp::Ordering;

use super::call::Call;
use super::live::Result;

/// A piece of a loose version.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Number(u64),
    Text(String),
}

/// Splits a version as Python's `LooseVersion` does: runs of digits, runs of letters, and dots between them.
fn loose_parts(version: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = version;
    while let Some(first) = rest.chars().next() {
        let end = |is: fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
        let at = match first {
            '.' => {
                rest = &rest[1..];
                continue;
            }
            '0'..='9' => end(|c| c.is_ascii_digit()),
            'a'..='z' => end(|c| c.is_ascii_lowercase()),
            _ => end(|c| c != '.' && !c.is_ascii_digit() && !c.is_ascii_lowercase()),
        };
        let (piece, after) = rest.split_at(at);
        parts.push(piece.parse().map_or_else(|_| Part::Text(piece.to_owned()), Part::Number));
        rest = after;
    }
    parts
}

pub(super) fn loose(a: &str, b: &str) -> std::result::Result<Ordering, String> {
    let (left, right) = (loose_parts(a), loose_parts(b));
    for (x, y) in left.iter().zip(&right) {
        let order = match (x, y) {
            (Part::Number(x), Part::Number(y)) => x.cmp(y),
            (Part::Text(x), Part::Text(y)) => x.cmp(y),
            (Part::Number(_), Part::Text(_)) | (Part::Text(_), Part::Number(_)) => {
                return Err(format!("`{a}` and `{b}` can't be compared: a number against letters"));
            }
        };
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(left.len().cmp(&right.len()))
}

/// `1.2[.3][a4]`, as Python's `StrictVersion` takes it.
fn strict_key(version: &str) -> std::result::Result<([u64; 3], (u8, u64)), String> {
    let fault = || format!("`{version}` is no strict version, such as 1.2 or 1.2.3b4");
    let at = version.find(['a', 'b']);
    let (numbers, before) = match at {
        None => (version, (2, 0)),
        Some(at) => {
            let rank = if version[at..].starts_with('a') { 0 } else { 1 };
            (&version[..at], (rank, version[at + 1..].parse().map_err(|_| fault())?))
        }
    };
    let numbers = numbers.split('.').map(|part| part.parse().map_err(|_| fault()));
    let numbers: Vec<u64> = numbers.collect::<std::result::Result<_, _>>()?;
    match numbers[..] {
        [major, minor] => Ok(([major, minor, 0], before)),
        [major, minor, patch] => Ok(([major, minor, patch], before)),
        _ => Err(fault()),
    }
}

/// An identifier of a semantic version's pre-release: numbers come before texts.
type Identifier = (bool, u64, String);

fn semantic_key(version: &str) -> std::result::Result<([u64; 3], Option<Vec<Identifier>>), String> {
    let fault = || format!("`{version}` is no semantic version, such as 1.2.3-rc.1");
    let core = version.split('+').next().unwrap_or(version);
    let (numbers, before) = core.split_once('-').map_or((core, None), |(numbers, before)| (numbers, Some(before)));
    let numbers = numbers.split('.').map(|part| part.parse().map_err(|_| fault()));
    let numbers: Vec<u64> = numbers.collect::<std::result::Result<_, _>>()?;
    let [major, minor, patch] = numbers[..] else { return Err(fault()) };
    let before = before.map(|before| {
        before
            .split('.')
            .map(|part| {
                part.parse().map_or_else(|_| (true, 0, part.to_owned()), |number| (false, number, String::new()))
            })
            .collect()
    });
    Ok(([major, minor, patch], before))
}

fn semantic(a: &str, b: &str) -> std::result::Result<Ordering, String> {
    let ((left, left_before), (right, right_before)) = (semantic_key(a)?, semantic_key(b)?);
    Ok(left.cmp(&right).then_with(|| match (left_before, right_before) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(left), Some(right)) => left.cmp(&right),
    }))
}

/// A version of a Python package as PEP 440 orders them: epoch, release, pre-release, post-release, development.
type Pep440 = (u64, Vec<u64>, (i8, u64), i128, (u64, bool));

fn pep440_key(version: &str) -> std::result::Result<Pep440, String> {
    let fault = || format!("`{version}` is no version of a Python package");
    let lower = version.trim().to_ascii_lowercase();
    let text = lower.strip_prefix('v').unwrap_or(&lower);
    let public = text.split('+').next().unwrap_or(text);
    let (epoch, rest) = match public.split_once('!') {
        Some((epoch, rest)) => (epoch.parse().map_err(|_| fault())?, rest),
        None => (0, public),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (release, mut suffix) = rest.split_at(end);
    let release = release.trim_end_matches('.').split('.').map(|part| part.parse().map_err(|_| fault()));
    let mut release: Vec<u64> = release.collect::<std::result::Result<_, _>>()?;
    while release.len() > 1 && release.last() == Some(&0) {
        release.pop();
    }
    let (mut before, mut post, mut dev) = (None, None, None);
    while !suffix.is_empty() {
        let word = suffix.trim_start_matches(['.', '-', '_']);
        let letters = word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len());
        let (name, after) = word.split_at(letters);
        let after = after.trim_start_matches(['.', '-', '_']);
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let number = after[..digits].parse().unwrap_or(0);
        match name {
            "a" | "alpha" => before = Some((0, number)),
            "b" | "beta" => before = Some((1, number)),
            "c" | "rc" | "pre" | "preview" => before = Some((2, number)),
            "post" | "rev" | "r" => post = Some(number),
            "" if digits > 0 => post = Some(number),
            "dev" => dev = Some(number),
            _ => return Err(fault()),
        }
        suffix = &after[digits..];
    }
    // A development version alone comes before every pre-release.
    let before = before.unwrap_or(if dev.is_some() && post.is_none() { (-1, 0) } else { (3, 0) });
    Ok((epoch, release, before, post.map_or(-1, i128::from), dev.map_or((0, true), |dev| (dev, false))))
}

fn pep440(a: &str, b: &str) -> std::result::Result<Ordering, String> {
    let key = |version| {
        let (epoch, release, before, post, (dev, is_final)) = pep440_key(version)?;
        Ok::<_, String>((epoch, release, before, post, is_final, dev))
    };
    Ok(key(a)?.cmp(&key(b)?))
}

/// `is version(version, operator='==', strict=None, version_type=None)`.
pub(super) fn test(call: &mut Call<'_>) -> Result<bool> {
    let (a, b) = (call.text()?, call.required(0)?.text()?);
    let operator = call.text_or(1, "eq")?;
    let strict = match call.given(2) {
        Some(_) => Some(call.bool_or(2, false)?),
        None => None,
    };
    let sort = call.text_at(3)?;
    if a.is_empty() || b.is_empty() {
        return Err(call.fault("a version must not be empty"));
    }
    if strict.is_some() && sort.is_some() {
        return Err(call.fault("`strict` and `version_type` can't both be given"));
    }
    let order = match sort.as_deref().unwrap_or(if strict == Some(true) { "strict" } else { "loose" }) {
        "loose" => loose(&a, &b),
        "strict" => strict_key(&a).and_then(|left| Ok(left.cmp(&strict_key(&b)?))),
        "semver" | "semantic" => semantic(&a, &b),
        "pep440" => pep440(&a, &b),
        other => Err(format!("`version_type` is loose, strict, semver, semantic or pep440, not `{other}`")),
    };
    let order = order.map_err(|message| call.fault(message))?;
    Ok(match operator.as_str() {
        "==" | "=" | "eq" => order.is_eq(),
        "!=" | "<>" | "ne" => order.is_ne(),
        "<" | "lt" => order.is_lt(),
        "<=" | "le" => order.is_le(),
        ">" | "gt" => order.is_gt(),
        ">=" | "ge" => order.is_ge(),
        other => return Err(call.fault(format!("no operator `{other}`")).help("one of <, <=, ==, !=, >, >=")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders() {
        assert_eq!(loose("1.10", "1.9"), Ok(Ordering::Greater));
        assert_eq!(loose("1.2.3", "1.2"), Ok(Ordering::Greater));
        assert!(loose("1.a", "1.2").is_err());
        assert_eq!(semantic("1.0.0-rc.1", "1.0.0"), Ok(Ordering::Less));
        assert_eq!(semantic("1.0.0-rc.2", "1.0.0-rc.10"), Ok(Ordering::Less));
        assert_eq!(pep440("1.0", "1.0.0"), Ok(Ordering::Equal));
        assert_eq!(pep440("1.0.dev1", "1.0a1"), Ok(Ordering::Less));
        assert_eq!(pep440("1.0.post1", "1.0"), Ok(Ordering::Greater));
        assert_eq!(strict_key("1.2a1").and_then(|a| Ok(a < strict_key("1.2")?)), Ok(true));
    }
}
