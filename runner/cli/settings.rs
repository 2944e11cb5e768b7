//! Puts flags, environment and configuration file together: what is typed wins, then the environment, then the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::args::RunArguments;
use super::config::Config;
use super::{Problem, extra_vars, prompt};
use crate::execute::{ConnectOptions, RunOptions};
use crate::playbook::Options;
use crate::report::secrets;
use crate::vars::FactCache;
use crate::vault::Vault;

/// How many hosts are worked on at once unless somebody says otherwise: threads wait on sockets, not on cores.
const DEFAULT_FORKS: usize = 50;
const DEFAULT_CONNECT_TIMEOUT_S: f64 = 10.0;
/// After how long without a sign of life a host is given up.
const DEFAULT_SILENCE_TIMEOUT_S: f64 = 30.0;

/// Everything that one invocation needs to know.
pub struct Settings {
    pub run: RunOptions,
    pub load: Options,
    pub config: Config,
    pub inventory: Vec<String>,
}

/// Gathers the vault passwords.
pub fn vault(config: &Config, files: &[PathBuf], ids: &[String], ask: bool) -> Result<Vault, Problem> {
    let mut vault = Vault::default();
    let read = |source: &Path| vault_password(source).map_err(Problem::new);
    for id in ids {
        let (name, source) = id.split_once('@').unwrap_or(("default", id));
        let password = match source {
            "prompt" | "prompt_ask_vault_pass" => {
                prompt::password(&format!("Vault password ({name}):")).map_err(Problem::new)?
            }
            file => read(Path::new(file))?,
        };
        vault.add(name, &password);
    }
    let configured =
        config.paths(&["ANSIBLE_VAULT_PASSWORD_FILE"], "defaults", "vault_password_file").unwrap_or_default();
    let files = if files.is_empty() { &configured } else { files };
    for file in files {
        vault.add("default", &read(file)?);
    }
    if ask {
        vault.add("default", &prompt::password("Vault password:").map_err(Problem::new)?);
    }
    Ok(vault)
}

/// Reads a password's file; one that can be executed is asked.
fn vault_password(path: &Path) -> Result<String, String> {
    use std::os::unix::fs::PermissionsExt;
    let path = crate::execute::home_expanded(path.to_owned());
    let failed = |error: std::io::Error| format!("read the vault password from `{}`: {error}", path.display());
    let executable = std::fs::metadata(&path).map_err(failed)?.permissions().mode() & 0o111 != 0;
    let bytes = if executable {
        let program = std::fs::canonicalize(&path).map_err(failed)?;
        let output = std::process::Command::new(program).output().map_err(failed)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`{}` gave no vault password: {}", path.display(), said.trim()));
        }
        output.stdout
    } else {
        std::fs::read(&path).map_err(failed)?
    };
    let text = String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned();
    if text.is_empty() { Err(format!("the vault password in `{}` is empty", path.display())) } else { Ok(text) }
}

fn password_file(path: Option<PathBuf>) -> Result<Option<String>, Problem> {
    let Some(path) = path else { return Ok(None) };
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Problem::new(format!("read the password from `{}`: {error}", path.display())))?;
    let password = text.trim_end_matches(['\r', '\n']).to_owned();
    secrets::register(&password);
    Ok(Some(password))
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
    let vault = Arc::new(vault(&config, &args.vault_password_file, &args.vault_id, args.ask_vault_pass)?);
    let extra_vars = Arc::new(extra_vars::read(&args.extra_vars, &vault).map_err(Problem::usage)?);
    let inventory = inventories(&config, args.inventory.clone());
    let get = |variables: &[&str], section: &str, key: &str| config.get(variables, section, key);
    let number = |text: Option<String>, what: &str, usual: f64| match text {
        None => Ok(usual),
        Some(text) => {
            text.trim().parse::<f64>().map_err(|_| Problem::usage(format!("{what} is `{text}`, not a number")))
        }
    };
    let forks = match args.forks {
        Some(forks) => forks,
        None => number(get(&["ANSIBLE_FORKS"], "defaults", "forks"), "forks", DEFAULT_FORKS as f64)? as usize,
    };
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
    let limit = if args.limit.is_empty() { None } else { Some(args.limit.join(",")) };
    let folder = args.playbooks.first().and_then(|path| path.parent()).filter(|path| !path.as_os_str().is_empty());
    let verbosity = match args.verbose {
        0 => number(get(&["ANSIBLE_VERBOSITY"], "defaults", "verbosity"), "verbosity", 0.0)? as u8,
        given => given,
    };
    let run = RunOptions {
        check: args.check,
        diff: args.diff || config.flag(&["ANSIBLE_DIFF_ALWAYS"], "diff", "always", false),
        forks: forks.max(1),
        verbosity,
        tags: listed(&tags),
        skip_tags: listed(&skip),
        limit,
        extra_vars: extra_vars.clone(),
        inventory_sources: inventory.clone(),
        config_file: config.path.clone(),
        folder: folder.map_or_else(|| PathBuf::from("."), Path::to_owned),
        start_at_task: args.start_at_task.clone(),
        step: args.step,
        force_handlers: args.force_handlers
            || config.flag(&["ANSIBLE_FORCE_HANDLERS"], "defaults", "force_handlers", false),
        error_on_missing_handler: config.flag(
            &["ANSIBLE_ERROR_ON_MISSING_HANDLER"],
            "defaults",
            "error_on_missing_handler",
            true,
        ),
        any_errors_fatal: config.flag(&["ANSIBLE_ANY_ERRORS_FATAL"], "defaults", "any_errors_fatal", false),
        gather_facts: get(&["ANSIBLE_GATHERING"], "defaults", "gathering").is_none_or(|how| how != "explicit"),
        fact_cache: fact_cache(&config, &number)?,
        default_strategy: get(&["ANSIBLE_STRATEGY"], "defaults", "strategy").unwrap_or_else(|| "linear".to_owned()),
        connect: connect(args, &config, &number)?,
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
        extra_vars,
        vault,
    };
    Ok(Settings { run, load, config, inventory })
}

/// Reads a number that was given as text: the text, what it is called in a message, and what it is when absent.
type NumberOf = dyn Fn(Option<String>, &str, f64) -> Result<f64, Problem>;

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

fn connect(args: &RunArguments, config: &Config, number: &NumberOf) -> Result<ConnectOptions, Problem> {
    let get = |variables: &[&str], section: &str, key: &str| config.get(variables, section, key);
    let password = match args.ask_pass {
        true => Some(prompt::password("SSH password:").map_err(Problem::new)?),
        false => password_file(args.connection_password_file.clone())?,
    };
    let become_password = match args.ask_become_pass {
        true => {
            let typed = prompt::password("BECOME password:").map_err(Problem::new)?;
            Some(if typed.is_empty() { password.clone().unwrap_or_default() } else { typed })
        }
        false => password_file(args.become_password_file.clone())?,
    };
    let connect_s = match args.timeout {
        Some(seconds) => seconds,
        None => number(get(&["ANSIBLE_TIMEOUT"], "defaults", "timeout"), "timeout", DEFAULT_CONNECT_TIMEOUT_S)?,
    };
    let silence_s = number(
        get(&["KUBEON_SILENCE_TIMEOUT"], "ssh_connection", "silence_timeout"),
        "silence_timeout",
        DEFAULT_SILENCE_TIMEOUT_S,
    )?;
    let task_s = number(get(&["ANSIBLE_TASK_TIMEOUT"], "defaults", "task_timeout"), "task_timeout", 0.0)?;
    let key = get(&["ANSIBLE_PRIVATE_KEY_FILE"], "defaults", "private_key_file").map(PathBuf::from);
    Ok(ConnectOptions {
        connection: args
            .connection
            .clone()
            .or_else(|| get(&["ANSIBLE_TRANSPORT"], "defaults", "transport"))
            .unwrap_or_else(|| "ssh".to_owned()),
        remote_user: args.user.clone().or_else(|| get(&["ANSIBLE_REMOTE_USER"], "defaults", "remote_user")),
        private_key_file: args.private_key.clone().or(key).map(crate::execute::home_expanded),
        password,
        ssh_common_args: args
            .ssh_common_args
            .clone()
            .or_else(|| get(&["ANSIBLE_SSH_COMMON_ARGS"], "ssh_connection", "ssh_common_args")),
        ssh_extra_args: args
            .ssh_extra_args
            .clone()
            .or_else(|| get(&["ANSIBLE_SSH_EXTRA_ARGS"], "ssh_connection", "ssh_extra_args")),
        host_key_checking: config.flag(&["ANSIBLE_HOST_KEY_CHECKING"], "defaults", "host_key_checking", true),
        connect_timeout: Duration::from_secs_f64(connect_s.clamp(0.1, 3600.0)),
        silence_timeout: Duration::from_secs_f64(silence_s.clamp(1.0, 86_400.0)),
        become_: args.become_ || config.flag(&["ANSIBLE_BECOME"], "privilege_escalation", "become", false),
        become_method: args
            .become_method
            .clone()
            .or_else(|| get(&["ANSIBLE_BECOME_METHOD"], "privilege_escalation", "become_method"))
            .unwrap_or_else(|| "sudo".to_owned()),
        become_user: args
            .become_user
            .clone()
            .or_else(|| get(&["ANSIBLE_BECOME_USER"], "privilege_escalation", "become_user"))
            .unwrap_or_else(|| "root".to_owned()),
        become_password,
        task_timeout: (task_s > 0.0).then(|| Duration::from_secs_f64(task_s)),
    })
}
