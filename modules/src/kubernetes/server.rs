//! An API server for whoever runs here and is no module: requests, and what containers print, line by line as it comes.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

use http::header::USER_AGENT;
use http_body::Body as _;
use kube::Client;
use kube::client::Body;
use tokio::runtime::{Handle, Runtime};

use super::kubeconfig::Target;
use super::{Clients, client_of};
use crate::{Error, ErrorKind, KubeAnswer, KubeRequest};

/// After how long without a byte a stream is given up: its server may be gone without a word.
const SILENCE: Duration = Duration::from_secs(60);
/// How long the credentials for streams may take to come.
const CREDENTIALS_LIMIT: Duration = Duration::from_secs(30);
/// How much of a line is kept: what is longer is no line of ours.
const LINE_LIMIT: usize = 4 << 20;
/// How much of a refusal is told.
const REFUSAL_LIMIT: usize = 2_000;

/// What a stream says.
#[derive(Debug)]
pub enum Streamed {
    Line(String),
    /// It has ended by itself, or broke off for a reason.
    End(Result<(), String>),
}

/// An API server, as one kubeconfig and context reach it.
pub struct ApiServer {
    kubeconfig: Option<String>,
    context: Option<String>,
    env: BTreeMap<String, String>,
    clients: Mutex<Clients>,
    streams: Mutex<Option<(Handle, Client)>>,
}

impl ApiServer {
    /// A server that is found as kubectl finds it where no file is named.
    pub fn new(kubeconfig: Option<String>, context: Option<String>) -> ApiServer {
        ApiServer { kubeconfig, context, env: BTreeMap::new(), clients: Mutex::default(), streams: Mutex::new(None) }
    }

    /// Returns the namespace that the context names.
    ///
    /// # Errors
    /// When there is no usable kubeconfig.
    pub fn namespace(&self) -> Result<String, Error> {
        Ok(self.target()?.config.default_namespace)
    }

    fn target(&self) -> Result<Target, Error> {
        Target::load(self.kubeconfig.as_deref(), self.context.as_deref(), &self.env)
    }

    /// Sends a request and returns the answer, whatever its status but 401 and 403.
    ///
    /// # Errors
    /// When there is no usable kubeconfig, the server can't be reached in time, or it refuses these credentials.
    pub fn ask(&self, request: KubeRequest) -> Result<KubeAnswer, Error> {
        let request = KubeRequest { kubeconfig: self.kubeconfig.clone(), context: self.context.clone(), ..request };
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).ask(&request, &self.env)
    }

    /// Tells `told` each line of what a path streams, until the stream ends or breaks off, which is told last.
    ///
    /// # Errors
    /// As [`ApiServer::ask`], as far as no request is needed to find it out.
    pub fn follow(&self, path: String, told: Box<dyn Fn(Streamed) + Send + Sync>) -> Result<(), Error> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let (handle, client) = match &mut *streams {
            Some(streams) => streams,
            none @ None => none.insert(self.streaming()?),
        };
        let client = client.clone();
        handle.spawn(async move {
            let end = stream(&client, &path, &*told).await;
            told(Streamed::End(end));
        });
        Ok(())
    }

    /// Starts the thread on which streams are read.
    fn streaming(&self) -> Result<(Handle, Client), Error> {
        let mut target = self.target()?;
        target.config.read_timeout = Some(SILENCE);
        let runtime = runtime()?;
        let client = client_of(&target, &runtime, CREDENTIALS_LIMIT)?;
        let handle = runtime.handle().clone();
        thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        Ok((handle, client))
    }
}

fn runtime() -> Result<Runtime, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::new(ErrorKind::Host, format!("start the Kubernetes client: {error}")))
}

async fn stream(client: &Client, path: &str, told: &(dyn Fn(Streamed) + Send + Sync)) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let request = http::Request::builder()
        .uri(path)
        .header(USER_AGENT, concat!("kubeon-run/", env!("CARGO_PKG_VERSION")))
        .body(Body::empty())
        .map_err(|error| failed(&error))?;
    let response = client.send(request).await.map_err(|error| failed(&error))?;
    let status = response.status();
    let mut body = response.into_body();
    let mut rest: Vec<u8> = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| failed(&error))?;
        let Ok(bytes) = frame.into_data() else { continue };
        rest.extend_from_slice(&bytes);
        if !status.is_success() {
            if rest.len() > REFUSAL_LIMIT {
                break;
            }
            continue;
        }
        let Some(last) = rest.iter().rposition(|byte| *byte == b'\n') else {
            if rest.len() > LINE_LIMIT {
                return Err(format!("a line of more than {LINE_LIMIT} bytes"));
            }
            continue;
        };
        for line in rest[..last].split(|byte| *byte == b'\n') {
            told(Streamed::Line(String::from_utf8_lossy(line).into_owned()));
        }
        rest.drain(..=last);
    }
    let rest = String::from_utf8_lossy(&rest).into_owned();
    if !status.is_success() {
        return Err(format!("{status}: {}", rest.trim()));
    }
    if !rest.is_empty() {
        told(Streamed::Line(rest));
    }
    Ok(())
}
