//! What `kubeon-run doctor` takes: the flags that say how hosts are reached, and its own.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

use super::reach_args::ReachArguments;
use super::run_args::RunArguments;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    #[default]
    Text,
    Json,
    Sarif,
}

#[derive(Debug, Default, Args)]
#[command(
    after_help = "Exit status: 0 all well, 3 warnings, 2 GPUs can't be had, 4 a host could not be reached, 6 both of \
                        these, 1 error, 99 interrupted. Nothing is changed without --fix."
)]
pub struct DoctorArguments {
    /// Explain a pasted message instead: the text of this file, or of standard input with `-`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["inventory", "limit", "fix"])]
    pub text: Option<PathBuf>,
    /// How to report.
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub output: ReportFormat,
    /// Show what of gpu.yml mends what was found, run it, and look again.
    #[arg(long)]
    pub fix: bool,
    /// With --fix: change nothing, say what would change.
    #[arg(short = 'C', long, requires = "fix")]
    pub check: bool,
    /// With --fix: show differences in files.
    #[arg(short = 'D', long, requires = "fix")]
    pub diff: bool,
    /// With --fix: the playbook [default: playbooks/gpu.yml here, else the one that came with the program].
    #[arg(long, value_name = "FILE")]
    pub playbook: Option<PathBuf>,
    /// The cluster's kubeconfig [default: the variable `kubeconfig`, $KUBECONFIG, ~/.kube/config, the distribution's].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Look at hosts only.
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    pub no_cluster: bool,
    /// Show the whole chain of every host, and where others have reported the same.
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
    #[command(flatten)]
    pub reach: ReachArguments,
}

impl DoctorArguments {
    /// Returns the arguments of an ordinary run that reaches the same hosts in the same way.
    pub fn run(&self) -> RunArguments {
        RunArguments { reach: self.reach.clone(), ..RunArguments::default() }
    }

    /// Returns the words that say the same on a command line, for commands that are shown; no password is among them.
    pub fn words(&self) -> Vec<String> {
        let mut words = self.reach.words();
        if let Some(path) = &self.kubeconfig {
            words.extend(["-e".to_owned(), format!("kubeconfig={}", path.display())]);
        }
        words
    }
}
