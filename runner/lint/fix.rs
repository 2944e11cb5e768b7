//! Mends what can be mended by rule: bytes are replaced where a finding says so, and all others stay.

use std::path::Path;

use super::{Finding, Rule, lint_bytes, text};
use crate::source::Place;
use crate::yaml;

/// How often a file is looked at again, since mending one thing can show another.
const ROUNDS: usize = 10;

/// A replacement: what stands at a place, and what is to stand there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub place: Place,
    pub old: String,
    pub new: String,
}

impl Edit {
    pub fn new(place: Place, old: impl Into<String>, new: impl Into<String>) -> Edit {
        Edit { place, old: old.into(), new: new.into() }
    }
}

/// Returns a file's text with what can be mended mended, and how many findings that were; `None` when there is nothing
/// to do.
pub fn mended(path: &Path, bytes: &[u8], wanted: &dyn Fn(&Rule) -> bool) -> Option<(String, usize)> {
    let mut current = String::from_utf8(bytes.to_vec()).ok()?;
    let mut count = 0;
    for _ in 0..ROUNDS {
        let findings = lint_bytes(path, current.clone().into_bytes(), wanted);
        let (text, done) = apply(&current, &findings);
        // What can't be read any more is not what was meant.
        if done == 0 || yaml::read_bytes(path, text.clone().into_bytes()).is_err() {
            break;
        }
        current = text;
        count += done;
    }
    (count > 0).then_some((current, count))
}

/// Applies the edits of findings that do not touch those of an earlier one, and that find what they expect.
fn apply(text: &str, findings: &[Finding]) -> (String, usize) {
    let mut taken: Vec<(std::ops::Range<usize>, &str)> = Vec::new();
    let mut done = 0;
    for finding in findings.iter().filter(|finding| !finding.edits.is_empty()) {
        let spans: Option<Vec<_>> = finding.edits.iter().map(|edit| span(text, edit)).collect();
        let Some(spans) = spans else { continue };
        let touches = |span: &std::ops::Range<usize>| {
            taken.iter().any(|(other, _)| span.start <= other.end && other.start <= span.end)
        };
        if spans.iter().any(touches) {
            continue;
        }
        taken.extend(spans.into_iter().zip(&finding.edits).map(|(span, edit)| (span, edit.new.as_str())));
        done += 1;
    }
    taken.sort_by_key(|(span, _)| span.start);
    let mut mended = String::with_capacity(text.len());
    let mut from = 0;
    for (span, new) in taken {
        mended.push_str(&text[from..span.start]);
        mended.push_str(new);
        from = span.end;
    }
    mended.push_str(&text[from..]);
    (mended, done)
}

fn span(text: &str, edit: &Edit) -> Option<std::ops::Range<usize>> {
    let source = edit.place.file()?.source();
    let start = text::offset(&source, edit.place)?;
    let end = start + edit.old.len();
    (*source.text == *text && text.get(start..end) == Some(&edit.old)).then_some(start..end)
}
