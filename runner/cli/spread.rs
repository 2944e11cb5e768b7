//! `kubeon-run spread`: reads everything here, gives it to a Job, and follows that; and what the Job's pods begin with.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use kubeon_modules::ApiServer;
use serde_json::{Map, Value as Json};

use super::again::{self, Earlier};
use super::run::{self, Ready};
use super::run_args::{OutputFormat, RunArguments};
use super::settings::Settings;
use super::spread_args::{JobArguments, ShardArguments, SpreadArguments};
use super::spread_orders;
use super::spread_server::Server;
use super::{Problem, output, settings};
use crate::plan;
use crate::playbook::{Keyword, Play};
use crate::report::{self, About, HostName, Merged};
use crate::spread::job::{self, Tree};
use crate::spread::{Ended, Plan, Watch, bundle, pod};

/// How long a name may be, so that those of the pods fit.
const NAME_LIMIT: usize = 50;

/// Becomes the run of a pod.
pub fn shard(args: ShardArguments) -> Result<u8, Problem> {
    let ShardArguments { shards, private, work, open, tree, gate } = args;
    Err(Problem::new(pod::start(&pod::Given { open, private, work, tree, gate, shards })))
}

/// Spreads a run, or follows one that was.
pub fn spread(args: SpreadArguments) -> Result<u8, Problem> {
    let path = args.job.kubeconfig.as_ref().map(|path| path.display().to_string());
    let server = Server { api: ApiServer::new(path, args.job.context.clone()), namespace: String::new() };
    let namespace = match &args.job.namespace {
        Some(namespace) => namespace.clone(),
        None => server.api.namespace().map_err(|error| Problem::new(error.to_string()))?,
    };
    let server = Server { namespace, ..server };
    match &args.job.attach {
        Some(name) => attach(&server, name, &args),
        None => launch(&server, &args),
    }
}

/// Refuses what makes no sense for a run elsewhere.
fn refuse(run: &RunArguments) -> Result<(), Problem> {
    let given = [
        ("--step", run.step, "nobody can answer a pod"),
        (
            "--resume",
            run.resume,
            "a spread run that goes on is followed with `--attach`, and `--retry` takes hosts that failed",
        ),
        ("--list-hosts", run.list_hosts, "run it without `spread`"),
        ("--list-tasks", run.list_tasks, "run it without `spread`"),
        ("--list-tags", run.list_tags, "run it without `spread`"),
        ("--syntax-check", run.syntax_check, "run it without `spread`"),
        ("--flush-cache", run.flush_cache, "pods have no facts of earlier runs"),
        ("--output junit", run.output == OutputFormat::Junit, "`--output json` tells all that is known"),
    ];
    match given.into_iter().find(|(_, is_given, _)| *is_given) {
        Some((flag, _, why)) => Err(Problem::usage(format!("`{flag}` is not for `spread`: {why}"))),
        None => Ok(()),
    }
}

fn launch(server: &Server, args: &SpreadArguments) -> Result<u8, Problem> {
    refuse(&args.run)?;
    let Ready { mut settings, plays, inventory, warnings, .. } = run::read(&args.run, false, None)?;
    report::show_diagnostics(&warnings);
    let mut problems = plan::whole::check(&plays, &inventory, &settings.run);
    plan::sort(&mut problems);
    if !problems.is_empty() {
        report::show_diagnostics(&problems);
        let message = "this can't be spread over several processes; nothing was run".to_owned();
        return Err(Problem { message, code: 4 });
    }
    let playbooks = args.run.playbooks.iter().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    let about = About { playbooks: playbooks.collect(), check: settings.run.check };
    if let Earlier::Nothing = again::earlier(&args.run, &about, &inventory, &mut settings.run)? {
        return Ok(0);
    }
    let hosts = inventory.select("all", settings.run.limit.as_deref()).map_err(Problem::new)?;
    if hosts.is_empty() {
        return Err(Problem::new("the inventory has no hosts to spread"));
    }
    let project = project_of(&args.job)?;
    let plan = Plan {
        shards: args.job.shards.unwrap_or(1).clamp(1, hosts.len()),
        gated: plays.len() > 1 || plays.iter().any(|play| play.setting(Keyword::Serial).is_some()),
        playbooks: about.playbooks.clone(),
        check: about.check,
        project: project.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let job = job_settings(&args.job, &plan, server)?;
    inside(&plays, &inventory, &project)?;
    let (orders, mut files) = spread_orders::write(&args.run, &settings, &project, &hosts).map_err(Problem::new)?;
    let orders = serde_json::to_vec(&orders).map_err(|error| Problem::new(error.to_string()))?;
    files.push(bundle::File { path: PathBuf::from(pod::ORDERS), mode: 0o600, content: orders });
    let named = spread_orders::named(&args.run, &settings);
    let mut bundle =
        bundle::pack((job.tree == Tree::Packed).then_some(&*project), &named, &files).map_err(Problem::new)?;
    if job.tree != Tree::Packed {
        bundle.open.clear();
    }
    let view = output::reporting(args.run.output, &settings, about.clone())?;
    server.is_free(&job.name)?;
    server.make(&job, &plan, &bundle, &hosts)?;
    if args.job.detach {
        report::say(&job.name);
        return Ok(0);
    }
    let mut view = Merged::begin(view, about);
    view.note(&format!(
        "{} hosts in {} shards: Job `{}` in the namespace `{}`",
        hosts.len(),
        plan.shards,
        job.name,
        server.namespace
    ));
    follow(server, &job.name, &plan, hosts, view, args.job.keep)
}

fn attach(server: &Server, name: &str, args: &SpreadArguments) -> Result<u8, Problem> {
    let settings: Settings = settings::gather(&args.run)?;
    let (plan, hosts) = server.find(name)?;
    let about = About { playbooks: plan.playbooks.clone(), check: plan.check };
    let view = Merged::begin(output::reporting(args.run.output, &settings, about.clone())?, about);
    follow(server, name, &plan, hosts, view, args.job.keep)
}

fn follow(
    server: &Server,
    name: &str,
    plan: &Plan,
    hosts: Vec<HostName>,
    mut view: Merged,
    keep: bool,
) -> Result<u8, Problem> {
    if let Some(warning) = super::descriptors::make_room(plan.shards) {
        report::warn(&warning);
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    run::listen_for_interrupt(&interrupted)?;
    let watch = Watch::new(&server.api, (&server.namespace, name), plan, hosts, &mut view);
    let remove = || if keep { Ok(()) } else { server.remove(name) };
    match watch.run(&interrupted) {
        Ended::Whole(recap) | Ended::Interrupted(recap) => {
            let code = recap.code;
            view.recap(&recap);
            if let Err(problem) = remove() {
                report::warn(&format!("the Job `{name}` stays until its time is over: {}", problem.message));
            }
            Ok(code)
        }
        Ended::Wrong(message) => {
            view.leave();
            remove()?;
            Err(Problem::new(message))
        }
        Ended::Broken(message) => {
            view.leave();
            Err(Problem::new(format!(
                "{message}; what goes on is followed again with `kubeon-run spread --attach {name}`"
            )))
        }
    }
}

/// Returns the folder that goes to the pods.
fn project_of(args: &JobArguments) -> Result<PathBuf, Problem> {
    let folder = args.project.clone().unwrap_or_else(|| PathBuf::from("."));
    let found = std::fs::canonicalize(&folder);
    let found = found.map_err(|error| Problem::new(format!("the project's folder `{}`: {error}", folder.display())))?;
    if !found.is_dir() || found == Path::new("/") {
        return Err(Problem::usage(format!("`--project {}` is not a project's folder", folder.display())));
    }
    Ok(found)
}

/// Refuses roles and keys that lie where the pods have nothing.
fn inside(plays: &[Play], inventory: &crate::inventory::Inventory, project: &Path) -> Result<(), Problem> {
    let is_inside = |path: &Path| std::fs::canonicalize(path).is_ok_and(|path| path.starts_with(project));
    let outside = |what: String, path: &Path| {
        Err(Problem::new(format!(
            "{what} is at `{}`, outside of the project's folder `{}`, which alone goes to the pods",
            path.display(),
            project.display()
        )))
    };
    if let Some(role) = plays.iter().flat_map(|play| &play.roles).find(|role| !is_inside(&role.path)) {
        return outside(format!("the role `{}`", role.name), &role.path);
    }
    for host in inventory.host_list() {
        let vars = inventory.vars_of(&host);
        for name in ["ansible_ssh_private_key_file", "ansible_private_key_file"] {
            let Some(key) = vars.get(name).map(ToString::to_string) else { continue };
            let path = crate::execute::home_expanded(PathBuf::from(&key));
            if path.is_file() && !is_inside(&path) {
                return outside(format!("`{name}` of `{host}`"), &path);
            }
        }
    }
    Ok(())
}

fn job_settings(args: &JobArguments, plan: &Plan, server: &Server) -> Result<job::Settings, Problem> {
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    let name = args.name.clone().unwrap_or_else(|| format!("spread-{now}-{}", std::process::id()));
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let ends = |c: Option<char>| c.is_some_and(|c| c != '-');
    if name.len() > NAME_LIMIT || !name.chars().all(fits) || !ends(name.chars().next()) || !ends(name.chars().last()) {
        let what = "up to 50 lower case letters, digits and dashes";
        return Err(Problem::usage(format!("`--name {name}` can't name a Job and its pods: expected {what}")));
    }
    let parallelism = args.parallelism.unwrap_or(plan.shards).clamp(1, plan.shards);
    if plan.gated && parallelism < plan.shards {
        let message = format!(
            "`--parallelism {parallelism}` with {} shards: where there are several plays, or `serial`, all shards wait for one \
             another after each, and so must run at once",
            plan.shards
        );
        return Err(Problem::usage(message));
    }
    let pairs = |flag: &str, given: &[String]| -> Result<Map<String, Json>, Problem> {
        let read = |text: &String| text.split_once('=').map(|(key, value)| (key.to_owned(), Json::from(value)));
        let wrong = |text: &String| Problem::usage(format!("`{flag} {text}`: expected KEY=VALUE"));
        given.iter().map(|text| read(text).ok_or_else(|| wrong(text))).collect()
    };
    let tree = match (&args.volume, &args.project_path) {
        (Some(volume), _) => {
            let (claim, folder) = volume.split_once(':').unwrap_or((volume, ""));
            Tree::Volume { claim: claim.to_owned(), folder: folder.trim_matches('/').to_owned() }
        }
        (None, Some(path)) => Tree::Image(path.clone()),
        (None, None) => Tree::Packed,
    };
    let tolerations: Result<Vec<Json>, String> = args.toleration.iter().map(|text| job::toleration(text)).collect();
    Ok(job::Settings {
        name,
        namespace: server.namespace.clone(),
        image: args.image.clone().unwrap_or_default(),
        program: args.program.clone(),
        parallelism,
        tree,
        service_account: args.service_account.clone(),
        pull_secret: args.pull_secret.clone(),
        node_selector: pairs("--node-selector", &args.node_selector)?,
        tolerations: tolerations.map_err(|message| Problem::usage(format!("`--toleration`: {message}")))?,
        requests: pairs("--requests", &args.requests)?,
        limits: pairs("--limits", &args.limits)?,
        retries: args.retries,
        ttl_s: args.ttl,
        deadline_s: args.deadline,
    })
}

/// Files that hold secrets, whatever their modes say.
pub(super) type Named = BTreeSet<PathBuf>;
