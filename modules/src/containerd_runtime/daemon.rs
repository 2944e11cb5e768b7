//! The containerd of this host: which one it is, which file it reads, and what it makes of a text.

use crate::containerd_runtime::{dropin, edit, view::View};
use crate::{Error, ErrorKind, Host, Probe};

pub(super) const USUAL_CONFIG: &str = "/etc/containerd/config.toml";

#[derive(Debug)]
pub(super) struct Daemon {
    /// A path, or a name to be found in `$PATH`.
    pub binary: String,
    /// The client that came with it.
    pub ctr: String,
    /// `1.7.24~ds1` as it says itself.
    pub version: String,
    /// The first number of it.
    pub major: u32,
    /// The file that it reads.
    pub config: String,
    pub service: Service,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    /// It runs, or systemd tries to make it run: a new configuration takes a restart.
    Running,
    Stopped,
    /// No systemd, or no such unit.
    Unknown,
}

/// What the user said of it.
pub(super) struct Asked<'a> {
    pub binary: Option<&'a str>,
    pub config: Option<&'a str>,
    pub service: &'a str,
}

/// Finds the daemon.
///
/// # Errors
/// [`ErrorKind::Refused`] when there is none, and when the service reads another file than the one asked for.
pub(super) fn find(host: &dyn Host, asked: &Asked<'_>) -> Result<Daemon, Error> {
    let unit = unit(host, asked.service)?;
    if let (Some(word), None) = (&unit.variable, asked.config) {
        let message =
            format!("the service `{}` starts containerd with `{word}`, which may name its file", asked.service);
        return Err(Error::new(ErrorKind::Refused, format!("{message}: say which one it reads with `config`")));
    }
    let binary = asked.binary.map(str::to_owned).or_else(|| unit.binary.clone()).unwrap_or_else(|| "containerd".into());
    let read = unit.config.clone().unwrap_or_else(|| USUAL_CONFIG.to_owned());
    let config = asked.config.map_or_else(|| read.clone(), str::to_owned);
    if asked.binary.is_none() && unit.variable.is_none() && unit.state != Service::Unknown && config != read {
        let message = format!("the service `{}` reads `{read}`, so `{config}` would have no effect", asked.service);
        return Err(Error::new(ErrorKind::Refused, format!("{message}: give `config: {read}`")));
    }
    let output = host.probe(&Probe::new([binary.as_str(), "--version"]))?;
    if output.rc != 0 {
        let why = format!("`{binary} --version` exited {}: {}", output.rc, output.stderr.trim());
        let message = match unit.binary {
            Some(started) if started == binary => {
                format!(
                    "the service `{}` starts `{binary}`, which is no containerd: {why}; give `containerd`",
                    asked.service
                )
            }
            Some(_) | None => format!("this host has no containerd of its own: {why}"),
        };
        return Err(Error::new(ErrorKind::Refused, message));
    }
    let (version, major) = version_of(&output.stdout).ok_or_else(|| {
        let said = output.stdout.trim();
        Error::new(ErrorKind::Refused, format!("`{binary} --version` names no version: `{said}`"))
    })?;
    let ctr = match binary.rsplit_once('/') {
        Some((folder, _)) if host.stat(&format!("{folder}/ctr"))?.is_some() => format!("{folder}/ctr"),
        Some(_) | None => "ctr".to_owned(),
    };
    Ok(Daemon { binary, ctr, version, major, config, service: unit.state })
}

/// Reads `containerd PACKAGE VERSION REVISION`.
pub(super) fn version_of(text: &str) -> Option<(String, u32)> {
    let version = text.split_whitespace().nth(2)?.trim_start_matches('v');
    let major = version.split('.').next()?.parse().ok()?;
    Some((version.split('+').next().unwrap_or(version).to_owned(), major))
}

struct Unit {
    binary: Option<String>,
    /// A word of its command line that systemd replaces.
    variable: Option<String>,
    config: Option<String>,
    state: Service,
}

/// Asks systemd what it starts. `ExecStart={ path=/usr/bin/containerd ; argv[]=/usr/bin/containerd -c F ; … }`.
fn unit(host: &dyn Host, name: &str) -> Result<Unit, Error> {
    let asked = ["systemctl", "show", "--property=LoadState,ActiveState,ExecStart", "--no-pager", name];
    let output = host.probe(&Probe::new(asked))?;
    let value = |key: &str| output.stdout.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    if output.rc != 0 || value("LoadState=") != "loaded" {
        return Ok(Unit { binary: None, variable: None, config: None, state: Service::Unknown });
    }
    let state = match value("ActiveState=") {
        "inactive" | "deactivating" => Service::Stopped,
        _ => Service::Running,
    };
    let start = value("ExecStart=");
    let after = |key: &str| start.split_once(key).map(|(_, rest)| rest.split(" ;").next().unwrap_or(rest).trim());
    let words: Vec<&str> = after("argv[]=").unwrap_or_default().split_whitespace().collect();
    let config = words.iter().enumerate().find_map(|(at, word)| match *word {
        "--config" | "-config" | "-c" => words.get(at + 1).map(|path| (*path).to_owned()),
        word => word.strip_prefix("--config=").or_else(|| word.strip_prefix("-c=")).map(str::to_owned),
    });
    let variable = words.iter().find(|word| word.contains('$')).map(|word| (*word).to_owned());
    let variable = variable.filter(|_| config.is_none());
    Ok(Unit { binary: after("path=").map(str::to_owned), variable, config, state })
}

impl Daemon {
    /// Returns what the daemon makes of the file that it reads, or what it says against it.
    pub(super) fn dump_file(&self, host: &dyn Host) -> Result<Result<View, String>, Error> {
        self.dump(host, Probe::new([self.binary.as_str(), "--config", self.config.as_str(), "config", "dump"]))
    }

    /// Returns what the daemon would make of `text` in place of its file.
    pub(super) fn dump_text(&self, host: &dyn Host, text: &str) -> Result<Result<View, String>, Error> {
        let argv = [self.binary.as_str(), "--config", "{scratch}/config.toml", "config", "dump"];
        let moved = edit::moved(text, &self.config, "{scratch}/config.toml");
        self.dump(host, Probe { files: vec![("config.toml".into(), moved.into_bytes())], ..Probe::new(argv) })
    }

    /// Returns the files that the daemon reads beside the main one.
    pub(super) fn other_files(&self, host: &dyn Host, view: &View) -> Result<Vec<String>, Error> {
        let mut files = Vec::new();
        if self.major >= 2 {
            // 2.2 and newer show a folder that they read only where the main file names it.
            let main = host.read(&self.config)?.unwrap_or_default();
            if !dropin::names_imports(&String::from_utf8_lossy(&main)) {
                return Ok(files);
            }
        }
        for path in &view.imports {
            if *path == self.config || path.ends_with("/config.toml") && path.contains("/kubeon-") {
                continue;
            }
            let Some((folder, pattern)) = path.rsplit_once('/').filter(|(_, name)| name.contains('*')) else {
                files.push(path.clone());
                continue;
            };
            let ending = pattern.rsplit('*').next().unwrap_or_default();
            let names = host.list(folder)?.unwrap_or_default();
            files.extend(names.iter().filter(|name| name.ends_with(ending)).map(|name| format!("{folder}/{name}")));
        }
        Ok(files)
    }

    fn dump(&self, host: &dyn Host, probe: Probe) -> Result<Result<View, String>, Error> {
        let output = host.probe(&probe)?;
        if output.rc == 0 {
            return Ok(View::parse(&output.stdout));
        }
        let last = output.stderr.lines().map(str::trim).rfind(|line| !line.is_empty() && !line.starts_with("time="));
        let said = last.or_else(|| output.stderr.lines().last()).unwrap_or("it says nothing");
        Ok(Err(said.trim_start_matches("containerd: ").to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_versions() {
        let found = |text| version_of(text).map(|(version, major)| format!("{major} {version}"));
        let debian = "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3";
        assert_eq!(found(debian).as_deref(), Some("1 1.6.20~ds1"));
        let docker = "containerd containerd.io v2.1.3 6c7af6e";
        assert_eq!(found(docker).as_deref(), Some("2 2.1.3"));
        assert_eq!(found("containerd github.com/containerd/containerd/v2 2.1.9+unknown").as_deref(), Some("2 2.1.9"));
        assert_eq!(found("nonsense"), None);
    }
}
