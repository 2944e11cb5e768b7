//! Flags that several commands share: which hosts, how they are reached, and what opens a vault.

use std::path::PathBuf;

use clap::Args;

/// Which hosts are worked on, and how they are reached.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Hosts and how they are reached")]
pub struct ReachArguments {
    /// Inventory: a file, a folder, a script, or hosts with commas; may be given several times.
    #[arg(short, long = "inventory", visible_alias = "inventory-file", value_name = "INVENTORY")]
    pub inventory: Vec<String>,
    /// Further limit the hosts to this pattern.
    #[arg(short, long, value_name = "PATTERN")]
    pub limit: Vec<String>,
    /// Set variables: key=value words, YAML or JSON, or @FILE.
    #[arg(short, long = "extra-vars", value_name = "VARS")]
    pub extra_vars: Vec<String>,
    /// How many hosts are worked on at once [default: 50].
    #[arg(short, long)]
    pub forks: Option<usize>,
    /// Connect as this user.
    #[arg(short, long = "user", value_name = "USER")]
    pub user: Option<String>,
    /// Ask for the connection's password.
    #[arg(short = 'k', long = "ask-pass", conflicts_with = "connection_password_file")]
    pub ask_pass: bool,
    /// Ask for the password of sudo, su or doas.
    #[arg(short = 'K', long = "ask-become-pass", conflicts_with = "become_password_file")]
    pub ask_become_pass: bool,
    /// Work as another user, mostly root.
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
    #[command(flatten)]
    pub vault: VaultArguments,
}

/// What opens a vault.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Vaults")]
pub struct VaultArguments {
    /// Ask for the vault password.
    #[arg(short = 'J', long, visible_alias = "ask-vault-password", conflicts_with = "vault_password_file")]
    pub ask_vault_pass: bool,
    /// Read a vault password from a file or a program.
    #[arg(long, visible_alias = "vault-pass-file", value_name = "FILE")]
    pub vault_password_file: Vec<PathBuf>,
    /// A vault password's id and source: ID@FILE or ID@prompt.
    #[arg(long, value_name = "ID@SOURCE")]
    pub vault_id: Vec<String>,
}

impl ReachArguments {
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
        let flags = [(self.ask_pass, "-k"), (self.ask_become_pass, "-K"), (self.vault.ask_vault_pass, "-J")];
        words.extend(flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag.to_owned()));
        words
    }
}
