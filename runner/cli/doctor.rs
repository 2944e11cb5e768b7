//! `kubeon-run doctor`: asks the hosts and the cluster, shows what is wrong, and mends it on demand.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};

use kubeon_modules::evidence::Evidence;

use super::Problem;
use super::doctor_args::{DoctorArguments, ReportFormat};
use super::settings::{self, Settings};
use crate::doctor::{Report, Subject, host, show, text};
use crate::execute::{self, Replay, World};
use crate::inventory;
use crate::playbook::Loader;
use crate::report::{self, Event, Outcome, Status, style};
use crate::source::Severity;

/// What every host is asked.
const HOSTS: &str = "- name: Look at hosts\n  hosts: HOSTS\n  gather_facts: false\n  tasks:\n    - name: Gather evidence\n      gpu_facts:\n";

/// Answers why GPUs are not seen.
pub fn doctor(args: DoctorArguments) -> Result<u8, Problem> {
    let mut look = look_of(&args);
    if let Some(path) = &args.text {
        look.of_text = true;
        let report = explained(path)?;
        tell(&report, &look, args.output)?;
        return Ok(report.code());
    }
    let run = args.run();
    let settings = settings::gather(&run)?;
    if settings.inventory.is_empty() {
        look.reach =
            [vec!["-i".to_owned(), "localhost,".to_owned(), "-c".to_owned(), "local".to_owned()], look.reach].concat();
    }
    let report = examine(settings)?;
    tell(&report, &look, args.output)?;
    Ok(report.code())
}

fn look_of(args: &DoctorArguments) -> show::Look {
    let playbook = playbook_of(args.playbook.as_deref());
    show::Look {
        color: report::colors(),
        all: args.verbose > 0,
        playbook: playbook.display().to_string(),
        reach: args.words(),
        of_text: false,
        columns: style::terminal_size().1,
    }
}

/// Returns the playbook that mends: the one named, the one of this folder, or the one that came with the program.
fn playbook_of(given: Option<&Path>) -> PathBuf {
    let usual = PathBuf::from("playbooks/gpu.yml");
    if let Some(path) = given {
        return path.to_owned();
    }
    let carried = std::env::current_exe().ok().and_then(|program| {
        let share = program.parent()?.parent()?.join("share/kubeon-run/playbooks/gpu.yml");
        share.is_file().then_some(share)
    });
    if usual.is_file() { usual } else { carried.unwrap_or(usual) }
}

/// Explains a text.
fn explained(path: &Path) -> Result<Report, Problem> {
    let mut bytes = Vec::new();
    let stdin = path == Path::new("-");
    let read = if stdin {
        std::io::stdin().read_to_end(&mut bytes).map(drop)
    } else {
        std::fs::read(path).map(|read| bytes = read)
    };
    read.map_err(|error| Problem::new(format!("read `{}`: {error}", path.display())))?;
    let name = if stdin { "standard input".to_owned() } else { path.display().to_string() };
    let mut subject = Subject { name, ..Subject::default() };
    text::explain(&String::from_utf8_lossy(&bytes)).into_iter().for_each(|finding| subject.find(finding));
    subject.settle();
    if subject.findings.is_empty() {
        let remark = "nothing in it is known as a reason why a GPU is not seen: give more of the log, or let `kubeon-run doctor` look at the host";
        return Ok(Report { subjects: Vec::new(), remarks: vec![remark.to_owned()] });
    }
    Ok(Report { subjects: vec![subject], remarks: Vec::new() })
}

fn tell(report: &Report, look: &show::Look, format: ReportFormat) -> Result<(), Problem> {
    let pretty = |value| serde_json::to_string_pretty(&value).map_err(|error| Problem::new(error.to_string()));
    let text = match format {
        ReportFormat::Text => show::words(report, look),
        ReportFormat::Json => pretty(show::json(report, look))?,
        ReportFormat::Sarif => pretty(show::sarif(report, look))?,
    };
    report::say(text.trim_end());
    Ok(())
}

/// Asks the hosts and judges what they say.
fn examine(settings: Settings) -> Result<Report, Problem> {
    let whole = if settings.inventory.is_empty() { "localhost" } else { "all" };
    let outcomes = ask(settings, &HOSTS.replace("HOSTS", whole))?;
    let subjects = outcomes.iter().map(judge).collect();
    Ok(Report { subjects, remarks: Vec::new() })
}

fn judge(outcome: &Outcome) -> Subject {
    let message = || outcome.result.get("msg").map(ToString::to_string).unwrap_or_default();
    match outcome.status {
        Status::Unreachable => host::unexamined(&outcome.host, true, &message()),
        Status::Failed | Status::Skipped => host::unexamined(&outcome.host, false, &message()),
        Status::Ok | Status::Changed => {
            let seen = serde_json::Value::Object(outcome.result.to_json());
            match serde_json::from_value::<Evidence>(seen) {
                Ok(seen) => host::examine(&outcome.host, &seen),
                Err(error) => host::unexamined(&outcome.host, false, &format!("its answer can't be read: {error}")),
            }
        }
    }
}

/// Runs a playbook that the program carries, in silence, and returns how its tasks ended, in the inventory's order.
fn ask(settings: Settings, playbook: &str) -> Result<Vec<Outcome>, Problem> {
    let reading = settings::reading(&settings.config)?;
    let (inventory, problems) =
        inventory::read(&settings.inventory, &[PathBuf::from(".")], &reading, &settings.load.vault);
    let (errors, warnings): (Vec<_>, Vec<_>) =
        problems.into_iter().partition(|problem| problem.severity == Severity::Error);
    report::show_diagnostics(&warnings);
    if !errors.is_empty() {
        report::show_diagnostics(&errors);
        return Err(Problem { message: "the inventory has mistakes".to_owned(), code: 4 });
    }
    let mut loader = Loader::new(settings.load.clone());
    let plays = loader.carried(Path::new("doctor.yml"), playbook);
    let order = inventory.host_list();
    let interrupted = Arc::new(AtomicBool::new(false));
    super::run::listen_for_interrupt(&interrupted)?;
    crate::connection::ask_with(|question| super::prompt::password(question).ok());
    let (events, told) = mpsc::channel();
    let collecting = std::thread::spawn(move || collect(&told));
    let world = World::new(settings.run, inventory, loader, events, interrupted, Replay::default());
    let code = execute::run(&world, plays);
    drop(world);
    let (mut outcomes, errors) = collecting.join().map_err(|_| Problem::new("the report broke off"))?;
    if code == execute::EXIT_INTERRUPTED {
        return Err(Problem { message: "interrupted".to_owned(), code });
    }
    if let Some(error) = errors.into_iter().next() {
        return Err(Problem::new(error));
    }
    outcomes.sort_by_key(|outcome| order.iter().position(|host| *host == outcome.host));
    Ok(outcomes)
}

/// Keeps what is told of hosts, and what is told to people.
fn collect(told: &mpsc::Receiver<Event>) -> (Vec<Outcome>, Vec<String>) {
    let (mut outcomes, mut errors) = (Vec::new(), Vec::new());
    for event in told {
        match event {
            Event::Result(outcome) => outcomes.push(outcome),
            Event::Warning(text) => report::warn(&text),
            Event::Error(text) => errors.push(text),
            Event::NoHosts => errors.push("no host of the inventory matches".to_owned()),
            Event::PlayStart { .. }
            | Event::TaskStart(_)
            | Event::HostStart { .. }
            | Event::Alive { .. }
            | Event::Item(_)
            | Event::Replayed(_)
            | Event::Retry { .. }
            | Event::Included { .. }
            | Event::Notified { .. }
            | Event::Note(_)
            | Event::Deprecated(_)
            | Event::NoHostsLeft
            | Event::Recap(_) => {}
        }
    }
    (outcomes, errors)
}
