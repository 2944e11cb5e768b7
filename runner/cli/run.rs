//! The plain form: read everything, show every mistake, then run.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use super::Problem;
use super::again::{self, Earlier};
use super::args::RunArguments;
use super::output;
use super::settings::{self, Settings};
use crate::execute::{self, World};
use crate::inventory::Inventory;
use crate::playbook::{Loader, Play};
use crate::report::{self, About};
use crate::source::{Diagnostic, Severity};
use crate::{inventory, plan};

/// What was read and found without a mistake.
struct Ready {
    settings: Settings,
    loader: Loader,
    plays: Vec<Play>,
    inventory: Inventory,
    warnings: Vec<Diagnostic>,
}

fn read(args: &RunArguments, strict: bool) -> Result<Ready, Problem> {
    if args.playbooks.is_empty() {
        return Err(Problem::usage("name a playbook to run, as in `kubeon-run site.yml`"));
    }
    if !args.module_path.is_empty() {
        return Err(Problem::usage("modules of one's own (`--module-path`) are not supported yet: built-in ones are"));
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
        if path.is_file() {
            plays.extend(loader.playbook(path));
        } else {
            return Err(Problem::new(format!("no playbook `{}`", path.display())));
        }
    }
    problems.extend(loader.take_problems());
    problems.extend(plan::check(&plays, &inventory, &settings.run, strict));
    plan::sort(&mut problems);
    let (errors, warnings): (Vec<_>, Vec<_>) =
        problems.into_iter().partition(|problem| problem.severity == Severity::Error);
    if !errors.is_empty() {
        report::show_diagnostics(&warnings);
        report::show_diagnostics(&errors);
        let count = errors.len();
        let what = if count == 1 { "one mistake".to_owned() } else { format!("{count} mistakes") };
        // What is wrong on the command line alone is no mistake in what was read.
        let code = if errors.iter().all(|error| error.place.is_nowhere()) { 1 } else { 4 };
        return Err(Problem { message: format!("{what} found; nothing was run"), code });
    }
    Ok(Ready { settings, loader, plays, inventory, warnings })
}

/// Checks without connecting.
pub fn check(args: RunArguments) -> Result<u8, Problem> {
    let ready = read(&args, true)?;
    report::show_diagnostics(&ready.warnings);
    let tasks: usize = ready.plays.iter().map(plan::count_tasks).sum();
    report::say(&format!("{} plays with {tasks} tasks: no mistake found", ready.plays.len()));
    Ok(0)
}

/// Runs playbooks.
pub fn run(args: RunArguments) -> Result<u8, Problem> {
    let Ready { settings, loader, plays, inventory, warnings } = read(&args, false)?;
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
    let (reporting, mut run) = (output::reporting(args.output, &settings, about.clone())?, settings.run);
    let replay = match again::earlier(&args, &about, &inventory, &mut run)? {
        Earlier::Nothing => return Ok(0),
        Earlier::Run(replay) => replay,
    };
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
    let code = execute::run(&world, plays);
    drop(world);
    // Everything told is shown before the program ends.
    reporter.join().map_err(|_| Problem { message: "the report broke off".to_owned(), code: 250 })?;
    Ok(code)
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
