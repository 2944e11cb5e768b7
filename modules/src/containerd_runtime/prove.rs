//! Proof of a configuration before it is put in place: the host's own containerd boots with it beside the running one,
//! on folders and sockets of its own, and is asked for its CRI plugin.

use serde_json::{Value, json};

use crate::containerd_runtime::daemon::Daemon;
use crate::containerd_runtime::dropin::names_imports;
use crate::containerd_runtime::edit::{Text, moved};
use crate::containerd_runtime::propose::table_keys;
use crate::containerd_runtime::view::View;
use crate::{Error, Host, Probe};

/// How long the whole proof may take.
const LIMIT_S: u64 = 90;

/// Boots `$1` with the configuration beside this script, asks it with `$2`. Its data goes below `$3`, the running
/// daemon's own folder where there is one, so that snapshotters find the same kind of file system.
const SCRIPT: &str = r#"#!/bin/sh
here={scratch}
root=
[ -d "$3" ] && find "$3" -maxdepth 1 -name '.kubeon-proof.??????' -mmin +60 -exec rm -rf --one-file-system {} + 2>/dev/null
[ -d "$3" ] && root=$(mktemp -d "$3/.kubeon-proof.XXXXXX" 2>/dev/null)
[ -n "$root" ] || root=$here/root
"$1" --config "$here/config.toml" --root "$root" --state "$here/state" --address "$here/c.sock" >"$here/log" 2>&1 &
daemon=$!
alive() { [ -d "/proc/$daemon" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$daemon/status" 2>/dev/null; }
finish() {
    kill "$daemon" 2>/dev/null
    n=0
    while alive && [ $n -lt 50 ]; do sleep 0.1; n=$((n + 1)); done
    kill -9 "$daemon" 2>/dev/null
    for folder in "$root" "$here/state"; do
        awk -v at="$folder/" 'index($2, at) == 1 { print $2 }' /proc/self/mounts 2>/dev/null | sort -r | while read -r mount; do umount "$mount"; done
    done
    rm -rf --one-file-system "$root"
}
trap 'finish; exit 143' TERM INT HUP
state=slow
n=0
while [ $n -lt 150 ]; do
    alive || { state=exited; break; }
    grep -q 'successfully booted' "$here/log" && { state=booted; break; }
    sleep 0.2
    n=$((n + 1))
done
echo "state $state"
if [ $state = booted ]; then
    timeout 20 "$2" --address "$here/c.sock" plugins ls 2>"$here/err" | grep cri | sed 's/^/plugin /'
    sed 's/^/ctr /' "$here/err"
fi
finish
grep -E 'level=(fatal|panic)|^containerd: |cri plugin|v1\.cri|v1\.runtime|invalid plugin config' "$here/log" | sed 's/^/log /'
tail -n 1 "$here/log" | sed 's/^/last /'
"#;

/// What the scratch daemon said.
#[derive(Debug, PartialEq)]
pub(super) enum Proof {
    /// The CRI plugin loaded, with this default runtime where the log names it.
    Loaded {
        default: Option<String>,
    },
    Failed(String),
}

/// Boots a daemon with `text` in place of its configuration; `view` is what the daemon makes of that text. Where it
/// reads further files, which could undo [`apart`], the daemon's own dump of all of them together is booted.
pub(super) fn boot(host: &dyn Host, daemon: &Daemon, text: &str, view: &View) -> Result<Proof, Error> {
    let alone = !names_imports(text) && daemon.other_files(host, view)?.is_empty();
    let filled_in = moved(&daemon.filled_in(text), &daemon.config, "{scratch}/config.toml");
    // In version 1 the addresses and folders below have other names.
    let alone = alone && Text::parse(&filled_in).is_ok_and(|text| text.version() >= 2);
    let text = if alone { filled_in } else { view.text.clone() };
    let apart = match apart(&text, alone, &view.disabled) {
        Ok(apart) => apart,
        Err(message) => return Ok(Proof::Failed(message)),
    };
    let probe = Probe {
        files: vec![("config.toml".into(), apart.into_bytes()), ("prove.sh".into(), SCRIPT.as_bytes().to_vec())],
        timeout_s: Some(LIMIT_S),
        env: daemon.env.clone(),
        ..Probe::of(&["sh", "{scratch}/prove.sh", daemon.binary.as_str(), daemon.ctr.as_str(), view.root.as_str()])
    };
    let output = host.probe(&probe)?;
    Ok(judge(&output.stdout))
}

/// Returns the configuration with every address and folder that two daemons must not share moved into the scratch
/// folder. What matters to the CRI plugin stays.
fn apart(text: &str, alone: bool, disabled: &[String]) -> Result<String, String> {
    let mut text = Text::parse(text)?;
    let version = text.version();
    if !alone {
        text.put(&[], "imports", &Value::Array(Vec::new()))?;
        if !disabled.is_empty() {
            text.put(&[], "disabled_plugins", &json!(disabled))?;
        }
    }
    for (table, key) in [("debug", "address"), ("metrics", "address"), ("grpc", "tcp_address"), ("cgroup", "path")] {
        if text.get(&[table, key]).is_some() {
            text.put(&[table], key, &"".into())?;
        }
    }
    // What the log tells is part of the proof.
    text.put(&["debug"], "level", &"info".into())?;
    text.put(&["debug"], "format", &"".into())?;
    if text.get(&["ttrpc", "address"]).is_some() {
        text.put(&["ttrpc"], "address", &"{scratch}/c.sock.ttrpc".into())?;
    }
    if text.get(&["temp"]).is_some() {
        text.put(&[], "temp", &"".into())?;
    }
    let server = |name: &str| format!("io.containerd.server.v1.{name}");
    for (plugin, value) in [("debug", ""), ("metrics", ""), ("grpc-tcp", ""), ("ttrpc", "{scratch}/c.sock.ttrpc")] {
        if text.get(&["plugins", &server(plugin), "address"]).is_some() {
            text.put(&["plugins", &server(plugin)], "address", &value.into())?;
        }
    }
    text.remove(&["plugins", &server("grpc")], "address");
    let cni = if version == 2 { "io.containerd.grpc.v1.cri" } else { "io.containerd.cri.v1.runtime" };
    text.put(&["plugins", "io.containerd.internal.v1.opt"], "path", &"{scratch}/opt".into())?;
    text.put(&["plugins", "io.containerd.nri.v1.nri"], "disable", &true.into())?;
    text.put(&["plugins", "io.containerd.grpc.v1.cri"], "stream_server_port", &"0".into())?;
    text.put(&["plugins", "io.containerd.grpc.v1.cri"], "stream_server_address", &"127.0.0.1".into())?;
    text.put(&["plugins", cni, "cni"], "conf_dir", &"{scratch}/cni".into())?;
    for keys in table_keys(&text) {
        let runtimes: Vec<&str> = keys.into_iter().chain(["runtimes"]).collect();
        let names = text.get(&runtimes).and_then(|item| item.as_table_like()).into_iter();
        let names: Vec<String> = names.flat_map(|table| table.iter().map(|(name, _)| name.to_owned())).collect();
        for name in names {
            let keys: Vec<&str> = runtimes.iter().copied().chain([name.as_str()]).collect();
            let folder = text.get(&keys).and_then(|item| item.as_table_like()?.get("cni_conf_dir")?.as_str());
            if folder.is_some_and(|folder| !folder.is_empty()) {
                text.put(&keys, "cni_conf_dir", &"{scratch}/cni".into())?;
            }
        }
    }
    for plugin in text.plugins() {
        let has_folder = text.get(&["plugins", &plugin, "root_path"]).and_then(|item| item.as_str());
        let movable = plugin.starts_with("io.containerd.snapshotter.v1.") && !plugin.ends_with(".zfs");
        if movable && has_folder.is_some_and(|folder| !folder.is_empty()) {
            let folder = format!("{{scratch}}/{}", plugin.rsplit('.').next().unwrap_or("snapshots"));
            text.put(&["plugins", &plugin], "root_path", &Value::from(folder))?;
        }
    }
    Ok(text.render())
}

fn judge(said: &str) -> Proof {
    let lines = |kind: &'static str| said.lines().filter_map(move |line| line.strip_prefix(kind));
    let state = lines("state ").next().unwrap_or("unknown");
    let log = || lines("log ").chain(lines("last ")).map(message_of);
    let telling = || {
        let fault = |text: &String| {
            ["no corresponding runtime", "invalid plugin config", "failed to load plugin", "containerd: "]
                .iter()
                .any(|part| text.contains(part))
        };
        log().find(fault).or_else(|| log().next_back()).unwrap_or_else(|| "it says nothing".to_owned())
    };
    if state != "booted" {
        let how = if state == "exited" { "the daemon exits" } else { "the daemon does not come up" };
        return Proof::Failed(format!("{how}: {}", telling()));
    }
    let cri = lines("plugin ").find(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("io.containerd.grpc.v1") && words.next() == Some("cri")
    });
    match cri.and_then(|line| line.split_whitespace().next_back()) {
        Some("ok") => Proof::Loaded { default: log().find_map(|text| default_in(&text)) },
        Some(_) => Proof::Failed(format!("the CRI plugin does not load: {}", telling())),
        None => match lines("ctr ").next() {
            Some(error) => Proof::Failed(format!("the daemon can't be asked with `ctr`: {error}")),
            None => Proof::Failed(format!("the daemon has no CRI plugin: {}", telling())),
        },
    }
}

/// Returns a log line without its time, short enough for a message.
fn message_of(line: &str) -> String {
    let text = match line.strip_prefix("time=") {
        Some(rest) => rest.split_once(' ').map_or(rest, |(_, rest)| rest),
        None => line,
    };
    let keep_whole = text.contains("cri plugin");
    if keep_whole { text.to_owned() } else { text.chars().take(400).collect() }
}

/// Returns the default runtime that the CRI plugin says it starts with.
fn default_in(text: &str) -> Option<String> {
    let rest = match text.split_once("DefaultRuntimeName:") {
        Some((_, rest)) => rest,
        None => text.split_once(r#"\"defaultRuntimeName\":\""#)?.1,
    };
    let end = rest.find([' ', '\\', '"', '}'])?;
    Some(rest[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judges_what_the_daemon_said() {
        let one = "state booted\nplugin io.containerd.grpc.v1  cri  linux/amd64  ok        \n\
            log time=\"2026\" level=info msg=\"Start cri plugin with config {ContainerdConfig:{DefaultRuntimeName:nvidia X:}\"\n";
        assert_eq!(judge(one), Proof::Loaded { default: Some("nvidia".into()) });
        let two = "state booted\nplugin io.containerd.cri.v1 runtime linux/amd64 ok\nplugin io.containerd.grpc.v1 cri - ok\n\
            log time=\"2026\" msg=\"starting cri plugin\" config=\"{\\\"containerd\\\":{\\\"defaultRuntimeName\\\":\\\"runc\\\"}}\"\n";
        assert_eq!(judge(two), Proof::Loaded { default: Some("runc".into()) });
        let dead = "state booted\nplugin io.containerd.grpc.v1 cri linux/amd64 error\n\
            log time=\"2026\" level=warning msg=\"failed to load plugin io.containerd.grpc.v1.cri\" error=\"no corresponding runtime\"\n";
        assert!(matches!(judge(dead), Proof::Failed(text) if text.contains("no corresponding runtime")));
        assert!(
            matches!(judge("state exited\nlast containerd: bad\n"), Proof::Failed(text) if text.ends_with("containerd: bad"))
        );
    }

    #[test]
    fn keeps_apart_what_two_daemons_must_not_share() {
        let text = "version = 2\n[metrics]\naddress = \"0.0.0.0:10257\"\n\
            [plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"pause\" # ours\nstream_server_port = \"10010\"\n";
        let apart = apart(text, true, &[]).expect("it parses");
        assert!(!apart.contains("10257") && !apart.contains("10010") && apart.contains("\"pause\" # ours"), "{apart}");
        assert!(apart.contains("disable = true") && apart.contains("{scratch}/opt"), "{apart}");
    }
}
