//! Packages by name: what is installed, what is wanted, what is on offer.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::candidates::{Offer, known_names, offers};
use super::{Args, State, command};
use crate::dpkg::{Database, compare};
use crate::fnmatch::{fnmatch, is_pattern};
use crate::{Change, Error, ErrorKind, Exec, Host, Plan};

/// One entry of `name`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Spec {
    /// A name, maybe with `:architecture`.
    name: String,
    version: Option<Version>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Version {
    /// `=`: a version or a pattern of some.
    Like(String),
    /// `>=`.
    AtLeast(String),
}

impl Spec {
    fn of(text: &str) -> Spec {
        let text = text.trim();
        if let Some((name, version)) = text.split_once(">=") {
            return Spec { name: name.trim().into(), version: Some(Version::AtLeast(version.trim().into())) };
        }
        match text.split_once('=') {
            Some((name, version)) => {
                let version = version.trim_start_matches('=').trim();
                Spec { name: name.trim().into(), version: Some(Version::Like(version.into())) }
            }
            None => Spec { name: text.into(), version: None },
        }
    }
}

impl Args {
    /// Plans for the packages of `name`.
    pub(super) fn named(&self, host: &dyn Host, database: &Database, due: bool, plan: &mut Plan) -> Result<(), Error> {
        let specs = self.specs(host, database)?;
        if self.state == State::Absent {
            return self.remove(host, database, &specs, plan);
        }
        let words = self.to_install(host, database, &specs)?;
        if words.is_empty() {
            plan.changes.extend(keep_for_their_own_sake(host, &specs)?);
            return Ok(());
        }
        let mut line = vec!["install"];
        if self.only_upgrade {
            line.push("--only-upgrade");
        }
        if self.autoremove {
            line.push("--auto-remove");
        }
        line.extend(words.iter().map(String::as_str));
        let argv = self.apt_get(&line);
        // Lists that are about to be refreshed say nothing of what will then be possible.
        let simulation = if due {
            None
        } else {
            match self.simulate(host, &format!("install `{}`", words.join("`, `")), &argv)? {
                Some(simulation) => Some(simulation),
                None => return Ok(()),
            }
        };
        command::add(plan, self.run(host, argv)?, simulation.as_ref());
        Ok(())
    }

    /// Returns the entries with their patterns replaced by the names that match.
    fn specs(&self, host: &dyn Host, database: &Database) -> Result<Vec<Spec>, Error> {
        let mut specs: Vec<Spec> = Vec::new();
        for spec in self.names().iter().map(|text| Spec::of(text)) {
            if !is_pattern(&spec.name) {
                specs.push(spec);
                continue;
            }
            let names = if self.state == State::Absent {
                let there = database.0.iter().filter(|package| package.there() || self.purge);
                there.map(|package| package.name.clone()).filter(|name| fnmatch(&spec.name, name)).collect()
            } else {
                let names = known_names(host, &[&spec.name])?;
                let refs: Vec<&str> = names.iter().map(String::as_str).collect();
                let offers = offers(host, &refs, self.default_release.as_deref())?;
                let real = |name: &String| offers.get(name).is_some_and(|offer| offer.candidate.is_some());
                let names: Vec<String> = names.into_iter().filter(real).collect();
                if names.is_empty() {
                    return Err(unavailable(&spec.name));
                }
                names
            };
            specs.extend(names.into_iter().map(|name| Spec { name, version: spec.version.clone() }));
        }
        Ok(specs)
    }

    /// Returns `name` or `name=version` of what is to be installed, upgraded or downgraded.
    fn to_install(&self, host: &dyn Host, database: &Database, specs: &[Spec]) -> Result<Vec<String>, Error> {
        let installed = |spec: &Spec| {
            let package = database.package(&spec.name).filter(|package| package.installed())?;
            Some(package.version.clone())
        };
        let ask = |spec: &&Spec| match (installed(spec), &spec.version, self.state) {
            (Some(_), None, State::Present) => false,
            (Some(version), Some(wanted), State::Present) => !wanted.allows(&version),
            (None, _, _) => !self.only_upgrade,
            (Some(_), _, _) => true,
        };
        let asked: Vec<&Spec> = specs.iter().filter(ask).collect();
        let names: Vec<&str> = asked.iter().map(|spec| spec.name.as_str()).collect();
        let offers = offers(host, &names, self.default_release.as_deref())?;
        let mut words = Vec::new();
        for spec in asked {
            let word = self.word(database, spec, installed(spec), &offers)?;
            words.extend(word.filter(|word| !words.contains(word)));
        }
        Ok(words)
    }

    fn word(
        &self,
        database: &Database,
        spec: &Spec,
        installed: Option<String>,
        offers: &BTreeMap<String, Offer>,
    ) -> Result<Option<String>, Error> {
        let name = &spec.name;
        let Some(offer) = offers.get(name) else {
            return if installed.is_some() || database.provided(name) { Ok(None) } else { Err(unavailable(name)) };
        };
        let Some(version) = &spec.version else {
            return Ok(match (&installed, &offer.candidate) {
                // A name without a package of its own: one that stands for it may be there.
                (None, None) if database.provided(name) => None,
                (None, _) => Some(name.clone()),
                (Some(old), Some(new)) if compare(old, new) == Ordering::Less => Some(name.clone()),
                (Some(_), _) => None,
            });
        };
        let found = match version {
            Version::Like(pattern) => offer.matching(pattern),
            Version::AtLeast(low) => offer.at_least(low),
        };
        let Some(found) = found else {
            let on_offer = if offer.versions.is_empty() { "none".to_owned() } else { offer.versions.join(", ") };
            return Err(Error::new(
                ErrorKind::Host,
                format!("no version of `{name}` is {version}; the repositories offer: {on_offer}"),
            ));
        };
        match installed.as_deref().map(|old| compare(old, found)) {
            Some(Ordering::Equal) => Ok(None),
            Some(Ordering::Greater) if !self.allow_downgrade && !self.force => Err(Error::new(
                ErrorKind::Host,
                format!(
                    "`{name}` {} is installed and {found} is older: set `allow_downgrade: true` to go back",
                    installed.unwrap_or_default()
                ),
            )),
            Some(Ordering::Greater | Ordering::Less) | None => Ok(Some(format!("{name}={found}"))),
        }
    }

    fn remove(&self, host: &dyn Host, database: &Database, specs: &[Spec], plan: &mut Plan) -> Result<(), Error> {
        let gone = |name: &str| {
            database.package(name).is_none_or(|package| match package.state.as_str() {
                "not-installed" => true,
                "config-files" => !self.purge,
                _ => false,
            })
        };
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).filter(|name| !gone(name)).collect();
        if names.is_empty() {
            return Ok(());
        }
        let mut line = vec!["remove"];
        if self.purge {
            line.push("--purge");
        }
        if self.autoremove {
            line.push("--auto-remove");
        }
        line.extend(&names);
        let argv = self.apt_get(&line);
        let simulation = self.simulate(host, &format!("remove `{}`", names.join("`, `")), &argv)?;
        command::add(plan, self.run(host, argv)?, simulation.as_ref());
        Ok(())
    }
}

impl Version {
    fn allows(&self, version: &str) -> bool {
        match self {
            Version::Like(pattern) => fnmatch(pattern, version),
            Version::AtLeast(low) => compare(version, low) != Ordering::Less,
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Version::Like(pattern) => write!(f, "`{pattern}`"),
            Version::AtLeast(low) => write!(f, "`{low}` or later"),
        }
    }
}

fn unavailable(name: &str) -> Error {
    Error::new(
        ErrorKind::Host,
        // Ansible's words, which playbooks look for.
        format!("No package matching '{name}' is available: add its repository, or refresh with `update_cache: true`"),
    )
}

/// Marks packages that were installed only for others, so that `autoremove` leaves them when those go.
fn keep_for_their_own_sake(host: &dyn Host, specs: &[Spec]) -> Result<Option<Change>, Error> {
    let bytes = host.read("/var/lib/apt/extended_states")?.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let automatic: Vec<&str> = text
        .split("\n\n")
        .filter(|stanza| stanza.lines().any(|line| line == "Auto-Installed: 1"))
        .filter_map(|stanza| stanza.lines().find_map(|line| line.strip_prefix("Package: ")))
        .collect();
    let names = specs.iter().map(|spec| spec.name.as_str());
    let names: Vec<&str> = names.filter(|name| automatic.contains(&name.split(':').next().unwrap_or(name))).collect();
    let argv = ["apt-mark", "manual"].into_iter().chain(names.iter().copied());
    Ok((!names.is_empty()).then(|| Change::Exec(Exec::new(argv))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_name_with_or_without_a_version() {
        assert_eq!(Spec::of("nginx"), Spec { name: "nginx".into(), version: None });
        assert_eq!(
            Spec::of("libc6:i386=2.36*"),
            Spec { name: "libc6:i386".into(), version: Some(Version::Like("2.36*".into())) }
        );
        assert_eq!(Spec::of("a >= 1.2").version, Some(Version::AtLeast("1.2".into())));
    }
}
