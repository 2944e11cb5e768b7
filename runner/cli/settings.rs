//! Puts flags, environment and configuration file together: what is typed wins, then the environment, then the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::config::Config;
use super::run_args::RunArguments;
use super::{Problem, connect, extra_vars, unfollowed, vault_passwords};
use crate::execute::{Gathering, RunOptions, SendAhead, Shard, Strangers};
use crate::inventory::{Enabled, GroupNames, Plugin, Reading};
use crate::playbook::{Keyword, Options, words};
use crate::source::Diagnostic;
use crate::value::Map;
use crate::vars::FactCache;

/// How many hosts are worked on at once unless somebody says otherwise: threads wait on sockets, not on cores.
const DEFAULT_FORKS: usize = 50;
/// How often an `async` task is asked after.
const DEFAULT_POLL_S: f64 = 15.0;

/// Everything that one invocation needs to know.
pub struct Settings {
    pub run: RunOptions,
    pub load: Options,
    pub config: Config,
    pub inventory: Vec<String>,
    /// Settings that are not followed.
    pub problems: Vec<Diagnostic>,
}

/// Returns the inventories to read: those named, else the configured ones, else `inventory/` of this folder.
pub fn inventories(config: &Config, given: Vec<String>) -> Vec<String> {
    if !given.is_empty() {
        return given;
    }
    if let Some(text) = config.get(&["ANSIBLE_INVENTORY"], "defaults", "inventory") {
        let base = config.path.as_ref().and_then(|path| path.parent()).map(Path::to_owned).unwrap_or_default();
        if text.contains(',') {
            let parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
            if parts.iter().all(|part| base.join(part).exists()) {
                return parts.iter().map(|part| base.join(part).display().to_string()).collect();
            }
            return vec![text];
        }
        let path = base.join(crate::execute::home_expanded(PathBuf::from(&text)));
        return vec![path.display().to_string()];
    }
    for usual in ["inventory", "/etc/ansible/hosts"] {
        if Path::new(usual).exists() {
            return vec![usual.to_owned()];
        }
    }
    Vec::new()
}

fn listed(given: &[String]) -> Vec<String> {
    given
        .iter()
        .flat_map(|text| text.split(','))
        .map(|tag| tag.trim().to_owned())
        .filter(|tag| !tag.is_empty())
        .collect()
}

/// Puts a run's settings together.
pub fn gather(args: &RunArguments) -> Result<Settings, Problem> {
    let config = Config::find().map_err(Problem::new)?;
    crate::config::establish(&config);
    let reach = &args.reach;
    let vault = Arc::new(vault_passwords::known(&config, &reach.vault)?);
    crate::vault::establish(&vault);
    let extra_vars = Arc::new(extra_vars::read(&reach.extra_vars, &vault)?);
    let inventory = inventories(&config, reach.inventory.clone());
    let get = |variables: &[&str], section: &str, key: &str| config.get(variables, section, key);
    let number = number_of;
    let problems = unfollowed::check(&config);
    let forks = match reach.forks {
        Some(forks) => forks,
        None => number(get(&["ANSIBLE_FORKS"], "defaults", "forks"), "forks", DEFAULT_FORKS as f64)? as usize,
    };
    if forks == 0 {
        return Err(Problem::usage("`forks` is 0: no host could be worked on"));
    }
    let tags = if args.tags.is_empty() {
        get(&["ANSIBLE_RUN_TAGS"], "tags", "run").into_iter().collect()
    } else {
        args.tags.clone()
    };
    let skip = if args.skip_tags.is_empty() {
        get(&["ANSIBLE_SKIP_TAGS"], "tags", "skip").into_iter().collect()
    } else {
        args.skip_tags.clone()
    };
    let limit = reach.limit.last().cloned();
    // One that names nobody at all limits nothing, as in Ansible.
    let limit = limit.filter(|limit| limit.contains(|c: char| c != ',' && !c.is_whitespace()));
    let folder = args.playbooks.first().and_then(|path| path.parent()).filter(|path| !path.as_os_str().is_empty());
    let verbosity = match args.verbose {
        0 => number(get(&["ANSIBLE_VERBOSITY"], "defaults", "verbosity"), "verbosity", 0.0)? as u8,
        given => given,
    };
    let run = RunOptions {
        check: args.check,
        diff: args.diff || config.flag(&["ANSIBLE_DIFF_ALWAYS"], "diff", "always", false)?,
        forks,
        verbosity,
        tags: listed(&tags),
        skip_tags: listed(&skip),
        limit,
        extra_vars: extra_vars.clone(),
        inventory_sources: inventory.clone(),
        inventory_reading: reading(&config, &extra_vars)?,
        config_file: config.path.clone(),
        folder: folder.map_or_else(|| PathBuf::from("."), Path::to_owned),
        start_at_task: args.start_at_task.clone(),
        step: args.step,
        force_handlers: args.force_handlers
            || config.flag(&["ANSIBLE_FORCE_HANDLERS"], "defaults", "force_handlers", false)?,
        error_on_missing_handler: config.flag(
            &["ANSIBLE_ERROR_ON_MISSING_HANDLER"],
            "defaults",
            "error_on_missing_handler",
            true,
        )?,
        any_errors_fatal: config.flag(&["ANSIBLE_ANY_ERRORS_FATAL"], "defaults", "any_errors_fatal", false)?,
        gathering: gathering(&config)?,
        inject_facts: config.flag(&["ANSIBLE_INJECT_FACT_VARS"], "defaults", "inject_facts_as_vars", true)?,
        includes_publish: get(&["ANSIBLE_PRIVATE_ROLE_VARS"], "defaults", "private_role_vars")
            .is_some_and(|private| !crate::execute::truth(&private.into())),
        no_log: config.flag(&["ANSIBLE_NO_LOG"], "defaults", "no_log", false)?,
        poll_s: number(get(&["ANSIBLE_POLL_INTERVAL"], "defaults", "poll_interval"), "poll_interval", DEFAULT_POLL_S)?,
        strangers: strangers(&config)?,
        fact_cache: fact_cache(&config, &number)?,
        default_strategy: strategy(&config)?,
        send_ahead: send_ahead(&config)?,
        connect: connect::options(reach, &config, &number)?,
        shard: shard(args)?,
    };
    let folders = |variables: &[&str], key: &str, usual: &[&str]| {
        config
            .paths(variables, "defaults", key)
            .unwrap_or_else(|| usual.iter().map(|path| crate::execute::home_expanded(PathBuf::from(path))).collect())
    };
    let load = Options {
        roles_path: folders(
            &["ANSIBLE_ROLES_PATH"],
            "roles_path",
            &["~/.ansible/roles", "/usr/share/ansible/roles", "/etc/ansible/roles"],
        ),
        collections_path: folders(
            &["ANSIBLE_COLLECTIONS_PATH", "ANSIBLE_COLLECTIONS_PATHS"],
            "collections_path",
            &["~/.ansible/collections", "/usr/share/ansible/collections"],
        ),
        library: module_path(args, &config),
        extra_vars,
        vault,
        private_role_vars: config.flag(&["ANSIBLE_PRIVATE_ROLE_VARS"], "defaults", "private_role_vars", false)?,
    };
    Ok(Settings { run, load, config, inventory, problems })
}

/// Returns the part of the hosts that this process works on.
fn shard(args: &RunArguments) -> Result<Option<Shard>, Problem> {
    let shard = args.shard.as_deref().map(|text| Shard::parse(text, args.gate.clone()));
    shard.transpose().map_err(|message| Problem::usage(format!("`--shard`: {message}")))
}

/// Returns the number that a setting is, or what it is where nobody set it.
fn number_of(text: Option<String>, what: &str, usual: f64) -> Result<f64, Problem> {
    match text {
        None => Ok(usual),
        Some(text) => {
            text.trim().parse::<f64>().map_err(|_| Problem::usage(format!("{what} is `{text}`, not a number")))
        }
    }
}

/// Refuses a setting whose value is none of the words that are known.
fn one_of(
    config: &Config,
    variable: &str,
    section: &str,
    key: &str,
    known: &[&str],
) -> Result<Option<String>, Problem> {
    match unfollowed::word(config, &[variable], section, key, known) {
        Some(problem) => Err(Problem::usage(problem.render(false).trim_start_matches("error: "))),
        None => Ok(config.get(&[variable], section, key).map(|word| word.trim().to_owned())),
    }
}

/// Returns how inventories are read.
pub fn reading(config: &Config, extra_vars: &Arc<Map>) -> Result<Reading, Problem> {
    let how = one_of(config, "ANSIBLE_HASH_BEHAVIOUR", "defaults", "hash_behaviour", &["replace", "merge"])?;
    let list = |variable: &str, key: &str, old: &str| {
        let text = config.get(&[variable], "inventory", key).or_else(|| config.get(&[], "defaults", old));
        text.map(|text| {
            text.split([',', '\n']).map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
        })
    };
    let patterns: Vec<String> =
        list("ANSIBLE_INVENTORY_IGNORE_REGEX", "ignore_patterns", "inventory_ignore_patterns").unwrap_or_default();
    let (enabled, warnings) = enabled_plugins(config);
    let compiled =
        patterns.iter().map(|pattern| fancy_regex::Regex::new(pattern).map(Arc::new)).collect::<Result<_, _>>();
    Ok(Reading {
        merge: how.as_deref() == Some("merge"),
        ignored_endings: list("ANSIBLE_INVENTORY_IGNORE", "ignore_extensions", "inventory_ignore_extensions"),
        ignored_names: compiled.map_err(|error| Problem::usage(format!("`ignore_patterns`: {error}")))?,
        enabled,
        group_names: group_names(config)?,
        silent_scripts: !config.flag(
            &["ANSIBLE_INVENTORY_PLUGIN_SCRIPT_STDERR"],
            "inventory_plugin_script",
            "always_show_stderr",
            true,
        )?,
        extra_vars: extra_vars.clone(),
        // One that is not supported is refused where facts are kept.
        fact_cache: fact_cache(config, &number_of).unwrap_or_default(),
        warnings,
    })
}

/// Returns the inventory plugins that may read sources, and warnings of those that are not here.
fn enabled_plugins(config: &Config) -> (Enabled, Vec<Diagnostic>) {
    const WHERE: (&[&str], &str, &str) = (&["ANSIBLE_INVENTORY_ENABLED"], "inventory", "enable_plugins");
    let text = config.get(WHERE.0, WHERE.1, WHERE.2).unwrap_or_default();
    let (mut plugins, mut warnings) = (Vec::new(), Vec::new());
    for name in text.split([',', '\n']).map(str::trim).filter(|name| !name.is_empty()) {
        match Plugin::named(name) {
            Some(plugin) => plugins.push(plugin),
            None => {
                let (place, setting) = config.origin(WHERE.0, WHERE.1, WHERE.2);
                let message =
                    format!("`{setting}` names the inventory plugin `{name}`, which is not here and is passed over");
                let problem = Diagnostic::warning(place, message);
                warnings.push(match Plugin::nearest(name) {
                    Some(meant) => problem.help(format!("did you mean `{meant}`?")),
                    None => problem,
                });
            }
        }
    }
    (Enabled::new(plugins), warnings)
}

fn group_names(config: &Config) -> Result<GroupNames, Problem> {
    let known = ["always", "never", "ignore", "silently"];
    let (variable, key) = ("ANSIBLE_TRANSFORM_INVALID_GROUP_CHARS", "force_valid_group_names");
    Ok(match one_of(config, variable, "defaults", key, &known)?.as_deref() {
        Some("always") => GroupNames::Changed,
        Some("never") => GroupNames::Told,
        Some("silently") => GroupNames::ChangedSilently,
        Some(_) | None => GroupNames::Kept,
    })
}

fn gathering(config: &Config) -> Result<Gathering, Problem> {
    let known = ["implicit", "explicit", "smart"];
    Ok(match one_of(config, "ANSIBLE_GATHERING", "defaults", "gathering", &known)?.as_deref() {
        Some("explicit") => Gathering::Explicit,
        Some("smart") => Gathering::Smart,
        Some(_) | None => Gathering::Implicit,
    })
}

fn strangers(config: &Config) -> Result<Strangers, Problem> {
    let known = ["warning", "error", "ignore"];
    let (variable, key) = ("ANSIBLE_HOST_PATTERN_MISMATCH", "host_pattern_mismatch");
    Ok(match one_of(config, variable, "inventory", key, &known)?.as_deref() {
        Some("error") => Strangers::Refuse,
        Some("ignore") => Strangers::Ignore,
        Some(_) | None => Strangers::Warn,
    })
}

fn send_ahead(config: &Config) -> Result<SendAhead, Problem> {
    let known = ["off", "plan", "safe", "all"];
    Ok(match one_of(config, "KUBEON_SEND_AHEAD", "kubeon", "send_ahead", &known)?.as_deref() {
        Some("off") => SendAhead::Off,
        Some("safe") => SendAhead::Safe,
        Some("all") => SendAhead::All,
        Some(_) | None => SendAhead::Plan,
    })
}

fn strategy(config: &Config) -> Result<String, Problem> {
    let given = config.get(&["ANSIBLE_STRATEGY"], "defaults", "strategy");
    let name = given.unwrap_or_else(|| "linear".to_owned());
    match words::misnamed(Keyword::Strategy, &name) {
        Some(message) => Err(Problem::usage(message)),
        None => Ok(name),
    }
}

/// Reads a number that was given as text: the text, what it is called in a message, and what it is when absent.
pub(super) type NumberOf = dyn Fn(Option<String>, &str, f64) -> Result<f64, Problem>;

/// Returns where facts are kept, if somewhere: `fact_caching = jsonfile`.
fn fact_cache(config: &Config, number: &NumberOf) -> Result<Option<FactCache>, Problem> {
    let get = |variable: &str, key: &str| config.get(&[variable], "defaults", key);
    let plugin = get("ANSIBLE_CACHE_PLUGIN", "fact_caching").unwrap_or_else(|| "memory".to_owned());
    match plugin.rsplit('.').next().unwrap_or(&plugin) {
        "memory" => return Ok(None),
        "jsonfile" => {}
        other => {
            let message = format!("`fact_caching = {other}` is not supported: memory and jsonfile are");
            return Err(Problem::usage(message));
        }
    }
    let Some(folder) = get("ANSIBLE_CACHE_PLUGIN_CONNECTION", "fact_caching_connection") else {
        return Err(Problem::usage("`fact_caching = jsonfile` needs a folder: set `fact_caching_connection`"));
    };
    let timeout = get("ANSIBLE_CACHE_PLUGIN_TIMEOUT", "fact_caching_timeout");
    let lifetime_s = number(timeout, "fact_caching_timeout", 86_400.0)?;
    Ok(Some(FactCache {
        folder: crate::execute::home_expanded(PathBuf::from(folder)),
        prefix: get("ANSIBLE_CACHE_PLUGIN_PREFIX", "fact_caching_prefix").unwrap_or_default(),
        lifetime: (lifetime_s > 0.0).then(|| Duration::from_secs_f64(lifetime_s)),
    }))
}

/// Returns the folders of modules: those of the command line, then the configured ones.
fn module_path(args: &RunArguments, config: &Config) -> Vec<PathBuf> {
    let given = args.module_path.iter().flat_map(|text| text.split(':')).filter(|part| !part.is_empty());
    let given = given.map(|part| crate::execute::home_expanded(PathBuf::from(part)));
    let usual = || {
        ["~/.ansible/plugins/modules", "/usr/share/ansible/plugins/modules"]
            .map(|path| crate::execute::home_expanded(PathBuf::from(path)))
            .to_vec()
    };
    given.chain(config.paths(&["ANSIBLE_LIBRARY"], "defaults", "library").unwrap_or_else(usual)).collect()
}
