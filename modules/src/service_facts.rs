use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::decode::Arguments;
use crate::facts::{Files, service_manager};
use crate::host::Map;
use crate::order::gathered;
use crate::{Error, ErrorKind, Host, Module, Output, Plan, Probe};

/// Return the host's services and their states as the fact `services`.
///
/// ```yaml
/// - service_facts:
/// - debug:
///     msg: "{{ ansible_facts.services['kubelet.service'].state }}"
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {}

/// States of loading that say more than whether a unit is enabled.
const BAD: [&str; 3] = ["not-found", "masked", "failed"];

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let manager = service_manager(Files(host));
        let mut services = BTreeMap::new();
        if manager == "openrc" {
            let levels = ask(host, &["rc-update", "show", "-v"])?;
            services = openrc(&ask(host, &["rc-status", "-a", "-s", "-m", "-C"])?, &levels);
        } else if manager != "systemd" {
            services.extend(sysv(&probe(host, &["service", "--status-all"])?.stdout));
        } else {
            let plain = ["--no-pager", "--no-legend", "--plain", "--all"];
            let units = ask(host, &[&["systemctl", "list-units"], plain.as_slice(), &["--type", "service"]].concat())?;
            // By a pattern: with `--type`, systemd looks into the files of all the other units, too.
            let files = ask(host, &[&["systemctl", "list-unit-files"], plain.as_slice(), &["*.service"]].concat())?;
            services.extend(init_scripts(host)?);
            services.extend(systemd(&units, &files));
        }
        if services.is_empty() {
            let message =
                "Failed to find any services. This can be due to privileges or some other configuration issue.";
            return Ok(Plan::default().with("skipped", true).with("msg", message));
        }
        Ok(Plan::default().with("ansible_facts", json!({"services": services})))
    }
}

/// The file of Debian that makes an init script which is asked for its status ask systemd instead.
const REDIRECT: &str = "/lib/lsb/init-functions.d/40-systemd";
/// Asks what Debian's `service --status-all` asks, of all scripts at once: each starts half a dozen processes.
const STATUS_ALL: &str = r#"cd /
for path in /etc/init.d/*; do
    case ${path##*/} in
        functions | halt | killall | single | linuxconf | kudzu | skeleton | README | rc | rcS | reboot) continue ;;
        bootclean.sh | *.dpkg-dist | *.dpkg-old) continue ;;
    esac
    [ -x "$path" ] || continue
    {
        said=$(env -i LC_ALL=C PATH="$PATH" "$path" status 2>&1 </dev/null)
        rc=$?
        case $said in
            *[Uu][Ss][Aa][Gg][Ee]:*) ;;
            ?*) if [ $rc = 0 ]; then mark=+; else mark=-; fi; printf ' [ %s ]  %s\n' $mark "${path##*/}" ;;
            *) printf ' [ - ]  %s\n' "${path##*/}" ;;
        esac
    } &
done
wait"#;

/// Returns the init scripts that are there beside systemd's units.
fn init_scripts(host: &dyn Host) -> Result<BTreeMap<String, Value>, Error> {
    let asked: &[&str] = match host.stat(REDIRECT)? {
        Some(_) => &["sh", "-c", STATUS_ALL],
        None => &["service", "--status-all"],
    };
    Ok(sysv(&probe(host, asked)?.stdout))
}

fn probe(host: &dyn Host, argv: &[&str]) -> Result<Output, Error> {
    host.probe(&Probe { env: vec![("LC_ALL".into(), "C".into())], ..Probe::new(argv.iter().copied()) })
}

fn ask(host: &dyn Host, argv: &[&str]) -> Result<String, Error> {
    let output = probe(host, argv)?;
    if !output.success() {
        return Err(Error::new(ErrorKind::Host, format!("`{}`: {}", argv.join(" "), output.stderr.trim())));
    }
    Ok(output.stdout)
}

fn service(name: &str, state: &str, status: &str, source: &str) -> Value {
    let mut service = Map::new();
    for (key, value) in [("name", name), ("state", state), ("status", status), ("source", source)] {
        service.insert(key.to_owned(), value.into());
    }
    service.into()
}

fn systemd(units: &str, files: &str) -> BTreeMap<String, Value> {
    let enabled: Vec<(&str, &str)> = files
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?))
        })
        .collect();
    let mut services = BTreeMap::new();
    for line in units.lines() {
        let words: Vec<&str> = line.trim_start_matches('●').split_whitespace().collect();
        let [name, load, active, sub, ..] = words.as_slice() else { continue };
        let state = if *sub == "running" { "running" } else { "stopped" };
        let bad = [load, active, sub].into_iter().find(|word| BAD.contains(word));
        let listed = || enabled.iter().find(|(other, _)| other == name).map(|(_, status)| status);
        let status = bad.or_else(listed).copied().unwrap_or("unknown");
        services.insert((*name).to_owned(), service(name, state, status, "systemd"));
    }
    for (name, status) in enabled {
        services.entry(name.to_owned()).or_insert_with(|| service(name, "inactive", status, "systemd"));
    }
    services
}

/// Reads lines such as ` [ + ]  cron`; ` [ ? ]` is a script that can't tell.
fn sysv(text: &str) -> BTreeMap<String, Value> {
    let read = |line: &str| {
        let (mark, name) = line.trim().strip_prefix('[')?.split_once(']')?;
        let state = match mark.trim() {
            "+" => "running",
            "-" => "stopped",
            _ => return None,
        };
        let name = name.trim();
        Some((name.to_owned(), json!({"name": name, "state": state, "source": "sysv"})))
    };
    gathered(text.lines().filter_map(read))
}

/// Reads lines such as ` sshd  [ started 00:10:02 (0) ]` below headings of runlevels, and `levels` with lines such as
/// ` sshd | default`.
fn openrc(text: &str, levels: &str) -> BTreeMap<String, Value> {
    let levels: Vec<(&str, Vec<&str>)> = levels
        .lines()
        .filter_map(|line| line.split_once('|'))
        .map(|(name, levels)| (name.trim(), levels.split_whitespace().collect()))
        .collect();
    let read = |line: &str| {
        let (name, rest) = line.strip_prefix(' ')?.trim().split_once('[')?;
        let name = name.trim();
        let (_, levels) = levels.iter().find(|(other, _)| *other == name)?;
        let levels = if levels.is_empty() { Value::Null } else { json!(levels) };
        let state = rest.trim_end_matches(']').split_whitespace().next()?;
        Some((name.to_owned(), json!({"name": name, "runlevels": levels, "state": state, "source": "openrc"})))
    };
    gathered(text.lines().filter_map(read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_init_systems_are_read() {
        let services = sysv(" [ + ]  cron\n [ - ]  rsync\n");
        assert_eq!(services["cron"]["state"], "running");
        assert_eq!(services["rsync"]["state"], "stopped");
        assert!(sysv(" [ ? ]  hwclock.sh\n").is_empty());
        let told = "Runlevel: default\n sshd       [  started 00:10:02 (0)  ]\n chronyd  [  stopped  ]\n";
        let services = openrc(told, "  sshd | default\n chronyd |\n");
        assert_eq!((&services["sshd"]["state"], &services["chronyd"]["state"]), (&"started".into(), &"stopped".into()));
        assert_eq!(
            (&services["sshd"]["runlevels"], &services["chronyd"]["runlevels"]),
            (&json!(["default"]), &Value::Null)
        );
    }
}
