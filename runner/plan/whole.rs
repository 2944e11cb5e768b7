//! What works on all hosts of a play together, or on the machine that runs kubeon-run: where the hosts are spread over
//! several processes, or this machine is a pod, it would mean something else.

use crate::execute::{RunOptions, truth};
use crate::inventory::{Inventory, joined};
use crate::playbook::{Keyword, Play, Setting, Task};
use crate::source::{Diagnostic, Place};
use crate::value::{Value, may_be_template};

/// Names of the machine itself.
const HERE: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// What leaves nothing on the machine on which it runs: these may be delegated to a pod.
const LEAVE_NOTHING: [&str; 17] = [
    "assert",
    "debug",
    "fail",
    "gpu_cluster_facts",
    "k8s",
    "k8s_apply",
    "k8s_drain",
    "k8s_info",
    "k8s_label",
    "meta",
    "pause",
    "ping",
    "set_fact",
    "set_stats",
    "stat",
    "uri",
    "wait_for",
];

/// Returns what of a task a part of a run can't do as all parts together would; `alone` says that the play has but one host.
pub fn of_task(task: &Task, alone: bool) -> Option<Diagnostic> {
    let word = || task.action.args.get("_raw_params").map(ToString::to_string).unwrap_or_default();
    let refused = |place: Place, message: &str| Some(Diagnostic::error(place, message.to_owned()));
    match &*task.action.name {
        "add_host" => {
            return refused(task.place, "`add_host` adds a host for all shards, and only one of them would know it")
                .map(|problem| problem.help("put the host into the inventory"));
        }
        "fetch" => {
            return refused(
                task.place,
                "`fetch` writes to the machine that runs the task, and that is a pod, which goes",
            )
            .map(|problem| problem.help("run this play without `spread`"));
        }
        "pause" if !task.action.args.contains_key("seconds") && !task.action.args.contains_key("minutes") => {
            return refused(task.place, "`pause` asks somebody, and nobody can answer a pod")
                .map(|problem| problem.help("give it `seconds` or `minutes`"));
        }
        "meta" if matches!(word().trim(), "end_play" | "end_batch" | "refresh_inventory") => {
            let message = format!("`meta: {}` is for all hosts of a play, and a shard has some of them", word().trim());
            return Some(Diagnostic::error(task.place, message).help("`end_host` ends the play for the host alone"));
        }
        _ => {}
    }
    if let Some(setting) = task.inherited(Keyword::DelegateTo)
        && HERE.contains(&setting.value.to_string().trim())
        && !LEAVE_NOTHING.contains(&&*task.action.name)
    {
        let message = format!("`{}` would run in a pod, which goes, and not on this machine", task.action.written);
        return Some(Diagnostic::error(setting.place, message).help("run this play without `spread`"));
    }
    if let Some(setting) = task.inherited(Keyword::Debugger).filter(|setting| !is_off(Keyword::Debugger, setting)) {
        return refused(setting.place, "the debugger asks somebody, and nobody can answer a pod");
    }
    of_all_hosts(alone, |keyword| task.inherited(keyword))
}

/// Keywords that say something of all hosts of a play.
fn of_all_hosts<'a>(alone: bool, setting: impl Fn(Keyword) -> Option<&'a Setting>) -> Option<Diagnostic> {
    let what = [
        (Keyword::RunOnce, "does a task once for all hosts of a play, and each shard would do it"),
        (Keyword::AnyErrorsFatal, "stops all hosts of a play when one fails, and a shard does not see the others"),
        (
            Keyword::MaxFailPercentage,
            "counts the failed hosts of a whole play after each task, and a shard sees its own",
        ),
        (
            Keyword::Throttle,
            "says how many hosts of a play may be at a task at a time, and each shard would count its own",
        ),
    ];
    let (keyword, why) =
        what.into_iter().find(|(keyword, _)| setting(*keyword).is_some_and(|found| !is_off(*keyword, found)))?;
    let found = setting(keyword).filter(|_| !alone)?;
    let problem = Diagnostic::error(found.place, format!("`{keyword}` {why}"));
    Some(problem.help(
        "run this play without `spread`, or cut the work into plays with `serial`, which all shards keep together",
    ))
}

/// Returns whether a keyword is set to what it is without it.
fn is_off(keyword: Keyword, setting: &Setting) -> bool {
    let text = setting.value.to_string();
    let number = || text.trim().trim_end_matches('%').parse::<f64>().ok();
    match &setting.value {
        Value::Null | Value::Omit => true,
        value if value.holds_template() => false,
        value if keyword == Keyword::Throttle => number() == Some(0.0) || !truth(value),
        _ if keyword == Keyword::MaxFailPercentage => number().is_some_and(|most| most >= 100.0),
        _ if keyword == Keyword::Debugger => text.trim() == "never",
        value => !truth(value),
    }
}

/// Returns what of plays a spread run can't do.
pub fn check(plays: &[Play], inventory: &Inventory, options: &RunOptions) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    if options.any_errors_fatal {
        let message = "`any_errors_fatal` of the configuration stops all hosts of a play when one fails, and a shard does not \
                       see the others";
        problems.push(Diagnostic::error(Place::default(), message));
    }
    if options.fact_cache.is_some() {
        let message = "`fact_caching = jsonfile` keeps facts in a folder of this machine, which pods do not see";
        problems.push(Diagnostic::error(Place::default(), message).help("set `ANSIBLE_CACHE_PLUGIN=memory`"));
    }
    let mut groups = None;
    for play in plays {
        of_play(play, inventory, options, &mut problems);
        let alone = is_alone(play, inventory, options);
        for items in [&play.pre_tasks, &play.tasks, &play.post_tasks, &play.handlers] {
            super::visit(items, &mut |task| {
                problems.extend(of_task(task, alone));
                if &*task.action.name == "group_by" {
                    groups = Some(task.place);
                }
            });
        }
    }
    for setting in plays.iter().filter_map(|play| play.setting(Keyword::Serial)).filter(|_| groups.is_some()) {
        let message = "`serial` cuts a play's hosts into batches, and after `group_by` each shard knows other groups";
        problems.push(Diagnostic::error(setting.place, message));
    }
    problems
}

/// Returns whether a play surely works on one host at most.
fn is_alone(play: &Play, inventory: &Inventory, options: &RunOptions) -> bool {
    let pattern = joined(&play.hosts.value);
    !may_be_template(&pattern)
        && inventory.select(&pattern, options.limit.as_deref()).is_ok_and(|hosts| hosts.len() <= 1)
}

fn of_play(play: &Play, inventory: &Inventory, options: &RunOptions, problems: &mut Vec<Diagnostic>) {
    let pattern = joined(&play.hosts.value);
    let hosts = inventory.select(&pattern, options.limit.as_deref()).unwrap_or_default();
    if !may_be_template(&pattern) && hosts.iter().any(|host| !inventory.contains(host)) {
        let message = format!("`hosts: {pattern}` is the machine that runs kubeon-run, and that would be a pod");
        problems.push(Diagnostic::error(play.hosts.place, message).help("run this play without `spread`"));
    }
    let alone = is_alone(play, inventory, options);
    problems.extend(of_all_hosts(alone, |keyword| play.setting(keyword)));
    for prompt in &play.vars_prompt {
        if !options.extra_vars.contains_key(&prompt.name) {
            let message = format!("`vars_prompt` asks for `{}`, and nobody can answer a pod", prompt.name);
            problems.push(Diagnostic::error(play.place, message).help("give the variable with `-e`"));
        }
    }
    let shuffled = play.setting(Keyword::Order).filter(|order| {
        let order = order.value.to_string();
        order.trim() == "shuffle" || may_be_template(&order)
    });
    if let (Some(order), Some(_)) = (shuffled, play.setting(Keyword::Serial)) {
        let message = "`order: shuffle` with `serial` gives each shard other batches";
        problems.push(Diagnostic::error(order.place, message));
    }
}
