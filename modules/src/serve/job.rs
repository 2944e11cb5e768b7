//! Jobs: tasks in a process of their own, which outlives the connection.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;

use super::{execute, lost};
use crate::background::background;
use crate::host::Map;
use crate::host::Put as _;
use crate::wire::Task;
use crate::{Error, Service};

/// Where jobs of this user keep their results. Source: `async_dir` of ansible-core.
fn job_folder() -> PathBuf {
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    home.join(".ansible_async")
}

/// Starts the task in a process of its own that outlives the connection.
pub(super) fn start_job(task: &Task, job: &str) -> io::Result<Map> {
    let folder = job_folder();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let result = folder.join(job);
    let order = folder.join(format!(".{job}.task"));
    let private = |path: &PathBuf, bytes: &[u8]| {
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
    };
    let state = json!({"started": 1, "finished": 0, "ansible_job_id": job});
    private(&result, state.to_string().as_bytes())?;
    private(&order, &serde_json::to_vec(&Task { job: None, ..task.clone() })?)?;
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = std::env::args().nth(1).filter(|name| name == "agent") {
        command.arg(name);
    }
    command.arg("job").arg(&order).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: setsid(2) is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            Ok(())
        });
    }
    let mut child = command.spawn()?;
    background(move || drop(child.wait()));
    let mut answer = Map::new();
    answer.put("started", 1);
    answer.put("finished", 0);
    answer.put("changed", true);
    answer.put("ansible_job_id", job);
    answer.put("results_file", result.to_string_lossy());
    Ok(answer)
}

struct Alone;

impl Service for Alone {
    fn fetch(&self, _: &str, _: &mut dyn Write) -> Result<(), Error> {
        Err(lost("a job apart from the connection can't ask for it"))
    }
    fn progress(&self, _: &str) {}
}

pub(super) fn serve_job(order: &str) -> io::Result<()> {
    let task: Task = serde_json::from_slice(&fs::read(order)?)?;
    fs::remove_file(order)?;
    let name = PathBuf::from(order);
    let job = name.file_name().unwrap_or_default().to_string_lossy();
    let job = job.trim_start_matches('.').trim_end_matches(".task").to_owned();
    let (mut result, _) = execute(&task, &Alone, false);
    result.put("started", 1);
    result.put("finished", 1);
    result.put("ansible_job_id", job.as_str());
    let path = job_folder().join(&job);
    let temporary = path.with_extension("new");
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?
        .write_all(&serde_json::to_vec(&result)?)?;
    fs::rename(temporary, path)
}
