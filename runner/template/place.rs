//! Where in its file a part of a template was written.

use crate::source::Place;
use crate::value::Str;

/// Returns the place of the byte at `offset` in a text that was written at its own place.
///
/// The text is found again in its file: a scalar may be quoted, indented or a block, so each of its lines is looked
/// for from where the scalar starts. Where it can't be found, for a text with escapes or folded lines, the scalar's
/// own place is the answer.
pub fn within(text: &Str, offset: usize) -> Place {
    let Some(file) = text.place.file() else { return text.place };
    let source = file.source();
    let offset = floor_boundary(text.as_str(), offset);
    let before = &text.as_str()[..offset];
    let nth = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or("").chars().count();
    let wanted = text.as_str().split('\n').nth(nth).unwrap_or("");
    let mut lines = source.text.split('\n').enumerate().skip(text.place.line.saturating_sub(1) as usize);
    let Some((_, first)) = lines.next() else { return text.place };
    let from: String = first.chars().skip(text.place.column.saturating_sub(1) as usize).collect();
    let is_block = from.starts_with(['|', '>']);
    if nth == 0 && !is_block {
        return match from.find(wanted) {
            Some(at) if !wanted.is_empty() => text.place.right(from[..at].chars().count() + column),
            _ => text.place,
        };
    }
    let steps = if is_block { nth } else { nth.saturating_sub(1) };
    let found = lines.nth(steps).and_then(|(number, line)| {
        let at = line.find(wanted)?;
        Some(file.at(number + 1, line[..at].chars().count() + column + 1))
    });
    found.unwrap_or(text.place)
}

fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::source::FileId;

    #[test]
    fn finds_a_part_of_a_quoted_and_of_a_block_scalar() {
        let file = FileId::register(Path::new("p.yml"), "a: \"{{ foo }}\"\nb: |\n  one\n  {{ two }}\n");
        let quoted = Str::template("{{ foo }}", file.at(1, 4));
        assert_eq!(within(&quoted, 3), file.at(1, 8));
        let block = Str::template("one\n{{ two }}\n", file.at(2, 4));
        assert_eq!(within(&block, 7), file.at(4, 6));
    }
}
