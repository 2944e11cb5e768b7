//! The settings that are followed, under Ansible's names: what `lookup('config', …)` tells, and what the documentation
//! lists.

use std::path::PathBuf;

use super::Config;
use crate::value::Value;

/// One setting: its name, the variables of the environment that give it, where it stands in `ansible.cfg`.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    pub variables: &'static [&'static str],
    pub section: &'static str,
    pub key: &'static str,
    pub usual: Usual,
    /// What it does.
    pub about: &'static str,
}

/// What a setting looks like, and what it is where nobody set it.
#[derive(Debug)]
pub enum Usual {
    Flag(bool),
    Number(i64),
    Text(&'static str),
    /// Nothing.
    Nothing,
    /// Texts parted by commas.
    Texts(&'static [&'static str]),
    /// Folders parted by colons.
    Paths(&'static [&'static str]),
}

macro_rules! settings {
    ($($name:ident $section:ident.$key:ident [$($variable:ident)*] $usual:expr, $about:literal;)*) => {
        /// In alphabetical order.
        pub const SETTINGS: &[Setting] = &[$(Setting {
            name: stringify!($name),
            variables: &[$(stringify!($variable)),*],
            section: stringify!($section),
            key: stringify!($key),
            usual: $usual,
            about: $about,
        },)*];
    };
}

use Usual::{Flag, Nothing, Number, Paths, Text, Texts};

settings! {
    ALLOW_BROKEN_CONDITIONALS defaults.allow_broken_conditionals [ANSIBLE_ALLOW_BROKEN_CONDITIONALS] Flag(false),
        "Take a condition whose result is no boolean by its truth, rather than fail.";
    ANSIBLE_FORCE_COLOR defaults.force_color [ANSIBLE_FORCE_COLOR] Flag(false),
        "Colours even where the output is no terminal.";
    ANSIBLE_NOCOLOR defaults.nocolor [ANSIBLE_NOCOLOR NO_COLOR] Flag(false),
        "No colours.";
    ANY_ERRORS_FATAL defaults.any_errors_fatal [ANSIBLE_ANY_ERRORS_FATAL] Flag(false),
        "A failure of one host ends the play for all.";
    CACHE_PLUGIN defaults.fact_caching [ANSIBLE_CACHE_PLUGIN] Text("memory"),
        "Where facts are kept from run to run: memory or jsonfile.";
    CACHE_PLUGIN_CONNECTION defaults.fact_caching_connection [ANSIBLE_CACHE_PLUGIN_CONNECTION] Nothing,
        "The folder in which jsonfile keeps facts.";
    CACHE_PLUGIN_PREFIX defaults.fact_caching_prefix [ANSIBLE_CACHE_PLUGIN_PREFIX] Nothing,
        "What the names of files of facts begin with.";
    CACHE_PLUGIN_TIMEOUT defaults.fact_caching_timeout [ANSIBLE_CACHE_PLUGIN_TIMEOUT] Number(86_400),
        "Seconds after which kept facts are gathered anew; 0 keeps them for ever.";
    COLLECTIONS_PATHS defaults.collections_path [ANSIBLE_COLLECTIONS_PATH]
        Paths(&["~/.ansible/collections", "/usr/share/ansible/collections"]),
        "Folders in which collections are looked for.";
    DEFAULT_ASK_VAULT_PASS defaults.ask_vault_pass [ANSIBLE_ASK_VAULT_PASS] Flag(false),
        "Ask for the vault password.";
    DEFAULT_BECOME privilege_escalation.become [ANSIBLE_BECOME] Flag(false),
        "Work as another user, mostly root.";
    DEFAULT_BECOME_METHOD privilege_escalation.become_method [ANSIBLE_BECOME_METHOD] Text("sudo"),
        "How to become another user.";
    DEFAULT_BECOME_USER privilege_escalation.become_user [ANSIBLE_BECOME_USER] Text("root"),
        "Which user to become.";
    DEFAULT_DEBUG defaults.debug [ANSIBLE_DEBUG] Flag(false),
        "Show more of what goes on.";
    DEFAULT_FORCE_HANDLERS defaults.force_handlers [ANSIBLE_FORCE_HANDLERS] Flag(false),
        "Run notified handlers also where a host has failed.";
    DEFAULT_FORKS defaults.forks [ANSIBLE_FORKS] Number(50),
        "How many hosts are worked on at once.";
    DEFAULT_GATHERING defaults.gathering [ANSIBLE_GATHERING] Text("implicit"),
        "When facts are gathered: implicit, explicit or smart.";
    DEFAULT_HOST_LIST defaults.inventory [ANSIBLE_INVENTORY] Texts(&[]),
        "The inventories.";
    DEFAULT_LOAD_CALLBACK_PLUGINS defaults.bin_ansible_callbacks [ANSIBLE_LOAD_CALLBACK_PLUGINS] Flag(false),
        "Show what single modules do as `stdout_callback` says, too.";
    DEFAULT_MODULE_PATH defaults.library [ANSIBLE_LIBRARY]
        Paths(&["~/.ansible/plugins/modules", "/usr/share/ansible/plugins/modules"]),
        "Folders in which modules of your own are looked for.";
    DEFAULT_PRIVATE_KEY_FILE defaults.private_key_file [ANSIBLE_PRIVATE_KEY_FILE] Nothing,
        "The key to authenticate with.";
    DEFAULT_PRIVATE_ROLE_VARS defaults.private_role_vars [ANSIBLE_PRIVATE_ROLE_VARS] Flag(false),
        "Keep the variables of a role to itself.";
    DEFAULT_REMOTE_USER defaults.remote_user [ANSIBLE_REMOTE_USER] Nothing,
        "The user to connect as.";
    DEFAULT_ROLES_PATH defaults.roles_path [ANSIBLE_ROLES_PATH]
        Paths(&["~/.ansible/roles", "/usr/share/ansible/roles", "/etc/ansible/roles"]),
        "Folders in which roles are looked for.";
    DEFAULT_STDOUT_CALLBACK defaults.stdout_callback [ANSIBLE_STDOUT_CALLBACK] Text("default"),
        "How a run is shown: default, minimal, oneline, yaml, json or junit.";
    DEFAULT_STRATEGY defaults.strategy [ANSIBLE_STRATEGY] Text("linear"),
        "The strategy of plays that name none.";
    DEFAULT_TIMEOUT defaults.timeout [ANSIBLE_TIMEOUT] Number(10),
        "Seconds that a connection may take.";
    DEFAULT_TRANSPORT defaults.transport [ANSIBLE_TRANSPORT] Text("ssh"),
        "How to connect.";
    DEFAULT_VAULT_ENCRYPT_IDENTITY defaults.vault_encrypt_identity [ANSIBLE_VAULT_ENCRYPT_IDENTITY] Nothing,
        "The id of the password that encrypts, where several are given.";
    DEFAULT_VAULT_IDENTITY defaults.vault_identity [ANSIBLE_VAULT_IDENTITY] Text("default"),
        "The id of passwords that are given without one.";
    DEFAULT_VAULT_IDENTITY_LIST defaults.vault_identity_list [ANSIBLE_VAULT_IDENTITY_LIST] Texts(&[]),
        "Vault passwords, as ID@SOURCE.";
    DEFAULT_VAULT_ID_MATCH defaults.vault_id_match [ANSIBLE_VAULT_ID_MATCH] Flag(false),
        "Open a vaulted text by passwords of its own id alone.";
    DEFAULT_VAULT_PASSWORD_FILE defaults.vault_password_file [ANSIBLE_VAULT_PASSWORD_FILE] Nothing,
        "The file or the program that gives the vault password.";
    DEFAULT_VERBOSITY defaults.verbosity [ANSIBLE_VERBOSITY] Number(0),
        "How much is told: as many `-v`.";
    DIFF_ALWAYS diff.always [ANSIBLE_DIFF_ALWAYS] Flag(false),
        "Show differences in files.";
    DISPLAY_SKIPPED_HOSTS defaults.display_skipped_hosts [ANSIBLE_DISPLAY_SKIPPED_HOSTS] Flag(true),
        "Show hosts that skip a task.";
    EDITOR defaults.editor [ANSIBLE_EDITOR EDITOR] Text("vi"),
        "The editor for vaulted files.";
    ENABLE_TASK_DEBUGGER defaults.enable_task_debugger [ANSIBLE_ENABLE_TASK_DEBUGGER] Flag(false),
        "Open the debugger after every failure.";
    ERROR_ON_MISSING_HANDLER defaults.error_on_missing_handler [ANSIBLE_ERROR_ON_MISSING_HANDLER] Flag(true),
        "A handler that is notified and is not there is an error.";
    HOST_KEY_CHECKING defaults.host_key_checking [ANSIBLE_HOST_KEY_CHECKING] Flag(true),
        "Check the keys of hosts.";
    INVENTORY_ENABLED inventory.enable_plugins [ANSIBLE_INVENTORY_ENABLED]
        Texts(&["host_list", "script", "auto", "yaml", "ini", "toml"]),
        "The inventory plugins that may read sources, in the order in which they are asked.";
    PAGER defaults.pager [ANSIBLE_PAGER PAGER] Text("less"),
        "The pager for vaulted files.";
    SHOW_CUSTOM_STATS defaults.show_custom_stats [ANSIBLE_SHOW_CUSTOM_STATS] Flag(false),
        "Show what `set_stats` gathered.";
    TAGS_RUN tags.run [ANSIBLE_RUN_TAGS] Texts(&[]),
        "Run tasks with these tags alone.";
    TAGS_SKIP tags.skip [ANSIBLE_SKIP_TAGS] Texts(&[]),
        "Leave out tasks with these tags.";
    TASK_DEBUGGER_IGNORE_ERRORS defaults.task_debugger_ignore_errors [ANSIBLE_TASK_DEBUGGER_IGNORE_ERRORS] Flag(true),
        "A failure that is ignored opens no debugger.";
    TASK_TIMEOUT defaults.task_timeout [ANSIBLE_TASK_TIMEOUT] Number(0),
        "Seconds that a task may take; 0 is no limit.";
    TRANSFORM_INVALID_GROUP_CHARS defaults.force_valid_group_names [ANSIBLE_TRANSFORM_INVALID_GROUP_CHARS] Text("never"),
        "Names of groups that are no names of variables: never or ignore keeps them, always and silently change them.";
    VAULT_ENCRYPT_SALT defaults.vault_encrypt_salt [ANSIBLE_VAULT_ENCRYPT_SALT] Nothing,
        "The salt of what is encrypted; by chance when absent.";
}

/// Returns the setting of this name.
pub fn of(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// Returns whether a switch is on. A value that is neither yes nor no has been refused before the run.
pub fn is_set(name: &str) -> bool {
    of(name).is_some_and(|setting| super::current().value(setting).truthy())
}

impl Setting {
    /// Returns the type as Ansible names it.
    pub fn kind(&self) -> &'static str {
        match self.usual {
            Usual::Flag(_) => "boolean",
            Usual::Number(_) => "integer",
            Usual::Text(_) | Usual::Nothing => "string",
            Usual::Texts(_) => "list",
            Usual::Paths(_) => "pathlist",
        }
    }
}

impl Config {
    /// Returns where a setting comes from: `env: NAME`, the file, or `default`.
    pub fn origin_of(&self, setting: &Setting) -> String {
        let given = setting.variables.iter().find(|variable| std::env::var_os(variable).is_some());
        match (given, &self.path) {
            (Some(variable), _) => format!("env: {variable}"),
            (None, Some(path)) if self.get(&[], setting.section, setting.key).is_some() => path.display().to_string(),
            (None, _) => "default".to_owned(),
        }
    }

    /// Returns what a setting is where nobody set it.
    pub fn usual(&self, setting: &Setting) -> Value {
        let here = |path: &&str| Value::from(crate::execute::home_expanded(PathBuf::from(path)).display().to_string());
        match &setting.usual {
            Usual::Flag(flag) => (*flag).into(),
            Usual::Number(number) => (*number).into(),
            Usual::Text(text) => (*text).into(),
            Usual::Nothing => Value::Null,
            Usual::Texts(texts) => texts.iter().map(|text| Value::from(*text)).collect::<Vec<_>>().into(),
            Usual::Paths(paths) => paths.iter().map(here).collect::<Vec<Value>>().into(),
        }
    }

    /// Returns what a setting is.
    pub fn value(&self, setting: &Setting) -> Value {
        let Setting { variables, section, key, .. } = setting;
        let text = self.get(variables, section, key);
        let listed = |text: &str, mark: char| -> Vec<Value> {
            text.split(mark).map(str::trim).filter(|part| !part.is_empty()).map(Value::from).collect()
        };
        match (&setting.usual, text) {
            (Usual::Flag(usual), _) => self.flag(variables, section, key, *usual).unwrap_or(*usual).into(),
            (Usual::Number(usual), text) => text.and_then(|text| text.trim().parse().ok()).unwrap_or(*usual).into(),
            (Usual::Text(usual), text) => text.unwrap_or_else(|| (*usual).to_owned()).into(),
            (Usual::Nothing, text) => text.map_or(Value::Null, Value::from),
            (Usual::Texts(usual), None) => usual.iter().map(|text| Value::from(*text)).collect::<Vec<_>>().into(),
            (Usual::Texts(_), Some(text)) => listed(&text, ',').into(),
            (Usual::Paths(usual), _) => {
                let usual = || usual.iter().map(|path| crate::execute::home_expanded(PathBuf::from(path))).collect();
                let paths = self.paths(variables, section, key).unwrap_or_else(usual);
                paths.iter().map(|path| path.to_string_lossy().into_owned().into()).collect::<Vec<Value>>().into()
            }
        }
    }
}
