//! What the command line takes: ansible-playbook's flags, and sub-commands beside the plain form.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use super::doctor_args::DoctorArguments;

/// Run Ansible-style playbooks over an inventory, in parallel over SSH; nothing is needed on the targets.
#[derive(Debug, Parser)]
#[command(
    name = "kubeon-run",
    version,
    args_conflicts_with_subcommands = true,
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
    Check(RunArguments),
    /// Say why a node's GPU is not seen: every link from the PCI bus to the pod, and how to mend the one that is broken.
    Doctor(Box<DoctorArguments>),
    /// Run one module on hosts, as ansible does.
    #[command(override_usage = "kubeon-run adhoc PATTERN [-m MODULE] [-a ARGUMENTS] [OPTIONS]")]
    Adhoc(Box<AdhocArguments>),
    /// Show the inventory, as ansible-inventory does.
    Inventory(InventoryArguments),
    /// Show a module's page, or the list of modules.
    Doc { module: Option<String> },
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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    #[default]
    Auto,
    Lines,
    Json,
    Junit,
}

#[derive(Debug, Clone, Default, Args)]
pub struct RunArguments {
    /// Playbooks to run, one after another.
    pub playbooks: Vec<PathBuf>,

    /// Inventory: a file, a folder, a script, or hosts with commas; may be given several times.
    #[arg(short, long = "inventory", visible_alias = "inventory-file", value_name = "INVENTORY")]
    pub inventory: Vec<String>,
    /// Further limit the hosts to this pattern.
    #[arg(short, long, value_name = "PATTERN")]
    pub limit: Vec<String>,
    /// Set variables: key=value words, YAML or JSON, or @FILE.
    #[arg(short, long = "extra-vars", value_name = "VARS")]
    pub extra_vars: Vec<String>,
    /// Only run tasks with these tags.
    #[arg(short, long, value_name = "TAGS")]
    pub tags: Vec<String>,
    /// Only run tasks without these tags.
    #[arg(long, value_name = "TAGS")]
    pub skip_tags: Vec<String>,
    /// Change nothing: say what would change.
    #[arg(short = 'C', long)]
    pub check: bool,
    /// Show differences in files.
    #[arg(short = 'D', long)]
    pub diff: bool,
    /// How many hosts are worked on at once [default: 50].
    #[arg(short, long)]
    pub forks: Option<usize>,
    /// Connect as this user.
    #[arg(short, long = "user", value_name = "USER")]
    pub user: Option<String>,
    /// Ask for the connection's password.
    #[arg(short = 'k', long = "ask-pass")]
    pub ask_pass: bool,
    /// Ask for the password of sudo, su or doas.
    #[arg(short = 'K', long = "ask-become-pass")]
    pub ask_become_pass: bool,
    /// Run tasks as another user.
    #[arg(short = 'b', long = "become")]
    pub become_: bool,
    /// How to become that user [default: sudo].
    #[arg(long, value_name = "METHOD")]
    pub become_method: Option<String>,
    /// Which user to become [default: root].
    #[arg(long, value_name = "USER")]
    pub become_user: Option<String>,
    /// Read the connection's password from a file.
    #[arg(long, visible_alias = "conn-pass-file", value_name = "FILE")]
    pub connection_password_file: Option<PathBuf>,
    /// Read the password of sudo, su or doas from a file.
    #[arg(long, visible_alias = "become-pass-file", value_name = "FILE")]
    pub become_password_file: Option<PathBuf>,
    /// Authenticate with this key.
    #[arg(long, visible_alias = "key-file", value_name = "FILE")]
    pub private_key: Option<PathBuf>,
    /// How to connect: ssh, openssh, local, docker, podman, kubectl, chroot [default: ssh].
    #[arg(short, long, value_name = "KIND")]
    pub connection: Option<String>,
    /// Seconds a connection may take [default: 10].
    #[arg(short = 'T', long, value_name = "SECONDS")]
    pub timeout: Option<f64>,
    /// Arguments for every SSH connection, such as -o ProxyJump=….
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub ssh_common_args: Option<String>,
    /// Further arguments for ssh.
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub ssh_extra_args: Option<String>,
    /// Taken and not used: no scp is run.
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true, hide = true)]
    pub scp_extra_args: Option<String>,
    /// Taken and not used: no sftp is run.
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true, hide = true)]
    pub sftp_extra_args: Option<String>,
    /// Say more; -vvv shows arguments, -vvvv connections.
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
    /// List the hosts that each play would work on, and stop.
    #[arg(long)]
    pub list_hosts: bool,
    /// List the tasks that would run, and stop.
    #[arg(long)]
    pub list_tasks: bool,
    /// List the tags, and stop.
    #[arg(long)]
    pub list_tags: bool,
    /// Check the playbook's syntax, and stop.
    #[arg(long)]
    pub syntax_check: bool,
    /// Begin at the task of this name.
    #[arg(long, value_name = "NAME")]
    pub start_at_task: Option<String>,
    /// Ask before each task.
    #[arg(long)]
    pub step: bool,
    /// Run handlers even on hosts that failed.
    #[arg(long)]
    pub force_handlers: bool,
    /// Forget facts that were kept from earlier runs.
    #[arg(long)]
    pub flush_cache: bool,
    /// Ask for the vault password.
    #[arg(short = 'J', long, visible_alias = "ask-vault-password")]
    pub ask_vault_pass: bool,
    /// Read a vault password from a file or a program.
    #[arg(long, visible_alias = "vault-pass-file", value_name = "FILE")]
    pub vault_password_file: Vec<PathBuf>,
    /// A vault password's id and source: ID@FILE or ID@prompt.
    #[arg(long, value_name = "ID@SOURCE")]
    pub vault_id: Vec<String>,
    /// Folders that hold modules of one's own.
    #[arg(short = 'M', long, value_name = "FOLDERS")]
    pub module_path: Vec<String>,
    /// How to report: progress on a terminal and lines elsewhere, or one of them, JSON lines, JUnit XML.
    #[arg(long, value_enum, default_value = "auto", value_name = "FORMAT")]
    pub output: OutputFormat,
    /// Go on where the last run of the same playbooks was interrupted.
    #[arg(long, conflicts_with = "retry")]
    pub resume: bool,
    /// Only the hosts that failed or could not be reached in the last run of the same playbooks.
    #[arg(long)]
    pub retry: bool,
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
    /// Where a playbook would lie: roles, group_vars and library are looked for there.
    #[arg(long, value_name = "FOLDER")]
    pub playbook_dir: Option<PathBuf>,
    #[command(flatten)]
    pub run: RunArguments,
}

#[derive(Debug, Args)]
pub struct InventoryArguments {
    /// Inventory: a file, a folder, a script, or hosts with commas.
    #[arg(short, long = "inventory", value_name = "INVENTORY")]
    pub inventory: Vec<String>,
    /// Everything, as JSON.
    #[arg(long, group = "what")]
    pub list: bool,
    /// One host's variables, as JSON.
    #[arg(long, group = "what", value_name = "HOST")]
    pub host: Option<String>,
    /// A tree of groups and hosts.
    #[arg(long, group = "what")]
    pub graph: bool,
    /// More words about how the inventory is read.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// With the graph, variables too.
    #[arg(long)]
    pub vars: bool,
    /// YAML in place of JSON.
    #[arg(short, long)]
    pub yaml: bool,
    /// Only the hosts of this pattern.
    #[arg(short, long, value_name = "PATTERN")]
    pub limit: Option<String>,
    /// Variables where they are set, rather than with each host that has them.
    #[arg(long)]
    pub export: bool,
    /// Write to a file.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The folder of a playbook, whose `group_vars` and `host_vars` count too.
    #[arg(long, value_name = "FOLDER")]
    pub playbook_dir: Option<PathBuf>,
    /// The group at the graph's root.
    #[arg(default_value = "all")]
    pub group: String,
    /// Ask for the vault password.
    #[arg(short = 'J', long, visible_alias = "ask-vault-password")]
    pub ask_vault_pass: bool,
    /// Read a vault password from a file or a program.
    #[arg(long, visible_alias = "vault-pass-file", value_name = "FILE")]
    pub vault_password_file: Vec<PathBuf>,
    /// A vault password's id and source: ID@FILE or ID@prompt.
    #[arg(long, value_name = "ID@SOURCE")]
    pub vault_id: Vec<String>,
}
