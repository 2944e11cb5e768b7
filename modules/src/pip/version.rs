//! Which version of a Python package is meant. Source: the packaging specifications of names, versions and their
//! specifiers.

use std::cmp::Ordering;

/// A package with what its version must fulfil.
pub(super) struct Wanted {
    /// As it is compared.
    pub name: String,
    conditions: Vec<(&'static str, String)>,
}

/// Longer ones first, since one begins with another.
const OPERATORS: [&str; 8] = ["===", "==", "!=", "~=", "<=", ">=", "<", ">"];

/// Returns a name in the form in which two names of the same package are equal.
pub(super) fn folded(name: &str) -> String {
    let parts = name.trim().split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

impl Wanted {
    /// Reads `name[extras]>=1,<2`; `None` for a file or a URL.
    pub fn read(text: &str) -> Option<Wanted> {
        if text.contains(['/', '@', ';']) || text.ends_with(".whl") || text.ends_with(".gz") {
            return None;
        }
        let end = text.find(['<', '>', '=', '!', '~']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let name = name.split('[').next().unwrap_or(name);
        let mut conditions = Vec::new();
        for part in rest.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let operator = OPERATORS.into_iter().find(|operator| part.starts_with(operator))?;
            conditions.push((operator, part[operator.len()..].trim().to_owned()));
        }
        Some(Wanted { name: folded(name), conditions })
    }

    pub fn is_met(&self, version: &str) -> bool {
        self.conditions.iter().all(|(operator, wanted)| {
            if let Some(stem) = wanted.strip_suffix(".*") {
                let inside = version == stem || version.starts_with(&format!("{stem}."));
                return if *operator == "!=" { !inside } else { inside };
            }
            let order = compare(version, wanted);
            match *operator {
                "===" => version == wanted,
                "==" => order == Ordering::Equal,
                "!=" => order != Ordering::Equal,
                "<=" => order != Ordering::Greater,
                ">=" => order != Ordering::Less,
                "<" => order == Ordering::Less,
                ">" => order == Ordering::Greater,
                // Compatible: at least this, and the same but for the last number.
                _ => {
                    let stem = wanted.rsplit_once('.').map_or("", |(stem, _)| stem);
                    order != Ordering::Less && (version == stem || version.starts_with(&format!("{stem}.")))
                }
            }
        })
    }
}

/// The numbers of a release, then what comes before (`a1`, `rc2`, `.dev3`: negative) or after it (`.post1`).
fn parts(version: &str) -> (Vec<u64>, i8, String) {
    let version = version.trim().trim_start_matches('v').to_ascii_lowercase();
    let version = version.split('+').next().unwrap_or_default().to_owned();
    let end = version.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(version.len());
    let (release, rest) = version.split_at(end);
    let mut numbers: Vec<u64> =
        release.split('.').filter(|part| !part.is_empty()).map(|part| part.parse().unwrap_or(0)).collect();
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
    let rank = match rest {
        "" => 0,
        rest if rest.starts_with("post") || rest.starts_with('-') => 1,
        rest if rest.starts_with("dev") => -2,
        _ => -1,
    };
    (numbers, rank, rest.to_owned())
}

fn compare(one: &str, other: &str) -> Ordering {
    let ((numbers, rank, rest), (others, other_rank, other_rest)) = (parts(one), parts(other));
    numbers.cmp(&others).then(rank.cmp(&other_rank)).then_with(|| {
        // `rc2` before `rc10`.
        rest.len().cmp(&other_rest.len()).then(rest.cmp(&other_rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_meet_conditions() {
        let met = |wanted: &str, version: &str| Wanted::read(wanted).is_some_and(|wanted| wanted.is_met(version));
        assert!(met("x>=1.2,<2", "1.10") && !met("x>=1.2,<2", "2.0") && met("x==1.0", "1.0.0"));
        assert!(met("x~=1.4.2", "1.4.9") && !met("x~=1.4.2", "1.5") && met("x==1.*", "1.9") && met("x", "0"));
        assert!(met("x<2", "2.0rc1") && met("x>1.0", "1.0.post1") && !met("x[y]>=3", "2.9.9"));
        assert_eq!(Wanted::read("Foo.Bar_baz==1").map(|wanted| wanted.name).as_deref(), Some("foo-bar-baz"));
        assert!(Wanted::read("git+https://x/y#egg=z").is_none());
    }
}
