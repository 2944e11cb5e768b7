//! CRI-O: a file of its own in `crio.conf.d`, whose files are read one after the other and merged.

use serde_json::{Value, json};

use super::dropin::HEADER;
use super::edit::Text;
use super::view::{is_empty, value_of};
use super::{Args, Mode, State, folder, refused};
use crate::host::{Map, Put as _};
use crate::{Change, Diff, Error, Exec, Host, Plan, Probe, Write};

/// The systemd unit that runs it.
pub(super) const SERVICE: &str = "crio";
/// Where all its configuration is.
pub(super) const FOLDER: &str = "/etc/crio";
const OURS: &str = "/etc/crio/crio.conf.d/99-nvidia.toml";

/// Waits until CRI-O answers.
const WAIT: &str = r#"n=0
while [ $n -lt 60 ]; do
    timeout 10 crio status info >/dev/null 2>&1 && exit 0
    sleep 1
    n=$((n + 1))
done
echo "CRI-O does not answer after $n seconds: see \`journalctl -u crio\`" >&2
exit 1"#;

/// Returns whether CRI-O runs; `None` where it is not installed.
pub(super) fn unit(host: &dyn Host) -> Result<Option<bool>, Error> {
    let output =
        host.probe(&Probe::of(&["systemctl", "show", "--property=LoadState,ActiveState", "--no-pager", SERVICE]))?;
    let value = |key: &str| output.stdout.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    let loaded = output.rc == 0 && value("LoadState=") == "loaded";
    Ok(loaded.then(|| matches!(value("ActiveState="), "active" | "activating" | "reloading")))
}

/// What CRI-O makes of all its files.
struct View {
    default: String,
    runtimes: Map,
}

/// Asks the daemon that runs, or has the program read its files.
fn view(host: &dyn Host, running: bool) -> Result<View, Error> {
    let argv: &[&str] = if running { &["crio", "status", "config"] } else { &["crio", "config"] };
    let output = host.probe(&Probe::of(argv))?;
    if output.rc != 0 {
        return Err(refused(format!("`{}`: {}", argv.join(" "), output.stderr.trim())));
    }
    let text = Text::parse(&output.stdout)
        .map_err(|place| refused(format!("what `{}` prints is no valid TOML: {place}", argv.join(" "))))?;
    let runtime = text.get(&["crio", "runtime"]).map(value_of).unwrap_or_default();
    // What the program prints of its files has every setting that is as by default in a comment.
    let in_comment = || output.stdout.lines().find_map(|line| line.strip_prefix("# default_runtime = "));
    let default = runtime.get("default_runtime").and_then(Value::as_str).or_else(in_comment).unwrap_or_default();
    let default = default.trim_matches('"').to_owned();
    let runtimes = runtime.get("runtimes").and_then(Value::as_object).cloned().unwrap_or_default();
    Ok(View { default, runtimes })
}

pub(super) fn plan(args: &Args, host: &dyn Host) -> Result<Plan, Error> {
    let running = unit(host)?.unwrap_or_default();
    let view = view(host, running)?;
    let name = args.runtime_name.as_str();
    let mut plan = Plan { transaction: true, ..Plan::default() };
    let present = host.read(OURS)?;
    match args.state {
        State::Absent if present.as_deref().is_some_and(|bytes| bytes.starts_with(HEADER.as_bytes())) => {
            plan.changes.push(Change::Remove { path: OURS.to_owned() });
        }
        State::Absent => {}
        State::Present if satisfied(args, &view) => {}
        State::Present => {
            if args.require_binary && host.stat(&args.binary)?.is_none() {
                let binary = &args.binary;
                return Err(refused(format!("`{binary}` is not on this host: install nvidia-container-toolkit first")));
            }
            let note = folder::note(folder::made(host, OURS)?);
            let text = format!("{HEADER}{note}{}", text(args, &view, running)?);
            if present.as_deref().is_some_and(|bytes| !bytes.starts_with(HEADER.as_bytes())) {
                return Err(refused(format!(
                    "`{OURS}` is not of this module, and does not give CRI-O the runtime `{name}` as \
                    asked for: remove it first"
                )));
            }
            if present.as_deref() != Some(text.as_bytes()) {
                plan.changes.extend(folder::make(host, OURS)?);
                plan.changes.push(Change::Write(Write::new(OURS, text)));
            } else if !running {
                // It is read at the next start.
                return Ok(told(plan, host, &view));
            }
            let before = if view.default.is_empty() { "none" } else { &view.default };
            let after = if args.mode == Mode::Default { name } else { before };
            let said = format!(
                "effective configuration of CRI-O:\n  runtime {name}: starts {}\n  default runtime: {before} -> {after}\n",
                args.binary
            );
            plan.diff = vec![Diff { prepared: Some(said), ..Diff::default() }];
            plan.changes.extend(restart(args, running));
            plan.after_undo = restart(args, running);
            return Ok(told(plan, host, &view));
        }
    }
    if !plan.changes.is_empty() {
        plan.changes.extend(restart(args, running));
        plan.changes.extend(folder::remove(host, OURS)?);
        plan.after_undo = restart(args, running);
    }
    Ok(told(plan, host, &view))
}

fn satisfied(args: &Args, view: &View) -> bool {
    let path = |name: &str| view.runtimes.get(name).and_then(|table| table.get("runtime_path")).and_then(Value::as_str);
    match args.mode {
        Mode::Default => path(&view.default) == Some(&args.binary),
        Mode::RuntimeClass => path(&args.runtime_name) == Some(&args.binary) && view.default != args.runtime_name,
    }
}

/// Returns the file's text: the default runtime's table with another program.
fn text(args: &Args, view: &View, running: bool) -> Result<String, Error> {
    let base = args.inherit.as_deref().unwrap_or(&view.default);
    let Some(table) = view.runtimes.get(base).and_then(Value::as_object) else {
        let names: Vec<&str> = view.runtimes.keys().map(String::as_str).collect();
        let hint = if running { "" } else { "; start CRI-O first where `{base}` is one of its own" };
        return Err(refused(format!(
            "CRI-O has no runtime `{base}` to inherit from, it has {}{hint}",
            names.join(", ")
        )));
    };
    let kind = table.get("runtime_type").and_then(Value::as_str).unwrap_or_default();
    if !matches!(kind, "" | "oci") {
        let message = format!("CRI-O's runtime `{base}` is of type `{kind}`, which can't start another program");
        return Err(refused(format!("{message}: name one of type `oci` with `inherit`")));
    }
    let mut wanted = Map::new();
    wanted.put("runtime_path", args.binary.as_str());
    wanted.put("runtime_type", "oci");
    for (key, value) in table {
        if !is_empty(value) && !wanted.contains_key(key) && !value.is_object() {
            wanted.insert(key.clone(), value.clone());
        }
    }
    let mut text = Text::parse("").map_err(refused)?;
    if args.mode == Mode::Default {
        text.put(&["crio", "runtime"], "default_runtime", &args.runtime_name.as_str().into()).map_err(refused)?;
    }
    text.put_table(&["crio", "runtime", "runtimes", args.runtime_name.as_str()], &wanted).map_err(refused)?;
    Ok(text.render())
}

fn restart(args: &Args, running: bool) -> Vec<Change> {
    if !running || !args.restart {
        return Vec::new();
    }
    let exec = |words: &[&str]| Change::Exec(Exec { timeout_s: Some(120), ..Exec::of(words) });
    vec![exec(&["systemctl", "restart", SERVICE]), exec(&["sh", "-c", WAIT])]
}

fn told(plan: Plan, host: &dyn Host, view: &View) -> Plan {
    let names: Vec<&String> = view.runtimes.keys().collect();
    plan.with("config", OURS)
        .with("default_runtime", view.default.as_str())
        .with("runtimes", json!(names))
        .with("restarted", super::propose::restarted(host))
}
