use schemars::JsonSchema;
use serde::Deserialize;

use crate::decode::Arguments;
use crate::host::Put as _;
use crate::shared::State;
use crate::{Change, Diff, Error, ErrorKind, Exec, Host, Module, Plan, Probe, Write};

mod table;

use table::Table;

/// Keep a job, or a variable, in a user's crontab or in a file of `/etc/cron.d`.
///
/// ```yaml
/// - cron:
///     name: check the GPUs
///     minute: "*/5"
///     job: /usr/local/bin/check-gpus
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The job's name, kept in a comment before it; with `env`, the variable's.
    name: String,
    /// Whose job it is: the user of the task when absent.
    user: Option<String>,
    /// The command, or the variable's value.
    #[serde(alias = "value")]
    job: Option<String>,
    /// A file, below `/etc/cron.d` unless absolute, instead of a user's crontab.
    cron_file: Option<String>,
    #[serde(default)]
    state: State,
    /// Keep the old file beside the new one; for a `cron_file`.
    #[serde(default)]
    backup: bool,
    #[serde(default = "any")]
    minute: String,
    #[serde(default = "any")]
    hour: String,
    /// The day of the month.
    #[serde(default = "any", alias = "dom")]
    day: String,
    #[serde(default = "any")]
    month: String,
    /// The day of the week.
    #[serde(default = "any", alias = "dow")]
    weekday: String,
    /// A word instead of times.
    special_time: Option<Special>,
    /// Keep the job's line as a comment.
    #[serde(default)]
    disabled: bool,
    /// Manage a variable instead of a job.
    #[serde(default)]
    env: bool,
    /// The variable after which a new one is put.
    insertafter: Option<String>,
    /// The variable before which a new one is put.
    insertbefore: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Special {
    Reboot,
    Yearly,
    Annually,
    Monthly,
    Weekly,
    Daily,
    Hourly,
}

impl Special {
    fn word(self) -> &'static str {
        match self {
            Special::Reboot => "@reboot",
            Special::Yearly => "@yearly",
            Special::Annually => "@annually",
            Special::Monthly => "@monthly",
            Special::Weekly => "@weekly",
            Special::Daily => "@daily",
            Special::Hourly => "@hourly",
        }
    }
}

fn any() -> String {
    "*".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        self.check()?;
        let file = self
            .cron_file
            .as_ref()
            .map(|file| if file.starts_with('/') { file.clone() } else { format!("/etc/cron.d/{file}") });
        let (text, there) = match &file {
            Some(path) => {
                let bytes = host.read(path)?;
                let there = bytes.is_some();
                (String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned(), there)
            }
            None => (self.crontab(host)?, true),
        };
        let mut table = Table::of(&text);
        let changed = match (self.env, self.state) {
            (false, State::Present) => table.set_job(&self.name, &self.line()),
            (false, State::Absent) => table.remove_job(&self.name),
            (true, State::Present) => {
                let value = self.job.as_deref().unwrap_or_default();
                table.set_variable(&self.name, value, self.insertafter.as_deref(), self.insertbefore.as_deref())?
            }
            (true, State::Absent) => table.remove_variable(&self.name),
        };
        let mut plan = Plan::default();
        // cron ignores a last line without an end.
        if changed || !text.is_empty() && !text.ends_with('\n') {
            let new = table.text();
            let mode = if there { None } else { Some(0o644) };
            match &file {
                Some(path) if self.state == State::Absent && new.trim().is_empty() => {
                    plan.changes.push(Change::Remove { path: path.clone() });
                }
                Some(path) => {
                    plan.changes.push(Change::Write(Write { backup: self.backup, mode, ..Write::new(path, new) }));
                }
                None => {
                    let header =
                        self.user.as_ref().map_or("crontab".to_owned(), |user| format!("crontab for user \"{user}\""));
                    plan.diff.push(Diff {
                        before_header: Some(header.clone()),
                        after_header: Some(header),
                        before: Some(text),
                        after: Some(new.clone()),
                        prepared: None,
                    });
                    let exec = Exec { stdin: Some(new), ..Exec::new(self.command("-")) };
                    plan.changes.push(Change::Exec(exec));
                }
            }
        }
        plan.result.put("jobs", table.jobs());
        plan.result.put("envs", table.variables());
        if let Some(file) = &self.cron_file {
            plan.result.put("cron_file", file.as_str());
            let name = file.rsplit('/').next().unwrap_or(file);
            if !name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter)) {
                plan.warnings
                    .push(format!("cron skips `{name}`: names in `/etc/cron.d` are letters, digits, `_` and `-`"));
            }
        }
        Ok(plan)
    }
}

impl Args {
    fn check(&self) -> Result<(), Error> {
        let bad = |message: String| Err(Error::new(ErrorKind::Arguments, message));
        let times = [&self.minute, &self.hour, &self.day, &self.month, &self.weekday];
        if self.special_time.is_some() && times.iter().any(|time| *time != "*") {
            return bad("`special_time` and times exclude each other".into());
        }
        if let Some(time) = times.iter().find(|time| time.is_empty() || time.contains(char::is_whitespace)) {
            return bad(format!("`{time}` is no time: cron reads fields that are separated by blanks"));
        }
        if self.cron_file.as_deref() == Some("/etc/crontab") {
            return bad("Will not manage /etc/crontab via cron_file, see documentation.".into());
        }
        if self.name.is_empty() || self.name.contains('\n') {
            return bad("`name` is one line".into());
        }
        if self.env && self.name.contains([' ', '=']) {
            return bad(format!("`{}` is no variable's name", self.name));
        }
        if self.insertafter.is_some() && self.insertbefore.is_some() {
            return bad("`insertafter` and `insertbefore` exclude each other".into());
        }
        if !self.env && (self.insertafter.is_some() || self.insertbefore.is_some()) {
            return bad("`insertafter` and `insertbefore` place variables: set `env: true`".into());
        }
        if self.state == State::Present {
            let Some(job) = &self.job else {
                return bad("`job` is missing".into());
            };
            if job.trim_matches(['\r', '\n']).contains(['\r', '\n']) {
                return bad("`job` has several lines, and cron reads one: put them into a script".into());
            }
            if self.cron_file.is_some() && self.user.is_none() {
                return bad("`cron_file` needs `user`: lines of such a file name one".into());
            }
        }
        Ok(())
    }

    fn line(&self) -> String {
        let job = self.job.as_deref().unwrap_or_default().trim_matches(['\r', '\n']);
        let time = match self.special_time {
            Some(special) => special.word().to_owned(),
            None => [&self.minute, &self.hour, &self.day, &self.month, &self.weekday].map(String::as_str).join(" "),
        };
        let off = if self.disabled { "#" } else { "" };
        match self.user.as_ref().filter(|_| self.cron_file.is_some()) {
            Some(user) => format!("{off}{time} {user} {job}"),
            None => format!("{off}{time} {job}"),
        }
    }

    fn command(&self, word: &str) -> Vec<String> {
        let user = self.user.iter().flat_map(|user| ["-u", user]);
        ["crontab"].into_iter().chain(user).chain([word]).map(str::to_owned).collect()
    }

    /// Returns the user's crontab; one that is not there is empty.
    fn crontab(&self, host: &dyn Host) -> Result<String, Error> {
        let probe = Probe { env: vec![("LC_ALL".into(), "C".into())], ..Probe::new(self.command("-l")) };
        let output = host.probe(&probe)?;
        let failed = |why: &str| Err(Error::new(ErrorKind::Host, format!("read the crontab: {why}")));
        match output.rc {
            0 => Ok(without_header(&output.stdout)),
            127 => failed("there is no `crontab` on this host: install `cron`, or `cronie` on Red Hat's kin"),
            1 if output.stderr.trim().is_empty() || output.stderr.contains("no crontab for") => Ok(String::new()),
            _ => failed(output.stderr.trim()),
        }
    }
}

/// Takes off the three lines that some versions of `crontab` put before what it lists.
fn without_header(text: &str) -> String {
    let header = |line: &&str| {
        line.starts_with("# DO NOT EDIT THIS FILE - edit the master and reinstall.")
            || line.starts_with("# (") && line.contains(" installed on ")
            || line.starts_with("# (Cron version")
    };
    let head = text.lines().take(3).take_while(header).count();
    text.split_inclusive('\n').skip(head).collect()
}
