//! What a text's letters allow it to be written as.

use super::is_break;
use super::scalars::escaped;

/// What a text's characters allow.
pub(super) struct Analysis {
    pub(super) multiline: bool,
    pub(super) flow_plain: bool,
    pub(super) block_plain: bool,
    pub(super) single_quoted: bool,
    /// Whether a block of lines can hold it.
    pub(super) block: bool,
}

impl Analysis {
    pub(super) fn of(text: &str) -> Analysis {
        if text.is_empty() {
            return Analysis {
                multiline: false,
                flow_plain: false,
                block_plain: true,
                single_quoted: true,
                block: false,
            };
        }
        let chars: Vec<char> = text.chars().collect();
        let is_space = |at: usize| {
            chars
                .get(at)
                .is_none_or(|c| matches!(c, '\0' | ' ' | '\t' | '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}'))
        };
        let starts_document = text.starts_with("---") || text.starts_with("...");
        let (mut block_mark, mut flow_mark) = (starts_document, starts_document);
        let (mut breaks, mut special, mut break_space, mut space_break) = (false, false, false, false);
        for (at, &c) in chars.iter().enumerate() {
            let (after_space, before_space) = (at == 0 || is_space(at - 1), is_space(at + 1));
            match c {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`'
                    if at == 0 =>
                {
                    (block_mark, flow_mark) = (true, true);
                }
                '?' | ':' if at == 0 => {
                    flow_mark = true;
                    block_mark |= before_space;
                }
                '-' if at == 0 && before_space => (block_mark, flow_mark) = (true, true),
                ',' | '?' | '[' | ']' | '{' | '}' => flow_mark = true,
                ':' => {
                    flow_mark = true;
                    block_mark |= before_space;
                }
                '#' if after_space => (block_mark, flow_mark) = (true, true),
                _ => {}
            }
            breaks |= is_break(c);
            special |= c != '\n'
                && escaped(c).is_some()
                && !matches!(c, '"' | '\\' | '\u{85}' | '\u{2028}' | '\u{2029}')
                && (c as u32) < 0x10000;
            let before = at.checked_sub(1).map(|at| chars[at]);
            break_space |= c == ' ' && before.is_some_and(is_break);
            space_break |= is_break(c) && before == Some(' ');
        }
        let edge = |c: Option<&char>| c.is_some_and(|c| *c == ' ' || is_break(*c));
        let plain = !edge(chars.first()) && !edge(chars.last()) && !break_space && !space_break && !special && !breaks;
        Analysis {
            multiline: breaks,
            flow_plain: plain && !flow_mark,
            block_plain: plain && !block_mark,
            single_quoted: !break_space && !space_break && !special,
            block: chars.last() != Some(&' ') && !space_break && !special,
        }
    }
}
