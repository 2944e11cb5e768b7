//! The command line of a pod: what the user has typed, with paths as they are there and without what is a secret.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::bundle::File;

/// Stands for the folder of the project in a pod.
pub const PROJECT: &str = "@@KUBEON-PROJECT@@";
/// Stands for the folder in a pod into which what is private is unpacked.
pub const WORK: &str = "@@KUBEON-WORK@@";

/// What a pod runs; it lies in a Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Orders {
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
    /// The folder in which it runs, below the project.
    pub folder: String,
}

/// A path as `.` and `..` in it lead, without a look at links.
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(part),
        }
    }
    normal
}

/// Puts the orders together.
pub struct Writer {
    project: PathBuf,
    orders: Orders,
    /// What goes along beside the project, all of it private.
    pub files: Vec<File>,
}

impl Writer {
    /// For a project, whose folder is given by its absolute path.
    pub fn new(project: PathBuf) -> Writer {
        Writer { project, orders: Orders::default(), files: Vec::new() }
    }

    pub fn word(&mut self, word: impl Into<String>) {
        self.orders.arguments.push(word.into());
    }

    pub fn flag(&mut self, flag: &str, given: bool) {
        if given {
            self.word(flag);
        }
    }

    pub fn pair(&mut self, flag: &str, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.word(flag);
            self.word(value);
        }
    }

    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.orders.environment.insert(name.to_owned(), value.into());
    }

    pub fn folder(&mut self, folder: &Path) {
        self.orders.folder = self.below(folder).map(|path| path.display().to_string()).unwrap_or_default();
    }

    /// Returns a path from the project's folder on; `None` for one outside.
    pub fn below(&self, path: &Path) -> Option<PathBuf> {
        let below = |path: PathBuf| path.strip_prefix(&self.project).ok().map(Path::to_owned);
        // Links may lead there, too.
        below(normal(path)).or_else(|| below(std::fs::canonicalize(path).ok()?))
    }

    /// Returns a path as it is in a pod.
    ///
    /// # Errors
    /// When it is outside of the project.
    pub fn path(&self, what: &str, path: &Path) -> Result<String, String> {
        match self.below(path) {
            Some(below) if below.as_os_str().is_empty() => Ok(PROJECT.to_owned()),
            Some(below) => Ok(format!("{PROJECT}/{}", below.display())),
            None => Err(format!(
                "{what} `{}` is outside of the project's folder `{}`, which alone goes to the pods: name a folder that holds \
                 both with `--project`",
                path.display(),
                self.project.display()
            )),
        }
    }

    /// Takes a private file along, and returns its path in a pod.
    pub fn private(&mut self, name: &str, content: Vec<u8>) -> String {
        self.files.push(File { path: PathBuf::from(name), mode: 0o600, content });
        format!("{WORK}/{name}")
    }

    /// Returns a text in which paths of the project are what they are in a pod.
    pub fn mapped(&self, text: &str) -> String {
        let root = self.project.display().to_string();
        let mut mapped = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(&root) {
            let (before, after) = (&rest[..at], &rest[at + root.len()..]);
            let starts = before.chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '/');
            let ends = after.chars().next().is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '.'));
            mapped.push_str(before);
            mapped.push_str(if starts && ends { PROJECT } else { &root });
            rest = after;
        }
        mapped.push_str(rest);
        mapped
    }

    /// Returns the orders and the files.
    pub fn finish(self) -> (Orders, Vec<File>) {
        let Orders { arguments, environment, folder } = &self.orders;
        let orders = Orders {
            arguments: arguments.iter().map(|word| self.mapped(word)).collect(),
            environment: environment.iter().map(|(name, value)| (name.clone(), self.mapped(value))).collect(),
            folder: folder.clone(),
        };
        (orders, self.files)
    }
}

impl Orders {
    /// Returns the orders with the folders of this pod.
    pub fn here(&self, project: &Path, work: &Path) -> Orders {
        let placed = |text: &String| {
            text.replace(PROJECT, &project.display().to_string()).replace(WORK, &work.display().to_string())
        };
        Orders {
            arguments: self.arguments.iter().map(placed).collect(),
            environment: self.environment.iter().map(|(name, value)| (name.clone(), placed(value))).collect(),
            folder: self.folder.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_project_become_those_of_the_pod_and_others_are_refused() {
        let mut writer = Writer::new(PathBuf::from("/srv/site"));
        assert_eq!(writer.path("playbook", Path::new("/srv/site/./a/../site.yml")), Ok(format!("{PROJECT}/site.yml")));
        assert!(writer.path("playbook", Path::new("/srv/site2/site.yml")).is_err());
        assert_eq!(writer.mapped("x=/srv/site/a:/srv/site /srv/site2"), format!("x={PROJECT}/a:{PROJECT} /srv/site2"));
        let key = writer.private("key", b"k".to_vec());
        writer.pair("--private-key", Some(key));
        let (orders, files) = writer.finish();
        assert_eq!(files.len(), 1);
        let here = orders.here(Path::new("/p"), Path::new("/w"));
        assert_eq!(here.arguments, ["--private-key", "/w/key"]);
    }
}
