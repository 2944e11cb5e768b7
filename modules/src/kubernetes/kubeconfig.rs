//! Which API server to ask, and as whom: kubeconfig files, their contexts, or a pod's own service account.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Config;
use kube::config::{AuthInfo, Cluster, ExecAuthCluster, ExecInteractiveMode, Kubeconfig};

use super::environment::variable;
use super::proxy::proxy_of;
use crate::{Error, ErrorKind};

/// Where distributions keep their administrator's kubeconfig: a hint for who has none of their own.
const USUAL_FILES: [&str; 4] = [
    "/etc/kubernetes/admin.conf",
    "/etc/rancher/k3s/k3s.yaml",
    "/etc/rancher/rke2/rke2.yaml",
    "/var/lib/k0s/pki/admin.conf",
];
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// An API server, and what is said of it to people.
pub(super) struct Target {
    pub(super) config: Config,
    pub(super) server: String,
    /// ``context `admin` of `/etc/kubernetes/admin.conf` ``.
    pub(super) origin: String,
    /// The client's certificate as PEM, where it authenticates so.
    pub(super) certificate: Option<Vec<u8>>,
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Host, message)
}

impl Target {
    /// Finds the server as kubectl does: the given file, `$KUBECONFIG`, `~/.kube/config`, the pod's service account.
    pub(super) fn load(
        kubeconfig: Option<&str>,
        context: Option<&str>,
        env: &BTreeMap<String, String>,
    ) -> Result<Target, Error> {
        let home = variable(env, "HOME");
        let context = context.map(str::to_owned).or_else(|| variable(env, "K8S_AUTH_CONTEXT"));
        let given = kubeconfig
            .map(|path| vec![expanded(path, home.as_deref())])
            .or_else(|| variable(env, "K8S_AUTH_KUBECONFIG").map(|path| vec![expanded(&path, home.as_deref())]));
        if let Some(files) = given {
            return from_files(&files, context.as_deref(), env);
        }
        let files: Vec<PathBuf> = match (variable(env, "KUBECONFIG"), &home) {
            (Some(list), _) => list.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect(),
            (None, Some(home)) => vec![Path::new(home).join(".kube/config")],
            (None, None) => Vec::new(),
        };
        // As kubectl: files of the list that are not there are passed over.
        let there: Vec<PathBuf> = files.iter().filter(|path| path.exists()).cloned().collect();
        if !there.is_empty() {
            return from_files(&there, context.as_deref(), env);
        }
        if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
            return in_cluster();
        }
        let looked: Vec<String> = files.iter().map(|path| format!("`{}`", path.display())).collect();
        let hint = USUAL_FILES.iter().find(|path| Path::new(path).exists());
        Err(bad(format!(
            "no kubeconfig: {} not there, `KUBECONFIG` is {}; {}",
            if looked.is_empty() { "a home folder is".to_owned() } else { format!("{} is", looked.join(", ")) },
            if variable(env, "KUBECONFIG").is_some() { "set" } else { "not set" },
            match hint {
                Some(path) => format!("this machine has one: add `kubeconfig: {path}`"),
                None => "add `kubeconfig:` with its path on the machine where the task runs".to_owned(),
            }
        )))
    }
}

fn expanded(path: &str, home: Option<&str>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(home).join(rest),
        _ => PathBuf::from(path),
    }
}

fn in_cluster() -> Result<Target, Error> {
    let mut config =
        Config::incluster().map_err(|error| bad(format!("use the service account of this pod: {error}")))?;
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    Ok(Target {
        server: config.cluster_url.to_string(),
        config,
        origin: "the service account of this pod".into(),
        certificate: None,
    })
}

fn from_files(files: &[PathBuf], context: Option<&str>, env: &BTreeMap<String, String>) -> Result<Target, Error> {
    let names: Vec<String> = files.iter().map(|path| format!("`{}`", path.display())).collect();
    let names = names.join(", ");
    let mut merged = Kubeconfig::default();
    for file in files {
        let next =
            Kubeconfig::read_from(file).map_err(|error| bad(format!("kubeconfig `{}`: {error}", file.display())))?;
        merged = merged.merge(next).map_err(|error| bad(format!("kubeconfig {names}: {error}")))?;
    }
    let known = || {
        let known: Vec<String> = merged.contexts.iter().map(|context| format!("`{}`", context.name)).collect();
        if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) }
    };
    let name = match (context, merged.current_context.as_deref().filter(|name| !name.is_empty())) {
        (Some(name), _) | (None, Some(name)) => name,
        (None, None) if merged.contexts.is_empty() => {
            return Err(bad(format!("kubeconfig {names} holds no context: it names no cluster to talk to")));
        }
        (None, None) => {
            return Err(bad(format!(
                "kubeconfig {names} has no current context: add `context:` with one of its own, {}",
                known()
            )));
        }
    };
    let chosen = merged
        .contexts
        .iter()
        .find(|named| named.name == name)
        .and_then(|named| named.context.as_ref())
        .ok_or_else(|| bad(format!("kubeconfig {names} has no context `{name}`, {}", known())))?;
    let origin = format!("context `{name}` of {names}");
    let cluster = merged
        .clusters
        .iter()
        .find(|named| named.name == chosen.cluster)
        .and_then(|named| named.cluster.as_ref())
        .ok_or_else(|| bad(format!("{origin} names the cluster `{}`, which is not there", chosen.cluster)))?;
    let user = match chosen.user.as_deref().filter(|user| !user.is_empty()) {
        None => AuthInfo::default(),
        Some(user) => merged
            .auth_infos
            .iter()
            .find(|named| named.name == user)
            .and_then(|named| named.auth_info.clone())
            .ok_or_else(|| bad(format!("{origin} names the user `{user}`, who is not there")))?,
    };
    let mut target = target_of(cluster, user, &origin, env)?;
    if let Some(namespace) = chosen.namespace.as_deref().filter(|namespace| !namespace.is_empty()) {
        target.config.default_namespace = namespace.to_owned();
    }
    Ok(target)
}

fn target_of(
    cluster: &Cluster,
    mut user: AuthInfo,
    origin: &str,
    env: &BTreeMap<String, String>,
) -> Result<Target, Error> {
    let server = cluster.server.clone().ok_or_else(|| bad(format!("the cluster of {origin} has no `server`")))?;
    let url: http::Uri = server.parse().map_err(|error| bad(format!("`server: {server}` of {origin}: {error}")))?;
    if url.scheme().is_none() {
        return Err(bad(format!("`server: {server}` of {origin} has no scheme, such as `https://`")));
    }
    let mut config = Config::new(url.clone());
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or(false);
    config.tls_server_name = cluster.tls_server_name.clone();
    config.proxy_url = proxy_of(&url, cluster.proxy_url.as_deref(), env)?;
    let authority =
        data_or_file(cluster.certificate_authority_data.as_deref(), cluster.certificate_authority.as_deref())
            .map_err(|error| error.context(format!("the certificate authority of {origin}")))?;
    if let Some(pem) = authority {
        let certificates = certificates_of(&pem);
        if certificates.is_empty() {
            return Err(bad(format!("the certificate authority of {origin} holds no PEM certificate")));
        }
        config.root_cert = Some(certificates);
    }
    let certificate = data_or_file(user.client_certificate_data.as_deref(), user.client_certificate.as_deref())
        .map_err(|error| error.context(format!("the client certificate of {origin}")))?;
    if let Some(exec) = &mut user.exec {
        if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
            let command = exec.command.as_deref().unwrap_or("");
            return Err(bad(format!(
                "`{command}`, which {origin} runs for credentials, wants a terminal: log in with it before, or use \
                 another context"
            )));
        }
        // Its standard input would be this process's own, which carries the runner's requests.
        exec.interactive_mode = Some(ExecInteractiveMode::Never);
        if exec.provide_cluster_info {
            exec.cluster = Some(ExecAuthCluster::try_from(cluster).map_err(|error| bad(format!("{origin}: {error}")))?);
        }
        let own = exec.env.get_or_insert_default();
        let set: Vec<String> = own.iter().filter_map(|pair| pair.get("name").cloned()).collect();
        own.extend(env.iter().filter(|(name, _)| !set.contains(name)).map(|(name, value)| {
            HashMap::from([("name".to_owned(), name.clone()), ("value".to_owned(), value.clone())])
        }));
    }
    config.auth_info = user;
    Ok(Target { config, server, origin: origin.to_owned(), certificate })
}

fn data_or_file(data: Option<&str>, file: Option<&str>) -> Result<Option<Vec<u8>>, Error> {
    match (data.filter(|data| !data.is_empty()), file.filter(|file| !file.is_empty())) {
        (Some(data), _) => {
            let packed: String = data.split_whitespace().collect();
            STANDARD.decode(packed).map(Some).map_err(|error| bad(format!("its base64: {error}")))
        }
        (None, Some(file)) => std::fs::read(file).map(Some).map_err(|error| bad(format!("read `{file}`: {error}"))),
        (None, None) => Ok(None),
    }
}

/// Returns the certificates of a PEM text as DER.
pub(super) fn certificates_of(pem: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(pem);
    text.split("-----BEGIN CERTIFICATE-----")
        .skip(1)
        .filter_map(|rest| {
            let (body, _) = rest.split_once("-----END CERTIFICATE-----")?;
            STANDARD.decode(body.split_whitespace().collect::<String>()).ok()
        })
        .collect()
}
