//! `kubeon-run vault`, which is also ansible-vault: writes, changes and shows vaulted files and values.

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::config::Config;
use super::vault_args::{
    CreateArguments, DecryptArguments, EditArguments, EncryptArguments, EncryptStringArguments, EncryptionArguments,
    OpeningArguments, RekeyArguments, VaultAction, ViewArguments,
};
use super::vault_files::{self as files, Rights, STANDARD};
use super::vault_passwords::{self as passwords, Age, Source};
use super::{Problem, prompt};
use crate::report;
use crate::vault::{self, Opened, Vault};

/// ansible-vault's exit status for options that do not go together.
const EXIT_OPTIONS: u8 = 5;
/// How far a vaulted value stands in from its key.
const INDENT: usize = 10;

pub fn vault(action: VaultAction) -> Result<u8, Problem> {
    let config = Config::find().map_err(Problem::new)?;
    match action {
        VaultAction::Create(args) => create(&config, &args),
        VaultAction::Decrypt(args) => decrypt(&config, &args),
        VaultAction::Edit(args) => edit(&config, &args),
        VaultAction::View(args) => view(&config, &args),
        VaultAction::Encrypt(args) => encrypt(&config, &args),
        VaultAction::EncryptString(args) => encrypt_string(&config, &args),
        VaultAction::Rekey(args) => rekey(&config, &args),
    }?;
    Ok(0)
}

fn options(message: impl Into<String>) -> Problem {
    Problem { message: message.into(), code: EXIT_OPTIONS }
}

/// What encrypts.
struct Key {
    id: String,
    password: String,
    salt: Option<String>,
}

impl Key {
    fn encrypt(&self, plain: &[u8]) -> Result<String, Problem> {
        let salt = self.salt.as_ref().map(String::as_bytes);
        vault::encrypt(plain, &self.id, &self.password, salt).map_err(Problem::new)
    }
}

fn salt(config: &Config) -> Option<String> {
    config.get(&["ANSIBLE_VAULT_ENCRYPT_SALT"], "defaults", "vault_encrypt_salt").filter(|salt| !salt.is_empty())
}

fn wanted_id(config: &Config, with: &EncryptionArguments) -> Option<String> {
    let configured = || config.get(&["ANSIBLE_VAULT_ENCRYPT_IDENTITY"], "defaults", "vault_encrypt_identity");
    with.encrypt_vault_id.clone().or_else(configured).filter(|id| !id.is_empty())
}

/// Chooses the password that encrypts: that of the id that is wanted, else the first.
fn chosen(config: &Config, vault: &Vault, wanted: Option<&str>) -> Result<Key, Problem> {
    let found = vault.passwords().find(|(id, _)| wanted.is_none_or(|wanted| wanted == *id));
    let Some((id, password)) = found else {
        let known: Vec<&str> = vault.passwords().map(|(id, _)| id).collect();
        let wanted = wanted.unwrap_or_default();
        return Err(Problem::new(format!("no password of the id `{wanted}` is given: {} are", known.join(", "))));
    };
    Ok(Key { id: id.to_owned(), password: password.to_owned(), salt: salt(config) })
}

/// Returns what encrypts a text that was not vaulted before.
fn new_key(config: &Config, with: &EncryptionArguments) -> Result<Key, Problem> {
    let mut sources = passwords::sources(config, &with.opening.vault)?;
    if sources.is_empty() {
        sources.push(Source::question());
    }
    let wanted = wanted_id(config, with);
    let vault = passwords::gathered(config, &sources, Age::New)?;
    let ids: Vec<&str> = vault.passwords().map(|(id, _)| id).collect();
    if ids.len() > 1 && wanted.is_none() {
        let ids = ids.join(", ");
        return Err(options(format!("the vault ids {ids} could encrypt it: choose one with `--encrypt-vault-id`")));
    }
    chosen(config, &vault, wanted.as_deref())
}

/// Returns what opens vaulted texts, by a question where nothing else is given.
fn opener(config: &Config, args: &OpeningArguments) -> Result<Vault, Problem> {
    let mut sources = passwords::sources(config, &args.vault)?;
    if sources.is_empty() {
        sources.push(Source::question());
    }
    passwords::gathered(config, &sources, Age::Known)
}

fn opened(vault: &Vault, path: &Path, bytes: &[u8]) -> Result<Opened, Problem> {
    let opened = vault.open(&String::from_utf8_lossy(bytes));
    opened.map_err(|message| Problem::new(format!("decrypt `{}`: {message}", path.display())))
}

/// Returns the files that are named, or standard input, for which a person at the terminal is told to type.
fn inputs(named: &[PathBuf], output: Option<&PathBuf>, what: &str) -> Result<Vec<PathBuf>, Problem> {
    if named.len() > 1 && output.is_some() {
        return Err(options("`--output` takes one input file"));
    }
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    if std::io::stdin().is_terminal() {
        report::note(&format!("Reading {what} input from stdin"));
    }
    Ok(vec![STANDARD.into()])
}

/// Says that it is done where somebody watches, as ansible-vault does.
fn told(what: &str) {
    if std::io::stdout().is_terminal() {
        report::note(&format!("{what} successful"));
    }
}

fn encrypt(config: &Config, args: &EncryptArguments) -> Result<(), Problem> {
    let inputs = inputs(&args.files, args.output.as_ref(), "plaintext")?;
    let key = new_key(config, &args.with)?;
    // All of them, before the first one is written.
    let made = inputs.iter().map(|input| {
        let plain = files::read(input)?;
        if vault::is_vaulted(&plain) {
            return Err(Problem::new(format!("`{}` is already encrypted", input.display())));
        }
        Ok((input, key.encrypt(&plain)?))
    });
    for (input, text) in made.collect::<Result<Vec<_>, Problem>>()? {
        files::write(args.output.as_ref().unwrap_or(input), text.as_bytes(), Rights::Private)?;
    }
    told("Encryption");
    Ok(())
}

fn decrypt(config: &Config, args: &DecryptArguments) -> Result<(), Problem> {
    let inputs = inputs(&args.files, args.output.as_ref(), "ciphertext")?;
    let vault = opener(config, &args.with)?;
    let made = inputs.iter().map(|input| Ok((input, opened(&vault, input, &files::read(input)?)?.plain)));
    for (input, plain) in made.collect::<Result<Vec<_>, Problem>>()? {
        files::write(args.output.as_ref().unwrap_or(input), &plain, Rights::Private)?;
    }
    told("Decryption");
    Ok(())
}

fn create(config: &Config, args: &CreateArguments) -> Result<(), Problem> {
    let [path] = &args.files[..] else { return Err(options("`create` takes one file")) };
    if !args.skip_tty_check && !std::io::stdout().is_terminal() {
        return Err(options("not a terminal, where an editor could be: `--skip-tty-check` starts it all the same"));
    }
    let key = new_key(config, &args.with)?;
    if path.exists() {
        return Err(Problem::new(format!("`{}` exists: use `edit`", path.display())));
    }
    let plain = files::edited(config, path, b"")?;
    files::make_folder_of(path)?;
    files::write(path, key.encrypt(&plain)?.as_bytes(), Rights::Private)
}

fn edit(config: &Config, args: &EditArguments) -> Result<(), Problem> {
    some(&args.files, "edit")?;
    let vault = opener(config, &args.with.opening)?;
    for path in &args.files {
        let Opened { plain, id, password } = opened(&vault, path, &files::read(path)?)?;
        let changed = files::edited(config, path, &plain)?;
        if changed != plain {
            // Under the id and the password that it had.
            let text = Key { id, password, salt: salt(config) }.encrypt(&changed)?;
            files::write(path, text.as_bytes(), Rights::Kept)?;
        }
    }
    Ok(())
}

/// Refuses to do nothing: ansible-vault does, and ends well.
fn some(files: &[PathBuf], action: &str) -> Result<(), Problem> {
    match files.is_empty() {
        true => Err(Problem::usage(format!("`{action}` takes the files to work on"))),
        false => Ok(()),
    }
}

fn view(config: &Config, args: &ViewArguments) -> Result<(), Problem> {
    some(&args.files, "view")?;
    let vault = opener(config, &args.with)?;
    for path in &args.files {
        let mut plain = opened(&vault, path, &files::read(path)?)?.plain;
        if !plain.ends_with(b"\n") {
            plain.push(b'\n');
        }
        if !std::io::stdout().is_terminal() || !paged(config, &plain)? {
            report::give(&plain);
        }
    }
    Ok(())
}

/// Shows a text in a pager; `false` where there is none.
fn paged(config: &Config, text: &[u8]) -> Result<bool, Problem> {
    let named = config.get(&["ANSIBLE_PAGER", "PAGER"], "defaults", "pager").filter(|pager| !pager.trim().is_empty());
    let pager = named.as_deref().unwrap_or("less");
    let there = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(pager).is_file())
    };
    if named.is_none() && !there() {
        return Ok(false);
    }
    let failed = |error: std::io::Error| Problem::new(format!("start the pager `{pager}`: {error}"));
    let mut command = Command::new("/bin/sh");
    let mut child = command.args(["-c", pager]).env("LESS", "FRSX").stdin(Stdio::piped()).spawn().map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        // One that is left before the end has not read all of it.
        input.write_all(text).ok();
    }
    child.wait().map_err(failed)?;
    Ok(true)
}

fn rekey(config: &Config, args: &RekeyArguments) -> Result<(), Problem> {
    some(&args.files, "rekey")?;
    let vault = opener(config, &args.with.opening)?;
    let wanted = wanted_id(config, &args.with);
    let mut sources = wanted.as_ref().map(|_| passwords::configured(config)).unwrap_or_default();
    sources.extend(args.new_vault_id.as_deref().map(Source::parse));
    sources.extend(args.new_vault_password_file.as_deref().map(|path| Source::file(vault::DEFAULT_ID, path)));
    if sources.is_empty() || args.with.opening.vault.ask_vault_pass {
        sources.push(Source::question());
    }
    let new = passwords::gathered(config, &sources, Age::New)?;
    let key = chosen(config, &new, wanted.as_deref())?;
    let made = args.files.iter().map(|path| {
        let plain = opened(&vault, path, &files::read(path)?)?.plain;
        Ok((path, key.encrypt(&plain)?))
    });
    for (path, text) in made.collect::<Result<Vec<_>, Problem>>()? {
        files::write(path, text.as_bytes(), Rights::Kept)?;
    }
    report::note("Rekey successful");
    Ok(())
}

/// A text that is to be encrypted.
struct Text {
    name: Option<String>,
    /// Where it comes from.
    from: &'static str,
    plain: Vec<u8>,
}

fn encrypt_string(config: &Config, args: &EncryptStringArguments) -> Result<(), Problem> {
    let reads_stdin = args.texts.iter().any(|text| text == STANDARD)
        || args.stdin_name.is_some()
        || (args.texts.is_empty() && !args.prompt);
    if args.prompt && reads_stdin {
        return Err(options("`--prompt` and standard input do not go together"));
    }
    if args.texts.len() > 1 && args.output.is_some() {
        return Err(options("`--output` takes one text"));
    }
    let key = new_key(config, &args.with)?;
    let texts = texts(args, reads_stdin)?;
    let mut shown = String::new();
    for (nth, text) in texts.iter().enumerate() {
        if texts.len() > 1 {
            let nth = nth + 1;
            report::note(&match &text.name {
                Some(name) => {
                    format!("# The encrypted version of variable (\"{name}\", the string #{nth} from {}).", text.from)
                }
                None => format!("# The encrypted version of the string #{nth} from {}.)", text.from),
            });
        }
        let name = text.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        shown += &format!("{name}!vault |\n");
        for line in key.encrypt(&text.plain)?.lines() {
            shown += &format!("{:INDENT$}{line}\n", "");
        }
    }
    files::write(args.output.as_deref().unwrap_or(Path::new(STANDARD)), shown.as_bytes(), Rights::Private)?;
    told("Encryption");
    Ok(())
}

fn texts(args: &EncryptStringArguments, reads_stdin: bool) -> Result<Vec<Text>, Problem> {
    let mut texts = Vec::new();
    if args.prompt {
        let asked = |question: &str, echo: bool| {
            prompt::line(question, echo).ok_or_else(|| Problem::new("nobody is there to answer: no terminal"))
        };
        let name = Some(asked("Variable name (enter for no name):", true)?).filter(|name| !name.is_empty());
        let question = if args.show_input { "String to encrypt:" } else { "String to encrypt (hidden):" };
        texts.push(Text { name, from: "the interactive prompt", plain: asked(question, args.show_input)?.into() });
    }
    if reads_stdin {
        if std::io::stdin().is_terminal() {
            report::note("Reading plaintext input from stdin; ctrl-d ends it, twice where the last line has not ended");
        }
        let mut plain = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut plain);
        read.map_err(|error| Problem::new(format!("read standard input: {error}")))?;
        texts.push(Text { name: args.stdin_name.clone(), from: "stdin", plain });
    }
    let given: Vec<&String> = args.texts.iter().filter(|text| *text != STANDARD).collect();
    if let Some(last) = args.names.last().filter(|_| given.len() > args.names.len()) {
        report::note("The number of --name options do not match the number of args.");
        report::note(&format!("The last named variable will be \"{last}\". The rest will not have names."));
    }
    for (nth, text) in given.into_iter().enumerate() {
        let name = args.names.get(nth).cloned();
        texts.push(Text { name, from: "the command line args", plain: text.clone().into_bytes() });
    }
    match texts.iter().find(|text| text.plain.is_empty()) {
        Some(empty) => Err(options(format!("the text from {} is empty: nothing is encrypted", empty.from))),
        None => Ok(texts),
    }
}
