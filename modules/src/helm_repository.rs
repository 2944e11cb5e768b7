use schemars::JsonSchema;
use serde_json::Value;

use crate::ask::{bad, failed, run};
use crate::decode::Arguments;
use crate::shared::State;
use crate::{Change, Error, Exec, Host, Module, Plan};

/// Keep a repository of charts known to the `helm` of the machine where the task runs.
///
/// ```yaml
/// - kubernetes.core.helm_repository:
///     name: nvidia
///     repo_url: https://helm.ngc.nvidia.com/nvidia
///   delegate_to: localhost
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// What it is called here.
    #[serde(alias = "name")]
    repo_name: String,
    /// Its address.
    #[serde(alias = "url")]
    repo_url: Option<String>,
    #[serde(default, alias = "state")]
    repo_state: State,
    /// The user's name for the server.
    #[serde(alias = "username")]
    repo_username: Option<String>,
    /// The user's password for the server.
    #[serde(alias = "password")]
    repo_password: Option<String>,
    /// Send name and password to every server that the repository names.
    #[serde(default)]
    pass_credentials: bool,
    /// Replace a repository of this name that has another address.
    #[serde(default, alias = "force")]
    force_update: bool,
    /// The program; `helm` when absent.
    binary_path: Option<String>,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        if self.repo_name.is_empty() || self.repo_name.starts_with('-') || self.repo_name.contains('/') {
            return Err(bad(format!("`{}` is no repository's name", self.repo_name)));
        }
        let program = self.binary_path.as_deref().unwrap_or("helm");
        let argv = [program, "repo", "list", "--output", "json"];
        let output = run(host, &argv)?;
        // Without any repository it says so and fails.
        if !output.success() && !output.stderr.contains("no repositories") {
            return Err(failed(&argv, &output));
        }
        let listed: Vec<Value> = serde_json::from_str(&output.stdout).unwrap_or_default();
        let now =
            listed.iter().find(|repo| repo["name"] == self.repo_name.as_str()).and_then(|repo| repo["url"].as_str());
        let exec = match (self.repo_state, now) {
            (State::Absent, None) => return Ok(Plan::default()),
            (State::Absent, Some(_)) => Exec::of(&[program, "repo", "remove", &self.repo_name]),
            (State::Present, now) => {
                let url = self.repo_url.as_deref().ok_or_else(|| bad("`repo_url` is missing"))?;
                match now {
                    Some(now) if now == url => return Ok(Plan::default()),
                    Some(now) if !self.force_update => {
                        let message =
                            format!("`{}` is known as `{now}`: `force_update: true` replaces it", self.repo_name);
                        return Err(Error::new(crate::ErrorKind::Host, message));
                    }
                    Some(_) | None => self.add(program, url, now.is_some()),
                }
            }
        };
        Ok(vec![Change::Exec(exec)].into())
    }
}

impl Args {
    fn add(&self, program: &str, url: &str, replaces: bool) -> Exec {
        let mut argv = vec![program, "repo", "add", &self.repo_name, url];
        if replaces {
            argv.push("--force-update");
        }
        if self.pass_credentials {
            argv.push("--pass-credentials");
        }
        let user = self.repo_username.as_deref();
        argv.extend(user.into_iter().flat_map(|user| ["--username", user]));
        // A password in the command line could be read by everybody here.
        let password = self.repo_password.clone();
        if password.is_some() {
            argv.push("--password-stdin");
        }
        Exec { stdin: password, ..Exec::new(argv) }
    }
}
