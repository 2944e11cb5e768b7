use schemars::JsonSchema;
use serde::Deserialize;

use crate::ask::{ask, bad, failed, run};
use crate::decode::Arguments;
use crate::passed::table;
use crate::{Change, Error, Exec, Host, Module, Plan};

/// Keep rules and settings of Ubuntu's firewall.
///
/// ```yaml
/// - ufw:
///     rule: allow
///     port: "6443"
///     proto: tcp
///     src: 10.0.0.0/8
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Whether it is on; `reloaded` reads the rules anew, `reset` removes them all and turns it off.
    state: Option<State>,
    /// What happens to what no rule settles.
    #[serde(alias = "policy")]
    default: Option<Verdict>,
    /// For which way `default`, or a rule, is.
    direction: Option<Direction>,
    /// How much is logged.
    logging: Option<Logging>,
    /// What happens to what the rule is about.
    rule: Option<Verdict>,
    /// Remove the rule.
    #[serde(default)]
    delete: bool,
    /// The rule is for what is passed on, not for the host itself.
    #[serde(default)]
    route: bool,
    /// Before which rule a new one goes, counted from 1.
    insert: Option<u32>,
    /// Log what the rule is about.
    #[serde(default)]
    log: bool,
    #[serde(rename = "+options")]
    #[schemars(flatten)]
    options: Options,
}

table! {
    pub(super) struct Options {
        /// The source.
        from_ip | src: Text,
        /// The source's port.
        from_port: Text,
        /// The destination.
        to_ip | dest: Text,
        /// The destination's port, or several: `80,443`, `8000:8010`.
        to_port | port: Text,
        /// The protocol.
        proto | protocol: Text,
        /// A profile of a program, as `ufw app list` shows it.
        name | app: Text,
        /// The interface, for the rule's direction.
        interface | if: Text,
        /// The interface it comes in by.
        interface_in | if_in: Text,
        /// The interface it goes out by.
        interface_out | if_out: Text,
        /// A remark.
        comment: Text,
        /// What `insert` counts from: `zero`, `first-ipv4`, `last-ipv4`, `first-ipv6`, `last-ipv6`.
        insert_relative_to: Text,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    Enabled,
    Disabled,
    Reloaded,
    Reset,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Allow,
    Deny,
    Reject,
    Limit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Direction {
    #[serde(alias = "incoming")]
    In,
    #[serde(alias = "outgoing")]
    Out,
    Routed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Logging {
    On,
    Off,
    Low,
    Medium,
    High,
    Full,
}

/// Returns a variant's name as it is written.
fn word(variant: impl std::fmt::Debug) -> String {
    format!("{variant:?}").to_ascii_lowercase()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        if self.rule.is_none() && self.default.is_none() && self.logging.is_none() && self.state.is_none() {
            return Err(bad("nothing to do: give `rule`, `default`, `logging` or `state`"));
        }
        if self.default == Some(Verdict::Limit) {
            return Err(bad("`default` is `allow`, `deny` or `reject`"));
        }
        let options = self.options.text("insert_relative_to").unwrap_or("zero");
        if options != "zero" {
            return Err(bad("`insert_relative_to` other than `zero` is not handled"));
        }
        let status = ask(host, &["ufw", "status", "verbose"])?;
        let active = status.lines().any(|line| line.trim() == "Status: active");
        let said = |verb: &str| {
            host.applied()
                .iter()
                .any(|done| matches!(&done.change, Change::Exec(exec) if exec.argv.iter().any(|word| word == verb)))
        };
        let mut changes: Vec<Change> = Vec::new();
        let mut push = |words: &[&str]| changes.push(Change::Exec(Exec::of(&[&["ufw"], words].concat())));
        match self.state {
            Some(State::Reset) if !said("reset") => push(&["--force", "reset"]),
            Some(State::Disabled) if active => push(&["--force", "disable"]),
            Some(State::Reloaded) if active && !said("reload") => push(&["reload"]),
            Some(_) | None => {}
        }
        if let Some(verdict) = self.default {
            let way = match self.direction {
                None | Some(Direction::In) => "incoming",
                Some(Direction::Out) => "outgoing",
                Some(Direction::Routed) => "routed",
            };
            if self.policy(host, way)? != word(verdict) {
                push(&["default", &word(verdict), way]);
            }
        }
        if let Some(level) = self.logging {
            let level = word(level);
            // "on" is "low", as the program has it.
            let wanted = if level == "on" { "low" } else { &level };
            if crate::ask::text(host, "/etc/ufw/ufw.conf")?.lines().all(|line| line != format!("LOGLEVEL={wanted}")) {
                push(&["logging", &level]);
            }
        }
        if let Some(verdict) = self.rule {
            let rule = self.rule(verdict)?;
            let words: Vec<&str> = rule.iter().map(String::as_str).collect();
            // Whether a rule is there shows when it is to be added; there is a line each for IPv4 and IPv6.
            let asked: Vec<&str> = words.iter().copied().filter(|word| *word != "delete").collect();
            let trial = [&["ufw", "--dry-run"], asked.as_slice()].concat();
            let output = run(host, &trial)?;
            if !output.success() {
                return Err(failed(&trial, &output));
            }
            let is_there = |line: &str| line.starts_with("Skipping");
            let is_new = |line: &str| line.starts_with("Rule");
            let open =
                if self.delete { output.stdout.lines().any(is_there) } else { output.stdout.lines().any(is_new) };
            if open {
                push(&words);
            }
        }
        if self.state == Some(State::Enabled) && !active {
            push(&["--force", "enable"]);
        }
        let commands: Vec<serde_json::Value> = changes
            .iter()
            .filter_map(|change| match change {
                Change::Exec(exec) => Some(exec.argv.join(" ").into()),
                _ => None,
            })
            .collect();
        Ok(Plan::from(changes).with("commands", commands).with("msg", status.trim_end()))
    }
}

impl Args {
    /// Returns what happens to what no rule settles. Source: the comments of ufw's own file.
    fn policy(&self, host: &dyn Host, way: &str) -> Result<String, Error> {
        let key = match way {
            "incoming" => "DEFAULT_INPUT_POLICY",
            "outgoing" => "DEFAULT_OUTPUT_POLICY",
            _ => "DEFAULT_FORWARD_POLICY",
        };
        let text = crate::ask::text(host, "/etc/default/ufw")?;
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        Ok(match value.map(|value| value.trim_matches('"')) {
            Some("ACCEPT") => "allow",
            Some("REJECT") => "reject",
            Some(_) | None => "deny",
        }
        .to_owned())
    }

    fn rule(&self, verdict: Verdict) -> Result<Vec<String>, Error> {
        let given = &self.options;
        let mut words: Vec<String> = Vec::new();
        let mut push = |text: &str| words.push(text.to_owned());
        if self.route {
            push("route");
        }
        if self.delete {
            push("delete");
        } else if let Some(at) = self.insert {
            push("insert");
            push(&at.to_string());
        }
        push(&word(verdict));
        let way = self.direction.map(|direction| if direction == Direction::Out { "out" } else { "in" });
        match (given.text("interface"), way) {
            (Some(interface), Some(way)) => [way, "on", interface].iter().for_each(|text| push(text)),
            (Some(_), None) => return Err(bad("`interface` needs a `direction`")),
            (None, Some(way)) => push(way),
            (None, None) => {}
        }
        for (name, way) in [("interface_in", "in"), ("interface_out", "out")] {
            if let Some(interface) = given.text(name) {
                [way, "on", interface].iter().for_each(|text| push(text));
            }
        }
        if self.log {
            push("log");
        }
        push("from");
        push(given.text("from_ip").unwrap_or("any"));
        for (name, key) in
            [("from_port", "port"), ("to_ip", "to"), ("to_port", "port"), ("proto", "proto"), ("name", "app")]
        {
            match given.text(name) {
                Some("any") if name == "proto" => {}
                Some(text) if text.starts_with('-') => {
                    return Err(bad(format!("`{name}: {text}` begins with a hyphen")));
                }
                Some(text) => [key, text].iter().for_each(|text| push(text)),
                None if name == "to_ip" => ["to", "any"].iter().for_each(|text| push(text)),
                None => {}
            }
        }
        if let Some(text) = given.text("comment").filter(|_| !self.delete) {
            ["comment", text].iter().for_each(|text| push(text));
        }
        Ok(words)
    }
}
