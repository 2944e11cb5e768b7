//! NVIDIA's container toolkit on the host: its programs, packages and configuration.

use crate::dpkg::Database;
use crate::facts::Files;
use crate::gpu_facts::evidence::Toolkit;
use crate::{Host, Probe};

/// The packages that go together. Upgraded apart, they have lost nodes their GPUs.
const PACKAGES: [&str; 4] =
    ["nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools", "libnvidia-container1"];
/// Where its runtime may be beside the expected place: the GPU operator's folder, and those of other distributions.
const OTHER_PLACES: [&str; 4] = [
    "/usr/bin/nvidia-container-runtime",
    "/usr/local/nvidia/toolkit/nvidia-container-runtime",
    "/usr/local/bin/nvidia-container-runtime",
    "/run/current-system/sw/bin/nvidia-container-runtime",
];
const CONFIG: &str = "/etc/nvidia-container-runtime/config.toml";

/// Looks at it.
pub(super) fn look(host: &dyn Host, binary: &str, unread: &mut Vec<String>) -> Toolkit {
    let files = Files(host);
    let runtime = [binary].into_iter().chain(OTHER_PLACES).find(|path| files.exists(path)).map(str::to_owned);
    let mut toolkit = Toolkit { runtime, ..Toolkit::default() };
    if files.exists("/var/lib/dpkg/status") {
        match Database::read(host) {
            Ok(database) => {
                let there = database.0.into_iter().filter(|package| package.installed());
                let ours = there.filter(|package| PACKAGES.contains(&package.name.as_str()));
                toolkit.packages = ours.map(|package| (package.name, package.version)).collect();
            }
            Err(error) => unread.push(format!("dpkg: {error}")),
        }
    } else if files.exists("/usr/bin/rpm") {
        let words = ["rpm", "-q", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\\n"].into_iter().chain(PACKAGES);
        match host.probe(&Probe::new(words)) {
            Ok(output) => {
                let lines = output.stdout.lines().filter_map(|line| line.split_once(' '));
                let known = lines.filter(|(name, _)| PACKAGES.contains(name));
                toolkit.packages = known.map(|(name, version)| (name.to_owned(), version.to_owned())).collect();
            }
            Err(error) => unread.push(format!("rpm: {error}")),
        }
    }
    for folder in ["/etc/cdi", "/var/run/cdi"] {
        let names = files.names(folder).into_iter().filter(|name| name.contains("nvidia"));
        toolkit.cdi.extend(names.map(|name| format!("{folder}/{name}")));
    }
    if let Some(text) = files.text(CONFIG) {
        read_config(&text, &mut toolkit, files);
    }
    toolkit
}

/// Reads the toolkit's own configuration.
fn read_config(text: &str, toolkit: &mut Toolkit, files: Files<'_>) {
    let document: toml_edit::DocumentMut = match text.parse() {
        Ok(document) => document,
        Err(error) => {
            let first = error.to_string().lines().next().unwrap_or_default().to_owned();
            toolkit.faults.push(format!("`{CONFIG}` can't be read: {first}"));
            return;
        }
    };
    let text = |table: &str, key: &str| {
        let found = document.get(table).and_then(|table| table.get(key)).and_then(|item| item.as_str());
        found.map(str::to_owned)
    };
    toolkit.mode = text("nvidia-container-runtime", "mode");
    if let Some(ldconfig) = text("nvidia-container-cli", "ldconfig") {
        // With `@` before it, it is the host's.
        if let Some(path) = ldconfig.strip_prefix('@').filter(|path| !files.exists(path)) {
            toolkit.faults.push(format!("`{CONFIG}` names `{path}` as `ldconfig`, which is not there"));
        }
    }
    if let Some(root) = text("nvidia-container-cli", "root")
        && root != "/"
        && !files.exists(&root)
    {
        toolkit.faults.push(format!("`{CONFIG}` expects the driver below `{root}`, which is not there"));
    }
}
