use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::decode::Arguments;
use crate::dpkg::Database;
use crate::{Change, Error, ErrorKind, Exec, Host, Module, Plan};

/// Hold a Debian package at its version, or let it go.
///
/// ```yaml
/// - dpkg_selections:
///     name: kubelet
///     selection: hold
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The package.
    name: String,
    /// What dpkg is to do with it.
    selection: Selection,
    /// What it was when the task began.
    #[serde(skip)]
    before: OnceLock<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Selection {
    Install,
    Hold,
    Deinstall,
    Purge,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let wanted = match self.selection {
            Selection::Install => "install",
            Selection::Hold => "hold",
            Selection::Deinstall => "deinstall",
            Selection::Purge => "purge",
        };
        let database = Database::read(host)?;
        let now = database.package(&self.name).map(|package| package.want.clone());
        let Some(now) = now else {
            return Err(Error::new(
                ErrorKind::Host,
                format!("dpkg knows no package `{}` on this host: `{wanted}` can't be set", self.name),
            ));
        };
        let before = self.before.get_or_init(|| now.clone());
        let mut plan = Plan::default().with("before", before.as_str()).with("after", wanted);
        if now != wanted {
            let exec = Exec::of(&["dpkg", "--set-selections"]);
            plan.changes.push(Change::Exec(Exec { stdin: Some(format!("{} {wanted}\n", self.name)), ..exec }));
        }
        Ok(plan)
    }
}
