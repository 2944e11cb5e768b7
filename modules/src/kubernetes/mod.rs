//! Requests to a Kubernetes API, in process: one client per kubeconfig and context, retried while a server restarts.

mod environment;
mod explain;
mod kubeconfig;
mod proxy;
mod server;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::{Error, ErrorKind, KubeAnswer, KubeRequest};
use explain::{Fault, fault_of};
use kubeconfig::Target;
pub use server::{ApiServer, Streamed};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often an answer of 500 is asked again: most are the same each time, such as those of a broken webhook.
const MOST_TRIES_OF_500: u32 = 4;
/// How often a name is looked up again.
const MOST_TRIES_OF_LOOKUP: u32 = 4;

/// The clients of one task, each made when first asked for.
#[derive(Default)]
pub(crate) struct Clients {
    runtime: Option<Runtime>,
    known: BTreeMap<(Option<String>, Option<String>), (Client, Target)>,
}

impl Clients {
    /// Sends a request and returns the answer, whatever its status but 401 and 403.
    ///
    /// # Errors
    /// [`ErrorKind::Host`] when there is no usable kubeconfig, the server can't be reached in time, or it refuses
    /// these credentials.
    pub(crate) fn ask(&mut self, request: &KubeRequest, env: &BTreeMap<String, String>) -> Result<KubeAnswer, Error> {
        let Clients { runtime, known } = self;
        let runtime = match runtime {
            Some(runtime) => runtime,
            None => runtime.insert(
                tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .map_err(|error| Error::new(ErrorKind::Host, format!("start the Kubernetes client: {error}")))?,
            ),
        };
        let key = (request.kubeconfig.clone(), request.context.clone());
        let (client, target) = match known.entry(key) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let target = Target::load(request.kubeconfig.as_deref(), request.context.as_deref(), env)?;
                entry.insert((client_of(&target, runtime, limit_of(request))?, target))
            }
        };
        let answer = runtime.block_on(ask(client, target, request))?;
        match answer.status {
            401 => Err(target.unauthorized()),
            403 => Err(target.forbidden(request, &answer)),
            _ => Ok(answer),
        }
    }
}

fn limit_of(request: &KubeRequest) -> Duration {
    Duration::from_secs(request.timeout_s.unwrap_or(KubeRequest::DEFAULT_TIMEOUT_S))
}

/// Makes a client, on a thread of its own: a program that is asked for credentials may never answer.
fn client_of(target: &Target, runtime: &Runtime, limit: Duration) -> Result<Client, Error> {
    let (sender, made) = mpsc::channel();
    let (config, handle) = (target.config.clone(), runtime.handle().clone());
    thread::spawn(move || {
        // A client starts a task of its own: the runtime must be there.
        let _inside = handle.enter();
        sender.send(Client::try_from(config)).ok();
    });
    match made.recv_timeout(limit) {
        Ok(made) => made.map_err(|error| target.unusable(&error)),
        Err(_) => Err(target.no_credentials(limit)),
    }
}

/// What one try came to.
enum Tried {
    Answer { answer: KubeAnswer, retry_after: Option<Duration> },
    Failed(kube::Error),
    TimedOut,
}

async fn ask(client: &Client, target: &Target, request: &KubeRequest) -> Result<KubeAnswer, Error> {
    let limit = limit_of(request);
    let end = Instant::now() + limit;
    let mut pause = FIRST_PAUSE;
    let mut tries = 0;
    loop {
        tries += 1;
        let left = end.saturating_duration_since(Instant::now());
        let tried = match tokio::time::timeout(left, send(client, request)).await {
            Ok(Ok((answer, retry_after))) => Tried::Answer { answer, retry_after },
            Ok(Err(error)) => Tried::Failed(error),
            Err(_) => Tried::TimedOut,
        };
        // A request that makes something new must not be sent twice where the first may have arrived; a pod that is
        // evicted twice is evicted.
        let repeatable = request.method != "POST" || request.path.ends_with("/eviction");
        let wait = match &tried {
            Tried::Answer { answer, retry_after } => match answer.status {
                429 => Some(retry_after.unwrap_or(pause)),
                503 => Some(retry_after.unwrap_or(pause)),
                502 | 504 if repeatable => Some(pause),
                500 if repeatable && tries < MOST_TRIES_OF_500 => Some(pause),
                _ => None,
            },
            Tried::Failed(error) => match fault_of(error) {
                Fault::Refused => Some(pause),
                Fault::Broken if repeatable => Some(pause),
                Fault::Lookup if tries < MOST_TRIES_OF_LOOKUP => Some(pause),
                Fault::Broken | Fault::Lookup | Fault::Other => None,
            },
            Tried::TimedOut => None,
        };
        match wait {
            Some(wait) if Instant::now() + wait < end => {
                tokio::time::sleep(wait).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            _ => {
                return match tried {
                    Tried::Answer { answer, .. } => Ok(answer),
                    Tried::Failed(error) => Err(target.unreachable(&error, limit)),
                    Tried::TimedOut => Err(target.silent(request, limit)),
                };
            }
        }
    }
}

async fn send(client: &Client, request: &KubeRequest) -> Result<(KubeAnswer, Option<Duration>), kube::Error> {
    let body = match &request.body {
        Some(body) => serde_json::to_vec(body).map_err(kube::Error::SerdeError)?,
        None => Vec::new(),
    };
    let mut builder = http::Request::builder()
        .method(request.method.as_str())
        .uri(&request.path)
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, concat!("kubeon-run/", env!("CARGO_PKG_VERSION")));
    if request.body.is_some() {
        builder = builder.header(CONTENT_TYPE, request.content_type.as_deref().unwrap_or("application/json"));
    }
    let request = builder.body(Body::from(body)).map_err(kube::Error::HttpError)?;
    let response = client.send(request).await?;
    let status = response.status().as_u16();
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .map(Duration::from_secs);
    let bytes = response.into_body().collect_bytes().await?;
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).trim_end().to_owned()));
    Ok((KubeAnswer { status, body }, retry_after))
}
