use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::dpkg::Database;
use crate::{Error, ErrorKind, Host, Module, Plan, Probe};

/// Return the packages that are installed as the fact `packages`.
///
/// ```yaml
/// - package_facts:
/// - debug:
///     msg: "{{ ansible_facts.packages['containerd.io'][0].version }}"
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
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
            for package in Database::read(host)?.0.into_iter().filter(crate::dpkg::Package::installed) {
                let described = json!({
                    "name": package.name,
                    "version": package.version,
                    "arch": package.architecture,
                    "category": package.section,
                    "origin": "",
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
