use schemars::JsonSchema;
use serde::Deserialize;

use crate::ask::{bad, run};
use crate::decode::Arguments;
use crate::{Change, Error, ErrorKind, Exec, Host, Module, Plan};

/// Choose which of several programs a common name leads to.
///
/// ```yaml
/// - alternatives:
///     name: iptables
///     path: /usr/sbin/iptables-legacy
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The name of the link, such as `editor`.
    name: String,
    /// The program that it leads to.
    path: Option<String>,
    /// The link itself, such as `/usr/bin/editor`; needed where the name is new.
    link: Option<String>,
    /// The rank of this program; the highest is taken in the mode `auto`. 50 for a new one when absent.
    priority: Option<i64>,
    #[serde(default)]
    state: State,
    /// Further links that change along.
    #[serde(default)]
    subcommands: Vec<Follower>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    /// It is known, whatever is chosen.
    Present,
    /// It is chosen.
    #[default]
    Selected,
    /// It is known, and the rank decides.
    Auto,
    /// It is not known.
    Absent,
}

/// A link that changes along.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Follower {
    /// Its name.
    name: String,
    /// What it leads to.
    path: String,
    /// The link itself.
    link: String,
}

/// What the host says of a name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Known {
    auto: bool,
    current: Option<String>,
    link: Option<String>,
    /// Paths with their priorities.
    paths: Vec<(String, i64)>,
}

/// Reads what `update-alternatives --display` prints, Debian's and the one of Fedora and its kin.
fn known(text: &str, name: &str) -> Known {
    let mut known = Known::default();
    for (nth, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if nth == 0 {
            known.auto = line.ends_with("auto mode") || line.ends_with("status is auto.");
        } else if let Some((_, path)) = line.trim().split_once("link currently points to ") {
            known.current = Some(path.to_owned());
        } else if let Some(link) = line.strip_prefix(&format!("  link {name} is ")) {
            known.link = Some(link.to_owned());
        } else if let Some((path, rest)) = line.split_once(" - ").filter(|(path, _)| path.starts_with('/')) {
            let priority =
                rest.split_once("priority ").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
            known.paths.extend(priority.map(|priority| (path.to_owned(), priority)));
        }
    }
    known
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        if self.name.is_empty() || self.name.starts_with('-') || self.name.contains('/') {
            return Err(bad(format!("`{}` is no alternative's name", self.name)));
        }
        let output = run(host, &["update-alternatives", "--display", &self.name])?;
        let known = if output.success() { known(&output.stdout, &self.name) } else { Known::default() };
        let Some(path) = self.path.as_deref() else {
            if self.state != State::Auto {
                return Err(bad("`path` is missing: only `state: auto` does without"));
            }
            let words = ["update-alternatives", "--auto", &self.name];
            let changes = if known.auto { Vec::new() } else { vec![Change::Exec(Exec::of(&words))] };
            return Ok(changes.into());
        };
        let priority = known.paths.iter().find(|(other, _)| other == path).map(|(_, priority)| *priority);
        if self.state == State::Absent {
            let words = ["update-alternatives", "--remove", &self.name, path];
            let changes = if priority.is_some() { vec![Change::Exec(Exec::of(&words))] } else { Vec::new() };
            return Ok(changes.into());
        }
        let mut changes = Vec::new();
        if priority.is_none() || self.priority.is_some_and(|wanted| Some(wanted) != priority) {
            changes.push(self.install(host, path, &known)?);
        }
        match self.state {
            State::Selected if known.auto || known.current.as_deref() != Some(path) => {
                changes.push(Change::Exec(Exec::of(&["update-alternatives", "--set", &self.name, path])));
            }
            State::Auto if !known.auto && !known.paths.is_empty() => {
                changes.push(Change::Exec(Exec::of(&["update-alternatives", "--auto", &self.name])));
            }
            State::Present | State::Selected | State::Auto | State::Absent => {}
        }
        // What is chosen by rank and is what is wanted stays by rank, as Ansible has it.
        let chosen = known.auto && known.current.as_deref() == Some(path);
        if self.state == State::Selected && chosen && priority.is_some() {
            changes.retain(|change| !matches!(change, Change::Exec(exec) if exec.argv[1] == "--set"));
        }
        Ok(changes.into())
    }
}

impl Args {
    fn install(&self, host: &dyn Host, path: &str, known: &Known) -> Result<Change, Error> {
        if host.stat(path)?.is_none() {
            return Err(Error::new(ErrorKind::Host, format!("there is no `{path}` on this host")));
        }
        // The old tool of Fedora and its kin does not show the link; its file does, in the second line.
        let file = format!("/var/lib/alternatives/{}", self.name);
        let noted = crate::ask::text(host, &file)?.lines().nth(1).map(str::to_owned);
        let link = self.link.clone().or_else(|| known.link.clone()).or(noted);
        let link = link.ok_or_else(|| bad(format!("`{}` is new on this host: give its `link`", self.name)))?;
        let priority = self.priority.unwrap_or(50).to_string();
        let mut argv = vec!["update-alternatives", "--install", &link, &self.name, path, &priority];
        for follower in &self.subcommands {
            argv.extend(["--slave", &follower.link, &follower.name, &follower.path]);
        }
        Ok(Change::Exec(Exec::new(argv)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_tools() {
        let debian = "editor - auto mode\n  link best version is /bin/nano\n  link currently points to /bin/nano\n  \
                      link editor is /usr/bin/editor\n  slave editor.1.gz is /x\n/bin/ed - priority -100\n\
                      /bin/nano - priority 40\n  slave editor.1.gz: /y\n";
        let paths = vec![("/bin/ed".to_owned(), -100), ("/bin/nano".to_owned(), 40)];
        let (current, link) = (Some("/bin/nano".to_owned()), Some("/usr/bin/editor".to_owned()));
        assert_eq!(known(debian, "editor"), Known { auto: true, current, link, paths });
        let fedora = "java - status is manual.\n link currently points to /a/java\n/a/java - family x priority 5\n \
                      follower jre: /b\nCurrent `best' version is /a/java.\n";
        let known = known(fedora, "java");
        assert_eq!((known.auto, known.paths), (false, vec![("/a/java".to_owned(), 5)]));
    }
}
