use std::time::Duration;

use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::decode::Arguments;
use crate::facts::{Subset, Wanted, gather};
use crate::fnmatch::fnmatch;
use crate::host::Map;
use crate::host::Put as _;
use crate::{Error, Host, Module, Plan};

/// Gather facts about a host: its distribution, hardware, network, users and clock.
///
/// ```yaml
/// - setup:
///     gather_subset: [network, "!hardware"]
///     filter: ansible_default_ipv4
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// What to gather: `all`, `min`, names such as `network`, `hardware`, `virtual`, and each with `!` to leave it
    /// out.
    #[serde(default = "all")]
    gather_subset: Vec<String>,
    /// How many seconds one slow source, such as a network file system, may take.
    #[serde(default = "ten")]
    gather_timeout: u64,
    /// Patterns of the facts to return, with or without `ansible_` before the name; all of them when empty.
    #[serde(default)]
    filter: Vec<String>,
    /// The folder of the host's own facts: `*.fact` files with JSON or INI, or programs that print either.
    #[serde(default = "facts_d")]
    fact_path: String,
}

fn all() -> Vec<String> {
    vec!["all".to_owned()]
}

fn ten() -> u64 {
    10
}

fn facts_d() -> String {
    "/etc/ansible/facts.d".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let wanted = Wanted {
            subsets: Subset::asked(&self.gather_subset)?,
            timeout: Duration::from_secs(self.gather_timeout),
            fact_path: self.fact_path.trim_end_matches('/'),
        };
        let (facts, warnings) = gather(host, &wanted);
        let mut facts: Map = facts.into_iter().map(|(name, value)| (format!("ansible_{name}"), value)).collect();
        facts.put("gather_subset", json!(self.gather_subset));
        facts.put("module_setup", true);
        facts.retain(|name, _| self.asks_for(name));
        Ok(Plan { warnings, ..Plan::default().with("ansible_facts", Value::from(facts)) })
    }
}

impl Args {
    fn asks_for(&self, name: &str) -> bool {
        let matches = |pattern: &String| {
            pattern.is_empty()
                || fnmatch(pattern, name)
                || !pattern.starts_with("ansible_") && fnmatch(&format!("ansible_{pattern}"), name)
        };
        self.filter.is_empty() || self.filter.iter().any(matches)
    }
}
