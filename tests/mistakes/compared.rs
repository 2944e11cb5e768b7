//! What `docs/errors.md` shows of this program is what it says.

use super::Project;

/// Tells whether a line only says how far a run came.
fn is_progress(line: &str) -> bool {
    let start = ["PLAY ", "TASK ", "RUNNING HANDLER ", "ok: ", "changed: ", "skipping: "];
    line.trim().is_empty() || start.iter().any(|start| line.starts_with(start)) || line.contains(" : ok=")
}

/// Returns the text between two marks.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no {before:?} in {text}"));
    rest.split_once(after).unwrap_or_else(|| panic!("no {after:?} behind {before:?} in {text}")).0
}

#[test]
fn the_page_of_mistakes_shows_what_is_said() {
    let page = include_str!("../../docs/errors.md");
    let parts: Vec<&str> = page.split("\n## ").skip(1).collect();
    assert!(parts.len() >= 50, "{}", parts.len());
    let mut stale = Vec::new();
    for (nth, part) in parts.iter().enumerate() {
        let project = Project::new(&format!("compared{nth}"), &[("site.yml", between(part, "```yml\n", "```\n"))]);
        let output = project.output_of("web1,");
        let told = [output.stderr, output.stdout].concat();
        let told = String::from_utf8_lossy(&told).replace(&format!("{}/", project.0.display()), "");
        let told = told.replace(&*project.0.to_string_lossy(), ".");
        let told: Vec<&str> = told.lines().map(str::trim_end).filter(|line| !is_progress(line)).collect();
        let shown = between(part, "kubeon-run:\n\n```text\n", "\n```\n");
        if told.join("\n") != shown {
            stale.push(format!("{}\n{}", part.lines().next().unwrap_or_default(), told.join("\n")));
        }
    }
    assert!(stale.is_empty(), "write docs/errors.md with tests/compat/errors: {}", stale.join("\n\n"));
}
