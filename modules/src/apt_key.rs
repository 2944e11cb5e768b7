use schemars::JsonSchema;

use crate::ask::bad;
use crate::decode::Arguments;
use crate::repository_key::openpgp::{Certificate, certificates, dearmored};
use crate::shared::{State, yes};
use crate::transfer::plain;
use crate::{Change, Error, ErrorKind, Host, Module, Plan, Write, paths};

const FOLDER: &str = "/etc/apt/trusted.gpg.d";
const FILE: &str = "/etc/apt/trusted.gpg";

/// Keep a key that apt trusts.
///
/// ```yaml
/// - apt_key:
///     id: 9DC858229FC7DD38854AE2D88D81803C0EBFCD88
///     url: https://download.docker.com/linux/debian/gpg
///     keyring: /etc/apt/keyrings/docker.gpg
/// ```
///
/// Without a `keyring` the key is trusted for every repository; `deb822_repository` takes one for its own.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The key's ID or fingerprint: 8 hexadecimal digits at least.
    id: Option<String>,
    /// The key itself.
    data: Option<String>,
    /// A file of the host that holds the key.
    file: Option<String>,
    /// Where the host fetches the key.
    url: Option<String>,
    /// A server of keys, which is asked for `id`.
    keyserver: Option<String>,
    /// The file with keys to put it into; one of its own in `/etc/apt/trusted.gpg.d` when absent.
    keyring: Option<String>,
    #[serde(default)]
    state: State,
    /// Whether the server must prove who it is.
    #[serde(default = "yes")]
    validate_certs: bool,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let sources = [&self.data, &self.file, &self.url, &self.keyserver];
        if sources.iter().filter(|source| source.is_some()).count() > 1 {
            return Err(bad("give one of `data`, `file`, `url` and `keyserver`"));
        }
        let id = self.id.as_deref().map(digits).transpose()?;
        let files = self.files(host)?;
        let mut there = Vec::new();
        for path in &files {
            let bytes = host.read(path)?.unwrap_or_default();
            let read = dearmored(&bytes).and_then(|plain| certificates(&plain));
            match read {
                Ok(found) => there.push((path.as_str(), found)),
                Err(_) if bytes.is_empty() => {}
                // What apt reads there and this does not is not written over.
                Err(why) if Some(path) == self.keyring.as_ref() => {
                    return Err(Error::new(ErrorKind::Refused, format!("`{path}` {why}")));
                }
                Err(_) => {}
            }
        }
        let known = |id: &str| there.iter().any(|(_, found)| found.iter().any(|key| key.fingerprint.ends_with(id)));
        let told = |plan: Plan, id: &str| {
            let short = &id[id.len().saturating_sub(8)..];
            plan.with("key_id", id).with("short_id", short).with("fp", id)
        };
        match self.state {
            State::Absent => {
                let id = id.ok_or_else(|| bad("`state: absent` needs the key's `id`"))?;
                Ok(told(removals(&there, &id).into(), &id))
            }
            State::Present => {
                if let Some(id) = id.as_deref().filter(|id| known(id)) {
                    return Ok(told(Plan::default(), id));
                }
                let keys = self.keys(host, id.as_deref())?;
                if let Some(id) = id.as_deref().filter(|id| !keys.iter().any(|key| key.fingerprint.ends_with(*id))) {
                    let found: Vec<&str> = keys.iter().map(|key| key.fingerprint.as_str()).collect();
                    let message = format!("the key `{id}` is not there, but `{}`", found.join("`, `"));
                    return Err(Error::new(ErrorKind::Host, message));
                }
                let new: Vec<&Certificate> = keys.iter().filter(|key| !known(&key.fingerprint)).collect();
                let id = id.unwrap_or_else(|| keys[0].fingerprint.clone());
                let mut changes = Vec::new();
                if !new.is_empty() {
                    let path = self.keyring.clone().unwrap_or_else(|| format!("{FOLDER}/{}.gpg", new[0].fingerprint));
                    let old = there.iter().filter(|(other, _)| *other == path).flat_map(|(_, found)| found);
                    let bytes: Vec<u8> = old.chain(new).flat_map(|key| key.bytes.iter().copied()).collect();
                    for parent in crate::attributes::missing_parents(host, &path)? {
                        changes.push(Change::Mkdir { path: parent, mode: Some(0o755) });
                    }
                    changes.push(Change::Write(Write { mode: Some(0o644), ..Write::new(path, bytes) }));
                }
                Ok(told(changes.into(), &id))
            }
        }
    }
}

fn removals(there: &[(&str, Vec<Certificate>)], id: &str) -> Vec<Change> {
    let mut changes = Vec::new();
    for (path, found) in there {
        let kept: Vec<&Certificate> = found.iter().filter(|key| !key.fingerprint.ends_with(id)).collect();
        if kept.len() == found.len() {
            continue;
        }
        let bytes: Vec<u8> = kept.iter().flat_map(|key| key.bytes.iter().copied()).collect();
        changes.push(match kept.is_empty() {
            true => Change::Remove { path: (*path).to_owned() },
            false => Change::Write(Write::new(*path, bytes)),
        });
    }
    changes
}

/// Returns an ID without blanks and `0x`, in capitals.
fn digits(id: &str) -> Result<String, Error> {
    let plain = id.replace(' ', "").to_ascii_uppercase();
    let plain = plain.strip_prefix("0X").unwrap_or(&plain);
    if plain.len() < 8 || plain.len() > 40 || !plain.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(bad(format!("`id: {id}` is no key's ID: expected 8 to 40 hexadecimal digits")));
    }
    Ok(plain.to_owned())
}

impl Args {
    /// Returns the files that hold the keys.
    fn files(&self, host: &dyn Host) -> Result<Vec<String>, Error> {
        if let Some(keyring) = &self.keyring {
            return Ok(vec![keyring.clone()]);
        }
        let names = host.list(FOLDER)?.unwrap_or_default();
        let keys = names.iter().filter(|name| name.ends_with(".gpg") || name.ends_with(".asc"));
        Ok([FILE.to_owned()].into_iter().chain(keys.map(|name| paths::join(FOLDER, name))).collect())
    }

    /// Returns the keys from where the arguments say they are.
    fn keys(&self, host: &dyn Host, id: Option<&str>) -> Result<Vec<Certificate>, Error> {
        let headers = Default::default();
        let (bytes, origin) = if let Some(data) = &self.data {
            (data.clone().into_bytes(), "`data`".to_owned())
        } else if let Some(path) = &self.file {
            let missing = || Error::new(ErrorKind::Host, format!("there is no file `{path}` on this host"));
            (host.read(path)?.ok_or_else(missing)?, format!("`{path}`"))
        } else if let Some(url) = &self.url {
            (plain(url, &headers, self.validate_certs).bytes(host)?, format!("`{url}`"))
        } else if let (Some(server), Some(id)) = (&self.keyserver, id) {
            let url = format!("{}/pks/lookup?op=get&options=mr&search=0x{id}", address(server));
            (plain(&url, &headers, self.validate_certs).bytes(host)?, format!("`{server}`"))
        } else {
            return Err(bad("where is the key? give `data`, `file`, `url`, or `keyserver` with `id`"));
        };
        let wrong = |why: String| Error::new(ErrorKind::Host, format!("the key from {origin} {why}"));
        let keys = dearmored(&bytes).and_then(|plain| certificates(&plain)).map_err(wrong)?;
        if keys.is_empty() { Err(wrong("is none".to_owned())) } else { Ok(keys) }
    }
}

/// Returns where a server of keys is spoken to over HTTP.
fn address(server: &str) -> String {
    match server.split_once("://") {
        Some(("hkps", host)) => format!("https://{host}"),
        Some(("hkp", host)) if !host.contains(':') => format!("http://{host}:11371"),
        Some(("hkp", host)) => format!("http://{host}"),
        Some(_) => server.to_owned(),
        None => format!("https://{server}"),
    }
}
