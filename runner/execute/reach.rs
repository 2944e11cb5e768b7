//! How a task reaches its host: address, user, transport, `become`; variables over keywords over options.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{PlayRun, World};
use crate::connection::{Become, BecomeMethod, Target, Via};
use crate::playbook::{Keyword, Task, words};
use crate::report::secrets;
use crate::template::Templar;
use crate::value::Value;

/// Where a task runs, and as whom.
#[derive(Clone)]
pub struct Reach {
    pub host: Arc<str>,
    pub target: Target,
    pub become_: Option<Become>,
}

/// The names under which the machine that runs this program is reached without SSH, unless the inventory says more.
pub fn is_this_machine(name: &str) -> bool {
    matches!(name, "localhost" | "127.0.0.1" | "::1")
}

/// Looks one task's settings up.
struct Lookup<'a> {
    world: &'a World,
    task: Option<&'a Task>,
    /// Renders the task's own keywords.
    templar: &'a Templar,
    /// Knows the variables of the host that is reached: another one than the task's when delegated.
    host_templar: Templar,
    /// Whether keywords about the connection are for that other host: then they are not.
    delegated: bool,
}

impl Lookup<'_> {
    fn variable(&self, names: &[&str]) -> Result<Option<Value>, String> {
        for name in names {
            if let Some(value) = self.host_templar.variable(name) {
                let value = self.host_templar.value(&value).map_err(|error| format!("`{name}`: {}", error.message))?;
                if !matches!(value, Value::Null | Value::Omit) {
                    return Ok(Some(value));
                }
            }
        }
        Ok(None)
    }

    fn text(&self, names: &[&str]) -> Result<Option<String>, String> {
        Ok(self.variable(names)?.map(|value| value.to_string()))
    }

    fn keyword(&self, keyword: Keyword) -> Result<Option<Value>, String> {
        let Some(setting) = self.task.and_then(|task| task.inherited(keyword)) else { return Ok(None) };
        let value = self.templar.value(&setting.value).map_err(|error| format!("`{keyword}`: {}", error.message))?;
        Ok((!matches!(value, Value::Null | Value::Omit)).then_some(value))
    }

    fn connection_keyword(&self, keyword: Keyword) -> Result<Option<String>, String> {
        if self.delegated {
            return Ok(None);
        }
        Ok(self.keyword(keyword)?.map(|value| value.to_string()))
    }
}

/// Returns how `host` is reached for a task, or for none.
///
/// # Errors
/// A sentence for a person when a variable or a keyword makes no sense.
pub fn of(
    world: &Arc<World>,
    play: Option<&Arc<PlayRun>>,
    task: Option<&Task>,
    host: &Arc<str>,
    own_host: &Arc<str>,
    templar: &Templar,
) -> Result<Reach, String> {
    let delegated = host != own_host;
    let host_templar = if delegated { crate::vars::templar(world, play, host, None) } else { templar.clone() };
    let look = Lookup { world, task, templar, host_templar, delegated };
    let address = look.text(&["ansible_ssh_host", "ansible_host"])?.unwrap_or_else(|| host.to_string());
    let via = via(&look, host, &address)?;
    let options = &world.options.connect;
    let number = |value: Option<Value>, what: &str| match value {
        None => Ok(None),
        Some(value) => match value.to_string().parse::<u16>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(format!("{what} of `{host}` is `{value}`, not a port number")),
        },
    };
    let mut port = number(look.variable(&["ansible_port", "ansible_ssh_port"])?, "`ansible_port`")?;
    if port.is_none() && !delegated {
        port = number(look.keyword(Keyword::Port)?, "`port`")?;
    }
    let port = port.or(options.port);
    let user = look
        .text(&["ansible_user", "ansible_ssh_user"])?
        .or(look.connection_keyword(Keyword::RemoteUser)?)
        .or_else(|| options.remote_user.clone());
    let password = look.text(&["ansible_password", "ansible_ssh_pass", "ansible_ssh_password"])?;
    let password = password.inspect(|password| secrets::register(password)).or_else(|| options.password.clone());
    let key = look.text(&["ansible_ssh_private_key_file", "ansible_private_key_file"])?.map(PathBuf::from);
    let mut ssh_args = Vec::new();
    for (names, usual) in [
        (&["ansible_ssh_args"], &options.ssh_args),
        (&["ansible_ssh_common_args"], &options.ssh_common_args),
        (&["ansible_ssh_extra_args"], &options.ssh_extra_args),
    ] {
        if let Some(line) = look.text(names)?.or_else(|| usual.clone()) {
            ssh_args.extend(shell_words::split(&line).map_err(|_| format!("`{}` has an unclosed quote", names[0]))?);
        }
    }
    let checking = look.variable(&["ansible_ssh_host_key_checking", "ansible_host_key_checking"])?;
    let retries = match look.variable(&["ansible_ssh_retries"])? {
        None => options.retries,
        Some(value) => value
            .to_string()
            .parse()
            .map_err(|_| format!("`ansible_ssh_retries` of `{host}` is `{value}`, not a number of attempts"))?,
    };
    let target = Target {
        host: host.to_string(),
        address,
        port,
        user,
        via,
        password,
        private_key_file: key.map(home_expanded).or_else(|| options.private_key_file.clone()),
        ssh_args,
        host_key_checking: checking.map_or(options.host_key_checking, |value| truth(&value)),
        connect_timeout: options.connect_timeout,
        retries,
        silence_timeout: options.silence_timeout,
        known_hosts: Vec::new(),
    };
    Ok(Reach { host: host.clone(), target, become_: become_of(&look)? })
}

fn via(look: &Lookup<'_>, host: &str, address: &str) -> Result<Via, String> {
    let named = look.text(&["ansible_connection"])?.or(look.connection_keyword(Keyword::Connection)?);
    let in_inventory = look.world.inventory().contains(host);
    let kind = match named {
        Some(kind) => kind,
        None if is_this_machine(host) && !in_inventory => "local".to_owned(),
        None => look.world.options.connect.connection.clone(),
    };
    let short = kind.rsplit('.').next().unwrap_or(&kind);
    let command = |words: &[&str]| Ok(Via::Command(words.iter().map(|word| (*word).to_owned()).collect()));
    match short {
        "ssh" | "smart" | "paramiko" | "paramiko_ssh" | "ssh2" => Ok(Via::Ssh),
        "openssh" => Ok(Via::OpenSsh),
        "local" => Ok(Via::Local),
        "docker" | "podman" => command(&[short, "exec", "-i", address]),
        "chroot" => command(&["chroot", address]),
        "kubectl" => {
            let mut words = vec!["kubectl".to_owned(), "exec".to_owned(), "-i".to_owned()];
            for (names, flag) in [
                (&["ansible_kubectl_kubeconfig"], "--kubeconfig"),
                (&["ansible_kubectl_context"], "--context"),
                (&["ansible_kubectl_namespace"], "--namespace"),
                (&["ansible_kubectl_container"], "--container"),
            ] {
                if let Some(value) = look.text(names)? {
                    words.extend([flag.to_owned(), value]);
                }
            }
            let pod = look.text(&["ansible_kubectl_pod"])?.unwrap_or_else(|| address.to_owned());
            words.extend([pod, "--".to_owned()]);
            Ok(Via::Command(words))
        }
        other => {
            let known = words::CONNECTIONS.join(", ");
            Err(format!("connection `{other}` of `{host}` is not supported: {known} are"))
        }
    }
}

fn become_of(look: &Lookup<'_>) -> Result<Option<Become>, String> {
    let options = &look.world.options.connect;
    let wanted = match look.variable(&["ansible_become"])?.or(look.keyword(Keyword::Become)?) {
        Some(value) => truth(&value),
        None => options.become_,
    };
    if !wanted {
        return Ok(None);
    }
    let setting = |names: &[&str], keyword: Keyword| -> Result<Option<String>, String> {
        Ok(look.text(names)?.or(look.keyword(keyword)?.map(|value| value.to_string())))
    };
    let method =
        setting(&["ansible_become_method"], Keyword::BecomeMethod)?.unwrap_or_else(|| options.become_method.clone());
    let method = match method.rsplit('.').next().unwrap_or(&method) {
        "sudo" => BecomeMethod::Sudo,
        "su" => BecomeMethod::Su,
        "doas" => BecomeMethod::Doas,
        other => return Err(format!("become method `{other}` is not supported: sudo, su and doas are")),
    };
    let password = look.text(&["ansible_become_password", "ansible_become_pass", "ansible_sudo_pass"])?;
    let password = password.inspect(|password| secrets::register(password)).or_else(|| options.become_password.clone());
    Ok(Some(Become {
        method,
        user: setting(&["ansible_become_user"], Keyword::BecomeUser)?.unwrap_or_else(|| options.become_user.clone()),
        password,
        exe: setting(&["ansible_become_exe"], Keyword::BecomeExe)?.or_else(|| options.become_exe.clone()),
        flags: setting(&["ansible_become_flags"], Keyword::BecomeFlags)?.or_else(|| options.become_flags.clone()),
    }))
}

/// Returns whether a setting says yes, be it a boolean or one of Ansible's words.
pub fn truth(value: &Value) -> bool {
    match value {
        Value::Str(text) => {
            matches!(text.as_str().trim().to_ascii_lowercase().as_str(), "y" | "yes" | "on" | "1" | "true" | "t")
        }
        other => other.truthy(),
    }
}

/// Returns a path with a leading `~/` replaced by the user's home.
pub fn home_expanded(path: PathBuf) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
        (Ok(_), None) | (Err(_), _) => path,
    }
}

impl Reach {
    /// Returns how long a host may be silent before it counts as unreachable.
    pub fn silence_timeout(&self) -> Duration {
        self.target.silence_timeout
    }
}
