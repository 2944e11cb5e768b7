use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::decode::Arguments;
use crate::host::Map;
use crate::host::Put as _;
use crate::{Change, Error, ErrorKind, Host, Module, Plan};

/// Ask how a task that runs apart (`async`) is doing, or forget it.
///
/// ```yaml
/// - async_status:
///     jid: "{{ started.ansible_job_id }}"
///   register: job
///   until: job.finished
///   retries: 60
///   delay: 10
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The job, as its task returned it.
    jid: String,
    #[serde(default)]
    mode: Mode,
    /// The folder of jobs; `~/.ansible_async` when absent.
    _async_dir: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    /// Return the job's result, or that it still runs.
    #[default]
    Status,
    /// Remove what is known of the job.
    Cleanup,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let jid = self.jid.as_str();
        if jid.is_empty() || jid.contains('/') || jid.starts_with('.') {
            return Err(Error::new(ErrorKind::Arguments, format!("`{jid}` is no job's id")));
        }
        let folder = match &self._async_dir {
            Some(folder) => crate::paths::expand(host, folder)?,
            None => format!("{}/.ansible_async", host.env("HOME").unwrap_or_else(|| "/tmp".to_owned())),
        };
        let path = format!("{}/{jid}", folder.trim_end_matches('/'));
        let bytes = host.read(&path)?;
        if self.mode == Mode::Cleanup && (bytes.is_some() || !host.applied().is_empty()) {
            let changes = bytes.map(|_| Change::Remove { path: path.clone() });
            let plan = Plan::from(changes.into_iter().collect::<Vec<_>>());
            return Ok(plan.with("ansible_job_id", jid).with("erased", path).with("changed", false));
        }
        let Some(bytes) = bytes else {
            return Err(Error::new(ErrorKind::Host, "could not find job")
                .with("results_file", path)
                .with("ansible_job_id", jid)
                .with("started", 1)
                .with("finished", 1));
        };
        // A file that is being made holds nothing yet.
        let mut result: Map = match serde_json::from_slice(&bytes) {
            Ok(Value::Object(result)) => result,
            Ok(_) => return Err(Error::new(ErrorKind::Host, format!("`{path}` is no job's result"))),
            Err(_) if bytes.is_empty() => Map::from_iter([("started".to_owned(), 1.into())]),
            Err(error) => {
                return Err(Error::new(ErrorKind::Host, format!("`{path}` is no job's result: {error}"))
                    .with("ansible_job_id", jid)
                    .with("finished", 1));
            }
        };
        let finished = i32::from(!result.contains_key("started"));
        result.entry("finished").or_insert(finished.into());
        result.put("ansible_job_id", jid);
        result.put("results_file", path);
        Ok(Plan { result, ..Plan::default() })
    }
}
