//! The user's `~/.ssh/config`: what it says about one host. Source: `ssh_config(5)`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use super::pattern::{glob, list_matches};

/// How deep files may include others. Source: `READCONF_MAX_DEPTH` of OpenSSH.
const DEPTH_LIMIT: usize = 16;

/// The settings of one host: for each keyword, in lower case, its values as written, the first first.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    values: HashMap<String, Vec<String>>,
    /// Why this reader does not know what applies.
    pub beyond: Option<String>,
}

impl Settings {
    /// Returns the value that counts: the first.
    pub fn first(&self, keyword: &str) -> Option<&str> {
        self.values.get(keyword)?.first().map(String::as_str)
    }

    /// Returns every value of a keyword that gathers them.
    pub fn all(&self, keyword: &str) -> &[String] {
        self.values.get(keyword).map_or(&[], Vec::as_slice)
    }

    pub fn keywords(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// Adds a value after those that are there.
    pub fn add(&mut self, keyword: &str, value: &str) {
        self.values.entry(keyword.to_ascii_lowercase()).or_default().push(value.to_owned());
    }
}

/// Who asks for which host.
pub(super) struct Asked<'a> {
    /// As given to `ssh`.
    pub host: &'a str,
    /// The login name where it is given; a file may name another.
    pub user: Option<&'a str>,
    pub local_user: &'a str,
    pub home: &'a Path,
}

/// Adds what `files` say about a host, the earlier ones first. Files that can't be read say nothing.
pub(super) fn read(files: &[PathBuf], asked: &Asked<'_>, settings: &mut Settings) {
    for path in files {
        let folder = if path.starts_with("/etc") { PathBuf::from("/etc/ssh") } else { asked.home.join(".ssh") };
        let mut reader = Reader { asked, settings, folder, active: true };
        reader.file(path, 0);
    }
}

/// Returns a file's text, read once in this process: thousands of hosts ask for the same.
fn text_of(path: &Path) -> Option<String> {
    static READ: LazyLock<Mutex<HashMap<PathBuf, Option<String>>>> = LazyLock::new(Mutex::default);
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    read.entry(path.to_owned()).or_insert_with(|| fs::read_to_string(path).ok()).clone()
}

struct Reader<'a> {
    asked: &'a Asked<'a>,
    settings: &'a mut Settings,
    /// What relative names of included files start from.
    folder: PathBuf,
    /// Whether the block that is being read is about this host.
    active: bool,
}

impl Reader<'_> {
    fn file(&mut self, path: &Path, depth: usize) {
        let Some(text) = text_of(path) else { return };
        for line in text.lines() {
            let Some((keyword, rest)) = split_keyword(line) else { continue };
            match keyword.as_str() {
                "host" => self.active = self.host(rest),
                "match" => self.active = self.matches(rest),
                "include" if self.active => self.include(rest, depth),
                _ if self.active => {
                    let value = words(rest).join(" ");
                    self.settings.add(&keyword, if is_raw(&keyword) { rest } else { &value });
                }
                _ => {}
            }
        }
    }

    fn host(&self, rest: &str) -> bool {
        list_matches(words(rest).iter().map(String::as_str), self.asked.host)
    }

    /// Whether all criteria of a `Match` hold. Those of a second pass never do: none is made.
    fn matches(&mut self, rest: &str) -> bool {
        let words = words(rest);
        let mut words = words.iter();
        let mut holds = true;
        while let Some(criterion) = words.next() {
            let (negated, criterion) = match criterion.strip_prefix('!') {
                Some(rest) => (true, rest),
                None => (false, criterion.as_str()),
            };
            let (name, given) = match criterion.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (criterion, None),
            };
            let one = match name.to_ascii_lowercase().as_str() {
                "all" => true,
                "final" | "canonical" => false,
                other => {
                    let value = given.or_else(|| words.next().cloned()).unwrap_or_default();
                    let text = match other {
                        "originalhost" => Some(self.asked.host.to_owned()),
                        "host" => Some(self.settings.first("hostname").unwrap_or(self.asked.host).to_owned()),
                        "user" => {
                            let user = self.asked.user.or(self.settings.first("user"));
                            Some(user.unwrap_or(self.asked.local_user).to_owned())
                        }
                        "localuser" => Some(self.asked.local_user.to_owned()),
                        _ => None,
                    };
                    match text {
                        Some(text) => list_matches(value.split(','), &text),
                        // What decides it matters only where the other criteria hold.
                        None if holds => {
                            self.settings.beyond = Some(format!("`Match {other}` in the SSH configuration"));
                            false
                        }
                        None => false,
                    }
                }
            };
            holds &= one != negated;
        }
        holds
    }

    fn include(&mut self, rest: &str, depth: usize) {
        if depth >= DEPTH_LIMIT {
            return;
        }
        for name in words(rest) {
            let path = match name.strip_prefix("~/") {
                Some(rest) => self.asked.home.join(rest),
                None => self.folder.join(&name),
            };
            for path in expand(&path) {
                let active = self.active;
                self.file(&path, depth + 1);
                self.active = active;
            }
        }
    }
}

/// Returns the existing files that a path with wildcards names, sorted.
fn expand(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in path.components() {
        let name = part.as_os_str().to_string_lossy();
        if !name.contains(['*', '?']) {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        let mut next = Vec::new();
        for folder in &found {
            let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
            let names = entries.map(|entry| entry.file_name());
            let hidden = name.starts_with('.');
            next.extend(
                names
                    .filter(|entry| entry.to_string_lossy().starts_with('.') == hidden)
                    .filter(|entry| glob(name.as_bytes(), entry.to_string_lossy().as_bytes()))
                    .map(|entry| folder.join(entry)),
            );
        }
        next.sort();
        found = next;
    }
    found
}

/// Splits a line into its keyword, in lower case, and the rest; `None` for comments and empty lines.
fn split_keyword(line: &str) -> Option<(String, &str)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let end = line.find(|c: char| c.is_ascii_whitespace() || c == '=').unwrap_or(line.len());
    let rest = line[end..].trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    Some((line[..end].to_ascii_lowercase(), rest))
}

/// Whether a keyword's value is a command line, taken as it is.
fn is_raw(keyword: &str) -> bool {
    matches!(keyword, "proxycommand" | "localcommand" | "remotecommand" | "knownhostscommand")
}

/// Splits a value at spaces, quotes taken off, up to a comment.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '\\') => {
                let next = rest.clone().next();
                match next.filter(|next| matches!(next, '"' | '\'' | '\\') || (quote.is_none() && *next == ' ')) {
                    Some(next) => {
                        rest.next();
                        word.get_or_insert_default().push(next);
                    }
                    None => word.get_or_insert_default().push(c),
                }
            }
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_ascii_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str, host: &str) -> Settings {
        // A path of its own each time: a process reads a file once.
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("kubeon-config-{}-{next}", std::process::id()));
        fs::create_dir_all(folder.join(".ssh/more")).expect("a folder");
        let path = folder.join(".ssh/config");
        fs::write(&path, text).expect("write");
        fs::write(folder.join(".ssh/more/a.conf"), "Port 2022\nHost other\n  User nobody\n").expect("write");
        let asked = Asked { host, user: None, local_user: "me", home: &folder };
        let mut settings = Settings::default();
        read(&[path], &asked, &mut settings);
        fs::remove_dir_all(folder).expect("remove");
        settings
    }

    #[test]
    fn the_first_value_of_a_block_that_matches_counts() {
        let text = "Host web* !web9\n  HostName = 10.0.0.1\n  User \"a b\" # who\nHost *\n  HostName 10.0.0.2\n\
                    IdentityFile ~/.ssh/a\nIdentityFile ~/.ssh/b\nProxyCommand nc \"%h\" %p\n";
        let web1 = settings(text, "web1");
        assert_eq!((web1.first("hostname"), web1.first("user")), (Some("10.0.0.1"), Some("a b")));
        assert_eq!(web1.all("identityfile"), ["~/.ssh/a", "~/.ssh/b"]);
        assert_eq!(web1.first("proxycommand"), Some("nc \"%h\" %p"));
        let web9 = settings(text, "web9");
        assert_eq!((web9.first("hostname"), web9.first("user")), (Some("10.0.0.2"), None));
    }

    #[test]
    fn an_include_belongs_to_its_block_and_ends_with_its_file() {
        let text = "Host h1\n  Include more/*.conf\n  User root\n";
        let found = settings(text, "h1");
        assert_eq!((found.first("port"), found.first("user")), (Some("2022"), Some("root")));
        assert_eq!(settings(text, "h2"), Settings::default());
    }

    #[test]
    fn match_is_judged_as_far_as_it_can_be() {
        let text = "Match host db* user me\n  Port 1\nMatch final all\n  Ciphers x\nMatch host h3 exec \"true\"\n  Port 2\n\
                    Match all\n  Port 3\n";
        assert_eq!(settings(text, "db1").first("port"), Some("1"));
        assert_eq!(settings(text, "h2"), {
            let mut expected = Settings::default();
            expected.add("port", "3");
            expected
        });
        assert!(settings(text, "h3").beyond.is_some());
    }
}
