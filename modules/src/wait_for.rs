use std::thread;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::decode::Arguments;
use crate::host::Put as _;
use crate::pattern::{Flags, Pattern, Regexp};
use crate::{Error, ErrorKind, Host, Module, Plan};

mod connections;

use connections::{Matched, drained, port_answers};

/// Wait until a port is open or closed, a path is there or gone, or a text appears.
///
/// ```yaml
/// - wait_for:
///     host: "{{ ansible_default_ipv4.address }}"
///     port: 6443
///     timeout: 120
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The machine whose port is asked, from this host.
    #[serde(default = "this_host")]
    host: String,
    port: Option<u16>,
    /// A path on this host.
    path: Option<String>,
    #[serde(default)]
    state: State,
    /// A regular expression to find in the file, or in what the port sends.
    search_regex: Option<Regexp>,
    /// Seconds to wait before the first look.
    #[serde(default)]
    delay: f64,
    /// Seconds until the task fails; without `port` and `path`, how long it waits.
    #[serde(default = "minutes")]
    timeout: f64,
    /// Seconds between looks.
    #[serde(default = "one")]
    sleep: f64,
    /// Seconds that one try to connect may take.
    #[serde(default = "five")]
    connect_timeout: f64,
    /// With `drained`: machines whose connections do not count.
    exclude_hosts: Option<Vec<String>>,
    /// With `drained`: states in which a connection counts.
    #[serde(default = "active_states")]
    active_connection_states: Vec<String>,
    /// What to say instead when time is up.
    msg: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    /// The port is open, or the path is there.
    #[default]
    Started,
    Present,
    /// The port is closed, or the path is gone.
    Stopped,
    Absent,
    /// Nobody is connected to the port.
    Drained,
}

fn this_host() -> String {
    "127.0.0.1".to_owned()
}

fn minutes() -> f64 {
    300.0
}

fn one() -> f64 {
    1.0
}

fn five() -> f64 {
    5.0
}

fn active_states() -> Vec<String> {
    connections::STATES[..6].iter().map(|(name, _)| (*name).to_owned()).collect()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let pattern = self.check()?;
        let path = self.path.as_deref().map(|path| crate::paths::expand(host, path)).transpose()?;
        let started = Instant::now();
        thread::sleep(seconds(self.delay));
        let end = started + seconds(self.timeout);
        if self.port.is_none() && self.path.is_none() && self.state != State::Drained {
            thread::sleep(seconds(self.timeout));
            return Ok(self.result(started, path, None));
        }
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if let Some(matched) = self.look(host, pattern.as_ref(), path.as_deref(), left)? {
                return Ok(self.result(started, path, Some(matched)));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let elapsed = started.elapsed().as_secs();
                let message = self.msg.clone().unwrap_or_else(|| self.time_is_up());
                return Err(Error::new(ErrorKind::Failed, message).with("elapsed", elapsed));
            }
            thread::sleep(seconds(self.sleep).min(left));
        }
    }
}

fn seconds(number: f64) -> Duration {
    Duration::from_secs_f64(number.clamp(0.0, 1e9))
}

impl Args {
    fn check(&self) -> Result<Option<Pattern>, Error> {
        let bad = |message: &str| Err(Error::new(ErrorKind::Arguments, message));
        match (self.port, &self.path) {
            (Some(_), Some(_)) => return bad("`port` and `path` exclude each other"),
            (None, Some(_)) if matches!(self.state, State::Stopped | State::Drained) => {
                return bad("`stopped` and `drained` are states of a `port`: a `path` is `present` or `absent`");
            }
            (None, None) if self.state == State::Drained => return bad("`state: drained` needs `port`"),
            (Some(_) | None, Some(_) | None) => {}
        }
        if self.exclude_hosts.is_some() && self.state != State::Drained {
            return bad("`exclude_hosts` goes with `state: drained` alone");
        }
        if let Some(name) = self.active_connection_states.iter().find(|name| connections::number_of(name).is_none()) {
            return bad(&format!("`{name}` is no state of a connection"));
        }
        let flags = Flags { multi_line: true, ..Flags::default() };
        self.search_regex.as_deref().map(|pattern| Pattern::new(pattern, flags)).transpose()
    }

    /// Returns what was matched once the condition holds; `None` while it does not.
    fn look(
        &self,
        host: &dyn Host,
        pattern: Option<&Pattern>,
        path: Option<&str>,
        left: Duration,
    ) -> Result<Option<Matched>, Error> {
        let limit = seconds(self.connect_timeout).min(left.max(Duration::from_millis(100)));
        match (self.state, path, self.port) {
            (State::Started | State::Present, Some(path), _) => {
                if host.stat(path)?.is_none() {
                    return Ok(None);
                }
                let Some(pattern) = pattern else { return Ok(Some(Matched::default())) };
                // Unreadable now may be readable later.
                let bytes = host.read(path).ok().flatten().unwrap_or_default();
                Matched::of(pattern, self.search_regex.as_deref().unwrap_or_default(), &bytes)
            }
            (_, Some(path), _) => Ok(host.lstat(path)?.is_none().then(Matched::default)),
            (State::Started | State::Present, None, Some(port)) => {
                let regex = self.search_regex.as_deref().unwrap_or_default();
                port_answers(&self.host, port, limit, left, pattern.map(|pattern| (pattern, regex)))
            }
            (State::Stopped | State::Absent, None, Some(port)) => {
                let open = port_answers(&self.host, port, limit, left, None)?.is_some();
                Ok((!open).then(Matched::default))
            }
            (State::Drained, None, port) => {
                let excluded = self.exclude_hosts.as_deref().unwrap_or_default();
                let gone =
                    drained(host, &self.host, port.unwrap_or_default(), &self.active_connection_states, excluded)?;
                Ok(gone.then(Matched::default))
            }
            (_, None, None) => Ok(Some(Matched::default())),
        }
    }

    /// Says so in Ansible's words, which playbooks look for.
    fn time_is_up(&self) -> String {
        let what = match (&self.path, self.port) {
            (Some(path), _) => path.clone(),
            (None, Some(port)) => format!("{}:{port}", self.host),
            (None, None) => self.host.clone(),
        };
        match (self.state, &self.search_regex) {
            (State::Started | State::Present, Some(regex)) => {
                format!("Timeout when waiting for search string {} in {what}", &**regex)
            }
            (State::Started | State::Present, None) if self.path.is_some() => {
                format!("Timeout when waiting for file {what}")
            }
            (State::Started | State::Present, None) => format!("Timeout when waiting for {what}"),
            (State::Stopped | State::Absent, _) if self.path.is_none() => {
                format!("Timeout when waiting for {what} to stop.")
            }
            (State::Stopped | State::Absent, _) => format!("Timeout when waiting for {what} to be absent."),
            (State::Drained, _) => format!("Timeout when waiting for {what} to drain"),
        }
    }

    fn result(&self, started: Instant, path: Option<String>, matched: Option<Matched>) -> Plan {
        let state = match self.state {
            State::Started => "started",
            State::Present => "present",
            State::Stopped => "stopped",
            State::Absent => "absent",
            State::Drained => "drained",
        };
        let matched = matched.unwrap_or_default();
        let mut plan = Plan::default()
            .with("state", state)
            .with("elapsed", started.elapsed().as_secs())
            .with("match_groups", matched.groups)
            .with("match_groupdict", matched.named);
        plan.result.put("port", self.port);
        plan.result.put("path", path);
        plan.result.put("search_regex", self.search_regex.as_deref());
        plan
    }
}
