//! What the pods of a spread run are told to do: the flags and the settings of this run, with every secret in a file that
//! lies in a Secret.

use std::path::{Path, PathBuf};

use super::run_args::RunArguments;
use super::settings::Settings;
use super::spread::Named;
use crate::playbook::parse_key_values;
use crate::report::HostName;
use crate::spread::bundle::File;
use crate::spread::words::{Orders, WORK, Writer, normal};

/// Variables of the environment that go along, besides those of Ansible's settings.
const ENVIRONMENT: [&str; 3] = ["KUBEON_SEND_AHEAD", "KUBEON_SILENCE_TIMEOUT", "TZ"];
/// Settings that name secrets or files of this machine: what they come to here goes along.
const SETTLED: [&str; 10] = [
    "ANSIBLE_ASK_PASS",
    "ANSIBLE_ASK_VAULT_PASS",
    "ANSIBLE_BECOME_ASK_PASS",
    "ANSIBLE_BECOME_PASSWORD_FILE",
    "ANSIBLE_CONFIG",
    "ANSIBLE_CONNECTION_PASSWORD_FILE",
    "ANSIBLE_INVENTORY",
    "ANSIBLE_PRIVATE_KEY_FILE",
    "ANSIBLE_VAULT_IDENTITY_LIST",
    "ANSIBLE_VAULT_PASSWORD_FILE",
];

/// Returns the orders, and the files that go along with them.
///
/// # Errors
/// A sentence for a person.
pub fn write(
    args: &RunArguments,
    settings: &Settings,
    project: &Path,
    hosts: &[HostName],
) -> Result<(Orders, Vec<File>), String> {
    let mut writer = Writer::new(project.to_owned());
    writer.folder(&std::env::current_dir().unwrap_or_default());
    for path in &args.playbooks {
        let path = writer.path("the playbook", path)?;
        writer.word(path);
    }
    inventories(&mut writer, settings)?;
    limit(&mut writer, settings, hosts);
    of_run(&mut writer, args)?;
    reach(&mut writer, args, settings)?;
    extra_vars(&mut writer, args)?;
    environment(&mut writer);
    configuration(&mut writer, settings)?;
    vaults(&mut writer, settings);
    Ok(writer.finish())
}

fn inventories(writer: &mut Writer, settings: &Settings) -> Result<(), String> {
    for source in &settings.inventory {
        let path = Path::new(source);
        if !path.exists() {
            // Names with commas.
            writer.pair("-i", Some(source.clone()));
            continue;
        }
        if path.is_file() && is_program(path) {
            return Err(format!(
                "the inventory `{source}` is a program, which a pod can't run: keep what it says with `kubeon-run inventory -i \
                 {source} --list --export --yaml --output hosts.yml`, and take that"
            ));
        }
        let path = writer.path("the inventory", path)?;
        writer.pair("-i", Some(path));
    }
    Ok(())
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

/// A limit that names a file, or that is very long, goes as the names it comes to.
fn limit(writer: &mut Writer, settings: &Settings, hosts: &[HostName]) {
    const LONG: usize = 10_000;
    let Some(limit) = &settings.run.limit else { return };
    if limit.contains('@') || limit.len() > LONG {
        let names: String = hosts.iter().map(|host| format!("{host}\n")).collect();
        let path = writer.private("limit", names.into_bytes());
        writer.pair("--limit", Some(format!("@{path}")));
    } else {
        writer.pair("--limit", Some(limit.clone()));
    }
}

fn of_run(writer: &mut Writer, args: &RunArguments) -> Result<(), String> {
    for tags in &args.tags {
        writer.pair("--tags", Some(tags.clone()));
    }
    for tags in &args.skip_tags {
        writer.pair("--skip-tags", Some(tags.clone()));
    }
    writer.flag("--check", args.check);
    writer.flag("--diff", args.diff);
    if args.verbose > 0 {
        writer.word(format!("-{}", "v".repeat(usize::from(args.verbose))));
    }
    writer.pair("--start-at-task", args.start_at_task.clone());
    writer.flag("--force-handlers", args.force_handlers);
    for folder in args.module_path.iter().flat_map(|folders| folders.split(':')).filter(|folder| !folder.is_empty()) {
        let folder = writer.path("the folder of modules", Path::new(folder))?;
        writer.pair("--module-path", Some(folder));
    }
    Ok(())
}

fn reach(writer: &mut Writer, args: &RunArguments, settings: &Settings) -> Result<(), String> {
    let (reach, connect) = (&args.reach, &settings.run.connect);
    writer.pair("--forks", reach.forks.map(|forks| forks.to_string()));
    // Nobody in a pod has a name, and hosts are to see the one whom they would see from here.
    let login = || std::env::var("LOGNAME").or_else(|_| std::env::var("USER")).unwrap_or_else(|_| "root".to_owned());
    writer.pair("--user", Some(connect.remote_user.clone().unwrap_or_else(login)));
    writer.flag("--become", reach.become_);
    writer.pair("--become-method", reach.become_method.clone());
    writer.pair("--become-user", reach.become_user.clone());
    writer.pair("--connection", reach.connection.clone());
    writer.pair("--timeout", reach.timeout.map(|seconds| seconds.to_string()));
    let joined = |flag: &str, value: &Option<String>| value.as_ref().map(|value| format!("{flag}={value}"));
    for word in [joined("--ssh-common-args", &reach.ssh_common_args), joined("--ssh-extra-args", &reach.ssh_extra_args)]
    {
        word.into_iter().for_each(|word| writer.word(word));
    }
    if let Some(path) = &connect.private_key_file {
        let path = crate::execute::home_expanded(path.clone());
        let key = std::fs::read(&path).map_err(|error| format!("read the key `{}`: {error}", path.display()))?;
        let key = writer.private("key", key);
        writer.pair("--private-key", Some(key));
    }
    let passwords = [
        ("--connection-password-file", "connection-password", &connect.password),
        ("--become-password-file", "become-password", &connect.become_password),
    ];
    for (flag, name, password) in passwords {
        if let Some(password) = password {
            let path = writer.private(name, password.clone().into_bytes());
            writer.pair(flag, Some(path));
        }
    }
    if let Some(known) = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".ssh/known_hosts"))
        && let Ok(known) = std::fs::read(known)
    {
        writer.private("home/.ssh/known_hosts", known);
    }
    Ok(())
}

/// Each `-e` goes as a file, so that no value of it stands on a command line.
fn extra_vars(writer: &mut Writer, args: &RunArguments) -> Result<(), String> {
    for (number, text) in args.reach.extra_vars.iter().enumerate() {
        let content = if let Some(file) = text.strip_prefix('@') {
            if !Path::new(file).is_file() {
                return Err(format!("`-e @{file}` is no file, and can't be read twice: write it to one"));
            }
            std::fs::read(file).map_err(|error| format!("read `{file}`: {error}"))?
        } else if text.trim_start().starts_with(['{', '[']) {
            text.clone().into_bytes()
        } else {
            let (pairs, _) = parse_key_values(text)?;
            let pairs: serde_json::Map<String, serde_json::Value> =
                pairs.into_iter().map(|(key, value)| (key, value.into())).collect();
            serde_json::to_vec(&pairs).map_err(|error| error.to_string())?
        };
        let path = writer.private(&format!("extra-vars-{number}.yml"), content);
        writer.pair("-e", Some(format!("@{path}")));
    }
    Ok(())
}

fn environment(writer: &mut Writer) {
    for (name, value) in std::env::vars() {
        if ENVIRONMENT.contains(&&*name) || name.starts_with("ANSIBLE_") && !SETTLED.contains(&&*name) {
            writer.set(&name, value);
        }
    }
    // What would be asked for was asked for here.
    for name in ["ANSIBLE_ASK_PASS", "ANSIBLE_BECOME_ASK_PASS", "ANSIBLE_ASK_VAULT_PASS"] {
        writer.set(name, "false");
    }
}

fn configuration(writer: &mut Writer, settings: &Settings) -> Result<(), String> {
    let Some(path) = &settings.config.path else { return Ok(()) };
    let place = match writer.path("the configuration", path) {
        Ok(place) => place,
        Err(_) => {
            let text = std::fs::read(path).map_err(|error| format!("read `{}`: {error}", path.display()))?;
            writer.private("ansible.cfg", text)
        }
    };
    writer.set("ANSIBLE_CONFIG", place);
    Ok(())
}

fn vaults(writer: &mut Writer, settings: &Settings) {
    let mut sources: Vec<String> = Vec::new();
    for (number, (id, password)) in settings.load.vault.passwords().enumerate() {
        let path = writer.private(&format!("vault/{number}"), password.as_bytes().to_vec());
        sources.push(format!("{id}@{path}"));
    }
    if !sources.is_empty() {
        writer.set("ANSIBLE_VAULT_IDENTITY_LIST", sources.join(","));
        // In place of one that `ansible.cfg` names.
        writer.set("ANSIBLE_VAULT_PASSWORD_FILE", format!("{WORK}/vault/0"));
    }
}

/// Returns the files that hold secrets, by what they are named for.
pub fn named(args: &RunArguments, settings: &Settings) -> Named {
    let reach = &args.reach;
    let config = |variable: &str, key: &str| settings.config.paths(&[variable], "defaults", key).unwrap_or_default();
    let ids = reach.vault.vault_id.iter().map(|id| PathBuf::from(id.split_once('@').map_or(&**id, |(_, file)| file)));
    let files = reach.vault.vault_password_file.iter().cloned().chain(ids);
    let files = files.chain(reach.connection_password_file.clone()).chain(reach.become_password_file.clone());
    let files = files.chain(settings.run.connect.private_key_file.clone());
    let configured = [
        config("ANSIBLE_VAULT_PASSWORD_FILE", "vault_password_file"),
        config("ANSIBLE_CONNECTION_PASSWORD_FILE", "connection_password_file"),
        config("ANSIBLE_BECOME_PASSWORD_FILE", "become_password_file"),
    ];
    files
        .chain(configured.into_iter().flatten())
        .map(|path| normal(&crate::execute::home_expanded(path)))
        .map(|path| std::fs::canonicalize(&path).unwrap_or(path))
        .collect()
}
