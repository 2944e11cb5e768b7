//! Keywords whose value is one of a few words: those that are known, and those that are refused by name.

use super::keyword::Keyword;
use crate::source::Diagnostic;
use crate::value::may_be_template;
use crate::yaml::{Kind, Node};

/// The strategies that there are.
pub const STRATEGIES: &[&str] = &["linear", "free", "host_pinned", "debug"];
/// Orders in which a play takes its hosts.
pub const ORDERS: &[&str] = &["inventory", "reverse_inventory", "sorted", "reverse_sorted", "shuffle"];
/// Ways to become another user.
pub const BECOME_METHODS: &[&str] = &["sudo", "su", "doas"];
/// Ways to reach a host. Those of one line are the same here.
pub const CONNECTIONS: &[&str] = &[
    "ssh",
    "smart",
    "paramiko",
    "paramiko_ssh",
    "ssh2", //
    "openssh",
    "local",
    "docker",
    "podman",
    "chroot",
    "kubectl",
];
/// After which ends of a task the debugger comes up.
const DEBUGGER: &[&str] = &["always", "never", "on_failed", "on_unreachable", "on_skipped"];

/// Returns the mistake in a keyword's value as written, if there is one. Templates are judged when they are rendered.
pub(super) fn check(keyword: Keyword, node: &Node) -> Option<Diagnostic> {
    if keyword == Keyword::Serial {
        return serial(node);
    }
    let word = node.as_str().filter(|word| !may_be_template(word) && !word.is_empty())?;
    let known = known(keyword)?;
    let message = misnamed(keyword, word)?;
    let problem = Diagnostic::error(node.place, message).width(word.chars().count());
    Some(match crate::source::nearest(word, known.iter().copied()) {
        Some(meant) => problem.help(format!("did you mean `{meant}`?")),
        None => problem,
    })
}

/// Returns the words that a keyword may have for its value, where it is such a keyword.
fn known(keyword: Keyword) -> Option<&'static [&'static str]> {
    let table = [
        (Keyword::BecomeMethod, BECOME_METHODS),
        (Keyword::Connection, CONNECTIONS),
        (Keyword::Debugger, DEBUGGER),
        (Keyword::Order, ORDERS),
        (Keyword::Strategy, STRATEGIES),
    ];
    table.into_iter().find(|(other, _)| *other == keyword).map(|(_, words)| words)
}

/// Returns what to say of a keyword's value that is none of its words. The name of a plugin may have its collection's
/// before it.
pub fn misnamed(keyword: Keyword, word: &str) -> Option<String> {
    let known = known(keyword)?;
    let short = word.rsplit('.').next().unwrap_or(word);
    (!known.contains(&short)).then(|| format!("`{keyword}: {word}` is not supported: `{}` are", known.join("`, `")))
}

/// Numbers, percentages, or a list of both.
fn serial(node: &Node) -> Option<Diagnostic> {
    match &node.kind {
        Kind::List(items) => items.iter().find_map(serial),
        Kind::Int(_) | Kind::Float(_) | Kind::Null => None,
        Kind::Str { text, .. } => {
            let number = text.trim().trim_end_matches('%').parse::<f64>().is_ok();
            (!number && !may_be_template(text)).then(|| {
                let message = format!("`serial` is a number of hosts, a percentage or a list of them, not `{text}`");
                Diagnostic::error(node.place, message)
            })
        }
        Kind::Map(_) | Kind::Bool(_) | Kind::Vault(_) => {
            let message = format!("`serial` is a number of hosts, a percentage or a list of them, not {}", node.what());
            Some(Diagnostic::error(node.place, message))
        }
    }
}
