//! The plain form: read everything, show every mistake, then run.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use super::Problem;
use super::again::{self, Earlier};
use super::args::AdhocArguments;
use super::output;
use super::run_args::{OutputFormat, RunArguments};
use super::settings::{self, Settings};
use crate::execute::{self, World};
use crate::inventory::Inventory;
use crate::playbook::{Loader, Play};
use crate::report::{self, About, Format};
use crate::source::{Diagnostic, Severity};
use crate::{inventory, plan};

/// How often an ad-hoc job is asked after, unless the user says so: `-P` of ansible.
const DEFAULT_POLL_S: u64 = 15;

/// What was read and found without a mistake.
pub(super) struct Ready {
    pub settings: Settings,
    pub loader: Loader,
    pub plays: Vec<Play>,
    pub inventory: Inventory,
    pub warnings: Vec<Diagnostic>,
}

/// A playbook that is in no file: what `adhoc` makes of its command line.
pub(super) struct Given {
    text: String,
    format: Format,
}

pub(super) fn read(args: &RunArguments, strict: bool, given: Option<&Given>) -> Result<Ready, Problem> {
    if args.playbooks.is_empty() {
        return Err(Problem::usage("name a playbook to run, as in `kubeon-run site.yml`"));
    }
    let mut settings = settings::gather(args)?;
    let folders: Vec<PathBuf> = args
        .playbooks
        .iter()
        .map(|path| {
            path.parent().filter(|path| !path.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), PathBuf::from)
        })
        .collect();
    let reading = &settings.run.inventory_reading;
    let (inventory, mut problems) = inventory::read(&settings.inventory, &folders, reading, &settings.load.vault);
    problems.append(&mut settings.problems);
    let mut loader = Loader::new(settings.load.clone());
    let mut plays = Vec::new();
    for path in &args.playbooks {
        if let Some(given) = given {
            plays.extend(loader.carried(path, &given.text));
        } else if path.is_file() {
            plays.extend(loader.playbook(path));
        } else if path.is_dir() {
            return Err(Problem::new(format!(
                "`{0}` is a folder: name a playbook in it, as in `{0}/site.yml`",
                path.display()
            )));
        } else {
            return Err(Problem::new(format!("no playbook `{}`", path.display())));
        }
    }
    problems.extend(loader.take_problems());
    problems.extend(variables_elsewhere(&settings.config, &folders, &plays));
    problems.extend(plan::check(&plays, &inventory, &settings.run, &loader, strict));
    problems.extend(plan::check_files(&plays, &inventory, &settings.run, &mut loader));
    plan::sort(&mut problems);
    let (errors, warnings): (Vec<_>, Vec<_>) =
        problems.into_iter().partition(|problem| problem.severity == Severity::Error);
    if !errors.is_empty() {
        report::show_diagnostics(&warnings);
        report::show_diagnostics(&errors);
        let count = errors.len();
        let what = if count == 1 { "one mistake".to_owned() } else { format!("{count} mistakes") };
        // What is wrong on the command line alone, or is closed to whoever runs it, is no mistake in what was read.
        let elsewhere = |error: &Diagnostic| error.place.is_nowhere() || crate::vault::says_closed(&error.message);
        let code = if errors.iter().all(elsewhere) { 1 } else { 4 };
        return Err(Problem { message: format!("{what} found; nothing was run"), code });
    }
    Ok(Ready { settings, loader, plays, inventory, warnings })
}

/// Refuses plays with `group_vars` beside an imported playbook, where the user has asked that they count.
fn variables_elsewhere(config: &super::Config, folders: &[PathBuf], plays: &[Play]) -> Option<Diagnostic> {
    let roots = config.get(&["ANSIBLE_PLAYBOOK_VARS_ROOT"], "defaults", "playbook_vars_root")?;
    let holds = |play: &&Play| ["group_vars", "host_vars"].iter().any(|name| play.folder.join(name).is_dir());
    let is_named =
        |play: &&Play| folders.iter().any(|folder| play.folder.canonicalize().ok() == folder.canonicalize().ok());
    let play = plays.iter().filter(|play| !is_named(play)).find(holds)?;
    let message = format!("`playbook_vars_root = {roots}` asks for the variables in `{}`", play.folder.display());
    let help = "`group_vars` and `host_vars` beside the playbooks named on the command line count: move them there";
    (roots.trim() != "top").then(|| Diagnostic::error(play.place, message).help(help))
}

/// Checks without connecting.
pub fn check(args: RunArguments) -> Result<u8, Problem> {
    let ready = read(&args, true, None)?;
    report::show_diagnostics(&ready.warnings);
    let tasks: usize = ready.plays.iter().map(plan::count_tasks).sum();
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let (plays, tasks) = (counted(ready.plays.len(), "play"), counted(tasks, "task"));
    report::say(&format!("{plays} with {tasks}: no mistake found"));
    Ok(0)
}

/// Runs playbooks.
pub fn run(args: RunArguments) -> Result<u8, Problem> {
    carry_out(args, None)
}

/// Refuses what chooses tasks of a playbook where there is none: it would choose nothing, and the run would look well.
pub(super) fn no_playbook(args: &RunArguments) -> Result<(), Problem> {
    let given = [
        ("--skip-tags", !args.skip_tags.is_empty()),
        ("--start-at-task", args.start_at_task.is_some()),
        ("--list-tasks", args.list_tasks),
        ("--list-tags", args.list_tags),
    ];
    if !args.tags.is_empty() {
        let message = "`-t` of `ansible`, a folder for results, is not written: `--output json` gives them; and one task has no tags";
        return Err(Problem::usage(message));
    }
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(Problem::usage(format!("`{flag}` is for playbooks, and this is one task"))),
        None => Ok(()),
    }
}

/// Runs one module on hosts.
pub fn adhoc(args: AdhocArguments) -> Result<u8, Problem> {
    let AdhocArguments {
        module_name,
        module_args,
        background,
        poll,
        one_line,
        task_timeout,
        playbook_dir,
        run: mut args,
    } = args;
    no_playbook(&args)?;
    let [pattern] = &args.playbooks[..] else {
        return Err(Problem::usage("name the hosts, as in `kubeon-run adhoc web -m ping`"));
    };
    let module_args = match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&module_args) {
        Ok(arguments) => serde_json::Value::Object(arguments),
        Err(_) if module_args.is_empty() => serde_json::Value::Null,
        Err(_) => serde_json::Value::String(module_args),
    };
    let mut task = serde_json::json!({module_name: module_args});
    if let (Some(seconds), Some(task)) = (background, task.as_object_mut()) {
        task.insert("async".to_owned(), seconds.into());
        task.insert("poll".to_owned(), poll.unwrap_or(DEFAULT_POLL_S).into());
    }
    if let (Some(seconds), Some(task)) = (task_timeout, task.as_object_mut()) {
        task.insert("timeout".to_owned(), seconds.into());
    }
    let pattern = pattern.to_string_lossy().into_owned();
    // A pattern of commas alone names everybody, as in Ansible.
    let pattern = if pattern.chars().all(|c| c == ',' || c.is_whitespace()) { "all".to_owned() } else { pattern };
    if args.list_hosts {
        let settings = settings::gather(&args)?;
        let folders = [playbook_dir.unwrap_or_default()];
        let reading = &settings.run.inventory_reading;
        let (inventory, problems) = inventory::read(&settings.inventory, &folders, reading, &settings.load.vault);
        report::show_diagnostics(&problems);
        let hosts = inventory.select(&pattern, settings.run.limit.as_deref()).map_err(Problem::new)?;
        report::say(&format!("  hosts ({}):", hosts.len()));
        hosts.iter().for_each(|host| report::say(&format!("    {host}")));
        return Ok(0);
    }
    let play = serde_json::json!([{
        "name": "Ansible Ad-Hoc",
        "hosts": pattern,
        "gather_facts": false,
        "tasks": [task],
    }]);
    let format = match (args.output, one_line) {
        (OutputFormat::Json, _) => Format::Json,
        (OutputFormat::Junit, _) => Format::Junit,
        (OutputFormat::Lines, _) => Format::Lines,
        (OutputFormat::Auto, true) => Format::Oneline,
        (OutputFormat::Auto, false) => Format::Minimal,
    };
    // JSON is YAML, too. Relative paths start from where the playbook would lie.
    args.playbooks = vec![playbook_dir.unwrap_or_default().join("ad-hoc")];
    carry_out(args, Some(Given { text: play.to_string(), format }))
}

fn carry_out(args: RunArguments, given: Option<Given>) -> Result<u8, Problem> {
    let Ready { settings, loader, plays, inventory, warnings } = read(&args, false, given.as_ref())?;
    report::show_diagnostics(&warnings);
    for warning in &settings.config.warnings {
        report::warn(warning);
    }
    if args.syntax_check || args.list_hosts || args.list_tasks || args.list_tags {
        plan::strangers(&plays, &inventory, &settings.run).iter().for_each(|warning| report::warn(warning));
    }
    if args.syntax_check {
        for path in &args.playbooks {
            report::say(&format!("\nplaybook: {}", path.display()));
        }
        return Ok(0);
    }
    if args.list_hosts || args.list_tasks || args.list_tags {
        let listing = plan::Listing { hosts: args.list_hosts, tasks: args.list_tasks, tags: args.list_tags };
        for (path, plays) in plan::by_playbook(&args.playbooks, &plays) {
            let text = plan::list(&path, &plays, &inventory, &settings.run, listing).map_err(Problem::new)?;
            report::say(text.trim_end_matches('\n'));
        }
        return Ok(0);
    }
    if args.flush_cache
        && let Some(cache) = &settings.run.fact_cache
    {
        cache.flush(&inventory.host_list());
    }
    let playbooks = args.playbooks.iter().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    let about = About { playbooks: playbooks.collect(), check: settings.run.check };
    let (mut reporting, mut run) = (output::reporting(args.output, &settings, about.clone())?, settings.run);
    if let Some(given) = given {
        let configured =
            settings.config.flag(&["ANSIBLE_LOAD_CALLBACK_PLUGINS"], "defaults", "bin_ansible_callbacks", false)?;
        if given.format != Format::Minimal || !configured {
            reporting.format = given.format;
        }
    }
    if run.shard.is_some() {
        reporting.format = Format::Part;
    }
    // The debugger's questions would be drawn over.
    if reporting.format == report::Format::Auto && execute::may_ask(&plays, &run) {
        reporting.format = report::Format::Lines;
    }
    let replay = match again::earlier(&args, &about, &inventory, &mut run)? {
        Earlier::Nothing => return Ok(0),
        Earlier::Run(replay) => replay,
    };
    if let Some(warning) = super::descriptors::make_room(inventory.host_list().len()) {
        report::warn(&warning);
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    listen_for_interrupt(&interrupted)?;
    crate::connection::ask_with(|question| super::prompt::password(question).ok());
    let (events, told) = mpsc::channel();
    let reporter = report::start(reporting, interrupted.clone(), told);
    let world = World::new(run, inventory, loader, events, interrupted, replay);
    let shown = if world.options.verbosity > 1 { plan::by_playbook(&args.playbooks, &plays) } else { Vec::new() };
    for (path, plays) in shown {
        world.tell(report::Event::Note(format!("{} plays in {}", plays.len(), path.display())));
    }
    let is_part = super::shard::begins(&world)?;
    let code = execute::run(&world, plays);
    drop(world);
    // Everything told is shown before the program ends.
    reporter.join().map_err(|_| Problem { message: "the report broke off".to_owned(), code: 250 })?;
    Ok(if is_part { super::shard::status(code) } else { code })
}

/// The first Ctrl-C lets running tasks end, a second one ends the program at once.
pub(super) fn listen_for_interrupt(interrupted: &Arc<AtomicBool>) -> Result<(), Problem> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let failed = |error: std::io::Error| Problem::new(format!("listen for Ctrl-C: {error}"));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(
            signal,
            i32::from(execute::EXIT_INTERRUPTED),
            interrupted.clone(),
        )
        .map_err(failed)?;
        signal_hook::flag::register(signal, interrupted.clone()).map_err(failed)?;
    }
    Ok(())
}
