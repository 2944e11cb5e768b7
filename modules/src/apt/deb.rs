//! Installing a package file: one on the host, or behind a URL.

use std::cmp::Ordering;

use super::{Args, candidates::english, command, explain};
use crate::dpkg::{Database, compare};
use crate::{Error, ErrorKind, Host, Plan, Probe};

const DOWNLOADS: &str = "/var/cache/apt/archives";
const HELPER: &str = "/usr/lib/apt/apt-helper";
const DOWNLOAD_LIMIT_S: u64 = 600;

impl Args {
    pub(super) fn install_file(
        &self,
        host: &dyn Host,
        database: &Database,
        deb: &str,
        plan: &mut Plan,
    ) -> Result<(), Error> {
        let remote = deb.contains("://");
        let (name, version) = match named(deb).filter(|_| remote) {
            Some(named) => named,
            None if remote => described(host, &fetch_probe(deb), deb)?,
            None => {
                if !deb.starts_with('/') {
                    return Err(Error::new(
                        ErrorKind::Arguments,
                        format!("`deb: {deb}` is no absolute path and no URL"),
                    ));
                }
                if host.stat(deb)?.is_none() {
                    return Err(Error::new(ErrorKind::Host, format!("there is no `{deb}` on this host")));
                }
                let fields = ["dpkg-deb", "-f", deb, "Package", "Version"].map(str::to_owned).to_vec();
                described(host, &english(fields), deb)?
            }
        };
        if let Some(package) = database.package(&name).filter(|package| package.installed()) {
            let installed = without_epoch(&package.version);
            match compare(if version.contains(':') { &package.version } else { installed }, &version) {
                Ordering::Equal => return Ok(()),
                Ordering::Greater if !self.allow_downgrade && !self.force => {
                    plan.warnings
                        .push(format!("`{name}` {} is installed, which is later than {version}", package.version));
                    return Ok(());
                }
                Ordering::Greater | Ordering::Less => {}
            }
        }
        let path =
            if remote { format!("{DOWNLOADS}/{name}_{version}.deb").replace(':', "%3a") } else { deb.to_owned() };
        let argv = self.apt_get(&["install", &path]);
        if remote && host.stat(&path)?.is_none() {
            plan.changes.push(crate::Change::Exec(crate::Exec::new([HELPER, "download-file", deb, &path])));
            plan.changes.extend(self.run(host, argv)?);
        } else {
            let simulation = self.simulate(host, &format!("install `{deb}`"), &argv)?;
            command::add(plan, self.run(host, argv)?, simulation.as_ref());
        }
        Ok(())
    }
}

/// Returns name and version of a file that is named as Debian names them: `NAME_VERSION_ARCHITECTURE.deb`.
fn named(url: &str) -> Option<(String, String)> {
    let file = url.split(['?', '#']).next()?.rsplit('/').next()?.strip_suffix(".deb")?;
    let parts: Vec<&str> = file.split('_').collect();
    let [name, version, _architecture] = parts.as_slice() else { return None };
    let version = version.replace("%2b", "+").replace("%2B", "+").replace("%7e", "~").replace("%7E", "~");
    let version = version.replace("%3a", ":").replace("%3A", ":");
    version.starts_with(|first: char| first.is_ascii_digit()).then(|| ((*name).to_owned(), version))
}

/// Downloads into a folder of the probe's own and reads the file there.
fn fetch_probe(url: &str) -> Probe {
    let script = format!("{HELPER} download-file \"$1\" \"$2/x.deb\" >&2 && dpkg-deb -f \"$2/x.deb\" Package Version");
    let mut probe = english(["sh", "-c", &script, "sh", url, "{scratch}"].map(str::to_owned).to_vec());
    // A file to begin with is what makes the folder.
    probe.files = vec![("about".to_owned(), url.as_bytes().to_vec())];
    probe.timeout_s = Some(DOWNLOAD_LIMIT_S);
    probe
}

fn described(host: &dyn Host, probe: &Probe, deb: &str) -> Result<(String, String), Error> {
    let output = host.probe(probe)?;
    if !output.success() {
        return Err(explain::failure(&format!("read `{deb}`"), &output));
    }
    let field = |name: &str| {
        output.stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
    };
    field("Package").zip(field("Version")).ok_or_else(|| {
        Error::new(ErrorKind::Host, format!("`{deb}` names no package and version: it is no Debian package"))
    })
}

fn without_epoch(version: &str) -> &str {
    version.split_once(':').map_or(version, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_tells_what_it_is() {
        let url = "https://x.example/pool/c/cuda-keyring_1.1-1_all.deb?sig=1";
        assert_eq!(named(url), Some(("cuda-keyring".into(), "1.1-1".into())));
        assert_eq!(named("https://x.example/latest.deb"), None);
        assert_eq!(named("https://x.example/a_1%3a2%2bb_amd64.deb"), Some(("a".into(), "1:2+b".into())));
    }
}
