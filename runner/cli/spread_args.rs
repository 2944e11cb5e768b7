//! The flags of `kubeon-run spread`.

use std::path::PathBuf;

use clap::Args;

use super::run_args::RunArguments;

#[derive(Debug, Args)]
pub struct SpreadArguments {
    #[command(flatten)]
    pub job: JobArguments,
    #[command(flatten)]
    pub run: RunArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "The Job")]
pub struct JobArguments {
    /// Over how many pods the hosts are spread.
    #[arg(long, value_name = "N", required_unless_present = "attach")]
    pub shards: Option<usize>,
    /// How many of them run at once [default: all].
    #[arg(long, value_name = "N")]
    pub parallelism: Option<usize>,
    /// The pods' image, with kubeon-run in it: `packaging/image` makes one.
    #[arg(long, value_name = "IMAGE", required_unless_present = "attach")]
    pub image: Option<String>,
    /// The program in the image.
    #[arg(long, value_name = "PATH", default_value = "kubeon-run")]
    pub program: String,
    /// The name of the Job [default: spread-TIME-PROCESS].
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Follow a run that goes on, by its Job's name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "shards"])]
    pub attach: Option<String>,
    /// Start the Job and do not follow it: `--attach` does later.
    #[arg(long, conflicts_with = "attach")]
    pub detach: bool,
    /// Leave the Job there when it has ended, until its time to live is over.
    #[arg(long)]
    pub keep: bool,
    /// The kubeconfig [default: as kubectl finds it].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The namespace [default: the context's].
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// The service account of the pods, whose token they are given; without one they ask the API for nothing.
    #[arg(long, value_name = "NAME")]
    pub service_account: Option<String>,
    /// The Secret that pulls the image.
    #[arg(long, value_name = "NAME")]
    pub pull_secret: Option<String>,
    /// The folder that goes to the pods [default: this one].
    #[arg(long, value_name = "FOLDER")]
    pub project: Option<PathBuf>,
    /// The volume on which the pods find that folder, in place of what goes through the API.
    #[arg(long, value_name = "CLAIM[:FOLDER]", conflicts_with = "project_path")]
    pub volume: Option<String>,
    /// Where the pods find that folder in their image.
    #[arg(long, value_name = "PATH")]
    pub project_path: Option<String>,
    /// Only nodes with this label.
    #[arg(long, value_name = "KEY=VALUE")]
    pub node_selector: Vec<String>,
    /// Also nodes with this taint.
    #[arg(long, value_name = "KEY[=VALUE][:EFFECT]")]
    pub toleration: Vec<String>,
    /// What a pod asks for.
    #[arg(long, value_name = "cpu=500m,memory=256Mi", value_delimiter = ',')]
    pub requests: Vec<String>,
    /// What a pod is limited to.
    #[arg(long, value_name = "cpu=2,memory=1Gi", value_delimiter = ',')]
    pub limits: Vec<String>,
    /// How often a shard whose pod is lost begins again.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub retries: u32,
    /// Seconds that the Job stays after its end, where nobody takes it away.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub ttl: u32,
    /// Seconds that the whole run may take [default: no end].
    #[arg(long, value_name = "SECONDS")]
    pub deadline: Option<u64>,
}

/// What a pod is told.
#[derive(Debug, Args)]
pub struct ShardArguments {
    #[arg(long)]
    pub shards: usize,
    #[arg(long)]
    pub private: PathBuf,
    #[arg(long)]
    pub work: PathBuf,
    #[arg(long)]
    pub open: Option<PathBuf>,
    #[arg(long)]
    pub tree: Option<PathBuf>,
    #[arg(long)]
    pub gate: Option<PathBuf>,
}
