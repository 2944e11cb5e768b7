//! Arguments that several modules have, each written once. A module takes a block as a field
//!
//!     #[serde(rename = "+owner")]
//!     #[schemars(flatten)]
//!     owner: Owner,
//!
//! whose name for serde begins with `+`: it takes its own fields from the module's mapping.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::attributes::Wanted;
use crate::decode::Arguments;
use crate::invocation::Invocation;
use crate::rewrite::Rewrite;
use crate::transfer::{AGENT, Transfer};
use crate::{Error, Host, Mode};

/// The default of what is on unless it is turned off.
pub(crate) fn yes() -> bool {
    true
}

/// How long another package manager is waited for, in seconds.
pub(crate) fn two_minutes() -> u64 {
    120
}

/// The package that brings NVIDIA's container runtime.
pub(crate) fn toolkit() -> String {
    "nvidia-container-toolkit".to_owned()
}

pub(crate) fn toolkit_list() -> Vec<String> {
    vec![toolkit()]
}

/// Whether something is to be there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum State {
    #[default]
    Present,
    Absent,
}

/// Who a file belongs to, and who may do what with it.
#[derive(Debug, Default, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Owner {
    /// Permission bits such as "0644", or clauses such as `u=rw,g=r`.
    pub mode: Option<Mode>,
    /// The owner's name or number.
    owner: Option<String>,
    /// The group's name or number.
    group: Option<String>,
}

impl Owner {
    /// # Errors
    /// [`crate::ErrorKind::Host`] naming a user or group that the host does not know.
    pub fn wanted(&self, host: &dyn Host) -> Result<Wanted, Error> {
        Wanted::new(host, self.mode.as_ref(), self.owner.as_deref(), self.group.as_deref())
    }
}

/// How a file's new text is put in place.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// Keep what was there beside it, with the time in its name.
    #[serde(default)]
    pub backup: bool,
    /// A command that must accept the new content before it is put in place; `%s` stands for a file that holds it.
    validate: Option<String>,
    /// Write into the file where it can't be replaced, such as one that is mounted by itself.
    #[serde(default)]
    unsafe_writes: bool,
}

impl Edit {
    pub fn rewrite<'a>(&'a self, wanted: &'a Wanted) -> Rewrite<'a> {
        let Edit { backup, validate, unsafe_writes } = self;
        let validate = validate.as_deref();
        Rewrite { wanted, backup: *backup, validate, in_place: *unsafe_writes, replace_link: false }
    }
}

/// When a command runs, and where.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct When {
    /// Run it in this folder.
    chdir: Option<String>,
    /// Do not run it when this path exists; `*`, `?` and `[…]` match names.
    creates: Option<String>,
    /// Run it only when this path exists; `*`, `?` and `[…]` match names.
    removes: Option<String>,
}

impl When {
    pub fn invocation(&self) -> Invocation<'_> {
        Invocation {
            chdir: self.chdir.as_deref(),
            creates: self.creates.as_deref(),
            removes: self.removes.as_deref(),
            ..Invocation::default()
        }
    }
}

/// What a user's command reads, and how its output is returned.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Streams {
    /// What the command reads as its standard input.
    stdin: Option<String>,
    /// End `stdin` with a newline.
    #[serde(default = "yes")]
    stdin_add_newline: bool,
    /// Take the empty lines off the end of the output.
    #[serde(default = "yes")]
    pub strip_empty_ends: bool,
}

impl Streams {
    pub fn of<'a>(&'a self, invocation: Invocation<'a>) -> Invocation<'a> {
        Invocation { stdin: self.stdin.as_deref(), stdin_add_newline: self.stdin_add_newline, ..invocation }
    }
}

/// How a web server is spoken to.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Http {
    /// The user's name for the server.
    #[serde(alias = "user", alias = "username")]
    url_username: Option<String>,
    /// The user's password for the server.
    #[serde(alias = "password")]
    url_password: Option<String>,
    /// Accepted: name and password are always sent at once.
    #[serde(default)]
    #[expect(dead_code, reason = "curl and wget send them at once anyway")]
    force_basic_auth: bool,
    /// How to name the program to the server.
    #[serde(default = "agent")]
    http_agent: String,
    /// Whether the server must prove who it is.
    #[serde(default = "yes")]
    validate_certs: bool,
    /// Whether the host's proxy settings are used.
    #[serde(default = "yes")]
    use_proxy: bool,
    /// Whether `~/.netrc` may give name and password.
    #[serde(default = "yes")]
    use_netrc: bool,
    /// A file of the host with the certificates of authorities to trust.
    ca_path: Option<String>,
    /// A file of the host with a certificate to show.
    client_cert: Option<String>,
    /// A file of the host with the key of `client_cert`.
    client_key: Option<String>,
}

impl Http {
    /// Returns a request that follows redirections.
    pub fn transfer<'a>(&'a self, url: &'a str, headers: &'a BTreeMap<String, String>, timeout_s: u64) -> Transfer<'a> {
        Transfer {
            url,
            headers,
            user: self.url_username.as_deref(),
            password: self.url_password.as_deref(),
            agent: &self.http_agent,
            timeout_s,
            follow_redirects: true,
            validate_certs: self.validate_certs,
            use_proxy: self.use_proxy,
            use_netrc: self.use_netrc,
            ca_path: self.ca_path.as_deref(),
            client_cert: self.client_cert.as_deref(),
            client_key: self.client_key.as_deref(),
        }
    }
}

fn agent() -> String {
    AGENT.to_owned()
}
