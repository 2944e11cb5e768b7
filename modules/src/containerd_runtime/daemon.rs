//! The containerd of this host: which one it is, which file it reads, and what it makes of a text.

use crate::containerd_runtime::{dropin, edit, view::View};
use crate::{Error, ErrorKind, Host, Output, Probe, paths};

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
    /// The systemd unit that runs it.
    pub unit: String,
    /// Where its command line has it answer and keep its data, whatever the file says.
    pub address: Option<String>,
    pub root: Option<String>,
    /// The file is a template: what stands in it, and what the daemon reads in its place.
    pub placeholders: Vec<(String, String)>,
    /// Set in addition when the program is started.
    pub env: Vec<(String, String)>,
}

/// Dumps `$3` as if it were the file `$2` already, for the program `$1` alone: files that name each other stay true.
const IN_PLACE: &str = r#"mount --make-rprivate / && mount --bind "$3" "$2" || exit 97
exec "$1" --config "$2" config dump"#;
/// That the machine lets nobody do so.
const NO_NAMESPACE: i32 = 97;

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
    Ok(Daemon {
        binary,
        ctr,
        version,
        major,
        config,
        service: unit.state,
        unit: asked.service.to_owned(),
        address: unit.address,
        root: unit.root,
        placeholders: Vec::new(),
        env: Vec::new(),
    })
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
    address: Option<String>,
    root: Option<String>,
    state: Service,
}

/// Returns whether systemd runs a unit.
///
/// # Errors
/// Those of asking.
pub(super) fn service(host: &dyn Host, name: &str) -> Result<Service, Error> {
    Ok(unit(host, name)?.state)
}

/// Asks systemd what it starts. `ExecStart={ path=/usr/bin/containerd ; argv[]=/usr/bin/containerd -c F ; … }`.
fn unit(host: &dyn Host, name: &str) -> Result<Unit, Error> {
    let asked = ["systemctl", "show", "--property=LoadState,ActiveState,ExecStart", "--no-pager", name];
    let output = host.probe(&Probe::new(asked))?;
    let value = |key: &str| output.stdout.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    if output.rc != 0 || value("LoadState=") != "loaded" {
        let state = Service::Unknown;
        return Ok(Unit { binary: None, variable: None, config: None, address: None, root: None, state });
    }
    let state = match value("ActiveState=") {
        "inactive" | "deactivating" => Service::Stopped,
        _ => Service::Running,
    };
    let start = value("ExecStart=");
    let after = |key: &str| start.split_once(key).map(|(_, rest)| rest.split(" ;").next().unwrap_or(rest).trim());
    let words: Vec<&str> = after("argv[]=").unwrap_or_default().split_whitespace().collect();
    let flag = |long: &str, short: &str| {
        words.iter().enumerate().find_map(|(at, word)| {
            let word = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
            match word.split_once('=') {
                Some((name, value)) => (name == long || name == short).then(|| value.to_owned()),
                None => words.get(at + 1).filter(|_| word == long || word == short).map(|value| (*value).to_owned()),
            }
        })
    };
    let (config, address, root) = (flag("config", "c"), flag("address", "a"), flag("root", "root"));
    let variable = words.iter().find(|word| word.contains('$')).map(|word| (*word).to_owned());
    let variable = variable.filter(|_| config.is_none());
    Ok(Unit { binary: after("path=").map(str::to_owned), variable, config, address, root, state })
}

impl Daemon {
    /// Returns what the daemon makes of the file that it reads, or what it says against it.
    pub(super) fn dump_file(&self, host: &dyn Host) -> Result<Result<View, String>, Error> {
        if !self.placeholders.is_empty() {
            let text = host.read(&self.config)?.unwrap_or_default();
            return self.dump_text(host, &String::from_utf8_lossy(&text));
        }
        self.dump(host, Probe::new([self.binary.as_str(), "--config", self.config.as_str(), "config", "dump"]))
    }

    /// Returns what the daemon would make of `text` in place of its file.
    pub(super) fn dump_text(&self, host: &dyn Host, text: &str) -> Result<Result<View, String>, Error> {
        let text = self.filled_in(text);
        let scratch = "{scratch}/config.toml";
        if self.placeholders.is_empty() && dropin::names_imports(&text) && host.uid() == 0 {
            let words =
                ["unshare", "--mount", "sh", "-c", IN_PLACE, "dump", self.binary.as_str(), &self.config, scratch];
            let files = vec![("config.toml".into(), text.clone().into_bytes())];
            let output = host.probe(&Probe { files, ..Probe::of(&words) })?;
            let kept_from_it = output.rc == NO_NAMESPACE || output.rc == 127 || output.stderr.starts_with("unshare:");
            if !kept_from_it {
                return Ok(self.said(&output));
            }
        }
        let moved = edit::moved(&text, &self.config, scratch);
        let argv = [self.binary.as_str(), "--config", scratch, "config", "dump"];
        self.dump(host, Probe { files: vec![("config.toml".into(), moved.into_bytes())], ..Probe::new(argv) })
    }

    /// Returns a text as the daemon gets to see it.
    pub(super) fn filled_in(&self, text: &str) -> String {
        self.placeholders.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// Returns the files that the daemon reads beside the main one.
    pub(super) fn other_files(&self, host: &dyn Host, view: &View) -> Result<Vec<String>, Error> {
        if self.major >= 2 {
            // 2.2 and newer show a folder that they read only where the main file names it.
            let main = host.read(&self.config)?.unwrap_or_default();
            if !dropin::names_imports(&String::from_utf8_lossy(&main)) {
                return Ok(Vec::new());
            }
        }
        let main = paths::real(host, &self.config)?;
        let mut files = Vec::new();
        for pattern in &view.imports {
            if pattern.ends_with("/config.toml") && pattern.contains("/kubeon-") {
                continue;
            }
            for path in paths::glob(host, &paths::beside(&self.config, pattern))? {
                let path = paths::real(host, &path)?;
                if path != main && !files.contains(&path) {
                    files.push(path);
                }
            }
        }
        Ok(files)
    }

    fn dump(&self, host: &dyn Host, probe: Probe) -> Result<Result<View, String>, Error> {
        let output = host.probe(&Probe { env: self.env.clone(), ..probe })?;
        Ok(self.said(&output))
    }

    fn said(&self, output: &Output) -> Result<View, String> {
        if output.rc == 0 {
            let mut view = View::parse(&output.stdout)?;
            view.address = self.address.clone().unwrap_or(view.address);
            view.root = self.root.clone().unwrap_or(view.root);
            return Ok(view);
        }
        let last = output.stderr.lines().map(str::trim).rfind(|line| !line.is_empty() && !line.starts_with("time="));
        let said = last.or_else(|| output.stderr.lines().last()).unwrap_or("it says nothing");
        Err(said.trim_start_matches("containerd: ").to_owned())
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
