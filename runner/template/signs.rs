//! A `+` before a number, which Jinja takes and minijinja's parser does not: it means nothing, and a blank takes its place.

/// Words after which a value begins.
const BEFORE_VALUES: &[&str] = &["and", "or", "not", "in", "is", "if", "elif", "else", "set", "do", "print", "return"];

/// Returns a template with blanks for such signs; `None` where there are none.
pub(super) fn blanked(text: &str) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    let mut found = false;
    while let Some(next) = text[at..].find('{') {
        at += next;
        let rest = &text[at..];
        let (inner, close) = match rest.as_bytes().get(1) {
            Some(b'#') => {
                at += rest.find("#}").map_or(rest.len(), |end| end + 2);
                continue;
            }
            Some(b'%') if super::backslashes::is_raw(rest) => {
                at += super::backslashes::block_end(rest);
                continue;
            }
            Some(b'%') => (at + 2, "%}"),
            Some(b'{') => (at + 2, "}}"),
            _ => {
                at += 1;
                continue;
            }
        };
        // What stands right behind the mark says what becomes of blanks before it.
        let first = inner + usize::from(matches!(text.as_bytes().get(inner), Some(b'+' | b'-')));
        let (end, any) = blank_in(text, &mut bytes, first, Some(close));
        found |= any;
        at = end;
    }
    found.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// As [`blanked`] for an expression alone.
pub(super) fn blanked_expression(text: &str) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    let (_, found) = blank_in(text, &mut bytes, 0, None);
    found.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Goes through an expression up to what closes it; returns where it ends, and whether a sign was found.
fn blank_in(text: &str, bytes: &mut [u8], from: usize, close: Option<&str>) -> (usize, bool) {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let (mut at, mut before_value, mut depth, mut found) = (from, true, 0_usize, false);
    while let Some(&byte) = bytes.get(at) {
        if depth == 0 && close.is_some_and(|close| bytes[at..].starts_with(close.as_bytes())) {
            return (at + 2, found);
        }
        match byte {
            b'\'' | b'"' => {
                at += 1;
                while bytes.get(at).is_some_and(|inner| *inner != byte) {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                before_value = false;
            }
            _ if is_word(byte) => {
                let length = bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
                before_value = text.get(at..at + length).is_some_and(|word| BEFORE_VALUES.contains(&word));
                at += length;
                continue;
            }
            b'+' if before_value => {
                bytes[at] = b' ';
                found = true;
            }
            b'(' | b'[' | b'{' => (depth, before_value) = (depth + 1, true),
            b')' | b']' | b'}' => (depth, before_value) = (depth.saturating_sub(1), false),
            b'.' => before_value = false,
            _ if byte.is_ascii_whitespace() => {}
            _ => before_value = true,
        }
        at += 1;
    }
    (text.len(), found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_signs_before_values_go() {
        let blanked = |text| blanked(text).unwrap_or_else(|| text.to_owned());
        assert_eq!(blanked("{{ [+2.5, a + b, +x] }} + {{+ +5 }}"), "{{ [ 2.5, a + b,  x] }} + {{+  5 }}");
        assert_eq!(blanked("{%+ if +1 %}a{% endif +%}"), "{%+ if  1 %}a{% endif +%}");
        assert_eq!(
            blanked("{% raw %}{{ [+2] }}{% endraw %}{# {{ [+2] }} #}"),
            "{% raw %}{{ [+2] }}{% endraw %}{# {{ [+2] }} #}"
        );
        assert_eq!(blanked("{{ '(+2' ~ {'a': +1}['a'] ~ 1e+5 }}"), "{{ '(+2' ~ {'a':  1}['a'] ~ 1e+5 }}");
        assert_eq!(blanked_expression("x == +1"), Some("x ==  1".to_owned()));
        assert_eq!(blanked_expression("x + 1"), None);
    }
}
