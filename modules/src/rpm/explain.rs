//! Turns the output of dnf and zypper into a message that says what is wrong and what to do.

use crate::ask::explained;
use crate::{Error, Output};

/// What they say and what to do about it; the first whose words are in the output is shown.
const HINTS: [(&str, &str); 23] = [
    (
        "GPG signature is not available",
        "the repository's index has no signature (`repodata/repomd.xml.asc`): mirror that file, too",
    ),
    ("is unsigned", "the repository's index has no signature (`repodata/repomd.xml.asc`): mirror that file, too"),
    (
        "Signature verification failed",
        "the repository's index is not signed with the pinned key: look at what its address answers",
    ),
    ("Bad GPG signature", "the repository's index is not signed with the pinned key: look at what its address answers"),
    (
        "repomd.xml GPG signature verification error",
        "the repository's index is not signed with the pinned key: look at what its address answers",
    ),
    ("Expired", "the repository's key has expired: install the current key anew, or set this host's clock"),
    ("Could not resolve", "this host can't resolve the repository's name: look at its DNS and proxy settings"),
    ("Couldn't resolve", "this host can't resolve the repository's name: look at its DNS and proxy settings"),
    ("Failed to connect", "the repository can't be reached from this host: look at its network and proxy settings"),
    ("Couldn't connect", "the repository can't be reached from this host: look at its network and proxy settings"),
    ("Connection failed", "the repository can't be reached from this host: look at its network and proxy settings"),
    ("SSL certificate", "the repository's TLS certificate is not trusted here: trust its authority, or set the time"),
    ("Status code: 404", "there is no repository at this address: correct it, or the mirror"),
    ("Repository type can't be determined", "there is no repository at this address: correct it, or the mirror"),
    ("not found on medium", "there is no repository at this address: correct it, or the mirror"),
    ("checksum", "the repository or a proxy before it served a file that is out of step: try again later"),
    (
        "filtered out by exclude filtering",
        "the host's configuration excludes it: look at `excludepkgs`, `exclude` and `includepkgs`, and at the locks of versionlock",
    ),
    ("Unable to find a match", "no repository on this host offers it"),
    ("No provider of", "no repository on this host offers it"),
    ("No space left", "the disk is full: make room on it"),
    ("enough disk space", "the disk is full: make room on it"),
    ("already locked by", "another package manager is at work: wait for it, or raise `lock_timeout`"),
    ("System management is locked", "another package manager is at work: wait for it, or raise `lock_timeout`"),
];

/// Returns the error of a command that failed: what it says of it, and what to do.
pub(crate) fn failure(attempted: &str, output: &Output) -> Error {
    let said = format!("{}\n{}", plain(&output.stderr), plain(&output.stdout));
    let all = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let tells = |line: &&str| {
        ["error", "problem", "fail", "unable", "conflict", "nothing provides", "not found", "filtered out"]
            .iter()
            .any(|word| line.to_ascii_lowercase().contains(word))
    };
    let mut lines: Vec<&str> = Vec::new();
    for line in all().filter(tells) {
        if !lines.contains(&line) && line != "Error:" {
            lines.push(line);
        }
    }
    if lines.is_empty() {
        lines.extend(all().next_back());
    }
    lines.truncate(MOST_LINES);
    explained(attempted, &lines, &said, &HINTS, output)
}

/// Returns what a program says without zypper's XML, and without what that marks as no more than information.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for line in
        text.lines().filter(|line| !line.starts_with("<message type=\"info\">") && !line.starts_with("<progress"))
    {
        let mut parts = line.split('<');
        plain.push_str(parts.next().unwrap_or_default());
        for part in parts {
            plain.push_str(part.split_once('>').map_or(part, |(_, rest)| rest));
        }
        plain.push('\n');
    }
    for (entity, letter) in [("&apos;", "'"), ("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")] {
        plain = plain.replace(entity, letter);
    }
    plain
}

/// How many lines of its output are told.
const MOST_LINES: usize = 6;
