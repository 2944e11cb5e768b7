//! Actions: what tasks call. Some run here, some prepare a module's arguments here, the rest are modules as they are.

mod argument_spec;
mod foreign;
mod machine;
mod say;
mod synchronize;
mod template;
mod transfer;
mod variables;

use kubeon_modules::{DecodeError, Map as JsonMap};
use schemars::Schema;
use schemars::generate::SchemaSettings;

pub use variables::candidates;

use crate::connection::{Contents, Unreachable, UnreachableKind};
use crate::execute::{self, ItemRun};
use crate::playbook::ActionCall;
use crate::template::TemplateError;
use crate::value::{Map, Value};

/// How an action failed.
#[derive(Debug)]
pub enum Failure {
    /// The task's result, `msg` in it.
    Failed(Box<Map>),
    Unreachable(String),
    Template(TemplateError),
}

impl Failure {
    pub fn message(message: impl Into<String>) -> Failure {
        let mut result = Map::new();
        result.insert("failed", true);
        result.insert("changed", false);
        result.insert("msg", message.into());
        Failure::Failed(Box::new(result))
    }

    /// Returns why it failed, in words.
    fn reason(&self) -> String {
        match self {
            Failure::Failed(result) => result.get("msg").map(ToString::to_string).unwrap_or_default(),
            Failure::Unreachable(message) => message.clone(),
            Failure::Template(error) => error.message.clone(),
        }
    }
}

impl From<Unreachable> for Failure {
    /// A host that can be reached, where its user may not become the other one, has failed the task.
    fn from(unreachable: Unreachable) -> Failure {
        match unreachable.kind {
            UnreachableKind::Become => Failure::message(unreachable.message),
            UnreachableKind::Resolve
            | UnreachableKind::Connect
            | UnreachableKind::HostKey
            | UnreachableKind::Authentication
            | UnreachableKind::Agent
            | UnreachableKind::Lost
            | UnreachableKind::Silent
            | UnreachableKind::Configuration => Failure::Unreachable(unreachable.message),
        }
    }
}

impl From<TemplateError> for Failure {
    fn from(error: TemplateError) -> Failure {
        Failure::Template(error)
    }
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Failure {
        Failure::message(error.to_string())
    }
}

/// One action of the table.
struct Action {
    name: &'static str,
    /// Decodes the arguments, to find mistakes before anything runs.
    check: fn(&JsonMap) -> Result<(), DecodeError>,
    run: fn(&ItemRun<'_>, &Map) -> Result<Map, Failure>,
    /// The schema of its arguments; that of the module of the same name when absent.
    schema: Option<fn() -> Schema>,
}

/// Checks what the module of the same name takes: the action only prepares some of it.
fn as_module(name: &str, args: &JsonMap) -> Result<(), DecodeError> {
    match kubeon_modules::spec_of(name) {
        Some(spec) => (spec.decode)(args).map(drop),
        None => Ok(()),
    }
}

macro_rules! actions {
    (here { $($name:literal => $args:ty, $run:path;)* } before_module { $($module:literal => $before:path;)* }) => {
        const ACTIONS: &[Action] = &[
            $(Action {
                name: $name,
                check: |args| kubeon_modules::decode::<$args>(args).map(drop),
                run: |run, args| $run(run, kubeon_modules::decode::<$args>(&args.to_json())?, args),
                schema: Some(|| SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<$args>()),
            },)*
            $(Action { name: $module, check: |args| as_module($module, args), run: $before, schema: None },)*
        ];
    };
}

actions! {
    here {
        "add_host" => variables::AddHostArgs, variables::add_host;
        "assert" => say::AssertArgs, say::assert;
        "debug" => say::DebugArgs, say::debug;
        "fail" => say::FailArgs, say::fail;
        "fetch" => transfer::FetchArgs, transfer::fetch;
        "group_by" => variables::GroupByArgs, variables::group_by;
        "import_playbook" => variables::ImportPlaybookArgs, variables::include;
        "import_role" => variables::IncludeRoleArgs, variables::include;
        "import_tasks" => variables::IncludeTasksArgs, variables::include;
        "include_role" => variables::IncludeRoleArgs, variables::include;
        "include_tasks" => variables::IncludeTasksArgs, variables::include;
        "include_vars" => variables::IncludeVarsArgs, variables::include_vars;
        "meta" => say::MetaArgs, say::meta;
        "pause" => say::PauseArgs, say::pause;
        "set_fact" => variables::SetFactArgs, variables::set_fact;
        "set_stats" => say::SetStatsArgs, say::set_stats;
        "template" => template::Args, template::template;
        "validate_argument_spec" => argument_spec::Args, argument_spec::validate;
        "wait_for_connection" => machine::WaitArgs, machine::wait_for_connection;
    }
    before_module {
        "assemble" => transfer::assemble;
        "copy" => transfer::copy;
        "gather_facts" => machine::gather_facts;
        "k8s" => transfer::k8s;
        "k8s_apply" => transfer::k8s_apply;
        "raw" => machine::raw;
        "reboot" => machine::reboot;
        "script" => transfer::script;
        "synchronize" => synchronize::synchronize;
        "unarchive" => transfer::unarchive;
    }
}

/// Other names of actions and modules.
const ALIASES: &[(&str, &str)] = &[("systemd", "systemd_service"), ("dnf5", "dnf"), ("yum", "dnf")];
/// Collections whose modules of these names are ours.
const COLLECTIONS: &[(&str, &[&str])] = &[
    ("ansible.builtin", &[]),
    ("ansible.legacy", &[]),
    ("ansible.posix", &["authorized_key", "firewalld", "mount", "seboolean", "selinux", "synchronize", "sysctl"]),
    (
        "community.general",
        &[
            "alternatives",
            "ini_file",
            "kernel_blacklist",
            "locale_gen",
            "modprobe",
            "pam_limits",
            "sefcontext",
            "seport",
            "timezone",
            "ufw",
        ],
    ),
    ("kubernetes.core", &["helm", "helm_repository", "k8s", "k8s_drain", "k8s_info"]),
    (
        "kubeon.gpu",
        &[
            "nvidia_detect",
            "apt_repo",
            "rpm_pin",
            "rpm_repo",
            "containerd_runtime",
            "k8s_label",
            "k8s_apply",
            "k8s_drain",
            "k8s_info",
        ],
    ),
];

/// Returns the name of an action or a module without its collection; `None` when there is none of that name.
pub fn canonical(written: &str) -> Option<&'static str> {
    let short = match written.rsplit_once('.') {
        None => written,
        Some((collection, short)) => {
            let (_, names) = COLLECTIONS.iter().find(|(name, _)| *name == collection)?;
            if !names.is_empty() && !names.contains(&short) {
                return None;
            }
            short
        }
    };
    let short = ALIASES.iter().find(|(alias, _)| *alias == short).map_or(short, |(_, name)| name);
    ACTIONS
        .iter()
        .map(|action| action.name)
        .find(|name| *name == short)
        .or_else(|| kubeon_modules::spec_of(short).map(|spec| spec.name))
}

/// Returns every name that a task can call.
pub fn names() -> impl Iterator<Item = &'static str> {
    let modules = kubeon_modules::MODULES.iter().map(|spec| spec.name);
    ACTIONS.iter().map(|action| action.name).chain(modules).chain(ALIASES.iter().map(|(alias, _)| *alias))
}

/// Returns the JSON schema of what an action or a module takes; its description is the page.
pub fn schema(name: &str) -> Option<Schema> {
    let own = ACTIONS.iter().find(|action| action.name == name).and_then(|action| action.schema);
    own.or_else(|| kubeon_modules::spec_of(name).map(|spec| spec.schema)).map(|schema| schema())
}

/// Returns the actions and modules that have a page, in alphabetical order.
pub fn documented() -> Vec<&'static str> {
    let own = ACTIONS.iter().filter(|action| action.schema.is_some()).map(|action| action.name);
    let mut names: Vec<_> = own.chain(kubeon_modules::MODULES.iter().map(|spec| spec.name)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the other names of an action or a module.
pub fn other_names(name: &str) -> impl Iterator<Item = &'static str> {
    ALIASES.iter().filter(move |(_, of)| *of == name).map(|(alias, _)| *alias)
}

/// Returns what to say of a name that is neither an action nor a module.
pub fn unknown(written: &str) -> String {
    match written.rsplit_once('.') {
        Some((collection, name)) => {
            format!("no module `{name}` of collection `{collection}`: it is not built in, and nothing would run it")
        }
        None => format!("no module or action `{written}`"),
    }
}

/// Checks arguments that hold no template.
///
/// # Errors
/// The first fault, with the path to it.
pub fn check(name: &str, args: &JsonMap) -> Result<(), DecodeError> {
    if let Some(action) = ACTIONS.iter().find(|action| action.name == name) {
        return (action.check)(args);
    }
    as_module(name, args)
}

/// Returns whether the action renders its arguments itself.
pub fn takes_raw(name: &str) -> bool {
    matches!(name, "assert" | "debug")
}

/// Returns whether a folder's module may stand in for what has this name: a module does, an action does not, since it
/// is the action that calls the module.
pub fn gives_way(name: &str) -> bool {
    ACTIONS.iter().all(|action| action.name != name)
}

/// Returns whether something is sent to the host, and not done here alone.
pub fn is_module(name: &str) -> bool {
    kubeon_modules::spec_of(name).is_some()
}

/// Returns whether the action brings tasks of its own.
pub fn includes(name: &str) -> bool {
    matches!(name, "include_tasks" | "include_role")
}

/// Returns whether a result is shown even without `-v`.
pub fn shows_result(name: &str) -> bool {
    matches!(name, "debug" | "assert")
}

/// Returns the name of a task that has none: what it calls.
pub fn shown_name(call: &ActionCall) -> String {
    match (&*call.name, call.args.get("name")) {
        ("include_role" | "import_role", Some(role)) => format!("{} : {role}", call.written),
        (_, _) => call.written.clone(),
    }
}

/// Runs what a task calls.
///
/// # Errors
/// See [`Failure`]; a module's own failure is its result.
pub fn run(run: &ItemRun<'_>, args: Map) -> Result<Map, Failure> {
    if let Some(foreign) = &run.task.action.foreign {
        return foreign::run(run, foreign, &args);
    }
    let name = &*run.task.action.name;
    match ACTIONS.iter().find(|action| action.name == name) {
        Some(action) => (action.run)(run, &args),
        None => execute::module(run, name, &args, &Contents::default()),
    }
}

/// Returns a text argument of a rendered map.
fn text(args: &Map, key: &str) -> Option<String> {
    args.get(key).map(Value::to_string)
}
