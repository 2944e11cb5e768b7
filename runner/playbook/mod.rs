//! Plays and tasks **as written**, every value with its place. Nothing is rendered here.

mod args;
mod keyword;
mod play;
mod read;
pub mod role;
mod task;
pub mod words;

use std::path::PathBuf;
use std::sync::Arc;

pub use args::{ActionCall, parse_key_values, split_words};
pub use keyword::{Keyword, Keywords, Setting, Shape, Where};
pub use read::{Loader, Options};
pub use task::{NO_FILE, task_file};

use crate::source::Place;
use crate::value::{Map, Value};

/// A play: which hosts, and what happens there.
#[derive(Debug)]
pub struct Play {
    pub place: Place,
    /// The play's own keywords and variables: the outermost parent of all its tasks.
    pub parent: Arc<Parent>,
    pub hosts: Setting,
    pub vars_files: Vec<Value>,
    pub vars_prompt: Vec<Prompt>,
    pub pre_tasks: Vec<Item>,
    /// Roles, then tasks: one handler flush follows both.
    pub tasks: Vec<Item>,
    pub post_tasks: Vec<Item>,
    /// In the order in which they run: those of roles first.
    pub handlers: Vec<Item>,
    /// Every role that the play names, dependencies included, in the order in which they run.
    pub roles: Vec<Arc<Role>>,
    /// The folder of the file that the play stands in.
    pub folder: PathBuf,
}

impl Play {
    /// Returns a keyword of the play itself.
    pub fn setting(&self, keyword: Keyword) -> Option<&Setting> {
        self.parent.keywords.get(keyword)
    }
}

/// One variable to ask the user for.
#[derive(Debug, Clone)]
pub struct Prompt {
    pub name: String,
    pub prompt: Value,
    pub default: Option<Value>,
    /// Whether what is typed stays hidden.
    pub private: bool,
    /// Whether it is to be typed twice.
    pub confirm: bool,
    /// The method with which `password_hash` treats it.
    pub encrypt: Option<String>,
    /// With what; by chance when absent.
    pub salt: Option<String>,
    /// How many marks of chance.
    pub salt_size: usize,
    /// Whether what is typed is never a template.
    pub unsafe_: bool,
}

#[derive(Debug, Clone)]
pub enum Item {
    Task(Arc<Task>),
    Block(Arc<Block>),
}

/// Tasks that share keywords, with what happens when one fails.
#[derive(Debug)]
pub struct Block {
    pub place: Place,
    pub parent: Arc<Parent>,
    pub tasks: Vec<Item>,
    pub rescue: Vec<Item>,
    pub always: Vec<Item>,
    /// The role whose tasks these are, for what runs once a role.
    pub role_entry: Option<Arc<Role>>,
}

/// A task or a handler.
#[derive(Debug)]
pub struct Task {
    pub place: Place,
    pub parent: Arc<Parent>,
    pub keywords: Keywords,
    pub vars: Arc<Map>,
    pub action: ActionCall,
    pub loop_: Option<Loop>,
    pub notify: Vec<Value>,
    /// Topics that a handler listens to.
    pub listen: Vec<Value>,
    /// The file that the task stands in, for relative paths.
    pub file: PathBuf,
    pub is_handler: bool,
}

impl Task {
    /// Returns a keyword of the task, or of the nearest parent that has it.
    pub fn inherited(&self, keyword: Keyword) -> Option<&Setting> {
        self.keywords.get(keyword).or_else(|| self.parents().find_map(|parent| parent.keywords.get(keyword)))
    }

    /// Returns what encloses the task, innermost first.
    pub fn parents(&self) -> impl Iterator<Item = &Arc<Parent>> {
        std::iter::successors(Some(&self.parent), |parent| parent.parent.as_ref())
    }

    /// Returns the role that the task belongs to.
    pub fn role(&self) -> Option<&Arc<Role>> {
        self.parents().find_map(|parent| parent.role.as_ref())
    }

    /// Returns a name as written: the task's own, without its role's.
    pub fn name(&self) -> Option<&Setting> {
        self.keywords.get(Keyword::Name)
    }

    /// Returns whether this is the task that `--start-at-task` names, by itself or with its role; a glob will do.
    pub fn is_called(&self, wanted: &str) -> bool {
        let Some(name) = self.name().map(|name| name.value.to_string()) else { return false };
        let with_role = self.role().map(|role| format!("{} : {name}", role.name));
        let pattern = crate::inventory::Glob::new(wanted);
        pattern.matches(&name) || with_role.is_some_and(|name| pattern.matches(&name))
    }

    /// Returns the handlers to notify: the task's own, else those of the nearest parent that names some.
    pub fn notifies(&self) -> &[Value] {
        let inherited = || self.parents().map(|parent| parent.notify.as_slice()).find(|names| !names.is_empty());
        if self.notify.is_empty() { inherited().unwrap_or(&[]) } else { &self.notify }
    }

    /// Returns every condition that must hold, outermost first.
    pub fn conditions(&self) -> Vec<&Value> {
        let mut all: Vec<&Value> = Vec::new();
        let parents: Vec<&Arc<Parent>> = self.parents().collect();
        for parent in parents.into_iter().rev() {
            all.extend(parent.keywords.get(Keyword::When).map(|setting| &setting.value));
        }
        all.extend(self.keywords.get(Keyword::When).map(|setting| &setting.value));
        all
    }

    /// Returns the tags as written, those of all parents included.
    pub fn tags(&self) -> Vec<&Value> {
        let own = self.keywords.get(Keyword::Tags).into_iter();
        own.chain(self.parents().filter_map(|parent| parent.keywords.get(Keyword::Tags)))
            .map(|setting| &setting.value)
            .collect()
    }
}

/// What encloses tasks: a play, a block, a role, an import or an include.
#[derive(Debug, Default)]
pub struct Parent {
    pub kind: ParentKind,
    pub keywords: Keywords,
    pub vars: Arc<Map>,
    /// Handlers that tasks below notify, unless they name some themselves.
    pub notify: Vec<Value>,
    pub role: Option<Arc<Role>>,
    pub parent: Option<Arc<Parent>>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum ParentKind {
    #[default]
    Play,
    Block,
    Role,
    Import,
    /// Its variables are include parameters: stronger than what tasks set.
    Include,
}

/// A role with the files it is made of.
#[derive(Debug)]
pub struct Role {
    /// As written: `web`, `ns.collection.web`.
    pub name: String,
    pub path: PathBuf,
    pub defaults: Arc<Map>,
    pub vars: Arc<Map>,
    /// What the role was given where it is named: keys of the entry that are no keywords.
    pub params: Arc<Map>,
    /// `vars` of that entry, which only the role's own tasks see.
    pub entry_vars: Arc<Map>,
    pub allow_duplicates: bool,
    /// Whether the rest of the play sees its variables.
    pub is_public: bool,
    /// Equal for two uses of the role with the same parameters: it runs once unless it allows duplicates.
    pub identity: String,
    pub argument_specs: Option<Value>,
    /// The roles that depend on it, nearest first.
    pub chain: Vec<Arc<Role>>,
}

impl Role {
    /// Returns the name without a collection's.
    pub fn short_name(&self) -> &str {
        let in_collection = self.path.components().any(|part| part.as_os_str() == "ansible_collections");
        match self.name.rsplit_once('.') {
            Some((_, short)) if in_collection => short,
            Some(_) | None => &self.name,
        }
    }

    /// Returns the forms under which `notify` may name something of the role, such as a handler.
    pub fn qualified(&self, name: &str) -> [String; 2] {
        [format!("{} : {name}", self.name), format!("{} : {name}", self.short_name())]
    }
}

/// What a task is repeated over.
#[derive(Debug, Clone)]
pub struct Loop {
    pub place: Place,
    pub kind: LoopKind,
    pub items: Value,
    pub control: LoopControl,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopKind {
    /// `loop:`
    List,
    /// `with_NAME:`, the lookup of that name; `with_items` flattens one level.
    With(String),
}

/// `loop_control:` as written.
#[derive(Debug, Clone, Default)]
pub struct LoopControl {
    pub loop_var: Option<Value>,
    pub index_var: Option<Value>,
    pub label: Option<Value>,
    pub pause: Option<Value>,
    pub extended: Option<Value>,
    pub extended_allitems: Option<Value>,
    pub break_when: Option<Value>,
}
