//! Turns apt's output into a message that says what is wrong and what to do.

use crate::ask::explained;
use crate::{Error, Output};

/// What apt says and what to do about it; the first whose words are in the output is shown.
const HINTS: [(&str, &str); 22] = [
    ("NO_PUBKEY", "the repository is signed with a key that its `signed-by` file does not hold: install the key anew"),
    ("EXPKEYSIG", "the repository's key has expired: install the current key anew"),
    (
        "Conflicting values set for option Signed-By",
        "two source files name this repository with different keys: remove one of them",
    ),
    ("is not signed", "the repository has no signature that apt trusts: install its key and name it with `signed-by`"),
    (
        "does not have a Release file",
        "the repository's address is wrong or it has nothing for this release: correct or remove its source file",
    ),
    ("is not valid yet", "this host's clock is behind: set the time"),
    ("is expired", "the repository's index is too old, or this host's clock is wrong"),
    ("Malformed ", "a source file is broken: correct or remove it"),
    (
        "Temporary failure resolving",
        "this host can't resolve the repository's name: look at its DNS and proxy settings",
    ),
    ("Could not resolve", "this host can't resolve the repository's name: look at its DNS and proxy settings"),
    ("Could not connect", "the repository can't be reached from this host: look at its network and proxy settings"),
    ("Unable to connect", "the repository can't be reached from this host: look at its network and proxy settings"),
    (
        "Certificate verification failed",
        "the repository's TLS certificate is not trusted here: install `ca-certificates` or set the time",
    ),
    ("Hash Sum mismatch", "the repository or a proxy before it served a file that is out of step: try again later"),
    ("Unable to locate package", "no repository on this host offers it: add one, or refresh with `update_cache: true`"),
    (
        "has no installation candidate",
        "no repository on this host offers it: add one, or refresh with `update_cache: true`",
    ),
    ("without --allow-downgrades", "set `allow_downgrade: true` to go back to an older version"),
    (
        "without --allow-change-held-packages",
        "packages are on hold: set `allow_change_held_packages: true` or take the hold off",
    ),
    (
        "without --allow-unauthenticated",
        "packages come from a repository that is not signed: sign it, or set `allow_unauthenticated: true`",
    ),
    ("enough free space", "the disk is full: make room on it"),
    ("No space left on device", "the disk is full: make room on it"),
    ("Could not get lock", "another package manager is at work: wait for it, or raise `lock_timeout`"),
];

/// Returns the error of an apt command that failed: its own `E:` lines, what they depend on, and what to do.
pub(crate) fn failure(attempted: &str, output: &Output) -> Error {
    let mut lines: Vec<&str> = Vec::new();
    let all = || output.stderr.lines().chain(output.stdout.lines());
    let mut unmet = false;
    for line in output.stdout.lines().chain(output.stderr.lines()) {
        unmet = if line.starts_with("The following packages have unmet dependencies") {
            true
        } else {
            unmet && line.starts_with(' ')
        };
        if unmet && line.starts_with(' ') {
            lines.push(line.trim());
        }
    }
    lines.extend(all().filter_map(|line| line.strip_prefix("E: ")).map(str::trim));
    lines.extend(all().filter(|line| line.starts_with("dpkg: error")).map(str::trim));
    if lines.is_empty() {
        let trouble = |line: &&str| line.starts_with("W: ") || line.starts_with("Err:");
        lines.extend(all().filter(trouble).map(|line| line.trim_start_matches("W: ")));
    }
    if lines.is_empty() {
        lines.extend(output.stderr.lines().rev().find(|line| !line.trim().is_empty()));
    }
    let mut seen: Vec<&str> = Vec::new();
    for line in lines {
        if !seen.contains(&line) {
            seen.push(line);
        }
    }
    explained(attempted, &seen, &format!("{}\n{}", output.stderr, output.stdout), &HINTS, output)
}

/// Whether an update that ended well could not fetch something: older versions of apt only warn of it.
pub(crate) fn incomplete(output: &Output) -> bool {
    let trouble = ["W: Failed to fetch", "W: Some index files failed to download", "W: GPG error", "Err:"];
    output.stderr.lines().chain(output.stdout.lines()).any(|line| trouble.iter().any(|start| line.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(stdout: &str, stderr: &str) -> String {
        let output = Output { rc: 100, stdout: stdout.into(), stderr: stderr.into(), ..Output::default() };
        failure("install `x`", &output).message.clone()
    }

    #[test]
    fn unmet_dependencies_are_in_the_message() {
        let text = message(
            "Reading package lists...\nThe following packages have unmet dependencies:\n x : Depends: y (>= 2) but 1 is \
             to be installed\nInst z\n",
            "E: Unable to correct problems, you have held broken packages.\n",
        );
        assert!(text.starts_with("install `x`: x : Depends: y (>= 2) but 1 is to be installed; Unable to"), "{text}");
    }

    #[test]
    fn a_hint_follows_what_is_known() {
        let text = message(
            "",
            "W: GPG error: https://r.example ./ InRelease: NO_PUBKEY 0123\nE: The repository is not signed.\n",
        );
        assert!(text.contains("The repository is not signed.\nthe repository is signed with a key"), "{text}");
    }
}
