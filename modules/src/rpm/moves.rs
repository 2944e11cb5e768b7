//! What a command would do to packages, as a trial of dnf or zypper tells it.

use crate::dnf::SLOW_S;
use crate::rpm::{Manager, explain};
use crate::{Diff, Error, Exec, Host, Probe};

/// What happens to a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Install,
    Upgrade,
    Downgrade,
    Remove,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Move {
    pub way: Way,
    pub name: String,
    pub version: String,
    /// The repository, by the name that the program shows; empty where it shows none.
    pub repository: String,
}

impl Move {
    fn told(&self) -> String {
        let (name, version) = (&self.name, &self.version);
        match self.way {
            Way::Install => format!("install {name} {version}"),
            Way::Upgrade => format!("upgrade {name} to {version}"),
            Way::Downgrade => format!("downgrade {name} to {version}"),
            Way::Remove => format!("remove {name} {version}"),
        }
    }
}

/// Returns the moves as a difference for people.
pub(crate) fn diff(moves: &[Move]) -> Diff {
    let text: String = moves.iter().map(|one| format!("{}\n", one.told())).collect();
    Diff { prepared: Some(text), ..Diff::default() }
}

/// Returns what a command would do, without doing it.
///
/// # Errors
/// What the program says against it, explained; also where it would do nothing.
pub(crate) fn of(host: &dyn Host, manager: Manager, attempted: &str, exec: &Exec) -> Result<Vec<Move>, Error> {
    let mut argv: Vec<String> = Vec::new();
    for word in &exec.argv {
        match (manager, word.as_str()) {
            (Manager::Dnf(_), "-y") => argv.push("--assumeno".to_owned()),
            (Manager::Zypper, "zypper") => argv.extend([word.clone(), "--xmlout".to_owned()]),
            (Manager::Zypper, "install" | "remove") => argv.extend([word.clone(), "--dry-run".to_owned()]),
            (Manager::Dnf(_) | Manager::Zypper, _) => argv.push(word.clone()),
        }
    }
    let mut files = Vec::new();
    for (name, content) in &exec.files {
        files.push((name.clone(), host.content(content)?));
    }
    let output = host.probe(&Probe { argv, files, env: exec.env.clone(), stdin: None, timeout_s: Some(SLOW_S) })?;
    let aborted = ["Operation aborted", "Exiting on user"];
    let aborted = aborted.iter().any(|said| output.stderr.contains(said) || output.stdout.contains(said));
    let moves = match manager {
        Manager::Dnf(_) if output.rc == 0 || aborted => of_table(&output.stdout),
        Manager::Zypper if output.rc == 0 => of_xml(&output.stdout),
        Manager::Dnf(_) | Manager::Zypper => Vec::new(),
    };
    if moves.is_empty() { Err(explain::failure(attempted, &output)) } else { Ok(moves) }
}

/// Reads dnf's table. A name that is too long for its column has the others on the next line.
fn of_table(text: &str) -> Vec<Move> {
    let mut moves: Vec<(Way, Vec<&str>)> = Vec::new();
    let mut way = None;
    for line in text.lines() {
        if line.starts_with("Transaction Summary") {
            break;
        }
        if !line.starts_with(' ') {
            let head = line.trim_end_matches(':');
            way = match head {
                _ if head.starts_with("Installing") => Some(Way::Install),
                "Upgrading" => Some(Way::Upgrade),
                "Downgrading" => Some(Way::Downgrade),
                _ if head.starts_with("Removing") => Some(Way::Remove),
                _ => None,
            };
            continue;
        }
        let words = line.split_whitespace();
        match (way, moves.last_mut()) {
            (Some(way), _) if !line[1..].starts_with(' ') => moves.push((way, words.collect())),
            (Some(_), Some((_, row))) => row.extend(words),
            (Some(_) | None, _) => {}
        }
    }
    let read = |(way, row): (Way, Vec<&str>)| match row.as_slice() {
        [name, _, version, repository, ..] => Some(Move {
            way,
            name: (*name).to_owned(),
            version: (*version).to_owned(),
            repository: repository.trim_start_matches('@').to_owned(),
        }),
        _ => None,
    };
    moves.into_iter().filter_map(read).collect()
}

/// Reads zypper's summary.
fn of_xml(text: &str) -> Vec<Move> {
    let mut moves = Vec::new();
    for (tag, way) in [
        ("to-install", Way::Install),
        ("to-upgrade", Way::Upgrade),
        ("to-upgrade-change-arch", Way::Upgrade),
        ("to-upgrade-change-vendor", Way::Upgrade),
        ("to-downgrade", Way::Downgrade),
        ("to-downgrade-change-arch", Way::Downgrade),
        ("to-downgrade-change-vendor", Way::Downgrade),
        ("to-change-arch", Way::Upgrade),
        ("to-change-vendor", Way::Upgrade),
        ("to-remove", Way::Remove),
    ] {
        for block in text.split(&format!("<{tag}>")).skip(1) {
            let block = block.split(&format!("</{tag}>")).next().unwrap_or_default();
            moves.extend(block.split("<solvable ").skip(1).filter_map(|solvable| {
                let solvable = solvable.split('>').next().unwrap_or_default();
                (attribute(solvable, "type")? == "package").then_some(Move {
                    way,
                    name: attribute(solvable, "name")?.to_owned(),
                    version: attribute(solvable, "edition")?.to_owned(),
                    repository: attribute(solvable, "repository").unwrap_or_default().to_owned(),
                })
            }));
        }
    }
    moves
}

/// Returns the value of an attribute of an element of zypper's.
pub(crate) fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let start = element.find(&format!("{name}=\""))? + name.len() + 2;
    element[start..].split('"').next()
}
