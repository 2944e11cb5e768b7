//! Where a package's candidate comes from, as `apt-cache policy` tells it.

use std::collections::BTreeMap;

/// What apt would install.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Offer {
    pub candidate: Option<String>,
    pub installed: Option<String>,
    /// Every version with the addresses that have it: `https://host/path`, or `https://host/path suite/component`.
    pub versions: Vec<(String, Vec<String>)>,
}

impl Offer {
    /// Whether the candidate comes from the repository of this address.
    pub(super) fn is_from(&self, address: &str) -> bool {
        self.origins().iter().any(|origin| is_below(origin, address))
    }

    /// Returns where the candidate comes from.
    pub(super) fn origins(&self) -> &[String] {
        let candidate = self.candidate.as_deref();
        let found = self.versions.iter().find(|(version, _)| Some(version.as_str()) == candidate);
        found.map_or(&[], |(_, origins)| origins)
    }

    /// Whether any version comes from the repository of this address.
    pub(super) fn is_known_from(&self, address: &str) -> bool {
        self.versions.iter().any(|(_, origins)| origins.iter().any(|origin| is_below(origin, address)))
    }
}

fn is_below(origin: &str, address: &str) -> bool {
    origin.strip_prefix(address).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ' ']))
}

/// Reads `apt-cache policy NAME…`.
pub(super) fn parse(text: &str) -> BTreeMap<String, Offer> {
    let mut offers: BTreeMap<String, Offer> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(':').filter(|name| !name.starts_with(' ')) {
            current = name.to_owned();
            offers.insert(current.clone(), Offer::default());
            continue;
        }
        let Some(offer) = offers.get_mut(&current) else { continue };
        let known = |version: &str| Some(version.trim().to_owned()).filter(|version| version != "(none)");
        if let Some(version) = line.strip_prefix("  Candidate:") {
            offer.candidate = known(version);
        } else if let Some(version) = line.strip_prefix("  Installed:") {
            offer.installed = known(version);
        } else if line.starts_with("       ") {
            // `        500 https://host/path suite/component amd64 Packages`
            let mut words = line.split_whitespace().skip(1);
            if let (Some(address), Some((_, origins))) = (words.next(), offer.versions.last_mut()) {
                let suite = words.next().filter(|word| *word != "Packages");
                origins.push(suite.map_or_else(|| address.to_owned(), |suite| format!("{address} {suite}")));
            }
        } else if let Some(rest) = line.strip_prefix("     ").or_else(|| line.strip_prefix(" *** ")) {
            offer.versions.extend(rest.split_whitespace().next().map(|version| (version.to_owned(), Vec::new())));
        }
    }
    offers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_where_the_candidate_comes_from() {
        let text = "nvidia-container-toolkit:\n  Installed: 1.18.2-1\n  Candidate: 1.19.1-1\n  Version table:\n     1.19.1-1 500\n        \
            500 https://nvidia.github.io/libnvidia-container/stable/deb/amd64  Packages\n *** 1.18.2-1 500\n        \
            500 http://mirror.example/debian bookworm/main amd64 Packages\n        100 /var/lib/dpkg/status\n";
        let offers = parse(text);
        let offer = &offers["nvidia-container-toolkit"];
        assert!(offer.is_from("https://nvidia.github.io/libnvidia-container/stable/deb/amd64"));
        assert!(!offer.is_from("https://nvidia.github.io/libnvidia-container/stable/deb/amd"));
        assert!(!offer.is_from("http://mirror.example/debian bookworm"));
        assert!(offer.is_known_from("http://mirror.example/debian bookworm"));
        assert_eq!(offer.installed.as_deref(), Some("1.18.2-1"));
    }
}
