//! Inventories: INI, YAML, what scripts answer, ranges in names, patterns, and files of variables.

use std::path::Path;

use kubeon_run::inventory::{Inventory, Reading, read};
use kubeon_run::source::Diagnostic;
use kubeon_run::vault::Vault;

use crate::{Target, file, growing};

pub const TARGETS: &[Target] = &[
    Target {
        name: "inventory-ini",
        run: |input| ask(&file("hosts", input)),
        longest: 2048,
        grow: &[
            growing("[g]\n", "h{n} a=1 b='x y'\n", ""),
            growing("", "[g{n}]\nh{n}\n", ""),
            growing("[all:vars]\n", "v{n}=[1, 2]\n", ""),
            growing("[g:vars]\nv=", "[", ""),
            growing("h a='", "x # ", "'"),
            growing("[all:children]\n", "g{n}\n", ""),
        ],
    },
    Target {
        name: "inventory-yaml",
        run: |input| ask(&file("hosts.yml", input)),
        longest: 2048,
        grow: &[
            growing("all:\n  hosts:\n", "    h{n}: {a: 1}\n", ""),
            growing("all:\n  children:\n", "    g{n}: {hosts: {h{n}: }}\n", ""),
            growing("all:\n  vars:\n", "    v{n}: x\n", ""),
        ],
    },
    Target {
        name: "ranges",
        run: ranges,
        longest: 256,
        grow: &[growing("h", "[1:1]", ","), growing("", "h{n},", ""), growing("", "[", ","), growing("", "[a:a", "],")],
    },
    Target {
        name: "patterns",
        run: patterns,
        longest: 512,
        grow: &[
            growing("", "web{n}:", ""),
            growing("", "&web,!", ""),
            growing("", "[", "]"),
            growing("*", "*a", ""),
            growing("~", "(a|", ""),
        ],
    },
];

fn ask(path: &Path) {
    let source = path.display().to_string();
    let (inventory, problems) = read(&[source], &[], &Reading::default(), &Vault::default());
    told(&problems);
    for host in inventory.host_list().iter().take(20) {
        inventory.vars_of(host);
        assert!(inventory.contains(host));
        for group in inventory.group_names(host) {
            assert!(group.as_ref() == "ungrouped" || inventory.hosts_of(&group).contains(host), "{host} of {group}");
        }
    }
}

/// Every mistake can be shown.
pub fn told(problems: &[Diagnostic]) {
    for problem in problems.iter().take(20) {
        assert!(!problem.render(false).is_empty());
    }
}

fn ranges(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // A range that is allowed may stand for a million hosts, which takes an instrumented program a minute by itself.
    if text.contains('/') || text.split(',').any(|name| (2e4..1e9).contains(&names_at_most(name))) {
        return;
    }
    read(&[format!("{text},")], &[], &Reading::default(), &Vault::default());
}

/// About how many names the ranges in one name stand for, by the digits of their numbers.
fn names_at_most(text: &str) -> f64 {
    let digits = |range: &str| range.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or_default();
    text.split('[').skip(1).map(|range| 10f64.powi(digits(range).min(30) as i32).max(30.0)).product()
}

fn patterns(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // A pattern may name a file of hosts.
    if text.contains('@') {
        return;
    }
    thread_local!(static HOSTS: Inventory = hosts());
    let (pattern, limit) = text.split_once('\0').map_or((text, None), |(pattern, limit)| (pattern, Some(limit)));
    HOSTS.with(|hosts| {
        if let Ok(chosen) = hosts.select(pattern, limit) {
            let all = hosts.host_list();
            assert!(chosen.iter().all(|host| all.contains(host) || kubeon_run::execute::is_this_machine(host)));
        }
        hosts.strangers(pattern);
    });
}

fn hosts() -> Inventory {
    let mut hosts = Inventory::new();
    for (group, count) in [("web", 5), ("db", 3), ("g1-x.y", 2), ("empty", 0)] {
        for nth in 0..count {
            hosts.add_host(&format!("{group}{nth}"), &[group.to_owned()], kubeon_run::value::Map::new());
        }
    }
    hosts.add_host("2001:db8::1", &[], kubeon_run::value::Map::new());
    hosts.add_host("10.0.0.1", &["web".to_owned()], kubeon_run::value::Map::new());
    hosts
}
