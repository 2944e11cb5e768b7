//! How hosts are reached: what the command line, the environment and `ansible.cfg` say about logins and `become`.

use std::path::PathBuf;
use std::time::Duration;

use super::config::Config;
use super::reach_args::ReachArguments;
use super::settings::NumberOf;
use super::{Problem, prompt};
use crate::execute::ConnectOptions;
use crate::playbook::{Keyword, words};
use crate::report::secrets;

const DEFAULT_CONNECT_TIMEOUT_S: f64 = 10.0;
/// After how long without a sign of life a host is given up.
const DEFAULT_SILENCE_TIMEOUT_S: f64 = 30.0;

fn password_file(path: Option<PathBuf>) -> Result<Option<String>, Problem> {
    let Some(path) = path else { return Ok(None) };
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Problem::new(format!("read the password from `{}`: {error}", path.display())))?;
    let password = text.trim_end_matches(['\r', '\n']).to_owned();
    secrets::register(&password);
    Ok(Some(password))
}

fn connection(args: &ReachArguments, config: &Config) -> Result<String, Problem> {
    let given = args.connection.clone().or_else(|| config.get(&["ANSIBLE_TRANSPORT"], "defaults", "transport"));
    let name = given.unwrap_or_else(|| "ssh".to_owned());
    match words::misnamed(Keyword::Connection, &name) {
        Some(message) => Err(Problem::usage(message)),
        None => Ok(name),
    }
}

/// Returns how to become another user.
fn become_method(args: &ReachArguments, config: &Config) -> Result<String, Problem> {
    let variables = ["ANSIBLE_BECOME_METHOD"];
    let configured = || config.get(&variables, "privilege_escalation", "become_method");
    let name = args.become_method.clone().or_else(configured).unwrap_or_else(|| "sudo".to_owned());
    match words::misnamed(Keyword::BecomeMethod, &name) {
        Some(message) => Err(Problem::usage(message)),
        None => Ok(name),
    }
}

/// Returns how hosts are reached where no variable and no keyword says otherwise.
///
/// # Errors
/// When a setting makes no sense, or nobody answers for a password.
pub fn options(args: &ReachArguments, config: &Config, number: &NumberOf) -> Result<ConnectOptions, Problem> {
    let get = |variables: &[&str], section: &str, key: &str| config.get(variables, section, key);
    let asks = |typed: bool, variable: &str, section: &str, key: &str| -> Result<bool, Problem> {
        Ok(typed || config.flag(&[variable], section, key, false)?)
    };
    let file = |typed: &Option<PathBuf>, variable: &str, key: &str| {
        typed.clone().or_else(|| config.paths(&[variable], "defaults", key)?.into_iter().next())
    };
    let password = match asks(args.ask_pass, "ANSIBLE_ASK_PASS", "defaults", "ask_pass")? {
        true => Some(prompt::password_once("SSH password:").map_err(Problem::new)?),
        false => password_file(file(
            &args.connection_password_file,
            "ANSIBLE_CONNECTION_PASSWORD_FILE",
            "connection_password_file",
        ))?,
    };
    let (variable, section) = ("ANSIBLE_BECOME_ASK_PASS", "privilege_escalation");
    let become_password = match asks(args.ask_become_pass, variable, section, "become_ask_pass")? {
        true => {
            let typed = prompt::password_once("BECOME password:").map_err(Problem::new)?;
            Some(if typed.is_empty() { password.clone().unwrap_or_default() } else { typed })
        }
        false => {
            password_file(file(&args.become_password_file, "ANSIBLE_BECOME_PASSWORD_FILE", "become_password_file"))?
        }
    };
    let connect_s = match args.timeout {
        Some(seconds) => seconds,
        None => {
            let given = get(&["ANSIBLE_SSH_TIMEOUT"], "ssh_connection", "timeout")
                .or_else(|| get(&["ANSIBLE_TIMEOUT"], "defaults", "timeout"));
            number(given, "timeout", DEFAULT_CONNECT_TIMEOUT_S)?
        }
    };
    let port = match get(&["ANSIBLE_REMOTE_PORT", "ANSIBLE_SSH_PORT"], "defaults", "remote_port") {
        None => None,
        Some(text) => match text.trim().parse::<u16>() {
            Ok(port) => Some(port),
            Err(_) => return Err(Problem::usage(format!("`remote_port` is `{text}`, not a port number"))),
        },
    };
    let silence_s = number(
        get(&["KUBEON_SILENCE_TIMEOUT"], "ssh_connection", "silence_timeout"),
        "silence_timeout",
        DEFAULT_SILENCE_TIMEOUT_S,
    )?;
    let retries =
        get(&["ANSIBLE_SSH_RETRIES"], "connection", "retries").or_else(|| get(&[], "ssh_connection", "retries"));
    let retries = match retries {
        None => 0,
        Some(text) => match text.trim().parse() {
            Ok(times) => times,
            Err(_) => return Err(Problem::usage(format!("`retries` is `{text}`, not a number of attempts"))),
        },
    };
    let task_s = number(get(&["ANSIBLE_TASK_TIMEOUT"], "defaults", "task_timeout"), "task_timeout", 0.0)?;
    if let Some(path) = args.private_key.clone().map(crate::execute::home_expanded)
        && !path.exists()
    {
        return Err(Problem::usage(format!("`--private-key`: no file `{}`", path.display())));
    }
    let key = config.path(&["ANSIBLE_PRIVATE_KEY_FILE"], "defaults", "private_key_file");
    Ok(ConnectOptions {
        connection: connection(args, config)?,
        remote_user: args.user.clone().or_else(|| get(&["ANSIBLE_REMOTE_USER"], "defaults", "remote_user")),
        port,
        private_key_file: args.private_key.clone().map(crate::execute::home_expanded).or(key),
        password,
        ssh_args: get(&["ANSIBLE_SSH_ARGS"], "ssh_connection", "ssh_args"),
        ssh_common_args: args
            .ssh_common_args
            .clone()
            .or_else(|| get(&["ANSIBLE_SSH_COMMON_ARGS"], "ssh_connection", "ssh_common_args")),
        ssh_extra_args: args
            .ssh_extra_args
            .clone()
            .or_else(|| get(&["ANSIBLE_SSH_EXTRA_ARGS"], "ssh_connection", "ssh_extra_args")),
        host_key_checking: config.flag(&["ANSIBLE_HOST_KEY_CHECKING"], "defaults", "host_key_checking", true)?
            && config.flag(&["ANSIBLE_SSH_HOST_KEY_CHECKING"], "ssh_connection", "host_key_checking", true)?,
        connect_timeout: Duration::from_secs_f64(connect_s.clamp(0.1, 3600.0)),
        retries,
        silence_timeout: Duration::from_secs_f64(silence_s.clamp(1.0, 86_400.0)),
        become_: args.become_ || config.flag(&["ANSIBLE_BECOME"], "privilege_escalation", "become", false)?,
        become_method: become_method(args, config)?,
        become_user: args
            .become_user
            .clone()
            .or_else(|| get(&["ANSIBLE_BECOME_USER"], "privilege_escalation", "become_user"))
            .unwrap_or_else(|| "root".to_owned()),
        become_password,
        become_exe: get(&["ANSIBLE_BECOME_EXE"], "privilege_escalation", "become_exe").filter(|exe| !exe.is_empty()),
        become_flags: get(&["ANSIBLE_BECOME_FLAGS"], "privilege_escalation", "become_flags")
            .filter(|flags| !flags.is_empty()),
        shell: get(&["ANSIBLE_EXECUTABLE"], "defaults", "executable").filter(|shell| shell != "/bin/sh"),
        task_timeout: (task_s > 0.0).then(|| Duration::from_secs_f64(task_s)),
    })
}
