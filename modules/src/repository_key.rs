//! Keys that sign repositories: which one a repository's must be, where it comes from, and the file it is put into.

pub(crate) mod openpgp;

use base64::{Engine, engine::general_purpose::STANDARD};

use self::openpgp::Certificate;
use crate::attributes::missing_parents;
use crate::{Change, Content, Error, ErrorKind, Host, Plan, Probe, Write};

/// A key that expires within this time is warned of.
const SOON_S: i64 = 30 * 86_400;

/// Fetches `$1` into the folder `$2` and prints it in base64, since a key may be binary. What apt itself fetches with
/// is everywhere, and knows of a proxy that only apt is told of.
const FETCH: &str = r#"fetch() {
    "$@" >"$folder/said" 2>&1 && [ -s "$folder/key" ] && { base64 <"$folder/key"; exit 0; }
    cat "$folder/said" >&2
}
folder=$2
command -v curl >/dev/null 2>&1 && fetch curl -fsSL --retry 2 --connect-timeout 20 --max-time 60 -o "$folder/key" -- "$1"
command -v wget >/dev/null 2>&1 && fetch wget -q -T 20 -O "$folder/key" -- "$1"
[ -x /usr/lib/apt/apt-helper ] && fetch /usr/lib/apt/apt-helper -o Acquire::http::Timeout=20 download-file "$1" "$folder/key"
exit 22"#;

/// The primary key that signs NVIDIA's repositories of the container toolkit.
pub(crate) fn nvidias_key() -> String {
    "C95B321B61E88C1809C4F759DDCAE044F796ECB0".to_owned()
}

/// Parts of the addresses that NVIDIA has and had, and of the names of files that name them or a mirror of them.
const NVIDIAS: [&str; 4] =
    ["nvidia-container-toolkit", "libnvidia-container", "nvidia-docker", "nvidia-container-runtime"];

/// Whether an address, or a file's name, is that of a repository of NVIDIA's.
pub(crate) fn is_nvidias(text: &str) -> bool {
    NVIDIAS.iter().any(|part| text.contains(part))
}

/// Returns why the keys that a file holds verify nothing.
pub(crate) fn fault(host: &dyn Host, path: &str, bytes: &[u8]) -> Option<String> {
    let found = match openpgp::dearmored(bytes).and_then(|bytes| openpgp::certificates(&bytes)) {
        Err(error) => return Some(format!("`{path}` {error}")),
        Ok(found) if found.is_empty() => return Some(format!("`{path}` holds no key")),
        Ok(found) => found,
    };
    let now_s = host.started_s() as i64;
    let over = |certificate: &Certificate| certificate.expires_s.is_some_and(|expires_s| expires_s <= now_s);
    let when = found.iter().filter_map(|certificate| certificate.expires_s).max().map(date).unwrap_or_default();
    found.iter().all(over).then(|| format!("the key in `{path}` expired on {when}"))
}

/// Writes a key's file where every user can read it.
pub(crate) fn write_key(host: &dyn Host, path: &str, bytes: Vec<u8>, plan: &mut Plan) -> Result<(), Error> {
    let parents = missing_parents(host, path)?;
    plan.changes.extend(parents.into_iter().map(|path| Change::Mkdir { path, mode: Some(0o755) }));
    plan.changes.push(Change::Write(Write { mode: Some(0o644), ..Write::new(path, bytes) }));
    Ok(())
}

/// Returns a warning of a key that expires before long.
pub(crate) fn expires_soon(host: &dyn Host, certificate: &Certificate) -> Option<String> {
    let expires_s = certificate.expires_s.filter(|&expires_s| expires_s < host.started_s() as i64 + SOON_S)?;
    Some(format!("the key {} expires on {}", certificate.fingerprint, date(expires_s)))
}

/// Where a repository's key comes from, and which one it must be.
pub(crate) struct Origin<'a> {
    pub key: Option<&'a Content>,
    pub key_file: Option<&'a str>,
    pub key_url: Option<&'a str>,
    /// The repository's address.
    pub uri: &'a str,
    /// The primary key's fingerprint: 40 hexadecimal digits in uppercase.
    pub pinned: &'a str,
    /// Variables under which it is fetched, such as a proxy that only the package manager is told of.
    pub env: Vec<(String, String)>,
}

impl Origin<'_> {
    /// Returns the key, out of those that are there where one of them will do, and whether it is there.
    pub(crate) fn certificate(&self, host: &dyn Host, there: Vec<Certificate>) -> Result<(Certificate, bool), Error> {
        let now_s = host.started_s() as i64;
        let usable = |certificate: &Certificate| {
            !certificate.revoked && certificate.expires_s.is_none_or(|expires_s| expires_s > now_s)
        };
        if let Some(found) = there.into_iter().find(|found| found.fingerprint == self.pinned && usable(found)) {
            return Ok((found, true));
        }
        let (bytes, origin) = self.bytes(host)?;
        let certificate = self.only(&bytes, &origin)?;
        if !usable(&certificate) {
            let state = match certificate.expires_s {
                Some(expires_s) if !certificate.revoked => format!("expired on {}", date(expires_s)),
                Some(_) | None => "was revoked by its owner".to_owned(),
            };
            let message = format!("the key from {origin} {state}: get the current one, or set this host's clock");
            return Err(Error::new(ErrorKind::Refused, message));
        }
        Ok((certificate, false))
    }

    /// Returns the key's bytes as they come, and where they come from.
    fn bytes(&self, host: &dyn Host) -> Result<(Vec<u8>, String), Error> {
        if let Some(content) = self.key {
            return Ok((host.content(content)?, "`key`".to_owned()));
        }
        if let Some(path) = self.key_file {
            let missing = || Error::new(ErrorKind::Host, format!("`key_file`: there is no `{path}` on this host"));
            return Ok((host.read(path)?.ok_or_else(missing)?, format!("`{path}`")));
        }
        let folder = self.uri.split_inclusive("/libnvidia-container/").next().filter(|head| *head != self.uri);
        let url = self.key_url.map(str::to_owned).or_else(|| folder.map(|folder| format!("{folder}gpgkey")));
        let url = url.ok_or_else(|| {
            Error::new(ErrorKind::Arguments, "give the repository's key with `key`, `key_file` or `key_url`")
        })?;
        let probe = Probe {
            files: vec![("mark".into(), Vec::new())],
            timeout_s: Some(200),
            env: self.env.clone(),
            ..Probe::of(&["sh", "-c", FETCH, "fetch", &url, "{scratch}"])
        };
        let output = host.probe(&probe)?;
        if !output.success() {
            let said: Vec<&str> = output.stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            let advice = "give the key itself with `key` where this host can't reach it";
            let said = said.join("; ");
            return Err(Error::new(ErrorKind::Failed, format!("fetch the key from `{url}`: {said}\n{advice}")));
        }
        let digits: String = output.stdout.split_whitespace().collect();
        let bytes = STANDARD.decode(digits).map_err(|error| {
            Error::new(ErrorKind::Failed, format!("fetch the key from `{url}`: it arrived damaged: {error}"))
        })?;
        Ok((bytes, format!("`{url}`")))
    }

    /// Returns the key of the pinned fingerprint, and it alone.
    fn only(&self, bytes: &[u8], origin: &str) -> Result<Certificate, Error> {
        let refused = |message: String| Error::new(ErrorKind::Refused, message);
        let bytes = openpgp::dearmored(bytes).map_err(|error| refused(format!("the key from {origin} {error}")))?;
        let found = openpgp::certificates(&bytes).map_err(|error| refused(format!("the key from {origin} {error}")))?;
        let fingerprints: Vec<String> = found.iter().map(|certificate| certificate.fingerprint.clone()).collect();
        found.into_iter().find(|certificate| certificate.fingerprint == self.pinned).ok_or_else(|| {
            refused(format!(
                "the key from {origin} is {}, not {}: somebody else's key, or a new one whose fingerprint you must check",
                fingerprints.join(", "),
                self.pinned
            ))
        })
    }
}

/// Returns a day as `YYYY-MM-DD`, in UTC. Source: Howard Hinnant's `civil_from_days`.
pub(crate) fn date(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let (day, month) =
        (day_of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    format!("{:04}-{month:02}-{day:02}", year_of_era + era * 400 + i64::from(month <= 2))
}
