use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::ask::{bad, failed, slow};
use crate::decode::Arguments;
use crate::host::{Map, Put as _};
use crate::{Change, Done, Error, ErrorKind, Exec, Host, Module, Plan, paths};

mod version;

/// Seconds that listing packages may take.
const SLOW_S: u64 = 120;

/// Install and remove Python packages.
///
/// ```yaml
/// - pip:
///     name: [kubernetes, "pyyaml>=6"]
///     virtualenv: /opt/tools
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Packages: names with or without versions (`x==1.2`, `x>=1`), files and URLs.
    #[serde(default)]
    name: Vec<String>,
    /// The version of the one package in `name`.
    version: Option<String>,
    /// A file of the host that lists packages.
    requirements: Option<String>,
    /// The virtual environment; it is made where it is missing.
    virtualenv: Option<String>,
    /// Let the virtual environment see the system's packages.
    #[serde(default)]
    virtualenv_site_packages: bool,
    /// What makes a virtual environment; `virtualenv`, else `python3 -m venv` when absent.
    virtualenv_command: Option<String>,
    /// The Python of a virtual environment that `virtualenv` makes.
    virtualenv_python: Option<String>,
    #[serde(default)]
    state: State,
    /// Further arguments of pip.
    #[serde(default)]
    extra_args: String,
    /// Install as an editable checkout.
    #[serde(default)]
    editable: bool,
    /// Run pip in this folder.
    chdir: Option<String>,
    /// The program, such as `pip3.11`.
    executable: Option<String>,
    /// Bits that files are made without, such as `"022"`.
    umask: Option<String>,
    /// Allow to change what the system's package manager looks after.
    #[serde(default)]
    break_system_packages: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    Present,
    Absent,
    Latest,
    /// Installed anew.
    ForceReinstall,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let names = self.names()?;
        let mut changes = Vec::new();
        let ready = self.environment(host, &mut changes)?;
        let ran = host.applied().iter().any(|done| is_pip(&done.change));
        let pip = self.program(host)?;
        let words: Vec<String> = if !ready {
            names.clone()
        } else if self.requirements.is_some()
            || self.editable
            || matches!(self.state, State::Latest | State::ForceReinstall)
        {
            // Only pip knows what there is to do: it is run once.
            if ran { Vec::new() } else { names.clone() }
        } else {
            let listed = self.installed(host, &pip)?;
            let differs = |name: &&String| match version::Wanted::read(name) {
                Some(wanted) => {
                    let found = listed.iter().find(|(other, _)| *other == wanted.name);
                    match self.state {
                        State::Absent => found.is_some(),
                        _ => !found.is_some_and(|(_, version)| wanted.is_met(version)),
                    }
                }
                // A URL or a file: run once.
                None => !ran,
            };
            names.iter().filter(differs).cloned().collect()
        };
        if !words.is_empty() || (self.requirements.is_some() && !ran) {
            changes.push(Change::Exec(self.exec(&pip, &words)?));
        }
        let plan = Plan::from(changes).with("name", names).with("state", word(self.state));
        Ok(plan.with("virtualenv", self.virtualenv.clone()).with("requirements", self.requirements.clone()))
    }

    fn report(&self, _host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        let Some(last) = done.iter().rev().find(|done| is_pip(&done.change)) else { return Ok(()) };
        if let Some(output) = &last.output {
            let worked = ["Successfully installed", "Successfully uninstalled"];
            let changed = worked.iter().any(|said| output.stdout.contains(said));
            // What made the environment changed something too.
            result.put("changed", changed || done.iter().filter(|done| done.output.is_some()).count() > 1);
            result.put("stdout", output.stdout.as_str());
            result.put("stderr", output.stderr.as_str());
        }
        if let Change::Exec(exec) = &last.change {
            result.put("cmd", exec.argv.iter().map(|word| Value::from(word.as_str())).collect::<Value>());
        }
        Ok(())
    }
}

fn word(state: State) -> &'static str {
    match state {
        State::Present => "present",
        State::Absent => "absent",
        State::Latest => "latest",
        State::ForceReinstall => "forcereinstall",
    }
}

fn is_pip(change: &Change) -> bool {
    matches!(change, Change::Exec(exec) if exec.argv.iter().any(|word| word == "install" || word == "uninstall"))
}

impl Args {
    fn names(&self) -> Result<Vec<String>, Error> {
        // A comma may begin another condition of the package before it: `x>=1,<2`.
        let mut names: Vec<String> = Vec::new();
        for part in self.name.iter().map(|part| part.trim()).filter(|part| !part.is_empty()) {
            match names.last_mut() {
                Some(last) if part.starts_with(['<', '>', '=', '!', '~']) => last.push_str(&format!(",{part}")),
                Some(_) | None => names.push(part.to_owned()),
            }
        }
        if names.iter().any(|name| name.starts_with('-')) {
            return Err(bad("`name` is a list of packages: options go into `extra_args`"));
        }
        match (&self.version, names.as_mut_slice()) {
            (None, []) if self.requirements.is_none() && self.virtualenv.is_none() => {
                return Err(bad("nothing to do: give `name`, `requirements` or `virtualenv`"));
            }
            (Some(version), [name]) if self.state != State::Latest => *name = format!("{name}=={version}"),
            (Some(_), _) => return Err(bad("`version` needs the one package in `name`, and no `state: latest`")),
            (None, _) => {}
        }
        if self.executable.is_some() && self.virtualenv.is_some() {
            return Err(bad("give `executable` or `virtualenv`, not both"));
        }
        Ok(names)
    }

    /// Adds what makes the virtual environment; returns whether it is there.
    fn environment(&self, host: &dyn Host, changes: &mut Vec<Change>) -> Result<bool, Error> {
        let Some(folder) = &self.virtualenv else { return Ok(true) };
        if host.stat(&format!("{folder}/bin/activate"))?.is_some() {
            return Ok(true);
        }
        let there = |path: &str| host.stat(path).map(|stat| stat.is_some());
        let mut argv = match &self.virtualenv_command {
            Some(line) => crate::invocation::words(line)?,
            None if there("/usr/bin/virtualenv")? || there("/usr/local/bin/virtualenv")? => {
                vec!["virtualenv".to_owned()]
            }
            None => vec!["python3".to_owned(), "-m".to_owned(), "venv".to_owned()],
        };
        if self.virtualenv_site_packages {
            argv.push("--system-site-packages".to_owned());
        }
        if let Some(python) = &self.virtualenv_python {
            if argv.iter().any(|word| word.ends_with("venv") && !word.ends_with("virtualenv")) {
                return Err(bad("`virtualenv_python` is for `virtualenv`: name the Python in `virtualenv_command`"));
            }
            argv.push(format!("--python={python}"));
        }
        argv.push(folder.clone());
        changes.push(Change::Exec(Exec { chdir: self.chdir.clone(), ..Exec::new(argv) }));
        Ok(false)
    }

    fn program(&self, host: &dyn Host) -> Result<Vec<String>, Error> {
        if let Some(folder) = &self.virtualenv {
            return Ok(vec![format!("{folder}/bin/pip")]);
        }
        if let Some(program) = &self.executable {
            return Ok(vec![paths::expand(host, program)?]);
        }
        for name in ["pip3", "pip"] {
            for folder in ["/usr/local/bin", "/usr/bin"] {
                if host.stat(&format!("{folder}/{name}"))?.is_some() {
                    return Ok(vec![name.to_owned()]);
                }
            }
        }
        Ok(["python3", "-m", "pip"].map(str::to_owned).to_vec())
    }

    /// Returns the names, as they are compared, and versions of what is installed.
    fn installed(&self, host: &dyn Host, pip: &[String]) -> Result<Vec<(String, String)>, Error> {
        let words = ["list", "--format=freeze", "--disable-pip-version-check"];
        let argv: Vec<&str> = pip.iter().map(String::as_str).chain(words).collect();
        let output = slow(host, &argv, SLOW_S)?;
        if !output.success() {
            let hint = if output.stderr.contains("No module named pip") { ": install `python3-pip`" } else { "" };
            return Err(failed(&argv, &output).context(format!("list Python packages{hint}")));
        }
        let pair =
            |line: &str| line.split_once("==").map(|(name, version)| (version::folded(name), version.to_owned()));
        Ok(output.stdout.lines().filter_map(pair).collect())
    }

    fn exec(&self, pip: &[String], names: &[String]) -> Result<Exec, Error> {
        let umask = match &self.umask {
            None => None,
            Some(text) => {
                Some(u32::from_str_radix(text, 8).map_err(|_| bad("`umask` is octal digits such as `\"022\"`"))?)
            }
        };
        let mut argv = pip.to_vec();
        let verb = match self.state {
            State::Absent => &["uninstall", "-y"][..],
            State::Present => &["install"],
            State::Latest => &["install", "--upgrade"],
            State::ForceReinstall => &["install", "--upgrade", "--force-reinstall"],
        };
        argv.extend(verb.iter().map(|word| (*word).to_owned()));
        argv.push("--disable-pip-version-check".to_owned());
        argv.extend(crate::invocation::words(&self.extra_args)?);
        if let Some(file) = &self.requirements {
            argv.extend(["-r".to_owned(), file.clone()]);
        }
        for name in names {
            if self.editable && self.state != State::Absent {
                argv.push("-e".to_owned());
            }
            argv.push(name.clone());
        }
        // Through the environment: an older pip, which asks nobody for leave, does not know the option.
        let env = match self.break_system_packages {
            true => vec![("PIP_BREAK_SYSTEM_PACKAGES".to_owned(), "1".to_owned())],
            false => Vec::new(),
        };
        if argv.last().is_some_and(|word| word.starts_with("--disable")) {
            return Err(Error::new(ErrorKind::Arguments, "no package given"));
        }
        Ok(Exec { env, umask, chdir: self.chdir.clone(), ..Exec::new(argv) })
    }
}
