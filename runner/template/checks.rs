//! What templates give, as Ansible gives it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::source::FileId;
use crate::yaml;

mod addresses;
mod collections;
mod data;
mod everyday;
mod expressions;
mod faults;
mod filters;
mod networks;
mod styles;
mod values;

/// Variables as a playbook would have them.
const VARIABLES: &str = r##"
d: {a: 1, t: "{{ nope }}", u: "{{ d.a + 1 }}"}
l: [1, 2, 3]
s: hello
r1: "{{ r2 }}"
r2: "{{ r1 }}"
chain: "{{ d.t }}"
whole: "{{ d.u }}"
mixed: "n={{ d.a }}"
users:
- {name: alice, uid: 1001, groups: [wheel, dev], shell: /bin/bash}
- {name: bob, uid: 1002, groups: [dev]}
- {name: carol, uid: 1003, groups: [], shell: /bin/zsh}
nested: {a: {b: {c: deep}}, list: [{x: 1}, {x: 2}]}
unsafe_one: !unsafe "{{ 1 + 1 }}"
result: {changed: true, failed: false, rc: 0, stdout: "a\nb", stdout_lines: [a, b]}
skipped_result: {changed: false, skipped: true}
empty: ""
nothing: null
yes_text: "yes"
names: [b, a, C]
"##;

fn variables(text: &str) -> Map {
    let parsed = yaml::parse(FileId::register(Path::new("vars.yml"), text)).expect("valid YAML");
    match parsed.documents[0].value() {
        Value::Map(map) => (*map).clone(),
        other => panic!("{other}"),
    }
}

fn templar_with(text: &str) -> Templar {
    let playbook = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("runner/template");
    Templar::new(Arc::new(variables(text)), Arc::new(Folders { playbook, ..Folders::default() }))
}

fn templar() -> Templar {
    templar_with(VARIABLES)
}

/// Renders a text; a bare expression is put into `{{ }}`.
fn rendered(templar: &Templar, text: &str) -> Result<Value, TemplateError> {
    let text = if crate::value::may_be_template(text) { text.to_owned() } else { format!("{{{{ {text} }}}}") };
    templar.value(&Value::Str(Str::template(text, Place::default())))
}

/// Shows a result: a text in quotes, so that types are told apart.
fn shown(result: Result<Value, TemplateError>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("!{}", error.message),
    }
}

/// Checks rows of a template and what it gives; a mistake is written with a `!` before its message.
fn check(rows: &[(&str, &str)]) {
    check_with(&templar(), rows);
}

fn check_with(templar: &Templar, rows: &[(&str, &str)]) {
    let wrong: Vec<String> = rows
        .iter()
        .map(|(text, wanted)| (text, wanted, shown(rendered(templar, text))))
        .filter(|(_, wanted, given)| *wanted != given)
        .map(|(text, wanted, given)| format!("{text}\n  wanted {wanted}\n  given  {given}"))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}
