//! Where vault passwords come from: files, programs, questions; named by flags, the environment and `ansible.cfg`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::config::Config;
use super::reach_args::VaultArguments;
use super::{Problem, prompt};
use crate::report;
use crate::vault::{self, DEFAULT_ID, Vault};

/// A password's id, and what gives it.
#[derive(Debug, Clone)]
pub struct Source {
    pub id: String,
    from: From,
}

#[derive(Debug, Clone)]
enum From {
    /// A question; one that names the id where it was asked for by it.
    Question {
        named: bool,
    },
    File(PathBuf),
}

/// Whether a password is one that somebody has, or one that is made up now, and asked for twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    Known,
    New,
}

impl Source {
    /// Reads `ID@SOURCE`, `SOURCE` alone, `ID@prompt` or `prompt`.
    pub fn parse(text: &str) -> Source {
        let (id, source) = text.split_once('@').map_or((DEFAULT_ID, text), |(id, source)| (id, source));
        let id = if id.is_empty() { DEFAULT_ID } else { id };
        let from = match source {
            "prompt" => From::Question { named: true },
            "prompt_ask_vault_pass" => From::Question { named: false },
            file => From::File(PathBuf::from(file)),
        };
        Source { id: id.to_owned(), from }
    }

    pub fn file(id: &str, path: &Path) -> Source {
        Source { id: id.to_owned(), from: From::File(path.to_owned()) }
    }

    /// The question that is asked where nothing else is said.
    pub fn question() -> Source {
        Source { id: DEFAULT_ID.to_owned(), from: From::Question { named: false } }
    }

    /// Returns the password; `known` opens a file that is vaulted itself.
    fn password(&self, age: Age, known: &Vault) -> Result<String, Problem> {
        let named = match &self.from {
            From::File(path) => return read(path, &self.id, known).map_err(Problem::new),
            From::Question { named } => *named,
        };
        let id = &self.id;
        let question = match (age, named) {
            (Age::Known, true) => format!("Vault password ({id}):"),
            (Age::Known, false) => "Vault password:".to_owned(),
            (Age::New, true) => format!("New vault password ({id}):"),
            (Age::New, false) => "New Vault password:".to_owned(),
        };
        if age == Age::Known {
            return prompt::secret_once(&question).map_err(Problem::new);
        }
        let password = prompt::secret(&question).map_err(Problem::new)?;
        let again = question.replacen("New", "Confirm new", usize::from(named));
        let again = again.replacen("New", "Confirm New", usize::from(!named));
        if prompt::secret(&again).map_err(Problem::new)? != password {
            return Err(Problem::new("the two passwords differ"));
        }
        match password.is_empty() {
            true => Err(Problem::new("the vault password is empty")),
            false => Ok(password),
        }
    }
}

/// Returns the sources that `ansible.cfg` and the environment name by their ids.
pub fn configured(config: &Config) -> Vec<Source> {
    let listed = config.get(&["ANSIBLE_VAULT_IDENTITY_LIST"], "defaults", "vault_identity_list").unwrap_or_default();
    let mut sources: Vec<Source> =
        listed.split([',', '\n']).map(str::trim).filter(|id| !id.is_empty()).map(Source::parse).collect();
    let from_environment = std::env::var_os("ANSIBLE_VAULT_IDENTITY_LIST").is_some();
    let base = config.path.as_ref().and_then(|path| path.parent()).filter(|_| !from_environment);
    for source in &mut sources {
        if let (From::File(path), Some(base)) = (&mut source.from, base) {
            // What `ansible.cfg` names lies beside it, unless it lies here.
            let home = crate::execute::home_expanded(path.clone());
            if !home.exists() {
                *path = base.join(home);
            }
        }
    }
    sources
}

/// Returns every source that is given, in the order in which they are tried.
pub fn sources(config: &Config, args: &VaultArguments) -> Result<Vec<Source>, Problem> {
    let VaultArguments { ask_vault_pass: ask, vault_password_file: files, vault_id: ids } = args;
    let mut sources = configured(config);
    sources.extend(ids.iter().map(|id| Source::parse(id)));
    let more = config.paths(&["ANSIBLE_VAULT_PASSWORD_FILE"], "defaults", "vault_password_file").unwrap_or_default();
    let identity = config.get(&["ANSIBLE_VAULT_IDENTITY"], "defaults", "vault_identity");
    let identity = identity.as_deref().unwrap_or(DEFAULT_ID);
    sources.extend(files.iter().chain(&more).map(|file| Source::file(identity, file)));
    if *ask || config.flag(&["ANSIBLE_ASK_VAULT_PASS"], "defaults", "ask_vault_pass", false)? {
        sources.push(Source { id: identity.to_owned(), ..Source::question() });
    }
    Ok(sources)
}

/// Reads the passwords of these sources. One that gives none is told and passed over, as long as another gives one.
pub fn gathered(config: &Config, sources: &[Source], age: Age) -> Result<Vault, Problem> {
    let mut vault = Vault::default();
    let mut failed = None;
    let mut given = 0;
    for source in sources {
        match source.password(age, &vault) {
            Ok(password) => {
                vault.add(&source.id, &password);
                given += 1;
            }
            Err(problem) => {
                if sources.len() > 1 {
                    report::warn(&format!("Error getting vault password file ({}): {}", source.id, problem.message));
                }
                failed = Some(problem);
            }
        }
    }
    if let Some(problem) = failed.filter(|_| given == 0) {
        return Err(problem);
    }
    if config.flag(&["ANSIBLE_VAULT_ID_MATCH"], "defaults", "vault_id_match", false)? {
        vault.only_by_id();
    }
    Ok(vault)
}

/// Returns the passwords that were given for a run.
pub fn known(config: &Config, args: &VaultArguments) -> Result<Vault, Problem> {
    gathered(config, &sources(config, args)?, Age::Known)
}

/// Reads a password's file; one that can be executed is asked, and one whose name ends in `-client` is told the id.
fn read(path: &Path, id: &str, known: &Vault) -> Result<String, String> {
    let path = crate::execute::home_expanded(path.to_owned());
    let failed = |error: std::io::Error| format!("read the vault password from `{}`: {error}", path.display());
    let executable = std::fs::metadata(&path).map_err(failed)?.permissions().mode() & 0o111 != 0;
    if path.is_dir() || !executable {
        let mut text = std::fs::read(&path).map_err(failed)?;
        if vault::is_vaulted(&text) {
            let plain = known.decrypt(&String::from_utf8_lossy(&text));
            text = plain.map_err(|message| format!("read the vault password from `{}`: {message}", path.display()))?;
        }
        return not_empty(String::from_utf8_lossy(&text).trim(), &path);
    }
    let mut command = Command::new(std::fs::canonicalize(&path).map_err(failed)?);
    if path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("-client")) {
        command.args(["--vault-id", id]);
    }
    let output = command.stdin(Stdio::inherit()).output().map_err(failed)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{}` gave no vault password for the id `{id}`: {}", path.display(), said.trim()));
    }
    not_empty(String::from_utf8_lossy(&output.stdout).trim_matches(['\r', '\n']), &path)
}

fn not_empty(text: &str, path: &Path) -> Result<String, String> {
    match text.is_empty() {
        true => Err(format!("the vault password in `{}` is empty", path.display())),
        false => Ok(text.to_owned()),
    }
}
