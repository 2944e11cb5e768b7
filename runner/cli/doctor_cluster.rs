//! How `kubeon-run doctor` reaches the cluster: the same way as `gpu.yml`, else as the administrator of this machine would.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Problem;
use super::doctor::ask;
use super::doctor_args::DoctorArguments;
use super::settings::Settings;
use crate::report::{Outcome, Status};

/// What the inventory says of the cluster, host by host; no host is connected to.
const VARIABLES: &str = r#"- name: Ask the inventory for the cluster
  hosts: HOSTS
  gather_facts: false
  tasks:
    - name: Say how the cluster is reached
      debug:
        msg:
          kubeconfig: "{{ kubeconfig | default('', true) }}"
          gpu_control_plane: "{{ gpu_control_plane | default('', true) }}"
"#;

/// Reads the administrator's kubeconfig, as `gpu.yml` does.
const CREDENTIALS: &str = "- name: Ask the control plane for its credentials
  hosts: HOSTS
  gather_facts: false
  become: true
  tasks:
    - name: Read them
      slurp:
        src: /etc/kubernetes/admin.conf
      run_once: true
      delegate_to: CONTROL_PLANE
";

/// Where distributions keep their administrator's kubeconfig.
const USUAL_KUBECONFIGS: [&str; 4] = [
    "/etc/kubernetes/admin.conf",
    "/etc/rancher/k3s/k3s.yaml",
    "/etc/rancher/rke2/rke2.yaml",
    "/var/lib/k0s/pki/admin.conf",
];

/// The way to the cluster.
pub enum Access {
    NotWanted,
    Nowhere,
    /// As kubectl finds it: `$KUBECONFIG`, `~/.kube/config`, or the account of a pod.
    Usual,
    /// A kubeconfig on this machine.
    File(String),
    /// The control plane's, in a file that is gone with it.
    Fetched(Private),
    /// There is one, and it can't be had.
    Refused(String),
}

/// A file that only this user can read, and that is gone with this value.
pub struct Private(PathBuf);

impl Private {
    fn holding(bytes: &[u8]) -> std::io::Result<Private> {
        let path = std::env::temp_dir().join(format!("kubeon-doctor-{}.conf", std::process::id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let private = Private(path);
        file.write_all(bytes).map(|()| private)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

/// Returns how the cluster is reached.
///
/// # Errors
/// When the inventory can't be read, or the run is interrupted.
pub fn access(args: &DoctorArguments, settings: &Settings) -> Result<Access, Problem> {
    if args.no_cluster {
        return Ok(Access::NotWanted);
    }
    if let Some(path) = &args.kubeconfig {
        return Ok(Access::File(path.display().to_string()));
    }
    let whole = if settings.inventory.is_empty() { "localhost" } else { "all" };
    let said = ask(settings, &VARIABLES.replace("HOSTS", whole))?;
    if let Some(host) = first(&said, "gpu_control_plane") {
        return fetched(settings, whole, &host);
    }
    Ok(first(&said, "kubeconfig").map_or_else(usual, Access::File))
}

/// Returns what the first host says for which a variable is set.
fn first(said: &[Outcome], name: &str) -> Option<String> {
    let value = |outcome: &Outcome| {
        let text = outcome.result.to_json().get("msg")?.get(name)?.as_str()?.to_owned();
        (!text.is_empty()).then_some(text)
    };
    said.iter().find_map(value)
}

fn fetched(settings: &Settings, whole: &str, host: &str) -> Result<Access, Problem> {
    let name = serde_json::to_string(host).map_err(|error| Problem::new(error.to_string()))?;
    let outcomes = ask(settings, &CREDENTIALS.replace("HOSTS", whole).replace("CONTROL_PLANE", &name))?;
    let refused = |why: &str| Access::Refused(format!("read `/etc/kubernetes/admin.conf` of `{host}`: {why}"));
    let Some(outcome) = outcomes.first() else { return Ok(refused("the host did not answer")) };
    let result = outcome.result.to_json();
    let text = |key: &str| result.get(key).and_then(|value| value.as_str()).unwrap_or_default();
    match outcome.status {
        Status::Unreachable | Status::Failed | Status::Skipped => Ok(refused(text("msg"))),
        Status::Ok | Status::Changed => {
            let Ok(bytes) = STANDARD.decode(text("content")) else { return Ok(refused("its content can't be read")) };
            Private::holding(&bytes)
                .map(Access::Fetched)
                .map_err(|error| Problem::new(format!("keep a kubeconfig: {error}")))
        }
    }
}

fn usual() -> Access {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let home = std::env::var_os("HOME").is_some_and(|home| Path::new(&home).join(".kube/config").is_file());
    if set("KUBECONFIG") || set("KUBERNETES_SERVICE_HOST") || home {
        return Access::Usual;
    }
    let readable = |path: &&&str| std::fs::File::open(path).is_ok();
    USUAL_KUBECONFIGS.iter().find(readable).map_or(Access::Nowhere, |path| Access::File((*path).to_owned()))
}
