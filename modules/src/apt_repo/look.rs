//! What apt knows of NVIDIA's repository as it is, for whoever only wants to know.

use crate::apt_repo::offer;
use crate::apt_repo::others::is_old;
use crate::apt_repo::sources::{FOLDER, Source};
use crate::gpu_facts::evidence::{Repository, Source as Seen};
use crate::repository_key::{fault, is_nvidias};
use crate::{Error, Host, Probe};

const PACKAGE: &str = "nvidia-container-toolkit";

/// Looks at the sources, their keys and the candidate. apt is asked, and nothing is fetched.
///
/// # Errors
/// Whatever reading the sources reports.
pub(crate) fn look(host: &dyn Host) -> Result<Repository, Error> {
    let mut seen = Repository::default();
    if host.stat("/etc/apt")?.is_none() {
        return Ok(seen);
    }
    "apt".clone_into(&mut seen.manager);
    for source in Source::all(host)? {
        let entries = source.entries();
        let name = source.path.rsplit('/').next().unwrap_or_default();
        let meant = source.path.starts_with(FOLDER) && is_nvidias(name);
        let ours = |uri: &&String| meant || is_nvidias(uri);
        let mut named = false;
        for entry in &entries {
            for uri in entry.uris.iter().filter(ours) {
                named = true;
                let signed_by = entry.signed_by.clone();
                let key_fault = match &signed_by {
                    Some(path) if path.starts_with('/') => key_fault(host, path)?,
                    Some(_) | None => None,
                };
                seen.sources.push(Seen {
                    path: source.path.clone(),
                    uri: uri.clone(),
                    signed_by,
                    key_fault,
                    old: is_old(uri),
                });
            }
        }
        if meant && !named {
            let first = source.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("(nothing)");
            seen.idle.push((source.path.clone(), first.chars().take(80).collect()));
        }
    }
    let english = vec![("LC_ALL".to_owned(), "C".to_owned())];
    let policy = host.probe(&Probe { env: english, ..Probe::of(&["apt-cache", "policy", PACKAGE]) })?;
    if !policy.success() {
        let said: Vec<&str> = policy.stderr.lines().map(str::trim).filter(|line| !line.is_empty()).take(4).collect();
        seen.complaint = Some(said.join("\n"));
    }
    if let Some(offer) = offer::parse(&policy.stdout).get(PACKAGE) {
        seen.candidate.clone_from(&offer.candidate);
        seen.origins = offer.origins().to_vec();
    }
    Ok(seen)
}

/// Returns why apt can't use a key's file.
fn key_fault(host: &dyn Host, path: &str) -> Result<Option<String>, Error> {
    let Some(stat) = host.stat(path)? else { return Ok(Some(format!("`{path}` is not there"))) };
    if stat.mode & 0o004 == 0 {
        return Ok(Some(format!("`{path}` has mode {:04o}, and apt reads it as the user `_apt`", stat.mode)));
    }
    let Ok(Some(bytes)) = host.read(path) else { return Ok(None) };
    let armored = bytes.starts_with(b"-----BEGIN");
    if armored && !path.ends_with(".asc") {
        return Ok(Some(format!("`{path}` is in ASCII armor, which apt takes only from a file that ends with `.asc`")));
    }
    Ok(fault(host, path, &bytes))
}
