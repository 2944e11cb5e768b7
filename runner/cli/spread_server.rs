//! What `kubeon-run spread` asks of the API before and after it follows a run: the Job and what belongs to it, made, found and
//! taken away.

use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kubeon_modules::{ApiServer, KubeAnswer, KubeRequest};
use serde_json::{Value as Json, json};

use super::Problem;
use crate::report::HostName;
use crate::spread::{HOSTS, LABEL, PLAN, Plan, bundle, job};

/// How long it is tried to make an object while the API is away.
const CREATE_LIMIT: Duration = Duration::from_secs(60);

/// The API server, and where in it the run is.
pub struct Server {
    pub api: ApiServer,
    pub namespace: String,
}

impl Server {
    fn ask(&self, method: &str, path: &str, body: Option<Json>) -> Result<KubeAnswer, Problem> {
        let content_type = (method == "PATCH").then(|| "application/merge-patch+json".to_owned());
        let (method, path) = (method.to_owned(), path.to_owned());
        let request = KubeRequest { method, path, content_type, body, ..KubeRequest::default() };
        self.api.ask(request).map_err(|error| Problem::new(error.to_string()))
    }

    fn path(&self, kind: &str) -> String {
        let group = if kind == "jobs" { "apis/batch/v1" } else { "api/v1" };
        format!("/{group}/namespaces/{}/{kind}", self.namespace)
    }

    /// Refuses a name that a Job has already; the first question to the API, so that what it can't answer shows at once.
    pub fn is_free(&self, name: &str) -> Result<(), Problem> {
        let answer = self.ask("GET", &format!("{}/{name}", self.path("jobs")), None)?;
        match answer.status {
            404 => Ok(()),
            200 => Err(Problem::new(format!(
                "there is a Job `{name}` already: follow it with `--attach {name}`, or give this one another name"
            ))),
            _ => Err(refused("look for a Job of that name", &answer)),
        }
    }

    /// Makes the Job, all that belongs to it, and lets it go.
    pub fn make(
        &self,
        settings: &job::Settings,
        plan: &Plan,
        bundle: &bundle::Bundle,
        hosts: &[HostName],
    ) -> Result<(), Problem> {
        let job = self.create("jobs", &settings.job(plan, bundle))?;
        let made = self.fill(settings, &job, bundle, hosts);
        if made.is_err() {
            // What is half made is no use; its parts go with it.
            self.remove(&settings.name).ok();
        }
        made
    }

    fn fill(
        &self,
        settings: &job::Settings,
        job: &Json,
        bundle: &bundle::Bundle,
        hosts: &[HostName],
    ) -> Result<(), Problem> {
        let names: Vec<&str> = hosts.iter().map(|host| &**host).collect();
        let names = bundle::packed(&names.join("\n")).map_err(|error| Problem::new(error.to_string()))?;
        let uid = job["metadata"]["uid"].as_str().unwrap_or_default();
        for object in settings.belongings(uid, bundle, &names) {
            self.create(if object["kind"] == "Secret" { "secrets" } else { "configmaps" }, &object)?;
        }
        let path = format!("{}/{}", self.path("jobs"), settings.name);
        let answer = self.ask("PATCH", &path, Some(json!({"spec": {"suspend": false}})))?;
        if answer.status == 200 { Ok(()) } else { Err(refused("let the Job go", &answer)) }
    }

    /// Makes an object; one that was made without a word of it, because the API went away, is found.
    fn create(&self, kind: &str, object: &Json) -> Result<Json, Problem> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let end = Instant::now() + CREATE_LIMIT;
        let mut answer = self.ask("POST", &self.path(kind), Some(object.clone()));
        while answer.as_ref().map_or(true, |answer| answer.status >= 500) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(500));
            answer = self.ask("POST", &self.path(kind), Some(object.clone()));
            if answer.as_ref().is_ok_and(|answer| answer.status == 409) {
                answer = self.ask("GET", &format!("{}/{name}", self.path(kind)), None);
            }
        }
        let answer = answer?;
        if matches!(answer.status, 200..=202) {
            Ok(answer.body)
        } else {
            Err(refused(&format!("make `{name}`"), &answer))
        }
    }

    /// Takes the Job away, and with it its pods, ConfigMaps and Secrets.
    pub fn remove(&self, name: &str) -> Result<(), Problem> {
        let path = format!("{}/{name}?propagationPolicy=Background", self.path("jobs"));
        let answer = self.ask("DELETE", &path, None)?;
        if matches!(answer.status, 200..=202 | 404) { Ok(()) } else { Err(refused("take the Job away", &answer)) }
    }

    /// Returns what has to be known of a run to follow it.
    pub fn find(&self, name: &str) -> Result<(Plan, Vec<HostName>), Problem> {
        let job = self.ask("GET", &format!("{}/{name}", self.path("jobs")), None)?;
        if job.status != 200 {
            return Err(Problem::new(format!("no Job `{name}` in the namespace `{}`", self.namespace)));
        }
        let plan = job.body["metadata"]["annotations"][PLAN].as_str();
        let plan = plan.ok_or_else(|| Problem::new(format!("the Job `{name}` is no run of `kubeon-run spread`")))?;
        let plan: Plan = serde_json::from_str(plan)
            .map_err(|error| Problem::new(format!("the Job `{name}` was made by another version of this: {error}")))?;
        let configs = self.ask("GET", &format!("{}?labelSelector={LABEL}%3D{name}", self.path("configmaps")), None)?;
        let mut pieces: Vec<(usize, Vec<u8>)> = Vec::new();
        for config in configs.body["items"].as_array().into_iter().flatten() {
            let Some(text) = config["binaryData"][HOSTS].as_str() else { continue };
            let number = config["metadata"]["name"].as_str().and_then(|name| name.rsplit_once('-')?.1.parse().ok());
            let bytes =
                STANDARD.decode(text).map_err(|error| Problem::new(format!("the names of the hosts: {error}")))?;
            pieces.push((number.unwrap_or(0), bytes));
        }
        pieces.sort();
        let packed: Vec<u8> = pieces.into_iter().flat_map(|(_, bytes)| bytes).collect();
        let names = bundle::unpacked(&packed)
            .map_err(|error| Problem::new(format!("the names of the hosts of `{name}` can't be read: {error}")))?;
        Ok((plan, names.lines().map(HostName::from).collect()))
    }
}

fn refused(what: &str, answer: &KubeAnswer) -> Problem {
    let said = answer.body["message"].as_str().map_or_else(|| answer.body.to_string(), str::to_owned);
    Problem::new(format!("{what}: the API answers {}: {said}", answer.status))
}
