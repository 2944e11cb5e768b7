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
    Texts,
    /// Folders parted by colons.
    Paths(&'static [&'static str]),
}

macro_rules! settings {
    ($($name:ident $section:ident.$key:ident [$($variable:ident)*] $usual:expr;)*) => {
        /// In alphabetical order.
        pub const SETTINGS: &[Setting] = &[$(Setting {
            name: stringify!($name),
            variables: &[$(stringify!($variable)),*],
            section: stringify!($section),
            key: stringify!($key),
            usual: $usual,
        },)*];
    };
}

use Usual::{Flag, Nothing, Number, Paths, Text, Texts};

settings! {
    ALLOW_BROKEN_CONDITIONALS defaults.allow_broken_conditionals [ANSIBLE_ALLOW_BROKEN_CONDITIONALS] Flag(false);
    ANSIBLE_FORCE_COLOR defaults.force_color [ANSIBLE_FORCE_COLOR] Flag(false);
    ANSIBLE_NOCOLOR defaults.nocolor [ANSIBLE_NOCOLOR NO_COLOR] Flag(false);
    ANY_ERRORS_FATAL defaults.any_errors_fatal [ANSIBLE_ANY_ERRORS_FATAL] Flag(false);
    CACHE_PLUGIN defaults.fact_caching [ANSIBLE_CACHE_PLUGIN] Text("memory");
    CACHE_PLUGIN_CONNECTION defaults.fact_caching_connection [ANSIBLE_CACHE_PLUGIN_CONNECTION] Nothing;
    CACHE_PLUGIN_PREFIX defaults.fact_caching_prefix [ANSIBLE_CACHE_PLUGIN_PREFIX] Nothing;
    CACHE_PLUGIN_TIMEOUT defaults.fact_caching_timeout [ANSIBLE_CACHE_PLUGIN_TIMEOUT] Number(86_400);
    COLLECTIONS_PATHS defaults.collections_path [ANSIBLE_COLLECTIONS_PATH]
        Paths(&["~/.ansible/collections", "/usr/share/ansible/collections"]);
    DEFAULT_ASK_VAULT_PASS defaults.ask_vault_pass [ANSIBLE_ASK_VAULT_PASS] Flag(false);
    DEFAULT_BECOME privilege_escalation.become [ANSIBLE_BECOME] Flag(false);
    DEFAULT_BECOME_METHOD privilege_escalation.become_method [ANSIBLE_BECOME_METHOD] Text("sudo");
    DEFAULT_BECOME_USER privilege_escalation.become_user [ANSIBLE_BECOME_USER] Text("root");
    DEFAULT_DEBUG defaults.debug [ANSIBLE_DEBUG] Flag(false);
    DEFAULT_FORCE_HANDLERS defaults.force_handlers [ANSIBLE_FORCE_HANDLERS] Flag(false);
    DEFAULT_FORKS defaults.forks [ANSIBLE_FORKS] Number(50);
    DEFAULT_GATHERING defaults.gathering [ANSIBLE_GATHERING] Text("implicit");
    DEFAULT_HOST_LIST defaults.inventory [ANSIBLE_INVENTORY] Texts;
    DEFAULT_MODULE_PATH defaults.library [ANSIBLE_LIBRARY]
        Paths(&["~/.ansible/plugins/modules", "/usr/share/ansible/plugins/modules"]);
    DEFAULT_PRIVATE_KEY_FILE defaults.private_key_file [ANSIBLE_PRIVATE_KEY_FILE] Nothing;
    DEFAULT_PRIVATE_ROLE_VARS defaults.private_role_vars [ANSIBLE_PRIVATE_ROLE_VARS] Flag(false);
    DEFAULT_REMOTE_USER defaults.remote_user [ANSIBLE_REMOTE_USER] Nothing;
    DEFAULT_ROLES_PATH defaults.roles_path [ANSIBLE_ROLES_PATH]
        Paths(&["~/.ansible/roles", "/usr/share/ansible/roles", "/etc/ansible/roles"]);
    DEFAULT_STDOUT_CALLBACK defaults.stdout_callback [ANSIBLE_STDOUT_CALLBACK] Text("default");
    DEFAULT_STRATEGY defaults.strategy [ANSIBLE_STRATEGY] Text("linear");
    DEFAULT_TIMEOUT defaults.timeout [ANSIBLE_TIMEOUT] Number(10);
    DEFAULT_TRANSPORT defaults.transport [ANSIBLE_TRANSPORT] Text("ssh");
    DEFAULT_VAULT_ENCRYPT_IDENTITY defaults.vault_encrypt_identity [ANSIBLE_VAULT_ENCRYPT_IDENTITY] Nothing;
    DEFAULT_VAULT_IDENTITY defaults.vault_identity [ANSIBLE_VAULT_IDENTITY] Text("default");
    DEFAULT_VAULT_IDENTITY_LIST defaults.vault_identity_list [ANSIBLE_VAULT_IDENTITY_LIST] Texts;
    DEFAULT_VAULT_ID_MATCH defaults.vault_id_match [ANSIBLE_VAULT_ID_MATCH] Flag(false);
    DEFAULT_VAULT_PASSWORD_FILE defaults.vault_password_file [ANSIBLE_VAULT_PASSWORD_FILE] Nothing;
    DEFAULT_VERBOSITY defaults.verbosity [ANSIBLE_VERBOSITY] Number(0);
    DIFF_ALWAYS diff.always [ANSIBLE_DIFF_ALWAYS] Flag(false);
    DISPLAY_SKIPPED_HOSTS defaults.display_skipped_hosts [ANSIBLE_DISPLAY_SKIPPED_HOSTS] Flag(true);
    EDITOR defaults.editor [ANSIBLE_EDITOR EDITOR] Text("vi");
    ERROR_ON_MISSING_HANDLER defaults.error_on_missing_handler [ANSIBLE_ERROR_ON_MISSING_HANDLER] Flag(true);
    HOST_KEY_CHECKING defaults.host_key_checking [ANSIBLE_HOST_KEY_CHECKING] Flag(true);
    PAGER defaults.pager [ANSIBLE_PAGER PAGER] Text("less");
    SHOW_CUSTOM_STATS defaults.show_custom_stats [ANSIBLE_SHOW_CUSTOM_STATS] Flag(false);
    TAGS_RUN tags.run [ANSIBLE_RUN_TAGS] Texts;
    TAGS_SKIP tags.skip [ANSIBLE_SKIP_TAGS] Texts;
    TASK_TIMEOUT defaults.task_timeout [ANSIBLE_TASK_TIMEOUT] Number(0);
    VAULT_ENCRYPT_SALT defaults.vault_encrypt_salt [ANSIBLE_VAULT_ENCRYPT_SALT] Nothing;
}

/// Returns the setting of this name.
pub fn of(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// Returns whether a switch is on. A value that is neither yes nor no has been refused before the run.
pub fn is_set(name: &str) -> bool {
    of(name).is_some_and(|setting| super::current().value(setting).truthy())
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
            (Usual::Texts, text) => listed(&text.unwrap_or_default(), ',').into(),
            (Usual::Paths(usual), _) => {
                let usual = || usual.iter().map(|path| crate::execute::home_expanded(PathBuf::from(path))).collect();
                let paths = self.paths(variables, section, key).unwrap_or_else(usual);
                paths.iter().map(|path| path.to_string_lossy().into_owned().into()).collect::<Vec<Value>>().into()
            }
        }
    }
}
