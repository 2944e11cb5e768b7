//! `kubeon-run doctor`: asks the hosts and the cluster, shows what is wrong, and mends it on demand.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};

use kubeon_modules::cluster_evidence::Cluster;
use kubeon_modules::evidence::Evidence;
use kubeon_modules::{Machine, Service};

use super::Problem;
use super::doctor_args::{DoctorArguments, ReportFormat};
use super::doctor_cluster::Access;
use super::settings::{self, Settings};
use crate::doctor::{Finding, Report, Step, Subject, cluster, host, show, table, text};
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
    let settings = settings::gather(&args.run())?;
    report::show_diagnostics(&settings.problems);
    let here = settings.inventory.is_empty();
    if here {
        look.reach = [HERE.map(str::to_owned).to_vec(), look.reach].concat();
    }
    let report = examine(&args, &settings)?;
    tell(&report, &look, args.output)?;
    if !args.fix || !mend(&args, &report, &look, here)? {
        return Ok(report.code());
    }
    let report = examine(&args, &settings)?;
    report::say("\nand now:\n");
    tell(&report, &look, args.output)?;
    Ok(report.code())
}

/// What reaches this machine and no other.
const HERE: [&str; 4] = ["-i", "localhost,", "-c", "local"];

/// Shows what of the playbook mends what was found, and runs it; returns whether something was run.
fn mend(args: &DoctorArguments, report: &Report, look: &show::Look, here: bool) -> Result<bool, Problem> {
    let steps_of = |subject: &Subject| -> Vec<Step> {
        let worth =
            subject.findings.iter().filter(|finding| finding.diagnosis.severity > crate::doctor::Severity::Note);
        worth.filter_map(|finding| finding.diagnosis.step).collect()
    };
    let hosts = report.subjects.iter().filter(|subject| subject.is_host);
    let ill: Vec<&Subject> = hosts.filter(|subject| !steps_of(subject).is_empty()).collect();
    let mut steps: Vec<Step> = ill.iter().flat_map(|subject| steps_of(subject)).collect();
    steps.sort_unstable();
    steps.dedup();
    if ill.is_empty() {
        report::say("\nthe playbook mends nothing of this");
        return Ok(false);
    }
    let names: Vec<&str> = ill.iter().map(|subject| subject.name.as_str()).collect();
    report::say(&format!("\nto mend what the playbook can mend:\n\n    {}", show::command(look, &steps, &names)));
    let mut run = args.run();
    run.playbooks = vec![playbook_of(args.playbook.as_deref())];
    run.reach.limit = vec![names.join(",")];
    run.tags = vec![steps.iter().map(|step| step.tag()).collect::<Vec<_>>().join(",")];
    (run.check, run.diff) = (args.check, args.diff);
    if let Some(path) = &args.kubeconfig {
        run.reach.extra_vars.push(serde_json::json!({"kubeconfig": path, "gpu_control_plane": ""}).to_string());
    }
    if here {
        run.reach.inventory = vec!["localhost,".to_owned()];
        run.reach.connection = Some("local".to_owned());
    }
    let listed = super::run_args::RunArguments { list_tasks: true, ..run.clone() };
    super::run::run(listed)?;
    match super::prompt::line("run this? [y/N]", true) {
        Some(answer) if !matches!(answer.trim(), "y" | "Y" | "yes") => return Ok(false),
        // Nobody can be asked: `--fix` was the answer.
        Some(_) | None => {}
    }
    super::run::run(run)?;
    Ok(!args.check)
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

/// Asks the hosts and the cluster, and judges what they say.
fn examine(args: &DoctorArguments, settings: &Settings) -> Result<Report, Problem> {
    let whole = if settings.inventory.is_empty() { "localhost" } else { "all" };
    let outcomes = ask(settings, &HOSTS.replace("HOSTS", whole))?;
    let mut hosts: Vec<(Subject, Option<Evidence>)> = outcomes.iter().map(judge).collect();
    let mut remarks = Vec::new();
    let mut more = Vec::new();
    let seen = match super::doctor_cluster::access(args, settings)? {
        Access::NotWanted => None,
        Access::Nowhere => {
            remarks.push(
                "no kubeconfig is on this machine, so the cluster was not looked at: name one with --kubeconfig"
                    .to_owned(),
            );
            None
        }
        Access::Refused(message) => Some(Err(message)),
        Access::Usual => Some(ask_cluster(None, args.context.as_deref())),
        Access::File(path) => Some(ask_cluster(Some(path), args.context.as_deref())),
        Access::Fetched(file) => Some(ask_cluster(Some(file.path().display().to_string()), args.context.as_deref())),
    };
    match seen {
        None => {}
        Some(Ok(seen)) => more = cluster::examine(&mut hosts, &seen),
        Some(Err(message)) => {
            let mut whole = Subject { name: "cluster".to_owned(), is_cluster: true, ..Subject::default() };
            whole.find(Finding::new(table::API_SILENT, message));
            more.push(whole);
        }
    }
    let subjects = hosts.into_iter().map(|(subject, _)| subject).chain(more).collect();
    Ok(Report { subjects, remarks })
}

fn judge(outcome: &Outcome) -> (Subject, Option<Evidence>) {
    let message = || outcome.result.get("msg").map(ToString::to_string).unwrap_or_default();
    match outcome.status {
        Status::Unreachable => (host::unexamined(&outcome.host, true, &message()), None),
        Status::Failed | Status::Skipped => (host::unexamined(&outcome.host, false, &message()), None),
        Status::Ok | Status::Changed => {
            let seen = serde_json::Value::Object(outcome.result.to_json());
            match serde_json::from_value::<Evidence>(seen) {
                Ok(seen) => (host::examine(&outcome.host, &seen), Some(seen)),
                Err(error) => {
                    (host::unexamined(&outcome.host, false, &format!("its answer can't be read: {error}")), None)
                }
            }
        }
    }
}

/// What the cluster is asked by needs nothing of whoever asks.
struct Alone;

impl Service for Alone {
    fn fetch(&self, sha256: &str, _: &mut dyn std::io::Write) -> Result<(), kubeon_modules::Error> {
        Err(kubeon_modules::Error::new(kubeon_modules::ErrorKind::Failed, format!("no content {sha256} is here")))
    }
    fn progress(&self, _: &str) {}
}

/// Asks the cluster, from this machine.
fn ask_cluster(kubeconfig: Option<String>, context: Option<&str>) -> Result<Cluster, String> {
    let mut args = kubeon_modules::Map::new();
    args.extend(kubeconfig.map(|path| ("kubeconfig".to_owned(), path.into())));
    args.extend(context.map(|name| ("context".to_owned(), name.into())));
    let spec = kubeon_modules::spec_of("gpu_cluster_facts").expect("the runner has the modules for Kubernetes");
    let module = (spec.decode)(&args).map_err(|error| error.to_string())?;
    let plan = module.plan(&Machine::new(&Alone, BTreeMap::new(), None)).map_err(|error| error.to_string())?;
    serde_json::from_value(serde_json::Value::Object(plan.result)).map_err(|error| error.to_string())
}

/// Runs a playbook that the program carries, in silence, and returns how its tasks ended, in the inventory's order.
pub(super) fn ask(settings: &Settings, playbook: &str) -> Result<Vec<Outcome>, Problem> {
    let reading = &settings.run.inventory_reading;
    let (inventory, problems) =
        inventory::read(&settings.inventory, &[PathBuf::from(".")], reading, &settings.load.vault);
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
    let world = World::new(settings.run.clone(), inventory, loader, events, interrupted, Replay::default());
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
            | Event::Asking(_)
            | Event::Item(_)
            | Event::Replayed(_)
            | Event::Retry { .. }
            | Event::Included { .. }
            | Event::Notified { .. }
            | Event::Note(_)
            | Event::Deprecated(_)
            | Event::NoHostsLeft
            | Event::Part(_)
            | Event::Recap(_) => {}
        }
    }
    (outcomes, errors)
}
