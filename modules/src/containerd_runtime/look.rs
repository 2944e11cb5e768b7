//! The daemon as it is, for whoever only wants to know.

use serde_json::Value;

use crate::containerd_runtime::daemon::{self, Asked};
use crate::containerd_runtime::decide::{binary_of, systemd_cgroup};
use crate::containerd_runtime::edit::Text;
use crate::containerd_runtime::view::value_of;
use crate::gpu_facts::evidence::{Containerd, Runtime};
use crate::host::Map;
use crate::{Error, Host};

/// What was seen, and how to ask the daemon for more.
pub(crate) struct Look {
    pub found: Containerd,
    pub ctr: String,
    pub address: String,
}

/// Looks at the usual containerd: which file it reads and what it makes of it.
///
/// # Errors
/// When the host has none.
pub(crate) fn look(host: &dyn Host) -> Result<Look, Error> {
    let daemon = daemon::find(host, &Asked { binary: None, config: None, service: "containerd" })?;
    let mut found = Containerd { kind: "containerd".to_owned(), ..Containerd::default() };
    found.version.clone_from(&daemon.version);
    found.config.clone_from(&daemon.config);
    let mut address = "/run/containerd/containerd.sock".to_owned();
    let there = host.stat(&daemon.config)?.is_some();
    let view = if there { daemon.dump_file(host)? } else { daemon.dump_text(host, "")? };
    match view {
        Err(said) => found.fault = Some(said),
        Ok(view) => {
            address.clone_from(&view.address);
            found.cri_disabled = view.enabled_cri().is_none();
            found.other_files = daemon.other_files(host, &view)?;
            if let Some(cri) = &view.cri {
                found.default_runtime.clone_from(&cri.default);
                take_runtimes(&cri.runtimes, &mut found);
            }
        }
    }
    Ok(Look { found, ctr: daemon.ctr, address })
}

fn take_runtimes(runtimes: &Map, found: &mut Containerd) {
    for (name, table) in runtimes {
        let runtime = Runtime {
            binary: binary_of(table).to_owned(),
            kind: table.get("runtime_type").and_then(Value::as_str).unwrap_or_default().to_owned(),
            systemd_cgroup: table.as_object().is_some_and(systemd_cgroup),
        };
        found.runtimes.insert(name.clone(), runtime);
    }
}

/// Reads the runtimes that a file names, where no daemon can be asked what it makes of the file.
pub(crate) fn runtimes_written(text: &str, found: &mut Containerd) {
    let Ok(text) = Text::parse(text) else { return };
    for keys in super::propose::table_keys(&text) {
        let Some(containerd) = text.get(&keys).map(value_of) else { continue };
        if let Some(runtimes) = containerd.get("runtimes").and_then(Value::as_object) {
            take_runtimes(runtimes, found);
        }
        if let Some(default) = containerd.get("default_runtime_name").and_then(Value::as_str) {
            default.clone_into(&mut found.default_runtime);
        }
    }
}
