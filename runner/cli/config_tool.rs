//! `kubeon-run config`, which is also ansible-config: the settings that are followed, what they are, and why.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand, ValueEnum};
use serde_json::{Map, Value as Json, json};

use super::config::Config;
use super::{EXIT_BAD_OPTIONS, Problem, unfollowed};
use crate::config::{SETTINGS, Setting};
use crate::report;
use crate::source::Severity;
use crate::value::Value;

#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Tell every setting that is followed: what it does, where it is set, what it is when absent.
    List(ListArguments),
    /// Tell what every setting is, and where that comes from.
    Dump(DumpArguments),
    /// Print the configuration file.
    View(CommonArguments),
    /// Print a configuration file with every setting.
    Init(InitArguments),
    /// Find what is misspelt or not followed in the configuration file and the environment.
    Validate(CommonArguments),
}

#[derive(Debug, Args)]
pub struct CommonArguments {
    /// The configuration file [default: the one that a run here would read].
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Which settings: `base`, or `all`, which are the same, since plugins have none here.
    #[arg(short = 't', long = "type", value_name = "TYPE", default_value = "base")]
    pub sort: String,
    /// Say which file was read.
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

#[derive(Debug, Args)]
pub struct ListArguments {
    /// How to print.
    #[arg(short, long, value_enum, default_value = "yaml", value_name = "FORMAT")]
    pub format: Format,
    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
pub struct DumpArguments {
    /// Only what somebody set.
    #[arg(long, visible_alias = "changed-only")]
    pub only_changed: bool,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "display", value_name = "FORMAT")]
    pub format: Format,
    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
pub struct InitArguments {
    /// How to print.
    #[arg(short, long, value_enum, default_value = "ini", value_name = "FORMAT")]
    pub format: InitFormat,
    /// Put a comment's mark before each setting.
    #[arg(long)]
    pub disabled: bool,
    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Display,
    Json,
    Yaml,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InitFormat {
    Ini,
    /// Lines for a shell's environment.
    Env,
}

pub fn config(action: &ConfigAction) -> Result<u8, Problem> {
    let common = match action {
        ConfigAction::List(args) => &args.common,
        ConfigAction::Dump(args) => &args.common,
        ConfigAction::Init(args) => &args.common,
        ConfigAction::View(args) | ConfigAction::Validate(args) => args,
    };
    if !matches!(&*common.sort, "base" | "all") {
        let message =
            format!("`--type {}`: plugins have no settings of their own here; base and all are known", common.sort);
        return Err(Problem { message, code: EXIT_BAD_OPTIONS });
    }
    let config = match &common.config {
        Some(path) => Config::read_file(path),
        None => Config::find(),
    };
    let config = config.map_err(Problem::new)?;
    if common.verbose > 0 {
        report::say(&match &config.path {
            Some(path) => format!("Using {} as config file", path.display()),
            None => "No config file found; using defaults".to_owned(),
        });
    }
    match action {
        ConfigAction::List(args) => list(args.format)?,
        ConfigAction::Dump(args) => dump(&config, args)?,
        ConfigAction::View(_) => view(&config)?,
        ConfigAction::Init(args) => report::say(init(args).trim_end()),
        ConfigAction::Validate(_) => return Ok(validate(&config)),
    }
    Ok(0)
}

fn print(value: &Json, format: Format) -> Result<(), Problem> {
    let failed = |message: String| Problem::new(message);
    let text = match format {
        Format::Json => super::tools::python_json(value)?,
        Format::Display | Format::Yaml => serde_yaml::to_string(value).map_err(|error| failed(error.to_string()))?,
    };
    report::say(text.trim_end());
    Ok(())
}

fn list(format: Format) -> Result<(), Problem> {
    let of = |setting: &Setting| {
        let names: Vec<Json> = setting.variables.iter().map(|name| json!({"name": name})).collect();
        json!({
            "default": Config::default().usual(setting).to_json(),
            "description": setting.about,
            "env": names,
            "ini": [{"key": setting.key, "section": setting.section}],
            "type": setting.kind(),
        })
    };
    let all: Map<String, Json> = SETTINGS.iter().map(|setting| (setting.name.to_owned(), of(setting))).collect();
    print(&Json::Object(all), format)
}

/// Returns a value as Python prints it; a text alone as it is.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        other => other.to_string(),
    }
}

fn dump(config: &Config, args: &DumpArguments) -> Result<(), Problem> {
    let path = config.path.as_ref().map(|path| path.display().to_string());
    let file = path.map_or(Value::Null, Value::from);
    let mut rows: Vec<(&str, String, Value)> = vec![("CONFIG_FILE", String::new(), file)];
    for setting in SETTINGS {
        let origin = config.origin_of(setting);
        if !args.only_changed || origin != "default" {
            rows.push((setting.name, origin, config.value(setting)));
        }
    }
    rows.sort_by_key(|(name, ..)| *name);
    if args.format == Format::Display {
        for (name, origin, value) in rows {
            report::say(&format!("{name}({origin}) = {}", shown(&value)));
        }
        return Ok(());
    }
    let row = |(name, origin, value): (&str, String, Value)| json!({"name": name, "origin": origin, "value": value.to_json()});
    print(&rows.into_iter().map(row).collect(), args.format)
}

fn view(config: &Config) -> Result<(), Problem> {
    let Some(path) = &config.path else { return Err(Problem::new("Invalid or no config file was supplied")) };
    let text = std::fs::read(path).map_err(|error| Problem::new(format!("read `{}`: {error}", path.display())))?;
    report::give(&text);
    Ok(())
}

fn init(args: &InitArguments) -> String {
    let mut sections: Vec<&str> = Vec::new();
    for setting in SETTINGS {
        if !sections.contains(&setting.section) {
            sections.push(setting.section);
        }
    }
    let usual = |setting: &Setting| match Config::default().usual(setting) {
        Value::Null => String::new(),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(Value::to_string).collect();
            items.join(if setting.kind() == "pathlist" { ":" } else { ", " })
        }
        other => other.to_string(),
    };
    let mut text = String::new();
    for section in sections {
        if args.format == InitFormat::Ini {
            text.push_str(&format!("[{section}]\n"));
        }
        for setting in SETTINGS.iter().filter(|setting| setting.section == section) {
            let (kind, about, usual) = (setting.kind(), setting.about, usual(setting));
            text.push_str(&format!("# ({kind}) {about}\n"));
            // An empty text is not the same as nothing.
            let mark = match (args.disabled || usual.is_empty(), args.format) {
                (true, InitFormat::Ini) => ";",
                (true, InitFormat::Env) => "#",
                (false, InitFormat::Ini | InitFormat::Env) => "",
            };
            match (args.format, setting.variables.first()) {
                (InitFormat::Ini, _) => text.push_str(&format!("{mark}{}={usual}\n\n", setting.key)),
                (InitFormat::Env, Some(name)) => {
                    text.push_str(&format!("{mark}{name}={}\n\n", shell_words::quote(&usual)));
                }
                (InitFormat::Env, None) => {}
            }
        }
    }
    text
}

fn validate(config: &Config) -> u8 {
    let problems = unfollowed::check(config);
    report::show_diagnostics(&problems);
    if problems.is_empty() {
        report::say("All configurations seem valid!");
    }
    u8::from(problems.iter().any(|problem| problem.severity == Severity::Error))
}
