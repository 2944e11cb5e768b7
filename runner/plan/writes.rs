//! What tasks may write on this machine: a file that is not there yet may be there when it is needed.

use std::path::{Path, PathBuf};

use crate::execute::{RunOptions, is_this_machine};
use crate::inventory::{Inventory, joined};
use crate::playbook::{Keyword, Play, Task};
use crate::value::{Map, Value, may_be_template};

/// Actions and modules that leave no file of their own where a playbook would look for one.
const READERS: &[&str] = &[
    "add_host",
    "assert",
    "authorized_key",
    "cron",
    "debug",
    "fail",
    "find",
    "gather_facts",
    "getent",
    "group",
    "group_by",
    "hostname",
    "include_vars",
    "k8s_apply",
    "k8s_drain",
    "k8s_info",
    "k8s_label",
    "known_hosts",
    "meta",
    "modprobe",
    "nvidia_detect",
    "package_facts",
    "pause",
    "ping",
    "reboot",
    "service",
    "service_facts",
    "set_fact",
    "set_stats",
    "setup",
    "slurp",
    "stat",
    "sysctl",
    "systemd_service",
    "tempfile",
    "validate_argument_spec",
    "wait_for",
    "wait_for_connection",
];
/// Modules that write what they name, and the arguments that name it.
const WRITERS: &[(&str, &[&str])] = &[
    ("assemble", &["dest"]),
    ("blockinfile", &["path", "dest", "destfile", "name"]),
    ("copy", &["dest"]),
    ("fetch", &["dest"]),
    ("file", &["path", "dest", "name"]),
    ("get_url", &["dest"]),
    ("lineinfile", &["path", "dest", "destfile", "name"]),
    ("replace", &["path", "dest", "destfile", "name"]),
    ("template", &["dest"]),
    ("unarchive", &["dest"]),
];

/// What was written so far.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// Something ran that may write anywhere.
    anywhere: bool,
    /// Files, and folders with all below them.
    paths: Vec<PathBuf>,
}

impl Writes {
    /// Returns whether a file may have come to be here.
    pub(super) fn may_bring(&self, path: &Path) -> bool {
        let path = absolute(path);
        self.anywhere || self.paths.iter().any(|written| path.starts_with(written) || written.starts_with(&path))
    }

    /// Something that is not known may run.
    pub(super) fn anything(&mut self) {
        self.anywhere = true;
    }

    /// Adds what a task may write.
    pub(super) fn add(&mut self, task: &Task, play: &Play, here: bool) {
        let name = &*task.action.name;
        let here = here || name == "fetch" || runs_here(task);
        let args = &task.action.args;
        if mentions_programs(args) || mentions_programs(&task.vars) {
            return self.anything();
        }
        if !here || READERS.contains(&name) {
            return;
        }
        let Some((_, keys)) = WRITERS.iter().find(|(writer, _)| *writer == name) else { return self.anything() };
        match keys.iter().find_map(|key| args.get(key)) {
            Some(Value::Str(text)) if !may_be_template(text.as_str()) => {
                let path = crate::execute::home_expanded(PathBuf::from(text.as_str()));
                let path = if name == "fetch" { play.folder.join(path) } else { path };
                self.paths.push(absolute(&path));
            }
            Some(_) | None => self.anything(),
        }
    }
}

fn absolute(path: &Path) -> PathBuf {
    // Neither end need be there; links and `..` on the way to what is there are resolved.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let known = path.ancestors().find_map(|part| Some((part, std::fs::canonicalize(part).ok()?)));
    match known {
        Some((part, real)) => path.strip_prefix(part).map_or_else(|_| path.clone(), |rest| real.join(rest)),
        None => path,
    }
}

/// Lookups that run programs or write files.
fn mentions_programs(map: &Map) -> bool {
    fn mentions(value: &Value) -> bool {
        match value {
            Value::Str(text) => {
                text.is_template() && ["pipe", "password"].iter().any(|word| text.as_str().contains(word))
            }
            Value::List(items) => items.iter().any(mentions),
            Value::Map(map) => map.iter().any(|(_, value)| mentions(value)),
            _ => false,
        }
    }
    map.iter().any(|(_, value)| mentions(value))
}

/// Returns whether a task may run on this machine though its play does not.
fn runs_here(task: &Task) -> bool {
    let delegated = task.inherited(Keyword::DelegateTo).is_some_and(|setting| may_name_this_machine(&setting.value));
    let connected = task.inherited(Keyword::Connection).is_some_and(|setting| may_be_local(&setting.value));
    delegated || connected || sets_connection(&task.vars) || task.parents().any(|parent| sets_connection(&parent.vars))
}

fn may_name_this_machine(value: &Value) -> bool {
    let text = value.to_string();
    value.holds_template() || is_this_machine(&text)
}

fn may_be_local(value: &Value) -> bool {
    value.holds_template() || value.to_string().rsplit('.').next() == Some("local")
}

fn sets_connection(vars: &Map) -> bool {
    vars.get("ansible_connection").is_some_and(may_be_local)
        || vars.get("ansible_host").is_some_and(may_name_this_machine)
}

/// Returns whether tasks of a play may run on this machine.
pub(super) fn plays_here(play: &Play, inventory: &Inventory, options: &RunOptions) -> bool {
    let pattern = joined(&play.hosts.value);
    if may_be_template(&pattern) || options.connect.connection == "local" || sets_connection(&options.extra_vars) {
        return true;
    }
    let Ok(hosts) = inventory.select(&pattern, options.limit.as_deref()) else { return true };
    hosts.iter().any(|host| is_this_machine(host) || sets_connection(&inventory.vars_of(host)))
}
