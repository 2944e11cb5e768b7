//! Which of two versions is the newer one, as rpm compares them.

use std::cmp::Ordering;

/// Compares `EPOCH:VERSION-RELEASE`; without an epoch it is 0, and a release that only one has does not count.
pub(crate) fn compare(one: &str, other: &str) -> Ordering {
    let (one, other) = (parts(one), parts(other));
    let releases = || match (one.2, other.2) {
        (Some(one), Some(other)) => by_segments(one, other),
        (None, _) | (_, None) => Ordering::Equal,
    };
    one.0.cmp(&other.0).then_with(|| by_segments(one.1, other.1)).then_with(releases)
}

/// Whether a version is the one that is asked for: with its release where that is named.
pub(crate) fn is(version: &str, asked: &str) -> bool {
    compare(version, asked) == Ordering::Equal
}

fn parts(text: &str) -> (u64, &str, Option<&str>) {
    let (epoch, rest) = text.split_once(':').unwrap_or(("0", text));
    let (version, release) = rest.rsplit_once('-').map_or((rest, None), |(version, release)| (version, Some(release)));
    (epoch.parse().unwrap_or(0), version, release)
}

/// Numbers count as numbers and are newer than letters; `~` comes before everything, even the end, and `^` after the end
/// but before all else. What separates them does not count.
fn by_segments(one: &str, other: &str) -> Ordering {
    let counts = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'~' | b'^');
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    loop {
        one = &one[one.iter().position(counts).unwrap_or(one.len())..];
        other = &other[other.iter().position(counts).unwrap_or(other.len())..];
        match (one.first(), other.first()) {
            (Some(b'~'), Some(b'~')) | (Some(b'^'), Some(b'^')) => {
                (one, other) = (&one[1..], &other[1..]);
                continue;
            }
            (Some(b'~'), _) => return Ordering::Less,
            (_, Some(b'~')) => return Ordering::Greater,
            (Some(b'^'), None) => return Ordering::Greater,
            (None, Some(b'^')) => return Ordering::Less,
            (Some(b'^'), Some(_)) => return Ordering::Less,
            (Some(_), Some(b'^')) => return Ordering::Greater,
            (None, None) => return Ordering::Equal,
            (Some(_), None) => return Ordering::Greater,
            (None, Some(_)) => return Ordering::Less,
            (Some(first), Some(second)) if first.is_ascii_digit() != second.is_ascii_digit() => {
                return if first.is_ascii_digit() { Ordering::Greater } else { Ordering::Less };
            }
            (Some(first), Some(_)) => {
                let digits = first.is_ascii_digit();
                let (mine, left) = segment(one, digits);
                let (theirs, right) = segment(other, digits);
                let order = if digits { mine.len().cmp(&theirs.len()) } else { Ordering::Equal };
                match order.then_with(|| mine.cmp(theirs)) {
                    Ordering::Equal => (one, other) = (left, right),
                    order => return order,
                }
            }
        }
    }
}

/// Splits off the first run of digits, without the zeros before it, or of letters.
fn segment(bytes: &[u8], digits: bool) -> (&[u8], &[u8]) {
    let belongs = |byte: &u8| if digits { byte.is_ascii_digit() } else { byte.is_ascii_alphabetic() };
    let end = bytes.iter().position(|byte| !belongs(byte)).unwrap_or(bytes.len());
    let (run, rest) = bytes.split_at(end);
    let zeros = if digits { run.iter().take_while(|byte| **byte == b'0').count() } else { 0 };
    (&run[zeros..], rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_as_rpm_does() {
        let rising = [
            "1.0~rc1-1",
            "1.0~rc2-1",
            "1.0-1",
            "1.0^git1-1",
            "1.0.a-1",
            "1.0.1-1",
            "1.2-1",
            "1.10-1",
            "1.10-2",
            "1.19.1-1",
            "1:0.1-1",
        ];
        for pair in rising.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
            assert_eq!(compare(pair[1], pair[0]), Ordering::Greater, "{pair:?}");
        }
        assert!(is("1.19.1-1", "1.19.1") && is("1.19.1-1", "1.19.1-1") && is("0:1.19.01-1", "1.19.1-1"));
        assert!(!is("1.19.1-1", "1.19.1-2") && !is("1.19.1-1", "1.19") && !is("1.19.10-1", "1.19.1"));
    }
}
