//! Which tasks may be sent or planned ahead, by what is written.

use std::sync::Arc;

use super::super::handlers;
use super::super::strategy::Batch;
use super::{MOST_TASKS, SendAhead};
use crate::config;
use crate::execute::{PlayRun, World, truth};
use crate::playbook::{Keyword, Task};
use crate::report::HostName;
use crate::value::Value;

/// Modules that look at and change nothing but files and settings of their own host, which no module of this list on
/// another host notices. In alphabetical order.
const STAYS_HOME: &[&str] = &[
    "alternatives",
    "authorized_key",
    "blockinfile",
    "copy",
    "cron",
    "debconf",
    "dpkg_selections",
    "file",
    "find",
    "group",
    "ini_file",
    "kernel_blacklist",
    "known_hosts",
    "lineinfile",
    "locale_gen",
    "modprobe",
    "pam_limits",
    "replace",
    "seboolean",
    "sefcontext",
    "slurp",
    "stat",
    "sysctl",
    "tempfile",
    "timezone",
    "user",
];
/// Further ones whose requests need nothing from here, and whose results are no facts. In alphabetical order.
const GOES_OUT: &[&str] = &[
    "apt",
    "apt_key",
    "apt_repo",
    "apt_repository",
    "command",
    "deb822_repository",
    "dnf",
    "firewalld",
    "get_url",
    "git",
    "iptables",
    "mount",
    "package",
    "pip",
    "rpm_key",
    "rpm_pin",
    "rpm_repo",
    "seport",
    "service",
    "shell",
    "systemd_service",
    "ufw",
    "uri",
    "wait_for",
    "yum_repository",
];
/// Further ones that are planned ahead: their plans look at nothing but their own host, and do not wait for anything. In
/// alphabetical order.
const LOOKS_HOME: &[&str] = &[
    "apt",
    "apt_repo",
    "containerd_runtime",
    "dnf",
    "firewalld",
    "gather_facts",
    "getent",
    "hostname",
    "iptables",
    "mount",
    "nvidia_detect",
    "package",
    "package_facts",
    "pip",
    "rpm_pin",
    "rpm_repo",
    "selinux",
    "seport",
    "service",
    "service_facts",
    "setup",
    "systemd_service",
    "template",
    "ufw",
    "yum_repository",
];
/// Modules whose plans say whether a user's command is to run. In alphabetical order.
const RUNS: &[&str] = &["command", "shell"];
/// What is done here alone, and changes neither this machine nor a host. In alphabetical order.
const HERE: &[&str] = &[
    "add_host",
    "assert",
    "debug",
    "fail",
    "group_by",
    "import_playbook",
    "import_role",
    "import_tasks",
    "include_role",
    "include_tasks",
    "include_vars",
    "set_fact",
    "set_stats",
    "validate_argument_spec",
];
/// Modules that reach their host in ways of their own. In alphabetical order.
const OWN_WAYS: &[&str] = &["raw", "reboot", "synchronize"];
/// Keywords, inherited ones too, that tie a task to other tasks or hosts.
const TIED: &[Keyword] = &[
    Keyword::Debugger,
    Keyword::DelegateFacts,
    Keyword::DelegateTo,
    Keyword::IgnoreUnreachable,
    Keyword::RunOnce,
    Keyword::Throttle,
];
/// Keywords that make a task more than one request.
const REPEATED: &[Keyword] = &[Keyword::Async, Keyword::Delay, Keyword::Poll, Keyword::Retries, Keyword::Until];

/// Which modules may be under way at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Among {
    /// Hosts in step that must not notice one another.
    Others,
    /// No other host waits for this one.
    Nobody,
}

/// Returns the tasks that may be sent along with `task`, which hosts are at: what comes after it when nothing fails.
/// `together` says that these are all hosts that are still at work.
pub(in crate::execute) fn next_of(
    batch: &mut Batch<'_>,
    task: &Arc<Task>,
    group: &[HostName],
    together: bool,
) -> Vec<Arc<Task>> {
    let (world, play) = (batch.world, batch.play);
    let options = &world.options;
    if matches!(options.send_ahead, SendAhead::Off | SendAhead::Plan) || !may_plan(world) {
        return Vec::new();
    }
    let alone = group.len() == 1 && together;
    let among = if alone || options.send_ahead == SendAhead::All { Among::Nobody } else { Among::Others };
    let one_ends_all = options.any_errors_fatal
        || play.value(Keyword::MaxFailPercentage).is_some()
        || task.inherited(Keyword::AnyErrorsFatal).is_some();
    let strategy = super::super::play::strategy(world, play);
    let is_debug = strategy.rsplit('.').next() == Some("debug");
    if !together || is_debug || !alone && one_ends_all || !may_lead(world, play, &group[0], task, among) {
        return Vec::new();
    }
    if group.iter().all(|host| world.sent.holds(host)) {
        return Vec::new();
    }
    let selected = |task: &Task| task.is_handler || super::super::tags::selected(task, options);
    let mut next = batch.cursor(&group[0]).ahead(MOST_TASKS, &selected);
    let fits = |next: &Arc<Task>| {
        is_free(next)
            && (alone || next.inherited(Keyword::AnyErrorsFatal).is_none())
            && (among == Among::Nobody || is_of(STAYS_HOME, next))
    };
    let count = next.iter().take_while(|next| fits(next)).count();
    next.truncate(count);
    next
}

/// Returns whether anything may be asked of hosts before its turn.
pub(in crate::execute) fn may_plan(world: &World) -> bool {
    let options = &world.options;
    let is_told_apart = options.step || options.start_at_task.is_some() || !world.replay.is_empty();
    options.send_ahead != SendAhead::Off && !is_told_apart && !config::is_set("ENABLE_TASK_DEBUGGER")
}

/// Returns whether a task's plan, made before its turn, is as good as one that is made then, where nothing was changed
/// since. In check mode nothing is but planned.
pub(super) fn is_plannable(task: &Task, check: bool) -> bool {
    let name = &*task.action.name;
    task.action.foreign.is_none() && (is_plannable_module(name) || check && RUNS.contains(&name))
}

/// As [`is_plannable`], for what is sent.
pub(in crate::execute) fn is_plannable_module(name: &str) -> bool {
    name != "tempfile" && (STAYS_HOME.binary_search(&name).is_ok() || LOOKS_HOME.binary_search(&name).is_ok())
}

/// Returns whether a task waits for something else, is done for others, or elsewhere.
pub(super) fn is_apart(task: &Task) -> bool {
    let tied = [Keyword::DelegateTo, Keyword::RunOnce, Keyword::Throttle];
    tied.iter().any(|keyword| task.inherited(*keyword).is_some())
        || REPEATED.iter().any(|keyword| task.keywords.get(*keyword).is_some())
}

/// Returns whether what was planned before still holds after a module has run, for which nothing was applied (`looked`) or
/// something was. One that waited for something has seen it change.
pub(in crate::execute) fn is_harmless(module: &str, looked: bool) -> bool {
    looked && (is_plannable_module(module) || RUNS.contains(&module))
}

/// Returns whether a task does more than to send its module: whatever was planned before may be different by now.
pub(in crate::execute) fn acts_elsewhere(task: &Task) -> bool {
    let name = &*task.action.name;
    let is_sent =
        (crate::action::is_module(name) || matches!(name, "gather_facts" | "template")) && !is_of(OWN_WAYS, task);
    task.action.foreign.is_some() || !is_sent && !is_of(HERE, task)
}

/// Returns whether tasks may be under way behind this one: it is one request, and what it means for the host is known
/// from its result alone.
fn may_lead(world: &Arc<World>, play: &Arc<PlayRun>, host: &HostName, task: &Task, among: Among) -> bool {
    let is_quiet = among == Among::Nobody || is_of(STAYS_HOME, task);
    is_free(task) && is_sendable(task) && is_quiet && !ends(world, play, host, task)
}

fn is_of(list: &[&str], task: &Task) -> bool {
    list.binary_search(&&*task.action.name).is_ok()
}

fn is_free(task: &Task) -> bool {
    task.loop_.is_none()
        && &*task.action.name != "meta"
        && TIED.iter().all(|keyword| task.inherited(*keyword).is_none())
        && REPEATED.iter().all(|keyword| task.keywords.get(*keyword).is_none())
        && task.keywords.get(Keyword::Register).is_none_or(|setting| !setting.value.holds_template())
}

/// Returns whether all that the task needs from here is in its arguments.
pub(super) fn is_sendable(task: &Task) -> bool {
    let action = &task.action;
    if action.foreign.is_some() || !is_of(STAYS_HOME, task) && !is_of(GOES_OUT, task) {
        return false;
    }
    // What stands in a file here may be what a task under way writes.
    let is_there = action.args.get("content").is_some() || action.args.get("remote_src").is_some_and(truth);
    &*action.name != "copy" || is_there
}

/// Returns whether nothing may be under way behind this task: whether it fails is told here, or may be.
pub(super) fn ends(world: &Arc<World>, play: &Arc<PlayRun>, host: &HostName, task: &Task) -> bool {
    let decides =
        |keyword: Keyword| task.keywords.get(keyword).is_some_and(|setting| !matches!(setting.value, Value::Bool(_)));
    task.keywords.get(Keyword::FailedWhen).is_some()
        || decides(Keyword::ChangedWhen)
        || task.notifies().iter().any(|name| {
            let is_known = |name: &Value| handlers::is_known(world, play, host, &name.to_string());
            match name {
                Value::List(names) => names.iter().any(|name| name.holds_template() || !is_known(name)),
                name => name.holds_template() || !is_known(name),
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_name_modules() {
        for list in [STAYS_HOME, GOES_OUT, LOOKS_HOME, RUNS, HERE, OWN_WAYS] {
            assert!(list.is_sorted());
            for name in list {
                assert_eq!(crate::action::canonical(name), Some(*name));
            }
        }
        let applies = ["command", "shell", "wait_for", "uri", "k8s_info", "get_url", "git", "reboot", "tempfile"];
        assert!(applies.iter().all(|name| !is_plannable_module(name)));
    }
}
