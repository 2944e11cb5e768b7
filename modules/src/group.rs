use schemars::JsonSchema;

use crate::accounts;
use crate::decode::Arguments;
use crate::host::Put as _;
use crate::shared::State;
use crate::{Change, Error, ErrorKind, Exec, Host, Module, Plan};

/// Keep a group present or absent.
///
/// ```yaml
/// - group:
///     name: docker
///     gid: 999
///     system: true
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The group's name.
    name: String,
    #[serde(default)]
    state: State,
    /// The group's number; the next free one when absent.
    gid: Option<u32>,
    /// Take the number of a new group from those of the system's own.
    #[serde(default)]
    system: bool,
    /// Look at `/etc/group` alone, and not at a directory service.
    #[serde(default)]
    local: bool,
    /// Allow a number that another group has.
    #[serde(default)]
    non_unique: bool,
    /// Remove a group even if it is some user's own.
    #[serde(default)]
    force: bool,
    /// The lowest number for a new group.
    gid_min: Option<u32>,
    /// The highest number for a new group.
    gid_max: Option<u32>,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        if self.name.is_empty() || self.name.contains([':', ',', '\n']) || self.name.starts_with('-') {
            return Err(Error::new(ErrorKind::Arguments, format!("`{}` is no group's name", self.name)));
        }
        let found = accounts::group(host, &self.name, self.local)?.filter(|group| group.name == self.name);
        let other = |group: &accounts::Group| Some(group.gid) == self.gid && group.name != self.name;
        if self.state == State::Present
            && !self.non_unique
            && found.as_ref().is_none_or(|group| Some(group.gid) != self.gid)
            && let Some(other) = accounts::groups(host)?.into_iter().find(other)
        {
            return Err(Error::new(
                ErrorKind::Host,
                format!("GID '{}' already exists with group '{}'", other.gid, other.name),
            ));
        }
        let gid = self.gid.map(|gid| gid.to_string());
        let argv: Option<Vec<String>> = match (self.state, &found) {
            (State::Absent, None) => None,
            (State::Absent, Some(_)) => {
                let mut argv = vec!["groupdel"];
                if self.force {
                    argv.push("--force");
                }
                Some(argv.into_iter().map(str::to_owned).collect())
            }
            (State::Present, Some(group)) if self.gid.is_none_or(|gid| gid == group.gid) => None,
            (State::Present, found) => {
                let mut argv = vec![if found.is_some() { "groupmod" } else { "groupadd" }.to_owned()];
                if let Some(gid) = gid {
                    argv.extend(["--gid".to_owned(), gid]);
                    if self.non_unique {
                        argv.push("--non-unique".to_owned());
                    }
                }
                if found.is_none() {
                    if self.system {
                        argv.push("--system".to_owned());
                    }
                    for (key, limit) in [("GID_MIN", self.gid_min), ("GID_MAX", self.gid_max)] {
                        argv.extend(limit.into_iter().flat_map(|limit| ["--key".to_owned(), format!("{key}={limit}")]));
                    }
                }
                Some(argv)
            }
        };
        let changes = argv.into_iter().map(|mut argv| {
            argv.push(self.name.clone());
            Change::Exec(Exec::new(argv))
        });
        let mut plan = Plan::from(changes.collect::<Vec<_>>())
            .with("name", self.name.as_str())
            .with("state", if self.state == State::Present { "present" } else { "absent" })
            .with("system", self.system);
        if let Some(gid) = found.map(|group| group.gid).or(self.gid).filter(|_| self.state == State::Present) {
            plan.result.put("gid", gid);
        }
        Ok(plan)
    }
}
