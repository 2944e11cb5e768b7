//! Templates, conditions, filters, tests, and the small languages within them.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use kubeon_run::source::Place;
use kubeon_run::template::{self, FileOptions, Folders, Templar};
use kubeon_run::value::{Map, Str, Value};
use kubeon_run::yaml;

use crate::{Target, growing};

pub const TARGETS: &[Target] = &[
    Target {
        name: "templates",
        run: templates,
        longest: 1024,
        grow: &[
            growing("", "{{ s }} ", ""),
            growing("{{ ", "s ~ ", "s }}"),
            growing("{{ ", "(", ""),
            growing("{{ ", "[", ""),
            growing("{{ ", "not ", "s }}"),
            growing("{{ ", "- ", "1 }}"),
            growing("{{ s", "|upper", " }}"),
            growing("{{ s", ".a", " }}"),
            growing("{{ s", "[0]", " }}"),
            growing("", "{% if s %}", ""),
            growing("{% if s %}", "{% elif e %}", "{% endif %}"),
            growing("", "{% for i in l %}", ""),
            growing("", "{% macro m() %}", ""),
            growing("{{ s is", " defined is", " }}"),
            growing("{{ s", "(1)", " }}"),
            growing("", "{% if s %}x{% endif %}", ""),
            growing("", "{% set x = 1 %}", ""),
            growing("", "{# x #}", ""),
            growing("", "{% raw %}x{% endraw %}", ""),
            growing("", "{{", ""),
            growing("{% for i in l %}", "{{ i }}", "{% endfor %}"),
            growing("{{ {", "'k{n}': 1, ", "} }}"),
            growing("{{ [", "1, ", "] }}"),
            growing("{{ '", "\\\\n", "' }}"),
        ],
    },
    Target {
        name: "conditions",
        run: conditions,
        longest: 512,
        grow: &[
            growing("s", " and s", ""),
            growing("", "not ", "s"),
            growing("s", " if s else s", ""),
            growing("", "(", ""),
        ],
    },
    Target { name: "filters", run: filters, longest: 512, grow: &[] },
    Target {
        name: "versions",
        run: versions,
        longest: 128,
        grow: &[growing("", "1.", "\0\x01.1"), growing("1a", "b1", "\x001"), growing("", "9", "\x001")],
    },
];

/// Variables as playbooks have them.
const VARIABLES: &str = r#"
s: hello
e: ""
n: 3
f: 1.5
t: true
z: null
l: [1, 2, 3]
names: [b, a, C]
d: {a: 1, b: {c: deep}, t: "{{ n + 1 }}"}
users: [{name: alice, uid: 1001, groups: [wheel, dev]}, {name: bob, uid: 1002, groups: []}]
r: {changed: true, failed: false, rc: 0, stdout: "a\nb", stdout_lines: [a, b]}
loop1: "{{ loop2 }}"
loop2: "{{ loop1 }}"
"#;

static TEMPLAR: LazyLock<Templar> = LazyLock::new(|| {
    let parsed = yaml::parse_data(VARIABLES).expect("valid YAML");
    let variables = match parsed.documents[0].value() {
        Value::Map(map) => (*map).clone(),
        other => panic!("variables are a mapping, not {other}"),
    };
    Templar::new(Arc::new(trusted(variables)), Arc::new(Folders::default()))
});

/// Lets the texts of a mapping be templates.
fn trusted(map: Map) -> Map {
    let own = |value: &Value| match value {
        Value::Str(text) => Value::Str(Str::template(text.as_str(), Place::default())),
        other => other.clone(),
    };
    map.iter().map(|(key, value)| (key.clone(), own(value))).collect()
}

/// Whether a text might start programs or read what is on this machine, which a template's author may.
fn reaches_out(text: &str) -> bool {
    ["lookup", "query", "include", "import", "extends", "unvault", "fileglob", "realpath", "expanduser", "expandvars"]
        .iter()
        .any(|word| text.contains(word))
        || text.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == "q")
}

fn templates(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if reaches_out(text) {
        return;
    }
    let whole = Str::template(text, Place::default());
    template::syntax(&whole).ok();
    let value = TEMPLAR.value(&Value::Str(whole));
    if let Err(error) = value {
        assert!(!error.diagnostic().render(false).is_empty());
    }
    TEMPLAR.file(text, Path::new("input.j2"), FileOptions::default()).ok();
}

fn conditions(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if reaches_out(text) {
        return;
    }
    let whole = Str::template(text, Place::default());
    template::syntax_of_condition(&whole).ok();
    TEMPLAR.condition(&Value::Str(whole.clone())).ok();
    if let Err(error) = TEMPLAR.expression(&whole) {
        assert!(!error.diagnostic().render(false).is_empty());
    }
    // What came from a host is never evaluated.
    let data = Str::data(text);
    assert_eq!(TEMPLAR.value(&Value::Str(data.clone())).ok(), Some(Value::Str(data.clone())));
    assert!(TEMPLAR.expression(&data).is_err());
}

/// What may be called on values of any kind: `None` for what reads this machine.
static CALLS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let filters = template::filter_names().into_iter().map(|name| format!("v | {name}"));
    let tests = template::test_names().into_iter().map(|name| format!("v is {name}"));
    let methods = ["split", "join", "format", "replace", "strip", "startswith", "zfill", "center", "encode", "items"];
    let methods = methods.into_iter().map(|name| format!("v.{name}"));
    let others = ["v % ", "v[", "range", "v * ", "v + "].into_iter().map(str::to_owned);
    filters.chain(tests).chain(methods).chain(others).filter(|call| !reaches_out(call) && !reads_files(call)).collect()
});

fn reads_files(call: &str) -> bool {
    ["file", "exists", "directory", "link", "mount", "same_file", "abs"]
        .iter()
        .any(|word| call.ends_with(&format!(" {word}")))
}

/// An input: two bytes that choose what is called, then a JSON list of the value and the arguments.
fn filters(input: &[u8]) {
    let Some((chosen, rest)) = input.split_at_checked(2) else { return };
    let chosen = usize::from(u16::from_be_bytes([chosen[0], chosen[1]])) % CALLS.len();
    let Ok(serde_json::Value::Array(values)) = serde_json::from_slice(rest) else { return };
    let mut values = values.into_iter().map(Value::from_json);
    let Some(value) = values.next() else { return };
    let given: Vec<Value> = values.take(4).collect();
    // Hashes of passwords take their time on purpose, by a number among their arguments.
    if CALLS[chosen].contains("password_hash") || CALLS[chosen].contains("vault") {
        return;
    }
    let names: Vec<String> = (0..given.len()).map(|nth| format!("a{nth}")).collect();
    let names = names.join(", ");
    let call = match CALLS[chosen].as_str() {
        "v % " => "v % a0".to_owned(),
        "v + " => "v + a0".to_owned(),
        "v * " => "v * a0".to_owned(),
        "v[" => "v[a0:a1:a2]".to_owned(),
        "range" => format!("range(v, {names}) | list | length"),
        test if test.starts_with("v is ") && given.is_empty() => test.to_owned(),
        other => format!("{other}({names})"),
    };
    let variables = [("v".to_owned(), value)].into_iter();
    let variables = variables.chain(given.into_iter().enumerate().map(|(nth, value)| (format!("a{nth}"), value)));
    let templar = TEMPLAR.with(variables);
    templar.expression(&Str::template(call, Place::default())).ok();
}

/// An input: a version, a zero byte, a byte that chooses the kind, another version.
fn versions(input: &[u8]) {
    let Some((first, [kind, second @ ..])) =
        input.iter().position(|byte| *byte == 0).map(|at| (&input[..at], &input[at + 1..]))
    else {
        return;
    };
    let (Ok(first), Ok(second)) = (std::str::from_utf8(first), std::str::from_utf8(second)) else { return };
    let kind = ["loose", "strict", "semver", "pep440"][usize::from(*kind) % 4];
    let templar = TEMPLAR.with([("a".to_owned(), Value::str(first)), ("b".to_owned(), Value::str(second))]);
    let holds = |operator: &str| {
        let text = format!("a is version(b, '{operator}', version_type='{kind}')");
        templar.expression(&Str::template(text, Place::default())).ok().map(|value| value == Value::Bool(true))
    };
    let (less, equal, more) = (holds("<"), holds("=="), holds(">"));
    if let (Some(less), Some(equal), Some(more)) = (less, equal, more) {
        let count = [less, equal, more].iter().filter(|holds| **holds).count();
        assert_eq!(count, 1, "`{first}` against `{second}` as {kind}: {less} {equal} {more}");
    }
}
