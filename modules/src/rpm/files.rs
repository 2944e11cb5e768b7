//! The files that name repositories of dnf and zypper, and the sections in them. Source: dnf.conf(5), zypper(8).

use crate::ask::text;
use crate::ini::head;
use crate::rpm::Manager;
use crate::{Error, Host};

pub(crate) const DNF_CONF: &str = "/etc/dnf/dnf.conf";
/// Marks what was taken out of service here, so that it can be put back.
const MARK: &str = "# disabled by kubeon-run, named elsewhere: ";
/// dnf's rank of a repository that names none, and zypper's.
const USUAL_PRIORITY: u32 = 99;

/// One file of repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepoFile {
    pub path: String,
    pub text: String,
}

/// One section: a repository, or what dnf itself is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub id: String,
    /// Where in the file, its head included: lines from and to.
    pub span: (usize, usize),
    /// Options as they are written; further lines of a value are joined to it by blanks.
    pub options: Vec<(String, String)>,
}

impl RepoFile {
    /// Reads every file that the host's package manager takes repositories from, and the folder for new ones.
    pub(crate) fn all(host: &dyn Host, manager: Manager) -> Result<(Vec<RepoFile>, String), Error> {
        let mut files = Vec::new();
        let mut folders: Vec<String> = Vec::new();
        match manager {
            Manager::Dnf(_) => {
                let main = RepoFile { path: DNF_CONF.to_owned(), text: text(host, DNF_CONF)? };
                let told = main.sections().into_iter().find(|section| section.id == "main");
                folders.extend(told.map(|main| main.words("reposdir")).unwrap_or_default());
                if folders.is_empty() {
                    folders =
                        ["/etc/yum.repos.d", "/etc/yum/repos.d", "/etc/distro.repos.d"].map(str::to_owned).to_vec();
                }
                files.push(main);
            }
            Manager::Zypper => folders.push("/etc/zypp/repos.d".to_owned()),
        }
        let own = folders[0].clone();
        if matches!(manager, Manager::Dnf(_)) {
            // What dnf 5 lays over the settings of repositories.
            folders.push("/etc/dnf/repos.override.d".to_owned());
        }
        for folder in folders {
            for name in host.list(&folder)?.unwrap_or_default().iter().filter(|name| name.ends_with(".repo")) {
                let path = format!("{folder}/{name}");
                let text = text(host, &path)?;
                files.push(RepoFile { path, text });
            }
        }
        Ok((files, own))
    }

    pub(crate) fn sections(&self) -> Vec<Section> {
        let mut sections: Vec<Section> = Vec::new();
        for (at, line) in self.text.lines().enumerate() {
            if let Some(id) = head(line) {
                sections.push(Section { id: id.trim().to_owned(), span: (at, at + 1), options: Vec::new() });
                continue;
            }
            let Some(section) = sections.last_mut() else { continue };
            section.span.1 = at + 1;
            if line.trim().is_empty() || line.trim_start().starts_with(['#', ';']) {
                continue;
            }
            match line.split_once('=') {
                Some((key, value)) if !line.starts_with([' ', '\t']) => {
                    section.options.push((key.trim().to_ascii_lowercase(), value.trim().to_owned()));
                }
                _ => {
                    if let Some((_, value)) = section.options.last_mut() {
                        value.push(' ');
                        value.push_str(line.trim());
                    }
                }
            }
        }
        sections
    }

    /// Whether something stands before the first section that is no comment: a web page, a list of apt's.
    pub(crate) fn is_strange(&self) -> bool {
        let before = self.text.lines().take_while(|line| head(line).is_none());
        before.map(str::trim).any(|line| !line.is_empty() && !line.starts_with(['#', ';']))
    }

    /// Returns the lines of a section as the file has them.
    pub(crate) fn lines_of(&self, section: &Section) -> Vec<String> {
        let (from, to) = section.span;
        self.text.lines().skip(from).take(to - from).map(str::to_owned).collect()
    }

    /// Returns the file's text with a section out of service.
    pub(crate) fn without(&self, section: &Section) -> String {
        let (from, to) = section.span;
        let marked = |(at, line): (usize, &str)| {
            let plain = line.trim();
            let counts = (from..to).contains(&at) && !plain.is_empty() && !plain.starts_with(['#', ';']);
            if counts { format!("{MARK}{line}\n") } else { format!("{line}\n") }
        };
        self.text.lines().enumerate().map(marked).collect()
    }

    /// Returns the file's text with everything back in service that [`RepoFile::without`] took out.
    pub(crate) fn restored(&self) -> String {
        self.text.replace(MARK, "")
    }
}

impl Section {
    /// Returns an option's value; the last one counts.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.options.iter().rfind(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "1" | "yes" | "true" | "on"))
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.get("enabled").is_none() || self.is_on("enabled")
    }

    /// Returns the rank among repositories: the lowest number comes first.
    pub(crate) fn priority(&self) -> u32 {
        self.get("priority").and_then(|text| text.parse().ok()).unwrap_or(USUAL_PRIORITY)
    }

    /// Returns a list's entries.
    pub(crate) fn words(&self, name: &str) -> Vec<String> {
        let value = self.get(name).unwrap_or_default();
        value.split([' ', '\t', ',']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    /// Whether one of its addresses is this one, for hosts of this architecture.
    pub(crate) fn has_address(&self, address: &str, architecture: &str) -> bool {
        self.words("baseurl").iter().any(|url| expanded(url, architecture) == expanded(address, architecture))
    }
}

/// Returns an address as hosts of this architecture see it, without a slash at its end.
fn expanded(address: &str, architecture: &str) -> String {
    let mut text = address.trim_end_matches('/').to_owned();
    for name in ["$basearch", "${basearch}", "$arch", "${arch}"] {
        text = text.replace(name, architecture);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# mine\n[one]\nname=One\nbaseurl = https://x/$basearch/\n\thttps://y/rpm\nenabled=1\n\n# of two\n[two]\nenabled=0\npriority=7\n";

    #[test]
    fn sections_go_out_of_service_and_come_back() {
        let file = RepoFile { path: "a.repo".into(), text: TEXT.into() };
        let sections = file.sections();
        assert_eq!(
            sections.iter().map(|one| (one.id.as_str(), one.span)).collect::<Vec<_>>(),
            [("one", (1, 8)), ("two", (8, 11))]
        );
        assert!(
            sections[0].has_address("https://x/x86_64", "x86_64")
                && sections[0].has_address("https://y/rpm/", "x86_64")
        );
        assert!(!sections[0].has_address("https://x/aarch64", "x86_64"));
        assert!(sections[0].is_enabled() && !sections[1].is_enabled());
        assert_eq!((sections[0].priority(), sections[1].priority()), (99, 7));
        let off = RepoFile { text: file.without(&sections[0]), ..file.clone() };
        assert_eq!(off.sections().len(), 1);
        assert_eq!(off.restored(), TEXT);
        assert!(!file.is_strange());
        assert!(RepoFile { text: "<!DOCTYPE html>\n[x]\n".into(), ..file }.is_strange());
    }
}
