//! What the NVIDIA runtime must be on this daemon, whether it already is, and what a candidate gets wrong.

use serde_json::Value;

use crate::containerd_runtime::view::{Cri, Difference, View, differences, is_about, is_empty};
use crate::containerd_runtime::{Args, Mode};
use crate::host::Map;
use crate::host::Put as _;

/// The shim whose option `BinaryName` names the runtime's program.
pub(super) const RUNC_V2: &str = "io.containerd.runc.v2";
/// Where the GPU operator's toolkit container keeps its binaries.
const OPERATOR_FOLDER: &str = "/usr/local/nvidia/toolkit/";

/// The runtime's table as the daemon shall see it.
#[derive(Debug)]
pub(super) struct Wanted {
    /// The runtime whose options it inherits.
    pub base: String,
    pub table: Map,
}

/// Returns the program that a runtime starts, where its options name one.
pub(super) fn binary_of(table: &Value) -> &str {
    table.get("options").and_then(|options| options.get("BinaryName")).and_then(Value::as_str).unwrap_or_default()
}

fn runtime_type(table: &Map) -> &str {
    table.get("runtime_type").and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn systemd_cgroup(table: &Map) -> bool {
    table.get("options").and_then(|options| options.get("SystemdCgroup")).and_then(Value::as_bool).unwrap_or_default()
}

/// Returns the runtime that pods get unless they ask for another: on 1.x the deprecated table `default_runtime` wins
/// over `default_runtime_name` when its type is set.
pub(super) fn legacy_default(view: &View) -> Option<&str> {
    view.cri_text(&["containerd", "default_runtime", "runtime_type"])
}

/// Whether the daemon already has the runtime as asked for. `ours` says that the present default was made by us.
pub(super) fn satisfied(args: &Args, view: &View, cri: &Cri, ours: bool) -> bool {
    if legacy_default(view).is_some() {
        return false;
    }
    let is_nvidia = |name: &str| cri.runtimes.get(name).is_some_and(|table| binary_of(table) == args.binary);
    match args.mode {
        Mode::Default => is_nvidia(&cri.default),
        Mode::RuntimeClass if !is_nvidia(&args.runtime_name) || !cri.runtimes.contains_key(&cri.default) => false,
        // Another hand made it the default: that is its own business, and a warning.
        Mode::RuntimeClass if cri.default == args.runtime_name => !ours,
        Mode::RuntimeClass => match wanted(args, view, cri, 2) {
            Ok(wanted) => cri.runtimes.get(&args.runtime_name).is_some_and(|table| same(table, &wanted.table)),
            Err(_) => true,
        },
    }
}

/// Returns what the runtime's table must be: the default runtime's, with another program.
///
/// # Errors
/// Why this module must not decide that.
pub(super) fn wanted(args: &Args, view: &View, cri: &Cri, major: u32) -> Result<Wanted, String> {
    let present = cri.runtimes.get(&args.runtime_name).map(binary_of).unwrap_or_default();
    if present.starts_with(OPERATOR_FOLDER) && present != args.binary && !args.repair {
        let name = &args.runtime_name;
        return Err(format!(
            "the runtime `{name}` is the GPU operator's (`{present}`), which writes it again: leave it to the operator, \
             or turn its toolkit off and give `repair: true`"
        ));
    }
    if let Some(kind) = legacy_default(view)
        && !args.repair
    {
        return Err(format!(
            "the deprecated table `default_runtime` is set to `{kind}`, and this containerd uses it whatever \
             `default_runtime_name` says: remove it, or give `repair: true` to have it removed"
        ));
    }
    let base = match &args.inherit {
        Some(name) if !cri.runtimes.contains_key(name) => {
            return Err(format!("there is no runtime `{name}` to inherit"));
        }
        Some(name) => name.clone(),
        None if cri.runtimes.contains_key(&cri.default) => cri.default.clone(),
        None if args.mode == Mode::RuntimeClass => {
            return Err(format!(
                "the default runtime `{}` does not exist, so no pod starts: repair that first",
                cri.default
            ));
        }
        // A file that may be rewritten whole gets one.
        None if cri.runtimes.contains_key("runc") || args.repair || args.migrate => "runc".to_owned(),
        None => {
            return Err(format!(
                "neither the default runtime `{}` nor `runc` exists, so no pod starts, and there are no options to \
                 inherit: repair that first, or give `repair: true` to have one written",
                cri.default
            ));
        }
    };
    let mut table = Map::new();
    let source = cri.runtimes.get(&base).and_then(Value::as_object).cloned().unwrap_or_default();
    let kind = if source.is_empty() { RUNC_V2 } else { runtime_type(&source) };
    let knows_binary = kind == RUNC_V2 || kind == "io.containerd.runc.v1" && major < 2;
    if !knows_binary && !args.repair {
        return Err(format!(
            "the runtime `{base}` is of type `{kind}`, which can't start another program: its options can't be \
             inherited; name a runtime of type `{RUNC_V2}` with `inherit`, or give `repair: true` to use that type"
        ));
    }
    table.put("runtime_type", if knows_binary { kind } else { RUNC_V2 });
    for (key, value) in source {
        let usual = matches!(key.as_str(), "sandboxer" | "sandbox_mode") && value == "podsandbox";
        if !is_empty(&value) && !usual && key != "runtime_type" && key != "options" {
            table.insert(key, value);
        }
    }
    let mut options = Map::new();
    options.put("BinaryName", args.binary.as_str());
    let inherited = cri.runtimes.get(&base).and_then(|table| table.get("options")).and_then(Value::as_object);
    for (key, value) in inherited.into_iter().flatten() {
        if key != "BinaryName" && !is_empty(value) {
            options.insert(key.clone(), value.clone());
        }
    }
    table.put("options", options);
    Ok(Wanted { base, table })
}

/// Returns a runtime's table as it must be written where the daemon forgets its built-in one: what is not the zero of
/// its type, and the option that everybody looks for.
pub(super) fn written_out(table: &Value) -> Map {
    let mut written = Map::new();
    for (key, value) in table.as_object().into_iter().flatten() {
        if key != "options" && !is_empty(value) {
            written.insert(key.clone(), value.clone());
        }
    }
    let options = table.get("options").and_then(Value::as_object);
    let options: Map = options
        .into_iter()
        .flatten()
        .filter(|(key, value)| !is_empty(value) || key.as_str() == "SystemdCgroup")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if !options.is_empty() {
        written.put("options", options);
    }
    written
}

/// Whether a table as the daemon sees it says what `wanted` says, and nothing else.
fn same(table: &Value, wanted: &Map) -> bool {
    let empty = Map::new();
    let table = table.as_object().unwrap_or(&empty);
    let keys = table.keys().chain(wanted.keys());
    keys.into_iter().all(|key| {
        let (a, b) = (table.get(key).unwrap_or(&Value::Null), wanted.get(key).unwrap_or(&Value::Null));
        match (a, b) {
            (Value::Object(_), Value::Object(inner)) => same(a, inner),
            _ if matches!(key.as_str(), "sandboxer" | "sandbox_mode") && b.is_null() => {
                a == "podsandbox" || is_empty(a)
            }
            _ => a == b || is_empty(a) && is_empty(b),
        }
    })
}

/// Returns what is wrong with a candidate, as the daemon sees it: anything but the one thing asked for.
pub(super) fn faults(args: &Args, before: &View, after: &View, wanted: &Wanted) -> Vec<String> {
    let Some(cri) = after.enabled_cri() else { return vec!["the CRI plugin would be disabled".into()] };
    let mut faults = Vec::new();
    let name = &args.runtime_name;
    match cri.runtimes.get(name) {
        None => faults.push(format!("the daemon would not see the runtime `{name}`")),
        Some(table) if !same(table, &wanted.table) => {
            faults.push(format!("the daemon would see the runtime `{name}` with other options"));
        }
        Some(_) => {}
    }
    let default = match args.mode {
        Mode::Default => name.as_str(),
        Mode::RuntimeClass => before.cri.as_ref().map_or("", |cri| cri.default.as_str()),
    };
    if cri.default != default {
        faults.push(format!("the default runtime would be `{}`, not `{default}`", cri.default));
    }
    if !cri.runtimes.contains_key(&cri.default) {
        faults.push(format!("the default runtime `{}` would not exist, so the CRI plugin would not load", cri.default));
    }
    faults
        .extend(strangers(args, before, after).iter().map(|difference| format!("`{}` would change", difference.path)));
    faults
}

/// Returns the differences that are not about our runtime.
pub(super) fn strangers(args: &Args, before: &View, after: &View) -> Vec<Difference> {
    let mut found = differences(before, after);
    found.retain(|difference| {
        let repaired = args.repair && difference.path.contains("].containerd.default_runtime.");
        let enabled = args.enable_cri && difference.path == "disabled_plugins";
        !is_about(difference, &args.runtime_name) && !repaired && !enabled
    });
    found
}
