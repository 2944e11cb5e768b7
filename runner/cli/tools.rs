//! The sub-commands that run nothing: inventory, doc, schema, init, completions.

use std::path::{Path, PathBuf};

use clap::CommandFactory;

use super::args::{Arguments, DocArguments, InventoryArguments, SchemaOf};
use super::config::Config;
use super::{Problem, extra_vars, settings, unfollowed, vault_passwords};
use crate::source::{Severity, nearest};
use crate::{doc, inventory, report};

/// The exit status of ansible-inventory where it is asked for somebody who is not there, for nothing, or for two things.
const EXIT_UNKNOWN: u8 = 5;

pub fn inventory(args: InventoryArguments) -> Result<u8, Problem> {
    let unknown = |message: String| Problem { message, code: EXIT_UNKNOWN };
    match [args.list, args.graph, args.host.is_some()].into_iter().filter(|asked| *asked).count() {
        0 if super::called().as_deref() == Some("ansible-inventory") => {
            return Err(unknown("one of `--list`, `--graph` and `--host HOST` says what is shown".to_owned()));
        }
        0 | 1 => {}
        _ => return Err(unknown("only one of `--list`, `--graph` and `--host` can be asked for at a time".to_owned())),
    }
    let config = Config::find().map_err(Problem::new)?;
    let vault = vault_passwords::known(&config, &args.vault)?;
    if args.toml {
        return Err(Problem::usage("`--toml` is not written; `--yaml` shows the same"));
    }
    let extra = extra_vars::read(&args.extra_vars, &vault)?;
    let sources = settings::inventories(&config, args.inventory);
    let playbooks: Vec<PathBuf> = args.playbook_dir.into_iter().collect();
    let (inventory, mut problems) = {
        let reading = settings::reading(&config, &std::sync::Arc::new(extra.clone()))?;
        inventory::read(&sources, &playbooks, &reading, &vault)
    };
    problems.splice(0..0, unfollowed::check(&config));
    report::show_diagnostics(&problems);
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return Err(Problem::new("the inventory has mistakes"));
    }
    let show = inventory::Show::new(&inventory, args.limit.as_deref(), args.export, &extra).map_err(Problem::new)?;
    let text = if args.graph {
        let graph = show.graph(&args.group, args.vars);
        graph.ok_or_else(|| unknown(format!("no group `{}` in the inventory", args.group)))?
    } else {
        let shown = match &args.host {
            Some(host) => show.host(host).ok_or_else(|| unknown(format!("no host `{host}` in the inventory")))?,
            None if args.yaml => show.nested(),
            None => show.list(),
        };
        if args.yaml {
            serde_yaml::to_string(&sorted(&shown)).map_err(|error| Problem::new(error.to_string()))?
        } else {
            python_json(&shown)?
        }
    };
    match args.output {
        None => report::say(text.trim_end()),
        Some(path) => {
            std::fs::write(&path, text).map_err(|error| Problem::new(format!("write `{}`: {error}", path.display())))?
        }
    }
    Ok(0)
}

/// Returns JSON with its keys in order.
fn sorted(value: &serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Object(entries) => {
            let mut entries: Vec<_> = entries.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            serde_json::Value::Object(entries.into_iter().collect())
        }
        serde_json::Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// Writes JSON as `ansible-inventory` does: four blanks a level, keys in order.
pub(super) fn python_json(value: &serde_json::Value) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    serde::Serialize::serialize(&sorted(value), &mut serializer).map_err(|error| Problem::new(error.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Tells the versions where the program goes by one of Ansible's names: that of the language first, which is what
/// programs look for.
pub fn version(name: &str) {
    let config = Config::find().ok().and_then(|config| config.path);
    let config = config.map_or_else(|| "None".to_owned(), |path| path.display().to_string());
    report::say(&format!(
        "{name} [core {}]\n  config file = {config}\n  program = kubeon-run {}",
        crate::vars::language_version(),
        env!("CARGO_PKG_VERSION")
    ));
}

pub fn doc(args: &DocArguments) -> Result<u8, Problem> {
    if args.sort != "module" {
        let message = format!(
            "`--type {}`: modules have pages; filters, tests, lookups and keywords are in docs/compatibility.md",
            args.sort
        );
        return Err(Problem::usage(message));
    }
    if args.list || args.modules.is_empty() {
        let text = if args.json { python_json(&doc::list_json())? } else { doc::list() };
        report::say(text.trim_end());
        return Ok(0);
    }
    let unknown = |name: &String| {
        let meant = nearest(name, crate::action::names());
        let hint = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
        Problem::new(format!("no module `{name}`{hint}"))
    };
    if args.json {
        let page = |name: &String| Ok((name.clone(), doc::page_json(name).ok_or_else(|| unknown(name))?));
        let pages: serde_json::Map<_, _> = args.modules.iter().map(page).collect::<Result<_, Problem>>()?;
        report::say(&python_json(&pages.into())?);
        return Ok(0);
    }
    let page = |name: &String| doc::page(name).ok_or_else(|| unknown(name));
    let pages: Vec<String> = args.modules.iter().map(page).collect::<Result<_, Problem>>()?;
    report::say(pages.join("\n").trim_end());
    Ok(0)
}

pub fn schema(what: SchemaOf) -> Result<u8, Problem> {
    let schema = match what {
        SchemaOf::Playbook => doc::playbook_schema(),
        SchemaOf::Modules => doc::module_schemas(),
    };
    let text = serde_json::to_string_pretty(&schema).map_err(|error| Problem::new(error.to_string()))?;
    report::say(&text);
    Ok(0)
}

pub fn completions(shell: clap_complete::Shell) -> Result<u8, Problem> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "kubeon-run", &mut bytes);
    report::say(String::from_utf8_lossy(&bytes).trim_end());
    Ok(0)
}

/// What a starting project holds.
const STARTING_PROJECT: &[(&str, &str)] = &[
    (
        "inventory/hosts.yml",
        "# The hosts, in groups. `kubeon-run inventory --graph` shows them.\n\
         all:\n  children:\n    web:\n      hosts:\n        # web1: {ansible_host: 192.0.2.10, ansible_user: admin}\n",
    ),
    ("group_vars/all.yml", "# Variables of every host.\nmessage: hello\n"),
    (
        "site.yml",
        "# Run with: kubeon-run site.yml --check --diff\n\
         - name: Set hosts up\n  hosts: all\n  # become: true    # as root, by sudo\n  tasks:\n    - name: Say hello\n      \
         copy:\n        dest: ~/hello.txt\n        content: \"{{ message }}\\n\"\n        mode: \"0644\"\n",
    ),
];

pub fn init(folder: &Path) -> Result<u8, Problem> {
    for (name, text) in STARTING_PROJECT {
        let path = folder.join(name);
        let failed = |error: std::io::Error| Problem::new(format!("write `{}`: {error}", path.display()));
        if path.exists() {
            report::say(&format!("kept    {}", path.display()));
            continue;
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        std::fs::write(&path, text).map_err(failed)?;
        report::say(&format!("written {}", path.display()));
    }
    Ok(0)
}
