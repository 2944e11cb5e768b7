//! Settings of Ansible that are not followed here: those that would change what a run does are refused, those that
//! only look different are passed over, and a misspelt one is told.

use super::config::Config;
use crate::source::{Diagnostic, Place, nearest};

/// A setting that changes what a run does.
struct Setting {
    section: &'static str,
    key: &'static str,
    variable: &'static str,
    /// Values with which it asks for what is done anyway, in lower case; empty is always one of them.
    usual: &'static [&'static str],
    /// What to do instead.
    help: &'static str,
}

const NO: &[&str] = &["no", "false", "0", "off", "n", "f"];
const YES: &[&str] = &["yes", "true", "1", "on", "y", "t"];

const REFUSED: &[Setting] = &[
    Setting {
        section: "defaults",
        key: "allow_unsafe_lookups",
        variable: "ANSIBLE_ALLOW_UNSAFE_LOOKUPS",
        usual: NO,
        help: "what a lookup returns is never rendered again",
    },
    Setting {
        section: "defaults",
        key: "error_on_undefined_vars",
        variable: "ANSIBLE_ERROR_ON_UNDEFINED_VARS",
        usual: YES,
        help: "an undefined variable is an error: use the filter `default`",
    },
    Setting {
        section: "defaults",
        key: "jinja2_extensions",
        variable: "ANSIBLE_JINJA2_EXTENSIONS",
        usual: &["jinja2.ext.do", "jinja2.ext.loopcontrols", "jinja2.ext.do,jinja2.ext.loopcontrols"],
        help: "`{% do %}`, `{% break %}` and `{% continue %}` are always there",
    },
    Setting {
        section: "defaults",
        key: "null_representation",
        variable: "ANSIBLE_NULL_REPRESENTATION",
        usual: &["null"],
        help: "a null stays one",
    },
    Setting {
        section: "defaults",
        key: "playbook_vars_root",
        variable: "ANSIBLE_PLAYBOOK_VARS_ROOT",
        // Plays that these would read more for are refused when they are read.
        usual: &["top", "bottom", "all"],
        help: "`group_vars` and `host_vars` beside the playbooks named on the command line count",
    },
    Setting {
        section: "defaults",
        key: "precedence",
        variable: "ANSIBLE_PRECEDENCE",
        usual: &[
            "all_inventory, groups_inventory, all_plugins_inventory, all_plugins_play, groups_plugins_inventory, \
             groups_plugins_play",
        ],
        help: "variables win in Ansible's own order",
    },
    Setting {
        section: "defaults",
        key: "vars_plugins_enabled",
        variable: "ANSIBLE_VARS_ENABLED",
        usual: &["host_group_vars", "ansible.builtin.host_group_vars", "ansible.legacy.host_group_vars"],
        help: "plugins in Python are not run: keep the variables in files",
    },
    Setting {
        section: "ssh_connection",
        key: "ssh_executable",
        variable: "ANSIBLE_SSH_EXECUTABLE",
        usual: &["ssh", "/usr/bin/ssh"],
        help: "connections are made in process, or by the `ssh` of the path",
    },
    Setting {
        section: "ssh_connection",
        key: "pkcs11_provider",
        variable: "ANSIBLE_PKCS11_PROVIDER",
        usual: &[],
        help: "name it as `PKCS11Provider` in ~/.ssh/config, which brings the system's `ssh` in",
    },
];

/// Keys of sections whose other keys are nobody's: one that is nearly one of these is misspelt.
const KNOWN: &[(&str, &str)] = &[
    (
        "defaults",
        "action_plugins action_warnings allow_broken_conditionals allow_embedded_templates ansible_managed any_errors_fatal ask_pass \
         ask_vault_pass bin_ansible_callbacks cache_plugins callback_plugins callback_result_format callbacks_enabled \
         check_mode_markers cliconf_plugins collections_path collections_paths \
         collections_on_ansible_version_mismatch collections_scan_sys_path connection_password_file \
         become_password_file connection_plugins become_plugins cow_selection cowpath cowsay_enabled_stencils debug \
         deprecation_warnings devel_warning display_args_to_stdout display_failed_stderr display_ok_hosts \
         display_skipped_hosts display_traceback doc_fragment_plugins duplicate_dict_key editor enable_task_debugger \
         error_on_missing_handler executable fact_caching fact_caching_connection fact_caching_prefix \
         fact_caching_timeout facts_modules filter_plugins force_color force_handlers force_valid_group_names forks gathering \
         hash_behaviour home host_key_checking httpapi_plugins inject_facts_as_vars internal_poll_interval \
         interpreter_python invalid_task_attribute_failed inventory inventory_ignore_extensions \
         inventory_ignore_patterns inventory_plugins jinja2_native keep_remote_files library local_tmp \
         localhost_warning log_filter log_path log_verbosity lookup_plugins max_diff_size module_args \
         module_compression module_ignore_exts module_lang module_name module_set_locale module_strict_utf8_response \
         module_utils netconf_plugins network_group_modules no_log no_target_syslog nocolor nocows \
         old_plugin_cache_clear pager pipelining playbook_dir plugin_filters_cfg poll_interval private_key_file \
         private_role_vars python_module_rlimit_nofile remote_port remote_tmp remote_user result_format retry_files_enabled \
         retry_files_save_path roles_path run_vars_plugins show_custom_stats show_per_host_start \
         show_task_path_on_failure stdout_callback strategy strategy_plugins su syslog_facility system_tmpdirs \
         system_warnings target_log_info task_debugger_ignore_errors task_timeout terminal_plugins test_plugins timeout \
         transport use_persistent_connections validate_action_group_metadata vars_plugins vault_encrypt_identity \
         vault_encrypt_salt vault_id_match vault_identity vault_identity_list vault_password_file verbose_to_stderr \
         verbosity win_async_startup_timeout yaml_valid_extensions",
    ),
    (
        "privilege_escalation",
        "agnostic_become_prompt become become_allow_same_user become_ask_pass become_exe become_flags become_method \
         become_user",
    ),
    ("connection", "pipelining retries"),
    (
        "ssh_connection",
        "control_path control_path_dir host_key_checking password_mechanism pipelining port private_key \
         private_key_passphrase reconnection_retries remote_user retries scp_executable scp_extra_args scp_if_ssh \
         sftp_batch_mode sftp_executable sftp_extra_args silence_timeout ssh_args ssh_common_args ssh_extra_args \
         sshpass_prompt timeout transfer_method usetty verbosity",
    ),
    (
        "inventory",
        "any_unparsed_is_failed cache cache_connection cache_plugin cache_prefix cache_timeout enable_plugins export \
         host_pattern_mismatch ignore_extensions ignore_patterns inventory_unparsed_warning unparsed_is_failed",
    ),
    ("diff", "always context"),
    ("tags", "run skip"),
];

/// Settings that do something elsewhere and nothing here, with what there is here instead.
const TOLD: &[(&str, &str, &str)] = &[
    ("log_path", "ANSIBLE_LOG_PATH", "no log is written; each run leaves a record, see `--retry` and `--resume`"),
    ("retry_files_enabled", "ANSIBLE_RETRY_FILES_ENABLED", "no retry files are written: `--retry` takes what failed"),
];

/// Callbacks in Python that are not there, but whose work is done or done without.
const CALLBACKS: &[&str] = &["junit", "default"];

/// Returns what is refused, what is not done, and what is misspelt.
pub fn check(config: &Config) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for setting in REFUSED {
        let Some(value) = config.get(&[setting.variable], setting.section, setting.key) else { continue };
        let plain: String =
            value.to_ascii_lowercase().chars().filter(|c| !matches!(c, '[' | ']' | '\'' | '"')).collect();
        let plain = plain.split([',', '\n']).map(str::trim).collect::<Vec<_>>().join(", ");
        let usual = |usual: &&&str| usual.split(',').map(str::trim).collect::<Vec<_>>().join(", ") == plain;
        if plain.is_empty() || setting.usual.iter().any(|known| usual(&known)) {
            continue;
        }
        let (place, name) = config.origin(&[setting.variable], setting.section, setting.key);
        problems.push(Diagnostic::error(place, format!("`{name} = {value}` is not supported")).help(setting.help));
    }
    for (key, variable, says) in TOLD {
        let value = config.get(&[variable], "defaults", key).unwrap_or_default();
        if !value.is_empty() && !NO.contains(&value.to_ascii_lowercase().as_str()) {
            let (place, name) = config.origin(&[variable], "defaults", key);
            problems.push(Diagnostic::warning(place, format!("`{name}` is not followed: {says}")));
        }
    }
    callbacks(config, &mut problems);
    problems.extend(key_that_is_absent(config));
    misspelt(config, &mut problems);
    problems.sort_by_key(|problem| problem.place);
    problems
}

/// A key that is not there is passed over by OpenSSH, too, and others may serve.
fn key_that_is_absent(config: &Config) -> Option<Diagnostic> {
    let variables = ["ANSIBLE_PRIVATE_KEY_FILE"];
    let path = config.path(&variables, "defaults", "private_key_file").filter(|path| !path.exists())?;
    let (place, name) = config.origin(&variables, "defaults", "private_key_file");
    Some(Diagnostic::warning(place, format!("`{name}`: no file `{}`; other keys are tried", path.display())))
}

fn callbacks(config: &Config, problems: &mut Vec<Diagnostic>) {
    let variables = ["ANSIBLE_CALLBACKS_ENABLED", "ANSIBLE_CALLBACK_WHITELIST"];
    let enabled = config.get(&variables, "defaults", "callbacks_enabled").unwrap_or_default();
    let (place, _) = config.origin(&variables, "defaults", "callbacks_enabled");
    for name in enabled.split([',', '\n']).map(str::trim).filter(|name| !name.is_empty()) {
        if !CALLBACKS.contains(&name.rsplit('.').next().unwrap_or(name)) {
            let problem = Diagnostic::warning(place, format!("the callback `{name}` is not there, and is left out"));
            problems.push(problem.help("the run's record and `--output json` hold when each task began and ended"));
        }
    }
}

fn misspelt(config: &Config, problems: &mut Vec<Diagnostic>) {
    for (section, key, _, place) in config.keys() {
        let Some((_, known)) = KNOWN.iter().find(|(name, _)| *name == section) else { continue };
        let refused = REFUSED.iter().filter(|setting| setting.section == section).map(|setting| setting.key);
        let known: Vec<&str> = known.split_whitespace().chain(refused).collect();
        if known.contains(&key) {
            continue;
        }
        if let Some(meant) = nearest(key, known.iter().copied()) {
            let problem = Diagnostic::warning(place, format!("`{key}` is no setting of [{section}], and does nothing"));
            problems.push(problem.help(format!("did you mean `{meant}`?")));
        }
    }
}

/// Returns the error for a setting that is none of the words it may be.
pub fn word(config: &Config, variables: &[&str], section: &str, key: &str, known: &[&str]) -> Option<Diagnostic> {
    let value = config.get(variables, section, key)?;
    let word = value.trim();
    if known.contains(&word) {
        return None;
    }
    let (place, name): (Place, String) = config.origin(variables, section, key);
    let problem = Diagnostic::error(place, format!("`{name}` is `{word}`: `{}` are known", known.join("`, `")));
    Some(match nearest(word, known.iter().copied()) {
        Some(meant) => problem.help(format!("did you mean `{meant}`?")),
        None => problem,
    })
}
