//! Ranges in host names: `n[01:20]`, `n[01:20:2].x`, `db-[a:f]`.

/// Returns every name that a pattern stands for; one without a range stands for itself.
///
/// # Errors
/// A sentence for a person when a range makes no sense.
pub(super) fn expand(pattern: &str) -> Result<Vec<String>, String> {
    let Some((before, rest)) = pattern.split_once('[') else { return Ok(vec![pattern.to_owned()]) };
    let Some((range, after)) = rest.split_once(']') else { return Ok(vec![pattern.to_owned()]) };
    // An IPv6 address in brackets holds more colons than a range can.
    let parts: Vec<&str> = range.split(':').collect();
    let (first, last, step) = match parts[..] {
        [first, last] => (first, last, "1"),
        [first, last, step] => (first, last, step),
        _ => return Ok(vec![pattern.to_owned()]),
    };
    let wrong = || format!("`[{range}]` is no range: expected [first:last] or [first:last:step]");
    let step: usize = step.parse().ok().filter(|step| *step > 0).ok_or_else(wrong)?;
    let middles: Vec<String> = match (letter(first), letter(last)) {
        (Some(first), Some(last)) if first <= last => (first..=last).step_by(step).map(String::from).collect(),
        (Some(_), Some(_)) => return Err(format!("`[{range}]` runs backwards")),
        (_, _) => {
            let start: u64 = if first.is_empty() { 0 } else { first.parse().map_err(|_| wrong())? };
            let end: u64 = last.parse().map_err(|_| wrong())?;
            if start > end {
                return Err(format!("`[{range}]` runs backwards"));
            }
            let width = if first.starts_with('0') { first.len() } else { 0 };
            if width > 1 && width != last.len() {
                return Err(format!("`[{range}]`: both ends must have as many digits"));
            }
            (start..=end).step_by(step).map(|number| format!("{number:0width$}")).collect()
        }
    };
    let tails = expand(after)?;
    Ok(middles.iter().flat_map(|middle| tails.iter().map(move |tail| format!("{before}{middle}{tail}"))).collect())
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
        assert!(names("n[5:1]").is_err());
        assert!(names("n[01:100]").is_err());
    }
}
