//! Shell-style patterns for names: `*`, `?`, `[a-z]`, `[!a-z]`; a `*` crosses `/` and a leading dot too.

/// Whether the whole of `name` is matched by `pattern`.
pub(crate) fn fnmatch(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    // Where to go on when a later part fails: one more character for the last `*`.
    let mut retry: Option<(usize, usize)> = None;
    let (mut at, mut seen) = (0, 0);
    loop {
        let step = match pattern.get(at) {
            None if seen == name.len() => return true,
            None => None,
            Some('*') => {
                retry = Some((at + 1, seen));
                at += 1;
                continue;
            }
            Some('?') if seen < name.len() => Some(at + 1),
            Some('[') if seen < name.len() => class(&pattern, at, name[seen]),
            Some(letter) => (name.get(seen) == Some(letter)).then_some(at + 1),
        };
        match (step, retry) {
            (Some(next), _) => {
                at = next;
                seen += 1;
            }
            (None, Some((after, start))) if start < name.len() => {
                retry = Some((after, start + 1));
                at = after;
                seen = start + 1;
            }
            (None, _) => return false,
        }
    }
}

/// Returns the position after the class that starts at `at` when it holds `letter`; a `[` without an end is itself.
fn class(pattern: &[char], at: usize, letter: char) -> Option<usize> {
    let negated = matches!(pattern.get(at + 1), Some('!' | '^'));
    let first = at + 1 + usize::from(negated);
    let Some(end) = (first + 1..pattern.len()).find(|&end| pattern[end] == ']') else {
        return (letter == '[').then_some(at + 1);
    };
    let mut holds = false;
    let mut next = first;
    while next < end {
        if next + 2 < end && pattern[next + 1] == '-' {
            holds |= (pattern[next]..=pattern[next + 2]).contains(&letter);
            next += 3;
        } else {
            holds |= pattern[next] == letter;
            next += 1;
        }
    }
    (holds != negated).then_some(end + 1)
}

/// Whether `text` holds a character that makes it a pattern.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_as_a_shell_does() {
        for (pattern, name) in [
            ("*", ""),
            ("ansible_*_mb", "ansible_memtotal_mb"),
            ("libnvidia-*-5?0", "libnvidia-compute-550"),
            ("[a-c]x[!0-9]", "bxz"),
            ("a[b", "a[b"),
            ("*a*b", "xaxxab"),
        ] {
            assert!(fnmatch(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("", "a"), ("a?", "a"), ("[!a]", "a"), ("*b", "ba"), ("a*c", "ab")] {
            assert!(!fnmatch(pattern, name), "{pattern} {name}");
        }
    }
}
