use schemars::JsonSchema;
use serde_json::Value;

use crate::decode::Arguments;
use crate::host::Map;
use crate::shared::yes;
use crate::{Error, ErrorKind, Host, Module, Plan, Probe};

/// Look up entries of the host's databases, such as `passwd`, `group` and `hosts`, as facts.
///
/// ```yaml
/// - getent:
///     database: passwd
///     key: root
/// - debug:
///     msg: "{{ ansible_facts.getent_passwd.root[4] }}"
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The database.
    database: String,
    /// The entry; all of them when absent.
    key: Option<String>,
    /// The service to ask instead of those that the host is set up to ask.
    service: Option<String>,
    /// What separates fields; `:` for accounts, else white space.
    split: Option<String>,
    /// Whether a key that is missing fails the task.
    #[serde(default = "yes")]
    fail_key: bool,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let mut argv = vec!["getent"];
        if let Some(service) = &self.service {
            argv.extend(["-s", service]);
        }
        argv.push(&self.database);
        argv.extend(self.key.as_deref());
        let output = host.probe(&Probe::new(argv))?;
        let failed = |why: String| Err(Error::new(ErrorKind::Host, why).with("rc", output.rc));
        let database = &self.database;
        let entries = match (output.rc, &self.key) {
            (0, _) => self.entries(&output.stdout),
            (2, Some(key)) if !self.fail_key => Map::from_iter([(key.clone(), Value::Null)]),
            (2, Some(key)) => return failed(format!("`{key}` is not in the database `{database}`")),
            (1, _) => return failed(format!("`{database}` is no database of this host")),
            (3, _) => return failed(format!("`{database}` can't be listed: give `key`")),
            (_, _) => return failed(format!("ask `getent` for `{database}`: {}", output.stderr.trim())),
        };
        let facts = Map::from_iter([(format!("getent_{database}"), Value::from(entries))]);
        Ok(Plan::default().with("ansible_facts", facts))
    }
}

impl Args {
    /// Returns the fields after the first by the first; those of a name that comes again as a list of lists.
    fn entries(&self, text: &str) -> Map {
        let account = ["passwd", "shadow", "group", "gshadow"].contains(&self.database.as_str());
        let split = self.split.as_deref().or(account.then_some(":"));
        let mut entries: Vec<(String, Vec<Value>)> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let fields: Vec<&str> = match split {
                Some(split) => line.split(split).collect(),
                None => line.split_whitespace().collect(),
            };
            let Some((name, rest)) = fields.split_first() else { continue };
            let rest: Value = rest.iter().copied().collect();
            match entries.iter_mut().find(|(other, _)| other == name) {
                Some((_, all)) => all.push(rest),
                None => entries.push(((*name).to_owned(), vec![rest])),
            }
        }
        let one_or_all = |mut all: Vec<Value>| if all.len() == 1 { all.remove(0) } else { all.into() };
        entries.into_iter().map(|(name, all)| (name, one_or_all(all))).collect()
    }
}
