//! dpkg's database, read natively, and its order of versions.

use std::cmp::Ordering;

use crate::{Error, ErrorKind, Host};

const STATUS: &str = "/var/lib/dpkg/status";

/// One package that dpkg knows. Source: `deb-control(5)` and the `Status` field of `dpkg-query(1)`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Package {
    pub name: String,
    pub version: String,
    pub architecture: String,
    pub section: String,
    /// What an administrator wants: `install`, `hold`, `deinstall`, `purge`.
    pub want: String,
    /// How far dpkg is: `installed`, `config-files`, `half-configured`…
    pub state: String,
    /// Other names it stands for, each with a version where one is given.
    provides: String,
}

impl Package {
    pub(crate) fn installed(&self) -> bool {
        self.state == "installed"
    }

    /// Whether more of it is there than its configuration.
    pub(crate) fn there(&self) -> bool {
        !matches!(self.state.as_str(), "not-installed" | "config-files")
    }

    fn provides(&self, name: &str) -> bool {
        self.provides.split(',').any(|entry| entry.split_whitespace().next() == Some(name))
    }
}

/// All packages that dpkg knows.
#[derive(Debug, Default)]
pub(crate) struct Database(pub Vec<Package>);

impl Database {
    /// # Errors
    /// [`ErrorKind::Host`] where dpkg has no database.
    pub(crate) fn read(host: &dyn Host) -> Result<Database, Error> {
        let bytes = host.read(STATUS)?.ok_or_else(|| {
            Error::new(ErrorKind::Host, format!("this host has no `{STATUS}`: it is no Debian and none of its kin"))
        })?;
        Ok(Database::parse(&String::from_utf8_lossy(&bytes)))
    }

    fn parse(text: &str) -> Database {
        let mut packages = Vec::new();
        let mut package = Package::default();
        for line in text.lines().chain([""]) {
            if line.is_empty() {
                if !package.name.is_empty() {
                    packages.push(std::mem::take(&mut package));
                }
                continue;
            }
            let Some((key, value)) = line.split_once(": ") else { continue };
            match key {
                "Package" => value.clone_into(&mut package.name),
                "Version" => value.clone_into(&mut package.version),
                "Architecture" => value.clone_into(&mut package.architecture),
                "Section" => value.clone_into(&mut package.section),
                "Provides" => value.clone_into(&mut package.provides),
                "Status" => {
                    let mut words = value.split_whitespace();
                    words.next().unwrap_or_default().clone_into(&mut package.want);
                    words.nth(1).unwrap_or_default().clone_into(&mut package.state);
                }
                _ => {}
            }
        }
        Database(packages)
    }

    /// Returns a package by `name` or `name:architecture`; of several architectures the one that is installed.
    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        let (name, architecture) = name.split_once(':').unwrap_or((name, "any"));
        let of_it = |package: &&Package| {
            package.name == name
                && (["any", "native"].contains(&architecture)
                    || [architecture, "all"].contains(&package.architecture.as_str()))
        };
        let mut found = self.0.iter().filter(of_it);
        let first = found.clone().next();
        found.find(|package| package.installed()).or(first)
    }

    /// Whether an installed package stands for this name.
    pub(crate) fn provided(&self, name: &str) -> bool {
        self.0.iter().any(|package| package.installed() && package.provides(name))
    }
}

/// Compares two versions. Source: `deb-version(7)`.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    fn parts(version: &str) -> (u64, &str, &str) {
        let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, "0"));
        (epoch.parse().unwrap_or(0), upstream, revision)
    }
    let (a, b) = (parts(a), parts(b));
    a.0.cmp(&b.0).then_with(|| compare_part(a.1, b.1)).then_with(|| compare_part(a.2, b.2))
}

/// Compares by turns what is no digit and what is, until they differ.
fn compare_part(a: &str, b: &str) -> Ordering {
    /// `~` sorts before the end, letters before all else.
    fn weight(byte: Option<&u8>) -> i32 {
        match byte {
            Some(b'~') => -1,
            None => 0,
            Some(byte) if byte.is_ascii_digit() => 0,
            Some(byte) if byte.is_ascii_alphabetic() => i32::from(*byte),
            Some(byte) => i32::from(*byte) + 256,
        }
    }
    let digit = |text: &[u8], at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        while i < a.len() && !digit(a, i) || j < b.len() && !digit(b, j) {
            let order = weight(a.get(i)).cmp(&weight(b.get(j)));
            if order != Ordering::Equal {
                return order;
            }
            i += 1;
            j += 1;
        }
        let number = |text: &[u8], at: &mut usize| {
            let start = *at;
            while digit(text, *at) {
                *at += 1;
            }
            let digits = String::from_utf8_lossy(text.get(start..*at).unwrap_or_default()).into_owned();
            digits.trim_start_matches('0').to_owned()
        };
        let (x, y) = (number(a, &mut i), number(b, &mut j));
        let order = x.len().cmp(&y.len()).then_with(|| x.cmp(&y));
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_dpkgs_order() {
        let rising =
            ["1.0~rc1", "1.0", "1.0-1~bpo12+1", "1.0-1", "1.0-1+b1", "1.0a", "1.0+dfsg", "1.9", "1.10", "1:0.1", "2:0"];
        for (at, low) in rising.iter().enumerate() {
            for high in &rising[at + 1..] {
                assert_eq!(compare(low, high), Ordering::Less, "{low} {high}");
                assert_eq!(compare(high, low), Ordering::Greater, "{high} {low}");
            }
            assert_eq!(compare(low, low), Ordering::Equal);
        }
        assert_eq!(compare("570.86.15-0ubuntu1", "570.133.20-0ubuntu1"), Ordering::Less);
        assert_eq!(compare("1.01", "1.1"), Ordering::Equal);
    }

    #[test]
    fn the_database_knows_states_and_provided_names() {
        let text = "Package: exim4-daemon-light\nStatus: hold ok installed\nArchitecture: amd64\nVersion: 4.96-15\n\
                    Provides: mail-transport-agent, exim4-localscanapi-6.0 (= 1)\nDescription: x\n more\n\n\
                    Package: vim\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 9\n";
        let database = Database::parse(text);
        let exim = database.package("exim4-daemon-light:amd64").expect("it is there");
        assert!(exim.installed() && exim.want == "hold");
        assert!(database.provided("mail-transport-agent") && database.provided("exim4-localscanapi-6.0"));
        assert!(database.package("vim").is_some_and(|vim| !vim.there()));
        assert!(database.package("exim4-daemon-light:arm64").is_none());
    }
}
