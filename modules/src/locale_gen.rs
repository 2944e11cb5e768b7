use schemars::JsonSchema;

use crate::ask::{ask, bad, text};
use crate::decode::Arguments;
use crate::shared::State;
use crate::{Change, Error, ErrorKind, Exec, Host, Module, Plan, Write};

const FILE: &str = "/etc/locale.gen";
const KNOWN: &str = "/usr/share/i18n/SUPPORTED";

/// Keep a locale among those that Debian, Ubuntu and their kin build.
///
/// ```yaml
/// - locale_gen:
///     name: de_DE.UTF-8
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The locales, such as `de_DE.UTF-8`.
    name: Vec<String>,
    #[serde(default)]
    state: State,
}

/// Returns a locale's name as `locale -a` writes it: `en_US.UTF-8` is `en_US.utf8` there.
fn built(name: &str) -> String {
    match name.split_once('.') {
        Some((language, charset)) => {
            let (charset, variant) = charset.split_once('@').map_or((charset, None), |(set, rest)| (set, Some(rest)));
            let charset: String = charset.to_ascii_lowercase().split('-').collect();
            let variant = variant.map_or(String::new(), |variant| format!("@{variant}"));
            format!("{language}.{charset}{variant}")
        }
        None => name.to_owned(),
    }
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        if self.name.is_empty() || self.name.iter().any(|name| name.contains(char::is_whitespace) || name.is_empty()) {
            return Err(bad("`name` is a list of locales such as `de_DE.UTF-8`"));
        }
        let there = ask(host, &["locale", "-a"])?;
        let there: Vec<String> = there.lines().map(built).collect();
        let wanted = |name: &String| self.state == State::Present || there.contains(&built(name));
        let open: Vec<&String> =
            self.name.iter().filter(|name| there.contains(&built(name)) != (self.state == State::Present)).collect();
        if open.is_empty() {
            return Ok(Plan::default().with("name", self.name.clone()));
        }
        if host.stat(FILE)?.is_none() {
            let message = format!("this host has no `{FILE}`: install the package `locales`");
            return Err(Error::new(ErrorKind::Host, message));
        }
        let old = text(host, FILE)?;
        let known = text(host, KNOWN)?;
        let mut lines: Vec<String> = old.lines().map(str::to_owned).collect();
        for name in open.into_iter().filter(|name| wanted(name)) {
            let is_it =
                |line: &str| line.trim_start_matches(['#', ' ']).split_whitespace().next() == Some(name.as_str());
            match (lines.iter().position(|line| is_it(line)), self.state) {
                (Some(at), State::Present) => lines[at] = lines[at].trim_start_matches(['#', ' ']).to_owned(),
                (Some(_), State::Absent) => {
                    for line in lines.iter_mut().filter(|line| is_it(line) && !line.starts_with('#')) {
                        *line = format!("# {line}");
                    }
                }
                (None, State::Present) => match known.lines().find(|line| is_it(line)) {
                    Some(line) => lines.push(line.trim().to_owned()),
                    None => {
                        return Err(Error::new(ErrorKind::Host, format!("this host knows no locale `{name}`")));
                    }
                },
                (None, State::Absent) => {}
            }
        }
        let new = lines.join("\n") + "\n";
        let mut changes = Vec::new();
        if new != old {
            changes.push(Change::Write(Write::new(FILE, new)));
        }
        // Debian's makes the archive anew each time, Ubuntu's only when told to.
        let purge = self.state == State::Absent && host.stat("/var/lib/locales")?.is_some();
        changes.push(Change::Exec(Exec::of(if purge { &["locale-gen", "--purge"] } else { &["locale-gen"] })));
        Ok(Plan::from(changes).with("name", self.name.clone()))
    }
}
