use schemars::JsonSchema;
use serde::Deserialize;

use crate::ask::{ask, bad};
use crate::decode::Arguments;
use crate::shared::State;
use crate::{Change, Error, Exec, Host, Module, Plan};

/// Keep a rule that says which SELinux type files get.
///
/// ```yaml
/// - sefcontext:
///     target: "/srv/registry(/.*)?"
///     setype: container_file_t
/// ```
///
/// It does not label files that are there: `command: restorecon -R PATH` does.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Which files: a regular expression of whole paths.
    #[serde(alias = "path")]
    target: String,
    /// The type that they get.
    setype: Option<String>,
    /// Label them as the files below this path are.
    #[serde(alias = "equal")]
    substitute: Option<String>,
    /// Which kind of files: `a` all, `b` block devices, `c` character devices, `d` directories, `f` files, `l` links,
    /// `p` pipes, `s` sockets.
    #[serde(default)]
    ftype: Kind,
    /// The user of the label; `system_u` for a new rule when absent.
    seuser: Option<String>,
    /// The level of the label; `s0` for a new rule when absent.
    #[serde(alias = "serange")]
    selevel: Option<String>,
    #[serde(default)]
    state: State,
    /// Tell the running kernel too.
    #[serde(default = "crate::shared::yes")]
    reload: bool,
    /// Accepted: the rule is kept whether SELinux is on or off.
    #[serde(default)]
    #[expect(dead_code, reason = "semanage does not need a kernel that has it on")]
    ignore_selinux_state: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    A,
    B,
    C,
    D,
    F,
    L,
    P,
    S,
}

impl Kind {
    /// The letter, and the words of `semanage fcontext --list`.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Kind::A => ("a", "all files"),
            Kind::B => ("b", "block device"),
            Kind::C => ("c", "character device"),
            Kind::D => ("d", "directory"),
            Kind::F => ("f", "regular file"),
            Kind::L => ("l", "symbolic link"),
            Kind::P => ("p", "named pipe"),
            Kind::S => ("s", "socket"),
        }
    }
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        if self.target.is_empty() || self.target.starts_with('-') {
            return Err(bad("`target` is a pattern of paths"));
        }
        if self.setype.is_some() == self.substitute.is_some() && (self.setype.is_some() || self.state == State::Present)
        {
            return Err(bad("give `setype` or `substitute`"));
        }
        let list = ask(host, &["semanage", "fcontext", "--list", "--noheading", "-C"])?;
        let (letter, words) = self.ftype.words();
        let mut argv = vec!["semanage", "fcontext"];
        if !self.reload {
            argv.push("-N");
        }
        if let Some(other) = &self.substitute {
            let now = list.lines().find_map(|line| line.split_once(" = ").filter(|(target, _)| *target == self.target));
            let words: &[&str] = match (self.state, now) {
                (State::Present, Some((_, now))) if now.trim() == other => return Ok(Plan::default()),
                (State::Present, Some(_)) => &["--modify", "--equal", other, &self.target],
                (State::Present, None) => &["--add", "--equal", other, &self.target],
                (State::Absent, Some(_)) => &["--delete", "--equal", other, &self.target],
                (State::Absent, None) => return Ok(Plan::default()),
            };
            return Ok(vec![Change::Exec(Exec::of(&[&argv, words].concat()))].into());
        }
        let now = list.lines().find_map(|line| context(line, &self.target, words));
        match (self.state, now) {
            (State::Absent, None) => return Ok(Plan::default()),
            (State::Absent, Some(_)) => argv.extend(["--delete", "--ftype", letter]),
            (State::Present, now) => {
                let parts: Vec<&str> = now.unwrap_or_default().splitn(4, ':').collect();
                let same = |at: usize, wanted: &Option<String>| {
                    wanted.as_deref().is_none_or(|wanted| parts.get(at).copied() == Some(wanted))
                };
                if same(0, &self.seuser) && same(2, &self.setype) && same(3, &self.selevel) {
                    return Ok(Plan::default());
                }
                argv.extend([if now.is_some() { "--modify" } else { "--add" }, "--ftype", letter, "--type"]);
                argv.extend(self.setype.as_deref());
                argv.extend(self.seuser.as_deref().into_iter().flat_map(|user| ["--seuser", user]));
                argv.extend(self.selevel.as_deref().into_iter().flat_map(|level| ["--range", level]));
            }
        }
        argv.push(&self.target);
        Ok(vec![Change::Exec(Exec::of(&argv))].into())
    }
}

/// Returns the label in a line `TARGET  all files  system_u:object_r:etc_t:s0` about this target.
fn context<'a>(line: &'a str, target: &str, kind: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(target)?;
    let rest = rest.strip_prefix(' ')?.trim_start().strip_prefix(kind)?;
    rest.split_whitespace().next()
}
