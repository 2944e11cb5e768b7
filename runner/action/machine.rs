//! Actions about a host as a whole: facts, raw commands, reboots, waiting for it.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Failure, text};
use crate::connection::Contents;
use crate::execute::{self, ItemRun, truth};
use crate::value::{Map, Value};

pub(super) fn gather_facts(run: &ItemRun<'_>, args: &Map) -> Result<Map, Failure> {
    execute::module(run, "setup", args, &Contents::default())
}

/// Runs a command without the agent, for hosts that can't run one yet.
pub(super) fn raw(run: &ItemRun<'_>, args: &Map) -> Result<Map, Failure> {
    let line = text(args, "_raw_params").or_else(|| text(args, "cmd")).unwrap_or_default();
    let mut result = Map::new();
    if run.check {
        result.insert("skipped", true);
        result.insert("msg", "would have run if not in check mode");
        return Ok(result);
    }
    let configured = || run.world.options.connect.shell.clone();
    let command = match text(args, "executable").or_else(configured) {
        Some(shell) => format!("{shell} -c {}", shell_words::quote(&line)),
        None => line,
    };
    let reach = run.reach();
    let output = run
        .world
        .connections
        .with(&reach.target, |connection| connection.raw(reach.become_.as_ref(), &command, None, None))?;
    result.insert("changed", true);
    result.insert("rc", Value::Int(i64::from(output.rc)));
    result.insert("stdout", output.stdout);
    result.insert("stderr", output.stderr);
    if output.rc != 0 {
        result.insert("failed", true);
        result.insert("msg", "non-zero return code");
    }
    Ok(result)
}

/// Wait until a host can be reached and runs modules.
///
/// ```yaml
/// - wait_for_connection:
///     timeout: 300
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitArgs {
    /// Seconds before the first attempt.
    #[serde(default)]
    delay: f64,
    /// Seconds after which the task fails.
    #[serde(default = "ten_minutes")]
    timeout: f64,
    /// Seconds between attempts.
    #[serde(default = "one")]
    sleep: f64,
    /// Seconds that one attempt may take.
    #[serde(default = "five")]
    connect_timeout: f64,
}

fn ten_minutes() -> f64 {
    600.0
}
fn one() -> f64 {
    1.0
}
fn five() -> f64 {
    5.0
}

pub(super) fn wait_for_connection(run: &ItemRun<'_>, args: WaitArgs, _: &Map) -> Result<Map, Failure> {
    let started = Instant::now();
    let mut result = Map::new();
    if run.check {
        result.insert("elapsed", Value::Int(0));
        return Ok(result);
    }
    run.world.sleep(seconds(args.delay));
    wait(run, started + seconds(args.timeout), seconds(args.sleep), seconds(args.connect_timeout))?;
    result.insert("changed", false);
    result.insert("elapsed", Value::Int(started.elapsed().as_secs() as i64));
    Ok(result)
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, 1e9))
}

/// Tries until the host runs a module.
fn wait(run: &ItemRun<'_>, end: Instant, pause: Duration, connect_timeout: Duration) -> Result<(), Failure> {
    let mut reach = run.reach().clone();
    reach.target.connect_timeout = connect_timeout;
    reach.target.retries = 0;
    loop {
        let request =
            kubeon_modules::wire::Task { id: run.world.next_id(), module: "ping".to_owned(), ..Default::default() };
        let asked = run.world.connections.with(&reach.target, |connection| {
            connection.run(reach.become_.as_ref(), &request, &Contents::default(), &|_| {})
        });
        match asked {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() >= end || run.world.is_interrupted() => {
                return Err(Failure::message(format!("timed out waiting for the host: {}", error.message)));
            }
            Err(error) => run.alive(&error.message),
        }
        run.world.sleep(pause);
    }
}

/// The module starts the host anew; this waits for its return.
pub(super) fn reboot(run: &ItemRun<'_>, args: &Map) -> Result<Map, Failure> {
    let mut result = Map::new();
    result.insert("changed", true);
    result.insert("rebooted", true);
    if run.check {
        return Ok(result);
    }
    if matches!(run.reach().target.via, crate::connection::Via::Local) {
        return Err(Failure::message("refused: this would reboot the machine that kubeon-run runs on"));
    }
    let number = |key: &str, usual: f64| text(args, key).and_then(|text| text.parse().ok()).unwrap_or(usual);
    let started = Instant::now();
    let delay = number("pre_reboot_delay", 0.0);
    let end = started + seconds(number("reboot_timeout", ten_minutes()) + delay);
    let before = BootId::of(run, args)?;
    let asked = execute::module(run, "reboot", args, &Contents::default())?;
    if asked.get("failed").is_some_and(truth) {
        return Err(Failure::Failed(Box::new(asked)));
    }
    run.world.connections.close(&run.reach().target);
    run.world.sleep(seconds(delay));
    loop {
        // A host that is half up refuses this and that.
        let last = match before.has_changed(run, &asked) {
            Ok(true) => break,
            Ok(false) => String::new(),
            Err(failure) => format!(": {}", failure.reason()),
        };
        run.alive("waiting for the host to come back");
        if Instant::now() >= end || run.world.is_interrupted() {
            let waited = started.elapsed().as_secs();
            return Err(Failure::message(format!("the host has not come back within {waited} s of its reboot{last}")));
        }
        run.world.connections.close(&run.reach().target);
        run.world.sleep(Duration::from_secs(1));
    }
    run.world.sleep(seconds(number("post_reboot_delay", 0.0)));
    let test = text(args, "test_command").unwrap_or_else(|| "whoami".to_owned());
    loop {
        match shell(run, &test) {
            Ok(_) => break,
            Err(failure) if Instant::now() >= end || run.world.is_interrupted() => return Err(failure),
            Err(_) => run.world.sleep(Duration::from_secs(1)),
        }
    }
    result.insert("elapsed", Value::Int(started.elapsed().as_secs() as i64));
    Ok(result)
}

/// What differs between two starts of a host: the module's own id of one, or what the user's command prints.
struct BootId {
    command: Option<String>,
    printed: String,
}

impl BootId {
    fn of(run: &ItemRun<'_>, args: &Map) -> Result<BootId, Failure> {
        let command = text(args, "boot_time_command");
        let printed = command.as_deref().map(|command| shell(run, command)).transpose()?.unwrap_or_default();
        Ok(BootId { command, printed })
    }

    /// Returns whether the host has started anew; `asked` is what the module told before.
    fn has_changed(&self, run: &ItemRun<'_>, asked: &Map) -> Result<bool, Failure> {
        if let Some(command) = &self.command {
            return shell(run, command).map(|printed| printed != self.printed);
        }
        let mut args = Map::new();
        args.insert("ended_boot_id", asked.get("boot_id").cloned().unwrap_or_default());
        let told = execute::module(run, "reboot", &args, &Contents::default())?;
        Ok(told.get("rebooted").is_some_and(truth))
    }
}

/// Runs a shell's line on the host and returns what it printed.
fn shell(run: &ItemRun<'_>, line: &str) -> Result<String, Failure> {
    let mut args = Map::new();
    args.insert("_raw_params", line);
    let result = execute::module(run, "shell", &args, &Contents::default())?;
    if result.get("failed").is_some_and(truth) {
        return Err(Failure::Failed(Box::new(result)));
    }
    Ok(text(&result, "stdout").unwrap_or_default())
}
