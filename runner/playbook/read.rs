//! The loader: reads playbooks, task files and roles, and gathers every mistake instead of stopping at the first.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::keyword::{Keyword, Keywords, Setting, Shape, Where};
use super::{Item, Parent, Play};
use crate::source::{Diagnostic, Place, nearest};
use crate::value::{Map, Value};
use crate::vault::Vault;
use crate::yaml::{self, Kind, Node};

/// Where things are looked for, and what is known before any host is.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Folders that hold roles, beside `roles/` at the playbook.
    pub roles_path: Vec<PathBuf>,
    /// Folders that hold `ansible_collections/`.
    pub collections_path: Vec<PathBuf>,
    /// Folders that hold modules of one's own.
    pub library: Vec<PathBuf>,
    /// The command line's variables: names of static imports may use them.
    pub extra_vars: Arc<Map>,
    pub vault: Arc<Vault>,
    /// Whether roles keep their variables to themselves unless they are told otherwise.
    pub private_role_vars: bool,
}

pub struct Loader {
    pub(super) options: Options,
    /// Files already read, so that a role used in a hundred places is read once.
    files: HashMap<PathBuf, Arc<Vec<Node>>>,
    problems: Vec<Diagnostic>,
    /// How deep imports are nested now.
    pub(super) depth: usize,
    /// The folder of the playbook that is being read.
    pub(super) playbook: PathBuf,
    /// The roles that static imports brought since it was last asked for, with their handlers.
    pub(super) brought: Brought,
    /// The roles that were read so far: each may bring modules.
    pub(super) roles_read: Vec<PathBuf>,
}

/// Roles that tasks brought, and the handlers that came with them.
#[derive(Debug, Default)]
pub struct Brought {
    pub roles: Vec<Arc<super::Role>>,
    pub handlers: Vec<Item>,
}

/// How deep playbooks, tasks and roles may import one another: more is a circle.
pub(super) const IMPORT_DEPTH_LIMIT: usize = 50;

impl Loader {
    pub fn new(options: Options) -> Loader {
        Loader {
            options,
            files: HashMap::new(),
            problems: Vec::new(),
            depth: 0,
            playbook: PathBuf::new(),
            brought: Brought::default(),
            roles_read: Vec::new(),
        }
    }

    /// Returns one that reads as this one does, and has read nothing: what it finds is its own.
    pub fn fresh(&self) -> Loader {
        Loader { playbook: self.playbook.clone(), ..Loader::new(self.options.clone()) }
    }

    /// Reads a playbook with all it imports. What could be read comes back, mistakes are in [`Loader::take_problems`].
    pub fn playbook(&mut self, path: &Path) -> Vec<Play> {
        self.plays(path, &Arc::default())
    }

    /// Reads a playbook that the program carries, as if it were at `path`.
    pub fn carried(&mut self, path: &Path, text: &str) -> Vec<Play> {
        match yaml::parse(crate::source::FileId::register(path, text)) {
            Ok(parsed) => {
                self.files.insert(path.to_owned(), Arc::new(parsed.documents));
                self.playbook(path)
            }
            Err(problem) => {
                self.problems.push(problem);
                Vec::new()
            }
        }
    }

    /// Reads a file of tasks under `parent`, as an include does.
    pub fn tasks(&mut self, path: &Path, parent: &Arc<Parent>, is_handler: bool) -> Vec<Item> {
        let Some(documents) = self.file(path, Place::default()) else { return Vec::new() };
        match documents.first() {
            None => Vec::new(),
            Some(node) if node.is_null() => Vec::new(),
            Some(node) => self.items(node, parent, path, is_handler),
        }
    }

    /// Reads a file of variables: a mapping, or nothing.
    pub fn variables(&mut self, path: &Path, from: Place) -> Map {
        let Some(documents) = self.file(path, from) else { return Map::new() };
        match documents.first() {
            Some(node) if !node.is_null() => self.mapping(node, "a file of variables"),
            Some(_) | None => Map::new(),
        }
    }

    /// As [`Loader::variables`], of `vars_files`: a list of mappings will do, the last of which counts most.
    pub fn play_variables(&mut self, path: &Path, from: Place) -> Map {
        let Some(documents) = self.file(path, from) else { return Map::new() };
        let Some(node) = documents.first().filter(|node| !node.is_null()) else { return Map::new() };
        let mut all = Map::new();
        for node in node.items().unwrap_or(std::slice::from_ref(node)) {
            all.extend(self.mapping(node, "a file of variables"));
        }
        all
    }

    pub fn vault(&self) -> &Vault {
        &self.options.vault
    }

    /// Returns the roles and handlers that static imports have brought, and forgets them.
    pub fn take_brought(&mut self) -> Brought {
        std::mem::take(&mut self.brought)
    }

    /// Returns the mistakes and warnings found so far, and forgets them.
    pub fn take_problems(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.problems)
    }

    pub(super) fn problem(&mut self, problem: Diagnostic) {
        self.problems.push(problem);
    }

    /// Reads a YAML file; `from` is where it is named. A vaulted file is decrypted.
    pub(super) fn file(&mut self, path: &Path, from: Place) -> Option<Arc<Vec<Node>>> {
        if let Some(documents) = self.files.get(path) {
            return Some(documents.clone());
        }
        match self.options.vault.read_yaml(path) {
            Ok(parsed) => {
                let yaml::Parsed { documents, warnings } = parsed;
                self.problems.extend(warnings);
                let documents = Arc::new(documents);
                self.files.insert(path.to_owned(), documents.clone());
                Some(documents)
            }
            Err(mut error) => {
                if error.place.is_nowhere() {
                    error.place = from;
                }
                self.problems.push(error);
                None
            }
        }
    }

    /// Returns a node's value with vaulted texts decrypted.
    pub(super) fn value(&mut self, node: &Node) -> Value {
        match self.options.vault.value(node) {
            Ok(value) => value,
            Err(error) => {
                self.problems.push(error);
                Value::Null
            }
        }
    }

    /// Reads a mapping of variables.
    pub(super) fn mapping(&mut self, node: &Node, what: &str) -> Map {
        match &node.kind {
            Kind::Null => Map::new(),
            Kind::Map(entries) => {
                for (key, _) in entries {
                    self.check_variable_name(key);
                }
                match self.value(node) {
                    Value::Map(map) => Arc::unwrap_or_clone(map),
                    _ => Map::new(),
                }
            }
            _ => {
                let message = format!("{what} must be a mapping, found {}", node.what());
                self.problem(Diagnostic::error(node.place, message));
                Map::new()
            }
        }
    }

    fn check_variable_name(&mut self, key: &Node) {
        let text = key.text();
        let valid = text.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && text.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !valid {
            let message = format!("`{text}` is no valid variable name");
            self.problem(
                Diagnostic::error(key.place, message).help("letters, digits and `_`, not starting with a digit"),
            );
        }
    }

    /// Reads the keywords of a play, block, role or task; `others` are keys that the caller reads itself. Any key
    /// that is neither comes back.
    pub(super) fn keywords<'a>(&mut self, node: &'a Node, place: Where, others: &[&str]) -> (Keywords, Vec<&'a Node>) {
        let mut keywords = Keywords::default();
        let mut unknown = Vec::new();
        for (key, value) in node.entries() {
            let name = key.text();
            if others.contains(&name.as_str()) {
                continue;
            }
            match Keyword::of(&name, place) {
                Some(keyword) => {
                    self.check_shape(keyword, value);
                    let setting = Setting { value: self.value(value), place: value.place };
                    keywords.set(keyword, setting);
                }
                None => unknown.push(key),
            }
        }
        (keywords, unknown)
    }

    /// Tells of a key that may not stand there.
    pub(super) fn unknown_key(&mut self, key: &Node, what: &str, place: Where, others: &[&str]) {
        let name = key.text();
        let known =
            Keyword::ALL.iter().filter(|keyword| keyword.places().includes(place)).map(|keyword| keyword.name());
        let mut problem = Diagnostic::error(key.place, format!("'{name}' is not a valid attribute for {what}"));
        let old = match name.as_str() {
            "sudo" | "su" => Some("`become: true` does it now, `become_method` says how"),
            "sudo_user" | "su_user" => Some("`become_user` says who now"),
            "always_run" => Some("`check_mode: false` does it now"),
            _ => None,
        };
        if let Some(help) = old {
            problem = problem.help(help);
        } else if let Some(meant) = nearest(&name, known.chain(others.iter().copied())) {
            problem = problem.help(format!("did you mean `{meant}`?"));
        }
        self.problem(problem);
    }

    fn check_shape(&mut self, keyword: Keyword, node: &Node) {
        let template = node.as_str().is_some_and(crate::value::may_be_template);
        if template || node.is_null() {
            return;
        }
        let word = node.as_str().map(str::to_ascii_lowercase);
        let boolean = matches!(node.kind, Kind::Bool(_) | Kind::Int(0 | 1))
            || word.as_deref().is_some_and(|word| {
                matches!(word, "yes" | "no" | "true" | "false" | "on" | "off" | "y" | "n" | "t" | "f" | "1" | "0")
            });
        let number = matches!(node.kind, Kind::Int(_) | Kind::Float(_))
            || word.as_deref().is_some_and(|word| word.trim().trim_end_matches('%').parse::<f64>().is_ok());
        let map = matches!(node.kind, Kind::Map(_));
        let list = matches!(node.kind, Kind::List(_));
        let (right, expected) = match keyword.shape() {
            Shape::Any => (true, ""),
            Shape::Bool => (boolean, "a boolean"),
            Shape::Int => (number && !matches!(node.kind, Kind::Float(_)), "an integer"),
            Shape::Number => (number, "a number"),
            Shape::Text => (!map && !list, "a string"),
            Shape::Texts => (!map, "a list of strings"),
            Shape::Condition => (!map, "a condition"),
            Shape::Mapping => (map, "a mapping"),
            Shape::Mappings => (map || list, "a mapping or a list of mappings"),
            Shape::List => (list, "a list"),
        };
        if !right {
            let message = format!("`{keyword}` must be {expected}, found {}", node.what());
            self.problem(Diagnostic::error(node.place, message));
        } else if let Some(problem) = super::words::check(keyword, node) {
            self.problem(problem);
        }
    }

    /// Renders the name of something imported before any host is known: the variables of what encloses it and of the
    /// command line are there.
    pub(super) fn static_text(&mut self, value: &Value, place: Place, parent: &Arc<Parent>) -> Option<String> {
        if !value.holds_template() {
            return Some(value.to_string());
        }
        let known = crate::vars::static_map(parent, &self.options.extra_vars);
        let templar = crate::template::Templar::new(
            Arc::new(crate::vars::Fixed(Arc::new(known))),
            Arc::new(crate::template::Folders::default()),
        );
        match templar.text(value) {
            Ok(text) => Some(text),
            Err(error) => {
                let message = format!("an import is read before any host is known: {}", error.message);
                let help = "use an include, or give the variable with `-e`";
                self.problem(Diagnostic::error(place, message).help(help));
                None
            }
        }
    }
}
