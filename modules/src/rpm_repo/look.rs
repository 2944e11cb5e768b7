//! What dnf or zypper knows of NVIDIA's repository as it is, for whoever only wants to know.

use crate::apt_repo::others::is_old;
use crate::ask::slow;
use crate::dnf::SLOW_S;
use crate::gpu_facts::evidence::{Repository, Source};
use crate::repository_key::{fault, is_nvidias};
use crate::rpm::files::{RepoFile, Section};
use crate::rpm::{Manager, version};
use crate::rpm_repo::offer::{FORMAT, of_lines, of_xml};
use crate::{Error, Host, Output};

const PACKAGE: &str = "nvidia-container-toolkit";

/// Looks at the files of repositories, their keys and the candidate among what was fetched. Nothing is fetched.
///
/// # Errors
/// Whatever reading the files reports, and a host without dnf and zypper.
pub(crate) fn look(host: &dyn Host) -> Result<Repository, Error> {
    let manager = Manager::of(host)?;
    let mut seen = Repository { manager: manager.name().to_owned(), ..Repository::default() };
    let (files, _) = RepoFile::all(host, manager)?;
    let mut ours: Vec<Section> = Vec::new();
    for file in &files {
        let meant = is_nvidias(file.path.rsplit('/').next().unwrap_or_default());
        let sections = file.sections();
        if meant && (sections.is_empty() || file.is_strange()) {
            let first = file.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("(nothing)");
            seen.idle.push((file.path.clone(), first.chars().take(80).collect()));
        }
        for section in sections.into_iter().filter(Section::is_enabled) {
            let addresses = section.words("baseurl");
            let before = seen.sources.len();
            for uri in addresses.into_iter().filter(|uri| meant || is_nvidias(uri)) {
                let old = is_old(&uri);
                let signed_by = section.get("gpgkey").map(str::to_owned);
                let key_fault = key_fault(host, &section)?;
                seen.sources.push(Source { path: file.path.clone(), uri, signed_by, key_fault, old });
            }
            if seen.sources.len() > before {
                ours.push(section);
            }
        }
    }
    candidate(host, manager, &ours, &mut seen)?;
    Ok(seen)
}

/// Returns why the key that a section names can't verify what comes from there.
fn key_fault(host: &dyn Host, section: &Section) -> Result<Option<String>, Error> {
    if !section.is_on("repo_gpgcheck") && !section.is_on("gpgcheck") {
        return Ok(None);
    }
    for url in section.words("gpgkey") {
        let Some(path) = url.strip_prefix("file://") else { continue };
        let Some(bytes) = host.read(path)? else { return Ok(Some(format!("`{path}` is not there"))) };
        if let Some(fault) = fault(host, path, &bytes) {
            return Ok(Some(fault));
        }
    }
    Ok(None)
}

/// Finds the newest toolkit that these repositories offer. Others are not asked: what was fetched of them, if anything,
/// says nothing about NVIDIA's.
fn candidate(host: &dyn Host, manager: Manager, ours: &[Section], seen: &mut Repository) -> Result<(), Error> {
    if ours.is_empty() {
        return Ok(());
    }
    // dnf keeps what it fetched for each user apart.
    if host.uid() != 0 {
        return Ok(());
    }
    let (output, nothing) = match manager {
        Manager::Dnf(program) => {
            let only: Vec<String> = ours.iter().map(|section| format!("--repo={}", section.id)).collect();
            let words = [program, "-q", "repoquery", "--available", "-C", FORMAT];
            let argv: Vec<&str> = words.into_iter().chain(only.iter().map(String::as_str)).chain([PACKAGE]).collect();
            (slow(host, &argv, SLOW_S)?, is_never_fetched as fn(&Output) -> bool)
        }
        Manager::Zypper => {
            let only: Vec<&str> = ours.iter().flat_map(|section| ["--repo", section.id.as_str()]).collect();
            let words = ["zypper", "--non-interactive", "--xmlout", "--no-refresh", "search", "--details"];
            let argv: Vec<&str> =
                words.into_iter().chain(["--match-exact"]).chain(only).chain(["--type", "package", PACKAGE]).collect();
            (slow(host, &argv, SLOW_S)?, is_unknown as fn(&Output) -> bool)
        }
    };
    if !output.success() {
        if !nothing(&output) {
            let text = if output.stderr.trim().is_empty() { &output.stdout } else { &output.stderr };
            let said: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(4).collect();
            seen.complaint = Some(said.join("\n"));
        }
        return Ok(());
    }
    let offers = match manager {
        Manager::Dnf(_) => of_lines(&output.stdout),
        Manager::Zypper => of_xml(&output.stdout),
    };
    let named = offers.into_iter().filter(|offer| offer.name == PACKAGE);
    if let Some(best) = named.max_by(|one, other| version::compare(&one.version, &other.version)) {
        let from = |section: &&Section| section.id == best.repository || section.get("name") == Some(&best.repository);
        seen.origins = ours.iter().filter(from).flat_map(|section| section.words("baseurl")).collect();
        seen.candidate = Some(best.version);
    }
    Ok(())
}

/// Whether dnf has fetched no index of the repository yet.
fn is_never_fetched(output: &Output) -> bool {
    let said = [&output.stderr, &output.stdout];
    said.iter().any(|text| text.contains("Cache-only enabled but no cache for"))
}

/// Whether zypper has no such package (104), or no index of the repository (106).
fn is_unknown(output: &Output) -> bool {
    matches!(output.rc, 104 | 106)
}
