//! What the repositories offer, asked of `apt-cache`.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::dpkg::compare;
use crate::fnmatch::fnmatch;
use crate::order::sort;
use crate::{Error, Host, Probe};

/// What `apt-cache policy` says of one package.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Offer {
    pub candidate: Option<String>,
    /// All versions that are known here, as listed: the highest first.
    pub versions: Vec<String>,
}

impl Offer {
    /// Returns the highest version that a pattern such as `1.2*` allows.
    pub(super) fn matching(&self, pattern: &str) -> Option<&str> {
        self.best(|version| fnmatch(pattern, version))
    }

    /// Returns the candidate where it is high enough, else the highest version that is.
    pub(super) fn at_least(&self, low: &str) -> Option<&str> {
        let enough = |version: &str| compare(version, low) != Ordering::Less;
        self.candidate.as_deref().filter(|version| enough(version)).or_else(|| self.best(enough))
    }

    fn best(&self, allows: impl Fn(&str) -> bool) -> Option<&str> {
        let candidate = self.candidate.as_deref().filter(|version| allows(version));
        let all = self.versions.iter().map(String::as_str).filter(|version| allows(version));
        candidate.or_else(|| all.max_by(|a, b| compare(a, b)))
    }
}

/// Returns what is known of each name; a name that no repository and no database has is left out.
pub(super) fn offers(host: &dyn Host, names: &[&str], release: Option<&str>) -> Result<BTreeMap<String, Offer>, Error> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut argv = vec!["apt-cache".to_owned()];
    if let Some(release) = release {
        argv.extend(["-o".to_owned(), format!("APT::Default-Release={release}")]);
    }
    argv.push("policy".to_owned());
    argv.extend(names.iter().map(|&name| name.to_owned()));
    let output = host.probe(&english(argv))?;
    if !output.success() {
        return Err(super::explain::failure("ask the repositories", &output));
    }
    let mut offers = parse(&output.stdout);
    // A stanza leaves this host's own architecture out of the name.
    for name in names {
        if let Some((bare, _)) = name.split_once(':')
            && !offers.contains_key(*name)
            && let Some(offer) = offers.remove(bare)
        {
            offers.insert((*name).to_owned(), offer);
        }
    }
    Ok(offers)
}

/// A probe whose output is in the language that is read here.
pub(super) fn english(argv: Vec<String>) -> Probe {
    Probe { env: vec![("LC_ALL".into(), "C".into())], ..Probe::new(argv) }
}

fn parse(text: &str) -> BTreeMap<String, Offer> {
    let mut offers = BTreeMap::new();
    let mut current: Option<(String, Offer)> = None;
    for line in text.lines() {
        if !line.starts_with(' ')
            && let Some(name) = line.strip_suffix(':')
        {
            offers.extend(current.replace((name.to_owned(), Offer::default())));
            continue;
        }
        let Some((_, offer)) = &mut current else { continue };
        if let Some(version) = line.strip_prefix("  Candidate: ") {
            offer.candidate = Some(version.to_owned()).filter(|version| version != "(none)");
        } else if let Some(rest) = line.strip_prefix("     ").or_else(|| line.strip_prefix(" *** ")) {
            // A version's line has the version first; below it, deeper, are its origins.
            if !rest.starts_with(' ') {
                offer.versions.extend(rest.split_whitespace().next().map(str::to_owned));
            }
        }
    }
    offers.extend(current);
    offers
}

/// Returns the names that patterns match, of all that apt knows.
pub(super) fn known_names(host: &dyn Host, patterns: &[&str]) -> Result<Vec<String>, Error> {
    let output = host.probe(&english(vec!["apt-cache".into(), "pkgnames".into()]))?;
    if !output.success() {
        return Err(super::explain::failure("list the packages", &output));
    }
    let matches = |name: &&str| patterns.iter().any(|pattern| fnmatch(pattern, name));
    let mut names: Vec<String> = output.stdout.lines().filter(matches).map(str::to_owned).collect();
    sort(&mut names);
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_tells_candidates_and_versions() {
        let text = "nginx:\n  Installed: 1.22.1-9\n  Candidate: 1.22.1-9+deb12u2\n  Version table:\n     \
                    1.22.1-9+deb12u2 500\n        500 http://deb.example bookworm/main amd64 Packages\n *** 1.22.1-9 100\n        \
                    100 /var/lib/dpkg/status\nmta:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n";
        let offers = parse(text);
        assert_eq!(offers["nginx"].candidate.as_deref(), Some("1.22.1-9+deb12u2"));
        assert_eq!(offers["nginx"].versions, ["1.22.1-9+deb12u2", "1.22.1-9"]);
        assert_eq!(offers["nginx"].matching("1.22.1-9"), Some("1.22.1-9"));
        assert_eq!(offers["nginx"].matching("1.22*"), Some("1.22.1-9+deb12u2"));
        assert_eq!(offers["nginx"].at_least("2"), None);
        assert_eq!(offers["mta"], Offer::default());
    }
}
