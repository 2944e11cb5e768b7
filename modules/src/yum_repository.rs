use schemars::JsonSchema;
use serde_json::Value;

use crate::ask::bad;
use crate::decode::Arguments;
use crate::ini::{joined, lines_of, section_of};
use crate::order::sort;
use crate::passed::table;
use crate::rewrite::{Edited, Rewrite};
use crate::shared::{Owner, State};
use crate::{Change, Error, ErrorKind, Host, Module, Plan, paths};

/// Keep a repository of dnf or yum.
///
/// ```yaml
/// - yum_repository:
///     name: kubernetes
///     description: Kubernetes
///     baseurl: https://pkgs.k8s.io/core:/stable:/v1.34/rpm/
///     gpgcheck: true
///     gpgkey: https://pkgs.k8s.io/core:/stable:/v1.34/rpm/repodata/repomd.xml.key
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The repository's ID: the section's name.
    name: String,
    /// What people call it.
    description: Option<String>,
    #[serde(default)]
    state: State,
    /// The file's name without its ending; that of the repository when absent.
    file: Option<String>,
    /// The folder of the file.
    #[serde(default = "usual_folder")]
    reposdir: String,
    #[serde(rename = "+options")]
    #[schemars(flatten)]
    options: Options,
    /// Write into the file where it can't be replaced, such as one that is mounted by itself.
    #[serde(default)]
    unsafe_writes: bool,
    #[serde(rename = "+owner")]
    #[schemars(flatten)]
    owner: Owner,
}

table! {
    pub(super) struct Options {
        /// The addresses of the folder that holds `repodata`.
        baseurl: List,
        /// The address of a list of mirrors, a line each.
        mirrorlist: Text,
        /// The address of a list of mirrors in Metalink's format.
        metalink: Text,
        /// Whether it is used.
        enabled: Flag,
        /// Whether packages must be signed.
        gpgcheck: Flag,
        /// Whether the repository's index must be signed.
        repo_gpgcheck: Flag,
        /// The addresses of the keys.
        gpgkey: List,
        /// The address of the authority's key.
        gpgcakey: Text,
        /// Packages to leave alone.
        exclude | excludepkgs: List,
        /// The only packages to take.
        includepkgs: List,
        /// Further files to read.
        include: Text,
        /// Its rank; the lowest number comes first.
        priority: Text,
        /// Its cost compared with others.
        cost: Text,
        /// Whether modular packages hide others.
        module_hotfixes: Flag,
        /// How long the index stays good.
        metadata_expire: Text,
        /// Which commands may take a stale index.
        metadata_expire_filter: Text,
        /// How long the list of mirrors stays good.
        mirrorlist_expire: Text,
        /// Go on without it where it can't be reached.
        skip_if_unavailable: Flag,
        /// The proxy; `_none_` for none.
        proxy: Text,
        /// The user's name for the proxy.
        proxy_username: Text,
        /// The user's password for the proxy.
        proxy_password: Text,
        /// The user's name for the server.
        username: Text,
        /// The user's password for the server.
        password: Text,
        /// Whether the server must prove who it is.
        sslverify | validate_certs: Flag,
        /// A file with certificates of authorities to trust.
        sslcacert | ca_cert: Text,
        /// A file with a certificate to show.
        sslclientcert | client_cert: Text,
        /// A file with the key of the certificate.
        sslclientkey | client_key: Text,
        /// Whether it is checked who may read the files of the certificate.
        ssl_check_cert_permissions: Flag,
        /// The share of the line that a download may take.
        bandwidth: Text,
        /// The most bytes a second.
        throttle: Text,
        /// Seconds after which a connection is given up.
        timeout: Text,
        /// How often a download is tried again.
        retries: Text,
        /// Whether connections are kept for the next request.
        keepalive: Flag,
        /// Which caches on the way may answer.
        http_caching: Text,
        /// Which address family is used.
        ip_resolve: Text,
        /// How mirrors are chosen.
        failovermethod: Text,
        /// Whether groups of packages are used.
        enablegroups: Flag,
        /// The largest share of a package's size at which a difference is fetched in its place.
        deltarpm_percentage: Text,
        /// The share of the index above which differences are not used.
        deltarpm_metadata_percentage: Text,
        /// Whether its packages are kept from being replaced by those of others.
        protect: Flag,
        /// Variables that are shown after the repository's ID.
        ui_repoid_vars: Text,
        /// Whether the server is Amazon S3.
        s3_enabled: Flag,
        /// Whether downloads are kept: `0` or `1`.
        keepcache: Text,
        /// Whether downloads run side by side.
        async: Flag,
        /// Whether the country is told to servers.
        countme: Flag,
    }
}

fn usual_folder() -> String {
    "/etc/yum.repos.d".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let file = self.file.as_deref().unwrap_or(&self.name);
        if self.name.is_empty() || self.name.contains(['[', ']', '\n']) || file.contains('/') {
            return Err(bad(format!("`{}` is no repository's name", self.name)));
        }
        let has_address = ["baseurl", "mirrorlist", "metalink"].iter().any(|name| self.options.get(name).is_some());
        if self.state == State::Present && (!has_address || self.description.is_none()) {
            return Err(bad("`state: present` needs `description`, and `baseurl`, `mirrorlist` or `metalink`"));
        }
        if host.stat(&self.reposdir)?.is_none() {
            let message = format!("there is no `{}` on this host: does it have dnf or yum?", self.reposdir);
            return Err(Error::new(ErrorKind::Host, message));
        }
        let path = paths::join(&self.reposdir, &format!("{file}.repo"));
        let edited = Edited::read(host, &path)?;
        let old = edited.bytes.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let mut lines = lines_of(old.as_deref().unwrap_or_default());
        let wanted = if self.state == State::Present { self.lines() } else { Vec::new() };
        match section_of(&lines, Some(&self.name)) {
            Some((start, end)) => {
                let filled = lines[start..end].iter().rposition(|line| !line.trim().is_empty());
                let filled = filled.map_or(start, |at| start + at + 1);
                match self.state {
                    State::Present if said(&lines[start..filled]) == said(&wanted) => {}
                    State::Present => drop(lines.splice(start..filled, wanted)),
                    State::Absent => drop(lines.drain(start - 1..end)),
                }
            }
            None if self.state == State::Present => {
                if lines.last().is_some_and(|line| !line.is_empty()) {
                    lines.push(String::new());
                }
                lines.push(format!("[{}]", self.name));
                lines.extend(wanted);
            }
            None => {}
        }
        let state = if self.state == State::Present { "present" } else { "absent" };
        let told = |plan: Plan| plan.with("repo", self.name.as_str()).with("state", state);
        if self.state == State::Absent && lines.iter().all(|line| line.trim().is_empty()) {
            let gone = edited.bytes.as_ref().map(|_| Change::Remove { path: edited.path.clone() });
            return Ok(told(gone.into_iter().collect::<Vec<_>>().into()));
        }
        let wanted = self.owner.wanted(host)?;
        let new = joined(&lines);
        let same = old.as_deref().is_some_and(|old| lines_of(old) == lines);
        let new = if same { old.unwrap_or_default() } else { new };
        let in_place = self.unsafe_writes;
        let rewrite = Rewrite { wanted: &wanted, backup: false, validate: None, in_place, replace_link: false };
        let mut plan = edited.plan(host, new.into_bytes(), "", &rewrite)?;
        plan.result.remove("msg");
        Ok(told(plan))
    }
}

/// Returns what lines say, without regard to spaces around equals signs.
fn said(lines: &[String]) -> Vec<(String, String)> {
    let pair = |line: &String| match line.split_once('=') {
        Some((key, value)) => (key.trim().to_owned(), value.trim().to_owned()),
        None => (String::new(), line.trim().to_owned()),
    };
    lines.iter().filter(|line| !line.trim().is_empty()).map(pair).collect()
}

impl Args {
    fn lines(&self) -> Vec<String> {
        let mut pairs: Vec<(&str, String)> = Vec::new();
        for (name, value) in self.options.iter() {
            // One address below the other, as the programs read them.
            let separator = if matches!(name, "baseurl" | "gpgkey") { "\n\t" } else { " " };
            let text = match value {
                Value::Bool(value) => u8::from(*value).to_string(),
                Value::Array(_) => self.options.list(name).join(separator),
                Value::Null | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                    value.as_str().unwrap_or_default().to_owned()
                }
            };
            pairs.push((name, text));
        }
        pairs.extend(self.description.iter().map(|text| ("name", text.clone())));
        sort(&mut pairs);
        pairs.iter().flat_map(|(name, text)| lines_of(&format!("{name} = {text}"))).collect()
    }
}
