//! What is sent to a host to run a module that is not built in there: one script, with all that the module needs.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map as JsonMap, Value as Json};

use super::{ARGUMENTS_MARK, Foreign, ForeignKind};

/// The script that collects what a Python module imports; our own, run by a Python that has ansible-core.
const COLLECT: &str = include_str!("collect.py");
const START_PYTHON: &str = include_str!("start.py");
const START_PROGRAM: &str = include_str!("start.sh");
/// The status with which the collecting script says that there is no ansible-core.
const NO_ANSIBLE: i32 = 3;

/// A script that runs a module, and what runs it.
#[derive(Debug)]
pub struct Payload {
    pub script: Vec<u8>,
    /// `None` for the script's own first line.
    pub interpreter: Option<String>,
}

/// What was collected for a module.
#[derive(Debug, Clone)]
struct Collected {
    archive: Arc<str>,
    /// The Python here that has ansible-core.
    python: PathBuf,
}

impl Foreign {
    /// Returns the Python here that has ansible-core: what Ansible runs modules of this machine with.
    ///
    /// # Errors
    /// When there is none.
    pub fn python_here(&self) -> Result<PathBuf, String> {
        self.collected().map(|collected| collected.python)
    }

    /// Tells whether the module can be sent to hosts.
    ///
    /// # Errors
    /// When it needs ansible-core here, and that is not here or what the module imports can't be collected.
    pub fn ready(&self) -> Result<(), String> {
        match self.kind {
            ForeignKind::Python => self.collected().map(drop),
            ForeignKind::Json | ForeignKind::Embedded | ForeignKind::Words => Ok(()),
        }
    }

    /// Puts together what a host needs to run the module with these arguments.
    ///
    /// # Errors
    /// A sentence for a person when the program can't be read, or what it imports can't be collected.
    pub fn payload(&self, arguments: &JsonMap<String, Json>, interpreter: &str) -> Result<Payload, String> {
        let read = || std::fs::read(&self.path).map_err(|error| format!("read `{}`: {error}", self.path.display()));
        let json = |arguments: &JsonMap<String, Json>| Json::Object(arguments.clone()).to_string();
        Ok(match self.kind {
            ForeignKind::Python => {
                let wrapped = Json::Object(
                    [("ANSIBLE_MODULE_ARGS".to_owned(), Json::Object(arguments.clone()))].into_iter().collect(),
                );
                let script = START_PYTHON
                    .replace("@NAME@", &self.import_name)
                    .replace("@ARGUMENTS@", &STANDARD.encode(wrapped.to_string()))
                    .replace("@ARCHIVE@", &self.collected()?.archive);
                Payload { script: script.into_bytes(), interpreter: Some(interpreter.to_owned()) }
            }
            ForeignKind::Embedded => {
                let text = String::from_utf8_lossy(&read()?).replace(ARGUMENTS_MARK, &json(arguments));
                started(text.as_bytes(), "", interpreter)
            }
            ForeignKind::Json => started(&read()?, &json(arguments), interpreter),
            ForeignKind::Words => started(&read()?, &words(arguments), interpreter),
        })
    }

    /// Returns what the module imports, collected once a run.
    fn collected(&self) -> Result<Collected, String> {
        static KNOWN: Mutex<Option<HashMap<PathBuf, Collected>>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_with(HashMap::new);
        if let Some(collected) = known.get(&self.path) {
            return Ok(collected.clone());
        }
        let collected = self.collect()?;
        known.insert(self.path.clone(), collected.clone());
        Ok(collected)
    }

    fn collect(&self) -> Result<Collected, String> {
        let absolute = |paths: &[PathBuf]| -> Vec<Json> {
            let whole = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
            paths.iter().map(|path| whole(path).to_string_lossy().into_owned().into()).collect()
        };
        let wanted = serde_json::json!({
            "module": self.path,
            "name": self.import_name,
            "module_utils": absolute(&self.module_utils),
            "collections": absolute(&self.collections),
        });
        for python in pythons() {
            let Some((status, stdout, stderr)) = asked(&python, &wanted.to_string()) else { continue };
            match status {
                0 => return Ok(Collected { archive: stdout.trim().into(), python }),
                NO_ANSIBLE => {}
                _ => {
                    let said = stderr.trim().lines().last().unwrap_or_default();
                    return Err(format!("collect what `{}` imports: {said}", self.path.display()));
                }
            }
        }
        Err(format!(
            "`{}` is written in Python for Ansible, and no Python of this machine has ansible-core, whose libraries it \
             imports: install ansible-core here, or use a built-in module",
            self.path.display()
        ))
    }
}

/// Runs the collecting script; `None` when there is no such program.
fn asked(python: &Path, wanted: &str) -> Option<(i32, String, String)> {
    let mut child = Command::new(python)
        .args(["-c", COLLECT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    // One that ends before it has read all says why by its status.
    child.stdin.take()?.write_all(wanted.as_bytes()).ok();
    let output = child.wait_with_output().ok()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr)))
}

/// Returns the Pythons that may have ansible-core: that of the path, and those that Ansible's own programs name.
fn pythons() -> Vec<PathBuf> {
    let mut pythons = vec![PathBuf::from("python3")];
    let folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    for program in ["ansible-playbook", "ansible", "ansible-config"] {
        for path in folders.iter().map(|folder| folder.join(program)) {
            let Ok(text) = std::fs::read(&path) else { continue };
            let first =
                String::from_utf8_lossy(text.split(|byte| *byte == b'\n').next().unwrap_or_default()).into_owned();
            let python = first.strip_prefix("#!").map(|line| line.split_whitespace().next().unwrap_or_default());
            if let Some(python) = python.filter(|python| python.contains("python"))
                && !pythons.iter().any(|known| known == Path::new(python))
            {
                pythons.push(python.into());
            }
        }
    }
    pythons
}

/// Returns a script that starts a program with the file of its arguments.
fn started(program: &[u8], arguments: &str, interpreter: &str) -> Payload {
    let first = String::from_utf8_lossy(program.split(|byte| *byte == b'\n').next().unwrap_or_default()).into_owned();
    // As in Ansible, it is the host's own Python that a script in Python runs by.
    let interpreter = match first.starts_with("#!") && first.contains("python") {
        true => format!("{interpreter} "),
        false => String::new(),
    };
    let script = START_PROGRAM
        .replace("@INTERPRETER@", &interpreter)
        .replace("@ARGUMENTS@", &STANDARD.encode(arguments))
        .replace("@PROGRAM@", &STANDARD.encode(program));
    Payload { script: script.into_bytes(), interpreter: Some("/bin/sh".to_owned()) }
}

/// Returns arguments as the words of a shell.
fn words(arguments: &JsonMap<String, Json>) -> String {
    let word = |(key, value): (&String, &Json)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{key}={}", shell_words::quote(&text))
    };
    arguments.iter().map(word).collect::<Vec<_>>().join(" ")
}
