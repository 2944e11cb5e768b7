//! YAML, playbooks with all that is checked before a run, vaulted texts.

use std::path::Path;
use std::sync::LazyLock;

use kubeon_run::inventory::Inventory;
use kubeon_run::playbook::{Loader, Options};
use kubeon_run::vault::Vault;
use kubeon_run::{plan, yaml};

use crate::inventory::told;
use crate::{Target, growing};

pub const TARGETS: &[Target] = &[
    Target {
        name: "yaml",
        run: yaml,
        longest: 2048,
        grow: &[
            growing("", "- x\n", ""),
            growing("", "k{n}: v\n", ""),
            growing("a: &a [", "x,", "]\n"),
            growing("- &a [x]\n", "- *a\n", ""),
            growing("", "- &a{n} [*a{n}, x]\n", ""),
            growing("", "[", ""),
            growing("", "- ", ""),
            growing("", "? ", ""),
            growing("", "{a: ", ""),
            growing("\"", "\\u00e9 x\n", "\""),
            growing("'", "''\n", "'"),
            growing("|\n", " x\n", ""),
            growing(">\n", " x\n\n", ""),
            growing("", "# x\n", ""),
            growing("", "---\n", ""),
            growing("", "&a ", "x"),
            growing("", "!t ", "x"),
            growing("k: {", "a{n}: 1, ", "}"),
            growing("a: x\n", " b", ": c"),
            growing("", "x: y: z\n", ""),
            growing("k:\n", "\tv{n}: x\n", ""),
            growing("k: \"\n", "v{n}\n", "\"\n"),
        ],
    },
    Target {
        name: "playbook",
        run: playbook,
        longest: 2048,
        grow: &[
            growing("- hosts: all\n  tasks:\n", "  - debug: {msg: x}\n", ""),
            growing("- hosts: all\n  tasks:\n", "  - name: n{n}\n    debug: msg=\"{{ x }}\"\n", ""),
            growing("- hosts: all\n  vars:\n", "    v{n}: \"{{ x }}\"\n", ""),
            growing("", "- hosts: all\n  tasks: [{command: x}]\n", ""),
            growing("- hosts: all\n  tasks:\n  - command: echo ", "x y=z ", "\n"),
        ],
    },
    Target { name: "vault", run: vault, longest: 2048, grow: &[growing("$ANSIBLE_VAULT;1.1;AES256\n", "3061\n", "")] },
];

/// How many documents may come of a text that aliases do not blow up.
fn yaml(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match yaml::parse_data(text) {
        Ok(parsed) => {
            for node in parsed.documents.iter().take(20) {
                let value = node.value();
                assert_eq!(value, node.value(), "a value is itself");
                value.to_json();
            }
            told(&parsed.warnings);
        }
        Err(problem) => told(&[problem]),
    }
    let file = kubeon_run::source::FileId::register(Path::new("input.yml"), text);
    if let Err(problem) = yaml::parse(file) {
        told(&[problem]);
    }
}

fn playbook(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut loader = Loader::new(Options::default());
    let plays = loader.carried(Path::new("playbook.yml"), text);
    let problems = loader.take_problems();
    told(&problems);
    told(&plan::check_plays(&plays, &Inventory::new(), &loader, false));
}

fn vault(input: &[u8]) {
    static VAULT: LazyLock<Vault> = LazyLock::new(|| {
        let mut vault = Vault::default();
        vault.add("default", "fuzz");
        vault
    });
    let text = String::from_utf8_lossy(input);
    if let Ok(plain) = VAULT.decrypt(&text) {
        assert!(plain.len() <= text.len(), "a text is no longer than its hexadecimal digits");
    }
}
