//! Runs modules that are not built in: sends them to the host as a script and reads the JSON they write.

use serde_json::{Map as JsonMap, Value as Json, json};

use super::Failure;
use super::transfer::Parcel;
use crate::execute::{ItemRun, is_this_machine};
use crate::foreign::{Foreign, ForeignKind};
use crate::playbook::Keyword;
use crate::value::{Map, Value};

/// The status of a shell, or of `env`, that finds no such program.
const NO_PROGRAM: i64 = 127;

/// Runs such a module.
pub(super) fn run(run: &ItemRun<'_>, foreign: &Foreign, args: &Map) -> Result<Map, Failure> {
    let is_number = |value: &Value, number: f64| value.to_string().trim().parse() == Ok(number);
    if run.keyword(Keyword::Async)?.is_some_and(|seconds| !is_number(&seconds, 0.0))
        && run.keyword(Keyword::Poll)?.is_some_and(|poll| is_number(&poll, 0.0))
    {
        return Err(Failure::message(format!(
            "`{}` is not built in, and only built-in modules can be left running by `poll: 0`",
            foreign.name()
        )));
    }
    let interpreter = interpreter(run, foreign)?;
    let payload = foreign.payload(&arguments(run, foreign, args), &interpreter).map_err(Failure::message)?;
    let mut parcel = Parcel::default();
    let mut script = Map::new();
    script.insert("_raw_params", format!("kubeon_{}", foreign.name()));
    script.insert("content", parcel.content(payload.script));
    if let Some(interpreter) = payload.interpreter {
        script.insert("executable", interpreter);
    }
    // The module itself is told of check mode, and heeds it.
    let real = ItemRun {
        check: false,
        templar: run.templar.clone(),
        reach: run.reach.clone(),
        world: run.world,
        play: run.play,
        host: run.host,
        task: run.task,
        info: run.info,
        diff: run.diff,
        no_log: run.no_log,
        round: run.round,
        sending: run.sending,
    };
    let ran = parcel.send(&real, "script", &script)?;
    result(&ran, foreign, &interpreter)
}

/// Returns the Python that the host's variables name, else the one that is found there.
fn interpreter(run: &ItemRun<'_>, foreign: &Foreign) -> Result<String, Failure> {
    let reach = run.reach();
    let templar = match reach.host == *run.host {
        true => run.templar.clone(),
        false => crate::vars::templar(run.world, Some(run.play), &reach.host, None),
    };
    let named = templar.variable("ansible_python_interpreter").map(|value| templar.text(&value)).transpose()?;
    match named.filter(|name| !name.is_empty() && !name.starts_with("auto")) {
        Some(named) => Ok(named),
        // As Ansible does on the machine that it runs on.
        None if is_this_machine(&reach.host) && foreign.kind == ForeignKind::Python => {
            Ok(foreign.python_here().map_err(Failure::message)?.to_string_lossy().into_owned())
        }
        None => Ok("/usr/bin/env python3".to_owned()),
    }
}

/// Returns the arguments, with what Ansible tells its modules about the run: what every version of it knows, since a
/// module refuses what its own does not.
fn arguments(run: &ItemRun<'_>, foreign: &Foreign, args: &Map) -> JsonMap<String, Json> {
    let mut arguments = args.to_json();
    let told = json!({
        "_ansible_check_mode": run.check,
        "_ansible_debug": false,
        "_ansible_diff": run.diff,
        "_ansible_keep_remote_files": false,
        "_ansible_module_name": foreign.name(),
        "_ansible_no_log": run.no_log,
        "_ansible_remote_tmp": "~/.ansible/tmp",
        "_ansible_selinux_special_fs": ["fuse", "nfs", "vboxsf", "ramfs", "9p", "vfat"],
        "_ansible_shell_executable": "/bin/sh",
        "_ansible_socket": null,
        "_ansible_syslog_facility": "LOG_USER",
        "_ansible_tmpdir": null,
        "_ansible_verbosity": run.world.options.verbosity,
        "_ansible_version": crate::vars::language_version(),
    });
    if let Json::Object(told) = told {
        arguments.extend(told);
    }
    arguments
}

/// Reads what a module wrote: one JSON object, perhaps with other lines around it.
fn result(ran: &Map, foreign: &Foreign, interpreter: &str) -> Result<Map, Failure> {
    let text = |key: &str| ran.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (stdout, stderr) = (text("stdout"), text("stderr"));
    if let Some(object) = object_in(&stdout) {
        let mut result = Map::from_json(object);
        // A module that failed without saying so is found out by its status.
        if let Some(Value::Int(rc)) =
            ran.get("rc").filter(|_| !result.contains_key("rc") && !result.contains_key("failed"))
            && *rc != 0
        {
            result.insert("failed", true);
            result.insert("rc", *rc);
        }
        return Ok(result);
    }
    let rc = ran.get("rc").cloned().unwrap_or_default();
    let message = match &rc {
        Value::Int(NO_PROGRAM) => format!(
            "`{}` runs on hosts that have Python, and this one has no `{interpreter}`: set `ansible_python_interpreter`, \
             install Python, or use a built-in module",
            foreign.name()
        ),
        _ if ran.get("stdout").is_none() => text("msg"),
        _ => "MODULE FAILURE: No start of json char found\nSee stdout/stderr for the exact error".to_owned(),
    };
    let mut result = Map::new();
    result.insert("failed", true);
    result.insert("changed", false);
    result.insert("msg", message);
    result.insert("module_stdout", stdout);
    result.insert("module_stderr", stderr);
    result.insert("rc", rc);
    Err(Failure::Failed(Box::new(result)))
}

/// Returns the object that a text holds from the beginning of one of its lines on.
fn object_in(text: &str) -> Option<JsonMap<String, Json>> {
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    starts.filter(|at| text[*at..].trim_start_matches(' ').starts_with('{')).find_map(|at| {
        let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter::<JsonMap<String, Json>>();
        stream.next()?.ok()
    })
}

#[cfg(test)]
mod tests {
    use super::object_in;

    #[test]
    fn an_object_is_found_among_other_lines() {
        assert_eq!(object_in("warning: {x}\n{\"a\": 1}\nbye").map(|map| map.len()), Some(1));
        assert_eq!(object_in("{not json}\n  {\"a\": {\"b\": 2}} trailing").map(|map| map.len()), Some(1));
        assert!(object_in("nothing {\"a\": 1}").is_none());
    }
}
