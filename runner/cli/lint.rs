//! `kubeon-run lint`: what will surprise, found by reading.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;

use super::doctor_args::ReportFormat;
use super::vault_files::{self as files, Rights};
use super::{EXIT_BAD_OPTIONS, Problem};
use crate::lint::{self, Report, Rule, show};
use crate::report;
use crate::source::nearest;

/// The exit status where something is found.
const EXIT_FOUND: u8 = 2;

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 nothing is found, 2 something is, 1 error.")]
pub struct LintArguments {
    /// Files, or folders with all that is in them.
    #[arg(value_name = "PATH", default_value = ".")]
    pub paths: Vec<PathBuf>,
    /// Mend what can be mended by rule.
    #[arg(long)]
    pub fix: bool,
    /// Look for these alone.
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Leave these out.
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Show the rules.
    #[arg(long)]
    pub rules: bool,
    /// How to report.
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub output: ReportFormat,
}

pub fn lint(args: &LintArguments) -> Result<u8, Problem> {
    args.only.iter().chain(&args.skip).try_for_each(|name| known(name))?;
    if args.rules {
        report::say(lint::page::page().trim_end());
        return Ok(0);
    }
    let is_in = |rule: &Rule, names: &[String]| names.iter().any(|name| rule.is_called(name));
    let wanted = |rule: &Rule| (args.only.is_empty() || is_in(rule, &args.only)) && !is_in(rule, &args.skip);
    let mut report =
        Report { files: lint::discover(&args.paths).map_err(Problem::new)?, findings: Vec::new(), mended: 0 };
    for path in &report.files {
        if args.fix
            && let Ok(bytes) = std::fs::read(path)
            && let Some((text, count)) = lint::mended(path, &bytes, &wanted)
        {
            files::write(path, text.as_bytes(), Rights::Kept)?;
            report.mended += count;
        }
        report.findings.extend(lint::lint(path, &wanted).into_iter().filter(|finding| wanted(finding.rule)));
    }
    let code = if report.findings.is_empty() { 0 } else { EXIT_FOUND };
    let pretty = |value: serde_json::Value| {
        serde_json::to_string_pretty(&value).map_err(|error| Problem::new(error.to_string()))
    };
    let color = std::io::stdout().is_terminal() && report::colors();
    report::say(&match args.output {
        ReportFormat::Text => show::words(&report, color),
        ReportFormat::Json => pretty(show::json(&report))?,
        ReportFormat::Sarif => pretty(show::sarif(&report, code))?,
    });
    Ok(code)
}

fn known(name: &str) -> Result<(), Problem> {
    if lint::rules().any(|rule| rule.is_called(name)) {
        return Ok(());
    }
    let near = nearest(name, lint::rules().map(|rule| rule.id));
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Err(Problem { message: format!("no rule `{name}`{near}"), code: EXIT_BAD_OPTIONS })
}
