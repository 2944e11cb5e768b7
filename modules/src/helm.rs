use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::ask::{bad, failed, slow};
use crate::decode::Arguments;
use crate::host::{Map, Put as _};
use crate::passed::table;
use crate::shared::State;
use crate::{Change, Content, Done, Error, ErrorKind, Exec, Host, Module, Plan, Probe};

/// Seconds that helm may take to find out what would change.
const SLOW_S: u64 = 300;

/// Keep a release of a chart in a Kubernetes cluster, with the `helm` of the machine where the task runs.
///
/// ```yaml
/// - kubernetes.core.helm:
///     name: gpu-operator
///     chart_ref: nvidia/gpu-operator
///     chart_version: v25.10.0
///     release_namespace: gpu-operator
///     create_namespace: true
///     values: {driver: {enabled: false}}
///   delegate_to: localhost
/// ```
///
/// helm itself says, by a dry run, which chart and which values a release would have; it is upgraded when they differ
/// from those it has.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The release.
    #[serde(alias = "name")]
    release_name: String,
    /// The namespace of the release.
    #[serde(alias = "namespace")]
    release_namespace: String,
    #[serde(default, alias = "state")]
    release_state: State,
    /// The chart: `REPOSITORY/NAME`, a folder, a file or an address.
    chart_ref: Option<String>,
    /// The chart's version; the newest when absent.
    chart_version: Option<String>,
    /// The repository's address, for a chart that is named alone.
    #[serde(alias = "repo_url")]
    chart_repo_url: Option<String>,
    /// The values of the release.
    #[serde(alias = "values")]
    release_values: Option<Map>,
    /// Files with values, the last one first heard.
    #[serde(default)]
    values_files: Vec<String>,
    /// Single values, as `--set` has them.
    #[serde(default)]
    set_values: Vec<Single>,
    /// Make the namespace where it is missing.
    #[serde(default)]
    create_namespace: bool,
    /// Read the repositories anew first.
    #[serde(default)]
    update_repo_cache: bool,
    /// Upgrade although nothing differs.
    #[serde(default)]
    force: bool,
    #[serde(rename = "+options")]
    #[schemars(flatten)]
    options: Options,
}

table! {
    pub(super) struct Options {
        /// The program; `helm` when absent.
        binary_path: Text,
        /// The kubeconfig.
        kubeconfig | kubeconfig_path: Text,
        /// The context of the kubeconfig.
        context | kube_context: Text,
        /// Wait until the release's objects are ready.
        wait: Flag,
        /// Wait until the release's jobs are done.
        wait_for_jobs: Flag,
        /// How long to wait, such as `5m0s`.
        timeout | wait_timeout: Text,
        /// Undo an upgrade that fails.
        atomic: Flag,
        /// Leave out the chart's hooks.
        disable_hook: Flag,
        /// Leave out the chart's kinds.
        skip_crds: Flag,
        /// Fetch the charts that the chart needs.
        dependency_update | dep_up: Flag,
        /// Keep the values that the release has.
        reuse_values: Flag,
        /// Forget the values that the release has.
        reset_values: Flag,
        /// How many revisions are kept.
        history_max: Number,
        /// Whether a removed release is forgotten.
        purge: Flag,
        /// Take over objects that are there.
        take_ownership: Flag,
        /// Whether servers must prove who they are.
        validate_certs: Flag,
        /// A file with certificates of authorities to trust.
        ca_cert: Text,
        /// Accepted: a release that is there is upgraded.
        replace: Flag,
        /// Take versions that are not final.
        devel: Flag,
    }
}

/// A single value.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Single {
    /// `key.inner=value`.
    value: String,
    /// How it is read: `raw`, `string`, `json` or `file`.
    #[serde(default = "raw")]
    value_type: String,
}

fn raw() -> String {
    "raw".to_owned()
}

/// What a release is made of.
#[derive(Debug, PartialEq)]
struct Release {
    chart: String,
    values: Value,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let hyphen = self.release_name.starts_with('-') || self.release_name.is_empty();
        if hyphen || self.chart_ref.as_deref().is_some_and(|chart| chart.starts_with('-')) {
            return Err(bad("`release_name` and `chart_ref` are names, not options"));
        }
        let found = self.found(host)?;
        if self.release_state == State::Absent {
            let changes = if found.is_some() { vec![self.removal()] } else { Vec::new() };
            return Ok(changes.into());
        }
        let chart = self.chart_ref.as_deref().ok_or_else(|| bad("`chart_ref` is missing"))?;
        if self.update_repo_cache && host.applied().is_empty() {
            let argv = [self.program(), "repo", "update"];
            let output = slow(host, &argv, SLOW_S)?;
            // Without any repository there is nothing to read.
            if !output.success() && !output.stderr.contains("no repositories found") {
                return Err(failed(&argv, &output));
            }
        }
        let status = found.clone().unwrap_or_default();
        let forced = self.force && host.applied().is_empty();
        let deployed = status["status"] == "deployed";
        let wanted = self.wanted(host, chart)?;
        let same = deployed && wanted.chart == status["chart"].as_str().unwrap_or_default() && {
            let argv = self.words(&["get", "values", &self.release_name, "--output", "json"]);
            let output = slow(host, &strs(&argv), SLOW_S)?;
            let now: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
            folded(now) == wanted.values
        };
        let mut changes = Vec::new();
        if !same || forced {
            changes.push(Change::Exec(self.upgrade(chart, false)));
        }
        Ok(Plan::from(changes).with("status", status))
    }

    fn report(&self, _host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        let last = done.iter().rev().find_map(|done| Some((&done.change, done.output.as_ref()?)));
        if let Some((Change::Exec(exec), output)) = last {
            result.put("command", exec.argv.join(" "));
            result.put("stdout", output.stdout.as_str());
            result.put("stderr", output.stderr.as_str());
        }
        Ok(())
    }
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// No values and an empty mapping are the same.
fn folded(values: Value) -> Value {
    if values.is_null() { Map::new().into() } else { values }
}

impl Args {
    fn program(&self) -> &str {
        self.options.text("binary_path").unwrap_or("helm")
    }

    /// Returns a command in the release's namespace and the cluster.
    fn words(&self, words: &[&str]) -> Vec<String> {
        let mut argv: Vec<String> = [&[self.program()], words].concat().iter().map(|word| (*word).to_owned()).collect();
        argv.extend(["--namespace".to_owned(), self.release_namespace.clone()]);
        for (name, option) in
            [("kubeconfig", "--kubeconfig"), ("context", "--kube-context"), ("ca_cert", "--kube-ca-file")]
        {
            argv.extend(self.options.text(name).into_iter().flat_map(|value| [option.to_owned(), value.to_owned()]));
        }
        if self.options.flag("validate_certs") == Some(false) {
            argv.push("--kube-insecure-skip-tls-verify".to_owned());
        }
        argv
    }

    /// Returns the release as helm lists it.
    fn found(&self, host: &dyn Host) -> Result<Option<Value>, Error> {
        let filter = format!("^{}$", self.release_name);
        let argv = self.words(&["list", "--all", "--output", "json", "--filter", &filter]);
        let output = slow(host, &strs(&argv), SLOW_S)?;
        if !output.success() {
            return Err(failed(&strs(&argv), &output));
        }
        let listed: Vec<Value> = serde_json::from_str(&output.stdout)
            .map_err(|error| Error::new(ErrorKind::Host, format!("`helm list` does not answer in JSON: {error}")))?;
        Ok(listed.into_iter().find(|release| release["status"] != "uninstalled"))
    }

    fn removal(&self) -> Change {
        let mut argv = self.words(&["uninstall", &self.release_name]);
        for (name, when, option) in
            [("purge", false, "--keep-history"), ("wait", true, "--wait"), ("disable_hook", true, "--no-hooks")]
        {
            if self.options.flag(name) == Some(when) {
                argv.push(option.to_owned());
            }
        }
        if let Some(timeout) = self.options.text("timeout") {
            argv.extend(["--timeout".to_owned(), timeout.to_owned()]);
        }
        Change::Exec(Exec::new(argv))
    }

    /// Returns the command that makes the release so, or that says what it would be.
    fn upgrade(&self, chart: &str, trial: bool) -> Exec {
        let mut argv = self.words(&["upgrade", "--install", &self.release_name, chart]);
        let mut push = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
        if let Some(version) = &self.chart_version {
            push(&["--version", version]);
        }
        if let Some(url) = &self.chart_repo_url {
            push(&["--repo", url]);
        }
        for (name, option) in [
            ("wait", "--wait"),
            ("wait_for_jobs", "--wait-for-jobs"),
            ("atomic", "--atomic"),
            ("disable_hook", "--no-hooks"),
            ("skip_crds", "--skip-crds"),
            ("dependency_update", "--dependency-update"),
            ("reuse_values", "--reuse-values"),
            ("reset_values", "--reset-values"),
            ("take_ownership", "--take-ownership"),
            ("devel", "--devel"),
        ] {
            // A dry run waits for nothing, and has nothing to undo.
            if self.options.is(name) && !(trial && matches!(name, "wait" | "wait_for_jobs" | "atomic")) {
                push(&[option]);
            }
        }
        if let Some(timeout) = self.options.text("timeout") {
            push(&["--timeout", timeout]);
        }
        if let Some(count) = self.options.number("history_max") {
            push(&["--history-max", &count.to_string()]);
        }
        if self.create_namespace {
            push(&["--create-namespace"]);
        }
        if self.force && !trial {
            push(&["--force"]);
        }
        for file in &self.values_files {
            push(&["--values", file]);
        }
        let mut files = Vec::new();
        if let Some(values) = self.release_values.as_ref().filter(|values| !values.is_empty()) {
            push(&["--values", "{scratch}/values.json"]);
            let text = Value::from(values.clone()).to_string();
            files.push(("values.json".to_owned(), Content::Inline(text.into_bytes())));
        }
        for single in &self.set_values {
            let option = match single.value_type.as_str() {
                "string" => "--set-string",
                "json" => "--set-json",
                "file" => "--set-file",
                _ => "--set",
            };
            push(&[option, &single.value]);
        }
        if trial {
            push(&["--dry-run", "--output", "json"]);
        }
        Exec { files, ..Exec::new(argv) }
    }

    fn wanted(&self, host: &dyn Host, chart: &str) -> Result<Release, Error> {
        let trial = self.upgrade(chart, true);
        let mut files = Vec::new();
        for (name, content) in &trial.files {
            files.push((name.clone(), host.content(content)?));
        }
        let output = host.probe(&Probe { files, timeout_s: Some(SLOW_S), ..Probe::new(trial.argv.clone()) })?;
        if !output.success() {
            return Err(failed(&strs(&trial.argv), &output));
        }
        let release: Value = serde_json::from_str(&output.stdout)
            .map_err(|error| Error::new(ErrorKind::Host, format!("helm's dry run does not answer in JSON: {error}")))?;
        let metadata = &release["chart"]["metadata"];
        let text = |key: &str| metadata[key].as_str().unwrap_or_default();
        let chart = format!("{}-{}", text("name"), text("version"));
        Ok(Release { chart, values: folded(release["config"].clone()) })
    }
}
