//! The host's fully qualified name: from `/etc/hosts`, or asked of the resolver for a bounded time.

use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::mpsc;
use std::time::Duration;

use super::Files;
use crate::background::background;

/// How long a name server may take. Without an answer, the host's own name is the best there is.
const NAME_SERVER_LIMIT: Duration = Duration::from_millis(1500);

/// A name that is being looked up while other facts are gathered.
pub(super) struct Lookup {
    node: String,
    found: Option<String>,
    answer: Option<mpsc::Receiver<Option<String>>>,
}

impl Lookup {
    pub(super) fn start(files: Files<'_>, node: &str) -> Lookup {
        let mut lookup = Lookup { node: node.to_owned(), found: None, answer: None };
        let hosts = files.text("/etc/hosts").unwrap_or_default();
        if node.contains('.') {
            lookup.found = Some(node.to_owned());
        } else if let Some(name) = in_hosts(&hosts, node) {
            lookup.found = Some(name);
        } else if files
            .text("/etc/resolv.conf")
            .is_some_and(|text| text.lines().any(|line| line.starts_with("nameserver")))
        {
            let (sender, answer) = mpsc::channel();
            let name = node.to_owned();
            // Left behind when the name server is silent: it ends with the resolver's own timeout.
            background(move || drop(sender.send(canonical(&name))));
            lookup.answer = Some(answer);
        }
        lookup
    }

    pub(super) fn finish(self) -> String {
        let answered = || self.answer?.recv_timeout(NAME_SERVER_LIMIT).ok()?;
        self.found.or_else(answered).unwrap_or(self.node)
    }
}

/// Returns the name that belongs to the address of `node`, as looking up the address gives it: of the first line of
/// `/etc/hosts` with that address the first name that has a domain, or else its first name.
fn in_hosts(hosts: &str, node: &str) -> Option<String> {
    let words = |line: &'_ str| -> Vec<String> {
        let line = line.split('#').next().unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect()
    };
    let lines: Vec<Vec<String>> = hosts.lines().map(words).filter(|words| words.len() > 1).collect();
    let address = &lines.iter().find(|words| words[1..].iter().any(|name| name == node))?[0];
    let names = &lines.iter().find(|words| words[0] == *address)?[1..];
    names.iter().find(|name| name.contains('.')).or(names.first()).cloned()
}

/// Asks the resolver for the canonical name.
fn canonical(name: &str) -> Option<String> {
    let name = CString::new(name).ok()?;
    // SAFETY: addrinfo is plain data for which zeros are a value; the list that getaddrinfo(3) makes is read before
    // it is freed, once.
    unsafe {
        let mut hints: libc::addrinfo = std::mem::zeroed();
        hints.ai_flags = libc::AI_CANONNAME;
        let mut list = ptr::null_mut();
        if libc::getaddrinfo(name.as_ptr(), ptr::null(), &raw const hints, &raw mut list) != 0 || list.is_null() {
            return None;
        }
        let canonical = (*list).ai_canonname;
        let found = (!canonical.is_null()).then(|| CStr::from_ptr(canonical).to_string_lossy().into_owned());
        libc::freeaddrinfo(list);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_domain_wins_on_its_line() {
        let hosts = "127.0.0.1 localhost\n127.0.1.1 n1.example.org n1 # us\n";
        assert_eq!(in_hosts(hosts, "n1").as_deref(), Some("n1.example.org"));
        assert_eq!(in_hosts("10.0.0.1 n1 n1.lab\n", "n1").as_deref(), Some("n1.lab"));
        assert_eq!(in_hosts(hosts, "localhost").as_deref(), Some("localhost"));
        assert_eq!(in_hosts(hosts, "n2"), None);
        assert_eq!(in_hosts("127.0.0.1 localhost\n127.0.0.1 n3\n", "n3").as_deref(), Some("localhost"));
    }
}
