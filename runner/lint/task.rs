//! A task as it is written, whether or not it could run.

use crate::action;
use crate::playbook::{Keyword, Where, parse_key_values};
use crate::source::Place;
use crate::yaml::{Kind, Node};

/// Keys of tasks that are neither keywords nor actions.
const KEYS: &[&str] = &["vars", "loop", "loop_control", "notify", "listen", "args", "block", "rescue", "always"];
/// Keywords that there were once.
const GONE: &[&str] = &["sudo", "sudo_user", "su", "su_user", "always_run", "static"];

/// A task or a handler.
pub struct Task<'a> {
    pub node: &'a Node,
    pub call: Option<Call<'a>>,
    pub is_handler: bool,
    /// What encloses it, the play first; a file of tasks does not tell of its play.
    pub parents: &'a [&'a Node],
}

/// The action that a task calls.
pub struct Call<'a> {
    /// The key that names it.
    pub key: &'a Node,
    /// Its name without a collection's: `shell`, `apt`.
    pub name: String,
    /// What it is given.
    pub value: &'a Node,
    more: Option<&'a Node>,
}

impl<'a> Task<'a> {
    pub(super) fn new(node: &'a Node, is_handler: bool, parents: &'a [&'a Node]) -> Task<'a> {
        Task { node, call: call(node), is_handler, parents }
    }

    /// Returns a key of the task itself, and its value.
    pub fn entry(&self, name: &str) -> Option<(&'a Node, &'a Node)> {
        entry(self.node, name)
    }

    /// Returns whether the task or what encloses it has a key.
    pub fn inherits(&self, name: &str) -> bool {
        self.node.get(name).is_some() || self.parents.iter().any(|parent| parent.get(name).is_some())
    }

    /// Returns whether its play is known.
    pub fn in_play(&self) -> bool {
        self.parents.first().is_some_and(|parent| parent.get("hosts").is_some())
    }

    /// Returns the action, if it is one of these.
    pub fn calls(&self, names: &[&str]) -> Option<&Call<'a>> {
        self.call.as_ref().filter(|call| names.contains(&call.name.as_str()))
    }
}

impl<'a> Call<'a> {
    /// Returns an argument that stands in a mapping.
    pub fn arg(&self, name: &str) -> Option<&'a Node> {
        self.value.get(name).or_else(|| self.more.and_then(|more| more.get(name)))
    }

    /// Returns an argument's text and where it stands, in whichever form the arguments are given.
    pub fn text(&self, name: &str) -> Option<(String, Place)> {
        if let Some(node) = self.arg(name) {
            return Some((node.text(), node.place));
        }
        let (pairs, _) = parse_key_values(self.value.as_str()?).ok()?;
        let (_, text) = pairs.into_iter().find(|(key, _)| key == name)?;
        Some((text.to_string(), self.value.place))
    }

    /// Returns the command line of `command`, `shell` and their like, and the node that it stands in.
    pub fn line(&self) -> Option<(&'a str, &'a Node)> {
        let node = match &self.value.kind {
            Kind::Str { .. } => self.value,
            _ => self.arg("cmd").or_else(|| self.arg("_raw_params"))?,
        };
        node.as_str().map(|text| (text, node))
    }

    /// Returns the name as it is written.
    pub fn written(&self) -> String {
        self.key.text()
    }
}

pub(super) fn entry<'a>(node: &'a Node, name: &str) -> Option<(&'a Node, &'a Node)> {
    node.entries().iter().find(|(key, _)| key.as_str() == Some(name)).map(|(key, value)| (key, value))
}

fn is_key(name: &str) -> bool {
    Keyword::of(name, Where::HANDLER).is_some()
        || Keyword::of(name, Where::TASK).is_some()
        || KEYS.contains(&name)
        || GONE.contains(&name)
        || name.starts_with("with_")
}

/// Returns a name without its collection's; ours where we have it.
fn short(written: &str) -> String {
    match action::canonical(written) {
        Some(name) => name.to_owned(),
        None => written.rsplit('.').next().unwrap_or(written).to_owned(),
    }
}

fn call(node: &Node) -> Option<Call<'_>> {
    let more = node.get("args");
    let (key, value) = node.entries().iter().find(|(key, _)| key.as_str().is_some_and(|name| !is_key(name)))?;
    if matches!(key.as_str(), Some("action" | "local_action")) {
        let module = value.get("module").map(Node::text);
        let name = module.or_else(|| value.as_str()?.split_whitespace().next().map(str::to_owned))?;
        return Some(Call { key, name: short(&name), value, more });
    }
    Some(Call { key, name: short(key.as_str()?), value, more })
}

/// Returns whether a mapping is a task or a block, rather than any other.
pub(super) fn looks_like_one(node: &Node) -> bool {
    if node.get("block").is_some() {
        return true;
    }
    let known = |name: &str| action::canonical(name).is_some() || name.matches('.').count() >= 2 || name == "include";
    call(node).is_some_and(|call| {
        call.key.as_str().is_some_and(|name| known(name) || matches!(name, "action" | "local_action"))
            || (node.get("name").is_some()
                && node.entries().iter().all(|(key, _)| key.as_str().is_some_and(is_key) || key == call.key))
    })
}
