//! How a run is reported: `--output`, and what users of Ansible have in their configuration.

use super::Problem;
use super::run_args::OutputFormat;
use super::settings::Settings;
use crate::report::lines::LineOptions;
use crate::report::{About, Format, Reporting};

/// What `stdout_callback` may be.
const CALLBACKS: &str = "default, minimal, oneline, yaml, json and junit";

/// Puts the settings of the report together.
pub fn reporting(given: OutputFormat, settings: &Settings, about: About) -> Result<Reporting, Problem> {
    let config = &settings.config;
    let mut lines = LineOptions {
        verbosity: settings.run.verbosity,
        show_skipped: config.flag(
            &["ANSIBLE_DISPLAY_SKIPPED_HOSTS", "DISPLAY_SKIPPED_HOSTS"],
            "defaults",
            "display_skipped_hosts",
            true,
        )?,
        show_ok: config.flag(&["ANSIBLE_DISPLAY_OK_HOSTS"], "defaults", "display_ok_hosts", true)?,
        show_custom_stats: config.flag(&["ANSIBLE_SHOW_CUSTOM_STATS"], "defaults", "show_custom_stats", false)?,
        yaml: config.get(&["ANSIBLE_CALLBACK_RESULT_FORMAT"], "defaults", "callback_result_format").as_deref()
            == Some("yaml"),
        debug: config.flag(&["ANSIBLE_DEBUG"], "defaults", "debug", false)?,
        ..LineOptions::default()
    };
    let format = match given {
        // Its questions would be drawn over.
        OutputFormat::Auto if settings.run.step => Format::Lines,
        OutputFormat::Auto => configured(settings, &mut lines)?,
        OutputFormat::Lines => Format::Lines,
        OutputFormat::Json => Format::Json,
        OutputFormat::Junit => Format::Junit,
    };
    Ok(Reporting { format, lines, about })
}

/// Returns what `stdout_callback` of Ansible's configuration comes to here.
fn configured(settings: &Settings, lines: &mut LineOptions) -> Result<Format, Problem> {
    let Some(name) = settings.config.get(&["ANSIBLE_STDOUT_CALLBACK"], "defaults", "stdout_callback") else {
        return Ok(Format::Auto);
    };
    match name.rsplit('.').next().unwrap_or(&name) {
        "" | "default" => Ok(Format::Auto),
        "minimal" => Ok(Format::Minimal),
        "oneline" => Ok(Format::Oneline),
        "yaml" => {
            lines.yaml = true;
            Ok(Format::Auto)
        }
        "json" => Ok(Format::Json),
        "junit" => Ok(Format::Junit),
        _ => Err(Problem::usage(format!(
            "`stdout_callback` is `{name}`, and {CALLBACKS} are known; `--output` overrules it"
        ))),
    }
}
