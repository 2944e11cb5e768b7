//! Reads plays and `import_playbook`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::keyword::{Setting, Where};
use super::read::{IMPORT_DEPTH_LIMIT, Loader};
use super::{Keyword, Parent, ParentKind, Play, Prompt};
use crate::source::{Diagnostic, FileId, nearest};
use crate::value::{Map, Value};
use crate::yaml::{Kind, Node};

const KEYS: &[&str] =
    &["hosts", "vars", "vars_files", "vars_prompt", "roles", "pre_tasks", "tasks", "post_tasks", "handlers"];
const IMPORT: &[&str] =
    &["import_playbook", "ansible.builtin.import_playbook", "ansible.legacy.import_playbook", "vars"];

/// How long a prompt's salt is unless it says so. Source: Ansible's documentation of `vars_prompt`.
const SALT_SIZE: usize = 8;

impl Loader {
    pub(super) fn plays(&mut self, path: &Path, parent: &Arc<Parent>) -> Vec<Play> {
        let Some(documents) = self.file(path, crate::source::Place::default()) else { return Vec::new() };
        let Some(node) = documents.first().filter(|node| !node.is_null()) else {
            let place = FileId::register(path, "").at(1, 1);
            let problem = Diagnostic::error(place, format!("Empty playbook, nothing to do: {}", path.display()));
            self.problem(problem.help("a playbook is a list of plays: each with `hosts:` and `tasks:`"));
            return Vec::new();
        };
        let Kind::List(nodes) = &node.kind else {
            let message = format!("a playbook is a list of plays, found {}", node.what());
            self.problem(Diagnostic::error(node.place, message));
            return Vec::new();
        };
        let mut plays = Vec::new();
        let outer = std::mem::replace(&mut self.playbook, folder_of(path));
        for node in nodes {
            if let Some((_, file)) = node.entries().iter().find(|(key, _)| IMPORT[..3].contains(&key.text().as_str())) {
                plays.extend(self.import_playbook(node, file, path, parent));
            } else {
                plays.extend(self.play(node, path, parent));
            }
        }
        self.playbook = outer;
        plays
    }

    fn import_playbook(&mut self, node: &Node, file: &Node, path: &Path, parent: &Arc<Parent>) -> Vec<Play> {
        let place = Where::BLOCK;
        let (mut keywords, unknown) = self.keywords(node, place, IMPORT);
        for key in unknown {
            self.unknown_key(key, "a PlaybookInclude", place, IMPORT);
        }
        let mut own = Map::new();
        if let Some(more) = node.get("vars") {
            own = self.mapping(more, "`vars`");
        }
        let around =
            Arc::new(Parent { vars: Arc::new(own.clone()), parent: Some(parent.clone()), ..Parent::default() });
        let written = self.value(file);
        let Some(name) = self.static_text(&written, file.place, &around) else { return Vec::new() };
        let (name, vars_in_line) = match super::parse_key_values(&name) {
            Ok((pairs, rest)) if !rest.is_empty() => (rest, pairs),
            Ok(_) | Err(_) => (name, Vec::new()),
        };
        let mut vars: Map = vars_in_line.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        vars.extend(own);
        if self.depth == IMPORT_DEPTH_LIMIT {
            self.problem(Diagnostic::error(file.place, "playbooks import one another in a circle"));
            return Vec::new();
        }
        // The name of an import is no keyword that plays take on.
        keywords.set(Keyword::Name, Setting { value: Value::Null, place: node.place });
        let parent = Arc::new(Parent {
            kind: ParentKind::Import,
            keywords,
            vars: Arc::new(vars),
            notify: Vec::new(),
            role: None,
            parent: Some(parent.clone()),
        });
        self.depth += 1;
        let target = folder_of(path).join(&name);
        let plays = if target.is_file() {
            self.plays(&target, &parent)
        } else {
            self.problem(Diagnostic::error(file.place, format!("no playbook `{}`", target.display())));
            Vec::new()
        };
        self.depth -= 1;
        plays
    }

    fn play(&mut self, node: &Node, path: &Path, outer: &Arc<Parent>) -> Option<Play> {
        let Kind::Map(entries) = &node.kind else {
            self.problem(Diagnostic::error(node.place, format!("a play is a mapping, found {}", node.what())));
            return None;
        };
        let Some(hosts) = node.get("hosts") else {
            let mut problem = Diagnostic::error(node.place, "a play must have `hosts`");
            let stranger = |key: &Node| {
                let name = key.text();
                Keyword::of(&name, Where::PLAY).is_none() && !KEYS.contains(&name.as_str())
            };
            if let Some((key, _)) = entries.iter().find(|(key, _)| crate::action::canonical(&key.text()).is_some()) {
                let message = format!("'{}' is not a valid attribute for a Play", key.text());
                self.problem(Diagnostic::error(key.place, message).help("tasks stand below a play's `tasks:`"));
                return None;
            }
            let meant = entries
                .iter()
                .find(|(key, _)| stranger(key) && nearest(&key.text(), ["hosts", "import_playbook"]).is_some());
            if let Some((key, _)) = meant {
                problem = Diagnostic { place: key.place, ..problem };
            }
            self.problem(problem);
            return None;
        };
        let (keywords, unknown) = self.keywords(node, Where::PLAY, KEYS);
        for key in unknown {
            self.unknown_key(key, "a Play", Where::PLAY, KEYS);
        }
        let mut vars = Map::new();
        if let Some(written) = node.get("vars") {
            vars = self.play_vars(written);
        }
        let parent = Arc::new(Parent {
            kind: ParentKind::Play,
            keywords,
            vars: Arc::new(vars),
            notify: Vec::new(),
            role: None,
            parent: Some(outer.clone()),
        });
        let hosts_value = self.value(hosts);
        if matches!(hosts_value, Value::Null | Value::Map(_)) {
            self.problem(Diagnostic::error(hosts.place, format!("`hosts` must name hosts, found {}", hosts.what())));
        } else if hosts_value.as_list().is_some_and(|names| names.is_empty()) {
            let problem = Diagnostic::error(hosts.place, "Hosts list cannot be empty. Please check your playbook");
            self.problem(problem.help("`hosts: all` names every host of the inventory"));
        }
        let mut play = Play {
            place: node.place,
            parent: parent.clone(),
            hosts: Setting { value: hosts_value, place: hosts.place },
            vars_files: Vec::new(),
            vars_prompt: Vec::new(),
            pre_tasks: Vec::new(),
            tasks: Vec::new(),
            post_tasks: Vec::new(),
            handlers: Vec::new(),
            roles: Vec::new(),
            folder: folder_of(path),
        };
        if let Some(files) = node.get("vars_files") {
            if matches!(files.kind, Kind::Map(_)) {
                let message = format!("`vars_files` is a list of files, found {}", files.what());
                self.problem(Diagnostic::error(files.place, message));
            }
            play.vars_files = match self.value(files) {
                Value::List(items) => items.to_vec(),
                Value::Null => Vec::new(),
                one => vec![one],
            };
        }
        if let Some(prompts) = node.get("vars_prompt") {
            play.vars_prompt = self.prompts(prompts);
        }
        if let Some(roles) = node.get("roles") {
            let (items, handlers) = self.play_roles(roles, &parent, path, &mut play.roles);
            play.tasks = items;
            play.handlers = handlers;
        }
        let mut section = |name: &str, is_handler: bool| match node.get(name) {
            Some(node) if !node.is_null() => self.items(node, &parent, path, is_handler),
            Some(_) | None => Vec::new(),
        };
        play.pre_tasks = section("pre_tasks", false);
        play.tasks.extend(section("tasks", false));
        play.post_tasks = section("post_tasks", false);
        play.handlers.extend(section("handlers", true));
        let brought = self.take_brought();
        for role in brought.roles {
            if play.roles.iter().all(|known| !Arc::ptr_eq(known, &role)) {
                play.roles.push(role);
            }
        }
        play.handlers.extend(brought.handlers);
        Some(play)
    }

    /// `vars` of a play: a mapping, or the old list of mappings.
    fn play_vars(&mut self, node: &Node) -> Map {
        match node.items() {
            Some(items) => items.iter().flat_map(|item| self.mapping(item, "`vars`")).collect(),
            None => self.mapping(node, "`vars`"),
        }
    }

    fn prompts(&mut self, node: &Node) -> Vec<Prompt> {
        const KEYS: &[&str] =
            &["name", "prompt", "default", "private", "confirm", "encrypt", "salt", "salt_size", "unsafe"];
        let Some(items) = node.items() else {
            self.problem(Diagnostic::error(node.place, format!("`vars_prompt` is a list, found {}", node.what())));
            return Vec::new();
        };
        let mut prompts = Vec::new();
        for item in items {
            for (key, _) in item.entries() {
                let written = key.text();
                if !KEYS.contains(&written.as_str()) {
                    let message = format!("'{written}' is not a valid attribute for `vars_prompt`");
                    let problem = Diagnostic::error(key.place, message);
                    self.problem(match nearest(&written, KEYS.iter().copied()) {
                        Some(meant) => problem.help(format!("did you mean `{meant}`?")),
                        None => problem.help(format!("expected one of `{}`", KEYS.join("`, `"))),
                    });
                }
            }
            if let Some(encrypt) = item.get("encrypt")
                && let Err(message) = crate::template::Scheme::named(&encrypt.text())
            {
                self.problem(Diagnostic::error(encrypt.place, format!("`encrypt`: {message}")));
            }
            let Some(name) = item.get("name").map(Node::text) else {
                self.problem(Diagnostic::error(item.place, "an entry of `vars_prompt` must have a `name`"));
                continue;
            };
            let flag = |key: &str, usual: bool| item.get(key).map_or(usual, |node| node.value().truthy());
            prompts.push(Prompt {
                prompt: item.get("prompt").map_or_else(|| Value::str(name.as_str()), Node::value),
                default: item.get("default").map(Node::value),
                private: flag("private", true),
                confirm: flag("confirm", false),
                encrypt: item.get("encrypt").map(Node::text),
                salt: item.get("salt").map(Node::text),
                salt_size: item.get("salt_size").and_then(|size| size.text().parse().ok()).unwrap_or(SALT_SIZE),
                unsafe_: flag("unsafe", false),
                name,
            });
        }
        prompts
    }
}

/// Returns the folder that a file stands in.
pub(super) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}
