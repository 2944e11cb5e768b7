//! The flags of a run of playbooks.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

use super::reach_args::ReachArguments;

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
    /// The part of the hosts that this process of a spread run works on.
    #[arg(long, hide = true, value_name = "INDEX/COUNT")]
    pub shard: Option<String>,
    /// The file that says how far all parts of a spread run may go.
    #[arg(long, hide = true, value_name = "FILE", requires = "shard")]
    pub gate: Option<PathBuf>,
    #[command(flatten)]
    pub reach: ReachArguments,
}
