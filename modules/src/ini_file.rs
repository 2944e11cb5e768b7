use schemars::JsonSchema;
use serde::Deserialize;

use crate::ask::bad;
use crate::decode::Arguments;
use crate::ini::{end_of, joined, lines_of, said, section_of};
use crate::rewrite::Edited;
use crate::shared::{Edit, Owner, State, yes};
use crate::{Error, Host, Module, Plan};

/// Keep an option of a file of `[sections]`, or a section.
///
/// ```yaml
/// - ini_file:
///     path: /etc/systemd/journald.conf
///     section: Journal
///     option: SystemMaxUse
///     value: 1G
///     no_extra_spaces: true
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The file.
    #[serde(alias = "dest")]
    path: String,
    /// The section; absent stands for the lines before any.
    section: Option<String>,
    /// Of several sections of this name, take the one that has these options.
    #[serde(default)]
    section_has_values: Vec<Having>,
    /// The option; absent stands for the section itself.
    option: Option<String>,
    /// Its value.
    value: Option<String>,
    /// Its values, each on a line of its own.
    values: Option<Vec<String>>,
    #[serde(default)]
    state: State,
    /// Have no other lines of this option; otherwise only the given values are added or removed.
    #[serde(default = "yes")]
    exclusive: bool,
    /// Make the file where there is none.
    #[serde(default = "yes")]
    create: bool,
    /// Write `option=value` without spaces around the equals sign.
    #[serde(default)]
    no_extra_spaces: bool,
    /// Leave a line as it is that differs in spaces only.
    #[serde(default)]
    ignore_spaces: bool,
    /// Allow an option without a value.
    #[serde(default)]
    allow_no_value: bool,
    /// Put the option in place of a line that has it commented out.
    #[serde(default = "yes")]
    modify_inactive_option: bool,
    /// Accepted: a link is followed always.
    #[serde(default)]
    #[expect(dead_code, reason = "the file itself is what is edited")]
    follow: bool,
    #[serde(rename = "+edit")]
    #[schemars(flatten)]
    edit: Edit,
    #[serde(rename = "+owner")]
    #[schemars(flatten)]
    owner: Owner,
}

/// An option that a section has.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Having {
    /// Its name.
    option: String,
    /// Its value; any when neither this nor `values` is given.
    value: Option<String>,
    /// Its values, all of which must be there.
    #[serde(default)]
    values: Vec<String>,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        self.check()?;
        let wanted = self.owner.wanted(host)?;
        let rewrite = self.edit.rewrite(&wanted);
        let edited = Edited::read(host, &self.path)?;
        let old = match &edited.bytes {
            Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            None if self.create => String::new(),
            None => return Err(edited.missing()),
        };
        if edited.written || (edited.bytes.is_none() && self.state == State::Absent) {
            let path = self.path.as_str();
            return match edited.written {
                true => Ok(edited.plan(host, old.into_bytes(), "", &rewrite)?.with("path", path)),
                false => Ok(Plan::default().with("msg", "OK").with("path", path)),
            };
        }
        let mut lines = lines_of(&old);
        let before = lines.clone();
        let told = match self.state {
            State::Present => self.put(&mut lines),
            State::Absent => self.take(&mut lines),
        };
        let same = lines == before;
        // A file that only lacks its last newline is left as it is.
        let new = if same && edited.bytes.is_some() { old } else { joined(&lines) };
        let told = if same { "OK" } else { told };
        let plan = edited.plan(host, new.into_bytes(), told, &rewrite)?;
        let plan = if plan.changes.is_empty() && same { plan.with("msg", "OK") } else { plan };
        Ok(plan.with("path", self.path.as_str()))
    }
}

impl Args {
    fn check(&self) -> Result<(), Error> {
        if self.value.is_some() && self.values.is_some() {
            return Err(bad("give `value` or `values`, not both"));
        }
        let texts = [&self.section, &self.option, &self.value];
        let all = texts.into_iter().flatten().chain(self.values.iter().flatten());
        if all.clone().any(|text| text.contains('\n')) {
            return Err(bad("a section, an option and a value are one line each"));
        }
        let none = self.value.is_none() && self.values.as_ref().is_none_or(Vec::is_empty);
        if self.option.is_some() && none && self.state == State::Present && !self.allow_no_value {
            return Err(bad("`option` needs a `value`; `allow_no_value: true` writes it without one"));
        }
        if self.option.is_none() && !none {
            return Err(bad("`value` belongs to an `option`: name it"));
        }
        Ok(())
    }

    fn wanted(&self) -> Vec<Option<&str>> {
        match (&self.value, &self.values) {
            (_, Some(values)) if !values.is_empty() => values.iter().map(|value| Some(value.as_str())).collect(),
            (value, _) => vec![value.as_deref()],
        }
    }

    fn line(&self, option: &str, value: Option<&str>) -> String {
        match value {
            None => option.to_owned(),
            Some(value) if self.no_extra_spaces => format!("{option}={value}"),
            // As Ansible writes an empty value.
            Some(value) => format!("{option} = {value}"),
        }
    }

    /// Returns where the section's lines are.
    fn section(&self, lines: &[String]) -> Option<(usize, usize)> {
        let Some(name) = self.section.as_deref().filter(|name| !name.is_empty()) else {
            return section_of(lines, None);
        };
        let mut from = 0;
        loop {
            let (start, end) = section_of(&lines[from..], Some(name))?;
            let (start, end) = (from + start, from + end);
            let has = |having: &Having| {
                let values = having.value.iter().chain(&having.values).map(|value| Some(value.as_str()));
                let found = lines[start..end].iter().filter_map(|line| said(line, &having.option));
                let found: Vec<Option<&str>> = found.filter(|said| said.active).map(|said| said.value).collect();
                !found.is_empty() && values.into_iter().all(|value| found.contains(&value))
            };
            if self.section_has_values.iter().all(has) {
                return Some((start, end));
            }
            from = end;
        }
    }

    fn put(&self, lines: &mut Vec<String>) -> &'static str {
        let Some((start, end)) = self.section(lines) else {
            lines.extend(self.section.iter().map(|name| format!("[{name}]")));
            for having in &self.section_has_values {
                let values = having.value.iter().chain(&having.values);
                let new: Vec<String> = values.map(|value| self.line(&having.option, Some(value))).collect();
                lines.extend(new);
            }
            let Some(option) = &self.option else { return "section added" };
            lines.extend(self.wanted().into_iter().map(|value| self.line(option, value)));
            return "section and option added";
        };
        let Some(option) = &self.option else { return "OK" };
        let mut missing = self.wanted();
        let mut told = "OK";
        let mut body: Vec<Option<String>> = lines[start..end].iter().cloned().map(Some).collect();
        let about = |line: &str| said(line, option).is_some_and(|said| said.active || self.modify_inactive_option);
        // First the lines that have a wanted value, then, where there are to be no others, those that can take one.
        let mut open: Vec<usize> = (0..body.len()).filter(|&at| body[at].as_deref().is_some_and(about)).collect();
        open.retain(|&at| {
            let line = body[at].clone().unwrap_or_default();
            let Some(found) = said(&line, option) else { return true };
            let Some(nth) = missing.iter().position(|value| *value == found.value) else { return true };
            let right = self.line(option, missing.remove(nth));
            if line != right && !(self.ignore_spaces && found.active) {
                body[at] = Some(right);
                told = "option changed";
            }
            false
        });
        for at in open.into_iter().filter(|_| self.exclusive) {
            body[at] = if missing.is_empty() { None } else { Some(self.line(option, missing.remove(0))) };
            told = "option changed";
        }
        let body: Vec<String> = body.into_iter().flatten().collect();
        let size = body.len();
        lines.splice(start..end, body);
        if !missing.is_empty() {
            let at = end_of(lines, (start, start + size));
            let new: Vec<String> = missing.into_iter().map(|value| self.line(option, value)).collect();
            lines.splice(at..at, new);
            told = "option added";
        }
        told
    }

    fn take(&self, lines: &mut Vec<String>) -> &'static str {
        let Some((start, end)) = self.section(lines) else { return "OK" };
        let Some(option) = &self.option else {
            let head = usize::from(self.section.is_some());
            lines.drain(start - head..end);
            return "section removed";
        };
        let wanted = self.wanted();
        let goes = |line: &str| {
            let found = said(line, option).filter(|said| said.active);
            found.is_some_and(|said| self.exclusive || wanted == [None] || wanted.contains(&said.value))
        };
        let kept: Vec<String> = lines[start..end].iter().filter(|line| !goes(line)).cloned().collect();
        lines.splice(start..end, kept);
        "option changed"
    }
}
