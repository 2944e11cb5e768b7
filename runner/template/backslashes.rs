//! Backslashes in strings inside `{{ }}`, which playbooks write once where Jinja wants two.

/// Doubles every backslash in a string inside `{{ }}`; returns also where in the result one was added.
pub(super) fn doubled(text: &str) -> (String, Vec<u32>) {
    let mut out = String::with_capacity(text.len() + 16);
    let mut added = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let end = match from.get(..2) {
            Some("{#") => from[2..].find("#}").map_or(from.len(), |end| end + 4),
            Some("{%") => block_end(from),
            Some("{{") => {
                rest = &from[2..];
                out.push_str("{{");
                rest = expression(rest, &mut out, &mut added);
                continue;
            }
            _ => 1,
        };
        out.push_str(&from[..end]);
        rest = &from[end..];
    }
    out.push_str(rest);
    (out, added)
}

/// Returns whether a block's tag says that what follows is raw.
pub(super) fn is_raw(text: &str) -> bool {
    let end = text[2..].find("%}").map(|end| end + 2);
    end.is_some_and(|end| text[2..end].trim_matches(['-', '+', ' ', '\t', '\n']) == "raw")
}

/// Returns how long a block's tag is, all that is raw after it included.
pub(super) fn block_end(text: &str) -> usize {
    let Some(end) = text[2..].find("%}").map(|end| end + 4) else { return text.len() };
    let name = text[2..end - 2].trim_matches(['-', '+', ' ', '\t', '\n']);
    if name != "raw" {
        return end;
    }
    let mut at = end;
    while let Some(next) = text[at..].find("{%") {
        at += next;
        let Some(close) = text[at + 2..].find("%}").map(|close| close + 2) else { break };
        let name = text[at + 2..at + close].trim_matches(['-', '+', ' ', '\t', '\n']);
        at += close + 2;
        if name == "endraw" {
            return at;
        }
    }
    text.len()
}

/// Copies an expression up to its `}}`; returns what comes after it.
fn expression<'a>(text: &'a str, out: &mut String, added: &mut Vec<u32>) -> &'a str {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match quote {
            Some(_) if c == '\\' => {
                added.push(out.len() as u32);
                out.push_str("\\\\");
                if let Some((_, next)) = chars.next() {
                    if next == '\\' || Some(next) == quote {
                        added.push(out.len() as u32);
                        out.push('\\');
                    }
                    out.push(next);
                }
                continue;
            }
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None => match c {
                '\'' | '"' => quote = Some(c),
                '{' | '(' | '[' => depth += 1,
                '}' if depth == 0 && text[at..].starts_with("}}") => {
                    out.push_str("}}");
                    return &text[at + 2..];
                }
                '}' | ')' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            },
        }
        out.push(c);
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strings_in_expressions_are_altered() {
        let (text, added) = doubled(r"a\n {{ x | r('\1', {'\d': '\\'}) }} {% set y = '\n' %}{# '\' #}");
        assert_eq!(text, r"a\n {{ x | r('\\1', {'\\d': '\\\\'}) }} {% set y = '\n' %}{# '\' #}");
        assert_eq!(added.len(), 4);
        assert_eq!(
            doubled(r"{% raw %}{{ '\n' }}{% endraw %}{{ 'it\'s' }}").0,
            r"{% raw %}{{ '\n' }}{% endraw %}{{ 'it\\\'s' }}"
        );
    }
}
