//! Ranges in host names: `n[01:20]`, `n[01:20:2].x`, `db-[a:f]`.

/// How many names one pattern may stand for.
const LIMIT: usize = 1_000_000;

/// Returns every name that a pattern stands for; one without a range stands for itself.
///
/// # Errors
/// A sentence for a person when a range makes no sense, or stands for more names than any inventory has.
pub(super) fn expand(pattern: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut rest = pattern;
    while let Some((before, range, after)) = next_range(rest) {
        // An IPv6 address in brackets holds more colons than a range can.
        let (first, last, step) = match range.split(':').collect::<Vec<_>>()[..] {
            [first, last] => (first, last, "1"),
            [first, last, step] => (first, last, step),
            _ => break,
        };
        let middles = Range::of(range, first, last, step)?;
        if middles.count.saturating_mul(names.len()) > LIMIT {
            return Err(format!("`{pattern}` stands for more than {LIMIT} names"));
        }
        let middles = middles.names();
        names =
            names.iter().flat_map(|name| middles.iter().map(move |middle| format!("{name}{before}{middle}"))).collect();
        rest = after;
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    Ok(names)
}

/// Returns whether a name's first range has no end, as `n[1:]` and the address `[::1]`: it is no range then.
pub(super) fn is_open(pattern: &str) -> bool {
    next_range(pattern).is_some_and(|(_, range, _)| range.split(':').nth(1) == Some(""))
}

/// Splits a text at its first brackets.
fn next_range(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('[')?;
    let (range, after) = rest.split_once(']')?;
    Some((before, range, after))
}

/// What brackets hold.
struct Range {
    first: u64,
    step: usize,
    count: usize,
    /// How many digits a number has at least; absent for letters.
    width: Option<usize>,
}

impl Range {
    fn of(range: &str, first: &str, last: &str, step: &str) -> Result<Range, String> {
        let wrong = || format!("`[{range}]` is no range: expected [first:last] or [first:last:step]");
        let step: usize = step.parse().ok().filter(|step| *step > 0).ok_or_else(wrong)?;
        let (start, end, width) = match (letter(first), letter(last)) {
            (Some(first), Some(last)) => (u64::from(u32::from(first)), u64::from(u32::from(last)), None),
            (_, _) => {
                let start: u64 = if first.is_empty() { 0 } else { first.parse().map_err(|_| wrong())? };
                let end: u64 = last.parse().map_err(|_| wrong())?;
                (start, end, Some(if first.starts_with('0') { first.len() } else { 0 }))
            }
        };
        if start > end {
            return Err(format!("`[{range}]` runs backwards"));
        }
        if width.is_some_and(|width| width > 1 && width != last.len()) {
            return Err(format!("`[{range}]`: both ends must have as many digits"));
        }
        let count = usize::try_from((end - start) / step as u64).map_or(usize::MAX, |steps| steps.saturating_add(1));
        Ok(Range { first: start, step, count, width })
    }

    fn names(&self) -> Vec<String> {
        let numbers = (0..self.count).map(|nth| self.first + (nth * self.step) as u64);
        match self.width {
            Some(width) => numbers.map(|number| format!("{number:0width$}")).collect(),
            None => numbers.filter_map(|code| char::from_u32(code as u32)).map(String::from).collect(),
        }
    }
}

fn letter(text: &str) -> Option<char> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(letter), None) if letter.is_ascii_alphabetic() => Some(letter),
        (_, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_as_documented() {
        let names = |pattern| expand(pattern).map(|names| names.join(" "));
        assert_eq!(names("n[08:10].x"), Ok("n08.x n09.x n10.x".to_owned()));
        assert_eq!(names("n[1:5:2]"), Ok("n1 n3 n5".to_owned()));
        assert_eq!(names("db-[a:c]"), Ok("db-a db-b db-c".to_owned()));
        assert_eq!(names("r[1:2]n[1:2]"), Ok("r1n1 r1n2 r2n1 r2n2".to_owned()));
        assert_eq!(names("plain"), Ok("plain".to_owned()));
        assert_eq!(
            names("n[1:2]x[a:b]y[1:2:3:4]z[1:2]"),
            Ok("n1xay[1:2:3:4]z[1:2] n1xby[1:2:3:4]z[1:2] n2xay[1:2:3:4]z[1:2] n2xby[1:2:3:4]z[1:2]".to_owned())
        );
        assert!(names("n[5:1]").is_err());
        assert!(names("[1:99999999999999]").is_err_and(|message| message.contains("more than 1000000 names")));
        assert!(names("[0:18446744073709551615:1]").is_err());
        assert!(expand(&"[1:10]".repeat(50)).is_err());
        assert_eq!(expand(&"[1:1]".repeat(10_000)).map(|names| names[0].len()), Ok(10_000));
        assert!(names("n[01:100]").is_err());
    }
}
