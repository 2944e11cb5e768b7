//! Which packages are offered by whom, and which of them would be taken.

use std::cmp::Ordering;

use crate::ask::slow;
use crate::dnf::SLOW_S;
use crate::rpm::files::Section;
use crate::rpm::moves::attribute;
use crate::rpm::{Manager, explain, version};
use crate::rpm_repo::Site;
use crate::{Error, Output};

/// How dnf is to tell of a package.
pub(super) const FORMAT: &str = "--qf=%{name}|%{epoch}|%{version}|%{release}|%{repoid}\\n";

/// One version of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    pub name: String,
    /// `VERSION-RELEASE`, with `EPOCH:` before it where there is one.
    pub version: String,
    /// The repository's name.
    pub repository: String,
}

impl Site<'_> {
    /// Asks for the packages, all versions of all repositories. Lists of others that were never downloaded are, once ours
    /// is there: without them nobody could tell what is taken.
    pub(super) fn offers(&self, fetched: bool) -> Result<Vec<Offer>, Error> {
        if self.args.packages.is_empty() {
            return Ok(Vec::new());
        }
        let names = self.args.packages.iter().map(String::as_str);
        let attempted = "ask for the candidates";
        match self.manager {
            Manager::Dnf(program) => {
                // What is held is offered all the same.
                let words = [program, "-q", "repoquery", "--available", "--setopt=disable_excludes=main", FORMAT];
                let cached: Vec<&str> = words.into_iter().chain(["-C"]).chain(names.clone()).collect();
                let mut output = slow(self.host, &cached, SLOW_S)?;
                if !output.success() && !fetched {
                    return Ok(Vec::new());
                }
                if !output.success() {
                    output = slow(self.host, &words.into_iter().chain(names).collect::<Vec<_>>(), SLOW_S)?;
                }
                judged(attempted, &output, &[0]).map(of_lines)
            }
            Manager::Zypper => {
                let words =
                    ["zypper", "--non-interactive", "--xmlout", "--no-refresh", "search", "--details", "--match-exact"];
                let argv: Vec<&str> = words.into_iter().chain(["--type", "package"]).chain(names).collect();
                // 104: there is none; 106: the lists of another repository are not there.
                judged(attempted, &slow(self.host, &argv, SLOW_S)?, &[0, 104, 106]).map(of_xml)
            }
        }
    }

    /// Returns the version of a package that would be taken: of the repository that comes first the newest.
    pub(super) fn candidate<'o>(&self, offers: &'o [Offer], name: &str) -> Option<&'o Offer> {
        let mut best: Option<&Offer> = None;
        for offer in offers.iter().filter(|offer| offer.name == name) {
            let better = best.is_none_or(|best| {
                let rank = self.rank(&offer.repository).cmp(&self.rank(&best.repository));
                let order = rank.reverse().then_with(|| version::compare(&offer.version, &best.version));
                // Of two that are alike it is not ours that counts on being taken.
                order == Ordering::Greater || order == Ordering::Equal && best.repository == self.args.name
            });
            if better {
                best = Some(offer);
            }
        }
        best
    }

    /// Says of each package whose candidate does not come from here what it is.
    pub(super) fn strangers(&self, offers: &[Offer]) -> Vec<String> {
        let mut told = Vec::new();
        for name in &self.args.packages {
            let Some(offer) = self.candidate(offers, name) else {
                told.push(format!("`{name}` is not offered"));
                continue;
            };
            if offer.repository == self.args.name {
                continue;
            }
            let ours = offers.iter().any(|other| other.name == *name && other.repository == self.args.name);
            let why = if ours {
                format!(", whose priority {} comes before {}", self.rank(&offer.repository), self.args.priority)
            } else {
                ", and this repository has none".to_owned()
            };
            told.push(format!("the candidate of `{name}` is {} from `{}`{why}", offer.version, offer.repository));
        }
        told
    }

    /// Returns a repository's rank by its name.
    fn rank(&self, repository: &str) -> u32 {
        if repository == self.args.name {
            return self.args.priority;
        }
        let named = |section: &Section| section.id == repository || section.get("name") == Some(repository);
        let sections = self.files.iter().flat_map(|file| file.sections());
        // Where nobody names one, it is the usual one.
        sections.filter(named).map(|section| section.priority()).min().unwrap_or(99)
    }
}

fn judged<'o>(attempted: &str, output: &'o Output, right: &[i32]) -> Result<&'o str, Error> {
    if right.contains(&output.rc) { Ok(&output.stdout) } else { Err(explain::failure(attempted, output)) }
}

pub(super) fn of_lines(text: &str) -> Vec<Offer> {
    let offer = |line: &str| {
        let fields: Vec<&str> = line.trim().split('|').collect();
        let [name, epoch, version, release, repository] = fields[..] else { return None };
        let epoch = if matches!(epoch, "0" | "(none)" | "") { String::new() } else { format!("{epoch}:") };
        let version = format!("{epoch}{version}-{release}");
        Some(Offer { name: name.to_owned(), version, repository: repository.to_owned() })
    };
    text.lines().filter_map(offer).collect()
}

/// Reads the answer of zypper's `search`, which tells of what is installed, too, where no repository has it any more.
pub(crate) fn of_xml(text: &str) -> Vec<Offer> {
    let offer = |element: &str| {
        let element = element.split('>').next().unwrap_or_default();
        let repository = attribute(element, "repository").filter(|name| !name.starts_with('('))?;
        let (name, version) = (attribute(element, "name")?, attribute(element, "edition")?);
        Some(Offer { name: name.to_owned(), version: version.to_owned(), repository: repository.to_owned() })
    };
    text.split("<solvable ").skip(1).filter_map(offer).collect()
}
