//! What `kubeon-run doctor` takes: the flags that say how hosts are reached, and its own.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

use super::args::RunArguments;

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
    /// Inventory: a file, a folder, a script, or hosts with commas. Without any, this machine is looked at.
    #[arg(short, long = "inventory", visible_alias = "inventory-file", value_name = "INVENTORY")]
    pub inventory: Vec<String>,
    /// Further limit the hosts to this pattern.
    #[arg(short, long, value_name = "PATTERN")]
    pub limit: Vec<String>,
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
    /// Set variables: key=value words, YAML or JSON, or @FILE.
    #[arg(short, long = "extra-vars", value_name = "VARS")]
    pub extra_vars: Vec<String>,
    /// How many hosts are looked at at once [default: 50].
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
    /// Look as another user, mostly root, who sees more.
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
    /// Show the whole chain of every host, and where others have reported the same.
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
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

impl DoctorArguments {
    /// Returns the arguments of an ordinary run that reaches the same hosts in the same way.
    pub fn run(&self) -> RunArguments {
        RunArguments {
            inventory: self.inventory.clone(),
            limit: self.limit.clone(),
            extra_vars: self.extra_vars.clone(),
            forks: self.forks,
            user: self.user.clone(),
            ask_pass: self.ask_pass,
            ask_become_pass: self.ask_become_pass,
            become_: self.become_,
            become_method: self.become_method.clone(),
            become_user: self.become_user.clone(),
            connection_password_file: self.connection_password_file.clone(),
            become_password_file: self.become_password_file.clone(),
            private_key: self.private_key.clone(),
            connection: self.connection.clone(),
            timeout: self.timeout,
            ssh_common_args: self.ssh_common_args.clone(),
            ssh_extra_args: self.ssh_extra_args.clone(),
            ask_vault_pass: self.ask_vault_pass,
            vault_password_file: self.vault_password_file.clone(),
            vault_id: self.vault_id.clone(),
            ..RunArguments::default()
        }
    }

    /// Returns the words that say the same on a command line, for commands that are shown; no password is among them.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut pair = |flag: &str, value: Option<String>| {
            if let Some(value) = value {
                words.extend([flag.to_owned(), value]);
            }
        };
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        self.inventory.iter().for_each(|inventory| pair("-i", Some(inventory.clone())));
        self.extra_vars.iter().for_each(|vars| pair("-e", Some(vars.clone())));
        pair("-e", path(&self.kubeconfig).map(|path| format!("kubeconfig={path}")));
        pair("-u", self.user.clone());
        pair("-c", self.connection.clone());
        pair("-T", self.timeout.map(|seconds| seconds.to_string()));
        pair("--private-key", path(&self.private_key));
        pair("--become-method", self.become_method.clone());
        pair("--become-user", self.become_user.clone());
        pair("--connection-password-file", path(&self.connection_password_file));
        pair("--become-password-file", path(&self.become_password_file));
        pair("--ssh-common-args", self.ssh_common_args.clone());
        pair("--ssh-extra-args", self.ssh_extra_args.clone());
        let flags = [(self.ask_pass, "-k"), (self.ask_become_pass, "-K"), (self.ask_vault_pass, "-J")];
        words.extend(flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag.to_owned()));
        words
    }
}
