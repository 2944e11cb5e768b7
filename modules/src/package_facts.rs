use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::decode::Arguments;
use crate::dpkg::Database;
use crate::{Error, ErrorKind, Host, Module, Plan, Probe};

/// Return the packages that are installed as the fact `packages`.
///
/// ```yaml
/// - package_facts:
/// - debug:
///     msg: "{{ ansible_facts.packages['containerd.io'][0].version }}"
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Whose packages: of `apt`, `rpm` or `apk`; `auto` takes what is there.
    #[serde(default = "auto")]
    manager: Vec<Manager>,
    /// Whether to stop at the first that has packages.
    #[serde(default)]
    strategy: Strategy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Manager {
    Auto,
    Apt,
    #[serde(alias = "dnf", alias = "yum", alias = "zypper")]
    Rpm,
    Apk,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Strategy {
    #[default]
    First,
    All,
}

fn auto() -> Vec<Manager> {
    vec![Manager::Auto]
}

type Packages = BTreeMap<String, Vec<Value>>;

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let every = [Manager::Apt, Manager::Rpm, Manager::Apk];
        let managers: Vec<Manager> = if self.manager.contains(&Manager::Auto) || self.manager.is_empty() {
            every.to_vec()
        } else {
            self.manager.clone()
        };
        let mut packages = Packages::new();
        let mut found = false;
        for manager in managers {
            let Some(more) = installed(host, manager)? else { continue };
            found = true;
            for (name, versions) in more {
                packages.entry(name).or_default().extend(versions);
            }
            if self.strategy == Strategy::First && !packages.is_empty() {
                break;
            }
        }
        if !found {
            return Err(Error::new(
                ErrorKind::Host,
                "no package manager that is asked for is on this host: packages of apt, rpm and apk can be listed",
            ));
        }
        Ok(Plan::default().with("ansible_facts", json!({"packages": packages})))
    }
}

/// Returns the packages of one manager; `None` where it is not in use.
fn installed(host: &dyn Host, manager: Manager) -> Result<Option<Packages>, Error> {
    let mut packages = Packages::new();
    match manager {
        Manager::Auto => {}
        Manager::Apt => {
            if host.stat("/var/lib/dpkg/status")?.is_none() {
                return Ok(None);
            }
            let all: Vec<_> = Database::read(host)?.0.into_iter().filter(crate::dpkg::Package::installed).collect();
            let origins = origins(host, &all)?;
            for package in all {
                let foreign = origins.get(&format!("{}:{}", package.name, package.architecture));
                let origin = foreign.or_else(|| origins.get(&package.name)).cloned();
                let described = json!({
                    "name": package.name,
                    "version": package.version,
                    "arch": package.architecture,
                    "category": package.section,
                    "origin": origin.unwrap_or_default(),
                    "source": "apt",
                });
                packages.entry(package.name).or_default().push(described);
            }
        }
        Manager::Rpm => {
            let format = "%{NAME}\\t%{VERSION}\\t%{RELEASE}\\t%{EPOCH}\\t%{ARCH}\\n";
            let output = host.probe(&Probe::of(&["rpm", "-qa", "--queryformat", format]))?;
            if !output.success() {
                return Ok(None);
            }
            for line in output.stdout.lines() {
                let fields: Vec<&str> = line.split('\t').collect();
                let [name, version, release, epoch, architecture] = fields.as_slice() else { continue };
                let described = json!({
                    "name": name,
                    "version": version,
                    "release": release,
                    "epoch": epoch.parse::<u32>().ok(),
                    "arch": architecture,
                    "source": "rpm",
                });
                packages.entry((*name).to_owned()).or_default().push(described);
            }
        }
        Manager::Apk => {
            let Some(bytes) = host.read("/lib/apk/db/installed")? else { return Ok(None) };
            for stanza in String::from_utf8_lossy(&bytes).split("\n\n") {
                let field = |key: &str| stanza.lines().find_map(|line| line.strip_prefix(key));
                let (Some(name), Some(version)) = (field("P:"), field("V:")) else { continue };
                let (version, release) = version.rsplit_once("-r").unwrap_or((version, "0"));
                let described = json!({"name": name, "version": version, "release": release, "source": "apk"});
                packages.entry(name.to_owned()).or_default().push(described);
            }
        }
    }
    Ok(Some(packages))
}

/// Returns who made the repository that each package's installed version comes from, as its `Release` file says, by the
/// name that apt calls it: with its architecture where that is foreign. A package that no repository has any more is
/// not among them.
fn origins(host: &dyn Host, packages: &[crate::dpkg::Package]) -> Result<BTreeMap<String, String>, Error> {
    let policy = |names: &[String]| {
        let words = ["apt-cache", "policy"].into_iter().chain(names.iter().map(String::as_str));
        host.probe(&Probe { env: vec![("LC_ALL".into(), "C".into())], ..Probe::new(words) })
    };
    let told = policy(&[])?.stdout;
    let repositories = repositories(&told);
    if repositories.is_empty() {
        return Ok(BTreeMap::new());
    }
    let names: Vec<String> = packages.iter().map(|one| format!("{}:{}", one.name, one.architecture)).collect();
    let mut origins = BTreeMap::new();
    for part in names.chunks(NAMES_AT_ONCE) {
        for (name, source) in sources(&policy(part)?.stdout) {
            let Some(origin) = repositories.get(source) else { continue };
            origins.insert(name.to_owned(), origin.clone());
        }
    }
    Ok(origins)
}

/// How many packages are asked for with one command line, whose length is bounded.
const NAMES_AT_ONCE: usize = 2000;

/// Returns each repository's origin, from `apt-cache policy` without names: ` 500 http://… bookworm/main amd64 Packages`,
/// and below it `     release v=12,o=Debian,…`.
fn repositories(text: &str) -> BTreeMap<&str, String> {
    let mut origins = BTreeMap::new();
    let mut source = "";
    for line in text.lines().map(str::trim) {
        match line.strip_prefix("release ") {
            Some(release) => {
                let origin = release.split(',').find_map(|part| part.strip_prefix("o=")).unwrap_or_default();
                origins.insert(source, origin.to_owned());
            }
            None => source = line.split_once(' ').map_or("", |(_, source)| source.trim()),
        }
    }
    origins
}

/// Returns the first repository of each package's installed version, from `apt-cache policy NAME…`: ` *** 1.0 500`, and
/// below it `        500 http://… bookworm/main amd64 Packages`.
fn sources(text: &str) -> Vec<(&str, &str)> {
    let mut sources = Vec::new();
    let mut package = "";
    let mut installed = false;
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(':').filter(|_| !line.starts_with(' ')) {
            (package, installed) = (name, false);
        } else if line.starts_with(" *** ") {
            installed = true;
        } else if installed && line.starts_with("        ") {
            installed = false;
            sources.extend(line.trim().split_once(' ').map(|(_, source)| (package, source.trim())));
        }
    }
    sources
}
