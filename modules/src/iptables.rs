use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::ask::{ask, bad, failed, run};
use crate::decode::Arguments;
use crate::passed::table;
use crate::shared::State;
use crate::{Change, Error, Exec, Host, Module, Plan};

/// Keep a rule, a chain's policy or a chain of the kernel's packet filter.
///
/// ```yaml
/// - iptables:
///     chain: INPUT
///     protocol: tcp
///     destination_port: "10250"
///     source: 10.0.0.0/8
///     jump: ACCEPT
/// ```
///
/// Rules are lost at the next start: what keeps them is the host's own, such as `netfilter-persistent`.
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The table.
    #[serde(default)]
    table: Table,
    /// Which family of addresses.
    #[serde(default)]
    ip_version: Family,
    /// The chain, the system's or one's own.
    chain: Option<String>,
    #[serde(default)]
    state: State,
    /// Where a new rule goes.
    #[serde(default)]
    action: Action,
    /// Before which rule `action: insert` puts it, counted from 1.
    rule_num: Option<String>,
    /// What happens to packets that no rule of the chain settles.
    policy: Option<String>,
    /// Remove all rules of the chain, or of all chains of the table.
    #[serde(default)]
    flush: bool,
    /// Make and remove the chain itself.
    #[serde(default)]
    chain_management: bool,
    /// Seconds to wait while another program changes rules.
    wait: Option<String>,
    /// Accepted: names are never looked up.
    #[serde(default)]
    #[expect(dead_code, reason = "rules are compared by the program itself")]
    numeric: bool,
    /// Which flags of TCP are looked at, and which of them are set.
    tcp_flags: Option<TcpFlags>,
    #[serde(rename = "+rule")]
    #[schemars(flatten)]
    rule: Rule,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Table {
    #[default]
    Filter,
    Nat,
    Mangle,
    Raw,
    Security,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Family {
    #[default]
    Ipv4,
    Ipv6,
    Both,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    #[default]
    Append,
    Insert,
}

/// The flags of a TCP packet.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TcpFlags {
    /// Those that are looked at.
    flags: Vec<String>,
    /// Those of them that are set.
    flags_set: Vec<String>,
}

// In the order in which the options go on to the program.
table! {
    pub(super) struct Rule {
        /// The protocol; `!` before it means every other.
        protocol: Text,
        /// The source's address, network or name; `!` before it means every other.
        source: Text,
        /// The destination's address, network or name; `!` before it means every other.
        destination: Text,
        /// Extensions that are looked at.
        match: List,
        /// What happens to the packet: `ACCEPT`, `DROP`, `MASQUERADE`, a chain and so on.
        jump: Text,
        /// What a logged line begins with.
        log_prefix: Text,
        /// The level of a logged line.
        log_level: Text,
        /// The destination's new address, with `DNAT`.
        to_destination: Text,
        /// The new destination port or range, with `REDIRECT`.
        to_ports: Text,
        /// The source's new address, with `SNAT`.
        to_source: Text,
        /// The chain where it goes on without a return.
        goto: Text,
        /// The interface it came in by; `!` before it means every other.
        in_interface: Text,
        /// The interface it goes out by; `!` before it means every other.
        out_interface: Text,
        /// Only fragments after the first.
        fragment: Text,
        /// The rule's counters of packets and bytes.
        set_counters: Text,
        /// The source's port or range.
        source_port: Text,
        /// The destination's port or range.
        destination_port: Text,
        /// Several ports and ranges of the destination.
        destination_ports: List,
        /// `match` for packets that open a connection, `negate` for others, `ignore` for all.
        syn: Text,
        /// The mark for the service class, as a number.
        set_dscp_mark: Text,
        /// The service class.
        set_dscp_mark_class: Text,
        /// States of the connection, such as `ESTABLISHED`.
        ctstate: List,
        /// A range of sources.
        src_range: Text,
        /// A range of destinations.
        dst_range: Text,
        /// The set of addresses that is looked at.
        match_set: Text,
        /// What of the packet is looked for in the set: `src`, `dst` or both.
        match_set_flags: Text,
        /// How often it applies, such as `10/minute`.
        limit: Text,
        /// How often it applies at once.
        limit_burst: Text,
        /// The user whose process sent it; `!` before it means every other.
        uid_owner: Text,
        /// The group whose process sent it; `!` before it means every other.
        gid_owner: Text,
        /// The answer to what is rejected.
        reject_with: Text,
        /// The type of an ICMP packet.
        icmp_type: Text,
        /// The gateway, with `TEE`.
        gateway: Text,
        /// A remark.
        comment: Text,
    }
}

/// Options that a word stands for; those after `-m` first.
const OPTIONS: [(&str, &str, &str); 28] = [
    ("protocol", "", "-p"),
    ("source", "", "-s"),
    ("destination", "", "-d"),
    ("jump", "", "-j"),
    ("log_prefix", "", "--log-prefix"),
    ("log_level", "", "--log-level"),
    ("to_destination", "", "--to-destination"),
    ("to_ports", "", "--to-ports"),
    ("to_source", "", "--to-source"),
    ("goto", "", "-g"),
    ("in_interface", "", "-i"),
    ("out_interface", "", "-o"),
    ("set_counters", "", "-c"),
    ("source_port", "", "--source-port"),
    ("destination_port", "", "--destination-port"),
    ("set_dscp_mark", "", "--set-dscp"),
    ("set_dscp_mark_class", "", "--set-dscp-class"),
    ("src_range", "iprange", "--src-range"),
    ("dst_range", "iprange", "--dst-range"),
    ("limit", "limit", "--limit"),
    ("limit_burst", "limit", "--limit-burst"),
    ("uid_owner", "owner", "--uid-owner"),
    ("gid_owner", "owner", "--gid-owner"),
    ("reject_with", "", "--reject-with"),
    ("icmp_type", "", "--icmp-type"),
    ("gateway", "", "--gateway"),
    ("comment", "comment", "--comment"),
    ("match_set", "set", "--match-set"),
];

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        self.check()?;
        let programs: &[&str] = match self.ip_version {
            Family::Ipv4 => &["iptables"],
            Family::Ipv6 => &["ip6tables"],
            Family::Both => &["iptables", "ip6tables"],
        };
        let mut changes = Vec::new();
        let mut rule = Vec::new();
        for program in programs {
            rule = self.rule(program)?;
            changes.extend(self.one(host, program, &rule)?);
        }
        let plan = Plan::from(changes).with("chain", self.chain.as_deref()).with("flush", self.flush);
        Ok(plan.with("rule", rule.join(" ")).with("ip_version", format!("{:?}", self.ip_version).to_ascii_lowercase()))
    }
}

impl Args {
    fn check(&self) -> Result<(), Error> {
        let chain = self.chain.as_deref().unwrap_or_default();
        if chain.is_empty() && !self.flush || chain.starts_with('-') || chain.contains(' ') {
            return Err(bad("`chain` is missing: only `flush: true` does without"));
        }
        if self.rule.text("jump").is_some() && self.rule.text("goto").is_some() {
            return Err(bad("give `jump` or `goto`, not both"));
        }
        if self.flush && self.policy.is_some() {
            return Err(bad("give `flush` or `policy`, not both: make them tasks of their own"));
        }
        if self.rule_num.is_some() && self.action != Action::Insert {
            return Err(bad("`rule_num` needs `action: insert`"));
        }
        Ok(())
    }

    fn words<'a>(&'a self, program: &'a str, table: &'a str) -> Vec<&'a str> {
        let mut words = vec![program, "-t", table];
        if let Some(wait) = &self.wait {
            words.extend(["-w", wait]);
        }
        words
    }

    fn one(&self, host: &dyn Host, program: &str, rule: &[String]) -> Result<Option<Change>, Error> {
        let table = format!("{:?}", self.table).to_ascii_lowercase();
        let head = self.words(program, &table);
        let chain = self.chain.as_deref().unwrap_or_default();
        let exec = |words: &[&str]| Ok(Some(Change::Exec(Exec::of(&[&head, words].concat()))));
        let rules = |chain: &str| -> Result<String, Error> {
            let words: &[&str] = if chain.is_empty() { &["-S"] } else { &["-S", chain] };
            ask(host, &[&head, words].concat())
        };
        if self.flush {
            let full = rules(chain)?.lines().any(|line| line.starts_with("-A "));
            let words: &[&str] = if chain.is_empty() { &["-F"] } else { &["-F", chain] };
            return if full { exec(words) } else { Ok(None) };
        }
        if let Some(policy) = &self.policy {
            let right = format!("-P {chain} {policy}");
            return if rules(chain)?.lines().any(|line| line == right) {
                Ok(None)
            } else {
                exec(&["-P", chain, policy])
            };
        }
        let there = !self.chain_management || run(host, &[&head, &["-S", chain][..]].concat())?.success();
        if rule.is_empty() && self.chain_management {
            return match (self.state, there) {
                (State::Present, false) => exec(&["-N", chain]),
                // A chain must be empty to go.
                (State::Absent, true) if rules(chain)?.lines().any(|line| line.starts_with("-A ")) => {
                    exec(&["-F", chain])
                }
                (State::Absent, true) => exec(&["-X", chain]),
                (State::Present, true) | (State::Absent, false) => Ok(None),
            };
        }
        if !there {
            return if self.state == State::Present { exec(&["-N", chain]) } else { Ok(None) };
        }
        let mut words: Vec<&str> = rule.iter().map(String::as_str).collect();
        let checked = [&head, &["-C", chain][..], &words].concat();
        let output = run(host, &checked)?;
        // Source: `iptables(8)`: 1 for no such rule, or what can't be; 2 for what it does not understand.
        if !output.success() && output.rc != 1 {
            return Err(failed(&checked, &output));
        }
        let verb: &[&str] = match (self.state, output.success()) {
            (State::Present, false) if self.action == Action::Insert => {
                words.splice(0..0, self.rule_num.as_deref());
                &["-I", chain]
            }
            (State::Present, false) => &["-A", chain],
            (State::Absent, true) => &["-D", chain],
            (State::Present, true) | (State::Absent, false) => return Ok(None),
        };
        exec(&[verb, &words].concat())
    }

    /// Returns the words that make the rule.
    fn rule(&self, program: &str) -> Result<Vec<String>, Error> {
        let given = &self.rule;
        let mut words: Vec<String> = Vec::new();
        let mut matches: Vec<&str> = given.list("match");
        words.extend(matches.iter().flat_map(|name| ["-m".to_owned(), (*name).to_owned()]));
        let mut with = |words: &mut Vec<String>, extension: &'static str| {
            if !extension.is_empty() && !matches.contains(&extension) {
                matches.push(extension);
                words.extend(["-m".to_owned(), extension.to_owned()]);
            }
        };
        for (name, extension, option) in OPTIONS {
            let Some(text) = given.text(name) else { continue };
            // The program's own word for another family.
            let option = if name == "icmp_type" && program == "ip6tables" { "--icmpv6-type" } else { option };
            with(&mut words, extension);
            let (not, text) = match text.strip_prefix('!') {
                Some(text) => (true, text.trim_start()),
                None => (false, text),
            };
            words.extend(not.then(|| "!".to_owned()));
            words.extend([option.to_owned(), text.to_owned()]);
            if name == "match_set" {
                let flags = given.text("match_set_flags").ok_or_else(|| bad("`match_set` needs `match_set_flags`"))?;
                words.push(flags.to_owned());
            }
            if name == "protocol" {
                if let Some(flags) = &self.tcp_flags {
                    words.extend(["--tcp-flags".to_owned(), flags.flags.join(","), flags.flags_set.join(",")]);
                }
                match given.text("syn") {
                    Some("match") => words.push("--syn".to_owned()),
                    Some("negate") => words.extend(["!", "--syn"].map(str::to_owned)),
                    Some("ignore") | None => {}
                    Some(other) => return Err(bad(format!("`syn: {other}` is none of match, negate and ignore"))),
                }
            }
        }
        let ports = given.list("destination_ports");
        if !ports.is_empty() {
            with(&mut words, "multiport");
            words.extend(["--dports".to_owned(), ports.join(",")]);
        }
        let states = given.list("ctstate");
        if !states.is_empty() {
            with(&mut words, "conntrack");
            words.extend(["--ctstate".to_owned(), states.join(",")]);
        }
        match given.get("fragment").and_then(Value::as_str) {
            Some(text) if text.starts_with('!') => words.extend(["!", "-f"].map(str::to_owned)),
            Some(_) => words.push("-f".to_owned()),
            None => {}
        }
        // Without a protocol no port and no flag can be looked at: the program's own message says less.
        let needs = ["source_port", "destination_port", "syn"].iter().any(|name| given.text(name).is_some());
        if (needs || self.tcp_flags.is_some() || !ports.is_empty()) && given.text("protocol").is_none() {
            return Err(bad("ports and flags need a `protocol`"));
        }
        Ok(words)
    }
}
