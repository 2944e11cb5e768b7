//! How a report is shown.

mod json;
mod sarif;
mod words;

pub use json::json;
pub use sarif::{SARIF_SCHEMA, escaped_path, sarif};
pub use words::{Look, words};

use super::{Diagnosis, Finding};

/// Returns where a public report of something can be read: `owner/repository#number` on GitHub.
pub fn address(issue: &str) -> String {
    match issue.split_once('#') {
        Some((repository, number)) => format!("https://github.com/{repository}/issues/{number}"),
        None => issue.to_owned(),
    }
}

/// Returns the command that mends something on hosts, where the playbook does.
pub fn command(look: &Look, steps: &[super::Step], hosts: &[&str]) -> String {
    let mut words = vec!["kubeon-run".to_owned(), look.playbook.clone()];
    words.extend(look.reach.iter().cloned());
    if !hosts.is_empty() {
        words.extend(["--limit".to_owned(), hosts.join(",")]);
    }
    let tags: Vec<&str> = steps.iter().map(|step| step.tag()).collect();
    words.extend(["--tags".to_owned(), tags.join(",")]);
    shell_words::join(words)
}

/// Returns what to do about a finding, with the command where one does it.
fn remedy(finding: &Finding, look: &Look, host: Option<&str>) -> (String, Option<String>) {
    let Diagnosis { step, .. } = finding.diagnosis;
    let hosts: Vec<&str> = host.into_iter().collect();
    (finding.fix().to_owned(), step.map(|step| command(look, &[step], &hosts)))
}
