//! Arguments: `key=value` words, Python literals, and every module's own.

use kubeon_modules::{Change, Content, MODULES};
use kubeon_run::{literal, playbook};

use crate::fake::Fake;
use crate::{Target, growing, put};

pub const TARGETS: &[Target] = &[
    Target {
        name: "words",
        run: words,
        longest: 1024,
        grow: &[
            growing("", "a=b ", ""),
            growing("", "'x y' ", ""),
            growing("", "{{ x }} ", ""),
            growing("", "{{", ""),
            growing("'", "{{", "'"),
            growing("", "\\", ""),
            growing("a=", "\\x41", ""),
        ],
    },
    Target {
        name: "literals",
        run: |input| {
            if let Ok(text) = std::str::from_utf8(input) {
                literal::parse(text);
            }
        },
        longest: 1024,
        grow: &[
            growing("", "[", ""),
            growing("[", "1, ", "]"),
            growing("{", "'k{n}': 1, ", "}"),
            growing("'", "\\x41", "'"),
            growing("", "'a' ", ""),
            growing("", "-", "1"),
            growing("", "9", ""),
            growing("", "(", ")"),
        ],
    },
    Target { name: "modules", run: modules, longest: 2048, grow: &[] },
];

fn words(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(words) = playbook::split_words(text) {
        let again: String = words.iter().map(|word| format!("{}{}", word.before, word.text)).collect();
        assert!(text.starts_with(&again), "no byte is lost: `{again}`");
        assert!(text[again.len()..].bytes().all(|byte| byte.is_ascii_whitespace()), "only blanks follow the last word");
    }
    playbook::parse_key_values(text).ok();
}

/// A case of `modules/tests/cases`: a module's name on the first line, then its arguments and a faked host.
#[derive(serde::Deserialize)]
struct Case {
    args: kubeon_modules::Map,
    #[serde(default)]
    host: Fake,
}

fn modules(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Some((name, case)) = text.split_once('\n') else { return };
    // It waits for what is not there.
    if name == "wait_for" {
        return;
    }
    let Some(spec) = MODULES.iter().find(|spec| spec.name == name) else { return };
    let Ok(case) = serde_yaml::from_str::<Case>(case) else { return };
    let Ok(module) = (spec.decode)(&case.args) else { return };
    let Ok(plan) = module.plan(&case.host) else { return };
    // With groups of what was there a line may differ each time.
    let edits_one_file = matches!(name, "lineinfile" | "blockinfile" | "ini_file" | "sysctl" | "cron")
        && !case.args.contains_key("backrefs");
    if let ([Change::Write(write)], true) = (plan.changes.as_slice(), edits_one_file)
        && let Content::Inline(bytes) = &write.content
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        let mut host = case.host;
        put(&mut host, &write.path, text);
        let again = module.plan(&host).map(|plan| plan.changes).unwrap_or_default();
        assert!(!again.iter().any(|change| matches!(change, Change::Write(_))), "a second plan wants {again:?}");
    }
}
