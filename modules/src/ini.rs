//! Files of `[sections]` with `option = value` lines, edited without touching what is not asked about.

/// Returns where a section's lines are, its head left out; `None` stands for those before any section.
pub(crate) fn section_of(lines: &[String], section: Option<&str>) -> Option<(usize, usize)> {
    let start = match section {
        None => 0,
        Some(name) => lines.iter().position(|line| head(line) == Some(name))? + 1,
    };
    let size = lines[start..].iter().position(|line| head(line).is_some());
    Some((start, size.map_or(lines.len(), |size| start + size)))
}

/// Returns the section's name that a line is the head of.
pub(crate) fn head(line: &str) -> Option<&str> {
    line.trim().strip_prefix('[')?.split_once(']').map(|(name, _)| name)
}

/// What a line says of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Said<'a> {
    /// Whether it is no comment.
    pub active: bool,
    /// `None` where there is no equals sign.
    pub value: Option<&'a str>,
}

/// Returns what a line says of `option`; `None` when it is about something else.
pub(crate) fn said<'a>(line: &'a str, option: &str) -> Option<Said<'a>> {
    let (active, rest) = match line.strip_prefix(['#', ';']) {
        Some(rest) => (false, rest),
        None => (true, line),
    };
    let rest = rest.trim_matches([' ', '\t', '\r', '\n']);
    let (name, value) = match rest.split_once('=') {
        Some((name, value)) => (name.trim_end(), Some(value.trim_start())),
        None => (rest, None),
    };
    (name == option).then_some(Said { active, value })
}

/// Returns a text's lines without what ends them.
pub(crate) fn lines_of(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// Returns lines as a file holds them.
pub(crate) fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns before which line of a section a new option goes: after the last that is neither empty nor a comment.
pub(crate) fn end_of(lines: &[String], (start, end): (usize, usize)) -> usize {
    let counts = |line: &String| !line.trim().is_empty() && !line.trim_start().starts_with(['#', ';']);
    lines[start..end].iter().rposition(counts).map_or(start, |at| start + at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_sections_and_options() {
        let lines = lines_of("top=1\n[a]\nx = 1\n# y=2\n\n[b]\n");
        assert_eq!(section_of(&lines, None), Some((0, 1)));
        assert_eq!(section_of(&lines, Some("a")), Some((2, 5)));
        assert_eq!(end_of(&lines, (2, 5)), 3);
        assert_eq!(said(&lines[3], "y"), Some(Said { active: false, value: Some("2") }));
        assert_eq!((said("xy = 1", "x"), said("flag", "flag").map(|said| said.value)), (None, Some(None)));
    }
}
