//! What `kubeon-run vault` takes: ansible-vault's actions and their flags.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand};

use super::reach_args::VaultArguments;

/// What is done with a vault.
#[derive(Debug, Subcommand)]
#[command(rename_all = "snake_case")]
pub enum VaultAction {
    /// Write a new vaulted file in an editor.
    Create(CreateArguments),
    /// Decrypt files where they lie, or standard input.
    Decrypt(DecryptArguments),
    /// Change a vaulted file in an editor.
    Edit(EditArguments),
    /// Show what vaulted files hold.
    View(ViewArguments),
    /// Encrypt files where they lie, or standard input.
    Encrypt(EncryptArguments),
    /// Encrypt texts, and print them as values for a YAML file.
    EncryptString(EncryptStringArguments),
    /// Encrypt vaulted files with another password.
    Rekey(RekeyArguments),
}

#[derive(Debug, Args)]
pub struct CreateArguments {
    /// The file.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Start the editor even where standard output is no terminal.
    #[arg(long)]
    pub skip_tty_check: bool,
    #[command(flatten)]
    pub with: EncryptionArguments,
}

#[derive(Debug, Args)]
pub struct DecryptArguments {
    /// The files; standard input when there are none, or for `-`.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub with: OpeningArguments,
}

#[derive(Debug, Args)]
pub struct EditArguments {
    /// The files.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub with: EncryptionArguments,
}

#[derive(Debug, Args)]
pub struct ViewArguments {
    /// The files; `-` is standard input.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub with: OpeningArguments,
}

#[derive(Debug, Args)]
pub struct EncryptArguments {
    /// The files; standard input when there are none, or for `-`.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub with: EncryptionArguments,
}

#[derive(Debug, Args)]
pub struct EncryptStringArguments {
    /// The texts; standard input when there are none, or for `-`.
    #[arg(value_name = "TEXT")]
    pub texts: Vec<String>,
    /// Ask for the text.
    #[arg(short, long)]
    pub prompt: bool,
    /// Show the text while it is typed.
    #[arg(long)]
    pub show_input: bool,
    /// The variable's name, one for each text.
    #[arg(short, long = "name", value_name = "NAME")]
    pub names: Vec<String>,
    /// The name of the variable that standard input is for.
    #[arg(long, value_name = "NAME")]
    pub stdin_name: Option<String>,
    /// Write to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub with: EncryptionArguments,
}

#[derive(Debug, Args)]
pub struct RekeyArguments {
    /// The files.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Read the new password from a file or a program.
    #[arg(long, value_name = "FILE", conflicts_with = "new_vault_id")]
    pub new_vault_password_file: Option<PathBuf>,
    /// The new password's id and source: ID@FILE or ID@prompt.
    #[arg(long, value_name = "ID@SOURCE")]
    pub new_vault_id: Option<String>,
    #[command(flatten)]
    pub with: EncryptionArguments,
}

/// How what is there is opened.
#[derive(Debug, Args)]
pub struct OpeningArguments {
    /// Taken and not used: there is no more to say.
    #[arg(short, long, action = ArgAction::Count, hide = true)]
    pub verbose: u8,
    #[command(flatten)]
    pub vault: VaultArguments,
}

/// How a text is opened and encrypted.
#[derive(Debug, Args)]
pub struct EncryptionArguments {
    /// The id of the password that encrypts, where several are given.
    #[arg(long, value_name = "ID")]
    pub encrypt_vault_id: Option<String>,
    #[command(flatten)]
    pub opening: OpeningArguments,
}
