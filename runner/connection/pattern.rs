//! The patterns of OpenSSH's files: `*`, `?`, and `!` before one that excludes.

/// Matches `*` and `?`.
pub(super) fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where the last `*` was, and how far it has reached.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&want) if want == b'?' || want == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, reach)) => {
                    star = Some((at, reach + 1));
                    p = at + 1;
                    t = reach + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// Returns whether one pattern matches and none that excludes does; case is ignored, as in names of hosts.
pub(super) fn list_matches<'a>(patterns: impl IntoIterator<Item = &'a str>, text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let mut matched = false;
    for pattern in patterns {
        let pattern = pattern.trim().to_ascii_lowercase();
        match pattern.strip_prefix('!') {
            Some(pattern) if glob(pattern.as_bytes(), text.as_bytes()) => return false,
            Some(_) => {}
            None => matched |= glob(pattern.as_bytes(), text.as_bytes()),
        }
    }
    matched
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_exclusions() {
        assert!(glob(b"*.a*c?", b"x.y.abcd") && !glob(b"*.a", b"a") && glob(b"*", b"") && !glob(b"?", b""));
        assert!(list_matches(["*.example", "!db.*"], "Web.Example"));
        assert!(!list_matches(["*.example", "!db.*"], "db.example") && !list_matches(["!db.*"], "web"));
    }
}
