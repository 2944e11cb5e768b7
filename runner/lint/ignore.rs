//! `# noqa: RULE` in a file: on the line of a finding, or on the first line of its task or play.

use super::Finding;
use super::files::FileKind;
use crate::source::FileId;
use crate::yaml::Node;

const MARK: &str = "noqa";

/// Takes out what the file asks to be left alone.
pub(super) fn silence(findings: &mut Vec<Finding>, documents: &[Node], kind: FileKind) {
    let Some(file) = findings.first().and_then(|finding| finding.place.file()) else { return };
    let source = file.source();
    if !source.text.contains(MARK) {
        return;
    }
    let lines: Vec<&str> = source.text.lines().collect();
    let mut heads: Vec<u32> = Vec::new();
    if matches!(kind, FileKind::Playbook | FileKind::Tasks { .. }) {
        documents.iter().for_each(|document| heads_of(document, file, &mut heads));
        heads.sort_unstable();
    }
    findings.retain(|finding| {
        let line = finding.place.line;
        let head = heads.iter().rev().find(|head| **head <= line).copied();
        !std::iter::once(line)
            .chain(head)
            .any(|line| lines.get(line.saturating_sub(1) as usize).is_some_and(|line| says(line, finding)))
    });
}

/// Collects the lines on which items of lists that hold mappings begin: plays, blocks and tasks.
fn heads_of(node: &Node, file: FileId, heads: &mut Vec<u32>) {
    for item in node.items().unwrap_or_default() {
        if !item.entries().is_empty() && item.place.file() == Some(file) {
            heads.push(item.place.line);
        }
        for (key, value) in item.entries() {
            if matches!(
                key.as_str(),
                Some("tasks" | "pre_tasks" | "post_tasks" | "handlers" | "block" | "rescue" | "always")
            ) {
                heads_of(value, file, heads);
            }
        }
    }
}

/// Returns whether a line's comment silences a finding.
fn says(line: &str, finding: &Finding) -> bool {
    let Some((_, comment)) = line.rsplit_once('#') else { return false };
    let Some(rest) = comment.trim_start().strip_prefix(MARK) else { return false };
    let names = rest.trim_start_matches(':').trim();
    if names.is_empty() {
        return true;
    }
    let own = |c: char| c == ',' || c.is_whitespace();
    names.split(own).any(|name| finding.rule.is_called(name))
}
