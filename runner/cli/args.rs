//! What the command line takes: ansible-playbook's flags, and sub-commands beside the plain form.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use super::config_tool::ConfigAction;
use super::doctor_args::DoctorArguments;
use super::lint::LintArguments;
use super::reach_args::VaultArguments;
use super::run_args::RunArguments;
use super::spread_args::{ShardArguments, SpreadArguments};
use super::vault_args::VaultAction;

/// Run Ansible-style playbooks over an inventory, in parallel over SSH; nothing is needed on the targets.
#[derive(Debug, Parser)]
#[command(
    name = "kubeon-run",
    version,
    args_conflicts_with_subcommands = true,
    infer_long_args = true,
    subcommand_precedence_over_arg = true,
    arg_required_else_help = true,
    after_help = "Exit status: 0 all well, 1 error, 2 a host failed or an option is wrong, 4 a host could not be reached or a \
                  file holds a mistake, 6 hosts failed and others could not be reached, 99 interrupted."
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub run: RunArguments,
}

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one of it in a run")]
pub enum Command {
    /// Find every mistake that can be found without connecting to a host.
    #[command(infer_long_args = true)]
    Check(RunArguments),
    /// Find what will surprise in playbooks, roles, variables and manifests, and mend what can be mended by rule.
    #[command(infer_long_args = true)]
    Lint(LintArguments),
    /// Say why a node's GPU is not seen: every link from the PCI bus to the pod, and how to mend the one that is broken.
    Doctor(Box<DoctorArguments>),
    /// Run one module on hosts, as ansible does.
    #[command(infer_long_args = true, override_usage = "kubeon-run adhoc PATTERN [-m MODULE] [-a ARGUMENTS] [OPTIONS]")]
    Adhoc(Box<AdhocArguments>),
    /// Run modules that are typed line by line, as ansible-console does.
    #[command(infer_long_args = true, override_usage = "kubeon-run console [PATTERN] [OPTIONS]")]
    Console(Box<ConsoleArguments>),
    /// Run playbooks with the hosts spread over the pods of a Kubernetes Indexed Job.
    #[command(infer_long_args = true)]
    Spread(Box<SpreadArguments>),
    /// What a pod of a spread run does.
    #[command(hide = true)]
    Shard(ShardArguments),
    /// Show the inventory, as ansible-inventory does.
    #[command(infer_long_args = true)]
    Inventory(InventoryArguments),
    /// Write, change and show vaulted files and values, as ansible-vault does.
    #[command(infer_long_args = true)]
    Vault {
        #[command(subcommand)]
        action: VaultAction,
    },
    /// Tell the settings of ansible.cfg and the environment, as ansible-config does.
    #[command(infer_long_args = true)]
    Config {
        #[command(subcommand)]
        action: ConfigAction,
    },
    /// Show a module's page, or the list of modules.
    #[command(infer_long_args = true)]
    Doc(DocArguments),
    /// Print the JSON schema of playbooks or of modules, for editors.
    Schema {
        #[arg(value_enum, default_value = "playbook")]
        what: SchemaOf,
    },
    /// Write a starting project.
    Init {
        /// Where; made if it is not there. Nothing that is there is overwritten.
        #[arg(default_value = ".")]
        folder: PathBuf,
    },
    /// Print completions for a shell.
    Completions { shell: clap_complete::Shell },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SchemaOf {
    Playbook,
    Modules,
}

#[derive(Debug, Args)]
pub struct AdhocArguments {
    /// The module or action to run.
    #[arg(short, long, value_name = "MODULE", default_value = "command")]
    pub module_name: String,
    /// What it is given: key=value words, free text, or a JSON object.
    #[arg(short = 'a', long = "args", value_name = "ARGUMENTS", default_value = "", allow_hyphen_values = true)]
    pub module_args: String,
    /// Run in the background, at most so many seconds.
    #[arg(short = 'B', long, value_name = "SECONDS")]
    pub background: Option<u64>,
    /// Seconds between two questions whether it is done; 0 does not wait for it [default: 15].
    #[arg(short = 'P', long, value_name = "SECONDS", requires = "background")]
    pub poll: Option<u64>,
    /// One line for each host.
    #[arg(short, long)]
    pub one_line: bool,
    /// Seconds after which the task fails [default: none].
    #[arg(long, value_name = "SECONDS")]
    pub task_timeout: Option<u64>,
    /// Where a playbook would lie: roles, group_vars and library are looked for there.
    #[arg(long, value_name = "FOLDER")]
    pub playbook_dir: Option<PathBuf>,
    #[command(flatten)]
    pub run: RunArguments,
}

#[derive(Debug, Args)]
pub struct ConsoleArguments {
    /// Seconds after which a task fails [default: none].
    #[arg(long, value_name = "SECONDS")]
    pub task_timeout: Option<u64>,
    /// Where a playbook would lie: roles, group_vars and library are looked for there.
    #[arg(long, value_name = "FOLDER")]
    pub playbook_dir: Option<PathBuf>,
    #[command(flatten)]
    pub run: RunArguments,
}

#[derive(Debug, Args)]
pub struct DocArguments {
    /// The modules; the list of all without one.
    #[arg(value_name = "MODULE")]
    pub modules: Vec<String>,
    /// The list of all.
    #[arg(short, long)]
    pub list: bool,
    /// What the names are of; modules alone have pages.
    #[arg(short = 't', long = "type", value_name = "TYPE", default_value = "module")]
    pub sort: String,
    /// JSON, in the shape of ansible-doc's.
    #[arg(short, long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct InventoryArguments {
    /// Inventory: a file, a folder, a script, or hosts with commas.
    #[arg(short, long = "inventory", visible_alias = "inventory-file", value_name = "INVENTORY")]
    pub inventory: Vec<String>,
    /// Everything, as JSON.
    #[arg(long)]
    pub list: bool,
    /// One host's variables, as JSON.
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// A tree of groups and hosts.
    #[arg(long)]
    pub graph: bool,
    /// More words about how the inventory is read.
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
    /// With the graph, variables too.
    #[arg(long)]
    pub vars: bool,
    /// YAML in place of JSON.
    #[arg(short, long)]
    pub yaml: bool,
    /// Not written: take --yaml.
    #[arg(long, hide = true)]
    pub toml: bool,
    /// Only the hosts of this pattern.
    #[arg(short, long, value_name = "PATTERN")]
    pub limit: Option<String>,
    /// Variables that every host has: key=value words, YAML or JSON, or @FILE.
    #[arg(short, long = "extra-vars", value_name = "VARS")]
    pub extra_vars: Vec<String>,
    /// Variables where they are set, rather than with each host that has them.
    #[arg(long)]
    pub export: bool,
    /// Write to a file.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The folder of a playbook, whose `group_vars` and `host_vars` count too.
    #[arg(long, value_name = "FOLDER")]
    pub playbook_dir: Option<PathBuf>,
    /// Taken and not used: no facts are shown.
    #[arg(long, hide = true)]
    pub flush_cache: bool,
    /// The group at the graph's root.
    #[arg(default_value = "all")]
    pub group: String,
    #[command(flatten)]
    pub vault: VaultArguments,
}
