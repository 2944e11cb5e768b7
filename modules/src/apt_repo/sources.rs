//! The files that name apt's repositories, in both of their formats. Source: sources.list(5).

use crate::{Error, Host};

const MAIN: &str = "/etc/apt/sources.list";
pub(super) const FOLDER: &str = "/etc/apt/sources.list.d";
/// Marks what this module took out of service, so that it can be put back.
const MARK: &str = "# disabled by kubeon-run, named elsewhere: ";
const STANZA_MARK: &str = "# disabled by kubeon-run, named elsewhere\nEnabled: no\n";

/// One file of repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub path: String,
    pub text: String,
}

/// One repository, or several that share a stanza.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Where in the file: bytes from and to.
    span: (usize, usize),
    pub uris: Vec<String>,
    pub suites: Vec<String>,
    pub signed_by: Option<String>,
}

/// What a repository is called by apt itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    pub uri: &'a str,
    pub suite: &'a str,
    pub architecture: &'a str,
}

impl Source {
    /// Reads every file that apt reads.
    pub(super) fn all(host: &dyn Host) -> Result<Vec<Source>, Error> {
        let mut paths = vec![MAIN.to_owned()];
        let names = host.list(FOLDER)?.unwrap_or_default();
        let known = |name: &String| name.ends_with(".list") || name.ends_with(".sources");
        paths.extend(names.into_iter().filter(known).map(|name| format!("{FOLDER}/{name}")));
        let mut sources = Vec::new();
        for path in paths {
            if let Some(bytes) = host.read(&path)? {
                sources.push(Source { path, text: String::from_utf8_lossy(&bytes).into_owned() });
            }
        }
        Ok(sources)
    }

    pub(super) fn is_deb822(&self) -> bool {
        self.path.ends_with(".sources")
    }

    /// Returns the entries that are in service; lines that are no entries are left out.
    pub(super) fn entries(&self) -> Vec<Entry> {
        if self.is_deb822() { self.stanzas() } else { self.lines() }
    }

    fn lines(&self) -> Vec<Entry> {
        let mut at = 0;
        let mut entries = Vec::new();
        for line in self.text.split_inclusive('\n') {
            let span = (at, at + line.len());
            at = span.1;
            let bare = line.split('#').next().unwrap_or_default().trim();
            let Some(rest) = bare.strip_prefix("deb").filter(|rest| rest.starts_with([' ', '\t', '['])) else {
                continue;
            };
            let rest = rest.trim_start();
            let (options, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                Some((options, rest)) => (options, rest),
                None => ("", rest),
            };
            let mut words = rest.split_whitespace();
            let (Some(uri), Some(suite)) = (words.next(), words.next()) else { continue };
            let signed_by = options.split_whitespace().find_map(|option| option.strip_prefix("signed-by="));
            entries.push(Entry {
                span,
                uris: vec![uri.to_owned()],
                suites: vec![suite.to_owned()],
                signed_by: signed_by.map(str::to_owned),
            });
        }
        entries
    }

    fn stanzas(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut start = 0;
        let mut at = 0;
        let mut lines: Vec<&str> = Vec::new();
        for line in self.text.split_inclusive('\n').chain([""]) {
            if !line.trim().is_empty() {
                lines.push(line);
                at += line.len();
                continue;
            }
            if let Some(entry) = stanza(&lines, (start, at)) {
                entries.push(entry);
            }
            lines.clear();
            at += line.len();
            start = at;
        }
        entries
    }

    /// Returns the file's text with an entry out of service.
    pub(super) fn without(&self, entry: &Entry) -> String {
        let (from, to) = entry.span;
        if self.is_deb822() {
            return format!("{}{STANZA_MARK}{}", &self.text[..from], &self.text[from..]);
        }
        format!("{}{MARK}{}{}", &self.text[..from], &self.text[from..to], &self.text[to..])
    }

    /// Returns the file's text with everything back in service that [`Source::without`] took out.
    pub(super) fn restored(&self) -> String {
        self.text.replace(MARK, "").replace(STANZA_MARK, "")
    }
}

fn stanza(lines: &[&str], span: (usize, usize)) -> Option<Entry> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in lines.iter().filter(|line| !line.starts_with('#')) {
        match line.split_once(':') {
            Some((key, value)) if !line.starts_with([' ', '\t']) => {
                fields.push((key.trim().to_ascii_lowercase(), value.trim().to_owned()));
            }
            _ => {
                let (_, value) = fields.last_mut()?;
                value.push(' ');
                value.push_str(line.trim());
            }
        }
    }
    let value = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let words = |name: &str| value(name).unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let off = value("enabled").is_some_and(|said| matches!(said.to_ascii_lowercase().as_str(), "no" | "false" | "0"));
    if off || !words("types").iter().any(|kind| kind == "deb") {
        return None;
    }
    Some(Entry { span, uris: words("uris"), suites: words("suites"), signed_by: value("signed-by").map(str::to_owned) })
}

impl Named<'_> {
    /// Returns the address under which apt knows the repository, without a slash at its end.
    pub(super) fn address(&self) -> String {
        address(self.uri, self.suite, self.architecture)
    }

    /// Whether an entry names this repository, and whether it names others too.
    pub(super) fn is_in(&self, entry: &Entry) -> Option<bool> {
        let mut addresses = Vec::new();
        for uri in &entry.uris {
            addresses.extend(entry.suites.iter().map(|suite| address(uri, suite, self.architecture)));
        }
        addresses.contains(&self.address()).then_some(addresses.len() > 1)
    }
}

/// A suite that ends with a slash is a folder below the address; another is a name, set apart by a blank.
fn address(uri: &str, suite: &str, architecture: &str) -> String {
    let expand = |text: &str| text.replace("$(ARCH)", architecture);
    let uri = expand(uri);
    let uri = uri.trim_end_matches('/');
    match expand(suite).strip_suffix('/') {
        Some(folder) => {
            format!("{uri}/{}", folder.trim_start_matches("./").trim_matches('/')).trim_end_matches('/').to_owned()
        }
        None => format!("{uri} {}", expand(suite)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NVIDIA: Named<'_> = Named {
        uri: "https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH)",
        suite: "/",
        architecture: "amd64",
    };

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn the_same_repository_in_both_formats() {
        let list = source(
            "a.list",
            "# deb https://x /\ndeb [arch=amd64 signed-by=/k.gpg] https://nvidia.github.io/libnvidia-container/stable/deb/amd64/ /\ndeb-src https://x /\n",
        );
        let entries = list.entries();
        assert_eq!((entries.len(), entries[0].signed_by.as_deref()), (1, Some("/k.gpg")));
        assert_eq!(NVIDIA.is_in(&entries[0]), Some(false));
        let text = "Types: deb\nURIs: https://nvidia.github.io/libnvidia-container/stable/deb/amd64\nSuites: /\nSigned-By: /k2.gpg\n";
        let deb822 = source(
            "a.sources",
            &format!(
                "# top\nTypes: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\n bookworm-updates\nComponents: main\n\n{text}"
            ),
        );
        let entries = deb822.entries();
        assert_eq!(entries.iter().map(|entry| NVIDIA.is_in(entry)).collect::<Vec<_>>(), [None, Some(false)]);
        assert_eq!(entries[0].suites, ["bookworm", "bookworm-updates"]);
        let off = source("a.sources", &deb822.without(&entries[1]));
        assert_eq!(off.entries().len(), 1);
        assert_eq!(off.restored(), deb822.text);
        let off = source("a.list", &list.without(&list.entries()[0]));
        assert!(off.entries().is_empty());
        assert_eq!(off.restored(), list.text);
    }

    #[test]
    fn other_paths_are_other_repositories() {
        let old = source(
            "a.list",
            "deb https://nvidia.github.io/libnvidia-container/stable/ubuntu18.04/$(ARCH) /\ndeb https://nvidia.github.io/libnvidia-container/stable/deb/ /\n",
        );
        assert!(old.entries().iter().all(|entry| NVIDIA.is_in(entry).is_none()));
        assert!(source("a.list", "<!DOCTYPE html>\n<html>\n").entries().is_empty());
    }
}
