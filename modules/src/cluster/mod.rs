//! What the modules for Kubernetes share: asking the API, objects as users write them, and when a workload is ready.

pub(crate) mod compare;
pub(crate) mod object;
pub(crate) mod resource;
pub(crate) mod rollout;
pub(crate) mod yaml;
#[cfg(feature = "kubernetes")]
mod yaml_read;

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Error, ErrorKind, Host, KubeAnswer, KubeRequest};

/// Whom our changes are recorded for in `metadata.managedFields`.
pub(crate) const FIELD_MANAGER: &str = "kubeon-run";
/// How many objects one answer of a list holds.
const PAGE: u32 = 500;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// One API server, asked through a host.
pub(crate) struct Api<'a> {
    host: &'a dyn Host,
    kubeconfig: Option<&'a str>,
    context: Option<&'a str>,
}

impl<'a> Api<'a> {
    pub(crate) fn new(host: &'a dyn Host, kubeconfig: Option<&'a str>, context: Option<&'a str>) -> Api<'a> {
        Api { host, kubeconfig, context }
    }

    pub(crate) fn request(&self, method: &str, path: impl Into<String>) -> KubeRequest {
        KubeRequest {
            kubeconfig: self.kubeconfig.map(str::to_owned),
            context: self.context.map(str::to_owned),
            method: method.to_owned(),
            path: path.into(),
            ..KubeRequest::default()
        }
    }

    pub(crate) fn ask(&self, request: &KubeRequest) -> Result<KubeAnswer, Error> {
        self.host.kubernetes(request)
    }

    /// Returns what is at a path; `None` when nothing is.
    ///
    /// # Errors
    /// Whatever the request reports, and any other status than 200 and 404.
    pub(crate) fn get(&self, path: &str) -> Result<Option<Value>, Error> {
        let request = self.request("GET", path);
        let answer = self.ask(&request)?;
        match answer.status {
            200 => Ok(Some(answer.body)),
            404 => Ok(None),
            _ => Err(refusal(&request, &answer)),
        }
    }

    /// Returns all items of a list, page by page, each with its `apiVersion` and `kind`; `None` for an unknown path.
    ///
    /// # Errors
    /// As [`Api::get`].
    pub(crate) fn list(&self, path: &str, query: &str) -> Result<Option<Vec<Value>>, Error> {
        let mut items = Vec::new();
        let mut next = String::new();
        loop {
            let Some(mut page) = self.get(&format!("{path}?limit={PAGE}{query}{next}"))? else { return Ok(None) };
            let version = page["apiVersion"].clone();
            let kind = text(&page, "/kind").strip_suffix("List").map(str::to_owned);
            if let Some(Value::Array(found)) = page.get_mut("items").map(Value::take) {
                items.extend(found.into_iter().map(|mut item| {
                    if let (Some(kind), Some(fields)) = (&kind, item.as_object_mut()) {
                        fields.entry("apiVersion").or_insert_with(|| version.clone());
                        fields.entry("kind").or_insert_with(|| kind.as_str().into());
                    }
                    item
                }));
            }
            match text(&page, "/metadata/continue") {
                "" => return Ok(Some(items)),
                token => next = format!("&continue={}", encoded(token)),
            }
        }
    }

    /// Asks until `done` returns something, for so long at most; `None` when the time is up.
    ///
    /// # Errors
    /// Whatever `done` reports.
    pub(crate) fn until<T>(
        &self,
        limit: Duration,
        mut done: impl FnMut() -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let end = Instant::now() + limit;
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(found) = done()? {
                return Ok(Some(found));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Returns a string inside a JSON document, empty where there is none.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns an answer that is no success as an error.
pub(crate) fn refusal(request: &KubeRequest, answer: &KubeAnswer) -> Error {
    let path = request.path.split('?').next().unwrap_or_default();
    let said = match &answer.body {
        Value::String(text) => text.as_str(),
        body => text(body, "/message"),
    };
    let said = if said.is_empty() { "no message" } else { said };
    Error::new(ErrorKind::Host, format!("{} {path}: status {}: {said}", request.method, answer.status))
        .with("status", answer.status)
}

/// Returns text as a part of a query.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// Returns the manager of a field, such as `["f:metadata", "f:labels", "f:x"]`, as `metadata.managedFields` has it:
/// the latest of several.
pub(crate) fn manager_of<'a>(object: &'a Value, field: &[String]) -> Option<&'a str> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    entries
        .iter()
        .filter(|entry| {
            let mut at = entry.get("fieldsV1");
            for step in field {
                at = at.and_then(|fields| fields.get(step));
            }
            at.is_some()
        })
        .max_by_key(|entry| text(entry, "/time"))
        .map(|entry| text(entry, "/manager"))
}

/// Returns names for a message: the first few, and how many more there are.
pub(crate) fn listed<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN: usize = 20;
    let mut shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{}`", name.as_ref())).collect();
    if names.len() > SHOWN {
        shown.push(format!("and {} more", names.len() - SHOWN));
    }
    shown.join(", ")
}
