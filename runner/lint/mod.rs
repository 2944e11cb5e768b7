//! What will surprise in playbooks, files of tasks and variables, and Kubernetes manifests, found by reading alone.
//!
//! A rule is data and a function that looks at one thing as it is written: a play, a task, a value, a manifest.
//! `rules/` has them, `walk.rs` shows them everything there is, `fix.rs` mends what can be mended by rule.

mod files;
mod fix;
mod ignore;
pub mod page;
mod rules;
pub mod show;
mod task;
mod text;
mod walk;

use std::path::{Path, PathBuf};

pub use files::discover;
pub use fix::{Edit, mended};
pub use rules::all as rules;
pub use task::{Call, Task};

use crate::source::{Diagnostic, FileId, Place, Severity};
use crate::yaml::{self, Node};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// It reads badly, or works by luck.
    Note,
    /// It will surprise somebody.
    Warning,
    /// It does not do what it says.
    Error,
}

impl Weight {
    /// Returns the word that SARIF and people use.
    pub fn name(self) -> &'static str {
        match self {
            Weight::Note => "note",
            Weight::Warning => "warning",
            Weight::Error => "error",
        }
    }
}

/// What a rule looks at.
#[derive(Clone, Copy)]
pub enum Check {
    /// A play.
    Play(fn(&Node, &mut Found)),
    /// A task or a handler, and what encloses it.
    Task(fn(&Task<'_>, &mut Found)),
    /// A value that is neither a list nor a mapping, wherever it stands.
    Scalar(fn(&Scalar<'_>, &mut Found)),
    /// A Kubernetes object: a file of its own, or in a task.
    Manifest(fn(&Node, &mut Found)),
    /// Found when the file is read.
    Reading,
}

/// A value, and what is known of its place.
pub struct Scalar<'a> {
    pub node: &'a Node,
    /// The key that it is the value of; that of the list for an item.
    pub key: Option<&'a str>,
    /// What is to stand there.
    pub meant: Meant,
    /// The list that it stands in.
    pub siblings: Option<&'a [Node]>,
}

/// What a value is to be, as far as its place tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meant {
    Text,
    /// Permission bits, which other rules look at.
    Mode,
    Unknown,
}

/// A rule.
pub struct Rule {
    /// Its name, that of ansible-lint where that has such a rule.
    pub id: &'static str,
    /// Further names under which `# noqa` knows it.
    pub also: &'static [&'static str],
    pub weight: Weight,
    /// What it finds.
    pub what: &'static str,
    /// Why that surprises.
    pub why: &'static str,
    /// What to do.
    pub fix: &'static str,
    /// Whether `--fix` mends it, at least mostly.
    pub mends: bool,
    pub check: Check,
}

impl Rule {
    /// Returns whether this is a name of the rule; what stands in brackets behind one is left out.
    pub fn is_called(&self, name: &str) -> bool {
        let name = name.split('[').next().unwrap_or(name);
        self.id == name || self.also.contains(&name)
    }
}

/// What a rule found.
pub struct Finding {
    pub rule: &'static Rule,
    pub place: Place,
    /// How many characters it spans; zero is the word there.
    pub width: usize,
    pub message: String,
    /// What mends it, if anything does by rule.
    pub edits: Vec<Edit>,
}

impl Finding {
    /// Returns it as it is shown to a person.
    pub fn diagnostic(&self) -> Diagnostic {
        let problem = match self.rule.weight {
            Weight::Error => Diagnostic::error(self.place, self.shown()),
            Weight::Note | Weight::Warning => Diagnostic::warning(self.place, self.shown()),
        };
        problem.width(self.width).help(self.rule.fix)
    }

    fn shown(&self) -> String {
        format!("{} ({})", self.message, self.rule.id)
    }
}

/// Collects what rules find in a file.
pub struct Found {
    rule: &'static Rule,
    findings: Vec<Finding>,
}

impl Found {
    /// Tells of something; zero characters are the word there.
    pub fn tell(&mut self, place: Place, width: usize, message: impl Into<String>) {
        self.mend(place, width, message, Vec::new());
    }

    /// Tells of something that can be mended.
    pub fn mend(&mut self, place: Place, width: usize, message: impl Into<String>, edits: Vec<Edit>) {
        self.findings.push(Finding { rule: self.rule, place, width, message: message.into(), edits });
    }
}

/// Returns what the wanted rules find in a file, in its order.
pub fn lint(path: &Path, wanted: &dyn Fn(&Rule) -> bool) -> Vec<Finding> {
    match std::fs::read(path) {
        Ok(bytes) => lint_bytes(path, bytes, wanted),
        Err(error) => vec![unreadable(Diagnostic::error(
            FileId::register(path, "").at(1, 1),
            format!("read `{}`: {error}", path.display()),
        ))],
    }
}

/// As [`lint`], of a file's text.
pub fn lint_bytes(path: &Path, bytes: Vec<u8>, wanted: &dyn Fn(&Rule) -> bool) -> Vec<Finding> {
    if crate::vault::is_vaulted(&bytes) {
        return Vec::new();
    }
    let parsed = match yaml::read_bytes(path, bytes) {
        Ok(parsed) => parsed,
        Err(problem) => return vec![unreadable(problem)],
    };
    let mut found = Found { rule: rules::DUPLICATE, findings: Vec::new() };
    if wanted(rules::DUPLICATE) {
        for Diagnostic { place, message, .. } in &parsed.warnings {
            found.tell(*place, 0, message.as_str());
        }
    }
    let kind = files::kind(path, &parsed.documents);
    for document in &parsed.documents {
        walk::document(document, kind, wanted, &mut found);
    }
    let mut findings = found.findings;
    findings.sort_by_key(|finding| (finding.place, finding.rule.id));
    // An alias shows the same node again.
    findings.dedup_by_key(|finding| (finding.place, finding.rule.id));
    ignore::silence(&mut findings, &parsed.documents, kind);
    findings
}

fn unreadable(problem: Diagnostic) -> Finding {
    debug_assert_eq!(problem.severity, Severity::Error);
    let Diagnostic { place, width, message, .. } = problem;
    Finding { rule: rules::SYNTAX, place, width, message, edits: Vec::new() }
}

/// What was looked at, and what was found.
pub struct Report {
    pub files: Vec<PathBuf>,
    pub findings: Vec<Finding>,
    /// How many findings were mended.
    pub mended: usize,
}
