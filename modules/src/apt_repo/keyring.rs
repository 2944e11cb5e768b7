//! The file with the repository's key: whether it will do, and where the key comes from when it won't.

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::apt_repo::Site;
use crate::apt_repo::key::{self, Certificate};
use crate::{Change, Error, ErrorKind, Plan, Probe, Write};

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

impl Site<'_> {
    /// Sees to the key's file; returns the key.
    pub(super) fn keyring(&self, plan: &mut Plan) -> Result<Certificate, Error> {
        let path = self.args.keyring();
        let now_s = self.host.started_s() as i64;
        let usable = |certificate: &Certificate| {
            !certificate.revoked && certificate.expires_s.is_none_or(|expires_s| expires_s > now_s)
        };
        let there = self.host.read(&path)?.and_then(|bytes| key::certificates(&bytes).ok()).unwrap_or_default();
        let there = there.into_iter().find(|found| found.fingerprint == self.args.pinned() && usable(found));
        let mode = self.host.stat(&path)?.map(|stat| stat.mode);
        let certificate = match there {
            Some(certificate) => {
                if mode.is_some_and(|mode| mode & 0o444 != 0o444) {
                    plan.changes.push(Change::Chmod { path, mode: 0o644 });
                }
                certificate
            }
            None => {
                let (bytes, origin) = self.key()?;
                let certificate = self.pinned(&bytes, &origin)?;
                if !usable(&certificate) {
                    let state = match certificate.expires_s {
                        Some(expires_s) if !certificate.revoked => format!("expired on {}", date(expires_s)),
                        Some(_) | None => "was revoked by its owner".to_owned(),
                    };
                    let message = format!("the key from {origin} {state}: get the current one, or set this host's clock");
                    return Err(Error::new(ErrorKind::Refused, message));
                }
                let (folder, _) = path.rsplit_once('/').unwrap_or_default();
                if self.host.stat(folder)?.is_none() {
                    plan.changes.push(Change::Mkdir { path: folder.to_owned(), mode: Some(0o755) });
                }
                let write = Write { mode: Some(0o644), ..Write::new(path, certificate.bytes.clone()) };
                plan.changes.push(Change::Write(write));
                certificate
            }
        };
        if let Some(expires_s) = certificate.expires_s.filter(|&expires_s| expires_s < now_s + SOON_S) {
            plan.warnings.push(format!("the key {} expires on {}", certificate.fingerprint, date(expires_s)));
        }
        Ok(certificate)
    }

    /// Returns the key's bytes as they come, and where they come from.
    fn key(&self) -> Result<(Vec<u8>, String), Error> {
        if let Some(content) = &self.args.key {
            return Ok((self.host.content(content)?, "`key`".to_owned()));
        }
        if let Some(path) = &self.args.key_file {
            let bytes = self.host.read(path)?;
            let missing = || Error::new(ErrorKind::Host, format!("`key_file`: there is no `{path}` on this host"));
            return Ok((bytes.ok_or_else(missing)?, format!("`{path}`")));
        }
        let folder = self.args.uri.split_inclusive("/libnvidia-container/").next().filter(|head| *head != self.args.uri);
        let url = self.args.key_url.clone().or_else(|| folder.map(|folder| format!("{folder}gpgkey")));
        let url = url.ok_or_else(|| {
            Error::new(ErrorKind::Arguments, "give the repository's key with `key`, `key_file` or `key_url`")
        })?;
        let probe = Probe {
            files: vec![("mark".into(), Vec::new())],
            timeout_s: Some(200),
            ..Probe::of(&["sh", "-c", FETCH, "fetch", &url, "{scratch}"])
        };
        let output = self.host.probe(&probe)?;
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
    fn pinned(&self, bytes: &[u8], origin: &str) -> Result<Certificate, Error> {
        let refused = |message: String| Error::new(ErrorKind::Refused, message);
        let bytes = key::dearmored(bytes).map_err(|error| refused(format!("the key from {origin} {error}")))?;
        let found = key::certificates(&bytes).map_err(|error| refused(format!("the key from {origin} {error}")))?;
        let fingerprints: Vec<String> = found.iter().map(|certificate| certificate.fingerprint.clone()).collect();
        found.into_iter().find(|certificate| certificate.fingerprint == self.args.pinned()).ok_or_else(|| {
            refused(format!(
                "the key from {origin} is {}, not {}: somebody else's key, or a new one whose fingerprint you must check",
                fingerprints.join(", "),
                self.args.pinned()
            ))
        })
    }
}

/// Returns a day as `YYYY-MM-DD`, in UTC. Source: Howard Hinnant's `civil_from_days`.
pub(super) fn date(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    format!("{:04}-{month:02}-{day:02}", year_of_era + era * 400 + i64::from(month <= 2))
}
