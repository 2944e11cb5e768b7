use schemars::JsonSchema;

use crate::ask::{bad, run};
use crate::decode::Arguments;
use crate::repository_key::openpgp::{Certificate, certificates, dearmored};
use crate::shared::{State, yes};
use crate::transfer::plain;
use crate::{Change, Content, Error, ErrorKind, Exec, Host, Module, Plan};

/// Keep a key with which packages are signed in rpm's database.
///
/// ```yaml
/// - rpm_key:
///     key: https://pkgs.k8s.io/core:/stable:/v1.34/rpm/repodata/repomd.xml.key
///     fingerprint: DE15B14486CD377B9E876E1A234654DA9A296436
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Where the key is: a URL, a file of the host, or for `absent` also the key's ID.
    key: String,
    #[serde(default)]
    state: State,
    /// The fingerprints of which the key must have one.
    #[serde(default)]
    fingerprint: Vec<String>,
    /// Whether the server must prove who it is.
    #[serde(default = "yes")]
    validate_certs: bool,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let short = self.key.trim_start_matches("0x");
        let is_id = short.len() >= 8 && short.len() <= 40 && short.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_id && !self.key.contains('/') {
            if self.state == State::Present {
                return Err(bad(format!("`{}` is a key's ID: give the key's URL or file", self.key)));
            }
            return Ok(removals(host, &[short.to_ascii_lowercase()])?.into());
        }
        let bytes = if self.key.contains("://") {
            plain(&self.key, &Default::default(), self.validate_certs).bytes(host)?
        } else {
            let missing = || Error::new(ErrorKind::Host, format!("there is no file `{}` on this host", self.key));
            host.read(&self.key)?.ok_or_else(missing)?
        };
        let wrong = |what: String| Error::new(ErrorKind::Host, format!("the key from `{}` {what}", self.key));
        let found: Vec<Certificate> = dearmored(&bytes).and_then(|plain| certificates(&plain)).map_err(wrong)?;
        let plain = |text: &str| text.replace([' ', ':'], "").to_ascii_uppercase();
        if !self.fingerprint.is_empty() {
            let listed = |key: &Certificate| self.fingerprint.iter().any(|other| plain(other) == key.fingerprint);
            if let Some(key) = found.iter().find(|key| !listed(key)) {
                let message = format!("has the fingerprint {}, which is none of `fingerprint`", key.fingerprint);
                return Err(wrong(message));
            }
        }
        let ids: Vec<String> = found.iter().map(|key| key.fingerprint.to_ascii_lowercase()).collect();
        if ids.is_empty() {
            return Err(wrong("holds no key".to_owned()));
        }
        if self.state == State::Absent {
            return Ok(removals(host, &ids)?.into());
        }
        let there = installed(host)?;
        if ids.iter().all(|id| there.iter().any(|key| is_of(key, id))) {
            return Ok(Plan::default());
        }
        let import = Exec::of(&["rpm", "--import", "{scratch}/key"]);
        Ok(vec![Change::Exec(Exec { files: vec![("key".to_owned(), Content::Inline(bytes))], ..import })].into())
    }
}

/// Returns version and release of each key in rpm's database.
fn installed(host: &dyn Host) -> Result<Vec<String>, Error> {
    let output = run(host, &["rpm", "-q", "--qf", "%{VERSION}-%{RELEASE}\\n", "gpg-pubkey"])?;
    // Without any key it says so and fails.
    Ok(if output.success() { output.stdout.lines().map(str::to_owned).collect() } else { Vec::new() })
}

/// Whether an entry of the database is the key of this ID: newer versions of rpm know keys by the whole fingerprint,
/// older ones by its last eight digits.
fn is_of(entry: &str, id: &str) -> bool {
    let version = entry.split('-').next().unwrap_or(entry);
    id.ends_with(version) || version.ends_with(id)
}

fn removals(host: &dyn Host, ids: &[String]) -> Result<Vec<Change>, Error> {
    let all = installed(host)?;
    Ok(all.iter().filter(|key| ids.iter().any(|id| is_of(key, id))).map(|key| removal(key)).collect())
}

/// Returns the entry of rpm's database that is the key of this ID, in lowercase digits.
///
/// # Errors
/// [`ErrorKind::Host`] where there is no rpm.
pub(crate) fn entry_of(host: &dyn Host, id: &str) -> Result<Option<String>, Error> {
    Ok(installed(host)?.into_iter().find(|entry| is_of(entry, id)))
}

/// Takes an entry out of rpm's database.
pub(crate) fn removal(entry: &str) -> Change {
    Change::Exec(Exec::of(&["rpm", "--erase", "--allmatches", &format!("gpg-pubkey-{entry}")]))
}
