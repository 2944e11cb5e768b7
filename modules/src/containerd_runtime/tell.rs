//! What a person is told: the effective change in words, without secrets, and warnings.

use serde_json::Value;

use crate::containerd_runtime::daemon::Daemon;
use crate::containerd_runtime::decide::{binary_of, systemd_cgroup};
use crate::containerd_runtime::edit::Text;
use crate::containerd_runtime::view::{Cri, View, differences, is_empty};
use crate::containerd_runtime::{Args, Mode};
use crate::{Diff, Error, Host};

/// Parts of a key's name that make its value a secret.
const SECRET_WORDS: [&str; 6] = ["password", "auth", "token", "secret", "identity", "header"];

/// Returns the effective change: what it means for containers in words, then every other setting on a line of its own.
pub(super) fn effective(daemon: &Daemon, before: &View, after: &View) -> Diff {
    let mut text = format!("effective configuration of containerd {} ({}):\n", daemon.version, daemon.config);
    let mut said = words(before, after);
    for difference in &differences(before, after) {
        let shown = |value: &Value| match value {
            Value::Null => "nothing".to_owned(),
            value if is_secret(&difference.path) => format!("a secret ({})", kind(value)),
            value => value.to_string(),
        };
        if !is_in_words(&difference.path, before, after) {
            said.push(format!("{}: {} -> {}", difference.path, shown(&difference.before), shown(&difference.after)));
        }
    }
    if said.is_empty() {
        said.push("nothing changes".to_owned());
    }
    for line in said {
        text.push_str(&format!("  {line}\n"));
    }
    Diff { prepared: Some(text), ..Diff::default() }
}

/// Returns the runtimes that only one of two views has.
fn only_in<'a>(one: &'a View, other: &View) -> Vec<(&'a String, &'a Value)> {
    let has = |name: &String| other.enabled_cri().is_some_and(|cri| cri.runtimes.contains_key(name));
    one.enabled_cri().into_iter().flat_map(|cri| &cri.runtimes).filter(|(name, _)| !has(name)).collect()
}

/// Returns sentences on which runtimes there are and which one containers get.
fn words(before: &View, after: &View) -> Vec<String> {
    let mut said = Vec::new();
    match (before.enabled_cri(), after.enabled_cri()) {
        (None, Some(_)) => said.push("the CRI plugin is enabled: Kubernetes can use this containerd".to_owned()),
        (Some(_), None) => said.push("the CRI plugin is disabled: Kubernetes can't use this containerd".to_owned()),
        (Some(_), Some(_)) | (None, None) => {}
    }
    for (name, table) in only_in(after, before) {
        let options = table.get("options").and_then(Value::as_object).into_iter().flatten();
        let settings = table.as_object().into_iter().flatten().filter(|(_, value)| !value.is_object()).chain(options);
        let settings = settings.filter(|(key, value)| !is_empty(value) && key.as_str() != "BinaryName");
        let settings: Vec<String> = settings.map(|(key, value)| format!("{key} {}", plain(value))).collect();
        let program = match binary_of(table) {
            "" => "runc, or what its type starts",
            program => program,
        };
        said.push(format!("runtime `{name}` is new: it starts {program} ({})", settings.join(", ")));
    }
    for (name, _) in only_in(before, after) {
        said.push(format!("runtime `{name}` is gone"));
    }
    if let (Some(old), Some(new)) = (before.enabled_cri(), after.enabled_cri())
        && old.default != new.default
    {
        said.push(format!(
            "containers whose pod names no RuntimeClass start through `{}`, until now through `{}`",
            new.default, old.default
        ));
    }
    said
}

/// Whether [`words`] tells of a setting.
fn is_in_words(path: &str, before: &View, after: &View) -> bool {
    let both = before.enabled_cri().is_some() && after.enabled_cri().is_some();
    let rest = path.split_once("].containerd.").map(|(_, rest)| rest).unwrap_or_default();
    let name = rest.strip_prefix("runtimes.[").and_then(|rest| rest.split_once(']')).map(|(name, _)| name);
    let told =
        |name: &str| only_in(after, before).into_iter().chain(only_in(before, after)).any(|(other, _)| other == name);
    path == "disabled_plugins" && !both || rest == "default_runtime_name" && both || name.is_some_and(told)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

fn is_secret(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| path.contains(word))
}

/// Whether a file's text must not be shown: a key below looks like a password and has a value, or an address holds
/// one.
pub(super) fn holds_secrets(text: &str) -> bool {
    fn walk(value: &Value, secret: bool) -> bool {
        match value {
            Value::Object(entries) => entries.iter().any(|(key, value)| walk(value, secret || is_secret(key))),
            Value::Array(items) => items.iter().any(|item| walk(item, secret)),
            Value::String(text) => secret && !text.is_empty() || has_login(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    // A comment may hold what was once a setting.
    let commented = text.lines().any(|line| {
        let line = line.trim_start();
        line.starts_with('#') && line.contains('=') && is_secret(line.split('=').next().unwrap_or_default())
    });
    match Text::parse(text) {
        Ok(text) => commented || text.get(&[]).is_some_and(|item| walk(&super::view::value_of(item), false)),
        Err(_) => true,
    }
}

/// Whether an address is of the form `scheme://user:password@host`.
fn has_login(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    rest.split('/').next().unwrap_or_default().contains('@')
}

/// Returns what is worth a warning about the daemon as it is or will be.
pub(super) fn warnings(
    host: &dyn Host,
    args: &Args,
    daemon: &Daemon,
    view: &View,
    cri: &Cri,
) -> Result<Vec<String>, Error> {
    let mut warnings = Vec::new();
    let name = &args.runtime_name;
    for (other, table) in cri.runtimes.iter().filter(|(other, _)| *other != name) {
        if binary_of(table) == args.binary {
            let what = if *other == cri.default { "every pod" } else { "a pod that asks for it" };
            warnings.push(format!(
                "the runtime `{other}` starts `{}`: {what} gets the NVIDIA runtime under that name",
                args.binary
            ));
        }
    }
    if args.mode == Mode::RuntimeClass && cri.default == *name {
        warnings
            .push(format!("`{name}` is the default runtime, and not by this task: images made for CUDA see all GPUs"));
    }
    let nvidia = cri.runtimes.get(name).or_else(|| cri.runtimes.get(&cri.default)).and_then(Value::as_object);
    if let Some(table) = nvidia
        && !systemd_cgroup(table)
    {
        let driver = cgroup_driver(host)?;
        if driver.as_deref() != Some("cgroupfs") {
            let kubelet = driver.map_or("kubeadm's default is `systemd`".to_owned(), |driver| {
                format!("this host's kubelet uses `{driver}`")
            });
            warnings.push(format!(
                "`SystemdCgroup` is false, as the default runtime had it, and {kubelet}: they must agree"
            ));
        }
    }
    if let (Some(Value::Object(ours)), Some(Value::Object(runc))) = (cri.runtimes.get(name), cri.runtimes.get("runc"))
        && systemd_cgroup(ours) != systemd_cgroup(runc)
    {
        warnings.push(format!("`SystemdCgroup` of the runtime `{name}` is not that of `runc`: one of them is wrong"));
    }
    let others = daemon.other_files(host, view)?;
    if !others.is_empty() {
        let files = others.join(", ");
        warnings.push(format!("containerd reads further files ({files}): what they say was taken into account"));
    }
    Ok(warnings)
}

/// Returns the kubelet's cgroup driver, where its configuration names one.
fn cgroup_driver(host: &dyn Host) -> Result<Option<String>, Error> {
    let Some(bytes) = host.read("/var/lib/kubelet/config.yaml")? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let found = text.lines().find_map(|line| line.strip_prefix("cgroupDriver:"));
    Ok(found.map(|driver| driver.trim().trim_matches(['"', '\'']).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_changes_in_words() {
        let old = "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.containerd]\ndefault_runtime_name = 'runc'\n\
            [plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]\nruntime_type = 'io.containerd.runc.v2'\n";
        let new = format!(
            "{}[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.nvidia]\nruntime_type = 'io.containerd.runc.v2'\n\
             [plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.nvidia.options]\nBinaryName = '/n'\n\
             SystemdCgroup = true\n[plugins.'io.containerd.grpc.v1.cri'.registry.configs.r.auth]\npassword = 'hunter2'\n",
            old.replace("'runc'\n[", "'nvidia'\n[")
        );
        let daemon = Daemon {
            binary: "containerd".into(),
            ctr: "ctr".into(),
            version: "1.7.24".into(),
            major: 1,
            config: "/etc/containerd/config.toml".into(),
            service: crate::containerd_runtime::daemon::Service::Running,
            unit: "containerd".into(),
            address: None,
            root: None,
            placeholders: Vec::new(),
            env: Vec::new(),
        };
        let view = |text: &str| View::parse(text).expect("a dump");
        let said = effective(&daemon, &view(old), &view(&new)).prepared.expect("a text");
        assert_eq!(
            said,
            "effective configuration of containerd 1.7.24 (/etc/containerd/config.toml):\n  \
             runtime `nvidia` is new: it starts /n (runtime_type io.containerd.runc.v2, SystemdCgroup true)\n  \
             containers whose pod names no RuntimeClass start through `nvidia`, until now through `runc`\n  \
             plugins.[io.containerd.grpc.v1.cri].registry.configs.r.auth.password: nothing -> a secret (text)\n"
        );
        let back = effective(&daemon, &view(&new), &view(old)).prepared.expect("a text");
        assert!(back.contains("  runtime `nvidia` is gone\n") && !back.contains("hunter2"), "{back}");
    }

    #[test]
    fn finds_secrets() {
        assert!(holds_secrets("[plugins.x.registry.configs.y.auth]\nusername = \"a\"\npassword = \"b\"\n"));
        assert!(holds_secrets("endpoint = [\"https://me:pw@mirror\"]\n"));
        assert!(holds_secrets("# password = \"old\"\n"));
        assert!(!holds_secrets("[plugins.x.registry.auths]\n[grpc]\naddress = \"/run/c.sock\"\n"));
    }
}
