//! Actions that only say or ask something: debug, fail, assert, pause, meta, set_stats.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Failure;
use crate::execute::ItemRun;
use crate::template;
use crate::value::{Map, Value};

/// Show a message or a variable.
///
/// ```yaml
/// - debug:
///     var: ansible_facts.kernel
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DebugArgs {
    /// What to show; `Hello world!` without `msg` and `var`.
    #[serde(rename = "msg")]
    _msg: Option<serde_json::Value>,
    /// An expression whose value is shown, not in braces. Not together with `msg`.
    #[serde(rename = "var")]
    _var: Option<serde_json::Value>,
    /// Shown only when the run has at least so many `-v`.
    verbosity: Option<serde_json::Value>,
}

pub(super) fn debug(run: &ItemRun<'_>, args: DebugArgs, raw: &Map) -> Result<Map, Failure> {
    let least = match raw.get("verbosity") {
        Some(value) => run.templar.text(value)?.parse::<u8>().unwrap_or(0),
        None => 0,
    };
    let mut result = Map::new();
    if args.verbosity.is_some() && run.world.options.verbosity < least {
        result.insert("skipped", true);
        result.insert("skipped_reason", "Verbosity threshold not met.");
        return Ok(result);
    }
    match (raw.get("msg"), raw.get("var")) {
        (Some(_), Some(_)) => return Err(Failure::message("give `msg` or `var`, not both")),
        (_, Some(var)) => {
            let name = if var.holds_template() { run.templar.value(var)? } else { var.clone() };
            let value = match &name {
                Value::Str(text) => match run.templar.expression(text) {
                    Ok(value) => value,
                    Err(error) if error.undefined.is_some() => Value::str(format!("<< error 1 - {} >>", error.message)),
                    Err(error) => return Err(error.into()),
                },
                other => other.clone(),
            };
            result.insert(name.to_string(), value);
        }
        (Some(message), None) => {
            result.insert("msg", run.templar.value(message)?);
        }
        (None, None) => {
            result.insert("msg", "Hello world!");
        }
    }
    Ok(result)
}

/// Fail with a message.
///
/// ```yaml
/// - fail:
///     msg: "{{ inventory_hostname }} has no driver"
///   when: driver is not defined
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FailArgs {
    /// What is said; `Failed as requested from task` when absent.
    msg: Option<String>,
}

pub(super) fn fail(_: &ItemRun<'_>, args: FailArgs, _: &Map) -> Result<Map, Failure> {
    Err(Failure::message(args.msg.unwrap_or_else(|| "Failed as requested from task".to_owned())))
}

/// Fail unless all conditions are true.
///
/// ```yaml
/// - assert:
///     that:
///       - gpus | int > 0
///       - driver is version("384.81", ">=")
///     fail_msg: this node can't offer GPUs
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AssertArgs {
    /// A condition or a list of them, written as in `when`.
    #[serde(rename = "that")]
    _that: serde_json::Value,
    /// What is said when one is false. Also as `msg`.
    #[serde(rename = "fail_msg", alias = "msg")]
    _fail_msg: Option<serde_json::Value>,
    /// What is said when all are true.
    #[serde(rename = "success_msg")]
    _success_msg: Option<serde_json::Value>,
    /// Whether to say less.
    #[serde(rename = "quiet")]
    _quiet: Option<serde_json::Value>,
}

pub(super) fn assert(run: &ItemRun<'_>, _: AssertArgs, raw: &Map) -> Result<Map, Failure> {
    let conditions = match raw.get("that") {
        Some(Value::List(items)) => items.to_vec(),
        Some(Value::Str(text)) if template::is_lone(text.as_str()) => {
            match run.templar.value(&Value::Str(text.clone()))? {
                Value::List(items) => items.to_vec(),
                other => vec![other],
            }
        }
        Some(one) => vec![one.clone()],
        None => Vec::new(),
    };
    let message = |keys: &[&str]| -> Result<Option<Value>, Failure> {
        match keys.iter().find_map(|key| raw.get(key)) {
            Some(message) => Ok(Some(run.templar.value(message)?)),
            None => Ok(None),
        }
    };
    let quiet = raw.get("quiet").map(|value| run.templar.value(value)).transpose()?.is_some_and(|value| value.truthy());
    for condition in conditions {
        if !run.templar.condition(&condition)? {
            let mut result = Map::new();
            result.insert("failed", true);
            result.insert("changed", false);
            result.insert("evaluated_to", false);
            result.insert("assertion", condition);
            result.insert("msg", message(&["fail_msg", "msg"])?.unwrap_or_else(|| "Assertion failed".into()));
            return Err(Failure::Failed(Box::new(result)));
        }
    }
    let mut result = Map::new();
    result.insert("changed", false);
    if !quiet {
        result.insert("msg", message(&["success_msg"])?.unwrap_or_else(|| "All assertions passed".into()));
    }
    Ok(result)
}

/// Wait for a time, or for a person to press Enter.
///
/// Without a time it waits for Enter, and goes on at once where no terminal is.
///
/// ```yaml
/// - pause:
///     prompt: Has the rack power again?
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PauseArgs {
    /// How long to wait, in minutes.
    minutes: Option<f64>,
    /// How long to wait, in seconds.
    seconds: Option<f64>,
    /// What is shown meanwhile.
    prompt: Option<String>,
    /// Whether what is typed is shown.
    #[serde(default = "yes")]
    echo: bool,
}

fn yes() -> bool {
    true
}

pub(super) fn pause(run: &ItemRun<'_>, args: PauseArgs, _: &Map) -> Result<Map, Failure> {
    let seconds = args.seconds.or(args.minutes.map(|minutes| minutes * 60.0));
    let started = std::time::Instant::now();
    let mut result = Map::new();
    match seconds {
        Some(seconds) => {
            if let Some(prompt) = &args.prompt {
                run.alive(prompt);
            }
            run.world.sleep(Duration::from_secs_f64(seconds.max(0.0)));
            result.insert("user_input", "");
        }
        None => {
            let prompt = args.prompt.unwrap_or_else(|| "Press enter to continue, Ctrl+C to interrupt".to_owned());
            let typed = crate::cli::prompt::line(&format!("[{}]\n{prompt}:", run.name()), args.echo);
            result.insert("user_input", typed.unwrap_or_default());
        }
    }
    result.insert("changed", false);
    result.insert("rc", Value::Int(0));
    result.insert("echo", args.echo);
    result.insert("delta", Value::Int(started.elapsed().as_secs() as i64));
    result.insert("stdout", format!("Paused for {:.2} seconds", started.elapsed().as_secs_f64()));
    Ok(result)
}

/// Steer the run itself.
///
/// ```yaml
/// - meta: flush_handlers
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MetaArgs {
    /// What to do.
    #[serde(rename = "_raw_params", alias = "free_form")]
    _word: MetaWord,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum MetaWord {
    FlushHandlers,
    EndPlay,
    EndBatch,
    EndHost,
    EndRole,
    ClearHostErrors,
    ClearFacts,
    Noop,
    ResetConnection,
    RefreshInventory,
}

/// The strategy does what `meta` asks for; this is reached only under `free`.
pub(super) fn meta(_: &ItemRun<'_>, _: MetaArgs, _: &Map) -> Result<Map, Failure> {
    Ok(Map::new())
}

/// Keep numbers of the run, shown at its end.
///
/// ```yaml
/// - set_stats:
///     data:
///       gpus: 1
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetStatsArgs {
    /// Names and their values.
    #[serde(rename = "data")]
    _data: serde_json::Value,
    /// Taken and not used: the numbers are those of the run.
    #[serde(default, rename = "per_host")]
    _per_host: bool,
    /// Whether numbers, lists and mappings are added to what is there; replaced otherwise.
    #[serde(default = "yes")]
    aggregate: bool,
}

pub(super) fn set_stats(run: &ItemRun<'_>, args: SetStatsArgs, raw: &Map) -> Result<Map, Failure> {
    let Some(Value::Map(data)) = raw.get("data") else {
        return Err(Failure::message("`data` must be a mapping"));
    };
    for (key, value) in &**data {
        run.world.set_custom_stat(&key.to_string(), value.clone(), args.aggregate);
    }
    let mut result = Map::new();
    result.insert("changed", false);
    Ok(result)
}
