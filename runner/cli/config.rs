//! `ansible.cfg` and the `ANSIBLE_…` variables of the environment.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Problem;
use crate::source::{Diagnostic, FileId, Place};

/// What was found, by section and key.
#[derive(Debug, Default, Clone)]
pub struct Config {
    pub path: Option<PathBuf>,
    values: HashMap<(String, String), Written>,
    pub warnings: Vec<String>,
}

/// A value of the file, and where its key and itself stand.
#[derive(Debug, Clone)]
struct Written {
    text: String,
    key: Place,
    value: Place,
}

impl Config {
    /// Finds and reads the configuration as Ansible does: `$ANSIBLE_CONFIG`, `./ansible.cfg` unless the folder is
    /// writable by everyone, `~/.ansible.cfg`, `/etc/ansible/ansible.cfg`.
    ///
    /// # Errors
    /// A sentence for a person when the file can't be read or a line of it makes no sense.
    pub fn find() -> Result<Config, String> {
        let mut config = Config::default();
        let mut candidates: Vec<PathBuf> = Vec::new();
        if let Some(named) = std::env::var_os("ANSIBLE_CONFIG") {
            let named = PathBuf::from(named);
            candidates.push(if named.is_dir() { named.join("ansible.cfg") } else { named });
        }
        let here = Path::new("ansible.cfg");
        if here.is_file() {
            let open = std::fs::metadata(".").is_ok_and(|folder| folder.permissions().mode() & 0o002 != 0);
            if open && std::env::var_os("ANSIBLE_CONFIG").is_none() {
                config.warnings.push(
                    "ansible.cfg of this folder is not read, since everyone can write to the folder; name it with ANSIBLE_CONFIG"
                        .to_owned(),
                );
            } else {
                candidates.push(here.to_owned());
            }
        }
        candidates.extend(std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".ansible.cfg")));
        candidates.push(PathBuf::from("/etc/ansible/ansible.cfg"));
        let Some(path) = candidates.into_iter().find(|path| path.is_file()) else { return Ok(config) };
        config.take(&path)?;
        Ok(config)
    }

    /// Reads this file and no other.
    ///
    /// # Errors
    /// As [`Config::find`], and when the file is not there or its name says that it is of another format.
    pub fn read_file(path: &Path) -> Result<Config, String> {
        if !path.is_file() {
            let path = path.display();
            return Err(format!("The provided configuration file is missing or not accessible: {path}"));
        }
        if !matches!(path.extension().and_then(|ending| ending.to_str()), Some("cfg" | "ini")) {
            return Err(format!("Unsupported configuration file extension for {}", path.display()));
        }
        let mut config = Config::default();
        config.take(path)?;
        Ok(config)
    }

    fn take(&mut self, path: &Path) -> Result<(), String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("read `{}`: {error}", path.display()))?;
        let file = FileId::register(path, text.as_str());
        self.read(&text, file).map_err(|problem| problem.render(false))?;
        self.path = Some(std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
        Ok(())
    }

    fn read(&mut self, text: &str, file: FileId) -> Result<(), Diagnostic> {
        let mut section = String::new();
        let mut last: Option<(String, String)> = None;
        for (number, line) in text.lines().enumerate() {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
                continue;
            }
            let place = file.at(number + 1, 1 + line.chars().take_while(|c| c.is_whitespace()).count());
            if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name.trim().to_owned();
                last = None;
            } else if let (true, Some(value)) =
                (line.starts_with(char::is_whitespace), last.as_ref().and_then(|key| self.values.get_mut(key)))
            {
                value.text.push('\n');
                value.text.push_str(trimmed);
            } else if let Some((key, value)) = trimmed.split_once(['=', ':']) {
                let blanks = 1 + value.chars().take_while(|c| c.is_whitespace()).count();
                let value_place = place.right(key.chars().count() + blanks);
                let value = value.split(" ;").next().unwrap_or(value).trim();
                let key = (section.clone(), key.trim().to_ascii_lowercase());
                let written = Written { text: value.to_owned(), key: place, value: value_place };
                self.values.insert(key.clone(), written);
                last = Some(key);
            } else {
                let message = format!("`{trimmed}` is neither a section nor `key = value`");
                return Err(Diagnostic::error(place, message));
            }
        }
        Ok(())
    }

    /// Returns every key of the file: its section, itself, its value, and where it stands.
    pub fn keys(&self) -> impl Iterator<Item = (&str, &str, &str, Place)> {
        self.values.iter().map(|((section, key), written)| (&**section, &**key, &*written.text, written.key))
    }

    /// Returns where a setting's value stands, and how to name it: its variable's where the environment has it.
    pub fn origin(&self, variables: &[&str], section: &str, key: &str) -> (Place, String) {
        match variables.iter().find(|variable| std::env::var_os(variable).is_some()) {
            Some(variable) => (Place::default(), (*variable).to_owned()),
            None => {
                let written = self.values.get(&(section.to_owned(), key.to_owned()));
                (written.map_or_else(Place::default, |written| written.value), key.to_owned())
            }
        }
    }

    /// Returns a setting: from the environment's variable, else from the file.
    pub fn get(&self, variables: &[&str], section: &str, key: &str) -> Option<String> {
        variables
            .iter()
            .find_map(|variable| std::env::var(variable).ok())
            .or_else(|| self.values.get(&(section.to_owned(), key.to_owned())).map(|written| written.text.clone()))
    }

    /// Returns a setting that is a switch.
    ///
    /// # Errors
    /// When it is neither of the words that mean yes nor of those that mean no: a misspelt one must not turn anything
    /// off.
    pub fn flag(&self, variables: &[&str], section: &str, key: &str, usual: bool) -> Result<bool, Problem> {
        let Some(text) = self.get(variables, section, key) else { return Ok(usual) };
        match text.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" | "on" | "1" | "true" | "t" => Ok(true),
            "n" | "no" | "off" | "0" | "false" | "f" => Ok(false),
            _ => {
                let (place, name) = self.origin(variables, section, key);
                let problem = Diagnostic::error(place, format!("`{name}` is `{text}`, neither yes nor no"));
                Err(Problem::usage(problem.render(false).trim_start_matches("error: ")))
            }
        }
    }

    /// Returns a list of paths, parted by colons; those of the file are relative to it.
    pub fn paths(&self, variables: &[&str], section: &str, key: &str) -> Option<Vec<PathBuf>> {
        let text = self.get(variables, section, key)?;
        Some(text.split(':').filter(|part| !part.is_empty()).map(|part| self.absolute(variables, part)).collect())
    }

    /// Returns a path; one of the file is relative to it.
    pub fn path(&self, variables: &[&str], section: &str, key: &str) -> Option<PathBuf> {
        let text = self.get(variables, section, key).filter(|text| !text.is_empty())?;
        Some(self.absolute(variables, &text))
    }

    fn absolute(&self, variables: &[&str], path: &str) -> PathBuf {
        let from_environment = variables.iter().any(|variable| std::env::var_os(variable).is_some());
        let base = self.path.as_ref().filter(|_| !from_environment).and_then(|path| path.parent());
        let path = crate::execute::home_expanded(PathBuf::from(path));
        base.map_or_else(|| path.clone(), |base| base.join(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, Diagnostic> {
        let mut config = Config::default();
        config.read(text, FileId::register(Path::new("ansible.cfg"), text)).map(|()| config)
    }

    #[test]
    fn reads_sections_comments_and_continued_lines() {
        let config = read("[defaults]\nforks = 9 ; many\n# no\ninventory = a,\n  b\n[ssh_connection]\nssh_args=-C\n")
            .expect("valid");
        assert_eq!(config.get(&[], "defaults", "forks").as_deref(), Some("9"));
        assert_eq!(config.get(&[], "defaults", "inventory").as_deref(), Some("a,\nb"));
        assert_eq!(config.get(&[], "ssh_connection", "ssh_args").as_deref(), Some("-C"));
        assert_eq!(read("[a]\nnonsense\n").map_err(|problem| problem.place.line).err(), Some(2));
        let port = read("[defaults]\n  forks =  9\n").expect("valid").origin(&[], "defaults", "forks").0;
        assert_eq!((port.line, port.column), (2, 12));
    }
}
