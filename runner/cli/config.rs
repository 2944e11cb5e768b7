//! `ansible.cfg` and the `ANSIBLE_…` variables of the environment.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What was found, by section and key.
#[derive(Debug, Default)]
pub struct Config {
    pub path: Option<PathBuf>,
    values: HashMap<(String, String), String>,
    pub warnings: Vec<String>,
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
        let text = std::fs::read_to_string(&path).map_err(|error| format!("read `{}`: {error}", path.display()))?;
        config.read(&text).map_err(|(line, message)| format!("{}:{line}: {message}", path.display()))?;
        config.path = Some(std::fs::canonicalize(&path).unwrap_or(path));
        Ok(config)
    }

    fn read(&mut self, text: &str) -> Result<(), (usize, String)> {
        let mut section = String::new();
        let mut last: Option<(String, String)> = None;
        for (number, line) in text.lines().enumerate() {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name.trim().to_owned();
                last = None;
            } else if let (true, Some(key)) = (line.starts_with(char::is_whitespace), &last) {
                let value = self.values.entry(key.clone()).or_default();
                value.push('\n');
                value.push_str(trimmed);
            } else if let Some((key, value)) = trimmed.split_once(['=', ':']) {
                let value = value.split(" ;").next().unwrap_or(value).trim();
                let key = (section.clone(), key.trim().to_owned());
                self.values.insert(key.clone(), value.to_owned());
                last = Some(key);
            } else {
                return Err((number + 1, format!("`{trimmed}` is neither a section nor `key = value`")));
            }
        }
        Ok(())
    }

    /// Returns a setting: from the environment's variable, else from the file.
    pub fn get(&self, variables: &[&str], section: &str, key: &str) -> Option<String> {
        variables
            .iter()
            .find_map(|variable| std::env::var(variable).ok())
            .or_else(|| self.values.get(&(section.to_owned(), key.to_owned())).cloned())
    }

    /// Returns a setting that is a switch.
    pub fn flag(&self, variables: &[&str], section: &str, key: &str, usual: bool) -> bool {
        self.get(variables, section, key).map_or(usual, |text| crate::execute::truth(&text.into()))
    }

    /// Returns a list of paths, parted by colons; those of the file are relative to it.
    pub fn paths(&self, variables: &[&str], section: &str, key: &str) -> Option<Vec<PathBuf>> {
        let from_environment = variables.iter().any(|variable| std::env::var_os(variable).is_some());
        let text = self.get(variables, section, key)?;
        let base = self.path.as_ref().filter(|_| !from_environment).and_then(|path| path.parent());
        let absolute = |part: &str| {
            let path = crate::execute::home_expanded(PathBuf::from(part));
            base.map_or_else(|| path.clone(), |base| base.join(&path))
        };
        Some(text.split(':').filter(|part| !part.is_empty()).map(absolute).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sections_comments_and_continued_lines() {
        let mut config = Config::default();
        config
            .read("[defaults]\nforks = 9 ; many\n# no\ninventory = a,\n  b\n[ssh_connection]\nssh_args=-C\n")
            .expect("valid");
        assert_eq!(config.get(&[], "defaults", "forks").as_deref(), Some("9"));
        assert_eq!(config.get(&[], "defaults", "inventory").as_deref(), Some("a,\nb"));
        assert_eq!(config.get(&[], "ssh_connection", "ssh_args").as_deref(), Some("-C"));
        assert_eq!(Config::default().read("[a]\nnonsense\n").map_err(|(line, _)| line), Err(2));
    }
}
