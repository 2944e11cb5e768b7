//! What keeps packages from being moved: dnf's `excludepkgs`, zypper's locks.

use crate::ask::text;
use crate::rpm::Manager;
use crate::rpm::files::DNF_CONF;
use crate::{Change, Content, Error, Exec, Host, Write, ini};

const LOCKS: &str = "/etc/zypp/locks";
/// What zypper is told, the first that is there.
const CONFIGURATIONS: [&str; 2] = ["/etc/zypp/zypp.conf", "/usr/etc/zypp/zypp.conf"];
/// dnf has two names for the same option.
const EXCLUDES: [&str; 2] = ["excludepkgs", "exclude"];

/// The file as it is.
pub(super) struct Holds {
    manager: Manager,
    text: String,
}

impl Holds {
    pub(super) fn read(host: &dyn Host, manager: Manager) -> Result<Holds, Error> {
        Ok(Holds { manager, text: text(host, path(manager))? })
    }

    /// Whether a package is held by its name; a pattern that fits it is somebody else's.
    pub(super) fn has(&self, name: &str) -> bool {
        match self.manager {
            Manager::Dnf(_) => excluded(&self.text).contains(&name.to_owned()),
            Manager::Zypper => stanzas(&self.text).iter().any(|stanza| is_lock_of(stanza, name)),
        }
    }

    /// Returns the change by which packages are held or not; `None` where it is so.
    pub(super) fn with(&self, names: &[&str], hold: bool) -> Option<Change> {
        let moved: Vec<&str> = names.iter().copied().filter(|name| self.has(name) != hold).collect();
        if moved.is_empty() {
            return None;
        }
        let text = match (self.manager, hold) {
            (Manager::Dnf(_), true) => with_excludes(&self.text, &moved),
            (Manager::Dnf(_), false) => without_excludes(&self.text, &moved),
            (Manager::Zypper, true) => with_locks(&self.text, &moved),
            (Manager::Zypper, false) => without_stanzas(&self.text, &moved),
        };
        let path = path(self.manager);
        if self.manager == Manager::Zypper && text.trim().is_empty() {
            return Some(Change::Remove { path: path.to_owned() });
        }
        Some(Change::Write(Write::new(path, text)))
    }
}

fn path(manager: Manager) -> &'static str {
    match manager {
        Manager::Dnf(_) => DNF_CONF,
        Manager::Zypper => LOCKS,
    }
}

/// Returns a command that goes by none of it.
pub(super) fn in_spite(host: &dyn Host, manager: Manager, mut exec: Exec) -> Result<Exec, Error> {
    match manager {
        // After the verb, since dnf 5 takes it there.
        Manager::Dnf(_) => {
            let at = exec.argv.iter().position(|word| word == "install" || word == "remove").map_or(0, |at| at + 1);
            exec.argv.insert(at, "--setopt=disable_excludes=main".to_owned());
        }
        Manager::Zypper => {
            let mut told = String::new();
            for path in CONFIGURATIONS {
                told = text(host, path)?;
                if !told.is_empty() {
                    break;
                }
            }
            told.push_str("\n[main]\nlocksfile.apply = no\n");
            exec.argv.splice(0..0, ["env".to_owned(), "ZYPP_CONF={scratch}/zypp.conf".to_owned()]);
            exec.files.push(("zypp.conf".to_owned(), Content::Inline(told.into_bytes())));
        }
    }
    Ok(exec)
}

fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split([' ', '\t', ',']).filter(|word| !word.is_empty())
}

/// Returns where the lines of `excludepkgs` are in the section `main`, those that continue one included.
fn exclude_lines(lines: &[String]) -> Vec<usize> {
    let Some((start, end)) = ini::section_of(lines, Some("main")) else { return Vec::new() };
    let mut found = Vec::new();
    let mut within = false;
    for (at, line) in lines.iter().enumerate().take(end).skip(start) {
        if line.trim_start().starts_with(['#', ';']) {
            continue;
        }
        let continues = line.starts_with([' ', '\t']) && !line.trim().is_empty();
        within = if continues { within } else { EXCLUDES.iter().any(|name| ini::said(line, name).is_some()) };
        if within {
            found.push(at);
        }
    }
    found
}

/// Returns a line's part before its words, and its words.
fn split(line: &str) -> (&str, &str) {
    let blank = line.len() - line.trim_start().len();
    let at = if blank > 0 { blank } else { line.find('=').map_or(line.len(), |at| at + 1) };
    line.split_at(at)
}

fn excluded(text: &str) -> Vec<String> {
    let lines = ini::lines_of(text);
    exclude_lines(&lines)
        .iter()
        .flat_map(|&at| words(split(&lines[at]).1).map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

fn with_excludes(text: &str, names: &[&str]) -> String {
    let mut lines = ini::lines_of(text);
    // Of several the last one counts.
    if let Some(&at) = exclude_lines(&lines).last() {
        let (head, _) = split(&lines[at]);
        let blank = if lines[at] == head { "" } else { " " };
        lines[at] = format!("{}{blank}{}", lines[at].trim_end(), names.join(" "));
        return ini::joined(&lines);
    }
    let line = format!("{}={}", EXCLUDES[0], names.join(" "));
    match ini::section_of(&lines, Some("main")) {
        Some(main) => lines.insert(ini::end_of(&lines, main), line),
        None => lines.splice(0..0, ["[main]".to_owned(), line]).for_each(drop),
    }
    ini::joined(&lines)
}

fn without_excludes(text: &str, names: &[&str]) -> String {
    let mut lines = ini::lines_of(text);
    for at in exclude_lines(&lines).into_iter().rev() {
        let (head, rest) = split(&lines[at]);
        if !words(rest).any(|word| names.contains(&word)) {
            continue;
        }
        let left: Vec<&str> = words(rest).filter(|word| !names.contains(word)).collect();
        let continued = lines.get(at + 1).is_some_and(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
        if left.is_empty() && !continued {
            lines.remove(at);
        } else {
            let blank = if head.ends_with('=') && rest.starts_with(' ') { " " } else { "" };
            lines[at] = format!("{head}{blank}{}", left.join(" "));
        }
    }
    ini::joined(&lines)
}

/// Returns the stanzas of zypper's locks, a blank line between them.
fn stanzas(text: &str) -> Vec<Vec<&str>> {
    let mut stanzas: Vec<Vec<&str>> = vec![Vec::new()];
    for line in text.lines() {
        match stanzas.last_mut() {
            Some(stanza) if !line.trim().is_empty() => stanza.push(line),
            Some(_) | None => stanzas.push(Vec::new()),
        }
    }
    stanzas.retain(|stanza| !stanza.is_empty());
    stanzas
}

/// Whether a stanza locks the package of this name, whatever its version.
fn is_lock_of(stanza: &[&str], name: &str) -> bool {
    let value = |key: &str| stanza.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(':').map(str::trim));
    value("solvable_name") == Some(name)
        && value("type").is_none_or(|kind| kind == "package")
        && ["version", "repo", "solvable_arch"].iter().all(|key| value(key).is_none())
}

fn with_locks(text: &str, names: &[&str]) -> String {
    let mut text = text.trim_end().to_owned();
    for name in names {
        text.push_str(&format!("\n\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: {name}"));
    }
    format!("\n{}\n\n", text.trim_start())
}

fn without_stanzas(text: &str, names: &[&str]) -> String {
    let left = stanzas(text).into_iter().filter(|stanza| !names.iter().any(|name| is_lock_of(stanza, name)));
    let left: Vec<String> = left.map(|stanza| stanza.join("\n")).collect();
    if left.is_empty() { String::new() } else { format!("\n{}\n\n", left.join("\n\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["a-toolkit", "b"];

    #[test]
    fn excludes_come_and_go_beside_others() {
        for text in [
            "[main]\ngpgcheck=1\n",
            "[main]\nexclude=kernel*\nbest=True\n\n[other]\nexclude=b\n",
            "[main]\nexcludepkgs = x,\n  y\n# excludepkgs=b\n",
        ] {
            let held = with_excludes(text, &NAMES);
            assert!(NAMES.iter().all(|name| excluded(&held).contains(&(*name).to_owned())), "{held}");
            assert!(!excluded(text).contains(&"b".to_owned()));
            assert_eq!(without_excludes(&held, &NAMES), text);
        }
        assert_eq!(with_excludes("", &["b"]), "[main]\nexcludepkgs=b\n");
        assert_eq!(without_excludes("[main]\nexclude=a-toolkit, x, b\n", &NAMES), "[main]\nexclude=x\n");
    }

    #[test]
    fn locks_come_and_go_beside_others() {
        let other = "\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: kernel*\n\n";
        let held = with_locks(other, &NAMES);
        assert!(NAMES.iter().all(|name| stanzas(&held).iter().any(|stanza| is_lock_of(stanza, name))), "{held}");
        assert_eq!(without_stanzas(&held, &NAMES), other);
        assert_eq!(without_stanzas(&with_locks("", &NAMES), &NAMES), "");
    }
}
