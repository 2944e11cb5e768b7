use schemars::JsonSchema;
use serde_json::Value;

use crate::apt::update;
use crate::ask::{bad, text};
use crate::decode::Arguments;
use crate::rewrite::lines_of;
use crate::shared::{State, yes};
use crate::{Change, Error, ErrorKind, FileKind, Host, Mode, Module, Plan, Write, paths};

const SOURCES: &str = "/etc/apt/sources.list";
const FOLDER: &str = "/etc/apt/sources.list.d";

/// Keep a line of apt's sources.
///
/// ```yaml
/// - apt_repository:
///     repo: "deb [signed-by=/etc/apt/keyrings/docker.asc] https://download.docker.com/linux/debian bookworm stable"
///     filename: docker
/// ```
///
/// When apt can't read the new repository, the file is put back and the task fails. A repository with a key of its own
/// is best made with `deb822_repository`, and proven by what it offers with `apt_repo`.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The line, as `sources.list(5)` has it. `ppa:OWNER/NAME` is not handled.
    repo: String,
    #[serde(default)]
    state: State,
    /// Permission bits of the file.
    mode: Option<Mode>,
    /// Refresh apt's lists when the sources have changed.
    #[serde(default = "yes", alias = "update-cache")]
    update_cache: bool,
    /// How often a download of the lists is tried again.
    #[serde(default = "five")]
    update_cache_retries: u32,
    /// Accepted for Ansible's sake: apt itself spaces its tries.
    #[serde(default, rename = "update_cache_retry_max_delay")]
    _update_cache_retry_max_delay: Option<u32>,
    /// Accepted for Ansible's sake: it is for `ppa:` only.
    #[serde(default, rename = "validate_certs")]
    _validate_certs: Option<bool>,
    /// The file's name below `/etc/apt/sources.list.d`, without its ending; made from the address when absent.
    filename: Option<String>,
    /// Accepted for Ansible's sake: it is for `ppa:` only.
    #[serde(default, rename = "codename")]
    _codename: Option<String>,
    /// Accepted for Ansible's sake: nothing needs to be installed for this module.
    #[serde(default, rename = "install_python_apt")]
    _install_python_apt: Option<bool>,
}

fn five() -> u32 {
    5
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let repo = self.repo.trim();
        if repo.starts_with("ppa:") {
            let message = "`ppa:` is not handled: give the line and its key with `deb822_repository`, \
                           whose address is `https://ppa.launchpadcontent.net/OWNER/NAME/ubuntu`";
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let wanted = normal(repo)
            .filter(|wanted| !wanted.off)
            .ok_or_else(|| bad(format!("`{repo}` is no line of apt's sources")))?;
        let mut files = vec![SOURCES.to_owned()];
        let names = host.list(FOLDER)?.unwrap_or_default();
        files.extend(names.iter().filter(|name| name.ends_with(".list")).map(|name| paths::join(FOLDER, name)));
        let mut changes = Vec::new();
        let (mut added, mut removed, mut there) = (Vec::new(), Vec::new(), false);
        for path in files {
            let old = text(host, &path)?;
            let mut kept = Vec::new();
            for line in lines_of(old.as_bytes()) {
                let line = String::from_utf8_lossy(&line).into_owned();
                match normal(line.trim()).filter(|found| found.text == wanted.text) {
                    Some(_) if self.state == State::Absent => {}
                    Some(found) if found.off => {
                        there = true;
                        kept.push(format!("{repo}\n"));
                    }
                    Some(_) => {
                        there = true;
                        kept.push(line);
                    }
                    None => kept.push(line),
                }
            }
            let new = kept.concat();
            if new != old && self.state == State::Absent && new.trim().is_empty() && path != SOURCES {
                removed.push(Value::from(path.as_str()));
                changes.push(Change::Remove { path });
            } else if new != old {
                changes.push(Change::Write(Write::new(path, new)));
            }
        }
        if self.state == State::Present && !there {
            let path = self.path(&wanted)?;
            let old = text(host, &path)?;
            let newline = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
            let mode = self.mode.as_ref().map_or(0o644, |mode| mode.bits(None, FileKind::File, 0o644));
            if old.is_empty() {
                added.push(Value::from(path.as_str()));
            }
            let write = Write { mode: Some(mode), ..Write::new(path, format!("{old}{newline}{repo}\n")) };
            changes.push(Change::Write(write));
        }
        if !changes.is_empty() && self.update_cache {
            changes.push(update(host, self.update_cache_retries)?);
        }
        let state = if self.state == State::Present { "present" } else { "absent" };
        let mut plan = Plan { transaction: true, ..Plan::from(changes) }.with("repo", repo).with("state", state);
        if host.applied().is_empty() {
            plan = plan.with("sources_added", added).with("sources_removed", removed);
        }
        Ok(plan)
    }
}

/// A line of apt's sources as far as two of them can be compared.
struct Source {
    /// Commented out.
    off: bool,
    text: String,
    uri: String,
}

/// Returns what a line names; `None` when it is no source.
fn normal(line: &str) -> Option<Source> {
    let (off, rest) = match line.strip_prefix('#') {
        Some(rest) => (true, rest.trim_start_matches('#').trim_start()),
        None => (false, line),
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let words: Vec<&str> = rest.split_whitespace().collect();
    if !matches!(words.first(), Some(&("deb" | "deb-src"))) {
        return None;
    }
    let text = words.join(" ").replace("[ ", "[").replace(" ]", "]");
    let options = text.find('[').zip(text.find(']')).map(|(_, end)| end + 1);
    let after = options.map_or_else(|| text.split_once(' ').map_or("", |(_, rest)| rest), |end| &text[end..]);
    let uri = after.split_whitespace().next()?.to_owned();
    (uri.contains(':') || uri.starts_with('/')).then_some(Source { off, text, uri })
}

impl Args {
    /// Returns the file that a new line goes to.
    fn path(&self, wanted: &Source) -> Result<String, Error> {
        let name = match &self.filename {
            Some(name) if name.contains('/') && !name.starts_with(FOLDER) => {
                return Err(bad(format!("`filename: {name}` is no name of a file below `{FOLDER}`")));
            }
            Some(name) => paths::name(name).trim_end_matches(".list").to_owned(),
            None => {
                let address = wanted.uri.split_once("://").map_or(wanted.uri.as_str(), |(_, rest)| rest);
                let address = address.split_once('@').map_or(address, |(_, rest)| rest);
                let words = address.split(|letter: char| !letter.is_ascii_alphanumeric());
                words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_")
            }
        };
        Ok(format!("{FOLDER}/{name}.list"))
    }
}
